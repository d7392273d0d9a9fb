"""Search for the best split of one feature: the bins of its histogram move to the left one by one.

Monotonic constraints: every node has limits, and a split is allowed if the frequencies of the second class in both
children are within the limits of the node and, for a constrained feature, in the order of the constraint. The mean of
the two frequencies becomes a limit of both children of such a split, so that no later split can reverse the order;
other splits pass the limits of the node to the children unchanged. A split that only separates missing values from the
others is not along the feature, so its order is free.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aucforest._compile import bare_device, by_code, outlined_device
from aucforest.tree.criteria import (
    AUC,
    OWN,
    ROUNDING,
    Criterion,
    add_split,
    each_criterion,
    pair_rounding,
    score_pending,
    sum_of,
)
from aucforest.tree.histogram import add_bin, entry_of, sum_left, weight_of_bin, weights_of_pair

# Bins are crowded if they have more classes than this on average.
_CROWDED = 2
# With at least _LONG splits of two classes, whole blocks of _BLOCK splits are ruled out at once.
_LONG, _BLOCK = np.uint64(104), np.uint64(32)
# The bar is raised to this fraction of a score, minus the rounding error of ties.
_NEARLY = 1.0 - 1e-9


class Limits(NamedTuple):
    """The conditions of monotonic constraints on a split."""

    is_constrained: bool  # whether there are any constraints; if not, the other fields are ignored
    sign: int  # 1 if the frequency of the second class must increase with the feature, -1 if decrease, 0 if free
    low: float  # bounds of the frequencies in both children
    high: float


@bare_device
def is_bounded(rules):
    """Return whether there are minimum sizes of leaves, so that a split must check the sizes of its children."""
    return rules.min_samples_leaf > 1 or rules.min_weight_leaf > 0


@bare_device
def find_admissible(histogram, classes, missing_left, n_samples, rules):
    """Return the range of the bins after which a split has large enough children; both conditions are monotone."""
    n_bins = histogram.n_bins
    # Only the right child may consist of missing values alone, because the same split on the left would be a duplicate.
    stop = n_bins if histogram.has_missing and not missing_left else n_bins - 1
    if not is_bounded(rules):
        return histogram.first, stop
    node_weight, samples, weight = classes.weight, np.int64(0), np.int64(0)
    if missing_left:
        samples, weight = np.int64(histogram.missing_samples), sum_of(histogram.missing[: classes.n])
    first = stop
    for t in range(stop):
        samples += histogram.samples[t]
        weight += weight_of_bin(histogram, t)
        if n_samples - samples < rules.min_samples_leaf or node_weight - weight < rules.min_weight_leaf:
            return min(first, t), t
        if first == stop and samples >= rules.min_samples_leaf and weight >= rules.min_weight_leaf:
            first = t
    return first, stop


@bare_device
def second_frequency(first, second):
    """Return the frequency of the second class, computed like `Tree.value`, so that they agree to the last bit."""
    return np.float64(second) / (np.float64(first) + np.float64(second))


@bare_device
def _is_allowed(limits, left_0, left_1, classes, missing_alone):
    """Return whether a split satisfies the constraints; missing_alone is whether only missing values go right."""
    left = second_frequency(left_0, left_1)
    right = second_frequency(classes.totals[0] - left_0, classes.totals[1] - left_1)
    if min(left, right) < limits.low or max(left, right) > limits.high:
        return False
    return missing_alone or limits.sign * (right - left) >= 0.0


@bare_device
def _bits_of(score):
    """Return the bits of a non-negative score as an integer, which has the same order and is faster to compare."""
    return np.float64(score).view(np.int64)


@bare_device
def _as_score(bits):
    """Return the score with these bits."""
    return np.int64(bits).view(np.float64)


@bare_device
def _sum_pairs(histogram, bins, left, sums_0, sums_1):
    """Write the weights of two classes on the left of each split."""
    start, stop = bins
    left_0, left_1 = left
    for t in range(start, stop):
        moved_0, moved_1 = weights_of_pair(histogram, t)
        left_0, left_1 = left_0 + moved_0, left_1 + moved_1
        sums_0[t], sums_1[t] = left_0, left_1


def _pair_scan(row: Criterion) -> Callable[..., Any]:
    """Return a compiled scan of two classes.

    Most splits are ruled out by `exceeds`, which costs less than the score. With many bins this is done for blocks of
    splits, in a loop that compilers vectorize.
    """
    code, exceeds, may_be_exact = row.code, row.exceeds, row.code == AUC
    pair = row.pair if row.pair is not None else _define_pair(row.gain)

    @bare_device
    def scan_exactly(histogram, classes, bins, left, gain, buffers):
        """Return the best (gain, place) by exact scores, which cost so little that branches would not pay."""
        start, stop = bins
        left_0, left_1 = left
        best, place = _bits_of(gain), np.int64(-1)
        for t in range(start, stop):
            moved_0, moved_1 = weights_of_pair(histogram, t)
            left_0, left_1 = left_0 + moved_0, left_1 + moved_1
            score = _bits_of(pair(left_0, left_1, classes.totals[0], classes.totals[1], buffers.score))
            place = np.int64(t) if score > best else place
            best = max(score, best)
        return _as_score(best), place

    @bare_device
    def scan_bins(histogram, classes, bins, left, best, limits, buffers):
        """Return the best (gain, bar, place) after some bins."""
        t, stop = bins
        left_0, left_1 = left
        gain, bar, place = best
        total_0, total_1 = classes.totals[0], classes.totals[1]
        while t < stop:
            may_win = False
            # This inner loop stops at the next candidate, which costs less than updating the best split in each step.
            while t < stop and not may_win:
                moved_0, moved_1 = weights_of_pair(histogram, t)
                left_0, left_1 = left_0 + moved_0, left_1 + moved_1
                may_win = exceeds(left_0, left_1, total_0, total_1, bar)
                t += np.uint64(1)
            missing_alone = np.int64(t) == histogram.n_bins
            if may_win and (not limits.is_constrained or _is_allowed(limits, left_0, left_1, classes, missing_alone)):
                score = pair(left_0, left_1, total_0, total_1, buffers.score)
                if score > bar:
                    gain, bar, place = score, score + pair_rounding(code, total_0, total_1), np.int64(t) - 1
        return gain, bar, place

    @bare_device
    def raise_bar(bins, classes, bar, buffers):
        """Return a bar just below the best score of one split per block, which the best of all splits still exceeds."""
        start, stop = bins
        for t in range(start + _BLOCK - np.uint64(1), stop, _BLOCK):
            split = buffers.sums[0, t], buffers.sums[1, t], classes.totals[0], classes.totals[1]
            if exceeds(*split, bar):
                bar = max(bar, _NEARLY * pair(*split, buffers.score) - pair_rounding(code, *split[2:]))
        return bar

    @bare_device
    def count_exceeding(bins, classes, bar, sums_0, sums_1):
        """Return the number of splits that exceed the bar."""
        start, stop = bins
        total_0, total_1, n_above = classes.totals[0], classes.totals[1], np.uint64(0)
        for t in range(start, stop):
            n_above += np.uint64(exceeds(sums_0[t], sums_1[t], total_0, total_1, bar))
        return n_above

    @bare_device
    def scan_pair(histogram, classes, span, missing_left, gain, limits, buffers):
        start, stop = np.uint64(span[0]), np.uint64(max(span[0], span[1]))
        before = buffers.score.left[:2]
        sum_left(histogram, np.int64(start) - 1, missing_left, before)
        left = before[0], before[1]
        rounding = pair_rounding(code, classes.totals[0], classes.totals[1])
        is_long = stop - start >= _LONG
        # a constant comes first, so that this is only compiled for the criterion that needs it
        if may_be_exact and rounding == 0.0 and not is_long and not limits.is_constrained:
            return scan_exactly(histogram, classes, (start, stop), left, gain, buffers)
        bar, place, sums_0, sums_1 = gain + rounding, np.int64(-1), buffers.sums[0], buffers.sums[1]
        if is_long:
            _sum_pairs(histogram, (start, stop), left, sums_0, sums_1)
            if not limits.is_constrained:
                bar = raise_bar((start, stop), classes, bar, buffers)
        while start < stop:
            end = min(start + _BLOCK, stop) if is_long else stop
            if not is_long or count_exceeding((start, end), classes, bar, sums_0, sums_1) > np.uint64(0):
                best = gain, bar, place
                gain, bar, place = scan_bins(histogram, classes, (start, end), left, best, limits, buffers)
            start = end
            if is_long:
                left = sums_0[end - np.uint64(1)], sums_1[end - np.uint64(1)]
        return gain, place

    return scan_pair


def _define_pair(gain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the score of two classes for a criterion that only has a definition."""

    @bare_device
    def pair(left_0, left_1, total_0, total_1, buffers):
        left, right = buffers.left[:2], buffers.right[:2]
        left[0], left[1], right[0], right[1] = left_0, left_1, total_0 - left_0, total_1 - left_1
        return gain(left, right)

    return pair


