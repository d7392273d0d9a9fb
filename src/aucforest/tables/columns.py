"""Categorical columns: how they are found, and the codes of their values.

The code of a category is its place among those seen in `fit`, in the order of their values. Up to 254 keep a code of
their own, those that are rarest beyond come last and share one. Missing and unseen values have no code but NaN.
"""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import is_missing
from aucforest.tree.features import CATEGORICAL, NUMERIC
from aucforest.tree.tree import MISSING_CODE

# The last code is for all categories that do not keep their own.
_SHARED_CODE = MISSING_CODE - 1
_CODED = (nw.Categorical, nw.Enum)
_CATEGORICAL = (*_CODED, nw.String, nw.Boolean)

Categories = dict[int, NDArray[Any]]


class Factor(NamedTuple):
    """A column of anything but numbers: its distinct values, and the place of each row's among them, -1 for none."""

    values: list[Any]
    places: NDArray[np.integer]


Table = nw.DataFrame[Any] | NDArray[Any]
Column = NDArray[Any] | Factor


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a view of pandas, polars and arrow tables; None for anything else, and where two columns share a name."""
    if not hasattr(X, "columns"):
        return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return frame if isinstance(frame, nw.DataFrame) else None


def check_table(X: Any) -> None:
    """Refuse a Series, a lazy frame of polars, and duplicate column names."""
    kind = f"a {type(X).__module__.partition('.')[0]} {type(X).__name__}"
    if nw.dependencies.is_into_series(X):
        raise ValueError(f"X must have two dimensions but is {kind}: pass a table, such as X.to_frame()")
    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError(f"X is {kind}, which holds no data yet: pass X.collect()")
    names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has {names.count(name)} columns named {name!r}: column names must be unique")


def as_table(X: Any) -> Table | None:
    """Return a frame or a matrix; None for what has no rows and columns, since validation says what is wrong."""
    frame = _as_frame(X)
    if frame is not None:
        return frame
    matrix = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return matrix if matrix.ndim == 2 else None


def read_table(X: Any) -> Table:
    """Return the table that a part of a training table is."""
    table = as_table(X)
    assert table is not None
    return table


def has_codes(X: Any) -> bool:
    """Say whether a table has dictionaries of arrow: numpy would take a missing value for another one."""
    frame = _as_frame(X)
    return frame is not None and frame.implementation.is_pyarrow() and any(t in _CODED for t in frame.schema.values())


def column_name(table: Table, feature: int) -> str:
    """Return what a message calls a column."""
    return f"column {repr(table.columns[feature]) if isinstance(table, nw.DataFrame) else feature}"


def find_categorical(table: Table | None, given: Any) -> list[int]:
    """Return the categorical columns, for a value of the parameter `categorical_features`."""
    frame = table if isinstance(table, nw.DataFrame) else None
    if isinstance(given, str):
        return [] if frame is None else [j for j, kind in enumerate(frame.schema.values()) if kind in _CATEGORICAL]
    if given is None or table is None:
        return []
    given, n_features = list(given), table.shape[1]
    if given and all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != n_features:
            raise ValueError(f"categorical_features is a mask for {len(given)} columns, but X has {n_features}")
        return [j for j in range(n_features) if given[j]]
    if all(isinstance(item, str) for item in given):
        return sorted({_place(name, None if frame is None else frame.columns) for name in given})
    if not all(isinstance(item, Integral) for item in given):
        raise ValueError(f"categorical_features must be column names, indices or a boolean mask, but is {given}")
    for item in given:
        if not 0 <= item < n_features:
            raise ValueError(f"categorical_features has the index {item}, but X has {n_features} columns")
    return sorted({int(item) for item in given})


def _place(name: str, names: Sequence[str] | None) -> int:
    """Return the index of a column."""
    if names is None:
        raise ValueError(f"categorical_features has the column name {name!r}, but the columns of X have no names")
    if name not in names:
        raise ValueError(f"categorical_features has the column name {name!r}, which X does not have")
    return names.index(name)


def read_column(table: Table, feature: int) -> Column:
    """Return a column; numbers as an array, where missing ones are NaN."""
    try:
        if isinstance(table, nw.DataFrame):
            return _read_series(table.get_column(table.columns[feature]))
        return _read_values(table[:, feature])
    except TypeError as error:
        raise TypeError(
            f"X: {column_name(table, feature)} is categorical, but its values cannot be categories: {error}"
        ) from error


def _read_series(series: nw.Series[Any]) -> Column:
    """Return a column of a frame; where the frame has integer codes for its values, these are all that is read."""
    native, coded = series.to_native(), series.dtype in _CODED
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _read_values(series.to_numpy())
    chunks = _arrow_chunks(native)
    if chunks is not None and (coded or series.dtype == nw.String):
        return _read_chunks(chunks)
    if series.implementation.is_pandas():
        if coded:
            return Factor(native.array.categories.tolist(), native.array.codes)
        places, values = native.factorize()
        return Factor(values.tolist(), places)
    if series.implementation.is_polars() and coded:
        physical = native.to_physical()
        first = physical.arg_unique().to_numpy()
        codes = physical.to_numpy()  # a missing value is NaN, which is sorted as the last
        first = first[np.argsort(codes[first])]
        return Factor(native.gather(first).to_list(), np.searchsorted(codes[first], codes))
    return _read_values(series)


def _arrow_chunks(native: Any) -> list[Any] | None:
    """Return the arrays of arrow that a column is made of, in pandas too; None for a column of anything else."""
    array = getattr(native, "array", native)
    if hasattr(getattr(array, "dtype", None), "pyarrow_dtype"):
        array = array.__arrow_array__()
    return getattr(array, "chunks", [array]) if hasattr(array, "dictionary_encode") else None


def _read_chunks(chunks: list[Any]) -> Factor:
    """Return a column of text, or of dictionaries, which differ by chunk and may hold a value twice, or none."""
    place: dict[Any, int] = {}
    places = [np.empty(0, dtype=np.int32)]
    for chunk in chunks:
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        found = [place.setdefault(value, len(place)) for value in encoded.dictionary.to_pylist()]
        # unsigned indices have no -1
        indices = encoded.indices.cast("int32").fill_null(-1).to_numpy()
        places.append(np.array([*found, -1], dtype=np.int32)[indices])
    return Factor(list(place), np.concatenate(places))


def _read_values(values: Any) -> Column:
    """Return a column whose values are what they are."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    listed = values.tolist() if isinstance(values, np.ndarray) else values.to_list()
    place = {value: place for place, value in enumerate(dict.fromkeys(listed))}
    return Factor(list(place), np.fromiter(map(place.__getitem__, listed), dtype=np.int64, count=len(listed)))


