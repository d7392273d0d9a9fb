"""Sparse matrices whose rows or columns are converted to dense blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray, spmatrix

from aucforest._memory import check_memory

# Cells of a dense block: 32 MiB of float64.
_BLOCK_CELLS = 2**22
_DAMAGED = "X is a damaged sparse matrix, build it again:"


def as_csr(matrix: sparray | spmatrix) -> sparray | spmatrix:
    """Return a sparse matrix as CSR; raise ValueError if it has an index outside of its shape.

    scipy checks no index when it converts or slices a matrix, and would read or write memory that is not its own.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        _check_compressed(matrix)
    elif matrix.format == "coo" and matrix.ndim == 2:
        _check_indices("row", matrix.row, matrix.shape[0])
        _check_indices("column", matrix.col, matrix.shape[1])
    return matrix.tocsr()


def _check_compressed(matrix: Any) -> None:
    """Raise ValueError for a CSR, CSC or BSR matrix with an index, or a pointer to its entries, out of range."""
    along, across = ("column", "row") if matrix.format == "csc" else ("row", "column")
    n_along, n_across = matrix.shape[::-1] if matrix.format == "csc" else matrix.shape
    if matrix.format == "bsr":
        height, width = matrix.blocksize
        along, across, n_along, n_across = "block row", "block column", n_along // height, n_across // width
    ends, n_stored = matrix.indptr, len(matrix.indices)
    rises = len(ends) == n_along + 1 and ends[0] == 0 and ends[-1] <= n_stored and bool(np.all(ends[1:] >= ends[:-1]))
    if not rises:
        raise ValueError(f"{_DAMAGED} its {along} pointers do not rise from 0 to {n_stored} or less")
    _check_indices(across, matrix.indices[: ends[-1]], n_across)


def _check_indices(kind: str, indices: NDArray[Any], n: int) -> None:
    """Raise ValueError for an index out of range."""
    if indices.size > 0 and not 0 <= (low := indices.min()) <= (high := indices.max()) < n:
        raise ValueError(f"{_DAMAGED} it has the {kind} index {low if low < 0 else high}, but {n:,} {kind}s")


class SparseRows:
    """A CSR matrix of floats that is converted to a dense one in blocks of rows or columns."""

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
