"""Splits by sets of categories as splits by thresholds, for formats that know nothing else.

The codes of a feature are walked in rising order: a set becomes a chain of thresholds, one wherever the next code goes
to the other side. All links of a chain lead to the same two children, so the nodes of `chained` share children;
`copied` makes a tree of them again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.tree.tree import MISSING_CODE, SET_WORDS, Tree

# Copies of one level times features split by sets: some hundred MB.
_MOST_RANGES = 2**26


class ThresholdNodes(NamedTuple):
    """Nodes that compare a value with a threshold, each of shape (n_nodes,); node 0 is the root."""

    feature: NDArray[np.int32]  # -1 for a leaf
    threshold: NDArray[np.float64]  # values up to and including this one go left
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]  # the children, -1 for a leaf
    right: NDArray[np.int64]
    origin: NDArray[np.int64]  # the node of the tree that a node comes from: they say the same of the classes
    weight: NDArray[np.float64]  # of the training rows in the node


def _sets_of(tree: Tree, n_codes: Mapping[int, int]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return for each set which codes go left, (n_sets, 255), and how many codes its feature has."""
    bits = tree.sets[:, :, None] >> np.arange(64, dtype=np.uint64)
    is_left = (bits & np.uint64(1)).astype(np.bool_).reshape(len(tree.sets), 64 * SET_WORDS)[:, :MISSING_CODE]
    return is_left, np.array([n_codes[feature] for feature in tree.feature[tree.set_nodes].tolist()], dtype=np.int64)


def chained(tree: Tree, n_codes: Mapping[int, int]) -> ThresholdNodes:
    """Return the nodes of a tree, with their numbers, and behind them what its sets take beyond one threshold each."""
    is_left, n_known = _sets_of(tree, n_codes)
    # After which codes the side changes; a set of all codes or of none changes after the last one.
    changes = np.zeros_like(is_left)
    changes[:, :-1] = (is_left[:, :-1] != is_left[:, 1:]) & (np.arange(1, MISSING_CODE) < n_known[:, None])
    all_alike = ~changes.any(axis=1)
    changes[all_alike, n_known[all_alike] - 1] = True
    row, code = np.nonzero(changes)
    is_first, is_last = np.diff(row, prepend=-1) > 0, np.diff(row, append=len(is_left)) > 0

    node = tree.set_nodes[row]
    place = np.where(is_first, node, tree.n_nodes + np.cumsum(~is_first) - 1)
    goes_left = is_left[row, code]
    beyond = np.where(is_last, tree.left_child[node] + goes_left, np.roll(place, -1))
    origin = np.concatenate((np.arange(tree.n_nodes), node[~is_first]))
    missing_left, threshold = tree.missing_left[origin], tree.threshold[origin]
    left, right = tree.left_child[origin].astype(np.int64), tree.right_child[origin].astype(np.int64)
    missing_left[place] = goes_left == tree.missing_left[node]
    threshold[place], left[place], right[place] = code + 0.5, tree.left_child[node] + ~goes_left, beyond
    return ThresholdNodes(tree.feature[origin], threshold, missing_left, left, right, origin, tree.weight[origin])


class _Front(NamedTuple):
    """Copies of nodes not yet written down, and what reaches them: of each feature split by sets, a range of codes."""

    node: NDArray[np.int64]
    weight: NDArray[np.float64]
    low: NDArray[np.int16]
    high: NDArray[np.int16]
    missing: NDArray[np.bool_]


