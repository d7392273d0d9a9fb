"""Tables in files and on standard input: whole, with the types that are found in them, or batch by batch.

A batch of a CSV has its values as text, so that whoever reads it decides what they are: a batch may show too little.
"""

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from aucforest.tables.kinds import MISSING, is_number
from aucforest.tables.sources import ParquetFiles, check_names, rows_of_batch

STANDARD = Path("-")
# Bytes of a CSV that are parsed at a time; no row may be longer. Arrow reads ahead, so there are several in memory.
_BLOCK = 2**20
# Flags in other words than those of Python, which flags are written in.
_FLAGS_OF_OTHERS = ({"false", "true"}, {"FALSE", "TRUE"})


class TableFile(Protocol):
    """A table that is read once, from its beginning."""

    name: str
    columns: list[str]
    missing: Sequence[str]
    # whether batches are text, which has no types of its own
    is_text: bool

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of some columns."""

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""

    def whole(self, as_text: Sequence[str] = ()) -> Any:
        """Return an arrow table of all columns, with types that fit all rows; some columns of text as it is."""

    def place(self, row: int) -> str:
        """Return what a row of values, counted from 0, is called in a message."""

    def done(self) -> float | None:
        """Return the share of the file that is read, None where nobody knows."""


@contextmanager
def open_table(file: Path) -> Iterator[TableFile]:
    """Open a CSV or Parquet file, or a CSV on standard input or from a pipe."""
    if file == STANDARD:
        yield CsvTable(sys.stdin.buffer, "standard input")
    elif not file.exists():
        raise ValueError(f"there is no file {file}")
    elif file.is_dir():
        raise ValueError(f"{file} is a folder, not a table")
    elif file.suffix.lower() == ".parquet":
        yield ParquetFiles([file], file.name)
    elif file.suffix.lower() == ".csv" or not file.is_file():
        with file.open("rb") as handle:
            yield CsvTable(handle, file.name, file)
    else:
        raise ValueError(f"a table must end in .csv or .parquet, got {file.name}")


class CsvTable:
    """A CSV with a header, in UTF-8."""

    is_text = True
    missing: Sequence[str] = MISSING

    def __init__(self, handle: BinaryIO, name: str, file: Path | None = None) -> None:
        self.name, self._handle, self._file = name, handle, file if file and file.is_file() else None
        try:
            lines = (line.decode("utf-8-sig") for line in handle)
            self.columns = next(csv.reader(lines), [])
        except (UnicodeDecodeError, csv.Error):
            raise ValueError(f"cannot read {name}: the header is not text in UTF-8") from None
        if not self.columns:
            raise ValueError(f"cannot read {name}: it is empty" if not handle.read(1) else f"{name} has no header")
        check_names(name, self.columns)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of some columns, all text."""
        convert = {"include_columns": columns, "column_types": dict.fromkeys(columns, pa.string())}
        rows = rows_of_batch(len(columns))
        try:
            for block in pyarrow.csv.open_csv(**self._options(convert)):
                for start in range(0, block.num_rows, rows):
                    yield block.slice(start, rows)
        except pa.ArrowInvalid as error:
            if str(error) != "Empty CSV file":
                self._refuse(error)

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""
        return pa.schema([(name, pa.string()) for name in columns])

    def whole(self, as_text: Sequence[str] = ()) -> Any:
        """Return an arrow table of all columns, with types that fit all rows; some columns as text."""
        text = dict.fromkeys(as_text, pa.string())
        convert = {"column_types": text, "null_values": MISSING, "strings_can_be_null": True}
        try:
            table = pyarrow.csv.read_csv(**self._options(convert))
        except pa.ArrowInvalid as error:
            if str(error) == "Empty CSV file":
                raise ValueError(f"{self.name} has a header, but no rows") from error
            self._refuse(error)
        for name, column in zip(table.column_names, table.columns):
            if pa.types.is_binary(column.type):
                row = next(row for row, value in enumerate(column) if not _is_text(value.as_py()))
                raise ValueError(f"{self.place(row)}: column {name!r} is not text in UTF-8")
        return table

    def place(self, row: int) -> str:
        """Return the line where a row begins, as an editor counts: with blank lines and line breaks in values."""
        if self._file is None:
            return f"{self.name}, row {row + 1}"
        with self._file.open(newline="", encoding="utf-8-sig", errors="replace") as text:
            line = next(islice(_first_lines(text), row + 1, None))
        return f"{self.name}, line {line}"

    def done(self) -> float | None:
        """Return the share of the file that is read."""
        return None if self._file is None else self._handle.tell() / self._file.stat().st_size

    def _options(self, convert: dict[str, Any]) -> dict[str, Any]:
        """Return what both readers are called with; in one thread, since otherwise errors do not tell their row."""
        return {
            "input_file": self._handle,
            "read_options": pyarrow.csv.ReadOptions(column_names=self.columns, use_threads=False, block_size=_BLOCK),
            "parse_options": pyarrow.csv.ParseOptions(newlines_in_values=True),
            "convert_options": pyarrow.csv.ConvertOptions(**convert),
        }

    def _refuse(self, error: Exception) -> NoReturn:
        """Say what the parser says, with the line in place of its row."""
        sentence = str(error)
        if "straddles two block boundaries" in sentence:
            raise ValueError(
                f"{self.name} has a line of more than {_BLOCK >> 20} MiB: is a quote not closed?"
            ) from error
        found = re.search(r"(?:column #(\d+): )?Row #(\d+): (?:Expected (\d+) columns, got (\d+))?", sentence)
        if found is None:
            raise ValueError(f"cannot read {self.name}: {sentence}") from error
        column, row, wanted, given = found.groups()
        place = self.place(int(row) - 1)
        if wanted is not None:
            raise ValueError(f"{place}: the header names {wanted} columns, but the row has {given}") from error
        if column is not None:
            raise ValueError(f"{place}: column {self.columns[int(column)]!r} is not text in UTF-8") from error
        raise ValueError(f"{place}: {sentence[found.end() :]}") from error


def parse_labels(column: Any) -> Any:
    """Return labels of a CSV in the type that the reader would find, but as text where that spells them otherwise."""
    distinct = pc.unique(column).drop_null()
    written = BytesIO()
    pyarrow.csv.write_csv(pa.table([distinct], ["label"]), written, pyarrow.csv.WriteOptions(quoting_style="needed"))
    parsed = pyarrow.csv.read_csv(
        pa.BufferReader(written.getvalue()),
        read_options=pyarrow.csv.ReadOptions(use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
    ).column(0)
    words = set(distinct.to_pylist())
    flags_of_others = pa.types.is_boolean(parsed.type) and any(words <= flags for flags in _FLAGS_OF_OTHERS)
    numbered = is_number(parsed.type) and any(re.match(r"\s*[-+]?0\d", word) for word in words)
    if len(parsed) != len(distinct) or flags_of_others or numbered:
        return column
    return parsed.take(pc.index_in(column, distinct))


def _first_lines(text: Iterable[str]) -> Iterator[int]:
    """Yield where the rows of a CSV begin; a blank line is none."""
    reader = csv.reader(text)
    line = 1
    for values in reader:
        if values:
            yield line
        line = reader.line_num + 1


def _is_text(value: bytes | None) -> bool:
    """Say whether bytes are UTF-8."""
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False
