"""The types of text columns: how they are chosen by counts of values, and the SQL that converts the values.

In SQL, `{0}` is the column. In names, `iso` means dates that begin with the year, and `clock` the time of day.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from aucforest.columns import spellings
from aucforest.columns.spellings import MOST_STRAY, YEAR_FIRST, Readings, is_day_first, is_few
from aucforest.tables.database import literal, literals
from aucforest.tables.kinds import WORDS
from aucforest.tables.read_options import ReadOptions

T = TypeVar("T")
# Returns the values of SQL aggregates by column, see `TextFiles._count`.
Count = Callable[..., dict[str, Sequence[Any]]]
# float64 represents all integers up to _MOST_EXACT. int64 represents those below _END_OF_INT64.
_MOST_EXACT, _END_OF_INT64 = 2**53, 2**63


def _matches(pattern: str) -> str:
    return f"regexp_matches({{0}}, {literal(pattern)})"


def _if(pattern: str, sql: str) -> str:
    """Return SQL that is NULL for text that does not match a pattern."""
    return f"CASE WHEN {_matches(pattern)} THEN {sql} END"


# Numbers as Python writes them, without 1_000, which the engine accepts. The engine would do a cast without a condition
# in its CSV reader, which raises an error for text that is no number.
_PLAIN_NUMBER = "CASE WHEN NOT contains({0}, '_') THEN try_cast({0} AS DOUBLE) END"
_INTEGER = (
    "CASE WHEN NOT contains({0}, '.') AND NOT contains({0}, '_') AND NOT contains({0}, 'e') AND NOT contains({0}, 'E')"
    " THEN try_cast({0} AS HUGEINT) END"
)
_TWELVE_HOURS = (
    f"try_strptime(upper(regexp_replace(trim({{0}}), '[{spellings.SPACE}]', ' ')),"
    " ['%I:%M %p', '%I:%M:%S %p', '%I:%M%p', '%I:%M:%S%p'])::TIME"
)
_TIME = f"coalesce({_if(spellings.TIME_OF_DAY, 'try_cast({0} AS TIME)')}, {_if(spellings.TWELVE_HOURS, _TWELVE_HOURS)})"
_ISO = _if(spellings.ISO_DATE, "try_cast(replace({0}, ',', '.') AS TIMESTAMP)")
# The engine would read dates without an offset in the machine's time zone, and it accepts no space before an offset.
_ZONED = _if(
    spellings.ISO_DATE,
    f"CASE WHEN {_matches(spellings.OFFSET)} THEN"
    r" epoch_us(try_cast(regexp_replace(replace({0}, ',', '.'), '\s+([-+Z])', '\1') AS TIMESTAMPTZ)) END",
)
# Durations in the spelling of the engine: "1 days 02:00:00" for "1 day, 02:00:00" or "1 days +02:00:00".
_INTERVAL = r"regexp_replace(regexp_replace({0}, '(days?),? *\+?', '\1 '), '^\s*\+', '')"
# The same for durations of ISO 8601: "1D2H3M4.5S" for "P1DT2H3M4.5S"; a minus before the P is that of all parts.
_ISO_INTERVAL = "regexp_replace({0}, '[-+PT\\s]', '', 'g')"
_SIGN = r"CASE WHEN regexp_matches({0}, '^\s*-') THEN -1 ELSE 1 END"
_LONG_DURATION = (
    f"coalesce({_if(spellings.DURATION, f'epoch_us(try_cast({_INTERVAL} AS INTERVAL))')},"
    f" {_if(spellings.ISO_DURATION, f'{_SIGN} * epoch_us(try_cast({_ISO_INTERVAL} AS INTERVAL))')})"
)
_DURATION = f"coalesce({_LONG_DURATION}, epoch_us({_TIME}))"
_TRUE, _FALSE = map(literals, WORDS.values())
_FLAG = f"CASE WHEN {{0}} IN ({_TRUE}) THEN true WHEN {{0}} IN ({_FALSE}) THEN false END"


class TextType(NamedTuple):
    """The type of a column of text: its Arrow type, and the SQL that converts a value to it.

    `engine` is the type by which the engine itself converts such a column. `format` is {"decimal": ",", "unit": "kg"}
    for numbers and {"date": "%d.%m.%Y"} for dates; models store it to read other tables. `kind` and `note` are for
    messages. If `is_sure` is True, all values of the column are of the type.
    """

    arrow: Any
    sql: str
    kind: str
    engine: str = ""
    format: Mapping[str, str] = {}
    note: str = ""
    is_sure: bool = False


RAW, TEXT = TextType(pa.string(), "{0}", "raw text"), TextType(pa.string(), "{0}", "text")
EMPTY = TextType(pa.null(), "NULL", "text")
NUMBER = TextType(pa.float64(), _PLAIN_NUMBER, "number", "DOUBLE")
INTEGER = TextType(pa.int64(), f"CAST({_INTEGER} AS BIGINT)", "number", "BIGINT")
FLAG = TextType(pa.bool_(), _FLAG, "boolean")
TIME = TextType(pa.time32("s"), _TIME, "time of day")
DURATION = TextType(pa.duration("us"), _DURATION, "duration")
DAY = TextType(pa.date32(), f"CAST({_ISO} AS DATE)", "date", "DATE")
MOMENT = TextType(pa.timestamp("us"), _ISO, "date", "TIMESTAMP")
ZONED = TextType(pa.timestamp("us", "UTC"), _ZONED, "zoned date")


def spelled_numbers(text_format: Mapping[str, str], example: str | None = None) -> TextType:
    """Return the type of numbers with a decimal mark, and possibly with marks between thousands and a unit."""
    decimal, unit = text_format["decimal"], text_format.get("unit", "")
    digits = f"regexp_extract({{0}}, {literal(spellings.DIGITS)})"
    if re.fullmatch(spellings.ABBREVIATIONS, unit):
        digits = digits.replace("{0}", f"regexp_replace({{0}}, {literal(spellings.ABBREVIATED)}, '')")
    kept = f"replace(regexp_replace({digits}, {literal(f'[^-+0-9eE{decimal}]')}, '', 'g'), ',', '.')"
    factors = " ".join(f"WHEN {literal(letter)} THEN {value!r}" for letter, value in spellings.FACTORS.items())
    value = f"try_cast({kept} AS DOUBLE)"
    if re.fullmatch(spellings.CURRENCY, unit):  # zeros may be written as "$ -"
        value = f"CASE WHEN {_matches('[0-9]')} THEN {value} ELSE 0 END"
    number = _if(
        spellings.PATTERNS[decimal],
        f"CASE WHEN {_UNIT} IN ('', {literal(unit)}) THEN {value}"
        f" * CASE WHEN {_matches(spellings.MINUS)} THEN -1 ELSE 1 END"
        f" * CASE regexp_extract({{0}}, {literal(spellings.FACTOR)}, 1) {factors} ELSE 1 END END",
    )
    sql = f"coalesce({_PLAIN_NUMBER}, {number})" if decimal == "." else number
    note = "" if example is None else f"numbers such as {example!r} are read as {spellings.as_number(example, decimal)}"
    return TextType(pa.float64(), sql, "number", format=text_format, note=note)


def spelled_dates(date_format: str, note: str = "", *, has_clock: bool) -> TextType:
    """Return the type of dates in a format; dates that begin with the year are converted, too."""
    arrow = MOMENT.arrow if has_clock else DAY.arrow
    return TextType(arrow, dates_in(date_format), "date", format={"date": date_format}, note=note)


# Dates with single spaces. The space before AM may be a narrow one.
_ONE_SPACE = "regexp_replace(trim(replace({0}, '\u202f', ' ')), ' +', ' ', 'g')"
# The same with at most six decimals of seconds. Dates with more are longer than 23 characters.
_MICROSECONDS = (
    f"CASE WHEN strlen({{0}}) > 23 THEN regexp_replace({_ONE_SPACE},"
    rf" '([:.][0-9]{{2}}[.][0-9]{{6}})[0-9]{{1,3}}', '\1') ELSE {_ONE_SPACE} END"
)
# Dates with Sep in place of Sept, which the engine does not know.
_WITH_SEP = "replace(replace({0}, 'ept', 'ep'), 'EPT', 'EP')"


def dates_in(date_format: str, *, are_rare: bool = False) -> str:
    """Return the SQL that converts dates in a format. If the format has no time of day, the dates may have one.

    With `are_rare`, the SQL is faster for values that are not in the format, but slower for dates.
    """
    formats = [date_format] if re.search("%[HIcXTRp]", date_format) else spellings.with_clocks(date_format)
    pattern = spellings.date_pattern(date_format)
    has_weekday = pattern is not None and spellings.has_month_name(date_format)
    day = f"regexp_replace({_MICROSECONDS}, '^{spellings.WEEKDAY}', '')" if has_weekday else _MICROSECONDS
    named = _WITH_SEP if "%b" in date_format else "{0}"
    date = f"try_strptime({named.replace('{0}', day)}, [{literals(formats)}])"
    if pattern is None:
        return f"coalesce({_ISO}, {date})"
    # The date without its time of day is tested before the formats of all times are tried.
    first = named.replace("{0}", _ONE_SPACE).replace("{0}", f"regexp_extract({{0}}, {literal(pattern)}, 1)")
    is_date = f"try_strptime({first}, {literal(date_format)}) IS NOT NULL" if are_rare else _matches(pattern)
    return f"coalesce({_ISO}, CASE WHEN {is_date} THEN {date} END)"


# Except in columns of text, a field of spaces, as in files with columns of fixed width, is missing.
NOT_BLANK = "trim({0}) <> ''"
N_VALUES = f"count(*) FILTER ({NOT_BLANK})"
# Aggregates that decide on plain numbers: counts of values, of numbers and of integers; the maximum of n and -(n + 1)
# over the integers n, which is below 2**63 if all fit into int64; and the count of integers with leading zeros.
_NUMBER_COUNTS = [
    "count({0})", f"count({_PLAIN_NUMBER})", f"count({_INTEGER})", f"greatest(max({_INTEGER}), -(min({_INTEGER}) + 1))",
    # a space may precede the zeros; comparisons are much faster than trimming all values
    f"count_if((({{0}} >= '00' AND {{0}} < '0:') OR ({{0}} >= ' 00' AND {{0}} < ' 0:')) AND ({_INTEGER}) IS NOT NULL)",
]  # fmt: skip
_N_ROUNDED = f"count_if({_INTEGER}::DOUBLE::HUGEINT <> {_INTEGER})"


def _plain_type(counts: Sequence[int], most_stray: float) -> TextType | None:
    """Return the type of a column that is empty, or has only plain numbers or codes with leading zeros; else None.

    `counts` are the values of `_NUMBER_COUNTS`. There may be stray text among codes, but not among numbers.
    """
    n_values, n_numbers, n_integers, largest, n_padded = counts
    if n_values == 0:
        return EMPTY
    if n_padded > 0 and n_integers == n_numbers and is_few(n_values - n_numbers, n_values, most_stray):
        return TEXT._replace(note="codes with leading zeros are read as text")
    if n_numbers < n_values:
        return None
    fits = n_integers == n_values and largest is not None and largest < _END_OF_INT64
    return (INTEGER if fits else NUMBER)._replace(is_sure=True)


# A pattern of the beginnings of numbers, dates and times. Few words match it.
_START = (
    rf"^{spellings.EDGE}([-+(.,0-9{spellings.MINUSES}{spellings.SYMBOLS}]"
    rf"|[A-Z]{{1,3}}[{spellings.SYMBOLS}]?[-(0-9{spellings.SPACE}{spellings.MINUSES}]|{spellings.ABBREVIATIONS}|PT?[0-9]"
    rf"|({spellings.WEEKDAY})?([0-9]|[A-Za-z]{{3,9}}(\.? +|-)[0-9]))"
)
# The counts that identify words: all values, booleans, and values that may be numbers or dates.
_WORD_COUNTS = [N_VALUES, f"count({_FLAG})", f"count_if({_matches(_START)})"]


def _type_of_words(counts: Sequence[int], most_stray: float) -> TextType | None:
    """Return FLAG or TEXT, or None if the values may be numbers or dates; `counts` are those of `_WORD_COUNTS`."""
    n_values, n_flags, n_possible = counts
    if n_flags == n_values:
        return FLAG._replace(is_sure=True)
    return None if is_few(n_values - n_possible, n_values, most_stray) else TEXT


def _has_clock(moment: str) -> str:
    """Return the SQL condition that a date, given as SQL, has a time of day other than midnight."""
    return f"{moment} <> date_trunc('day', {moment})"


def _n_rows(condition: str) -> str:
    """Return SQL that counts the rows for which a condition is true, in a table of distinct values with counts n."""
    return f"coalesce(sum(n) FILTER ({condition}), 0)::BIGINT"


# The unit of a number, "" if it has none, and the conditions that a value is a number with a decimal point or comma.
_UNIT = f"regexp_replace({{0}}, {literal(spellings.NO_UNIT)}, '', 'g')"
_POINT, _COMMA = (_matches(pattern) for pattern in spellings.PATTERNS.values())
_MAY_BE_DATE = _matches(spellings.DATE_LIKE)
N_ZEROS = f"count_if({_matches(spellings.ZEROS)})"
# The conditions that decide the type of all other columns, by the names of their counts in `Counts`.
_CONDITIONS = {
    "n_values": NOT_BLANK,
    "n_times": f"({_TIME}) IS NOT NULL",
    "n_durations": f"({_DURATION}) IS NOT NULL",
    "n_iso_durations": _matches(spellings.ISO_DURATION),
    "n_iso": f"({_ISO}) IS NOT NULL",
    "n_clocks": _has_clock(_ISO),
    "n_converted": f"NOT {NOT_BLANK} OR ({_matches(spellings.ISO_DATE)} AND contains({{0}}, ','))",
    "n_offsets": f"{_matches(spellings.ISO_DATE)} AND {_matches(spellings.OFFSET)}",
    "n_utc": f"{_matches(spellings.ISO_DATE)} AND {_matches(spellings.UTC)}",
    "n_zeros": _matches(spellings.ZEROS),
    "n_may_be_dates": _MAY_BE_DATE,
    "n_point": _POINT,
    "n_comma": _COMMA,
    "n_both": f"{_POINT} AND {_COMMA}",
    "n_ambiguous": f"{_POINT} AND {_COMMA} AND {_matches(spellings.MARK)}",
    "n_factors": _matches(spellings.FACTOR),
    "n_plain_points": f"contains({{0}}, '.') AND ({_PLAIN_NUMBER}) IS NOT NULL",
}
# The aggregates that are the values of `Counts`: those counts, all units, numbers with a decimal point and with a comma
# that are not plain, and the first and last possible date.
_TEXT_COUNTS = {
    **{name: _n_rows(condition) for name, condition in _CONDITIONS.items()},
    "units": f"coalesce(list(DISTINCT {_UNIT}) FILTER ({_POINT} OR {_COMMA}), [])",
    "first_point": f"min({{0}}) FILTER ({_POINT} AND {_PLAIN_NUMBER} IS NULL)",
    "first_comma": f"min({{0}}) FILTER ({_COMMA} AND {_PLAIN_NUMBER} IS NULL)",
    "dates": f"[min({{0}}) FILTER ({_MAY_BE_DATE}), max({{0}}) FILTER ({_MAY_BE_DATE})]",
}


class Counts(SimpleNamespace):
    """The values of `_TEXT_COUNTS` for a column, by their names."""

    @property
    def readings(self) -> Readings:
        """The counts of numbers with either decimal mark."""
        return Readings(*(getattr(self, name) for name in Readings._fields))

    def are_dates(self, n_dates: int, most_stray: float) -> bool:
        """Return whether nearly all values are dates. If some may be stray, any number of zeros (0000-00-00) may be."""
        n_allowed = self.n_zeros if most_stray > 0.0 else 0
        return n_dates > 0 and is_few(self.n_values - n_allowed - n_dates, self.n_values, most_stray)


def _type_of_clocks(counts: Counts, most_stray: float) -> TextType | None:
    """Return DURATION or TIME, or None for other columns. All times of day are durations, too."""
    n_durations, n_values = counts.n_durations, counts.n_values
    if n_durations == 0 or not is_few(n_values - n_durations, n_values, most_stray):
        return None
    note = "text such as P1DT2H is read as durations of ISO 8601" if counts.n_iso_durations else ""
    return (TIME if n_durations == counts.n_times else DURATION)._replace(is_sure=n_durations == n_values, note=note)


def _type_of_iso(counts: Counts, most_stray: float) -> TextType | None:
    """Return the type of dates that begin with the year, TEXT if only some have an offset, None for other columns."""
    if not counts.are_dates(counts.n_iso, most_stray):
        return None
    # The engine itself would refuse the values that `n_converted` counts.
    is_sure = counts.n_iso == counts.n_values and counts.n_converted == 0
    if counts.n_offsets == 0:
        return (MOMENT if counts.n_clocks else DAY)._replace(is_sure=is_sure)
    if counts.n_offsets < counts.n_iso:
        return TEXT
    note = "times have an offset, but no time zone: month, day of week and hour are those of UTC"
    return ZONED._replace(note="" if counts.n_utc == counts.n_offsets else note)


def _type_of_numbers(counts: Counts, most_stray: float, given: str | None, *, has_numbers: bool) -> TextType | None:
    """Return the type of numbers in any spelling, or None if the column is text.

    `given` is the decimal mark of columns that both marks fit. If it is None, these columns are text. If a file
    `has_numbers` beside text, a column with a decimal comma in some values and a point in plain numbers is text.
    """
    decimal = counts.readings.decimal(most_stray, given)
    if not decimal or (has_numbers and decimal == "," and counts.n_plain_points > 0):
        return None
    first = counts.first_point if decimal == "." else counts.first_comma
    if first is None:
        return NUMBER
    unit = next(filter(None, counts.readings.units), "")
    number_format = {"decimal": decimal, "unit": unit} if unit else {"decimal": decimal}
    return spelled_numbers(number_format, first)._replace(is_sure=counts.readings.n_with(decimal) == counts.n_values)


def infer_types(
    names: Sequence[str],
    count: Count,
    options: ReadOptions,
    *,
    known: Mapping[str, TextType] = {},
    has_numbers: bool = False,
) -> tuple[dict[str, TextType], set[str]]:
    """Return the types of columns, and the names of those in which float64 rounds an integer.

    `known` are the types of a model. The decimal mark and the date format that a column had in fit decide if neither
    options nor other columns decide. If a file `has_numbers` beside text, plain numbers are never read with a decimal
    comma.
    """
    most_stray = MOST_STRAY if options.stray_text == "number" else 0.0
    plain = count(names, _NUMBER_COUNTS)
    types = {name: _plain_type(row, most_stray) for name, row in plain.items()}
    words = count([name for name, type_ in types.items() if type_ is None], _WORD_COUNTS)
    types |= {
        name: type_._replace(is_sure=False)  # the engine cannot read blank fields as numbers
        for name, row in words.items()
        if (type_ := _plain_type([row[0], *plain[name][1:]], most_stray)) is not None
    }
    # The decimal marks and the date formats that columns had in fit.
    known_marks, known_formats = (
        {name: type_.format[key] for name, type_ in known.items() if key in type_.format} for key in ("decimal", "date")
    )
    date_format = options.date_format or _only(known_formats.values())
    types |= _types_of_compact_dates([name for name, type_ in types.items() if type_], count, date_format, most_stray)
    numbers = [name for name, type_ in types.items() if type_ is not None and type_.arrow == NUMBER.arrow]
    large = [name for name in numbers if (plain[name][3] or 0) >= _MOST_EXACT]
    rounded = {name for name, (n_rounded,) in count(large, [_N_ROUNDED]).items() if n_rounded}
    types |= {name: _type_of_words(row, most_stray) for name, row in words.items() if types[name] is None}
    others = count([name for name, type_ in types.items() if type_ is None], list(_TEXT_COUNTS.values()), distinct=True)
    counts_by_column = {name: Counts(**dict(zip(_TEXT_COUNTS, row))) for name, row in others.items()}
    marks, with_comma = _decimal_marks(counts_by_column, [] if has_numbers else numbers, count, options, known_marks)
    dates = _types_of_dates(counts_by_column, count, options.date_format, known_formats, most_stray)
    for name, counts in counts_by_column.items():
        types[name] = (
            _type_of_clocks(counts, most_stray)
            or _type_of_iso(counts, most_stray)
            or dates.get(name)
            or _type_of_numbers(counts, most_stray, marks[name], has_numbers=has_numbers)
        )
    return {name: type_ or TEXT for name, type_ in (types | with_comma).items()}, rounded


def _types_of_compact_dates(
    names: Sequence[str], count: Count, date_format: str | None, most_stray: float
) -> dict[str, TextType]:
    """Return the types of columns of digits that are dates in the given format, such as %Y%m%d for 20240131."""
    if date_format is None or re.fullmatch("(%[YymdHMSf])+", date_format) is None:
        return {}
    sql = dates_in(date_format)
    counts = count(names, [N_VALUES, f"count({sql})", f"count_if({_has_clock(sql)})", N_ZEROS])
    return {
        name: spelled_dates(date_format, has_clock=n_clocks > 0)._replace(is_sure=n_dates == n_values)
        for name, (n_values, n_dates, n_clocks, n_zeros) in counts.items()
        if Counts(n_values=n_values, n_zeros=n_zeros).are_dates(n_dates, most_stray)
    }


def _only(values: Iterable[T]) -> T | None:
    """Return the value if all values are equal, else None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def _to_follow(found: Mapping[str, T], before: Mapping[str, T], default: T | None) -> Callable[[str], T | None]:
    """Return a function of a column's name that returns the value which the column takes over from other columns.

    The value is the only one that was `found` in other columns, if one of these had another value in fit, `before`, or
    the column had none. Columns of `found` that had none had the `default`.
    """
    value = _only(found.values())
    is_other = any(mark != before.get(name, default) for name, mark in found.items())
    return lambda name: value if is_other or name not in before else None


