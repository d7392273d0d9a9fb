"""Notes on columns of text that are probably numbers or dates, or have texts that differ only by case and spaces."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from aucforest.columns.spellings import (
    MONTH,
    MOST_STRAY,
    OFFSET,
    PATTERNS,
    PLAIN,
    Readings,
    as_number,
    count_readings,
    is_few,
    is_number,
)
from aucforest.columns.values import readable

# A text column with at least _LEAST_NUMBERS distinct numbers or dates gets a note even if half of its values are other
# text, or more of them are at most _MOST_MARKERS distinct texts. With fewer, the numbers may be categories.
_LEAST_NUMBERS, _MOST_MARKERS = 20, 3
_EXAMPLES = 3  # the number of values that a note quotes
# Columns with more than _MOST_ALIKE distinct texts are not searched for texts that differ only by case and spaces.
# Notes list at most _MOST_LISTED of these texts, and at most _MOST_LISTED units.
_MOST_ALIKE, _MOST_LISTED = 1000, 5
_NO_UNITS = {"", "st", "nd", "rd", "th", "am", "pm"}  # what may follow numbers without being a unit
MOST_NAMES = 10  # the maximum number of columns that a note lists by name

_PLAIN_NUMBER = re.compile(PLAIN)
_YEAR = r"\d{4}"
_LETTER = r"[^\W\d]"
_DATE = re.compile(
    rf"\s*({_YEAR}([-./] ?|年)\d\d?([-./] ?|月)\d\d?[.日]?|\d\d?[-./] ?\d\d?[-./] ?({_YEAR}|\d\d)"
    rf"|\d\d?[-. ]+{_LETTER}{{3,9}}[-., ]+({_YEAR}|\d\d)|{_LETTER}{{3,9}}\.? \d\d?,? {_YEAR}|\d\d?{_LETTER}{{3}}{_YEAR}"
    # without separators, without a day, and with the year after the time of day or before the name of the month
    rf"|[0-3]\d{MONTH}\d\d|{MONTH}[- ]\d\d|{MONTH}{_LETTER}{{0,6}}\.?[- ]?(19|20)\d\d|{_YEAR}[01]\d[0-3]\dT\d{{6}}Z?"
    rf"|({_LETTER}{{3}} )?{MONTH} +\d\d? [\d:]{{8}}( [A-Z]+)? {_YEAR}|{_YEAR}[- ]{MONTH}[- ]\d\d?"
    # with the day of the week
    rf"|{_LETTER}{{2,10}}[.,]? +(\d\d?[-. ]+{_LETTER}{{3,9}}[-., ]+|{_LETTER}{{3,9}}\.? \d\d?,? ){_YEAR})"
    rf"([-T ,:]+({_LETTER}{{1,4}} ?)?\d\d?[:.]\d\d.*)?\s*"
)
_ISO = re.compile(r"\s*\d{4}-\d\d-\d\d")  # the beginning of a date that can be read without `date_format`


class StrayText(NamedTuple):
    """How many values of a column are not of its `kind`, such as "number" or "date", and examples of these values."""

    n_stray: int
    n_values: int
    examples: Sequence[str]
    kind: str = "number"

    def __str__(self) -> str:
        noun, *rest = self.kind.split(" of ")
        are = f"is no {self.kind}" if self.n_stray == 1 else f"are no {' of '.join([f'{noun}s', *rest])}"
        return f"{self.n_stray:,} of {self.n_values:,} values {are} ({', '.join(map(repr, self.examples[:_EXAMPLES]))})"


def _find_stray(
    is_typed: Callable[[str], Any], kind: str, texts: Sequence[str], counts: Sequence[int]
) -> StrayText | None:
    """Return a `StrayText` of the values that are not of a kind, with all of these texts as examples.

    The result is None if they are neither few nor `_is_mixed` with values of the kind.
    """
    others = [(text, count) for text, count in zip(texts, counts) if not is_typed(text)]
    stray = StrayText(sum(count for _, count in others), sum(counts), [text for text, _ in others], kind)
    is_typical = is_few(stray.n_stray, stray.n_values, MOST_STRAY) or _is_mixed(stray, len(texts))
    return stray if is_typical else None


def text_note(values: Sequence[object], counts: Iterable[int]) -> str | None:
    """Return a note if the values of a text column are probably numbers, dates or spelling variants, else None."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return None
    counts = list(counts)
    note = _spelling_note(texts, counts) or _note_on_dates_or_numbers(texts, counts)
    return alike_note(texts, counts, "categories") if note is None and len(texts) <= _MOST_ALIKE else note


