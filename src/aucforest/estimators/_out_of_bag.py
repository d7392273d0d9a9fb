"""Sums over the trees that did not draw a row."""

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

    def counts(self, block: int, trees: range) -> NDArray[np.uint16]:
        """Return how often these trees drew the rows of a block, shape (n_trees, n_block_rows)."""
        by_block = self._by_block
        return np.stack([
            self.draws.counts_of_blocks(self.keys[tree], by_block[tree][block : block + 1], block) for tree in trees
        ])  # fmt: skip


def sum_out_of_bag(
    bags: Bags,
    X: NDArray[Any],
    packed: PackedTrees,
    trees: range,
    values: NDArray[np.float64],
    n_jobs: int | None,
    wanted: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum what leaves are worth over the trees that did not draw a row.

    Parameters
    ----------
    bags : Bags
    X : ndarray of shape (n_samples, n_features)
        The training table.
    packed : PackedTrees
        All trees of the forest.
    trees : range
        The trees to sum over, in order.
    values : ndarray of shape (n_leaves of these trees, n_values), float64
        What to sum, such as ``packed.values``.
    n_jobs : int or None
    wanted : ndarray of shape (n_wanted,), int64
        The rows of X to sum for, rising, of those that trees draw from.

    Returns
    -------
    total : ndarray of shape (n_wanted, n_values), float64
    n_trees : ndarray of shape (n_wanted,), int64
        Number of trees in the sums; 0 for a row that all trees drew.
    """
    total, n_trees = np.zeros((len(wanted), values.shape[1])), np.zeros(len(wanted), dtype=np.int64)
    arguments = packed.arguments(values, trees)

    def add_block(block: int) -> None:
        rows = bags.rows(block)
        start, stop = np.searchsorted(wanted, (rows[0], rows[-1] + 1))
        chosen = np.searchsorted(rows, wanted[start:stop])
        if len(chosen) == 0:
            return
        counts = np.ascontiguousarray(bags.counts(block, trees)[:, chosen])
        table = np.ascontiguousarray(X[wanted[start:stop]], dtype=np.float64)
        active, leaves = np.empty(len(chosen), dtype=np.uint64), np.empty(len(chosen), dtype=np.uint32)
        add_out_of_bag(*(*arguments, table, counts, active, leaves, total[start:stop], n_trees[start:stop]))

    for _ in run_in_threads(n_jobs)(add_block, range(bags.n_blocks)):
        pass
    return total, n_trees
