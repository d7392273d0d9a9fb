"""Tables that are read more than once, batch by batch: Parquet and CSV files, and whatever gives streams of arrow."""

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet

from aucforest.tables.csv import CsvFiles
from aucforest.tables.files import Files, check_names, check_same_names, cut, rows_of_batch
from aucforest.tables.kinds import Canonical, Columns, canonical_type

_SUFFIXES = (".parquet", ".csv")


class Source(Columns, Protocol):
    """A table that is read as often as needed; rows always come in the same order."""

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of some columns, from a row on, of up to so many rows."""

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""

    def fingerprint(self) -> dict[str, Any] | None:
        """Return what tells this table from others, and from itself when it has changed; None where nothing does."""


def open_source(source: Any, as_text: Sequence[str] | None = ()) -> Source:
    """Return a table to read: of a Parquet or CSV file, a list or a folder of them, or of what gives streams of arrow.

    Some columns of a CSV, None for all, are left as text.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_dir():
            return _open_files([path], path.name, as_text)
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in _SUFFIXES)
        if not files:
            raise ValueError(f"the folder {path} has no file that ends in {' or '.join(_SUFFIXES)}")
        return _open_files(files, path.name, as_text)
    if isinstance(source, list | tuple) and len(source) == 0:
        raise ValueError("source is an empty list: name at least one file")
    if isinstance(source, list | tuple) and all(isinstance(file, str | os.PathLike) for file in source):
        return _open_files([Path(file) for file in source], f"{len(source)} files", as_text)
    if hasattr(source, "__next__"):
        raise TypeError(
            f"a {type(source).__name__} can be read once, but training reads its rows three times: give a table, a"
            " dataset or files"
        )
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "scanner"):
        return Streams(source)
    raise TypeError(
        "source must be a Parquet or CSV file, a list or a folder of them, or have __arrow_c_stream__, but is a"
        f" {type(source).__name__}"
    )


def _open_files(files: Sequence[Path], name: str, as_text: Sequence[str] | None) -> Source:
    """Return files of one kind as a table: CSV by its ending, or else Parquet."""
    are_csv = [file.suffix.lower() == ".csv" for file in files]
    if any(are_csv) and not all(are_csv):
        raise ValueError(f"{name}: some end in .csv and others do not; give files of one kind")
    return CsvFiles(files, name, as_text) if all(are_csv) else ParquetFiles(files, name)


class ParquetFiles(Files):
    """Parquet files of one schema, as one table."""

    is_text = False
    missing: Sequence[str] = ()

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(files, name)
        with _open(files[0]) as first:
            self._schema = _canonical_schema(first.schema_arrow)
            sizes = [first.metadata.num_rows]
        for file in files[1:]:
            with _open(file) as other:
                _check_schema(files[0], self._schema, file, _canonical_schema(other.schema_arrow))
                sizes.append(other.metadata.num_rows)
        self.columns = self._schema.names
        check_names(files[0].name, self.columns)
        self._first_rows = [0, *accumulate(sizes)]
        self._rows_read = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._first_rows[-1]

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of some columns, from a row on, in canonical types."""
        self._rows_read, canonical = first_row, _Batches(self.schema(columns))
        for file, start, stop in zip(self.unchanged(), self._first_rows, self._first_rows[1:]):
            if stop <= first_row:
                continue
            with _open(file) as content:
                skipped, groups = _groups_from(content.metadata, first_row - start)
                rows = rows or rows_of_batch(len(columns))
                for batch in content.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
                    rest = batch.slice(max(0, first_row - start - skipped))
                    skipped += batch.num_rows
                    if rest.num_rows > 0:
                        self._rows_read += rest.num_rows
                        yield canonical(rest)

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""
        return pa.schema([self._schema.field(name) for name in columns])

    def whole(self, as_text: Sequence[str] = ()) -> Any:
        """Return an arrow table of all columns, in the types of the files; `as_text` has no effect for Parquet."""
        return pa.Table.from_batches(self.batches(self.columns), schema=self._schema)

    def place(self, row: int) -> str:
        """Return a file and the number of a row in it, counted from 1."""
        file, row = self.file_of(row)
        return f"{file.name}, row {row + 1}"

    def done(self) -> float | None:
        """Return the share of the rows that are read."""
        return self._rows_read / max(self.n_rows, 1)

    def fingerprint(self) -> dict[str, Any]:
        """Return names, sizes and times of the files, and types and number of rows."""
        return {
            "files": self.stamps(),
            "schema": [[field.name, str(field.type)] for field in self._schema],
            "n_rows": self.n_rows,
        }


class Streams:
    """A table in memory, or a query: each reading asks for a new stream."""

    is_text = False
    missing: Sequence[str] = ()

    def __init__(self, source: Any) -> None:
        self._source, self.name = source, f"the {type(source).__name__}"
        self._schema = _canonical_schema(self._reader().schema)
        self.columns = self._schema.names
        check_names(self.name, self.columns)

    def _reader(self) -> Any:
        """Return a new stream of all columns."""
        if hasattr(self._source, "scanner"):
            return self._source.scanner(batch_readahead=1, fragment_readahead=1, use_threads=False).to_reader()
        return pa.RecordBatchReader.from_stream(self._source)

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of some columns, from a row on."""
        return cut(map(_Batches(self.schema(columns)), self._reader()), first_row, rows)

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""
        return pa.schema([self._schema.field(name) for name in columns])

    def place(self, row: int) -> str:
        """Return the number of a row, counted from 1."""
        return f"{self.name}, row {row + 1}"

    def fingerprint(self) -> None:
        """Return None: another table may look the same."""


def _canonical_schema(schema: Any) -> Any:
    """Return a schema whose types are canonical."""
    for place, field in enumerate(schema):
        schema = schema.set(place, field.with_type(canonical_type(field.type)))
    return schema


class _Batches:
    """Record batches with some columns, in the types of their canonical schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._columns = {name: Canonical() for name in schema.names}

    def __call__(self, batch: Any) -> Any:
        """Return a batch."""
        columns = [canonical(batch.column(name)) for name, canonical in self._columns.items()]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _open(file: Path) -> Any:
    """Open a Parquet file: parts of a column are read when they are needed, whatever the size of row groups."""
    try:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"cannot read {file}: {error}") from error


def _groups_from(metadata: Any, row: int) -> tuple[int, list[int]]:
    """Return how many rows are in the row groups wholly before a row, and the other row groups."""
    ends = list(accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))
    n_before = sum(end <= row for end in ends)
    return ends[n_before - 1] if n_before > 0 else 0, list(range(n_before, len(ends)))


def _check_schema(first: Path, wanted: Any, file: Path, given: Any) -> None:
    """Refuse a file whose columns are not those of the first one."""
    check_same_names(first, wanted.names, file, given.names)
    for one, other in zip(wanted, given):
        if one.type != other.type:
            raise ValueError(f"column {one.name!r} is {one.type} in {first.name}, but {other.type} in {file.name}")
