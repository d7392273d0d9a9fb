"""What was estimated: a row a chunk and metric, as a table and as a picture."""

from collections.abc import Sequence
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


class CBPEResult:
    """Estimates of all chunks and metrics.

    Parameters
    ----------
    estimates : sequence of ChunkEstimate
        A row a chunk and metric, chunk by chunk.
    shifts : mapping of str to ShiftReport
        By key of the chunk.

    Attributes
    ----------
    estimates : tuple of ChunkEstimate
        As given.
    shifts : dict of str to ShiftReport
        As given.
    metrics : tuple of str
        Names of the metrics.
    """

    def __init__(self, estimates: Sequence[ChunkEstimate], shifts: dict[str, ShiftReport]) -> None:
        self.estimates = tuple(estimates)
        self.shifts = shifts
        self.metrics = tuple(dict.fromkeys(row.metric for row in self.estimates))

    def __repr__(self) -> str:
        alerts = sum(row.alert for row in self.estimates)
        return f"CBPEResult({len(self.shifts)} chunks, metrics {', '.join(self.metrics)}, {alerts} alerts)"

    def of(self, metric: str) -> list[ChunkEstimate]:
        """Return the rows of one metric.

        Parameters
        ----------
        metric : str
            Its name.

        Returns
        -------
        list of ChunkEstimate
            One a chunk.

        Raises
        ------
        ValueError
            For a metric that was not estimated.
        """
        if metric not in self.metrics:
            raise ValueError(f"metric must be among {', '.join(self.metrics)}, but is {metric!r}")
        return [row for row in self.estimates if row.metric == metric]

    def records(self) -> list[dict[str, Any]]:
        """Return a dict a chunk and metric, with the shift report of the chunk.

        Returns
        -------
        list of dict
            Keys are those of ChunkEstimate and ShiftReport.
        """
        return [{**row._asdict(), **self.shifts[row.chunk]._asdict()} for row in self.estimates]

    def to_frame(self) -> Any:
        """Return the records as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            A row a chunk and metric.

        Raises
        ------
        ImportError
            Without pandas.
        """
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame.from_records(self.records())

    def plot(self, *, metrics: Sequence[str] | None = None) -> "CBPEDisplay":
        """Draw estimates, intervals, realised values and alert limits.

        Parameters
        ----------
        metrics : sequence of str, optional
            Which metrics; by default all.

        Returns
        -------
        CBPEDisplay
            Drawn.

        Raises
        ------
        ValueError
            For a metric that was not estimated.
        ImportError
            Without matplotlib.
        """
        return CBPEDisplay({metric: self.of(metric) for metric in metrics or self.metrics}).plot()


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

    def __init__(self, series: dict[str, list[ChunkEstimate]]) -> None:
        self.series = series

    def plot(self) -> Self:
        """Draw.

        Returns
        -------
        CBPEDisplay
            Itself, with ``axes_`` and ``figure_``.

        Raises
        ------
        ImportError
            Without matplotlib.
        """
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
    table = {name: np.array([getattr(row, name) for row in rows], dtype=float) for name in ChunkEstimate._fields[5:]}
    estimate = table["estimate"]
    beyond = np.array([table["low"], table["high"]]) - estimate
    ax.errorbar(places, estimate, np.abs(beyond), fmt="o-", markersize=4, linewidth=1, capsize=2, label="estimate")
    if not np.isnan(table["realised"]).all():
        ax.plot(places, table["realised"], "x", color="black", label="realised")
    for name in ("lower_limit", "upper_limit"):
        if not np.isnan(table[name]).all():
            label = "alert limits" if name == "lower_limit" else None
            ax.plot(places, table[name], color="tab:red", linestyle="--", linewidth=1, label=label)
    alerts = table["alert"] > 0
    if alerts.any():
        ax.plot(places[alerts], estimate[alerts], "D", color="tab:red", label="alert")
