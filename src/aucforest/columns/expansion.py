"""Columns that become several features (their parts): dates, integers that are categories, and codes.

The first feature replaces the column. The others are appended after the last column, so that the index of each column
is also the index of its first feature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import (
    MOST_IN_FLOAT32,
    Categories,
    Factor,
    Frame,
    Table,
    divide_integers,
    encode,
    encode_numbers,
    encode_prefixes,
    nearest_of,
    repeated,
)
from aucforest.columns.dates import DateColumn, date_features

RANGES = tuple(10**k for k in range(1, 16))  # the possible widths of ranges of integers


@dataclass(frozen=True)
class IntegerColumn:
    """A column of integers that are categories. It becomes a feature of numbers, and one of categories for each width.

    The categories are the integers divided by the width and rounded down: the integers themselves for the width 1, and
    their first digits for a width of 10, 100, ... Without the width 1, the column is categorical by name or type, such
    as text of integers, and its first feature is its category.
    """

    sizes: tuple[int, ...] = (1,)  # the widths

    @property
    def is_categorical(self) -> bool:
        """Whether the first feature is categorical."""
        return 1 not in self.sizes

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the features."""
        first = ("category",) if self.is_categorical else ("number", "category")
        return (*first, *(f"range of {width}" for width in self.sizes if width > 1))


@dataclass(frozen=True)
class TextColumn:
    """A categorical column of text, whose first characters become a further feature, such as "01" of "01067"."""

    sizes: tuple[int, ...]  # the number of first characters
    is_categorical = True

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the features."""
        return "text", "first character" if self.sizes == (1,) else f"first {self.sizes[0]} characters"


# The columns that become several features, by their index: first dates, then integers, then text.
Expanded = Mapping[int, DateColumn | IntegerColumn | TextColumn]
# The categories of each feature that is found by the labels, by the index of the column and its size: the width of the
# ranges of integers, or the number of first characters. Those of a column are consecutive.
FoundCategories = Mapping[tuple[int, int], NDArray[Any]]


def n_added(expanded: Expanded) -> int:
    """Return the number of features that are appended after the last column."""
    return sum(len(column.parts) - 1 for column in expanded.values())


def split_names(names: Sequence[Any], expanded: Expanded) -> list[Any]:
    """Return the names of all features, such as "d: month", from the names of the columns."""
    split = list(names)
    for feature, column in expanded.items():
        if isinstance(column, DateColumn):
            split[feature] = f"{names[feature]}: {column.parts[0]}"
        split += [f"{names[feature]}: {part}" for part in column.parts[1:]]
    return split


def columns_of_features(n_columns: int, expanded: Expanded) -> list[int]:
    """Return the index of the column from which each feature is computed."""
    return [*range(n_columns), *(index for index, column in expanded.items() for _ in column.parts[1:])]


def columns_of_found(
    n_columns: int, expanded: Expanded, *, categorical: bool | None = None
) -> dict[int, tuple[int, int]]:
    """Return the column and the size of each feature that is found by the labels.

    With `categorical`, only the features of columns whose first feature is or is not categorical are returned.
    """
    found, first = dict[int, tuple[int, int]](), n_columns
    for index, column in expanded.items():
        if not isinstance(column, DateColumn) and categorical in (None, column.is_categorical):
            found |= {first + i: (index, size) for i, size in enumerate(column.sizes)}
        first += len(column.parts) - 1
    return found


def prefixes_of(n_columns: int, expanded: Expanded, categories: Categories) -> dict[int, tuple[int, NDArray[np.int64]]]:
    """Return the features of first characters or ranges, by the features of the categories that they are computed from.

    Each comes with the index of the first characters or of the range of each category.
    """
    integers = columns_of_found(n_columns, expanded, categorical=False)
    base_of = {column: feature for feature, (column, width) in integers.items() if width == 1}
    prefixes = dict[int, tuple[int, NDArray[np.int64]]]()
    for feature, (column, size) in columns_of_found(n_columns, expanded).items():
        base = base_of.get(column, column)
        if base != feature:
            values = Factor(categories[base].tolist(), np.arange(len(categories[base])))
            codes = encode_prefixes(values, size, categories[feature])
            # In a warm start with other categories, which is refused later, categories may have no prefix.
            prefixes[base] = feature, np.nan_to_num(codes).astype(np.int64)
    return prefixes


def categories_of_columns(model: Any) -> dict[int, NDArray[Any]]:
    """Return the categories of categorical columns and of columns of integers, by the index of the column."""
    if not (categories := getattr(model, "categories_", {})):
        return {}
    integers = columns_of_found(model.n_features_in_, model.expanded_, categorical=False)
    found = {column: categories[feature] for feature, (column, width) in integers.items() if width == 1}
    return {column: values for column, values in categories.items() if column < model.n_features_in_} | found


def parts_of_unseen(model: Any) -> dict[int, str]:
    """Return the features that values of a column have even if training has not seen them, by the column's index."""
    columns = getattr(model, "expanded_", {}).items()
    parts = {j: column.parts for j, column in columns if not isinstance(column, DateColumn)}
    return {j: " and ".join(part for part in names if part not in ("category", "text")) for j, names in parts.items()}


