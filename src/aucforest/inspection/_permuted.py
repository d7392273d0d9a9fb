"""Sums of out-of-bag predictions with the values of one feature permuted.

A row stays in its leaf if no split on the path to the leaf uses the permuted feature. Therefore the leaf of each
out-of-bag row is found once, with the features on its path. When a feature is permuted, only the rows with this feature
on their path descend again. A categorical column and its target rates (target encoding) are permuted together, so they
count as one feature.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest.tree.prediction import PackedTrees, WalkBuffers, add_leaf, nodes_of, walk
from aucforest.tree.tree import LEAF, Tree

BLOCK_ROWS = 512  # rows that descend a tree together
MOST_FEATURES = 64  # maximum number of features at a time: one for each bit of an integer


def find_path_features(trees: Sequence[Tree], first_feature: int, inputs: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return, for each node of all trees, the features on the path to the node as bits of an integer.

    Bit b stands for the feature first_feature + b. Column j that the trees read belongs to the feature `inputs[j]`.
    """
    bits = [np.empty(tree.n_nodes, dtype=np.uint64) for tree in trees]
    for tree, tree_bits in zip(trees, bits):
        _find_path_features(np.append(inputs, LEAF)[tree.feature], tree.left_child, first_feature, tree_bits)
    return np.concatenate(bits)


@bare_kernel
def _find_path_features(feature, left_child, first_feature, bits):
    """Write the bits of each node of a tree; children come after their parents."""
    bits[0] = 0
    for node in range(len(feature)):
        if feature[node] == LEAF:
            continue
        child_bits, bit = bits[node], feature[node] - first_feature
        if 0 <= bit < MOST_FEATURES:
            child_bits |= np.uint64(1) << np.uint64(bit)
        bits[left_child[node]] = bits[left_child[node] + 1] = child_bits


class OutOfBagLeaves(NamedTuple):
    """The leaf of each out-of-bag row in each tree, sorted by block of BLOCK_ROWS rows, by tree and by row."""

    starts: NDArray[np.int64]  # index of the first leaf of each tree in each block, then the length of `leaves`
    rows: NDArray[np.uint32]  # indices of rows in their block
    leaves: NDArray[np.uint32]  # indices of the leaves in their trees
    path_features: NDArray[np.uint64]  # the result of `find_path_features` for these leaves


class PermutedRows:
    """Rows with their out-of-bag leaves, to sum their out-of-bag predictions with changed values of one feature.

    `paths` is the result of `find_path_features`. `counts` says how often each row is in the bootstrap sample of each
    tree, (n_trees, n_rows). `any_missing` says whether the rows or the changed values have missing values. The method
    `sums` changes X and restores X afterwards, so no two threads can use the same X.
    """

    def __init__(
        self,
        packed: PackedTrees,
        paths: NDArray[np.uint64],
        X: NDArray[np.float64],
        counts: NDArray[np.uint16],
        any_missing: bool,
    ) -> None:
        self._packed, self._X, self._any_missing = packed, X, any_missing
        leaves, n_entries, blocks = packed.find_leaves(X, counts), [0], []
        for start in range(0, len(X), BLOCK_ROWS):
            tree, row = np.nonzero(counts[:, start : start + BLOCK_ROWS] == 0)
            leaf = leaves[tree, start + row]
            n_entries.extend(np.bincount(tree, minlength=len(counts)).tolist())
            blocks.append((row.astype(np.uint32), leaf.astype(np.uint32), paths[packed.first[tree] + leaf]))
        self.leaves = OutOfBagLeaves(np.cumsum(n_entries), *map(np.concatenate, zip(*blocks)))

    def sums(self, bit: int, columns: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of out-of-bag predictions, (n_rows, n_classes), with changed values of one feature.

        `bit` stands for the feature. `columns` are the columns of the feature and of its target rates, and `values`,
        (n_rows, n_columns), are their new values.
        """
        packed, X = self._packed, self._X
        total = np.zeros((len(X), packed.values.shape[1]))
        original = X[:, columns]
        # NaN is not equal to itself, so unchanged rows with NaN descend needlessly and reach the same leaf.
        bits = (original != values).any(axis=1).astype(np.uint64) << np.uint64(bit)
        X[:, columns] = values
        buffers = WalkBuffers.of(BLOCK_ROWS)
        _sum_out_of_bag(packed.arrays_for(X), (X, bits, self._any_missing), self.leaves, buffers, total)
        X[:, columns] = original
        return total


@bare_kernel
def _sum_out_of_bag(trees, changed, out_of_bag, buffers, total):
    """For each row, add to `total` the class frequencies of its leaves in the trees for which it is out of bag.

    `changed` has the rows, a number for each row, and whether values are missing. The number is 0 for an unchanged row.
    For a changed row it has the bit of the feature; the row descends a tree again if this feature is on its path.
    """
    all_X, all_bits, any_missing = changed
    active, leaves = buffers
    index = 0
    for start in range(0, len(total), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        X, bits, sums = all_X[rows], all_bits[rows], total[rows]
        for tree in range(len(trees.first) - 1):
            entries = range(np.uint64(out_of_bag.starts[index]), np.uint64(out_of_bag.starts[index + 1]))
            index += 1
            n_active = np.uint64(0)
            for entry in entries:
                row = np.uint64(out_of_bag.rows[entry])
                leaves[row] = out_of_bag.leaves[entry]
                # Every row is written, but only those that descend are counted. This avoids an unpredictable branch.
                active[n_active] = row
                n_active += np.uint64((out_of_bag.path_features[entry] & bits[row]) != np.uint64(0))
            tree_nodes = nodes_of(trees.nodes, trees.first, tree)
            leaf_values = trees.values[trees.first_leaf[tree] : trees.first_leaf[tree + 1]]
            walk(tree_nodes, X, any_missing, active[:n_active], leaves)
            for entry in entries:
                row = np.uint64(out_of_bag.rows[entry])
                add_leaf(leaf_values, tree_nodes.numbers[np.uint64(leaves[row])], sums[row])
