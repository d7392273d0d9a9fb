"""Numbers and dates as people write them: decimal commas, marks between thousands, units, dates in any order.

The patterns match the same text in `re` and in the database engine, so that the same rules hold in memory and in files.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

# Stray text in a column of numbers or dates becomes missing if less than this proportion of the values is stray.
MOST_STRAY = 0.1
# The whitespace that `\s` matches in the engine; in `re`, `\s` also matches other characters.
_WHITESPACE = r"[ \t\n\f\r]*"
# Numbers as Python writes them.
PLAIN = rf"^{_WHITESPACE}[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(?i:inf|infinity|nan)){_WHITESPACE}$"
# Characters by kind: hyphens, dashes and minus signs; spaces; invisible marks, such as those of direction; currencies.
MINUSES = "\u2010-\u2013\u2212\ufe63\uff0d"
_EM_DASH = "\u2014"
SPACE, _NO_WIDTH = " \u00a0\u2007\u2009\u202f\u3000", "\u200b\u200e\u200f\ufeff"
SYMBOLS = "€$£¥￥₹₩₽₺¢₱฿₦₫₪₴円元원"
_SYMBOL = f"[A-Z]{{0,2}}[{SYMBOLS}]"
ABBREVIATIONS = "(?:Rs|[Kk]r|Rp|Kč|руб|S?Fr)"
CURRENCY = rf"(?:EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|BRL|(?:Rs|[Kk]r|Rp|Kč|руб)\.?|S?Fr\.|{_SYMBOL})"
# Currencies that are also the beginnings of codes such as THB-1, so that a space must follow.
_RARE_CURRENCY = "(?:MXN|CZK|HUF|ZAR|KRW|SGD|HKD|TWD|NZD|THB|IDR|MYR|AED|RUB|UAH)"
# What may stand before and after a number.
EDGE = rf"[ \t\n\f\r{SPACE}{_NO_WIDTH}]*"
_UNIT = "[A-Za-zµ°º\u00c0-\u024f\u0370-\u04ff]{1,12}[23²³]?"
# Digits in groups of three.
_GROUPED = rf"[1-9][0-9]{{0,2}}(?:['’{SPACE}][0-9]{{3}})+"
# A factor and a unit, which may follow the digits.
_SUFFIX = rf"[kKMB]?[{SPACE}]?(?:[%‰]|{CURRENCY}|{_UNIT}(?:/{_UNIT})?)?"
# Patterns of digits by the decimal mark. Commas may also separate digits in the Indian way, as in 12,34,567.
_DIGITS = {
    ".": rf"(?:(?:[0-9]+|{_GROUPED}|[1-9][0-9]{{0,2}}(?:,[0-9]{{2,3}})*,[0-9]{{3}})(?:\.[0-9]*)?|\.[0-9]+)",
    ",": rf"(?:(?:[0-9]+|{_GROUPED}|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+)(?:,[0-9]+)?|,[0-9]+)",
}


def _pattern(decimal: str) -> str:
    """Return the pattern of numbers with this decimal mark. A sign may be at either end; parentheses mean a minus."""
    number = rf"{_DIGITS[decimal]}(?:[eE][-+]?[0-9]+)?{_SUFFIX}"
    money, sign = rf"(?:{CURRENCY}[{SPACE}]?|{_RARE_CURRENCY}[{SPACE}])?", f"[-+{MINUSES}]"
    sign_first, money_first = rf"(?:{sign}[{SPACE}]?)?{money}{number}", rf"{CURRENCY}[{SPACE}]?{sign}{number}"
    # Numbers with dashes in place of cents, such as 15.-, 15.-- and 15.—.
    whole = rf"(?:[0-9]+|{_GROUPED}|[1-9][0-9]{{0,2}}(?:[{'.' if decimal == ',' else ','}][0-9]{{3}})+)"
    no_cents = rf"(?:{sign}[{SPACE}]?)?{money}{whole}[{decimal}][-{_EM_DASH}{MINUSES}]{{1,2}}(?:[{SPACE}]?{CURRENCY})?"
    sign_last = rf"{money}{number}[{SPACE}]?[-{MINUSES}]"
    in_parentheses = rf"(?:{_SYMBOL}[{SPACE}]?)?\({money}{number}\)"
    # Zeros in the accounting formats of spreadsheets.
    zero = rf"{CURRENCY}[{SPACE}]*[-{MINUSES}]|[-{MINUSES}][{SPACE}]+{CURRENCY}"
    return rf"^{EDGE}(?:{sign_first}|{money_first}|{sign_last}|{no_cents}|{in_parentheses}|{zero}){EDGE}$"


PATTERNS = {decimal: _pattern(decimal) for decimal in _DIGITS}
# Patterns of a minus sign (unlike the dashes in 15.- and 15.--), of digits with the marks among them, of a factor after
# the digits, and of everything that is not a unit.
MINUS = rf"^[^0-9]*[-({MINUSES}]|[^-.,{MINUSES}][-{MINUSES}]{EDGE}$"
DIGITS = rf"[.,]?[0-9](?:[0-9.,'’{SPACE}]*[0-9])?(?:[eE][-+]?[0-9]+)?"
# The point in Rs.500 belongs to the abbreviation, so points and commas after its last letter are no marks of numbers.
ABBREVIATED, MARK = rf"{ABBREVIATIONS}\.", "(^|[^rspб])[.,]"
FACTOR = r"[0-9][.,]?([kKMB])(?:[^A-Za-z]|$)"
FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
NO_UNIT = rf"[0-9][eE][-+]?[0-9]|[0-9.][kKMB](?:[^A-Za-z]|$)|[-+()0-9.,'’\t\n\f\r{_EM_DASH}{SPACE}{_NO_WIDTH}{MINUSES}]"

# Units that change the number, so that numbers without them cannot be in the same unit.
_FACTOR_WORDS = (
    "mio|mrd|mld|tsd|mln|mn|bn|bln|tn|mill?|(m|b|tr)ill?i(ard|on)(en|s)?|thousands?|lakhs?|lacs?|crores?|cr|dr"
    "|млн|млрд|тыс"
)

_REGEXES = {decimal: re.compile(pattern) for decimal, pattern in PATTERNS.items()}
_NO_UNIT, _FACTOR, _MARK = re.compile(NO_UNIT), re.compile(FACTOR), re.compile(MARK)


class Readings(NamedTuple):
    """Counts of the values of a text column that are numbers with a decimal point, or with a decimal comma.

    `n_both` values are numbers with either mark. Of these, `n_ambiguous` have a point or comma among their digits, so
    that the number depends on the mark. `n_factors` values have a factor such as K.
    """

    n_values: int = 0
    n_point: int = 0
    n_comma: int = 0
    n_both: int = 0
    n_ambiguous: int = 0
    n_factors: int = 0
    units: Sequence[str] = ()

    @property
    def has_consistent_unit(self) -> bool:
        """Whether the numbers have one unit or none. A capital letter is no unit, as 12A is probably a code.

        If some numbers have no unit, a word is probably another factor if some have a factor such as M, or if it is one
        of `_FACTOR_WORDS`, and DR and CR may be signs.
        """
        units = sorted(set(self.units) - {""})
        is_word = len(units) == 1 and units[0].isalpha() and re.fullmatch(CURRENCY, units[0]) is None
        if is_word and "" in self.units and (self.n_factors > 0 or re.fullmatch(_FACTOR_WORDS, units[0].lower())):
            return False
        return not units or (len(units) == 1 and re.fullmatch("[A-Z\u0410-\u042f]", units[0]) is None)

    def n_with(self, decimal: str) -> int:
        """Return the number of values that are numbers with the given decimal mark."""
        return self.n_point if decimal == "." else self.n_comma

    @property
    def required(self) -> str | None:
        """The decimal mark that at least one value requires and no value contradicts, or None."""
        only_point, only_comma = self.n_point - self.n_both, self.n_comma - self.n_both
        return None if (only_point > 0) == (only_comma > 0) else "." if only_point > 0 else ","

    def decimal(self, most_stray: float, given: str | None = None) -> str | None:
        """Return the decimal mark with which all values, except for a proportion below `most_stray`, are numbers.

        If both marks fit but give different numbers, return `given`, or "" if it is None. Return None if no mark fits,
        if values require different marks, or if units differ.
        """
        marks = [mark for mark in PATTERNS if is_few(self.n_values - self.n_with(mark), self.n_values, most_stray)]
        if not marks or not self.has_consistent_unit:
            return None
        if len(marks) == 1 or self.required:
            return self.required or marks[0]
        if self.n_point > self.n_both:  # some values require a point and others a comma
            return None
        return "." if self.n_ambiguous == 0 else given or ""


def is_few(n_stray: int, n_values: int, most_stray: float) -> bool:
    """Return whether the proportion of stray values is 0 or less than `most_stray`."""
    return n_stray == 0 or n_stray < most_stray * n_values


def count_readings(values: Iterable[str], counts: Iterable[int]) -> Readings:
    """Return the `Readings` of a column from its distinct values and their counts."""
    texts, weights = list(values), np.fromiter(counts, dtype=np.int64)
    is_point, is_comma, has_mark, has_factor = (
        np.array([pattern.search(text) is not None for text in texts], dtype=np.bool_)
        for pattern in (*_REGEXES.values(), _MARK, _FACTOR)
    )
    is_both = is_point & is_comma
    n_point, n_comma, n_both, n_ambiguous, n_factors = (
        int(weights @ rows) for rows in (is_point, is_comma, is_both, is_both & has_mark, has_factor)
    )
    units = dict.fromkeys(_NO_UNIT.sub("", texts[row]) for row in np.flatnonzero(is_point | is_comma))
    return Readings(int(weights.sum()), n_point, n_comma, n_both, n_ambiguous, n_factors, list(units))


def is_number(text: str) -> bool:
    """Return whether a text is a number with a decimal point or a decimal comma."""
    return any(pattern.match(text) for pattern in _REGEXES.values())


def as_number(text: str, decimal: str) -> str:
    """Return a number as Python writes it, without its unit, from text with the given decimal mark."""
    digits, factor = re.search(DIGITS, re.sub(ABBREVIATED, "", text)), _FACTOR.search(text)
    if digits is None:
        return "0"
    kept = re.sub(rf"[^-+0-9eE{decimal}]", "", digits[0]).replace(",", ".")
    kept = f"{float(kept) * FACTORS[factor[1]]:.15g}" if factor else kept
    return f"-{kept}" if re.search(MINUS, text) else kept


# Dates that begin with the year need no format. The pattern also matches invalid dates such as 2024-13-01. It does not
# allow PM or other text after the time, which the engine would ignore. Seconds may have a decimal comma, as in logs.
ISO_DATE = (
    r"^\s*[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}([ T]\s*([01]?[0-9]|2[0-3]):[0-9]{1,2}(:[0-9.,]*)?"
    r"\s*([-+][0-9:]+|Z|UTC)?)?\s*$"
)
OFFSET, UTC = r":[0-9]{2}.*([-+][0-9]{2}(:?[0-9]{2})?|Z)\s*$", r"([-+]00(:?00)?|Z)\s*$"
# The zeros that databases and spreadsheets write for a missing date.
ZEROS = r"^\s*(0{8}|00:00:00|(0{1,4}[-./]0{1,2}[-./]0{1,4}|1900-01-00)([T ]00:00(:00(\.0+)?)?)?)\s*$"
# A day of the week before a date with the name of its month.
WEEKDAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}[.,]? +"
# The first letters of the names of months.
MONTH = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
# All dates match this pattern. Numbers, and words without digits, do not.
DATE_LIKE = (
    rf"^\s*(?:{WEEKDAY})?"
    r"([0-9]{1,4}([-/.]|\. |年)[0-9]{1,2}([-/.]|\. |月)[0-9]{1,4}"
    r"|[0-9]{1,2}[-./ ]+[A-Za-z]{3,9}[-., /]|[A-Za-z]{3,9}\.? +[0-9]|[0-9]{4}[- ][A-Za-z]{3}[- ][0-9]"
    rf"|[0-9]{{1,2}}[A-Za-z]{{3}}[0-9]{{4}}|[0-9]{{2}}{MONTH}[0-9]{{2}}"
    rf"|([0-9]{{4}}[-/][0-9]{{2}}|[0-9]{{2}}/[0-9]{{4}}|[A-Za-z]{{3,9}}-[0-9]{{4}}|{MONTH}[0-9]{{4}})\s*$)"
)
TIME_OF_DAY = r"^\s*([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?\s*$"
TWELVE_HOURS = rf"^\s*(0?[1-9]|1[0-2]):[0-5][0-9](:[0-5][0-9])?[{SPACE}]?(?i:[AP]M)\s*$"
ISO_DURATION = r"^\s*[-+]?P([0-9]{1,6}D)?(T([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,12}(\.[0-9]{1,9})?S)?)?\s*$"
# Days and a time as pandas, Python and DuckDB write them.
DURATION = r"^\s*([-+]?[0-9]{1,6} days?(,? |\s*$))?([-+]?[0-9]{1,4}:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?)?\s*$"

# Formats with points that end with the year have the day first. With the name of a month, either order is possible.
_MONTHS, YEAR_FIRST = ("%b", "%B"), "%y/%m/%d"
DATE_FORMATS = (
    "%Y.%m.%d", "%Y-%m-%d", "%Y/%m/%d", "%Y. %m. %d.", "%Y年%m月%d日", "%d. %m. %Y",
    "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%d/%m/%y", "%m/%d/%Y", "%m/%d/%y",
    YEAR_FIRST, "%d-%m-%Y", "%m-%d-%Y", "%Y-%b-%d", "%Y %b %d", "%d%b%Y", "%d%b%y",
    *(f"%d{mark}{month}{mark}%{year}" for mark in "- /." for month in _MONTHS for year in "Yy"),
    *(form.format(month) for month in _MONTHS for form in ("%d. {} %Y", "{} %d, %Y", "{} %d %Y", "{}. %d, %Y")),
    # Months without a day are dates of their first day.
    "%Y-%m", "%Y/%m", "%m/%Y", "%b%Y", *(f"{month}{mark}%Y" for month in _MONTHS for mark in " -"),
)  # fmt: skip
_CLOCKS = (
    "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p", "%H.%M", "%H.%M.%S",
    "%I.%M.%S %p", "%I.%M.%S.%f %p",
)  # fmt: skip


def with_clocks(date_format: str) -> list[str]:
    """Return a date format, and the formats that have a time of day after it."""
    return [date_format, *(f"{date_format}{gap}{clock}" for gap in (" ", "T", ", ", ":") for clock in _CLOCKS)]


# The patterns of directives of strptime.
_DIRECTIVES = {
    "%d": "[0-9]{1,2}", "%m": "[0-9]{1,2}", "%Y": "[0-9]{4}", "%y": "[0-9]{2}", "%b": "(?:[A-Za-z]{3}|[Ss]ept|SEPT)",
    "%B": "[A-Za-z]{3,9}",
}  # fmt: skip


def date_pattern(date_format: str) -> str | None:
    """Return the pattern of dates in a format, or None if the format has directives other than `_DIRECTIVES`.

    The first group is the date, without a day of the week before it or a time of day after it. Years have two or four
    digits, as the format says; the engine would accept any number. Some formats would fit codes and quarters, such as
    4711-03, 12DEC1001, 3DEC10 and 2020-1: in these, years are from 1900 to 2099, and months and days have two digits.
    """
    parts = [part for part in re.split("(%.)", date_format) if part]
    if any(part.startswith("%") and part not in _DIRECTIVES for part in parts):
        return None
    may_be_code = "%d" not in date_format or date_format == "%d%b%Y"
    directives = _DIRECTIVES | ({"%m": "[0-9]{2}", "%Y": "(19|20)[0-9]{2}"} if may_be_code else {})
    directives |= {"%d": "[0-9]{2}"} if date_format == "%d%b%y" else {}
    pattern = "".join(directives.get(part) or re.escape(part) for part in parts)
    weekday = f"(?:{WEEKDAY})?" if has_month_name(date_format) else ""
    return rf"^\s*{weekday}({pattern.replace(re.escape(' '), ' +')})([^0-9]|$)"


def has_month_name(date_format: str) -> bool:
    """Return whether a date format has the name of the month."""
    return "%b" in date_format or "%B" in date_format


_DATE_PATTERNS = {form: re.compile(pattern) for form in DATE_FORMATS if (pattern := date_pattern(form)) is not None}


def reading_advice(text: str, kind: str, unit: str | None = None) -> str:
    """Return how to read text that is not of the kind of its column, or ""; `unit` is that of the column in fit."""
    if kind == "number" and is_number(text):
        if unit is not None and unit not in _NO_UNIT.sub("", text):
            return f"write numbers in {unit!r}, as in fit, or without a unit"
        if count_readings([text], [1]).decimal(0.0) == "":
            return "--decimal or --thousands (in Python, decimal or thousands) says how to read it"
        return "write all numbers of the column in the same way"
    if kind.startswith("date") and len(set(map(is_day_first, date_formats(text)))) > 1:
        return "--date-format (in Python, date_format) says how to read it"
    return ""


def date_formats(*dates: str) -> list[str]:
    """Return the date formats that at least one of the dates matches."""
    return [form for form, pattern in _DATE_PATTERNS.items() if any(pattern.match(date.strip()) for date in dates)]


class FittingDates(NamedTuple):
    """How well a date format fits a column."""

    n_dates: int  # number of values that are dates in the format
    n_clocks: int  # number of these dates that have a time of day
    span: timedelta  # from the first to the last of these dates


def best_date_formats(fits: Mapping[str, FittingDates], before: str | None) -> dict[bool | None, str]:
    """Return the formats that fit most values, one for each value of `is_day_first`.

    For dates such as 24/03/02, a format with the year first is best only if the dates are then closer to each other, or
    if it was the format of the column in fit, `before`.
    """
    most = max((fit.n_dates for fit in fits.values()), default=0)
    best = [form for form, fit in fits.items() if fit.n_dates == most]
    others = [form for form in best if form != YEAR_FIRST]
    if others and YEAR_FIRST in best and before != YEAR_FIRST:
        best = best if fits[YEAR_FIRST].span < min(fits[form].span for form in others) else others
    return {is_day_first(form): form for form in reversed(best)}


def is_day_first(date_format: str) -> bool | None:
    """Return whether the day is before the month in a format; None if the year is first or either is not a number."""
    day, month = date_format.find("%d"), date_format.find("%m")
    return None if day < 0 or month < 0 or date_format[:2].lower() == "%y" else day < month
