"""Integers beyond 2**53, which float64 rounds, so that different integers may become the same number."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.tables.columns import Table
from aucforest.tables.texts import listed

ROUNDED = "integers above 2**53 are rounded, so that different ones become equal; pass their ranks, or leave out keys"
_EXACT = 2**53
_TYPES = (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128, nw.Decimal, nw.Object)


def is_rounded(values: NDArray[Any]) -> bool:
    """Return whether an integer among some values changes if it is converted to float64."""
    if values.dtype.kind == "O":
        return any(
            isinstance(value, Number) and not isinstance(value, float | complex) and _is_rounded(value)
            for value in values.ravel().tolist()
        )
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    if int(values.min()) >= -_EXACT and int(values.max()) <= _EXACT:
        return False
    size = np.where(values < 0, ~values.astype(np.uint64) + np.uint64(1), values.astype(np.uint64))
    lowest_bit = size & (~size + np.uint64(1))
    return bool(np.any(size // np.maximum(lowest_bit, np.uint64(1)) > _EXACT))


def _is_rounded(value: Any) -> bool:
    """Return whether float64 rounds a number beyond 2**53; Python compares integers and floats exactly."""
    try:
        return bool(value == value and abs(value) > _EXACT and float(value) != value)
    except OverflowError:  # larger than all floats
        return True


def rounded_features(table: Table) -> list[int]:
    """Return the indices of the columns of a table in which an integer would be rounded."""
    if isinstance(table, np.ndarray):
        return [j for j in range(table.shape[1]) if is_rounded(table[:, j])] if is_rounded(table) else []
    types = enumerate(table.schema.items())
    named = [(feature, name) for feature, (name, type_) in types if isinstance(type_, _TYPES)]
    return [feature for feature, name in named if is_rounded(table.get_column(name).drop_nulls().to_numpy())]


def rounded_columns(matrix: Any) -> list[int]:
    """Return the indices of the columns of a CSR matrix in which an integer would be rounded."""
    if not is_rounded(matrix.data):
        return []
    by_column = matrix.tocsc()
    return [j for j, values in enumerate(np.split(by_column.data, by_column.indptr[1:-1])) if is_rounded(values)]


def warn_of_rounding(names: Sequence[str]) -> None:
    """Warn of columns with integers that are rounded, by their names."""
    if names:
        warn(f"X: {listed(names)}: {ROUNDED}")
