"""Tables that are read in batches, several times: Parquet and text files, and objects with an Arrow stream."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from aucforest.columns.integers import ROUNDED
from aucforest.columns.texts import listed_columns, stray_note
from aucforest.tables.copies import SPREADSHEET, STANDARD, Readable, is_empty
from aucforest.tables.csv import CSV_SUFFIXES, CsvFiles
from aucforest.tables.database import columns_of, rows_where
from aucforest.tables.files import Files, check_column_names, check_same_names, rows_of_batch, split_batches
from aucforest.tables.json_lines import JSON_SUFFIXES, JsonFiles
from aucforest.tables.kinds import NamedTable, check_has_columns, holds_text, plain_type
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tables.text_files import TextFiles

SUFFIXES = (".parquet", *CSV_SUFFIXES, *JSON_SUFFIXES, SPREADSHEET)
# The suffixes as messages list them.
NAMES = ".csv, .tsv, .txt, .jsonl or .ndjson (or .gz or .zst of these), .xlsx or .parquet"


class _TypedTable(NamedTable):
    """Base class of tables with known types, unlike text files, whose types are inferred."""

    text_formats: Mapping[str, Mapping[str, str]] = {}
    _schema: Any

    def schema(self, columns: Sequence[str]) -> Any:
        """Return the schema of batches of the given columns."""
        return pa.schema([self._schema.field(name) for name in columns])


class ParquetFiles(_TypedTable, Files):
    """Parquet files with the same columns as one table. The types of a column may differ if one type has all values."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        super().__init__(files, name)
        self._first_rows = [0]  # the first row of each file, and the total number of rows
        origins = dict[str, str]()  # the file in which a column has its type
        for file in files:
            with _open_parquet(file) as content:
                schema = _canonical_schema(content.schema_arrow)
                self._first_rows.append(self._first_rows[-1] + content.metadata.num_rows)
            check_column_names(file.name, schema.names)
            if file is files[0]:
                self._schema, self.columns = schema, schema.names
            check_same_names(files[0].name, sorted(self.columns), file.name, sorted(schema.names))
            for index, expected in enumerate(self._schema):
                name, type_ = expected.name, schema.field(expected.name).type
                common = _common_type(expected.type, type_)
                if common is None:
                    types = f"{expected.type} in {origins.get(name, files[0].name)}, but {type_} in {file.name}"
                    raise ValueError(f"column {name!r} is {types}: write it in one type")
                if common != expected.type:
                    self._schema, origins[name] = self._schema.set(index, expected.with_type(common)), file.name
        self.n_rows = self._first_rows[-1]

    def batches(self, columns: Sequence[str], first_row: int = 0, max_rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns in canonical types; see `TextFiles.batches`."""
        max_rows = max_rows or rows_of_batch(len(columns))
        for file, start, stop in zip(self.unchanged(), self._first_rows, self._first_rows[1:]):
            if stop <= first_row:
                continue
            with _open_parquet(file) as content:
                sizes = [content.metadata.row_group(group).num_rows for group in range(content.num_row_groups)]
                ends = np.cumsum([0, *sizes])
                # Row groups that end before the first row are not read.
                first = int(np.searchsorted(ends[1:], first_row - start, side="right"))
                groups = list(range(first, len(sizes)))
                batches = content.iter_batches(max_rows, row_groups=groups, columns=columns, use_threads=False)
                batches = split_batches(batches, first_row - start - int(ends[first]), max_rows)
                yield from _canonical_batches(batches, self.schema(columns))
        self.check_unchanged()

    def location(self, row: int) -> str:
        """Return the file of a row and the number of the row in it, counted from 1."""
        index = int(np.searchsorted(self._first_rows[1:-1], row, side="right"))
        return f"{self._files[index].name}, row {row - self._first_rows[index] + 1}"

    def fingerprint(self) -> dict[str, Any]:
        """Return paths, sizes and modification times of the files, the schema, and the number of rows."""
        return {
            "files": self.stamps(),
            "schema": [[field.name, str(field.type)] for field in self._schema],
            "n_rows": self.n_rows,
        }


class Streams(_TypedTable):
    """A table in memory or a query, which makes a new Arrow stream each time that it is read."""

    def __init__(self, source: Any) -> None:
        self._source, self.name = source, f"the {type(source).__name__}"
        try:
            self._schema = _canonical_schema(self._reader().schema)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{self.name} has a type that Arrow does not have ({error}): cast it") from error
        self.columns = self._schema.names
        check_column_names(self.name, self.columns)

    def _reader(self, columns: Sequence[str] | None = None) -> Any:
        if hasattr(self._source, "scanner"):
            options = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
            return self._source.scanner(columns=columns, **options).to_reader()
        return pa.RecordBatchReader.from_stream(self._source)

    def batches(self, columns: Sequence[str], first_row: int = 0, max_rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns; see `TextFiles.batches`."""
        reader = self._reader(list(dict.fromkeys(columns)))
        return split_batches(_canonical_batches(reader, self.schema(columns)), first_row, max_rows)

    def fingerprint(self) -> None:
        """Return None, because a change of the table cannot be detected."""


class SelectedRows:
    """The rows of a source that the options `where` and `sample` select. Other attributes are those of the source."""

    def __init__(self, source: Any, options: ReadOptions) -> None:
        self._source, self._options = source, options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The sorted indices of the selected rows in the source; ValueError if no row fulfils `where`."""
        table, where, n_sampled = self._source, self._options.where, self._options.sample
        if where is None:
            rows = np.arange(sum(batch.num_rows for batch in table.batches(table.columns[:1])))
        else:
            columns = _columns_in(where, table) or table.columns[:1]
            rows = rows_where(table.batches(columns), table.schema(columns), where)
            if len(rows) == 0:
                raise ValueError(f"{table.name} has no rows where {where}")
        if n_sampled is not None and n_sampled < len(rows):
            rows = np.sort(np.random.default_rng(0).choice(rows, n_sampled, replace=False, shuffle=False))
        return rows

    def read_as(self, types: Mapping[str, Any]) -> None:
        """Give columns the types that a model requires, and select rows by these types; see `TextFiles.read_as`."""
        self._source.read_as(types)
        # `where` may use columns that the model does not use. Their types are inferred only to select the rows.
        self._source.keep_as_text((), types)
        _ = self.rows
        self._source.keep_as_text(None, types)

    def batches(self, columns: Sequence[str], first_row: int = 0, max_rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns and the selected rows; see `TextFiles.batches`."""
        return split_batches(self._selected(columns), first_row, max_rows)

    def _selected(self, columns: Sequence[str]) -> Iterator[Any]:
        start = 0
        for batch in self._source.batches(columns):
            stop = start + batch.num_rows
            first, last = np.searchsorted(self.rows, (start, stop))
            if first < last:
                yield batch.take(pa.array(self.rows[first:last] - start))
            start = stop

    def location(self, row: int) -> str:
        """Return the position of a row in the source."""
        return str(self._source.location(int(self.rows[row])))

    @property
    def n_rows(self) -> int:
        """The number of selected rows."""
        return len(self.rows)

    def fingerprint(self) -> dict[str, Any] | None:
        """Return the fingerprint of the source and a digest of the row indices."""
        of_source = self._source.fingerprint()
        return None if of_source is None else of_source | {"rows": sha256(self.rows.tobytes()).hexdigest()}


# A table that can be read several times, with its rows in the same order each time.
Source = TextFiles | ParquetFiles | Streams


def stray_notes(table: Source, columns: Sequence[str]) -> list[str]:
    """Return notes on how the columns of text files are read; to infer their types, all rows are read.

    Rounded integers are noted only in columns that are read as float64; the fit warns of integer columns itself.
    """
    schema = table.schema(columns)  # sets `stray`, `remarks` and `rounded`
    notes = [stray_note(name, stray, table.can_be_text) for name, stray in table.stray.items()]
    names_by_remark: dict[str, list[str]] = {}
    for name, remark in table.remarks.items():
        names_by_remark.setdefault(remark, []).append(repr(name))
    notes += [f"{listed_columns(names)}: {remark}" for remark, names in names_by_remark.items()]
    integers = {field.name for field in schema if pa.types.is_integer(field.type)}
    rounded = [name for name in table.columns if name in table.rounded and name not in integers]
    return notes + [f"column {name!r}: {ROUNDED}" for name in rounded]


def open_source(source: Any, as_text: Sequence[str] | None = (), options: ReadOptions = DEFAULT_OPTIONS) -> Source:
    """Return the source of a file, a folder, a list of files, or a table.

    The columns `as_text` of text files (None for all) stay strings. In a folder, files whose names begin with a point,
    an underscore or "~$" are ignored, because they are temporary or contain metadata.
    """
    options = options.check()
    if options.where is None and options.sample is None:
        return _open(source, as_text, options)
    # Rows are selected by the inferred types of all columns. After that, the columns `as_text` become text.
    all_rows = _open(source, () if as_text is not None else None, options)
    selected = SelectedRows(all_rows, options)
    if as_text is not None or not isinstance(all_rows, TextFiles):  # else `read_as` selects the rows
        _ = selected.rows
    if as_text is not None and isinstance(all_rows, TextFiles):
        all_rows.keep_as_text(as_text)
    return cast(Source, selected)


def _open(source: Any, as_text: Sequence[str] | None, options: ReadOptions) -> Any:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        files = [path]
        if path.is_dir():
            in_folder = [file for file in path.iterdir() if not file.name.startswith((".", "_", "~$"))]
            files = sorted(file for file in in_folder if is_table(file) and not file.is_dir())
            if not files:
                advice = "; folders in it are not read: pass one of these" * any(map(Path.is_dir, in_folder))
                raise ValueError(f"the folder {path} has no tables: {NAMES}{advice}")
            # Spark may write an empty file for a partition without rows. If all files are empty, the first is refused.
            files = [file for file in files if not is_empty(file)] or files
        return _open_files(files, path.name, as_text, options)
    if isinstance(source, list | tuple) and all(isinstance(file, str | os.PathLike) for file in source):
        if not source:
            raise ValueError("source is an empty list: pass at least one file")
        files = [Path(file) for file in source]
        for folder in filter(Path.is_dir, files):
            raise ValueError(f"{folder} is a folder: pass it by itself, without a list")
        return _open_files(files, f"{len(files)} files" if files[1:] else files[0].name, as_text, options)
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
        check_column_names("the DataFrame", source.columns.tolist())
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "scanner"):
        return Streams(source)
    raise TypeError(
        "source must be a table in a file, a list or a folder of such files, or a table of pyarrow, polars, pandas or"
        f" duckdb, but is a {type(source).__name__}"
    )


