"""Tables that are read in batches, several times: Parquet and CSV files, and objects with an Arrow stream."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet

from aucforest.tables.csv import CSV_SUFFIXES, CsvFiles, is_csv
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.files import Files, check_names, check_same_names, rows_of_batch, split
from aucforest.tables.integers import ROUNDED
from aucforest.tables.kinds import Canonical, canonical_type
from aucforest.tables.texts import StrayText, read_as_missing

_SUFFIXES = (".parquet", *CSV_SUFFIXES)


class _Typed:
    """A table whose schema is known, unlike that of a CSV."""

    is_text = False
    hint = ""
    missing: Sequence[str] = ()
    stray: Mapping[str, StrayText] = {}
    remarks: Mapping[str, Sequence[str]] = {}
    rounded: frozenset[str] = frozenset()
    _schema: Any

    def schema(self, columns: Sequence[str]) -> Any:
        """Return the schema of batches of the given columns."""
        return pa.schema([self._schema.field(name) for name in columns])


class ParquetFiles(_Typed, Files):
    """Parquet files with the same schema as one table."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(files, name)
        self._first_rows = [0]
        for file in files:
            with _open(file) as content:
                schema = _canonical_schema(content.schema_arrow)
                self._first_rows.append(self._first_rows[-1] + content.metadata.num_rows)
            if file is files[0]:
                self._schema, self.columns = schema, schema.names
            check_same_names(files[0], self.columns, file, schema.names)
            for expected, field in zip(self._schema, schema):
                if field.type != expected.type:
                    types = f"{expected.type} in {files[0].name}, but {field.type} in {file.name}"
                    raise ValueError(f"column {field.name!r} is {types}")
        check_names(files[0].name, self.columns)

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns in canonical types, from `first_row` on, of at most `rows` rows."""
        batches = self._read(columns, first_row, rows or rows_of_batch(len(columns)))
        return _canonical_batches(batches, self.schema(columns))

    def _read(self, columns: Sequence[str], first_row: int, rows: int) -> Iterator[Any]:
        """Yield record batches of the given columns in the types of the files."""
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

    def place(self, row: int) -> str:
        """Return the file of a row and the number of the row in it, counted from 1."""
        file, row = self.file_of(row)
        return f"{file.name}, row {row + 1}"

    def done(self, n_rows: int) -> float | None:
        """Return `n_rows` as a proportion of all rows."""
        return n_rows / max(self._first_rows[-1], 1)

    def fingerprint(self) -> dict[str, Any]:
        """Return paths, sizes and modification times of the files, the schema, and the number of rows."""
        return {
            "files": self.stamps(),
            "schema": [[field.name, str(field.type)] for field in self._schema],
            "n_rows": self._first_rows[-1],
        }


class Streams(_Typed):
    """A table in memory or a query, which is read by a new Arrow stream each time."""

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
        """Yield record batches of the given columns, from `first_row` on, of at most `rows` rows."""
        return split(_canonical_batches(self._reader(), self.schema(columns)), first_row, rows)

    def place(self, row: int) -> str:
        """Return the name of the source and the number of the row, counted from 1."""
        return f"{self.name}, row {row + 1}"

    def fingerprint(self) -> None:
        """Return None, because a change of the table cannot be detected."""


# A table that can be read several times, with its rows in the same order each time.
Source = CsvFiles | ParquetFiles | Streams


def stray_notes(table: Source, columns: Sequence[str]) -> list[str]:
    """Return sentences on stray text in columns that are read as numbers or dates, after their types are known."""
    table.schema(columns)  # for which all rows are read
    notes = [read_as_missing(name, stray) for name, stray in table.stray.items()]
    notes += [f"column {name!r}: {remark}" for name, listed in table.remarks.items() for remark in listed]
    return notes + [f"column {name!r}: {ROUNDED}" for name in table.columns if name in table.rounded]


def open_source(source: Any, as_text: Sequence[str] | None = (), csv_format: CsvFormat = DEFAULT_FORMAT) -> Source:
    """Return the source of a file, a folder, a list of files, or a table.

    `as_text` and `csv_format` are for CSV: the columns that stay strings (None for all), and how it is written. Files
    of a folder that begin with a point or an underscore are ignored, as they are temporary or describe the others.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_dir():
            return _open_files([path], path.name, as_text, csv_format)
        files = sorted(file for file in path.iterdir() if is_table(file) and file.name[0] not in "._")
        if not files:
            raise ValueError(f"the folder {path} has no {' or '.join(_SUFFIXES)} files")
        return _open_files(files, path.name, as_text, csv_format)
    if isinstance(source, list | tuple) and len(source) == 0:
        raise ValueError("source is an empty list: pass at least one file")
    if isinstance(source, list | tuple) and all(isinstance(file, str | os.PathLike) for file in source):
        return _open_files([Path(file) for file in source], f"{len(source)} files", as_text, csv_format)
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


def is_table(file: Path) -> bool:
    """Return whether the name of a file is that of a Parquet or CSV file."""
    return file.name.lower().endswith(_SUFFIXES)


def _open_files(files: Sequence[Path], name: str, as_text: Sequence[str] | None, csv_format: CsvFormat) -> Source:
    """Return files of one format as a source: CSV if the names say so, else Parquet."""
    are_csv = [is_csv(file) for file in files]
    if any(are_csv) and not all(are_csv):
        raise ValueError(f"{name}: some are CSV files and others are not; pass files of one type")
    return CsvFiles(files, name, as_text, csv_format) if all(are_csv) else ParquetFiles(files, name)


def _canonical_schema(schema: Any) -> Any:
    """Return a schema with canonical types; see `canonical_type`."""
    return pa.schema([field.with_type(canonical_type(field.type)) for field in schema], schema.metadata)


def _canonical_batches(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Yield record batches with the columns and types of a canonical schema."""
    columns = {name: Canonical() for name in schema.names}
    for batch in batches:
        arrays = [canonical(batch.column(name)) for name, canonical in columns.items()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _open(file: Path) -> Any:
    """Open a Parquet file with a small buffer instead of whole row groups; ValueError if it cannot be read."""
    try:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"cannot read {file}: {error}") from error


def _groups_from(metadata: Any, row: int) -> tuple[int, list[int]]:
    """Return the number of rows in the row groups that end before a row, and the indices of the other row groups."""
    ends = list(accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))
    n_before = sum(end <= row for end in ends)
    return ends[n_before - 1] if n_before > 0 else 0, list(range(n_before, len(ends)))
