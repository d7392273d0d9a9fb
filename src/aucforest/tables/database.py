"""The database engine, DuckDB: connections, SQL literals, and the rows that fulfil a condition of the user."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucforest._memory import machine_memory
from aucforest._optional import import_optional
from aucforest._progress import is_watched, progress_bar
from aucforest.tables.kinds import nan_to_null, plain_type

# The settings of all connections. With the first three, SQL can neither download extensions nor use Python variables.
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # A long list after IN would become a join, which loses the order of the rows.
    "disabled_optimizers": "in_clause",
    # Freed memory is returned to the system.
    "allocator_flush_threshold": "1MB",
}
# With these, statements can read only files in `allowed_paths`, which is set before.
_LOCKED_SETTINGS = {"enable_external_access": "false", "lock_configuration": "true"}
# With these settings, an expression of the user can read only the table of rows, and cannot write files.
_EXPRESSION_SETTINGS = {"temp_directory": "", **_LOCKED_SETTINGS}
_ROWS = "rows"  # the name of that table
# The types in place of float16 and decimal256, which the engine does not have, by their bits.
_SUPPORTED_FLOATS = {16: pa.float32(), 256: pa.float64()}
# What expressions must not contain, by its class in parsed SQL, and how messages name it.
_REFUSED = {
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "STAR": "all columns",
    "POSITIONAL_REFERENCE": "the number of a column",
}
# Functions that expressions must not call: they reveal settings, or return values of any size, which the memory limit
# does not include. Functions with side effects or random results are refused, too.
_REFUSED_FUNCTIONS = {
    "current_setting", "range", "generate_series", "repeat", "list_resize", "array_resize", "lpad", "rpad",
}  # fmt: skip
_MOST_SHOWN = 200  # the maximum length of an expression in a message
# The memory limit of the engine, and its increase for each column, for which the engine allocates blocks of 2,048 rows.
_MEMORY_LIMIT, _MEMORY_PER_COLUMN = 2**30, 2**18


def connect(n_columns: int = 0, /, **settings: str | Sequence[str]) -> Any:
    """Return a connection to a new database in memory, for tables of `n_columns` columns; it prints nothing."""
    duckdb = import_optional("duckdb", purpose="reading text, and --where", extra="arrow")
    memory = min(_MEMORY_LIMIT + n_columns * _MEMORY_PER_COLUMN, machine_memory() // 4)
    connection = duckdb.connect(config={"memory_limit": f"{memory}B", **_SETTINGS})
    # `fetch` shows the progress; the engine would print it on standard output in notebooks and interactive sessions.
    progress = {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}
    for name, value in {**progress, **settings}.items():
        value = literal(value) if isinstance(value, str) else f"[{literals(value)}]"
        connection.execute(f"SET {name} = {value}")
    return connection


def connect_to(paths: Sequence[str], temporary: str, n_columns: int) -> Any:
    """Return a connection that can read only the given files, and writes data beyond its memory to a folder."""
    return connect(n_columns, temp_directory=temporary, allowed_paths=paths, **_LOCKED_SETTINGS)


def literal(value: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def literals(values: Sequence[str]) -> str:
    """Return strings as SQL literals, separated by commas."""
    return ", ".join(map(literal, values))


def name_of(column: str) -> str:
    """Return the name of a column as an SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


def fetch(connection: Any, sql: str, doing: str) -> list[Any]:
    """Run a statement in a thread, with a progress bar, and return the rows of its result; it can be interrupted."""
    bar = progress_bar(desc=doing, total=100, unit="%", leave=False, delay=1.0, verbose=is_watched())
    with ThreadPoolExecutor(1) as pool:
        result: Future[list[Any]] = pool.submit(lambda: connection.execute(sql).fetchall())
        try:
            with bar:
                while not wait([result], 0.1).done:
                    bar.update(max(0.0, connection.query_progress() - bar.n))
        except BaseException:
            while not result.done():  # repeated, because an interrupt is lost before the statement begins
                connection.interrupt()
                wait([result], 0.1)
            raise
        return result.result()


def columns_of(expression: str) -> list[str]:
    """Return the column names in the SQL expression of a user; ValueError if it is invalid or not allowed."""
    shown = _shown(expression)
    with connect(**_EXPRESSION_SETTINGS) as connection:
        condition, rest = _parsed(connection, expression)
        is_empty = condition is not None and condition.get("function_name") == "row" and not condition.get("children")
        # An expression must not close the parenthesis around it and add other parts to the statement.
        if is_empty or rest != _parsed(connection, "true")[1]:
            raise ValueError(f"where must be one SQL expression, such as \"age > 18 AND channel = 'web'\": {shown}")
        nodes = list(_nodes(condition))
        functions = {node["function_name"].lower() for node in nodes if node.get("class") == "FUNCTION"}
        impure = connection.execute("SELECT function_name FROM duckdb_functions() WHERE has_side_effects").fetchall()
    refused = [_REFUSED[node["class"]] for node in nodes if node.get("class") in _REFUSED]
    refused += [f"{name}()" for name in sorted(functions & _REFUSED_FUNCTIONS.union(name for (name,) in impure))]
    if refused:
        raise ValueError(f"where must compare the values of one row, so it must not have {refused[0]}: {shown}")
    return list(dict.fromkeys(node["column_names"][-1] for node in nodes if node.get("class") == "COLUMN_REF"))


