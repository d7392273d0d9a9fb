"""Ways through a tree: how far down its nodes are, and what a row passes. Children come after their parents."""

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel


@bare_kernel
def _fill_depths(left, right, depth):  # type: ignore[no-untyped-def]
    """Fill the depth of all nodes but the root."""
    for node in range(len(left)):
        if left[node] >= 0:
            depth[left[node]] = depth[node] + 1
            depth[right[node]] = depth[node] + 1


def depths(left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the number of cuts above every node.

    Parameters
    ----------
    left, right : ndarray of shape (n_nodes,), integer
        The children of every node, which come after it; -1 for a leaf.

    Returns
    -------
    ndarray of shape (n_nodes,), int64
    """
    depth = np.zeros(len(left), dtype=np.int64)
    _fill_depths(left, right, depth)
    return depth


@bare_device
def fill_parents(left_child, parent):  # type: ignore[no-untyped-def]
    """Fill the parent of every node, -1 for the root."""
    parent[0] = -1
    for node in range(len(left_child)):
        if left_child[node] >= 0:
            parent[left_child[node]] = node
            parent[left_child[node] + 1] = node


@bare_kernel
def _fill_paths(left_child, leaves, parent, ends, nodes):  # type: ignore[no-untyped-def]
    """Fill the nodes on the way to every leaf; those of a row end before `ends`."""
    fill_parents(left_child, parent)
    for row in range(len(leaves)):
        node, place = leaves[row], ends[row]
        while node >= 0:
            place -= 1
            nodes[place] = node
            node = parent[node]


def paths(
    left_child: NDArray[np.int32], depth: NDArray[np.int64], leaves: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes on the ways from the root to some leaves.

    Parameters
    ----------
    left_child : ndarray of shape (n_nodes,), int32
        Of a `Tree`.
    depth : ndarray of shape (n_nodes,), int64
        Number of cuts above every node.
    leaves : ndarray of shape (n_rows,), int64

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
