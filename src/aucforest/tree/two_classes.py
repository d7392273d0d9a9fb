"""One feature in a node with two classes: its histogram of pairs, and the walk over its cuts.

`histogram[2 * code + k]` is the weight of class k at a code; `listed` names, in rising order, all codes that have
weight and perhaps more.
"""

import math

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree.criteria import AUC, GINI, cut_gain
from aucforest.tree.histogram import ROUNDING, label_of, list_codes, row_of, weight_of

# Below this product of class totals the integers of the AUC walk cannot overflow.
_EXACT_LIMIT = 2.0**62
# A step over an empty code costs less than listing one that is not.
_CODES_PER_ROW = 1


@bare_device
def fill_pair(column, next_column, elements, scratch):  # type: ignore[no-untyped-def]
    """Fill the histograms of two columns: what is read of an element serves both."""
    slots, histogram, next_histogram = scratch.slots, scratch.histogram[0], scratch.histogram[1]
    for i in range(len(elements)):
        element = elements[i]
        row = row_of(element)
        slot, weight = np.uint64(slots[label_of(element)]), weight_of(element)
        histogram[(np.uint64(column[row]) << np.uint64(1)) + slot] += weight
        next_histogram[(np.uint64(next_column[row]) << np.uint64(1)) + slot] += weight


@bare_device
def list_visits(column, elements, n_codes, scratch):  # type: ignore[no-untyped-def]
    """List the codes to visit and return how many they are."""
    if n_codes <= _CODES_PER_ROW * len(elements):
        for code in range(np.uint64(n_codes)):
            scratch.listed[code] = code
        return n_codes
    return list_codes(column, elements, n_codes, scratch.mask, scratch.listed)


@bare_device
def clear(listed, histogram):  # type: ignore[no-untyped-def]
    """Set the cells of the listed codes back to zero."""
    for t in range(len(listed)):
        cell = np.uint64(2) * np.uint64(listed[t])
        histogram[cell] = 0
        histogram[cell + np.uint64(1)] = 0


@bare_device
def take_missing(n_listed, missing_code, histogram, scratch):  # type: ignore[no-untyped-def]
    """Copy the totals of the missing rows, whose code is the last, and return how many codes are before it."""
    scratch.missing[0] = histogram[2 * missing_code]
    scratch.missing[1] = histogram[2 * missing_code + 1]
    return n_listed - 1 if scratch.listed[n_listed - 1] == missing_code else n_listed


@bare_device
def lowest_code(listed, histogram):  # type: ignore[no-untyped-def]
    """Return the first listed code that has weight; there is one."""
    t = np.uint64(0)
    cell = np.uint64(2) * np.uint64(listed[t])
    while histogram[cell] + histogram[cell + np.uint64(1)] == 0:
        t += np.uint64(1)
        cell = np.uint64(2) * np.uint64(listed[t])
    return np.int64(listed[t])


@bare_device
def sum_left(listed, code, histogram, best_left):  # type: ignore[no-untyped-def]
    """Add all up to a code to best_left and return the next code with weight, -1 if there is none."""
    for t in range(len(listed)):
        cell = np.uint64(2) * np.uint64(listed[t])
        if listed[t] <= code:
            best_left[0] += histogram[cell]
            best_left[1] += histogram[cell + np.uint64(1)]
        elif histogram[cell] + histogram[cell + np.uint64(1)] > 0:
            return np.int64(listed[t])
    return -1


@bare_device
def least_better(criterion, best, total):  # type: ignore[no-untyped-def]
    """Return what a score must exceed to beat `best`: scores that rounding may have parted are ties.

    Scores are in the units of the walks below: |d|, with a rounding error in proportion to the product of the class
    totals; d**2 over a weight, so that the error is one of its root; or a gain.
    """
    largest = np.float64(total[0]) * np.float64(total[1])
    if criterion == AUC:
        return best + ROUNDING * largest
    if criterion == GINI:
        root = math.sqrt(best) + ROUNDING * math.sqrt(largest)
        return root * root
    return best + ROUNDING


