"""The loss of RankBoost in O(n): exp(f_j - f_i) is a product, so the sum over pairs is a product of two sums."""

import numpy as np

from aucforest._compile import device, kernel

LANES = 32  # the number of independent sums, whose additions the processor overlaps


@kernel
def write_exponents(scores, positive, starts, scale, ends, exponents):
    """Write scale * (lowest - score) for positives, scale * (score - highest) for negatives.

    `ends` has the highest and lowest score for each group, see `_score_ends` in `pairwise`.
    """
    for group in range(starts.size - 1):
        rows = slice(starts[group], starts[group + 1])
        highest, lowest = ends[group, 0], ends[group, 1]
        members, is_positive, outputs = scores[rows], positive[rows], exponents[rows]
        for i in range(members.size):  # A loop from 0 over a slice is vectorized.
            outputs[i] = scale * (lowest - members[i] if is_positive[i] else members[i] - highest)


@device
def _add_totals(values, positive, lanes):
    """Add each value to one of the sums (lanes) of its class."""
    n_in_lanes = values.size // LANES * LANES
    for i in range(0, n_in_lanes, LANES):
        for lane in range(LANES):
            positive_value = values[i + lane] * positive[i + lane]  # without a branch, which would be unpredictable
            lanes[1, lane] += positive_value
            lanes[0, lane] += values[i + lane] - positive_value
    for i in range(n_in_lanes, values.size):
        lanes[positive[i], 0] += values[i]


@kernel
def sum_pairs(values, positive, starts, scale, ends, gradient):
    """Return the logarithm of the sum of losses over pairs, and write its gradient.

    `values` are the exponentials of what `write_exponents` wrote. They are replaced by the hessian diagonal.
    """
    n_groups = starts.size - 1
    lanes = np.empty((2, LANES))
    factors = np.empty((n_groups, 2))  # Absolute derivatives are values multiplied by the factor of their class.
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
        rows = slice(starts[group], starts[group + 1])
        members, is_positive, outputs = values[rows], positive[rows], gradient[rows]
        negative_factor, positive_factor = factors[group, 0], factors[group, 1]
        for i in range(members.size):
            size = members[i] * (positive_factor if is_positive[i] else negative_factor)
            outputs[i] = -size if is_positive[i] else size
            members[i] = size * (scale - size)
    return log_sum
