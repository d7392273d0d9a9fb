"""Values of categories: text, numbers, booleans, dates and durations, converted to standard types of Python.

A date without a time of day equals its midnight. Dates with a time zone are converted to UTC. They differ from all
dates without a time zone. A time of day is the duration since midnight. Dates and durations are compared in
microseconds. Intervals and periods of pandas become the text that pandas writes to a CSV file.
"""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import is_missing

# The kinds of values, by their names in error messages.
NUMBER, TEXT, FLAG = "a number", "a string", "a boolean"
DATE, ZONED, DURATION = "a date", "a date with a time zone", "a duration"
_PLAIN_TYPES = {str, bool, int, float, type(None)}  # the types of values that need no conversion
# Near the ends of Python's calendar, the offset of a time zone is that of a date this much further inside.
_ZONE_MARGIN = timedelta(2)


def plain_values(values: list[Any]) -> list[Any]:
    """Return values as str, bool, int, float, datetime or timedelta, and missing ones as None or NaN.

    Raises TypeError for other values.
    """
    if set(map(type, values)) <= _PLAIN_TYPES:
        return values
    return [None if is_missing(value) else _plain(value) for value in values]


def _plain(value: Any) -> Any:
    """Return a value that is not missing as one of the types of `plain_values`."""
    if isinstance(value, str):
        return str.__str__(value)  # subclasses become str, too
    if isinstance(value, np.datetime64):
        moment = value.astype("M8[us]").item()  # an integer if it is beyond the ends of Python's calendar
        return moment if isinstance(moment, datetime) else datetime.min if moment < 0 else datetime.max
    if isinstance(value, np.timedelta64):
        return value.astype("m8[us]").item()
    if isinstance(value, timedelta):
        return timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, time):
        return since_midnight(value)
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return _plain(local_time(value, UTC)).replace(tzinfo=UTC)
        return datetime.combine(value.date(), value.time())
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real | Decimal):
        return int(value) if isinstance(value, Fraction | Decimal) and float(value).is_integer() else float(value)
    pandas: Any = nw.dependencies.get_pandas()
    if pandas is not None and isinstance(value, pandas.Interval | pandas.Period):
        return str(value)
    raise TypeError(f"{value!r} is none of text, numbers, booleans, dates and durations: convert it to text")


def since_midnight(value: time) -> timedelta:
    """Return a time of day as a duration."""
    return timedelta(0, (value.hour * 60 + value.minute) * 60 + value.second, value.microsecond)


def local_time(value: datetime, zone: tzinfo) -> datetime | np.datetime64:
    """Return a date with a time zone as local time in another zone, without the zone.

    If the local time is beyond the ends of Python's calendar, it is a datetime64.
    """
    if hasattr(value, "to_pydatetime"):  # a Timestamp of pandas, possibly with nanoseconds
        value = value.to_pydatetime(warn=False)
    try:
        return value.astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        inside = value + (_ZONE_MARGIN if value.year == 1 else -_ZONE_MARGIN)
        offset = inside.astimezone(zone).replace(tzinfo=None) - inside.replace(tzinfo=None)
        return np.datetime64(value.replace(tzinfo=None), "us") + np.timedelta64(offset)


def parse_dates(values: list[Any], categories: NDArray[Any]) -> list[Any]:
    """Return the values; if the categories are dates or durations, text in ISO 8601 is parsed as such."""
    if len(categories) == 0 or not isinstance(categories[0], datetime | timedelta):
        return values
    parse = datetime.fromisoformat if isinstance(categories[0], datetime) else time.fromisoformat
    return [_parsed(value, parse) if isinstance(value, str) else value for value in values]


def _parsed(text: str, parse: Any) -> Any:
    try:
        return _plain(parse(text.strip()))
    except ValueError:
        return text


def kind_of_value(value: Any) -> str:
    """Return the kind of a category, which is NUMBER for booleans. Values of different kinds are never equal."""
    if isinstance(value, datetime):
        return DATE if value.tzinfo is None else ZONED
    return DURATION if isinstance(value, timedelta) else TEXT if isinstance(value, str) else NUMBER


def readable(value: Any) -> Any:
    """Return a date (without the time of day at midnight) or a duration as text, other categories unchanged."""
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value) if isinstance(value, timedelta) else value
