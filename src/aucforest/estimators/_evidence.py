"""Out-of-bag ROC AUC of the first trees of a forest: what its shrinkage and its mixture of variants are chosen by."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._paths import add_shrunk, leaves_out_of_bag
from aucforest.estimators.thresholds import Finish
from aucforest.fitting.growing import run_in_threads
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.fitting.plan import n_scored_sums
from aucforest.metrics.multiclass import average_pairs
from aucforest.metrics.ranking import mann_whitney, rank_columns
from aucforest.metrics.validation import relative_weights
from aucforest.tree.tree import Tree

# The evidence for all of these is in benchmarks/ranking.py and benchmarks/noisy_sets.py.
AMOUNTS = np.array([0.0, 1.0, 2.0, 5.0, 15.0, 50.0, 200.0, 1000.0])
# What is right on small sets, where out-of-bag scores say little: left only for what is better by so many standard
# errors of the difference.
PRIOR = 5.0
# Variants are weighed by trees that are hardly shrunk: few trees want more shrinkage than the whole forest.
_WEIGHED_PLACE = 1
WEIGHED_BY = AMOUNTS[[_WEIGHED_PLACE]]
_PRIOR_PLACE = int(np.searchsorted(AMOUNTS, PRIOR))
_STANDARD_ERRORS = 1.5
# Parts of the rows that take turns in being left out (Tukey's jackknife).
_N_PARTS = 10
# Rows to score by in all: more make the choice no better but slower. Each costs a sum for every class, so of many
# classes fewer rows do, as far as there are so many of each.
_ROWS, _ROWS_TIMES_CLASSES, _ROWS_OF_CLASS = 4096, 2**15, 16
# Rows that are looked through at a time for those of a class.
_MASK_ROWS = 2**20
# Trees that are scored: more make the choice no better but slower. Where the rows to score by are but a part of the
# samples, more trees cost little. Many classes need them: few trees rank too much worse for a line in 1 / n_trees.
SCORED_TREES, _MOST_SCORED_TREES, _SAMPLES_A_ROW = 96, 300, 4
# Most numbers of all sums.
_MOST_SUMS = 2**25
# Seconds that a row takes in a tree, or so.
_ROW_TIME = 2e-8

# Numbers of rows, and for each column what `metrics.ranking.rank_rows` says of them.
Ranked = tuple[NDArray[np.int64], list[NDArray[np.uint64]]]


def row_weight(
    weights: NDArray[np.float64] | None, sample_weight: NDArray[np.float64] | None, *, bootstrap: bool
) -> float:
    """Return the weight in trees of what shrinkage counts as a row, given the weights of rows in trees and as such.

    That is a row in the mean. Only where trees see all rows is a row of integer weight that many copies of it: a
    bootstrap does not take copies apart.
    """
    if weights is None:
        return 1.0
    if not bootstrap and sample_weight is not None and np.all(sample_weight == np.rint(sample_weight)):
        return float(weights.sum() / sample_weight.sum())
    # Rounding must not make another number of constant weights.
    return float(np.clip(weights.mean(), weights.min(), weights.max()))


def rows_to_score(labels: NDArray[np.uint16], n_classes: int, n_variants: int, seed: int) -> NDArray[np.int64]:
    """Return the places of the rows to score by: some of every class, at random, in rising order.

    An empty array where they would be fewer than two of a class. `seed` is the key of the first tree.
    """
    enough = max(_ROWS_TIMES_CLASSES // n_classes, _ROWS_OF_CLASS * n_classes)
    n_sums = n_scored_sums(n_variants) * n_classes * len(AMOUNTS)
    most = min(_ROWS, enough, _MOST_SUMS // n_sums) // n_classes
    if most < 2:
        return np.empty(0, dtype=np.int64)
    generator, chosen = np.random.default_rng(seed), []
    for k in range(n_classes):
        is_class = labels == k
        n_rows = np.count_nonzero(is_class)
        ranks = np.arange(n_rows) if n_rows <= most else generator.choice(n_rows, most, replace=False, shuffle=False)
        chosen.append(_places(is_class, np.sort(ranks)))
    return np.sort(np.concatenate(chosen))


def _places(mask: NDArray[np.bool_], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the r-th True of a mask is, for rising ranks; a little of the mask at a time."""
    places, passed = [np.empty(0, dtype=np.int64)], 0
    for start in range(0, len(mask), _MASK_ROWS):
        found = np.flatnonzero(mask[start : start + _MASK_ROWS])
        here = slice(*np.searchsorted(ranks, (passed, passed + len(found))))
        places.append(start + found[ranks[here] - passed])
        passed += len(found)
    return np.concatenate(places)


