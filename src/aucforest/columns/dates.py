"""Columns of dates, times and durations, and the numeric features that are computed from them.

A column of dates becomes one or more features, its parts: the time in seconds since 1970-01-01, and calendar parts such
as the month (see `columns.expansion`). Durations and times of day become seconds. Values of all types are converted to
datetime64 or timedelta64 first, so that equal dates have equal features.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import Frame, Table, as_table, column_name, column_of
from aucforest.columns.values import local_time, since_midnight
from aucforest.metrics.validation import is_missing

SECONDS = ("seconds",)
_DEFAULT_PARTS = ("time", "month", "day of week")
_DAYS = ("Y", "M", "W", "D")  # units of datetime64 without a time of day
# The types of objects that are dates, and of those that are durations or times of day.
_DATES, _DURATIONS = (date, np.datetime64), (timedelta, time, np.timedelta64)
_OBJECT_TYPES = (nw.Object, nw.Unknown)  # columns of these types may contain dates
_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}


class DateColumn(NamedTuple):
    """The parts of a column of dates, times or durations that become features."""

    parts: tuple[str, ...]  # a subset of `PARTS` in order, or `SECONDS` for durations and times of day
    zone: str | None  # the time zone of the calendar parts; None for dates without a time zone


Dates = dict[int, DateColumn]  # by the index of the column


class _Kind(NamedTuple):
    """The kind of the values of a column of dates or durations."""

    type: str  # the name of their type in messages
    is_duration: bool  # also True for times of day
    has_clock: bool  # whether they are dates with a time of day
    zone: str | None  # the time zone of the dates, if they have one

    @property
    def known_zone(self) -> str | None:
        """The time zone of calendar parts: `zone` if it is in the time zone database, else UTC."""
        return self.zone if self.zone is None or is_zone(self.zone) else "UTC"


def _days(wall: NDArray[np.datetime64]) -> NDArray[np.int64]:
    return wall.astype("M8[D]").astype(np.int64)


# The calendar parts of dates in local time (`wall`). Those of NaT are arbitrary; `date_features` replaces them by NaN.
_CALENDAR: dict[str, Callable[[NDArray[np.datetime64]], NDArray[Any]]] = {
    "year": lambda wall: wall.astype("M8[Y]").astype(np.int64) + 1970,
    "month": lambda wall: wall.astype("M8[M]").astype(np.int64) % 12 + 1,
    "day": lambda wall: _days(wall) - _days(wall.astype("M8[M]")) + 1,
    "day of week": lambda wall: (_days(wall) + 3) % 7 + 1,
    "hour": lambda wall: in_seconds(wall - wall.astype("M8[D]")) / 3600.0,  # with minutes and seconds as a fraction
}
PARTS = ("time", *_CALENDAR)


def find_dates(table: Table | None, parts: str | Sequence[str] | None, categorical: Sequence[int] = ()) -> Dates:
    """Return the `DateColumn` of each non-categorical column of dates or durations, by the option `date_parts`."""
    dates: Dates = {}
    if table is None:
        return dates
    skipped = set(categorical)
    for feature, kind in _kinds(table):
        if feature in skipped:
            continue
        if parts is None:
            raise ValueError(
                f"X: {column_name(table, feature)} is not numeric but {kind.type}; encode dates and times as numbers"
            )
        if kind.is_duration:
            dates[feature] = DateColumn(SECONDS, None)
        else:
            default = (*_DEFAULT_PARTS, "hour") if kind.has_clock else _DEFAULT_PARTS
            chosen = default if isinstance(parts, str) else parts  # a string is "auto"
            dates[feature] = DateColumn(tuple(part for part in PARTS if part in chosen), kind.known_zone)
    return dates


def are_parts(parts: Sequence[Any]) -> bool:
    """Return whether names are valid `parts` of a `DateColumn`."""
    return tuple(parts) == SECONDS or (len(parts) > 0 and list(parts) == [part for part in PARTS if part in parts])


def table_of(X: Any) -> Table | None:
    """Return X as a table, or None if all columns are numeric, so that none can be dates or categories."""
    if hasattr(X, "columns"):
        # `dtypes` of pandas is faster than the schema of the table.
        types = getattr(X, "dtypes", ())
        return None if len(types) > 0 and all(getattr(type_, "kind", "O") in "fiu" for type_ in types) else as_table(X)
    try:
        matrix = np.asarray(X) if isinstance(X, list | tuple | np.ndarray) else None
    except ValueError:  # rows of different lengths are reported by later validation
        return None
    return matrix if matrix is not None and matrix.ndim == 2 and matrix.dtype.kind in "OMm" else None


def has_dates(table: Table) -> bool:
    """Return whether a table has a column of dates or durations."""
    return any(_kinds(table))


def check_same_kind(table: Table, expanded: Mapping[int, Any], categorical: Iterable[int]) -> None:
    """Raise ValueError if a column has dates now but had numbers in `fit`; `categorical` columns may have dates."""
    for feature, kind in _kinds(table):
        if not isinstance(expanded.get(feature), DateColumn) and feature not in categorical:
            raise ValueError(f"X: {column_name(table, feature)} holds dates ({kind.type}), but was numeric in fit")


def format_time(seconds: float) -> str:
    """Return the date at a time in seconds since 1970-01-01 as text; see `format_moment`."""
    return format_moment(np.datetime64(int(np.floor(seconds)), "s")) if abs(seconds) < 2**53 else f"{seconds:g}"


def format_moment(moment: np.datetime64) -> str:
    """Return a date as text, without the time of day at midnight."""
    second, day = moment.astype("M8[s]"), moment.astype("M8[D]")
    return str(day if day == second else second).replace("T", " ")


def format_duration(seconds: float) -> str:
    """Return a duration as text, such as "2 days, 3:00:00"."""
    return str(timedelta(seconds=seconds)) if abs(seconds) < 86400e9 else f"{seconds:g} s"


def as_datetimes(values: Any) -> NDArray[Any] | None:
    """Return dates as datetime64 in local time, durations as timedelta64, and None for other columns."""
    kind = _kind_of(values)
    if kind is None:
        return None
    return _read_values(values, kind.is_duration, kind.known_zone, "the column")[1]


def in_seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return dates as seconds since 1970-01-01, or durations as seconds; equal values in any unit get equal seconds."""
    unit = np.datetime_data(values.dtype)[0]
    unit = unit if unit in _UNITS_PER_SECOND else "s"
    # The type may have a number before its unit, such as [25us]. `astype` removes the number.
    counts = values.astype(f"{values.dtype.kind}8[{unit}]").astype(np.int64)
    per_second = _UNITS_PER_SECOND[unit]
    whole, rest = np.divmod(np.abs(counts), per_second)
    seconds: NDArray[np.float64] = np.sign(counts) * (whole + rest / per_second)
    return np.where(np.isnat(values), np.nan, seconds)


