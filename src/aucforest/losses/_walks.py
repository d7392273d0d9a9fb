"""Sums over pairs that take no series: the squared hinge in one walk, and the double loop."""

import math

import numpy as np

from aucforest._compile import kernel


@kernel
def add_hinge_sums(scores, positive, weights, starts, scale, direction, sums):
    """Add the squared hinge, minus its first and its second derivative, summed over the pairs of each row.

    A walk upwards serves negative rows, one downwards positive rows. The rows of the other class that have come
    within the margin are kept as moments of their distance to the margin's edge. The edge only moves away from them,
    so every term is positive and nothing cancels, however large the scores.
    """
    for group in range(starts.size - 1):
        first = starts[group] if direction > 0 else starts[group + 1] - 1
        n_rows = starts[group + 1] - starts[group]
        edge, total, once, twice = scores[first], 0.0, 0.0, 0.0
        ahead = 0
        for step in range(n_rows):
            i = first + direction * step
            if positive[i] == (direction > 0):
                continue
            # one margin ahead of row i, as a distance from the old edge plus a margin, to not lose small digits
            moved = abs(scores[i] - edge) * scale
            twice += moved * (2.0 * once + moved * total)
            once += moved * total
            edge = scores[i]
            while ahead < n_rows:
                j = first + direction * ahead
                reach = 1.0 - direction * (scores[j] - edge) * scale
                if reach <= 0.0:
                    break
                if positive[j] != positive[i]:
                    total += weights[j]
                    once += weights[j] * reach
                    twice += weights[j] * reach * reach
                ahead += 1
            sums[i, 0] += twice
            sums[i, 1] += 2.0 * once
            sums[i, 2] += 2.0 * total


@kernel
def double_loop(scores, positive, weights, scale, slopes):
    """Return the sum over pairs of w_i w_j sigmoid; fill `slopes` with its derivatives by the scaled scores."""
    upper = np.flatnonzero(positive)
    lower = np.flatnonzero(~positive)
    # copies, so that the inner loop reads in order
    lower_scores, lower_weights = scores[lower], weights[lower]
    lower_slopes = np.zeros(lower.size)
    value = 0.0
    for i in upper:
        row_value, row_slope = 0.0, 0.0
        for j in range(lower.size):
            distance = (scores[i] - lower_scores[j]) * scale
            decay = math.exp(-abs(distance))
            larger = 1.0 / (1.0 + decay)
            smaller = decay * larger
            slope = larger * smaller  # not sigmoid * (1 - sigmoid), which cancels
            row_value += lower_weights[j] * (larger if distance > 0.0 else smaller)
            row_slope += lower_weights[j] * slope
            lower_slopes[j] += weights[i] * slope
        value += weights[i] * row_value
        slopes[i] = weights[i] * row_slope
    for j in range(lower.size):
        slopes[lower[j]] = -lower_weights[j] * lower_slopes[j]
    return value
