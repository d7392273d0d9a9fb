"""Numbers as people write them: with a decimal comma, marks between thousands, a unit, and minus signs of many kinds.

The patterns mean the same to `re` and to the database engine: a column in a file and one in memory are read alike.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Text is missing among numbers or dates if less than this proportion of the values is none.
MOST_STRAY = 0.1
# Space around a number: `\s` of the engine has no others, that of `re` has.
_GAP = r"[ \t\n\f\r]*"
# Numbers as Python writes them.
PLAIN = rf"^{_GAP}[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|(?i:inf|infinity|nan)){_GAP}$"
MINUSES = "\u2010-\u2013\u2212\ufe63\uff0d"
_SPACE = " \u00a0\u2007\u2009\u202f"
_CURRENCY = "(?:EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|BRL|Rs|[A-Z]{0,2}[€$£¥₹₩₽₺¢])"
_LETTERS = "[A-Za-zµ°\u00c0-\u024f\u0370-\u03ff]{1,12}[23²³]?"
_SUFFIX = rf"[kKMB]?[{_SPACE}]?(?:[%‰]|{_CURRENCY}|{_LETTERS}(?:/{_LETTERS})?)?"
_BY_SPACE = rf"[1-9][0-9]{{0,2}}(?:['’{_SPACE}][0-9]{{3}})+"
# Digits by the decimal mark. Commas may separate thousands in the Indian way, too.
_DIGITS = {
    ".": rf"(?:(?:[0-9]+|{_BY_SPACE}|[1-9][0-9]{{0,2}}(?:,[0-9]{{2,3}})*,[0-9]{{3}})(?:\.[0-9]*)?|\.[0-9]+)",
    ",": rf"(?:(?:[0-9]+|{_BY_SPACE}|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+)(?:,[0-9]+)?|,[0-9]+)",
}


def _pattern(decimal: str) -> str:
    """Return the pattern of a number, with a sign before or behind it, or in the parentheses of accountants."""
    number = rf"{_DIGITS[decimal]}(?:[eE][-+]?[0-9]+)?{_SUFFIX}"
    money, sign = rf"(?:{_CURRENCY}[{_SPACE}]?)?", f"[-+{MINUSES}]"
    forms = (rf"(?:{sign}[{_SPACE}]?)?{money}{number}", rf"{_CURRENCY}[{_SPACE}]?{sign}{number}")
    return rf"^{_GAP}(?:{forms[0]}|{forms[1]}|{money}{number}[{_SPACE}]?[-{MINUSES}]|\({money}{number}\)){_GAP}$"


PATTERNS = {decimal: _pattern(decimal) for decimal in _DIGITS}
# What is a minus, the digits with their marks, the factor behind them, and all that is no unit.
MINUS = rf"^{_GAP}\(|^[^0-9]*[-{MINUSES}]|[-{MINUSES}]{_GAP}$"
DIGITS = rf"[.,]?[0-9](?:[0-9.,'’{_SPACE}]*[0-9])?(?:[eE][-+]?[0-9]+)?"
FACTOR = r"[0-9][.,]?([kKMB])(?:[^A-Za-z]|$)"
FACTORS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
NO_UNIT = rf"[0-9][eE][-+]?[0-9]|[0-9.][kKMB](?:[^A-Za-z]|$)|[-+()0-9.,'’\t\n\f\r{_SPACE}{MINUSES}]"

_RE = {decimal: re.compile(pattern) for decimal, pattern in PATTERNS.items()}
_NO_UNIT = re.compile(NO_UNIT)


class Readings(NamedTuple):
    """How many values of a column of text are numbers with a decimal point, with a decimal comma, or with both.

    Of those that are numbers in both ways `n_either` have a mark, so that they are two different numbers.
    """

    n_values: int = 0
    n_point: int = 0
    n_comma: int = 0
    n_both: int = 0
    n_either: int = 0
    units: Sequence[str] = ()

    @property
    def has_unit(self) -> bool:
        """Whether the numbers have at most one unit, which is no capital letter, as in codes such as 12A."""
        units = sorted(set(self.units) - {""})
        return not units or (len(units) == 1 and re.fullmatch("[A-Z]", units[0]) is None)

    @property
    def n_read_any(self) -> int:
        """How many values are numbers in any way."""
        return self.n_point + self.n_comma - self.n_both

    def n_read(self, decimal: str) -> int:
        """Return how many values are numbers with a decimal mark."""
        return self.n_point if decimal == "." else self.n_comma

    @property
    def is_sure(self) -> str | None:
        """The decimal mark that one value at least has and none contradicts, or None."""
        of_point, of_comma = self.n_point - self.n_both, self.n_comma - self.n_both
        return None if (of_point > 0) == (of_comma > 0) else "." if of_point > 0 else ","

    def decimal(self, most_stray: float, given: str | None = None) -> str | None:
        """Return the decimal mark by which all values but a share of `most_stray` are numbers, "" if both may be it.

        None if the values are no numbers, or are written in several ways. `given` decides where both may be it.
        """
        marks = [mark for mark in PATTERNS if is_few(self.n_values - self.n_read(mark), self.n_values, most_stray)]
        if not marks or not self.has_unit:
            return None
        if len(marks) == 1 or self.is_sure:
            return self.is_sure or marks[0]
        if self.n_point > self.n_both:  # and some have a decimal comma
            return None
        return "." if self.n_either == 0 else given or ""


def is_few(n_stray: int, n_values: int, most_stray: float) -> bool:
    """Return whether fewer than a share of the values are stray; if it is 0, none may be."""
    return n_stray == 0 or n_stray < most_stray * n_values


def count_readings(values: Iterable[str], counts: Iterable[int]) -> Readings:
    """Return how many values are numbers in which way, from distinct values and how often each occurs."""
    n_values = n_point = n_comma = n_both = n_either = 0
    units: dict[str, None] = {}
    for value, count in zip(values, counts):
        n_values += count
        by_point, by_comma = (_RE[mark].match(value) is not None for mark in PATTERNS)
        n_point += by_point * count
        n_comma += by_comma * count
        if by_point or by_comma:
            units[_NO_UNIT.sub("", value)] = None
        if by_point and by_comma:
            n_both += count
            n_either += count * ("." in value or "," in value)
    return Readings(n_values, n_point, n_comma, n_both, n_either, list(units))


def is_number(text: str) -> bool:
    """Return whether a text is a number in any way."""
    return any(pattern.match(text) for pattern in _RE.values())


def as_number(text: str, decimal: str) -> str:
    """Return a text that is a number with a decimal mark as Python writes it, without its unit."""
    digits, factor = re.search(DIGITS, text), re.search(FACTOR, text)
    kept = re.sub(rf"[^-+0-9eE{decimal}]", "", digits[0]).replace(",", ".") if digits else text
    kept = f"{float(kept) * FACTORS[factor[1]]:.15g}" if factor else kept
    return f"-{kept}" if re.search(MINUS, text) else kept