def date_features(table: Table, feature: int, column: DateColumn) -> list[NDArray[np.float64]]:
    """Return the features of a column of dates, NaN for missing dates; ValueError if it had another kind in `fit`."""
    instants, wall = _read(table, feature, column)
    missing = np.isnat(instants)
    return [
        in_seconds(instants) if part in ("time", *SECONDS) else np.where(missing, np.nan, _CALENDAR[part](wall))
        for part in column.parts
    ]


def _read(table: Table, feature: int, column: DateColumn) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the result of `_read_values`; ValueError if the column does not have the kind that it had in `fit`."""
    name, values = column_name(table, feature), column_of(table, feature)
    kind, is_duration = _kind_of(values), column.parts == SECONDS
    before, now = ("durations", "dates") if is_duration else ("dates", "durations")
    if kind is None:
        array = values.to_numpy() if isinstance(values, nw.Series) else values
        if array.dtype.kind in "fO" and all(map(is_missing, array.tolist())):
            missing = np.full(len(values), "NaT", dtype="m8[s]" if is_duration else "M8[s]")
            return missing, missing
        type_ = values.dtype if isinstance(values, nw.Series) or values.dtype != object else "other values"
        raise ValueError(f"X: {name} had {before} in fit, but holds {type_} now: pass {before}, not numbers or text")
    if kind.is_duration != is_duration:
        raise ValueError(f"X: {name} holds {now}, but had {before} in fit")
    if (kind.zone is None) != (column.zone is None):
        zone = "no time zone" if kind.zone is None else f"the time zone {kind.zone}"
        raise ValueError(f"X: {name} has {zone}, but had {column.zone or 'none'} in fit: convert it, or set its zone")
    return _read_values(values, is_duration, column.zone, name)


def _read_values(values: Any, is_duration: bool, zone: str | None, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the dates of a column in UTC and in the local time of a zone, or its durations twice."""
    if isinstance(values, nw.Series):
        if zone is not None and isinstance(values.dtype, nw.Datetime):
            utc, wall = (values.dt.convert_time_zone(clock).dt.replace_time_zone(None) for clock in ("UTC", zone))
            return utc.to_numpy(), wall.to_numpy()
        values = (values.cast(nw.Datetime("us")) if values.dtype == nw.Date else values).to_numpy()
    if values.dtype.kind in "Mm":
        return values, values
    objects = values.tolist()
    present = [value for value in objects if not is_missing(value)]
    types = _DURATIONS if is_duration else _DATES
    other = next((value for value in present if not isinstance(value, types)), None)
    if other is not None:
        raise ValueError(f"X: {name} holds {'durations' if is_duration else 'dates'}, but also {other!r}")
    if any((_zone(value) is None) != (zone is None) for value in present):
        raise ValueError(f"X: {name} holds dates with and without a time zone: use one of the two")

    def as_array(convert: Callable[[Any], Any]) -> NDArray[Any]:
        converted = [None if is_missing(value) else convert(value) for value in objects]
        return np.array(converted, dtype="m8[us]" if is_duration else "M8[us]")

    if zone is not None:
        return as_array(partial(local_time, zone=UTC)), as_array(partial(local_time, zone=ZoneInfo(zone)))
    plain = as_array(lambda value: since_midnight(value) if isinstance(value, time) else value)
    return plain, plain


