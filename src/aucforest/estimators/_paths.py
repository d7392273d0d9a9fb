"""Paths from the root to the leaves: decision paths, and the predictions of leaves for several amounts of shrinkage."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.prediction import goes_right
from aucforest.tree.tree import Tree, find_parents

# Indices are unsigned where it matters, because a negative one would count from the end.
_ONE = np.uint64(1)
# Maximum number of class frequencies of trees that are joined for one call. Joining copies the trees, which pays for
# small ones only: the Python code of a call takes as long as some hundred nodes in the kernel, and other threads wait
# for it.
_MOST_JOINED = 2**19
_NONE = np.empty(0, dtype=np.int32)
_NONE.setflags(write=False)


@bare_device
def _find_set(node, set_nodes):
    """Return the number of the set of a node, or -1 if its split has a threshold."""
    first, after = 0, len(set_nodes)
    while first < after:
        middle = (first + after) >> 1
        if set_nodes[middle] < node:
            first = middle + 1
        else:
            after = middle
    return first if first < len(set_nodes) and set_nodes[first] == node else -1


@bare_kernel
def _fill_paths(parent, leaves, ends, nodes):
    """Write the nodes on the path to the leaf of each row; the path of a row ends before `ends[row]`."""
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


class _Nodes(NamedTuple):
    """What a traversal reads of a `Tree`."""

    left_child: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    set_nodes: NDArray[np.int64]
    sets: NDArray[np.uint64]
    weight: NDArray[np.float64]
    # The class frequencies: all of them, node by node, or those of a sparse matrix with their classes and starts.
    frequencies: NDArray[np.float64]
    classes: NDArray[np.int32]
    starts: NDArray[np.int32]


def _nodes_of(tree: Tree) -> _Nodes:
    """Return what a traversal reads."""
    stored = tree.frequencies
    if isinstance(stored, np.ndarray):
        frequencies, classes, starts = stored.reshape(-1), _NONE, _NONE
    else:
        frequencies, classes, starts = stored.data, stored.indices, stored.indptr
    return _Nodes(
        tree.left_child,
        tree.feature,
        tree.threshold,
        tree.missing_left,
        tree.set_nodes,
        tree.sets,
        tree.weight,
        frequencies,
        classes,
        starts,
    )


@bare_kernel
def _walk(nodes, X, leaves):
    """Write the leaf of each row."""
    for row in range(len(X)):
        node = np.int64(0)
        while nodes.left_child[node] >= 0:
            value, set_number = X[row, nodes.feature[node]], _find_set(node, nodes.set_nodes)
            is_right = goes_right(value, nodes.threshold[node], nodes.missing_left[node], nodes.sets, set_number)
            node = np.int64(nodes.left_child[node]) + np.int64(is_right)
        leaves[row] = node


def apply_tree(tree: Tree, X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the leaf of each row; for one tree this takes less time than packing it for prediction."""
    leaves = np.empty(len(X), dtype=np.int64)
    _walk(_nodes_of(tree), X, leaves)
    return leaves


class JoinedTrees(NamedTuple):
    """The nodes of several trees one after the other; numbers of nodes count from the first one of their tree."""

    start: int  # the place of the first tree in the sequence that was joined
    n_classes: int
    nodes: _Nodes
    first: NDArray[np.int64]  # (n_trees + 1,), the first node of each tree, and the number of all nodes
    first_set: NDArray[np.int64]  # (n_trees + 1,), the same of nodes that split by a set

    @property
    def indices(self) -> range:
        """The places of the trees in the sequence that was joined."""
        return range(self.start, self.start + len(self.first) - 1)


def _join(trees: Sequence[Tree], start: int) -> JoinedTrees:
    """Return the nodes of trees from a place on, of which either all or none have sparse class frequencies."""
    each = [_nodes_of(tree) for tree in trees]
    first, first_set = np.zeros((2, len(each) + 1), dtype=np.int64)
    np.cumsum([len(one.left_child) for one in each], out=first[1:])
    np.cumsum([len(one.set_nodes) for one in each], out=first_set[1:])
    joined = each[0]
    if len(each) > 1:
        n_before = np.cumsum([0, *(len(one.frequencies) for one in each)], dtype=np.int32)
        each = [one._replace(starts=one.starts[:-1] + before) for one, before in zip(each, n_before)]
        joined = _Nodes._make(map(np.concatenate, zip(*each)))
        if len(joined.starts) > 0:
            joined = joined._replace(starts=np.append(joined.starts, n_before[-1]))
        for array in joined:
            array.setflags(write=False)  # as those of trees, or kernels would be compiled again
    return JoinedTrees(start, trees[0].n_classes, joined, first, first_set)


def join_small(trees: Sequence[Tree]) -> list[JoinedTrees]:
    """Return trees together if they are alike and have at most `_MOST_JOINED` frequencies, else each of them alone."""
    is_small = sum(tree.n_nodes * tree.n_classes for tree in trees) <= _MOST_JOINED
    size = len(trees) if is_small and len({type(tree.frequencies) for tree in trees}) == 1 else 1
    return [_join(trees[start : start + size], start) for start in range(0, len(trees), size)]


