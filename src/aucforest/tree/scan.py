"""Search for the best split of one feature: the bins of its histogram move to the left one by one.

Monotonic constraints need two classes. A split is allowed if the frequencies of the second class in both children are
within the limits of the node and, for a constrained feature, in the order of the constraint. After a split of a
constrained feature, the mean of the frequencies of the children is the upper limit of one child and the lower limit of
the other, so that no later split can reverse the order. Other splits pass the limits of the node on unchanged. A split
that only separates missing values from other values may have any order.

Within a node, scores rank splits as gains do, but the unit of a score depends on the criterion. Indices of bins are
np.uint64. For signed indices, compiled code checks whether they are negative, which takes time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aucforest._compile import bare_device, outlined_device
from aucforest.tree.criteria.criterion import CUSTOM_CRITERION, ROUNDING, sum_of
from aucforest.tree.criteria.custom import add_split, score_pending
from aucforest.tree.criteria.table import by_criterion, pair_rounding
from aucforest.tree.histogram import Classes, Histogram, has_minimum_sizes, read_entry, sum_left, two_class_weights

_CROWDED = 2  # bins are crowded if they have more classes than this on average


class Constraint(NamedTuple):
    """The monotonic constraint of a feature in a node."""

    is_active: bool  # whether any feature is constrained; if not, the other fields are ignored
    sign: int  # 1 if the frequency of the second class must increase with the feature, -1 if it must decrease, else 0
    low: float  # limits of the frequencies in both children
    high: float


class Splits(NamedTuple):
    """The splits of a feature that are scanned: after each of the bins from `first` to `stop` - 1."""

    histogram: Histogram
    classes: Classes
    first: int | np.int64
    stop: int | np.int64
    missing_left: bool
    constraint: Constraint


@bare_device
def find_admissible(histogram, classes, missing_left, n_samples, params):
    """Return (start, stop) of the bins after which a split leaves both children large enough."""
    n_bins = histogram.n_bins
    # The split of missing values from all others is scanned once, with missing values on the right.
    stop = n_bins if histogram.has_missing and not missing_left else n_bins - 1
    if not has_minimum_sizes(params):
        return histogram.first, stop  # all bins before `first` are empty
    node_weight, n_left, weight = classes.weight, np.int64(0), np.int64(0)
    if missing_left:
        n_left, weight = np.int64(histogram.n_missing), sum_of(histogram.missing[: classes.n])
    n_too_small = np.int64(0)  # number of splits whose left child is too small; they come first
    for t in range(stop):
        n_left += histogram.n_samples[t]
        weight += histogram.functions.bin_weight(histogram, t)
        if n_samples - n_left < params.min_samples_leaf or node_weight - weight < params.min_weight_leaf:
            return n_too_small, t
        n_too_small += n_left < params.min_samples_leaf or weight < params.min_weight_leaf
    return n_too_small, stop


@bare_device
def second_frequency(first, second):
    """Return the frequency of the second class. It equals `Tree.value` to the last bit."""
    return np.float64(second) / (np.float64(first) + np.float64(second))


@bare_device
def _is_allowed(splits, left_0, left_1, index):
    """Return whether the split after a bin satisfies the constraint."""
    constraint, totals = splits.constraint, splits.classes.totals
    left = second_frequency(left_0, left_1)
    right = second_frequency(totals[0] - left_0, totals[1] - left_1)
    if min(left, right) < constraint.low or max(left, right) > constraint.high:
        return False
    only_missing_right = index + 1 == splits.histogram.n_bins
    return only_missing_right or constraint.sign * (right - left) >= 0.0


@bare_device
def _bits_of(score):
    """Return the bits of a non-negative score as an integer. These integers sort like scores and compare faster."""
    return np.float64(score).view(np.int64)


@bare_device
def _scan_integer_scores(criterion, splits, left, best_score, buffers):
    """Return (score, index) of the best split for AUC with exact integer scores, without branches."""
    left_0, left_1 = left
    totals, best, index = splits.classes.totals, _bits_of(best_score), np.int64(-1)
    for t in range(np.uint64(splits.first), np.uint64(max(splits.first, splits.stop))):
        moved_0, moved_1 = two_class_weights(splits.histogram, t)
        left_0, left_1 = left_0 + moved_0, left_1 + moved_1
        score = _bits_of(criterion.pair_score(left_0, left_1, totals[0], totals[1], buffers.score))
        index = np.int64(t) if score > best else index
        best = max(score, best)
    return np.int64(best).view(np.float64), index


@bare_device
def _scan_bins(criterion, splits, left, best_score, buffers):
    """Return (score, index) of the best split. Most splits are excluded by `Criterion.may_exceed`, to save time."""
    left_0, left_1 = left
    total_0, total_1 = splits.classes.totals[0], splits.classes.totals[1]
    rounding, index = pair_rounding(criterion.code, total_0, total_1), np.int64(-1)
    bar = best_score + rounding  # a better split has a score above the bar
    t, stop = np.uint64(splits.first), np.uint64(max(splits.first, splits.stop))
    while t < stop:
        may_win = False
        # This inner loop only looks for the next candidate, which is faster than updating the best split in each step.
        while t < stop and not may_win:
            moved_0, moved_1 = two_class_weights(splits.histogram, t)
            left_0, left_1 = left_0 + moved_0, left_1 + moved_1
            may_win = criterion.may_exceed(left_0, left_1, total_0, total_1, bar)
            t += np.uint64(1)
        last = np.int64(t) - 1
        if may_win and (not splits.constraint.is_active or _is_allowed(splits, left_0, left_1, last)):
            score = criterion.pair_score(left_0, left_1, total_0, total_1, buffers.score)
            if score > bar:
                best_score, bar, index = score, score + rounding, last
    return best_score, index


@bare_device
def _scan_two_classes(criterion, splits, best_score, buffers):
    left, totals = buffers.score.left[:2], splits.classes.totals
    sum_left(splits.histogram, np.int64(splits.first) - 1, splits.missing_left, left)
    is_exact = pair_rounding(criterion.code, totals[0], totals[1]) == 0.0
    if is_exact and not splits.constraint.is_active:
        return _scan_integer_scores(criterion, splits, (left[0], left[1]), best_score, buffers)
    return _scan_bins(criterion, splits, (left[0], left[1]), best_score, buffers)


@bare_device
def _scan_more_classes(criterion, splits, best_score, buffers):
    histogram, classes, totals = splits.histogram, splits.classes, splits.classes.totals
    left = buffers.score.left[: classes.n]
    bar, index = best_score + ROUNDING, np.int64(-1)
    crowded = histogram.starts[histogram.n_bins] > _CROWDED * histogram.n_bins
    state = criterion.start(totals, bar, crowded, buffers.score)
    for label in range(np.uint64(classes.n)):
        left[label] = histogram.missing[label] if splits.missing_left else 0
        if left[label] > 0:
            state = criterion.move(state, label, left, left[label], totals, buffers.score)
    entry = np.uint64(0)
    for t in range(np.uint64(splits.stop)):
        end = np.uint64(histogram.starts[t + np.uint64(1)])
        while entry < end:
            k, moved_weight = read_entry(histogram, entry)
            left[k] += moved_weight
            state = criterion.move(state, k, left, moved_weight, totals, buffers.score)
            entry += np.uint64(1)
        if np.int64(t) >= splits.first:
            state, score = criterion.score(state, bar, left, totals, buffers.score)
            if score > bar:
                best_score, index, bar = score, np.int64(t), score + ROUNDING
    return best_score, index


@outlined_device
def _scan_custom(splits, best_score, buffers):
    """Return (score, index) of the best split by a user-defined criterion, which scores many splits in one call."""
    histogram, classes, custom = splits.histogram, splits.classes, buffers.custom
    left, index, n_pending = buffers.score.left[: classes.n], np.int64(-1), 0
    sum_left(histogram, -1, splits.missing_left, left)
    for t in range(splits.stop):
        histogram.functions.add_bin(histogram, t, left)
        if t < splits.first or (splits.constraint.is_active and not _is_allowed(splits, left[0], left[1], t)):
            continue
        n_pending = add_split(custom, n_pending, left, classes, t)
        if n_pending == len(custom.indices):
            best_score, index = score_pending(custom, n_pending, best_score, index)
            n_pending = 0
    return score_pending(custom, n_pending, best_score, index) if n_pending > 0 else (best_score, index)


def _scan_by(scan: Callable[..., Any]) -> Callable[..., Any]:
    """Return a scan that takes the code of a criterion, given a scan that takes a `Criterion`."""
    scan_by_code = by_criterion(scan)
    return bare_device(
        lambda criterion, splits, best_score, buffers: (
            _scan_custom(splits, best_score, buffers)
            if criterion == CUSTOM_CRITERION
            else scan_by_code(criterion, splits, best_score, buffers)
        )
    )


# f(criterion, splits, best_score, buffers) -> (score, index): the score of the best split and the index of its last bin
# on the left, or -1 if no score exceeds best_score.
scan_two_classes = _scan_by(_scan_two_classes)
scan_more_classes = _scan_by(_scan_more_classes)
