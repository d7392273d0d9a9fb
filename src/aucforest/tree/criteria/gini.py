"""Gini: the decrease of the Gini impurity of a node, 1 - sum q_k^2, with q_k its class frequencies."""

import math

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree.criteria.criterion import GINI, Criterion, association, impurity_decrease, margins


@bare_device
def _pair_score(left_0, left_1, total_0, total_1, buffers):
    """Return |r|, with r the correlation of class and side; the gain is 2 r**2 total_0 total_1 / weight**2."""
    d = association(left_0, left_1, total_0, total_1)
    return abs(d) / math.sqrt(margins(left_0, left_1, total_0, total_1))


@bare_device
def _may_exceed(left_0, left_1, total_0, total_1, bar):
    d = association(left_0, left_1, total_0, total_1)
    return d * d > bar * bar * margins(left_0, left_1, total_0, total_1)


@bare_device
def _start(totals, bar, crowded, buffers):
    """Return the state: the sums of squared class totals of both sides, and constants of the node, see `_score`."""
    weight, squares = 0.0, 0.0
    for k in range(len(totals)):
        total = np.float64(totals[k])
        weight += total
        squares += total * total
    return 0.0, squares, 0.0, weight, squares / weight, 1.0 / weight


@bare_device
def _move(state, k, left, moved_weight, totals, buffers):
    left_squares, right_squares, left_weight, weight, base, inverse_weight = state
    left_squares += np.float64(moved_weight) * np.float64(2 * left[k] - moved_weight)
    right_squares -= np.float64(moved_weight) * np.float64(2 * (totals[k] - left[k]) + moved_weight)
    return left_squares, right_squares, left_weight + moved_weight, weight, base, inverse_weight


@bare_device
def _score(state, bar, left, totals, buffers):
    left_squares, right_squares, left_weight, weight, base, inverse_weight = state
    return state, (left_squares / left_weight + right_squares / (weight - left_weight) - base) * inverse_weight


@bare_device
def _separates_two_largest(left, totals):
    """Return whether the classes of each side have equal totals, which are the two largest of the node.

    On each side, the sum of squared totals divided by the sum of totals is at most the largest total of the side. So
    the sum over both sides is at most the sum of the two largest totals of the node, and this split reaches it.
    """
    first, second, most_left, least_left = np.int64(0), np.int64(0), np.int64(0), np.int64(2**62)
    most_right, least_right = np.int64(0), np.int64(2**62)
    for k in range(len(totals)):
        first, second = max(first, totals[k]), max(second, min(first, totals[k]))
        if left[k] > 0:
            most_left, least_left = max(most_left, totals[k]), min(least_left, totals[k])
        else:
            most_right, least_right = max(most_right, totals[k]), min(least_right, totals[k])
    return most_left == least_left and most_right == least_right and most_left + most_right == first + second


_gain = impurity_decrease(bare_device(lambda frequency: frequency * (1.0 - frequency)))
CRITERION = Criterion(GINI, _gain, _pair_score, _may_exceed, _start, _move, _score, _separates_two_largest)
