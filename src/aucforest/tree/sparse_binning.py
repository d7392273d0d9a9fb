"""Binning of a sparse matrix from its stored values.

The weight of the zeros of a column is the total weight minus the weight of the stored values.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from aucforest._compile import bare_kernel
from aucforest.tree.binning import (
    MAX_BINS,
    BinValues,
    ParallelMap,
    add_all_distinct,
    choose_bins,
    code_dtype,
    find_edges,
    join_bins,
    sample_rows,
)
from aucforest.tree.samples import Codes, SparseCodes, exact_weights

_GROUP_COLUMNS = 64  # number of columns whose bins are chosen in one call


class StoredColumns(NamedTuple):
    """The stored values of a matrix, column by column, each column with ascending rows."""

    starts: NDArray[np.int64]  # (n_features + 1,)
    rows: NDArray[np.int32]  # (n_stored,)
    values: NDArray[np.floating]  # (n_stored,)
    n_rows: int


@bare_kernel
def _find_distinct(starts, values, n_rows, most, known, n_known):
    """Write the distinct values of each column to `known`, and their number to `n_known`.

    If a column has more than `most` distinct values, its number is most + 1. The values of column f start at
    known[starts[f] + f], with space for all stored values and zero.
    """
    for f in range(len(n_known)):
        start, stop, first = starts[f], starts[f + 1], starts[f] + f
        distinct, has_zero = known[first : first + stop - start + 1], stop - start < n_rows
        if has_zero:
            distinct[0] = 0.0
        n_known[f] = add_all_distinct(values[start:stop], min(most, len(distinct)), distinct, np.int64(has_zero))


@bare_kernel
def _encode_stored(columns, first, edges, zeros, starts, codes):
    """Encode the stored values of all columns: write the code of zero, the other codes and where each column starts.

    Values with the code of zero are dropped, and the rows of the other values move to the front of `columns.rows`.
    """
    index = 0
    for f in range(len(zeros)):
        n_bins = first[f + 1] - first[f]
        column_edges = edges[first[f] : first[f] + max(n_bins - 1, 0)]
        zero = np.int64(np.searchsorted(column_edges, 0.0))
        for stored in range(columns.starts[f], columns.starts[f + 1]):
            value = np.float64(columns.values[stored])
            code = np.int64(np.searchsorted(column_edges, value)) if value == value else n_bins
            if code != zero:
                columns.rows[index], codes[index] = columns.rows[stored], code
                index += 1
        zeros[f], starts[f + 1] = zero, index


def _bins_of(columns: StoredColumns, weights: NDArray[np.float64], max_bins: int | None, run: ParallelMap) -> BinValues:
    """Return the bins of all columns; `weights` has the weight of each row, 0 for rows that are not sampled."""
    n_features, n_rows, total = len(columns.starts) - 1, columns.n_rows, weights.sum()
    most = max_bins or n_rows
    few = min(most, MAX_BINS)  # columns with at most this number of distinct values are not sorted

    def bin_group(first: int) -> BinValues:
        starts = columns.starts[first : min(first + _GROUP_COLUMNS, n_features) + 1]
        group_rows = columns.rows[starts[0] : starts[-1]]
        group_values, starts = columns.values[starts[0] : starts[-1]].astype(np.float64), starts - starts[0]
        sizes = np.diff(starts) + 1
        begins = starts[:-1] + np.arange(len(sizes))
        lower, n_bins = np.empty(sizes.sum()), np.empty(len(sizes), dtype=np.int64)
        _find_distinct(starts, group_values, n_rows, few, lower, n_bins)
        upper = lower.copy()
        for f in np.flatnonzero(n_bins > few).tolist():
            column = slice(starts[f], starts[f + 1])
            row_weights = weights[group_rows[column]]
            values = group_values[column][row_weights > 0]
            # Sums of weights are exact, so the total weight of zeros is exactly 0 if there are none.
            value_weights = np.append(row_weights[row_weights > 0], total - row_weights.sum())
            n_values = len(values) + int(value_weights[-1] > 0)
            bins = choose_bins(np.append(values, 0.0)[None, :n_values], value_weights[:n_values], most)
            n_bins[f] = len(bins.lower)
            part = slice(begins[f], begins[f] + n_bins[f])
            lower[part], upper[part] = bins.lower, bins.upper
        is_bin = np.arange(len(lower)) - np.repeat(begins, sizes) < np.repeat(n_bins, sizes)
        return BinValues.of(n_bins, lower[is_bin], upper[is_bin])

    return join_bins(run(bin_group, range(0, n_features, _GROUP_COLUMNS)))


def bin_sparse(
    columns: StoredColumns,
    *,
    max_bins: int | None = MAX_BINS,
    weights: NDArray[np.float64] | None = None,
    run: ParallelMap = map,
) -> tuple[SparseCodes, BinValues]:
    """Bin a sparse matrix like `bin_matrix`; to save memory, the rows of the result overwrite `columns.rows`."""
    n_rows, n_features = columns.n_rows, len(columns.starts) - 1
    sampled = sample_rows(n_rows, max_bins)
    row_weights = np.zeros(n_rows)
    row_weights[sampled] = 1.0 if weights is None else exact_weights(weights[sampled])
    values = _bins_of(columns, row_weights, max_bins, run)
    edges = find_edges(values)
    zeros, starts = np.empty(n_features, dtype=np.int64), np.zeros(n_features + 1, dtype=np.int64)
    codes: NDArray[np.unsignedinteger] = np.empty(len(columns.rows), dtype=code_dtype(int(values.n_bins.max())))
    _encode_stored(columns, values.first, edges, zeros, starts, codes)
    rows, codes = columns.rows[: starts[-1]], codes[: starts[-1]]
    by_row = csc_array((codes, rows, starts), shape=(n_rows, n_features)).tocsr()
    row_starts, features = by_row.indptr.astype(np.int64), by_row.indices.astype(np.int32, copy=False)
    return SparseCodes(zeros, starts, rows, Codes.of(codes), row_starts, features, Codes.of(by_row.data)), values
