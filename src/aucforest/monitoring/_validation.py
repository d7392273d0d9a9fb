"""Checks of probabilities, and what is missing in scores and labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics._validation import check_scores, is_missing, require_finite
from aucforest.monitoring._ranked import FloatArray, RankedColumn

SUM_TOLERANCE = 1e-3  # probabilities are often stored with few decimals


def is_probability(values: FloatArray) -> bool:
    """Return whether scores can be read as probabilities: in [0, 1], rows of several columns with sum 1."""
    if values.min() < 0.0 or values.max() > 1.0:
        return False
    return values.shape[1] == 1 or bool(np.abs(values.sum(axis=1) - 1.0).max() <= SUM_TOLERANCE)


def check_probabilities(p: ArrayLike, *, n_dims: int, name: str = "p") -> FloatArray:
    """Return probabilities as float64, one row a sample and one column unless `n_dims` is 2."""
    values = np.asarray(check_scores(p, n_dims=n_dims, name=name), dtype=np.float64)
    require_finite(values, name)
    _require_range(values, name)
    columns = values.reshape(len(values), -1)
    if not is_probability(columns):
        sums = columns.sum(axis=1)
        row = int(np.argmax(np.abs(sums - 1.0)))
        raise ValueError(f"rows of {name} must sum to 1, but row {row} sums to {sums[row]:.6g}")
    return columns


def _require_range(values: FloatArray, name: str) -> None:
    """Raise ValueError unless all values are in [0, 1]."""
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        where = int(np.argmax(outside.ravel()))
        raise ValueError(f"{name} must be in [0, 1], but value {where} is {values.ravel()[where]}")


def check_raw_columns(columns: list[RankedColumn], fitted: NDArray[np.bool_]) -> None:
    """Raise ValueError unless the scores that get no curve are chances; where none gets one, of all classes."""
    if not fitted.any():
        check_probabilities(np.column_stack([column.scores for column in columns]), n_dims=2, name="y_score")
        return
    for column, has_curve in zip(columns, fitted):
        if not has_curve:
            _require_range(column.scores, "y_score")


def check_scored(y_score: ArrayLike, p: ArrayLike, *, n_dims: int) -> tuple[list[RankedColumn], FloatArray]:
    """Return the ranked columns of scores, and their probabilities as columns."""
    scores = np.asarray(check_scores(y_score, n_dims=n_dims), dtype=np.float64)
    chances = check_probabilities(p, n_dims=n_dims)
    if scores.reshape(len(scores), -1).shape != chances.shape:
        raise ValueError(f"y_score and p must have one shape, but have {scores.shape} and {np.shape(p)}")
    if n_dims == 2 and chances.shape[1] < 2:
        raise ValueError("p must have at least two columns, but has 1")
    return rank_columns(scores), chances


def rank_columns(scores: FloatArray) -> list[RankedColumn]:
    """Return every column of scores in ascending order; scores may have one dimension."""
    return [RankedColumn(np.ascontiguousarray(column)) for column in scores.reshape(len(scores), -1).T]


def missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which labels are missing: NaN, NaT, None, or what cannot say that it equals itself."""
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    return np.asarray(values != values)
