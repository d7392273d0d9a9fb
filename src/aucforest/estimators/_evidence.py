"""Out-of-bag predictions of the first trees of a forest, by which mixture, shrinkage and calibration are chosen."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from aucforest.estimators._calibration import Calibration, CalibrationSample, n_of_rarer
from aucforest.estimators._class_sample import sample_classes
from aucforest.estimators._paths import ShrunkSums, add_shrunk, join_small
from aucforest.fitting.growing import thread_map
from aucforest.fitting.out_of_bag import N_PARTS, Sums, TrainingRows, parts_of_rows
from aucforest.metrics.multiclass import score_matrices
from aucforest.metrics.ranking import score_columns
from aucforest.metrics.validation import relative_weights
from aucforest.tables.sparse import SparseRows
from aucforest.tree.random import SCORED_SAMPLE
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
_LEAST_ERROR = 1e-6  # of a difference in AUC
# Maximum number of scored rows. With more rows the choice is slower but not better. The cost of a row grows with the
# number of classes, so for many classes the number is at most _ROWS_TIMES_CLASSES / n_classes, or if this is more, a
# proportion of the training rows or _ROWS_OF_CLASS rows of each class.
_ROWS, _ROWS_TIMES_CLASSES, _PROPORTION, _ROWS_OF_CLASS = 4096, 2**15, 0.125, 16
# Number of scored trees. More trees cost little if there are at least _SAMPLES_A_ROW training samples for each scored
# row, and many classes need them, because the AUC of few trees is not yet linear in 1 / n_trees.
SCORED_TREES, _MOST_SCORED_TREES, _SAMPLES_A_ROW = 96, 300, 4
# The trees of each variant are divided into two halves, for extrapolation to more trees.
_N_HALVES = 2
# Maximum size of the arrays of sums, in numbers.
_MOST_SUMS = 2**23
# Approximate seconds per row and tree, what a column adds to them as a proportion, and seconds per row that is ranked.
_ROW_TIME, _COLUMN_SHARE, _RANK_TIME = 3e-8, 0.15, 2e-8
# With more tasks threads end at about the same time, with fewer ones they wait less often for the interpreter.
_TASKS_PER_THREAD = 2
# Least seconds of a task with which threads pay.
_LEAST_TASK = 1e-3


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


def amounts_to_score(shrinkage: float | str | None) -> NDArray[np.float64]:
    """Return the amounts to score: all that "auto" chooses from, or the one given and that of comparing variants."""
    if shrinkage == "auto":
        return AMOUNTS
    # Two of them in any case, because kernels are compiled for their number.
    return np.sort([float(shrinkage or 0.0), WEIGHED_BY])


def count_columns(n_classes: int) -> int:
    """Return the number of classes whose probabilities are kept: of two the second one only."""
    return 1 if n_classes == 2 else n_classes


def _n_sums_of_row(n_classes: int, n_variants: int, n_amounts: int) -> int:
    """Return the number of sums for a scored row."""
    return _N_HALVES * count_columns(n_classes) * (n_amounts + (n_variants if n_variants > 1 else 0))


def bytes_of_sums(n_rows: int, n_classes: int, n_variants: int, n_amounts: int) -> int:
    """Return the bytes of the sums for a number of scored rows, of the numbers of trees, and of means for scores."""
    # The sums over both halves, and the means over each of them and both.
    of_whole = (1 + _N_HALVES + 1) * count_columns(n_classes) * n_amounts
    return 8 * n_rows * (_n_sums_of_row(n_classes, n_variants, n_amounts) + _N_HALVES * n_variants + of_whole)


def rows_to_score(labels: NDArray[np.uint16], n_classes: int, n_variants: int, seed: int) -> NDArray[np.int64]:
    """Return the positions of the rows to score, in ascending order: a random sample of the rows of each class.

    The array is empty if there would be fewer than two rows of a class.
    """
    enough = max(_ROWS_TIMES_CLASSES // n_classes, int(_PROPORTION * len(labels)), _ROWS_OF_CLASS * n_classes)
    most = min(_ROWS, enough, _MOST_SUMS // _n_sums_of_row(n_classes, n_variants, len(AMOUNTS))) // n_classes
    return np.empty(0, dtype=np.int64) if most < 2 else sample_classes(labels, n_classes, most, [seed, SCORED_SAMPLE])


class OutOfBagScores:
    """ROC AUC (Hand and Till's M for many classes) of out-of-bag probabilities for several amounts of shrinkage.

    `rows` are the numbers of the rows to score, in ascending order; `amounts` are in samples, and `unit` is the weight
    of a sample in trees. Amounts are compared after `calibration`, and variants without it, so that the trees do not
    depend on it. A variant has a criterion and splitter, and one of `n_encodings` encodings: its number is that of the
    pair times `n_encodings` plus that of the encoding.
    """

    def __init__(
        self,
        training: TrainingRows,
        rows: NDArray[np.int64],
        n_classes: int,
        n_variants: int,
        amounts: NDArray[np.float64],
        unit: float,
        calibration: Calibration | None,
        n_jobs: int | None,
        n_encodings: int = 1,
    ) -> None:
        self._n_encodings = n_encodings
        self._bags, self._n_jobs = training.bags, n_jobs
        self._n_threads = effective_n_jobs(n_jobs)
        # Of two classes it does not change the ranking.
        self._calibration = None if n_classes == 2 else calibration
        self._amounts, self._unit, self._n_classes = amounts, unit, n_classes
        self._truth, self._groups = training.labels[rows].astype(np.uint32), training.bags.groups_of(rows)
        weights = relative_weights(training.weights_of(rows), len(rows))
        self._weights = np.ones(len(rows)) if weights is None else weights
        taken = training.take(rows)
        # Rows of a sparse matrix are dense a few at a time.
        is_sparse = isinstance(taken, SparseRows)
        self._table = taken if is_sparse else np.ascontiguousarray(taken.T, dtype=np.float64)
        indices = [self._bags.find(block, rows) for block in range(self._bags.sampler.n_blocks)]
        self._indices = [(block, found) for block, found in enumerate(indices) if len(found) > 0]
        n_rows, n_columns = len(rows), count_columns(n_classes)
        # The whole is that of each encoding.
        self._sums = ShrunkSums(
            np.zeros((_N_HALVES, n_encodings, n_rows, n_columns, len(amounts))),
            np.zeros((_N_HALVES, n_variants, n_rows if n_variants > 1 else 0, n_columns)),
            np.zeros((_N_HALVES, n_variants, n_rows), dtype=np.int64),
        )
        self._n_added = np.zeros(n_variants, dtype=np.int64)

    def restart(self) -> None:
        """Remove all trees."""
        for array in (*self._sums, self._n_added):
            array[:] = 0

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

    def _halve(self, variants: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the half of each of the next trees, given their variants.

        Each half has as many trees of a criterion and splitter, whatever their encodings.
        """
        halves = np.empty(len(variants), dtype=np.int64)
        pairs, n_added = variants // self._n_encodings, self._n_added.reshape(-1, self._n_encodings).sum(axis=1)
        for pair in np.unique(pairs):
            indices = np.flatnonzero(pairs == pair)
            halves[indices] = (n_added[pair] + np.arange(len(indices))) % _N_HALVES
        np.add.at(self._n_added, variants, 1)
        return halves

    def add(self, first: int, trees: Sequence[Tree], variants: Iterable[int]) -> None:
        """Add consecutive trees, the first of which has the number `first`, with the variant of each."""
        if not trees:
            return
        vars(self).pop("_by_variant", None)
        of_trees = np.array(list(variants), dtype=np.int64)
        halves, amounts = self._halve(of_trees), self._unit * self._amounts
        encodings, all_encodings = of_trees % self._n_encodings, range(self._n_encodings)
        parts = [(half, encoding) for half in range(_N_HALVES) for encoding in all_encodings]
        indices = {part: np.flatnonzero((halves == part[0]) & (encodings == part[1])) for part in parts}
        joined = {part: join_small([trees[index] for index in some.tolist()]) for part, some in indices.items()}

        def add_half(half: int, rows: slice) -> None:
            for part in ((half, encoding) for encoding in all_encodings):
                if not joined[part]:
                    continue
                of_part, counts = of_trees[indices[part]], self._counts((first + indices[part]).tolist(), rows)
                whole, *by_variant = (array[half] for array in self._sums)
                sums = ShrunkSums(whole[part[1]], *by_variant)
                for some, table in self._blocks(rows):
                    own = counts[:, some.start - rows.start : some.stop - rows.start]
                    add_shrunk(joined[part], of_part, amounts, self._weighted_index, table, own, some.start, sums)

        # A row of a half is summed by one thread, so that rounding errors do not depend on n_jobs.
        n_rows, n_columns = len(self._truth), self._sums.whole.shape[3]
        seconds = _ROW_TIME * (1.0 + _COLUMN_SHARE * n_columns) * n_rows * len(trees)
        n_parts = max(1, min(-(-self._n_threads // _N_HALVES), int(seconds / _LEAST_TASK) // _N_HALVES, n_rows))
        bounds = np.linspace(0, n_rows, n_parts + 1).astype(np.int64)
        tasks = [(half, slice(*pair)) for pair in pairwise(bounds.tolist()) for half in range(_N_HALVES)]
        for _ in thread_map(self._n_jobs, seconds / len(tasks))(lambda task: add_half(*task), tasks):
            pass

    @property
    def _weighted_index(self) -> int:
        """The place of the amount of shrinkage by which variants are compared; with one variant it is not used."""
        return min(int(np.searchsorted(self._amounts, WEIGHED_BY)), len(self._amounts) - 1)

    def _blocks(self, rows: slice) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield slices of some scored rows, and these rows as the columns of a dense matrix, (n_features, n_rows)."""
        if isinstance(self._table, SparseRows):
            for some, block in self._table.blocks(rows):
                yield some, np.ascontiguousarray(block.T)
        else:
            # Some of the rows are copied, because kernels would be compiled again for a matrix with gaps.
            yield rows, np.ascontiguousarray(self._table[:, rows])

    def _counts(self, numbers: list[int], rows: slice) -> NDArray[np.uint16]:
        """Return how often some rows are in the bootstrap sample of each of some trees, (n_trees, n_rows)."""
        counts, start = [], 0
        for block, found in self._indices:
            own = found[max(rows.start - start, 0) : max(rows.stop - start, 0)]
            start += len(found)
            if len(own) > 0:
                counts.append(self._bags.counts(block, numbers)[:, own])
        return np.concatenate(counts, axis=1)

    def _score(
        self, candidates: Sequence[Sums], weights: NDArray[np.float64], calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Return the AUC of sums over trees for several weights of the rows, NaN where it is not defined.

        The total of a candidate has the shape (n_columns, n_rows), and the result (n_candidates, n_weights).
        """
        seconds = _RANK_TIME * self._sums.whole[0, 0, ..., 0].size * len(candidates)
        n_tasks = max(1, min(_TASKS_PER_THREAD * self._n_threads, int(seconds / _LEAST_TASK)))
        n_tasks -= n_tasks % self._n_threads if n_tasks > self._n_threads else 0
        step = -(-len(candidates) // n_tasks)
        tasks = [slice(start, start + step) for start in range(0, len(candidates), step)]
        # It is not allocated by the tasks, because threads return freed memory to the system.
        all_means = np.empty((len(candidates), *candidates[0].total.shape))

        def score(task: slice) -> NDArray[np.float64]:
            some, means = candidates[task], all_means[task]
            n_trees = np.stack([sums.n_trees for sums in some])
            # Rows without a score get one, and no weight.
            for mean, sums, divisor in zip(means, some, np.where(n_trees > 0, n_trees, 1)):
                np.divide(sums.total, divisor, out=mean)
                if calibration is not None:
                    mean[:] = calibration.apply(np.ascontiguousarray(mean.T)).T
            weights_of_each = np.where((n_trees > 0)[:, None], weights, 0.0)
            if self._n_classes == 2:
                return score_columns(self._truth == 1, means[:, 0], weights_of_each)
            return score_matrices(self._truth, means, weights_of_each)

        return np.concatenate(list(thread_map(self._n_jobs, seconds / n_tasks)(score, tasks)))

    def _halves(self) -> list[Sums]:
        """Return the sums over two halves of the trees, for all amounts of shrinkage."""
        wholes, n_trees = self._sums.whole.sum(axis=1), self._sums.n_trees.sum(axis=1)
        return [Sums(*pair) for pair in zip(wholes, n_trees)]

    def calibration_sample(self, amount: float, frequencies: NDArray[np.float64]) -> CalibrationSample:
        """Return the samples for a calibration with this shrinkage, weighted to the given class frequencies."""
        index = int(np.searchsorted(self._amounts, amount))
        halves = [Sums(total[..., index], n_trees) for total, n_trees in self._halves()]
        if self._n_classes == 2:
            halves = [Sums(np.hstack((n_trees[:, None] - total, total)), n_trees) for total, n_trees in halves]
        by_class = np.bincount(self._truth, self._weights, minlength=self._n_classes)
        weights = self._weights * (frequencies / np.where(by_class > 0.0, by_class, 1.0))[self._truth]
        return CalibrationSample(self._truth, weights / weights.mean(), self._groups, halves)

    @cached_property
    def _by_variant(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the sums over the trees of each variant, with the shrinkage `WEIGHED_BY`, and the numbers of trees."""
        return self._sums.by_variant.sum(axis=0), self._sums.n_trees.sum(axis=0)

    def _by_group(self, groups: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return `_by_variant` for groups of variants, and the numbers of added trees."""
        if np.array_equal(groups, np.arange(len(groups))):
            return *self._by_variant, self._n_added
        summed = [
            np.stack([of_each[groups == group].sum(axis=0) for group in range(int(groups.max()) + 1)])
            for of_each in (*self._by_variant, self._n_added)
        ]
        return summed[0], summed[1], summed[2]

    def variant_scores(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the AUC of the trees of each group of variants, NaN where it is not defined."""
        totals, n_trees, _ = self._by_group(groups)
        candidates = [Sums(total.T, n) for total, n in zip(totals, n_trees)]
        return self._score(candidates, self._weights[None])[:, 0]

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

    def variant_gains(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gain in AUC of all trees together if a variant had as many more trees as variants have on average.

        `groups` are groups of variants, each of which counts as one here.

        The sums over the trees of the variant stand for those of the new trees. The gain of the whole forest counts and
        not the AUC of the variant alone, whose estimate needs more trees, and which favors variants with similar trees.
        """
        sums, n_trees, n_added = self._by_group(groups)
        whole, n_whole, n_usual = sums.sum(axis=0), n_trees.sum(axis=0), n_added.mean()
        factors = n_usual / np.maximum(n_added, 1)
        # The first is the whole without more trees.
        more, n_more = (np.concatenate((np.zeros_like(array[:1]), array)) for array in (sums, n_trees))
        factors = np.concatenate(([0.0], factors))
        totals, all_trees = whole + factors[:, None, None] * more, n_whole + factors[:, None] * n_more
        candidates = [Sums(total.T, n_trees) for total, n_trees in zip(totals, all_trees)]
        scores = self._score(candidates, self._weights[None])[:, 0]
        return scores[1:] - scores[0]

    def encoding_gains(self) -> NDArray[np.float64]:
        """Return the gain in AUC of all trees together if an encoding had as many more as encodings have on average.

        It is less than that of the best encoding by so many standard errors of the difference, 0 for the best one and
        -inf for encodings without trees, which were dropped. A gain is that at the best amounts of shrinkage: few trees
        on rates, which can tell every category apart, need a large amount, and at a small one would seem worse than
        they are in a whole forest.
        """
        n_added = self._n_added.reshape(-1, self._n_encodings).sum(axis=0)
        candidates = [sums for encoding in range(self._n_encodings) for sums in self._with_more(encoding, n_added)]
        scores = self._score(candidates, self._weights[None])[:, 0].reshape(self._n_encodings, -1)
        amounts = scores.argmax(axis=1)
        best_scores = np.where(n_added > 0, scores.max(axis=1), -np.inf)
        best = int(np.argmax(best_scores))
        if np.any(np.isnan(scores)):
            return np.full(self._n_encodings, np.nan)
        # The delete-a-group jackknife, as in `choose_amount`.
        is_out = parts_of_rows(self._truth, self._groups) == np.arange(N_PARTS)[:, None]
        chosen = [candidates[encoding * len(self._amounts) + index] for encoding, index in enumerate(amounts.tolist())]
        without = self._score(chosen, np.where(is_out, 0.0, self._weights))
        errors = np.sqrt((N_PARTS - 1) * np.var(without - without[best], axis=1))
        # An encoding that predicts like the best one is as good.
        differences: NDArray[np.float64] = (best_scores - best_scores[best]) / np.maximum(errors, _LEAST_ERROR)
        return differences

    def _with_more(self, encoding: int, n_added: NDArray[np.int64]) -> list[Sums]:
        """Return the sums of all trees with more of an encoding, for every amount of shrinkage."""
        weights = np.ones(len(n_added))
        weights[encoding] += n_added.mean() / max(n_added[encoding], 1)
        total = np.tensordot(weights, self._sums.whole.sum(axis=0), axes=1)
        n_trees = self._sums.n_trees.sum(axis=0).reshape(-1, len(n_added), len(self._truth)).sum(axis=0)
        return [Sums(total[..., index].T, weights @ n_trees) for index in range(len(self._amounts))]

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

        def score(amounts: Sequence[int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
            candidates = [Sums(sums.total.T[i], sums.n_trees) for sums in (*halves, whole) for i in amounts]
            first, second, of_all = self._score(candidates, weights, self._calibration).reshape(3, len(amounts), -1)
            return of_all + further * (of_all - 0.5 * (first + second))

        scores = score(range(len(AMOUNTS)), self._weights[None])[:, 0]
        # The AUC of a half is not defined if it has no trees, or out-of-bag rows of one class only.
        best, prior = int(np.argmax(scores)), _PRIOR_PLACE
        if best == prior or np.any(np.isnan(scores)):
            return PRIOR
        # The delete-a-group jackknife (Tukey): rows that are left out get weight 0, so the ranks of the others need not
        # be computed again.
        is_out = parts_of_rows(self._truth, self._groups) == np.arange(N_PARTS)[:, None]
        gains = np.subtract(*score([best, prior], np.where(is_out, 0.0, self._weights)))
        error = np.sqrt((N_PARTS - 1) * np.var(gains))
        return float(AMOUNTS[best]) if scores[best] - scores[prior] > _STANDARD_ERRORS * error else PRIOR
