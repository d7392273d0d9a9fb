"""Columns of text that were probably meant to be something else: numbers with some stray text among them, or dates."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from aucforest.tables.number_texts import MOST_STRAY, PLAIN, as_number, count_readings, is_number
from aucforest.tables.values import readable

# With this many distinct numbers, text that is up to half of the values is noted as well; fewer may be categories.
_LEAST_NUMBERS = 20
# The number of values that a sentence quotes.
_EXAMPLES = 3
# Columns of more distinct texts are not searched for spellings that differ by case and spaces, and of these so many are
# quoted.
_MOST_ALIKE, _MOST_LISTED = 1000, 5
# The maximum number of columns that a sentence lists by name.
MOST_NAMES = 10

_PLAIN = re.compile(PLAIN)
_YEAR = r"\d{4}"
_DATE = re.compile(
    rf"\s*({_YEAR}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]({_YEAR}|\d\d)"
    rf"|\d\d?[-. ]+[^\W\d]{{3,9}}[-., ]+({_YEAR}|\d\d)|[^\W\d]{{3,9}}\.? \d\d?,? {_YEAR})([T ,]+\d\d?:\d\d.*)?\s*"
)
# Dates that need no format.
_ISO = re.compile(r"\s*\d{4}-\d\d-\d\d")


class StrayText(NamedTuple):
    """How many of the values of a column are no numbers, or no dates, and some of these."""

    n_stray: int
    n_values: int
    examples: Sequence[str]
    kind: str = "number"

    @property
    def is_rare(self) -> bool:
        """Whether some of the values are others, but few enough that the column is one of numbers or dates."""
        return 0 < self.n_stray < MOST_STRAY * self.n_values

    def __str__(self) -> str:
        are = f"is no {self.kind}" if self.n_stray == 1 else f"are no {self.kind}s"
        return f"{self.n_stray:,} of {self.n_values:,} values {are} ({', '.join(map(repr, self.examples[:_EXAMPLES]))})"

    @property
    def advice(self) -> str:
        """What to do about values that are numbers in another spelling, as a clause, or "" if none is seen."""
        spelled = next(filter(is_number, self.examples), None) if self.kind == "number" else None
        if spelled is None:
            return ""
        options = "--decimal or --thousands (in Python, decimal or thousands)"
        return f"; numbers such as {spelled!r} need the unit of the others, and perhaps {options}"


def _stray_among(pattern: re.Pattern[str], kind: str, texts: Sequence[str], counts: Sequence[int]) -> StrayText:
    """Return the texts that do not match a pattern."""
    stray = [(text, count) for text, count in zip(texts, counts) if pattern.fullmatch(text) is None]
    return StrayText(sum(count for _, count in stray), sum(counts), [text for text, _ in stray], kind)


def text_note(values: Sequence[object], counts: Iterable[int]) -> str | None:
    """Return what the distinct values of a column of text probably are instead, or None if nothing suggests it."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return None
    counts = list(counts)
    note = _spelling_note(texts, counts) or _other_kind_note(texts, counts)
    return alike_note(texts, counts, "categories") if note is None and len(texts) <= _MOST_ALIKE else note


def _other_kind_note(texts: Sequence[str], counts: Sequence[int]) -> str | None:
    """Return the note on a column of text that holds dates, or numbers and some other values."""
    # Few columns of text have dates or numbers, and most of the others show it at once.
    dates = [text for text in texts[:100] if _DATE.fullmatch(text)]
    if 2 * len(dates) > len(texts[:100]):
        stray = _stray_among(_DATE, "date", texts, counts)
        return _date_note(dates[0], stray) if stray.is_rare or stray.n_stray == 0 else None
    some = _from_all_over(texts)
    if sum(_PLAIN.match(text) is not None for text in some) * 2 < len(some):
        return None
    stray = _stray_among(_PLAIN, "number", texts, counts)
    is_mixed = 0 < 2 * stray.n_stray <= stray.n_values and len(texts) - len(stray.examples) >= _LEAST_NUMBERS
    if not (stray.is_rare or is_mixed):
        return None
    return (
        f"{stray}, so that all are read as text and each is a category; in a column of numbers leave empty what is none"
    )


