"""Conversion of categorical splits to splits by thresholds, for formats that have only thresholds.

A split by a set of codes becomes a chain of nodes, with a threshold between successive codes that go to different
sides. All nodes of a chain lead to the two children of the split, so a child can have several parents in the result
of `to_chains`. `to_threshold_tree` makes a tree: it copies the nodes that have several parents.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.tree.tree import MISSING_CODE, Tree, unpack_sets

# The maximum of n_copies * n_set_features at one depth, see `_Level`. The ranges of codes take a few hundred MB.
_MOST_RANGES = 2**26


def round_down(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round thresholds down to float32 values, but return float64. Float32 values are still split in the same way."""
    with np.errstate(over="ignore", under="ignore"):
        nearest = thresholds.astype(np.float32)
        below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > thresholds, below, nearest).astype(np.float64)


class ThresholdNodes(NamedTuple):
    """Nodes that compare a value with a threshold, each of shape (n_nodes,); node 0 is the root."""

    feature: NDArray[np.int32]  # -1 for a leaf
    threshold: NDArray[np.float64]  # values up to and including this one go left
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]  # left child, -1 for a leaf
    right: NDArray[np.int64]  # right child, -1 for a leaf
    origin: NDArray[np.int64]  # the index of the original node in the `Tree`
    weight: NDArray[np.float64]  # weight of the training samples in the node


