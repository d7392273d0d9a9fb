"""The sections on several models on the same rows: which one ranks best, their metrics, and their curves."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.inspection.comparison import ComparisonRow, holm
from aucforest.inspection.scoring import find_metric
from aucforest.metrics import compare_auc
from aucforest.metrics.classification import brier_losses, log_losses
from aucforest.metrics.intervals import tails
from aucforest.metrics.roc import class_roc_auc, precision_area
from aucforest.report import plots
from aucforest.report.criteria import differences_table
from aucforest.report.metrics import LEVEL, auc_interval, bootstrap_weights, cumulate_groups, group_by_score
from aucforest.report.page import Plot, Section, Table, estimate, number, signed
from aucforest.report.performance import usual_proportion
from aucforest.report.rows import FloatArray, ScoredRows, check_classifier, classes_of
from aucforest.tables.columns import names_of

_MOST_MODELS = len(plots.COLORS)
_MOST_CLASSES = 4  # with curves


def named_models(models: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return fitted classifiers of the same classes by name; those of a list are named by their types."""
    if not 2 <= len(models) <= _MOST_MODELS:
        raise ValueError(f"a report on several models takes 2 to {_MOST_MODELS} of them, but got {len(models)}")
    if isinstance(models, Mapping):
        names, models = list(map(str, models)), list(models.values())
    else:
        names = [type(model).__name__ for model in models]
    for model in models:
        check_classifier(model)
    by_name = dict(zip(distinct_names(names), models))
    classes = {name: classes_of(model).tolist() for name, model in by_name.items()}
    (first, known), *others = classes.items()
    for name, of_model in others:
        if of_model != known:
            raise ValueError(
                f"models on one page must have the same classes, but {first!r} has {known} and {name!r} has {of_model}"
                " (of two classes the positive one is last)"
            )
    return by_name


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names, with a number behind those that an earlier model has."""
    distinct: list[str] = []
    for name in names:
        tried = [name, *(f"{name} {n}" for n in range(2, len(names) + 1))]
        distinct.append(next(text for text in tried if text not in distinct))
    return distinct


def joined(tables: Sequence[Any]) -> Any:
    """Return the first of several tables of the same rows with the columns of the others that it lacks."""
    table = tables[0]
    for other in tables[1:]:
        added = [name for name in names_of(other) if name not in names_of(table)]
        if added and names_of(table):
            frames = [nw.from_native(each, eager_only=True) for each in (table, other)]
            table = frames[0].with_columns(*(frames[1][name] for name in added)).to_native()
    return table


def compare_models(scored: Mapping[str, ScoredRows], n_bootstrap: int, seed: int) -> dict[str, list[ComparisonRow]]:
    """Return the metrics of models, whose names are in place of criteria, and their differences from the first one.

    Intervals and p-values of the ROC AUC of two classes are DeLong's, others percentiles of stratified bootstrap
    samples, which are the same for all models. The p-value is twice the proportion of samples, those of all rows
    included, in which the difference is 0 or has the rarer sign.
    """
    first = next(iter(scored.values()))
    measures = [_measure_of(rows) for rows in scored.values()]
    observed = [measure(first.weights) for measure in measures]
    samples = [[measure(weights) for measure in measures] for weights in bootstrap_weights(first, n_bootstrap, seed)]
    compared = {"roc_auc": [_by_delong(model, scored, first) for model in scored]} if len(first.classes) == 2 else {}
    for metric in observed[0]:
        if not all(metric in values for values in observed):
            continue
        compared[metric] = []
        drawn = np.array([[values[metric] for values in sample] for sample in samples])
        for model, values, of_model in zip(scored, observed, drawn.T):
            differences = of_model - drawn[:, 0]
            rarer = min(np.count_nonzero(differences <= 0.0), np.count_nonzero(differences >= 0.0))
            pvalue = min(2.0 * (rarer + 1) / (n_bootstrap + 1), 1.0)
            own, paired = (np.quantile(each, tails(LEVEL)).tolist() for each in (of_model, differences))
            difference = values[metric] - observed[0][metric]
            row = (model, metric, values[metric], *own, difference, *paired, pvalue, pvalue)
            compared[metric].append(ComparisonRow._make(row))
    for rows in compared.values():
        adjusted = holm([row.pvalue for row in rows[1:]]).tolist()
        rows[1:] = [row._replace(adjusted_pvalue=pvalue) for row, pvalue in zip(rows[1:], adjusted)]
    return compared


def _measure_of(rows: ScoredRows) -> Callable[[FloatArray], dict[str, float]]:
    """Return the function of weights of the rows that gives the metrics, except the ROC AUC of two classes."""
    group = group_by_score(rows, 1, rows.labels.size + 1) if len(rows.classes) == 2 else None
    losses = {"log_loss": log_losses, "brier": brier_losses} if rows.is_probability else {}
    return partial(_measure, rows, group, {name: loss(rows.labels, rows.scores) for name, loss in losses.items()})


def _measure(
    rows: ScoredRows, group: NDArray[np.int64] | None, losses: dict[str, FloatArray], weights: FloatArray
) -> dict[str, float]:
    """Return the metrics for some weights of the rows, whose distinct scores are groups."""
    means = {name: float(of_rows @ weights / weights.sum()) for name, of_rows in losses.items()}
    if group is None:
        return {"roc_auc": class_roc_auc(rows.labels, rows.scores, weights)} | means
    tps, called, precision = cumulate_groups(rows, group, weights)
    k = usual_proportion(rows)
    hits = float(np.interp(k * called[-1], np.append(0.0, called), np.append(0.0, tps)))  # ties in proportion
    at_k = {f"precision_at_{k}": hits / float(k * called[-1]), f"recall_at_{k}": hits / float(tps[-1])}
    return {"average_precision": float(precision_area(tps, precision))} | at_k | means


def _by_delong(model: str, scored: Mapping[str, ScoredRows], first: ScoredRows) -> ComparisonRow:
    """Return the ROC AUC of a model of two classes, and DeLong's paired test against the first one."""
    positive, score, weights = first.labels == 1, scored[model].scores[:, 1], first.sample_weight
    auc, low, high = auc_interval(positive, score, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        test = compare_auc(positive, score, first.scores[:, 1], level=LEVEL, sample_weight=weights)
    interval, pvalue = test.interval, test.pvalue
    return ComparisonRow(model, "roc_auc", auc, low, high, test.difference, *interval, pvalue, pvalue)


def verdict(rows: Sequence[ComparisonRow]) -> str:
    """Return a sentence on the ROC AUCs of models: which rank better or worse than the first, and by how much."""
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


def models_sections(
    scored: Mapping[str, ScoredRows], points: Sequence[str], n_bootstrap: int, seed: int
) -> list[Section]:
    """Return the sections on the verdict, which has further `points`, on the metrics, and on the curves."""
    (name, first), *others = scored.items()
    compared = compare_models(scored, n_bootstrap, seed)
    titles = [find_metric(metric).title for metric in compared]
    body = [[model, *(number(rows[i].mean) for rows in compared.values())] for i, model in enumerate(scored)]
    delong = "DeLong's for the ROC AUC, otherwise " if len(first.classes) == 2 else ""
    least = number(2.0 * len(others) / (n_bootstrap + 1))
    told = [
        f"All models are evaluated on the same {first.labels.size:,} rows, and compared with {name}. Better, worse and "
        f"significant mean a p-value below {1.0 - LEVEL:.2g}, adjusted for the number of models by Holm's method; from "
        f"{n_bootstrap} bootstrap samples, the lowest one is at least {least}.",
        f"Intervals and tests are paired, row by row: {delong}percentiles of stratified bootstrap samples.",
        *(["Rows count by their weights."] if first.sample_weight is not None else []),
    ]
    bare = [model for model, rows in scored.items() if not rows.is_probability]
    if bare:
        told.append(f"The scores of {', '.join(bare)} are no probabilities: log loss and Brier score are left out.")
    table = Table("Metrics by model", ["model", *titles], body, "l" + "r" * len(titles))
    tables = [differences_table(metric, rows, "model", name) for metric, rows in compared.items()]
    lead = f"Each metric with its 95 % interval, and its difference from {name}."
    ranks = verdict(compared["roc_auc"])
    return [
        Section("verdict", "Which model ranks better", ranks, [], [table], points=[*told, *points]),
        Section("metrics", "Metrics", lead, [], tables),
        Section("curves", "Curves", "All models in each picture.", _pictures(scored, first), []),
    ]


def _pictures(scored: Mapping[str, ScoredRows], first: ScoredRows) -> list[Plot]:
    """Return ROC, gains and calibration curves of all models, of more than two classes for each frequent one."""
    drawn, of_proba = list[Plot](), {model: rows for model, rows in scored.items() if rows.is_probability}
    captions = {
        "roc": "ROC curves of {}: true positive rate (recall) against false positive rate.",
        "gains": "Cumulative gains: the proportion of all rows of {} found among the rows with the highest scores.",
        "reliability": "Calibration of {}: observed frequencies against mean predicted probabilities.",
    }
    if len(first.classes) > 2:
        captions.pop("gains")
    for kind, caption in captions.items():
        models = of_proba if kind == "reliability" else scored
        for k in plots.drawn_classes(first, _MOST_CLASSES) if models else []:
            picture = plots.picture(plots.models_plot(models, k, kind), f"{kind}-{k}", caption.format(first.classes[k]))
            drawn.append(picture)
    return drawn
