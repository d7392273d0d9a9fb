"""Confidence intervals of class probabilities, from the variance between trees of different half-samples.

Each tree is grown on one of several half-samples of the rows. The variance between the expected predictions of
half-samples is about the variance of the forest over training sets. References: `AUCForestClassifier.predict_interval`.
"""

from collections.abc import Sequence

import numpy as np

from aucforest.estimators._calibration import MIN_PROBA
from aucforest.fitting.bootstrap import N_HALVES
from aucforest.fitting.out_of_bag import Sums
from aucforest.metrics.intervals import score_bounds
from aucforest.metrics.validation import FloatArray

# Minimum and maximum number of rows from which the dispersion is estimated, and the maximum of rows * trees * classes.
_LEAST_ROWS, _MOST_ROWS, _MOST_PROBABILITIES = 64, 2048, 2**22


def max_dispersion_rows(n_trees: int, n_classes: int) -> int:
    """Return the maximum number of rows from which the dispersion is estimated."""
    return max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_PROBABILITIES // (n_trees * n_classes)))


def estimate_dispersion(by_tree: Sequence[Sums], halves: Sequence[int]) -> float:
    """Return the variance of the mean p over trees as a multiple of p (1 - p), from out-of-bag sums of each tree.

    `halves` contains the index of the half-sample of each tree. The variances between and within half-samples are those
    of an unbalanced analysis of variance with random effects (Searle, Casella, McCulloch 1992, section 3.6).
    """
    tree_totals = np.stack([sums.total for sums in by_tree])  # (n_trees, n_rows, n_classes)
    half_totals, counts = np.zeros((N_HALVES, *tree_totals.shape[1:])), np.zeros((N_HALVES, tree_totals.shape[1], 1))
    for half, sums in zip(halves, by_tree):
        half_totals[half] += sums.total
        counts[half] += sums.n_trees[:, None]
    n_trees, n_halves = counts.sum(axis=0), np.count_nonzero(counts, axis=0)
    # A row must be out of bag for two half-samples, and for two trees of one of them. Otherwise, its variances between
    # and within half-samples are undefined.
    rows = ((n_halves > 1) & (n_trees > n_halves))[:, 0]
    half_totals, counts, n_trees, n_halves = half_totals[:, rows], counts[:, rows], n_trees[rows], n_halves[rows]
    mean, squares = half_totals.sum(axis=0) / n_trees, np.sum(half_totals**2 / np.maximum(counts, 1.0), axis=0)
    within = (np.sum(tree_totals[:, rows] ** 2, axis=0) - squares) / (n_trees - n_halves)
    between = (squares - n_trees * mean**2) / (n_halves - 1)
    trees_of_half = (n_trees - np.sum(counts**2, axis=0) / n_trees) / (n_halves - 1)
    # Rows with larger variances have smaller weights, because otherwise they would dominate the estimate.
    deviation = np.sqrt(np.maximum(mean * (1.0 - mean), MIN_PROBA))
    variance = max(float(np.sum((between - within) / trees_of_half / deviation)), 0.0)
    tree_variance = max(float(np.sum(within / deviation)), 0.0)
    # Add the variance of the mean that is due to the finite numbers of half-samples and trees.
    variance += variance * np.sum(np.bincount(halves) ** 2) / len(halves) ** 2 + tree_variance / len(halves)
    return float(variance / deviation.sum())


def bounds_of(mean: FloatArray, proba: FloatArray, slope: float, dispersion: float, quantile: float) -> FloatArray:
    """Return the bounds of the probabilities `proba`, (n_samples, n_classes, 2).

    `proba` are the calibrated means over trees, and `mean` are the means before calibration. The means p have the
    covariance of proportions, ``dispersion * (diag(p) - p p')``. By the delta method, the variance of a calibrated
    probability q_j follows from its derivatives with respect to p_k, ``slope * q_j ((j == k) - q_k) / p_k``.
    """
    mean = np.maximum(mean, MIN_PROBA)
    others = np.maximum(sum_of_others(proba), np.finfo(np.float64).tiny)
    factors = proba / others * (sum_of_others(proba**2 / mean) + others**2 / mean)
    return np.stack(score_bounds(proba, dispersion * slope**2 * factors, quantile), axis=-1)


def sum_of_others(values: FloatArray) -> FloatArray:
    """Return for each column the sum of the other columns, without the rounding error of the total minus the column."""
    zeros = np.zeros((len(values), 1))
    before, after = np.cumsum(values[:, :-1], axis=1), np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return np.hstack((zeros, before)) + np.hstack((after, zeros))
