"""Sums over the trees that did not draw a row."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._growing import run_in_threads
from aucforest.tree.sampling import BLOCK_ROWS, RowDraws
from aucforest.tree.traverse import PackedTrees, add_out_of_bag


@dataclass(frozen=True)
class Bags:
    """Which rows every tree drew, drawn anew when asked: cheaper than to remember.

    Attributes
    ----------
    draws : RowDraws
    keys : list of int
        The keys of the trees.
    kept : ndarray of shape (n_rows,), int64
        The rows of the training table that trees draw from, those of positive weight.
    """

    draws: RowDraws
    keys: list[int]
    kept: NDArray[np.int64]

    @cached_property
    def _by_block(self) -> list[NDArray[np.int64]]:
        return [self.draws.by_block(key) for key in self.keys]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.keys)

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows."""
        return len(self.draws.starts)

    def rows(self, block: int) -> NDArray[np.int64]:
        """Return the rows of a block, by their numbers in the training table."""
        return self.kept[block * BLOCK_ROWS : (block + 1) * BLOCK_ROWS]

    def find(self, block: int, wanted: NDArray[np.int64]) -> tuple[slice, NDArray[np.int64]]:
        """Return which part of rows, given by rising numbers, is in a block, and their positions there."""
        rows = self.rows(block)
        part = slice(*np.searchsorted(wanted, (rows[0], rows[-1] + 1)))
        return part, np.searchsorted(rows, wanted[part])

    def counts(self, block: int, trees: range) -> NDArray[np.uint16]:
        """Return how often these trees drew the rows of a block, shape (n_trees, n_block_rows)."""
        by_block = self._by_block
        return np.stack([
            self.draws.counts_of_blocks(self.keys[tree], by_block[tree][block : block + 1], block) for tree in trees
        ])  # fmt: skip


@dataclass(frozen=True)
class TrainingRows:
    """Training data, and the draws of the trees.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        As trees read it.
    labels : ndarray of shape (n_rows,), uint16
        The numbers of the classes.
    sample_weight : ndarray of shape (n_rows,), float64, or None
    bags : Bags
        Draws of the rows of positive weight.
    """

    X: NDArray[Any]
    labels: NDArray[np.uint16]
    sample_weight: NDArray[np.float64] | None
    bags: Bags

    def weights_of(self, rows: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return the weights of some rows, given by numbers or a mask; None where all count alike."""
        return None if self.sample_weight is None else self.sample_weight[rows]

    def counts(self, trees: range) -> NDArray[np.uint16]:
        """Return how often these trees drew each row, shape (n_rows, n_trees)."""
        bags = self.bags
        counts = np.zeros((len(self.labels), len(trees)), dtype=np.uint16)
        for block in range(bags.n_blocks):
            counts[bags.rows(block)] = bags.counts(block, trees).T
        return counts


def sum_out_of_bag(
    training: TrainingRows,
    packed: PackedTrees,
    trees: range,
    values: NDArray[np.float64],
    n_jobs: int | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum what leaves are worth over the trees that did not draw a row.

    Parameters
    ----------
    training : TrainingRows
    packed : PackedTrees
        All trees of the forest.
    trees : range
        The trees to sum over, in order.
    values : ndarray of shape (n_leaves of these trees, n_values), float64
        What to sum, such as ``packed.values``.
    n_jobs : int or None

    Returns
    -------
    total : ndarray of shape (n_rows, n_values), float64
    n_trees : ndarray of shape (n_rows,), int64
        Number of trees in the sums; 0 for a row that all trees drew, or of weight 0.
    """
    bags, n_rows = training.bags, len(training.labels)
    total, n_trees = np.zeros((n_rows, values.shape[1])), np.zeros(n_rows, dtype=np.int64)
    arguments = packed.arguments(values, trees)

    def add_block(block: int) -> None:
        rows, counts = bags.rows(block), bags.counts(block, trees)
        table = np.ascontiguousarray(training.X[rows], dtype=np.float64)
        active, leaves = np.empty(len(rows), dtype=np.uint64), np.empty(len(rows), dtype=np.uint32)
        sums, seen = np.zeros((len(rows), values.shape[1])), np.zeros(len(rows), dtype=np.int64)
        add_out_of_bag(*(*arguments, table, counts, active, leaves, sums, seen))
        total[rows], n_trees[rows] = sums, seen

    for _ in run_in_threads(n_jobs)(add_block, range(bags.n_blocks)):
        pass
    return total, n_trees


def warn_of_seen(n_seen: int, n_rows: int, n_trees: int, what: str, *, stacklevel: int = 3) -> None:
    """Warn of rows that all trees drew."""
    if n_seen > 0:
        message = f"{n_seen} of {n_rows} rows were drawn by all {n_trees} trees: they have no {what}"
        warnings.warn(message, stacklevel=stacklevel)
