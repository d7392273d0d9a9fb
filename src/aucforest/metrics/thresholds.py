"""Decision thresholds that maximize a metric, minimize a cost, or limit the number of positive predictions."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._caller import warn
from aucforest.metrics.at_k import ROUNDING, check_bound, is_within, top_size
from aucforest.metrics.ranking import Cumulated, cumulate
from aucforest.metrics.validation import FloatArray, check_option, positive_last, two_classes, unmask, warn_undefined

BOUNDS = ("alerts", "precision", "recall", "fpr")


def optimal_threshold(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    criterion: Literal["youden", "gmean", "f1", "cost"] | dict[str, float] = "youden",
    cost: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Find the best threshold: scores of at least the threshold are predicted positive.

    The candidates are all distinct scores, and infinity (no positive predictions). If several thresholds are equally
    good, the highest is returned. If weights or costs are not whole numbers, relative differences of up to 1e-12 are
    ignored, because they may be rounding errors.

    Parameters
    ----------
    y_true, y_score, sample_weight
        As in `auc_confidence_interval`.
    criterion : {"youden", "gmean", "f1", "cost"} or dict with a single key, default="youden"
        The criterion to maximize: TPR - FPR [1]_, sqrt(TPR (1 - FPR)), the F1 score 2 TP / (2 TP + FP + FN), or the
        negative cost. A dict is a bound:

        - {"alerts": k}: the lowest threshold with at most k positive predictions. A float is a proportion of the
          samples, an integer a number of samples (with `sample_weight`, a total weight).
        - {"alerts": k} with `cost`: the lowest cost with at most k positive predictions.
        - {"precision": p}: the highest recall with a precision of at least p. If no threshold has that precision, the
          one with the highest precision is returned, with a warning.
        - {"recall": r}: the highest threshold with a recall of at least r.
        - {"fpr": f}: the highest recall with a false positive rate of at most f.
    cost : array-like of shape (2, 2) or (n_samples, 2, 2), only for criterion "cost" or {"alerts": k}
        ``cost[i][j]`` is the cost of predicting class j if the true class is i; the second class is positive. For
        ``[[0, 1], [10, 0]]`` a false negative costs as much as ten false positives. Errors must not cost less than
        correct predictions. An array with three dimensions has a matrix for each sample.

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
    >>> optimal_threshold(y_true, y_score, criterion={"alerts": 2})
    0.5
    >>> optimal_threshold(y_true, y_score, criterion={"recall": 0.8})
    0.4
    >>> optimal_threshold(y_true, y_score, criterion={"alerts": 2}, cost=[[0, 3], [10, 0]])
    0.6
    """
    if isinstance(criterion, dict):
        check_bounds(criterion)
    else:
        check_option("criterion", criterion, ("youden", "gmean", "f1", "cost"))
    if criterion == "cost" and cost is None:
        raise ValueError("criterion='cost' needs cost, such as [[0, 1], [10, 0]] if a false negative costs 10")
    if criterion != "cost" and cost is not None and "alerts" not in criterion:
        raise ValueError(f"cost needs criterion='cost' or {{'alerts': k}}, but criterion is {criterion!r}")
    matrix = None if cost is None else check_cost(cost, 2, n_rows=np.size(y_true))
    positive, scores, weights = two_classes(y_true, y_score, sample_weight)
    cumulated = cumulate(positive, scores, weights)
    if cumulated.tps[-1] <= 0.0 or cumulated.fps[-1] <= 0.0:
        warn_undefined("the threshold is not defined: a class has no weight in y_true")
        return float("nan")
    lowest_allowed = -np.inf
    if isinstance(criterion, dict):
        ((name, bound),) = criterion.items()
        best = _find_within(cumulated, name, bound)
        lowest_allowed = cumulated.thresholds[best]
    if matrix is not None and matrix.ndim == 3:
        # Samples are weighted by the excess cost of an error, so that each error costs 1.
        fp_costs, fn_costs = error_costs(np.moveaxis(matrix, 0, -1))
        costs = np.where(positive, fn_costs, fp_costs)
        cumulated = cumulate(positive, scores, costs if weights is None else weights * costs)
        matrix = 1.0 - np.eye(2)
    if matrix is not None or not isinstance(criterion, dict):
        n_allowed = np.count_nonzero(cumulated.thresholds >= lowest_allowed)
        metric = criterion if isinstance(criterion, str) else "cost"
        best = find_best(cumulated.tps, cumulated.fps, metric, matrix, n_allowed)
    return float(cumulated.thresholds[best])


def _find_within(cumulated: Cumulated, name: str, bound: Any) -> int:
    """Return the index of the threshold for a bound; see `optimal_threshold`."""
    if name == "alerts":
        selected = cumulated.selected
        size = top_size(bound, float(selected[-1]), name=name)
        return int(np.searchsorted(selected, size * (1.0 + ROUNDING), side="right")) - 1
    within = is_within(cumulated, name, bound)
    best = int(np.argmax(within if name == "recall" else np.where(within, cumulated.tps, -1.0)))
    if name == "precision" and best == 0:
        precision = cumulated.precision
        best = int(np.flatnonzero(is_within(cumulated, name, precision.max()))[-1])
        warn(f"no threshold has a precision of {bound:g}: the highest is {precision[best]:.4g}, which is taken")
    return best


