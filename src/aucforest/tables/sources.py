"""Tables that are read more than once, batch by batch: Parquet files, and whatever gives streams of arrow."""

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet

from aucforest.tables.kinds import Canonical, canonical_type

# Cells of a batch, unless others are asked for, and its most rows.
_CELLS = 2**20
_MOST_ROWS = 2**14


class Source(Protocol):
    """A table that is read as often as needed; rows always come in the same order."""

    name: str
    columns: list[str]
    missing: Sequence[str]

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of some columns, from a row on, of up to so many rows."""

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""

    def place(self, row: int) -> str:
        """Return what a row of values, counted from 0, is called in a message."""

    def fingerprint(self) -> dict[str, Any] | None:
        """Return what tells this table from others, and from itself when it has changed; None where nothing does."""


def open_source(source: Any) -> Source:
    """Return a table to read: of a Parquet file, a list or a folder of them, or of what gives streams of arrow."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_dir():
            return ParquetFiles([path], path.name)
        files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".parquet")
        if not files:
            raise ValueError(f"the folder {path} has no file that ends in .parquet")
        return ParquetFiles(files, path.name)
    if isinstance(source, list | tuple) and source and all(isinstance(file, str | os.PathLike) for file in source):
        return ParquetFiles([Path(file) for file in source], f"{len(source)} files")
    if hasattr(source, "__next__"):
        raise TypeError(
            f"a {type(source).__name__} can be read once, but training reads its rows three times: give a table, a"
            " dataset or Parquet files"
        )
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "scanner"):
        return Streams(source)
    raise TypeError(
        "source must be a Parquet file, a list or a folder of them, or have __arrow_c_stream__, but is a"
        f" {type(source).__name__}"
    )


class ParquetFiles:
    """Parquet files of one schema, as one table."""

    is_text = False
    missing: Sequence[str] = ()

    def __init__(self, files: Sequence[Path], name: str) -> None:
        self.name, self._files = name, files
        self._stamps = [_stamp(file) for file in files]
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
        for file, stamp, start, stop in zip(self._files, self._stamps, self._first_rows, self._first_rows[1:]):
            if stop <= first_row:
                continue
            if _stamp(file) != stamp:
                raise ValueError(f"{file} has changed while it is read")
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
        at = max(i for i, first in enumerate(self._first_rows[:-1]) if first <= row)
        return f"{self._files[at].name}, row {row - self._first_rows[at] + 1}"

    def done(self) -> float | None:
        """Return the share of the rows that are read."""
        return self._rows_read / max(self.n_rows, 1)

    def fingerprint(self) -> dict[str, Any]:
        """Return names, sizes and times of the files, and types and number of rows."""
        names = [str(file.resolve()) for file in self._files]
        return {
            "files": [[name, *stamp] for name, stamp in zip(names, self._stamps)],
            "schema": [[field.name, str(field.type)] for field in self._schema],
            "n_rows": self.n_rows,
        }


class Streams:
    """A table in memory, or a query: each reading asks for a new stream."""

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
        rows, n_passed, canonical = rows or rows_of_batch(len(columns)), 0, _Batches(self.schema(columns))
        for batch in self._reader():
            rest = canonical(batch.slice(max(0, first_row - n_passed)))
            n_passed += batch.num_rows
            for start in range(0, rest.num_rows, rows):
                yield rest.slice(start, rows)

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""
        return pa.schema([self._schema.field(name) for name in columns])

    def place(self, row: int) -> str:
        """Return the number of a row, counted from 1."""
        return f"{self.name}, row {row + 1}"

    def fingerprint(self) -> None:
        """Return None: another table may look the same."""


def rows_of_batch(n_columns: int) -> int:
    """Return how many rows are handled at a time."""
    return max(1, min(_MOST_ROWS, _CELLS // max(n_columns, 1)))


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


def check_names(name: str, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    for place, column in enumerate(columns):
        if column in columns[:place]:
            raise ValueError(f"{name} has two columns {column!r}")


def _open(file: Path) -> Any:
    """Open a Parquet file: parts of a column are read when they are needed, whatever the size of row groups."""
    try:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"cannot read {file}: {error}") from error


def _stamp(file: Path) -> tuple[int, int]:
    """Return size and time of a file."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    return stat.st_size, stat.st_mtime_ns


def _groups_from(metadata: Any, row: int) -> tuple[int, list[int]]:
    """Return how many rows are in the row groups wholly before a row, and the other row groups."""
    ends = list(accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))
    n_before = sum(end <= row for end in ends)
    return ends[n_before - 1] if n_before > 0 else 0, list(range(n_before, len(ends)))


def _check_schema(first: Path, wanted: Any, file: Path, given: Any) -> None:
    """Refuse a file whose columns are not those of the first one."""
    if wanted.names != given.names:
        odd = [name for name in [*given.names, *wanted.names] if not (name in wanted.names and name in given.names)]
        what = f"column {odd[0]!r}" if odd else "the order of its columns"
        raise ValueError(f"{file.name} differs from {first.name} in {what}")
    for one, other in zip(wanted, given):
        if one.type != other.type:
            raise ValueError(f"column {one.name!r} is {one.type} in {first.name}, but {other.type} in {file.name}")
