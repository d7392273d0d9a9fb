"""Out-of-bag sums: for each row, the sum of the predictions of the trees whose samples do not contain the row."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.columns.sparse import SparseRows, dense_blocks
from aucforest.columns.target_rates import TargetRates, append_rates
from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler, GroupSampler
from aucforest.fitting.growing import thread_map
from aucforest.fitting.parts import indices_within
from aucforest.fitting.target_rates import LeftOutTotalsFinder
from aucforest.tree.prediction import BagCounts, PackedTrees, WalkBuffers, add_probabilities
from aucforest.tree.random import PARTS_OF_ROWS

# Number of random parts of the rows, for a jackknife, and for predictions of a part by models of the other parts.
N_PARTS = 10


@dataclass(frozen=True)
class Bags:
    """The bootstrap samples of trees, which are not stored, but sampled again when they are needed."""

    sampler: BootstrapSampler
    keys: list[int]  # the keys of the trees
    kept: NDArray[np.int64] | None  # the indices of the rows of positive weight, which are sampled; None for all

    @cached_property
    def _sampler_with_sizes(self) -> BootstrapSampler:
        return self.sampler.store_sizes(self.keys)

    @property
    def all_kept(self) -> NDArray[np.int64]:
        """The indices of the rows of positive weight."""
        return np.arange(self.sampler.n_rows) if self.kept is None else self.kept

    def rows(self, block: int) -> NDArray[np.int64]:
        """Return the rows of a block as indices of training rows; a block is BLOCK_ROWS consecutive kept rows."""
        first, last = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, self.sampler.n_rows)
        return np.arange(first, last) if self.kept is None else self.kept[first:last]

    def _kept_indices(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows if self.kept is None else np.searchsorted(self.kept, rows)

    def groups_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the groups of rows as integers, or None if trees do not sample groups."""
        if not isinstance(self.sampler, GroupSampler):
            return None
        return self.sampler.groups[self._kept_indices(rows)].astype(np.int64)

    def counts(self, block: int, trees: Iterable[int]) -> NDArray[np.uint16]:
        """Return the number of times that each row of a block is in the samples of trees, (n_trees, n_block_rows)."""
        sampler = self._sampler_with_sizes.part(block * BLOCK_ROWS, BLOCK_ROWS)
        return sampler.counts_of_trees([self.keys[i] for i in trees])

    def counts_at(self, rows: NDArray[np.int64], trees: Iterable[int], n_jobs: int | None) -> NDArray[np.uint16]:
        """Return how often rows, in ascending order, are in the samples of trees, (n_trees, n_rows)."""
        trees, indices = list(trees), self._kept_indices(rows)

        def count(block: int) -> NDArray[np.uint16]:
            return self.counts(block, trees)[:, indices_within(indices, block * BLOCK_ROWS, BLOCK_ROWS)]

        counted = thread_map(n_jobs)(count, np.unique(indices // BLOCK_ROWS).tolist())
        return np.concatenate([np.empty((len(trees), 0), dtype=np.uint16), *counted], axis=1)


def parts_of_rows(labels: NDArray[Any], groups: NDArray[np.int64] | None) -> NDArray[np.int8]:
    """Return the random part of each row, 0 to N_PARTS - 1; parts are stratified by class and have whole groups."""
    if groups is None:
        return _assign_parts(labels)
    # Groups are stratified by the rarest class of their rows.
    rarity = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))
    unique_groups, indices = np.unique(groups, return_inverse=True)
    group_rarity = np.zeros(len(unique_groups), dtype=np.int64)
    np.maximum.at(group_rarity, indices, rarity[labels])
    return _assign_parts(group_rarity)[indices]


def _assign_parts(classes: NDArray[Any]) -> NDArray[np.int8]:
    """Return random parts for items, with about equally many items of each class in all parts.

    Items are not assigned in turn, because tables are often sorted by customer. Then all parts would have about the
    same proportion of positive rows of each customer, and a model of the other parts would predict the left-out part
    better than new rows.
    """
    parts, generator = np.empty(len(classes), dtype=np.int8), np.random.default_rng([0, PARTS_OF_ROWS])
    n_assigned = 0
    for k in np.unique(classes):
        is_class = classes == k
        # Numbers continue from the previous class. Otherwise, rare classes would have items only in the first parts.
        numbers = np.arange(n_assigned, n_assigned + np.count_nonzero(is_class))
        parts[is_class] = generator.permutation((numbers % N_PARTS).astype(np.int8))
        n_assigned += len(numbers)
    return parts


