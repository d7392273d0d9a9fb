"""Conversion of columns to the kinds of features: NUMBER, TEXT (strings), FLAG (booleans), dates and durations."""

import shlex
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aucforest.tables.columns import count_unseen, read_column, read_table
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.date_texts import DateTexts, parse_durations
from aucforest.tables.dates import SECONDS, DateColumn
from aucforest.tables.texts import NUMBER_PATTERN, StrayText, read_as_missing, unseen_note

# The value of a kind is its name in error messages.
NUMBER, TEXT, FLAG = "a number", "a string", "a boolean"
DATE, ZONED, DURATION = "a date", "a date with a time zone", "a duration"
_TEMPORAL = (DATE, ZONED, DURATION)
# The types that strings of dates are converted to: the first that fits all.
_DATE_TYPES = {
    DATE: (pa.timestamp("us"), pa.timestamp("ns")),
    ZONED: (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
    DURATION: (pa.duration("us"),),
}
_EXAMPLES = {
    DATE: " such as 2024-12-31 or 2024-12-31 23:59; --date-format (in Python, date_format) gives another format",
    ZONED: " such as 2024-12-31 23:59+01:00",
    DURATION: " such as 12:30:00 or 1 days 12:30:00",
}
# The number of unseen categories that are kept for a sentence.
_MOST_UNSEEN = 100
# The missing-value markers of pandas.read_csv.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
# The booleans that pyarrow.csv reads by default.
WORDS = {True: ("1", "true", "True", "TRUE"), False: ("0", "false", "False", "FALSE")}

Place = Callable[[int], str]


class Columns(Protocol):
    """Interface of a table whose columns are found by name."""

    name: str
    columns: list[str]
    # The missing-value markers of string columns.
    missing: Sequence[str]
    # Whether all values are read as strings, as from CSV.
    is_text: bool
    # The end of an error message on a missing column if the header is suspicious, else "".
    hint: str

    def place(self, row: int) -> str:
        """Return the position of a row, such as its file and line, for error messages; `row` counts from 0."""


def canonical_type(type_: Any) -> Any:
    """Return the type that a column is converted to: dictionary indices to int32, string_view to large_string."""
    if pa.types.is_dictionary(type_):
        return pa.dictionary(pa.int32(), canonical_type(type_.value_type))
    return pa.large_string() if pa.types.is_string_view(type_) else type_


class Canonical:
    """Converter of the arrays of one column to its canonical type; dictionaries get distinct values without nulls.

    Arrow cannot compute with dictionaries of string views or unify dictionaries with nulls, and pandas does not support
    unsigned indices.
    """

    def __init__(self) -> None:
        # Most batches share a dictionary, so the last one is kept with its canonical values. `_indices` maps the values
        # of the dictionary to canonical ones and is None if they are the same.
        self._dictionary: Any = None
        self._values: Any = None
        self._indices: Any = None

    def __call__(self, column: Any) -> Any:
        """Return an array of the column in the canonical type."""
        if not pa.types.is_dictionary(column.type):
            return column.cast(canonical_type(column.type))
        if self._dictionary is None or not column.dictionary.equals(self._dictionary):
            values = Canonical()(column.dictionary)
            self._dictionary = column.dictionary
            self._values = values.filter(pc.invert(pc.is_null(values, nan_is_null=True))).unique()
            self._indices = None if len(self._values) == len(values) else pc.index_in(values, self._values)
        indices = column.indices.cast(pa.int32()) if self._indices is None else self._indices.take(column.indices)
        return pa.DictionaryArray.from_arrays(indices, self._values)


def decode(column: Any) -> Any:
    """Return a dictionary-encoded column as a plain one, and any other column unchanged."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind of categories or classes, TEXT if there are none."""
    if all(isinstance(value, str) for value in values):
        return TEXT
    if isinstance(values[0], timedelta):
        return DURATION
    if isinstance(values[0], datetime):
        return DATE if values[0].tzinfo is None else ZONED
    return FLAG if all(isinstance(value, bool) for value in values) else NUMBER


def as_kind(
    column: Any,
    kind: str,
    name: str,
    place: Place,
    missing: Sequence[str] = MISSING,
    date_format: str | None = None,
) -> Any:
    """Return a column converted to a kind; ValueError if its type or a value cannot be converted.

    `missing` are the missing-value markers of a string column that stays one, and `date_format` is the format of dates
    in strings beside that of ISO 8601. Dates of any type keep it.
    """
    column = decode(column)
    if pa.types.is_null(column.type):
        plain = {NUMBER: pa.float64(), TEXT: pa.string(), FLAG: pa.bool_()}
        return column.cast(plain.get(kind, pa.timestamp("us")))
    if holds_text(column.type):
        return as_text(column, missing) if kind == TEXT else _parse(as_text(column), kind, name, place, date_format)
    type_ = column.type
    if kind == NUMBER and (is_number(type_) or pa.types.is_boolean(type_)):
        return column.cast(pa.float64(), safe=False)
    if (kind == FLAG and pa.types.is_boolean(type_)) or (kind in _TEMPORAL and _is_temporal(type_)):
        return column
    raise ValueError(f"column {name!r} has type {type_}, but the model needs {kind}")


def is_number(type_: Any) -> bool:
    """Return whether a type is an integer, floating or decimal type."""
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _is_temporal(type_: Any) -> bool:
    """Return whether a type is one of dates, times of day or durations."""
    return pa.types.is_temporal(type_) and not pa.types.is_interval(type_)


def holds_text(type_: Any) -> bool:
    """Return whether a type is string, large_string or string_view."""
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def as_text(column: Any, missing: Sequence[str] = MISSING) -> Any:
    """Return a column as strings, with null in place of missing-value markers."""
    column = column.cast(pa.string())
    return pc.if_else(pc.is_in(column, pa.array(missing, pa.string())), pa.scalar(None, pa.string()), column)


def to_numbers(column: Any, stray: StrayText, first_row: int = 0) -> Any:
    """Return a column of strings as numbers, with null for values that are none, which are added to `stray`."""
    n_values, is_number_ = len(column) - column.null_count, pc.match_substring_regex(column, NUMBER_PATTERN)
    stray.n_values += n_values
    if n_stray := n_values - (pc.sum(is_number_).as_py() or 0):
        if stray.first_row is None:
            stray.first_row = first_row + pc.index(is_number_, False).as_py()
        stray.add_stray(pc.unique(column.filter(pc.invert(is_number_))).to_pylist(), n_stray)
        column = pc.if_else(is_number_, column, pa.scalar(None, column.type))
    return pc.utf8_trim_whitespace(column).cast(pa.float64())


def _parse(column: Any, kind: str, name: str, place: Place, date_format: str | None = None) -> Any:
    """Return strings as numbers, booleans or dates; ValueError with the first value that cannot be converted."""
    column = pc.utf8_trim_whitespace(column)
    if (converted := _cast(column, kind, date_format)) is not None:
        return converted
    row = bisect_left(range(len(column)), True, key=lambda row: _cast(column[: row + 1], kind, date_format) is None)
    value = column[row].as_py()
    raise ValueError(
        f"{place(row)}: column {name!r} has the value {value!r}, which is not {kind}{_EXAMPLES.get(kind, '')}"
    )


def _cast(column: Any, kind: str, date_format: str | None = None) -> Any:
    """Return strings as numbers, booleans or dates; None if a value cannot be converted."""
    if kind in _TEMPORAL:
        return _cast_dates(column, _DATE_TYPES[kind], date_format)
    if kind == NUMBER:
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    indices = pc.index_in(column, pa.array([*WORDS[True], *WORDS[False]]))
    return None if indices.null_count > column.null_count else pc.less(indices, len(WORDS[True]))


def _cast_dates(column: Any, types: Sequence[Any], date_format: str | None) -> Any:
    """Return strings as dates of the first of some types that fits all; None if there is none."""
    for type_ in types:
        with suppress(pa.ArrowInvalid):
            return parse_dates(column, type_, date_format)
    return None


def parse_dates(values: Any, type_: Any, date_format: str | None) -> Any:
    """Return strings as dates, in the format of ISO 8601 or another one, or as durations; ArrowInvalid if one is not.

    Dates with a time zone are in ISO 8601.
    """
    if pa.types.is_duration(type_):
        return parse_durations(values)
    if date_format is None or getattr(type_, "tz", None) is not None:
        return values.cast(type_)
    if pa.types.is_date(type_):
        times = parse_dates(values, pa.timestamp("s"), date_format)
        days = times.cast(type_)
        if not days.cast(times.type).equals(times):
            raise pa.ArrowInvalid("a time is not midnight")
        return days
    nothing, is_iso = pa.scalar(None, values.type), pc.match_substring_regex(values, r"^\d{4}-\d{2}-\d{2}")
    others = pc.strptime(pc.if_else(is_iso, nothing, values), format=date_format, unit=type_.unit)
    return pc.coalesce(pc.if_else(is_iso, values, nothing).cast(type_), others)


def feature_names(source: Any, others: Sequence[str]) -> list[str]:
    """Return all columns except `others` and those without a name; ValueError if the type of one is no feature's."""
    nameless = [name for name in source.columns if name == "" or name.startswith("__index_level_")]
    if set(nameless) - set(others):
        warnings.warn("a column without a name, such as a row index, is ignored", stacklevel=3)
    left_out = {*others, *nameless}
    names = [name for name in source.columns if name not in left_out]
    if not names:
        raise ValueError(f"{source.name} has no feature columns besides {others[0]!r}")
    for field in source.schema(names):
        type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if _is_temporal(field.type) or is_number(type_) or holds_text(type_):
            continue
        if not (pa.types.is_boolean(type_) or pa.types.is_null(type_)):
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


class ModelColumns:
    """The feature columns of a fitted model in a table.

    They are found by name. If the model was fitted without feature names, they are all columns except `others`, in the
    order of the table. The columns `others` must exist. With `stray_text` "number", text in a column of numbers is read
    as missing, if it is rare; with "text" it is an error.
    """

    def __init__(
        self, model: Any, table: Columns, others: Sequence[str] = (), csv_format: CsvFormat = DEFAULT_FORMAT
    ) -> None:
        self._table, self.has_names = table, hasattr(model, "feature_names_in_")
        self._format, self._n_rows = csv_format, 0
        self._stray: dict[str, StrayText] = {}
        self._dates: dict[str, DateTexts] = {}
        # Of each column with unseen categories the number of rows, and some of the categories.
        self._unseen: dict[str, tuple[int, dict[Any, None]]] = {}
        find_column(table, *others)
        if self.has_names:
            self.names = model.feature_names_in_.tolist()
            present = set(table.columns)
            if missing := [name for name in self.names if name not in present]:
                hint = table.hint or nearest(missing[0], table.columns)
                listed = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if missing[5:] else "")
                raise ValueError(f"{table.name} lacks feature columns seen in fit: {listed}{hint}")
        else:
            left_out = set(others)
            self.names = [name for name in table.columns if name not in left_out]
            if len(self.names) != model.n_features_in_:
                raise ValueError(
                    f"{table.name} has {len(self.names)} columns, but the model was fitted on"
                    f" {model.n_features_in_} without names"
                )
        categories, dates = getattr(model, "categories_", {}), getattr(model, "dates_", {})
        self._kinds = [
            kind_of(categories[j].tolist()) if j in categories else _kind_of_dates(dates[j]) if j in dates else NUMBER
            for j in range(len(self.names))
        ]
        self._categories = {self.names[j]: values for j, values in categories.items()}

    def typed(self, batch: Any, first_row: int) -> Any:
        """Return the features of a batch, which begins at `first_row`, as an Arrow table in the kinds of the model."""
        columns = [self._read(batch.column(name), kind, name, first_row) for name, kind in zip(self.names, self._kinds)]
        self._n_rows += batch.num_rows
        return pa.table(columns, names=self.names)

    def _read(self, column: Any, kind: str, name: str, first_row: int) -> Any:
        """Return a column of a batch in its kind; stray text and unseen categories are counted."""
        categories = self._categories.get(name)
        if kind == NUMBER and categories is None and self._format.stray_text == "number":
            column = decode(column)
            if holds_text(column.type):
                return to_numbers(as_text(column), self._stray.setdefault(name, StrayText()), first_row)
        if kind in (DATE, ZONED) and holds_text(decode(column).type):
            column = self._dates.setdefault(name, DateTexts(self._format)).add(decode(column))
        table, date_format = self._table, self._format.date_format
        column = as_kind(column, kind, name, lambda row: table.place(first_row + row), table.missing, date_format)
        if categories is not None and len(categories) > 0:
            frame = read_table(pa.table([column], [name]))
            if unseen := count_unseen(read_column(frame, 0), categories):
                n_before, seen = self._unseen.get(name, (0, {}))
                seen |= dict.fromkeys(list(unseen)[: _MOST_UNSEEN - len(seen)])
                self._unseen[name] = n_before + sum(unseen.values()), seen
        return column

    def stray_notes(self) -> list[str]:
        """Return sentences on the stray text of all batches; ValueError if there is too much in a column."""
        zeros = {name: dates.zeros for name, dates in self._dates.items() if dates.zeros.n_stray}
        notes = [read_as_missing(name, stray, can_be_text=False) for name, stray in zeros.items()]
        for name, stray in self._stray.items():
            if stray.is_rare:
                notes.append(read_as_missing(name, stray, can_be_text=False))
            elif stray.first_row is not None:
                raise ValueError(
                    f"{self._table.place(stray.first_row)}: column {name!r} has the value {stray.examples[0]!r}, which"
                    f" is not {NUMBER}; {stray}{stray.advice}"
                )
        return notes

    def unseen_notes(self) -> list[str]:
        """Return sentences on the unseen categories of all batches."""
        return [
            unseen_note(name, n_unseen, self._n_rows, list(categories))
            for name, (n_unseen, categories) in self._unseen.items()
        ]

    def features(self, typed: Any) -> Any:
        """Return the input for the model: the table, or a matrix if the model was fitted without feature names."""
        if self.has_names:
            return typed
        if all(kind == NUMBER for kind in self._kinds):
            # The transpose is in column-major order, as most data frames are.
            return np.stack([column.to_numpy() for column in typed.columns]).T
        matrix: NDArray[Any] = np.empty((typed.num_rows, typed.num_columns), dtype=object)
        for feature, column in enumerate(typed.columns):
            matrix[:, feature] = column.to_pylist()
        return matrix


def _kind_of_dates(column: DateColumn) -> str:
    """Return the kind of a column of dates or durations."""
    if column.parts == SECONDS:
        return DURATION
    return DATE if column.zone is None else ZONED


def find_column(table: Columns, *names: str) -> None:
    """Raise ValueError if the table has no column of one of the names."""
    present = set(table.columns)
    for name in names:
        if name not in present:
            raise ValueError(f"{table.name} has no column {name!r}{table.hint or nearest(name, table.columns)}")


def nearest(word: str, words: Any) -> str:
    """Return the end of an error message that suggests similar words, or "" if there are none."""
    near = get_close_matches(word, [str(other) for other in words])
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
