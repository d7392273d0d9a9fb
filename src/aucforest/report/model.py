"""The sections on the model: importances, partial dependence, reasons, members of a stack, parameters and trees."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import _safe_indexing
from sklearn.utils._pprint import _changed_params

from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection import PermutationImportance, forest_summary
from aucforest.inspection.explanation import explain
from aucforest.inspection.models import forest_of
from aucforest.metrics import compare_auc
from aucforest.metrics.intervals import normal_quantile
from aucforest.metrics.roc import class_roc_auc
from aucforest.report import plots
from aucforest.report.data import column_names
from aucforest.report.importance import columns_in_order, partial_dependence
from aucforest.report.metrics import LEVEL, auc_by_trees, row_losses
from aucforest.report.page import Section, Table, interval, number, shortened, signed
from aucforest.report.rows import ScoredRows, classes_of, scores_of

_MOST_FEATURES = 30
_MOST_DEPENDENCES = 6
_MOST_LETTERS = 200
_OF_THE_MACHINE = ("n_jobs", "verbose")
_N_ROWS = 10  # with reasons
_N_REASONS = 3
_MEMBERS = {
    "forest": "the forest",
    "residual": "a forest of the samples that the first forest predicts badly out of bag",
    "linear": "an additive model: a sum of effects of single columns",
}


def importance_section(importance: PermutationImportance, *, out_of_bag: bool) -> Section:
    """Return the permutation importance of each feature."""
    source = "out-of-bag training rows" if out_of_bag else "rows of this report"
    mean, intervals = importance.importances_mean, np.clip(importance.importances_interval(LEVEL), -1.0, 1.0)
    caption = "Decrease of the ROC AUC when one column is permuted, with 95 % intervals; the most important columns."
    body = [
        [importance.feature_names[j], signed(mean[j]), interval(intervals[j, 0], intervals[j, 1], signed)]
        for j in np.argsort(-mean, kind="stable")[:_MOST_FEATURES]
    ]
    table = Table("Decrease of the ROC AUC by column", ["column", "mean decrease", "95 % interval"], body, "lrr")
    lead = (
        f"How much the ROC AUC, {number(importance.baseline_score)} on {importance.n_scored:,} {source}, decreases "
        "when one column is permuted. Columns with the same information can replace each other: each seems unimportant."
    )
    drawn = [plots.picture(plots.importance_plot(importance), "importance", caption)]
    return Section("columns", "Feature importance", lead, drawn, [table])


def dependence_sections(rows: ScoredRows, importance: PermutationImportance, seed: int) -> list[Section]:
    """Return the section on partial dependence with plots of equal scale, or none if all features are constant."""
    order = columns_in_order(importance, rows.model, len(column_names(rows.X) or ()))
    dependences = partial_dependence(rows, order[:_MOST_DEPENDENCES], seed)
    if not dependences:
        return []
    classes = {rows.classes[k]: k for k in plots.drawn_classes(rows)}
    means = np.concatenate([dependence.means[:, list(classes.values())].ravel() for dependence in dependences])
    margin = 0.08 * max(float(np.ptp(means)), 1e-9)
    limits = float(means.min()) - margin, float(means.max()) + margin
    label = "mean probability" if rows.is_probability else "mean decision value"
    drawn = []
    for i, dependence in enumerate(dependences):
        figure = plots.dependence_plot(dependence, classes, limits, label)
        drawn.append(plots.picture(figure, f"dependence-{i}", f"Partial dependence on {dependence.name}."))
    of = f" of {rows.classes[1]}" if len(rows.classes) == 2 else ""
    lead = (
        f"The {label}{of} if all rows had the same value of one column and kept their other values: the average "
        "effect of the column in the model. It shows no combinations of columns, and is unsure where values are rare."
    )
    return [Section("dependence", "Partial dependence", lead, drawn, [])]


def reasons_sections(rows: ScoredRows, n_jobs: int | None) -> list[Section]:
    """Return the section on the rows with the highest scores, or none for other models and more than two classes."""
    if len(rows.classes) != 2 or not isinstance(rows.model, TreeBasedClassifier):
        return []
    highest = np.argsort(-rows.scores[:, 1], kind="stable")[:_N_ROWS]
    label, name = classes_of(rows.model).tolist()[1], rows.classes[1]
    explanation = explain(rows.model, _safe_indexing(rows.X, highest), n_jobs=n_jobs).of_class(label)
    names = rows.X.index if hasattr(rows.X, "iloc") else range(len(rows.labels))
    body = []
    for row, reasons in zip(highest.tolist(), explanation.top(_N_REASONS)):
        texts = [f"{reason.condition_in(number)} ({signed(reason.contribution)})" for reason in reasons]
        body.append([str(names[row]), number(rows.scores[row, 1]), rows.classes[rows.labels[row]], "; ".join(texts)])
    explained = explanation.target.replace(f"probability of {label}", f"probability of {name}", 1)
    columns = ["row", "score", "true class", "features that move the prediction most"]
    lead = (
        f"The {len(body)} rows with the highest scores. The number in brackets is the Shapley value of the feature: "
        f"what it adds to the {explained}. It describes the model, and does not say what would happen if the "
        "value were changed. Rows are named by their index, or counted from 0."
    )
    table = Table("Rows and reasons", columns, body, "lrll")
    return [Section("reasons", "Reasons for the highest scores", lead, [], [table])]


def members_sections(rows: ScoredRows) -> list[Section]:
    """Return the section on the members of a stack, or none for other models."""
    stack = rows.model
    if not isinstance(stack, AUCStackingClassifier):
        return []
    meanings = _MEMBERS | ({} if stack.linear == "auto" else {"linear": type(stack.linear).__name__})
    weights = [[name, number(weight), meanings[name]] for name, weight in zip(stack.members_, stack.weights_.tolist())]
    tables = [Table("The members of the stack and their weights", ["member", "weight", "what it is"], weights, "lrl")]
    if len(weights) > 1:
        alone = replace(rows, scores=scores_of(stack.members_["forest"], rows.X))
        columns = ["metric", "forest alone", "stack", "difference", "95 % interval"]
        body = [_auc(alone, rows), _log_loss(alone, rows)]
        tables.append(Table("The stack and its forest alone, on these rows", columns, body, "lrrrr"))
    lead = (
        "The score of a class is the sum of the scores of the members, with two classes of log odds, times their "
        "weights. A member of weight 0 did not help on the out-of-bag samples, and is not used."
    )
    points = [
        "A single prediction is not explained by values of the features: Shapley values are those of the probabilities "
        "of a forest, and do not add up to the scores of a stack."
    ]
    return [Section("members", "What each member adds", lead, [], tables, points=points)]


def _auc(alone: ScoredRows, rows: ScoredRows) -> list[str]:
    """Return the ROC AUCs and their difference, which has DeLong's interval for two classes."""
    before, after = (class_roc_auc(rows.labels, scored.scores, rows.sample_weight) for scored in (alone, rows))
    low, high = np.nan, np.nan
    if len(rows.classes) == 2:
        score, score_alone = rows.scores[:, 1], alone.scores[:, 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            test = compare_auc(rows.labels == 1, score, score_alone, level=LEVEL, sample_weight=rows.sample_weight)
        low, high = test.interval
    return ["ROC AUC", number(before), number(after), signed(after - before), interval(low, high, signed)]


def _log_loss(alone: ScoredRows, rows: ScoredRows) -> list[str]:
    """Return the log losses and their difference with the interval of a mean over rows."""
    before, after = (row_losses(scored)["log loss"] for scored in (alone, rows))
    means = [float(np.average(losses, weights=rows.weights)) for losses in (before, after, after - before)]
    deviations = rows.weights * (after - before - means[2])
    margin = normal_quantile(LEVEL) * float(np.sqrt(np.square(deviations).sum()) / rows.weights.sum())
    shown = interval(means[2] - margin, means[2] + margin, signed)
    return ["log loss", number(means[0]), number(means[1]), signed(means[2]), shown]


def model_section(model: Any, training: TrainingRows | None) -> Section:
    """Return the section on parameters; for a forest, or that of a stack, also on trees and whether more would help."""
    lead, drawn, tables = "How the model was fitted.", [], []
    changed = sorted(_changed_params(model).items())
    body = [[name, shortened(repr(value), _MOST_LETTERS)] for name, value in changed if name not in _OF_THE_MACHINE]
    if body:
        tables.append(Table("Parameters that are not the default", ["parameter", "value"], body, "ll"))
    forest = forest_of(model)
    if forest is not None:
        of_stack = "" if forest is model else " of the stack's forest"
        tables.append(_forest_table(f"The trees{of_stack}", forest))
        if hasattr(forest, "mixture_"):
            caption = (
                f"Trees{of_stack} by split criterion and splitter, with the out-of-bag ROC AUC of each kind alone. A "
                "kind gets more trees if they raise the ROC AUC of the whole forest, which need not be the best kind "
                "alone."
            )
            drawn.append(plots.picture(plots.mixture_plot(forest), "mixture", caption))
        points = np.empty((0, 4)) if training is None else auc_by_trees(forest, training)
        if points.size:
            caption = f"Out-of-bag ROC AUC{of_stack} by the number of trees, with 95 % intervals."
            drawn.append(plots.picture(plots.trees_plot(points), "trees", caption))
            lead = (
                "How the model was fitted, and whether its trees are enough: where the curve is flat, more do not help."
            )
    return Section("model", "Model", lead, drawn, tables)


def _forest_table(caption: str, forest: AUCForestClassifier) -> Table:
    """Return a table of the sizes of the trees."""
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
    return Table(caption, ["property", "value"], body, "lr")
