"""Permutation importance and partial dependence on rows that a model was not trained on."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest._sklearn import safe_indexing
from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.inspection import PermutationImportance, importance
from aucforest.metrics.roc import class_roc_auc
from aucforest.metrics.validation import is_missing
from aucforest.report.data import column_names, columns_of, numbers_in
from aucforest.report.rows import FloatArray, ScoredRows, scores_of
from aucforest.tables.dates import columns_of_features, format_time, in_seconds

_MOST_ROWS_OF_CLASS = 5000  # AUC does not depend on class frequencies, so no class needs more rows than this
_MOST_ROWS = 500  # for partial dependence
_MOST_VALUES = 12


def held_out_importance(rows: ScoredRows, n_repeats: int, seed: int) -> PermutationImportance | None:
    """Return permutation importances of any model on rows not in training, or None if X has no columns to permute."""
    names = column_names(rows.X)
    if names is None:
        return None
    generator = np.random.default_rng(seed)
    by_class = [generator.permutation(np.flatnonzero(rows.labels == k))[:_MOST_ROWS_OF_CLASS] for k in rows.present]
    chosen = np.sort(np.concatenate(by_class))
    scores_permuted = _by_permutation(rows.model, safe_indexing(rows.X, chosen), len(names))
    parts = importance.split_into_parts(rows.X, rows, chosen, lambda X, *scored: class_roc_auc(*scored), seed)

    def scores(parts: list[importance.Part], proba: FloatArray) -> list[float]:
        return [part.score(proba[part.indices]) for part in parts]

    baseline = scores(parts, rows.scores[chosen])
    of_repeats, before = importance.by_repeat(parts, n_repeats), importance.by_repeat(baseline, n_repeats)
    importances, errors = np.empty((len(names), n_repeats)), np.empty(len(names))
    for feature in range(len(names)):
        orders = (generator.permutation(chosen.size) for _ in range(n_repeats))
        after = [scores(of_repeat, scores_permuted(feature, order)) for of_repeat, order in zip(of_repeats, orders)]
        importances[feature], errors[feature] = importance.score_drops(before, after)
    return PermutationImportance(
        importances=importances,
        importances_stderr=errors,
        baseline_score=baseline[0],
        n_scored=chosen.size,
        scoring="roc_auc",
        feature_names=tuple(names),
        n_parts=len(parts) - 1,
    )


def _by_permutation(model: Any, X: Any, n_columns: int) -> Callable[[int, NDArray[np.int64]], FloatArray]:
    """Return the function of a column and an order of the rows that gives the scores with this column permuted.

    A matrix of all features is made once, and the features of the column are permuted in it and restored: a table for
    each column would take the time of all columns. Only models of other packages read tables. The target rates of a
    column, those of its interactions included, are those of the same row as its category.
    """
    columns: Sequence[int] = range(n_columns)
    predict: Callable[[Any], FloatArray] = partial(scores_of, model)
    if isinstance(model, TreeBasedClassifier):
        matrix, predict, columns = model._as_read(X), model._predict_valid, model._columns_of_features
    elif isinstance(model, AUCStackingClassifier) and not model._reads_table:
        matrix, predict, columns = model._forest._as_read(X), model._predict_valid, model._columns_of_features
    elif hasattr(X, "columns"):
        return lambda column, order: predict(permuted(X, column, order))
    else:
        matrix = np.array(X)
    features = list[list[int]]([] for _ in range(n_columns))
    for feature, column in enumerate(columns):
        features[column].append(feature)

    def scores(column: int, order: NDArray[np.int64]) -> FloatArray:
        before = matrix[:, features[column]]
        matrix[:, features[column]] = before[order]
        permuted_scores = predict(matrix)
        matrix[:, features[column]] = before
        return permuted_scores

    return scores


def columns_in_order(importance: PermutationImportance, model: Any, n_columns: int) -> list[int]:
    """Return the indices of the columns of X, the most important first; a column of dates has several features."""
    dates, order = getattr(model, "dates_", {}), np.argsort(-importance.importances_mean, kind="stable").tolist()
    columns = columns_of_features(n_columns, dates)
    return list(dict.fromkeys(columns[feature] for feature in order)) if dates else order


def permuted(X: Any, feature: int, order: NDArray[np.int64]) -> Any:
    """Return a frame with one column permuted."""
    frame = nw.from_native(X, eager_only=True)
    return frame.with_columns(frame[:, feature][order]).to_native()


class Dependence(NamedTuple):
    """Partial dependence on one feature: mean scores, (n_values, n_classes), with the feature set to each value."""

    name: str
    values: list[float] | list[str]
    means: FloatArray
    of_missing: FloatArray | None  # mean scores with the feature missing


def partial_dependence(rows: ScoredRows, features: list[int], seed: int) -> list[Dependence]:
    """Return the partial dependence of some features, by its definition, on a sample of the rows.

    Values are taken from rows, so that frames of any library keep their types; scikit-learn's function does not accept
    polars frames. Sparse rows have none, because they have no columns to replace.
    """
    n_rows = rows.labels.size
    chosen = np.sort(np.random.default_rng(seed).permutation(n_rows)[:_MOST_ROWS])
    X, weights = safe_indexing(rows.X, chosen), rows.weights[chosen]
    columns = list(columns_of(X).items())
    if not columns:
        return []
    scores_permuted = _by_permutation(rows.model, X, len(columns))

    def mean_scores(feature: int, row: int) -> FloatArray:
        scores = scores_permuted(feature, np.full(chosen.size, row))
        return np.asarray(np.average(scores, axis=0, weights=weights))

    dependences = []
    for feature in features:
        name, column = columns[feature]
        values, indices, missing = _grid(column)
        if len(values) + (missing is not None) > 1:
            means = np.array([mean_scores(feature, row) for row in indices])
            of_missing = None if missing is None else mean_scores(feature, missing)
            unit = " (seconds)" if column.dtype.kind == "m" else ""
            dependences.append(Dependence(f"{name}{unit}", values, means, of_missing))
    return dependences


def _grid(column: NDArray[Any]) -> tuple[list[Any], list[int], int | None]:
    """Return some values of a column, the index of a row with each value, and that of a row where it is missing."""
    is_date = column.dtype.kind == "M"
    numbers = in_seconds(column) if column.dtype.kind in "Mm" else numbers_in(column)
    if numbers is None:
        texts = np.array(["missing" if is_missing(value) else str(value) for value in column.tolist()])
        values, firsts, counts = np.unique(texts, return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
        return values[order].tolist(), firsts[order].tolist(), None
    missing = np.flatnonzero(np.isnan(numbers))
    ordered = np.argsort(numbers, kind="stable")[: numbers.size - missing.size]  # NaN is sorted last
    values, firsts = np.unique(numbers[ordered], return_index=True)
    if values.size > _MOST_VALUES:
        quantiles = (np.linspace(0.02, 0.98, _MOST_VALUES) * (ordered.size - 1)).astype(np.int64)
        values, indices = np.unique(numbers[ordered[quantiles]], return_index=True)
        firsts = quantiles[indices]
    shown = [format_time(value)[:16] for value in values.tolist()] if is_date else values.tolist()
    return shown, ordered[firsts].tolist(), int(missing[0]) if missing.size else None
