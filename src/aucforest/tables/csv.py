"""CSV files of any dialect: the header, the separator, quotes, and the lines of rows."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import StringIO, TextIOWrapper
from itertools import chain, groupby, islice, takewhile
from typing import Any, NamedTuple

from aucforest.tables.copies import Readable, open_unpacked
from aucforest.tables.database import text, texts
from aucforest.tables.files import check_column_names, check_same_names
from aucforest.tables.kinds import MISSING
from aucforest.tables.text_files import NOT_UTF8, TextFiles

CSV_SUFFIXES = tuple(f"{suffix}{packed}" for packed in ("", ".gz", ".zst") for suffix in (".csv", ".tsv", ".txt"))
_SEPARATORS = (",", ";", "\t", "|")
# The number of rows from which the format of a CSV file is found, and the maximum length of a row in bytes.
_HEAD, _LONGEST = 20, 2**21
# The engine divides buffers into parts of 8,000,000 bytes. It does not release all smaller buffers before the last row.
_BUFFER = 2**23
# The header and the first rows are read by Python, whose own limit is 128 KiB.
csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
_ODD_LINE = "{} ends in another way than the header: let all lines end alike"
# The ends of lines, as the engine's option has them.
_NEW_LINES = {"": r"\n", "\n": r"\n", "\r": r"\r", "\r\n": r"\r\n"}


class _Dialect(NamedTuple):
    """How the rows of a file are written."""

    separator: str
    quote: str
    escape: str
    new_line: str
    n_skipped: int  # the header and blank lines before it

    def rows(self, lines: Iterator[str], *, skipinitialspace: bool = False) -> Any:
        """Return a reader of the rows of lines, as lists of values; blank lines are empty lists."""
        return csv.reader(
            lines,
            delimiter=self.separator,
            quotechar=self.quote,
            escapechar=None if self.escape == self.quote else self.escape,
            skipinitialspace=skipinitialspace,
        )


class CsvFiles(TextFiles):
    """CSV files with the same header as one table, whose dialects are found in the first rows; see `TextFiles`."""

    _is_parallel = True

    def _read_header(self) -> None:
        first = self._readable[0].file
        self._dialects = list[_Dialect]()
        self._has_numbers = any(copy.is_spreadsheet for copy in self._readable)
        for copy in self._readable:
            dialect, columns = _read_head(copy, self._options.separator)
            if not self.columns:
                self.columns, self.hint = columns, _hint(columns)
            check_same_names(first, self.columns, copy.file, columns)
            self._dialects.append(dialect)

    def _table(self, engine: Mapping[str, str], *, raw: bool = False) -> str:
        columns = ", ".join(f"'c{index}': '{engine.get(f'c{index}', 'VARCHAR')}'" for index in range(len(self.columns)))
        tables = []
        compressions = [file.compression for file in self._readable]
        files = zip(self._dialects, compressions, self._patterns)
        for (dialect, compression), group in groupby(files, key=lambda file: file[:2]):
            marks = {dialect.separator, dialect.escape}  # which the engine does not allow in these strings
            missing = [mark for mark in ("",) + MISSING * (not raw) if marks.isdisjoint(mark)]
            tables.append(
                f"read_csv([{texts([pattern for *_, pattern in group])}], auto_detect=false, columns={{{columns}}},"
                f" header=false, skip={dialect.n_skipped}, new_line='{dialect.new_line}', hive_partitioning=false,"
                f" delim={text(dialect.separator)}, quote={text(dialect.quote)}, escape={text(dialect.escape)},"
                f" compression='{compression}', max_line_size={_LONGEST}, buffer_size={_BUFFER},"
                f" parallel={self._is_parallel}, nullstr=[{texts(missing)}])"
            )
        return tables[0] if len(tables) == 1 else f"({' UNION ALL '.join(f'FROM {table}' for table in tables)})"

    def _switch_to_one_thread(self) -> bool:
        # Threads do not find where rows begin among values of several lines. One thread ignores a quote that is not
        # closed, and all that follows.
        if not (self._is_parallel and any(map(_has_quotes, self._readable, self._dialects))):
            return False
        self._is_parallel = False
        return not any(map(_has_open_quote, self._readable, self._dialects))

    def _explain(self, message: str) -> str:
        index, match = self._file_index(message), re.search(r"on Line: (\d+)", message)
        copy, dialect = self._readable[index], self._dialects[index]
        name = copy.file.name
        where = name if match is None else f"{name}, line {_line_of(copy, dialect, int(match[1]))}"
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
            return f"{where}: the header has {found[1]} columns, but the row has {found[2]}"
        if "not utf-8 encoded" in message:
            return f"{where} is {NOT_UTF8}"
        if "Maximum line size" in message:
            return f"{where} is longer than {_LONGEST >> 20} MiB: a quote may not be closed"
        if "unterminated quote" in message or "invalid state" in message:
            line = _odd_line(copy, dialect)
            if line is not None:
                return _ODD_LINE.format(f"{name}, line {line}")
            return f"{where}: a quote is not closed{', or text follows it' * ('invalid state' in message)}"
        reason = message.split(":", 1)[-1].strip().splitlines()[0]
        return f"cannot read {where}: {reason}"

    def location(self, row: int) -> str:
        """Return the file and the first line of a row, or the row of a spreadsheet.

        Blank lines, and line breaks in values, are counted as lines.
        """
        with suppress(csv.Error, StopIteration):  # values may be too long for Python's reader
            return next(islice(self._locations(), row, None))
        return super().location(row)

    def _locations(self) -> Iterator[str]:
        """Yield the location of each row."""
        for copy, dialect in zip(self._readable, self._dialects):
            with _open_text(copy) as lines:
                reader, name = dialect.rows(lines), copy.file.name
                next(islice(reader, dialect.n_skipped - 1, None))
                line = reader.line_num + 1
                for index, values in enumerate(reader, copy.first_row + dialect.n_skipped):
                    if values or len(self.columns) == 1:  # with one column, a blank line is a missing value
                        yield f"{name}, row {index}" if copy.is_spreadsheet else f"{name}, line {line}"
                    line = reader.line_num + 1


def _line_of(file: Readable, dialect: _Dialect, row: int) -> int:
    """Return the first line of a row of a file; rows are counted from 1, with the header."""
    with _open_text(file) as lines, suppress(csv.Error, StopIteration):
        reader = dialect.rows(lines)
        next(islice(reader, row - 2, None))
        return int(reader.line_num) + 1
    return row


def _odd_line(file: Readable, dialect: _Dialect) -> int | None:
    """Return the number of the first line that ends in another way than the header, or None if all end alike."""
    with _open_text(file) as lines:
        ends = (_NEW_LINES.get(_end_of(line)) for line in lines)
        return next((number for number, end in enumerate(ends, 1) if end != dialect.new_line), None)


def _has_quotes(file: Readable, dialect: _Dialect) -> bool:
    """Return whether there is a quote in a file."""
    with open_unpacked(file.path) as content:
        return any(dialect.quote.encode() in block for block in iter(lambda: content.read(_BUFFER), b""))


def _has_open_quote(file: Readable, dialect: _Dialect) -> bool:
    """Return whether the last value in quotes is not closed, so that a row after the last one would be a part of it."""
    with _open_text(file) as lines, suppress(csv.Error):
        # The engine accepts spaces before quotes.
        (last,) = deque(dialect.rows(chain(lines, ["\n", "end"]), skipinitialspace=True), maxlen=1)
        return last != ["end"]
    return True


def _open_text(file: Readable) -> TextIOWrapper:
    """Open a file as text with the line ends that it has."""
    return TextIOWrapper(open_unpacked(file.path), "utf-8-sig", "replace", newline="")


def _read_head(file: Readable, separator: str | None) -> tuple[_Dialect, list[str]]:
    """Return the dialect and the header of a file; ValueError if it has none."""
    head, name = _head(file), file.file.name
    try:
        if file.is_spreadsheet:
            quote, separator, escape = '"', ",", '"'
        else:
            quote = _quote_of(head)
            separator = separator or _separator_of(head, name, quote)
            escape = _escape_of(head, separator, quote)
        dialect = _Dialect(separator, quote, escape, r"\n", 0)
        reader = dialect.rows(iter(head))
        n_skipped, columns = next((n, columns) for n, columns in enumerate(reader, 1) if columns)
    except csv.Error as error:
        raise ValueError(f"cannot read the header of {name}: {error}") from error
    except StopIteration:
        raise ValueError(f"{name} has no header" if any(head) else f"cannot read {name}: it is empty") from None
    _check_header(name, columns)
    ends = [_end_of(line) for line in (head[reader.line_num - 1], *head[: n_skipped - 1])]
    odd = [n for n, end in enumerate(ends[1:], 1) if ends[0] not in (end, "")]
    if odd:
        raise ValueError(_ODD_LINE.format(f"{name}, line {odd[0]}"))
    return dialect._replace(new_line=_NEW_LINES[ends[0] or ends[-1]], n_skipped=n_skipped), columns


def _end_of(line: str) -> str:
    """Return the characters that end a line, "" if it is the last one without an end."""
    return line[len(line.rstrip("\r\n")) :]


def _head(file: Readable) -> list[str]:
    """Return the first lines of a file."""
    try:
        with open_unpacked(file.path) as content:
            lines = islice(iter(lambda: content.readline(_LONGEST), b""), _HEAD)
            header = next(lines, b"").decode("utf-8-sig")
            # Reading stops at a longer line, which may have a quote that is not closed.
            others = takewhile(lambda line: len(line) < _LONGEST, lines)
            text_ = header + "".join(line.decode(errors="replace") for line in others)
        return list(islice(StringIO(text_, newline=""), _HEAD))
    except UnicodeError:
        raise ValueError(f"cannot read {file.file.name}: the header is {NOT_UTF8}") from None
    except OSError as error:
        raise ValueError(f"cannot read {file.file.name}: {error}") from error


def _separator_of(head: Sequence[str], name: str, quote: str) -> str:
    """Return the separator with most columns in the header, preferably with as many columns in the next rows."""
    tab_first = name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".tsv")
    separators = ("\t", *_SEPARATORS) if tab_first else _SEPARATORS

    def n_columns(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in csv.reader(head, delimiter=separator, quotechar=quote) if row]
        return len(set(widths[:-1])) <= 1 and widths[:1] != [1], widths[0] if widths else 0

    return max(separators, key=n_columns)


def _quote_of(head: Sequence[str]) -> str:
    """Return a single quote if it encloses a separator and there are no double quotes, else a double quote."""
    lines, marks = _lines(head), "".join(_SEPARATORS)
    is_single = re.search(rf"(^|[{marks}])'[^'\n]*[{marks}][^'\n]*'([{marks}]|$)", lines, re.MULTILINE)
    return "'" if is_single and '"' not in lines else '"'


def _escape_of(head: Sequence[str], separator: str, quote: str) -> str:
    """Return the character that escapes a quote within a value: the quote itself or a backslash."""
    mark = re.escape(separator)
    # Of two quotes after a backslash, either the second one ends the value, or the first one escapes the second.
    end = rf"(?:{mark}|$)"
    pattern = rf"(^|{mark}){quote}[^{quote}\n]*\\{quote}(?!{end}|{quote}(?!{end}))"
    return "\\" if re.search(pattern, _lines(head), re.MULTILINE) else quote


def _lines(head: Sequence[str]) -> str:
    """Return lines of any line ends as one text."""
    return "\n".join(line.rstrip("\r\n") for line in head)


def _hint(columns: Sequence[str]) -> str:
    """Return the end of an error message on a missing column if the header is suspicious, else ""."""
    if columns[0].startswith("#"):
        return "; the first line begins with '#': remove it if it is a comment"
    if len(columns) == 1:
        return f"; only the column {columns[0]!r} was found: pass the separator of the values, or remove a title"
    named = [name for name in columns if name]
    return f"; the first line is {named[0]!r}: remove it if it is a title" if len(named) == 1 else ""


def _check_header(name: str, columns: Sequence[str]) -> None:
    """Raise ValueError if two columns have the same name or no name, as if a title is above the header."""
    nameless = [str(index) for index, column in enumerate(columns, 1) if column == ""]
    if len(nameless) < 2:
        check_column_names(name, columns)
        return
    named, advice = list(filter(None, columns)), "name or remove them"
    if len(named) <= len(nameless):
        holds = f"holds only {', '.join(map(repr, named))}" if named else "is empty"
        advice = f"the first row {holds} and is probably no header: remove the rows above the header"
    which = f"columns {', '.join(nameless[:5])}{' and more' if nameless[5:] else ''}"
    raise ValueError(f"{name} has {len(nameless)} columns without a name ({which}): {advice}")
