"""Tree traversal of sparse rows: few rows are dense at a time, and each that is in a leaf makes room for the next one.

Trees of sparse rows are deep on one side, since most values are zeros, so that the paths of rows differ much in length.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.prediction import add_leaf, nodes_of, prefetch_leaf

# Rows that are dense at a time if they have at most _MOST_CELLS values, and those of them that descend together.
_DENSE_ROWS, _MOST_CELLS, _LANES = 32, 2**22, 8


def dense_rows(n_features: int) -> int:
    """Return the number of rows that are dense at a time."""
    return max(1, min(_DENSE_ROWS, _MOST_CELLS // max(n_features, 1)))


class StoredRows(NamedTuple):
    """The stored values of a matrix, row by row; no column is twice in a row."""

    starts: NDArray[np.int64]  # (n_rows + 1,)
    columns: NDArray[np.integer]  # (n_stored,)
    values: NDArray[np.floating]  # (n_stored,)


class SparseWalk(NamedTuple):
    """Buffers of a thread. `dense` is all zero between rows."""

    dense: NDArray[np.floating]  # (n_dense, n_features)
    found: NDArray[np.uint64]  # (n_dense,) the leaves of the rows
    lane_rows: NDArray[np.uint64]  # (_LANES,) the rows that descend
    indices: NDArray[np.uint64]  # (_LANES,) their nodes

    @classmethod
    def of(cls, n_features: int, dtype: np.dtype[np.floating]) -> "SparseWalk":
        """Allocate the buffers."""
        dense = np.zeros((dense_rows(n_features), n_features), dtype=dtype)
        found = np.empty(len(dense), dtype=np.uint64)
        return cls(dense, found, *np.empty((2, _LANES), dtype=np.uint64))


@bare_kernel
def put_rows(stored, first, dense):
    """Write the stored values of the rows from `first` on to a matrix of zeros; return whether any is missing."""
    n_missing = 0
    for i in range(len(dense)):
        for at in range(stored.starts[first + i], stored.starts[first + i + 1]):
            value = stored.values[at]
            dense[i, stored.columns[at]] = value
            n_missing += value != value
    return n_missing > 0


@bare_kernel
def clear_rows(stored, first, dense):
    """Set what `put_rows` has written to zero."""
    for i in range(len(dense)):
        for at in range(stored.starts[first + i], stored.starts[first + i + 1]):
            dense[i, stored.columns[at]] = 0


@bare_device
def _descend(nodes, dense, any_missing, work):
    """Write the leaves of all rows of `dense`, by their places in the tree; `WalkNodes` says what words are."""
    shift = np.uint64(nodes.shift)
    missing_right = shift - np.uint64(2)
    features, n_rows = (np.uint64(1) << missing_right) - np.uint64(1), np.uint64(len(dense))
    n_active = min(np.uint64(_LANES), n_rows)
    n_started = n_active
    for i in range(n_active):
        work.lane_rows[i], work.indices[i] = i, 0
    while n_active > np.uint64(0):
        lane = np.uint64(0)
        while lane < n_active:
            index, row = work.indices[lane], work.lane_rows[lane]
            word = np.uint64(nodes.words[index])
            if word != np.uint64(0):
                value = dense[row, word & features]
                goes_right = np.uint64(value > nodes.thresholds[index])
                if any_missing:
                    goes_right |= np.uint64(value != value) & (word >> missing_right)
                work.indices[lane] = index + (word >> shift) + goes_right
                lane += np.uint64(1)
                continue
            work.found[row] = index
            if n_started < n_rows:
                work.lane_rows[lane], work.indices[lane] = n_started, 0
                n_started += np.uint64(1)
            else:
                n_active -= np.uint64(1)
                work.lane_rows[lane], work.indices[lane] = work.lane_rows[n_active], work.indices[n_active]


@bare_kernel
def add_sparse(nodes, first, values, first_leaf, stored, start, work, total):
    """Add the leaf frequencies of all trees, in order, to the totals of the rows from `start` on.

    The trees have no sets; the arguments that are not explained above are those of `prediction.add_probabilities`.
    """
    n_dense = len(work.dense)
    for begin in range(0, len(total), n_dense):
        sums = total[begin : begin + n_dense]
        dense = work.dense[: len(sums)]
        any_missing = put_rows(stored, start + begin, dense)
        for tree in range(len(first) - 1):
            tree_nodes, leaf_values = nodes_of(nodes, first, tree), values[first_leaf[tree] : first_leaf[tree + 1]]
            # The constants compile two versions of the loop, as in `prediction`.
            if any_missing:
                _descend(tree_nodes, dense, True, work)
            else:
                _descend(tree_nodes, dense, False, work)
            for i in range(len(sums)):
                prefetch_leaf(leaf_values, tree_nodes.numbers[work.found[i]])
            for i in range(len(sums)):
                add_leaf(leaf_values, tree_nodes.numbers[work.found[i]], sums[i])
        clear_rows(stored, start + begin, dense)
