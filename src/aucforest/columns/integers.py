"""Detection of integers above 2**53, which float64 rounds, so that different ones may become equal."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.columns.categorical import LARGEST_INTEGERS, Frame, Table
from aucforest.columns.texts import listed

ROUNDED = "integers above 2**53 are rounded, so that different ones become equal; pass their ranks, or leave out IDs"
_MOST_EXACT = 2**53
_CHECKED_TYPES = (nw.Int64, nw.UInt64, *LARGEST_INTEGERS, nw.Decimal, nw.Object)  # may contain such integers


def is_rounded(values: NDArray[Any]) -> bool:
    """Return whether float64 rounds at least one integer of an array."""
    if values.dtype.kind == "O":
        return any(
            isinstance(value, Number) and not isinstance(value, float | complex) and _is_large_and_rounded(value)
            for value in values.ravel().tolist()
        )
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    if int(values.min()) >= -_MOST_EXACT and int(values.max()) <= _MOST_EXACT:
        return False
    floats = values.astype(np.float64)
    end = float(np.iinfo(values.dtype).max)  # 2**63 or 2**64, as the largest integer of the type is rounded up
    return bool(np.any(floats >= end)) or not np.array_equal(floats.astype(values.dtype), values)


def _is_large_and_rounded(value: Any) -> bool:
    try:  # Python compares integers and floats exactly
        return bool(value == value and abs(value) > _MOST_EXACT and float(value) != value)
    except OverflowError:  # larger than all floats
        return True


def rounded_features(table: Table) -> list[int]:
    """Return the indices of the columns of a table in which an integer would be rounded."""
    if isinstance(table, np.ndarray):
        return [j for j in range(table.shape[1]) if is_rounded(table[:, j])] if is_rounded(table) else []
    columns = [(j, name) for j, (name, type_) in enumerate(table.schema.items()) if isinstance(type_, _CHECKED_TYPES)]
    return [j for j, name in columns if is_rounded(_present(table, name))]


def _present(table: Frame, name: str) -> NDArray[Any]:
    """Return the values of a column that are not missing."""
    if isinstance(table.schema[name], LARGEST_INTEGERS):
        return np.array(table.select(name).to_dict(as_series=False)[name], dtype=object)
    values: NDArray[Any] = table.get_column(name).drop_nulls().to_numpy()
    return values


def rounded_columns(matrix: Any) -> list[int]:
    """Return the indices of the columns of a CSR matrix in which an integer would be rounded."""
    if not is_rounded(matrix.data):
        return []
    by_column = matrix.tocsc()
    return [j for j, values in enumerate(np.split(by_column.data, by_column.indptr[1:-1])) if is_rounded(values)]


def warn_of_rounding(names: Sequence[str]) -> None:
    """Warn of the columns in which integers are rounded."""
    if names:
        warn(f"X: {listed(names)}: {ROUNDED}")
