"""One feature in a node with more than two classes: its events, and the walk over its cuts.

An event is a cell, code << shift | place of the class among those present, with the weight of that class at that
code. Events stand in rising order; a cell may come more than once. So a walk costs a step for what is there, not for
every class at every code.
"""

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree.criteria import AUC, GINI, cut_gain
from aucforest.tree.histogram import ROUNDING, element_weight, fill, label_of, list_bits, mark_code, row_of

# Fractions of classes are fixed-point numbers: sums of integers are exact in any order, so compilers may vectorise
# them. 2**60 leaves a sign and a spare bit for the sum over all pairs.
_PAIR_SUM_LIMIT = 2.0**60
# Sums that rounding may have parted are ties, here and in the other walks.
_PAIR_SUM_ROUNDING = np.int64(ROUNDING * _PAIR_SUM_LIMIT)
# Up to here sorting the rows costs less than a histogram.
SORT_ROWS = 16
# A step over an empty cell costs less than listing one that is not.
_CELLS_PER_ROW = 4


@bare_device
def class_shift(n_present: int) -> np.uint64:
    """Return by how many bits a code is shifted to make room for the classes present."""
    shift = np.uint64(0)
    while (1 << shift) < n_present:
        shift += np.uint64(1)
    return shift


@bare_device
def _sort_rows(column, elements, weights, slots, shift, cells, cell_weights):  # type: ignore[no-untyped-def]
    """Make an event of every row, by insertion."""
    for i in range(len(elements)):
        element = elements[i]
        row = row_of(element)
        cell = (np.uint64(column[row]) << shift) | np.uint64(slots[label_of(element)])
        place = i
        while place > 0 and cells[place - 1] > cell:
            cells[place] = cells[place - 1]
            cell_weights[place] = cell_weights[place - 1]
            place -= 1
        cells[place] = cell
        cell_weights[place] = element_weight(element, row, weights)
    return len(elements)


@bare_device
def gather(column, elements, weights, n_codes, shift, scratch):  # type: ignore[no-untyped-def]
    """Make the events of a column and return how many there are."""
    histogram, slots = scratch.histogram[0], scratch.slots
    cells, cell_weights = scratch.listed, scratch.cell_weights
    if len(elements) <= SORT_ROWS:
        return _sort_rows(column, elements, weights, slots, shift, cells, cell_weights)
    fill(column, elements, weights, slots, shift, histogram)
    n_cells = n_codes << np.int64(shift)
    if n_cells <= _CELLS_PER_ROW * len(elements):
        n_events = np.uint64(0)
        for cell in range(np.uint64(n_cells)):
            cells[n_events] = cell
            cell_weights[n_events] = histogram[cell]
            n_events += np.uint64(histogram[cell] > 0)
            histogram[cell] = 0
        return np.int64(n_events)
    for i in range(len(elements)):
        code = np.uint64(column[row_of(elements[i])])
        mark_code(scratch.mask, (code << shift) | np.uint64(slots[label_of(elements[i])]))
    n_events = list_bits(scratch.mask, n_cells, cells)
    for t in range(n_events):
        cell_weights[t] = histogram[cells[t]]
        histogram[cells[t]] = 0
    return n_events


@bare_device
def take_missing(n_events, missing_code, shift, n_present, scratch):  # type: ignore[no-untyped-def]
    """Sum the missing rows, which come last, and return how many events are before them."""
    for k in range(n_present):
        scratch.missing[k] = 0
    start = np.uint64(missing_code) << shift
    while n_events > 0 and scratch.listed[n_events - 1] >= start:
        n_events -= 1
        scratch.missing[np.uint64(scratch.listed[n_events]) - start] += scratch.cell_weights[n_events]
    return n_events


@bare_device
def sum_left(n_events, code, shift, scratch):  # type: ignore[no-untyped-def]
    """Add all up to a code to scratch.best_left and return the next code, -1 if there is none."""
    for t in range(n_events):
        cell = np.uint64(scratch.listed[t])
        if np.int64(cell >> shift) > code:
            return np.int64(cell >> shift)
        scratch.best_left[cell - ((cell >> shift) << shift)] += scratch.cell_weights[t]
    return -1


@bare_device
def _pair_sum(n_present, fraction):  # type: ignore[no-untyped-def]
    """Return the sum of |f_i - f_j| over pairs of classes."""
    distances = np.int64(0)
    for i in range(np.uint64(n_present)):
        own = fraction[i]
        for j in range(i):
            distances += abs(own - fraction[j])
    return distances


@bare_device
def prepare(criterion, n_present, scratch):  # type: ignore[no-untyped-def]
    """Ready what the walks of one node share."""
    if criterion == AUC:
        for k in range(n_present):
            scratch.per_weight[k] = _PAIR_SUM_LIMIT / (n_present * n_present) / scratch.total[k]


