"""Tree traversal of sparse rows: a few rows at a time are made dense.

Most values are zeros, so trees of sparse rows are deep on one side, and the paths of rows differ much in length. A few
rows descend a tree together. When a row has reached a leaf, the next row takes its place.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.prediction import add_leaf, nodes_of, prefetch_leaf

_DENSE_ROWS, _MOST_CELLS = 32, 2**22  # maximum numbers of rows and of values that are dense at a time
_LANES = 8  # maximum number of rows that descend a tree together


def dense_rows(n_features: int) -> int:
    """Return the number of rows that are dense at a time."""
    return max(1, min(_DENSE_ROWS, _MOST_CELLS // max(n_features, 1)))


class StoredRows(NamedTuple):
    """The stored values of a matrix, row by row; a row contains each column at most once."""

    starts: NDArray[np.int64]  # (n_rows + 1,)
    columns: NDArray[np.integer]  # (n_stored,)
    values: NDArray[np.floating]  # (n_stored,)


class SparseWalk(NamedTuple):
    """Buffers of a thread. `dense` is all zero between batches of rows."""

    dense: NDArray[np.floating]  # (n_dense, n_features)
    leaves: NDArray[np.uint64]  # (n_dense,) the leaf of each row
    lane_rows: NDArray[np.uint64]  # (_LANES,) the rows that descend
    indices: NDArray[np.uint64]  # (_LANES,) their nodes

    @classmethod
    def of(cls, n_features: int, dtype: np.dtype[np.floating]) -> "SparseWalk":
        """Allocate the buffers."""
        dense = np.zeros((dense_rows(n_features), n_features), dtype=dtype)
        leaves = np.empty(len(dense), dtype=np.uint64)
        return cls(dense, leaves, *np.empty((2, _LANES), dtype=np.uint64))


@bare_kernel
def put_rows(stored, first, dense):
    """Write the stored values of the rows from `first` on to a matrix of zeros; return whether any value is missing."""
    n_missing = 0
    for i in range(len(dense)):
        for item in range(stored.starts[first + i], stored.starts[first + i + 1]):
            value = stored.values[item]
            dense[i, stored.columns[item]] = value
            n_missing += value != value
    return n_missing > 0


@bare_kernel
def clear_rows(stored, first, dense):
    """Set the values that `put_rows` has written to zero."""
    for i in range(len(dense)):
        for item in range(stored.starts[first + i], stored.starts[first + i + 1]):
            dense[i, stored.columns[item]] = 0


@bare_device
def _descend(nodes, dense, any_missing, work):
    """Write the index of the leaf of each row of `dense`; `WalkNodes` describes the words of nodes."""
    shift = np.uint64(nodes.shift)
    missing_right = shift - np.uint64(2)
    features, n_rows = (np.uint64(1) << missing_right) - np.uint64(1), np.uint64(len(dense))
    n_active = n_started = min(np.uint64(_LANES), n_rows)
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
            work.leaves[row] = index
            if n_started < n_rows:
                work.lane_rows[lane], work.indices[lane] = n_started, 0
                n_started += np.uint64(1)
            else:
                n_active -= np.uint64(1)
                work.lane_rows[lane], work.indices[lane] = work.lane_rows[n_active], work.indices[n_active]


@bare_kernel
def add_sparse(trees, stored, start, work, total):
    """Add the leaf predictions of all trees (without sets), in order, to the totals of the rows from `start` on."""
    n_dense = len(work.dense)
    for begin in range(0, len(total), n_dense):
        sums = total[begin : begin + n_dense]
        dense = work.dense[: len(sums)]
        any_missing = put_rows(stored, start + begin, dense)
        for tree in range(len(trees.first) - 1):
            nodes = nodes_of(trees.nodes, trees.first, tree)
            predictions = trees.values[trees.first_leaf[tree] : trees.first_leaf[tree + 1]]
            # With the constants True and False, two versions of the loop are compiled, as in `prediction`.
            if any_missing:
                _descend(nodes, dense, True, work)
            else:
                _descend(nodes, dense, False, work)
            for i in range(len(sums)):
                prefetch_leaf(predictions, nodes.numbers[work.leaves[i]])
            for i in range(len(sums)):
                add_leaf(predictions, nodes.numbers[work.leaves[i]], sums[i])
        clear_rows(stored, start + begin, dense)
