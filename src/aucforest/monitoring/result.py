"""What was estimated: a row a chunk and metric, as a table and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from aucforest._optional import import_optional
from aucforest.monitoring.shift import ShiftReport


class ChunkEstimate(NamedTuple):
    """One metric of one chunk.

    Attributes
    ----------
    chunk : str
        Key of the chunk.
    start, end : int or str
        First and last row number, or day, of the chunk.
    n_rows : int
        Rows that took part.
    metric : str
        Name of the metric.
    estimate : float
        What the realised metric is expected to be.
    standard_error : float
        Standard deviation of the realised metric around the estimate: labels and calibration curves.
    low, high : float
        Interval in which the realised metric is expected.
    realised : float
        The metric, where the labels are known.
    lower_limit, upper_limit : float
        Alert limits; NaN where there is none.
    alert : bool
        Whether the estimate is beyond a limit, by more than rounding.
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
    realised: float
    lower_limit: float
    upper_limit: float
    alert: bool


@dataclass(frozen=True, repr=False, eq=False)
class CBPEResult:
    """Estimates of all chunks and metrics.

    Attributes
    ----------
    estimates : sequence of ChunkEstimate
        A row a chunk and metric, chunk by chunk.
    shifts : dict of str to ShiftReport
        By key of the chunk.
    metrics : tuple of str
        Names of the metrics.
    """

    estimates: tuple[ChunkEstimate, ...]
    shifts: dict[str, ShiftReport]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return tuple(dict.fromkeys(row.metric for row in self.estimates))

    def __repr__(self) -> str:
        alerts = sum(row.alert for row in self.estimates)
        return f"CBPEResult({len(self.shifts)} chunks, metrics {', '.join(self.metrics)}, {alerts} alerts)"

    def of(self, metric: str) -> list[ChunkEstimate]:
        """Return the rows of one metric, one a chunk; ValueError for a metric that was not estimated."""
        if metric not in self.metrics:
            raise ValueError(f"metric must be among {', '.join(self.metrics)}, but is {metric!r}")
        return [row for row in self.estimates if row.metric == metric]

    def records(self) -> list[dict[str, Any]]:
        """Return a dict a chunk and metric: its ChunkEstimate, and the ShiftReport of the chunk."""
        return [{**row._asdict(), **self.shifts[row.chunk]._asdict()} for row in self.estimates]

    def to_frame(self) -> Any:
        """Return the records as a pandas DataFrame (extra ``frame``), one row a chunk and metric."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame.from_records(self.records())

    def plot(self, *, metrics: Sequence[str] | None = None) -> "CBPEDisplay":
        """Draw estimates, intervals, realised values and alert limits of some metrics, by default of all.

        Raises
        ------
        ValueError, ImportError
            For a metric that was not estimated, and without matplotlib (extra ``plot``).
        """
        return CBPEDisplay({metric: self.of(metric) for metric in metrics or self.metrics}).plot()


@dataclass(repr=False, eq=False)
class CBPEDisplay:
    """A picture of estimates: one axes a metric.

    Parameters
    ----------
    series : dict of str to list of ChunkEstimate
        The chunks of every metric.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One a metric.
    figure_ : matplotlib Figure
        The figure.
    """

    series: dict[str, list[ChunkEstimate]]

    def plot(self) -> Self:
        """Draw, and return the display itself; ImportError without matplotlib (extra ``plot``)."""
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        n_axes = len(self.series)
        self.figure_, axes = pyplot.subplots(
            n_axes, sharex=True, squeeze=False, layout="constrained", figsize=(8.0, 1.5 + 2.0 * n_axes)
        )
        self.axes_ = axes[:, 0]
        for ax, (metric, rows) in zip(self.axes_, self.series.items()):
            _draw(ax, rows)
            ax.set_ylabel(metric)
        rows = next(iter(self.series.values()))
        step = max(1, len(rows) // 12)
        last = self.axes_[-1]
        last.set_xticks(range(0, len(rows), step), [row.chunk for row in rows[::step]], rotation=30, ha="right")
        self.axes_[0].legend(loc="best", fontsize="small")
        return self


def _draw(ax: Any, rows: list[ChunkEstimate]) -> None:
    """Draw one metric."""
    places = np.arange(len(rows))
    estimate, _, low, high, realised, *limits, alert = np.array([row[5:] for row in rows], dtype=float).T
    errors = np.abs([low - estimate, high - estimate])
    ax.errorbar(places, estimate, errors, fmt="o-", markersize=4, linewidth=1, capsize=2, label="estimate")
    if not np.isnan(realised).all():
        ax.plot(places, realised, "x", color="black", label="realised")
    for limit, label in zip(limits, ("alert limits", None)):
        if not np.isnan(limit).all():
            ax.plot(places, limit, color="tab:red", linestyle="--", linewidth=1, label=label)
    alerts = alert > 0
    if alerts.any():
        ax.plot(places[alerts], estimate[alerts], "D", color="tab:red", label="alert")
