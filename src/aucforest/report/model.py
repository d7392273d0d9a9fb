"""The sections on the model: importances, partial dependence, reasons, members of a stack, parameters and trees."""

from dataclasses import replace
from typing import Any

import numpy as np

from aucforest._sklearn import changed_params, safe_indexing
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.log_odds import can_be_explained
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.inspection import PermutationImportance, forest_summary
from aucforest.inspection.explanation import explain
from aucforest.inspection.models import forest_of
from aucforest.inspection.scoring import find_metric
from aucforest.report import plots
from aucforest.report.data import Training, column_names
from aucforest.report.importance import columns_in_order, partial_dependence
from aucforest.report.metrics import LEVEL
from aucforest.report.model_comparison import compare_models
from aucforest.report.page import Section, Table, estimate, number, shortened, signed
from aucforest.report.rows import ScoredRows, ordered_classes, predict_scores

_MOST_FEATURES = 30  # maximum number of features in the table of importances
_MOST_DEPENDENCES = 6  # maximum number of plots of partial dependence
_MOST_LETTERS = 200  # maximum length of the value of a parameter
_HIDDEN_PARAMETERS = ("n_jobs", "verbose")  # parameters that do not change the model and are not shown
_N_ROWS = 10  # number of rows with reasons
_N_REASONS = 3  # maximum number of reasons for each row
_FEWEST_TREES = 3  # minimum number of trees for a curve of the out-of-bag AUC
_MEMBERS = {
    "old": "the model that was refreshed",
    "forest": "the forest",
    "residual": "a second forest, with more weight on samples that the first one predicts badly out of bag",
    "boosted": "gradient boosted trees: each tree is grown on the errors of those before it",
    "linear": "an additive model: a sum of effects of columns, and of interactions of columns of many categories",
}


def importance_section(importance: PermutationImportance, source: str) -> Section:
    """Return the section on permutation importances. `source` is a phrase for the rows from which they are computed."""
    mean, intervals = importance.importances_mean, np.clip(importance.importances_interval(LEVEL), -1.0, 1.0)
    caption = "Decrease of the ROC AUC when one column is permuted, with 95 % intervals; the most important columns."
    widths = np.ptp(intervals, axis=1)
    # All rows get as many decimals as an interval whose width is the geometric mean of the widths.
    width = float(np.exp(np.log(widths[widths > 0.0]).mean())) if np.any(widths > 0.0) else None
    body = [
        [importance.feature_names[j], *estimate(mean[j], intervals[j, 0], intervals[j, 1], signed, width)]
        for j in np.argsort(-mean, kind="stable")[:_MOST_FEATURES]
    ]
    table = Table("Decrease of the ROC AUC by column", ["column", "mean decrease", "95 % interval"], body)
    lead = (
        f"How much the ROC AUC, {number(importance.baseline_score)} on {importance.n_scored:,} {source}, decreases "
        "when one column is permuted. Columns with the same information can replace each other: each seems unimportant."
    )
    drawn = [plots.picture(plots.importance_plot(importance), "importance", caption)]
    return Section("columns", "Feature importance", lead, drawn, [table])


def dependence_sections(rows: ScoredRows, importance: PermutationImportance, seed: int) -> list[Section]:
    """Return the section on partial dependence with plots of equal scale, or an empty list if there are no plots."""
    n_columns = len(column_names(rows.X) or [])
    order = columns_in_order(importance, rows.model, n_columns) if n_columns else []
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
    of_class = f" of {rows.classes[1]}" if len(rows.classes) == 2 else ""
    lead = (
        f"The {label}{of_class} if all rows had the same value of one column and kept their other values: the average "
        "effect of the column in the model. It shows no interactions, and is uncertain where values are rare."
    )
    return [Section("dependence", "Partial dependence", lead, drawn)]


def reasons_sections(rows: ScoredRows, n_jobs: int | None) -> list[Section]:
    """Return the section on reasons for the highest scores, for two classes and a model that can be explained."""
    if len(rows.classes) != 2 or not can_be_explained(rows.model):
        return []
    highest = np.argsort(-rows.scores[:, 1], kind="stable")[:_N_ROWS]
    label, name = ordered_classes(rows.model).tolist()[1], rows.classes[1]
    explanation = explain(rows.model, safe_indexing(rows.X, highest), n_jobs=n_jobs).of_class(label)
    row_names = rows.X.index if hasattr(rows.X, "iloc") else range(len(rows.labels))
    body = []
    for row, reasons in zip(highest.tolist(), explanation.top(_N_REASONS)):
        texts = [f"{reason.condition_in(number)} ({signed(reason.contribution)})" for reason in reasons]
        row_name = str(row_names[row]).removesuffix(" 00:00:00")  # for an index of dates
        body.append([row_name, number(rows.scores[row, 1]), rows.classes[rows.labels[row]], "; ".join(texts)])
    lead = (
        f"The {len(body)} rows with the highest scores. The number in brackets is the contribution of the feature: "
        f"what it adds to the log odds of {name}; the score is the probability of {name}. It describes the model, and "
        "does not say what would happen if the value were changed. Rows are named by their index, or counted from 0."
    )
    columns = ["row", "score", "true class", "features that move the prediction most"]
    table = Table("Rows and reasons", columns, body, "lrll")
    return [Section("reasons", "Reasons for the highest scores", lead, tables=[table])]