def _from_all_over(texts: Sequence[str]) -> Sequence[str]:
    """Return about 100 of the texts, which may be sorted."""
    return texts[:: max(1, len(texts) // 100)]


def _spelling_note(texts: Sequence[str], counts: Sequence[int]) -> str | None:
    """Return the note on a column of text that holds numbers as people write them, and perhaps some other values."""
    some = _from_all_over(texts)
    if 2 * sum(map(is_number, some)) < len(some) or all(_PLAIN.match(text) for text in some):
        return None
    spelled = [text for text in texts if is_number(text) and not _PLAIN.match(text)]
    readings = count_readings(texts, counts)
    stray = StrayText(readings.n_values - readings.n_read_any, readings.n_values, [
        text for text in texts if not is_number(text)
    ])  # fmt: skip
    is_mixed = 2 * stray.n_stray <= stray.n_values and len(texts) - len(stray.examples) >= _LEAST_NUMBERS
    if not spelled or not (stray.n_stray == 0 or stray.is_rare or is_mixed):
        return None
    decimal = readings.decimal(2.0 if is_mixed else MOST_STRAY)
    if decimal is None:
        return None
    first = spelled[0]
    if decimal == "":
        marks = {mark: as_number(first, mark) for mark in ".,"}
        option = "--decimal (in Python, decimal) says which for a file; convert a column in memory"
        note = f"{first!r} is {marks['.']} with a decimal point, but {marks[',']} with a decimal comma: {option}"
        return f"numbers are read as text, so that each is a category: {note}"
    note = f"numbers such as {first!r} are read as text, so that each is a category: write {as_number(first, decimal)}"
    return note if stray.n_stray == 0 else f"{note}; {_leave_empty(stray)}"


def _leave_empty(stray: StrayText) -> str:
    """Return the advice on values that are of another kind than the others."""
    return f"{stray}: leave {'it' if stray.n_stray == 1 else 'these'} empty"


def _date_note(date: str, stray: StrayText) -> str:
    """Return the note on a column of text that holds dates, and perhaps a few other values."""
    advice = []
    if stray.n_stray > 0:
        advice.append(_leave_empty(stray))
    if not advice or _ISO.match(date) is None:
        advice.append("convert the column to dates, or read a CSV with --date-format (in Python, date_format)")
    return f"dates such as {date!r} are read as text, so that each is a category; {'; '.join(advice)}"


def alike_note(values: Iterable[object], counts: Iterable[int], kind: str, only: str | None = None) -> str | None:
    """Return a sentence on distinct values of text that differ only by case and spaces, or None if there are none.

    With `only`, they must be like that value.
    """
    groups: dict[str, list[str]] = {}
    for value, count in zip(values, counts):
        if isinstance(value, str):
            groups.setdefault(_folded(value), []).append(f"{str(value)!r} ({count:,})")
    alike = [group for text, group in groups.items() if len(group) > 1 and (only is None or text == _folded(only))]
    if not alike:
        return None
    first = alike[0]
    listed = ", ".join(first[:_MOST_LISTED]) + (
        f" and {len(first) - _MOST_LISTED:,} more" if first[_MOST_LISTED:] else ""
    )
    others = f", as do {len(alike) - 1:,} more groups," if alike[1:] else ""
    return f"{listed} differ only by case and spaces{others} and are different {kind}: write what is the same alike"


def _folded(text: str) -> str:
    """Return a text without what one does not see or hear: in lower case, with one space between words."""
    return " ".join(text.split()).casefold()


def read_as_missing(name: str, stray: StrayText, can_be_text: bool) -> str:
    """Return the sentence on stray text in a column that is read as another type, with the option if it can be text."""
    option = "; --stray-text text (in Python, stray_text='text') reads the column as text" if can_be_text else ""
    return f"column {name!r}: {stray}, read as missing{option}{stray.advice}"


def listed_columns(names: Sequence[str]) -> str:
    """Return the words that begin a sentence on some columns, whose names are in quotes."""
    more = f" and {len(names) - MOST_NAMES:,} more" if names[MOST_NAMES:] else ""
    return f"column{'s' if names[1:] else ''} {', '.join(names[:MOST_NAMES])}{more}"


def unseen_note(name: str, n_unseen: int, n_rows: int, examples: Sequence[str]) -> str:
    """Return the sentence on categories of a column that the training data did not have."""
    share = f"{100.0 * n_unseen / n_rows:.2g} %" if n_unseen < n_rows else "100 %"
    listed = ", ".join(map(repr, map(readable, examples[:_EXAMPLES])))
    more = ", ..." if len(examples) > _EXAMPLES else ""
    return (
        f"column {name!r}: {n_unseen:,} of {n_rows:,} rows ({share}) have a category that training has not seen"
        f" ({listed}{more}); it counts as a missing value"
    )