def read_numbers(table: Table, feature: int) -> NDArray[Any]:
    """Return a column that is not categorical, as numbers."""
    if isinstance(table, nw.DataFrame):
        series = table.get_column(table.columns[feature])
        if series.dtype in _CODED:
            values = _decode(read_column(table, feature))
        else:
            values = (series.cast(nw.Float64) if series.dtype == nw.Boolean else series).to_numpy()
    else:
        values = table[:, feature]
    if values.dtype.kind in "biuf":
        return values
    try:
        return values.astype(object).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"X: {column_name(table, feature)} is not numeric ({error}); add it to categorical_features or encode it"
            " as numbers"
        ) from error


def _decode(factor: Any) -> NDArray[Any]:
    """Return the values of all rows, None for missing ones."""
    values = np.empty(len(factor.values) + 1, dtype=object)
    values[:-1] = factor.values
    return values[factor.places]


def decode_labels(column: Any) -> Any:
    """Return labels as an array where scikit-learn would take them for others; anything else as it is.

    Numpy takes a missing value of arrow's text and dictionaries for another one. Flags and integers that are nullable,
    categories or objects, which scikit-learn makes floats of or refuses, keep their type if none is missing.
    """
    chunks = _arrow_chunks(column)
    if chunks and (hasattr(chunks[0], "dictionary") or "string" in str(chunks[0].type)):
        factor = _read_chunks(chunks)
        values = _decode(factor)
        return values if any(isinstance(value, str) for value in factor.values) else np.array(values.tolist())
    if not hasattr(column, "dtype"):
        return column
    values = np.asarray(column)
    if values.dtype == object and all(isinstance(value, Integral | np.bool_) for value in values.flat):
        values = np.array(values.tolist())
    return values if values.dtype.kind in "biu" else column


def check_numeric(X: Any) -> None:
    """Refuse the first column that has no number in some row."""
    table = as_table(X)
    if table is not None:
        for feature in range(table.shape[1]):
            read_numbers(table, feature)


def learn(X: Any, given: Any, kept: NDArray[np.int64] | None) -> tuple[NDArray[Any] | None, Categories]:
    """Return X as numbers with codes in its categorical columns, and their categories in the rows kept (None for all).

    Without such columns, and without dictionaries, there is nothing to do and the first is None.
    """
    table = _as_frame(X) if given is None or isinstance(given, str) else as_table(X)
    features = find_categorical(table, given)
    if table is None or not (features or has_codes(X)):
        return None, {}
    columns = {feature: read_column(table, feature) for feature in features}
    categories = {
        feature: order_categories(count_values(column, kept), column_name(table, feature))
        for feature, column in columns.items()
    }
    return _as_numbers(table, columns, categories), categories


class Counted(NamedTuple):
    """The distinct values of a column that are not missing, as an array of numbers or a list, and their counts."""

    values: NDArray[Any] | list[Any]
    counts: NDArray[np.int64]

    def merge(self, other: "Counted") -> "Counted":
        """Count the values of both."""
        if isinstance(self.values, np.ndarray) and isinstance(other.values, np.ndarray):
            values, places = np.unique(np.concatenate((self.values, other.values)), return_inverse=True)
            counts = np.zeros(len(values), dtype=np.int64)
            np.add.at(counts, places, np.concatenate((self.counts, other.counts)))
            return Counted(values, counts)
        merged: dict[Any, int] = {}
        for value, count in (*self._pairs(), *other._pairs()):
            merged[value] = merged.get(value, 0) + count
        return Counted(list(merged), np.fromiter(merged.values(), dtype=np.int64, count=len(merged)))

    def _pairs(self) -> Iterable[tuple[Any, int]]:
        values = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        return zip(values, self.counts.tolist())