def check_bounds(criterion: dict[str, Any], *, name: str = "criterion", others: tuple[str, ...] = ()) -> None:
    """Raise ValueError unless the keys and the bounds of a criterion are valid.

    A criterion has either one key, from BOUNDS or `others`, or the key "alerts" and all of `others`.
    """
    keys = set(criterion)
    if not (len(keys) == 1 and keys <= {*others, *BOUNDS}) and keys != {"alerts", *others}:
        named = ", ".join(map(repr, (*others, *BOUNDS)))
        both = f", or the keys {', '.join(map(repr, ('alerts', *others)))}" if others else ""
        needed = f"a dict with a single key, one of {named}{both}"
        raise ValueError(f"{name} must be {needed}, but has the keys {list(criterion)}")
    for key, bound in criterion.items():
        if key == "alerts":
            top_size(bound, name=f"{name}: alerts")
        elif key in BOUNDS:
            check_bound(f"{name}: {key}", bound)


def check_cost(cost: ArrayLike, n_classes: int, *, where: str = "", n_rows: int | None = None) -> FloatArray:
    """Return a validated cost matrix. With two classes and `n_rows`, there may be a matrix for each row."""
    sentence = f"{where}cost must be a {n_classes} x {n_classes} matrix of finite numbers, one row for each true class"
    try:
        matrix = np.asarray(unmask(cost), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(sentence) from None
    if matrix.shape == (n_classes,) == (2,):
        fp, fn = map(float, matrix)
        raise ValueError(f"{sentence}: pass [[0, {fp:g}], [{fn:g}, 0]] instead of ({fp:g}, {fn:g})")
    n_dims = 3 if n_rows is not None and n_classes == 2 and matrix.ndim == 3 else 2
    if matrix.ndim != n_dims or matrix.shape[-2:] != (n_classes, n_classes) or not np.isfinite(matrix).all():
        raise ValueError(sentence)
    if n_dims == 3 and len(matrix) != n_rows:
        raise ValueError(f"{where}cost has {len(matrix)} matrices, but there are {n_rows} samples")
    correct = np.diagonal(matrix, axis1=-2, axis2=-1)[..., None]
    if np.any(matrix < correct):
        raise ValueError(f"{where}cost[i][j] of an error must be at least cost[i][i] of the correct prediction")
    if np.all(matrix == correct):
        raise ValueError(f"{where}cost is the same for errors and correct predictions")
    return matrix


def error_costs(cost: FloatArray) -> tuple[Any, Any]:
    """Return how much more a false positive and a false negative cost than correct predictions."""
    return cost[0, 1] - cost[0, 0], cost[1, 0] - cost[1, 1]


def find_best(
    tps: FloatArray, fps: FloatArray, criterion: str, cost: FloatArray | None = None, n_allowed: Any = None
) -> int:
    """Return the index of the best of the thresholds of `cumulate`, the highest one if several are equally good.

    Whole numbers are compared exactly, as int64. Denominators that are the same for all thresholds are omitted, because
    equal sums of quotients may be rounded differently. Only the `n_allowed` highest thresholds are compared. The
    criterion "cost" needs `cost`.
    """
    fp_cost, fn_cost = (1.0, 1.0) if cost is None else error_costs(cost)
    numbers: Any = tps, fps, fp_cost, fn_cost
    greatest = max(tps[-1] * fps[-1], fp_cost * fps[-1] + fn_cost * tps[-1])
    is_whole = greatest < 2.0**62 and all(np.array_equal(number, np.rint(number)) for number in numbers)
    numbers = [np.asarray(number, np.int64 if is_whole else np.float64) for number in numbers]
    tps, fps, fp_cost, fn_cost = numbers
    positives, negatives = tps[-1], fps[-1]
    gain, scale = {
        "youden": lambda: (negatives * tps - positives * fps, positives * negatives),
        "gmean": lambda: (tps * (negatives - fps), positives * negatives),
        "f1": lambda: (tps / (positives + fps), 1.0),  # the Jaccard index, which increases with F1
        "cost": lambda: (fn_cost * tps - fp_cost * fps, fn_cost * positives + fp_cost * negatives),
    }[criterion]()
    gain = gain[:n_allowed]
    return int(np.argmax(gain >= gain.max() - (0 if is_whole else ROUNDING * scale)))


def decide(classifier: Any, proba: FloatArray) -> NDArray[np.int64]:
    """Return the index of the predicted class of each row, by the `threshold_` of a fitted classifier.

    A number is the minimum probability of the positive class. A matrix contains costs. A vector contains prior
    probabilities, by which the probabilities are divided. None (the default) predicts the most probable class.
    """
    threshold = getattr(classifier, "threshold_", None)
    if threshold is None:
        return proba.argmax(axis=1)
    if np.ndim(threshold) == 0:
        negative, positive = positive_last(classifier)
        return np.where(proba[:, positive] >= threshold, positive, negative)
    if threshold.ndim == 2:
        return (proba @ threshold).argmin(axis=1)
    # A class with a prior probability of 0 has a probability of 0, too.
    return np.divide(proba, threshold, out=np.zeros_like(proba), where=threshold > 0.0).argmax(axis=1)
