"""Conversion of columns to the kinds of features: NUMBER, TEXT (strings), FLAG (booleans), dates and durations."""

import shlex
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aucforest._caller import warn
from aucforest.columns.spellings import reading_advice
from aucforest.columns.values import DATE, DURATION, FLAG, NUMBER, TEXT, ZONED, kind_of_value

# The Arrow type of each kind, to which columns of strings and columns of nulls are converted.
_ARROW_TYPES = {
    NUMBER: pa.float64(),
    TEXT: pa.string(),
    FLAG: pa.bool_(),
    DATE: pa.timestamp("us"),
    ZONED: pa.timestamp("us", "UTC"),
    DURATION: pa.duration("us"),
}
# The missing-value markers of pandas.read_csv, those of database dumps, and those that pandas writes for dates.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null", r"\N", "NaT",
)  # fmt: skip
# The spellings of booleans, which are those that pyarrow.csv reads by default.
WORDS = {True: ("1", "true", "True", "TRUE"), False: ("0", "false", "False", "FALSE")}


class NamedTable:
    """Base class of tables whose columns are found by name."""

    name: str
    columns: list[str]
    # The number of rows, 0 if it is not known.
    n_rows = 0
    # The missing-value markers of string columns.
    missing: Sequence[str] = ()
    # Whether the values are text, as in CSV, so that the types of columns are inferred.
    is_text = False
    # The end of an error message on a missing column if the header is suspicious, else "".
    hint = ""
    # How columns of text are read; see `TextFiles`.
    can_be_text = False
    stray: Mapping[str, Any] = {}
    remarks: Mapping[str, str] = {}
    rounded: Collection[str] = ()

    def location(self, row: int) -> str:
        """Return the position of the row with the index `row` for messages: the table, and the row number from 1."""
        return f"{self.name}, row {row + 1}"


