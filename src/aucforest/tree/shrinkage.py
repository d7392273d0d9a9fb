"""Hierarchical shrinkage: what a node predicts leans on its ancestors.

With p_t the class frequencies of node t and n_t its weight, h_root = p_root and
h_t = h_parent + (p_t - p_parent) / (1 + lambda / n_parent): children of a light node move little from it. So h_t is a
weighted mean of the frequencies on the way to t, and where these are ordered by a monotonic constraint it is, too.

References
----------
Agarwal, Tan, Ronen, Singh, Yu (2022). Hierarchical shrinkage: improving the accuracy and interpretability of
tree-based models. ICML.
"""

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel

# Shrunk frequencies that are kept at a time, 256 MiB: of more classes, those of some after those of others.
_MOST_SHRUNK = 2**25


@bare_device
def fill_parents(left_child, parent):
    """Fill the parent of every node, -1 for the root."""
    parent[0] = -1
    for node in range(len(left_child)):
        if left_child[node] >= 0:
            parent[left_child[node]] = node
            parent[left_child[node] + 1] = node


@bare_device
def _shrinkage_factor(weight, amount):
    """Return how much of its difference from a parent of this weight a node keeps."""
    return weight / (weight + amount)


@bare_kernel
def _shrink(left_child, weight, value, amount, shrunk):
    """Fill shrunk, (n_nodes, n_columns), from the root down: children come after their parent."""
    for k in range(value.shape[1]):
        shrunk[0, k] = value[0, k]
    for node in range(len(left_child)):
        if left_child[node] < 0:
            continue
        factor = _shrinkage_factor(weight[node], amount)
        for child in range(left_child[node], left_child[node] + 2):
            for k in range(value.shape[1]):
                # Rounding may lead a little out of the range of frequencies.
                moved = shrunk[node, k] + (value[child, k] - value[node, k]) * factor
                shrunk[child, k] = min(max(moved, 0.0), 1.0)


def shrink(
    left_child: NDArray[np.int32], weight: NDArray[np.float64], value: NDArray[np.float64], amount: float
) -> NDArray[np.float64]:
    """Return the shrunk class frequencies of the nodes of a `Tree`; the amount is lambda, in units of weight."""
    shrunk = np.empty(value.shape)
    _shrink(left_child, weight, value, amount, shrunk)
    return shrunk


@bare_kernel
def _add_paths(
    left_child, weight, value, first_column, amounts, leaves, counts, parent, slots, path, shrunk, total, n_trees
):
    """Add what the leaf of every row out of bag predicts; nodes on the way to no such leaf are left out."""
    fill_parents(left_child, parent)
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
                factor = _shrinkage_factor(weight[above], amounts[i])
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
        As in `shrink`.
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
