"""Which training rows the trees of a fitted forest drew."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _check_sample_weight

from aucforest.estimators._growing import tree_keys
from aucforest.metrics._validation import class_codes
from aucforest.tree.random import BLOCK_ROWS, block_draws, draw_blocks


@dataclass(frozen=True)
class Bags:
    draws: Any
    keys: list[int]
    kept: NDArray[np.int64]

    @property
    def n_trees(self) -> int:
        return len(self.keys)

    @property
    def n_blocks(self) -> int:
        return -(-len(self.kept) // BLOCK_ROWS)

    def rows(self, block: int) -> NDArray[np.int64]:
        return self.kept[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]

    def counts(self, block: int, trees: range) -> NDArray[np.uint16]:
        out = np.empty((len(trees), len(self.rows(block))), dtype=np.uint16)
        for i, t in enumerate(trees):
            d = block_draws(self.keys[t], len(self.kept), self.draws)
            draw_blocks(np.uint64(self.keys[t]), d[block : block + 1], block, out[i])
        return out


def training_bags(forest, labels, kept) -> Bags:
    n_draws, n_rows = forest._drawn[0]
    return Bags(n_draws, tree_keys(forest._seed, range(len(forest.trees_))), kept)


@dataclass(frozen=True)
class TrainingRows:
    """The training data of a fitted forest, given once more, and what its trees drew of them.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    labels : ndarray of shape (n_rows,), int64
        The numbers of their classes.
    sample_weight : ndarray of shape (n_rows,), float64, or None
    bags : Bags
        Of the rows of positive weight.
    """

    X: NDArray[Any]
    labels: NDArray[np.int64]
    sample_weight: NDArray[np.float64] | None
    bags: Bags

    def counts(self) -> NDArray[np.uint16]:
        """Return how often each tree drew each row, shape (n_rows, n_trees)."""
        bags = self.bags
        counts = np.zeros((len(self.labels), bags.n_trees), dtype=np.uint16)
        for block in range(bags.n_blocks):
            counts[bags.rows(block)] = bags.counts(block, range(bags.n_trees)).T
        return counts


def training_rows(forest: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> TrainingRows:
    """Return the training data after a check that they are those of the forest.

    Rows are recognised by the leaves of the first tree, which remember how many different rows they were made of.
    """
    if not forest.bootstrap:
        raise ValueError("out of bag needs a forest of bootstrap=True: without draws no row is out of bag")
    X = forest._validate_X(X, reset=False)
    labels, _ = class_codes(column_or_1d(y), len(X), labels=forest.classes_)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    kept = np.arange(len(X)) if sample_weight is None else np.flatnonzero(sample_weight)
    bags = Bags(forest._drawn[0][0], tree_keys(forest._seed, range(len(forest.trees_))), kept)
    if forest._drawn != [(bags.draws, len(kept))]:
        raise ValueError(f"rows {len(kept)}")
    rows = TrainingRows(X, labels, sample_weight, bags)
    return rows
