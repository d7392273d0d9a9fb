"""The metrics of CBPE by name. Metrics of predicted classes are functions of the expected confusion matrix."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.at_k import find_at_k
from aucforest.metrics.thresholds import check_cost
from aucforest.metrics.validation import check_option, class_codes
from aucforest.monitoring import soft
from aucforest.monitoring._rows import Estimate, FloatArray, RankedSamples, check_probabilities

Normalize = Literal["all", "true", "pred"] | None
NORMALIZATIONS = (None, "all", "true", "pred")

# Takes the confusion matrix, (true, predicted), and returns a value and its gradient with respect to the matrix.
Function = Callable[[FloatArray], tuple[float, FloatArray]]


def expected_confusion_matrix(
    *, p: ArrayLike, y_pred: ArrayLike, labels: ArrayLike | None = None, normalize: Normalize = None
) -> FloatArray:
    """Compute the expected confusion matrix if sample i is of class c with probability p[i, c].

    Parameters
    ----------
    p : array-like of shape (n_samples,) or (n_samples, n_classes)
        Calibrated probabilities of the second class or of all classes.
    y_pred : array-like of shape (n_samples,)
        The predicted labels.
    labels : array-like of shape (n_classes,), optional
        The class of each column of p, by default 0, 1, ...
    normalize : {"all", "true", "pred"} or None, default=None
        Normalize over all samples, over the true class (rows) or over the predicted class (columns). Division by zero
        gives NaN.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        The expected counts or proportions by true class (row) and predicted class (column).

    Raises
    ------
    ValueError
        If p is outside [0, 1] or its rows do not sum to 1, lengths differ, a predicted label is not in `labels`, or
        `normalize` is unknown.

    Examples
    --------
    >>> from aucforest.monitoring import expected_confusion_matrix
    >>> expected_confusion_matrix(p=[0.9, 0.6, 0.3, 0.1], y_pred=[1, 1, 0, 0])
    array([[1.6, 0.5],
           [0.4, 1.5]])
    """
    check_option("normalize", normalize, NORMALIZATIONS)
    columns = check_probabilities(p, n_dims=2 if np.ndim(p) == 2 else 1)
    n_classes = max(2, columns.shape[1])
    classes = np.arange(n_classes) if labels is None else np.asarray(labels)
    if classes.shape != (n_classes,):
        raise ValueError(f"p has {n_classes} classes, but labels has shape {classes.shape}")
    predicted, _ = class_codes(y_pred, len(columns), labels=classes, name="y_pred")
    matrix = confusion(RankedSamples([], columns, predicted))
    with np.errstate(invalid="ignore"):
        return matrix / _denominators(matrix, normalize)


def confusion(samples: RankedSamples) -> FloatArray:
    """Return the expected confusion matrix, (true, predicted)."""
    p = np.hstack([1.0 - samples.p, samples.p]) if samples.p.shape[1] == 1 else samples.p
    predicted = np.asarray(samples.predicted)
    return np.array([np.bincount(predicted, weights=column, minlength=p.shape[1]) for column in p.T])


def _denominators(matrix: FloatArray, normalize: Normalize) -> FloatArray:
    if normalize is None:
        return np.ones((1, 1))
    return matrix.sum(axis={"all": None, "true": 1, "pred": 0}[normalize], keepdims=True)


def estimate_by(function: Function, samples: RankedSamples) -> Estimate:
    """Return the estimate of a metric that is a function of the confusion matrix."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value, gradient = function(confusion(samples))
    influence = gradient.T[samples.predicted]
    if samples.p.shape[1] == 1:
        influence = influence[:, 1:] - influence[:, :1]
    return Estimate(value, value, influence)


def class_metric(name: str, counts: FloatArray) -> tuple[float, FloatArray]:
    """Return precision, recall, specificity or F1 and its gradient; for more than two classes the mean over classes."""
    hits, predicted, actual = np.diag(counts), counts.sum(axis=0), counts.sum(axis=1)
    # For each metric: numerator, denominator, derivative of the numerator with respect to the hits of the class, and
    # derivative of the denominator with respect to the number of samples of the class. Predictions are constant.
    numerator, denominator, by_hits, by_actual = {
        "precision": (hits, predicted, 1.0, 0.0),
        "recall": (hits, actual, 1.0, 1.0),
        # The ratio is minus the false positive rate. 1 is added below.
        "specificity": (hits - predicted, counts.sum() - actual, 1.0, -1.0),
        "f1": (2.0 * hits, predicted + actual, 2.0, 1.0),
    }[name]
    ratio = numerator / denominator
    n_classes = len(counts)
    weight = np.array([0.0, 1.0]) if n_classes == 2 else np.full(n_classes, 1.0 / n_classes)
    averaged = weight > 0.0  # The ratio of the negative class may be NaN.
    gradient = np.zeros_like(counts)
    gradient[averaged] = (-weight * by_actual * ratio / denominator)[averaged, None]
    gradient[averaged, averaged] += (weight * by_hits / denominator)[averaged]
    return float(ratio[averaged] @ weight[averaged]) + (name == "specificity"), gradient


def total_cost(cost: FloatArray, counts: FloatArray, *, per_row: bool) -> tuple[float, FloatArray]:
    """Return the total cost, or the mean cost over samples, and its gradient."""
    gradient = cost / counts.sum() if per_row else cost
    return float((counts * gradient).sum()), gradient