class Sums(NamedTuple):
    """Sums of out-of-bag predictions. For several sets of trees, both arrays have a further, first axis."""

    total: NDArray[np.float64]  # (n_rows, n_classes)
    n_trees: NDArray[np.int64]  # (n_rows,), numbers of summed trees; 0 for rows of weight 0 and rows in all samples

    @classmethod
    def zero(cls, n_rows: int, n_classes: int) -> "Sums":
        """Return the sums over no trees."""
        return cls(np.zeros((n_rows, n_classes)), np.zeros(n_rows, dtype=np.int64))

    def copy_from(self, other: "Sums") -> None:
        """Overwrite these sums with other sums."""
        self.total[:], self.n_trees[:] = other


class RatedRows:
    """Training rows with target rates for out-of-bag predictions. The rates of a row leave out it or its group."""

    def __init__(self, rows: Any, rates: TargetRates, left_out: LeftOutTotalsFinder) -> None:
        self._rows, self._rates, self._left_out = rows, rates, left_out

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows by their indices."""
        return append_rates(self._rows[indices], self._rates, self._left_out(indices))

    def without_rates(self, indices: NDArray[np.int64] | slice) -> NDArray[Any]:
        """Return rows by their indices, without target rates."""
        return self._rows[indices]


# Computes out-of-bag sums over several ranges of trees, like `sum_out_of_bag`.
SumRows = Callable[[Bags, PackedTrees, Sequence[range], NDArray[np.int64] | None], list[Sums]]


@dataclass(frozen=True)
class TrainingRows:
    """Training data, and the bootstrap samples of the trees."""

    X: Any  # a matrix, (n_rows, n_features), or an object that returns its rows by index
    labels: NDArray[np.uint16]  # the indices of the classes
    sample_weight: NDArray[np.float64] | None
    bags: Bags
    sum_rows: SumRows | None = None  # computes out-of-bag sums if the rows are not in memory

    def take(self, rows: Any) -> Any:
        """Return rows of X; rows of a sparse matrix stay sparse."""
        return self.X.take(rows) if isinstance(self.X, SparseRows) else self.X[rows]

    def without_rates(self, rows: Any) -> Any:
        """Return rows of X as `fit` validated them, without target rates."""
        return self.X.without_rates(rows) if isinstance(self.X, RatedRows) else self.X[rows]

    def weights_of(self, rows: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return the weights of rows, given by indices or a mask; None if all weights are 1."""
        return None if self.sample_weight is None else self.sample_weight[rows]

    def counts(self, trees: range) -> NDArray[np.uint16]:
        """Return the number of times that each row is in the samples of trees, (n_rows, n_trees)."""
        bags = self.bags
        counts = np.zeros((len(self.labels), len(trees)), dtype=np.uint16)
        for block in range(bags.sampler.n_blocks):
            counts[bags.rows(block)] = bags.counts(block, trees).T
        return counts


