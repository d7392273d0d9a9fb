"""Walking trees: raw values against thresholds.

All rows of a block go down one tree together, a level at a time. The step of one row does not wait for that of the
row before, so the processor overlaps their memory reads; rows that have reached a leaf drop out.
"""

from collections.abc import Sequence

import numpy as np

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.structure import Tree

# Rows that walk together: their values stay in the nearest cache.
BLOCK_ROWS = 256

_LEAF = np.uint32(0xFFFFFFFF)
_MISSING_LEFT = np.uint32(0x80000000)

# 16 bytes, a quarter of a cache line; the top bit of `feature` says where missing values go.
_NODE = np.dtype([("threshold", np.float64), ("left_child", np.uint32), ("feature", np.uint32)], align=True)


class PackedTrees:
    """The nodes of some trees in one array, laid out for walking.

    Parameters
    ----------
    trees : sequence of Tree
        Valid trees of the same numbers of features and classes.
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        sizes = [tree.n_nodes for tree in trees]
        self.first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.nodes = np.empty(self.first[-1], dtype=_NODE)
        self.values = np.concatenate([tree.value for tree in trees])
        for tree, start in zip(trees, self.first[:-1], strict=True):
            nodes = self.nodes[start : start + tree.n_nodes]
            nodes["threshold"] = tree.threshold
            nodes["left_child"] = np.where(tree.is_leaf, 0, tree.left_child)
            feature = tree.feature.astype(np.uint32) | np.where(tree.missing_left, _MISSING_LEFT, np.uint32(0))
            nodes["feature"] = np.where(tree.is_leaf, _LEAF, feature)


@bare_device
def _walk(nodes, X, active, place):  # type: ignore[no-untyped-def]
    """Take the active rows of X to their leaves; the list of them is used up, place[row] is the leaf."""
    for i in range(len(active)):
        place[active[i]] = 0
    n_active = np.uint64(len(active))
    while n_active > np.uint64(0):
        n_left = np.uint64(0)
        for i in range(n_active):
            row = active[i]
            node = nodes[place[row]]
            feature = node.feature
            if feature == _LEAF:
                continue
            value = X[row, np.uint64(feature & ~_MISSING_LEFT)]
            goes_right = np.uint32(not (value <= node.threshold))
            if value != value and feature >= _MISSING_LEFT:
                goes_right = np.uint32(0)
            place[row] = node.left_child + goes_right
            active[n_left] = row
            n_left += np.uint64(1)
        n_active = n_left


@bare_device
def _activate_all(active):  # type: ignore[no-untyped-def]
    """List all rows."""
    for i in range(np.uint32(len(active))):
        active[i] = i


@bare_kernel
def add_probabilities(nodes, first, values, X, active, place, total):  # type: ignore[no-untyped-def]
    """Add the leaf frequencies of all trees, in order, for a block of rows.

    Parameters
    ----------
    nodes, first, values
        Of `PackedTrees`.
    X : ndarray of shape (n_rows, n_features), float64, C order
    active, place : ndarray of shape (n_rows,), uint32
        Scratch.
    total : ndarray of shape (n_rows, n_classes), float64
        Output, added to.
    """
    n_rows, n_classes = total.shape
    for tree in range(len(first) - 1):
        _activate_all(active)
        _walk(nodes[first[tree] : first[tree + 1]], X, active, place)
        for i in range(n_rows):
            leaf = first[tree] + place[i]
            for k in range(n_classes):
                total[i, k] += values[leaf, k]


@bare_kernel
def add_out_of_bag(nodes, values, X, counts, active, place, total, n_trees):  # type: ignore[no-untyped-def]
    """Add the leaf frequencies of one tree for the rows of a block that it did not draw, and count those rows.

    Parameters
    ----------
    nodes, values
        The part of `PackedTrees` for this tree.
    X : ndarray of shape (n_rows, n_features), float64, C order
    counts : ndarray of shape (n_rows,), uint16
        How often the tree drew each row.
    active, place : ndarray of shape (n_rows,), uint32
        Scratch.
    total : ndarray of shape (n_rows, n_classes), float64
    n_trees : ndarray of shape (n_rows,), int64
    """
    n_active = np.uint64(0)
    for i in range(len(counts)):
        active[n_active] = i
        n_active += np.uint64(counts[i] == 0)
    _walk(nodes, X, active[:n_active], place)
    for i in range(len(counts)):
        if counts[i] == 0:
            n_trees[i] += 1
            for k in range(total.shape[1]):
                total[i, k] += values[place[i], k]


@bare_kernel
def find_leaves(nodes, first, X, active, place, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf of every row of a block in every tree to leaves, (n_rows, n_trees), int64."""
    for tree in range(len(first) - 1):
        _activate_all(active)
        _walk(nodes[first[tree] : first[tree + 1]], X, active, place)
        for i in range(len(place)):
            leaves[i, tree] = place[i]
