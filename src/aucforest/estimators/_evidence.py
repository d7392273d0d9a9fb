"""Out-of-bag predictions of the first trees of a forest, by which mixture, shrinkage and calibration are chosen."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._calibration import CalibrationSample, n_of_rarer
from aucforest.estimators._class_sample import sample_classes
from aucforest.estimators._paths import add_shrunk, leaves_out_of_bag
from aucforest.estimators.thresholds import MeanOfTrees
from aucforest.fitting.growing import thread_map
from aucforest.fitting.out_of_bag import N_PARTS, Sums, TrainingRows, parts_of_rows
from aucforest.metrics.multiclass import average_pairs
from aucforest.metrics.ranking import mann_whitney, rank_columns
from aucforest.metrics.validation import relative_weights
from aucforest.tables.sparse import SparseRows
from aucforest.tree.tree import Tree

# All constants were chosen with benchmarks/ranking.py and benchmarks/noisy_sets.py.
# The amounts of shrinkage to choose from.
AMOUNTS = np.array([0.0, 1.0, 2.0, 5.0, 15.0, 50.0, 200.0, 1000.0])
# The amount for small sets, where out-of-bag scores have large errors. Another amount is chosen only if its AUC is
# better by _STANDARD_ERRORS standard errors of the difference.
PRIOR = 5.0
# Variants are compared at a small amount, because few trees need more shrinkage than the whole forest.
WEIGHED_BY = 1.0
_PRIOR_PLACE = int(np.searchsorted(AMOUNTS, PRIOR))
_STANDARD_ERRORS = 1.5
# Maximum number of scored rows. With more rows the choice is slower but not better. The cost of a row grows with the
# number of classes, so for many classes the number is at most _ROWS_TIMES_CLASSES / n_classes, or if this is more, a
# proportion of the training rows or _ROWS_OF_CLASS rows of each class.
_ROWS, _ROWS_TIMES_CLASSES, _PROPORTION, _ROWS_OF_CLASS = 4096, 2**15, 0.125, 16
# Number of scored trees. More trees cost little if there are at least _SAMPLES_A_ROW training samples for each scored
# row, and many classes need them, because the AUC of few trees is not yet linear in 1 / n_trees.
SCORED_TREES, _MOST_SCORED_TREES, _SAMPLES_A_ROW = 96, 300, 4
# Minimum number of sums, so that several threads can add to them.
_LEAST_SUMS = 8
# Maximum size of the array of sums, in numbers.
_MOST_SUMS = 2**25
# Approximate seconds per row and tree.
_ROW_TIME = 2e-8

# The numbers of the rows that have a score, and the result of `metrics.ranking.rank_rows` for each column.
Ranked = tuple[NDArray[np.int64], list[NDArray[np.uint64]]]


def row_weight(
    weights: NDArray[np.float64] | None, sample_weight: NDArray[np.float64] | None, *, bootstrap: bool
) -> float:
    """Return the weight in a tree that shrinkage counts as one sample.

    `weights` include class weights, `sample_weight` does not. The result is the mean weight of a row. Without a
    bootstrap, a row of integer sample_weight counts as that number of samples; with one, copies of a row are always
    sampled together, so they count as one sample.
    """
    if weights is None:
        return 1.0
    if not bootstrap and sample_weight is not None and np.all(sample_weight == np.rint(sample_weight)):
        return float(weights.sum() / sample_weight.sum())
    # The mean of constant weights may differ from them by a rounding error.
    return float(np.clip(weights.mean(), weights.min(), weights.max()))


def _count_sums(n_variants: int) -> int:
    """Return the number of sums over out-of-bag trees: at least two for each variant."""
    return n_variants * max(2, _LEAST_SUMS // n_variants)


def amounts_to_score(shrinkage: float | str | None, n_variants: int) -> NDArray[np.float64]:
    """Return the amounts to score: all that "auto" chooses from, or the one given and that of comparing variants."""
    if shrinkage == "auto":
        return AMOUNTS
    return np.unique([float(shrinkage or 0.0), *([WEIGHED_BY] if n_variants > 1 else [])])


def bytes_of_sums(n_rows: int, n_classes: int, n_variants: int, n_amounts: int) -> int:
    """Return the bytes of the sums for a number of scored rows."""
    return 8 * _count_sums(n_variants) * n_rows * (1 if n_classes == 2 else n_classes) * n_amounts


def rows_to_score(labels: NDArray[np.uint16], n_classes: int, n_variants: int, seed: int) -> NDArray[np.int64]:
    """Return the positions of the rows to score, in ascending order: a random sample of the rows of each class.

    The array is empty if there would be fewer than two rows of a class. `seed` is the key of the first tree.
    """
    enough = max(_ROWS_TIMES_CLASSES // n_classes, int(_PROPORTION * len(labels)), _ROWS_OF_CLASS * n_classes)
    n_sums = _count_sums(n_variants) * n_classes * len(AMOUNTS)
    most = min(_ROWS, enough, _MOST_SUMS // n_sums) // n_classes
    return np.empty(0, dtype=np.int64) if most < 2 else sample_classes(labels, n_classes, most, seed)


class OutOfBagScores:
    """ROC AUC (Hand and Till's M for many classes) of out-of-bag probabilities for several amounts of shrinkage.

    `rows` are the numbers of the rows to score, in ascending order; `amounts` are in samples, and `unit` is the weight
    of a sample in trees. Variants are compared by plain means instead of `mean_of_trees`, so that the trees do not
    depend on it.
    """

    def __init__(
        self,
        training: TrainingRows,
        rows: NDArray[np.int64],
        n_classes: int,
        n_variants: int,
        amounts: NDArray[np.float64],
        unit: float,
        mean_of_trees: MeanOfTrees,
        n_jobs: int | None,
    ) -> None:
        self._bags, self._mean_of_trees, self._n_jobs = training.bags, mean_of_trees, n_jobs
        self._amounts, self._unit, self._n_classes = amounts, unit, n_classes
        self._truth, self._groups = training.labels[rows].astype(np.uint32), training.bags.groups_of(rows)
        weights = relative_weights(training.weights_of(rows), len(rows))
        self._weights = np.ones(len(rows)) if weights is None else weights
        X = training.X
        self._table = X.take(rows) if isinstance(X, SparseRows) else np.ascontiguousarray(X[rows], dtype=np.float64)
        self._places = [self._bags.find(block, rows) for block in range(self._bags.sampler.n_blocks)]
        # The trees of each variant are divided into at least two parts.
        n_sums, n_columns = _count_sums(n_variants), 1 if n_classes == 2 else n_classes
        self._n_parts = n_sums // n_variants
        self._sums = np.zeros((n_sums, len(rows), n_columns, len(amounts)))
        self._n_trees = np.zeros((n_sums, len(rows)), dtype=np.int64)
        self._n_added = np.zeros(n_variants, dtype=np.int64)

    @property
    def n_scored_trees(self) -> int:
        """The number of trees to score, which are the first ones of the forest."""
        is_large = self._bags.sampler.n_rows >= _SAMPLES_A_ROW * len(self._truth)
        return _MOST_SCORED_TREES if is_large else SCORED_TREES

    def _counts_by_class(self) -> NDArray[np.int64]:
        """Return the number of rows of each class that occurs, or of groups, because rows of a group are dependent."""
        if self._groups is None:
            return np.unique(self._truth, return_counts=True)[1]
        of_groups = np.unique(np.stack((self._truth, self._groups)), axis=1)[0]
        return np.unique(of_groups, return_counts=True)[1]

    @property
    def n_rows(self) -> float:
        """The effective number of rows, or groups: for two classes about the number of rows of the rarer class."""
        return n_of_rarer(self._counts_by_class())

    def add(self, first: int, trees: Sequence[Tree], variants: Iterable[int]) -> None:
        """Add consecutive trees, the first of which has the number `first`, with the variant of each."""
        parts: dict[int, list[int]] = {}
        for place, variant in enumerate(variants):
            part = variant * self._n_parts + int(self._n_added[variant]) % self._n_parts
            parts.setdefault(part, []).append(place)
            self._n_added[variant] += 1

        amounts = self._unit * self._amounts

        def add_part(part: int) -> None:
            for place, counts in zip(parts[part], self._counts([first + place for place in parts[part]])):
                leaves = leaves_out_of_bag(trees[place], self._table, counts)
                add_shrunk(trees[place], amounts, leaves, counts, self._sums[part], self._n_trees[part])

        # A part is summed by one thread, so that rounding errors do not depend on n_jobs.
        seconds = _ROW_TIME * len(self._table) * len(trees) / max(len(parts), 1)
        for _ in thread_map(self._n_jobs, seconds)(add_part, parts):
            pass

    def _counts(self, numbers: list[int]) -> NDArray[np.uint16]:
        """Return how often each row is in the bootstrap sample of each of some trees, (n_trees, n_rows)."""
        blocks = [
            self._bags.counts(block, numbers)[:, rows] for block, rows in enumerate(self._places) if len(rows) > 0
        ]
        return np.ascontiguousarray(np.concatenate(blocks, axis=1))

    def _rank(self, sums: NDArray[np.float64], n_trees: NDArray[Any], mean_of_trees: MeanOfTrees = np.divide) -> Ranked:
        """Return the rows that are out of bag for any tree, and their ranks by sums over trees, (n_rows, n_columns)."""
        seen = np.flatnonzero(n_trees)
        if len(seen) == 0:
            return seen, []
        mean_of_trees = np.divide if self._n_classes == 2 else mean_of_trees
        return seen, list(rank_columns(mean_of_trees(sums[seen], n_trees[seen, None])))

    def _score(self, ranked: Ranked, weights: NDArray[np.float64]) -> float:
        """Return the AUC for some weights of the rows, or NaN if it is not defined."""
        seen, columns = ranked
        if len(seen) == 0:
            return float("nan")
        truth, weights = self._truth[seen], weights[seen]
        if self._n_classes == 2:
            return mann_whitney(truth == 1, columns[0], weights)
        return float(average_pairs(truth, columns, self._n_classes, weights, "macro"))

    def _halves(self, places: int | slice = slice(None)) -> list[Sums]:
        """Return the sums over two halves of the trees, for all amounts of shrinkage or that of a place."""
        return [
            Sums(self._sums[start::2, ..., places].sum(axis=0), self._n_trees[start::2].sum(axis=0))
            for start in range(2)
        ]

    def calibration_sample(self, amount: float, frequencies: NDArray[np.float64]) -> CalibrationSample:
        """Return the samples for a calibration with this shrinkage, weighted to the given class frequencies."""
        halves = self._halves(int(np.searchsorted(self._amounts, amount)))
        if self._n_classes == 2:
            halves = [Sums(np.hstack((n_trees[:, None] - total, total)), n_trees) for total, n_trees in halves]
        by_class = np.bincount(self._truth, self._weights, minlength=self._n_classes)
        weights = self._weights * (frequencies / np.where(by_class > 0.0, by_class, 1.0))[self._truth]
        return CalibrationSample(self._truth, weights / weights.mean(), self._groups, halves)

    def _by_variant(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the sums over the trees of each variant, with the shrinkage `WEIGHED_BY`, and the numbers of trees."""
        place = np.searchsorted(self._amounts, WEIGHED_BY)
        sums, n_trees = (
            array.reshape(len(self._n_added), self._n_parts, *array.shape[1:]).sum(axis=1)
            for array in (self._sums[..., place], self._n_trees)
        )
        return sums, n_trees

    def variant_scores(self) -> NDArray[np.float64]:
        """Return the AUC of the trees of each variant, NaN where it is not defined."""
        return np.array([self._score(self._rank(*pair), self._weights) for pair in zip(*self._by_variant())])

    def standard_errors(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard errors of scores (Hanley and McNeil 1982); for more than two classes an approximation.

        K classes count as K / 2 independent pairs of classes, each of which has the harmonic mean size of all classes.
        """
        counts = self._counts_by_class().astype(np.float64)
        n_pairs = len(counts) / 2.0
        if n_pairs > 1.0:
            counts = np.full(2, len(counts) / np.sum(1.0 / counts))
        first, second = scores / (2.0 - scores) - scores**2, 2.0 * scores**2 / (1.0 + scores) - scores**2
        variance = scores * (1.0 - scores) + (counts[1] - 1.0) * first + (counts[0] - 1.0) * second
        # Rounding can make it negative for a score of about 1.
        return np.sqrt(np.maximum(variance, 0.0) / np.prod(counts) / n_pairs)

    def variant_gains(self) -> NDArray[np.float64]:
        """Return the gain in AUC of all trees together if a variant had as many more trees as variants have on average.

        The sums over the trees of the variant stand for those of the new trees. The gain of the whole forest counts and
        not the AUC of the variant alone, whose estimate needs more trees, and which favors variants with similar trees.
        """
        sums, n_trees = self._by_variant()
        whole, n_whole, n_usual = sums.sum(axis=0), n_trees.sum(axis=0), self._n_added.mean()
        factors = n_usual / np.maximum(self._n_added, 1)
        base = self._score(self._rank(whole, n_whole), self._weights)
        with_more = [
            self._score(self._rank(whole + factor * own, n_whole + factor * n_own), self._weights)
            for factor, own, n_own in zip(factors, sums, n_trees)
        ]
        return np.array(with_more) - base

    def choose_amount(self, n_trees: int) -> float:
        """Return the amount with the best AUC for a forest of n_trees trees.

        A row is out of bag for only about a third of the trees, and fewer trees need more shrinkage. So the scores are
        extrapolated linearly in 1 / n_trees from those of all scored trees and of two halves of them. The result is
        `PRIOR` unless another amount is better by `_STANDARD_ERRORS` standard errors.
        """
        halves = self._halves()
        whole = Sums(*(first + second for first, second in zip(*halves)))
        if np.sort(np.bincount(self._truth[whole.n_trees > 0], minlength=self._n_classes))[-2] < 2:
            return PRIOR
        further = 1.0 - float(whole.n_trees.mean()) / n_trees

        def rank(amount: int) -> list[Ranked]:
            return [self._rank(sums[:, :, amount], n_seen, self._mean_of_trees) for sums, n_seen in (*halves, whole)]

        def score(ranked: list[Ranked], weights: NDArray[np.float64]) -> float:
            first, second, of_all = (self._score(ranks, weights) for ranks in ranked)
            return of_all + further * (of_all - 0.5 * (first + second))

        scores = [score(rank(amount), self._weights) for amount in range(len(AMOUNTS))]
        # The AUC of a half is not defined if it has no trees, or out-of-bag rows of one class only.
        best, prior = int(np.argmax(scores)), _PRIOR_PLACE
        if best == prior or np.any(np.isnan(scores)):
            return PRIOR
        part = parts_of_rows(self._truth, self._groups)
        # The delete-a-group jackknife (Tukey): rows that are left out get weight 0, so the ranks of the others need not
        # be computed again.
        pair, parts = (rank(best), rank(prior)), [np.where(part == i, 0.0, self._weights) for i in range(N_PARTS)]
        gains = [score(pair[0], weights) - score(pair[1], weights) for weights in parts]
        error = np.sqrt((N_PARTS - 1) * np.var(gains))
        return float(AMOUNTS[best]) if scores[best] - scores[prior] > _STANDARD_ERRORS * error else PRIOR
