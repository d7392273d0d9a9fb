"""Columns of text that were probably meant to be something else: numbers with some stray text among them, or dates."""

import re
from collections.abc import Iterable, Sequence

from aucforest.tables.spellings import Spelling, read_spelling, spelling_note
from aucforest.tables.values import readable

# Numbers as Arrow parses them. The pattern means the same to `re` and to Arrow's regular expressions.
NUMBER_PATTERN = r"^\s*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(?i:inf|infinity|nan))\s*$"
# A column of text is nearly all numbers if less than this proportion of its values is something else.
MOST_STRAY = 0.1
# With this many distinct numbers, text that is up to half of the values is noted as well; fewer may be categories.
_LEAST_NUMBERS = 20
# The number of values that a sentence quotes.
_EXAMPLES = 3
# The number of values that are kept, to see whether some are numbers in another spelling.
_MOST_KEPT = 100
# Columns of more distinct texts are not searched for spellings that differ by case and spaces, and of these so many are
# quoted.
_MOST_ALIKE, _MOST_LISTED = 1000, 5

_NUMBER = re.compile(NUMBER_PATTERN)
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
            if len(self.examples) < _MOST_KEPT and value not in self.examples:
                self.examples.append(value)

    @property
    def is_rare(self) -> bool:
        """Whether some of the values are no numbers, but few enough that the column is one of numbers."""
        return 0 < self.n_stray < MOST_STRAY * self.n_values

    def __str__(self) -> str:
        are = f"is no {self._kind}" if self.n_stray == 1 else f"are no {self._kind}s"
        return f"{self.n_stray:,} of {self.n_values:,} values {are} ({', '.join(map(repr, self.examples[:_EXAMPLES]))})"

    @property
    def advice(self) -> str:
        """What to do about values that are numbers in another spelling, as a clause, or "" if none is seen."""
        spelled = next(filter(read_spelling, self.examples), None)
        return "" if spelled is None else f"; write numbers such as {spelled!r} with digits and a decimal point alone"


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
        stray = StrayText(_DATE, "date")
        stray.add(texts, counts)
        return _date_note(dates[0], stray) if stray.is_rare or stray.n_stray == 0 else None
    some = _from_all_over(texts)
    if sum(_NUMBER.match(text) is not None for text in some) * 2 < len(some):
        return None
    stray = StrayText()
    stray.add(texts, counts)
    is_mixed = 0 < 2 * stray.n_stray <= stray.n_values and len(texts) - stray.n_distinct >= _LEAST_NUMBERS
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
    some = [read_spelling(text) for text in _from_all_over(texts)]
    if 2 * (len(some) - some.count(None)) < len(some):
        return None
    stray, read, plain = StrayText(), dict[str, Spelling](), list[str]()
    for text, count in zip(texts, counts):
        stray.n_values += count
        if _NUMBER.match(text) is not None:
            plain.append(text)
        elif (spelling := read_spelling(text)) is not None:
            read[text] = spelling
        else:
            stray.add_stray([text], count)
    is_mixed = 2 * stray.n_stray <= stray.n_values and len(read) + len(plain) >= _LEAST_NUMBERS
    if not read or not (stray.n_stray == 0 or stray.is_rare or is_mixed):
        return None
    note = spelling_note(read, plain)
    return note if note is None or stray.n_stray == 0 else f"{note}; {_leave_empty(stray)}"


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


def read_as_missing(name: str, stray: StrayText, can_be_text: bool = True) -> str:
    """Return the sentence on stray text in a column that was read as numbers, with the option if it can be text."""
    option = "; --stray-text text (in Python, stray_text='text') reads the column as text" if can_be_text else ""
    return f"column {name!r}: {stray}, read as missing{option}{stray.advice}"


def unseen_note(name: str, n_unseen: int, n_rows: int, examples: Sequence[str]) -> str:
    """Return the sentence on categories of a column that the training data did not have."""
    share = f"{100.0 * n_unseen / n_rows:.2g} %" if n_unseen < n_rows else "100 %"
    listed = ", ".join(map(repr, map(readable, examples[:_EXAMPLES])))
    more = ", ..." if len(examples) > _EXAMPLES else ""
    return (
        f"column {name!r}: {n_unseen:,} of {n_rows:,} rows ({share}) have a category that training has not seen"
        f" ({listed}{more}); it counts as a missing value"
    )