def read_features(table: Table, expanded: Expanded, categories: Categories) -> NDArray[Any]:
    """Return the features of a table as a numeric matrix, with codes in place of categories."""
    prefixes, integers = (columns_of_found(table.shape[1], expanded, categorical=flag) for flag in (True, False))
    of_columns = {feature: values for feature, values in categories.items() if feature not in integers}
    features = expand(table, expanded)
    matrix = encode(features, of_columns, prefixes)
    if not integers:
        return matrix
    codes = encode_integers(matrix, {key: categories[feature] for feature, key in integers.items()})
    n_features = features.shape[1]
    return np.column_stack((matrix[:, :n_features], codes, matrix[:, n_features:]))


def encode_integers(matrix: NDArray[Any], integers: FoundCategories) -> NDArray[Any]:
    """Return the codes of the categories of columns of integers, (n_rows, n_integers), from the matrix of all columns.

    An integer in no known range has the code of the nearest one, on the side of which thresholds would put it. The
    codes are float32 if the matrix is, unless there are more codes than float32 represents.
    """
    is_narrow = matrix.dtype == np.float32 and all(len(values) <= MOST_IN_FLOAT32 for values in integers.values())
    codes = np.empty((len(matrix), len(integers)), dtype=np.float32 if is_narrow else np.float64)
    for i, ((column, width), values) in enumerate(integers.items()):
        numbers = divide_integers(matrix[:, column], width)
        codes[:, i] = encode_numbers(numbers if width == 1 else nearest_of(numbers, values), values)
    return codes


def append_categories(matrix: NDArray[Any], integers: FoundCategories) -> NDArray[Any]:
    """Return the matrix of all columns with the result of `encode_integers` appended."""
    return np.column_stack((matrix, encode_integers(matrix, integers))) if integers else matrix


def times_in(expanded: Expanded) -> frozenset[int]:
    """Return the indices of the features that are times in seconds since 1970-01-01."""
    return frozenset(feature for feature, column in expanded.items() if column.parts[0] == "time")


def expand(table: Table, expanded: Expanded) -> Table:
    """Return a table with the features of dates; ValueError if a column has other values than in `fit`."""
    columns = {index: column for index, column in expanded.items() if isinstance(column, DateColumn)}
    if not columns:
        return table
    parts, added = dict[int, NDArray[Any]](), count(table.shape[1])
    for index, column in columns.items():
        parts[index], *features = date_features(table, index, column)
        parts |= {next(added): values for values in features}
    if isinstance(table, Frame):
        names = split_names(table.columns, columns)
        for name in repeated(names):
            raise ValueError(f"X has a column {name!r}, which is also the name of another feature: rename it")
        names[: table.shape[1]] = table.columns  # the first feature has the name of its column
        backend = table.implementation
        series = (nw.new_series(names[j], values.astype(np.float64), backend=backend) for j, values in parts.items())
        return Frame(table.with_columns(*series))
    shape = len(table), table.shape[1] + n_added(columns)
    matrix = np.empty(shape, dtype=object if table.dtype == object else np.float64)
    for index in range(shape[1]):
        matrix[:, index] = parts[index] if index in parts else table[:, index]
    return matrix


def check_same_expanded(before: Expanded, now: Expanded) -> None:
    """Raise ValueError if columns of dates, their parts or their time zones differ from the previous fit."""
    for feature in sorted({*before, *now}):
        if before.get(feature) != now.get(feature):
            raise ValueError(f"warm_start: the dates of column {feature} have another type, zone or parts than before")