_scan_pair = by_code(each_criterion(_pair_scan))


def _many_scan(row: Criterion) -> Callable[..., Any]:
    """Return a compiled scan of more than two classes."""
    steps: Any = row.start, row.move, row.score
    start, move, score = steps if row.start is not None else _define_steps(row.gain)

    @bare_device
    def scan_many(histogram, classes, span, missing_left, gain, buffers):
        first, stop = span
        left, totals = buffers.score.left[: classes.n], classes.totals
        bar, place = gain + ROUNDING, np.int64(-1)
        crowded = histogram.starts[histogram.n_bins] > _CROWDED * histogram.n_bins
        state = start(totals, bar, crowded, buffers.score)
        for label in range(np.uint64(classes.n)):
            left[label] = histogram.missing[label] if missing_left else 0
            if left[label] > 0:
                state = move(state, label, left, left[label], totals, buffers.score)
        entry = np.uint64(0)
        for t in range(np.uint64(stop)):
            end = np.uint64(histogram.starts[t + np.uint64(1)])
            while entry < end:
                k, moved = entry_of(histogram, entry)
                left[k] += moved
                state = move(state, k, left, moved, totals, buffers.score)
                entry += np.uint64(1)
            if np.int64(t) >= first:
                state, found = score(state, bar, left, totals, buffers.score)
                if found > bar:
                    gain, place, bar = found, np.int64(t), found + ROUNDING
        return gain, place

    return scan_many