def _sets_of(tree: Tree, n_codes: Mapping[int, int]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whether each code goes left, (n_sets, 255), and the number of codes of the split feature for each set."""
    n_known = [n_codes[feature] for feature in tree.feature[tree.set_nodes].tolist()]
    return unpack_sets(tree.sets), np.array(n_known, dtype=np.int64)


def to_chains(tree: Tree, n_codes: Mapping[int, int]) -> ThresholdNodes:
    """Return the nodes of a tree with chains in place of sets.

    The first node of a chain has the index of the original node. The others are appended after the nodes of the tree.
    """
    is_left, n_known = _sets_of(tree, n_codes)
    # changes[i, c]: codes c and c + 1 go to different sides in split i. If all codes go to the same side, the only
    # threshold is after the last code.
    changes = np.zeros_like(is_left)
    changes[:, :-1] = (is_left[:, :-1] != is_left[:, 1:]) & (np.arange(1, MISSING_CODE) < n_known[:, None])
    all_alike = ~changes.any(axis=1)
    changes[all_alike, n_known[all_alike] - 1] = True
    set_index, code = np.nonzero(changes)
    is_first, is_last = np.diff(set_index, prepend=-1) > 0, np.diff(set_index, append=len(is_left)) > 0

    node = tree.set_nodes[set_index]
    index = np.where(is_first, node, tree.n_nodes + np.cumsum(~is_first) - 1)
    goes_left = is_left[set_index, code]
    chain_right = np.where(is_last, tree.left_child[node] + goes_left, np.roll(index, -1))
    origin = np.concatenate((np.arange(tree.n_nodes), node[~is_first]))
    missing_left, threshold = tree.missing_left[origin], tree.threshold[origin]
    left, right = tree.left_child[origin].astype(np.int64), tree.right_child[origin].astype(np.int64)
    # Missing values leave a chain at the first node from which codes go to the side of missing values.
    missing_left[index] = goes_left == tree.missing_left[node]
    threshold[index], left[index], right[index] = code + 0.5, tree.left_child[node] + ~goes_left, chain_right
    return ThresholdNodes(tree.feature[origin], threshold, missing_left, left, right, origin, tree.weight[origin])


class _Level(NamedTuple):
    """The copies at one depth, with the values that reach them: for each feature split by sets, a range of codes."""

    node: NDArray[np.int64]
    weight: NDArray[np.float64]
    low: NDArray[np.int16]  # lowest code, (n_copies, n_set_features)
    high: NDArray[np.int16]  # highest code
    missing: NDArray[np.bool_]  # whether missing values reach the copy


class _Copier:
    """Copies the nodes from `to_chains`, level by level, once for each path on which a sample can reach them."""

    def __init__(self, tree: Tree, n_codes: Mapping[int, int]) -> None:
        self.nodes = nodes = to_chains(tree, n_codes)
        self.features = np.unique(tree.feature[tree.set_nodes])
        self.by_set = np.isin(nodes.feature, self.features)
        # For nodes split by a set: the column of the feature in `_Level.low`, the last code on the left, and the set.
        self.column = np.searchsorted(self.features, nodes.feature)
        self.code = np.floor(np.where(self.by_set, nodes.threshold, 0.0)).astype(np.int64)
        self.set_index = np.searchsorted(tree.set_nodes, nodes.origin)
        # Weights of codes are unknown, so the weight of a child is divided evenly among its codes. Missing values count
        # as one more code.
        is_left, n_known = _sets_of(tree, n_codes)
        left_child, missing_left = tree.left_child[tree.set_nodes], tree.missing_left[tree.set_nodes]
        is_known = np.arange(MISSING_CODE) < n_known[:, None]
        n_left = np.sum(is_left & is_known, axis=1) + missing_left
        left_weight = tree.weight[left_child] / np.maximum(n_left, 1)
        right_weight = tree.weight[left_child + 1] / np.maximum(n_known + 1 - n_left, 1)
        code_weights = np.where(is_left, left_weight[:, None], right_weight[:, None]) * is_known
        # (n_sets, 256), item c of a set is the total weight of the codes below c.
        self.weight_below = np.pad(np.cumsum(code_weights, axis=1), ((0, 0), (1, 0)))
        self.missing_weight = np.where(missing_left, left_weight, right_weight)

    def skip(self, level: _Level) -> tuple[_Level, NDArray[np.float64], NDArray[np.float64]]:
        """Replace nodes in which all values go to one side by the next descendant that is a leaf or splits the values.

        Return the copies, and the weights that go left and right in each, which are undefined for leaves.
        """
        rows, node = np.arange(len(level.node)), level.node.copy()
        left, right = np.empty(len(node)), np.empty(len(node))
        while len(rows) > 0:
            left[rows], right[rows] = self._split_weights(level, rows, node[rows])
            rows = rows[(self.nodes.left[node[rows]] >= 0) & ((left[rows] == 0.0) | (right[rows] == 0.0))]
            node[rows] = np.where(left[rows] > 0.0, self.nodes.left[node[rows]], self.nodes.right[node[rows]])
        return level._replace(node=node), left, right

    def _split_weights(
        self, level: _Level, rows: NDArray[np.intp], node: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights that go left and right in `node` of the given copies, 0 if no value can go there."""
        left, right = self.nodes.weight[self.nodes.left[node]], self.nodes.weight[self.nodes.right[node]]
        split = np.flatnonzero(self.by_set[node])
        rows, node = rows[split], node[split]
        column, code, set_index = self.column[node], self.code[node], self.set_index[node]
        low, high = level.low[rows, column], level.high[rows, column]
        known_left = self.weight_below[set_index, np.minimum(code, high) + 1] - self.weight_below[set_index, low]
        known_right = self.weight_below[set_index, high + 1] - self.weight_below[set_index, np.maximum(code + 1, low)]
        missing, missing_left = level.missing[rows, column], self.nodes.missing_left[node]
        left[split] = np.maximum(known_left, 0.0) + self.missing_weight[set_index] * (missing & missing_left)
        right[split] = np.maximum(known_right, 0.0) + self.missing_weight[set_index] * (missing & ~missing_left)
        return left, right

    def children(self, level: _Level, proportion: NDArray[np.float64]) -> _Level:
        """Return all left children, then all right children; `proportion` of the weight goes left."""
        rows = np.flatnonzero(self.by_set[level.node])
        node = level.node[rows]
        column, code, missing_left = self.column[node], self.code[node], self.nodes.missing_left[node]
        left, right = (_Level._make(part.copy() for part in level) for _ in range(2))
        left.high[rows, column] = np.minimum(left.high[rows, column], code)
        right.low[rows, column] = np.maximum(right.low[rows, column], code + 1)
        left.missing[rows, column] &= missing_left
        right.missing[rows, column] &= ~missing_left
        left = left._replace(node=self.nodes.left[level.node], weight=level.weight * proportion)
        right = right._replace(node=self.nodes.right[level.node], weight=level.weight * (1.0 - proportion))
        parts: Iterable[Any] = zip(left, right)
        return _Level._make(map(np.concatenate, parts))


def to_threshold_tree(tree: Tree, n_codes: Mapping[int, int], most_nodes: int) -> ThresholdNodes:
    """Return the nodes of `to_chains` as a tree, parents first; ValueError if there are more than `most_nodes`.

    Nodes below a chain are copied for each path to them. The weights of the copies sum to the weight of the node.
    """
    if len(tree.set_nodes) == 0:
        return to_chains(tree, n_codes)
    copier, levels, n_nodes = _Copier(tree, n_codes), [], 0
    # All codes and missing values reach the root.
    high = np.array([[n_codes[feature] - 1 for feature in copier.features.tolist()]], dtype=np.int16)
    level = _Level(np.zeros(1, np.int64), copier.nodes.weight[:1], np.zeros_like(high), high, high >= 0)
    while len(level.node) > 0:
        level, left_weight, right_weight = copier.skip(level)
        reached = ThresholdNodes._make(part[level.node] for part in copier.nodes)
        split = np.flatnonzero(reached.left >= 0)
        n_nodes += len(level.node)
        if n_nodes + 2 * len(split) > most_nodes or 2 * len(split) * len(copier.features) > _MOST_RANGES:
            raise ValueError(
                "the trees are too large for scikit-learn, which needs a threshold for each range of categories: a tree"
                f" would have more than {most_nodes} nodes, or {_MOST_RANGES} ranges at one depth; use to_onnx"
            )
        left, right = np.full(len(level.node), -1), np.full(len(level.node), -1)
        left[split] = n_nodes + np.arange(len(split))
        right[split] = left[split] + len(split)
        levels.append(reached._replace(left=left, right=right, weight=level.weight))
        level = _Level._make(part[split] for part in level)
        level = copier.children(level, left_weight[split] / (left_weight[split] + right_weight[split]))
    return ThresholdNodes._make(map(np.concatenate, zip(*levels)))
