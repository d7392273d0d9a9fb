"""ROC curve, ROC AUC of two and more classes, and average precision."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.ranking import cumulate, lost_columns, lost_pairs, mann_whitney, rank_rows
from aucforest.metrics.validation import (
    FloatArray,
    Scores,
    as_column,
    check_option,
    check_scores,
    check_weights,
    class_codes,
    is_positive,
    two_classes,
    warn_undefined,
)


def roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    drop_intermediate: bool = True,
) -> tuple[FloatArray, FloatArray, NDArray[np.floating[Any]]]:
    """Compute the ROC curve: false and true positive rates at descending thresholds.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels (bool, int, float or str).
    y_score : array-like of shape (n_samples,)
        Finite scores. Those of type float16 or float32 are used as float32, all others as float64.
    pos_label : label, optional
        The positive label. By default the greater of the two labels. A single label is positive if it equals 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights. Samples of weight 0 do not add thresholds.
    drop_intermediate : bool, default=True
        Whether to drop points on a straight line between their neighbors.

    Returns
    -------
    fpr, tpr : ndarray of shape (n_thresholds,), float64
        The rates of samples with a score of at least the threshold. NaN with an UndefinedMetricWarning for a class
        without weight.
    thresholds : ndarray of shape (n_thresholds,), dtype of the scores
        Descending thresholds. The first is infinity, at which no sample is predicted positive.

    Raises
    ------
    ValueError, TypeError
        If scores are not finite real numbers, labels are not binary or cannot be sorted, `pos_label` is not a
        label, weights are negative, or the input is empty or of different lengths.

    Examples
    --------
    >>> from aucforest.metrics import roc_curve
    >>> fpr, tpr, thresholds = roc_curve([1, 1, 1, 2, 2], [0.1, 0.4, 0.3, 0.4, 0.8])
    >>> fpr.round(2).tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.33, 1.0], [0.0, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.1])
    """
    tps, fps, thresholds = cumulate(*two_classes(y_true, y_score, sample_weight, pos_label))
    if drop_intermediate and tps.size > 3:
        bends = (np.diff(tps[1:], 2) != 0.0) | (np.diff(fps[1:], 2) != 0.0)
        # The origin and the first and last threshold are always kept.
        kept = np.concatenate([[True, True], bends, [True]])
        tps, fps, thresholds = tps[kept], fps[kept], thresholds[kept]
    return _rate(fps, "negative"), _rate(tps, "positive"), thresholds


def _rate(cumulated: FloatArray, side: str) -> FloatArray:
    """Divide cumulative weights by the total, which is the last one. If the total is 0, warn and return NaN."""
    if cumulated[-1] > 0.0:
        return cumulated / cumulated[-1]
    warn_undefined(f"the {side} rate is not defined: no {side} sample has weight")
    return np.full(cumulated.size, np.nan)


def roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: Literal["macro", "weighted", "micro", "samples"] | None = "macro",
    sample_weight: ArrayLike | None = None,
    max_fpr: float | None = None,
    multi_class: Literal["ovo", "ovr"] = "ovo",
    labels: ArrayLike | None = None,
) -> float | FloatArray:
    """Compute the area under the ROC curve: the probability that a positive has a higher score than a negative.

    AUC = 1 / (W0 W1) * sum over positives of w_i (W0[score < s_i] + W0[score = s_i] / 2), where W1 is the weight of the
    positives and W0 that of the negatives (Mann-Whitney [1]_). Without weights only the quotient is rounded.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_labels)
        Class labels (bool, int, float or str); the greater of two is positive. Or a matrix with a binary label in each
        column, 0 or 1.
    y_score : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels)
        Finite scores, as in `roc_curve`.
    average : {"macro", "weighted", "micro", "samples"} or None, default="macro"
        How to average over pairs (`multi_class` "ovo"), classes ("ovr") or columns of a label matrix. "macro" is the
        unweighted mean. "weighted" weights by the frequency of the class, pair of classes or label. "micro" (not for
        "ovo") treats each cell as a sample. "samples" (only for a label matrix) averages over samples. None returns the
        individual scores.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights.
    max_fpr : float in (0, 1], optional
        The maximum false positive rate of a partial AUC, standardized to 0.5 for random scores and 1 for perfect ones
        [2]_. Only for two classes.
    multi_class : {"ovo", "ovr"}, default="ovo"
        For multiclass labels: one-vs-one as in `hand_till_score`, or one-vs-rest.
    labels : array-like, optional
        The class of each column, or the negative and the positive label for one column of scores.

    Returns
    -------
    float, or ndarray
        The AUC. NaN with an UndefinedMetricWarning if a class has no weight.

    Raises
    ------
    ValueError, TypeError
        As `roc_curve`, or if labels do not match the columns or an option is out of range.

    References
    ----------
    .. [1] J. A. Hanley, B. J. McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC)
       curve", Radiology 143 (1982), 29-36.
    .. [2] D. K. McClish, "Analyzing a portion of the ROC curve", Medical Decision Making 9 (1989), 190-195.

    Examples
    --------
    >>> from aucforest.metrics import roc_auc_score
    >>> roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> roc_auc_score(["no", "no", "yes", "yes"], [1, 3, 3, 5])
    0.875
    """
    check_option("multi_class", multi_class, ("ovo", "ovr"))
    check_option("average", average, ("macro", "weighted", "micro", "samples", None))
    if max_fpr is not None and not 0.0 < max_fpr <= 1.0:
        raise ValueError(f"max_fpr must be in (0, 1], but is {max_fpr}")
    truth, columns = as_column(y_true), as_column(y_score)
    scores = check_scores(columns, n_dims=2 if columns.ndim == 2 else 1)
    weights = check_weights(sample_weight, len(scores))
    score = partial(_area, max_fpr=max_fpr)
    area: float | FloatArray
    if scores.ndim == 1:
        area = score(_is_second(truth, scores.size, labels), scores, weights)
    elif truth.ndim == 2:
        if truth.shape != scores.shape:
            raise ValueError(f"y_true has shape {truth.shape}, but y_score has {scores.shape}")
        indicators = truth == 1
        if not (indicators | (truth == 0)).all():
            raise ValueError("y_true must contain only zeros and ones if it is a matrix")
        area = _average_columns(score, indicators, scores, weights, average)
    else:
        if max_fpr not in (None, 1.0):
            raise ValueError(f"max_fpr must be None for more than two classes, but is {max_fpr}")
        if average == "samples" or (multi_class, average) == ("ovo", "micro"):
            raise ValueError(f"average={average!r} is not available for multi_class={multi_class!r}")
        codes = _column_codes(truth, scores, labels)
        if multi_class == "ovo":
            area = _average_pairs(codes, scores, weights, average)
        else:
            area = _average_columns(score, codes[:, None] == np.arange(scores.shape[1]), scores, weights, average)
    if np.ndim(area) < 2 and np.any(np.isnan(area)):  # a matrix of pairs has a diagonal of NaN
        warn_undefined("ROC AUC is not defined: a class has no weight in y_true")
    return area


def _is_second(truth: NDArray[Any], n_rows: int, labels: ArrayLike | None) -> NDArray[np.bool_]:
    """Return whether each row has the second of `labels`, by default the greater of two labels."""
    if labels is None:
        return is_positive(truth, n_rows)
    if np.shape(labels) != (2,):
        raise ValueError(f"labels must have two elements for one column of scores, but is {labels!r}")
    return class_codes(truth, n_rows, labels=labels)[0] == 1


def _area(positive: NDArray[np.bool_], scores: Scores, weights: FloatArray | None, *, max_fpr: float | None) -> float:
    """Return the AUC, or McClish's standardization (1 + (A - min) / (max - min)) / 2 of a partial area A."""
    if max_fpr in (None, 1.0):
        return mann_whitney(positive, rank_rows(scores), weights)
    tps, fps, _ = cumulate(positive, scores, weights)
    if min(tps[-1], fps[-1]) <= 0.0:
        return float("nan")
    fpr, tpr = fps / fps[-1], tps / tps[-1]
    stop = int(np.searchsorted(fpr, max_fpr, side="right"))
    x, y = np.append(fpr[:stop], max_fpr), np.append(tpr[:stop], np.interp(max_fpr, fpr, tpr))
    least = 0.5 * max_fpr**2
    area = 0.5 * (1.0 + (np.trapezoid(y, x) - least) / (max_fpr - least))
    return min(float(area), 1.0)  # Sums of weights have rounding errors.


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
        "macro" is the unweighted mean, "weighted" weights A(i, j) by W_i + W_j, the weights of these classes.
        None returns all A(i, j).
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights.

    Returns
    -------
    float, or ndarray of shape (n_classes, n_classes)
        M, or the matrix of A(i, j) with a NaN diagonal for ``average=None``. Pairs with a class of zero weight are NaN
        in the matrix and ignored in the mean. If no pair is left, M is NaN with an UndefinedMetricWarning.

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
    weights = check_weights(sample_weight, len(scores))
    mean = _average_pairs(_column_codes(y_true, scores, labels), scores, weights, average)
    if average is not None and np.isnan(mean):
        warn_undefined("Hand and Till's M is not defined: fewer than two classes have weight in y_true")
    return mean