class Workspace(NamedTuple):
    """Buffers of `add_shrunk`, which a thread uses for all its trees.

    A branch is a node whose out-of-bag rows still have to descend. Of two children that with fewer rows comes first, so
    there are at most log2(n_rows) + 1 branches at the same time, however deep a tree is.
    """

    rows: NDArray[np.uint64]  # (n_rows,), the rows of a branch are consecutive
    right: NDArray[np.uint64]  # (n_rows,), those that go right at a node
    branches: NDArray[np.uint64]  # (n_branches, 3), the node, the place of its first row, and that after its last one
    values: NDArray[np.float64]  # (n_branches + 1, n_columns), class frequencies of the branches; the last is a buffer
    shrunk: NDArray[np.float64]  # (n_branches, n_columns, n_amounts)
    factors: NDArray[np.float64]  # (n_amounts,)

    @classmethod
    def of(cls, n_rows: int, n_columns: int, n_amounts: int) -> "Workspace":
        """Allocate the buffers."""
        n_branches = max(n_rows, 1).bit_length()
        rows, right = np.empty((2, n_rows), dtype=np.uint64)
        branches, values = np.empty((n_branches, 3), dtype=np.uint64), np.empty((n_branches + 1, n_columns))
        return cls(rows, right, branches, values, np.empty((n_branches, n_columns, n_amounts)), np.empty(n_amounts))


@bare_device
def _read_value(nodes, node, n_classes, value):
    """Write the class frequencies of a node, of the last classes only if `value` is shorter."""
    first = n_classes - len(value)
    if len(nodes.starts) == 0:
        for k in range(len(value)):
            value[k] = nodes.frequencies[np.int64(node) * n_classes + first + k]
        return
    for k in range(len(value)):
        value[k] = 0.0
    for index in range(nodes.starts[node], nodes.starts[node + _ONE]):
        if nodes.classes[index] >= first:
            value[nodes.classes[index] - first] = nodes.frequencies[index]


@bare_device
def _split_rows(nodes, node, X, start, stop, rows, right):
    """Bring the rows that go left before those that go right; return the place of the first of these."""
    values, threshold, missing_left = X[nodes.feature[node]], nodes.threshold[node], nodes.missing_left[node]
    set_number = _find_set(np.int64(node), nodes.set_nodes) if len(nodes.set_nodes) > 0 else -1
    middle, n_right = start, np.uint64(0)
    # Without branches, since nothing predicts where a row goes.
    for index in range(start, stop):
        row = rows[index]
        is_right = np.uint64(goes_right(values[row], threshold, missing_left, nodes.sets, set_number))
        rows[middle], right[n_right] = row, row
        middle += _ONE - is_right
        n_right += is_right
    for index in range(n_right):
        rows[middle + index] = right[index]
    return middle


@bare_device
def _shrink_child(nodes, node, child, n_classes, branch, to, amounts, work):
    """Write the class frequencies and the shrunk predictions of a child of a branch to the branch `to`."""
    if len(nodes.starts) > 0:
        _shrink_sparse_child(nodes, node, child, n_classes, branch, to, amounts, work)
        return
    value, of_child = work.values[branch], work.values[len(work.values) - 1]
    above, below, to_value = work.shrunk[branch], work.shrunk[to], work.values[to]
    _read_value(nodes, child, n_classes, of_child)
    for k in range(np.uint64(len(of_child))):
        difference = of_child[k] - value[k]
        to_value[k] = of_child[k]
        for i in range(len(amounts)):
            below[k, i] = above[k, i] + difference * work.factors[i]


@bare_device
def _shrink_sparse_child(nodes, node, child, n_classes, branch, to, amounts, work):
    """Do what `_shrink_child` does for sparse class frequencies: only those of the classes of the node can change.

    The classes of a node are in ascending order, and those of a child are some of them.
    """
    value, shrunk = work.values[to], work.shrunk[to]
    for k in range(np.uint64(len(value) if to != branch else 0)):
        value[k] = work.values[branch, k]
        for i in range(len(amounts)):
            shrunk[k, i] = work.shrunk[branch, k, i]
    first, at, stop = n_classes - len(value), np.uint64(nodes.starts[child]), np.uint64(nodes.starts[child + _ONE])
    for index in range(np.uint64(nodes.starts[node]), np.uint64(nodes.starts[node + _ONE])):
        label, frequency = nodes.classes[index], 0.0
        if at < stop and nodes.classes[at] == label:
            frequency = nodes.frequencies[at]
            at += _ONE
        if label < first:
            continue
        column = np.uint64(label - first)
        difference = frequency - value[column]
        value[column] = frequency
        for i in range(len(amounts)):
            shrunk[column, i] += difference * work.factors[i]


class ShrunkSums(NamedTuple):
    """Sums of out-of-bag predictions of the last classes, over all trees and over those of each variant."""

    whole: NDArray[np.float64]  # (n_rows, n_columns, n_amounts)
    by_variant: NDArray[np.float64]  # (n_variants, n_rows, n_columns) for one amount; without rows if not needed
    n_trees: NDArray[np.int64]  # (n_variants, n_rows) numbers of trees


