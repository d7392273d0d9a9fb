"""Checks of the parameters of CBPE and of what goes with them."""

from typing import Any

import numpy as np

from aucforest.metrics._intervals import require_level
from aucforest.monitoring._metrics import Metric
from aucforest.monitoring._tables import Table
from aucforest.monitoring.chunks import Chunks
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
    if len(set(cbpe.metrics)) < len(cbpe.metrics):
        raise ValueError(f"metrics must be distinct, but is {cbpe.metrics!r}")
    if not cbpe.threshold >= 0:
        raise ValueError(f"threshold must not be negative, but is {cbpe.threshold}")
    if not isinstance(cbpe.n_draws, int | np.integer) or cbpe.n_draws < 2:
        raise ValueError(f"n_draws must be an integer of at least 2, but is {cbpe.n_draws}")
    if not (cbpe.random_state is None or (isinstance(cbpe.random_state, int | np.integer) and cbpe.random_state >= 0)):
        raise ValueError(f"random_state must be None or an integer of at least 0, but is {cbpe.random_state!r}")
    require_level(cbpe.level)


def check_columns(cbpe: Any, metrics: list[Metric], table: Table, *, n_features: int | None) -> None:
    """Raise when predictions or features are missing, or features are not as many as in the reference."""
    for metric in metrics:
        if metric.needs_predictions and table.predicted is None:
            raise ValueError(f"metric {metric.name!r} needs y_pred")
    if cbpe.importance_weighted and table.X is None:
        raise ValueError("importance_weighted=True needs X, in fit and in estimate")
    if table.X is not None and table.X.shape[1] != n_features:
        raise ValueError(f"X has {table.X.shape[1]} columns, but the reference has {n_features or 'no X'}")


def choose_chunks(chunks: Chunks | None, default: Chunks) -> Chunks:
    """Return the chunks that are asked for, or else the default, unless that belongs to other rows."""
    if chunks is None:
        if default.has_timestamps:
            raise ValueError("pass chunks: the timestamps given to fit are those of the reference rows")
        return default
    if not isinstance(chunks, Chunks):
        raise TypeError(f"chunks must be made by Chunks.by_size, by_number or by_period, but is {chunks!r}")
    return chunks