def plain_type(type_: Any) -> Any:
    """Return the type of the values of a dictionary-encoded column, and any other type unchanged."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def decode(column: Any) -> Any:
    """Return a dictionary-encoded column as a plain one, and any other column unchanged."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def nan_to_null(column: Any) -> Any:
    """Return a column of floats with null in place of NaN."""
    return pc.if_else(pc.is_nan(column), None, column)


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind of categories or classes, TEXT if there are none."""
    if len(values) == 0:
        return TEXT
    return FLAG if all(isinstance(value, bool) for value in values) else kind_of_value(values[0])


def as_kind(column: Any, kind: str, name: str, table: NamedTable, first_row: int = 0) -> Any:
    """Return rows of a column converted to a kind; ValueError if a value cannot be converted.

    Dates and durations keep their type. `first_row` is the index of the first of the rows, for messages.
    """
    column = decode(column)
    type_ = column.type
    if pa.types.is_null(type_):
        return column.cast(_ARROW_TYPES[kind])
    if holds_text(type_) and kind != DURATION:
        return as_text(column, table.missing) if kind == TEXT else _parse(column, kind, name, table, first_row)
    if kind == NUMBER and (is_numeric_type(type_) or pa.types.is_boolean(type_)):
        return column.cast(pa.float64(), safe=False)
    if (kind == FLAG and pa.types.is_boolean(type_)) or (kind in (DATE, ZONED, DURATION) and _is_temporal(type_)):
        return column
    raise ValueError(f"column {name!r} has type {type_}, but the model needs {kind}")


def as_flags(column: Any, name: str, table: NamedTable, first_row: int = 0) -> Any:
    """Return numbers that are 0, 1 or missing as booleans, and a column that is not numeric unchanged."""
    if not is_numeric_type(column.type):
        return column
    numbers = nan_to_null(column.cast(pa.float64(), safe=False))
    row = pc.index(pc.is_in(numbers, pa.array([0.0, 1.0, None])), False).as_py()
    if row >= 0:
        what = f"{numbers[row].as_py():g} in {table.location(first_row + row)} is neither 0 (false) nor 1 (true)"
        raise ValueError(f"column {name!r} has type {column.type}, but the model needs {FLAG}: {what}")
    return pc.equal(numbers, 1.0)


def is_numeric_type(type_: Any) -> bool:
    """Return whether a type is an integer, floating or decimal type."""
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _is_temporal(type_: Any) -> bool:
    return pa.types.is_temporal(type_) and not pa.types.is_interval(type_)


def holds_text(type_: Any) -> bool:
    """Return whether a type is string, large_string or string_view."""
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def as_text(column: Any, missing: Sequence[str] = MISSING) -> Any:
    """Return a column as strings, with null in place of missing-value markers."""
    column = column.cast(pa.string())
    return pc.if_else(pc.is_in(column, pa.array(missing, pa.string())), pa.scalar(None, pa.string()), column)


def _parse(column: Any, kind: str, name: str, table: NamedTable, first_row: int) -> Any:
    """Return strings as numbers, booleans or dates; ValueError with the first value that cannot be converted."""
    column = pc.utf8_trim_whitespace(as_text(column))
    if (converted := _cast(column, kind)) is not None:
        return converted
    # The first value that cannot be converted is found by bisection.
    row = bisect_left(range(len(column)), True, key=lambda row: _cast(column[: row + 1], kind) is None)
    value = column[row].as_py()
    what = f"column {name!r} has the value {value!r}, which is not {kind}"
    advice = reading_advice(value, kind.removeprefix("a "))
    if advice and not table.is_text:
        advice = "convert the column, or write a CSV with such text"
    raise ValueError(f"{table.location(first_row + row)}: {what}{f': {advice}' if advice else ''}")


def _cast(column: Any, kind: str) -> Any:
    """Return strings as numbers, booleans or dates; None if a value cannot be converted."""
    try:
        return column.cast(_ARROW_TYPES[kind])
    except pa.ArrowInvalid:
        return None


def feature_names(source: Any, other_columns: Sequence[str], numbers: Sequence[str] = ()) -> list[str]:
    """Return the names of all columns except `other_columns` and unnamed ones; ValueError if one cannot be a feature.

    The columns `numbers`, some of `other_columns`, are read as numbers. The types of all columns are inferred at once,
    because each inference reads all rows of a text file.
    """
    if source.is_text:
        source.read_numbers(numbers)
    nameless = [name for name in source.columns if name == "" or name.startswith("__index_level_")]
    if set(nameless) - set(other_columns):
        warn("a column without a name, such as a row index, is ignored")
    left_out = {*other_columns, *nameless}
    names = [name for name in source.columns if name not in left_out]
    if not names:
        raise ValueError(f"{source.name} has no feature columns besides {other_columns[0]!r}")
    for field in list(source.schema([*names, *numbers]))[: len(names)]:
        type_ = plain_type(field.type)
        is_plain = is_numeric_type(type_) or holds_text(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)
        if not (is_plain or _is_temporal(field.type)):
            raise ValueError(
                f"column {field.name!r} has type {field.type}: features must be numeric, string, boolean, or dates;"
                f" leave it out with --drop {shlex.quote(field.name)} (in Python, drop=[{field.name!r}])"
            )
    return names


def to_features(batch: Any) -> Any:
    """Return a record batch as a table: strings and booleans as dictionaries, decimals and null columns as float64."""
    columns = []
    for column in batch.columns:
        if pa.types.is_null(column.type) or pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        elif holds_text(column.type) or pa.types.is_boolean(column.type):
            column = column.dictionary_encode()
        columns.append(column)
    return pa.table(columns, names=batch.schema.names)


def check_has_columns(table: NamedTable, *names: str) -> None:
    """Raise ValueError for the first of the names that is not a column of the table."""
    present = set(table.columns)
    for name in names:
        if name not in present:
            raise ValueError(f"{table.name} has no column {name!r}{table.hint or nearest(name, table.columns)}")


def nearest(word: str, words: Any) -> str:
    """Return the end of an error message that suggests similar words, or "" if there are none."""
    near = get_close_matches(word, [str(other) for other in words])
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
