"""Files whose values are text: statements with which the database engine counts values and reads rows."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from aucforest._optional import import_optional
from aucforest.tables.copies import Readable
from aucforest.tables.database import connect_to, fetch, text
from aucforest.tables.files import Files, rows_of_batch, split_batches
from aucforest.tables.kinds import MISSING
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tables.spellings import MOST_STRAY, is_few
from aucforest.tables.text_types import KNOWN, N_VALUES, N_ZEROS, NESTED, NUMBER, RAW, TEXT, TextType, infer_types
from aucforest.tables.texts import StrayText

# The maximum number of stray values of a column, such as text among numbers, that are kept as examples for messages.
_MOST_EXAMPLES = 20
# The maximum number of columns of a statement that counts values, which takes memory for each column.
_MOST_COUNTED = 2**12
# After a stream of more rows, the connection is closed.
_MANY_ROWS = 2**16

NOT_UTF8 = "not encoded in UTF-8: pass its encoding, such as --encoding cp1252 (in Python, encoding='cp1252')"


class TextFiles(Files):
    """Files with the same columns of text as one table, in types that nearly all values have.

    The columns `as_text` (None for all) stay strings. If the option `stray_text` is "number", other text in a column of
    nearly only numbers or dates becomes missing, and `stray` describes that text. `remarks` has other notes on columns,
    `rounded` has the columns of numbers in which float64 rounds an integer, and `text_formats` how values are written.
    """

    is_text = True
    missing = MISSING
    # Whether the file stores numbers as numbers, not as text, as JSON and spreadsheets do.
    _has_numbers = False
    # Whether the option `stray_text` can keep a column as text; False if a model requires the types.
    can_be_text = True
    # SQL that is NULL for missing-value markers; they are null in `_table`, unless `_known` says otherwise.
    _known = "{0}"
    # Whether the engine can read columns as numbers directly, instead of converting strings.
    _reads_types = True
    # Whether all rows have been read once. Errors in later rows may mean that the rows before them are wrong, too.
    _is_verified = False

    def __init__(
        self, readable: Sequence[Readable], name: str, as_text: Sequence[str] | None, options: ReadOptions
    ) -> None:
        super().__init__([file.stamped for file in readable], name)
        self._readable = readable
        self._options = options
        paths = [str(file.path.absolute()) for file in readable]
        # The engine takes paths as patterns, so their special characters are escaped.
        patterns = [re.sub(r"([*?\[])", r"[\1]", path) for path in paths]
        self._patterns = patterns
        self._errors = import_optional("duckdb", purpose=f"reading {self.name}", extra="arrow").Error, OSError
        self._allowed = [*paths, *patterns], str(readable[0].temporary_folder())
        self.columns, self._types = [], dict[str, TextType]()
        self.stray: dict[str, StrayText] = {}
        self.remarks: dict[str, str] = {}
        self.rounded: set[str] = set()
        self._numbers: Sequence[str] = ()
        self._n_rows = 0
        self._as_text = as_text
        self._read_header()
        self._close()  # the next connection has memory for all columns

    @cached_property
    def _connection(self) -> Any:
        """The connection to the engine; it is closed after many rows, because it keeps memory for each thread."""
        return connect_to(*self._allowed, len(self.columns))

    def _close(self) -> None:
        """Close the connection to the engine; the next statement opens a new one."""
        if "_connection" in self.__dict__:
            self._connection.close()
            del self._connection

    def _read_header(self) -> None:
        """Read the names of the columns; ValueError if the files differ or are no tables."""
        raise NotImplementedError

    def _table(self, engine: Mapping[str, str], *, raw: bool = False) -> str:
        """Return SQL for the table with the columns c0, c1 and so on; `engine` has the types of non-text columns.

        Missing-value markers become null, unless `raw` is True or `_known` replaces them.
        """
        raise NotImplementedError

    def _reads_in_one_thread(self) -> bool:
        """Read the files in one thread from now on, if that may help, and return whether to run a statement again."""
        return False

    def _explained(self, sentence: str) -> str:
        """Return an error message on the files from an error message of the engine."""
        raise NotImplementedError

    def _index_in(self, sentence: str) -> int:
        """Return the index of the file that an error message of the engine names, 0 if it names none."""
        named = (index for index, file in enumerate(self._readable) if str(file.path.absolute()) in sentence)
        return next(named, 0)

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Raise errors of the engine as ValueError; while a stream is read, Arrow raises them as OSError."""
        try:
            yield
        except self._errors as error:
            if "Out of Memory Error" in str(error):
                what = f"reading {self.name} takes more memory than the database engine may have"
                raise ValueError(f"{what}: write it to a Parquet file") from error
            raise ValueError(self._explained(str(error).removeprefix("Invalid Input Error: "))) from error

    def keep_as_text(self, columns: Sequence[str] | None, typed: Collection[str] = ()) -> None:
        """Let these columns stay strings (None for all), instead of those given before.

        Types are inferred anew, except for the columns `typed` and those of `read_numbers`.
        """
        self._as_text, typed = columns, {*typed, *self._numbers}
        self._types = {name: type_ for name, type_ in self._types.items() if name in typed or type_ == NESTED}
        self.stray = {name: stray for name, stray in self.stray.items() if name in typed}
        self.remarks = {name: remark for name, remark in self.remarks.items() if name in typed}
        self.rounded &= typed

    @cached_property
    def _engine_names(self) -> dict[str, str]:
        """The names of the columns in the table of the engine."""
        return {name: f"c{index}" for index, name in enumerate(self.columns)}

    def as_written(self, names: Sequence[str]) -> list[str]:
        """Add a column with the unconverted text of each given column, and return the names of the new columns."""
        added = [f"{name} as it is written\n" for name in names]
        for name, new in zip(names, added):
            self._engine_names[new], self._types[new] = self._engine_names[name], RAW
        return added

    def batches(self, columns: Sequence[str], first_row: int = 0, rows: int | None = None) -> Iterator[Any]:
        """Yield record batches of the given columns, from `first_row` on, of at most `rows` rows."""
        schema = self.schema(columns)
        return split_batches(self._read(columns, schema), first_row, rows)

    def _read(self, columns: Sequence[str], schema: Any) -> Iterator[Any]:
        """Yield record batches of the given columns with a schema."""
        names, types = [self._engine_names[name] for name in columns], [self._types[name] for name in columns]
        raw, sqls, engine = RAW in types, list[str](), dict[str, str]()
        for name, type_ in zip(names, types):
            if self._reads_types and not raw and type_.engine and type_.is_sure:
                engine[name] = type_.engine
                sqls.append("{0}")
            else:
                known = "{0}" if type_ in (RAW, NESTED) else KNOWN if raw else self._known
                sqls.append(type_.sql.replace("{0}", known))
        grouped = _group_columns(names, sqls)
        self.check_unchanged()
        if not self._is_verified:
            self._fetch(lambda: f"SELECT count(c0) FROM {self._table({})}")
        with self._explaining(), self._connection.cursor() as cursor:
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
        """Return the schema of the given columns; all rows are read to infer types that are not yet known."""
        for name in columns if self._as_text is None else self._as_text:
            self._types.setdefault(name, RAW if self._as_text is None else TEXT)
        if unknown := [name for name in dict.fromkeys(columns) if name not in self._types]:
            types, rounded = infer_types(unknown, self._count, self._options, has_numbers=self._has_numbers)
            self._set_types(types)
            self.remarks |= {name: type_.note for name, type_ in types.items() if type_.note}
            self.rounded |= rounded
        return pa.schema([(name, self._types[name].arrow) for name in columns])

    def read_numbers(self, columns: Sequence[str]) -> None:
        """Read columns as numbers, even if they were given as text."""
        self._numbers = columns
        self._as_text = None if self._as_text is None else [name for name in self._as_text if name not in columns]

    def read_as(self, types: Mapping[str, TextType]) -> None:
        """Set the types of columns that a model requires; ValueError if too many values of a column have another type.

        The formats of numbers and dates are inferred; if several fit and no option or other column decides, the formats
        in `types` do. Zeros in place of
        dates become missing values, however many there are.
        """
        self.can_be_text = False
        types = {**dict.fromkeys(self._numbers, NUMBER), **types}
        unknown = [name for name, type_ in types.items() if type_.kind in ("number", "date")]
        options, known = self._options, _shared_formats(types)
        inferred, self.rounded = infer_types(unknown, self._count, options, known=known, has_numbers=self._has_numbers)
        for name, type_ in inferred.items():
            if type_.kind == "zoned date" and types[name].kind == "date":
                raise ValueError(f"column {name!r} has times with an offset from UTC, but had no time zone in fit")
        fitting = {
            name: type_._replace(arrow=types[name].arrow if type_.kind == "date" else type_.arrow)
            for name, type_ in inferred.items()
            if _fits(type_, types[name])
        }
        self.remarks |= {name: note for name in fitting if (note := _format_note(inferred[name], types[name]))}
        self._set_types({**types, **fitting})
        zeros = self._count([name for name, stray in self.stray.items() if stray.kind == "date"], [N_ZEROS])
        for name, stray in self.stray.items():
            may_be = options.stray_text == "number" and stray.kind != "boolean"
            (n_zeros,) = zeros.get(name, (0,))
            if not (may_be and is_few(stray.n_stray - n_zeros, stray.n_values, MOST_STRAY)):
                self._raise_stray(name, stray)

    @property
    def text_formats(self) -> dict[str, dict[str, str]]:
        """The formats of the columns of numbers and dates that are not written as in Python."""
        return {name: dict(type_.format) for name, type_ in self._types.items() if type_.format}

    def _count(
        self, names: Sequence[str], expressions: Sequence[str], *, distinct: bool = False, where: str = "true"
    ) -> dict[str, Sequence[Any]]:
        """Return SQL aggregates by column, over all values or over the distinct ones with their counts n.

        For thousands of columns, grouping by column is much faster than separate expressions for each column.
        """
        if len(names) > _MOST_COUNTED:
            parts = [names[start : start + _MOST_COUNTED] for start in range(0, len(names), _MOST_COUNTED)]
            counted = [self._count(part, expressions, distinct=distinct, where=where) for part in parts]
            return {name: row for part in counted for name, row in part.items()}
        if not names:
            return {}
        columns = {self._engine_names[name]: name for name in names}
        counts, condition = (sql.replace("{0}", "value") for sql in (", ".join(expressions), where))
        listed = ", ".join(columns)

        def statement() -> str:
            table = f"(SELECT {listed} FROM {self._table({})}) UNPIVOT INCLUDE NULLS (value FOR name IN ({listed}))"
            # For thousands of columns, markers are found much faster in one column of all values.
            table = f"(SELECT name, {self._known.replace('{0}', 'value')} AS value FROM {table})"
            if distinct:
                table = f"(SELECT name, value, count(*) AS n FROM {table} WHERE {condition} GROUP BY name, value)"
            return f"SELECT name, count(*), {counts} FROM {table} GROUP BY name"

        found = self._fetch(statement)
        rows = {columns[column]: row for column, *row in found}
        nothing = [0] * (1 + len(expressions))  # for a table without rows
        if not distinct:
            self._n_rows = rows.get(names[0], nothing)[0]
        return {name: rows.get(name, nothing)[1:] for name in names}

    def has_value(self, name: str, value: str) -> bool:
        """Return whether a column has a value."""
        return bool(self._count([name], [f"count_if({{0}} = {text(value)})"])[name][0])

    def _fetch(self, statement: Callable[[], str]) -> list[Any]:
        """Return the rows of the result of a statement."""
        self.check_unchanged()
        doing = f"reading {self.name}"
        with self._explaining():
            try:
                rows = fetch(self._connection, statement(), doing)
            except self._errors:
                if not self._reads_in_one_thread():
                    raise
                rows = fetch(self._connection, statement(), doing)
        self._is_verified = True
        return rows

    def _set_types(self, types: Mapping[str, TextType]) -> None:
        """Set the types of columns, and count the values that do not have these types, in `stray`."""
        self._types |= types
        names_by_sql: dict[str, list[str]] = {}
        for name, type_ in types.items():
            if type_.kind not in (RAW.kind, TEXT.kind) and not type_.is_sure:
                names_by_sql.setdefault(type_.sql, []).append(name)
        for sql, names in names_by_sql.items():
            counted = self._count(names, [N_VALUES, f"count({sql})"])
            have_stray = [name for name, (n_values, n_read) in counted.items() if n_values > n_read]
            frequent, is_stray = f"list({{0}} ORDER BY n DESC, {{0}})[:{_MOST_EXAMPLES}]", f"({sql}) IS NULL"
            examples = self._count(have_stray, [frequent], distinct=True, where=f"{{0}} IS NOT NULL AND {is_stray}")
            for name, (found,) in examples.items():
                n_values, n_read = counted[name]
                self.stray[name] = StrayText(n_values - n_read, n_values, found, types[name].kind)

    def _raise_stray(self, name: str, stray: StrayText) -> NoReturn:
        """Raise ValueError for the first value of a column that does not have its type."""
        engine_name = self._engine_names[name]
        is_stray, value = (sql.replace("{0}", engine_name) for sql in (self._types[name].sql, self._known))

        def statement() -> str:
            rows = (
                f"(SELECT row_number() OVER () - 1 AS row, {value} AS value, ({is_stray}) IS NULL AS is_stray"
                f" FROM {self._table({})})"
            )
            return f"SELECT row, value FROM {rows} WHERE is_stray AND value IS NOT NULL LIMIT 1"

        ((row, found),) = self._fetch(statement)
        what = f"column {name!r} has the value {found!r}, which is not a {stray.kind}"
        raise ValueError(f"{self.location(row)}: {what}; {stray}{stray.advice}")

    def done(self, n_rows: int) -> float | None:
        """Return `n_rows` as a proportion of all rows, or None if the rows have not been counted."""
        return n_rows / self._n_rows if self._n_rows else None

    def fingerprint(self) -> dict[str, Any]:
        """Return paths, sizes and modification times of the files, the column names, and the options."""
        return {"files": self.stamps(), "columns": self.columns, **self._options._asdict()}


