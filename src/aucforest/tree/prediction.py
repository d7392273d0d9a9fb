"""Walking trees: raw values against thresholds, codes of categories against sets.

All rows of a block go down one tree together, a level at a time. The step of one row does not wait for that of the
row before, so the processor overlaps their memory reads; rows that have reached a leaf drop out.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.binning import ParallelMap
from aucforest.tree.tree import LEAF, MISSING_CODE, Tree

# Rows that walk together: their values and the hot part of a tree stay in the nearest caches.
BLOCK_ROWS = 512

_LEAF = np.uint32(0xFFFFFFFF)
_MISSING_LEFT = np.uint32(0x80000000)
_BY_SET = np.uint32(0x40000000)
_FEATURE_BITS = np.uint32(0x3FFFFFFF)

# 16 bytes, a quarter of a cache line; the top bit of `feature` says where missing values go, the next one that the
# threshold is the number of a set. A leaf has its number among the leaves of the tree in place of a child.
_NODE = np.dtype([("threshold", np.float64), ("left_child", np.uint32), ("feature", np.uint32)], align=True)

# A row on its way: row number (32 bits), node (32 bits).
_NODE_BITS = np.uint64(32)
_NODE_MASK = np.uint64(0xFFFFFFFF)

_MISSING_CODE = np.float64(MISSING_CODE)
_CODE_BITS = np.uint64(0xFF)


class PackedTrees:
    """The nodes of some trees in one array, laid out for walking: nodes that many rows pass stand close together.

    The trees are valid and of the same numbers of features and classes; `run` is that of `bin_matrix`.

    Attributes
    ----------
    nodes : ndarray of shape (n_all_nodes,), packed nodes
    first : ndarray of shape (n_trees + 1,), int64
        Where the nodes of each tree begin.
    values : ndarray of shape (n_all_leaves, n_classes), float64
        What the leaves predict. There from `take_predictions` on: of many classes they take most of the memory.
    names : ndarray of shape (n_all_leaves,), int64
        Their numbers in `Tree`.
    first_leaf : ndarray of shape (n_trees + 1,), int64
        Where the leaves of each tree begin.
    sets : ndarray of shape (n_all_sets, 4), uint64, or None
        Of all trees; None where no tree splits a categorical feature: for None the walks are compiled without sets.
    """

    def __init__(self, trees: Sequence[Tree], run: ParallelMap = map) -> None:
        self.first = _starts([tree.n_nodes for tree in trees])
        self.first_leaf = _starts([tree.n_leaves for tree in trees])
        self.nodes = np.empty(self.first[-1], dtype=_NODE)
        self.names = np.empty(self.first_leaf[-1], dtype=np.int64)
        first_set = _starts([len(tree.sets) for tree in trees])
        self.sets = np.concatenate([tree.sets for tree in trees]) if first_set[-1] > 0 else None

        def pack(i: int) -> None:
            tree, nodes = trees[i], self.nodes[self.first[i] : self.first[i + 1]]
            place, next_pair = np.empty(tree.n_nodes, dtype=np.int64), np.empty(64, dtype=np.int64)
            parts = (tree.feature, tree.threshold, tree.missing_left, tree.left_child, np.frexp(tree.n_samples)[1])
            _pack_tree(*parts, next_pair, place, nodes, self.names[self.first_leaf[i] : self.first_leaf[i + 1]])
            by_set = place[tree.set_nodes]
            nodes["threshold"][by_set] = np.arange(first_set[i], first_set[i + 1])
            nodes["feature"][by_set] |= _BY_SET

        list(run(pack, range(len(trees))))

    def take_predictions(self, trees: Sequence[Tree], run: ParallelMap = map) -> "PackedTrees":
        """Take over what the leaves of these trees predict; nobody sees values before all are there."""
        values = np.empty((self.first_leaf[-1], trees[0].n_classes))

        def take(i: int) -> None:
            leaves = slice(self.first_leaf[i], self.first_leaf[i + 1])
            # "clip" needs no copy of the output
            np.take(trees[i].prediction, self.names[leaves], axis=0, out=values[leaves], mode="clip")

        list(run(take, range(len(trees))))
        self.values = values
        return self

    def some(self, trees: range) -> "PackedTrees":
        """Return some of the trees, with their nodes and leaves alone."""
        some = copy(self)
        nodes, leaves = (starts[trees.start : trees.stop + 1] for starts in (self.first, self.first_leaf))
        some.first, some.first_leaf = nodes - nodes[0], leaves - leaves[0]
        some.nodes, some.names = self.nodes[nodes[0] : nodes[-1]], self.names[leaves[0] : leaves[-1]]
        if hasattr(self, "values"):
            some.values = self.values[leaves[0] : leaves[-1]]
        return some

    def arguments(self, leaves: NDArray[Any], trees: range | None = None) -> tuple[Any, ...]:
        """Return the first arguments of a walk of some trees that reads something of all leaves, such as `values`."""
        trees = range(len(self.first) - 1) if trees is None else trees
        first, first_leaf = (starts[trees.start : trees.stop + 1] for starts in (self.first, self.first_leaf))
        return self.nodes, self.sets, first, leaves[first_leaf[0] : first_leaf[-1]], first_leaf - first_leaf[0]


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    """Return where pieces of these sizes begin, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


