"""Calibration of a forest's class probabilities by its out-of-bag samples.

A forest is under-confident: shrinkage, the mean over trees and leaves of few samples all pull its probabilities towards
the class frequencies. So p_k becomes p_k ** b * exp(a_k), normalized, with b and a_k fitted to out-of-bag samples by
penalized maximum likelihood: for two classes a logistic regression on the log odds (Platt 1999), for more classes
temperature scaling with intercepts (Guo, Pleiss, Sun, Weinberger 2017). If trees sample classes at rates r_k, which
turns p_k into p_k r_k, the map without evidence is division by r_k (Elkan 2001; Dal Pozzolo, Caelen, Johnson, Bontempi
2015). For two classes the ranking does not change. docs/mathematics/forests.md has the derivation.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from aucforest.estimators._combination import log_proba
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.growing import thread_map
from aucforest.fitting.out_of_bag import Sums

# Smaller probabilities are replaced by this one, because 0 has no logarithm.
LEAST = 1e-6
# The penalty is _PENALTY * (log(b) ** 2 + sum(a_k ** 2)), where the a_k are differences from the map without evidence
# and their mean is 0, and c * log(b) ** 2 / n, where n is about the number of samples of the rarer class. Few samples
# need more than a fixed penalty, because the samples that a forest lacks are those that it is tested on. A slope below
# 1 needs more evidence than one above, because forests are rarely over-confident. The constants were chosen on the data
# sets of benchmarks/ranking.py whose names begin with a to q, and on synthetic ones.
_PENALTY, _PENALTY_OF_FEW, _PENALTY_BELOW_1 = 0.1, 150.0, 300.0
# Trees know a group by its rows, which are alike, so forests of groups are often over-confident and need little
# evidence for a slope below 1; chosen with benchmarks/grouped_oob.py calibration.
_PENALTY_BELOW_1_OF_GROUPS = 5.0
# With fewer out-of-bag trees of a sample on average, in one of two halves of the trees, a forest is not calibrated.
_LEAST_TREES = 0.5
# Probabilities that differ by less are equal but for rounding, and say nothing about the slope.
_LEAST_SPREAD = 1e-9
# The last step of the optimization changes the penalized log likelihood of all samples by less than about this.
_LAST_STEP, _MOST_STEPS = 1e-8, 50
# Approximate seconds per probability. Small arrays leave little time to another thread.
_VALUE_TIME = 3e-8
# Number of probabilities that are calibrated at once: they stay in the caches, and temporary arrays are small.
_BLOCK = 2**15


class Calibration(NamedTuple):
    """The map of class probabilities p_k to p_k ** slope * exp(intercepts[k]), normalized.

    Attributes
    ----------
    slope : float
        The factor of the log odds; above 1 if the forest is under-confident.
    intercepts : ndarray of shape (n_classes,), float64
        The intercepts; only their differences matter. -inf for a class without training samples.
    slope_std : float
        The standard error of the slope; NaN for a map without evidence.
    n_samples : int
        The number of out-of-bag samples that the map was fitted to; 0 for a map without evidence.
    """

    slope: float
    intercepts: NDArray[np.float64]
    slope_std: float = float("nan")
    n_samples: int = 0

    def apply(self, proba: NDArray[np.float64], n_jobs: int | None = 1) -> NDArray[np.float64]:
        """Return calibrated probabilities, shape (n_samples, n_classes), which n_jobs threads compute."""
        n_rows = max(1, _BLOCK // proba.shape[1])
        if len(proba) <= n_rows:
            return self._apply_to_block(proba)
        calibrated = np.empty(proba.shape)

        def calibrate_rows(start: int) -> None:
            rows = slice(start, start + n_rows)
            calibrated[rows] = self._apply_to_block(proba[rows])

        for _ in thread_map(n_jobs)(calibrate_rows, range(0, len(proba), n_rows)):
            pass
        return calibrated

    def _apply_to_block(self, proba: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated probabilities, all computed at once."""
        return softmax(self.slope * log_proba(proba, LEAST) + self.intercepts, axis=1)


def odds_formula(sampler: BootstrapSampler | None, n_classes: int) -> Calibration | None:
    """Return the map by the sampling rates alone, or None if all classes have the same rate."""
    if sampler is None or len(sampler.sizes) < n_classes:
        return None
    rates = sampler.rates[~np.isnan(sampler.rates)]
    # A class without samples has no rate, and its calibrated probability is 0.
    return None if np.all(rates == rates[0]) else Calibration(1.0, -np.log(np.nan_to_num(sampler.rates, nan=np.inf)))


class CalibrationSample(NamedTuple):
    """Out-of-bag samples that a calibration is fitted to."""

    labels: NDArray[Any]
    weights: NDArray[np.float64]  # with the class frequencies to calibrate for, and the mean 1
    groups: NDArray[np.int64] | None  # numbers of the groups of dependent samples
    halves: Sequence[Sums]  # over two halves of the trees


