"""The way from the root to a leaf, and what the nodes on it make of the leaves of a shrunk tree."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from aucforest._compile import bare_kernel
from aucforest.tree.samples import has_code
from aucforest.tree.tree import MISSING_CODE, Tree

# Shrunk frequencies that are kept at a time, 256 MiB: of more classes, those of some after those of others.
_MOST_SHRUNK = 2**25


@bare_kernel
def _walk_out_of_bag(left_child, feature, threshold, missing_left, set_nodes, sets, X, counts, leaves):
    """Fill the leaves of rows out of bag."""
    for row in range(len(X)):
        node = np.int64(0)
        while counts[row] == 0 and left_child[node] >= 0:
            value, place = X[row, feature[node]], np.searchsorted(set_nodes, node)
            if place < len(set_nodes) and set_nodes[place] == node:
                goes_left = has_code(sets[place], np.int64(value) if value == value else MISSING_CODE)
            else:
                goes_left = missing_left[node] if value != value else value <= threshold[node]
            node = np.int64(left_child[node]) + (0 if goes_left else 1)
        leaves[row] = node


def leaves_out_of_bag(tree: Tree, X: NDArray[np.float64], counts: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return the leaves of rows, 0 for those in the bootstrap sample, where `counts` is above 0.

    Of few rows this takes less time than to lay a tree out for prediction.
    """
    leaves = np.empty(len(X), dtype=np.int64)
    nodes = tree.left_child, tree.feature, tree.threshold, tree.missing_left
    _walk_out_of_bag(*nodes, tree.set_nodes, tree.sets, X, counts, leaves)
    return leaves


@bare_kernel
def _find_parents(left_child, parent, depth):
    """Fill the parent of every node, -1 for the root, and its depth; return the greatest."""
    parent[0], depth[0], most = -1, 0, 0
    for node in range(len(left_child)):
        most = max(most, depth[node])
        if left_child[node] >= 0:
            for child in range(left_child[node], left_child[node] + 2):
                parent[child], depth[child] = node, depth[node] + 1
    return most


@bare_kernel
def _fill_paths(parent, leaves, ends, nodes):
    """Fill the nodes on the way to every leaf; those of a row end before `ends`."""
    for row in range(len(leaves)):
        node, place = leaves[row], ends[row]
        while node >= 0:
            place -= 1
            nodes[place] = node
            node = parent[node]


def path_indicator(tree: Tree, leaves: NDArray[np.int64]) -> csr_matrix:
    """Return the nodes that rows pass, from the root to their leaves: a (n_samples, n_nodes) matrix of ones."""
    parent, depth = np.empty((2, tree.n_nodes), dtype=np.int64)
    _find_parents(tree.left_child, parent, depth)
    starts = np.concatenate(([0], np.cumsum(depth[leaves] + 1)))
    nodes = np.empty(starts[-1], dtype=np.int64)
    _fill_paths(parent, np.ascontiguousarray(leaves), starts[1:], nodes)
    return csr_matrix((np.ones(len(nodes), dtype=np.int64), nodes, starts), shape=(len(leaves), tree.n_nodes))


@bare_kernel
def _add_paths(parent, depth, weight, value, amounts, leaves, counts, buffers, total, n_trees):
    """Add what the leaf of every row out of bag predicts; nodes on the way to no such leaf are left out.

    `amounts` is a tuple, whose length compilers know. Leaves are taken in the order of the nodes, so that what was
    computed for the way to one mostly serves the next: `held` is the node of every depth whose shrunk frequencies are
    there.
    """
    first, after, path, held, factors, shrunk = buffers
    first[:], held[:] = -1, -1
    for row in range(len(leaves)):
        if counts[row] == 0:
            first[leaves[row]], after[row] = row, first[leaves[row]]
            n_trees[row] += 1
    held[0] = 0
    for k in range(shrunk.shape[1]):
        shrunk[0, k] = value[0, k]
    for leaf in range(len(first)):
        row, node, n_new = first[leaf], leaf, 0
        while row >= 0 and held[depth[node]] != node:
            path[n_new] = node
            n_new += 1
            node = parent[node]
        for step in range(n_new - 1, -1, -1):
            above, node = node, path[step]
            held[depth[node]] = node
            for i in range(len(amounts)):
                factors[i] = weight[above] / (weight[above] + amounts[i])
            before, below = shrunk[depth[above]], shrunk[depth[node]]
            for k in range(len(below)):
                difference = value[node, k] - value[above, k]
                for i in range(len(amounts)):
                    below[k, i] = before[k, i] + difference * factors[i]
        found = shrunk[depth[leaf]]
        while row >= 0:
            sums = total[row]
            for k in range(len(sums)):
                for i in range(len(amounts)):
                    sums[k, i] += found[k, i]
            row = after[row]


def add_shrunk(
    tree: Tree,
    amounts: NDArray[np.float64],
    leaves: NDArray[np.int64],
    counts: NDArray[np.uint16],
    total: NDArray[np.float64],
    n_trees: NDArray[np.int64],
) -> None:
    """Add what the leaves of out-of-bag rows predict when shrunk by several amounts, in units of weight.

    `counts` says how often each row is in the bootstrap sample. `total`, (n_rows, n_last_classes, n_amounts), is added
    to, and `n_trees` raised by one. Cheaper than to shrink all nodes by every amount where rows reach few leaves.
    """
    parent, depth, first = np.empty((3, tree.n_nodes), dtype=np.int64)
    n_columns, n_held = total.shape[1], _find_parents(tree.left_child, parent, depth) + 1
    value = tree.value[:, tree.n_classes - n_columns :]
    path, held = np.empty((2, n_held), dtype=np.int64)
    after, factors = np.empty(len(leaves), dtype=np.int64), np.empty(len(amounts))
    step = max(1, _MOST_SHRUNK // (n_held * len(amounts)))
    for start in range(0, n_columns, step):
        some = slice(start, start + step)
        sums, times = total[:, some], n_trees if start == 0 else np.zeros_like(n_trees)
        buffers = first, after, path, held, factors, np.empty((n_held, *sums.shape[1:]))
        arrays = parent, depth, tree.weight, value[:, some]
        _add_paths(*arrays, tuple(amounts), leaves, counts, buffers, sums, times)
