"""Columns of text that were probably meant to be something else: numbers with some stray text among them, or dates."""

import re
from collections.abc import Iterable, Sequence

from aucforest.tables.values import readable

# Numbers as Arrow parses them. The pattern means the same to `re` and to Arrow's regular expressions.
NUMBER_PATTERN = r"^\s*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(?i:inf|infinity|nan))\s*$"
# A column of text is nearly all numbers if less than this proportion of its values is something else.
MOST_STRAY = 0.1
# With this many distinct numbers, text that is up to half of the values is noted as well; fewer may be categories.
_LEAST_NUMBERS = 20
# The number of values that a sentence quotes.
_EXAMPLES = 3

_NUMBER = re.compile(NUMBER_PATTERN)
# A number with or without a decimal comma, with or without points as thousands separators.
_WITH_COMMA = re.compile(r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?\s*")
_WITH_SIGN = re.compile(r"\s*[€$£¥]?\s*[-+]?\d[\d.,]*\s*[€$£¥%]?\s*")
_YEAR = r"\d{4}"
_DATE = re.compile(
    rf"\s*({_YEAR}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]({_YEAR}|\d\d)"
    rf"|\d\d?[-. ]+[^\W\d]{{3,9}}[-., ]+({_YEAR}|\d\d)|[^\W\d]{{3,9}}\.? \d\d?,? {_YEAR})([T ,]+\d\d?:\d\d.*)?\s*"
)
# Dates that need no format.
_ISO = re.compile(r"\s*\d{4}-\d\d-\d\d")


class StrayText:
    """The number of values of a column of text, how many of them are no numbers, and the first ones of these.

    They are counted among values of another kind, such as dates, if its pattern and name are given.
    """

    def __init__(self, pattern: re.Pattern[str] = _NUMBER, kind: str = "number") -> None:
        self._pattern, self._kind = pattern, kind
        self.n_values = self.n_stray = 0
        # The number of distinct values that are no numbers, if each is added once.
        self.n_distinct = 0
        self.examples: list[str] = []
        # The row of the first one, for an error message.
        self.first_row: int | None = None

    def add(self, values: Iterable[str], counts: Iterable[int]) -> None:
        """Add distinct values and how often each of them occurs."""
        for value, count in zip(values, counts):
            self.n_values += count
            if self._pattern.fullmatch(value) is None:
                self.add_stray([value], count)

    def add_stray(self, values: Iterable[str], n_rows: int) -> None:
        """Add values that are no numbers, which are in so many rows."""
        self.n_stray += n_rows
        for value in values:
            self.n_distinct += 1
            if len(self.examples) < _EXAMPLES and value not in self.examples:
                self.examples.append(value)

    @property
    def is_rare(self) -> bool:
        """Whether some of the values are no numbers, but few enough that the column is one of numbers."""
        return 0 < self.n_stray < MOST_STRAY * self.n_values

    def __str__(self) -> str:
        are = f"is no {self._kind}" if self.n_stray == 1 else f"are no {self._kind}s"
        return f"{self.n_stray:,} of {self.n_values:,} values {are} ({', '.join(map(repr, self.examples))})"


def text_note(values: Sequence[object], counts: Iterable[int]) -> str | None:
    """Return what the distinct values of a column of text probably are instead, or None if nothing suggests it."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return None
    if any("," in text for text in texts) and all(map(_WITH_COMMA.fullmatch, texts)):
        return "numbers with a decimal comma are read as text; write a decimal point"
    if any(set(text) & set("€$£¥%") for text in texts) and all(map(_WITH_SIGN.fullmatch, texts)):
        return "numbers with a currency or percent sign are read as text; write the numbers alone"
    # Few columns of text have dates or numbers, and most of the others show it at once.
    dates = [text for text in texts[:100] if _DATE.fullmatch(text)]
    if 2 * len(dates) > len(texts[:100]):
        stray = StrayText(_DATE, "date")
        stray.add(texts, counts)
        return _date_note(dates[0], stray) if stray.is_rare or stray.n_stray == 0 else None
    if sum(_NUMBER.match(text) is not None for text in texts[:100]) * 2 < len(texts[:100]):
        return None
    stray = StrayText()
    stray.add(texts, counts)
    is_mixed = 0 < 2 * stray.n_stray <= stray.n_values and len(texts) - stray.n_distinct >= _LEAST_NUMBERS
    if not (stray.is_rare or is_mixed):
        return None
    return f"{stray}, so that all are read as text and each is a category; leave empty what is no number"


def _date_note(date: str, stray: StrayText) -> str:
    """Return the note on a column of text that holds dates, and perhaps a few other values."""
    advice = []
    if stray.n_stray > 0:
        advice.append(f"{stray}: leave {'it' if stray.n_stray == 1 else 'these'} empty")
    if not advice or _ISO.match(date) is None:
        advice.append("convert the column to dates, or read a CSV with --date-format (in Python, date_format)")
    return f"dates such as {date!r} are read as text, so that each is a category; {'; '.join(advice)}"


def read_as_missing(name: str, stray: StrayText, can_be_text: bool = True) -> str:
    """Return the sentence on stray text in a column that was read as numbers, with the option if it can be text."""
    option = "; --stray-text text (in Python, stray_text='text') reads the column as text" if can_be_text else ""
    return f"column {name!r}: {stray}, read as missing{option}"


def unseen_note(name: str, n_unseen: int, n_rows: int, examples: Sequence[str]) -> str:
    """Return the sentence on categories of a column that the training data did not have."""
    share = f"{100.0 * n_unseen / n_rows:.2g} %" if n_unseen < n_rows else "100 %"
    listed = ", ".join(map(repr, map(readable, examples[:_EXAMPLES])))
    more = ", ..." if len(examples) > _EXAMPLES else ""
    return (
        f"column {name!r}: {n_unseen:,} of {n_rows:,} rows ({share}) have a category that training has not seen"
        f" ({listed}{more}); it counts as a missing value"
    )
