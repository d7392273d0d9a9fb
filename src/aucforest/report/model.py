"""The sections on the model: its features, its parameters and its trees."""

from typing import Any

import numpy as np
from sklearn.utils._pprint import _changed_params

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection import PermutationImportance, forest_summary
from aucforest.inspection.models import forest_of
from aucforest.report import plots
from aucforest.report.data import columns_of
from aucforest.report.dependence import partial_dependence
from aucforest.report.importances import auc_by_trees, columns_in_order
from aucforest.report.page import Section, Table, interval, number, shortened, signed
from aucforest.report.rows import ScoredRows
from aucforest.report.sections import LEVEL, drawn_classes

_MOST_FEATURES = 30
_MOST_DEPENDENCES = 6
_MOST_LETTERS = 200
_OF_THE_MACHINE = ("n_jobs", "verbose")


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
    most = columns_in_order(importance, rows.model, len(columns_of(rows.X)))[:_MOST_DEPENDENCES]
    found = partial_dependence(rows, most, seed)
    if not found:
        return []
    classes = {rows.classes[k]: k for k in drawn_classes(rows)}
    means = np.concatenate([each.means[:, list(classes.values())].ravel() for each in found])
    margin = 0.08 * max(float(np.ptp(means)), 1e-9)
    limits = float(means.min()) - margin, float(means.max()) + margin
    label = "mean probability" if rows.is_probability else "mean decision value"
    drawn = []
    for place, each in enumerate(found):
        figure = plots.dependence_plot(each, classes, limits, label)
        drawn.append(plots.picture(figure, f"dependence-{place}", f"Partial dependence on {each.name}."))
    of = f" of {rows.classes[1]}" if len(rows.classes) == 2 else ""
    lead = (
        f"The {label}{of} if all rows had the same value of one column and kept their other values: the average "
        "effect of the column in the model. It shows no combinations of columns, and is unsure where values are rare."
    )
    return [Section("dependence", "Partial dependence", lead, drawn, [])]


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
        points = [] if training is None else auc_by_trees(forest, training, LEVEL)
        if points:
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