def _condition(expression: str, rows: str = _ROWS) -> str:
    """Return SQL that selects rows; the expression has lines of its own because it may end in a comment."""
    return f"FROM {rows} WHERE (\n{expression}\n)"


def _shown(expression: str) -> str:
    return repr(expression if len(expression) <= _MOST_SHOWN else f"{expression[:_MOST_SHOWN]}...")


def _parsed(connection: Any, expression: str) -> tuple[Any, Any]:
    """Return the parsed expression, and the rest of the parsed statement that selects rows by it."""
    try:
        sql = f"SELECT 1 {_condition(expression)}".encode().decode()
        parsed = json.loads(connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()[0])
        reason = parsed["error"] and parsed["error_message"].splitlines()[0][:_MOST_SHOWN]
        if reason and reason.startswith("syntax error"):
            reason += "; names of columns that have spaces or are words of SQL must be in double quotes"
    except UnicodeEncodeError:
        reason = "it is not valid Unicode"
    except RecursionError:
        reason = "it is nested too deeply"
    if reason:
        raise ValueError(f"where must be an SQL expression: {_shown(expression)}: {reason}") from None
    return parsed["statements"][0]["node"].pop("where_clause", None), parsed


def _nodes(parsed: Any) -> Iterator[dict[str, Any]]:
    """Yield all dictionaries of a parsed expression, at any depth."""
    if isinstance(parsed, dict):
        yield parsed
        parsed = list(parsed.values())
    for child in parsed if isinstance(parsed, list) else ():
        yield from _nodes(child)


def rows_where(batches: Iterator[Any], schema: Any, expression: str) -> NDArray[np.int64]:
    """Return the sorted indices of the rows of record batches for which an SQL expression of their columns is true.

    NaN is missing. Dates with a time zone are local times in the zone of all of them, or in UTC if their zones differ
    or the engine does not know the zone.
    """
    duckdb = import_optional("duckdb", purpose="--where", extra="arrow")
    number = name_of(max(schema.names, key=len) + "\n")  # longer than all column names, so it is not one of them
    zones = {type_.tz for type_ in schema.types if pa.types.is_timestamp(type_) and type_.tz is not None}
    try:
        connected = connect(TimeZone=zones.pop() if len(zones) == 1 else "UTC", **_EXPRESSION_SETTINGS)
    except duckdb.Error:  # the engine does not know the zone
        connected = connect(TimeZone="UTC", **_EXPRESSION_SETTINGS)
    with connected as connection:
        schema = _supported_schema(connection, schema)
        connection.register("batches", pa.RecordBatchReader.from_batches(schema, map(_supported, batches)))
        rows = f"(SELECT *, row_number() OVER () - 1 AS {number} FROM batches) AS {_ROWS}"
        try:
            sql = f"SELECT {number} {_condition(expression, rows)}"
            (indices,) = connection.execute(sql).fetchnumpy().values()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0][:_MOST_SHOWN]
            raise ValueError(f"where cannot be evaluated: {_shown(expression)}: {reason}") from error
    return np.sort(np.asarray(indices, dtype=np.int64))


def _supported_schema(connection: Any, schema: Any) -> Any:
    """Return the schema of `_supported` batches; ValueError for a column whose type the engine does not have."""
    duckdb = import_optional("duckdb", purpose="--where", extra="arrow")
    fields: list[Any] = []
    for field in schema:
        try:
            rows = _supported(pa.schema([field]).empty_table())
            connection.from_arrow(rows)
        except (duckdb.Error, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"where cannot use the column {field.name!r}, which has type {field.type}") from error
        fields += rows.schema
    return pa.schema(fields)


def _supported(rows: Any) -> Any:
    """Return a batch or a table with null in place of NaN, and floats in place of types of numbers without support."""
    columns = []
    for column in rows.columns:
        type_ = plain_type(column.type)
        if pa.types.is_floating(type_) or pa.types.is_decimal256(type_):
            column = nan_to_null(column.cast(_SUPPORTED_FLOATS.get(type_.bit_width, type_)))
        columns.append(column)
    return type(rows).from_arrays(columns, names=rows.schema.names)