def count_values(column: Column, rows: NDArray[np.int64] | None) -> Counted:
    """Count the values of a column in some rows, None for all."""
    kept: Any = slice(None) if rows is None else rows
    if isinstance(column, np.ndarray):
        column = column[kept]
        return Counted(*np.unique(column[column == column], return_counts=True))
    places = column.places[kept]
    counts = np.bincount(places[places >= 0], minlength=len(column.values))
    found = [i for i, value in enumerate(column.values) if counts[i] > 0 and not is_missing(value)]
    return Counted([column.values[i] for i in found], counts[found])


def order_categories(counted: Counted, name: str) -> NDArray[Any]:
    """Return the categories of one column, each by its code; those from 254 on share a code."""
    values, counts = counted
    if isinstance(values, np.ndarray):
        categories = values
    else:
        place = {value: i for i, value in enumerate(values)}
        try:
            known = sorted(values)
        except TypeError as error:
            raise TypeError(f"X: {name} is categorical, but its values cannot be sorted: {error}") from error
        categories = np.fromiter(known, dtype=object, count=len(known))
        counts = counts[[place[value] for value in known]]
    if len(categories) <= _SHARED_CODE:
        return categories
    common = np.zeros(len(categories), dtype=np.bool_)
    common[np.argsort(-counts, kind="stable")[:_SHARED_CODE]] = True
    return np.concatenate((categories[common], categories[~common]))


def feature_kinds(categories: Categories, n_features: int) -> NDArray[np.int8]:
    """Return the kind of every feature for the trees: two categories are split as two numbers are."""
    kinds = np.full(n_features, NUMERIC, dtype=np.int8)
    kinds[[feature for feature, labels in categories.items() if len(labels) > 2]] = CATEGORICAL
    return kinds


def encode(table: Table, categories: Categories) -> NDArray[Any]:
    """Return a table as numbers, with codes in place of the values of its categorical columns."""
    return _as_numbers(table, {feature: read_column(table, feature) for feature in categories}, categories)


def like(X: Any, matrix: NDArray[Any]) -> Any:
    """Return a matrix as a table of the type, the column names and the index of X; as it is if X is no table."""
    frame = _as_frame(X)
    if frame is None:
        return matrix
    if frame.implementation.is_pandas():
        return type(X)(matrix, index=X.index, columns=X.columns)
    return nw.from_numpy(matrix, schema=frame.columns, backend=frame.implementation).to_native()


def _as_numbers(table: Table, columns: dict[int, Column], categories: Categories) -> NDArray[Any]:
    """Return a matrix of the codes of some columns and the numbers of the others."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        matrix = table.astype(np.float32 if table.dtype == np.float32 else np.float64, copy=len(columns) > 0)
        others: Iterable[int] = ()
    else:
        # Column by column in memory, as pandas and polars lay out their numbers too.
        matrix = np.empty(table.shape, order="F")
        others = (feature for feature in range(table.shape[1]) if feature not in columns)
    for feature, column in columns.items():
        matrix[:, feature] = _encode(column, categories[feature], column_name(table, feature))
    for feature in others:
        matrix[:, feature] = read_numbers(table, feature)
    return matrix


def _encode(column: Column, categories: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return the codes of one column, NaN for missing and unseen values; categories are matched by value."""
    codes = np.minimum(np.arange(len(categories)), _SHARED_CODE).astype(np.float64)
    if isinstance(column, np.ndarray) and categories.dtype.kind in "biuf" and len(categories) > 0:
        order = np.argsort(categories)
        place = np.searchsorted(categories, column, sorter=order).clip(max=len(order) - 1)
        nearest = order[place]
        return np.where(categories[nearest] == column, codes[nearest], np.nan)
    if isinstance(column, np.ndarray):
        distinct, places = np.unique(column, return_inverse=True)
        column = Factor(distinct.tolist(), places)
    table = dict(zip(categories.tolist(), codes.tolist()))
    encoded = np.array([*(table.get(value, np.nan) for value in column.values), np.nan])[column.places]
    if len(categories) > 0 and np.all(np.isnan(encoded)):
        _check_kind(column.values, categories.tolist()[0], name)
    return encoded


def _check_kind(values: list[Any], category: Any, name: str) -> None:
    """Refuse text in place of numbers and numbers in place of text, which would all be unseen."""
    value = next((value for value in values if not is_missing(value)), None)
    if value is not None and isinstance(value, str) != isinstance(category, str):
        raise ValueError(f"X: {name} has values such as {value!r}, but had values such as {category!r} in fit")


def check_same_categories(before: Categories, now: Categories) -> None:
    """Refuse to add trees to others that know other categories, with a code of their own for each."""
    for feature in sorted(before | now):
        if not (feature in before and feature in now and np.array_equal(before[feature], now[feature])):
            raise ValueError(f"warm_start: column {feature} has different categories than in the previous fit")
