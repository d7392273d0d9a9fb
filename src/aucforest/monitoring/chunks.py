"""Splitting of data into chunks by size, by number or by calendar period."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from aucforest.metrics.validation import are_missing, check_option
from aucforest.monitoring._rows import IntArray

# For each period: the unit of datetime64, units per period, and units from the start of a period to 1970-01-01.
_PERIODS = {"h": ("h", 1, 0), "D": ("D", 1, 0), "W": ("D", 7, 3), "M": ("M", 1, 0), "Q": ("M", 3, 0), "Y": ("Y", 1, 0)}


class Chunk(NamedTuple):
    """A chunk of samples that are evaluated together.

    Attributes
    ----------
    key : str
        The first and last row number as "[first:last]", or the period, such as "2023-01".
    start, end : int or str
        The first and last row number, or the first and last day (hour) of the period.
    rows : slice or ndarray
        The row numbers.
    is_full : bool
        False for a last chunk that is smaller than the others, and for a first or last period with fewer than half as
        many samples as the median period.
    """

    key: str
    start: int | str
    end: int | str
    rows: slice | IntArray
    is_full: bool


class Chunks:
    """Splitter of data into chunks; create one with `by_size`, `by_number` or `by_period`.

    Examples
    --------
    >>> from aucforest.monitoring import Chunks
    >>> [chunk.key for chunk in Chunks.by_size(10).split(25)]
    ['[0:9]', '[10:19]', '[20:24]']
    >>> [chunk.key for chunk in Chunks.by_number(4).split(25)]
    ['[0:5]', '[6:11]', '[12:17]', '[18:24]']
    >>> [chunk.key for chunk in Chunks.by_period(["2023-01-30", "2023-02-05", "2023-02-06"], "W").split(3)]
    ['2023-01-30/2023-02-05', '2023-02-06/2023-02-12']
    """

    def __init__(self, split: Callable[[int], list[Chunk]], *, has_timestamps: bool = False) -> None:
        self._split, self.has_timestamps = split, has_timestamps

    @classmethod
    def by_size(cls, size: int) -> "Chunks":
        """Split into chunks of `size` samples; the last one may be smaller.

        Raises a ValueError or TypeError unless `size` is a positive integer.
        """
        return cls(partial(_split_sizes, int(check_scalar(size, "size", Integral, min_val=1))))

    @classmethod
    def by_number(cls, number: int) -> "Chunks":
        """Split into `number` chunks, whose sizes differ by at most one sample.

        Raises a ValueError or TypeError unless `number` is a positive integer.
        """
        return cls(partial(_split_evenly, int(check_scalar(number, "number", Integral, min_val=1))))

    @classmethod
    def by_period(cls, timestamps: ArrayLike, period: Literal["h", "D", "W", "M", "Q", "Y"]) -> "Chunks":
        """Split by calendar period. Weeks start on Monday; periods without samples have no chunk.

        Parameters
        ----------
        timestamps : array-like of shape (n_samples,)
            The time of each sample, in any order: datetimes or ISO 8601 strings without a time zone.
        period : {"h", "D", "W", "M", "Q", "Y"}
            Hour, day, week, month, quarter or year.

        Raises
        ------
        ValueError
            If the period is unknown, or timestamps are missing, have a time zone, or are not dates.
        """
        check_option("period", period, tuple(_PERIODS))
        return cls(partial(_split_periods, _read_times(timestamps), period), has_timestamps=True)

    def split(self, n_rows: int) -> list[Chunk]:
        """Return the chunks of `n_rows` samples.

        Raises a ValueError if there are fewer samples than chunks, or not as many timestamps as samples.
        """
        return self._split(n_rows)


def _split_evenly(number: int, n_rows: int) -> list[Chunk]:
    if number > n_rows:
        raise ValueError(f"{n_rows} samples cannot be split into {number} chunks: use fewer chunks")
    return [_make_chunk(start, end) for start, end in pairwise([k * n_rows // number for k in range(number + 1)])]


def _split_sizes(size: int, n_rows: int) -> list[Chunk]:
    edges = [*range(0, n_rows, size), n_rows]
    return [_make_chunk(start, end, end - start >= size) for start, end in pairwise(edges)]


def _split_periods(timestamps: NDArray[np.datetime64], period: str, n_rows: int) -> list[Chunk]:
    if timestamps.size != n_rows:
        raise ValueError(f"timestamps has {timestamps.size} samples, but y_score has {n_rows}")
    unit, step, offset = _PERIODS[period]
    resolution = "datetime64[h]" if unit == "h" else "datetime64[D]"  # of `Chunk.start` and `Chunk.end`
    numbers = (timestamps.astype(f"datetime64[{unit}]").astype(np.int64) + offset) // step
    order = np.argsort(numbers, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(numbers[order])) + 1).tolist(), n_rows]
    least_size = 0.5 * float(np.median(np.diff(edges)))
    chunks = []
    for first, stop in pairwise(edges):
        starts = [(int(numbers[order[first]]) + k) * step - offset for k in (0, 1)]
        start, next_start = np.array(starts, dtype=f"datetime64[{unit}]")
        end = str(next_start.astype(resolution) - 1)
        key = str(start)
        if period == "W":
            key = f"{start}/{end}"
        elif period == "Q":
            year, month = key.split("-")
            key = f"{year}Q{(int(month) + 2) // 3}"
        is_full = (first > 0 and stop < n_rows) or stop - first >= least_size
        chunks.append(Chunk(key, str(start.astype(resolution)), end, order[first:stop], is_full))
    return chunks


def _read_times(timestamps: ArrayLike) -> NDArray[np.datetime64]:
    """Return validated timestamps with a resolution of seconds."""
    times = np.asarray(timestamps)
    if times.ndim != 1 or not times.size:
        raise ValueError(f"timestamps must have one dimension and samples, but has shape {times.shape}")
    if times.dtype.kind == "O":
        times = np.where(are_missing(times), np.datetime64("NaT"), times)
    if times.dtype.kind not in "MOSTU" or isinstance(times[0], Real):
        raise ValueError(f"timestamps must be dates, but the first is {times[0]}")
    if times.dtype.kind == "S":
        times = times.astype(np.str_)
    # numpy converts times with a time zone to UTC, and np.asarray of a polars Series drops the zone silently.
    has_zone = getattr(getattr(timestamps, "dtype", None), "time_zone", None) is not None
    if has_zone or (times.dtype.kind != "M" and any(map(_has_zone, set(times.tolist())))):
        raise ValueError("timestamps must not have a time zone: convert them to local time")
    try:
        times = times.astype("datetime64[s]")
    except (ValueError, TypeError) as error:
        value = next(value for value in times.tolist() if not _is_date(value))
        what = f"timestamps must be dates such as 2024-03-13, but one is {value!r}: convert them"
        raise ValueError(what) from error
    if np.isnat(times).any():
        raise ValueError(f"timestamps has {np.count_nonzero(np.isnat(times))} missing values")
    return times


def _is_date(value: Any) -> bool:
    """Return whether numpy can convert a value to a date."""
    try:
        np.array([value]).astype("datetime64[s]")
    except (ValueError, TypeError):
        return False
    return True


def _has_zone(time: Any) -> bool:
    """Return whether a date, or its text in ISO 8601 format, has a time zone."""
    if isinstance(time, str):
        with suppress(ValueError):
            time = datetime.fromisoformat(time.strip().upper())
    return getattr(time, "tzinfo", None) is not None


def _make_chunk(start: int, end: int, is_full: bool = True) -> Chunk:
    """Return the chunk of the rows from `start` to `end` - 1."""
    return Chunk(f"[{start}:{end - 1}]", start, end - 1, slice(start, end), is_full)
