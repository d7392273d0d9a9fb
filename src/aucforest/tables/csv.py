"""CSV files: the dialect of each file (its separator, quotes and line ends), the header, and the lines of rows."""

import csv
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import chain, groupby, islice, takewhile
from typing import Any, NamedTuple

from aucforest.tables.copies import Readable, cannot_read, open_unpacked
from aucforest.tables.database import literal, literals
from aucforest.tables.files import check_column_names, check_same_names
from aucforest.tables.kinds import MISSING
from aucforest.tables.text_files import NOT_UTF8, TextFiles

CSV_SUFFIXES = tuple(f"{suffix}{packed}" for packed in ("", ".gz", ".zst") for suffix in (".csv", ".tsv", ".txt"))
_SEPARATORS = (",", ";", "\t", "|")
# The number of first lines from which the dialect is inferred, and the maximum length of a row in bytes.
_MOST_HEAD_LINES, _MOST_BYTES = 20, 2**21
# The size of a buffer of the engine in bytes. Of smaller buffers, the engine would keep some until the last row.
_BUFFER = 2**23
# The csv module of Python, by default, refuses values of more than 128 KiB.
csv.field_size_limit(max(csv.field_size_limit(), _MOST_BYTES))
_OTHER_END = "{} ends in another way than the header: let all lines end alike"
# A first line that names the separator, as Excel reads it.
_SEPARATOR_LINE = re.compile(r"""("?)sep=([^\w"'\r\n])\1[\r\n]*""")


class _Dialect(NamedTuple):
    """How the rows of a file are written."""

    separator: str
    quote: str
    escape: str
    new_line: str = "\n"
    n_skipped: int = 0  # the number of lines before the first row: the separator, blank lines and the header
    n_columns: int = 0  # the number of columns, also those at the end that have neither a name nor a value

    def rows(self, lines: Iterator[str], *, skipinitialspace: bool = True) -> Any:
        """Return a `csv.reader`, whose rows are lists of values. Blank lines are empty lists.

        By default, spaces before values are skipped; the engine skips one space before a quote.
        """
        return csv.reader(
            lines,
            delimiter=self.separator,
            quotechar=self.quote,
            escapechar=None if self.escape == self.quote else self.escape,
            skipinitialspace=skipinitialspace and self.separator != " ",
        )


