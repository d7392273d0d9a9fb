"""Conversion of columns to the types of features: numbers, strings and booleans."""

import shlex
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NUMBER, TEXT, FLAG = "a number", "a string", "a boolean"
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
WORDS = {True: ("1", "true", "True", "TRUE"), False: ("0", "false", "False", "FALSE")}

Place = Callable[[int], str]


class Columns(Protocol):
    """What columns are looked for in."""

    name: str
    columns: list[str]
    # words that stand for nothing where a column is text
    missing: Sequence[str]
    # whether values come as text, without types of their own
    is_text: bool

    def place(self, row: int) -> str:
        """Return what a row of values, counted from 0, is called in a message."""


def canonical_type(type_: Any) -> Any:
    """Return the type that columns of a type are read as: one for all indices, and one of those of text for views."""
    if pa.types.is_dictionary(type_):
        return pa.dictionary(pa.int32(), canonical_type(type_.value_type))
    return pa.large_string() if pa.types.is_string_view(type_) else type_


class Canonical:
    """Arrays of a column in its canonical type; the values of a dictionary are distinct, and none is missing."""

    # Arrow cannot look into dictionaries of views or unify those with missing values, pandas knows no unsigned indices.

    def __init__(self) -> None:
        # the last dictionary, which most batches share, its canonical values, and the places of its own among them
        self._dictionary: Any = None
        self._values: Any = None
        self._places: Any = None

    def __call__(self, column: Any) -> Any:
        """Return an array in its canonical type."""
        if not pa.types.is_dictionary(column.type):
            return column.cast(canonical_type(column.type))
        if self._dictionary is None or not column.dictionary.equals(self._dictionary):
            values = Canonical()(column.dictionary)
            self._dictionary = column.dictionary
            self._values = values.filter(pc.invert(pc.is_null(values, nan_is_null=True))).unique()
            self._places = None if len(self._values) == len(values) else pc.index_in(values, self._values)
        indices = column.indices.cast(pa.int32()) if self._places is None else self._places.take(column.indices)
        return pa.DictionaryArray.from_arrays(indices, self._values)


def decode(column: Any) -> Any:
    """Return a column with values in place of a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind of the categories of a feature, or of classes."""
    if all(isinstance(value, str) for value in values):
        return TEXT
    return FLAG if all(isinstance(value, bool) for value in values) else NUMBER


def as_kind(column: Any, kind: str, name: str, place: Place, missing: Sequence[str] = MISSING) -> Any:
    """Return a column as one of a kind; `missing` are the words for nothing in text that stays text."""
    column = decode(column)
    if pa.types.is_null(column.type):
        return column.cast({NUMBER: pa.float64(), TEXT: pa.string(), FLAG: pa.bool_()}[kind])
    if holds_text(column.type):
        return as_text(column, missing) if kind == TEXT else _parse(as_text(column), kind, name, place)
    type_ = column.type
    if kind == NUMBER and (is_number(type_) or pa.types.is_boolean(type_)):
        return column.cast(pa.float64(), safe=False)
    if kind == FLAG and pa.types.is_boolean(type_):
        return column
    raise ValueError(f"column {name!r} has type {type_}, but the model needs {kind}")


def is_number(type_: Any) -> bool:
    """Say whether a type is one of those of numbers."""
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def holds_text(type_: Any) -> bool:
    """Say whether a type is one of those of text."""
    return pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)


def as_text(column: Any, missing: Sequence[str] = MISSING) -> Any:
    """Return a column as text, with nothing in place of the words for it."""
    column = column.cast(pa.string())
    return pc.if_else(pc.is_in(column, pa.array(missing, pa.string())), pa.scalar(None, pa.string()), column)


def _parse(column: Any, kind: str, name: str, place: Place) -> Any:
    """Return text as numbers or booleans."""
    column = pc.utf8_trim_whitespace(column)
    if (found := _cast(column, kind)) is not None:
        return found
    row = bisect_left(range(len(column)), True, key=lambda row: _cast(column[: row + 1], kind) is None)
    raise ValueError(f"{place(row)}: column {name!r} has the value {column[row].as_py()!r}, which is not {kind}")


