"""How a CSV is written and read."""

from typing import Literal, NamedTuple

# What becomes of the values of a column of numbers that are none: missing values, or the column stays text.
OnStray = Literal["number", "text"]


class CsvFormat(NamedTuple):
    """How a CSV is written and read; what holds for values also holds for text in other tables.

    None is the separator that the name of the file says, and UTF-8.
    """

    separator: str | None = None
    encoding: str | None = None
    stray_text: OnStray = "number"


DEFAULT_FORMAT = CsvFormat()


def check_separator(separator: str) -> str:
    r"""Return the separator as one character, a tab for a backslash followed by t; ValueError if it is not one."""
    separator = "\t" if separator == r"\t" else separator
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise ValueError(rf"the separator must be one character, such as ';' or '\t', but is {separator!r}")
    return separator


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding; ValueError if Python has no such encoding of text."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"the encoding must be one that Python has, such as cp1252 or utf-16, but is {encoding!r}"
        ) from None
    return encoding
