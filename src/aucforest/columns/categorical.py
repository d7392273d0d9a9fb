"""Categorical columns: how they are found, and the codes of their categories.

The code of a category is its index among the sorted categories seen in `fit`. If there are more than 254 categories,
the 254 most frequent ones come first, and splits by sets of categories treat all others as one. Missing and unseen
values are NaN.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.columns.texts import text_note
from aucforest.columns.values import kind_of_value, parse_dates, plain_values, readable
from aucforest.metrics.validation import is_missing, unmask
from aucforest.tree.features import CATEGORICAL, NUMERIC
from aucforest.tree.tree import SHARED_CODE

_CODED = (nw.Categorical, nw.Enum)  # dictionary-encoded columns
# scikit-learn's checks of estimators require the words "argument must be", "string" and "number".
_ONE_VALUE_PER_CELL = "the argument must be a table of one string or number in each cell: make a column of each value"
_CATEGORICAL = (*_CODED, nw.String, nw.Boolean)
MOST_IN_FLOAT32 = 2**24  # float32 represents all integers up to this one
MOST_EXACT = 2**53  # float64 represents all integers up to this one
_INTEGER = re.compile("0|[1-9][0-9]{0,15}")  # text without leading zeros
LARGEST_INTEGERS, _NAMES_OF_LARGEST = (nw.Int128, nw.UInt128), {"Int128", "UInt128"}

Categories = dict[int, NDArray[Any]]
_NO_PREFIXES: Mapping[int, tuple[int, int]] = MappingProxyType({})


class Factor(NamedTuple):
    """A column that is not numeric: its distinct values, and for each row the index of its value.

    A missing value has the index -1, or it is one of the `values`, such as None.
    """

    values: list[Any]
    indices: NDArray[np.integer]


class Frame:
    """A pandas, polars or Arrow table as a narwhals DataFrame whose column names, shape and types are stored.

    narwhals itself computes these at each access. All other attributes are those of the narwhals DataFrame.
    """

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame, self.columns, self.shape = frame, frame.columns, frame.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    @cached_property
    def schema(self) -> dict[Any, Any]:
        """The types of the columns by their names, in order."""
        return dict(self._frame.schema)

    def get_column(self, name: str) -> nw.Series[Any]:
        """Return a column; integers of 128 bits, which numpy does not have, become float64."""
        column = self._frame.get_column(name)
        return column.cast(nw.Float64) if isinstance(self.schema[name], LARGEST_INTEGERS) else column


def repeated(names: Iterable[Hashable]) -> dict[Any, int]:
    """Return the names that occur more than once and their counts, in the order of their first occurrence."""
    return {name: n for name, n in Counter(names).items() if n > 1}


Table = Frame | NDArray[Any]
Column = NDArray[Any] | Factor


def _as_frame(X: Any) -> Frame | None:
    """Return a pandas, polars or Arrow table as a `Frame`; None for other types or if column names are repeated."""
    if not hasattr(X, "columns"):
        return None
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return Frame(frame) if isinstance(frame, nw.DataFrame) else None


def names_of(X: Any) -> list[Any]:
    """Return the column names of a table, [] for other objects. `columns` of a pyarrow table has arrays, not names."""
    return list(getattr(X, "column_names", getattr(X, "columns", ())))


def check_table(X: Any) -> None:
    """Raise ValueError if X is a Series or has duplicate column names, TypeError for a LazyFrame or a RecordBatch."""
    kind = f"a {type(X).__module__.partition('.')[0]} {type(X).__name__}"
    if nw.dependencies.is_into_series(X):
        raise ValueError(f"X must have two dimensions but is {kind}: pass a table, such as X.to_frame()")
    if nw.dependencies.is_polars_lazyframe(X):
        raise TypeError(f"X is {kind}, which holds no data yet: pass X.collect()")
    if hasattr(X, "schema") and hasattr(X, "to_struct_array") and not hasattr(X, "combine_chunks"):  # a RecordBatch
        raise TypeError(f"X is {kind}, whose column names would be ignored: pass pyarrow.Table.from_batches([X])")
    for name, n in repeated(names_of(X)).items():
        raise ValueError(f"X has {n} columns named {name!r}: column names must be unique")


def as_table(X: Any) -> Table | None:
    """Return X as a frame or a matrix; None if it is not two-dimensional, which later validation reports."""
    frame = _as_frame(X)
    if frame is not None:
        return frame
    matrix = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return matrix if matrix.ndim == 2 else None


def read_table(X: Any) -> Table:
    """Return X, which has passed validation, as a frame or a matrix."""
    table = as_table(X)
    assert table is not None
    return table


def numpy_cannot_read(X: Any) -> bool:
    """Return whether numpy cannot read a column of X: a dictionary of Arrow with nulls, or integers of 128 bits."""
    frame = _as_frame(X)
    if frame is not None and frame.implementation.is_polars():
        return not _NAMES_OF_LARGEST.isdisjoint(map(str, X.dtypes))
    return frame is not None and frame.implementation.is_pyarrow() and any(t in _CODED for t in frame.schema.values())


def column_name(table: Table, feature: int) -> str:
    """Return the name or index of a column for error messages."""
    return f"column {repr(table.columns[feature]) if isinstance(table, Frame) else feature}"


def column_of(table: Table, feature: int) -> Any:
    """Return a column as a Series or an array."""
    return table.get_column(table.columns[feature]) if isinstance(table, Frame) else table[:, feature]


def find_categorical(table: Table | None, columns: Any) -> list[int]:
    """Return the indices of the categorical columns; `columns` is the parameter `categorical_features`."""
    frame = table if isinstance(table, Frame) else None
    if isinstance(columns, str):  # "from_dtype"
        return [] if frame is None else [j for j, kind in enumerate(frame.schema.values()) if kind in _CATEGORICAL]
    if columns is None or table is None:
        return []
    columns, n_features = list(columns), table.shape[1]
    if columns and all(isinstance(item, bool | np.bool_) for item in columns):
        if len(columns) != n_features:
            raise ValueError(f"categorical_features is a mask for {len(columns)} columns, but X has {n_features}")
        return [j for j in range(n_features) if columns[j]]
    if all(isinstance(item, str) for item in columns):
        indices = {} if frame is None else {name: j for j, name in enumerate(frame.columns)}
        for name in columns:
            if name not in indices:
                reason = "but the columns of X have no names" if frame is None else "which X does not have"
                raise ValueError(f"categorical_features has the column name {name!r}, {reason}")
        columns = [indices[name] for name in columns]
    elif not all(isinstance(item, Integral) for item in columns):
        raise ValueError(f"categorical_features must be column names, indices or a boolean mask, but is {columns}")
    for item in columns:
        if not 0 <= item < n_features:
            raise ValueError(f"categorical_features has the index {item}, but X has {n_features} columns")
    return sorted({int(item) for item in columns})


def read_column(table: Table, feature: int) -> Column:
    """Return a column: an array if it is numeric or boolean, else a Factor."""
    read = _read_series if isinstance(table, Frame) else _read_values
    try:
        column = read(column_of(table, feature))
        if isinstance(column, np.ndarray):
            return column.astype(np.float64) if column.dtype == np.longdouble else column
        values = plain_values(column.values)
    except (TypeError, OverflowError) as error:
        raise TypeError(
            f"X: {column_name(table, feature)} is categorical, but its values cannot be categories: {error}"
        ) from error
    if values is column.values:
        return column
    # The conversion can make values of different types equal. Equal values get one index.
    index_of: dict[Any, int] = {}
    indices = [-1 if value is None else index_of.setdefault(value, len(index_of)) for value in values]
    indices.append(-1)  # the index -1 of missing values selects this last element
    return Factor(list(index_of), np.array(indices)[column.indices])


def _read_series(series: nw.Series[Any]) -> Column:
    """Return a column of a frame; a dictionary-encoded one is read by its integer codes, not value by value."""
    native, coded = series.to_native(), series.dtype in _CODED
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _read_values(series.to_numpy())
    chunks = _arrow_chunks(native)
    if chunks is not None and (coded or series.dtype == nw.String):
        return _read_chunks(chunks)
    if series.implementation.is_pandas():
        if coded:
            return Factor(native.array.categories.tolist(), native.array.codes)
        indices, values = native.factorize()
        return Factor(values.tolist(), indices)
    if series.implementation.is_polars() and coded:
        physical = native.to_physical()
        codes = physical.to_numpy()  # missing values are NaN, which is sorted last
        rows = physical.arg_unique().to_numpy()  # a row for each distinct code
        rows = rows[np.argsort(codes[rows])]
        return Factor(native.gather(rows).to_list(), np.searchsorted(codes[rows], codes))
    return _read_values(series)


def _arrow_chunks(native: Any) -> list[Any] | None:
    """Return the Arrow arrays of a column of an Arrow table or a pandas frame; None if it is not stored in Arrow."""
    array = getattr(native, "array", native)
    if hasattr(getattr(array, "dtype", None), "pyarrow_dtype"):
        array = array.__arrow_array__()
    return getattr(array, "chunks", [array]) if hasattr(array, "dictionary_encode") else None


def _read_chunks(chunks: list[Any]) -> Factor:
    """Return a string or dictionary column. Its chunks may have different dictionaries, with nulls and duplicates."""
    index_of: dict[Any, int] = {}
    indices = [np.empty(0, dtype=np.int32)]
    for chunk in chunks:
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        chunk_codes = [index_of.setdefault(value, len(index_of)) for value in encoded.dictionary.to_pylist()]
        # Unsigned indices could not be -1.
        chunk_indices = encoded.indices.cast("int32").fill_null(-1).to_numpy()
        indices.append(np.array([*chunk_codes, -1], dtype=np.int32)[chunk_indices])
    return Factor(list(index_of), np.concatenate(indices))


def _read_values(values: Any) -> Column:
    """Return a column from its values: an array if its dtype is numeric or boolean, else a Factor."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "Mm":
        distinct, indices = np.unique(values, return_inverse=True)
        return Factor(list(distinct), indices)
    listed = values.tolist() if isinstance(values, np.ndarray) else values.to_list()
    index_of = {value: index for index, value in enumerate(dict.fromkeys(listed))}
    return Factor(list(index_of), np.fromiter(map(index_of.__getitem__, listed), dtype=np.int64, count=len(listed)))


