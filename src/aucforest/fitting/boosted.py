"""Gradient boosting: trees are grown one after the other, each on the errors of the trees before it.

A stage adds one tree for each class, or a single tree if there are two classes. The tree separates the samples of its
class from all others by the Gini criterion. Let p be the current estimate of the class probability of a sample, and
g = is_class - p. The weight of the sample is abs(g). Then the gain of a split is half the increase of the sum of
G^2 / W over nodes, where G is the sum of g in a node, and W is the sum of abs(g). The expectation of abs(g) is
2 p (1 - p), so the gain is about half the decrease in log loss by Newton steps in the leaves (Friedman, Hastie,
Tibshirani 2000, Annals of Statistics 28). So boosted trees can be grown like those of a forest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.growing import TreeBuffers, grow_rows
from aucforest.fitting.parts import Growth, Part, TreeRows
from aucforest.tree.prediction import PackedTrees
from aucforest.tree.samples import FixedPoint
from aucforest.tree.tree import LEAF, Tree

# The learning rate for two classes. With more classes, there are fewer stages, so the rate is multiplied by a factor
# of at most _MOST_FACTOR.
_LEARNING_RATE, _MOST_FACTOR = 0.1, 3.0
# A step is gradient / (second derivative + _L2), clipped to the interval from -_MOST_STEP to _MOST_STEP.
_L2, _MOST_STEP = 1.0, 5.0
# A tree is grown without the rows whose error is below _LEAST_ERROR and below _LEAST_SHARE times the mean error.
_LEAST_ERROR, _LEAST_SHARE = 0.01, 0.25


class BoostingRows(NamedTuple):
    """The rows that trees are fitted to, and held-out rows for early stopping."""

    part: Part  # the rows of the fit; weights are positive and have about the mean 1
    values: NDArray[np.float64]  # (n_rows, n_features), the features of these rows
    features: NDArray[np.int64] | None  # the indices of the features that have codes in `part`, None for all
    held_out: NDArray[np.float64]  # (n_held_out, n_features), the features of held-out rows
    held_out_labels: NDArray[np.uint16]
    held_out_weights: NDArray[np.float64]


class BoostedTree(NamedTuple):
    """A tree for one class: each leaf has a step, which is added to the class score of its samples."""

    tree: Tree
    k: int  # the class; with two classes the second, and the steps are subtracted from the score of the first
    steps: NDArray[np.float64]  # (n_nodes,), for an inner node the mean step of its samples


class BoostingState(NamedTuple):
    """The trees so far, and the class scores that they give the fitted and the held-out rows; updated in place."""

    trees: list[BoostedTree]
    # (n_classes, n_rows), because sums over the first axis are much faster for few classes.
    scores: NDArray[np.float64]
    held_out_scores: NDArray[np.float64]


def sum_steps(trees: Iterable[BoostedTree], X: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Return the sum of the steps of trees for each row and class."""
    total = np.zeros((n_classes, len(X)))
    for boosted in trees:
        _add_steps(total, boosted, PackedTrees([boosted.tree]).find_leaves(X)[0])
    return np.ascontiguousarray(total.T)


def _add_steps(scores: NDArray[np.float64], boosted: BoostedTree, leaves: NDArray[np.int64]) -> None:
    steps = boosted.steps[leaves]
    scores[boosted.k] += steps
    if len(scores) == 2:
        scores[0] -= steps


class Booster:
    """Fits trees one after the other to the same rows; `state` is that of an earlier fit, to which trees are added."""

    def __init__(self, growth: Growth, rows: BoostingRows, state: BoostingState | None = None) -> None:
        part, n_classes = rows.part, growth.n_classes
        self._rows = rows
        self._classes = boosted_classes(n_classes)
        self._weights = np.ones(part.n_rows) if part.weights is None else part.weights
        # One fixed-point format suffices for the weights in all trees, because errors are at most 1.
        fixed = FixedPoint.for_sums(float(self._weights.max()), part.n_rows)
        self._growth = replace(growth, weighted=True, fixed=fixed, rates=None, n_classes=2)
        self._buffers = TreeBuffers(part.n_rows)
        self._factor = _LEARNING_RATE * min(np.sqrt(n_classes / 2), _MOST_FACTOR) * (n_classes - 1) / n_classes
        if state is None:
            frequencies = np.bincount(part.labels, self._weights, minlength=n_classes) / self._weights.sum()
            start = np.log(np.maximum(frequencies, 1.0 / part.n_rows))[:, None]
            scores = (np.repeat(start, len(values), axis=1) for values in (rows.values, rows.held_out))
            state = BoostingState([], *scores)
        self.state = state

    def add_stage(self, keys: Sequence[int]) -> float:
        """Add a tree for each class, and return the weighted sum of the log losses of the held-out rows."""
        trees, scores, held_out_scores = self.state
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
            _add_steps(held_out_scores, boosted, packed.find_leaves(self._rows.held_out)[0])
        labels = self._rows.held_out_labels
        shifted = held_out_scores - held_out_scores.max(axis=0)
        logs = shifted[labels, np.arange(len(labels))] - np.log(np.exp(shifted).sum(axis=0))
        return -float(np.sum(self._rows.held_out_weights * logs))

    def _grow(self, k: int, proba: NDArray[np.float64], key: int) -> Tree:
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
        gradients = (self._rows.part.labels == k) - proba
        weight, gradient, hessian = (
            np.bincount(leaves, values, minlength=tree.n_nodes)
            for values in (self._weights, self._weights * gradients, self._weights * (proba * (1.0 - proba)))
        )
        steps = self._factor * np.clip(gradient / (hessian + _L2), -_MOST_STEP, _MOST_STEP)
        # Lists are faster than arrays for access to single items. Children come after their parent.
        weights, means, children = weight.tolist(), steps.tolist(), tree.left_child.tolist()
        for node in np.flatnonzero(tree.left_child != LEAF)[::-1].tolist():
            left = children[node]
            weights[node] = weights[left] + weights[left + 1]
            means[node] = (weights[left] * means[left] + weights[left + 1] * means[left + 1]) / weights[node]
        return BoostedTree(replace(tree, weight=np.array(weights)), k, np.array(means))


def boosted_classes(n_classes: int) -> range:
    """Return the classes for which a stage adds a tree."""
    return range(1, 2) if n_classes == 2 else range(n_classes)
