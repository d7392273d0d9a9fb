"""Numbers as people write them: with separators of thousands, decimal commas, units, and minus signs of many kinds.

They are not read as numbers: whether "12,345" is 12345 or 12.345 is for its author to say. A note tells what to write.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_MINUSES = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
_SPACES = " \u00a0\u2007\u2009\u202f"
_CURRENCY = r"(?:EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|BRL|Rs\.?|[A-Z]{0,2}[€$£¥₹₩₽₺¢])"
_WORD = r"[^\W\d_]{1,12}[23²³]?"
# At most one space stands between the parts.
_TEXT = re.compile(
    rf"(?P<open>\()?\s?(?P<first>[-+{_MINUSES}]?)\s?(?P<currency>{_CURRENCY})?\s?(?P<second>[-+{_MINUSES}]?)\s?"
    rf"(?P<digits>[0-9](?:[0-9.,'’{_SPACES}]*[0-9])?\.?|[.,][0-9]+)(?P<exponent>[eE][-+]?[0-9]+)?"
    rf"(?P<gap>\s?)(?:(?P<sign>[%‰]|{_CURRENCY})|(?P<unit>[°µ]?{_WORD}(?:/{_WORD})?|°))?"
    rf"\s?(?P<last>[-{_MINUSES}]?)\s?(?(open)\))"
)
_LONGEST = 50
# Digits of numbers with a decimal point and with a decimal comma. Thousands may be separated, by commas in the Indian
# way, too, but not in a number that begins with 0.
_BY_SPACE = rf"[1-9][0-9]{{0,2}}(?P<space>['’{_SPACES}])[0-9]{{3}}(?:(?P=space)[0-9]{{3}})*"
_WITH_POINT = re.compile(rf"(?:[0-9]*|{_BY_SPACE}|[1-9][0-9]{{0,2}}(?:,[0-9]{{2,3}})*,[0-9]{{3}})(?:\.[0-9]*)?")
_WITH_COMMA = re.compile(rf"(?:[0-9]*|{_BY_SPACE}|[1-9][0-9]{{0,2}}(?:\.[0-9]{{3}})+)(?:,[0-9]+)?")
_GAPS = re.compile(rf"['’{_SPACES}]")
_IN_PARENTHESES, _WITH_SPACES = "in parentheses", "with spaces or apostrophes between thousands"
# More units than this are probably parts of codes. So are letters right behind whole numbers, as in 12A, unless the
# numbers are many and the letters a word or one of these.
_MOST_UNITS, _LEAST_VALUES = 5, 20
_LETTERS = set("KkMmBbGgTtLl")


class Spelling(NamedTuple):
    """What a text is as a number with a decimal point, and as one with a decimal comma; "" if it is none.

    `unit` is what stands beside the number, `is_letters` whether this is no sign of a currency or percent, `is_exact`
    whether there is a fraction or a space, which codes such as 12A lack, and `marks` says what else is not read.
    """

    with_point: str
    with_comma: str
    unit: str
    is_letters: bool
    is_exact: bool
    marks: tuple[str, ...]


def read_spelling(text: str) -> Spelling | None:
    """Return what a text is as a number, or None if it is none."""
    match = _TEXT.fullmatch(stripped) if len(stripped := text.strip()) <= _LONGEST else None
    if match is None:
        return None
    signs = [match[name] for name in ("first", "second", "last") if match[name]]
    if len(signs) + bool(match["open"]) > 1:
        return None
    minus = "-" if match["open"] or signs not in ([], ["+"]) else ""
    digits, exponent = match["digits"], match["exponent"] or ""
    bare, with_point, with_comma = _GAPS.sub("", digits), "", ""
    if _WITH_POINT.fullmatch(digits) and not (exponent and "," in digits):
        with_point = f"{minus}{bare.replace(',', '')}{exponent}"
    if _WITH_COMMA.fullmatch(digits) and not (exponent and "." in digits):
        with_comma = f"{minus}{bare.replace('.', '').replace(',', '.')}{exponent}"
    if not (with_point or with_comma):
        return None
    marks = []
    if bare != digits:
        marks.append(_WITH_SPACES)
    if match["last"]:
        marks.append("with a minus behind")
    if signs and signs[0] in _MINUSES:
        marks.append("with a minus sign that is not '-'")
    if match["open"]:
        marks.append(_IN_PARENTHESES)
    unit = match["unit"] or match["sign"] or match["currency"] or ""
    is_exact = bool(match["gap"]) or not digits.isdigit()
    return Spelling(with_point, with_comma, unit, match["unit"] is not None, is_exact, tuple(marks))


class _Reading(NamedTuple):
    """How the points and commas of some texts are read: words for them with a text that has them, and advice.

    The advice is empty if it is sure that each text is a number with a decimal comma, or with a decimal point.
    """

    forms: dict[str, str]
    is_comma: bool = False
    advice: str = ""


def spelling_note(read: Mapping[str, Spelling], plain: Iterable[str]) -> str | None:
    """Return a sentence on the numbers `read`, beside `plain` ones as Python writes them; None if they may be codes."""
    every = dict(read)
    for text in plain:  # of which those with a point tell how the others are read
        if len(every) == len(read) or "." in text:
            by_comma = text.replace(".", "") if _WITH_COMMA.fullmatch(text.strip()) else ""
            every[text] = Spelling(text, by_comma, "", False, False, ())
    units = list(dict.fromkeys(spelling.unit for spelling in every.values()))
    of_letters = [spelling for spelling in read.values() if spelling.is_letters]
    if (of_letters and _may_be_codes(of_letters, len(read))) or len(units) > _MOST_UNITS:
        return None
    reading = _read_separators(every)
    forms = dict(reading.forms)
    for text, spelling in read.items():
        for mark in spelling.marks:
            forms.setdefault(mark, text)
    if units != [""]:
        named = f"with {', '.join(repr(unit) for unit in units if unit)} as unit"
        name = named if of_letters else "with a currency or percent sign"
        forms[name] = next(text for text, spelling in read.items() if spelling.unit)
    advice = [reading.advice]
    if not reading.advice:
        which = [text for text in dict.fromkeys(forms.values()) if len(units) == 1 or not every[text].unit]
        advice = [" and ".join(_pair(text, every[text], reading.is_comma) for text in which[:3])]
    if len(units) > 1:
        advice.append("the numbers alone, all in the same unit")
    written = f"write {' and '.join(filter(None, advice))}"
    if _IN_PARENTHESES in forms:
        written += "; without the minus if parentheses are no minus"
    if of_letters or _WITH_SPACES in forms:
        written += "; codes can stay text"
    return f"numbers {' and '.join(forms)} are read as text: {written}"


def _may_be_codes(of_letters: Sequence[Spelling], n_read: int) -> bool:
    """Return whether letters behind numbers may be parts of codes instead of units."""
    is_word = all(len(spelling.unit) > 1 or spelling.unit in _LETTERS for spelling in of_letters)
    return not any(spelling.is_exact for spelling in of_letters) and not (is_word and n_read >= _LEAST_VALUES)


def _read_separators(every: Mapping[str, Spelling]) -> _Reading:
    """Return how points and commas are read if all of these texts are written alike."""
    commas, points = ([text for text in every if mark in text] for mark in ",.")
    of_point = [text for text in commas + points if not every[text].with_comma]
    of_comma = [text for text in commas + points if not every[text].with_point]
    if of_point and of_comma:
        pairs = _pair(of_point[0], every[of_point[0]], False), _pair(of_comma[0], every[of_comma[0]], True)
        return _Reading({"in several spellings": ""}, advice=" and ".join(pairs))
    if of_comma:
        forms = {"with a decimal comma": commas, "with points between thousands": points}
        return _Reading({form: texts[0] for form, texts in forms.items() if texts}, is_comma=True)
    if of_point or not (commas or points):
        return _Reading({"with commas between thousands": commas[0]} if commas else {})
    marked = [text for text, spelling in every.items() if spelling.marks]
    texts = list(dict.fromkeys(commas[:1] + points[:1] + marked[:1]))
    name = "commas" if commas else "points"
    of_thousands = " and ".join(_pair(text, every[text], is_comma=not commas) for text in texts)
    of_decimals = " and ".join(every[text].with_comma if commas else every[text].with_point for text in texts)
    return _Reading(
        {f"with {name}": ""},
        advice=f"{of_thousands} if {name} separate thousands, but {of_decimals} if they mark decimals",
    )


def _pair(text: str, spelling: Spelling, is_comma: bool) -> str:
    """Return what to write for a text."""
    return f"{spelling.with_comma if is_comma else spelling.with_point} for {text!r}"