def read_numbers(table: Table, feature: int) -> NDArray[Any]:
    """Return the numbers in a column that is not categorical; ValueError or TypeError if a value is not a number."""
    values = column_of(table, feature)
    if isinstance(values, nw.Series):
        dtype: Any = values.dtype
        if isinstance(dtype, nw.List | nw.Array | nw.Struct):
            raise TypeError(f"X: {column_name(table, feature)} has the type {dtype}: {_ONE_VALUE_PER_CELL}")
        if dtype in _CODED:
            values = _decode(read_column(table, feature))
        else:
            values = (values.cast(nw.Float64) if dtype == nw.Boolean else values).to_numpy()
    if values.dtype.kind in "biuf":
        return values
    try:
        return _as_floats(values.astype(object))
    except (TypeError, ValueError) as error:
        for row, value in enumerate(values.tolist()):
            if isinstance(value, list | tuple | dict | set | frozenset | np.ndarray):
                what = f"{column_name(table, feature)} has a {type(value).__name__} in row {row}"
                raise TypeError(f"X: {what}: {_ONE_VALUE_PER_CELL}") from error
        raise type(error)(
            f"X: {column_name(table, feature)} is not numeric ({error}); add it to categorical_features or encode it"
            " as numbers"
        ) from error


def _as_floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array of objects as floats; pandas.NA becomes NaN, as None does."""
    try:
        return values.astype(np.float64)
    except TypeError:
        return _objects([None if is_missing(value) else value for value in values.tolist()]).astype(np.float64)


def _decode(factor: Any) -> NDArray[Any]:
    values = np.empty(len(factor.values) + 1, dtype=object)
    values[:-1] = factor.values  # the last value stays None, which the index -1 selects
    return values[factor.indices]


def decode_labels(column: Any) -> Any:
    """Return labels as an array if scikit-learn would change or reject them, and other labels unchanged.

    numpy turns the nulls of Arrow strings and dictionaries into values. scikit-learn rejects booleans and integers of
    nullable, categorical or object dtype, or converts them to floats. Here they keep their type if no label is missing.
    """
    column = unmask(column)
    chunks = _arrow_chunks(column)
    if chunks and (hasattr(chunks[0], "dictionary") or "string" in str(chunks[0].type)):
        factor = _read_chunks(chunks)
        values = _decode(factor)
        return values if any(isinstance(value, str) for value in factor.values) else np.array(values.tolist())
    if not hasattr(column, "dtype"):
        return column
    if str(column.dtype) in _NAMES_OF_LARGEST:
        return np.array(column.to_list())
    values = np.asarray(column)
    if values.dtype == object and all(isinstance(value, Integral | np.bool_) for value in values.flat):
        values = np.array(values.tolist())
    return values if values.dtype.kind in "biu" else column


def as_numbers(X: Any) -> Any:
    """Return X as a table of numbers; ValueError or TypeError for the first column with a value that is none."""
    table = as_table(X)
    return X if table is None else like(X, _as_numbers(table, {}, {}), None)


def learn(
    table: Table, features: Sequence[int], rows: NDArray[np.int64] | None, *, warns: bool = False
) -> tuple[NDArray[Any], Categories]:
    """Return a table as a numeric matrix with codes in the categorical `features`, and their categories.

    The categories are those in the given rows, or in all rows if `rows` is None. If `warns` is True, a warning names
    each column of text that is probably numbers or dates.
    """
    columns = {feature: read_column(table, feature) for feature in features}
    counted = {feature: count_values(column, rows) for feature, column in columns.items()}
    if warns and isinstance(table, Frame):
        text_features = [feature for feature in features if table.schema[table.columns[feature]] == nw.String]
        warn_of_text({column_name(table, feature): counted[feature] for feature in text_features})
    categories = {feature: order_categories(counted[feature], column_name(table, feature)) for feature in features}
    return _as_numbers(table, columns, categories), categories


class Counted(NamedTuple):
    """The distinct values of a column that are not missing, as an array of numbers or objects, and their counts."""

    values: NDArray[Any]
    counts: NDArray[np.int64]

    def merge(self, other: "Counted") -> "Counted":
        """Return the distinct values of both, with their total counts."""
        if object not in (self.values.dtype, other.values.dtype):
            values, indices = np.unique(np.concatenate((self.values, other.values)), return_inverse=True)
            counts = np.bincount(indices, np.concatenate((self.counts, other.counts)), len(values))
            return Counted(values, counts.astype(np.int64))
        merged = Counter[Any]()
        for counted in (self, other):
            merged.update(dict(zip(counted.values.tolist(), counted.counts.tolist())))
        return Counted(_objects(list(merged)), np.fromiter(merged.values(), dtype=np.int64, count=len(merged)))


def count_values(column: Column, rows: NDArray[np.int64] | None) -> Counted:
    """Count the distinct values of a column in the given rows, or in all rows if `rows` is None."""
    selection: Any = slice(None) if rows is None else rows
    if isinstance(column, np.ndarray):
        column = column[selection]
        return Counted(*np.unique(column[column == column], return_counts=True))  # without NaN
    indices = column.indices[selection]
    counts = np.bincount(indices[indices >= 0], minlength=len(column.values))
    present = [i for i, value in enumerate(column.values) if counts[i] > 0 and not is_missing(value)]
    return Counted(_objects([column.values[i] for i in present]), counts[present])


def _objects(values: list[Any]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))


def warn_of_text(columns: dict[str, Counted]) -> None:
    """Warn of text columns whose values are probably numbers or dates, from the counted values by column name."""
    for name, counted in columns.items():
        if counted.values.dtype == object and (note := text_note(counted.values.tolist(), counted.counts.tolist())):
            warn(f"X: {name}: {note}")


def order_categories(counted: Counted, name: str) -> NDArray[Any]:
    """Return the categories of a column in the order of their codes; `name` is the column's name in messages."""
    values = counted.values.tolist()
    try:
        order = sorted(range(len(values)), key=values.__getitem__)  # much faster than argsort of objects
    except TypeError as error:
        raise TypeError(f"X: {name} is categorical, but its values cannot be sorted: {error}") from error
    categories, counts = counted.values[order], counted.counts[order]
    if len(categories) <= SHARED_CODE:
        return categories
    common = np.zeros(len(categories), dtype=np.bool_)
    common[np.argsort(-counts, kind="stable")[:SHARED_CODE]] = True
    return np.concatenate((categories[common], categories[~common]))


