"""Sparse matrices whose rows or columns are converted to dense blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray, spmatrix

from aucforest._memory import check_memory

# Cells of a dense block: 32 MiB of float64.
_BLOCK_CELLS = 2**22


class SparseRows:
    """A sparse matrix that is converted to a dense one in blocks of rows or columns.

    Parameters
    ----------
    matrix : CSR matrix or array of shape (n_samples, n_features), float32 or float64
        Values that are not stored are zeros. Stored NaNs are missing values.
    """

    def __init__(self, matrix: sparray | spmatrix) -> None:
        # float32, if that is exact, halves the memory of dense blocks.
        with np.errstate(over="ignore"):
            narrow = matrix.astype(np.float32)
        self.matrix = narrow if np.array_equal(narrow.data, matrix.data, equal_nan=True) else matrix
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = self.matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Return the given rows, a slice or an array of indices, as a dense matrix."""
        dense: NDArray[Any] = self.matrix[rows].toarray()
        return dense

    @property
    def block_rows(self) -> int:
        """The number of rows of a dense block."""
        return max(1, _BLOCK_CELLS // max(self.shape[1], 1))

    @property
    def most_stored(self) -> int:
        """The maximum number of stored values of a column."""
        return int(np.bincount(self.matrix.indices, minlength=1).max())

    def columns(self, rows: NDArray[np.int64] | None) -> Iterator[NDArray[Any]]:
        """Yield dense blocks of consecutive columns, in the given rows or in all rows if `rows` is None."""
        by_column = (self.matrix if rows is None else self.matrix[rows]).tocsc()
        n_rows, n_columns = by_column.shape
        step = max(1, _BLOCK_CELLS // n_rows)
        for start in range(0, n_columns, step):
            yield by_column[:, start : start + step].toarray(order="F")

    def toarray(self) -> NDArray[Any]:
        """Return a dense copy; ValueError if it would take more than half of the machine's memory."""
        what = f"a dense copy of the sparse X, {self.shape[0]:,} samples and {self.shape[1]:,} features,"
        check_memory(float(self.dtype.itemsize) * np.prod(self.shape, dtype=np.float64), what, "pass fewer samples")
        return self[:]


def as_dense(X: NDArray[Any] | SparseRows) -> NDArray[Any]:
    """Return a sparse matrix as a dense copy and a dense matrix unchanged; see `SparseRows.toarray`."""
    return X.toarray() if isinstance(X, SparseRows) else X
