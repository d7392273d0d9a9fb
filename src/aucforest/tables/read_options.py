"""How files are read: what is written in which way, and which rows."""

import codecs
from datetime import datetime
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class ReadOptions(NamedTuple):
    """How a table in a file is read; all but `where` and `sample` is for text, such as that of a CSV.

    None is the separator that the header shows, UTF-8, and the spelling of numbers and dates that nearly all values of
    a column have. Stray text in a column of numbers or dates is missing with "number"; with "text" the column stays
    text. Rows are those for which the SQL expression `where` is true, and of these a random `sample`.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None
    stray_text: Literal["number", "text"] = "number"
    where: str | None = None
    sample: int | None = None

    @property
    def point_or_comma(self) -> str | None:
        """The decimal mark that `decimal` or `thousands` says, or None."""
        others = {",": ".", ".": ","}
        return self.decimal or others.get(self.thousands or "")

    def check(self) -> "ReadOptions":
        """Return the options with a tab as a separator for a backslash followed by t; ValueError if one is invalid."""
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.date_format is not None:
            check_date_format(self.date_format)
        for mark, name in ((self.decimal, "decimal"), (self.thousands, "thousands")):
            if mark is not None:
                check_mark(mark, name)
        if self.decimal is not None and self.decimal == self.thousands:
            raise ValueError(f"the decimal mark and that between thousands are the same, {self.decimal!r}")
        return self if self.separator is None else self._replace(separator=check_separator(self.separator))


DEFAULT_OPTIONS = ReadOptions()


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


def check_mark(mark: str, name: str = "decimal") -> str:
    """Return a mark in numbers; ValueError if it is none."""
    marks = {"decimal": ".,", "thousands": ".,' "}[name]
    if len(mark) != 1 or mark not in marks:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, marks))}, but is {mark!r}")
    return mark


def check_thousands(mark: str) -> str:
    """Return the mark between thousands; ValueError if it is none."""
    return check_mark(mark, "thousands")


def check_date_format(date_format: str) -> str:
    """Return the format of dates; ValueError if it has no directives of strptime, or unknown ones."""
    try:
        day = pc.strptime(pc.strftime(pa.array([datetime(2024, 2, 29)]), format=date_format), date_format, "s")
        if "%" in date_format and day.null_count == 0 and "{0}" not in date_format:  # which stands for a column
            return date_format
    except (pa.ArrowInvalid, UnicodeEncodeError):
        pass
    raise ValueError(f"the format of dates must be one of strptime, such as '%d.%m.%Y', but is {date_format!r}")