def _decimal_marks(
    counts: Mapping[str, Counts], numbers: Sequence[str], count: Count, options: ReadOptions, before: Mapping[str, str]
) -> tuple[dict[str, str | None], dict[str, TextType]]:
    """Return the decimal marks of columns that both marks fit, and the types of plain `numbers` with a decimal comma.

    The mark is that of the options; else the only one that other columns require, if one of these had another mark in
    fit, `before`, or the column had none; else that of the column in fit, or the only one that columns had in fit.
    """
    required = {
        name: column.readings.required
        for name, column in counts.items()
        if column.readings.decimal(MOST_STRAY) and column.readings.required
    }
    may_be_comma = "," in {options.point_or_comma, *before.values(), *required.values()}
    # For each column, the number of values whose point cannot be a mark between thousands, and a value with a point.
    aggregates = [f"count_if(contains({{0}}, '.') AND NOT {_COMMA})", "min({0}) FILTER (contains({0}, '.'))"]
    points = count(numbers, aggregates) if may_be_comma else {}
    # Plain numbers with a point contradict a comma that other columns require. By themselves they require no mark,
    # unless they had a comma in fit.
    sure = [name for name, (n_sure, _) in points.items() if n_sure]
    required |= {name: "." for name in sure if "," in required.values() or before.get(name) == ","}
    to_follow, of_fit = _to_follow(required, before, "."), _only(before.values())
    marks = {name: options.point_or_comma or to_follow(name) or before.get(name, of_fit) for name in [*counts, *points]}
    types = {}
    for name, (n_sure, first) in points.items():
        if marks[name] == "," and n_sure == 0 and first is not None:
            types[name] = spelled_numbers({"decimal": ","}, first)
        elif n_sure and "," in {options.point_or_comma, *required.values()}:
            types[name] = NUMBER._replace(format={"decimal": "."})  # models must not read this column as the others
    return marks, types