def is_table(file: Path) -> bool:
    """Return whether a file has the suffix of a table."""
    return file.name.lower().endswith(SUFFIXES)


def _open_files(files: Sequence[Path], name: str, as_text: Sequence[str] | None, options: ReadOptions) -> Source:
    formats = {_format_of(file) for file in files}
    if len(formats) > 1:
        raise ValueError(f"{name}: some are {' and others '.join(sorted(formats))} files; pass files of one format")
    if formats == {"Parquet"}:
        return ParquetFiles(files, name)
    readable = [Readable(file, options.encoding) for file in files]
    name = readable[0].name if files == [STANDARD] else name
    return (JsonFiles if formats == {"JSON"} else CsvFiles)(readable, name, as_text, options)


def _format_of(file: Path) -> str:
    """Return the format of a table by the suffix of its file; if it is unknown, a stream is CSV and a file Parquet."""
    name = file.name.lower()
    if name.endswith(JSON_SUFFIXES):
        return "JSON"
    is_stream = file == STANDARD or (file.exists() and not file.is_file())
    return "CSV" if name.endswith((*CSV_SUFFIXES, SPREADSHEET)) or is_stream else "Parquet"


def _columns_in(expression: str, table: Any) -> list[str]:
    """Return the columns of a table that an SQL expression uses; SQL ignores the case of column names."""
    columns: dict[str, str] = {}
    for name in columns_of(expression):
        matching = [column for column in table.columns if column.lower() == name.lower()]
        column = matching[0] if len(matching) == 1 else name
        check_has_columns(table, column)
        if (known := columns.setdefault(column.lower(), column)) != column:
            raise ValueError(f"where has columns that differ in upper and lower case alone: {known!r} and {column!r}")
    return list(columns.values())


