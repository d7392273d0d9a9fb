"""Dates and durations in text that Arrow does not read by itself: months by name, days and clocks, dates of zeros."""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.texts import StrayText

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_CLOCK = r"(?:(?:T| |, ?)(?P<clock>\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?$"
# The order of day and month does not matter where the month is a name.
_WITH_NAMES = (
    rf"^(?P<day>\d{{1,2}})[-./ ]+(?P<month>[A-Za-z]{{3,9}})[-., /]+(?P<year>\d{{4}}|\d{{2}}){_CLOCK}",
    rf"^(?P<month>[A-Za-z]{{3,9}})\.? (?P<day>\d{{1,2}}),? (?P<year>\d{{4}}){_CLOCK}",
)
# Years of two digits from this one on are of the last century, as in POSIX.
_LAST_CENTURY = "69"
# What databases and spreadsheets write where there is no date.
_ZEROS = r"^(0{1,4}[-./]0{1,2}[-./]0{1,4}|1900-01-00)([T ]00:00(:00(\.0+)?)?)?$"
# Days and a clock as pandas, Python and DuckDB write them. Without seconds a clock is a time of day.
_DURATION = (
    r"^(?:(?P<days>[-+]?\d{1,6}) days?(?:,? |$))?"
    r"(?:(?P<sign>[-+]?)(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)(?:\.(?P<fraction>\d{1,9}))?)?$"
)
# All of these forms match it, while numbers, and words without digits, do not.
_MAY_BE = r"\d[-/.]\d+[-/.]\d|\d:\d|\d[^\d]*[A-Za-z]{3}|[A-Za-z]{3}[^\d]*\d"
_TIME_OF_DAY = r"^([01]\d|2[0-3]):[0-5]\d$"
_OFFSET, _NO_OFFSET = r":\d\d.*[-+]\d\d(:?\d\d)?$", r"[-+]00(:?00)?$"
_SHORT_YEAR = r"^\d{1,2}[-./ ]+[A-Za-z]{3,9}[-., /]+\d{2}(\D|$)"

# What a note says on the dates of a column, by the pattern of values and that of exceptions.
_REMARKS = {
    (_OFFSET, _NO_OFFSET): "times have an offset, but no time zone: month, day of week and hour are those of UTC",
    (_SHORT_YEAR, r"^$"): "years of two digits are read as 1969 to 2068: write them with four if they are others",
}


class DateTexts:
    """Text of a column of dates: its `zeros`, which are missing unless stray text is text, and remarks on it."""

    def __init__(self, csv_format: CsvFormat = DEFAULT_FORMAT) -> None:
        self.csv_format = csv_format
        self.zeros = StrayText(kind="date")
        self.remarks: dict[str, None] = {}

    def add(self, values: Any) -> Any:
        """Add values, and return them with null in place of zeros and with numbers in place of the names of months."""
        values = pc.utf8_trim_whitespace(values)
        for (pattern, exception), remark in _REMARKS.items():
            matches = (pc.match_substring_regex(values, regex) for regex in (pattern, exception))
            if pc.any(pc.and_not(*matches)).as_py():
                self.remarks[remark] = None
        if self.csv_format.stray_text == "number":
            values = self._without_zeros(values)
        # A format with names of months has the order of day and year.
        has_names = re.search("%[bBh]", self.csv_format.date_format or "") is not None
        return values if has_names else with_months_as_numbers(values)

    def _without_zeros(self, values: Any) -> Any:
        """Count zeros, and return values with null in place of them."""
        is_zero = pc.match_substring_regex(values, _ZEROS)
        self.zeros.n_values += len(values) - values.null_count
        if n_zeros := pc.sum(is_zero).as_py() or 0:
            self.zeros.add_stray(pc.unique(values.filter(is_zero)).to_pylist(), n_zeros)
            return pc.if_else(is_zero, pa.scalar(None, values.type), values)
        return values


def may_be_dates_or_durations(values: Any) -> bool:
    """Return False for most text that is none, at less cost than trying to read it."""
    return bool(pc.all(pc.match_substring_regex(values, _MAY_BE)).as_py())


def with_months_as_numbers(values: Any) -> Any:
    """Return text in which dates with the name of a month, such as 5-Jan-23 or Jan 5, 2023, are in ISO 8601."""
    if not pc.any(pc.match_substring_regex(values, "[A-Za-z]{3}")).as_py():
        return values
    for pattern in _WITH_NAMES:
        parts = pc.extract_regex(values, pattern)
        day, name, year, clock = (pc.struct_field(parts, part) for part in ("day", "month", "year", "clock"))
        names = pa.array([*_MONTHS, *_NAMES])
        place = pc.index_in(pc.utf8_lower(name), names)
        month = pc.take(pa.array([f"{i % 12 + 1:02}" for i in range(len(names))]), place)
        century = pc.if_else(pc.less(year, _LAST_CENTURY), "20", "19")
        year = pc.if_else(pc.equal(pc.utf8_length(year), 2), pc.binary_join_element_wise(century, year, ""), year)
        date = pc.binary_join_element_wise(year, month, pc.utf8_lpad(day, 2, "0"), "-")
        values = pc.coalesce(pc.utf8_trim(pc.binary_join_element_wise(date, clock, " "), " "), values)
    return values


def parse_durations(values: Any) -> Any:
    """Return text as durations in microseconds; raise ArrowInvalid if it is none."""
    is_time_of_day = pc.match_substring_regex(values, _TIME_OF_DAY)
    values = pc.if_else(is_time_of_day, pc.binary_join_element_wise(values, "00", ":"), values)
    parts = pc.extract_regex(values, _DURATION)
    if parts.null_count > values.null_count or pc.any(pc.equal(values, "")).as_py():
        raise pa.ArrowInvalid("a value is no duration")

    def number(name: str) -> Any:
        text = pc.struct_field(parts, name)
        return pc.if_else(pc.equal(text, ""), "0", text).cast(pa.int64())

    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.struct_field(parts, "fraction"), 6, "0"), 0, 6)
    clock = fraction.cast(pa.int64())
    for name, ticks in (("hours", 3_600_000_000), ("minutes", 60_000_000), ("seconds", 1_000_000)):
        clock = pc.add(clock, pc.multiply(number(name), ticks))
    clock = pc.if_else(pc.equal(pc.struct_field(parts, "sign"), "-"), pc.negate(clock), clock)
    return pc.add(clock, pc.multiply(number("days"), 86_400_000_000)).cast(pa.duration("us"))