def _types_of_dates(
    counts: Mapping[str, Counts], count: Count, given: str | None, before: Mapping[str, str], most_stray: float
) -> dict[str, TextType]:
    """Return the types of columns of dates, except for columns for which more than one format remains.

    The format of a column is the `given` one if it fits, else that of most values. If as many values can have the day
    first as the month first, the order is that of `given`; else that of the other columns, if one of these had another
    order in fit or the column had none; else that of the column in fit, or the only one that columns had in fit.
    `before` are the formats in fit.
    """
    of_fit = _only(before.values())
    possible = {
        name: [*filter(None, (given, before.get(name, of_fit))), *spellings.date_formats(*filter(None, column.dates))]
        for name, column in counts.items()
        if not column.are_dates(column.n_iso, most_stray)
        and (given or before or column.are_dates(column.n_may_be_dates, most_stray))
    }
    formats = list(dict.fromkeys(chain.from_iterable(possible.values())))
    if not formats:
        return {}
    counts_of_formats = [
        sql
        for date in (dates_in(form, are_rare=True) for form in formats)
        for sql in (_n_rows(f"{date} IS NOT NULL"), _n_rows(_has_clock(date)), f"max({date}) - min({date})")
    ]
    fits = {}
    for name, row in count(list(possible), counts_of_formats, distinct=True).items():
        fitting = {
            form: fit
            for form, fit in zip(formats, map(spellings.FittingDates, row[::3], row[1::3], row[2::3]))
            # Months without a day may be codes, so no stray values are allowed among them.
            if form in possible[name] and counts[name].are_dates(fit.n_dates, most_stray if "%d" in form else 0.0)
        }
        fits[name] = {given: fitting[given]} if given and given in fitting else fitting
    types = {}
    for name, form in _choose_formats(fits, given, before).items():
        note = "" if form == given else f"dates such as {counts[name].dates[0]!r} are read as {form}"
        fit = fits[name][form]
        type_ = spelled_dates(form, note, has_clock=fit.n_clocks > 0)
        types[name] = type_._replace(is_sure=fit.n_dates == counts[name].n_values)
    return types


def _choose_formats(
    fits: Mapping[str, Mapping[str, spellings.FittingDates]], given: str | None, before: Mapping[str, str]
) -> dict[str, str]:
    """Return the date formats of columns by the rules of `_types_of_dates`."""
    best = {name: spellings.best_date_formats(fitting, before.get(name)) for name, fitting in fits.items()}
    # Columns whose dates may begin with the year neither decide on other columns nor follow them.
    single = {name: forms for name, forms in best.items() if len(forms) == 1 and YEAR_FIRST not in fits[name]}
    orders = {name: order for name, forms in single.items() for order in forms if order is not None}
    to_follow = _to_follow(orders, {name: is_day_first(form) for name, form in before.items()}, None)
    of_fit, chosen = _only(before.values()), dict[str, str]()
    for name, forms in best.items():
        wanted = list(forms) if len(forms) == 1 else []
        if given is None and YEAR_FIRST not in forms.values() and (order := to_follow(name)) is not None:
            wanted.append(order)
        if form_of_fit := given or before.get(name, of_fit):
            wanted.append(is_day_first(form_of_fit))
        if fitting := [forms[order] for order in wanted if order in forms]:
            chosen[name] = fitting[0]
    return chosen