@bare_kernel
def _pack_tree(feature, threshold, missing_left, left_child, n_bits, next_pair, place, nodes, names):
    """Lay out one tree: the root, then pairs of children by falling powers of two of their parents' samples.

    n_bits[i] is the number of bits of the number of samples of node i.
    """
    next_pair[:] = 0
    for i in range(len(nodes)):
        next_pair[n_bits[i]] += feature[i] != LEAF
    start = 1
    for bits in range(len(next_pair) - 1, -1, -1):
        n_pairs = next_pair[bits]
        next_pair[bits] = start
        start += 2 * n_pairs
    place[0] = 0
    for i in range(len(nodes)):
        if feature[i] != LEAF:
            pair = next_pair[n_bits[i]]
            place[left_child[i]], place[left_child[i] + 1] = pair, pair + 1
            next_pair[n_bits[i]] += 2
    for i in range(len(nodes)):
        node = nodes[place[i]]
        node.threshold = threshold[i]
        if feature[i] == LEAF:
            node.feature = _LEAF
            node.left_child = np.uint32(i)
        else:
            node.feature = np.uint32(feature[i]) | (_MISSING_LEFT if missing_left[i] else np.uint32(0))
            node.left_child = np.uint32(place[left_child[i]])
    n_leaves = 0
    for i in range(len(nodes)):
        if nodes[i].feature == _LEAF:
            names[n_leaves] = np.int64(nodes[i].left_child)
            nodes[i].left_child = np.uint32(n_leaves)
            n_leaves += 1


@bare_device
def _any_missing(X):
    """Say whether a value is missing."""
    n_missing = 0
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            n_missing += X[i, f] != X[i, f]
    return n_missing > 0


