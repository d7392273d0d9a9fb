"""The database engine, DuckDB: connections, SQL literals, and the rows that fulfil a condition of the user."""

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucforest._memory import machine_memory
from aucforest._optional import import_optional
from aucforest._progress import is_watched, progress_bar

# The settings of all connections. SQL cannot download extensions or use variables of Python.
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    # A long list after IN would become a join, which loses the order of the rows.
    "disabled_optimizers": "in_clause",
    # Freed memory is returned to the system.
    "allocator_flush_threshold": "1MB",
}
# With these settings, statements can read only the files that earlier settings allow.
_LOCKED_SETTINGS = {"enable_external_access": "false", "lock_configuration": "true"}
# With these settings, an expression of the user can read only the table of rows, and cannot write files.
_EXPRESSION_SETTINGS = {"temp_directory": "", **_LOCKED_SETTINGS}
# Parts of expressions that are refused: other rows or tables, and columns without a name.
_REFUSED = {"SUBQUERY": "a subquery", "STAR": "all columns", "POSITIONAL_REFERENCE": "the number of a column"}
# Functions that are refused because they reveal settings of the engine, or return values of any size, which the memory
# limit does not include. Functions with side effects or random results are refused, too.
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
        literal = text(value) if isinstance(value, str) else f"[{texts(value)}]"
        connection.execute(f"SET {name} = {literal}")
    return connection


def connect_to(paths: Sequence[str], temporary: str, n_columns: int) -> Any:
    """Return a connection that can read only the given files, and writes data beyond its memory to a folder."""
    return connect(n_columns, temp_directory=temporary, allowed_paths=paths, **_LOCKED_SETTINGS)


def text(value: str) -> str:
    """Return a string as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Sequence[str]) -> str:
    """Return strings as SQL literals, separated by commas."""
    return ", ".join(map(text, values))


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


def _check_parts(connection: Any, expression: str) -> None:
    """Raise ValueError if the expression of a user is none, or has a part or a function that is refused."""
    impure = connection.execute("SELECT function_name FROM duckdb_functions() WHERE has_side_effects").fetchall()
    functions = "|".join(_REFUSED_FUNCTIONS.union(name for (name,) in impure))
    # In the JSON of the parser, a backslash is before each quote in the text and the names of the user.
    ((parsed,),) = connection.execute("SELECT json_serialize_sql(?)", [f"SELECT {expression}"]).fetchall()
    if parsed.startswith('{"error":true'):
        reason = json.loads(parsed)["error_message"].splitlines()[0][:_MOST_SHOWN]
        raise ValueError(f"where is no SQL expression: {_shown(expression)}: {reason}")
    part = re.search(f'"class":"({"|".join(_REFUSED)})"|"function_name":"({functions})"', parsed, re.IGNORECASE)
    if part is not None:
        refused = _REFUSED[part[1]] if part[1] else f"{part[2]}()"
        raise ValueError(f"where must compare the values of one row, but has {refused}: {_shown(expression)}")


def _shown(expression: str) -> str:
    """Return an expression in quotes for a message, without its end if it is long."""
    return repr(expression if len(expression) <= _MOST_SHOWN else f"{expression[:_MOST_SHOWN]}...")


def rows_where(batches: Iterator[Any], schema: Any, expression: str) -> NDArray[np.int64]:
    """Return the sorted indices of the rows of record batches for which an SQL expression of their columns is true."""
    duckdb = import_optional("duckdb", purpose="--where", extra="arrow")
    number = name_of(max(schema.names, key=len) + "\n")  # longer than all column names, so it is not one of them
    with connect(**_EXPRESSION_SETTINGS) as connection:
        try:
            _check_parts(connection, expression)
            rows = connection.from_arrow(pa.RecordBatchReader.from_batches(schema, batches))
            rows = rows.project(f"*, row_number() OVER () - 1 AS {number}").filter(expression).project(number)
            (indices,) = rows.fetchnumpy().values()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0][:_MOST_SHOWN]
            raise ValueError(f"where cannot be evaluated: {_shown(expression)}: {reason}") from error
    return np.sort(np.asarray(indices, dtype=np.int64))
