"""Multiclass AUC: Hand and Till's mean over pairs of classes, and averages over columns."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.ranking import lost_columns, lost_pairs, rank_columns
from aucforest.metrics.validation import (
    FloatArray,
    Scores,
    check_option,
    check_scores,
    class_codes,
    relative_weights,
    warn_undefined,
)


def hand_till_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    average: Literal["macro", "weighted"] | None = "macro",
    sample_weight: ArrayLike | None = None,
) -> float | FloatArray:
    """Compute Hand and Till's M, the mean AUC over ordered pairs of classes.

    M = 1 / (K (K - 1)) * sum over i != j of A(i, j), where A(i, j) is the AUC of column i on the samples of classes i
    and j with class i as the positive one ([1]_, equation 7). Rows of `y_score` need not sum to 1.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class labels (bool, int, float or str).
    y_score : array-like of shape (n_samples, n_classes)
        Finite scores; column k belongs to the k-th class.
    labels : array-like of shape (n_classes,), optional
        The class of each column, in any order. By default the sorted labels of `y_true`.
    average : {"macro", "weighted"} or None, default="macro"
        "macro" is the unweighted mean, "weighted" uses the weights (W_i + W_j) / W. None returns all A(i, j).
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights.

    Returns
    -------
    float, or ndarray of shape (n_classes, n_classes)
        M, or the matrix of A(i, j) with a NaN diagonal for ``average=None``. Pairs with a class of zero weight are NaN
        in the matrix and ignored in the mean. Without any pair M is NaN with an UndefinedMetricWarning.

    Raises
    ------
    ValueError, TypeError
        As `roc_auc_score`.

    References
    ----------
    .. [1] D. J. Hand, R. J. Till, "A simple generalisation of the area under the ROC curve for multiple class
       classification problems", Machine Learning 45 (2001), 171-186.

    Examples
    --------
    >>> from aucforest.metrics import hand_till_score
    >>> y_score = [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.4, 0.1, 0.5]]
    >>> round(hand_till_score(["a", "a", "b", "c", "c"], y_score), 4)
    0.9583
    >>> hand_till_score(["a", "a", "b", "c", "c"], y_score, average=None)
    array([[ nan, 1.  , 0.75],
           [1.  ,  nan, 1.  ],
           [1.  , 1.  ,  nan]])
    """
    check_option("average", average, ("macro", "weighted", None))
    scores = check_scores(y_score, n_dims=2)
    weights = relative_weights(sample_weight, len(scores))
    codes, classes = column_codes(y_true, scores, labels)
    mean = average_pairs(codes, rank_columns(scores), len(classes), weights, average)
    if average is not None and np.isnan(mean):
        warn_undefined("Hand and Till's M is not defined: fewer than two classes have weight in y_true")
    return mean


def average_pairs(
    codes: NDArray[np.uint32],
    columns: Iterable[NDArray[np.uint64]],
    n_classes: int,
    weights: FloatArray | None,
    average: str | None,
) -> float | FloatArray:
    """Return `hand_till_score` of columns from `rank_columns`, without a warning."""
    totals = np.bincount(codes, weights, minlength=n_classes)
    matrix = _pair_matrix(lost_pairs(codes, columns, n_classes, weights), totals)
    if average is None:
        return matrix
    pair_weights = totals[:, None] + totals if average == "weighted" else np.ones_like(matrix)
    return _mean(matrix, np.where(np.isnan(matrix), 0, pair_weights))


def score_matrices(codes: NDArray[np.uint32], matrices: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Hand and Till's M of score matrices, (n_matrices, n_classes, n_rows), for several weight vectors of each.

    The weights have the shape (n_matrices, n_weights, n_rows), and the result (n_matrices, n_weights). M is NaN if
    fewer than two classes have weight. Each column is ranked only once.
    """
    pairs = _pair_matrix(*lost_columns(codes, matrices, weights))
    is_pair = ~np.isnan(pairs)
    # Usually all matrices have the same pairs with weight, and computing all means at once is faster.
    if np.any(is_pair[0, 0]) and np.all(is_pair == is_pair[0, 0]):
        return np.ascontiguousarray(pairs[:, :, is_pair[0, 0]]).mean(axis=2)
    means = np.full(pairs.shape[:2], np.nan)
    for i in np.ndindex(means.shape):
        if np.any(is_pair[i]):
            means[i] = pairs[i][is_pair[i]].mean()
    return means


def _pair_matrix(lost: NDArray[Any], totals: NDArray[Any]) -> FloatArray:
    """Return all A(i, j) from `lost_pairs` and the weights of the classes, NaN for classes without weight."""
    twice_pairs = 2 * totals[..., :, None] * totals[..., None, :]
    twice_pairs[..., np.eye(totals.shape[-1], dtype=np.bool_)] = 0
    matrix = np.full(lost.shape, np.nan)
    np.divide(twice_pairs - lost, twice_pairs, out=matrix, where=twice_pairs > 0)
    return np.clip(matrix, 0.0, 1.0)  # sums of weights have rounding errors


def _mean(values: FloatArray, weights: NDArray[Any]) -> float:
    """Return the weighted mean of the values of positive weight, or NaN if there are none."""
    counted = weights > 0
    return float(np.average(values[counted], weights=weights[counted])) if counted.any() else float("nan")


def column_codes(
    y_true: ArrayLike, scores: Scores, labels: ArrayLike | None
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return the class index of each row, and the classes; raise ValueError unless there is one column per class."""
    codes, classes = class_codes(y_true, len(scores), labels=labels)
    n_columns = scores.shape[1]
    if len(classes) != n_columns:
        source = "y_true" if labels is None else "labels"
        raise ValueError(f"y_score has {n_columns} columns, but {source} has {len(classes)} classes")
    if n_columns < 2:
        raise ValueError("y_score must have at least two columns, but has 1")
    return codes, classes


def average_columns(
    score: Callable[[NDArray[np.bool_], Scores, FloatArray | None], float],
    truth: NDArray[np.bool_],
    scores: Scores,
    weights: FloatArray | None,
    average: str | None,
) -> float | FloatArray:
    """Return the average of a binary metric over the columns of indicators and scores; see `roc_auc_score`."""
    if average == "micro":
        repeated = None if weights is None else np.repeat(weights, truth.shape[1])
        return score(truth.ravel(), scores.ravel(), repeated)
    if average == "samples":
        rows = np.array([score(row, row_scores, None) for row, row_scores in zip(truth, scores)])
        return _mean(rows, np.ones(len(rows)) if weights is None else weights)
    by_column = zip(np.ascontiguousarray(truth.T), np.ascontiguousarray(scores.T))
    columns = np.array([score(column, column_scores, weights) for column, column_scores in by_column])
    if average is None:
        return columns
    if average == "macro":
        return float(np.mean(columns))
    return _mean(columns, truth.sum(axis=0) if weights is None else weights @ truth)
