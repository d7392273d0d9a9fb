"""Sparse matrices: rows and columns of them as dense blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray, spmatrix

from aucforest._memory import check_memory

# Cells of a dense block, 32 MiB.
_BLOCK_CELLS = 2**22


class SparseRows:
    """A sparse matrix that is read as a dense one, some rows or columns at a time.

    Parameters
    ----------
    matrix : CSR matrix or array of shape (n_samples, n_features), float32 or float64
        Values that are not stored are zeros. Stored NaNs are missing values.
    """

    def __init__(self, matrix: sparray | spmatrix) -> None:
        # float32 where it holds all values: dense blocks then take half the memory and are read as they are
        with np.errstate(over="ignore"):
            narrow = matrix.astype(np.float32)
        self.matrix = narrow if np.array_equal(narrow.data, matrix.data, equal_nan=True) else matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = self.matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Return some rows, given by a slice or an array, as a dense matrix."""
        dense: NDArray[Any] = self.matrix[rows].toarray()
        return dense

    @property
    def block_rows(self) -> int:
        """How many rows should be made dense at a time."""
        return max(1, _BLOCK_CELLS // max(self.shape[1], 1))

    @property
    def most_stored(self) -> int:
        """How many values are stored in the fullest column."""
        return int(np.bincount(self.matrix.indices, minlength=1).max())

    def columns(self, rows: NDArray[np.int64] | None) -> Iterator[NDArray[Any]]:
        """Yield the columns as dense matrices of some at a time; of some rows, None for all."""
        by_column = (self.matrix if rows is None else self.matrix[rows]).tocsc()
        n_rows, n_columns = by_column.shape
        step = max(1, _BLOCK_CELLS // n_rows)
        for start in range(0, n_columns, step):
            yield by_column[:, start : start + step].toarray(order="F")

    def toarray(self) -> NDArray[Any]:
        """Return all rows as a dense matrix; a ValueError where it takes more than half of the machine's memory."""
        what = f"a dense copy of the sparse X, {self.shape[0]:,} samples and {self.shape[1]:,} features,"
        check_memory(float(self.dtype.itemsize) * np.prod(self.shape, dtype=np.float64), what, "pass fewer samples")
        return self[:]


def as_dense(X: NDArray[Any] | SparseRows) -> NDArray[Any]:
    """Return a matrix as it is, and a sparse one as a dense copy; see `SparseRows.toarray`."""
    return X.toarray() if isinstance(X, SparseRows) else X
