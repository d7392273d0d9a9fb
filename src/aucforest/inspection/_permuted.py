"""Walking rows anew that another value of one feature may lead elsewhere.

A row whose way to a leaf meets no split of the feature stays where it is: only the others walk again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest.tree.prediction import PackedTrees, add_leaf, nodes_of, walk
from aucforest.tree.tree import LEAF, Tree

BLOCK_ROWS = 512  # rows that walk together
WORD_FEATURES = 64  # features whose splits are marked at once: the bits of a word


def path_words(trees: Sequence[Tree], packed: PackedTrees, first_feature: int) -> NDArray[np.uint64]:
    """Return of every leaf in `packed` which features the way there meets: bit b stands for first_feature + b."""
    paths = np.empty(packed.first_leaf[-1], dtype=np.uint64)
    words = np.empty(max(tree.n_nodes for tree in trees), dtype=np.uint64)
    for i, tree in enumerate(trees):
        leaves = slice(packed.first_leaf[i], packed.first_leaf[i + 1])
        _mark_paths(tree.feature, tree.left_child, first_feature, words)
        paths[leaves] = words[: tree.n_nodes][tree.is_leaf]
    return paths


@bare_kernel
def _mark_paths(feature, left_child, first_feature, words):
    """Mark the features above every node; children come after their parents."""
    words[0] = 0
    for node in range(len(feature)):
        if feature[node] == LEAF:
            continue
        word, bit = words[node], feature[node] - first_feature
        if 0 <= bit < WORD_FEATURES:
            word |= np.uint64(1) << np.uint64(bit)
        words[left_child[node]] = words[left_child[node] + 1] = word


class Homes(NamedTuple):
    """The leaves of rows that trees did not draw: entries by blocks of BLOCK_ROWS rows, then by trees, then rows."""

    starts: NDArray[np.int64]  # where the entries of a block and tree begin, and the end
    rows: NDArray[np.uint32]  # rows within their block; the last element is scratch
    leaves: NDArray[np.uint32]  # numbers of nodes within their trees
    met: NDArray[np.uint64]  # the bits of `path_words`


def find_homes(
    arguments: tuple[Any, ...], X: NDArray[np.float64], counts: NDArray[np.uint16], any_missing: bool
) -> Homes:
    """Find the leaves of the rows that trees did not draw (`counts`, a row a tree), and the features on the way."""
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
    """Fill the arrays of homes."""
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
    """Add the leaf frequencies of the trees that did not draw a row, in order, with other values of one feature.

    `column` has these values and `bit` stands for the feature in `path_words`; X and column are changed meanwhile. The
    last three have BLOCK_ROWS elements of scratch.
    """
    place = 0
    for start in range(0, len(X), BLOCK_ROWS):
        block, sums = X[start : start + BLOCK_ROWS], total[start : start + BLOCK_ROWS]
        other = column[start : start + BLOCK_ROWS]
        for i in range(np.uint64(len(block))):
            # A missing value is not equal to itself: such rows walk for nothing, and end where they were.
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
