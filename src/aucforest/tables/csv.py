"""CSV tables: `CsvTable` is read once, in batches; `CsvFiles` several times, in types that fit all rows."""

import codecs
import csv
import re
import sys
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedReader, BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from aucforest.tables.csv_format import (
    DEFAULT_FORMAT,
    CsvFormat,
    check_date_format,
    check_encoding,
    check_separator,
    has_one_byte,
)
from aucforest.tables.date_texts import DateTexts, may_be_dates_or_durations
from aucforest.tables.files import Files, check_names, check_same_names, split
from aucforest.tables.integers import is_rounded
from aucforest.tables.kinds import MISSING, WORDS, is_number, parse_dates, to_numbers
from aucforest.tables.texts import StrayText

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
# Common separators, each with its name and its spelling as an argument in a shell.
_SEPARATORS = {",": ("comma", "','"), ";": ("semicolon", "';'"), "\t": ("tab", r"'\t'"), "|": ("vertical bar", "'|'")}
# Bytes that are parsed at a time, the maximum length of a row. Arrow reads ahead, so several blocks are in memory.
_BLOCK = 2**20
# A wide table has a larger block, by its columns divided by the first number, but not by more than the second: a column
# takes time in each block, however few its rows.
_WIDE, _MOST_BLOCKS = 2**7, 2**4
# Values that are tried first: they rule out most types, and Arrow writes a sentence on every value that does not fit.
_HEAD = 32
# cp1252 is what spreadsheets of Western Europe and America write.
_NOT_UTF8 = "is not encoded in UTF-8: pass its encoding, such as --encoding {0} (in Python, encoding='{0}')"
# Spellings of booleans that differ from those of Python.
_OTHER_FLAGS = ({"false", "true"}, {"FALSE", "TRUE"})
# The type of a column is the first of these that Arrow's type inference accepts for all values, or else string. It does
# not accept durations, nor dates far from 1970 with fractions of seconds.
_TYPES = (
    pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), pa.duration("us"),
    pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us"),
    pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"), pa.float64(),
)  # fmt: skip


def is_csv(file: Path) -> bool:
    """Return whether the name of a file ends in one of `CSV_SUFFIXES`, in upper or lower case."""
    return file.name.lower().endswith(CSV_SUFFIXES)


