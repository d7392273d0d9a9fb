"""Out-of-bag sums: for each row, over the trees whose sample does not contain it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler, GroupSampler
from aucforest.fitting.growing import thread_map
from aucforest.fitting.target_rates import OwnTotalsOf
from aucforest.tables.sparse import SparseRows
from aucforest.tables.target_rates import TargetRates
from aucforest.tree.prediction import PackedTrees, add_probabilities

# Number of parts of the rows for what is estimated without the part of a row, or for a jackknife.
N_PARTS = 10


@dataclass(frozen=True)
class Bags:
    """The bootstrap samples of trees, which are sampled again on request instead of stored."""

    sampler: BootstrapSampler
    keys: list[int]  # of the trees
    kept: NDArray[np.int64] | None  # the rows of positive weight, which are sampled from; None for all

    @cached_property
    def _by_block(self) -> list[NDArray[Any]]:
        return [self.sampler.by_block(key) for key in self.keys]

    @property
    def all_kept(self) -> NDArray[np.int64]:
        """The numbers of the rows of positive weight."""
        return np.arange(self.sampler.n_rows) if self.kept is None else self.kept

    def rows(self, block: int) -> NDArray[np.int64]:
        """Return the numbers of the rows of a block in the training data."""
        first, last = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, self.sampler.n_rows)
        return np.arange(first, last) if self.kept is None else self.kept[first:last]

    def find(self, block: int, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions in a block of the rows in it, given row numbers in ascending order."""
        rows = self.rows(block)
        first, stop = np.searchsorted(wanted, (rows[0], rows[-1] + 1))
        return np.searchsorted(rows, wanted[first:stop])

    def groups_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the numbers of the groups of some rows, or None if trees do not sample groups."""
        if not isinstance(self.sampler, GroupSampler):
            return None
        indices = rows if self.kept is None else np.searchsorted(self.kept, rows)
        return self.sampler.groups[indices].astype(np.int64)

    def counts(self, block: int, trees: Iterable[int]) -> NDArray[np.uint16]:
        """Return the number of times that each row of a block is in the samples of trees, (n_trees, n_block_rows)."""
        trees = list(trees)
        return self.sampler.counts_of_block([self.keys[i] for i in trees], [self._by_block[i] for i in trees], block)

    def counts_at(self, rows: NDArray[np.int64], trees: Iterable[int], n_jobs: int | None) -> NDArray[np.uint16]:
        """Return how often some rows, in ascending order, are in the samples of trees, (n_trees, n_rows)."""
        trees, n_blocks = list(trees), self.sampler.n_blocks

        def count(block: int) -> NDArray[np.uint16]:
            found = self.find(block, rows)
            return self.counts(block, trees)[:, found] if len(found) > 0 else np.empty((len(trees), 0), dtype=np.uint16)

        return np.concatenate(list(thread_map(n_jobs)(count, range(n_blocks))), axis=1)


def parts_of_rows(labels: NDArray[Any], groups: NDArray[np.int64] | None) -> NDArray[np.int8]:
    """Return the part of each row, one of N_PARTS; each has about as many rows of each class, and whole groups."""
    if groups is None:
        return _deal(labels)
    # A group counts as one of the rarest class that it has a row of.
    rarity = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))
    units, unit = np.unique(groups, return_inverse=True)
    rarest = np.zeros(len(units), dtype=np.int64)
    np.maximum.at(rarest, unit, rarity[labels])
    return _deal(rarest)[unit]


def _deal(classes: NDArray[Any]) -> NDArray[np.int8]:
    """Assign items to parts in turn, those of each class separately."""
    parts = np.empty(len(classes), dtype=np.int8)
    for k in np.unique(classes):
        is_class = classes == k
        parts[is_class] = np.arange(np.count_nonzero(is_class)) % N_PARTS
    return parts


class Sums(NamedTuple):
    """Sums of out-of-bag predictions; for several groups of trees, the arrays have another first axis."""

    total: NDArray[np.float64]  # (n_rows, n_classes)
    n_trees: NDArray[np.int64]  # (n_rows,), numbers of trees; 0 for rows of weight 0 and rows in all samples

    @classmethod
    def zero(cls, n_rows: int, n_classes: int) -> "Sums":
        """Return empty sums."""
        return cls(np.zeros((n_rows, n_classes)), np.zeros(n_rows, dtype=np.int64))


class RatedRows:
    """Training rows with target rates, each of which does not count the row itself or its group."""

    def __init__(self, rows: Any, rates: TargetRates, own: OwnTotalsOf) -> None:
        self._rows, self._rates, self._own = rows, rates, own

    def __getitem__(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows by their numbers."""
        return self._rates.append_to(self._rows[numbers], self._own(numbers))

    def without_rates(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows by their numbers, without target rates."""
        rows: NDArray[Any] = self._rows[numbers]
        return rows


# Computes sums over several ranges of trees; see `RunningSums`.
SumRows = Callable[[Bags, PackedTrees, Sequence[range], NDArray[np.int64] | None], list[Sums]]


@dataclass(frozen=True)
class TrainingRows:
    """Training data, and the bootstrap samples of the trees."""

    X: Any  # (n_rows, n_features), or an object that returns rows of it
    labels: NDArray[np.uint16]  # the numbers of the classes
    sample_weight: NDArray[np.float64] | None
    bags: Bags
    sum_rows: SumRows | None = None  # sums out of bag where the rows are elsewhere

    def take(self, rows: Any) -> Any:
        """Return some rows of X; those of a sparse matrix stay sparse."""
        return self.X.take(rows) if isinstance(self.X, SparseRows) else self.X[rows]

    def without_rates(self, rows: Any) -> Any:
        """Return some rows of X without target rates, as `fit` validated them."""
        return self.X.without_rates(rows) if isinstance(self.X, RatedRows) else self.X[rows]

    def weights_of(self, rows: NDArray[Any]) -> NDArray[np.float64] | None:
        """Return the weights of some rows, given by numbers or a mask; None if all weights are 1."""
        return None if self.sample_weight is None else self.sample_weight[rows]

    def counts(self, trees: range) -> NDArray[np.uint16]:
        """Return the number of times that each row is in the sample of each of some trees, (n_rows, n_trees)."""
        bags = self.bags
        counts = np.zeros((len(self.labels), len(trees)), dtype=np.uint16)
        for block in range(bags.sampler.n_blocks):
            counts[bags.rows(block)] = bags.counts(block, trees).T
        return counts


def sum_ranges(
    bags: Bags,
    packed: PackedTrees,
    ranges: Sequence[range],
    first: int,
    X: NDArray[Any] | SparseRows,
    before: Sequence[Sums] | None = None,
    chosen: NDArray[np.int64] | None = None,
) -> list[Sums]:
    """Return the out-of-bag sums of consecutive rows; `first` is the index of the first among those of positive weight.

    `before` are the sums over earlier trees, one for each range, which are added to. Ranges after the first are summed
    only at the rows `chosen` of these, in ascending order, or at all if None.
    """
    n_chosen = len(X) if chosen is None else len(chosen)
    all_sums = [Sums.zero(n_chosen if index else len(X), packed.values.shape[1]) for index in range(len(ranges))]
    for sums, earlier in zip(all_sums, before or ()):
        sums.total[:], sums.n_trees[:] = earlier
    all_trees = range(min(trees.start for trees in ranges), max(trees.stop for trees in ranges))
    for block in range(first // BLOCK_ROWS, -(-(first + len(X)) // BLOCK_ROWS)):
        # The block begins before X if first is not the start of a block.
        block_start = block * BLOCK_ROWS - first
        start, stop = max(block_start, 0), min(block_start + BLOCK_ROWS, len(X))
        counts = bags.counts(block, all_trees)[:, start - block_start : stop - block_start]
        for some, table in dense_blocks(X, slice(start, stop)):
            rows, own = some, counts[:, some.start - start : some.stop - start]
            for number, (trees, sums) in enumerate(zip(ranges, all_sums)):
                if number == 1 and chosen is not None:
                    rows = slice(*np.searchsorted(chosen, (some.start, some.stop)))
                    indices = chosen[rows] - some.start
                    table, own = table[indices], own[:, indices]
                tree_counts = np.ascontiguousarray(own[trees.start - all_trees.start : trees.stop - all_trees.start])
                total, n_trees = sums.total[rows], sums.n_trees[rows]
                active, leaves = np.empty(len(table), dtype=np.uint64), np.empty(len(table), dtype=np.uint32)
                nodes, starts, values, first_leaf = packed.arguments(packed.values, trees)
                add_probabilities(nodes, starts, values, first_leaf, table, active, leaves, total, tree_counts, n_trees)
    return all_sums


def dense_blocks(X: NDArray[Any] | SparseRows, rows: slice) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of some rows with their values: all rows of a dense matrix, a few at a time of a sparse one."""
    if isinstance(X, SparseRows):
        yield from X.blocks(rows)
    else:
        yield rows, np.require(X[rows], np.float64, ["C", "W"])


def within(trees: range, group: range) -> range:
    """Return the positions in a group of the trees that are in it."""
    start, stop = np.clip([trees.start, trees.stop], group.start, group.stop) - group.start
    return range(int(start), int(stop))


def sum_out_of_bag(
    training: TrainingRows,
    groups: Iterable[tuple[range, PackedTrees]],
    ranges: Sequence[range],
    n_classes: int,
    n_jobs: int | None,
    chosen: NDArray[np.int64] | None = None,
) -> list[Sums]:
    """Return the out-of-bag sums of all rows over several ranges of trees; see `RunningSums` for `chosen`.

    `groups` are consecutive groups of trees, which together are the forest.
    """
    bags = training.bags
    running = RunningSums(bags.kept, len(ranges), len(training.labels), n_classes, chosen)

    def add_block(bags: Bags, packed: PackedTrees, ranges: list[range], block: int) -> None:
        running.add(block * BLOCK_ROWS, training.take(bags.rows(block)), bags, packed, ranges)

    for group, packed in groups:
        of_group = replace(bags, keys=bags.keys[group.start : group.stop])
        of_ranges = [within(trees, group) for trees in ranges]
        blocks = range(bags.sampler.n_blocks)
        for _ in thread_map(n_jobs)(partial(add_block, of_group, packed, of_ranges), blocks):
            pass
    return running.sums


class RunningSums:
    """Out-of-bag sums of all rows, including rows of weight 0, that are computed for groups of trees and rows.

    Ranges after the first are summed only at the rows `chosen`, positions among those of positive weight in ascending
    order, unless it is None.
    """

    def __init__(
        self,
        kept: NDArray[np.int64] | None,
        n_ranges: int,
        n_rows: int,
        n_classes: int,
        chosen: NDArray[np.int64] | None = None,
    ) -> None:
        self._kept, self._chosen = kept, chosen
        n_chosen = n_rows if chosen is None else len(chosen)
        self.sums = [Sums.zero(n_chosen if index else n_rows, n_classes) for index in range(n_ranges)]

    def add(
        self, first: int, X: NDArray[Any] | SparseRows, bags: Bags, packed: PackedTrees, ranges: Sequence[range]
    ) -> None:
        """Add trees for consecutive rows; threads may call it concurrently for different rows."""
        indices = self._indices(first, len(X))
        before = [Sums(sums.total[rows], sums.n_trees[rows]) for sums, rows in zip(self.sums, indices)]
        self.put(first, sum_ranges(bags, packed, ranges, first, X, before, self.chosen_within(first, len(X))))

    def put(self, first: int, computed: list[Sums]) -> None:
        """Set the sums of consecutive rows, which were computed elsewhere."""
        for sums, of_rows, rows in zip(self.sums, computed, self._indices(first, len(computed[0].n_trees))):
            sums.total[rows], sums.n_trees[rows] = of_rows

    def chosen_within(self, first: int, n_rows: int) -> NDArray[np.int64] | None:
        """Return which of some consecutive rows are chosen."""
        return None if self._chosen is None else self._chosen[self._slice(first, n_rows)] - first

    def _slice(self, first: int, n_rows: int) -> slice:
        """Return which of the chosen rows are among some consecutive rows."""
        assert self._chosen is not None
        return slice(*np.searchsorted(self._chosen, (first, first + n_rows)))

    def _indices(self, first: int, n_rows: int) -> list[Any]:
        """Return the index of consecutive rows of positive weight in each sum."""
        rows: Any = slice(first, first + n_rows)
        if self._kept is not None:
            rows = self._kept[rows]
        return [rows, *[rows if self._chosen is None else self._slice(first, n_rows)] * (len(self.sums) - 1)]


def warn_of_never_out(n_always: int, n_rows: int, n_trees: int, ignored_in: str) -> None:
    """Warn if rows are in the training samples of all trees, and so are never out of bag."""
    if n_always == 0:
        return
    of_trees = "of the only tree" if n_trees == 1 else f"of every one of the {n_trees} trees"
    they_are, they_have = ("is", "it has") if n_always == 1 else ("are", "they have")
    advice = "" if n_always == n_rows else ": use more trees"
    message = (
        f"{n_always} of {n_rows} samples {they_are} in the training sample {of_trees}, "
        f"so {they_have} no out-of-bag probability and {they_are} ignored in {ignored_in}{advice}"
    )
    warn(message)