class CsvFiles(TextFiles):
    """CSV files with the same header as one table; see `TextFiles`. The dialect of each is found in its first lines."""

    _is_parallel = True

    def _read_header(self) -> None:
        first = self._readable[0].name
        self._dialects = list[_Dialect]()
        self._has_numbers = any(file.is_spreadsheet for file in self._readable)
        for file in self._readable:
            dialect, columns, hint = _read_head(file, self._options.separator)
            if not self.columns:
                self.columns, self.hint = columns, hint
            check_same_names(first, self.columns, file.name, columns, self.hint or hint)
            self._dialects.append(dialect)
        # With this escape, the engine allows no missing-value marker that contains it, such as \N.
        if any(dialect.escape == "\\" for dialect in self._dialects):
            self._unmarked, self._reads_types = r"nullif({0}, '\N')", False

    def _table(self, engine: Mapping[str, str], *, raw: bool = False) -> str:
        tables = []
        files = zip(self._dialects, [file.compression for file in self._readable], self._patterns)
        for (dialect, compression), group in groupby(files, key=lambda file: file[:2]):
            names = [f"c{index}" for index in range(dialect.n_columns)]
            columns = ", ".join(f"'{name}': '{engine.get(name, 'VARCHAR')}'" for name in names)
            left_out = ", ".join(names[len(self.columns) :])
            new_line = repr(dialect.new_line)  # with a backslash, as the engine reads it
            marks = {dialect.separator, dialect.escape}  # the engine allows neither in a missing-value marker
            missing = [word for word in ([""] if raw else ["", *MISSING]) if marks.isdisjoint(word)]
            tables.append(
                f"SELECT *{f' EXCLUDE ({left_out})' if left_out else ''} FROM read_csv(["
                f"{literals([pattern for *_, pattern in group])}], columns={{{columns}}},"
                f" auto_detect=false, header=false, skip={dialect.n_skipped}, new_line={new_line},"
                f" hive_partitioning=false, delim={literal(dialect.separator)}, quote={literal(dialect.quote)},"
                f" escape={literal(dialect.escape)}, compression='{compression}', max_line_size={_MOST_BYTES},"
                f" buffer_size={_BUFFER}, parallel={self._is_parallel}, nullstr=[{literals(missing)}])"
            )
        return f"({' UNION ALL '.join(tables)})"

    def _switch_to_one_thread(self) -> bool:
        # If values contain line breaks, threads can fail to find where rows begin. One thread would silently ignore
        # everything after a quote that is not closed, so a file with such a quote is not read again.
        if not (self._is_parallel and any(map(_has_quotes, self._readable, self._dialects))):
            return False
        self._is_parallel = False
        return not any(map(_has_open_quote, self._readable, self._dialects))

    def _explain(self, message: str) -> str:
        index, match = self._file_index(message), re.search(r"on Line: (\d+)", message)
        file, dialect = self._readable[index], self._dialects[index]
        where = file.name if match is None else f"{file.name}, line {_line_of(file, dialect, int(match[1]))}"
        if numbers := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
            n_columns, n_values = map(int, numbers.groups())
            is_first = match is not None and int(match[1]) == dialect.n_skipped + 1
            advice = ": name the first column if it has names of rows" * (is_first and n_values == n_columns + 1)
            advice = ": remove the line if it is not a row of the table" if n_values < n_columns else advice
            return f"{where}: the header has {n_columns} columns, but the row has {n_values}{advice}"
        if "not utf-8 encoded" in message:
            return f"{where} is {NOT_UTF8}"
        if "Maximum line size" in message:
            return f"{where} is longer than {_MOST_BYTES >> 20} MiB: a quote may not be closed"
        if "unterminated quote" in message or "invalid state" in message:
            line = _line_with_other_end(file, dialect)
            if line is not None:
                return _OTHER_END.format(f"{file.name}, line {line}")
            advice = "double the quotes within values"
            return f"{where}: a quote is not closed, or text follows a closing quote: {advice}"
        reason = message.split(":", 1)[-1].strip().splitlines()[0]
        return f"cannot read {where}: {reason}"

    def location(self, row: int) -> str:
        """Return the file and the first line of a row, or the number of the row in a spreadsheet.

        All lines of the file are counted, also blank lines and those inside a value.
        """
        with suppress(csv.Error, StopIteration):  # values may be too long for Python's reader
            return next(islice(self._locations(), row, None))
        return super().location(row)

    def _locations(self) -> Iterator[str]:
        for file, dialect in zip(self._readable, self._dialects):
            with _open_text(file) as lines:
                reader = dialect.rows(lines)
                next(islice(reader, dialect.n_skipped - 1, None))  # the header
                line = reader.line_num + 1
                for number, values in enumerate(reader, file.first_row + dialect.n_skipped):
                    if values or len(self.columns) == 1:  # with one column, a blank line is a row with a missing value
                        yield f"{file.name}, row {number}" if file.is_spreadsheet else f"{file.name}, line {line}"
                    line = reader.line_num + 1


def _line_of(file: Readable, dialect: _Dialect, row: int) -> int:
    """Return the number of the first line of a row; lines and rows are counted from 1, the header included."""
    with _open_text(file) as lines, suppress(csv.Error, StopIteration):
        reader = dialect.rows(lines)
        next(islice(reader, row - 2, None))  # the row before
        return int(reader.line_num) + 1
    return row


def _line_with_other_end(file: Readable, dialect: _Dialect) -> int | None:
    """Return the number of the first line whose end differs from that of the header, or None if all end alike."""
    with _open_text(file) as lines:
        ends = (_end_of(line) or dialect.new_line for line in lines)  # the last line may have no end
        return next((number for number, end in enumerate(ends, 1) if end != dialect.new_line), None)


def _has_quotes(file: Readable, dialect: _Dialect) -> bool:
    with open_unpacked(file.path) as content:
        return any(dialect.quote.encode() in block for block in iter(lambda: content.read(_BUFFER), b""))


def _has_open_quote(file: Readable, dialect: _Dialect) -> bool:
    """Return whether a quote in a file is not closed, so that an appended row would become part of its value."""
    with _open_text(file) as lines, suppress(csv.Error):
        (last,) = deque(dialect.rows(chain(lines, ["\n", "end"])), maxlen=1)
        return last != ["end"]
    return True


