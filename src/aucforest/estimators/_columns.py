"""Categorical columns: which ones they are, and their values as codes.

The code of a category is its place among those seen in `fit`, in the order of their values. Up to 254 keep a code of
their own, those that are rarest beyond come last and share one. Missing and unseen values have no code but NaN.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.tree.structure import MISSING_CODE

# The last code is for all categories that do not keep their own.
_SHARED_CODE = MISSING_CODE - 1
_CATEGORICAL = (nw.Categorical, nw.Enum, nw.String, nw.Boolean)

Categories = dict[int, NDArray[Any]]


class Factor(NamedTuple):
    """A column of anything but numbers: its distinct values, and the place of each row's among them."""

    values: list[Any]
    places: NDArray[np.integer]


Table = nw.DataFrame[Any] | NDArray[Any]
Column = NDArray[Any] | Factor


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a view of pandas, polars and arrow tables; None for anything else, and where two columns share a name."""
    if not hasattr(X, "columns"):
        return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return frame if isinstance(frame, nw.DataFrame) else None


def _as_table(X: Any) -> Table | None:
    """Return a frame or a matrix; None for what has no rows and columns, since validation says what is wrong."""
    frame = as_frame(X)
    if frame is not None:
        return frame
    matrix = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return matrix if matrix.ndim == 2 else None


def _name(table: Table, feature: int) -> str:
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
    if all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != n_features:
            raise ValueError(f"categorical_features is a mask of {len(given)} columns, but X has {n_features}")
        return [j for j in range(n_features) if given[j]]
    if all(isinstance(item, str) for item in given):
        return sorted({_place(name, None if frame is None else frame.columns) for name in given})
    if not all(isinstance(item, Integral) for item in given):
        raise ValueError(f"categorical_features must hold names, indices or a mask, but is {given}")
    for item in given:
        if not 0 <= item < n_features:
            raise ValueError(f"categorical_features has the index {item}, but X has {n_features} columns")
    return sorted({int(item) for item in given})


def _place(name: str, names: Sequence[str] | None) -> int:
    """Return the index of a column."""
    if names is None:
        raise ValueError(f"categorical_features names column {name!r}, but the columns of X have no names")
    if name not in names:
        raise ValueError(f"categorical_features names column {name!r}, which X does not have")
    return names.index(name)


def _read(table: Table, feature: int) -> Column:
    """Return a column; numbers as an array, where missing ones are NaN."""
    if isinstance(table, nw.DataFrame):
        series = table[table.columns[feature]]
        if series.dtype == nw.Categorical and series.implementation.is_pandas():
            factor = series.to_native().array  # has what is to be found
            places = factor.codes.astype(np.int64)
            return Factor([*factor.categories.tolist(), None], np.where(places < 0, len(factor.categories), places))
        numeric = series.dtype.is_numeric() or series.dtype == nw.Boolean
        values = series.to_numpy() if numeric else series.to_list()
    else:
        values = table[:, feature]
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biuf":
            return values
        values = values.tolist()
    try:
        place = {value: place for place, value in enumerate(dict.fromkeys(values))}
        return Factor(list(place), np.fromiter(map(place.__getitem__, values), dtype=np.int64, count=len(values)))
    except TypeError as error:
        raise TypeError(f"X: {_name(table, feature)} is categorical but has values without a hash: {error}") from error


def _is_missing(value: Any) -> bool:
    """Say whether a value is None, NaN or a kin of it."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA of pandas is neither equal nor different
        return True


def learn(X: Any, given: Any) -> tuple[Any, Categories]:
    """Return X with codes in its categorical columns, and their categories."""
    table = as_frame(X) if isinstance(given, str) else None if given is None else _as_table(X)
    features = find_categorical(table, given)
    if table is None or not features:
        return X, {}
    columns = {feature: _read(table, feature) for feature in features}
    categories = {feature: _learn(column, _name(table, feature)) for feature, column in columns.items()}
    return _with_codes(table, columns, categories), categories


def _learn(column: Column, name: str) -> NDArray[Any]:
    """Return the categories of one column, each by its code; those from 254 on share a code."""
    if isinstance(column, np.ndarray):
        categories, counts = np.unique(column[column == column], return_counts=True)
    else:
        per_value = np.bincount(column.places, minlength=len(column.values)).tolist()
        found = {value: n for value, n in zip(column.values, per_value) if n > 0 and not _is_missing(value)}
        try:
            known = sorted(found)
        except TypeError as error:
            raise TypeError(f"X: {name} is categorical but has values without an order: {error}") from error
        categories = np.fromiter(known, dtype=object, count=len(known))
        counts = np.array([found[value] for value in known], dtype=np.int64)
    if len(categories) <= _SHARED_CODE:
        return categories
    common = np.zeros(len(categories), dtype=np.bool_)
    common[np.argsort(-counts, kind="stable")[:_SHARED_CODE]] = True
    return np.concatenate((categories[common], categories[~common]))


def encode(X: Any, categories: Categories) -> Any:
    """Return X with codes in place of the values of its categorical columns: a frame as a frame."""
    table = _as_table(X)
    if table is None or table.shape[1] <= max(categories):
        return X  # validation says what is wrong
    return _with_codes(table, {feature: _read(table, feature) for feature in categories}, categories)


def _with_codes(table: Table, columns: dict[int, Column], categories: Categories) -> Any:
    """Return a copy of the table with codes in some columns."""
    codes = {feature: _encode(columns[feature], known, _name(table, feature)) for feature, known in categories.items()}
    if isinstance(table, nw.DataFrame):
        names, backend = table.columns, table.implementation
        series = [nw.new_series(names[feature], codes[feature], nw.Float64, backend=backend) for feature in codes]
        return table.with_columns(*series).to_native()
    kind = table.dtype.kind
    encoded = table.astype(object if kind in "US" else np.float64 if kind in "biu" else table.dtype)
    for feature in codes:
        encoded[:, feature] = codes[feature]
    return encoded


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
    encoded = np.array([table.get(value, np.nan) for value in column.values])[column.places]
    if len(categories) > 0 and np.all(np.isnan(encoded)):
        _check_kind(column.values, categories.tolist()[0], name)
    return encoded


def _check_kind(values: list[Any], category: Any, name: str) -> None:
    """Refuse text in place of numbers and numbers in place of text, which would all be unseen."""
    value = next((value for value in values if not _is_missing(value)), None)
    if value is not None and isinstance(value, str) != isinstance(category, str):
        raise ValueError(f"X: {name} has values such as {value!r}, but in fit such as {category!r}")


def check_same_categories(before: Categories, now: Categories) -> None:
    """Refuse to add trees to others that know other categories, with a code of their own for each."""
    for feature in sorted(before | now):
        if not (feature in before and feature in now and np.array_equal(before[feature], now[feature])):
            raise ValueError(f"warm_start: column {feature} has other categories than the trees there are know")