def _kinds(table: Table) -> Iterator[tuple[int, _Kind]]:
    """Yield the index and the kind of each column of dates or durations."""
    features: Iterable[int] = ()
    if isinstance(table, Frame):
        types = table.schema.values()
        features = [j for j, type_ in enumerate(types) if type_.is_temporal() or type_ in _OBJECT_TYPES]
    elif table.dtype.kind in "OMm":
        features = range(table.shape[1])
    for feature in features:
        kind = _kind_of(column_of(table, feature))
        if kind is not None:
            yield feature, kind


def _kind_of(values: Any) -> _Kind | None:
    dtype: Any = values.dtype
    if isinstance(values, nw.Series) and dtype not in _OBJECT_TYPES:
        native = values.to_native()
        type_ = str(getattr(native, "dtype", getattr(native, "type", dtype)))
        is_duration, zone = dtype in (nw.Duration, nw.Time), getattr(dtype, "time_zone", None)
        return _Kind(type_, is_duration, dtype == nw.Datetime, zone) if dtype.is_temporal() else None
    if isinstance(values, nw.Series):
        values = values.to_numpy()  # Arrow's date64 is unknown to narwhals
        if values.dtype.kind == "M":
            return _Kind("date64", is_duration=False, has_clock=False, zone=None)
    if values.dtype.kind in "Mm":
        has_clock = np.datetime_data(values.dtype)[0] not in _DAYS
        return _Kind(str(values.dtype), values.dtype.kind == "m", has_clock, zone=None)
    return _kind_of_objects(values) if values.dtype == object else None


def _kind_of_objects(values: NDArray[Any]) -> _Kind | None:
    """Return the kind of a column of objects by its first value that is not missing; None for other objects."""
    first = next((value for value in values.flat if not is_missing(value)), None)
    if isinstance(first, _DURATIONS):
        return _Kind(type(first).__name__, is_duration=True, has_clock=False, zone=None)
    if not isinstance(first, _DATES):
        return None
    times = [value for value in values.tolist() if isinstance(value, datetime) and not is_missing(value)]
    # Dates of several time zones are read in UTC. If only some have a zone, `_read_values` raises ValueError.
    zones = {_zone(value) for value in times} or {None}
    zone = zones.pop() if len(zones) == 1 else "UTC" if None not in zones else _zone(first)
    has_clock = len(times) > 0 or isinstance(first, np.datetime64)
    return _Kind(type(first).__name__, is_duration=False, has_clock=has_clock, zone=zone)


def _zone(value: Any) -> str | None:
    zone = getattr(value, "tzinfo", None)
    return None if zone is None else str(zone)


def is_zone(zone: str) -> bool:
    """Return whether a name is in the time zone database. Offsets such as +02:00 are not, and polars rejects them."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True
