"""Sums of out-of-bag predictions with the values of one feature permuted.

A row stays in its leaf if no split on the path to it is on the permuted feature. So the leaves of out-of-bag rows are
found once, with the features on the paths to them, and for each permuted column only the other rows descend again.
Features that are made of one column are permuted together, and count as one here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest.tree.prediction import PackedTrees, add_leaf, find_leaves, nodes_of, walk
from aucforest.tree.tree import LEAF, Tree

BLOCK_ROWS = 512  # rows that descend a tree together
MOST_FEATURES = 64  # number of features in a `PathFeatures`, one for each bit


class PathFeatures(NamedTuple):
    """Which of up to MOST_FEATURES consecutive features are on the path from the root to each node."""

    first_feature: int
    bits: NDArray[np.uint64]  # bit b is set if the feature first_feature + b is on the path, (n_all_nodes,)

    @classmethod
    def of(cls, trees: Sequence[Tree], first_feature: int, numbers: NDArray[np.int64] | None = None) -> "PathFeatures":
        """Return the features from `first_feature` on that are on the paths in trees.

        `numbers` are what each feature of the trees counts as, by default itself.
        """
        numbers, bits = np.arange(trees[0].n_features) if numbers is None else numbers, []
        for tree in trees:
            of_nodes, feature = np.empty(tree.n_nodes, dtype=np.uint64), np.append(numbers, LEAF)[tree.feature]
            _find_path_features(feature, tree.left_child, first_feature, of_nodes)
            bits.append(of_nodes)
        return cls(first_feature, np.concatenate(bits))


@bare_kernel
def _find_path_features(feature, left_child, first_feature, bits):
    """Write the bits of `PathFeatures` for each node of a tree; children come after their parents."""
    bits[0] = 0
    for node in range(len(feature)):
        if feature[node] == LEAF:
            continue
        of_children, bit = bits[node], feature[node] - first_feature
        if 0 <= bit < MOST_FEATURES:
            of_children |= np.uint64(1) << np.uint64(bit)
        bits[left_child[node]] = bits[left_child[node] + 1] = of_children


class OutOfBagLeaves(NamedTuple):
    """The leaves of out-of-bag rows, sorted by block of BLOCK_ROWS rows, then by tree, then by row."""

    starts: NDArray[np.int64]  # the first entry of each tree in each block, and the number of entries
    rows: NDArray[np.uint32]  # positions of rows in their block
    leaves: NDArray[np.uint32]  # nodes of the trees
    path_features: NDArray[np.uint64]  # bits of `PathFeatures`

    @classmethod
    def find(
        cls, packed: PackedTrees, paths: PathFeatures, X: NDArray[np.float64], counts: NDArray[np.uint16]
    ) -> "OutOfBagLeaves":
        """Return the leaves of rows; `counts` is how often each is in the sample of a tree, (n_trees, n_rows)."""
        leaves = np.empty(counts.shape, dtype=np.int64)
        active, nodes = np.empty(len(X), dtype=np.uint64), np.empty(len(X), dtype=np.uint32)
        find_leaves(packed.nodes, packed.first, X, counts, active, nodes, leaves)
        n_entries, blocks = [0], []
        for start in range(0, len(X), BLOCK_ROWS):
            tree, row = np.nonzero(counts[:, start : start + BLOCK_ROWS] == 0)
            leaf = leaves[tree, start + row]
            n_entries.extend(np.bincount(tree, minlength=len(counts)).tolist())
            blocks.append((row.astype(np.uint32), leaf.astype(np.uint32), paths.bits[packed.first[tree] + leaf]))
        return cls(np.cumsum(n_entries), *map(np.concatenate, zip(*blocks)))


class PermutedRows:
    """Some rows, to sum their out-of-bag predictions with other values of a feature.

    `counts` is how often each row is in the bootstrap sample of each tree, (n_trees, n_rows), and `any_missing` says
    whether values are missing in the rows or in the columns that are put in. One thread changes X and restores it.
    """

    def __init__(
        self,
        packed: PackedTrees,
        paths: PathFeatures,
        X: NDArray[np.float64],
        counts: NDArray[np.uint16],
        any_missing: bool,
    ) -> None:
        self._packed, self._paths, self._X, self._any_missing = packed, paths, X, any_missing
        self._leaves = OutOfBagLeaves.find(packed, paths, X, counts)

    def sums(
        self, feature: int, columns: NDArray[np.float64], indices: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the sums of out-of-bag predictions, (n_rows, n_classes), with other values of a feature.

        `columns`, (n_rows, n_places), are those of the columns `places` of X, by default of the feature itself.
        """
        indices = np.array([feature]) if indices is None else indices
        columns = columns.reshape(len(self._X), -1)
        packed, X = self._packed, self._X
        total = np.zeros((len(X), packed.values.shape[1]))
        buffers = np.empty(BLOCK_ROWS, dtype=np.uint64), np.empty(BLOCK_ROWS, dtype=np.uint32)
        before = X[:, indices]
        # NaN is not equal to itself, so rows with NaN in both are traversed needlessly and reach the same leaf.
        is_changed = (before != columns).any(axis=1)
        changed_bits = is_changed.astype(np.uint64) << np.uint64(feature - self._paths.first_feature)
        X[:, indices] = columns
        trees = packed.arguments(packed.values)
        _sum_out_of_bag(trees, X, self._any_missing, self._leaves, changed_bits, buffers, total)
        X[:, indices] = before
        return total


@bare_kernel
def _sum_out_of_bag(trees, X, any_missing, out_of_bag, changed_bits, buffers, total):
    """Add the leaf frequencies of all trees for which a row is out of bag, in order.

    A row descends a tree again if the path to its leaf has a feature whose bit is set in `changed_bits`, (n_rows,).
    """
    nodes, first_node, values, first_leaf = trees
    active, leaves = buffers
    index = 0
    for start in range(0, len(X), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block, block_bits, sums = X[rows], changed_bits[rows], total[rows]
        for tree in range(len(first_node) - 1):
            entries = range(np.uint64(out_of_bag.starts[index]), np.uint64(out_of_bag.starts[index + 1]))
            index += 1
            n_active = np.uint64(0)
            for entry in entries:
                row = np.uint64(out_of_bag.rows[entry])
                leaves[row] = out_of_bag.leaves[entry]
                # Each row is written, and stays if it is counted: a branch would be unpredictable.
                active[n_active] = row
                n_active += np.uint64((out_of_bag.path_features[entry] & block_bits[row]) != np.uint64(0))
            tree_nodes, leaf_values = nodes_of(nodes, first_node, tree), values[first_leaf[tree] : first_leaf[tree + 1]]
            walk(tree_nodes, block, any_missing, active[:n_active], leaves)
            for entry in entries:
                row = np.uint64(out_of_bag.rows[entry])
                add_leaf(leaf_values, tree_nodes.numbers[np.uint64(leaves[row])], sums[row])