@bare_device
def _is_right_of_set(sets, number, value):
    """Return 1 if the code of a category, or a missing value, is not in a set, else 0."""
    # By way of signed integers: processors have no instruction from floats to unsigned ones.
    code = np.uint64(np.int64(value if value == value else _MISSING_CODE)) & _CODE_BITS
    return (~sets[np.uint64(np.int64(number)), code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1)


@bare_device
def _descend(nodes, sets, X, any_missing, active, leaves):
    """Take the active rows, at the root and not in a leaf, to their leaves."""
    n_active = np.uint64(len(active))
    while n_active > np.uint64(0):
        n_left = np.uint64(0)
        for i in range(n_active):
            row = active[i] >> _NODE_BITS
            node = nodes[active[i] & _NODE_MASK]
            value = X[row, np.uint64(node.feature & _FEATURE_BITS)]
            if sets is not None and node.feature & _BY_SET:
                goes_right = _is_right_of_set(sets, node.threshold, value)
            else:
                goes_right = np.uint64(value > node.threshold)
                if any_missing and value != value and node.feature < _MISSING_LEFT:
                    goes_right = np.uint64(1)
            place = np.uint64(node.left_child) + goes_right
            # Written at every step, right when the child is a leaf: cheaper than a branch that cannot be predicted.
            child = nodes[place]
            leaves[row] = child.left_child
            active[n_left] = (row << _NODE_BITS) | place
            n_left += np.uint64(child.feature != _LEAF)
        n_active = n_left


@bare_device
def _walk(nodes, sets, X, any_missing, active, leaves):
    """Take the rows listed in `active` to their leaves; the list is used up, leaves[row] is the leaf's number."""
    for i in range(np.uint64(len(active))):
        leaves[active[i]] = 0
        active[i] <<= _NODE_BITS
    if nodes[0].feature == _LEAF:
        return
    # The constants make two loops of one; the one without the check is much faster.
    if any_missing:
        _descend(nodes, sets, X, True, active, leaves)
    else:
        _descend(nodes, sets, X, False, active, leaves)


@bare_device
def _add_leaf(values, leaf, total):
    """Add the class frequencies of a leaf to those of a row."""
    if len(total) == 2:
        total[0] += values[leaf, 0]
        total[1] += values[leaf, 1]
    else:
        for k in range(np.uint64(len(total))):
            total[k] += values[leaf, k]


@bare_device
def _list_out_of_bag(counts, active):
    """List the rows with a count of 0, and return how many they are."""
    n_active = np.uint64(0)
    for i in range(np.uint64(len(counts))):
        active[n_active] = i
        n_active += np.uint64(counts[i] == 0)
    return n_active


@bare_kernel
def add_probabilities(nodes, sets, first, values, first_leaf, X, active, leaves, total, counts=None, n_trees=None):
    """Add the leaf frequencies of all trees, in order: of all rows or, given counts, of those out of bag of a tree.

    Parameters
    ----------
    nodes, sets, first, values, first_leaf
        Of `PackedTrees`.
    X : ndarray of shape (n_rows, n_features), float64, C order
        Of categorical features the codes, or NaN.
    active, leaves : ndarray of shape (n_rows,), uint64 and uint32
        Scratch.
    total : ndarray of shape (n_rows, n_classes), float64
        Output, added to.
    counts : ndarray of shape (n_all_trees, n_rows), uint16, or None
        How often each row is in the sample of each tree.
    n_trees : ndarray of shape (n_rows,), int64, or None
        Output, raised by one for every tree that a row is out of bag of.
    """
    for start in range(0, len(X), BLOCK_ROWS):
        block, sums = X[start : start + BLOCK_ROWS], total[start : start + BLOCK_ROWS]
        n_rows = np.uint64(len(block))
        any_missing = _any_missing(block)
        for tree in range(len(first) - 1):
            n_active = n_rows
            if counts is None:
                for i in range(n_rows):
                    active[i] = i
            else:
                n_active = _list_out_of_bag(counts[tree, start : start + BLOCK_ROWS], active)
            _walk(nodes[first[tree] : first[tree + 1]], sets, block, any_missing, active[:n_active], leaves)
            leaf_values = values[first_leaf[tree] : first_leaf[tree + 1]]
            for i in range(n_rows):
                if counts is not None:
                    if counts[tree, start + i] > 0:
                        continue
                    n_trees[start + i] += 1
                _add_leaf(leaf_values, np.uint64(leaves[i]), sums[i])


@bare_kernel
def find_leaves(nodes, sets, first, names, first_leaf, X, counts, active, leaves, found):
    """Write the leaf in every tree of its rows out of bag, by its number in `Tree`.

    That of other rows in `found`, (n_all_trees, n_rows), int64, is left as it is; the rest as in `add_probabilities`.
    """
    any_missing = _any_missing(X)
    for tree in range(len(first) - 1):
        n_active = _list_out_of_bag(counts[tree], active)
        _walk(nodes[first[tree] : first[tree + 1]], sets, X, any_missing, active[:n_active], leaves)
        for i in range(np.uint64(len(X))):
            if counts[tree, i] == 0:
                found[tree, i] = names[first_leaf[tree] + leaves[i]]
