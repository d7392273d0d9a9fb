"""Tables that are read several times in batches: Parquet and CSV files, and tables with Arrow streams."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet

from aucforest.tables.csv import CSV_SUFFIXES, CsvFiles, is_csv
from aucforest.tables.files import Files, check_names, check_same_names, rows_of_batch, split
from aucforest.tables.kinds import Canonical, Columns, canonical_type

_SUFFIXES = (".parquet", *CSV_SUFFIXES)


class Source(Columns, Protocol):
    """A table that is read as often as needed; rows always come in the same order."""

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of some columns, from a row on, of up to so many rows."""

    def schema(self, columns: Sequence[str]) -> Any:
        """Return names and types of columns of batches."""

    def fingerprint(self) -> dict[str, Any] | None:
        """Return what tells this table from others, and from itself when it has changed; None where nothing does."""


def open_source(source: Any, as_text: Sequence[str] | None = (), separator: str | None = None) -> Source:
    """Return a table to read, whose columns `as_text` (None for all) are left as text if it is a CSV.

    The separator is that of the values of a CSV, None for commas, or tabs where the name ends in .tsv.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_dir():
            return _open_files([path], path.name, as_text, separator)
        files = sorted(file for file in path.iterdir() if file.name.lower().endswith(_SUFFIXES))
        if not files:
            raise ValueError(f"the folder {path} has no {' or '.join(_SUFFIXES)} files")
        return _open_files(files, path.name, as_text, separator)
    if isinstance(source, list | tuple) and len(source) == 0:
        raise ValueError("source is an empty list: pass at least one file")
    if isinstance(source, list | tuple) and all(isinstance(file, str | os.PathLike) for file in source):
        return _open_files([Path(file) for file in source], f"{len(source)} files", as_text, separator)
    if hasattr(source, "__next__"):
        raise TypeError(
            f"a {type(source).__name__} can be read only once, but the fit reads the rows three times: pass a table, a"
            " dataset or files"
        )
    if hasattr(source, "sink_parquet"):
        raise TypeError(f"source is a {type(source).__name__}: pass source.collect(), or write a file by sink_parquet")
    if nw.dependencies.is_into_series(source):
        raise TypeError(f"source is a {type(source).__name__}: pass a table, with a column for the target")
    if nw.dependencies.is_pandas_dataframe(source):
        check_names("the DataFrame", source.columns.tolist())
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "scanner"):
        return Streams(source)
    raise TypeError(
        "source must be a Parquet or CSV file, a list or a folder of such files, or a table of pyarrow, polars, pandas"
        f" or duckdb, but is a {type(source).__name__}"
    )


def _open_files(files: Sequence[Path], name: str, as_text: Sequence[str] | None, separator: str | None) -> Source:
    """Return files of one kind as a table: CSV by its ending, or else Parquet."""
    are_csv = [is_csv(file) for file in files]
    if any(are_csv) and not all(are_csv):
        raise ValueError(f"{name}: some are CSV files and others are not; pass files of one type")
    return CsvFiles(files, name, as_text, separator) if all(are_csv) else ParquetFiles(files, name)


class ParquetFiles(Files):
    """Parquet files of one schema, as one table."""

    is_text = False
    missing: Sequence[str] = ()

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(files, name)
        self._first_rows = [0]
        for file in files:
            with _open(file) as content:
                schema = _canonical_schema(content.schema_arrow)
                self._first_rows.append(self._first_rows[-1] + content.metadata.num_rows)
            if file is files[0]:
                self._schema, self.columns = schema, schema.names
            _check_schema(files[0], self._schema, file, schema)
        check_names(files[0].name, self.columns)

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of some columns, from a row on, in canonical types."""
        batches = self._read(columns, first_row, rows or rows_of_batch(len(columns)))
        return _canonical_batches(batches, self.schema(columns))

    def _read(self, columns: Sequence[str], first_row: int, rows: int) -> Iterator[Any]:
        """Yield record batches of some columns as they are in the files."""
        for file, start, stop in zip(self.unchanged(), self._first_rows, self._first_rows[1:]):
            if stop <= first_row:
                continue
            with _open(file) as content:
                skipped, groups = _groups_from(content.metadata, first_row - start)
                for batch in content.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
                    rest = batch.slice(max(0, first_row - start - skipped))
                    skipped += batch.num_rows
                    if rest.num_rows > 0:
                        yield rest

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

    def done(self, n_rows: int) -> float | None:
        """Return what proportion of all rows some are."""
        return n_rows / max(self._first_rows[-1], 1)

    def fingerprint(self) -> dict[str, Any]:
        """Return names, sizes and times of the files, and types and number of rows."""
        return {
            "files": self.stamps(),
            "schema": [[field.name, str(field.type)] for field in self._schema],
            "n_rows": self._first_rows[-1],
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
        return split(_canonical_batches(self._reader(), self.schema(columns)), first_row, rows)

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
    return pa.schema([field.with_type(canonical_type(field.type)) for field in schema], schema.metadata)


def _canonical_batches(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Yield record batches with some columns, in the types of their canonical schema."""
    columns = {name: Canonical() for name in schema.names}
    for batch in batches:
        arrays = [canonical(batch.column(name)) for name, canonical in columns.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


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