def _open_text(file: Readable, errors: str = "replace") -> TextIOWrapper:
    return TextIOWrapper(open_unpacked(file.path), "utf-8-sig", errors, newline="")


def _read_head(file: Readable, separator: str | None) -> tuple[_Dialect, list[str], str]:
    """Return the dialect, the column names and the hint of a file; ValueError if it has no header."""
    lines, name = _first_lines(file), file.name
    marked = None if file.is_spreadsheet else _SEPARATOR_LINE.fullmatch("".join(lines[:1]))
    head, separator = (lines[1:], separator or marked[2]) if marked else (lines, separator)
    try:
        dialect = _Dialect(",", '"', '"') if file.is_spreadsheet else _find_dialect(head, name, separator)
        n_rows, n_lines, columns = _find_header(head, dialect)
        "".join(columns).encode()
        rows = list(dialect.rows(iter(head)))[n_rows:]
    except csv.Error as error:
        raise ValueError(f"cannot read the header of {name}: {error}") from error
    except UnicodeError:
        raise ValueError(f"cannot read {name}: the header is {NOT_UTF8}") from None
    except StopIteration:
        raise ValueError(f"{name} has no header" if any(lines) else f"cannot read {name}: it is empty") from None
    rows = rows[:-1] if len(lines) == _MOST_HEAD_LINES else rows  # the last row may be cut off
    if _has_row_names(head, columns, rows):
        columns = ["", *columns]
    hint = _hint(columns, rows, is_spreadsheet=file.is_spreadsheet)
    n_columns, columns = len(columns), _without_trailing(columns, rows)
    _check_header(name, columns)
    n_skipped = len(lines) - len(head) + n_rows
    new_line = _new_line(name, head[n_lines - 1], lines[: n_skipped - 1])
    return dialect._replace(new_line=new_line, n_skipped=n_skipped, n_columns=n_columns), columns, hint


def _find_dialect(head: Sequence[str], name: str, separator: str | None) -> _Dialect:
    text_of_head = "\n".join(line.rstrip("\r\n") for line in head)
    quote = _find_quote(text_of_head)
    separator = separator or _find_separator(head, name, quote)
    return _Dialect(separator, quote, _find_escape(text_of_head, separator, quote))


def _new_line(name: str, header: str, before: Sequence[str]) -> str:
    """Return how the header ends; ValueError if a line before it ends in another way. No line may follow the header."""
    ends = [_end_of(line) for line in (header, *before)]
    for number, end in enumerate(ends[1:], 1):
        if ends[0] not in (end, ""):
            raise ValueError(_OTHER_END.format(f"{name}, line {number}"))
    return ends[0] or ends[-1] or "\n"


def _find_header(head: Sequence[str], dialect: _Dialect) -> tuple[int, int, list[str]]:
    """Return the number of rows and of lines until the end of the header, blank ones included, and the column names.

    Spaces before names are skipped only if a name is in quotes after one space, as the engine reads values.
    """
    for skipinitialspace in (False, True):
        reader = dialect.rows(iter(head), skipinitialspace=skipinitialspace)
        n_rows, columns = next((n, columns) for n, columns in enumerate(reader, 1) if columns)
        if not any(name.startswith(f" {dialect.quote}") for name in columns):
            break
    return n_rows, reader.line_num, columns


def _end_of(line: str) -> str:
    """Return the line break at the end of a line, or "" if there is none."""
    return line[len(line.rstrip("\r\n")) :]


def _first_lines(file: Readable) -> list[str]:
    """Return the first lines of a file; what is not UTF-8 becomes surrogates, which cannot be encoded."""
    try:
        with _open_text(file, "surrogateescape") as content:
            header = content.readline(2 * _MOST_BYTES)  # of many columns it may be longer than a row
            lines = islice(iter(lambda: content.readline(_MOST_BYTES), ""), _MOST_HEAD_LINES - 1)
            # A line of the maximum length may have a quote that is not closed. This line and later ones are not used.
            return [header, *takewhile(lambda line: len(line) < _MOST_BYTES, lines)]
    except OSError as error:
        raise cannot_read(file.name, error) from error


