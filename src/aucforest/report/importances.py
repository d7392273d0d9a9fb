"""Permutation importance on rows that a model was not trained on, and the out-of-bag AUC of the first trees."""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection.importance import split_into_parts, standard_error
from aucforest.inspection.importance_display import PermutationImportance
from aucforest.inspection.oob_curve_display import first_trees
from aucforest.metrics.roc import class_roc_auc
from aucforest.report.figures import auc_interval
from aucforest.report.rows import ScoredRows, scores_of

# AUC does not depend on the shares of the classes, so no class needs more rows than this.
_MOST_ROWS_OF_CLASS = 5000
_MOST_POINTS = 12


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a table; None for what has no columns that could be permuted."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    if issparse(X) or np.ndim(X) != 2:
        return None
    return [f"feature_{i}" for i in range(np.shape(X)[1])]


def held_out_importance(rows: ScoredRows, n_repeats: int, seed: int) -> PermutationImportance:
    """Measure how much ROC AUC falls when a column of the rows is permuted, with random groups' standard errors.

    The same measure as `oob_permutation_importance`, for any model and for rows that it was not trained on.
    """
    names = column_names(rows.X)
    assert names is not None
    generator = np.random.default_rng(seed)
    by_class = [generator.permutation(np.flatnonzero(rows.labels == k))[:_MOST_ROWS_OF_CLASS] for k in rows.present]
    chosen = np.sort(np.concatenate(by_class))
    X = _safe_indexing(rows.X, chosen)
    whole, *parts = split_into_parts(rows.model, rows.X, rows, chosen, None, seed)
    before = [part.score(rows.scores[chosen][part.places]) for part in (whole, *parts)]
    falls, errors = np.empty((len(names), n_repeats)), np.empty(len(names))
    for feature in range(len(names)):
        of_parts = np.empty(len(parts))
        for repeat in range(n_repeats):
            scores = scores_of(rows.model, _permuted(X, feature, generator.permutation(chosen.size)))
            falls[feature, repeat] = before[0] - whole.score(scores)
            for i in range(repeat, len(parts), n_repeats):
                of_parts[i] = before[1 + i] - parts[i].score(scores[parts[i].places])
        errors[feature] = standard_error(falls[feature], of_parts)
    return PermutationImportance(falls, errors, before[0], chosen.size, "roc_auc", tuple(names), len(parts))


def _permuted(X: Any, feature: int, order: NDArray[np.int64]) -> Any:
    """Return a table with one column in another order."""
    if hasattr(X, "columns"):
        frame = nw.from_native(X, eager_only=True)
        return frame.with_columns(frame[:, feature][order]).to_native()
    table = np.array(X)
    table[:, feature] = table[order, feature]
    return table


class TreePoint(NamedTuple):
    """The out-of-bag ROC AUC of the first trees; bounds are NaN with more than two classes."""

    n_trees: int
    auc: float
    low: float
    high: float


def auc_by_trees(forest: Any, training: TrainingRows, level: float) -> list[TreePoint]:
    """Return the out-of-bag ROC AUC of the first trees, at about a dozen numbers.

    Few trees leave few rows out of bag; numbers at which not every class is among them are left out.
    """
    points = []
    for part in first_trees(forest, training, _MOST_POINTS):
        labels = training.labels[part.seen]
        if np.unique(labels).size == len(forest.classes_):
            points.append(TreePoint(part.n_trees, *_auc(labels, part.proba, training.weights_of(part.seen), level)))
    return points


def _auc(labels: Any, proba: NDArray[np.float64], weights: Any, level: float) -> tuple[float, float, float]:
    """Return ROC AUC and its interval, which is NaN with more than two classes."""
    if proba.shape[1] == 2:
        return auc_interval(labels == 1, proba[:, 1], weights, level)
    return class_roc_auc(labels, proba, weights), np.nan, np.nan