def _cast(column: Any, kind: str) -> Any:
    """Return text as numbers or booleans; None if a value cannot be converted."""
    if kind == NUMBER:
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    places = pc.index_in(column, pa.array([*WORDS[True], *WORDS[False]]))
    return None if places.null_count > column.null_count else pc.less(places, len(WORDS[True]))


def feature_names(source: Any, others: Sequence[str]) -> list[str]:
    """Return the columns to learn from: all but some others and those without a name."""
    nameless = [name for name in source.columns if name == "" or name.startswith("__index_level_")]
    if set(nameless) - set(others):
        warnings.warn("a column without a name, such as a row index, is ignored", stacklevel=3)
    names = [name for name in source.columns if name not in others and name not in nameless]
    if not names:
        raise ValueError(f"{source.name} has no feature columns besides {others[0]!r}")
    check_types(source.schema(names))
    return names


def check_types(schema: Any) -> None:
    """Refuse columns that are not numeric, string or boolean."""
    for field in schema:
        type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_temporal(type_):
            raise ValueError(
                f"column {field.name!r} is not numeric but {type_}; encode dates and times as numbers, or leave the"
                f" column out with --drop {shlex.quote(field.name)} (in Python, drop=[{field.name!r}])"
            )
        if not (is_number(type_) or holds_text(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)):
            raise ValueError(f"column {field.name!r} has type {type_}: features must be numeric, string or boolean")


def to_features(batch: Any) -> Any:
    """Return the columns of a record batch as a table: strings and booleans as dictionaries, null columns as NaN."""
    columns = []
    for column in batch.columns:
        if pa.types.is_null(column.type) or pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        elif holds_text(column.type) or pa.types.is_boolean(column.type):
            column = column.dictionary_encode()
        columns.append(column)
    return pa.table(columns, names=batch.schema.names)


class ModelColumns:
    """The columns that a model reads, found in a table by name; in their order where the model knows no names."""

    def __init__(self, model: Any, table: Columns, others: Sequence[str] = ()) -> None:
        self._table, self.has_names = table, hasattr(model, "feature_names_in_")
        for name in others:
            find_column(table, name)
        if self.has_names:
            self.names = model.feature_names_in_.tolist()
            missing = [name for name in self.names if name not in table.columns]
            if missing:
                hint = nearest(missing[0], table.columns)
                listed = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if missing[5:] else "")
                raise ValueError(f"{table.name} lacks feature columns seen in fit: {listed}{hint}")
        else:
            self.names = [name for name in table.columns if name not in others]
            if len(self.names) != model.n_features_in_:
                raise ValueError(
                    f"{table.name} has {len(self.names)} columns, but the model was fitted on"
                    f" {model.n_features_in_} without names"
                )
        categories = getattr(model, "categories_", {})
        features = range(len(self.names))
        self._kinds = [kind_of(categories[j].tolist()) if j in categories else NUMBER for j in features]

    def typed(self, batch: Any, first_row: int) -> Any:
        """Return the columns of a batch as an arrow table of the model's kinds; its first row has a number."""
        columns = [
            as_kind(batch.column(name), kind, name, lambda row: self._table.place(first_row + row), self._table.missing)
            for name, kind in zip(self.names, self._kinds)
        ]
        return pa.table(columns, names=self.names)

    def features(self, typed: Any) -> Any:
        """Return what the model takes: a table, or a matrix where it knows no names."""
        if self.has_names:
            return typed
        if all(kind == NUMBER for kind in self._kinds):
            # column by column in memory, as frames are
            return np.stack([column.to_numpy() for column in typed.columns]).T
        matrix: NDArray[Any] = np.empty((typed.num_rows, typed.num_columns), dtype=object)
        for feature, column in enumerate(typed.columns):
            matrix[:, feature] = column.to_pylist()
        return matrix


def find_column(table: Columns, name: str) -> str:
    """Return the name of a column after a check that there is one."""
    if name not in table.columns:
        raise ValueError(f"{table.name} has no column {name!r}{nearest(name, table.columns)}")
    return name


def nearest(word: str, words: Any) -> str:
    """Return a hint at the words that are most similar to a misspelt one."""
    near = get_close_matches(word, [str(other) for other in words])
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
