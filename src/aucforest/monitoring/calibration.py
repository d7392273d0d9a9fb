"""Calibration of scores by isotonic regression, and estimates of metrics from calibrated scores, with intervals.

An isotonic curve is constant in blocks of scores. Its level in a block is the proportion of positives among the
reference samples of the block. Estimates on these samples are optimistic, because the curve was fitted to them. So the
difference (estimated - realized) on the reference is subtracted from every estimate. The corrected estimate depends on
the label sum of each block, which is its (weighted) number of positives. The variance of the label sums widens the
intervals; see docs/mathematics/monitoring.md.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_matrix

from aucforest.metrics.intervals import t_quantile, tails
from aucforest.monitoring._rows import (
    FloatArray,
    IntArray,
    RankedColumn,
    RankedSamples,
    dot,
    is_probability,
    label_variance,
    side_by_side,
)
from aucforest.monitoring.metrics import EstimatedMetric
from aucforest.monitoring.soft import is_small, soft_roc_auc

# Critical values of the normal distribution.
ONE_SIDED_95 = 1.645
TWO_SIDED_97_5 = 2.241
N_FOLDS = 5  # the number of folds of the out-of-fold calibration
MOST_FREEDOM = 1e9  # the maximum degrees of freedom for numpy's t distribution, which rejects infinity


class Position(NamedTuple):
    """The two neighbouring blocks of each distinct score, and the weight of the right one in the interpolation."""

    left: IntArray
    right: IntArray
    fraction: FloatArray


class IsotonicCurve:
    """Isotonic regression of labels on scores: linear between blocks, and constant in and beyond blocks.

    The curve decreases if the AUC is below 1/2. `positive` is 1.0 for positive labels and 0.0 for others. Each block
    has a probability (`levels`), the weight of its samples (`mass`) and the weight of its positives (`hits`).
    """

    def __init__(self, column: RankedColumn, positive: FloatArray, weights: FloatArray | None = None) -> None:
        mass = np.diff(column.edges).astype(np.float64) if weights is None else column.sums(weights)
        hits = column.sums(positive if weights is None else weights * positive)
        scores = column.distinct
        fit = isotonic_regression(hits / mass, weights=mass, increasing=is_rising(column, positive))
        starts = fit.blocks[:-1].astype(np.intp)
        self.levels: FloatArray = fit.x[starts]
        self.mass: FloatArray = np.add.reduceat(mass, starts)
        self.hits: FloatArray = np.add.reduceat(hits, starts)
        # The knots of the interpolation are the lowest and the highest score of each block.
        ends = np.column_stack([scores[starts], scores[fit.blocks[1:] - 1]]).ravel()
        is_knot = np.concatenate([[True], np.diff(ends) > 0.0])
        self._knots = ends[is_knot]
        self._blocks = np.repeat(np.arange(starts.size), 2)[is_knot]

    def locate(self, column: RankedColumn) -> Position:
        """Return the neighbouring blocks of the distinct scores of a column."""
        # Knots and scores are sorted. The knots are searched among the scores, because there are fewer knots.
        firsts = np.searchsorted(column.distinct, self._knots)
        left_knots = np.maximum(np.arange(-1, self._knots.size), 0)
        left = np.repeat(left_knots, np.diff(firsts, prepend=0, append=column.distinct.size))
        right = np.minimum(left + 1, self._knots.size - 1)
        gap = np.where(right > left, self._knots[right] - self._knots[left], 1.0)
        fraction = np.clip((column.distinct - self._knots[left]) / gap, 0.0, 1.0)
        return Position(self._blocks[left], self._blocks[right], fraction)

    def at(self, position: Position) -> FloatArray:
        """Return the value of the curve at the distinct scores of a column, given their position."""
        left = self.levels[position.left]
        return left + position.fraction * (self.levels[position.right] - left)

    def spread(self, position: Position, sums: FloatArray) -> FloatArray:
        """Divide each sum, one for each distinct score, between the neighbouring blocks; return the total by block."""
        n_blocks = self.levels.size
        to_right = position.fraction * sums
        to_left = np.bincount(position.left, weights=sums - to_right, minlength=n_blocks).astype(np.float64)
        return to_left + np.bincount(position.right, weights=to_right, minlength=n_blocks)


def is_rising(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the AUC is at least 1/2."""
    return dot(column.midranks, positive) >= 0.0


def columns_to_fit(
    columns: list[RankedColumn], truth: FloatArray, calibration: str | Sequence[bool], random_state: int | None
) -> NDArray[np.bool_]:
    """Return whether each column is calibrated, by the parameter `calibration` of CBPE."""
    n_columns = len(columns)
    if not isinstance(calibration, str):
        chosen = np.asarray(calibration, dtype=bool)
        if chosen.shape != (n_columns,):
            raise ValueError(f"calibration must be one bool for each of {n_columns} columns, but is {calibration!r}")
        return chosen
    if calibration != "auto":
        return np.full(n_columns, calibration == "isotonic")
    if not is_probability(np.column_stack([column.scores for column in columns])):
        return np.full(n_columns, True)
    return np.array([needs_calibration(column, truth[:, k], random_state) for k, column in enumerate(columns)])


