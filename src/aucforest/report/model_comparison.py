"""The sections that compare models on the same rows (verdict, metrics and curves), or split criteria on folds."""

from collections.abc import Mapping, Sequence
from itertools import count, groupby
from typing import Any

import narwhals as nw
import numpy as np

from aucforest._optional import import_optional
from aucforest.columns.categorical import names_of
from aucforest.inspection.comparison import BASELINE, STACK, ComparisonRow, CriteriaComparison, adjust_pvalues
from aucforest.inspection.scoring import find_metric
from aucforest.metrics.confidence import auc_with_interval, paired_test
from aucforest.metrics.intervals import tails
from aucforest.report import plots
from aucforest.report.metrics import LEVEL, bootstrap_weights, metric_function
from aucforest.report.page import Plot, Section, Table, estimate, number, signed
from aucforest.report.rows import ScoredRows, check_classifier, ordered_classes

_MOST_MODELS = len(plots.COLORS)  # one color for each model
_MOST_CLASSES = 4  # maximum number of classes with curves


def named_models(models: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Validate the models of a report and return them by name; models of a sequence are named by their types."""
    if not 2 <= len(models) <= _MOST_MODELS:
        raise ValueError(f"a report on several models takes 2 to {_MOST_MODELS} of them, but got {len(models)}")
    if isinstance(models, Mapping):
        names, models = list(map(str, models)), list(models.values())
    else:
        names = [type(model).__name__ for model in models]
    for model in models:
        check_classifier(model)
    by_name = dict(zip(distinct_names(names), models))
    classes = {name: ordered_classes(model).tolist() for name, model in by_name.items()}
    (first, first_classes), *others = classes.items()
    for name, labels in others:
        if labels != first_classes:
            raise ValueError(
                f"models on one page must have the same classes, but {first!r} has {first_classes} and {name!r} has"
                f" {labels} (of two classes the positive one is last)"
            )
    return by_name


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return distinct names, with 2, 3, ... appended to repeated ones."""
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name} {n}" for n in count(2))
        distinct.append(name if name not in distinct else next(text for text in numbered if text not in distinct))
    return distinct


def join_columns(tables: Sequence[Any]) -> Any:
    """Return the first of several tables of the same rows, extended by the columns that only other tables have."""
    table = tables[0]
    for other in tables[1:]:
        added = [name for name in names_of(other) if name not in names_of(table)]
        if added and names_of(table):
            first, second = (nw.from_native(each, eager_only=True) for each in (table, other))
            table = first.with_columns(*(second[name] for name in added)).to_native()
    return table


def compare_models(scored: Mapping[str, ScoredRows], n_bootstrap: int, seed: int) -> dict[str, list[ComparisonRow]]:
    """Return, for each metric, a row per model with the value and its difference from that of the first model.

    The `criterion` of a row is the name of the model. For two classes, the ROC AUC has DeLong's interval and test. For
    other metrics, intervals are percentiles of stratified bootstrap samples, which are the same for all models, and the
    p-value is 2 (m + 1) / (n_bootstrap + 1). Here m is the number of samples with a difference of at least 0 or the
    number of those with a difference of at most 0, whichever is smaller. The + 1 counts the original sample.
    """
    baseline, first = next(iter(scored.items()))
    measures = [metric_function(rows, rows.labels.size + 1) for rows in scored.values()]  # no scores are merged
    observed = [measure(first.weights) for measure in measures]
    samples = [[measure(weights) for measure in measures] for weights in bootstrap_weights(first, n_bootstrap, seed)]
    compared = {"roc_auc": [_by_delong(model, scored, first) for model in scored]} if len(first.classes) == 2 else {}
    shared = [name for name in observed[0] if all(name in values for values in observed) and name != "precision"]
    for metric in shared:
        compared[metric] = []
        resampled = np.array([[values[metric] for values in sample] for sample in samples])
        for model, values, estimates in zip(scored, observed, resampled.T):
            differences = estimates - resampled[:, 0]
            n_rarer = min(np.count_nonzero(differences <= 0.0), np.count_nonzero(differences >= 0.0))
            pvalue = min(2.0 * (n_rarer + 1) / (n_bootstrap + 1), 1.0)
            interval, paired = (np.quantile(each, tails(LEVEL)).tolist() for each in (estimates, differences))
            difference = values[metric] - observed[0][metric]
            row = (model, metric, values[metric], *interval, difference, *paired, pvalue, pvalue)
            compared[metric].append(ComparisonRow._make(row))
    return {metric: adjust_pvalues(rows, baseline) for metric, rows in compared.items()}