def effective_counts(
    labels: NDArray[Any], weights: NDArray[np.float64], groups: NDArray[Any] | None
) -> NDArray[np.float64]:
    """Return the effective number of samples of each class, or of groups with samples of it (Kish 1965)."""
    counts = []
    for k in range(int(labels.max()) + 1):
        of_class = weights[labels == k]
        if groups is not None:
            of_class = np.bincount(groups[labels == k], of_class)
            of_class = of_class[of_class > 0.0]
        counts.append(of_class.sum() ** 2 / np.sum(of_class**2))
    return np.array(counts)


def n_of_rarer(counts: NDArray[Any]) -> float:
    """Return about the number of samples of the rarer class, for K classes K**2 / (4 sum(1 / n_k))."""
    return float(len(counts) ** 2 / (4.0 * np.sum(1.0 / counts)))


def calibrate(
    sample: CalibrationSample,
    frequencies: NDArray[np.float64],
    start: Calibration | None,
    n_trees: int,
    n_jobs: int | None = 1,
) -> Calibration | None:
    """Fit a calibration for a forest of n_trees trees.

    `frequencies` are the class frequencies to calibrate for, after class weights. The result is `start`, the map
    without evidence, if a class has no out-of-bag samples, or if there are very few trees.

    A sample is out of bag for only about a third of the trees. Fewer trees make noisier probabilities, which need a
    smaller slope. So the parameters are extrapolated linearly in 1 / n_trees from those for all trees that have a
    sample out of bag and for two halves of them.
    """
    offsets = np.zeros(len(frequencies)) if start is None else start.intercepts
    is_sampled = (frequencies > 0.0) & np.isfinite(offsets)
    if np.any(is_sampled != (np.bincount(sample.labels, minlength=len(offsets)) > 0)):
        return start
    n_classes, offsets = int(np.count_nonzero(is_sampled)), offsets[is_sampled]
    sample = sample._replace(labels=(np.cumsum(is_sampled) - 1)[sample.labels])
    base = np.log(frequencies[is_sampled])
    # The log class frequencies in the trees, towards which shrinkage and the mean over trees pull their probabilities.
    centre = base - offsets
    whole = Sums(*(first + second for first, second in zip(*sample.halves)))
    parts, counts = (whole, *sample.halves), effective_counts(sample.labels, sample.weights, sample.groups)
    # the share of rows that are not the first of their group, twice: 1 for two rows of each group
    grouped = 0.0 if sample.groups is None else min(1.0, 2.0 - 2.0 * len(np.unique(sample.groups)) / len(sample.groups))
    below_1 = _PENALTY_BELOW_1 * (_PENALTY_BELOW_1_OF_GROUPS / _PENALTY_BELOW_1) ** grouped
    of_slope = below_1 / n_of_rarer(counts), _PENALTY_OF_FEW / n_of_rarer(counts)
    seen = [sums.n_trees > 0 for sums in parts]
    inverse = [1.0 / max(sums.n_trees.mean(), np.finfo(np.float64).tiny) for sums in parts]
    if max(inverse) > 1.0 / _LEAST_TREES or any(len(np.unique(sample.labels[rows])) < n_classes for rows in seen):
        return start

    if np.max(np.ptp(whole.total[seen[0]] / whole.n_trees[seen[0], None], axis=0)) < _LEAST_SPREAD:
        return start

    def likelihood_of(part: int, scale: float) -> _Likelihood:
        rows, sums = seen[part], parts[part]
        mean = np.ascontiguousarray(sums.total[np.ix_(rows, is_sampled)].T) / sums.n_trees[rows]
        logs = log_proba(mean, LEAST) - centre[:, None]
        return _Likelihood(logs, base, sample.labels[rows], scale * sample.weights[rows], of_slope)

    # At most as much evidence as that many samples of the class with the most samples for its weight.
    of_whole, scale = np.zeros(n_classes), float(np.max(counts / np.bincount(sample.labels, sample.weights)))
    if np.ptp(sample.weights) > 1e-9:
        likelihood = likelihood_of(0, 1.0)
        of_whole = likelihood.minimize(of_whole)
        scale = min(scale, likelihood.evidence(of_whole))
    likelihood = likelihood_of(0, scale)
    of_whole = likelihood.minimize(of_whole)
    std = float(np.sqrt(np.linalg.inv(likelihood.derivatives(of_whole)[1])[0, 0]))

    def minimize_half(half: int) -> NDArray[np.float64]:
        return likelihood_of(half, scale).minimize(of_whole)

    run = thread_map(n_jobs, _VALUE_TIME * parts[0].total.size)
    of_half = 0.5 * sum(run(minimize_half, (1, 2)))
    further = (inverse[0] - 1.0 / n_trees) / (0.5 * (inverse[1] + inverse[2]) - inverse[0])
    parameters = of_whole + further * (of_whole - of_half)
    slope, intercepts = float(np.exp(parameters[0])), np.full(len(frequencies), -np.inf)
    differences = np.concatenate(([0.0], parameters[1:]))
    intercepts[is_sampled] = offsets + (1.0 - slope) * centre + (differences - differences.mean())
    return Calibration(slope, intercepts, slope * std, int(np.count_nonzero(whole.n_trees)))


