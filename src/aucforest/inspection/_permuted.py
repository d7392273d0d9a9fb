"""Predictions with the values of one feature permuted.

Only rows whose path to the leaf contains a split of the feature are traversed again; the others keep their leaf.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest.tree.prediction import PackedTrees, add_leaf, nodes_of, walk
from aucforest.tree.tree import LEAF, Tree

BLOCK_ROWS = 512  # rows that descend a tree together
WORD_FEATURES = 64  # number of features that are marked in a word, one bit for each


def path_words(trees: Sequence[Tree], packed: PackedTrees, first_feature: int) -> NDArray[np.uint64]:
    """Return the features on the path to each leaf in `packed`: bit b is set if first_feature + b is on the path."""
    paths = np.empty(packed.first_leaf[-1], dtype=np.uint64)
    words = np.empty(max(tree.n_nodes for tree in trees), dtype=np.uint64)
    for i, tree in enumerate(trees):
        leaves = slice(packed.first_leaf[i], packed.first_leaf[i + 1])
        _mark_paths(tree.feature, tree.left_child, first_feature, words)
        paths[leaves] = words[: tree.n_nodes][tree.is_leaf]
    return paths


@bare_kernel
def _mark_paths(feature, left_child, first_feature, words):
    """Mark the features on the path to each node; children come after their parents."""
    words[0] = 0
    for node in range(len(feature)):
        if feature[node] == LEAF:
            continue
        word, bit = words[node], feature[node] - first_feature
        if 0 <= bit < WORD_FEATURES:
            word |= np.uint64(1) << np.uint64(bit)
        words[left_child[node]] = words[left_child[node] + 1] = word


class Homes(NamedTuple):
    """The leaves of out-of-bag rows; entries are sorted by block of BLOCK_ROWS rows, then by tree, then by row."""

    starts: NDArray[np.int64]  # the first entry of each block and tree, and the number of entries
    rows: NDArray[np.uint32]  # rows within their block; the last element is scratch
    leaves: NDArray[np.uint32]  # numbers of nodes within their trees
    met: NDArray[np.uint64]  # the bits of `path_words`


def find_homes(
    arguments: tuple[Any, ...], X: NDArray[np.float64], counts: NDArray[np.uint16], any_missing: bool
) -> Homes:
    """Return the leaves of out-of-bag rows and the features on their paths; `counts` has shape (n_trees, n_rows)."""
    n_entries, n_blocks = int(np.count_nonzero(counts == 0)), -(-len(X) // BLOCK_ROWS)
    homes = Homes(
        np.empty(n_blocks * len(counts) + 1, dtype=np.int64),
        np.empty(n_entries + 1, dtype=np.uint32),
        np.empty(n_entries, dtype=np.uint32),
        np.empty(n_entries, dtype=np.uint64),
    )
    active, leaves = np.empty(BLOCK_ROWS, dtype=np.uint64), np.empty(BLOCK_ROWS, dtype=np.uint32)
    _fill_homes(*(*arguments, X, counts, any_missing, active, leaves, homes))
    return homes


@bare_kernel
def _fill_homes(nodes, first, paths, first_leaf, X, counts, any_missing, active, leaves, homes):
    """Write the arrays of `Homes`."""
    n_entries = np.uint64(0)
    place = 0
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        for tree in range(len(first) - 1):
            homes.starts[place] = n_entries
            place += 1
            tree_nodes, drawn = nodes_of(nodes, first, tree), counts[tree, start : start + BLOCK_ROWS]
            n_active = np.uint64(0)
            for i in range(np.uint64(len(block))):
                active[n_active] = i
                homes.rows[n_entries + n_active] = i
                n_active += np.uint64(drawn[i] == 0)
            walk(tree_nodes, block, any_missing, active[:n_active], leaves)
            for entry in range(n_entries, n_entries + n_active):
                leaf = leaves[np.uint64(homes.rows[entry])]
                homes.leaves[entry] = leaf
                homes.met[entry] = paths[np.uint64(first_leaf[tree]) + np.uint64(tree_nodes.numbers[np.uint64(leaf)])]
            n_entries += n_active
    homes.starts[place] = n_entries


@bare_kernel
def add_permuted(
    nodes, first, values, first_leaf, X, feature, bit, column, any_missing, homes, total, active, leaves, marks
):
    """Add the leaf frequencies of all trees for which a row is out of bag, in order, with other values of one feature.

    `column` has the values, and `bit` is that of the feature in `path_words`. X and column are changed temporarily. The
    last three arguments are work space of BLOCK_ROWS elements.
    """
    place = 0
    for start in range(0, len(X), BLOCK_ROWS):
        block, sums = X[start : start + BLOCK_ROWS], total[start : start + BLOCK_ROWS]
        other = column[start : start + BLOCK_ROWS]
        for i in range(np.uint64(len(block))):
            # NaN is not equal to itself, so rows with NaN in both are traversed needlessly and reach the same leaf.
            marks[i] = bit if block[i, feature] != other[i] else np.uint64(0)
            block[i, feature], other[i] = other[i], block[i, feature]
        for tree in range(len(first) - 1):
            tree_nodes = nodes_of(nodes, first, tree)
            entries = range(np.uint64(homes.starts[place]), np.uint64(homes.starts[place + 1]))
            place += 1
            n_active = np.uint64(0)
            for entry in entries:
                row = np.uint64(homes.rows[entry])
                leaves[row] = homes.leaves[entry]
                active[n_active] = row
                n_active += np.uint64((homes.met[entry] & marks[row]) != np.uint64(0))
            walk(tree_nodes, block, any_missing, active[:n_active], leaves)
            leaf_values = values[first_leaf[tree] : first_leaf[tree + 1]]
            for entry in entries:
                row = np.uint64(homes.rows[entry])
                add_leaf(leaf_values, np.uint64(tree_nodes.numbers[np.uint64(leaves[row])]), sums[row])
        for i in range(np.uint64(len(block))):
            block[i, feature], other[i] = other[i], block[i, feature]
