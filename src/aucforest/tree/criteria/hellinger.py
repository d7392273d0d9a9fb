"""Hellinger distance between classes, as the mean over pairs (Cieslak, Hoens, Chawla, Kegelmeyer 2012)."""

import math
from typing import Any

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree.criteria.criterion import DRIFT, HELLINGER, Criterion, mean_over_pairs, reset_order

# An upper bound of the rounding error of a product of a few numbers up to 1.
_SQUARES_DRIFT = 1e-14


@bare_device
def _distance(left_a: float, left_b: float) -> float:
    """Return the Hellinger distance of two classes from their fractions on the left.

    The distance is not computed as sqrt(2 - 2 overlap), because cancellation would turn a distance of 0 into 1e-8.
    """
    on_left = math.sqrt(left_a) - math.sqrt(left_b)
    on_right = math.sqrt(1.0 - left_a) - math.sqrt(1.0 - left_b)
    return math.sqrt(on_left * on_left + on_right * on_right)


@bare_device
def _pair_score(left_0, left_1, total_0, total_1, buffers):
    return _distance(left_0 / total_0, left_1 / total_1)


@bare_device
def _may_exceed(left_0, left_1, total_0, total_1, bar):
    """Return whether the score of a split may exceed the bar.

    With a and b the fractions on the left, distance**2 = 2 - 2 sqrt(a b) - 2 sqrt((1 - a) (1 - b)). The inequality is
    multiplied by the product of the totals and squared, so it needs no square root. The tolerance is for cancellation.
    """
    on_left = np.float64(left_0) * np.float64(left_1)
    on_right = np.float64(total_0 - left_0) * np.float64(total_1 - left_1)
    overlap = 1.0 - 0.5 * bar * bar
    rest = (overlap * overlap + _SQUARES_DRIFT) * (np.float64(total_0) * np.float64(total_1)) - on_left - on_right
    return (rest > 0.0) & (rest * rest > 4.0 * on_left * on_right)


# Let cos(t) be the square root of the fraction of a class on the left, and sin(t) that of the fraction on the right.
# The distance of classes a and b is 2 sin(|t_a - t_b| / 2). For classes sorted by t, the sum over all pairs takes
# linear time, because sin(x - y) = sin(x) cos(y) - cos(x) sin(y).


@bare_device
def _start(totals, bar, crowded, buffers):
    """Return the state: the sums of the left roots and of the right roots, with all classes on the right."""
    reset_order(len(totals), buffers)
    for k in range(len(totals)):
        buffers.left_root[k], buffers.right_root[k] = 0.0, 1.0
    return 0.0, np.float64(len(totals))


@bare_device
def _move(state, k, left, moved_weight, totals, buffers):
    on_left, on_right = state
    # One minus the fraction would not be exactly 0 for a class completely on the left.
    left_root = math.sqrt(left[k] * buffers.scale[k])
    right_root = math.sqrt((totals[k] - left[k]) * buffers.scale[k])
    on_left, on_right = on_left + (left_root - buffers.left_root[k]), on_right + (right_root - buffers.right_root[k])
    buffers.left_root[k], buffers.right_root[k] = left_root, right_root
    return on_left, on_right


@bare_device
def _sort_by_root(n, buffers):
    """Sort classes by their left roots. They are nearly sorted, because they have the order of an earlier split."""
    order, roots = buffers.order, buffers.left_root
    for end in range(np.uint64(1), np.uint64(n)):
        index: Any = end
        k = order[end]
        while index > np.uint64(0) and roots[order[index - np.uint64(1)]] > roots[k]:
            order[index] = order[index - np.uint64(1)]
            index -= np.uint64(1)
        order[index] = k


@bare_device
def _score(state, bar, left, totals, buffers):
    """Return the state and the gain, or 0 in place of a gain that cannot exceed `bar`.

    The mean distance is at most the root mean square distance, which takes constant time: the squared distances between
    n points on the unit circle sum to n**2 minus the squared norm of the sum of the points.
    """
    on_left, on_right = state
    n = np.float64(len(totals))
    n_pairs = 0.5 * n * (n - 1.0)
    squares = n * n - on_left * on_left - on_right * on_right
    # The sums over classes have rounding errors from the earlier splits.
    limit = (bar - DRIFT) * n_pairs
    if limit > 0.0 and squares * n_pairs <= limit * limit:
        return state, 0.0
    _sort_by_root(len(totals), buffers)
    half, sines, cosines = 0.0, 0.0, 0.0
    for index in range(len(totals)):
        k = buffers.order[index]
        cosine = math.sqrt(0.5 + 0.5 * buffers.left_root[k])
        sine = 0.5 * buffers.right_root[k] / cosine
        half += sines * cosine - cosines * sine
        sines, cosines = sines + sine, cosines + cosine
    return state, 2.0 * half / n_pairs


CRITERION = Criterion(HELLINGER, mean_over_pairs(_distance), _pair_score, _may_exceed, _start, _move, _score)