def needs_calibration(column: RankedColumn, positive: FloatArray, random_state: int | None = 0) -> bool:
    """Return whether calibration improves scores in [0, 1], as defined in the parameters of CBPE."""
    return _brier_improves(column, positive, random_state) or _expected_auc_differs(column, positive)


def _brier_improves(column: RankedColumn, positive: FloatArray, random_state: int | None) -> bool:
    """Return whether out-of-fold calibration has a lower Brier score than the scores, by a one-sided paired test."""
    # Samples are sorted by score, so that the folds do not depend on the order of the rows, and each fold is sorted.
    scores, positive = column.scores[column.order], positive[column.order]
    fold = np.random.default_rng(random_state).permutation((np.arange(positive.size) % N_FOLDS).astype(np.uint8))
    p = np.empty(positive.size)
    for k in range(N_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        train_column, test_column = RankedColumn.from_sorted(scores[train]), RankedColumn.from_sorted(scores[test])
        curve = IsotonicCurve(train_column, positive[train])
        p[test] = test_column.to_rows(curve.at(curve.locate(test_column)))
    gain = (scores - positive) ** 2 - (p - positive) ** 2
    return bool(gain.mean() > ONE_SIDED_95 * gain.std() / np.sqrt(gain.size))


def _expected_auc_differs(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the AUC expected from the scores differs significantly from the realized AUC."""
    p = column.scores[:, None]
    estimate = soft_roc_auc(RankedSamples([column], p))
    realized = soft_roc_auc(RankedSamples([column], positive[:, None])).value
    return bool(abs(estimate.expected - realized) > TWO_SIDED_97_5 * np.sqrt(label_variance(p, estimate.influence)))


class Offset(NamedTuple):
    """The estimated minus the realized metric on the reference."""

    value: float
    spread: FloatArray  # the influence of the level of each block on the estimated metric
    cross: FloatArray  # the covariance of the label sum of each block and the realized metric
    variance: float  # of the realized metric

    def scaled(self, ratio: float) -> "Offset":
        """Return the offset of a metric that is `ratio` times this metric."""
        return Offset(ratio * self.value, ratio * self.spread, ratio * self.cross, ratio**2 * self.variance)


class Scored(NamedTuple):
    """Samples with calibrated probabilities."""

    samples: RankedSamples
    positions: dict[int, Position]  # the positions of the scores in the curve of each calibrated column
    totals: FloatArray | None = None  # the row sums by which probabilities were divided; None for a single column


class Curves:
    """Calibration curves fitted to the reference, and the variance of estimates due to the labels of the reference.

    `curves` has a curve for the index k of each column with ``calibrated[k]``. The scores of other columns are
    probabilities. The variance is that of random reference labels with the probabilities `p`. In a block with h
    positives among m samples, p is (h + 1/2) / (m + 1), which is never 0 or 1.
    """

    def __init__(
        self, reference: RankedSamples, calibrated: NDArray[np.bool_], weights: FloatArray | None = None
    ) -> None:
        columns, self._reference = reference.columns, reference
        self._calibrated = np.flatnonzero(calibrated).tolist()
        self.curves = {k: IsotonicCurve(columns[k], reference.p[:, k], weights) for k in self._calibrated}
        self._mass = np.concatenate([curve.mass for curve in self.curves.values()])
        zeros = np.zeros_like(self._mass)
        self.no_offset = Offset(0.0, zeros, zeros, 0.0)  # for a metric without correction
        self._scored = self.apply(reference)
        levels, blocks, n_blocks = [column.scores for column in columns], [], 0
        for k, curve in self.curves.items():
            block = columns[k].to_rows(self._scored.positions[k].left)
            levels[k] = ((curve.hits + 0.5) / (curve.mass + 1.0))[block]
            blocks.append(n_blocks + block)
            n_blocks += curve.levels.size
        self._blocks = np.column_stack(blocks)
        self.p = side_by_side(levels)
        if len(levels) > 1:
            self.p /= self.p.sum(axis=1, keepdims=True)
        self._weights = np.ones((len(self.p), 1)) if weights is None else weights[:, None]
        self._covariance = self._block_covariance()
        squares = np.broadcast_to(self._weights**2, self.p.shape)
        effective_size = self._mass if weights is None else self._mass**2 / self._by_block(squares)
        self._freedom = np.maximum(effective_size - 1.0, 0.5)

    def apply(self, samples: RankedSamples) -> Scored:
        """Return the samples with calibrated probabilities."""
        positions, values = {}, [column.scores for column in samples.columns]
        for k, curve in self.curves.items():
            positions[k] = curve.locate(samples.columns[k])
            values[k] = samples.columns[k].to_rows(curve.at(positions[k]))
        p, totals = side_by_side(values), None
        if len(values) > 1:
            p[p.sum(axis=1) == 0.0] = 1.0  # If all curves are 0, classes are equally probable.
            totals = p.sum(axis=1, keepdims=True)
            p /= totals
        return Scored(samples._replace(p=p), positions, totals)

    def spread(self, scored: Scored, influence: FloatArray) -> FloatArray:
        """Return the influence of the level of each block on a metric, given the influence of the probabilities."""
        if scored.totals is not None:
            influence = (influence - (scored.samples.p * influence).sum(axis=1, keepdims=True)) / scored.totals
        sums = {k: scored.samples.columns[k].sums(influence[:, k]) for k in self.curves}
        return np.concatenate([curve.spread(scored.positions[k], sums[k]) for k, curve in self.curves.items()])

    def _by_block(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values in each block; `values` has the shape (n_samples, n_columns)."""
        cells = values[:, self._calibrated].ravel()
        return np.bincount(self._blocks.ravel(), cells, minlength=self._mass.size).astype(np.float64)

    def _block_covariance(self) -> FloatArray:
        """Return the covariance matrix of the label sums of blocks."""
        weighted, starts = self._weights * self.p, np.arange(0, self._blocks.size + 1, self._blocks.shape[1])
        cells = weighted[:, self._calibrated].ravel(), self._blocks.ravel(), starts
        by_sample = csr_matrix(cells, shape=(len(self.p), self._mass.size))
        result: FloatArray = -(by_sample.T @ by_sample).toarray()
        np.fill_diagonal(result, self._by_block(weighted * (self._weights - weighted)))
        return result

    def cross(self, influence: FloatArray) -> FloatArray:
        """Return the covariance of the label sum of each block and a metric with the given influence of the labels."""
        product = self.p * influence
        return self._by_block(self._weights * (product - self.p * product.sum(axis=1, keepdims=True)))

    def offset(self, metric: EstimatedMetric) -> Offset:
        """Return the estimated minus the realized metric on the reference, or an offset of 0 if either is undefined."""
        estimate = metric.estimate(self._scored.samples)
        realized = metric.estimate(self._reference)
        value = estimate.expected - realized.value
        if np.isnan(value):
            return self.no_offset
        spread = self.spread(self._scored, estimate.influence)
        return Offset(value, spread, self.cross(realized.influence), label_variance(self.p, realized.influence))

    def noise(self, scored: Scored, influence: FloatArray, offset: Offset) -> tuple[float, float]:
        """Return the variance of a corrected estimate due to the reference labels, and its degrees of freedom."""
        # For each block: the change of the corrected estimate by one more positive.
        change = (self.spread(scored, influence) - offset.spread) / self._mass
        variance = float(change @ self._covariance @ change + 2.0 * change @ offset.cross + offset.variance)
        block_variances = change**2 * np.diag(self._covariance)
        denominator = float((block_variances**2 / self._freedom).sum())  # of Satterthwaite's formula
        if variance <= 0.0 or denominator == 0.0:
            return max(0.0, variance), np.inf
        return variance, max(1.0, variance**2 / denominator)


class Evaluated(NamedTuple):
    """The estimate, standard error and confidence interval of a metric on a chunk; NaN if the metric is undefined."""

    estimate: float = np.nan
    standard_error: float = np.nan
    low: float = np.nan
    high: float = np.nan


def evaluate(
    metric: EstimatedMetric,
    scored: Scored,
    curves: Curves | None,
    offset: Offset | None,
    cbpe: Any,
    random: np.random.Generator,
) -> Evaluated:
    """Return the estimate of a metric on a chunk, corrected by `offset`. Options are attributes of `cbpe`."""
    estimate = metric.estimate(scored.samples)
    if np.isnan(estimate.value):
        return Evaluated()
    centre = estimate.expected if cbpe.bias_correction else estimate.value
    correction, noise, freedom = 0.0, 0.0, np.inf
    if curves is not None and estimate.influence.any():
        offset = offset or curves.no_offset
        correction = offset.value
        noise, freedom = curves.noise(scored, estimate.influence, offset)
    if metric.simulate is not None and (metric.always_simulated or is_small(scored.samples.p)):
        simulated = metric.simulate(scored.samples, cbpe.n_simulations, random)
        simulated = simulated[~np.isnan(simulated)]
        if simulated.size < 2:
            return Evaluated(float(np.clip(centre - correction, metric.low, metric.high)))
        curve_errors = np.sqrt(noise) * random.standard_t(min(freedom, MOST_FREEDOM), simulated.size)
        bounds = np.quantile(simulated + curve_errors, tails(cbpe.level))
        error = np.sqrt(float(simulated.var()) + noise)
    else:
        variance = label_variance(scored.samples.p, estimate.influence) + noise
        error = np.sqrt(variance)
        freedom = freedom * (variance / noise) ** 2 if noise > 0.0 else np.inf  # Satterthwaite's formula
        half_width = error * t_quantile(freedom, cbpe.level)
        bounds = np.array([centre - half_width, centre + half_width])
    value, low, high = np.clip(np.array([centre, *bounds]) - correction, metric.low, metric.high).tolist()
    return Evaluated(value, float(error), low, high)
