"""Out-of-bag predictions of the first trees of a forest, used to choose mixture, shrinkage and calibration.

A mixed forest has several variants (pairs of a criterion and a splitter) or encodings of columns with many categories.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices

from aucforest.columns.sparse import SparseRows
from aucforest.estimators._calibration import Calibration, CalibrationSample, rarer_class_size
from aucforest.estimators._class_sample import sample_classes
from aucforest.estimators._paths import OutOfBagRows, ShrunkSums, add_shrunk
from aucforest.fitting.growing import thread_map
from aucforest.fitting.out_of_bag import N_PARTS, Sums, TrainingRows, parts_of_rows
from aucforest.metrics.roc import auc_by_weights, hand_till_by_weights
from aucforest.metrics.validation import FloatArray, check_weights
from aucforest.tree.random import SCORED_SAMPLE
from aucforest.tree.tree import Tree

# All constants were chosen with benchmarks/ranking.py and benchmarks/noisy_sets.py.
# The amounts of shrinkage to choose from.
AMOUNTS = np.array([0.0, 1.0, 2.0, 5.0, 15.0, 50.0, 200.0, 1000.0])
# The amount that is used unless another one is clearly better, without and with trees on target rates
# (benchmarks/DEFAULTS.md).
PRIOR, PRIOR_WITH_RATES = 5.0, 50.0
# The amount of shrinkage with which variants are compared.
COMPARISON_AMOUNT = 1.0
# The factor c in the weights exp(c n g) of variants, where n is the effective number of rows and g the gain in AUC.
_VARIANT_FACTOR = 2.0
# The factor s in the weights exp(s g) of encodings, chosen with benchmarks/many_categories.py. The gains g are in
# standard errors, because chance alone makes encodings differ more than variants.
ENCODING_FACTOR = 1.5
# Another amount than the prior is used only if its AUC exceeds that of the prior by this number of standard errors.
_MIN_STANDARD_ERRORS = 1.5
# Maximum number of scored rows. With more rows the choice is slower but not better. With many classes a row takes
# longer, so the maximum decreases to _ROWS_TIMES_CLASSES / n_classes, but not below _LEAST_PROPORTION of the training
# rows or _LEAST_ROWS_OF_CLASS rows of each class.
_MOST_ROWS, _ROWS_TIMES_CLASSES, _LEAST_PROPORTION, _LEAST_ROWS_OF_CLASS = 4096, 2**15, 0.125, 16
# Number of scored trees. It is _MOST_SCORED_TREES if trees have several encodings, or if there are at least
# _SAMPLES_PER_SCORED_ROW training samples for each scored row, because scoring then takes little of the time of a fit.
SCORED_TREES, _MOST_SCORED_TREES, _SAMPLES_PER_SCORED_ROW = 96, 300, 4
# The trees of each variant are divided into halves, whose scores are extrapolated to more trees.
_N_HALVES = 2
# Maximum number of sums of out-of-bag predictions in memory.
_MOST_SUMS = 2**23
# Approximate seconds to add the prediction of a tree for a row, the proportion by which each stored class probability
# increases this time, and approximate seconds to rank a row.
_ROW_TIME, _COLUMN_SHARE, _RANK_TIME = 3e-8, 0.15, 2e-8
# Minimum seconds of a task for which threads are faster.
_LEAST_TASK = 1e-3


def _mixture_weights(gains: FloatArray, factor: float, default: FloatArray) -> FloatArray:
    """Return the weights of variants or encodings, given their gains in AUC; `default` if an AUC is not defined."""
    if np.any(np.isnan(gains)):
        return default
    weights = np.exp(factor * (gains - gains.max()))
    return np.asarray(weights / weights.sum())


def jackknife_error(estimates: FloatArray) -> Any:
    """Return the jackknife standard error over the last axis of estimates, each without one part of the rows."""
    return np.sqrt((estimates.shape[-1] - 1) * np.var(estimates, axis=-1))


def row_weight(weights: FloatArray | None, sample_weight: FloatArray | None, *, bootstrap: bool) -> float:
    """Return the weight that shrinkage counts as one sample, which is the mean weight of a sample.

    `weights` include class weights, `sample_weight` does not. Without a bootstrap, a row of integer sample weight w is
    w samples. With a bootstrap it is one sample, because its w copies are always sampled together.
    """
    if weights is None:
        return 1.0
    if not bootstrap and sample_weight is not None and np.all(sample_weight == np.rint(sample_weight)):
        return float(weights.sum() / sample_weight.sum())
    # Because of rounding errors, the mean of equal weights may be outside their range.
    return float(np.clip(weights.mean(), weights.min(), weights.max()))


def amounts_to_score(shrinkage: float | str | None) -> FloatArray:
    """Return the amounts of shrinkage to score: those of "auto", or the given one and `COMPARISON_AMOUNT`."""
    if shrinkage == "auto":
        return AMOUNTS
    # There are always two amounts, because kernels are compiled for each number of amounts.
    return np.sort([float(shrinkage or 0.0), COMPARISON_AMOUNT])


def count_columns(n_classes: int) -> int:
    """Return the number of stored class probabilities of a row: of all classes, or only of the second of two."""
    return 1 if n_classes == 2 else n_classes


def _n_sums_of_row(n_classes: int, n_variants: int, n_amounts: int) -> int:
    return _N_HALVES * count_columns(n_classes) * (n_amounts + (n_variants if n_variants > 1 else 0))


def bytes_of_sums(n_rows: int, n_classes: int, n_variants: int, n_amounts: int, n_encodings: int = 1) -> int:
    """Return the bytes of the sums, numbers of trees, and means of an `OutOfBagSelector`."""
    # Sums over all trees, and means over each half and all trees. Each encoding after the first adds sums over each
    # half, and the sums of `_with_more`.
    n_of_encodings = (_N_HALVES + 1) * (n_encodings - 1)
    n_forest_sums = (1 + _N_HALVES + 1 + n_of_encodings) * count_columns(n_classes) * n_amounts
    return 8 * n_rows * (_n_sums_of_row(n_classes, n_variants, n_amounts) + _N_HALVES * n_variants + n_forest_sums)


def rows_to_score(labels: NDArray[np.uint16], n_classes: int, n_variants: int, seed: int) -> NDArray[np.int64]:
    """Return the ascending indices of the rows to score: a random sample of the rows of each class.

    There are none if the sample would have fewer than two rows of each class.
    """
    least = max(int(_LEAST_PROPORTION * len(labels)), _LEAST_ROWS_OF_CLASS * n_classes)
    n_rows = min(_MOST_ROWS, max(_ROWS_TIMES_CLASSES // n_classes, least))
    n_of_class = min(n_rows, _MOST_SUMS // _n_sums_of_row(n_classes, n_variants, len(AMOUNTS))) // n_classes
    if n_of_class < 2:
        return np.empty(0, dtype=np.int64)
    return sample_classes(labels, n_classes, n_of_class, [seed, SCORED_SAMPLE])


class OutOfBagSelector:
    """Selects the shrinkage, and the weights of variants and encodings, by the ROC AUC of out-of-bag probabilities.

    With more than two classes, this is Hand and Till's M. `rows` are the ascending indices of the rows to score.
    `amounts` are the amounts of shrinkage in samples, and `unit` is the weight of a sample in trees. Amounts are
    compared by calibrated probabilities. Variants and encodings are compared by uncalibrated probabilities, so that the
    trees do not depend on `calibration`. The sums of a variant and an encoding have the index variant * n_encodings +
    encoding.
    """

    def __init__(
        self,
        training: TrainingRows,
        rows: NDArray[np.int64],
        n_classes: int,
        n_variants: int,
        n_encodings: int,
        amounts: FloatArray,
        unit: float,
        calibration: Calibration | None,
        n_jobs: int | None,
    ) -> None:
        self._bags, self._rows, self._n_encodings = training.bags, rows, n_encodings
        self._n_jobs, self._n_threads = n_jobs, effective_n_jobs(n_jobs)
        # With two classes the calibration does not change the ranking.
        self._calibration = None if n_classes == 2 else calibration
        self._amounts, self._unit, self._n_classes = amounts, unit, n_classes
        self._labels, self._groups = training.labels[rows].astype(np.uint32), training.bags.groups_of(rows)
        weights = check_weights(training.weights_of(rows), len(rows))
        self._weights = np.ones(len(rows)) if weights is None else weights
        X = training.take(rows)
        # Sparse rows are converted to dense blocks when they are used.
        self._table = X if isinstance(X, SparseRows) else np.ascontiguousarray(X.T, dtype=np.float64)
        n_rows, n_columns, n_sums = len(rows), count_columns(n_classes), n_variants * n_encodings
        # Here, the arrays of `ShrunkSums` have an additional first axis for the halves, and `whole` also a second axis
        # for the encodings.
        self._sums = ShrunkSums(
            np.zeros((_N_HALVES, n_encodings, n_rows, n_columns, len(amounts))),
            np.zeros((_N_HALVES, n_sums, n_rows if n_sums > 1 else 0, n_columns)),
            np.zeros((_N_HALVES, n_sums, n_rows), dtype=np.int64),
        )
        self._n_added = np.zeros((n_variants, n_encodings), dtype=np.int64)
        self._has_weighed_encodings = False

    @property
    def n_scored_trees(self) -> int:
        """The number of trees to score, which are the first trees of the forest."""
        is_large = self._bags.sampler.n_rows >= _SAMPLES_PER_SCORED_ROW * len(self._labels)
        return _MOST_SCORED_TREES if is_large or self._n_encodings > 1 else SCORED_TREES

    def _counts_by_class(self) -> NDArray[np.int64]:
        """Return, for each class that occurs, the number of its scored rows or, if groups are given, groups."""
        labels = self._labels
        if self._groups is not None:
            labels = np.unique(np.stack((labels, self._groups)), axis=1)[0]
        return np.unique(labels, return_counts=True)[1]

    def _next_halves(self, variants: Sequence[int]) -> NDArray[np.int64]:
        """Return the half of each of the next trees; the trees of each variant alternate between the halves 0 and 1."""
        halves, n_added = [], self._n_added.sum(axis=1).tolist()
        for variant in variants:
            halves.append(n_added[variant] % _N_HALVES)
            n_added[variant] += 1
        return np.array(halves)

    def add(self, first: int, trees: Sequence[Tree], variants: Sequence[int], encodings: Sequence[int]) -> None:
        """Add consecutive trees, the first of which has the index `first`; if it is 0, earlier trees are removed."""
        if first == 0:
            for array in (*self._sums, self._n_added):
                array[:] = 0
        if not trees:
            return
        halves, encoding_of_tree = self._next_halves(variants), np.array(encodings)
        indices_of_sums = np.array(variants) * self._n_encodings + encoding_of_tree
        np.add.at(self._n_added, (variants, encodings), 1)
        amounts, weighted_index = self._unit * self._amounts, self._index_of(COMPARISON_AMOUNT)

        def add_half(half: int, rows: slice) -> None:
            whole, by_variant, n_trees = (array[half] for array in self._sums)
            for encoding in np.unique(encoding_of_tree[halves == half]).tolist():
                indices = np.flatnonzero((halves == half) & (encoding_of_tree == encoding)).tolist()
                counts = self._bags.counts_at(self._rows[rows], [first + index for index in indices], 1)
                chosen, sums = [trees[index] for index in indices], ShrunkSums(whole[encoding], by_variant, n_trees)
                for block, X in self._blocks(rows):
                    block_counts = counts[:, block.start - rows.start : block.stop - rows.start]
                    block_rows = OutOfBagRows(block.start, X, block_counts)
                    add_shrunk(chosen, indices_of_sums[indices].tolist(), block_rows, amounts, weighted_index, sums)

        # One thread adds all trees of a half to a row, in order, so that rounding errors do not depend on n_jobs.
        n_rows, n_columns = len(self._labels), self._sums.whole.shape[3]
        seconds = _ROW_TIME * (1.0 + _COLUMN_SHARE * n_columns) * n_rows * len(trees)
        n_parts = max(1, min(-(-self._n_threads // _N_HALVES), int(seconds / _LEAST_TASK) // _N_HALVES, n_rows))
        tasks = [(half, part) for part in gen_even_slices(n_rows, n_parts) for half in range(_N_HALVES)]
        list(thread_map(self._n_jobs, seconds / len(tasks))(lambda task: add_half(*task), tasks))

    def _blocks(self, rows: slice) -> Iterator[tuple[slice, FloatArray]]:
        """Yield parts of the slice `rows` of the scored rows, each with its dense (n_features, n_rows) matrix."""
        if isinstance(self._table, SparseRows):
            for block_rows, block in self._table.blocks(rows):
                yield block_rows, np.ascontiguousarray(block.T)
        else:
            # A part of the rows is copied, because kernels would be compiled again for a non-contiguous matrix.
            yield rows, np.ascontiguousarray(self._table[:, rows])

    def _score(
        self, candidates: Sequence[Sums], weights: FloatArray, calibration: Calibration | None = None
    ) -> FloatArray:
        """Return the AUC of each candidate with each of several row weights; it ranks rows by the mean over trees.

        `weights` has the shape (n_weights, n_rows), the result (n_candidates, n_weights). The totals of the candidates
        have `count_columns(n_classes)` columns. An AUC that is not defined is NaN.
        """

        def score(sums: Sums) -> FloatArray:
            # Rows that are not out of bag for any tree get the score 0 and the weight 0.
            is_oob = sums.n_trees > 0
            means = sums.total / np.where(is_oob, sums.n_trees, 1)[:, None]
            if calibration is not None:
                means = calibration.apply(means)
            columns, oob_weights = np.ascontiguousarray(means.T), np.where(is_oob, weights, 0.0)
            if self._n_classes == 2:
                return auc_by_weights(self._labels == 1, columns[0], oob_weights)
            return hand_till_by_weights(self._labels, columns, oob_weights)

        return np.stack(list(thread_map(self._n_jobs, _RANK_TIME * candidates[0].total.size)(score, candidates)))

    @cached_property
    def _jackknife_weights(self) -> FloatArray:
        """The row weights for the delete-a-group jackknife (Tukey), (N_PARTS, n_rows).

        The weights with index k are 0 for the rows of part k. To compute ranks only once, these rows are not removed.
        """
        is_left_out = parts_of_rows(self._labels, self._groups) == np.arange(N_PARTS)[:, None]
        return np.where(is_left_out, 0.0, self._weights)

    def _sums_of_halves(self, factors: FloatArray | None = None) -> list[Sums]:
        """Return the sums over each half of the trees for all amounts; `factors` weight the trees of each encoding."""
        total: NDArray[Any] = self._sums.whole
        n_trees: NDArray[Any] = self._sums.n_trees
        if factors is not None:
            total = total * factors[:, None, None, None]
            n_trees = n_trees * np.tile(factors, n_trees.shape[1] // len(factors))[:, None]
        return [Sums(*pair) for pair in zip(total.sum(axis=1), n_trees.sum(axis=1))]

    def calibration_sample(self, amount: float, frequencies: FloatArray) -> CalibrationSample:
        """Return the samples for a calibration with this shrinkage, with weights that yield these class frequencies."""
        index = self._index_of(amount)
        halves = [Sums(total[..., index], n_trees) for total, n_trees in self._sums_of_halves()]
        if self._n_classes == 2:
            halves = [Sums(np.hstack((n_trees[:, None] - total, total)), n_trees) for total, n_trees in halves]
        class_weights = np.bincount(self._labels, self._weights, minlength=self._n_classes)
        weights = self._weights * (frequencies / np.where(class_weights > 0.0, class_weights, 1.0))[self._labels]
        return CalibrationSample(self._labels, weights / weights.mean(), self._groups, halves)

    def _sums_of(self, kind: Literal["variant", "encoding"]) -> list[Sums]:
        """Return the sums over the trees of each variant or encoding at the shrinkage `COMPARISON_AMOUNT`."""
        sums = self._sums.by_variant.sum(axis=0), self._sums.n_trees.sum(axis=0)
        by_variant = (array.reshape(-1, self._n_encodings, *array.shape[1:]) for array in sums)
        return list(map(Sums, *(array.sum(axis=0 if kind == "encoding" else 1) for array in by_variant)))

    def score_alternatives(self, kind: Literal["variant", "encoding"]) -> FloatArray:
        """Return the AUC of the trees of each variant or encoding, and its standard error; NaN if it is not defined.

        The standard error is that of Hanley and McNeil (1982). For more than two classes it is an approximation: K
        classes count as K / 2 independent pairs of classes, and each class has the harmonic mean of all class sizes.
        """
        scores = self._score(self._sums_of(kind), self._weights[None])[:, 0]
        counts = self._counts_by_class().astype(np.float64)
        n_pairs = len(counts) / 2.0
        if n_pairs > 1.0:
            counts = np.full(2, len(counts) / np.sum(1.0 / counts))
        first, second = scores / (2.0 - scores) - scores**2, 2.0 * scores**2 / (1.0 + scores) - scores**2
        variance = scores * (1.0 - scores) + (counts[1] - 1.0) * first + (counts[0] - 1.0) * second
        # Rounding errors can make the variance negative for a score of about 1.
        return np.stack((scores, np.sqrt(np.maximum(variance, 0.0) / np.prod(counts) / n_pairs)))

    def weigh(self, weights: FloatArray, encoding_weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return new weights of the variants and of the encodings, given the present weights."""
        if len(weights) > 1:
            factor = _VARIANT_FACTOR * rarer_class_size(self._counts_by_class())
            weights = _mixture_weights(self._variant_gains()[: len(weights)], factor, weights)
        if len(encoding_weights) > 1:
            encoding_weights = _mixture_weights(self._encoding_gains()[0], ENCODING_FACTOR, encoding_weights)
            self._has_weighed_encodings = True
        return weights, encoding_weights

    def _variant_gains(self) -> FloatArray:
        """Return, for each variant, the gain in AUC of the whole forest if the variant had more trees.

        The number of additional trees is the mean number of trees of a variant. The additional trees are assumed to
        predict like the existing ones. docs/mathematics/forests.md says why the AUC of the variant alone is not used.
        """
        by_variant, n_added = self._sums_of("variant"), self._n_added.sum(axis=1)
        all_total, n_all_trees = (np.sum(sums, axis=0) for sums in zip(*by_variant))
        candidates = [Sums(all_total, n_all_trees)]
        for factor, (total, n_trees) in zip(n_added.mean() / np.maximum(n_added, 1), by_variant):
            candidates.append(Sums(all_total + factor * total, n_all_trees + factor * n_trees))
        scores = self._score(candidates, self._weights[None])[:, 0]
        return scores[1:] - scores[0]

    def _encoding_gains(self, all_weights: FloatArray | None = None) -> FloatArray:
        """Return the gain in AUC by more trees of each encoding, minus the largest gain, in standard errors.

        `all_weights`, (n_weights, n_rows), are several row weights, by default only the weights of all rows. The result
        is (n_weights, n_encodings): 0 for the best encoding, and -inf for dropped encodings, which have no trees. The
        number of additional trees is the mean number of trees of an encoding. The AUC of an encoding is that with its
        best amount of shrinkage, because trees on target rates need more shrinkage.
        """
        candidates = [sums for encoding in range(self._n_encodings) for sums in self._with_more(encoding)]
        weights = self._weights[None] if all_weights is None else all_weights
        scores = self._score(candidates, weights).T.reshape(len(weights), self._n_encodings, -1)
        gains, has_trees = np.full(scores.shape[:2], np.nan), self._n_added.sum(axis=0) > 0
        for index in np.flatnonzero(np.all(np.isfinite(scores), axis=(1, 2))):
            best_scores = np.where(has_trees, scores[index].max(axis=1), -np.inf)
            best, amounts = int(np.argmax(best_scores)), scores[index].argmax(axis=1)
            chosen = [candidates[i * len(self._amounts) + amount] for i, amount in enumerate(amounts)]
            jackknife_scores = self._score(chosen, self._jackknife_weights)
            # The error, a divisor, is 0 for the best encoding and for encodings that predict exactly like it.
            errors = np.maximum(jackknife_error(jackknife_scores - jackknife_scores[best]), 1e-6)
            gains[index] = (best_scores - best_scores[best]) / errors
        return gains

    def _with_more(self, encoding: int) -> list[Sums]:
        """Return the sums over all trees with additional trees of one encoding, for every amount of shrinkage."""
        n_added, factors = self._n_added.sum(axis=0), np.ones(self._n_encodings)
        factors[encoding] += n_added.mean() / max(n_added[encoding], 1)
        total = np.tensordot(factors, self._sums.whole.sum(axis=0), axes=1)
        n_trees = self._sums.n_trees.sum(axis=0).reshape(-1, len(n_added), len(self._labels)).sum(axis=0)
        return [Sums(total[..., index], factors @ n_trees) for index in range(len(self._amounts))]

    def _index_of(self, amount: float) -> int:
        return int(np.searchsorted(self._amounts, amount))

    def choose_amount(
        self, n_trees: int, prior: float, weights: FloatArray | None = None, halves: Sequence[Sums] | None = None
    ) -> float:
        """Return the amount of shrinkage with the best estimated AUC for a forest of n_trees trees.

        Fewer trees need more shrinkage, so the AUC is extrapolated linearly in 1 / n_trees from all scored trees and
        their two halves. The result is `prior`, one of the amounts, unless another amount is better by
        `_MIN_STANDARD_ERRORS` standard errors. By default, all rows are used and all trees have equal weights.
        """
        halves = self._sums_of_halves() if halves is None else halves
        all_trees = Sums(*(first + second for first, second in zip(*halves)))
        if np.sort(np.bincount(self._labels[all_trees.n_trees > 0], minlength=self._n_classes))[-2] < 2:
            return prior
        extrapolation = 1.0 - float(all_trees.n_trees.mean()) / n_trees

        def score(amounts: Sequence[int], weights: FloatArray) -> FloatArray:
            candidates = [Sums(sums.total[..., i], sums.n_trees) for sums in (*halves, all_trees) for i in amounts]
            first, second, both = self._score(candidates, weights, self._calibration).reshape(3, len(amounts), -1)
            return both + extrapolation * (both - 0.5 * (first + second))

        scores = score(range(len(AMOUNTS)), (self._weights if weights is None else weights)[None])[:, 0]
        # The AUC of a half is undefined if the half has no trees, or if its out-of-bag rows have only one class.
        best, index = int(np.argmax(scores)), self._index_of(prior)
        if best == index or np.any(np.isnan(scores)):
            return prior
        error = jackknife_error(np.subtract(*score([best, index], self._jackknife_weights)))
        return float(AMOUNTS[best]) if scores[best] - scores[index] > _MIN_STANDARD_ERRORS * error else prior

    def optimism(self, n_trees: int, amount: float, *, chooses_amount: bool) -> float:
        """Return by how much the AUC is too high because shrinkage and weights of encodings were chosen by it.

        For each part of the rows, the choice is repeated without this part. The AUC of the part is computed with this
        choice and with the choice by all rows. The result is the mean difference. `amount` is the shrinkage, or the
        prior if shrinkage is chosen. Encoding weights apply to all trees, even to those grown before the choice.
        Variants are not chosen again, because on noise their choice raises the AUC by less than 0.001.
        """
        if not (chooses_amount or self._has_weighed_encodings):
            return 0.0
        jackknife_weights, chosen = self._jackknife_weights, []
        all_weights = np.vstack((self._weights, jackknife_weights))
        for weights, factors in zip(all_weights, self._encoding_factors(all_weights)):
            halves = self._sums_of_halves(factors)
            best = self.choose_amount(n_trees, amount, weights, halves) if chooses_amount else amount
            total, n_oob = (first + second for first, second in zip(*halves))
            chosen.append(Sums(total[..., self._index_of(best)], n_oob))
        by_all, *by_others = self._score(chosen, self._weights - jackknife_weights, self._calibration)
        differences = by_all - np.diagonal(by_others)
        differences = differences[np.isfinite(differences)]
        return float(differences.mean()) if len(differences) > 0 else 0.0

    def _encoding_factors(self, all_weights: FloatArray) -> FloatArray:
        """Return factors for the trees of encodings, (n_weights, n_encodings), that give them the chosen weights."""
        n_added = self._n_added.sum(axis=0)
        if not self._has_weighed_encodings:
            return np.ones((len(all_weights), self._n_encodings))
        present = n_added / n_added.sum()
        chosen = [_mixture_weights(gains, ENCODING_FACTOR, present) for gains in self._encoding_gains(all_weights)]
        return np.array(chosen) * n_added.sum() / np.maximum(n_added, 1)
