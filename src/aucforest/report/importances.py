"""Permutation importance on rows that a model was not trained on, and the out-of-bag AUC of the first trees."""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing

from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection import PermutationImportance, importance
from aucforest.inspection.oob_curve_display import first_trees
from aucforest.metrics.roc import class_roc_auc
from aucforest.report.metrics import auc_interval
from aucforest.report.rows import FloatArray, ScoredRows, scores_of
from aucforest.tables.columns import names_of
from aucforest.tables.dates import column_of

_MOST_ROWS_OF_CLASS = 5000  # AUC does not depend on class frequencies, so no class needs more rows than this
_MOST_POINTS = 12


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of X, or None if it has no columns to permute."""
    if hasattr(X, "columns"):
        return [str(name) for name in names_of(X)]
    if issparse(X) or np.ndim(X) != 2:
        return None
    return [f"feature_{i}" for i in range(np.shape(X)[1])]


def _roc_auc(X: Any, labels: NDArray[Any], proba: FloatArray, sample_weight: FloatArray | None) -> float:
    return class_roc_auc(labels, proba, sample_weight)


def held_out_importance(rows: ScoredRows, n_repeats: int, seed: int) -> PermutationImportance:
    """Return permutation importances as `oob_permutation_importance`, but for any model and rows not in training."""
    names = column_names(rows.X)
    assert names is not None
    generator = np.random.default_rng(seed)
    by_class = [generator.permutation(np.flatnonzero(rows.labels == k))[:_MOST_ROWS_OF_CLASS] for k in rows.present]
    chosen = np.sort(np.concatenate(by_class))
    X = _safe_indexing(rows.X, chosen)
    parts = importance.split_into_parts(rows.X, rows, chosen, _roc_auc, seed)

    def scores(parts: list[importance.Part], proba: FloatArray) -> list[float]:
        return [part.score(proba[part.places]) for part in parts]

    baseline = scores(parts, rows.scores[chosen])
    of_repeats, before = importance.by_repeat(parts, n_repeats), importance.by_repeat(baseline, n_repeats)
    importances, errors = np.empty((len(names), n_repeats)), np.empty(len(names))
    for feature in range(len(names)):
        tables = (permuted(X, feature, generator.permutation(chosen.size)) for _ in range(n_repeats))
        after = [scores(some, scores_of(rows.model, table)) for some, table in zip(of_repeats, tables)]
        importances[feature], errors[feature] = importance.score_drops(before, after)
    found = importances, errors, baseline[0], chosen.size
    return PermutationImportance(*found, scoring="roc_auc", feature_names=tuple(names), n_parts=len(parts) - 1)


def columns_in_order(importance: PermutationImportance, model: Any, n_columns: int) -> list[int]:
    """Return the indices of the columns of X, that with the most important feature first; dates have several."""
    dates, order = getattr(model, "dates_", {}), np.argsort(-importance.importances_mean, kind="stable").tolist()
    return list(dict.fromkeys(column_of(feature, n_columns, dates) for feature in order)) if dates else order


def permuted(X: Any, feature: int, order: NDArray[np.int64]) -> Any:
    """Return a table with one column permuted."""
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
    """Return the out-of-bag ROC AUC of the first trees for up to twelve numbers of trees."""
    points = []
    for part in first_trees(forest, training, _MOST_POINTS):
        labels = training.labels[part.seen]
        if np.unique(labels).size < len(forest.classes_):
            continue
        weights = training.weights_of(part.seen)
        if len(forest.classes_) == 2:
            auc = auc_interval(labels == 1, part.proba[:, 1], weights, level)
        else:
            auc = class_roc_auc(labels, part.proba, weights), np.nan, np.nan
        points.append(TreePoint(part.n_trees, *auc))
    return points
