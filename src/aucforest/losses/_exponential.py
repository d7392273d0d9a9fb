"""The loss of RankBoost in O(n): exp(-(f_i - f_j)) is a product, so the double sum is a product of two sums."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import device, kernel
from aucforest.losses.pairs import Pairs, in_row_order
from aucforest.metrics.validation import FloatArray

LANES = 32  # number of independent sums, a few vectors, so that their additions overlap
SAFE_RANGE = 500.0  # largest safe distance of scaled scores: exp(-500) is far above the smallest float64


@kernel
def _exponents(scores, positive, starts, scale, ends, exponents):
    """Write the exponents: minus the scaled distance of each score from the extreme score of its group and class."""
    for group in range(starts.size - 1):
        rows = slice(starts[group], starts[group + 1])
        highest, lowest = ends[group, 0], ends[group, 1]
        members, is_positive, outputs = scores[rows], positive[rows], exponents[rows]
        for i in range(members.size):  # a loop from 0 over a slice is vectorized
            outputs[i] = scale * (lowest - members[i] if is_positive[i] else members[i] - highest)


@device
def _add_totals(values, positive, lanes):
    """Add the values of one group to the lanes of their class."""
    whole = values.size // LANES * LANES
    for i in range(0, whole, LANES):
        for lane in range(LANES):
            positive_value = values[i + lane] * positive[i + lane]  # without a branch, because labels are unpredictable
            lanes[1, lane] += positive_value
            lanes[0, lane] += values[i + lane] - positive_value
    for i in range(whole, values.size):
        lanes[positive[i], 0] += values[i]


@kernel
def _log_sum(values, positive, starts, scale, ends, factors):
    """Return the logarithm of the sum over pairs; write the factors that convert values to derivatives."""
    n_groups = starts.size - 1
    lanes = np.empty((2, LANES))
    log_sums = np.full(n_groups, -np.inf)
    for group in range(n_groups):
        lanes[:] = 0.0
        rows = slice(starts[group], starts[group + 1])
        _add_totals(values[rows], positive[rows], lanes)
        negative_sum, positive_sum = lanes[0].sum(), lanes[1].sum()
        if negative_sum > 0.0 and positive_sum > 0.0:
            log_sums[group] = np.log(negative_sum) + np.log(positive_sum) + scale * (ends[group, 0] - ends[group, 1])
        factors[group, 0], factors[group, 1] = negative_sum, positive_sum
    largest = log_sums.max()
    log_sum = largest + np.log(np.exp(log_sums - largest).sum())
    for group in range(n_groups):
        proportion = np.exp(log_sums[group] - log_sum)
        for c in range(2):
            factors[group, c] = scale * proportion / factors[group, c] if proportion > 0.0 else 0.0
    return log_sum


@kernel
def _derivatives(values, positive, starts, factors, scale, gradient):
    """Write the gradient, and replace `values` by the diagonal of the hessian."""
    for group in range(starts.size - 1):
        rows = slice(starts[group], starts[group + 1])
        negative_factor, positive_factor = factors[group, 0], factors[group, 1]
        members, is_positive, outputs = values[rows], positive[rows], gradient[rows]
        for i in range(members.size):
            size = members[i] * (positive_factor if is_positive[i] else negative_factor)
            outputs[i] = -size if is_positive[i] else size
            members[i] = size * (scale - size)


def _score_ends(scores: FloatArray, positive: NDArray[np.uint8], starts: NDArray[np.intp], scale: float) -> FloatArray:
    """Return, for each group, an upper bound of negative rows' scores and a lower bound of positive rows' scores."""
    groups = starts[:-1]
    # bounds of all rows suffice unless they are so far apart that all exponentials of a class could underflow
    highest, lowest = np.maximum.reduceat(scores, groups), np.minimum.reduceat(scores, groups)
    with np.errstate(invalid="ignore"):  # both bounds are infinite in a group without weight
        far_apart = not (scale * (highest - lowest) <= SAFE_RANGE).all()
    if far_apart:
        highest = np.maximum.reduceat(np.where(positive, -np.inf, scores), groups)
        lowest = np.minimum.reduceat(np.where(positive, scores, np.inf), groups)
        highest[np.isinf(highest)] = lowest[np.isinf(lowest)] = 0.0  # for a class without weight, any bound is valid
    return np.stack([highest, lowest], axis=1)


def log_mean_exp(pairs: Pairs, scores: FloatArray, eps: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the logarithm of the mean of exp(-(f_i - f_j) / eps) over pairs, its gradient and hessian diagonal."""
    scale = 1.0 / eps
    if pairs.weights is not None:
        # a weight is equivalent to a shift of the score, which is infinite for weight 0
        with np.errstate(divide="ignore"):
            scores = scores + np.where(pairs.positive, -eps, eps) * np.log(pairs.weights)
    order: Any = slice(None) if pairs.groups is None else np.argsort(pairs.groups, kind="stable")
    starts = pairs.starts()
    scores, positive = scores[order], pairs.positive[order].view(np.uint8)
    ends = _score_ends(scores, positive, starts, scale)
    values = np.empty(scores.size)
    _exponents(scores, positive, starts, scale, ends, values)
    np.exp(values, out=values)
    factors = np.empty_like(ends)
    log_sum = _log_sum(values, positive, starts, scale, ends, factors)
    gradient = np.empty_like(values)
    _derivatives(values, positive, starts, factors, scale, gradient)
    if pairs.groups is not None:
        gradient, values = in_row_order(gradient, order), in_row_order(values, order)
    return float(log_sum - np.log(pairs.total)), gradient, values
