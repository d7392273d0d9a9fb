"""Permutation importance and partial dependence on rows that a model was not trained on."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest._sklearn import safe_indexing
from aucforest.columns.dates import format_time
from aucforest.columns.expansion import columns_of_features
from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.inspection import PermutationImportance
from aucforest.inspection.importance import measure_importance, scores_of_parts
from aucforest.metrics.roc import class_roc_auc
from aucforest.metrics.validation import is_missing
from aucforest.report.data import as_numbers, column_arrays, column_names
from aucforest.report.rows import FloatArray, ScoredRows, predict_scores

_MOST_ROWS_OF_CLASS = 5000  # AUC does not depend on class frequencies, so no class needs more rows than this
_MOST_ROWS = 500  # maximum number of rows for partial dependence
_MOST_VALUES = 12  # maximum number of values of a column for partial dependence


def held_out_importance(rows: ScoredRows, n_repeats: int, seed: int) -> PermutationImportance | None:
    """Return permutation importances of any model on held-out rows, or None if X has no columns to permute."""
    names = column_names(rows.X) or []
    if not names:
        return None
    generator = np.random.default_rng(seed)
    by_class = [generator.permutation(np.flatnonzero(rows.labels == k))[:_MOST_ROWS_OF_CLASS] for k in rows.present]
    chosen = np.sort(np.concatenate(by_class))
    scores_with_column = _with_column_from_rows(rows.model, safe_indexing(rows.X, chosen), len(names))
    parts = scores_of_parts(rows.X, rows, chosen, lambda X, *scored: class_roc_auc(*scored), seed)
    permuted = (
        [partial(scores_with_column, column, generator.permutation(chosen.size)) for _ in range(n_repeats)]
        for column in range(len(names))
    )
    return measure_importance(parts, rows.scores[chosen], permuted, n_repeats, names)


def _with_column_from_rows(model: Any, X: Any, n_columns: int) -> Callable[[int, NDArray[np.int64]], FloatArray]:
    """Return a function that scores X with a column replaced by its values in other rows, given as row indices.

    A table is converted to a matrix once, because the conversion is slow. Each call replaces all features of a column
    in the matrix, including target rates and their interactions, and restores them. A model of another package gets the
    table itself, and so does a stack with a member of another package.
    """
    is_stack = isinstance(model, AUCStackingClassifier) and not model._reads_table
    if is_stack or isinstance(model, TreeBasedClassifier):
        matrix, predict = (model._forest if is_stack else model)._as_read(X), model._predict_valid
        columns = np.array(model._columns_of_features)
    elif hasattr(X, "columns"):
        frame = nw.from_native(X, eager_only=True)
        return lambda column, taken: predict_scores(model, frame.with_columns(frame[:, column][taken]).to_native())
    else:
        matrix, predict, columns = np.array(X), partial(predict_scores, model), np.arange(n_columns)

    def scores(column: int, taken: NDArray[np.int64]) -> FloatArray:
        features = np.flatnonzero(columns == column)
        original = matrix[:, features]
        matrix[:, features] = original[taken]
        new_scores = predict(matrix)
        matrix[:, features] = original
        return new_scores

    return scores


def columns_in_order(importance: PermutationImportance, model: Any, n_columns: int) -> list[int]:
    """Return the indices of the columns of X, sorted by the importance of their most important feature."""
    columns = columns_of_features(n_columns, getattr(model, "expanded_", {}))
    order = np.argsort(-importance.importances_mean, kind="stable").tolist()
    return list(dict.fromkeys(columns[feature] for feature in order))


class Dependence(NamedTuple):
    """Partial dependence on one column: mean scores, (n_values, n_classes), with the column set to each value."""

    name: str
    values: list[float] | list[str]
    means: FloatArray
    missing_means: FloatArray | None  # mean scores with the column missing; None if no number is missing


def partial_dependence(rows: ScoredRows, columns: list[int], seed: int) -> list[Dependence]:
    """Return the partial dependence on the given columns, averaged over a random sample of the rows.

    Values of a column are copied from rows that have them, so frames of any library keep their types; scikit-learn's
    function does not accept polars frames. Constant columns are omitted. The result is empty for sparse rows.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(rows.labels.size)[:_MOST_ROWS])
    X, weights = safe_indexing(rows.X, chosen), rows.weights[chosen]
    arrays = list(column_arrays(X).items())
    if not arrays:
        return []
    scores_with_column = _with_column_from_rows(rows.model, X, len(arrays))

    def mean_scores(column: int, row: int) -> FloatArray:
        scores = scores_with_column(column, np.full(chosen.size, row))
        return np.asarray(np.average(scores, axis=0, weights=weights))

    dependences = []
    for column in columns:
        name, array = arrays[column]
        values, indices, missing = _grid(array)
        if len(values) + (missing is not None) > 1:
            means = np.array([mean_scores(column, row) for row in indices])
            missing_means = None if missing is None else mean_scores(column, missing)
            unit = " (seconds)" if array.dtype.kind == "m" else ""
            dependences.append(Dependence(f"{name}{unit}", values, means, missing_means))
    return dependences


def _grid(column: NDArray[Any]) -> tuple[list[Any], list[int], int | None]:
    """Return quantiles or frequent categories, a row index for each, and that of a row with a missing number."""
    if (numeric := as_numbers(column)) is None:
        texts = np.array(["missing" if is_missing(value) else str(value) for value in column.tolist()])
        values, firsts, counts = np.unique(texts, return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
        return values[order].tolist(), firsts[order].tolist(), None
    numbers, is_date = numeric[0], column.dtype.kind == "M"
    missing = np.flatnonzero(np.isnan(numbers))
    sorted_rows = np.argsort(numbers, kind="stable")[: numbers.size - missing.size]  # NaN is sorted last
    values, firsts = np.unique(numbers[sorted_rows], return_index=True)
    if values.size > _MOST_VALUES:
        quantiles = (np.linspace(0.02, 0.98, _MOST_VALUES) * (sorted_rows.size - 1)).astype(np.int64)
        values, indices = np.unique(numbers[sorted_rows[quantiles]], return_index=True)
        firsts = quantiles[indices]
    shown = [format_time(value)[:16] for value in values.tolist()] if is_date else values.tolist()
    return shown, sorted_rows[firsts].tolist(), int(missing[0]) if missing.size else None
