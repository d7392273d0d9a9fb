"""Out-of-bag ROC AUC by pairs of samples, each compared by the trees for which both samples are out of bag.

The out-of-bag probabilities of a sample come from trees that were grown without it, so its class is a little rarer in
their training samples. This lowers the probability of the true class, and with it the out-of-bag ROC AUC (Parker,
Günter and Bedo 2007). The bias is largest for rare classes. Trees that were grown without both samples of a pair do not
favor one of the two: on noise, both orders are equally likely (leave-pair-out, Airola et al. 2011).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from aucforest._compile import bare_device, bare_kernel
from aucforest.columns.sparse import dense_blocks
from aucforest.estimators._class_sample import sample_classes
from aucforest.estimators._evidence import count_columns
from aucforest.fitting.growing import thread_map
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.metrics.roc import class_roc_auc
from aucforest.tree.prediction import BagCounts, PackedTrees, WalkBuffers, add_probabilities
from aucforest.tree.random import PAIRED_SAMPLE, PAIRED_TREES

# Maximum number of compared rows, and maximum number of probabilities: compared rows times trees times classes.
_MOST_ROWS, _MOST_PROBABILITIES = 2048, 2**23
# Minimum number of rows of a class, because the score by pairs has large errors with fewer rows.
_LEAST_ROWS_OF_CLASS = 5
# Number of rows of a class that a task compares with the rows of other classes. It is constant, so that the rounding
# errors of sums do not depend on the number of threads.
_ROWS_OF_TASK = 64
# Approximate seconds per pair and tree, and per row and tree.
_PAIR_TIME, _ROW_TIME = 5e-10, 3e-8
# Smaller mean differences count as ties, because they are rounding errors.
_TIE = 1e-12


class _TreeProbabilities(NamedTuple):
    """The probability of one class by each tree, for rows that are sorted by class."""

    starts: NDArray[np.int64]  # (n_classes + 1,), the first row of each class, and the number of rows
    weights: NDArray[np.float64]  # (n_rows,)
    is_out: NDArray[np.float64]  # (n_trees, n_rows), 1 where a row is out of bag, else 0
    proba: NDArray[np.float64]  # (n_trees, n_rows), 0 where a row is not out of bag
    half: NDArray[np.int64]  # (n_trees,), the half of the trees that a tree belongs to, 0 or 1


@bare_device
def _add_pair(difference, n_trees, weight, sums):
    """Add a pair to three sums: of the weights of correctly ordered pairs, of all weights, and of weight / n_trees."""
    if n_trees > 0.0:
        mean = difference / n_trees
        sums[0] += weight * (1.0 if mean > _TIE else 0.5 if mean >= -_TIE else 0.0)
        sums[1] += weight
        sums[2] += weight / n_trees


@bare_kernel
def _compare(trees, rows, label, buffers, pair_sums):
    """Compare the rows from `rows[0]` to `rows[1]` - 1, of the class `label`, with the rows of each other class.

    `pair_sums`, (n_classes, 3, 3), has for each other class and each set of trees (the two halves, all) the three sums
    of `_add_pair`.
    """
    starts, weights, differences, numbers = trees.starts, trees.weights, buffers[0], buffers[1]
    for row in range(rows[0], rows[1]):
        for other in range(len(starts) - 1):
            first, size = starts[other], starts[other + 1] - starts[other]
            if other == label or size == 0:
                continue
            differences[:, :size], numbers[:, :size] = 0.0, 0.0
            for tree in range(len(trees.half)):
                if trees.is_out[tree, row] == 0.0:
                    continue
                is_out, proba = trees.is_out[tree, first : first + size], trees.proba[tree, first : first + size]
                half, value = trees.half[tree], trees.proba[tree, row]
                sums, n_trees = differences[half], numbers[half]
                for i in range(size):
                    sums[i] += value * is_out[i] - proba[i]
                    n_trees[i] += is_out[i]
            for i in range(size):
                weight, pairs = weights[row] * weights[first + i], pair_sums[other]
                _add_pair(differences[0, i], numbers[0, i], weight, pairs[0])
                _add_pair(differences[1, i], numbers[1, i], weight, pairs[1])
                both, n_both = differences[0, i] + differences[1, i], numbers[0, i] + numbers[1, i]
                _add_pair(both, n_both, weight, pairs[2])


def noise_share(scores: tuple[float, float], per_tree: tuple[float, float]) -> float:
    """Return the share of the variance of probabilities that more trees would reduce.

    `scores` are the ROC AUC of all trees and that of half of them, and `per_tree` the two means of x = 1 / (number of
    trees). Probabilities are assumed normal with the variance a + b x. Then 1 / z**2 is linear in x, where z is the
    normal quantile of the ROC AUC. The result is the share of b x in the variance for all trees, or 0 if the ROC AUCs
    do not determine it.
    """
    z, z_of_half = ndtri(scores)
    if not (np.isfinite(z) and z * z_of_half > 0.0 and per_tree[1] > per_tree[0]):
        return 0.0
    return float(np.clip(((z / z_of_half) ** 2 - 1.0) * per_tree[0] / (per_tree[1] - per_tree[0]), 0.0, 1.0))


def extrapolate(score: float, share: float, reduction: float) -> float:
    """Return the ROC AUC after a share of the variance of probabilities is multiplied by `reduction`."""
    return float(ndtr(ndtri(score) / np.sqrt(1.0 - share * (1.0 - min(reduction, 1.0))))) if share > 0.0 else score


def rows_to_compare(labels: NDArray[Any], n_classes: int, n_trees: int, seed: int) -> NDArray[np.int64]:
    """Return the ascending indices of the rows to compare: a random sample of the rows of each class.

    There are none if the sample would have fewer than `_LEAST_ROWS_OF_CLASS` rows of each class.
    """
    most = min(_MOST_ROWS, _MOST_PROBABILITIES // (n_trees * count_columns(n_classes))) // n_classes
    if most < _LEAST_ROWS_OF_CLASS:
        return np.empty(0, dtype=np.int64)
    return sample_classes(labels, n_classes, most, [seed, PAIRED_SAMPLE])


def bytes_of_pairs(n_rows: int, n_classes: int, n_trees: int) -> int:
    """Return the bytes of the predictions of all trees, including one copy."""
    return 2 * 8 * n_rows * n_trees * (1 + count_columns(n_classes))


def _mean_over_classes(pair_sums: NDArray[np.float64]) -> tuple[float, float]:
    """Return the means over pairs of classes of the ROC AUC and of 1 / (number of trees)."""
    score, per_tree = (pair_sums[:, [0, 2]] / pair_sums[:, 1:2]).mean(axis=0).tolist()
    return score, per_tree


class OutOfBagPairs:
    """Correction of the out-of-bag ROC AUC by out-of-bag predictions of single trees for a sample of rows.

    For more than two classes, the ROC AUC is Hand and Till's mean over pairs of classes.
    """

    def __init__(self, forest: Any, training: TrainingRows, n_jobs: int | None) -> None:
        n_classes, seed, n_trees = len(forest.classes_), forest._seed, len(forest.trees_)
        self._n_classes, self._n_jobs = n_classes, n_jobs
        self._optimism = getattr(forest, "oob_optimism_", 0.0)  # only defined if `fit` scored the ROC AUC
        kept = training.bags.all_kept
        rows = kept[rows_to_compare(training.labels[kept], n_classes, n_trees, seed)]
        # Of two consecutive trees, each half gets one at random. So halves do not depend on later trees.
        is_first = np.random.default_rng([seed, PAIRED_TREES]).random(-(-n_trees // 2)) < 0.5
        self._half = np.column_stack((is_first, ~is_first)).ravel()[:n_trees].astype(np.int64)
        self._is_out = np.empty((n_trees, len(rows)))
        self._proba = np.empty((count_columns(n_classes), n_trees, len(rows)))
        if len(rows) > 0:
            self._predict(training, forest._in_groups(), rows)
        # All rows are sorted by class.
        order = np.argsort(training.labels[rows], kind="stable")
        self._is_out, self._proba = (np.ascontiguousarray(array[..., order]) for array in (self._is_out, self._proba))
        self._rows, self._labels = rows[order], training.labels[rows[order]]
        self._starts = np.searchsorted(self._labels, np.arange(n_classes + 1))
        weights = training.weights_of(self._rows)
        self._weights = np.ones(len(rows)) if weights is None else weights

    def _predict(
        self, training: TrainingRows, groups: Iterable[tuple[range, PackedTrees]], rows: NDArray[np.int64]
    ) -> None:
        """Set the predictions of all trees for rows with ascending indices."""
        taken, counts = training.take(rows), training.bags.counts_at(rows, range(len(self._half)), self._n_jobs)

        def predict(packed: PackedTrees, index: int, tree: int, columns: slice, X: NDArray[np.float64]) -> None:
            total = np.zeros((len(X), self._n_classes))
            bags = BagCounts(np.ascontiguousarray(counts[tree : tree + 1, columns]), np.zeros(len(X), dtype=np.int64))
            arrays = packed.arrays_for(X, range(index, index + 1))
            add_probabilities(arrays, X, WalkBuffers.of(len(X)), total, bags)
            self._is_out[tree, columns] = bags.n_trees
            self._proba[:, tree, columns] = total.T[-len(self._proba) :]

        for group, packed in groups:
            for columns, X in dense_blocks(taken, slice(0, len(rows))):
                tasks = [(packed, index, tree, columns, X) for index, tree in enumerate(group)]
                for _ in thread_map(self._n_jobs, _ROW_TIME * len(X))(lambda task: predict(*task), tasks):
                    pass

    def correct(self, score: float, n_trees: int, seen: NDArray[np.int64], proba: NDArray[np.float64]) -> float:
        """Return the corrected ROC AUC of the first n_trees trees, given the ROC AUC of out-of-bag probabilities.

        `proba` are the out-of-bag probabilities of the rows `seen`, ascending indices. The bias is the ROC AUC of the
        compared rows by out-of-bag probabilities, minus their ROC AUC by pairs. It is subtracted, and so is
        ``oob_optimism_``. The result is NaN if one of two classes has a single row: trees that were grown without this
        row have not seen its class.
        """
        if self._n_classes == 2 and 1 in np.diff(self._starts):
            return float("nan")
        by_pairs = self._score(n_trees) if len(self._rows) > 0 else float("nan")
        if np.isnan(by_pairs):
            return float(np.clip(score - self._optimism, 0.0, 1.0))
        is_seen = self._is_out[:n_trees].any(axis=0)
        rows, labels = self._rows[is_seen], self._labels[is_seen]
        if self._n_classes == 2:
            oob_proba = proba[np.searchsorted(seen, rows)]
        else:  # without calibration, like the pairs, because it would change the ranking
            n_out = self._is_out[:n_trees, is_seen].sum(axis=0)
            oob_proba = (self._proba[:, :n_trees, is_seen].sum(axis=1) / n_out).T
        bias = class_roc_auc(labels, oob_proba, self._weights[is_seen]) - by_pairs
        return float(np.clip(score - bias - self._optimism, 0.0, 1.0))

    def _score(self, n_trees: int) -> float:
        """Return the ROC AUC by pairs of the first n_trees trees.

        A single row is out of bag for more trees than a pair, so the ROC AUC is extrapolated to the trees of a row.
        """
        pair_sums = self._compare_classes(n_trees)
        is_pair = pair_sums[:, :, 2, 1] > 0.0
        if not np.any(is_pair):
            return float("nan")
        score, per_tree = _mean_over_classes(pair_sums[is_pair][:, 2])
        # The sums of the pairs of classes whose rows can be compared by each half of the trees.
        in_halves = pair_sums[np.all(pair_sums[:, :, :, 1] > 0.0, axis=2)]
        share = 0.0
        if len(in_halves) > 0:
            (whole, per_tree_of_whole), *halves = (_mean_over_classes(in_halves[:, part]) for part in (2, 0, 1))
            of_half, per_tree_of_half = np.mean(halves, axis=0).tolist()
            share = noise_share((whole, of_half), (per_tree_of_whole, per_tree_of_half))
        n_out = self._is_out[:n_trees].sum(axis=0)
        seen = n_out > 0
        class_weight = np.bincount(self._labels[seen], self._weights[seen])
        per_tree_of_class = np.bincount(self._labels[seen], self._weights[seen] / n_out[seen])
        is_present = class_weight > 0.0
        per_tree_of_rows = float(np.mean(per_tree_of_class[is_present] / class_weight[is_present]))
        return extrapolate(score, share, per_tree_of_rows / per_tree)

    def _compare_classes(self, n_trees: int) -> NDArray[np.float64]:
        """Return the sums of `_compare` for each ordered pair of classes, (n_classes, n_classes, 3, 3)."""
        n_classes, starts = self._n_classes, self._starts
        pair_sums = np.zeros((n_classes, n_classes, 3, 3))
        by_class = [
            _TreeProbabilities(starts, self._weights, self._is_out[:n_trees], proba[:n_trees], self._half[:n_trees])
            for proba in self._proba
        ]

        def compare(task: tuple[int, int, int]) -> NDArray[np.float64]:
            label, first, stop = task
            compared, buffers = np.zeros((n_classes, 3, 3)), np.empty((2, 2, int(np.diff(starts).max())))
            _compare(by_class[label if n_classes > 2 else 0], (first, stop), label, buffers, compared)
            return compared

        tasks = [
            (label, first, min(first + _ROWS_OF_TASK, int(starts[label + 1])))
            for label in ([1] if n_classes == 2 else range(n_classes))
            for first in range(int(starts[label]), int(starts[label + 1]), _ROWS_OF_TASK)
        ]
        seconds = _PAIR_TIME * n_trees * _ROWS_OF_TASK * len(self._weights)
        for (label, *_), compared in zip(tasks, thread_map(self._n_jobs, seconds)(compare, tasks)):
            pair_sums[label] += compared
        return pair_sums