def _canonical_type(type_: Any) -> Any:
    """Return a type with int32 as the type of dictionary indices, and large_string in place of string_view.

    Arrow cannot compute with dictionaries of string views, and pandas does not support unsigned indices.
    """
    if pa.types.is_dictionary(type_):
        return pa.dictionary(pa.int32(), _canonical_type(type_.value_type))
    return pa.large_string() if pa.types.is_string_view(type_) else type_


def _canonical_schema(schema: Any) -> Any:
    return pa.schema([field.with_type(_canonical_type(field.type)) for field in schema], schema.metadata)


def _canonical_batches(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    for batch in batches:
        columns = [_cast(batch.column(field.name), field) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: Any, field: Any) -> Any:
    """Convert an array to a canonical type. Dictionaries lose repeats and nulls, with which Arrow cannot unify them."""
    type_ = field.type
    if not pa.types.is_dictionary(type_):
        try:
            return column.cast(type_)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(f"column {field.name!r}: {error}") from error
    return column.dictionary.cast(type_.value_type).take(column.indices).dictionary_encode()


def _common_type(one: Any, other: Any) -> Any:
    """Return a type that has the values of two types, or None. Values that it does not have are an error when cast."""
    if one == other:
        return one
    types = [one, other]
    if pa.types.is_dictionary(one) != pa.types.is_dictionary(other):
        types = list(map(plain_type, types))
        if not any(map(holds_text, types)):  # numbers in a dictionary are categories
            return None
    try:
        schema = pa.unify_schemas([pa.schema([("", type_)]) for type_ in types], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
    common = schema.field(0).type
    # Arrow would round to narrow floats, and needs more digits for integers than such a decimal type has.
    is_lossy = any(map(pa.types.is_decimal, types)) and (
        (pa.types.is_floating(common) and common != pa.float64()) or any(map(pa.types.is_integer, types))
    )
    return None if is_lossy or pa.types.is_binary(common) or pa.types.is_large_binary(common) else common


@contextmanager
def _open_parquet(file: Path) -> Iterator[Any]:
    """Open a Parquet file, read through a small buffer; ValueError that names it in place of an error of Arrow."""
    try:
        # pyarrow would take a relative path that begins with ~ as one in a home directory.
        with pyarrow.parquet.ParquetFile(file.absolute(), pre_buffer=False, buffer_size=2**20) as content:
            yield content
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        is_named = file.name.lower().endswith(SUFFIXES)
        advice = "" if is_named else f" If it is no Parquet file, let its name end in {NAMES}"
        raise ValueError(f"cannot read {file}: {str(error).strip()}{advice}") from error
