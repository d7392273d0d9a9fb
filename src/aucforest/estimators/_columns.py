"""Categorical columns: which ones they are, and their values as codes.

The code of a category is its place among those seen in `fit`, in the order of their values. Up to 254 keep a code of
their own, those that are rarest beyond come last and share one. Missing and unseen values have no code but NaN.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.tree.structure import MISSING_CODE

# The last code is for all categories that do not keep their own.
_SHARED_CODE = MISSING_CODE - 1
_CATEGORICAL = (nw.Categorical, nw.Enum, nw.String, nw.Boolean)

Categories = dict[int, NDArray[Any]]
Column = NDArray[Any] | list[Any]


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return a view of pandas, polars and arrow tables; None for anything else, and where two columns share a name."""
    if not hasattr(X, "columns"):
        return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return frame if isinstance(frame, nw.DataFrame) else None


def _as_matrix(X: Any) -> NDArray[Any] | None:
    """Return rows and columns of what is no frame; None where there are none."""
    matrix = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return matrix if matrix.ndim == 2 else None


def _name(X: Any, feature: int) -> str:
    """Return what a message calls a column."""
    frame = as_frame(X)
    return f"column {feature if frame is None else repr(frame.columns[feature])}"


def find_categorical(X: Any, given: Any) -> list[int]:
    """Return the categorical columns, for a value of the parameter `categorical_features`."""
    frame = as_frame(X)
    if isinstance(given, str):
        return [] if frame is None else [j for j, kind in enumerate(frame.schema.values()) if kind in _CATEGORICAL]
    if given is None:
        return []
    given = list(given)
    if frame is not None:
        names, n_features = frame.columns, len(frame.columns)
    elif (matrix := _as_matrix(X)) is not None:
        names, n_features = None, matrix.shape[1]
    else:
        return []  # validation says what is wrong
    if all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != n_features:
            raise ValueError(f"categorical_features is a mask of {len(given)} columns, but X has {n_features}")
        return [j for j in range(n_features) if given[j]]
    if all(isinstance(item, str) for item in given):
        return sorted({_place(name, names) for name in given})
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


def _read(X: Any, feature: int) -> Column:
    """Return the values of a column: numbers as an array, where missing ones are NaN, anything else as a list."""
    frame = as_frame(X)
    if frame is None:
        matrix = _as_matrix(X)
        values = matrix[:, feature] if matrix is not None else np.empty(0)
    else:
        series = frame[frame.columns[feature]]
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            items: list[Any] = series.to_list()
            return items
        values = series.to_numpy()
    return values if values.dtype.kind in "biuf" else values.tolist()


def _is_missing(value: Any) -> bool:
    """Say whether a value is None, NaN or a kin of it."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA of pandas is neither equal nor different
        return True


def learn_categories(X: Any, features: Sequence[int]) -> Categories:
    """Return the categories of some columns, each by its code; those from 254 on share a code."""
    return {feature: _learn(_read(X, feature), _name(X, feature)) for feature in features}


def _learn(values: Column, name: str) -> NDArray[Any]:
    """Return the categories of one column."""
    if isinstance(values, np.ndarray):
        categories, counts = np.unique(values[values == values], return_counts=True)
    else:
        try:
            found = Counter(values)
            known = sorted(value for value in found if not _is_missing(value))
        except TypeError as error:
            raise TypeError(f"X: {name} is categorical but has values without a hash or an order: {error}") from error
        categories = np.fromiter(known, dtype=object, count=len(known))
        counts = np.array([found[value] for value in known], dtype=np.int64)
    if len(categories) <= _SHARED_CODE:
        return categories
    common = np.zeros(len(categories), dtype=np.bool_)
    common[np.argsort(-counts, kind="stable")[:_SHARED_CODE]] = True
    return np.concatenate((categories[common], categories[~common]))


def codes_of(categories: NDArray[Any]) -> NDArray[np.int64]:
    """Return the codes of the categories of a column."""
    return np.minimum(np.arange(len(categories)), _SHARED_CODE)


def encode(X: Any, categories: Categories) -> Any:
    """Return X with codes in place of the values of its categorical columns: a frame as a frame."""
    frame = as_frame(X)
    if frame is not None:
        columns = [
            nw.new_series(
                frame.columns[feature], _encode(X, feature, known), nw.Float64, backend=frame.implementation
            )
            for feature, known in categories.items()
        ]  # fmt: skip
        return frame.with_columns(*columns).to_native()
    matrix = _as_matrix(X)
    if matrix is None or matrix.shape[1] <= max(categories):
        return X  # validation says what is wrong
    kept = matrix.dtype == np.float32 or matrix.dtype.kind not in "biuf"
    encoded = matrix.astype(matrix.dtype if kept else np.float64)
    if encoded.dtype.kind in "US":
        encoded = encoded.astype(object)
    for feature, known in categories.items():
        encoded[:, feature] = _encode(matrix, feature, known)
    return encoded


def _encode(X: Any, feature: int, categories: NDArray[Any]) -> NDArray[np.float64]:
    """Return the codes of one column, NaN for missing and unseen values; categories are matched by value."""
    values = _read(X, feature)
    codes = codes_of(categories).astype(np.float64)
    if len(categories) == 0:
        return np.full(len(values), np.nan)
    if isinstance(values, np.ndarray) and categories.dtype.kind in "biuf":
        order = np.argsort(categories)
        place = np.searchsorted(categories, values, sorter=order).clip(max=len(order) - 1)
        nearest = order[place]
        return np.where(categories[nearest] == values, codes[nearest], np.nan)
    items = values.tolist() if isinstance(values, np.ndarray) else values
    table = dict(zip(categories.tolist(), codes.tolist()))
    try:
        encoded = np.fromiter(map(table.get, items, repeat(np.nan)), dtype=np.float64, count=len(items))
    except TypeError as error:
        raise TypeError(f"X: {_name(X, feature)} is categorical but has values without a hash: {error}") from error
    if np.all(np.isnan(encoded)):
        _check_kind(items, categories.tolist()[0], _name(X, feature))
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
