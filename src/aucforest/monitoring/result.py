"""Results of CBPE as a table and as a plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from aucforest._display import Display
from aucforest._optional import import_optional
from aucforest.monitoring.shift import ShiftReport


class ChunkEstimate(NamedTuple):
    """Estimate of one metric for one chunk.

    Attributes
    ----------
    chunk : str
        The key of the chunk.
    start, end : int or str
        The first and last row number, day or hour of the chunk.
    n_rows : int
        The number of samples used.
    metric : str
        The name of the metric.
    estimate : float
        The expected value of the realized metric.
    standard_error : float
        The standard deviation of the realized metric around the estimate, due to labels and calibration.
    low, high : float
        The confidence interval of the realized metric.
    realized : float
        The metric computed from labels, NaN if they are unknown.
    lower_limit, upper_limit : float
        The alert limits, NaN if there are none.
    alert : bool or None
        True if the estimate or the shift of the chunk (see `ShiftReport`) is beyond its limits. With such a shift, the
        estimate may not be valid. None without limits or estimate, or if the chunk is so small that no estimate or
        shift could be beyond the limits.
    """

    chunk: str
    start: int | str
    end: int | str
    n_rows: int
    metric: str
    estimate: float
    standard_error: float
    low: float
    high: float
    realized: float
    lower_limit: float
    upper_limit: float
    alert: bool | None


@dataclass(frozen=True, repr=False, eq=False)
class CBPEResult:
    """Estimates of all chunks and metrics.

    Attributes
    ----------
    estimates : sequence of ChunkEstimate
        One estimate for each chunk and metric.
    shifts : dict of str to ShiftReport
        The shift report of each chunk, by key of the chunk.
    metrics : tuple of str
        The names of the metrics.
    """

    estimates: tuple[ChunkEstimate, ...]
    shifts: dict[str, ShiftReport]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(dict.fromkeys(row.metric for row in self.estimates))

    def __repr__(self) -> str:
        alerts = sum(row.alert is True for row in self.estimates)
        return f"CBPEResult({len(self.shifts)} chunks, metrics {', '.join(self.metrics)}, {alerts} alerts)"

    def of(self, metric: str) -> list[ChunkEstimate]:
        """Return the estimates of one metric; raise ValueError if this metric was not estimated."""
        if metric not in self.metrics:
            raise ValueError(f"metric must be among {', '.join(self.metrics)}, but is {metric!r}")
        return [row for row in self.estimates if row.metric == metric]

    def records(self) -> list[dict[str, Any]]:
        """Return one dict for each chunk and metric, with its ChunkEstimate and ShiftReport."""
        return [{**row._asdict(), **self.shifts[row.chunk]._asdict()} for row in self.estimates]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each chunk and metric; undefined values are NaN or NA."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame.from_records(self.records()).astype({"alert": "boolean", "valid": "boolean"})

    def plot(self, *, metrics: Sequence[str] | None = None) -> "CBPEDisplay":
        """Plot estimates, intervals, realized values and alert limits of the given metrics, by default of all.

        Raises a ValueError if a metric was not estimated, and an ImportError if matplotlib is not installed.
        """
        return CBPEDisplay({metric: self.of(metric) for metric in metrics or self.metrics}).plot()


@dataclass(repr=False, eq=False)
class CBPEDisplay(Display):
    """Plot of estimates with one panel for each metric.

    Parameters
    ----------
    series : dict of str to list of ChunkEstimate
        The estimates of each metric.

    Attributes
    ----------
    axes_, figure_ : ndarray of matplotlib Axes, and matplotlib Figure
        The axes of each metric, and the figure of the plot.
    """

    series: dict[str, list[ChunkEstimate]]

    def _panels(self) -> dict[str, Any]:
        return {"nrows": len(self.series), "sharex": True, "squeeze": False}

    def _size(self) -> tuple[float, float]:
        return 8.0, 1.5 + 2.0 * len(self.series)

    def _draw(self, axes: Any) -> None:
        self.axes_ = np.ravel(axes)
        for ax, (metric, rows) in zip(self.axes_, self.series.items()):
            _draw_metric(ax, rows)
            ax.set_ylabel(metric)
        rows = next(iter(self.series.values()))
        step = max(1, len(rows) // 12)
        keys = [row.chunk for row in rows[::step]]
        self.axes_[-1].set_xticks(range(0, len(rows), step), keys, rotation=30, ha="right")
        # There is one legend for all panels. It is above them, so that it does not hide estimates.
        all_handles = [handle for ax in self.axes_ for handle in ax.get_legend_handles_labels()[0]]
        handles = list({handle.get_label(): handle for handle in all_handles}.values())
        self.figure_.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize="small")


def _draw_metric(ax: Any, rows: list[ChunkEstimate]) -> None:
    x = np.arange(len(rows))
    numbers = np.array([row[5:] for row in rows], dtype=float)  # the fields from `estimate` on
    estimate, _, low, high, realized, *limits, alert = numbers.T
    errors = np.abs([low - estimate, high - estimate])
    ax.errorbar(x, estimate, errors, fmt="o-", markersize=4, linewidth=1, capsize=2, label="estimate")
    if not np.isnan(realized).all():
        ax.plot(x, realized, "x", color="black", label="realized")
    for limit, label in zip(limits, ("alert limits", None)):
        if not np.isnan(limit).all():
            ax.plot(x, limit, color="tab:red", linestyle="--", linewidth=1, label=label)
    alerts = alert > 0
    if alerts.any():
        ax.plot(x[alerts], estimate[alerts], "D", color="tab:red", label="alert")