def _by_delong(model: str, scored: Mapping[str, ScoredRows], first: ScoredRows) -> ComparisonRow:
    """Return the ROC AUC of a model for two classes, and DeLong's paired test against the first model."""
    positive, score, weights = first.labels == 1, scored[model].scores[:, 1], first.sample_weight
    auc, low, high = auc_with_interval(positive, score, weights)
    test = paired_test(positive, score, first.scores[:, 1], level=LEVEL, sample_weight=weights)
    return ComparisonRow(model, "roc_auc", auc, low, high, test.difference, *test.interval, test.pvalue, test.pvalue)


def verdict(rows: Sequence[ComparisonRow]) -> str:
    """Return a sentence that says which models have a higher or lower ROC AUC than the first, and by how much."""
    first, *others = rows
    clauses = []
    for row in sorted(others, key=lambda row: -row.difference):
        how = "does not differ significantly from"
        if np.isnan(row.adjusted_pvalue):
            how = "cannot be tested against"
        elif row.adjusted_pvalue < 1.0 - LEVEL:
            how = f"ranks {'better' if row.is_better else 'worse'} than"
        width = row.difference_high - row.difference_low
        auc, auc_of_first = (estimate(each.mean, each.low, each.high, number, width)[0] for each in (row, first))
        difference, interval = estimate(row.difference, row.difference_low, row.difference_high, signed)
        clauses.append(
            f"{row.criterion} {how} {first.criterion}: ROC AUC {auc} against {auc_of_first}, difference {difference}, "
            f"95 % interval {interval}"
        )
    return f"{'; '.join(clauses)}."


def models_sections(scored: Mapping[str, ScoredRows], overlap: str, n_bootstrap: int, seed: int) -> list[Section]:
    """Return the sections verdict, metrics and curves; `overlap` says whether the rows are training rows."""
    (name, first), *others = scored.items()
    compared = compare_models(scored, n_bootstrap, seed)
    titles = [find_metric(metric).title for metric in compared]
    body = [[model, *(number(rows[i].mean) for rows in compared.values())] for i, model in enumerate(scored)]
    delong = "DeLong's for the ROC AUC, otherwise " if len(first.classes) == 2 else ""
    lowest_pvalue = number(2.0 * len(others) / (n_bootstrap + 1))
    sentences = [
        f"All models are evaluated on the same {first.labels.size:,} rows, and compared with {name}. Better, worse and "
        f"significant mean a p-value below {1.0 - LEVEL:.2g}, adjusted for the number of models by Holm's method. "
        f"P-values from {n_bootstrap} bootstrap samples are at least {lowest_pvalue}.",
        f"Differences are paired, row by row. Intervals and tests are {delong}from stratified bootstrap samples.",
        *(["Rows count by their weights."] if first.sample_weight is not None else []),
    ]
    if not all(rows.is_probability for rows in scored.values()):
        names = ", ".join(model for model, rows in scored.items() if not rows.is_probability)
        sentences.append(f"The scores of {names} are no probabilities: log loss and Brier score are left out.")
    table = Table("Metrics by model", ["model", *titles], body)
    tables = [differences_table(metric, rows, "model", name) for metric, rows in compared.items()]
    lead = f"Each metric with its 95 % interval, and its difference from {name}."
    ranks = verdict(compared["roc_auc"])
    return [
        Section("verdict", "Which model ranks better", ranks, tables=[table], points=[*sentences, overlap]),
        Section("metrics", "Metrics", lead, tables=tables),
        Section("curves", "Curves", "All models in each picture.", _pictures(scored, first)),
    ]