def feature_kinds(categories: Categories, n_features: int) -> NDArray[np.int8]:
    """Return NUMERIC or CATEGORICAL for each feature. With two categories, it is NUMERIC: a threshold suffices."""
    kinds = np.full(n_features, NUMERIC, dtype=np.int8)
    kinds[[feature for feature, labels in categories.items() if len(labels) > 2]] = CATEGORICAL
    return kinds


def encode(
    table: Table, categories: Categories, prefixes: Mapping[int, tuple[int, int]] = _NO_PREFIXES
) -> NDArray[Any]:
    """Return a table as a numeric matrix, with codes in its categorical columns.

    The codes of the first characters or digits of columns are appended. `prefixes` has the column and the size of each
    of these features, by its index.
    """
    columns = {feature: read_column(table, feature) for feature in categories if feature not in prefixes}
    matrix = _as_numbers(table, columns, categories)
    codes = [encode_prefixes(columns[column], n, categories[feature]) for feature, (column, n) in prefixes.items()]
    return np.column_stack((matrix, *codes)) if codes else matrix


def encode_prefixes(column: Column, size: int, prefixes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the codes of the first `size` characters of text, or of the ranges of integers with the width `size`.

    They are NaN for missing values, and for unseen characters and ranges.
    """
    if prefixes.dtype != object:
        return encode_numbers(divide_integers(numbers_of(column), size), prefixes)
    if not isinstance(column, Factor):
        return np.full(len(column), np.nan)
    values = [value[:size] if isinstance(value, str) else None for value in column.values]
    return _encode(column._replace(values=values), prefixes, "")


def numbers_of(column: Column) -> NDArray[Any]:
    """Return the values of a categorical column as numbers, NaN for values that are not, see `number_of`."""
    if isinstance(column, Factor):
        return np.array([*map(number_of, column.values), np.nan])[column.indices]
    is_exact = (column >= -MOST_EXACT) & (column <= MOST_EXACT)  # float64 would round other integers
    return np.where(is_exact, column, np.nan)


def number_of(value: Any) -> float:
    """Return a category as a number: an integer up to 2**53, also as text, or a float. NaN for other values."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    return float(value) if isinstance(value, int | float) and abs(value) <= MOST_EXACT else np.nan


def divide_integers(numbers: NDArray[Any], width: int) -> NDArray[Any]:
    """Return the numbers divided by the width of a range and rounded down; unchanged if the width is 1."""
    if width == 1:
        return numbers
    with np.errstate(invalid="ignore"):  # infinity divided becomes NaN
        return np.floor_divide(numbers, width, dtype=np.float64)


def count_unseen(column: Column, categories: NDArray[Any]) -> dict[Any, int]:
    """Return the values of a column that are not among the categories, and their counts."""
    counted, seen = count_values(column, None), set(categories.tolist())
    values, counts = counted.values.tolist(), counted.counts.tolist()
    converted = parse_dates(values, categories)
    return {value: n for value, category, n in zip(values, converted, counts) if category not in seen}


def like(X: Any, matrix: NDArray[Any], names: Sequence[str] | None) -> Any:
    """Return a matrix as a frame like X, with the columns `names` or those of X; unchanged if X is not a frame."""
    frame = _as_frame(X)
    if frame is None:
        return matrix
    if frame.implementation.is_pandas():
        return type(X)(matrix, index=X.index, columns=X.columns if names is None else names)
    names = frame.columns if names is None else names
    return nw.from_numpy(matrix, schema=names, backend=frame.implementation).to_native()


def _as_numbers(table: Table, columns: dict[int, Column], categories: Categories) -> NDArray[Any]:
    """Return a matrix with the codes of the given categorical columns and the numbers of all other columns."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        is_narrow = table.dtype == np.float32 and all(len(categories[f]) <= MOST_IN_FLOAT32 for f in columns)
        matrix = table.astype(np.float32 if is_narrow else np.float64, copy=len(columns) > 0)
    else:
        # Column-major order, as in pandas and polars, makes filling column by column fast.
        matrix = np.empty(table.shape, order="F")
        for feature in range(table.shape[1]):
            if feature not in columns:
                matrix[:, feature] = read_numbers(table, feature)
    for feature, column in columns.items():
        matrix[:, feature] = _encode(column, categories[feature], column_name(table, feature))
    return matrix


def _encode(column: Column, categories: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Return the codes of one column, NaN for missing and unseen values. A value has the code of an equal category."""
    codes = np.arange(len(categories), dtype=np.float64)
    if isinstance(column, np.ndarray) and categories.dtype.kind in "biuf" and len(categories) > 0:
        order = np.argsort(categories, kind="stable")  # fast, because categories are two sorted parts
        nearest = order[np.searchsorted(categories, column, sorter=order).clip(max=len(order) - 1)]
        return np.where(categories[nearest] == column, codes[nearest], np.nan)
    if isinstance(column, np.ndarray):
        distinct, indices = np.unique(column, return_inverse=True)
        column = Factor(distinct.tolist(), indices)
    code_of = dict(zip(categories.tolist(), codes.tolist()))
    values = parse_dates(column.values, categories)
    encoded = np.array([*(code_of.get(value, np.nan) for value in values), np.nan])[column.indices]
    if len(categories) > 0 and np.all(np.isnan(encoded)):  # no value is known: the column may have another type
        value, category = next((value for value in values if not is_missing(value)), None), categories.tolist()[0]
        if value is not None and kind_of_value(value) != kind_of_value(category):
            now, before = readable(value), readable(category)
            raise ValueError(f"X: {name} has values such as {now!r}, but had values such as {before!r} in fit")
    return encoded


def encode_numbers(numbers: NDArray[Any], categories: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the codes of numbers, NaN for missing and unseen ones.

    For few numbers, this is much faster than `encode`. The categories must have the order of `order_categories`, which
    those of old model files do not have.
    """
    codes = np.full(len(numbers), np.nan)
    # If floats were searched for, numpy would convert all categories to floats.
    integers = np.where(np.abs(numbers) <= 2.0**53, numbers, 0.0).astype(np.int64)
    for first, part in ((0, categories[:SHARED_CODE]), (SHARED_CODE, categories[SHARED_CODE:])):  # both are sorted
        if len(part) > 0:
            nearest = np.searchsorted(part, integers).clip(max=len(part) - 1)
            codes = np.where(part[nearest] == numbers, first + nearest, codes)
    return codes


def nearest_of(numbers: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """Return for each number the nearest of the values, NaN for NaN."""
    ordered = np.sort(values).astype(np.float64)
    right = np.searchsorted(ordered, numbers).clip(max=len(ordered) - 1)
    left = (right - 1).clip(min=0)
    nearest = np.where(numbers - ordered[left] <= ordered[right] - numbers, ordered[left], ordered[right])
    return np.where(np.isnan(numbers), np.nan, nearest)


def differing_features(one: Categories, other: Categories) -> list[int]:
    """Return the categorical features that only one of two tables has, or whose categories differ."""
    return [f for f in sorted(one | other) if not (f in one and f in other and np.array_equal(one[f], other[f]))]
