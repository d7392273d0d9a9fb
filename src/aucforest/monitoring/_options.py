"""Checks of the parameters of CBPE."""

from typing import Any

from aucforest.metrics.confidence import _normal_quantile
from aucforest.monitoring._metrics import Metric
from aucforest.monitoring._tables import Table
from aucforest.monitoring.counts import NORMALIZATIONS
from aucforest.monitoring.needs import CALIBRATIONS, RULES


def check_options(cbpe: Any) -> None:
    """Raise for options that do not exist."""
    choices = {
        "needs_calibration": RULES,
        "multi_class": ("ovo", "ovr"),
        "normalize": NORMALIZATIONS,
        "on_nan": ("raise", "drop"),
    }
    for name, allowed in choices.items():
        if getattr(cbpe, name) not in allowed:
            raise ValueError(f"{name} must be among {allowed}, but is {getattr(cbpe, name)!r}")
    if isinstance(cbpe.calibration, str) and cbpe.calibration not in CALIBRATIONS:
        raise ValueError(f"calibration must be among {CALIBRATIONS}, but is {cbpe.calibration!r}")
    if not cbpe.metrics or isinstance(cbpe.metrics, str):
        raise ValueError(f"metrics must be a sequence of names, but is {cbpe.metrics!r}")
    if not cbpe.threshold >= 0:
        raise ValueError(f"threshold must not be negative, but is {cbpe.threshold}")
    if cbpe.n_draws < 2:
        raise ValueError(f"n_draws must be at least 2, but is {cbpe.n_draws}")
    _normal_quantile(cbpe.level)


def check_predictions(metrics: list[Metric], table: Table) -> None:
    """Raise when a metric looks at predicted classes and there are none."""
    for metric in metrics:
        if metric.needs_predictions and table.predicted is None:
            raise ValueError(f"metric {metric.name!r} needs y_pred")