def _pictures(scored: Mapping[str, ScoredRows], first: ScoredRows) -> list[Plot]:
    """Plot ROC, gains and calibration curves; for more than two classes, one plot per frequent class and no gains."""
    drawn, with_probabilities = list[Plot](), {model: rows for model, rows in scored.items() if rows.is_probability}
    captions = {
        "roc": "ROC curves of {}: true positive rate (recall) against false positive rate.",
        "gains": "Cumulative gains: the proportion of all rows of {} found among the rows with the highest scores.",
        "reliability": "Calibration of {}: observed frequencies against mean predicted probabilities.",
    }
    if len(first.classes) > 2:
        del captions["gains"]
    for kind, caption in captions.items():
        models = with_probabilities if kind == "reliability" else scored
        for k in plots.drawn_classes(first, _MOST_CLASSES) if models else []:
            figure = plots.models_plot(models, k, kind)
            drawn.append(plots.picture(figure, f"{kind}-{k}", caption.format(first.classes[k])))
    return drawn


def criteria_content(comparison: CriteriaComparison) -> tuple[dict[str, str], list[Section]]:
    """Return the facts below the title of the page, and its sections: a plot, and a table for each metric."""
    pyplot = import_optional("matplotlib.pyplot", purpose="a report", extra="report")
    figure = comparison.plot()
    caption = (
        f"Differences from {BASELINE} on each fold, and their means with 95 % intervals. Arrows point to better values."
    )
    drawn = plots.picture(figure, "criteria", caption)
    pyplot.close(figure)
    quality, costs = list[Table](), list[Table]()
    for metric, rows in groupby(comparison.summary(), lambda row: row.metric):
        tables = quality if metric in comparison.metrics_of_quality else costs
        tables.append(differences_table(metric, list(rows), "criterion", BASELINE))
    stack = " and a stack of a forest," if STACK in comparison.criteria else ""
    lead = (
        f"Forests that differ only in the split criterion,{stack} on the same {len(comparison.folds)} folds; "
        f"differences are from {BASELINE}, tested by Nadeau and Bengio's corrected resampled t-test, with p-values "
        "adjusted for the number of criteria by Holm's method."
    )
    if quality:
        lead = f"{comparison.verdict()} {lead}"
    means = "Means over folds with 95 % intervals."
    tables_by_kind = (("metrics", "Metrics", quality), ("costs", "Fit time and sizes of trees", costs))
    others = [Section(id_, heading, means, tables=tables) for id_, heading, tables in tables_by_kind if tables]
    n_train, n_test = (round(float(comparison.folds[name].mean())) for name in ("n_train", "n_test"))
    facts = {
        "Criteria": ", ".join(comparison.criteria),
        "Folds": str(len(comparison.folds)),
        "Rows per fold": f"{n_train:,} for training, {n_test:,} for testing",
    }
    return facts, [Section("picture", "At a glance", lead, [drawn]), *others]


def differences_table(metric: str, rows: list[ComparisonRow], subject: str, baseline: str) -> Table:
    """Return a table of a metric and its difference from a baseline, a row per `subject`: "criterion" or "model"."""
    found, value = find_metric(metric), "mean" if subject == "criterion" else "value"
    columns = [subject, value, "95 % interval", f"difference from {baseline}", "95 % interval", "p"]
    columns = columns[:-1] if found.kind == "cost" else columns  # fit times and sizes are not tested
    body = []
    for row in rows:
        difference, pvalue = ["–", "–"], "–"
        if row.criterion != baseline:
            difference = estimate(row.difference, row.difference_low, row.difference_high, signed)
            pvalue = "< 0.001" if row.adjusted_pvalue < 0.001 else f"{row.adjusted_pvalue:.2g}".replace("nan", "–")
        cells = [row.criterion, *estimate(row.mean, row.low, row.high), *difference, pvalue]
        body.append(cells[: len(columns)])
    return Table(f"{found.title} ({'more' if found.higher_is_better else 'less'} is better)", columns, body)
