"""Calibration of a forest's class probabilities by its out-of-bag samples.

A forest is usually under-confident, so the probability p_k of class k becomes p_k ** b * exp(a_k), normalized. The
slope b and the intercepts a_k maximize a penalized likelihood of out-of-bag samples. If they cannot be fitted, only the
prior correction is used: p_k is divided by the rate at which class k was sampled. The derivation is in
docs/mathematics/forests.md.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import gen_batches

from aucforest.estimators._combination import log_proba
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.growing import thread_map
from aucforest.fitting.out_of_bag import Sums
from aucforest.metrics.validation import FloatArray

# Smaller probabilities are replaced by this value, because the logarithm of 0 is infinite.
MIN_PROBA = 1e-6
# The penalty is _PENALTY * (log(b) ** 2 + sum(a_k ** 2)) + c * log(b) ** 2 / n, where the a_k are differences from the
# prior correction, n is the result of `rarer_class_size`, and c is larger for a slope below 1: see
# docs/mathematics/forests.md. The constants were chosen on the data sets of benchmarks/ranking.py with names from a to
# q, and on synthetic data sets.
_PENALTY, _PENALTY_ABOVE_1, _PENALTY_BELOW_1 = 0.1, 150.0, 300.0
# With groups, forests are often over-confident, because trees recognize the similar rows of a group. So a slope below 1
# has a smaller penalty. The constant was chosen with `benchmarks/grouped_oob.py calibration`.
_PENALTY_BELOW_1_OF_GROUPS = 5.0
# No calibration is fitted if, in one half of the trees, the mean number of out-of-bag trees of a sample is below this.
_LEAST_TREES = 0.5
# If the probabilities have a range below this, they differ only by rounding errors, and do not determine the slope.
_LEAST_RANGE = 1e-9
# Fisher scoring stops after a step that changes the objective by about _LAST_STEP or less, or after _MOST_STEPS steps.
_LAST_STEP, _MOST_STEPS = 1e-8, 50
# Number of probabilities that are calibrated at once, so that temporary arrays fit into the caches.
_BLOCK = 2**15


class Calibration(NamedTuple):
    """A calibration, which maps class probabilities p_k to p_k ** slope * exp(intercepts[k]), normalized."""

    slope: float  # above 1 if the forest is under-confident
    intercepts: FloatArray  # only their differences matter; -inf for a class without training samples
    slope_std: float = float("nan")  # the standard error of the slope; NaN if the calibration was not fitted
    n_samples: int = 0  # the number of out-of-bag samples that the calibration was fitted to; 0 if it was not fitted

    def apply(self, proba: FloatArray, n_jobs: int | None = 1) -> FloatArray:
        """Return calibrated probabilities of shape (n_samples, n_classes), computed by n_jobs threads."""
        n_rows = max(1, _BLOCK // proba.shape[1])
        if len(proba) <= n_rows:
            return softmax(self.slope * log_proba(proba, MIN_PROBA) + self.intercepts, axis=1)
        calibrated = np.empty(proba.shape)

        def calibrate_rows(rows: slice) -> None:
            calibrated[rows] = self.apply(proba[rows])

        list(thread_map(n_jobs)(calibrate_rows, gen_batches(len(proba), n_rows)))
        return calibrated


def prior_correction(sampler: BootstrapSampler | None, n_classes: int) -> Calibration | None:
    """Return the calibration that divides by the sampling rates of classes; None if all rates are equal."""
    if sampler is None or len(sampler.sizes) < n_classes:
        return None
    rates = sampler.rates[~np.isnan(sampler.rates)]
    # The rate of a class without samples is NaN, and its calibrated probability is 0.
    return None if np.all(rates == rates[0]) else Calibration(1.0, -np.log(np.nan_to_num(sampler.rates, nan=np.inf)))


class CalibrationSample(NamedTuple):
    """Out-of-bag samples that a calibration is fitted to."""

    labels: NDArray[Any]
    weights: FloatArray  # with the mean 1; class totals are proportional to the `frequencies` of `calibrate`
    groups: NDArray[np.int64] | None  # the group of each sample; samples of a group are dependent
    halves: Sequence[Sums]  # the out-of-bag sums over each half of the trees


def effective_counts(labels: NDArray[Any], weights: FloatArray, groups: NDArray[Any] | None) -> FloatArray:
    """Return for each class the effective number of its samples or, if `groups` are given, groups (Kish 1965)."""
    counts = []
    for k in range(int(labels.max()) + 1):
        weights_of_class = weights[labels == k]
        if groups is not None:
            weights_of_class = np.bincount(groups[labels == k], weights_of_class)
            weights_of_class = weights_of_class[weights_of_class > 0.0]
        # Without this scaling, squares of very small weights would be 0. Powers of 2 cause no rounding errors.
        weights_of_class = np.ldexp(weights_of_class, -np.frexp(weights_of_class.max(initial=0.0))[1])
        counts.append(weights_of_class.sum() ** 2 / np.sum(weights_of_class**2))
    return np.array(counts)


def rarer_class_size(counts: NDArray[Any]) -> float:
    """Return K**2 / (4 sum(1 / n_k)) for K classes, about the number of samples of the rarer class if K is 2."""
    return float(len(counts) ** 2 / (4.0 * np.sum(1.0 / counts)))


def _slope_penalties(sample: CalibrationSample, counts: FloatArray) -> tuple[float, float]:
    """Return the penalty of a slope below 1, and the penalty of a slope of at least 1."""
    below_1 = _PENALTY_BELOW_1
    if sample.groups is not None:
        # Twice the proportion of the rows that are not the first of their group: 0 for groups of one row, 1 for pairs.
        exponent = min(1.0, 2.0 - 2.0 * len(np.unique(sample.groups)) / len(sample.groups))
        below_1 *= (_PENALTY_BELOW_1_OF_GROUPS / _PENALTY_BELOW_1) ** exponent
    return below_1 / rarer_class_size(counts), _PENALTY_ABOVE_1 / rarer_class_size(counts)


def _can_fit(parts: Sequence[Sums], labels: NDArray[Any], n_classes: int) -> bool:
    """Return whether there are enough out-of-bag trees, out-of-bag samples of all classes, and unequal probabilities.

    `parts` are the sums over all trees and over each half of them.
    """
    is_seen = [sums.n_trees > 0 for sums in parts]
    has_trees = min(sums.n_trees.mean() for sums in parts) >= _LEAST_TREES
    if not has_trees or any(len(np.unique(labels[rows])) < n_classes for rows in is_seen):
        return False
    all_trees, rows = parts[0], is_seen[0]
    ranges = np.ptp(all_trees.total[rows] / all_trees.n_trees[rows, None], axis=0)
    return bool(ranges.max() >= _LEAST_RANGE)


def calibrate(
    sample: CalibrationSample, frequencies: FloatArray, prior: Calibration | None, n_trees: int, n_jobs: int | None = 1
) -> Calibration | None:
    """Fit a calibration for a forest of n_trees trees.

    `frequencies` are the class frequencies to calibrate for, including class weights. `prior` is the prior correction,
    which is returned if a class has no out-of-bag samples or if there are very few trees. Fewer trees need a smaller
    slope, and a sample is out of bag for only about a third of the trees. Therefore the parameters are fitted to the
    sums over all trees and over each half of them, and extrapolated linearly in 1 / n_trees.
    """
    offsets = np.zeros(len(frequencies)) if prior is None else prior.intercepts
    is_sampled = (frequencies > 0.0) & np.isfinite(offsets)
    if np.any(is_sampled != (np.bincount(sample.labels, minlength=len(offsets)) > 0)):
        return prior
    offsets, labels = offsets[is_sampled], (np.cumsum(is_sampled) - 1)[sample.labels]
    parts = Sums(*(first + second for first, second in zip(*sample.halves))), *sample.halves
    if not _can_fit(parts, labels, len(offsets)):
        return prior
    base = np.log(frequencies[is_sampled])
    # Shrinkage and averaging pull probabilities towards exp(centre), the class frequencies in the samples of trees.
    centre, counts = base - offsets, effective_counts(labels, sample.weights, sample.groups)
    penalties = _slope_penalties(sample, counts)

    def likelihood(part: int, scale: float) -> _Likelihood:
        total, n_trees = parts[part]
        rows = n_trees > 0
        mean = np.ascontiguousarray(total[np.ix_(rows, is_sampled)].T) / n_trees[rows]
        logs = log_proba(mean, MIN_PROBA) - centre[:, None]
        return _Likelihood(logs, base, labels[rows], scale * sample.weights[rows], penalties)

    # The weights are multiplied by `scale`, so that they count as numbers of independent samples. It is at most the
    # largest ratio of the effective number of samples of a class to the total weight of the class.
    fitted, scale = np.zeros(len(offsets)), float(np.max(counts / np.bincount(labels, sample.weights)))
    if np.ptp(sample.weights) > 1e-9:
        unscaled = likelihood(0, 1.0)
        fitted = unscaled.minimize(fitted)
        scale = min(scale, unscaled.weight_factor(fitted))
    scaled = likelihood(0, scale)
    fitted = scaled.minimize(fitted)
    map_parts = thread_map(n_jobs, 3e-8 * parts[0].total.size)  # approximate seconds per task
    half_fitted = 0.5 * sum(map_parts(lambda part: likelihood(part, scale).minimize(fitted), (1, 2)))
    # The change in 1 / n_trees from all out-of-bag trees of a sample to the trees of the forest, divided by the change
    # from a half of these out-of-bag trees to all of them.
    inverse, first, second = (1.0 / sums.n_trees.mean() for sums in parts)
    extrapolation = float((inverse - 1.0 / n_trees) / (0.5 * (first + second) - inverse))
    parameters = fitted + extrapolation * (fitted - half_fitted)
    slope, intercepts = float(np.exp(parameters[0])), np.full(len(frequencies), -np.inf)
    differences = np.concatenate(([0.0], parameters[1:]))
    intercepts[is_sampled] = offsets + (1.0 - slope) * centre + (differences - differences.mean())
    return Calibration(slope, intercepts, slope * scaled.slope_std(fitted), int(np.count_nonzero(parts[0].n_trees)))


class _Likelihood:
    """Penalized negative log likelihood of a calibration.

    The parameters are the log slope and, for each class except the first, its intercept minus that of the first class.
    `logs` are centered logarithms of probabilities, (n_classes, n_samples). If they are 0 and the parameters are 0, the
    calibrated probabilities are exp(base). `slope_penalties` is the result of `_slope_penalties`.
    """

    def __init__(
        self,
        logs: FloatArray,
        base: FloatArray,
        labels: NDArray[Any],
        weights: FloatArray,
        slope_penalties: tuple[float, float],
    ) -> None:
        n_classes, self._weights, self._slope_penalties = len(logs), weights, slope_penalties
        # The scores of the first class are 0, which halves the work for two classes.
        self._log_odds, self._base = logs[1:] - logs[0], base[1:] - base[0]
        self._is_label = np.equal(labels, np.arange(1, n_classes)[:, None]).astype(np.float64)
        # The matrix of the quadratic form log(slope)**2 + sum((intercepts - mean(intercepts))**2), times _PENALTY.
        self._quadratic = np.eye(n_classes)
        self._quadratic[1:, 1:] -= 1.0 / n_classes
        self._quadratic *= _PENALTY

    def _penalty(self, parameters: FloatArray) -> FloatArray:
        """Return the matrix of the penalty, a quadratic form."""
        penalty = self._quadratic.copy()
        penalty[0, 0] += self._slope_penalties[int(parameters[0] >= 0.0)]
        return penalty

    def _evaluate(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalized negative log likelihood, and the log probabilities of all classes except the first."""
        scores = np.exp(parameters[0]) * self._log_odds + (self._base + parameters[1:])[:, None]
        largest = np.maximum(scores.max(axis=0), 0.0)
        norm = largest + np.log(np.exp(scores - largest).sum(axis=0) + np.exp(-largest))
        # The sums use einsum, because sums by BLAS depend on its number of threads.
        losses = norm - np.einsum("kn,kn->n", self._is_label, scores)
        return float(self._weights @ losses + parameters @ self._penalty(parameters) @ parameters), scores - norm

    def _derivatives(self, parameters: FloatArray, log_calibrated: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of each sample, (n_parameters, n_samples), and the Fisher information."""
        proba, scaled = np.exp(log_calibrated), np.exp(parameters[0]) * self._log_odds
        weighted, deviation = proba * self._weights, scaled - np.einsum("kn,kn->n", proba, scaled)
        information = np.empty((len(parameters), len(parameters)))
        information[0, 0] = np.einsum("kn,kn,kn->", weighted, deviation, scaled)
        information[0, 1:] = information[1:, 0] = np.einsum("kn,kn->k", weighted, deviation)
        information[1:, 1:] = np.diag(weighted.sum(axis=1)) - np.einsum("kn,ln->kl", proba, weighted)
        residual = weighted - self._weights * self._is_label
        return np.vstack((np.einsum("kn,kn->n", residual, scaled), residual)), information

    def slope_std(self, parameters: FloatArray) -> float:
        """Return the standard error of the log slope."""
        _, information = self._derivatives(parameters, self._evaluate(parameters)[1])
        return float(np.sqrt(np.linalg.inv(information + 2.0 * self._penalty(parameters))[0, 0]))

    def weight_factor(self, parameters: FloatArray) -> float:
        """Return the factor that converts the weights to numbers of independent samples.

        The factor is the variance of the log slope by the Fisher information, divided by the sandwich estimate of this
        variance (Huber 1967), which is correct for all weights. So with the new weights, both variances are equal.
        """
        gradients, information = self._derivatives(parameters, self._evaluate(parameters)[1])
        inverse = np.linalg.pinv(information, hermitian=True)[0]
        variance = float(np.sum(np.einsum("a,an->n", inverse, gradients) ** 2))
        return float(inverse[0]) / variance if variance > 0.0 else 1.0

    def minimize(self, parameters: FloatArray) -> FloatArray:
        """Return the minimizing parameters, found by Fisher scoring; scipy's optimizers are several times slower."""
        value, log_calibrated = self._evaluate(parameters)
        for _ in range(_MOST_STEPS):
            gradients, information = self._derivatives(parameters, log_calibrated)
            curvature = 2.0 * self._penalty(parameters)
            gradient = gradients.sum(axis=1) + curvature @ parameters
            step = np.linalg.solve(information + curvature, gradient)
            if gradient @ step < _LAST_STEP:
                return parameters - step
            before = value
            value, log_calibrated = self._evaluate(parameters - step)
            while value > before:
                step *= 0.5
                value, log_calibrated = self._evaluate(parameters - step)
            parameters = parameters - step
        return parameters
