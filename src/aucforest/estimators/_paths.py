"""Paths from the root to the leaves: decision paths, and the predictions of leaves for several amounts of shrinkage."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.prediction import TreeNodes, goes_right, split_of
from aucforest.tree.tree import Tree, find_parents

# Indices are unsigned where speed matters, because kernels must check whether a signed index is negative.
_ONE = np.uint64(1)
_EMPTY = np.empty(0, dtype=np.int32)
_EMPTY.setflags(write=False)


@bare_kernel
def _fill_paths(parent, leaves, ends, nodes):
    """Write to `nodes` the path of each row from the root to its leaf. It ends before the index `ends[row]`."""
    for row in range(len(leaves)):
        node, index = leaves[row], ends[row]
        while node >= 0:
            index -= 1
            nodes[index] = node
            node = parent[node]


def path_indicator(tree: Tree, leaves: NDArray[np.int64]) -> csr_matrix:
    """Return the decision paths of samples: a (n_samples, n_nodes) matrix with ones for the nodes on each path."""
    parent, depth = find_parents(tree.left_child, tree.left_child + 1)
    starts = np.concatenate(([0], np.cumsum(depth[leaves] + 1)))
    nodes = np.empty(starts[-1], dtype=np.int64)
    _fill_paths(parent, np.ascontiguousarray(leaves), starts[1:], nodes)
    return csr_matrix((np.ones(len(nodes), dtype=np.int64), nodes, starts), shape=(len(leaves), tree.n_nodes))


class _Frequencies(NamedTuple):
    """Class frequencies of nodes, as a dense or a CSR matrix."""

    n_classes: int
    values: NDArray[np.float64]  # dense: all frequencies, node by node; CSR: data
    classes: NDArray[np.int32]  # dense: empty; CSR: indices
    starts: NDArray[np.int32]  # dense: empty; CSR: indptr

    @classmethod
    def of(cls, tree: Tree) -> "_Frequencies":
        stored = tree.frequencies
        if isinstance(stored, np.ndarray):
            return cls(tree.n_classes, stored.reshape(-1), _EMPTY, _EMPTY)
        return cls(tree.n_classes, stored.data, stored.indices, stored.indptr)


class OutOfBagRows(NamedTuple):
    """Consecutive rows; each tree predicts the rows that are not in its bootstrap sample."""

    first: int  # the index of the first of these rows in the sums
    X: NDArray[np.float64]  # (n_features, n_rows)
    counts: NDArray[np.uint16]  # (n_trees, n_rows), how often each row is in the bootstrap sample of each tree


class ShrunkSums(NamedTuple):
    """Sums of out-of-bag predictions of the last `n_columns` classes, over all trees and over the trees of variants."""

    whole: NDArray[np.float64]  # (n_rows, n_columns, n_amounts), over all trees
    by_variant: NDArray[np.float64]  # (n_variants, n_rows, n_columns), for one amount; n_rows is 0 if not needed
    n_trees: NDArray[np.int64]  # (n_variants, n_rows), the numbers of trees for which a row is out of bag


class ShrinkageBuffers(NamedTuple):
    """Buffers of `add_shrunk`, which a thread uses for all its trees.

    A branch is a node whose out-of-bag rows have not yet been passed to its children. The child with fewer rows comes
    first, so there are at most log2(n_rows) + 1 branches at the same time.
    """

    amounts: tuple[float, ...]  # a tuple, so that the compiler knows the number of amounts
    weighted_index: int  # the index in `amounts` of the amount that the sums by variant use
    rows: NDArray[np.uint64]  # (n_rows,), sorted so that the rows of a branch are consecutive
    right: NDArray[np.uint64]  # (n_rows,), the rows that go to the right child
    branches: NDArray[np.uint64]  # (n_branches, 3), the node, and the start and stop of its rows
    values: NDArray[np.float64]  # (n_branches + 1, n_columns), class frequencies of the branches, and a row for a child
    shrunk: NDArray[np.float64]  # (n_branches, n_columns, n_amounts), shrunk class frequencies of the branches
    factors: NDArray[np.float64]  # (n_amounts,), of the differences between a node and its children

    @classmethod
    def of(cls, n_rows: int, n_columns: int, amounts: NDArray[np.float64], weighted_index: int) -> "ShrinkageBuffers":
        n_branches = max(n_rows, 1).bit_length()
        rows, right = np.empty((2, n_rows), dtype=np.uint64)
        branches, values = np.empty((n_branches, 3), dtype=np.uint64), np.empty((n_branches + 1, n_columns))
        shrunk, factors = np.empty((n_branches, n_columns, len(amounts))), np.empty(len(amounts))
        return cls(tuple(amounts), weighted_index, rows, right, branches, values, shrunk, factors)


@bare_device
def _read_value(frequencies, node, value):
    """Write the frequencies of the last len(value) classes of a node to `value`."""
    first = frequencies.n_classes - len(value)
    if len(frequencies.starts) == 0:
        for k in range(len(value)):
            value[k] = frequencies.values[np.int64(node) * frequencies.n_classes + first + k]
        return
    for k in range(len(value)):
        value[k] = 0.0
    for index in range(frequencies.starts[node], frequencies.starts[node + _ONE]):
        if frequencies.classes[index] >= first:
            value[frequencies.classes[index] - first] = frequencies.values[index]


@bare_device
def _split_rows(nodes, node, X, rows, right):
    """Partition `rows` into rows that go left and then rows that go right; return the number of rows that go left."""
    values, split = X[nodes.feature[node]], split_of(nodes, node)
    n_left, n_right = np.uint64(0), np.uint64(0)
    # The loop has no conditional jumps, because the processor could not predict to which side a row goes.
    for index in range(np.uint64(len(rows))):
        row = rows[index]
        is_right = np.uint64(goes_right(split, values[row]))
        rows[n_left], right[n_right] = row, row
        n_left += _ONE - is_right
        n_right += is_right
    for index in range(n_right):
        rows[n_left + index] = right[index]
    return n_left


@bare_device
def _shrink_child(frequencies, child, branch, to, work):
    """Write the class frequencies and the shrunk predictions of a child of `branch` to the branch `to`."""
    value, child_value = work.values[branch], work.values[len(work.values) - 1]
    above, below, to_value = work.shrunk[branch], work.shrunk[to], work.values[to]
    _read_value(frequencies, child, child_value)
    for k in range(np.uint64(len(child_value))):
        difference = child_value[k] - value[k]
        to_value[k] = child_value[k]
        for i in range(len(work.amounts)):
            below[k, i] = above[k, i] + difference * work.factors[i]


@bare_device
def _add_to_rows(rows, prediction, weighted_index, sums):
    """Add the predictions of a leaf to the sums of its rows; `sums.by_variant` are the sums of one variant."""
    for index in range(np.uint64(len(rows))):
        row_sums = sums.whole[rows[index]]
        for k in range(np.uint64(len(row_sums))):
            for i in range(prediction.shape[1]):
                row_sums[k, i] += prediction[k, i]
    for index in range(np.uint64(len(rows) if len(sums.by_variant) > 0 else 0)):
        variant_sums = sums.by_variant[rows[index]]
        for k in range(np.uint64(len(variant_sums))):
            variant_sums[k] += prediction[k, weighted_index]


@bare_device
def _start_tree(frequencies, counts, work, n_trees):
    """Make the root the only branch, with all out-of-bag rows; return its index 0, or -1 if there are no such rows."""
    rows, branches, n_rows = work.rows, work.branches, np.uint64(0)
    for row in range(np.uint64(len(counts))):
        rows[n_rows] = row
        is_out = counts[row] == 0
        n_rows += np.uint64(is_out)
        n_trees[row] += np.int64(is_out)
    branches[0, 0], branches[0, 1], branches[0, 2] = 0, 0, n_rows
    _read_value(frequencies, np.uint64(0), work.values[0])
    for k in range(work.shrunk.shape[1]):
        for i in range(len(work.amounts)):
            work.shrunk[0, k, i] = work.values[0, k]
    return np.int64(0) if n_rows > np.uint64(0) else np.int64(-1)


@bare_kernel
def _add_tree(nodes, frequencies, X, counts, work, sums):
    """Add the out-of-bag predictions of one tree to `sums`, with only the rows of X and the variant of the tree."""
    rows, branches = work.rows, work.branches
    branch: Any = _start_tree(frequencies, counts, work, sums.n_trees)
    while branch >= 0:
        node, start, stop = branches[branch, 0], branches[branch, 1], branches[branch, 2]
        if nodes.left_child[node] < 0:
            _add_to_rows(rows[start:stop], work.shrunk[branch], work.weighted_index, sums)
            branch -= 1
            continue
        for i in range(len(work.amounts)):
            work.factors[i] = nodes.weight[node] / (nodes.weight[node] + work.amounts[i])
        left = np.uint64(nodes.left_child[node])
        middle = start + _split_rows(nodes, node, X, rows[start:stop], work.right)
        # The child with fewer rows becomes a new branch, if it has any. The other child replaces its parent.
        larger = left + np.uint64(stop - middle > middle - start)
        if start < middle < stop:
            to, smaller = branch + 1, left + left + _ONE - larger
            _shrink_child(frequencies, smaller, branch, to, work)
            branches[to, 0], branches[to, 1], branches[to, 2] = smaller, start, stop
            if smaller == left:
                branches[to, 2] = branches[branch, 1] = middle
            else:
                branches[to, 1] = branches[branch, 2] = middle
        _shrink_child(frequencies, larger, branch, branch, work)
        branches[branch, 0] = larger
        branch += np.int64(start < middle < stop)


def add_shrunk(
    trees: Sequence[Tree],
    variants: Sequence[int],
    rows: OutOfBagRows,
    amounts: NDArray[np.float64],
    weighted_index: int,
    sums: ShrunkSums,
) -> None:
    """Add the out-of-bag predictions of trees, one after the other, for several amounts of shrinkage.

    Amounts have the unit of the weights of nodes. The sums by variant use amounts[weighted_index]. To save time, only
    nodes that rows reach are shrunk.
    """
    work = ShrinkageBuffers.of(rows.X.shape[1], sums.whole.shape[1], amounts, weighted_index)
    in_sums = slice(rows.first, rows.first + rows.X.shape[1])
    for tree, variant, counts in zip(trees, variants, np.ascontiguousarray(rows.counts)):
        tree_sums = ShrunkSums(sums.whole[in_sums], sums.by_variant[variant, in_sums], sums.n_trees[variant, in_sums])
        _add_tree(TreeNodes.of(tree), _Frequencies.of(tree), rows.X, counts, work, tree_sums)