def _note_on_dates_or_numbers(texts: Sequence[str], counts: Sequence[int]) -> str | None:
    """Return a note on a text column of dates, or of numbers with some other values; None for other columns."""
    # Few text columns have dates or numbers. A sample of the values suffices to rule out most columns.
    dates = [text for text in texts[:100] if _DATE.fullmatch(text)]
    if 2 * len(dates) > len(texts[:100]):
        stray = _find_stray(_DATE.fullmatch, "date", texts, counts)
        if stray is None:
            return None
        note = f"dates such as {dates[0]!r} are read as text, so that each is a category"
        if stray.n_stray > 0:
            note += f"; {_leave_empty(stray)}"
        n_offsets = sum(re.search(OFFSET, text) is not None for text in texts)
        if _ISO.match(dates[0]) is not None and 0 < n_offsets < len(texts):
            note += "; some times have an offset from UTC and some have none: write all alike"
        elif stray.n_stray == 0 or _ISO.match(dates[0]) is None:
            note += "; convert the column to dates, or read a CSV with --date-format (in Python, date_format)"
        return note
    sample = _sample(texts)
    if sum(_PLAIN_NUMBER.match(text) is not None for text in sample) * 2 < len(sample):
        return None
    stray = _find_stray(_PLAIN_NUMBER.match, "number", texts, counts)
    if stray is None or stray.n_stray == 0:
        return None
    return (
        f"{stray}, so that all are read as text and each is a category; in a column of numbers, leave other values"
        " empty"
    )


