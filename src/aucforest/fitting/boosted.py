"""Gradient boosting: trees are grown one after the other, each on the errors of the trees before it.

For each class (of two classes, only for the second), a tree separates the rows of the class from other rows by the Gini
criterion. Let p be the current class probability of a row, and g = is_class - p. The weight of the row is abs(g). Then
the gain of a split is half the increase of the sum of G^2 / W over nodes. G is the sum of g in a node, and W is the sum
of abs(g). As abs(g) is 2 p (1 - p) in expectation, this is about half the decrease in log loss by Newton steps in the
leaves (Friedman, Hastie, Tibshirani 2000, Annals of Statistics 28). So trees can be grown like those of a forest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.growing import TreeBuffers, grow_rows
from aucforest.fitting.parts import Growth, Part, TreeRows
from aucforest.tree.prediction import PackedTrees
from aucforest.tree.samples import FixedPoint
from aucforest.tree.tree import LEAF, Tree

# The learning rate, which steps of leaves are multiplied by. With more classes, each class has fewer trees, so the rate
# is multiplied by a factor, of at most _MOST_FACTOR.
_LEARNING_RATE, _MOST_FACTOR = 0.1, 3.0
# The L2 penalty on the step of a leaf, which is added to the second derivative, and the maximum of a step.
_L2, _MOST_STEP = 1.0, 5.0
# A tree leaves out rows whose error is below _LEAST_ERROR and below _LEAST_SHARE of the mean error.
_LEAST_ERROR, _LEAST_SHARE = 0.01, 0.25


class BoostingRows(NamedTuple):
    """The rows that trees are fitted to, and held-out rows, which show when to stop."""

    part: Part  # the rows of the fit; weights are positive and have about the mean 1
    values: NDArray[np.float64]  # (n_rows, n_features), the features of these rows
    features: NDArray[np.int64] | None  # the indices of the features that have codes in `part`, None for all
    held_out: NDArray[np.float64]  # (n_held_out, n_features)
    held_out_labels: NDArray[np.uint16]
    held_out_weights: NDArray[np.float64]


class BoostedTree(NamedTuple):
    """A tree whose leaves have steps of the score of a class."""

    tree: Tree
    k: int  # the class; if it is the second of two, the first one has the opposite steps
    steps: NDArray[np.float64]  # (n_nodes,), the mean step of the leaves below a node


class BoostingState(NamedTuple):
    """The trees of a series so far, and the scores by these trees, which are updated in place."""

    trees: list[BoostedTree]
    # (n_classes, n_rows), because sums over the first axis are much faster for few classes.
    scores: NDArray[np.float64]
    held_out: NDArray[np.float64]

    @classmethod
    def before_trees(cls, rows: BoostingRows, frequencies: NDArray[np.float64]) -> Self:
        """Return the state without trees, with scores from the class frequencies."""
        start = np.log(np.maximum(frequencies, 1.0 / rows.part.n_rows))[:, None]
        return cls([], np.repeat(start, len(rows.values), axis=1), np.repeat(start, len(rows.held_out), axis=1))


def sum_steps(trees: Iterable[BoostedTree], X: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Return the sum of the steps of trees for each row and class."""
    total = np.zeros((n_classes, len(X)))
    for boosted in trees:
        _add_steps(total, boosted, PackedTrees([boosted.tree]).find_leaves(X)[0])
    return np.ascontiguousarray(total.T)


def _add_steps(scores: NDArray[np.float64], boosted: BoostedTree, leaves: NDArray[np.int64]) -> None:
    """Add the steps of leaves to scores, (n_classes, n_rows)."""
    steps = boosted.steps[leaves]
    scores[boosted.k] += steps
    if len(scores) == 2:
        scores[0] -= steps


