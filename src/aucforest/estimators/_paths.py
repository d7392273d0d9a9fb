"""Paths from the root to the leaves: decision paths, and the predictions of leaves for several amounts of shrinkage."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from aucforest._compile import bare_device, bare_kernel
from aucforest.tables.sparse import SparseRows
from aucforest.tree.prediction import goes_right
from aucforest.tree.tree import Tree, find_parents

# Maximum number of shrunk class frequencies in memory, 256 MiB; if there are more, classes are processed in groups.
_MOST_SHRUNK = 2**25


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
def _walk_out_of_bag(left_child, feature, threshold, missing_left, set_nodes, sets, X, counts, leaves):
    """Write the leaf of each out-of-bag row, and 0 for the other rows."""
    for row in range(len(X)):
        node = np.int64(0)
        while counts[row] == 0 and left_child[node] >= 0:
            value, set_number = X[row, feature[node]], _find_set(node, set_nodes)
            is_right = goes_right(value, threshold[node], missing_left[node], sets, set_number)
            node = np.int64(left_child[node]) + np.int64(is_right)
        leaves[row] = node


def leaves_out_of_bag(tree: Tree, X: NDArray[np.float64] | SparseRows, counts: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Return the leaf of each row, and 0 for rows in the bootstrap sample, for which `counts` is above 0.

    For few rows this takes less time than packing the tree for prediction.
    """
    leaves, rows = np.empty(len(X), dtype=np.int64), slice(0, len(X))
    for some, block in X.blocks(rows, np.dtype(np.float64)) if isinstance(X, SparseRows) else [(rows, X)]:
        _walk_out_of_bag(
            tree.left_child,
            tree.feature,
            tree.threshold,
            tree.missing_left,
            tree.set_nodes,
            tree.sets,
            block,
            counts[some],
            leaves[some],
        )
    return leaves


@bare_kernel
def _fill_paths(parent, leaves, ends, nodes):
    """Write the nodes on the path to the leaf of each row; the path of a row ends before `ends[row]`."""
    for row in range(len(leaves)):
        node, place = leaves[row], ends[row]
        while node >= 0:
            place -= 1
            nodes[place] = node
            node = parent[node]


def path_indicator(tree: Tree, leaves: NDArray[np.int64]) -> csr_matrix:
    """Return the decision paths of samples: a (n_samples, n_nodes) matrix with ones for the nodes on each path."""
    parent, depth = find_parents(tree.left_child, tree.left_child + 1)
    starts = np.concatenate(([0], np.cumsum(depth[leaves] + 1)))
    nodes = np.empty(starts[-1], dtype=np.int64)
    _fill_paths(parent, np.ascontiguousarray(leaves), starts[1:], nodes)
    return csr_matrix((np.ones(len(nodes), dtype=np.int64), nodes, starts), shape=(len(leaves), tree.n_nodes))


@bare_kernel
def _add_paths(parent, depth, weight, value, amounts, leaves, counts, buffers, total, n_trees):
    """Add the shrunk predictions of the leaves of all out-of-bag rows; only nodes on the paths to them are computed.

    `amounts` is a tuple, so that its length is known to the compiler. Leaves are visited in the order of the nodes, so
    that consecutive paths share most nodes: shrunk[d] has the frequencies of the node held[d] of depth d.
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
        prediction = shrunk[depth[leaf]]
        while row >= 0:
            sums = total[row]
            for k in range(len(sums)):
                for i in range(len(amounts)):
                    sums[k, i] += prediction[k, i]
            row = after[row]


def add_shrunk(
    tree: Tree,
    amounts: NDArray[np.float64],
    leaves: NDArray[np.int64],
    counts: NDArray[np.uint16],
    total: NDArray[np.float64],
    n_trees: NDArray[np.int64],
) -> None:
    """Add the predictions of the leaves of out-of-bag rows for several amounts of shrinkage, in units of weight.

    `counts` is how often each row is in the bootstrap sample. The predictions of the last classes are added to `total`,
    (n_rows, n_last_classes, n_amounts), and 1 to `n_trees`. If rows reach few leaves, this costs less than shrinking
    all nodes by every amount.
    """
    parent, depth = find_parents(tree.left_child, tree.left_child + 1)
    n_columns, n_held = total.shape[1], int(depth.max()) + 1
    value = tree.value[:, tree.n_classes - n_columns :]
    first, after = np.empty(tree.n_nodes, dtype=np.int64), np.empty(len(leaves), dtype=np.int64)
    (path, held), factors = np.empty((2, n_held), dtype=np.int64), np.empty(len(amounts))
    step = max(1, _MOST_SHRUNK // (n_held * len(amounts)))
    for start in range(0, n_columns, step):
        columns = slice(start, start + step)
        sums = total[:, columns]
        counted = n_trees if start == 0 else np.zeros_like(n_trees)
        buffers = first, after, path, held, factors, np.empty((n_held, *sums.shape[1:]))
        _add_paths(
            parent, depth, tree.weight, value[:, columns], tuple(amounts), leaves, counts, buffers, sums, counted
        )