def cell(true: int, predicted: int, normalize: Normalize, counts: FloatArray) -> tuple[float, FloatArray]:
    """Return one cell of the normalized confusion matrix and its gradient."""
    denominator = np.broadcast_to(_denominators(counts, normalize), counts.shape)[true, predicted]
    value = counts[true, predicted] / denominator
    gradient = np.zeros_like(counts)
    gradient[true, predicted] = 1.0 / denominator
    if normalize == "true":  # The other denominators do not depend on the labels.
        gradient[true] -= value / denominator
    return float(value), gradient


THRESHOLD_METRICS = ("accuracy", "precision", "recall", "specificity", "f1")
COSTS = ("cost", "cost_per_row")
ROUNDING = 1e-9  # the relative tolerance of alerts; rounding errors of sums over a chunk are smaller
NAMES = ("roc_auc", "average_precision", *THRESHOLD_METRICS, "confusion_matrix", *COSTS)
AT_K = ("precision_at_K", "recall_at_K")


def proportion_at_k(name: str) -> tuple[str, float] | None:
    """Return "precision" or "recall" and k from a name such as "precision_at_0.01", or None for other names."""
    title_metric_k = find_at_k(name)
    if title_metric_k is None or name.startswith("lift"):
        return None
    if isinstance(k := title_metric_k[2], int):
        raise ValueError(f"metrics has {name!r}, but K must be a proportion, such as 0.01: chunks differ in size")
    return name.partition("_")[0], k


class EstimatedMetric(NamedTuple):
    """A metric of CBPE, with values from `low` to `high`."""

    name: str
    estimate: Callable[[RankedSamples], Estimate]
    low: float = 0.0
    high: float = 1.0
    needs_predictions: bool = True
    grows: bool = False  # whether the metric is proportional to the number of samples, like counts and total costs
    # Returns the metric for each of a number of simulations of the labels.
    simulate: Callable[[RankedSamples, int, np.random.Generator], FloatArray] | None = None
    always_simulated: bool = False  # whether intervals use simulations even if no class is rare

    def ratio(self, n_rows: float, n_before: float) -> float:
        """Return the factor that converts the metric of `n_before` samples to that of `n_rows` samples."""
        return n_rows / n_before if self.grows else 1.0


def find_metrics(
    names: Sequence[str], classes: NDArray[Any], multi_class: str, normalize: Normalize, cost: ArrayLike | None
) -> list[EstimatedMetric]:
    """Return the metrics with the given names; ValueError if a name is unknown."""
    metrics: list[EstimatedMetric] = []
    for name in names:
        from_scores = partial(EstimatedMetric, name, needs_predictions=False)
        at_k = proportion_at_k(name)
        if at_k is not None:
            soft_at_k, simulate_at_k = partial(soft.soft_at_k, *at_k), partial(soft.simulate_at_k, *at_k)
            metrics.append(from_scores(soft_at_k, simulate=simulate_at_k, always_simulated=True))
        elif name == "roc_auc" and len(classes) == 2:
            metrics.append(from_scores(soft.soft_roc_auc, simulate=soft.simulate_aucs))
        elif name == "roc_auc":
            metrics.append(from_scores(soft.MULTICLASS_AUCS[multi_class]))
        elif name == "average_precision":
            soft_precision, simulate_precision = soft.soft_average_precision, soft.simulate_average_precisions
            metrics.append(from_scores(soft_precision, simulate=simulate_precision, always_simulated=True))
        elif name == "confusion_matrix":
            metrics += _cells(classes, normalize)
        elif name in COSTS:
            if cost is None:
                raise ValueError(f"metric {name!r} needs cost, a matrix with one row for each true class")
            per_row = name == "cost_per_row"
            function = partial(total_cost, check_cost(cost, len(classes)), per_row=per_row)
            metrics.append(EstimatedMetric(name, partial(estimate_by, function), -np.inf, np.inf, grows=not per_row))
        elif name in THRESHOLD_METRICS:
            accuracy = partial(total_cost, np.eye(len(classes)), per_row=True)
            function = accuracy if name == "accuracy" else partial(class_metric, name)
            metrics.append(EstimatedMetric(name, partial(estimate_by, function)))
        else:
            raise ValueError(f"metrics must be among {', '.join((*NAMES, *AT_K))}, but has {name!r}")
    return metrics


def _cells(classes: NDArray[Any], normalize: Normalize) -> list[EstimatedMetric]:
    grows, n_classes = normalize is None, len(classes)
    binary = [["true_negative", "false_positive"], ["false_negative", "true_positive"]]
    return [
        EstimatedMetric(
            binary[true][predicted] if n_classes == 2 else f"true_{classes[true]}_pred_{classes[predicted]}",
            partial(estimate_by, partial(cell, true, predicted, normalize)),
            high=np.inf if grows else 1.0,
            grows=grows,
        )
        for true, predicted in np.ndindex(n_classes, n_classes)
    ]


def alert_limits(metric: EstimatedMetric, values: FloatArray, threshold: float) -> tuple[float, float]:
    """Return mean -+ threshold * standard deviation, within the bounds of the metric; NaN for fewer than two values."""
    if values.size < 2:
        return np.nan, np.nan
    distance = threshold * values.std()
    return float(max(metric.low, values.mean() - distance)), float(min(metric.high, values.mean() + distance))


def is_beyond(estimate: float, lower: float, upper: float) -> bool:
    """Return whether an estimate is beyond the alert limits by more than rounding errors. The limits can be equal."""
    return max(lower - estimate, estimate - upper) > ROUNDING * max(1.0, abs(estimate))