@dataclass(frozen=True)
class TreeRanges:
    """Ranges of trees whose out-of-bag predictions are summed, with the bootstrap samples of all trees."""

    bags: Bags
    packed: PackedTrees
    ranges: Sequence[range]

    def add(
        self, sums: Sequence[Sums], first: int, X: NDArray[Any] | SparseRows, chosen: NDArray[np.int64] | None = None
    ) -> None:
        """Add the predictions for the rows of X to the sums of each range.

        X has consecutive rows of positive weight, and `first` is the index of its first row among all such rows. The
        sums over the first range are for all rows of X. Sums over other ranges are only for the rows `chosen` of X,
        ascending indices, or for all rows if None.
        """
        start, stop = min(trees.start for trees in self.ranges), max(trees.stop for trees in self.ranges)
        for block in range(first // BLOCK_ROWS, -(-(first + len(X)) // BLOCK_ROWS)):
            block_start = block * BLOCK_ROWS - first  # negative if X starts within the block
            block_rows = slice(max(block_start, 0), min(block_start + BLOCK_ROWS, len(X)))
            block_counts = self.bags.counts(block, range(start, stop))
            for rows, values in dense_blocks(X, block_rows):
                counts = block_counts[:, rows.start - block_start : rows.stop - block_start]
                for index, trees in enumerate(self.ranges):
                    if index == 1 and chosen is not None:  # from here on, only the chosen rows are needed
                        indices = slice(*np.searchsorted(chosen, (rows.start, rows.stop)))
                        block_indices = chosen[indices] - rows.start
                        rows, values, counts = indices, values[block_indices], counts[:, block_indices]
                    tree_counts = np.ascontiguousarray(counts[trees.start - start : trees.stop - start])
                    bags = BagCounts(tree_counts, sums[index].n_trees[rows])
                    arrays, buffers = self.packed.arrays_for(values, trees), WalkBuffers.of(len(values))
                    add_probabilities(arrays, values, buffers, sums[index].total[rows], bags)


class RunningSums:
    """Out-of-bag sums of the rows of positive weight over ranges of trees, computed for a part of the rows at a time.

    The sums over the first range are for all these rows. Sums over other ranges are only for the rows `chosen`,
    ascending indices among these rows, or for all rows if None.
    """

    def __init__(self, n_rows: int, n_ranges: int, n_classes: int, chosen: NDArray[np.int64] | None = None) -> None:
        self._chosen, n_chosen = chosen, n_rows if chosen is None else len(chosen)
        self._sums = [Sums.zero(n_chosen if index else n_rows, n_classes) for index in range(n_ranges)]

    def part(self, first: int, n_rows: int) -> tuple[list[Sums], NDArray[np.int64] | None]:
        """Return views of the sums of n_rows consecutive rows, and `chosen` for these rows, as in `TreeRanges.add`."""
        rows = chosen_rows = slice(first, first + n_rows)
        if self._chosen is not None:
            chosen_rows = slice(*np.searchsorted(self._chosen, (first, first + n_rows)))
        slices = [rows, *[chosen_rows] * (len(self._sums) - 1)]
        views = [Sums(sums.total[part], sums.n_trees[part]) for sums, part in zip(self._sums, slices)]
        indices = None if self._chosen is None else self._chosen[chosen_rows] - first
        return views, indices

    def add(self, trees: TreeRanges, first: int, X: NDArray[Any] | SparseRows) -> None:
        """Add the predictions for rows from `first` on; threads may call this concurrently for different rows."""
        sums, chosen = self.part(first, len(X))
        trees.add(sums, first, X, chosen)

    def at_all_rows(self, kept: NDArray[np.int64] | None, n_rows: int) -> list[Sums]:
        """Return the sums of all rows, 0 for rows of weight 0; sums of chosen rows stay as they are."""
        n_expanded = 0 if kept is None else len(self._sums) if self._chosen is None else 1
        for index in range(n_expanded):
            total, n_trees = self._sums[index]
            self._sums[index] = Sums.zero(n_rows, total.shape[1])
            self._sums[index].total[kept], self._sums[index].n_trees[kept] = total, n_trees
        return self._sums


def indices_in_batch(trees: range, batch: range) -> range:
    """Return which of the range `trees` are in a batch of trees, as indices within the batch."""
    start, stop = np.clip([trees.start, trees.stop], batch.start, batch.stop) - batch.start
    return range(int(start), int(stop))


def sum_out_of_bag(
    training: TrainingRows,
    batches: Iterable[tuple[range, PackedTrees]],
    ranges: Sequence[range],
    n_classes: int,
    n_jobs: int | None,
    chosen: NDArray[np.int64] | None = None,
) -> list[Sums]:
    """Return the out-of-bag sums of all rows over several ranges of trees; `chosen` is described by `RunningSums`.

    `batches` are consecutive ranges of the trees of a forest, each with its packed trees.
    """
    bags = training.bags
    running = RunningSums(bags.sampler.n_rows, len(ranges), n_classes, chosen)
    for batch, packed in batches:
        batch_bags = replace(bags, keys=bags.keys[batch.start : batch.stop])
        trees = TreeRanges(batch_bags, packed, [indices_in_batch(trees, batch) for trees in ranges])

        def add_block(block: int, trees: TreeRanges = trees) -> None:
            running.add(trees, block * BLOCK_ROWS, training.take(bags.rows(block)))

        list(thread_map(n_jobs)(add_block, range(bags.sampler.n_blocks)))
    return running.at_all_rows(bags.kept, len(training.labels))


def warn_of_never_out(n_never_out: int, n_rows: int, n_trees: int, ignored_in: str) -> None:
    """Warn if rows are in the training samples of all trees, and so are never out of bag."""
    if n_never_out == 0:
        return
    of_trees = "of the only tree" if n_trees == 1 else f"of every one of the {n_trees} trees"
    they_are, they_have = ("is", "it has") if n_never_out == 1 else ("are", "they have")
    advice = "" if n_never_out == n_rows else ": use more trees"
    warn(
        f"{n_never_out} of {n_rows} samples {they_are} in the training sample {of_trees}, "
        f"so {they_have} no out-of-bag probability and {they_are} ignored in {ignored_in}{advice}"
    )