class Booster:
    """Trees that are fitted one after the other to the same rows; given a state, they are added to its trees."""

    def __init__(self, growth: Growth, rows: BoostingRows, state: BoostingState | None = None) -> None:
        part, n_classes = rows.part, growth.n_classes
        self._rows = rows
        self._classes = boosted_classes(n_classes)
        self._weights = np.ones(part.n_rows) if part.weights is None else part.weights
        # One fixed-point format suffices for all trees, because errors are at most 1.
        fixed = FixedPoint.for_sums(float(self._weights.max()), part.n_rows)
        self._growth = replace(growth, weighted=True, fixed=fixed, rates=None, n_classes=2)
        self._buffers = TreeBuffers(part.n_rows)
        self._factor = _LEARNING_RATE * min(np.sqrt(n_classes / 2), _MOST_FACTOR) * (n_classes - 1) / n_classes
        frequencies = np.bincount(part.labels, self._weights, minlength=n_classes) / self._weights.sum()
        self.state = BoostingState.before_trees(rows, frequencies) if state is None else state

    def add_stage(self, keys: Sequence[int]) -> float:
        """Add a tree for each class, and return the weighted sum of the log losses of the held-out rows."""
        trees, scores, held_out = self.state
        # scipy.special.softmax takes several times as long for few classes.
        proba = np.exp(scores - scores.max(axis=0))
        proba /= proba.sum(axis=0)
        for k, key in zip(self._classes, keys):
            tree = self._grow(k, proba[k], key)
            packed = PackedTrees([tree])
            leaves = packed.find_leaves(self._rows.values)[0]
            boosted = self._with_steps(tree, k, proba[k], leaves)
            trees.append(boosted)
            _add_steps(scores, boosted, leaves)
            _add_steps(held_out, boosted, packed.find_leaves(self._rows.held_out)[0])
        labels = self._rows.held_out_labels
        shifted = held_out - held_out.max(axis=0)
        logs = shifted[labels, np.arange(len(labels))] - np.log(np.exp(shifted).sum(axis=0))
        return -float(np.sum(self._rows.held_out_weights * logs))

    def _grow(self, k: int, proba: NDArray[np.float64], key: int) -> Tree:
        """Return a tree for class k, given the probability of this class for each row."""
        is_class = self._rows.part.labels == k
        error = np.abs(is_class - proba)
        part = self._rows.part._replace(labels=is_class.astype(np.uint16), weights=self._weights * error)
        counts = (error >= min(_LEAST_ERROR, _LEAST_SHARE * error.mean())).astype(np.uint16)
        tree = grow_rows(self._growth, TreeRows.of_tree(part, counts), [key], self._buffers)[0]
        if (features := self._rows.features) is not None:
            feature = np.append(features, LEAF).astype(np.int32)[tree.feature]  # LEAF is -1, the index of the last item
            tree = replace(tree, feature=feature, n_features=self._rows.values.shape[1])
        return tree

    def _with_steps(self, tree: Tree, k: int, proba: NDArray[np.float64], leaves: NDArray[np.int64]) -> BoostedTree:
        """Return a tree for class k with the steps of its nodes, given the leaf of each row."""
        gradients = (self._rows.part.labels == k) - proba
        weight, gradient, hessian = (
            np.bincount(leaves, values, minlength=tree.n_nodes)
            for values in (self._weights, self._weights * gradients, self._weights * (proba * (1.0 - proba)))
        )
        steps = self._factor * np.clip(gradient / (hessian + _L2), -_MOST_STEP, _MOST_STEP)
        # Lists are faster than arrays for single items. Children come after their parent.
        weights, means, children = weight.tolist(), steps.tolist(), tree.left_child.tolist()
        for node in np.flatnonzero(tree.left_child != LEAF)[::-1].tolist():
            left = children[node]
            weights[node] = weights[left] + weights[left + 1]
            means[node] = (weights[left] * means[left] + weights[left + 1] * means[left + 1]) / weights[node]
        return BoostedTree(replace(tree, weight=np.array(weights)), k, np.array(means))


def boosted_classes(n_classes: int) -> range:
    """Return the classes that have trees."""
    return range(1, 2) if n_classes == 2 else range(n_classes)
