"""How good a model is: figures with their intervals, and the table that shows them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from aucforest.cli._outputs import rich_table
from aucforest.inspection.scoring import METRICS
from aucforest.metrics import auc_confidence_interval

# Of METRICS those that say how good predictions are.
QUALITY = ("roc_auc", "average_precision", "g_mean", "brier", "log_loss")


class Figure(NamedTuple):
    """A metric and its 95 % interval, NaN where there is none."""

    metric: str
    value: float
    low: float = float("nan")
    high: float = float("nan")


def auc_with_interval(is_positive: NDArray[np.bool_], score: NDArray[np.float64], weight: Any) -> Figure:
    """Return the ROC AUC of two classes with its interval."""
    return Figure("roc_auc", *auc_confidence_interval(is_positive, score, sample_weight=weight))


def positive_class(model: Any) -> str:
    """Return the beginning of a line: which of two classes has the higher scores."""
    return f"positive: {model.classes_[1]}; " if len(model.classes_) == 2 else ""


def as_table(title: str, figures: dict[str, list[Figure]]) -> Table:
    """Return figures as a table; those of a kind, such as "out of bag", stand together."""
    rows = []
    for kind, measured in figures.items():
        for place, figure in enumerate(measured):
            interval = "" if np.isnan(figure.low) else f"{figure.low:.4f} to {figure.high:.4f}"
            rows.append([kind if place == 0 else "", METRICS[figure.metric].title, f"{figure.value:.4f}", interval])
    return rich_table(title, ["", "metric", ">value", ">95 % interval"], rows)
