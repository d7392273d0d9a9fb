"""Dates as people write them, in patterns of the database engine and the directives of strptime."""

import re
from collections.abc import Iterable, Mapping

# Dates that begin with the year need no format. The pattern also finds what is no date, such as 2024-13-01, but nothing
# behind the time that the engine would leave out, such as PM.
ISO = (
    r"^\s*[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}([ T]\s*([01]?[0-9]|2[0-3]):[0-9]{1,2}(:[0-9.]*)?"
    r"\s*([-+][0-9:]+|Z|UTC)?)?\s*$"
)
OFFSET, UTC = r":[0-9]{2}.*([-+][0-9]{2}(:?[0-9]{2})?|Z)\s*$", r"([-+]00(:?00)?|Z)\s*$"
# What databases and spreadsheets write where there is no date.
ZEROS = r"^\s*(0{1,4}[-./]0{1,2}[-./]0{1,4}|1900-01-00)([T ]00:00(:00(\.0+)?)?)?\s*$"
# All dates match it. Numbers, and words without digits, do not.
MAY_BE = r"^\s*([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}|[0-9]{1,2}[-./ ]+[A-Za-z]{3,9}[-., /]|[A-Za-z]{3,9}\.? [0-9])"
TIME_OF_DAY = r"^\s*([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?\s*$"
# Days and a clock as pandas, Python and DuckDB write them.
DURATION = r"^\s*([-+]?[0-9]{1,6} days?(,? |\s*$))?([-+]?[0-9]{1,4}:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?)?\s*$"

# With points the day is first; beside the name of a month its place does not matter.
_MONTHS = ("%b", "%B")
FORMATS = (
    "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%d/%m/%y", "%m/%d/%Y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y",
    *(f"%d{mark}{month}{mark}%{year}" for mark in "- /." for month in _MONTHS for year in "Yy"),
    *(form.format(month) for month in _MONTHS for form in ("%d. {} %Y", "{} %d, %Y", "{} %d %Y")),
)  # fmt: skip
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")


def with_clocks(day: str) -> list[str]:
    """Return a format of days, without and with a time of day behind it."""
    return [day, *(f"{day}{gap}{clock}" for gap in (" ", "T", ", ") for clock in _CLOCKS)]


_DIRECTIVES = {
    "%d": "[0-9]{1,2}",
    "%m": "[0-9]{1,2}",
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%b": "[A-Za-z]{3}",
    "%B": "[A-Za-z]{3,9}",
}


def pattern_of(day: str) -> str | None:
    """Return the pattern of dates in a format of days, or None if it has other directives.

    The engine would take a year of any number of digits.
    """
    parts = [part for part in re.split("(%.)", day) if part]
    if any(part.startswith("%") and part not in _DIRECTIVES for part in parts):
        return None
    return rf"^\s*{''.join(_DIRECTIVES.get(part) or re.escape(part) for part in parts)}([^0-9]|$)"


_PATTERNS = {day: re.compile(pattern) for day in FORMATS if (pattern := pattern_of(day)) is not None}


def formats_of(dates: Iterable[str]) -> list[str]:
    """Return the formats of days that some of the dates may have."""
    dates = {re.sub(r"\d", "0", date.strip()) for date in dates}
    return [day for day, pattern in _PATTERNS.items() if any(pattern.match(date) for date in dates)]


def best_formats(counts: Mapping[str, int]) -> list[str]:
    """Return the formats by which most texts are dates; several if the day may be the month."""
    best = [day for day, n in counts.items() if n == max(counts.values())]
    by_order = {day.find("%d") < day.find("%m") if "%m" in day else None: day for day in reversed(best)}
    return list(by_order.values())
