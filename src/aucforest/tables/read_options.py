"""Options for reading files: the format of the text, and the rows that are read."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class ReadOptions(NamedTuple):
    """How a table in a file is read. All options except `where` and `sample` are for files of text, such as CSV.

    By default, the separator is inferred from the first lines, and the encoding is UTF-8, or UTF-16 or UTF-32 with a
    byte order mark. A column of numbers or dates has the format that fits nearly all of its values. If `stray_text` is
    "number", its other values are missing. If `stray_text` is "text", a column with other values is text. `where` is an
    SQL condition, and `sample` the number of rows that are sampled from those for which the condition is true.
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
        """The decimal mark that `decimal` or `thousands` determines, or None."""
        return self.decimal or {",": ".", ".": ","}.get(self.thousands or "")

    def check(self) -> "ReadOptions":
        r"""Return the options after validation. If the separator is "\t" as two characters, it becomes a tab."""
        for name, check in CHECKS.items():
            if (value := getattr(self, name)) is not None:
                check(value)
        if self.decimal is not None and self.decimal == self.thousands:
            raise ValueError(f"the decimal mark and that between thousands are the same, {self.decimal!r}")
        return self._replace(separator="\t") if self.separator == r"\t" else self


DEFAULT_OPTIONS = ReadOptions()


def _check_separator(separator: str) -> None:
    r"""Raise ValueError unless a separator is one ASCII character (no quote or line end) or the two characters "\t"."""
    if separator != r"\t" and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n'):
        raise ValueError(rf"the separator must be one character, such as ';' or '\t', but is {separator!r}")


def _check_encoding(encoding: str) -> None:
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"the encoding must be one that Python has, such as cp1252 or utf-16, but is {encoding!r}"
        ) from None


def _check_mark(mark: str, name: str, marks: str) -> None:
    if len(mark) != 1 or mark not in marks:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, marks))}, but is {mark!r}")


def _check_date_format(date_format: str) -> None:
    """Raise ValueError if a date that is written in a format cannot be read again by strptime."""
    try:
        # In units smaller than seconds, the written seconds would have a fraction, which strptime does not read. Arrow
        # does not know fractions, but the engine does.
        whole = date_format.replace("%f", "0")
        written = pc.strftime(pa.array([datetime(2024, 2, 29)], pa.timestamp("s")), format=whole)
        day = pc.strptime(written, whole, "s")
        # In the SQL that reads dates, {0} is replaced by the name of a column.
        if "%" in date_format and day.null_count == 0 and "{0}" not in date_format:
            return
    except (pa.ArrowInvalid, UnicodeEncodeError):
        pass
    zone = ", without the time zone" if "%z" in date_format else ""
    raise ValueError(f"the format of dates must be one of strptime{zone}, such as '%d.%m.%Y', but is {date_format!r}")


# The functions that validate options, by name. Each raises ValueError if the value is invalid.
CHECKS: dict[str, Callable[[str], None]] = {
    "separator": _check_separator,
    "encoding": _check_encoding,
    "decimal": partial(_check_mark, name="decimal", marks=".,"),
    "thousands": partial(_check_mark, name="thousands", marks=".,' "),
    "date_format": _check_date_format,
}
