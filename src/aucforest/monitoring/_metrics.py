"""The metrics by name: how each is estimated, its bounds, and whether it grows with the number of rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.thresholds import check_cost
from aucforest.monitoring._auc import (
    draw_aucs,
    draw_average_precisions,
    one_vs_one_auc,
    one_vs_rest_auc,
    soft_average_precision,
    soft_roc_auc,
)
from aucforest.monitoring._rows import Estimate, FloatArray, Rows
from aucforest.monitoring.counts import THRESHOLD_METRICS, Normalize, cell, estimate_by, total_cost

COSTS = ("cost", "cost_per_row")
ROUNDING = 1e-9  # far more than the rounding of sums over a chunk, far less than any difference that matters
NAMES = ("roc_auc", "average_precision", *THRESHOLD_METRICS, "confusion_matrix", *COSTS)


class Metric(NamedTuple):
    """One metric: how it is estimated, and its bounds."""

    name: str
    estimate: Callable[[Rows], Estimate]
    low: float = 0.0
    high: float = 1.0
    needs_predictions: bool = True
    grows: bool = False  # a sum over rows
    draw: Callable[[Rows, int, np.random.Generator], FloatArray] | None = None  # values for so many drawn labels
    always_drawn: bool = False  # intervals always come from drawn labels, and not only where a class is rare

    def ratio(self, n_rows: float, of_rows: float) -> float:
        """Return how much larger the metric is of `n_rows` than of `of_rows`, other things equal."""
        return n_rows / of_rows if self.grows else 1.0


def find_metrics(
    names: Sequence[str], classes: NDArray[Any], multi_class: str, normalize: Normalize, cost: ArrayLike | None
) -> list[Metric]:
    """Return the metrics of these names for these classes; ValueError for one that does not exist."""
    metrics: list[Metric] = []
    for name in names:
        if name not in NAMES:
            raise ValueError(f"metrics must be among {', '.join(NAMES)}, but has {name!r}")
        if name == "roc_auc":
            metrics.append(_ranking_metric(len(classes), multi_class))
        elif name == "average_precision":
            draw = draw_average_precisions
            metrics.append(Metric(name, soft_average_precision, needs_predictions=False, draw=draw, always_drawn=True))
        elif name == "confusion_matrix":
            metrics += _cells(classes, normalize)
        elif name in COSTS:
            metrics.append(_cost_metric(name, len(classes), cost))
        else:
            metrics.append(Metric(name, partial(estimate_by, THRESHOLD_METRICS[name])))
    return metrics


def _ranking_metric(n_classes: int, multi_class: str) -> Metric:
    """Return the AUC of two classes, or the kind that is asked for of more."""
    if n_classes == 2:
        return Metric("roc_auc", soft_roc_auc, needs_predictions=False, draw=draw_aucs)
    return Metric("roc_auc", one_vs_one_auc if multi_class == "ovo" else one_vs_rest_auc, needs_predictions=False)


def _cells(classes: NDArray[Any], normalize: Normalize) -> list[Metric]:
    """Return a metric for each cell of the confusion matrix."""
    grows = normalize is None
    n_classes = len(classes)
    binary = [["true_negative", "false_positive"], ["false_negative", "true_positive"]]
    return [
        Metric(
            binary[true][predicted] if n_classes == 2 else f"true_{classes[true]}_pred_{classes[predicted]}",
            partial(estimate_by, partial(cell, true, predicted, normalize)),
            high=np.inf if grows else 1.0,
            grows=grows,
        )
        for true in range(n_classes)
        for predicted in range(n_classes)
    ]


def _cost_metric(name: str, n_classes: int, cost: ArrayLike | None) -> Metric:
    """Return the metric that weighs the cells of the confusion matrix."""
    if cost is None:
        raise ValueError(f"metric {name!r} needs cost, a matrix with a row for each true class")
    per_row = name == "cost_per_row"
    function = partial(total_cost, check_cost(cost, n_classes), per_row=per_row)
    return Metric(name, partial(estimate_by, function), -np.inf, np.inf, grows=not per_row)


def alert_limits(metric: Metric, realised: Sequence[float], threshold: float) -> tuple[float, float]:
    """Return mean -+ threshold * standard deviation of realised values, inside the bounds; NaN for fewer than two."""
    values = np.array([value for value in realised if not np.isnan(value)])
    if values.size < 2:
        return float("nan"), float("nan")
    reach = threshold * values.std()
    return float(max(metric.low, values.mean() - reach)), float(min(metric.high, values.mean() + reach))


def is_beyond(estimate: float, lower: float, upper: float) -> bool:
    """Return whether an estimate is beyond alert limits, and not only by rounding: limits may have no width."""
    return max(lower - estimate, estimate - upper) > ROUNDING * max(1.0, abs(estimate))
