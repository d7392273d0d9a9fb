"""The sections of a report: on a model, and on a comparison of split criteria."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._pprint import _changed_params

from aucforest._optional import import_optional
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection import PermutationImportance, forest_summary
from aucforest.inspection.comparison import BASELINE, ComparisonRow, CriteriaComparison
from aucforest.inspection.scoring import METRICS
from aucforest.metrics import average_precision_score, roc_confidence_band
from aucforest.report import plots
from aucforest.report.data import class_table, column_table
from aucforest.report.explorer import find_thresholds
from aucforest.report.importances import auc_by_trees
from aucforest.report.metrics import Resamples, auc_interval, reliability, summarize
from aucforest.report.page import Section, Table, interval, number, percent, shortened, signed
from aucforest.report.rows import ScoredRows

LEVEL = 0.95
_MOST_CURVES = 10
_MOST_FEATURES = 30
_MOST_LETTERS = 200
_OF_THE_MACHINE = ("n_jobs", "verbose")
_FIGURES = [
    ("recall", "recall (sensitivity)"), ("specificity", "specificity"), ("precision", "precision"),
    ("gmean", "G-mean"), ("f1", "F1"), ("called", "share called positive"), ("cost", "cost, total"),
    ("cost-row", "cost per row"),
]  # fmt: skip


def summary_section(rows: ScoredRows, resamples: Resamples) -> Section:
    """Return the scores beside those of a model without skill."""
    scores = summarize(rows, resamples, LEVEL)
    auc = scores[0]
    sources = "Intervals are"
    if len(rows.classes) == 2:
        sources = "The interval of the ROC AUC is a score interval with DeLong's variance, the others are"
    sure = "" if np.isnan(auc.low) else f", with 95 % confidence {interval(auc.low, auc.high)}"
    lead = (
        f"ROC AUC {number(auc.value)}{sure}; chance is 0.5. {sources} "
        f"percentiles of {resamples.n_draws} draws of the rows, of each class as many as there are."
    )
    if rows.sample_weight is not None:
        lead += " Rows count by their weights."
    body = [
        [each.name, number(each.value), interval(each.low, each.high), number(each.no_skill), each.meaning]
        for each in scores
    ]
    columns = ["score", "model", "95 % interval", "no skill", "meaning"]
    caption = "Scores on these rows, beside a model that only knows how frequent the classes are"
    tables = [Table(caption, columns, body, "lrrrl")]
    if len(rows.classes) > 2:
        tables.append(_by_class(rows))
        tables.append(_confusion(rows))
    return Section("summary", "Summary", lead, [], tables)


def _by_class(rows: ScoredRows) -> Table:
    """Return the scores of every class against the rest."""
    confusion, body = rows.confusion(), []
    called = confusion.sum(axis=0)
    for k in rows.present:
        is_class, score = rows.labels == k, rows.scores[:, k]
        auc, low, high = auc_interval(is_class, score, rows.sample_weight, LEVEL)
        area, hit = average_precision_score(is_class, score, sample_weight=rows.sample_weight), confusion[k, k]
        shown = number(auc), interval(low, high), number(area), number(float(hit / rows.totals[k]))
        precision = number(float(hit / called[k]) if called[k] else np.nan)
        body.append([rows.classes[k], percent(float(rows.frequencies[k])), *shown, precision])
    columns = ["class", "share", "ROC AUC", "95 % interval", "average precision", "recall", "precision"]
    return Table("Each class against all others", columns, body, "lrrrrrr")


def _confusion(rows: ScoredRows) -> Table:
    """Return the confusion matrix of the predicted labels."""
    body = [[rows.classes[k], *(number(cell) for cell in cells)] for k, cells in enumerate(rows.confusion())]
    columns = ["truth", *(f"called {name}" for name in rows.classes)]
    return Table("Confusion matrix of the labels that the model predicts", columns, body, "l" + "r" * len(rows.classes))


def _drawn_classes(rows: ScoredRows) -> list[int]:
    """Return the classes whose curves are drawn: the second of two, or the most frequent ones."""
    if len(rows.classes) == 2:
        return [1]
    frequent = np.argsort(-rows.totals, kind="stable")[:_MOST_CURVES]
    return sorted(set(frequent.tolist()) & set(rows.present))


def ranking_section(rows: ScoredRows, resamples: Resamples) -> Section:
    """Return ROC and precision-recall curves."""
    classes, two = _drawn_classes(rows), len(rows.classes) == 2
    of = rows.classes[1] if two else "each class against all others"
    captions = [
        f"ROC curve of {of}: how much of it is found at which rate of false alarms.",
        f"Precision-recall curve of {of}: how pure the rows called so are, the more of it is found.",
    ]
    roc_band = precision_band = None
    if two:
        precision_band = resamples.precision_band(LEVEL)
        captions[1] += " The band covers the precision at any one recall with 95 % confidence."
        if rows.sample_weight is None:
            roc_band = roc_confidence_band(rows.labels == 1, rows.scores[:, 1], level=LEVEL)
            captions[0] += " The band covers the whole true curve with 95 % confidence."
        captions = [f"{caption} The dot is at the threshold that is chosen below." for caption in captions]
    cursor = "point" if two else None
    lead = "How well the scores order the rows, whatever the threshold."
    if not two and len(classes) < len(rows.present):
        lead += f" The {len(classes)} most frequent classes are drawn."
    drawn = [
        plots.picture(plots.roc_plot(rows, classes, roc_band), "roc", captions[0], cursor=cursor),
        plots.picture(plots.precision_recall_plot(rows, classes, precision_band), "pr", captions[1], cursor=cursor),
    ]
    return Section("ranking", "Ranking", lead, drawn, [])


def calibration_section(rows: ScoredRows) -> Section:
    """Return whether probabilities are what they say."""
    classes, two = _drawn_classes(rows), len(rows.classes) == 2
    bins = {rows.classes[k]: reliability(rows, k, LEVEL) for k in classes}
    caption = "Observed shares against predicted probabilities; on the diagonal they agree."
    if two:
        caption += " Whiskers are 95 % intervals; the bins hold like parts of both classes."
    drawn = [plots.picture(plots.reliability_plot(bins), "reliability", caption)]
    tables = []
    if two:
        caption = "How the probabilities of either class are spread, each class by itself."
        drawn.append(plots.picture(plots.score_plot(rows), "scores", caption))
        body = [
            [f"{number(each.least)} to {number(each.most)}", f"{each.n_rows:,}", number(each.mean),
             number(each.observed), interval(each.low, each.high)]
            for each in bins[rows.classes[1]]
        ]  # fmt: skip
        columns = ["probability", "rows", "mean probability", "observed share", "95 % interval"]
        tables.append(Table("The bins of the calibration curve", columns, body, "lrrrr"))
    mean = np.average(rows.scores[:, classes], axis=0, weights=rows.weights)
    k = int(np.argmax(np.abs(mean - rows.frequencies[classes])))
    name, share = rows.classes[classes[k]], float(rows.frequencies[classes[k]])
    lead = (
        f"Whether probabilities mean what they say: for {name} they average {number(float(mean[k]))}, its share is "
        f"{number(share)}."
    )
    return Section("calibration", "Calibration", lead, drawn, tables)


def threshold_section(rows: ScoredRows, cost: NDArray[np.float64]) -> Section:
    """Return the explorer of thresholds."""
    found = find_thresholds(rows)
    negative, positive = rows.classes
    alt = f"Recall, specificity, precision, G-mean and F1 of {positive} at each of {found.tp.size} thresholds."
    if found.own is None:
        own_sentence = "The labels that the model predicts follow no single threshold."
    else:
        own_sentence = f"The model's own threshold is {found.own_threshold:.4g}."
    explorer = {
        "svg": plots.as_svg(plots.thresholds_plot(found), "cuts", alt, cursor="line"),
        "data": found.as_json(cost),
        "start": found.best_g_mean if found.own is None else found.own,
        "own_sentence": own_sentence,
        "negative": negative,
        "positive": positive,
        "figures": _FIGURES,
    }
    lead = "What follows from the choice of a threshold, on these rows and at your costs."
    return Section("thresholds", "Thresholds", lead, [], [], explorer)


def importance_section(importance: PermutationImportance, source: str) -> Section:
    """Return how much each feature is worth."""
    mean, intervals = importance.importances_mean, importance.importances_interval(LEVEL)
    caption = "Fall of the ROC AUC when one column is permuted, with 95 % intervals; the most important columns."
    body = [
        [importance.feature_names[j], signed(mean[j]), interval(intervals[j, 0], intervals[j, 1], signed)]
        for j in np.argsort(-mean, kind="stable")[:_MOST_FEATURES]
    ]
    table = Table("Fall of the ROC AUC by column", ["column", "mean fall", "95 % interval"], body, "lrr")
    lead = (
        f"How much ROC AUC, {number(importance.baseline_score)} on {importance.n_scored:,} {source}, is lost without "
        "the information of a column; columns that tell the same thing stand in for each other."
    )
    drawn = [plots.picture(plots.importance_plot(importance), "importance", caption)]
    return Section("columns", "What the model looks at", lead, drawn, [table])


def model_section(model: Any, training: TrainingRows | None) -> Section:
    """Return how the model was made; of a forest also what its trees are, and whether there are enough of them."""
    lead, drawn, tables = "What the model is.", [], []
    changed = sorted(_changed_params(model).items())
    body = [[name, shortened(repr(value), _MOST_LETTERS)] for name, value in changed if name not in _OF_THE_MACHINE]
    if body:
        tables.append(Table("Parameters that are not the default", ["parameter", "value"], body, "ll"))
    if isinstance(model, AUCForestClassifier):
        tables.append(_forest_table(model))
        if hasattr(model, "mixture_"):
            caption = "Trees by criterion and splitter: more of those that raise the out-of-bag AUC of the forest most."
            drawn.append(plots.picture(plots.mixture_plot(model), "mixture", caption))
        points = [] if training is None else auc_by_trees(model, training, LEVEL)
        if points:
            caption = "Out-of-bag ROC AUC of the first trees, on training rows that they did not draw."
            drawn.append(plots.picture(plots.trees_plot(points), "trees", caption))
            lead = "What the model is, and whether it has enough trees: where the curve is flat, more would not help."
    return Section("model", "Model", lead, drawn, tables)


def _forest_table(forest: AUCForestClassifier) -> Table:
    """Return what the trees are."""
    size = forest_summary(forest)
    body = [
        ["trees", f"{size.n_trees:,}"],
        ["split criteria", ", ".join(dict.fromkeys(criterion for criterion, _ in forest.variants_))],
        ["splitters", ", ".join(dict.fromkeys(splitter for _, splitter in forest.variants_))],
        ["nodes of a tree, mean", number(float(size.n_nodes.mean()))],
        ["depth of a tree, mean", number(float(size.max_depth.mean()))],
        ["depth of the deepest tree", f"{size.max_depth.max()}"],
        ["size of all trees, MiB", number(float(size.n_bytes.sum() / 2**20))],
        ["shrinkage (lambda)", number(float(forest.shrinkage_))],
    ]
    return Table("The trees", ["figure", "value"], body, "lr")


def data_section(rows: ScoredRows, training: tuple[NDArray[Any], NDArray[Any] | None] | None) -> Section:
    """Return what the rows look like; `training` holds the labels and weights of the training rows."""
    tables = [class_table("Classes of the rows of this report", rows.classes, rows.labels, rows.sample_weight)]
    if training is not None:
        tables.append(class_table("Classes of the training rows", rows.classes, *training))
    columns = column_table(rows.X)
    lead = f"The {rows.labels.size:,} rows that all figures are of, unless something else is said."
    return Section("data", "Data", lead, [], tables if columns is None else [*tables, columns])


def comparison_sections(comparison: CriteriaComparison) -> list[Section]:
    """Return the picture, and a table a metric."""
    pyplot = import_optional("matplotlib.pyplot", purpose="a report", extra="report")
    figure = comparison.plot()
    caption = "Every fold as a faint dot, the means and their 95 % intervals; an arrow says which end is better."
    drawn = plots.picture(figure, "criteria", caption)
    pyplot.close(figure)
    rows = comparison.summary()
    tables = [_criteria_table(metric, [row for row in rows if row.metric == metric]) for metric in comparison.metrics]
    lead = (
        f"Forests that differ in nothing but the split criterion, on the same {len(comparison.folds)} folds; "
        f"differences are from {BASELINE}, tested by Nadeau and Bengio's corrected resampled t-test, not adjusted for "
        "the number of comparisons."
    )
    return [
        Section("picture", "At a glance", lead, [drawn], []),
        Section("figures", "Figures", "Means over folds with 95 % intervals.", [], tables),
    ]


def comparison_facts(comparison: CriteriaComparison) -> list[tuple[str, str]]:
    """Return what stands below the title."""
    n_train, n_test = (round(float(comparison.folds[name].mean())) for name in ("n_train", "n_test"))
    return [
        ("Criteria", ", ".join(comparison.criteria)),
        ("Folds", str(len(comparison.folds))),
        ("Rows a fold", f"{n_train:,} for training, {n_test:,} for testing"),
    ]


def _criteria_table(metric: str, rows: list[ComparisonRow]) -> Table:
    """Return the means of a metric, a row a criterion."""
    better = "more" if METRICS[metric].higher_is_better else "less"
    body = []
    for row in rows:
        difference, pvalue = ["–", "–"], row.pvalue_text.removeprefix("p ").removeprefix("= ") or "–"
        if row.criterion != BASELINE:
            difference = [signed(row.difference), interval(row.difference_low, row.difference_high, signed)]
        body.append([row.criterion, number(row.mean), interval(row.low, row.high), *difference, pvalue])
    columns = ["criterion", "mean", "95 % interval", f"difference from {BASELINE}", "95 % interval", "p"]
    return Table(f"{METRICS[metric].title} ({better} is better)", columns, body, "lrrrrr")
