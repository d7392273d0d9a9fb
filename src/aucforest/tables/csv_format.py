"""How a CSV is written and read."""

import codecs
from datetime import datetime
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class CsvFormat(NamedTuple):
    """How a CSV is written and read; what holds for values also holds for text in other tables.

    None is the separator that the name of the file says, UTF-8, and no other format of dates than ISO 8601. Stray text
    in a column of numbers is missing with "number"; with "text" the column stays text.
    """

    separator: str | None = None
    encoding: str | None = None
    date_format: str | None = None
    stray_text: Literal["number", "text"] = "number"


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


def has_one_byte(encoding: str) -> bool:
    """Return whether each character takes one byte in an encoding, as in cp1252."""
    is_utf8 = codecs.lookup(encoding).name.startswith("utf-8")
    return not is_utf8 and len(bytes(range(256)).decode(encoding, "replace")) == 256


def check_date_format(date_format: str) -> str:
    """Return the format of dates; ValueError if it has no directives of strptime, or unknown ones."""
    try:
        day = pc.strptime(pc.strftime(pa.array([datetime(2024, 2, 29)]), format=date_format), date_format, "s")
        if "%" in date_format and day.null_count == 0:
            return date_format
    except pa.ArrowInvalid:
        pass
    raise ValueError(f"the format of dates must be one of strptime, such as '%d.%m.%Y', but is {date_format!r}")
