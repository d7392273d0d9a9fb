"""AUC: the AUC of a tree that only has this split, minus 1/2, as the mean over pairs of classes.

The AUC for two classes: O'Brien, Ishwaran, "AUC splitting", randomForestSRC vignette. Mean over pairs: Hand, Till 2001.
"""

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree.criteria.criterion import (
    AUC,
    ROUNDING,
    Criterion,
    association,
    mean_over_pairs,
    place_class,
    reset_order,
)

# The fractions of classes on the left are fixed-point integers, because sums of integers are exact in any order and can
# be vectorized. The scale is chosen such that the sum over all pairs, and its upper bounds, are below 2**60.
PAIR_SUM_LIMIT = 2.0**60
# Up to this number of classes, an upper bound of the sum over pairs takes less time than keeping the classes sorted.
_FEW_CLASSES = 10


@bare_device
def _pair_score(left_0, left_1, total_0, total_1, buffers):
    """Return |total_0 left_1 - total_1 left_0|, which is the gain times 2 total_0 total_1."""
    return abs(association(left_0, left_1, total_0, total_1))


@bare_device
def _may_exceed(left_0, left_1, total_0, total_1, bar):
    return abs(association(left_0, left_1, total_0, total_1)) > bar


@bare_device
def _leave_right(k, n_right, buffers):
    """Move class k behind the classes wholly on the right, which come first; return its index and their number."""
    index, last = buffers.index_of[k], np.uint64(n_right - 1)
    if np.int64(index) >= n_right:
        return index, n_right
    place_class(buffers.order[last], index, buffers)
    return last, n_right - 1


@bare_device
def _pair_sum(n, fraction):
    """Return the sum of |f_i - f_j| over pairs of classes."""
    total = np.int64(0)
    for i in range(np.uint64(n)):
        fraction_i, class_sum = fraction[i], np.int64(0)
        for j in range(i):
            class_sum += abs(fraction_i - fraction[j])
        total += class_sum
    return total


@bare_device
def _start(totals, bar, crowded, buffers):
    """Return the state: pair sum, number n_right of classes wholly on the right, limit of the pair sum, and unit.

    The pair sum is the sum of |f_i - f_j| over pairs of classes, with f_i the fraction a_i of class i on the left as an
    integer. The pair sum times the unit is the gain, the mean of 0.5 |a_i - a_j| over n (n - 1) / 2 pairs. The limit is
    the pair sum for which the gain equals the bar. To save time, the classes are not kept sorted if they are few, or if
    bins are crowded, so that many classes move at once. Then n_right is -1, and the pair sum is an upper bound.
    """
    n = len(totals)
    unit = n / ((n - 1) * PAIR_SUM_LIMIT)
    reset_order(n, buffers)
    for k in range(n):
        buffers.fraction[k] = 0
    return np.int64(0), np.int64(-1 if crowded or n <= _FEW_CLASSES else n), np.int64(bar / unit), unit


@bare_device
def _move(state, k, left, moved_weight, totals, buffers):
    """Return the state after weight of class k has moved to the left.

    The fraction of the class moves away from smaller fractions, and towards greater fractions until it passes them.
    """
    pair_sum, n_right, limit, unit = state
    last, fraction, position = len(totals) - 1, np.int64(left[k] * buffers.scale[k]), buffers.fraction[k]
    buffers.fraction[k] = fraction
    if n_right < 0:
        return pair_sum + (fraction - position) * last, n_right, limit, unit  # exact if all others are smaller
    index, n_right = _leave_right(k, n_right, buffers)
    while index < np.uint64(last):
        other = buffers.order[index + np.uint64(1)]
        next_fraction = buffers.fraction[other]
        if next_fraction >= fraction:
            break
        pair_sum += (next_fraction - position) * (2 * np.int64(index) - last)
        position = next_fraction
        place_class(other, index, buffers)
        index += np.uint64(1)
    place_class(k, index, buffers)
    return pair_sum + (fraction - position) * (2 * np.int64(index) - last), n_right, limit, unit


@bare_device
def _score(state, bar, left, totals, buffers):
    """Return the state and the gain, or 0 in place of a gain that cannot exceed `bar`."""
    pair_sum, n_right, limit, unit = state
    if pair_sum <= limit:
        return state, 0.0
    if n_right < 0:
        pair_sum = _pair_sum(len(totals), buffers.fraction)
        if pair_sum <= limit:
            return (pair_sum, n_right, limit, unit), 0.0
    gain = pair_sum * unit
    if gain > bar:
        limit = pair_sum + np.int64(ROUNDING / unit)
    return (pair_sum, n_right, limit, unit), gain


@bare_device
def _half_of_classes(left, totals):
    """Return whether a split that divides no class has half of the classes on the left, rounded up or down.

    The mean of |a_i - a_j| over pairs is convex in the fractions a_i, so it is greatest if half are 0 and half are 1.
    """
    n_left = 0
    for k in range(len(totals)):
        n_left += left[k] > 0
    return abs(len(totals) - 2 * n_left) < 2


_gain = mean_over_pairs(bare_device(lambda left_a, left_b: 0.5 * abs(left_a - left_b)))
CRITERION = Criterion(AUC, _gain, _pair_score, _may_exceed, _start, _move, _score, _half_of_classes)