class _Copier:
    """Goes down from the root of shared nodes on every way that a row can take."""

    def __init__(self, tree: Tree, n_codes: Mapping[int, int]) -> None:
        self.nodes = nodes = chained(tree, n_codes)
        self.features = np.unique(tree.feature[tree.set_nodes])
        self.by_set = np.isin(nodes.feature, self.features)
        self.set = np.searchsorted(tree.set_nodes, nodes.origin)
        # Nothing says how the rows on one side of a set share its codes and missing values: evenly.
        is_left, n_known = _sets_of(tree, n_codes)
        left_child, missing_left = tree.left_child[tree.set_nodes], tree.missing_left[tree.set_nodes]
        is_known = np.arange(MISSING_CODE) < n_known[:, None]
        n_left = np.sum(is_left & is_known, axis=1) + missing_left
        mass_left = tree.weight[left_child] / np.maximum(n_left, 1)
        mass_right = tree.weight[left_child + 1] / np.maximum(n_known + 1 - n_left, 1)
        masses = np.where(is_left, mass_left[:, None], mass_right[:, None]) * is_known
        self.mass_below = np.pad(np.cumsum(masses, axis=1), ((0, 0), (1, 0)))
        self.mass_missing = np.where(missing_left, mass_left, mass_right)

    def root(self, n_codes: Mapping[int, int]) -> _Front:
        """Return the root, which everything reaches."""
        high = np.array([[n_codes[feature] - 1 for feature in self.features.tolist()]], dtype=np.int16)
        return _Front(np.zeros(1, np.int64), self.nodes.weight[:1], np.zeros_like(high), high, high >= 0)

    def settle(self, front: _Front) -> tuple[_Front, NDArray[np.float64], NDArray[np.float64]]:
        """Go on from nodes that all pass on one side; return how much goes left and right in those that split."""
        rows, node = np.arange(len(front.node)), front.node.copy()
        left, right = np.empty(len(node)), np.empty(len(node))
        while len(rows) > 0:
            left[rows], right[rows] = self._masses(front, rows, node[rows])
            rows = rows[(self.nodes.left[node[rows]] >= 0) & ((left[rows] == 0.0) | (right[rows] == 0.0))]
            node[rows] = np.where(left[rows] > 0.0, self.nodes.left[node[rows]], self.nodes.right[node[rows]])
        return front._replace(node=node), left, right

    def _masses(
        self, front: _Front, rows: NDArray[np.intp], node: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return how much of some rows goes left and right in each node that is no leaf: 0 where nothing can."""
        left, right = self.nodes.weight[self.nodes.left[node]], self.nodes.weight[self.nodes.right[node]]
        split, column, code = self._split_by_set(node)
        rows, number = rows[split], self.set[node[split]]
        low, high = front.low[rows, column], front.high[rows, column]
        known_left = self.mass_below[number, np.minimum(code, high) + 1] - self.mass_below[number, low]
        known_right = self.mass_below[number, high + 1] - self.mass_below[number, np.maximum(code + 1, low)]
        missing, missing_left = front.missing[rows, column], self.nodes.missing_left[node[split]]
        left[split] = np.maximum(known_left, 0.0) + self.mass_missing[number] * (missing & missing_left)
        right[split] = np.maximum(known_right, 0.0) + self.mass_missing[number] * (missing & ~missing_left)
        return left, right

    def _split_by_set(self, node: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Return which nodes belong to chains, the columns of their features, and the last codes that go left."""
        rows = np.flatnonzero(self.by_set[node])
        node = node[rows]
        codes = np.floor(self.nodes.threshold[node]).astype(np.int64)
        return rows, np.searchsorted(self.features, self.nodes.feature[node]), codes

    def children(self, front: _Front, proportion: NDArray[np.float64]) -> _Front:
        """Return all left children and then all right ones; such a proportion of the weight goes left."""
        rows, column, code = self._split_by_set(front.node)
        missing_left = self.nodes.missing_left[front.node[rows]]
        left, right = (_Front._make(part.copy() for part in front) for _ in range(2))
        left.high[rows, column] = np.minimum(left.high[rows, column], code)
        right.low[rows, column] = np.maximum(right.low[rows, column], code + 1)
        left.missing[rows, column] &= missing_left
        right.missing[rows, column] &= ~missing_left
        left = left._replace(node=self.nodes.left[front.node], weight=front.weight * proportion)
        right = right._replace(node=self.nodes.right[front.node], weight=front.weight * (1.0 - proportion))
        parts: Iterable[Any] = zip(left, right)
        return _Front._make(map(np.concatenate, parts))


def copied(tree: Tree, n_codes: Mapping[int, int], most_nodes: int) -> ThresholdNodes:
    """Return nodes with one parent each, before them; ValueError if there would be more than `most_nodes` copies.

    What hangs below a set is copied for every way that leads there, and the weights of copies add up.
    """
    if len(tree.set_nodes) == 0:
        return chained(tree, n_codes)
    copier = _Copier(tree, n_codes)
    front, levels, n_nodes = copier.root(n_codes), [], 0
    while len(front.node) > 0:
        front, left_mass, right_mass = copier.settle(front)
        of_tree = ThresholdNodes._make(part[front.node] for part in copier.nodes)
        split = np.flatnonzero(of_tree.left >= 0)
        n_nodes += len(front.node)
        if n_nodes + 2 * len(split) > most_nodes or 2 * len(split) * len(copier.features) > _MOST_RANGES:
            raise ValueError(
                "the trees are too large for scikit-learn, which needs a threshold for each range of categories: a tree"
                f" would have more than {most_nodes} nodes, or {_MOST_RANGES} ranges at one depth; use to_onnx"
            )
        left, right = np.full(len(front.node), -1), np.full(len(front.node), -1)
        left[split] = n_nodes + np.arange(len(split))
        right[split] = left[split] + len(split)
        levels.append(of_tree._replace(left=left, right=right, weight=front.weight))
        front = _Front._make(part[split] for part in front)
        front = copier.children(front, left_mass[split] / (left_mass[split] + right_mass[split]))
    return ThresholdNodes._make(map(np.concatenate, zip(*levels)))
