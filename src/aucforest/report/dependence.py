"""Partial dependence of the most important features."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from aucforest.metrics.validation import is_missing
from aucforest.report.data import columns_of, numbers_in
from aucforest.report.importances import permuted
from aucforest.report.rows import FloatArray, ScoredRows, scores_of
from aucforest.tables.dates import format_time, in_seconds

_MOST_ROWS = 500
_MOST_VALUES = 12


class Dependence(NamedTuple):
    """Partial dependence on one feature: mean scores, (n_values, n_classes), with the feature set to each value."""

    name: str
    values: list[float] | list[str]
    means: FloatArray
    of_missing: FloatArray | None  # mean scores with the feature missing


def partial_dependence(rows: ScoredRows, features: list[int], seed: int) -> list[Dependence]:
    """Return the partial dependence of some features, by its definition, on a sample of the rows.

    There is none of sparse rows, which have no columns to replace.
    Values are taken from rows, so that frames of any library keep their types; scikit-learn's function does not accept
    polars frames.
    """
    n_rows = rows.labels.size
    chosen = np.sort(np.random.default_rng(seed).permutation(n_rows)[:_MOST_ROWS])
    X, weights = _safe_indexing(rows.X, chosen), rows.weights[chosen]
    columns = list(columns_of(X).items())

    def mean_scores(feature: int, row: int) -> FloatArray:
        table = permuted(X, feature, np.full(chosen.size, row))
        return np.asarray(np.average(scores_of(rows.model, table), axis=0, weights=weights))

    found = []
    for feature in features if columns else ():
        name, column = columns[feature]
        values, places, missing = _grid(column)
        if len(values) + (missing is not None) > 1:
            means = np.array([mean_scores(feature, row) for row in places])
            of_missing = None if missing is None else mean_scores(feature, missing)
            found.append(Dependence(name, values, means, of_missing))
    return found


def _grid(column: NDArray[Any]) -> tuple[list[Any], list[int], int | None]:
    """Return some values of a column, the index of a row with each value, and that of a row where it is missing."""
    is_date = column.dtype.kind == "M"
    numbers = in_seconds(column) if column.dtype.kind in "Mm" else numbers_in(column)
    if numbers is None:
        texts = np.array(["missing" if is_missing(value) else str(value) for value in column.tolist()])
        values, firsts, counts = np.unique(texts, return_index=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
        return values[order].tolist(), firsts[order].tolist(), None
    known, missing = np.flatnonzero(~np.isnan(numbers)), np.flatnonzero(np.isnan(numbers))
    ordered = known[np.argsort(numbers[known], kind="stable")]
    values, firsts = np.unique(numbers[ordered], return_index=True)
    if values.size > _MOST_VALUES:
        quantiles = (np.linspace(0.02, 0.98, _MOST_VALUES) * (ordered.size - 1)).astype(np.int64)
        values, places = np.unique(numbers[ordered[quantiles]], return_index=True)
        firsts = quantiles[places]
    shown = [format_time(value)[:16] for value in values.tolist()] if is_date else values.tolist()
    return shown, ordered[firsts].tolist(), int(missing[0]) if missing.size else None