class OutOfBagScores:
    """ROC AUC, of more than two classes Hand and Till's, of out-of-bag probabilities shrunk by several amounts.

    Parameters
    ----------
    training : TrainingRows
    rows : ndarray of int64
        The numbers of the rows to score by, rising; see `rows_to_score`.
    n_classes : int
    n_variants : int
        Trees of each variant are summed apart.
    amounts : ndarray of float64
        Amounts of shrinkage, as weights in trees: `AMOUNTS`, or `WEIGHED_BY` alone.
    finish : callable
        Turns sums over trees and their number into class probabilities; variants are weighed by plain means, so that
        trees do not depend on it.
    n_jobs : int or None
    """

    def __init__(
        self,
        training: TrainingRows,
        rows: NDArray[np.int64],
        n_classes: int,
        n_variants: int,
        amounts: NDArray[np.float64],
        finish: Finish,
        n_jobs: int | None,
    ) -> None:
        self._bags, self._finish, self._n_jobs = training.bags, finish, n_jobs
        self._amounts, self._n_classes = amounts, n_classes
        self._truth, self._groups = training.labels[rows].astype(np.uint32), training.bags.groups_of(rows)
        weights = relative_weights(training.weights_of(rows), len(rows))
        self._weights = np.ones(len(rows)) if weights is None else weights
        self._table = np.ascontiguousarray(training.X[rows], dtype=np.float64)
        self._places = [self._bags.find(block, rows)[1] for block in range(self._bags.n_blocks)]
        # Parts of the trees of each variant, at least two halves.
        n_sums, n_columns = n_scored_sums(n_variants), 1 if n_classes == 2 else n_classes
        self._n_parts = n_sums // n_variants
        self._sums = np.zeros((n_sums, len(rows), n_columns, len(amounts)))
        self._n_trees = np.zeros((n_sums, len(rows)), dtype=np.int64)
        self._n_added = np.zeros(n_variants, dtype=np.int64)

    @property
    def n_scored_trees(self) -> int:
        """How many trees are to be scored, the first ones."""
        is_large = self._bags.sampler.n_rows >= _SAMPLES_A_ROW * len(self._truth)
        return _MOST_SCORED_TREES if is_large else SCORED_TREES

    def _counts_by_class(self) -> NDArray[np.int64]:
        """Return the number of rows of each class that has some, or of its groups, since rows of a group are alike."""
        if self._groups is None:
            return np.unique(self._truth, return_counts=True)[1]
        of_groups = np.unique(np.stack((self._truth, self._groups)), axis=1)[0]
        return np.unique(of_groups, return_counts=True)[1]

    @property
    def n_rows(self) -> float:
        """The number of rows, or groups, that the evidence is worth: of two classes nearly that of the rarer one."""
        counts = self._counts_by_class()
        return float(len(counts) ** 2 / (4.0 * np.sum(1.0 / counts)))

    def add(self, first: int, trees: Sequence[Tree], variants: Iterable[int]) -> None:
        """Add trees that follow each other from a number on, each of a variant."""
        parts: dict[int, list[int]] = {}
        for place, variant in enumerate(variants):
            part = variant * self._n_parts + int(self._n_added[variant]) % self._n_parts
            parts.setdefault(part, []).append(place)
            self._n_added[variant] += 1

        def add_part(part: int) -> None:
            for place, counts in zip(parts[part], self._counts([first + place for place in parts[part]])):
                leaves = leaves_out_of_bag(trees[place], self._table, counts)
                add_shrunk(trees[place], self._amounts, leaves, counts, self._sums[part], self._n_trees[part])

        # A part is summed by one thread, so sums are rounded alike whatever n_jobs is.
        seconds = _ROW_TIME * len(self._table) * len(trees) / max(len(parts), 1)
        for _ in run_in_threads(self._n_jobs, seconds)(add_part, parts):
            pass

    def _counts(self, numbers: list[int]) -> NDArray[np.uint16]:
        """Return how often the rows are in the samples of some trees, (n_trees, n_rows)."""
        blocks = [
            self._bags.counts(block, numbers)[:, chosen] for block, chosen in enumerate(self._places) if len(chosen) > 0
        ]
        return np.ascontiguousarray(np.concatenate(blocks, axis=1))

    def _rank(self, sums: NDArray[np.float64], n_trees: NDArray[Any], finish: Finish = np.divide) -> Ranked:
        """Return the rows that have a score by some sums over trees, (n_rows, n_columns), and how they rank."""
        seen = np.flatnonzero(n_trees)
        if len(seen) == 0:
            return seen, []
        finish = np.divide if self._n_classes == 2 else finish
        return seen, list(rank_columns(finish(sums[seen], n_trees[seen, None])))

    def _score(self, ranked: Ranked, weights: NDArray[np.float64]) -> float:
        """Return the AUC of rows that weigh so much; NaN where there is none."""
        seen, columns = ranked
        if len(seen) == 0:
            return float("nan")
        truth, weights = self._truth[seen], weights[seen]
        if self._n_classes == 2:
            return mann_whitney(truth == 1, columns[0], weights)
        return float(average_pairs(truth, columns, self._n_classes, weights, "macro"))

    def _by_variant(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the sums over the trees of each variant, shrunk by `WEIGHED_BY`, and the numbers of trees."""
        place = 0 if len(self._amounts) == 1 else _WEIGHED_PLACE
        sums, n_trees = (
            array.reshape(len(self._n_added), self._n_parts, *array.shape[1:]).sum(axis=1)
            for array in (self._sums[..., place], self._n_trees)
        )
        return sums, n_trees

    def variant_scores(self) -> NDArray[np.float64]:
        """Return the AUC of the trees of each variant, NaN where there is none."""
        return np.array([self._score(self._rank(*pair), self._weights) for pair in zip(*self._by_variant())])

    def standard_errors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard errors of scores (Hanley and McNeil 1982), of more than two classes about.

        These count as half as many independent pairs as there are classes, each of classes of the harmonic mean size.
        """
        counts = self._counts_by_class().astype(np.float64)
        n_pairs = len(counts) / 2.0
        if n_pairs > 1.0:
            counts = np.full(2, len(counts) / np.sum(1.0 / counts))
        first, second = scores / (2.0 - scores) - scores**2, 2.0 * scores**2 / (1.0 + scores) - scores**2
        variance = scores * (1.0 - scores) + (counts[1] - 1.0) * first + (counts[0] - 1.0) * second
        errors: NDArray[np.float64] = np.sqrt(variance / np.prod(counts) / n_pairs)
        return errors

    def variant_gains(self) -> NDArray[np.float64]:
        """Return by how much the AUC of all trees rises when each variant has more trees, as many as the average.

        More of the same trees, since there are no others. What a variant adds to the others counts, not how well it
        ranks alone: that would take more trees to say, and favour variants whose trees are alike.
        """
        sums, n_trees = self._by_variant()
        whole, n_whole, n_usual = sums.sum(axis=0), n_trees.sum(axis=0), self._n_added.mean()
        factors = n_usual / np.maximum(self._n_added, 1)
        more = [(whole, n_whole), *((whole + f * own, n_whole + f * n) for f, own, n in zip(factors, sums, n_trees))]
        base, *scores = (self._score(self._rank(*pair), self._weights) for pair in more)
        return np.array(scores) - base

    def _parts_of_rows(self) -> NDArray[np.int64]:
        """Return the part of each row: each has rows of all classes, or whole groups."""
        if self._groups is not None:
            return self._groups % _N_PARTS
        part = np.empty(len(self._truth), dtype=np.int64)
        for k in np.unique(self._truth):
            part[self._truth == k] = np.arange(np.count_nonzero(self._truth == k)) % _N_PARTS
        return part

    def choose_amount(self, n_trees: int) -> float:
        """Return the amount that is best for a forest of so many trees.

        A row sees but a third of the trees out of bag, and fewer trees want more shrinkage: scores are extrapolated as
        straight lines in 1 / n_trees, through those of all trees and of halves of them. It is `PRIOR` unless another
        amount is better by `_STANDARD_ERRORS`.
        """
        halves = [(self._sums[start::2].sum(axis=0), self._n_trees[start::2].sum(axis=0)) for start in range(2)]
        whole = halves[0][0] + halves[1][0], halves[0][1] + halves[1][1]
        if np.sort(np.bincount(self._truth[whole[1] > 0], minlength=self._n_classes))[-2] < 2:
            return PRIOR
        further = 1.0 - float(whole[1].mean()) / n_trees

        def rank(amount: int) -> list[Ranked]:
            return [self._rank(sums[:, :, amount], n_seen, self._finish) for sums, n_seen in (*halves, whole)]

        def score(ranked: list[Ranked], weights: NDArray[np.float64]) -> float:
            first, second, of_all = (self._score(some, weights) for some in ranked)
            return of_all + further * (of_all - 0.5 * (first + second))

        scores = [score(rank(amount), self._weights) for amount in range(len(AMOUNTS))]
        # A half without trees, or of one class, has no score.
        best, prior = int(np.argmax(scores)), _PRIOR_PLACE
        if best == prior or np.any(np.isnan(scores)):
            return PRIOR
        part = self._parts_of_rows()
        # Rows that are left out lose their weight: the others rank as before.
        pair, parts = (rank(best), rank(prior)), [np.where(part == i, 0.0, self._weights) for i in range(_N_PARTS)]
        gains = [score(pair[0], weights) - score(pair[1], weights) for weights in parts]
        error = np.sqrt((_N_PARTS - 1) * np.var(gains))
        return float(AMOUNTS[best]) if scores[best] - scores[prior] > _STANDARD_ERRORS * error else PRIOR