class CsvTable:
    """A CSV with a header, which can be read once.

    It is decompressed if its name ends in .gz. The default separator is a tab if the name ends in .tsv or .tsv.gz, else
    a comma.
    """

    is_text = True
    missing: Sequence[str] = MISSING

    def __init__(
        self, handle: BinaryIO, name: str, file: Path | None = None, csv_format: CsvFormat = DEFAULT_FORMAT
    ) -> None:
        self.name, self._handle, self._file = name, handle, file if file and file.is_file() else None
        separator, encoding, date_format, _ = csv_format
        default = "\t" if name.lower().endswith((".tsv", ".tsv.gz")) else ","
        self._separator = check_separator(default if separator is None else separator)
        self._encoding = encoding if encoding is None else check_encoding(encoding)
        if date_format is not None:
            check_date_format(date_format)
        self._content = self._in_utf8(handle)
        try:
            lines = (line.decode("utf-8-sig") for line in self._content)
            self.columns = next(csv.reader(lines, delimiter=self._separator), [])
        except UnicodeError as error:
            self._raise(error)
        except (csv.Error, OSError) as error:
            raise ValueError(f"cannot read {name}: {error}") from error
        if not self.columns:
            is_empty = not self._content.read(1)
            raise ValueError(f"cannot read {name}: it is empty" if is_empty else f"{name} has no header")
        if separator is None and self._wanted_separator() and not self.columns[0].startswith("#"):
            raise ValueError(f"{name}: {self._wanted_separator()}")
        self._check_header()
        self.hint = self._hint()

    def batches(self, columns: Sequence[str], types: dict[str, Any] | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns in the given types, with null for missing-value markers.

        With `types` None all columns are strings, and missing-value markers are kept.
        """
        try:
            yield from split(pyarrow.csv.open_csv(**self._options(columns, types)))
        except (pa.ArrowInvalid, OSError, UnicodeError) as error:
            if str(error) != "Empty CSV file":
                self._raise(error)
        self._wait_for_arrow()

    def schema(self, columns: Sequence[str]) -> Any:
        """Return the schema of batches of the given columns."""
        return pa.schema([(name, pa.string()) for name in columns])

    def _hint(self) -> str:
        """Return the end of an error message on a missing column if the header is suspicious, else ""."""
        wanted, first = self._wanted_separator(), self.columns[0]
        hint = "" if wanted is None else f"; {wanted}"
        if first.startswith("#"):
            return f"; the first line begins with '#': remove it if it is a comment{hint}"
        named = [name for name in self.columns if name]
        is_title = wanted is None and len(named) == 1
        return f"; the first line is {named[0]!r}: remove it if it is a title" if is_title else hint

    def _check_header(self) -> None:
        """Raise ValueError if two columns have the same name, or none, as below a title."""
        nameless = [str(place) for place, name in enumerate(self.columns, 1) if name == ""]
        if len(nameless) < 2:
            check_names(self.name, self.columns)
            return
        named, advice = list(filter(None, self.columns)), "name or remove them"
        if len(named) <= len(nameless):
            holds = f"holds only {', '.join(map(repr, named))}" if named else "is empty"
            advice = f"the first row {holds} and is probably no header: remove the rows above the header"
        which = f"columns {', '.join(nameless[:5])}{' and more' if nameless[5:] else ''}"
        raise ValueError(f"{self.name} has {len(nameless)} columns without a name ({which}): {advice}")

    def place(self, row: int) -> str:
        """Return the line number at which a row starts; blank lines and line breaks in values count as lines."""
        if self._file is None:
            return f"{self.name}, row {row + 1}"
        with self._file.open("rb") as handle:
            text = TextIOWrapper(self._in_utf8(handle), "utf-8-sig", "replace", newline="")
            line = next(islice(_first_lines(text, self._separator), row + 1, None))
        return f"{self.name}, line {line}"

    def done(self, n_rows: int) -> float | None:
        """Return the proportion of the bytes of the file read so far, for any `n_rows`; None if it is not a file."""
        return None if self._file is None else self._handle.tell() / self._file.stat().st_size

    def _options(self, columns: Sequence[str], types: dict[str, Any] | None) -> dict[str, Any]:
        """Return the arguments of both readers; they use one thread, because errors then name the row."""
        convert: dict[str, Any] = {"column_types": types, "null_values": MISSING, "strings_can_be_null": True}
        if types is None:
            convert = {"column_types": dict.fromkeys(columns, pa.string())}
        lent = _Lent(self._content)
        self._lent = weakref.ref(lent)
        return {
            "input_file": lent,
            "read_options": pyarrow.csv.ReadOptions(
                column_names=self.columns, use_threads=False, block_size=self._block_size
            ),
            "parse_options": pyarrow.csv.ParseOptions(delimiter=self._separator, newlines_in_values=True),
            "convert_options": pyarrow.csv.ConvertOptions(include_columns=columns, **convert),
        }

    @property
    def _block_size(self) -> int:
        """The number of bytes that are parsed at a time."""
        return _BLOCK * min(max(len(self.columns) // _WIDE, 1), _MOST_BLOCKS)

    def _wait_for_arrow(self) -> None:
        """Wait until no thread of Arrow has the content, which it may let go of after the last batch.

        A thread that lets go of an object of Python while Python ends aborts the process.
        """
        deadline = time.monotonic() + 1.0  # in case that somebody else keeps it, such as a debugger
        while self._lent() is not None and time.monotonic() < deadline:
            time.sleep(0.0001)

    def _in_utf8(self, handle: BinaryIO) -> BinaryIO:
        """Return the content of the file: decompressed, and in UTF-8."""
        content: Any = handle
        if self.name.lower().endswith(".gz"):
            content = BufferedReader(pa.CompressedInputStream(pa.PythonFile(handle), "gzip"))
        if self._encoding is None:
            return content
        content = BufferedReader(content, _BLOCK)
        if has_one_byte(self._encoding) and _is_utf8(content.peek()):
            sentence = f"{self.name} is valid UTF-8, but is read as {self._encoding}"
            warnings.warn(f"{sentence}: leave out --encoding (in Python, encoding)", stacklevel=3)
        return BufferedReader(pa.transcoding_input_stream(pa.PythonFile(content, "r"), self._encoding, "utf-8"))

    def _wanted_separator(self) -> str | None:
        """Return what the user should do if the only column name of the header contains another common separator."""
        own, header = self._separator, self.columns[0]
        candidate = max((separator for separator in _SEPARATORS if separator != own), key=header.count)
        count = header.count(candidate)
        if len(self.columns) > 1 or count == 0:
            return None
        own_name, (name, quoted) = _SEPARATORS.get(own, (repr(own),))[0], _SEPARATORS[candidate]
        return (
            f"the header has no {own_name} but {count} {name}{'s' if count > 1 else ''}: pass --separator {quoted}"
            f" (in Python, separator={quoted})"
        )

    def _raise(self, error: Exception) -> NoReturn:
        """Raise an error of the parser as ValueError with the line number in place of the row number."""
        sentence = str(error)
        if isinstance(error, UnicodeError):
            reason = f"it is not encoded in {self._encoding}"
            if self._encoding is None and isinstance(error, UnicodeDecodeError):
                is_utf16 = error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
                reason = f"the header {_NOT_UTF8.format('utf-16' if is_utf16 else 'cp1252')}"
            raise ValueError(f"cannot read {self.name}: {reason}") from None
        if "straddles two block boundaries" in sentence:
            n_mib = self._block_size >> 20
            sentence = f"{self.name} has a line of more than {n_mib} MiB: a quote may not be closed"
            raise ValueError(sentence) from error
        match = re.search(r"(?:column #(\d+): )?Row #(\d+): (?:Expected (\d+) columns, got (\d+))?", sentence)
        if match is None:
            raise ValueError(f"cannot read {self.name}: {sentence}") from error
        column, row, n_expected, n_values = match.groups()
        reason = sentence[match.end() :]
        if n_expected is not None:
            reason = f"the header has {n_expected} columns, but the row has {n_values}"
        elif column is not None:
            reason = _NOT_UTF8.format("cp1252") if "invalid UTF8" in sentence else f"cannot be read: {reason}"
            reason = f"column {self.columns[int(column)]!r} {reason}"
        raise ValueError(f"{self.place(int(row) - 1)}: {reason}") from error


class CsvFiles(Files):
    """CSV files with the same header as one table, in the types that Arrow infers from all rows.

    The columns `as_text` (None for all) stay strings. If `stray_text` of the format is "number", columns of text that
    are nearly all numbers are numbers, and what is no number is missing, as are zeros in columns of dates; `stray` has
    what that was. `remarks` has what else is to be said on columns of dates, `rounded` the columns of numbers in which
    float64 rounds an integer.
    """

    is_text = True
    missing: Sequence[str] = MISSING

    def __init__(
        self,
        files: Sequence[Path],
        name: str,
        as_text: Sequence[str] | None = (),
        csv_format: CsvFormat = DEFAULT_FORMAT,
    ) -> None:
        super().__init__(files, name)
        self._format = csv_format
        self.stray: dict[str, StrayText] = {}
        self.remarks: dict[str, list[str]] = {}
        self.rounded: set[str] = set()
        # The first rows of files that have not been read are unknown.
        self._first_rows, self._types, self._as_text = [0, *[sys.maxsize] * len(files)], dict[str, Any](), as_text
        for file in files:
            with file.open("rb") as handle:
                table = self._open(handle, file)
            if file is files[0]:
                self.columns, self.hint = table.columns, table.hint
            check_same_names(files[0], self.columns, file, table.columns)

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns, from `first_row` on, of at most `rows` rows."""
        types = None if self._as_text is None else {field.name: field.type for field in self.schema(columns)}
        batches = self._read(columns, types and types | self._types_read(columns))
        return split(self._converted(batches), first_row, rows)

    def _types_read(self, columns: Sequence[str]) -> dict[str, Any]:
        """Return the types in which Arrow reads columns with stray text, dates and durations."""
        types = {name: self._types.get(name, pa.string()) for name in columns}
        converted = [name for name, type_ in types.items() if name in self.stray or _is_converted(type_)]
        return dict.fromkeys(converted, pa.string())

    def _converted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield record batches with numbers in the columns with stray text, and with dates and durations."""
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns))
            for name in self._types_read(batch.schema.names):
                column, type_ = columns[name], self._types[name]
                if pa.types.is_floating(type_):
                    columns[name] = to_numbers(column, StrayText())
                else:
                    dates = DateTexts(self._format)
                    columns[name] = parse_dates(dates.add(column), type_, self._format.date_format)
            yield pa.RecordBatch.from_pydict(columns)

    def _open(self, handle: BinaryIO, file: Path) -> CsvTable:
        """Return one of the files as a CsvTable."""
        return CsvTable(handle, file.name, file, self._format)

    def _read(self, columns: Sequence[str], types: dict[str, Any] | None) -> Iterator[Any]:
        """Yield record batches of all files; see `CsvTable.batches`."""
        n_rows = 0
        for number, file in enumerate(self.unchanged()):
            self._first_rows[number] = n_rows
            with file.open("rb") as handle:
                for batch in self._open(handle, file).batches(columns, types):
                    n_rows += batch.num_rows
                    yield batch
        self._first_rows[-1] = n_rows

    def schema(self, columns: Sequence[str]) -> Any:
        """Return the schema of the given columns; types that are not known yet are inferred by reading all rows."""
        self._types |= dict.fromkeys(columns if self._as_text is None else self._as_text, pa.string())
        possible = {name: list(_TYPES) for name in columns if name not in self._types}
        if possible:
            empty, stray = set(possible), {name: StrayText() for name in possible}
            dates = {name: DateTexts(self._format) for name in possible}
            for batch in self._read(list(possible), dict.fromkeys(possible, pa.string())):
                for name, types in possible.items():
                    values = batch.column(name).drop_null()
                    if len(values) > 0:
                        possible[name] = _fitting(values, types, dates[name], self._format.date_format) if types else []
                        empty.discard(name)
                        if name not in self.rounded and _has_rounded(values):
                            self.rounded.add(name)
                        if pa.float64() in possible[name]:
                            stray[name].n_values += len(values)
                        elif self._format.stray_text == "number":
                            to_numbers(values, stray[name])
            for name, types in possible.items():
                if not types and stray[name].is_rare:
                    self.stray[name], types = stray[name], [pa.float64()]
                if pa.float64() not in types or pa.int64() in types:
                    self.rounded.discard(name)
                self._types[name] = pa.null() if name in empty else types[0] if types else pa.string()
                if types and _is_converted(types[0]) and not pa.types.is_duration(types[0]):
                    self.remarks |= {name: list(dates[name].remarks)}
                    self.stray |= {name: dates[name].zeros} if dates[name].zeros.n_stray else {}
        return pa.schema([(name, self._types[name]) for name in columns])

    def done(self, n_rows: int) -> None:
        """Return None: how many rows there are is not known."""

    def place(self, row: int) -> str:
        """Return the file of a row and the line number at which it starts."""
        file, row = self.file_of(row)
        with file.open("rb") as handle:
            return self._open(handle, file).place(row)

    def fingerprint(self) -> dict[str, Any]:
        """Return paths, sizes and modification times of the files, the column names, and the format."""
        return {"files": self.stamps(), "columns": self.columns, **self._format._asdict()}


def _is_converted(type_: Any) -> bool:
    """Return whether columns of a type are read as text and converted by `parse_dates`."""
    return pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_duration(type_)


def _fitting(values: Any, types: list[Any], dates: DateTexts, date_format: str | None) -> list[Any]:
    """Return the types to which Arrow's CSV reader would convert all of these strings."""
    if len(values) > _HEAD:
        types = _fitting(values[:_HEAD], types, DateTexts(dates.csv_format), date_format)
    fitting: list[Any] = []
    trimmed = pc.utf8_trim(values, " \t")
    may_be_dates = any(map(_is_converted, types)) and (date_format is not None or may_be_dates_or_durations(trimmed))
    of_dates = dates.add(values) if may_be_dates else trimmed
    for type_ in types:
        fits = True
        if pa.types.is_boolean(type_):
            fits = pc.all(pc.is_in(values, pa.array([*WORDS[True], *WORDS[False]]))).as_py()
        elif pa.types.is_time(type_):
            fits = pc.all(pc.match_substring_regex(trimmed, r"^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$")).as_py()
        elif not (pa.types.is_floating(type_) and pa.int64() in fitting):
            try:
                if not _is_converted(type_):
                    trimmed.cast(type_)
                elif may_be_dates:
                    parse_dates(of_dates, type_, date_format)
                else:
                    fits = False
            except pa.ArrowInvalid:
                fits = False
        if fits:
            fitting.append(type_)
    return fitting


def parse_labels(distinct: Any) -> Any:
    """Return distinct labels of a CSV in the type that Arrow infers.

    They stay strings if the type would change their spelling, as it does for "007" and for booleans other than "True"
    and "False".
    """
    written = BytesIO()
    pyarrow.csv.write_csv(pa.table([distinct], ["label"]), written, pyarrow.csv.WriteOptions(quoting_style="needed"))
    parsed = pyarrow.csv.read_csv(
        pa.BufferReader(written.getvalue()),
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
    ).column(0)
    labels = set(distinct.to_pylist())
    other_flags = pa.types.is_boolean(parsed.type) and any(labels <= flags for flags in _OTHER_FLAGS)
    leading_zero = is_number(parsed.type) and any(re.match(r"\s*[-+]?0\d", label) for label in labels)
    return distinct if len(parsed) != len(distinct) or other_flags or leading_zero else parsed


def typed_labels(column: Any) -> Any:
    """Return a column of labels of a CSV, which are strings, in the type that Arrow infers; see `parse_labels`."""
    distinct = pc.unique(column.drop_null())
    return parse_labels(distinct).take(pc.index_in(column, distinct))


def _has_rounded(values: Any) -> bool:
    """Return whether one of some strings is an integer that float64 rounds."""
    if pc.max(pc.binary_length(values)).as_py() < 16:  # of at most 2**53
        return False
    long = pc.unique(values.filter(pc.match_substring_regex(values, r"^\s*[-+]?[0-9]{16,}\s*$")))
    return is_rounded(np.array([int(text) for text in long.to_pylist()], dtype=object))


class _Lent:
    """The content of a CSV as Arrow reads it, of which nobody else keeps a reference."""

    closed = False

    def __init__(self, content: BinaryIO) -> None:
        self.read = content.read


def _is_utf8(start: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-8 with characters that are not ASCII."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return not start.isascii()


def _first_lines(text: Iterable[str], separator: str) -> Iterator[int]:
    """Yield the line number at which each row of a CSV starts, including the header; blank lines are not rows."""
    reader = csv.reader(text, delimiter=separator)
    line = 1
    for values in reader:
        if values:
            yield line
        line = reader.line_num + 1