def _find_separator(head: Sequence[str], name: str, quote: str) -> str:
    """Return the separator that divides the header into the most columns.

    Separators that divide the other rows into the same number of columns are preferred. The separator is a space if the
    header has only names in quotes with single spaces between them, as in tables that R writes.
    """
    if re.fullmatch('"[^"]*"( "[^"]*")+', head[0].rstrip("\r\n") if head else ""):
        return " "
    tab_first = name.lower().removesuffix(".gz").removesuffix(".zst").endswith(".tsv")
    separators = ("\t", *_SEPARATORS) if tab_first else _SEPARATORS

    def priority(separator: str) -> tuple[bool, int]:
        n_columns = [len(row) for row in csv.reader(head, delimiter=separator, quotechar=quote) if row]
        is_regular = len(set(n_columns[:-1])) <= 1 and n_columns[:1] != [1]  # the last row may be cut off
        return is_regular, n_columns[0] if n_columns else 0

    return max(separators, key=priority)


def _has_row_names(head: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the rows have names, but the header has no column for these, as in tables that R writes.

    All names must be in quotes. Without quotes, an additional value of a row may come from a separator within a value.
    """
    is_quoted = all(line.startswith('"') for line in head) and head[0].count('"') == 2 * len(header)
    # If all last values are empty, the rows end in a separator.
    return is_quoted and {len(row) for row in rows} == {len(header) + 1} and any(row[-1] for row in rows)


def _find_quote(lines: str) -> str:
    """Return a single quote if single quotes enclose a separator and no double quotes exist, else a double quote."""
    marks = "".join(_SEPARATORS)
    is_single = re.search(rf"(^|[{marks}])'[^'\n]*[{marks}][^'\n]*'([{marks}]|$)", lines, re.MULTILINE)
    return "'" if is_single and '"' not in lines else '"'


def _find_escape(lines: str, separator: str, quote: str) -> str:
    """Return the character that escapes a quote within a value: the quote itself or a backslash."""
    mark = re.escape(separator)
    # If two quotes follow a backslash, either the second one ends the value, or the first one escapes the second.
    end = rf"(?:{mark}|$)"
    pattern = rf"(^|{mark}){quote}[^{quote}\n]*\\{quote}(?!{end}|{quote}(?!{end}))"
    return "\\" if re.search(pattern, lines, re.MULTILINE) else quote


def _without_trailing(columns: list[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the columns without those at the end that have neither a name nor a value.

    One of these remains if no other column is without a name, so that a warning says that it is ignored.
    """
    end = max((number for number, name in enumerate(columns, 1) if name), default=len(columns))
    if any(value.strip() for row in rows for value in row[end : len(columns)]):
        return columns
    return columns[:end] + [""] * (end < len(columns) and "" not in columns[:end])


def _hint(columns: Sequence[str], rows: Sequence[Sequence[str]], *, is_spreadsheet: bool) -> str:
    """Return a probable reason for a missing column, for the end of an error message; "" for a usual header."""
    if re.match(r'{\s*"', columns[0]):
        return "; the first line looks like JSON: pass JSON lines in a file whose name ends in .jsonl"
    if columns[0].startswith("#"):
        return "; the first line begins with '#': remove it if it is a comment"
    if len(columns) == 1:
        advice = "remove a title" if is_spreadsheet else "pass the separator of the values, or remove a title"
        return f"; only the column {columns[0]!r} was found: {advice}"
    named = [name for name in columns if name]
    if len(named) == 1:
        return f"; the first line is {named[0]!r}: remove it if it is a title"
    if any("".join(row[len(columns) :]) for row in rows):
        return "; rows have more values than the first line: remove the lines above the header"
    repeated = [name for row in rows for name, value in zip(columns, row) if name == value != ""]
    if repeated and any(name[0].isdigit() for name in named):
        return f"; the first line has values of rows, such as {repeated[0]!r}: add a header if it has none"
    return ""


def _check_header(name: str, columns: Sequence[str]) -> None:
    nameless = [str(number) for number, column in enumerate(columns, 1) if column == ""]
    if len(nameless) > 1:
        which = f"columns {', '.join(nameless[:5])}{' and more' if nameless[5:] else ''}"
        advice = "name or remove them, or remove the rows above the header"
        raise ValueError(f"{name} has {len(nameless)} columns without a name ({which}): {advice}")
    check_column_names(name, columns)
