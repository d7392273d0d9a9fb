"""Sparse matrices: validation, stored values by row or column, and conversion to dense blocks of rows or columns."""

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray, spmatrix

from aucforest._memory import check_memory
from aucforest.tree.sparse_binning import StoredColumns
from aucforest.tree.sparse_prediction import StoredRows, clear_rows, dense_rows, put_rows

_BLOCK_CELLS = 2**22  # cells of a dense block of columns: 32 MiB of float64
# A dense block of rows has at most this many cells, to fit into the cache of a core, but at least `dense_rows` rows.
_CACHED_CELLS = 2**18
# Bytes of a stored value after binning: a code of one byte and an index of four bytes, stored by row and by column.
_CODED_BYTES = 10


def as_csr(matrix: sparray | spmatrix) -> sparray | spmatrix:
    """Return a sparse matrix as CSR; raise ValueError if it is not 2D, is complex, or has an index out of range.

    scipy does not check indices when it converts or slices a matrix. Invalid indices would access other memory.
    """
    if matrix.ndim != 2:
        raise ValueError(f"Expected 2D input, but X is a sparse array of the shape {matrix.shape}")
    if matrix.dtype.kind == "c":
        raise ValueError("Complex data not supported: X and y must be real")
    try:
        if matrix.format == "coo":
            type(matrix)((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)  # this checks the indices
        elif hasattr(matrix, "check_format"):
            copy(matrix).check_format(full_check=True)  # the check may shorten the arrays of the copy
    except ValueError as error:
        raise ValueError(f"X is a damaged sparse matrix, build it again: {error}") from error
    return matrix.tocsr()


class SparseRows:
    """A CSR matrix of floats with at most one stored value per cell, which is converted to dense matrices in blocks."""

    def __init__(self, matrix: sparray | spmatrix) -> None:
        # The matrix is new, because flags of the given one (sorted indices, no duplicates) may be outdated.
        self.matrix = type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        if not self.matrix.has_canonical_format:
            # This sorts the indices, but keeps the order of duplicates, on which their rounded sum depends.
            self.matrix = self.matrix.tocsc().tocsr()
            self.matrix.sum_duplicates()
        # If float32 represents all values exactly, it is used, as it takes half of the memory.
        with np.errstate(over="ignore"):
            as_float32 = self.matrix.data.astype(np.float32)
        if np.array_equal(as_float32, self.matrix.data, equal_nan=True):
            self.matrix.data = as_float32
        self.shape: tuple[int, int] = matrix.shape
        self.dtype = self.matrix.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Return the given rows, a slice or an array of indices, as a dense matrix."""
        return self.matrix[rows].toarray()

    def blocks(self, rows: slice) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield slices of `rows`, each with its rows as a dense matrix, which the next block overwrites."""
        start, stop = rows.start, rows.stop
        n_rows = min(max(_CACHED_CELLS // max(self.shape[1], 1), dense_rows(self.shape[1])), stop - start)
        buffer = np.zeros((n_rows, self.shape[1]))
        for first in range(start, stop, n_rows):
            dense = buffer[: min(n_rows, stop - first)]
            put_rows(self.stored, first, dense)
            yield slice(first, first + len(dense)), dense
            clear_rows(self.stored, first, dense)

    @cached_property
    def stored(self) -> StoredRows:
        """The stored values by row, in array types for which kernels are compiled; read-only arrays are copied."""
        matrix, index_type = self.matrix, np.int32 if max(self.matrix.nnz, *self.shape) < 2**31 else np.int64
        arrays = (matrix.indptr, np.int64), (matrix.indices, index_type), (matrix.data, matrix.dtype)
        return StoredRows(*(np.require(array, dtype, ["C", "A", "W"]) for array, dtype in arrays))

    def take(self, rows: NDArray[np.int64]) -> "SparseRows":
        """Return the given rows as a sparse matrix."""
        return SparseRows(self.matrix[rows])

    @property
    def is_very_sparse(self) -> bool:
        """Whether the codes of stored values with their indices take less memory than the codes of all values."""
        return self.matrix.nnz * _CODED_BYTES < np.prod(self.shape, dtype=np.float64)

    @property
    def most_stored(self) -> int:
        """The maximum number of stored values of a column."""
        return int(np.bincount(self.matrix.indices, minlength=1).max())

    def columns(self, rows: NDArray[np.int64] | None) -> Iterator[NDArray[Any]]:
        """Yield dense blocks of consecutive columns, with the given rows or with all rows if `rows` is None."""
        by_column = (self.matrix if rows is None else self.matrix[rows]).tocsc()
        n_rows, n_columns = by_column.shape
        step = max(1, _BLOCK_CELLS // n_rows)
        for start in range(0, n_columns, step):
            yield by_column[:, start : start + step].toarray(order="F")

    def stored_columns(self, rows: NDArray[np.int64] | None) -> StoredColumns:
        """Return the stored values by column, those in the given rows or in all rows if `rows` is None."""
        by_column = (self.matrix if rows is None else self.matrix[rows]).tocsc()
        starts, n_rows = by_column.indptr.astype(np.int64, copy=False), by_column.shape[0]
        return StoredColumns(starts, by_column.indices.astype(np.int32, copy=False), by_column.data, n_rows)

    def toarray(self) -> NDArray[Any]:
        """Return a dense copy; ValueError if it would take more than half of the machine's memory."""
        what = f"a dense copy of the sparse X, {self.shape[0]:,} samples and {self.shape[1]:,} features,"
        check_memory(float(self.dtype.itemsize) * np.prod(self.shape, dtype=np.float64), what, "pass fewer samples")
        return self[:]


def as_dense(X: NDArray[Any] | SparseRows) -> NDArray[Any]:
    """Return a sparse matrix as a dense copy and a dense matrix unchanged; see `SparseRows.toarray`."""
    return X.toarray() if isinstance(X, SparseRows) else X


def dense_blocks(X: NDArray[Any] | SparseRows, rows: slice) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of rows and their values: all rows at once if X is dense, a few at a time if it is sparse."""
    if isinstance(X, SparseRows):
        yield from X.blocks(rows)
    else:
        yield rows, np.require(X[rows], np.float64, ["C", "W"])