@bare_device
def _walk_auc(listed, histogram, first, stop, left, total, best, best_left):  # type: ignore[no-untyped-def]
    """Rank by |d| = |n0 * left1 - n1 * left0| = n0 * n1 * |alpha - beta|, in exact integers."""
    n0, n1 = total[0], total[1]
    d = n0 * left[1] - n1 * left[0]
    bar, at = np.int64(0), np.int64(-1)
    if best > 0.0:
        # As a float the best score so far may have lost its last bits.
        bar = abs(n0 * best_left[1] - n1 * best_left[0])
    for t in range(len(listed)):
        code = listed[t]
        cell = np.uint64(2) * np.uint64(code)
        d += n0 * histogram[cell + np.uint64(1)] - n1 * histogram[cell]
        size = abs(d)
        if size > bar and first <= code < stop:
            bar, at = size, np.int64(code)
    return np.float64(bar), at


@bare_device
def _walk_auc_in_floats(listed, histogram, first, stop, left, total, best):  # type: ignore[no-untyped-def]
    """Rank by the same where the integers could overflow."""
    n0, n1 = np.float64(total[0]), np.float64(total[1])
    left0, left1 = left[0], left[1]
    bar, at = least_better(AUC, best, total), np.int64(-1)
    for t in range(len(listed)):
        code = listed[t]
        cell = np.uint64(2) * np.uint64(code)
        left0 += histogram[cell]
        left1 += histogram[cell + np.uint64(1)]
        size = abs(n0 * left1 - n1 * left0)
        if size > bar and first <= code < stop:
            best, at, bar = size, np.int64(code), least_better(AUC, size, total)
    return best, at


@bare_device
def _walk_gini(listed, histogram, first, stop, left, total, best, lefts, scores):  # type: ignore[no-untyped-def]
    """Rank by d**2 / (weight left * weight right), the Gini decrease up to a constant.

    In three passes, since compilers vectorise the one in the middle, which has the division.
    """
    n0, n1 = np.float64(total[0]), np.float64(total[1])
    weight = n0 + n1
    left0, left1 = left[0], left[1]
    n_listed = np.uint64(len(listed))
    for t in range(n_listed):
        cell = np.uint64(2) * np.uint64(listed[t])
        left0 += histogram[cell]
        left1 += histogram[cell + np.uint64(1)]
        lefts[t] = np.float64(left0)
        scores[t] = np.float64(left1)
    for t in range(n_listed):
        left_weight = lefts[t] + scores[t]
        d = n0 * scores[t] - n1 * lefts[t]
        scores[t] = d * d / (left_weight * (weight - left_weight))
    bar, at = least_better(GINI, best, total), np.int64(-1)
    for t in range(n_listed):
        # Where a side is empty the score is 0 / 0, and what is not a number beats nothing.
        if scores[t] > bar and first <= listed[t] < stop:
            best, at, bar = scores[t], np.int64(listed[t]), least_better(GINI, scores[t], total)
    return best, at


@bare_device
def _walk_any(criterion, listed, histogram, first, stop, left, right, best):  # type: ignore[no-untyped-def]
    """Rank by the gain itself."""
    bar, at = best + ROUNDING, np.int64(-1)
    for t in range(len(listed)):
        code = listed[t]
        for k in range(2):
            weight = histogram[np.uint64(2) * np.uint64(code) + np.uint64(k)]
            left[k] += weight
            right[k] -= weight
        if first <= code < stop:
            score = cut_gain(criterion, left, right)
            if score > bar:
                best, at, bar = score, np.int64(code), score + ROUNDING
    return best, at


@bare_device
def walk(criterion, listed, first, stop, best, histogram, scratch):  # type: ignore[no-untyped-def]
    """Return (score, code) of the best cut after a code in [first, stop) that beats `best`, or a code of -1.

    scratch.left holds what is on the left of every cut, the missing rows or nothing; it is used up.
    """
    left, total = scratch.left, scratch.total
    if criterion == AUC and np.float64(total[0]) * np.float64(total[1]) < _EXACT_LIMIT:
        return _walk_auc(listed, histogram, first, stop, left, total, best, scratch.best_left)
    if criterion == AUC:
        return _walk_auc_in_floats(listed, histogram, first, stop, left, total, best)
    if criterion == GINI:
        return _walk_gini(listed, histogram, first, stop, left, total, best, scratch.lefts, scratch.scores)
    right = scratch.right
    for k in range(2):
        right[k] = total[k] - left[k]
    return _walk_any(criterion, listed, histogram, first, stop, left[:2], right[:2], best)
