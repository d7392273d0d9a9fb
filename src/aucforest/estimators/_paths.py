"""The nodes on the way to leaves, and what they make of the leaves of a shrunk tree."""

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel

# Shrunk frequencies that are kept at a time, 256 MiB: of more classes, those of some after those of others.
_MOST_SHRUNK = 2**25


@bare_device
def _fill_parents(left_child, parent):
    """Fill the parent of every node, -1 for the root."""
    parent[0] = -1
    for node in range(len(left_child)):
        if left_child[node] >= 0:
            parent[left_child[node]] = node
            parent[left_child[node] + 1] = node


@bare_kernel
def _fill_paths(left_child, leaves, parent, ends, nodes):
    """Fill the nodes on the way to every leaf; those of a row end before `ends`."""
    _fill_parents(left_child, parent)
    for row in range(len(leaves)):
        node, place = leaves[row], ends[row]
        while node >= 0:
            place -= 1
            nodes[place] = node
            node = parent[node]


def paths(
    left_child: NDArray[np.int32], depth: NDArray[np.int64], leaves: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes on the ways to the leaves of some rows; left_child and depth are those of a `Tree`.

    Returns
    -------
    nodes : ndarray of shape (n_passed,), int64
        The nodes that the rows pass, from the root to the leaf, row after row.
    starts : ndarray of shape (n_rows + 1,), int64
        Where the nodes of each row begin.
    """
    starts = np.concatenate(([0], np.cumsum(depth[leaves] + 1)))
    nodes = np.empty(starts[-1], dtype=np.int64)
    _fill_paths(left_child, np.ascontiguousarray(leaves), np.empty(len(left_child), dtype=np.int64), starts[1:], nodes)
    return nodes, starts


@bare_kernel
def _add_paths(
    left_child, weight, value, first_column, amounts, leaves, counts, parent, slots, path, shrunk, total, n_trees
):
    """Add what the leaf of every row out of bag predicts; nodes on the way to no such leaf are left out."""
    _fill_parents(left_child, parent)
    slots[:] = -1
    slots[0], n_slots = 0, 1
    for k in range(shrunk.shape[1]):
        shrunk[0, k] = value[0, first_column + k]
    for row in range(len(leaves)):
        if counts[row] > 0:
            continue
        n_new, node = 0, leaves[row]
        while slots[node] < 0:
            path[n_new] = node
            n_new += 1
            node = parent[node]
        for step in range(n_new - 1, -1, -1):
            above, node = node, path[step]
            for i in range(len(amounts)):
                factor = weight[above] / (weight[above] + amounts[i])
                for k in range(shrunk.shape[1]):
                    difference = value[node, first_column + k] - value[above, first_column + k]
                    shrunk[n_slots, k, i] = shrunk[slots[above], k, i] + difference * factor
            slots[node] = n_slots
            n_slots += 1
        n_trees[row] += 1
        found, sums = shrunk[slots[node]], total[row]
        for k in range(len(sums)):
            for i in range(len(amounts)):
                sums[k, i] += found[k, i]


def add_shrunk(
    left_child: NDArray[np.int32],
    weight: NDArray[np.float64],
    value: NDArray[np.float64],
    amounts: NDArray[np.float64],
    leaves: NDArray[np.int64],
    counts: NDArray[np.uint16],
    total: NDArray[np.float64],
    n_trees: NDArray[np.int64],
) -> None:
    """Add what the leaves of rows predict when shrunk by several amounts, for the rows out of bag.

    Cheaper than to shrink all nodes by every amount where rows reach few of the leaves.

    Parameters
    ----------
    left_child, weight, value
        As in `tree.shrink`.
    amounts : ndarray of shape (n_amounts,), float64
        Several lambda, in units of weight.
    leaves : ndarray of shape (n_rows,), int64
        The leaf of every row.
    counts : ndarray of shape (n_rows,), uint16
        How often every row is in the sample of the tree.
    total : ndarray of shape (n_rows, n_last_columns, n_amounts), float64
        Added to, for the last columns of `value`.
    n_trees : ndarray of shape (n_rows,), int64
        Raised by one for the rows out of bag.
    """
    n_columns, n_nodes = total.shape[1], len(left_child)
    first_column = value.shape[1] - n_columns
    parent, slots, path = np.empty((3, n_nodes), dtype=np.int64)
    step = max(1, _MOST_SHRUNK // (n_nodes * len(amounts)))
    for first in range(0, n_columns, step):
        sums = total[:, first : first + step]
        shrunk = np.empty((n_nodes, *sums.shape[1:]))
        rows = (leaves, counts, parent, slots, path, shrunk, sums, n_trees if first == 0 else np.zeros_like(n_trees))
        _add_paths(left_child, weight, value, first_column + first, amounts, *rows)