@bare_device
def _walk_auc(n_present, cells, weights, shift, first, stop, left, best, fraction, per_weight):  # type: ignore[no-untyped-def]
    """Rank by the sum of |f_i - f_j| over pairs of classes, f the fractions sent to the left.

    A class that moves by delta changes the sum by at most (K - 1) delta. So most cuts cannot beat the best one, which
    is known without summing: the sum is taken only where its bound says that it might.
    """
    best, at = np.int64(best), np.int64(-1)
    bar = best + _PAIR_SUM_ROUNDING
    reach = n_present - 1
    for k in range(n_present):
        fraction[k] = np.int64(left[k] * per_weight[k])
    bound = _pair_sum(n_present, fraction)
    t, end = np.uint64(0), np.uint64(len(cells))
    while t < end:
        code = np.uint64(cells[t]) >> shift
        while t < end and np.uint64(cells[t]) >> shift == code:
            k = np.uint64(cells[t]) - (code << shift)
            left[k] += weights[t]
            goal = np.int64(left[k] * per_weight[k])
            bound += reach * (goal - fraction[k])
            fraction[k] = goal
            t += np.uint64(1)
        if bound > bar and first <= code < stop:
            bound = _pair_sum(n_present, fraction)
            if bound > bar:
                best, at, bar = bound, np.int64(code), bound + _PAIR_SUM_ROUNDING
    return np.float64(best), at


@bare_device
def _walk_gini(n_present, cells, weights, shift, first, stop, left, total, best):  # type: ignore[no-untyped-def]
    """Rank by sum left_k**2 / weight left + sum right_k**2 / weight right, less the same for the node."""
    weight, weight_left, squares_left, squares_right, squares = 0, 0, 0.0, 0.0, 0.0
    for k in range(n_present):
        weight += total[k]
        weight_left += left[k]
        squares += np.float64(total[k]) * np.float64(total[k])
        squares_left += np.float64(left[k]) * np.float64(left[k])
        squares_right += np.float64(total[k] - left[k]) * np.float64(total[k] - left[k])
    base, rounding = squares / weight, ROUNDING * weight
    bar, at = best + rounding, np.int64(-1)
    t, end = np.uint64(0), np.uint64(len(cells))
    while t < end:
        code = np.uint64(cells[t]) >> shift
        while t < end and np.uint64(cells[t]) >> shift == code:
            k, moved = np.uint64(cells[t]) - (code << shift), weights[t]
            squares_left += np.float64(moved) * np.float64(2 * left[k] + moved)
            squares_right -= np.float64(moved) * np.float64(2 * (total[k] - left[k]) - moved)
            left[k] += moved
            weight_left += moved
            t += np.uint64(1)
        if first <= code < stop and weight_left < weight:
            score = squares_left / weight_left + squares_right / (weight - weight_left) - base
            if score > bar:
                best, at, bar = score, np.int64(code), score + rounding
    return best, at


@bare_device
def _walk_any(criterion, cells, weights, shift, first, stop, left, right, best):  # type: ignore[no-untyped-def]
    """Rank by the gain itself."""
    bar, at = best + ROUNDING, np.int64(-1)
    t, end = np.uint64(0), np.uint64(len(cells))
    while t < end:
        code = np.uint64(cells[t]) >> shift
        while t < end and np.uint64(cells[t]) >> shift == code:
            k = np.uint64(cells[t]) - (code << shift)
            left[k] += weights[t]
            right[k] -= weights[t]
            t += np.uint64(1)
        if first <= code < stop:
            score = cut_gain(criterion, left, right)
            if score > bar:
                best, at, bar = score, np.int64(code), score + ROUNDING
    return best, at


@bare_device
def walk(criterion, n_present, n_events, shift, first, stop, best, scratch):  # type: ignore[no-untyped-def]
    """Return (score, code) of the best cut after a code in [first, stop) that beats `best`, or a code of -1.

    scratch.left holds what is on the left of every cut, the missing rows or nothing; it is used up.
    """
    cells, weights = scratch.listed[:n_events], scratch.cell_weights
    left, right, total = scratch.left, scratch.right, scratch.total
    if criterion == AUC:
        fraction, per_weight = scratch.fraction, scratch.per_weight
        return _walk_auc(n_present, cells, weights, shift, first, stop, left, best, fraction, per_weight)
    if criterion == GINI:
        return _walk_gini(n_present, cells, weights, shift, first, stop, left, total, best)
    for k in range(n_present):
        right[k] = total[k] - left[k]
    return _walk_any(criterion, cells, weights, shift, first, stop, left[:n_present], right[:n_present], best)
