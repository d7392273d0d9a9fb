"""Files of text, and the SQL by which the database engine, DuckDB, counts their values and reads rows."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from aucforest._optional import import_optional
from aucforest.columns.spellings import MOST_STRAY, is_few, reading_advice
from aucforest.columns.texts import StrayText
from aucforest.tables.copies import Readable
from aucforest.tables.database import connect_to, fetch, literal, literals
from aucforest.tables.files import Files, rows_of_batch, split_batches
from aucforest.tables.kinds import MISSING
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.text_types import FLAG, N_VALUES, N_ZEROS, NOT_BLANK, NUMBER, RAW, TEXT, TextType, infer_types

# The maximum number of stray values (such as text among numbers) that are kept per column, as examples for messages.
_MOST_EXAMPLES = 20
# The maximum number of columns in one statement that counts values: the engine needs memory for each column.
_MOST_COUNTED = 2**12
# After more than this number of rows is read, the connection is closed to free its memory.
_MANY_ROWS = 2**16

# Text, with NULL in place of missing-value markers.
UNMARKED = f"CASE WHEN {{0}} NOT IN ({literals(MISSING)}) THEN {{0}} END"
# Objects and lists of JSON, which cannot be features.
NESTED = TextType(pa.struct([("json", pa.string())]), "{'json': {0}}", "text")
NOT_UTF8 = "not encoded in UTF-8: pass its encoding, such as --encoding cp1252 (in Python, encoding='cp1252')"


class TextFiles(Files):
    """Files with the same columns of text as one table. Each column gets a type that nearly all of its values have.

    The columns `as_text` (None for all) stay strings. Values of another type than that of their column are stray. If
    the option `stray_text` is "number", a few stray values in a column become missing, and `stray` describes them.
    `remarks` has other notes on columns. `rounded` has the columns in which float64 rounds an integer. `text_formats`
    has the decimal marks, units and date formats of columns.
    """

    is_text = True
    missing = MISSING
    # Whether the files also store values that are not text, such as the numbers of JSON and spreadsheets.
    _has_numbers = False
    # Whether the option `stray_text` can keep a column as text; False once a model has set the types.
    can_be_text = True
    # SQL that is NULL for missing-value markers, else the value, "{0}". By default, `_table` replaces the markers.
    _unmarked = "{0}"
    # Whether the engine can read numbers and dates directly, instead of reading strings and converting them.
    _reads_types = True
    # Whether all rows have been read without an error. If a row has an error, earlier rows may be wrong, too.
    _is_verified = False

    def __init__(
        self, readable: Sequence[Readable], name: str, as_text: Sequence[str] | None, options: ReadOptions
    ) -> None:
        super().__init__([file.stamped for file in readable], name)
        self._readable = readable
        self._options = options
        paths = [str(file.path.absolute()) for file in readable]
        # The engine reads paths as glob patterns, so the special characters of patterns are escaped.
        self._patterns = [re.sub(r"([*?\[])", r"[\1]", path) for path in paths]
        self._errors = import_optional("duckdb", purpose=f"reading {self.name}", extra="arrow").Error, OSError
        self._allowed = [*paths, *self._patterns], str(readable[0].temporary_folder())
        self.columns, self._types = [], dict[str, TextType]()
        self.stray: dict[str, StrayText] = {}
        self.remarks: dict[str, str] = {}
        self.rounded: set[str] = set()
        self._as_text = as_text
        self._read_header()
        self._close()  # the next connection gets memory according to the number of columns

    @cached_property
    def _connection(self) -> Any:
        return connect_to(*self._allowed, len(self.columns))

    def _close(self) -> None:
        """Close the connection, which keeps memory for each thread; the next statement opens a new one."""
        if "_connection" in self.__dict__:
            self._connection.close()
            del self._connection

    def _read_header(self) -> None:
        """Set `columns`, the names of the columns; ValueError if the files have different columns or are no tables."""
        raise NotImplementedError

    def _table(self, engine: Mapping[str, str], *, raw: bool = False) -> str:
        """Return SQL for the table with the columns c0, c1 and so on.

        `engine` has the types of the columns that the engine converts. The others are strings. Missing-value markers
        become NULL, unless `raw` is True or `_unmarked` replaces them.
        """
        raise NotImplementedError

    def _switch_to_one_thread(self) -> bool:
        """After an error, read in one thread if that may help; return whether to repeat the statement."""
        return False

    def _explain(self, message: str) -> str:
        """Return an error message that names the file and the line, from an error message of the engine."""
        raise NotImplementedError

    def _file_index(self, message: str) -> int:
        """Return the index of the file in an error message of the engine, 0 if there is none."""
        indices = (index for index, file in enumerate(self._readable) if str(file.path.absolute()) in message)
        return next(indices, 0)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Raise ValueError in place of an error of the engine, or of the OSError that Arrow makes of it."""
        try:
            yield
        except self._errors as error:
            if "Out of Memory Error" in str(error):
                what = f"reading {self.name} takes more memory than the database engine may have"
                raise ValueError(f"{what}: write it to a Parquet file") from error
            raise ValueError(self._explain(str(error).removeprefix("Invalid Input Error: "))) from error

    def keep_as_text(self, columns: Sequence[str] | None, typed: Collection[str] = ()) -> None:
        """Replace `as_text`, the columns that stay strings (None for all).

        Only the columns `typed` keep their types; others are inferred again when needed.
        """
        self._as_text, typed = columns, set(typed)
        self._types = {name: type_ for name, type_ in self._types.items() if name in typed or type_ == NESTED}
        self.stray = {name: stray for name, stray in self.stray.items() if name in typed}
        self.remarks = {name: remark for name, remark in self.remarks.items() if name in typed}
        self.rounded &= typed

    @cached_property
    def _engine_names(self) -> dict[str, str]:
        return {name: f"c{index}" for index, name in enumerate(self.columns)}

    def add_raw_columns(self, names: Sequence[str]) -> list[str]:
        """Add a column with the original text of each given column, and return the names of the new columns."""
        added = [f"{name} as it is written\n" for name in names]
        for name, new in zip(names, added):
            self._engine_names[new], self._types[new] = self._engine_names[name], RAW
        return added

    def batches(self, columns: Sequence[str], first_row: int = 0, max_rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns, each of at most `max_rows` rows, beginning with `first_row`."""
        return split_batches(self._read(columns, self.schema(columns)), first_row, max_rows)

    def _read(self, columns: Sequence[str], schema: Any) -> Iterator[Any]:
        names, types = [self._engine_names[name] for name in columns], [self._types[name] for name in columns]
        # For raw columns, the table keeps missing-value markers. Then the SQL of the other columns replaces them.
        raw, sqls, engine = RAW in types, list[str](), dict[str, str]()
        for name, type_ in zip(names, types):
            if self._reads_types and not raw and type_.engine and type_.is_sure:
                engine[name] = type_.engine
                sqls.append("{0}")
            else:
                value = "{0}" if type_ in (RAW, NESTED) else UNMARKED if raw else self._unmarked
                sqls.append(type_.sql.replace("{0}", value))
        grouped = _group_columns(names, sqls)
        self.check_unchanged()
        if not self._is_verified:  # errors in any row are raised before the first batch
            self._fetch(lambda: f"SELECT count(c0) FROM {self._table({})}")
        with self._explain_errors(), self._connection.cursor() as cursor:
            relation = cursor.sql(f"SELECT {', '.join(grouped)} FROM {self._table(engine, raw=raw)}")
            n_rows = 0
            for batch in relation.to_arrow_reader(rows_of_batch(len(columns))):
                typed = zip(_ungroup_columns(batch.columns, grouped.values()), schema.types)
                arrays = [column if column.type == type_ else column.cast(type_) for column, type_ in typed]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                n_rows += batch.num_rows
        if n_rows > _MANY_ROWS:
            self._close()
        self.check_unchanged()

    def schema(self, columns: Sequence[str]) -> Any:
        """Return the schema of the given columns. All rows are read to infer types that are not yet known."""
        for name in columns if self._as_text is None else self._as_text:
            self._types.setdefault(name, RAW if self._as_text is None else TEXT)
        if unknown := [name for name in dict.fromkeys(columns) if name not in self._types]:
            types, rounded = infer_types(unknown, self._count, self._options, has_numbers=self._has_numbers)
            self._set_types(types)
            self.remarks |= {name: type_.note for name, type_ in types.items() if type_.note}
            self.rounded |= rounded
        return pa.schema([(name, self._types[name].arrow) for name in columns])

    def read_numbers(self, columns: Sequence[str]) -> None:
        """Read columns as numbers, even if they are among the columns that stay strings."""
        assert self._as_text is not None  # a model sets types by `read_as`
        self._as_text = [name for name in self._as_text if name not in columns]

    def read_as(self, types: Mapping[str, TextType]) -> None:
        """Give columns the types that a model requires; ValueError if too many values of a column have another type.

        The formats of numbers and dates are inferred. If several fit, an option, other columns or the formats in
        `types` decide, in this order. Any number of dates such as 0000-00-00 may become missing values.
        """
        self.can_be_text = False
        unknown = [name for name, type_ in types.items() if type_.kind in ("number", "date")]
        options = self._options
        inferred, self.rounded = infer_types(unknown, self._count, options, known=types, has_numbers=self._has_numbers)
        chosen = dict(types)
        for name, type_ in inferred.items():
            wanted = types[name]
            if type_.kind == "zoned date" and wanted.kind == "date":
                raise ValueError(f"column {name!r} has times with an offset from UTC, but had no time zone in fit")
            if (note := _format_note(type_, wanted)) is not None:
                chosen[name] = type_._replace(arrow=wanted.arrow) if type_.kind == "date" else type_
                self.remarks |= {name: note} if note else {}
        self._set_types(chosen)
        zeros = self._count([name for name, stray in self.stray.items() if stray.kind == "date"], [N_ZEROS])
        for name, stray in self.stray.items():
            is_allowed = options.stray_text == "number" and stray.kind != "boolean"
            (n_zeros,) = zeros.get(name, (0,))
            if not (is_allowed and is_few(stray.n_stray - n_zeros, stray.n_values, MOST_STRAY)):
                self._raise_stray(name, stray)

    @property
    def text_formats(self) -> dict[str, dict[str, str]]:
        """The formats of columns whose numbers or dates are not written as in Python; see `TextType`."""
        return {name: dict(type_.format) for name, type_ in self._types.items() if type_.format}

    def _count(
        self, names: Sequence[str], expressions: Sequence[str], *, distinct: bool = False, where: str = "true"
    ) -> dict[str, Sequence[Any]]:
        """Return the values of SQL aggregates for each column.

        If `distinct` is True, the aggregates are of the distinct values for which `where` is true, with their counts n.
        For thousands of columns, grouping by column is much faster than separate expressions for each column.
        """
        if len(names) > _MOST_COUNTED:
            blocks = [names[start : start + _MOST_COUNTED] for start in range(0, len(names), _MOST_COUNTED)]
            results = [self._count(block, expressions, distinct=distinct, where=where) for block in blocks]
            return {name: row for result in results for name, row in result.items()}
        if not names:
            return {}
        columns = {self._engine_names[name]: name for name in names}
        aggregates, condition = (sql.replace("{0}", "value") for sql in (", ".join(expressions), where))
        listed = ", ".join(columns)

        def statement() -> str:
            table = f"(SELECT {listed} FROM {self._table({})}) UNPIVOT INCLUDE NULLS (value FOR name IN ({listed}))"
            # For thousands of columns, markers are replaced much faster in one column of all values.
            table = f"(SELECT name, {self._unmarked.replace('{0}', 'value')} AS value FROM {table})"
            if distinct:
                table = f"(SELECT name, value, count(*) AS n FROM {table} WHERE {condition} GROUP BY name, value)"
            return f"SELECT name, count(*), {aggregates} FROM {table} GROUP BY name"

        rows = {columns[column]: row for column, *row in self._fetch(statement)}
        zeros = [0] * (1 + len(expressions))  # for a table without rows
        if not distinct:
            self.n_rows = rows.get(names[0], zeros)[0]
        return {name: rows.get(name, zeros)[1:] for name in names}

    def has_value(self, name: str, value: str) -> bool:
        """Return whether a column has the given value."""
        return bool(self._count([name], [f"count_if({{0}} = {literal(value)})"])[name][0])

    def _fetch(self, statement: Callable[[], str]) -> list[Any]:
        """Return the rows of the SQL that `statement` returns. After an error, it may be run again in one thread."""
        self.check_unchanged()
        doing = f"reading {self.name}"
        with self._explain_errors():
            try:
                rows = fetch(self._connection, statement(), doing)
            except self._errors:
                if not self._switch_to_one_thread():
                    raise
                rows = fetch(self._connection, statement(), doing)
        self._is_verified = True
        return rows

    def _set_types(self, types: Mapping[str, TextType]) -> None:
        """Set the types of columns, and describe values of other types in `stray`."""
        self._types |= types
        names_by_sql: dict[str, list[str]] = {}
        for name, type_ in types.items():
            if type_.kind not in (RAW.kind, TEXT.kind) and not type_.is_sure:
                names_by_sql.setdefault(type_.sql, []).append(name)
        for sql, names in names_by_sql.items():
            counted = self._count(names, [N_VALUES, f"count({sql})"])
            with_stray = [name for name, (n_values, n_typed) in counted.items() if n_values > n_typed]
            most_frequent = f"list({{0}} ORDER BY n DESC, {{0}})[:{_MOST_EXAMPLES}]"
            is_stray = f"{NOT_BLANK} AND ({sql}) IS NULL"
            for name, (examples,) in self._count(with_stray, [most_frequent], distinct=True, where=is_stray).items():
                n_values, n_typed = counted[name]
                self.stray[name] = StrayText(n_values - n_typed, n_values, examples, types[name].kind)

    def _raise_stray(self, name: str, stray: StrayText) -> NoReturn:
        """Raise ValueError for the first value of a column that is not of the type of the column."""
        engine_name = self._engine_names[name]
        typed, text_value = (sql.replace("{0}", engine_name) for sql in (self._types[name].sql, self._unmarked))
        is_stray = f"({typed}) IS NULL AND {NOT_BLANK.replace('{0}', text_value)}"
        ((row, value),) = self._first_row(is_stray, text_value)
        what = f"column {name!r} has the value {value!r}, which is not a {stray.kind}"
        advice = reading_advice(value, stray.kind, self._types[name].format.get("unit"))
        raise ValueError(f"{self.location(row)}: {what}; {stray}: {advice or 'leave values that are not known empty'}")

    def refuse_repeated_header(self) -> None:
        """Raise ValueError if a row repeats the header, as in files that were appended to each other."""
        named = [f"{self._engine_names[name]} = {literal(name)}" for name in self.columns if name]
        for row, _ in self._first_row(" AND ".join(named), raw=True):
            raise ValueError(f"{self.location(row)} repeats the header: remove that line")

    def _first_row(self, condition: str, value: str = "NULL", *, raw: bool = False) -> list[Any]:
        """Return [(index, value)] of the first row that fulfils `condition`, or []; this and `value` are SQL."""
        columns = f"row_number() OVER () - 1 AS row, {value} AS value, {condition} AS is_wanted"
        return self._fetch(
            lambda: f"SELECT row, value FROM (SELECT {columns} FROM {self._table({}, raw=raw)}) WHERE is_wanted LIMIT 1"
        )

    def fingerprint(self) -> dict[str, Any]:
        """Return paths, sizes and modification times of the files, the column names, and the options."""
        return {"files": self.stamps(), "columns": self.columns, **self._options._asdict()}


def _group_columns(names: Sequence[str], sqls: Sequence[str]) -> dict[str, list[int]]:
    """Return SQL expressions for columns, each with the indices of its columns.

    Columns with the same function calls have one expression, for a list of them, so that the engine compiles regular
    expressions only once. For thousands of columns, this saves seconds and gigabytes.
    """
    grouped, by_sql = dict[str, list[int]](), dict[str, list[int]]()
    for index, (name, sql) in enumerate(zip(names, sqls)):
        if "(" in sql:
            by_sql.setdefault(sql, []).append(index)
        else:
            grouped[f"{sql.replace('{0}', name)} AS column{index}"] = [index]
    for sql, indices in by_sql.items():
        listed = ", ".join(names[index] for index in indices)
        grouped[f"list_transform([{listed}], lambda value: {sql.replace('{0}', 'value')})"] = indices
    return grouped


def _ungroup_columns(columns: Sequence[Any], grouped: Collection[list[int]]) -> list[Any]:
    """Return single columns in their original order, from the results of the expressions of `_group_columns`."""
    by_index = {
        index: pc.list_element(column, position) if pa.types.is_list(column.type) else column
        for column, indices in zip(columns, grouped)
        for position, index in enumerate(indices)
    }
    return [by_index[index] for index in sorted(by_index)]


def _format_note(inferred: TextType, wanted: TextType) -> str | None:
    """Return a note if a column has another unit, decimal mark or date format than in the fit, else "".

    The result is None if the inferred type does not have the kind that a model needs, or has another unit. Booleans are
    the numbers 0 and 1 to models that were fitted to booleans in memory, whose numbers have no format.
    """
    unit, known = inferred.format.get("unit"), wanted.format.get("unit")
    if inferred.kind == FLAG.kind and wanted.kind == NUMBER.kind and not wanted.format:
        return "true and false are read as 1 and 0"
    if inferred.kind != wanted.kind or (known is not None and unit not in (None, known)):
        return None
    if unit == known:
        is_other = inferred.note and wanted.format and inferred.format != wanted.format
        return f"{inferred.note}, unlike in fit" if is_other else ""
    return f"{inferred.note}, but had no unit in fit" if unit else f"numbers have no unit, but had {known!r} in fit"