def _sample(texts: Sequence[str]) -> Sequence[str]:
    """Return about 100 texts at equal distances, as the texts may be sorted."""
    return texts[:: max(1, len(texts) // 100)]


def _spelling_note(texts: Sequence[str], counts: Sequence[int]) -> str | None:
    """Return a note on a text column of numbers such as "1,234 km", perhaps with some other text, else None."""
    sample = _sample(texts)
    if 2 * sum(map(is_number, sample)) < len(sample) or all(_PLAIN_NUMBER.match(text) for text in sample):
        return None
    spelled = [text for text in texts if is_number(text) and not _PLAIN_NUMBER.match(text)]
    stray = _find_stray(is_number, "number", texts, counts)
    if not spelled or stray is None:
        return None
    readings = count_readings(texts, counts)
    most_stray = 2.0 if _is_mixed(stray, len(texts)) else MOST_STRAY  # 2.0 allows any proportion of stray values
    decimal = readings.decimal(most_stray)
    if decimal is None:
        note = _marks_note(readings, spelled) or _units_note(readings.units, spelled)
        return note if len(texts) >= _LEAST_NUMBERS else None
    first = next((text for text in spelled if as_number(text, ".") != as_number(text, ",")), spelled[0])
    if decimal == "":
        return (
            f"numbers are read as text, so that each is a category: {first!r} is {as_number(first, '.')} with a decimal"
            f" point, but {as_number(first, ',')} with a decimal comma: for a file, set --decimal (in Python, decimal);"
            " convert a column in memory"
        )
    note = f"numbers such as {first!r} are read as text, so that each is a category: write {as_number(first, decimal)}"
    return note if stray.n_stray == 0 else f"{note}; {_leave_empty(stray)}"


def _marks_note(readings: Readings, texts: Sequence[str]) -> str | None:
    """Return a note on numbers of which some have a decimal point and some a decimal comma, else None."""
    if min(readings.n_point, readings.n_comma) == readings.n_both:
        return None
    with_comma = next(text for text in texts if not re.search(PATTERNS["."], text))
    return (
        "numbers are read as text, so that each is a category: some have a decimal point, and some a decimal comma"
        f" (such as {with_comma!r}): write them alike"
    )


def _units_note(endings: Sequence[str], texts: Sequence[str]) -> str | None:
    """Return a note on numbers with a few different units, else None.

    A single letter is probably not a unit, except after decimals.
    """
    units = sorted(unit for unit in endings if unit.lower() not in _NO_UNITS)
    if len(units) > 1 or not re.search(rf"\d[.,]\d+ ?{_LETTER}", texts[0]):
        units = [unit for unit in units if not re.fullmatch(_LETTER, unit)]
    if not 0 < len(units) <= _MOST_LISTED:
        return None
    which = f"the unit {units[0]!r}" if len(units) == 1 else f"the units {', '.join(map(repr, units))}"
    advice = "use one unit" if units[1:] else "write them alike" if "" in endings else "leave it out"
    return f"numbers with {which} are read as text, so that each is a category: {advice}"


def _leave_empty(stray: StrayText) -> str:
    return f"{stray}: leave {'it' if stray.n_stray == 1 else 'these'} empty"


def _is_mixed(stray: StrayText, n_distinct: int) -> bool:
    """Return whether `n_distinct` distinct values are probably numbers or dates, and others.

    A few distinct texts that are no words, such as "?" and "n/k", probably mean missing values, however many they are.
    """
    is_marker = len(stray.examples) <= _MOST_MARKERS and not re.search(_LETTER * 2, " ".join(stray.examples))
    n_typed = n_distinct - len(stray.examples)
    return n_typed >= _LEAST_NUMBERS and (is_marker or 2 * stray.n_stray <= stray.n_values)


def alike_note(values: Iterable[object], counts: Iterable[int], kind: str, given: str | None = None) -> str | None:
    """Return a sentence on distinct values of text that differ only by case and spaces, or None if there are none.

    If `given` is not None, only values that differ from it in this way are noted.
    """
    groups: dict[str, list[str]] = {}
    for value, count in zip(values, counts):
        if isinstance(value, str):
            groups.setdefault(folded(value), []).append(f"{str(value)!r} ({count:,})")
    alike = [group for text, group in groups.items() if len(group) > 1 and (given is None or text == folded(given))]
    if not alike:
        return None
    others = f", as do {len(alike) - 1:,} more groups," if alike[1:] else ""
    first = listed(alike[0], _MOST_LISTED)
    different = f"differ only by case and spaces{others} and are different {kind}"
    return f"{first} {different}: write them alike if they mean the same"


def folded(text: str) -> str:
    """Return a text in lower case, with one space between words and none at the ends."""
    return " ".join(text.split()).casefold()


def stray_note(name: str, stray: StrayText, can_be_text: bool) -> str:
    """Return a note on stray text that is read as missing; if the column can be text, it names the option for that."""
    option = "; --stray-text text (in Python, stray_text='text') reads the column as text" if can_be_text else ""
    return f"column {name!r}: {stray}, read as missing{option}"


def listed(words: Sequence[str], most: int = MOST_NAMES) -> str:
    """Return the first words separated by commas, and how many more there are."""
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} more" if words[most:] else "")


def listed_columns(names: Sequence[str]) -> str:
    """Return the beginning of a sentence on some columns, whose names are already in quotes."""
    return f"column{'s' if names[1:] else ''} {listed(names)}"


def unseen_note(name: str, n_unseen: int, n_rows: int, examples: Sequence[str], parts: str = "") -> str:
    """Return a note on the categories of a column that training has not seen; `parts` is that of `parts_of_unseen`."""
    percentage = 100.0 * n_unseen / n_rows
    digits = ".2g" if percentage < 99.5 else ".4g"
    shown = ", ".join(map(repr, map(readable, examples[:_EXAMPLES])))
    more = ", ..." if len(examples) > _EXAMPLES else ""
    which = f"{n_unseen:,} of {n_rows:,} rows ({percentage:{digits}} %)"
    counts_as = f"missing, except for its {parts}" if parts else "a missing value"
    return (
        f"column {name!r}: {which} have a category that training has not seen ({shown}{more}); it counts as {counts_as}"
    )
