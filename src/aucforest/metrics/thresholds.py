"""Decision thresholds."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.ranking import cumulate
from aucforest.metrics.validation import check_option, two_classes, warn_undefined


def optimal_threshold(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    criterion: Literal["youden", "gmean", "f1", "cost"] = "youden",
    cost: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Find the best threshold: scores of at least the threshold are predicted positive.

    Candidates are all distinct scores, and infinity (no positive predictions). Among ties the highest is returned.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels (bool, int, float or str). The greater one is positive.
    y_score : array-like of shape (n_samples,)
        Finite scores.
    criterion : {"youden", "gmean", "f1", "cost"}, default="youden"
        The criterion to maximize: TPR - FPR [1]_, sqrt(TPR (1 - FPR)), the F1 score 2 TP / (2 TP + FP + FN), or the
        negative cost.
    cost : array-like of shape (2, 2), only for criterion "cost"
        ``cost[i][j]`` is the cost of predicting class j if the true class is i; the second class is positive. For
        ``[[0, 1], [10, 0]]`` a false negative costs as much as ten false positives. Errors must not cost less than
        correct predictions.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights.

    Returns
    -------
    float
        NaN with an UndefinedMetricWarning if a class has no weight.

    Raises
    ------
    ValueError, TypeError
        As `roc_curve`. ValueError also if the criterion or `cost` is invalid.

    References
    ----------
    .. [1] W. J. Youden, "Index for rating diagnostic tests", Cancer 3 (1950), 32-35.

    Examples
    --------
    >>> from aucforest.metrics import optimal_threshold
    >>> y_true, y_score = [0, 0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    >>> optimal_threshold(y_true, y_score)
    0.4
    >>> optimal_threshold(y_true, y_score, criterion="cost", cost=[[0, 3], [1, 0]])
    0.6
    """
    check_option("criterion", criterion, ("youden", "gmean", "f1", "cost"))
    if criterion == "cost" and cost is None:
        raise ValueError("criterion='cost' needs cost, such as [[0, 1], [10, 0]] if a false negative costs 10")
    if criterion != "cost" and cost is not None:
        raise ValueError(f"cost needs criterion='cost', but criterion is {criterion!r}")
    matrix = None if cost is None else check_cost(cost, 2)
    tps, fps, thresholds = cumulate(*two_classes(y_true, y_score, sample_weight))
    if tps[-1] <= 0.0 or fps[-1] <= 0.0:
        warn_undefined("the threshold is not defined: a class has no weight in y_true")
        return float("nan")
    return float(thresholds[np.argmax(gain_at_thresholds(tps, fps, criterion, matrix))])


def check_cost(cost: ArrayLike, n_classes: int, *, where: str = "") -> NDArray[np.float64]:
    """Return a checked cost matrix: a row for each true class, a column for each predicted one."""
    sentence = f"{where}cost must be a {n_classes} x {n_classes} matrix of finite numbers, one row for each true class"
    try:
        matrix = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(sentence) from None
    if matrix.shape == (n_classes,) == (2,):
        of_fp, of_fn = map(float, matrix)
        raise ValueError(f"{sentence}: pass [[0, {of_fp:g}], [{of_fn:g}, 0]] instead of ({of_fp:g}, {of_fn:g})")
    if matrix.shape != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(sentence)
    right = np.diag(matrix)[:, None]
    if np.any(matrix < right):
        raise ValueError(f"{where}cost[i][j] of an error must be at least cost[i][i] of the correct prediction")
    if np.all(matrix == right):
        raise ValueError(f"{where}cost is the same for errors and correct predictions")
    return matrix


def error_costs(cost: NDArray[np.float64]) -> tuple[float, float]:
    """Return what a false positive and a false negative cost more than a right prediction."""
    return float(cost[0, 1] - cost[0, 0]), float(cost[1, 0] - cost[1, 1])


def gain_at_thresholds(
    tps: NDArray[np.float64], fps: NDArray[np.float64], criterion: str, cost: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return what the criterion maximises, at each of the falling thresholds of `cumulate`."""
    positives, negatives = tps[-1], fps[-1]
    if criterion == "youden":
        return tps / positives - fps / negatives
    if criterion == "gmean":
        return np.sqrt(tps / positives * (1.0 - fps / negatives))
    if criterion == "f1":
        return 2.0 * tps / (tps + fps + positives)
    of_fp, of_fn = (0.0, 0.0) if cost is None else error_costs(cost)
    return -(of_fp * fps + of_fn * (positives - tps))


def decide(proba: NDArray[np.float64], threshold: Any) -> NDArray[np.int64]:
    """Return the class number of every row.

    `threshold` is None for the most probable class; the least probability of the second of two classes; prior
    probabilities, for the greatest probability in units of its own; or a cost matrix, for the least expected cost.
    """
    if threshold is None:
        return proba.argmax(axis=1)
    if np.ndim(threshold) == 0:
        return (proba[:, 1] >= threshold).astype(np.int64)
    if threshold.ndim == 2:
        return (proba @ threshold).argmin(axis=1)
    # A class without a prior has no probability either.
    return np.divide(proba, threshold, out=np.zeros_like(proba), where=threshold > 0.0).argmax(axis=1)