def members_sections(rows: ScoredRows, n_bootstrap: int, seed: int) -> list[Section]:
    """Return the section on the members of a stack, or an empty list for other models."""
    stack = rows.model
    if not isinstance(stack, AUCStackingClassifier):
        return []
    meanings = _MEMBERS | ({} if stack.linear == "auto" else {"linear": type(stack.linear).__name__})
    members = [[name, number(weight), meanings[name]] for name, weight in zip(stack.members_, stack.weights_.tolist())]
    tables = [Table("The members of the stack and their weights", ["member", "weight", "what it is"], members, "lrl")]
    if len(members) > 1:
        alone = replace(rows, scores=predict_scores(stack.members_["forest"], rows.X))
        compared, body = compare_models({"forest alone": alone, "stack": rows}, n_bootstrap, seed), []
        for metric in ("roc_auc", "log_loss"):
            before, after = compared[metric]  # the forest alone, and the stack
            difference = estimate(after.difference, after.difference_low, after.difference_high, signed)
            body.append([find_metric(metric).title, number(before.mean), number(after.mean), *difference])
        columns = ["metric", "forest alone", "stack", "difference", "95 % interval"]
        tables.append(Table("The stack and its forest alone, on these rows", columns, body))
    lead = (
        "The score of a class is the weighted sum of the scores of the members, or of their log odds for two classes. "
        "A member of weight 0 did not help on the out-of-bag samples, and is not used."
    )
    return [Section("members", "What each member adds", lead, tables=tables)]


def model_section(model: Any, training: Training | None) -> Section:
    """Return the section on parameters and, for a forest or the forest of a stack, on the trees and their number."""
    lead, drawn, tables = "How the model was fitted.", [], []
    changed = sorted(changed_params(model).items())
    body = [[name, shortened(repr(value), _MOST_LETTERS)] for name, value in changed if name not in _HIDDEN_PARAMETERS]
    if body:
        tables.append(Table("Parameters that are not the default", ["parameter", "value"], body, "ll"))
    forest = forest_of(model)
    if forest is not None:
        suffix = "" if forest is model else " of the stack's forest"
        tables.append(_forest_table(f"The trees{suffix}", forest))
        is_mixed, mixes_encodings = hasattr(forest, "mixture_"), hasattr(forest, "encoding_mixture_")
        if is_mixed or mixes_encodings:
            encoding = ", and by the encoding of columns of many categories" if mixes_encodings else ""
            caption = (
                f"Trees{suffix} by split criterion and splitter{encoding}, with the out-of-bag ROC AUC of each kind "
                "alone. A kind gets more trees if they raise the ROC AUC of the whole forest, so the best kind alone "
                "need not get the most."
            )
            drawn.append(plots.picture(plots.mixture_plot(forest), "mixture", caption))
        if training is not None and forest.bootstrap and len(forest.trees_) >= _FEWEST_TREES:
            lead += " The curve shows whether there are enough trees: where it is flat, more do not help."
            caption = (
                f"Out-of-bag ROC AUC{suffix} by the number of trees. The first points use fewer rows: those that are "
                "out of bag for at least one of the first trees."
            )
            drawn.append(plots.picture(plots.trees_plot(forest, training), "trees", caption))
    return Section("model", "Model", lead, drawn, tables)


def _forest_table(caption: str, forest: AUCForestClassifier) -> Table:
    summary = forest_summary(forest)
    criteria, splitters = (", ".join(dict.fromkeys(names)) for names in zip(*forest.variants_))
    body = [
        ["trees", f"{summary.n_trees:,}"],
        ["split criteria", criteria],
        ["splitters", splitters],
        *([["encodings", ", ".join(dict.fromkeys(forest.encodings_))]] if forest.encodings_ else []),
        ["nodes of a tree, mean", number(float(summary.n_nodes.mean()))],
        ["depth of a tree, mean", number(float(summary.max_depth.mean()))],
        ["depth of the deepest tree", f"{summary.max_depth.max()}"],
        ["size of all trees, MiB", number(float(summary.n_bytes.sum() / 2**20))],
        ["shrinkage (lambda)", number(float(forest.shrinkage_))],
    ]
    return Table(caption, ["property", "value"], body)
