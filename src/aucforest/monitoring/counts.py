"""Metrics of predicted classes: functions of the expected confusion matrix, with their gradients."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from aucforest.metrics._validation import check_option, class_codes
from aucforest.monitoring._rows import Estimate, FloatArray, Rows, check_probabilities

Normalize = Literal["all", "true", "pred"] | None
NORMALIZATIONS = (None, "all", "true", "pred")

# matrix of counts, (true, predicted) -> value and its gradient by the counts
Function = Callable[[FloatArray], tuple[float, FloatArray]]


def expected_confusion_matrix(
    y_pred: ArrayLike, p: ArrayLike, *, labels: ArrayLike | None = None, normalize: Normalize = None
) -> FloatArray:
    """Return the confusion matrix that is expected of predicted classes when row i is of class c with chance p[i, c].

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    p : array-like of shape (n_samples,) or (n_samples, n_classes)
        Calibrated probabilities, of the second class or of all classes.
    labels : array-like of shape (n_classes,), optional
        The classes, in the order of the columns of p; by default 0, 1, ...
    normalize : {"all", "true", "pred"} or None, default=None
        Divide by the number of rows, of expected rows of the true class, or of rows of the predicted class; counts that
        divide by zero are NaN.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Expected number of rows by true class (row) and predicted class (column).

    Raises
    ------
    ValueError
        For p outside [0, 1], rows of p that do not sum to 1, lengths that differ, labels that are not in `labels`, or
        an unknown `normalize`.

    Examples
    --------
    >>> from aucforest.monitoring import expected_confusion_matrix
    >>> expected_confusion_matrix([1, 1, 0, 0], [0.9, 0.6, 0.3, 0.1])
    array([[1.6, 0.5],
           [0.4, 1.5]])
    """
    check_option("normalize", normalize, NORMALIZATIONS)
    chances = check_probabilities(p, n_dims=2 if np.ndim(p) == 2 else 1)
    n_classes = max(2, chances.shape[1])
    classes = np.arange(n_classes) if labels is None else np.asarray(labels)
    if classes.shape != (n_classes,):
        raise ValueError(f"p is of {n_classes} classes, but labels has the shape {classes.shape}")
    rows = Rows([], chances, class_codes(y_pred, len(chances), labels=classes, name="y_pred")[0])
    matrix = confusion(rows)
    with np.errstate(invalid="ignore"):
        return matrix / _denominators(matrix, normalize)


def confusion(rows: Rows) -> FloatArray:
    """Return the expected counts, (true, predicted)."""
    chances = np.hstack([1.0 - rows.p, rows.p]) if rows.p.shape[1] == 1 else rows.p
    n_classes = chances.shape[1]
    predicted = np.asarray(rows.predicted)
    return np.array([np.bincount(predicted, weights=of_class, minlength=n_classes) for of_class in chances.T])


def _denominators(matrix: FloatArray, normalize: Normalize) -> FloatArray | float:
    """Return what the counts are divided by."""
    if normalize is None:
        return 1.0
    if normalize == "all":
        return float(matrix.sum())
    return matrix.sum(axis=1, keepdims=True) if normalize == "true" else matrix.sum(axis=0, keepdims=True)


def estimate_by(function: Function, rows: Rows) -> Estimate:
    """Return the estimate of a function of the confusion matrix."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value, gradient = function(confusion(rows))
    influence = gradient.T[rows.predicted]
    if rows.p.shape[1] == 1:
        influence = influence[:, 1:] - influence[:, :1]
    return Estimate(value, value, influence)


def accuracy(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return the share of rows of the predicted class."""
    gradient = np.eye(len(counts)) / counts.sum()
    return float((counts * gradient).sum()), gradient


def precision(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return TP / (TP + FP)."""
    hits, predicted, actual = _margins(counts)
    return _of_classes(counts, hits / predicted, 1.0 / predicted, np.zeros_like(actual))


def recall(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return TP / (TP + FN)."""
    hits, _, actual = _margins(counts)
    share = hits / actual
    return _of_classes(counts, share, 1.0 / actual, -share / actual)


def specificity(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return TN / (TN + FP)."""
    hits, predicted, actual = _margins(counts)
    others = counts.sum() - actual
    share = (predicted - hits) / others
    return _of_classes(counts, 1.0 - share, 1.0 / others, -share / others)


def f1(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return 2 TP / (2 TP + FP + FN)."""
    hits, predicted, actual = _margins(counts)
    share = 2.0 * hits / (predicted + actual)
    return _of_classes(counts, share, 2.0 / (predicted + actual), -share / (predicted + actual))


def _margins(counts: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return of every class the hits, the rows predicted and the rows expected."""
    return np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)


def _of_classes(
    counts: FloatArray, values: FloatArray, by_hits: FloatArray, by_actual: FloatArray
) -> tuple[float, FloatArray]:
    """Return the value of the positive class, or of more than two classes the mean, with its gradient."""
    n_classes = len(counts)
    share = np.array([0.0, 1.0]) if n_classes == 2 else np.full(n_classes, 1.0 / n_classes)
    weighed = share > 0.0
    gradient = np.zeros_like(counts)
    gradient[weighed] = (share * by_actual)[weighed, None]
    gradient[weighed, weighed] += (share * by_hits)[weighed]
    return float(values[weighed] @ share[weighed]), gradient


def total_cost(cost: FloatArray, counts: FloatArray, *, per_row: bool) -> tuple[float, FloatArray]:
    """Return the sum of counts times costs, or its mean over rows."""
    gradient = cost / counts.sum() if per_row else cost
    return float((counts * gradient).sum()), gradient


def cell(true: int, predicted: int, normalize: Normalize, counts: FloatArray) -> tuple[float, FloatArray]:
    """Return one cell of the normalised confusion matrix."""
    denominators = np.broadcast_to(_denominators(counts, normalize), counts.shape)
    share = counts[true, predicted] / denominators[true, predicted]
    gradient = np.zeros_like(counts)
    gradient[true, predicted] = 1.0 / denominators[true, predicted]
    if normalize == "true":  # the only denominator that the labels move
        gradient[true] -= share / denominators[true, predicted]
    return float(share), gradient


THRESHOLD_METRICS: dict[str, Function] = {
    function.__name__: function for function in (accuracy, precision, recall, specificity, f1)
}