class _Likelihood:
    """Penalized negative log likelihood of the log of the slope, and of the intercepts less that of the first class.

    `logs` are the logarithms of probabilities less their centre, (n_classes, n_samples), and `base` are the scores of
    the classes where these are 0; `of_slope` are further penalties of a slope below 1 and of another.
    """

    def __init__(
        self,
        logs: NDArray[np.float64],
        base: NDArray[np.float64],
        labels: NDArray[Any],
        weights: NDArray[np.float64],
        of_slope: tuple[float, float],
    ) -> None:
        n_classes, self._weights, self._of_slope = len(logs), weights, of_slope
        # One class less is half the work for two classes.
        self._log_odds, self._base = logs[1:] - logs[0], base[1:] - base[0]
        self._is_label = np.equal(labels, np.arange(1, n_classes)[:, None]).astype(np.float64)
        self._last: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None = None
        # The sum of squares of the differences of all intercepts from their mean, as a quadratic form.
        self._quadratic = np.eye(n_classes)
        self._quadratic[1:, 1:] -= 1.0 / n_classes
        self._quadratic *= _PENALTY

    def _penalty(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the matrix of the quadratic form at some parameters."""
        penalty = self._quadratic.copy()
        penalty[0, 0] += self._of_slope[int(parameters[0] >= 0.0)]
        return penalty

    def _scores(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the calibrated log odds, and the log of the sum of all odds, that of the first class included.

        They are kept for the next call, because both the value and the derivatives need them.
        """
        if self._last is None or parameters is not self._last[0]:
            scores = np.exp(parameters[0]) * self._log_odds + (self._base + parameters[1:])[:, None]
            most = np.maximum(scores.max(axis=0), 0.0)
            if len(scores) == 1:  # one of the two exponentials is 1
                odds = np.exp(-np.abs(scores[0])) + 1.0
            else:
                odds = np.exp(scores - most).sum(axis=0) + np.exp(-most)
            self._last = parameters, scores, most + np.log(odds)
        return self._last[1:]

    def value(self, parameters: NDArray[np.float64]) -> float:
        """Return the value at some parameters."""
        scores, norm = self._scores(parameters)
        losses = norm - np.einsum("kn,kn->n", self._is_label, scores)
        return float(self._weights @ losses + parameters @ self._penalty(parameters) @ parameters)

    def derivatives(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient and the expected second derivatives (Fisher information), a positive definite matrix."""
        gradients, information = self._derivatives(parameters)
        of_penalty = 2.0 * self._penalty(parameters)
        return gradients.sum(axis=1) + of_penalty @ parameters, information + of_penalty

    def _derivatives(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient of each sample, (n_parameters, n_samples), and the information, without the penalty."""
        scores, norm = self._scores(parameters)
        # Sums by einsum: those of BLAS depend on its number of threads.
        proba, scaled = np.exp(scores - norm), np.exp(parameters[0]) * self._log_odds
        weighted, deviation = proba * self._weights, scaled - np.einsum("kn,kn->n", proba, scaled)
        information = np.empty((len(parameters), len(parameters)))
        information[0, 0] = np.einsum("kn,kn,kn->", weighted, deviation, scaled)
        information[0, 1:] = information[1:, 0] = np.einsum("kn,kn->k", weighted, deviation)
        information[1:, 1:] = np.diag(weighted.sum(axis=1)) - np.einsum("kn,ln->kl", proba, weighted)
        residual = weighted - self._weights * self._is_label
        return np.vstack((np.einsum("kn,kn->n", residual, scaled), residual)), information

    def evidence(self, parameters: NDArray[np.float64]) -> float:
        """Return the factor of the weights that makes them say how much is known about the slope.

        It is the variance of the slope by the likelihood, over the variance by the sandwich formula for weights that
        are no numbers of samples (Huber 1967).
        """
        gradients, information = self._derivatives(parameters)
        inverse = np.linalg.pinv(information, hermitian=True)[0]
        variance = float(np.sum(np.einsum("a,an->n", inverse, gradients) ** 2))
        return float(inverse[0]) / variance if variance > 0.0 else 1.0

    def minimize(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the parameters of the minimum by Fisher scoring; scipy's optimizers take several times as long."""
        value = self.value(parameters)
        for _ in range(_MOST_STEPS):
            gradient, information = self.derivatives(parameters)
            step = np.linalg.solve(information, gradient)
            if gradient @ step < _LAST_STEP:
                return parameters - step
            after = parameters - step
            while (value_after := self.value(after)) > value:
                step *= 0.5
                after = parameters - step
            parameters, value = after, value_after
        return parameters