def _average_pairs(
    codes: NDArray[np.uint32], scores: Scores, weights: FloatArray | None, average: str | None
) -> float | FloatArray:
    """Return `hand_till_score` of validated arguments, without a warning."""
    totals = np.bincount(codes, weights, minlength=scores.shape[1])
    matrix = _pair_matrix(lost_pairs(codes, scores, weights), totals)
    if average is None:
        return matrix
    pair_weights = totals[:, None] + totals if average == "weighted" else np.ones_like(matrix)
    return _mean(matrix, np.where(np.isnan(matrix), 0, pair_weights))


def auc_by_weights(positive: NDArray[np.bool_], scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the AUC for each array of `weights`, (n_weights, n_rows). The scores are ranked only once."""
    ranked = rank_rows(scores)
    return np.array([mann_whitney(positive, ranked, each) for each in weights])


def hand_till_by_weights(codes: NDArray[np.unsignedinteger], columns: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Hand and Till's M for each array of `weights`, (n_weights, n_rows).

    `columns` are the scores of each class, (n_classes, n_rows), which are ranked only once. M is NaN if fewer than two
    classes have weight.
    """
    totals = np.array([np.bincount(codes, each, len(columns)) for each in weights])
    pairs = _pair_matrix(lost_columns(codes, columns, weights), totals)
    is_pair = ~np.isnan(pairs)
    # Usually the same pairs of classes have weight in all arrays. Then all means are computed at once.
    if np.any(is_pair[0]) and np.all(is_pair == is_pair[0]):
        return np.ascontiguousarray(pairs[:, is_pair[0]]).mean(axis=1)
    return np.array([matrix[known].mean() if known.any() else np.nan for matrix, known in zip(pairs, is_pair)])


def _pair_matrix(lost: NDArray[Any], totals: NDArray[Any]) -> FloatArray:
    """Return all A(i, j), given `lost_pairs` and the total weights of the classes; NaN for classes without weight."""
    twice_pairs = 2 * totals[..., :, None] * totals[..., None, :]
    twice_pairs[..., np.eye(totals.shape[-1], dtype=np.bool_)] = 0
    matrix = np.full(lost.shape, np.nan)
    np.divide(twice_pairs - lost, twice_pairs, out=matrix, where=twice_pairs > 0)
    return np.clip(matrix, 0.0, 1.0)  # Sums of weights have rounding errors.


def _mean(values: FloatArray, weights: NDArray[Any]) -> float:
    """Return the weighted mean of the values of positive weight, or NaN if there are none."""
    has_weight = weights > 0
    return float(np.average(values[has_weight], weights=weights[has_weight])) if has_weight.any() else float("nan")


def _column_codes(y_true: ArrayLike, scores: Scores, labels: ArrayLike | None) -> NDArray[np.uint32]:
    """Return the class index of each row; raise ValueError unless there is one column per class."""
    codes, classes = class_codes(y_true, len(scores), labels=labels)
    n_columns = scores.shape[1]
    if len(classes) != n_columns:
        source = "y_true" if labels is None else "labels"
        raise ValueError(f"y_score has {n_columns} columns, but {source} has {len(classes)} classes")
    if n_columns < 2:
        raise ValueError("y_score must have at least two columns, but has 1")
    return codes


def _average_columns(
    score: Callable[..., float],
    truth: NDArray[np.bool_],
    scores: Scores,
    weights: FloatArray | None,
    average: str | None,
) -> float | FloatArray:
    """Return the average over columns of a binary metric; `average` is a parameter of `roc_auc_score`."""
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


def average_precision_score(
    y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the average precision, the area under the precision-recall curve without interpolation.

    AP = sum over thresholds of (R_k - R_{k-1}) P_k with precision P and recall R [1]_.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Labels and scores as in `roc_curve`, with the same errors.
    pos_label : label, optional
        As in `roc_curve`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights.

    Returns
    -------
    float
        The average precision. NaN with an UndefinedMetricWarning if no positive sample has weight.

    References
    ----------
    .. [1] M. Zhu, "Recall, precision and average precision", University of Waterloo (2004).

    Examples
    --------
    >>> from aucforest.metrics import average_precision_score
    >>> round(average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    tps, fps, _ = cumulate(*two_classes(y_true, y_score, sample_weight, pos_label))
    if tps[-1] <= 0.0:
        warn_undefined("average precision is not defined: no positive sample has weight")
        return float("nan")
    return float(precision_area(tps[1:], tps[1:] / (tps[1:] + fps[1:])))


def precision_area(tps: NDArray[Any], precision: FloatArray) -> FloatArray:
    """Return average precision from true positives and precision at descending thresholds, which are the last axis."""
    steps = np.array(tps, dtype=np.float64)
    steps[..., 1:] -= tps[..., :-1]
    with np.errstate(invalid="ignore"):
        area = np.einsum("...g,...g->...", steps, precision) / tps[..., -1]
    return np.minimum(area, 1.0)  # Sums of weights have rounding errors.


def class_roc_auc(codes: NDArray[Any], proba: FloatArray, sample_weight: ArrayLike | None = None) -> float:
    """Return the ROC AUC of the second of two classes (whose scores may be a vector), or Hand and Till's M."""
    scores = proba[:, 1] if proba.shape[1:] == (2,) else proba
    if scores.ndim == 1:
        return float(roc_auc_score(codes == 1, scores, sample_weight=sample_weight))
    return float(roc_auc_score(codes, scores, labels=np.arange(proba.shape[1]), sample_weight=sample_weight))


def mean_over_classes(
    metric: Callable[..., float], codes: NDArray[Any], proba: FloatArray, sample_weight: ArrayLike | None = None
) -> float:
    """Return a binary metric of the second of two classes, or its mean over more than two classes."""
    classes = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    return float(np.mean([metric(codes == k, proba[:, k], sample_weight=sample_weight) for k in classes]))


class_average_precision = partial(mean_over_classes, average_precision_score)