def _define_steps(gain: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Return start, move and score for a criterion that only has a definition."""

    @bare_device
    def start(totals, bar, crowded, buffers):
        return 0.0

    @bare_device
    def move(state, k, left, moved, totals, buffers):
        return state

    @bare_device
    def score(state, bar, left, totals, buffers):
        right = buffers.right[: len(totals)]
        for k in range(len(totals)):
            right[k] = totals[k] - left[k]
        return state, gain(left, right)

    return start, move, score


_scan_many = by_code(each_criterion(_many_scan))


@outlined_device
def _scan_own(histogram, classes, span, missing_left, gain, limits, buffers):
    """Scan the splits with a user-defined criterion, which scores many of them in one call."""
    first, stop = span
    own, place, n_pending = buffers.own, np.int64(-1), 0
    left = buffers.score.left[: classes.n]
    sum_left(histogram, -1, missing_left, left)
    for t in range(stop):
        add_bin(histogram, t, left)
        missing_alone = t + 1 == histogram.n_bins
        if t < first or (limits.is_constrained and not _is_allowed(limits, left[0], left[1], classes, missing_alone)):
            continue
        n_pending = add_split(own, n_pending, left, classes, t)
        if n_pending == len(own.places):
            gain, place = score_pending(own, n_pending, gain, place)
            n_pending = 0
    return score_pending(own, n_pending, gain, place) if n_pending > 0 else (gain, place)


@bare_device
def scan(criterion, histogram, classes, span, missing_left, gain, limits, buffers):
    """Return (gain, place) of the best split after a bin in `span` with more than the given gain, or a place of -1."""
    if criterion == OWN:
        return _scan_own(histogram, classes, span, missing_left, gain, limits, buffers)
    if classes.n == 2:
        return _scan_pair(criterion, histogram, classes, span, missing_left, gain, limits, buffers)
    return _scan_many(criterion, histogram, classes, span, missing_left, gain, buffers)