def _group_columns(names: Sequence[str], sqls: Sequence[str]) -> dict[str, list[int]]:
    """Return SQL for the value of a column, or for the list of the values of columns, and the indices of the columns.

    The engine compiles the patterns in SQL once for a list. For thousands of columns, this saves seconds and gigabytes.
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
    """Return the columns in the order of their indices, from columns and lists of several; see `_group_columns`."""
    by_index = {
        index: pc.list_element(column, number) if pa.types.is_list(column.type) else column
        for column, indices in zip(columns, grouped)
        for number, index in enumerate(indices)
    }
    return [by_index[index] for index in sorted(by_index)]


def _shared_formats(types: Mapping[str, TextType]) -> ReadOptions:
    """Return the decimal mark and the date format that all types share."""
    formats = [type_.format for type_ in types.values()]
    marks, days = ({written[key] for written in formats if key in written} for key in ("decimal", "date"))
    mark, day = (values.pop() if len(values) == 1 else None for values in (marks, days))
    return DEFAULT_OPTIONS._replace(decimal=mark, date_format=day)


def _format_note(inferred: TextType, wanted: TextType) -> str:
    """Return a note if values have another unit, decimal mark or date format than text had in the fit; else ""."""
    unit, known = inferred.format.get("unit"), wanted.format.get("unit")
    if inferred.kind != "number" or unit == known:
        keys = wanted.format.keys() - {"unit"}
        is_other = inferred.note and any(inferred.format.get(key) != wanted.format[key] for key in keys)
        return f"{inferred.note}, unlike in fit" if is_other else ""
    return f"{inferred.note}, but had no unit in fit" if unit else f"numbers have no unit, but had {known!r} in fit"


def _fits(inferred: TextType, wanted: TextType) -> bool:
    """Return whether an inferred type has the kind that a model needs, and no unit that differs from the model's."""
    known, unit = wanted.format.get("unit"), inferred.format.get("unit")
    return inferred.kind == wanted.kind and (known is None or unit in (None, known))