@bare_device
def _add_to_rows(rows, prediction, weighted_index, sums):
    """Add the predictions of a leaf to the sums of its rows; `sums` are those of one variant."""
    for index in range(np.uint64(len(rows))):
        of_row = sums.whole[rows[index]]
        for k in range(np.uint64(len(of_row))):
            for i in range(prediction.shape[1]):
                of_row[k, i] += prediction[k, i]
    for index in range(np.uint64(len(rows) if len(sums.by_variant) > 0 else 0)):
        of_variant = sums.by_variant[rows[index]]
        for k in range(np.uint64(len(of_variant))):
            of_variant[k] += prediction[k, weighted_index]


@bare_device
def _add_tree(nodes, n_classes, X, counts, amounts, weighted_index, work, sums):
    """Add the predictions of the leaves of out-of-bag rows, which descend the tree together; see `add_shrunk`.

    The sums are those of these rows and of the variant of the tree. Only nodes with rows are shrunk.
    """
    rows, branches, n_rows = work.rows, work.branches, np.uint64(0)
    for row in range(np.uint64(len(counts))):
        rows[n_rows] = row
        is_out = counts[row] == 0
        n_rows += np.uint64(is_out)
        sums.n_trees[row] += np.int64(is_out)
    branches[0, 0], branches[0, 1], branches[0, 2] = 0, 0, n_rows
    _read_value(nodes, np.uint64(0), n_classes, work.values[0])
    for k in range(sums.whole.shape[1]):
        for i in range(len(amounts)):
            work.shrunk[0, k, i] = work.values[0, k]
    branch: Any = 0 if n_rows > np.uint64(0) else -1
    while branch >= 0:
        node, start, stop = branches[branch, 0], branches[branch, 1], branches[branch, 2]
        if nodes.left_child[node] < 0:
            _add_to_rows(rows[start:stop], work.shrunk[branch], weighted_index, sums)
            branch -= 1
            continue
        for i in range(len(amounts)):
            work.factors[i] = nodes.weight[node] / (nodes.weight[node] + amounts[i])
        left = np.uint64(nodes.left_child[node])
        middle = _split_rows(nodes, node, X, start, stop, rows, work.right)
        larger = left + np.uint64(stop - middle > middle - start)
        if start < middle < stop:
            to, smaller = branch + 1, left + left + _ONE - larger
            _shrink_child(nodes, node, smaller, n_classes, branch, to, amounts, work)
            branches[to, 0], branches[to, 1], branches[to, 2] = smaller, start, stop
            if smaller == left:
                branches[to, 2] = branches[branch, 1] = middle
            else:
                branches[to, 1] = branches[branch, 2] = middle
        _shrink_child(nodes, node, larger, n_classes, branch, branch, amounts, work)
        branches[branch, 0] = larger
        branch += np.int64(start < middle < stop)


@bare_kernel
def _add_shrunk(joined, variants, X, counts, amounts, weighted_index, first_row, work, sums):
    """Add the predictions of trees in order; `amounts` is a tuple, so that its length is known to the compiler."""
    nodes, n_classes, rows = joined.nodes, joined.n_classes, slice(first_row, first_row + counts.shape[1])
    for tree in range(len(joined.first) - 1):
        first, first_set, after_set = joined.first[tree], joined.first_set[tree], joined.first_set[tree + 1]
        index, is_dense = joined.start + tree, len(nodes.starts) == 0
        variant = variants[index]
        of_tree = _Nodes(
            nodes.left_child[first:],
            nodes.feature[first:],
            nodes.threshold[first:],
            nodes.missing_left[first:],
            nodes.set_nodes[first_set:after_set],
            nodes.sets[first_set:],
            nodes.weight[first:],
            nodes.frequencies[first * n_classes if is_dense else 0 :],
            nodes.classes,
            nodes.starts[0 if is_dense else first :],
        )
        of_rows = ShrunkSums(sums.whole[rows], sums.by_variant[variant, rows], sums.n_trees[variant, rows])
        _add_tree(of_tree, n_classes, X, counts[index], amounts, weighted_index, work, of_rows)


def add_shrunk(
    joined: Sequence[JoinedTrees],
    variants: NDArray[np.int64],
    amounts: NDArray[np.float64],
    weighted_index: int,
    X: NDArray[np.float64],
    counts: NDArray[np.uint16],
    first_row: int,
    sums: ShrunkSums,
) -> None:
    """Add the out-of-bag predictions of trees, in order, for several amounts of shrinkage, in units of weight.

    `X`, (n_features, n_rows), has the rows from first_row on as its columns, and `counts`, (n_trees, n_rows), how often
    each is in the bootstrap sample of each tree. amounts[weighed_place] is that of the sums by variant. If rows reach
    few leaves, this costs less than shrinking all nodes by every amount.
    """
    given, work = tuple(amounts), Workspace.of(X.shape[1], *sums.whole.shape[1:])
    counts = np.ascontiguousarray(counts)
    for one in joined:
        _add_shrunk(one, variants, X, counts, given, weighted_index, first_row, work, sums)
