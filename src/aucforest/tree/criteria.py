"""Split criteria: the gain of a split from the class totals of its children.

Each criterion has an entry in `_TABLE` with its definition, a function of the class totals of both children. It may
also have fast forms, which score many splits of a node at less cost. For two classes, they use the class totals on the
left of each split; for more classes, the weight that moves to the left between splits. They may differ from the
definition by rounding errors, so gains that differ by at most `ROUNDING` are ties. Trees store the gain by definition.

Let a_k be the fraction of class k that a split sends to the left, for each class that is present in the node:

auc         mean over pairs of max((1 - a_i + a_j) / 2, (1 - a_j + a_i) / 2), minus 1/2
gini        decrease of the Gini impurity 1 - sum q_k^2
entropy     decrease of the entropy -sum q_k log2 q_k, in bits
hellinger   mean over pairs of the Hellinger distance between (a_i, 1 - a_i) and (a_j, 1 - a_j)

AUC of two classes: O'Brien, Ishwaran, "AUC splitting", randomForestSRC vignette. Mean over pairs: Hand, Till 2001.
Hellinger distance trees: Cieslak, Hoens, Chawla, Kegelmeyer 2012.
"""

import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, by_code, call_scorer

# Gains that differ by at most this are ties, because the difference may be a rounding error.
ROUNDING = 1e-12
# Bounds of the rounding error of a sum that is updated from split to split, and of a few products up to 1.
_DRIFT, _DRIFT_OF_SQUARES = 1e-9, 1e-14
# A little less than ln 2, to allow for the rounding error of a bound.
_LN_2 = (1.0 - 1e-6) * math.log(2.0)
# The codes of the criteria. A user-defined criterion is called by its address.
CUSTOM_CRITERION, AUC, GINI, ENTROPY, HELLINGER = -1, 0, 1, 2, 3
# Fractions of classes are fixed-point numbers: sums of integers are exact in any order, so compilers may vectorize
# them. 2**60 leaves the sign and a spare bit for the sum over all pairs.
_PAIR_SUM_LIMIT = 2.0**60
# n log2 n is looked up in a table for totals below this; the table takes 32 MiB at most.
_MOST_TABLE = 2**22
# Up to this number of classes, bounding the sum over pairs costs less than keeping the classes sorted.
_FEW_CLASSES = 10
# Below this product of class totals, the scores of AUC for two classes are exact integers.
_EXACT_LIMIT = 2.0**50
# Number of splits that a user-defined criterion scores in one call.
_BATCH = 64


class ScoreBuffers(NamedTuple):
    """Buffers for scores of more than two classes, (n_classes,) each, and the table of n log2 n.

    `table` is empty if the totals are too large for it or if the criterion does not use it.
    """

    scale: NDArray[np.float64]  # 1 / class total, for AUC in fixed-point units; computed once per node
    left_root: NDArray[np.float64]
    right_root: NDArray[np.float64]
    fraction: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    order: NDArray[np.uint64]
    index_of: NDArray[np.uint64]
    table: NDArray[np.float64]

    @classmethod
    def of(cls, n_classes: int, table: NDArray[np.float64]) -> "ScoreBuffers":
        """Allocate the buffers."""
        floats, (fraction, left, right) = np.empty((3, n_classes)), np.empty((3, n_classes), dtype=np.int64)
        return cls._make((*floats, fraction, left, right, *np.empty((2, n_classes), dtype=np.uint64), table))


def entropy_table(criteria: Collection[int], weight: float) -> NDArray[np.float64]:
    """Return n log2 n for n up to the weight of a tree; empty if the weight is large or no criterion is entropy."""
    if ENTROPY not in criteria or not weight < _MOST_TABLE:
        return np.empty(0)
    table = np.arange(int(weight) + 1, dtype=np.float64)
    table[1:] *= np.log2(table[1:])
    return table


@bare_device
def sum_of(values):
    """Return the sum of an array; np.sum would take a hundred times as long to compile."""
    total = 0
    for i in range(len(values)):
        total += values[i]
    return total


# Mean over pairs of classes: AUC and Hellinger distance.


@bare_device
def _distance(left_a: float, left_b: float) -> float:
    """Return the Hellinger distance of two classes from their fractions on the left.

    It is not computed from the overlap, 1 - distance**2 / 2, because cancellation would turn a distance of 0 into 1e-8.
    """
    on_left = math.sqrt(left_a) - math.sqrt(left_b)
    on_right = math.sqrt(1.0 - left_a) - math.sqrt(1.0 - left_b)
    return math.sqrt(on_left * on_left + on_right * on_right)


def _mean_over_pairs(distance: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled gain that is the mean of a distance over the pairs of classes present."""

    @bare_device
    def gain(left, right):
        score, n_pairs = 0.0, 0
        for i in range(len(left)):
            for j in range(i):
                total_i, total_j = left[i] + right[i], left[j] + right[j]
                if total_i > 0 and total_j > 0:
                    score += distance(left[i] / total_i, left[j] / total_j)
                    n_pairs += 1
        return score / n_pairs if n_pairs > 0 else 0.0

    return gain


_auc_gain = _mean_over_pairs(bare_device(lambda left_a, left_b: 0.5 * abs(left_a - left_b)))
_hellinger_gain = _mean_over_pairs(_distance)


@bare_device
def pair_rounding(criterion, total_0, total_1):
    """Return the difference up to which scores of two classes are ties; 0 for AUC if its scores are exact integers."""
    if criterion != AUC:
        return ROUNDING
    largest = np.float64(total_0) * np.float64(total_1)
    return 0.0 if largest < _EXACT_LIMIT else ROUNDING * largest


@bare_device
def _association(left_0, left_1, total_0, total_1):
    """Return d = total_0 left_1 - total_1 left_0, the determinant of the contingency table of class and side."""
    return np.float64(total_0) * np.float64(left_1) - np.float64(total_1) * np.float64(left_0)


@bare_device
def _auc_pair(left_0, left_1, total_0, total_1, buffers):
    """Return |d| of `_association` as the score of a split; it is the gain times 2 total_0 total_1."""
    return abs(_association(left_0, left_1, total_0, total_1))


@bare_device
def _auc_exceeds(left_0, left_1, total_0, total_1, bar):
    """Return whether the score of a split exceeds the bar."""
    return abs(_association(left_0, left_1, total_0, total_1)) > bar


@bare_device
def _start_order(n, buffers):
    """Initialize the order of n classes, all of which are on the right, with their indices."""
    for k in range(np.uint64(n)):
        _put(k, k, buffers)


@bare_device
def _put(k, index, buffers):
    """Set the index of a class in the order."""
    buffers.order[index], buffers.index_of[k] = k, index


@bare_device
def _leave_right(k, n_right, buffers):
    """Remove a class from those wholly on the right, which come first; return its new index and how many remain."""
    index, last = buffers.index_of[k], np.uint64(n_right - 1)
    if np.int64(index) >= n_right:
        return index, n_right
    _put(buffers.order[last], index, buffers)
    return last, n_right - 1


@bare_device
def _pair_sum(n, fraction):
    """Return the sum of |f_i - f_j| over pairs of classes."""
    distances = np.int64(0)
    for i in range(np.uint64(n)):
        one, class_sum = fraction[i], np.int64(0)
        for j in range(i):
            class_sum += abs(one - fraction[j])
        distances += class_sum
    return distances


@bare_device
def _auc_start(totals, bar, crowded, buffers):
    """Return the initial state: pair sum, number of classes wholly on the right, limit of the pair sum, and unit.

    The pair sum is the sum of |f_i - f_j| over pairs of classes, with f the integer fractions on the left. Times the
    unit it is the gain, the mean of 0.5 |a_i - a_j| over n (n - 1) / 2 pairs. At the limit, the gain reaches the bar.
    The number of classes is -1 if they are not kept in order, because bounds of the pair sum cost less: for few
    classes, or if many classes move at once because bins are crowded.
    """
    n = len(totals)
    unit = n / ((n - 1) * _PAIR_SUM_LIMIT)
    _start_order(n, buffers)
    for k in range(n):
        buffers.fraction[k] = 0
    return np.int64(0), np.int64(-1 if crowded or n <= _FEW_CLASSES else n), np.int64(bar / unit), unit


@bare_device
def _auc_move(state, k, left, moved, totals, buffers):
    """Return the state after weight of class k has moved to the left; without an order, the sum is an upper bound.

    The fraction of the class moves away from smaller fractions, and towards greater fractions until it passes them.
    """
    pair_sum, n_right, limit, unit = state
    last, fraction, passed = len(totals) - 1, np.int64(left[k] * buffers.scale[k]), buffers.fraction[k]
    buffers.fraction[k] = fraction
    if n_right < 0:
        return pair_sum + (fraction - passed) * last, n_right, limit, unit  # as if away from all others
    index, n_right = _leave_right(k, n_right, buffers)
    while index < np.uint64(last):
        other = buffers.order[index + np.uint64(1)]
        next_fraction = buffers.fraction[other]
        if next_fraction >= fraction:
            break
        pair_sum += (next_fraction - passed) * (2 * np.int64(index) - last)
        passed = next_fraction
        _put(other, index, buffers)
        index += np.uint64(1)
    _put(k, index, buffers)
    return pair_sum + (fraction - passed) * (2 * np.int64(index) - last), n_right, limit, unit


@bare_device
def _auc_score(state, bar, left, totals, buffers):
    """Return the state and the gain, which is replaced by 0 if it cannot exceed `bar`."""
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
def _hellinger_pair(left_0, left_1, total_0, total_1, buffers):
    """Return the gain as the score of a split."""
    return _distance(left_0 / total_0, left_1 / total_1)


@bare_device
def _hellinger_exceeds(left_0, left_1, total_0, total_1, bar):
    """Return whether the score of a split may exceed the bar.

    With a and b the fractions on the left, distance**2 = 2 - 2 sqrt(a b) - 2 sqrt((1 - a) (1 - b)). The comparison
    multiplies by the product of the totals and needs no square root. The tolerance allows for cancellation.
    """
    on_left = np.float64(left_0) * np.float64(left_1)
    on_right = np.float64(total_0 - left_0) * np.float64(total_1 - left_1)
    overlap = 1.0 - 0.5 * bar * bar
    rest = (overlap * overlap + _DRIFT_OF_SQUARES) * (np.float64(total_0) * np.float64(total_1)) - on_left - on_right
    return (rest > 0.0) & (rest * rest > 4.0 * on_left * on_right)


# With cos(t) and sin(t) the square roots of the fractions of a class on the left and on the right, the distance of two
# classes is 2 sin(|t_a - t_b| / 2). For classes ordered by t, the sum over all pairs takes linear time with
# sin(x - y) = sin(x) cos(y) - cos(x) sin(y).


@bare_device
def _hellinger_start(totals, bar, crowded, buffers):
    """Return the sums of the left roots and of the right roots over classes, all of which are on the right."""
    _start_order(len(totals), buffers)
    for k in range(len(totals)):
        buffers.left_root[k], buffers.right_root[k] = 0.0, 1.0
    return 0.0, np.float64(len(totals))


@bare_device
def _hellinger_move(state, k, left, moved, totals, buffers):
    """Return the state after weight of class k has moved to the left; `_hellinger_score` sorts the classes."""
    on_left, on_right = state
    # One minus the fraction would not be exactly 0 for a class completely on the left.
    left_root = math.sqrt(left[k] * buffers.scale[k])
    right_root = math.sqrt((totals[k] - left[k]) * buffers.scale[k])
    on_left, on_right = on_left + (left_root - buffers.left_root[k]), on_right + (right_root - buffers.right_root[k])
    buffers.left_root[k], buffers.right_root[k] = left_root, right_root
    return on_left, on_right


@bare_device
def _sort_by_root(n, buffers):
    """Sort classes by their roots on the left; they are nearly sorted, in the order of an earlier split."""
    order, roots = buffers.order, buffers.left_root
    for end in range(np.uint64(1), np.uint64(n)):
        index: Any = end
        k = order[end]
        while index > np.uint64(0) and roots[order[index - np.uint64(1)]] > roots[k]:
            order[index] = order[index - np.uint64(1)]
            index -= np.uint64(1)
        order[index] = k


@bare_device
def _hellinger_score(state, bar, left, totals, buffers):
    """Return the state and the gain, which is replaced by 0 if it cannot exceed `bar`.

    The mean distance is at most the root mean square distance, which takes constant time: the squared distances between
    K points on the unit circle sum to K**2 minus the squared norm of the sum of the points.
    """
    on_left, on_right = state
    n = np.float64(len(totals))
    n_pairs = 0.5 * n * (n - 1.0)
    squares = n * n - on_left * on_left - on_right * on_right
    # The sums over classes have rounding errors from the earlier splits.
    limit = (bar - _DRIFT) * n_pairs
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


# Decrease of an impurity: Gini and entropy.


@bare_device
def _x_log_x(x: float) -> float:
    """Return x log2 x, and 0 at 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


def _impurity_decrease(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled gain that is the impurity of the node minus the weighted impurities of its children."""

    @bare_device
    def gain(left, right):
        left_weight, right_weight = 0.0, 0.0
        for k in range(len(left)):
            left_weight += left[k]
            right_weight += right[k]
        weight = left_weight + right_weight
        if left_weight == 0.0 or right_weight == 0.0:
            return 0.0
        decrease = 0.0
        for k in range(len(left)):
            whole = weight * part((left[k] + right[k]) / weight)
            decrease += whole - left_weight * part(left[k] / left_weight) - right_weight * part(right[k] / right_weight)
        return decrease / weight

    return gain


_gini_gain = _impurity_decrease(bare_device(lambda frequency: frequency * (1.0 - frequency)))
_entropy_gain = _impurity_decrease(bare_device(lambda frequency: -_x_log_x(frequency)))


@bare_device
def _margins(left_0, left_1, total_0, total_1):
    """Return the product of the margins of the contingency table; d / sqrt(product) correlates class and side."""
    first, second = np.float64(left_0), np.float64(left_1)
    # For large totals, node weight - left weight could cancel to 0 although the right side is not empty.
    on_left, on_right = first + second, (np.float64(total_0) - first) + (np.float64(total_1) - second)
    return (np.float64(total_0) * np.float64(total_1)) * (on_left * on_right)


@bare_device
def _gini_pair(left_0, left_1, total_0, total_1, buffers):
    """Return |r|, with r the correlation of class and side; the gain is 2 r**2 total_0 total_1 / weight**2."""
    d = _association(left_0, left_1, total_0, total_1)
    return abs(d) / math.sqrt(_margins(left_0, left_1, total_0, total_1))


@bare_device
def _gini_exceeds(left_0, left_1, total_0, total_1, bar):
    """Return whether the score of a split may exceed the bar."""
    d = _association(left_0, left_1, total_0, total_1)
    return d * d > bar * bar * _margins(left_0, left_1, total_0, total_1)


@bare_device
def _gini_start(totals, bar, crowded, buffers):
    """Return the state: sums of squared totals left and right, left weight, weight, value without a split, and unit."""
    weight, squares = 0.0, 0.0
    for k in range(len(totals)):
        total = np.float64(totals[k])
        weight += total
        squares += total * total
    return 0.0, squares, 0.0, weight, squares / weight, 1.0 / weight


@bare_device
def _gini_move(state, k, left, moved, totals, buffers):
    """Return the state after weight of class k has moved to the left."""
    on_left, on_right, left_weight, weight, base, unit = state
    on_left += np.float64(moved) * np.float64(2 * left[k] - moved)
    on_right -= np.float64(moved) * np.float64(2 * (totals[k] - left[k]) + moved)
    return on_left, on_right, left_weight + moved, weight, base, unit


@bare_device
def _gini_score(state, bar, left, totals, buffers):
    """Return the state and the gain."""
    on_left, on_right, left_weight, weight, base, unit = state
    return state, (on_left / left_weight + on_right / (weight - left_weight) - base) * unit


@bare_device
def _n_log_n(n, weight, table):
    """Return n log2 n from the table; without one, return n log2 (n / weight).

    The two differ by a multiple of n. Such terms cancel in a decrease of the entropy.
    """
    if len(table) > 0:
        return table[np.uint64(np.int64(n))]
    return weight * _x_log_x(n / weight)


@bare_device
def _entropy_pair(left_0, left_1, total_0, total_1, buffers):
    """Return the gain as the score of a split."""
    weight, table = np.float64(total_0 + total_1), buffers.table
    node = _n_log_n(weight, weight, table) - _n_log_n(total_0, weight, table) - _n_log_n(total_1, weight, table)
    parts = _n_log_n(left_0, weight, table) + _n_log_n(left_1, weight, table)
    parts += _n_log_n(total_0 - left_0, weight, table) + _n_log_n(total_1 - left_1, weight, table)
    on_left = left_0 + left_1
    wholes = _n_log_n(on_left, weight, table) + _n_log_n(total_0 + total_1 - on_left, weight, table)
    return (node - (wholes - parts)) / weight


@bare_device
def _entropy_exceeds(left_0, left_1, total_0, total_1, bar):
    """Return whether the score of a split may exceed the bar; it is at most the squared correlation / ln 2.

    The relative entropy of two distributions is at most their chi-squared distance (Gibbs, Su 2002, On choosing and
    bounding probability metrics), here the joint distribution of class and side and the product of its marginals.
    """
    d = _association(left_0, left_1, total_0, total_1)
    return d * d > (_LN_2 * bar) * _margins(left_0, left_1, total_0, total_1)


@bare_device
def _entropy_parts(left, totals, weight, table):
    """Return the sum of n log n over the class totals of both children."""
    parts = 0.0
    for k in range(len(totals)):
        parts += _n_log_n(left[k], weight, table) + _n_log_n(totals[k] - left[k], weight, table)
    return parts


@bare_device
def _entropy_start(totals, bar, crowded, buffers):
    """Return the state: sum of n log n over class totals, left weight, weight, and the value without a split."""
    weight, parts = np.float64(sum_of(totals)), 0.0
    for k in range(len(totals)):
        parts += _n_log_n(totals[k], weight, buffers.table)
    return parts, 0.0, weight, parts - _n_log_n(weight, weight, buffers.table)


@bare_device
def _entropy_move(state, k, left, moved, totals, buffers):
    """Return the state after weight of class k has moved to the left."""
    parts, left_weight, weight, base = state
    right, table = totals[k] - left[k], buffers.table
    parts += _n_log_n(left[k], weight, table) - _n_log_n(left[k] - moved, weight, table)
    parts += _n_log_n(right, weight, table) - _n_log_n(right + moved, weight, table)
    return parts, left_weight + moved, weight, base


@bare_device
def _entropy_score(state, bar, left, totals, buffers):
    """Return the state and the gain; near the bar or above, the sum is recomputed to remove its rounding error."""
    parts, left_weight, weight, base = state
    wholes = _n_log_n(left_weight, weight, buffers.table) + _n_log_n(weight - left_weight, weight, buffers.table)
    if (parts - wholes - base) / weight > bar - _DRIFT:
        parts = _entropy_parts(left, totals, weight, buffers.table)
    return (parts, left_weight, weight, base), (parts - wholes - base) / weight


@bare_device
def _half_of_classes(left, totals):
    """Return whether half of the classes are on the left of a split, rounded up or down.

    The mean over pairs of |a_i - a_j| is convex in the fractions, so it is greatest if half are 0 and half are 1.
    """
    n_left = 0
    for k in range(len(totals)):
        n_left += left[k] > 0
    return abs(len(totals) - 2 * n_left) < 2


@bare_device
def _largest_apart(left, totals):
    """Return whether classes on the same side have equal totals, which are the two largest class totals of the node.

    On each side, the sum of squared totals divided by the sum of totals is at most the largest total. So both sides
    together reach at most the sum of the two largest class totals of the node, and this split reaches it.
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


@bare_device
def _half_of_weight(left, totals):
    """Return whether the weights of both sides differ by at most one unit, or there are two classes.

    The information of a split about the class is at most the entropy of the split, and equal if it divides no class.
    """
    return len(totals) == 2 or abs(sum_of(totals) - 2 * sum_of(left)) < 2


@bare_device
def _are_two(left, totals):
    """Return whether there are two classes. For more, the best classes on the left depend on the totals."""
    return len(totals) == 2


@bare_device
def _always(left_0, left_1, total_0, total_1, bar):
    """Return True: every score may exceed the bar."""
    return True


class Criterion(NamedTuple):
    """A criterion: its code, and its definition and optional fast forms as compiled functions.

    gain(left, right) : the definition
        The gain of a split from the class totals of both children; 0 if it separates nothing.
    pair(left_0, left_1, total_0, total_1, buffers) -> score
        The score of a split of two classes, which must increase with the gain and be 0 for no gain.
    exceeds(left_0, left_1, total_0, total_1, bar) -> bool
        Whether the score may exceed `bar`, the best so far. It costs less, and can be vectorized without branches.
    start(totals, bar, crowded, buffers) -> state
    move(state, k, left, moved, totals, buffers) -> state
    score(state, bar, left, totals, buffers) -> (state, gain)
        The gains of consecutive splits of more classes: `move` updates the state after the weight `moved` of class k
        has moved to the left. If the gain does not exceed `bar`, `score` may return any value up to `bar`.
    best(left, totals) -> bool
        Whether a split that divides no class, so that each left[k] is 0 or totals[k], is the best of all possible
        splits of the class totals.
    """

    code: int
    gain: Callable[..., Any]
    pair: Callable[..., Any] | None = None
    exceeds: Callable[..., Any] = _always
    start: Callable[..., Any] | None = None
    move: Callable[..., Any] | None = None
    score: Callable[..., Any] | None = None
    best: Callable[..., Any] = _are_two


_TABLE = {
    "auc": Criterion(AUC, _auc_gain, _auc_pair, _auc_exceeds, _auc_start, _auc_move, _auc_score, _half_of_classes),
    "gini": Criterion(
        GINI, _gini_gain, _gini_pair, _gini_exceeds, _gini_start, _gini_move, _gini_score, _largest_apart
    ),
    "entropy": Criterion(
        ENTROPY,
        _entropy_gain,
        _entropy_pair,
        _entropy_exceeds,
        _entropy_start,
        _entropy_move,
        _entropy_score,
        _half_of_weight,
    ),
    "hellinger": Criterion(
        HELLINGER,
        _hellinger_gain,
        _hellinger_pair,
        _hellinger_exceeds,
        _hellinger_start,
        _hellinger_move,
        _hellinger_score,
    ),
}

CRITERIA = {name: row.code for name, row in _TABLE.items()}
CRITERIA["log_loss"] = ENTROPY


def _define_pair(gain: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Criterion.pair` for a criterion that only has a definition."""

    @bare_device
    def pair(left_0, left_1, total_0, total_1, buffers):
        left, right = buffers.left[:2], buffers.right[:2]
        left[0], left[1], right[0], right[1] = left_0, left_1, total_0 - left_0, total_1 - left_1
        return gain(left, right)

    return pair


@bare_device
def _start_without_state(totals, bar, crowded, buffers):
    """Return a placeholder, because the definition needs no state."""
    return 0.0


@bare_device
def _keep_state(state, k, left, moved, totals, buffers):
    """Return the state unchanged."""
    return state


def _define_score(gain: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Criterion.score` for a criterion that only has a definition."""

    @bare_device
    def score(state, bar, left, totals, buffers):
        right = buffers.right[: len(totals)]
        for k in range(len(totals)):
            right[k] = totals[k] - left[k]
        return state, gain(left, right)

    return score


def _with_all_forms(criterion: Criterion) -> Criterion:
    """Return a criterion in which missing fast forms are replaced by the definition."""
    if criterion.pair is None:
        criterion = criterion._replace(pair=_define_pair(criterion.gain))
    if criterion.start is None:
        score = _define_score(criterion.gain)
        criterion = criterion._replace(start=_start_without_state, move=_keep_state, score=score)
    return criterion


def by_criterion(
    function: Callable[..., Any], criteria: Iterable[Criterion] = tuple(_TABLE.values())
) -> Callable[..., Any]:
    """Return a compiled f(code, *arguments) that calls function(criterion, *arguments) with the `Criterion` of a code.

    A compiled function is specialized for each criterion, so that the functions of the criterion are inlined.
    """

    def bind(criterion: Criterion) -> Callable[..., Any]:
        return bare_device(lambda *arguments: function(criterion, *arguments))

    return by_code({criterion.code: bind(_with_all_forms(criterion)) for criterion in criteria})


gain_by_definition = by_criterion(bare_device(lambda criterion, left, right: criterion.gain(left, right)))
is_optimal = by_criterion(bare_device(lambda criterion, left, totals: criterion.best(left, totals)))


class CustomCriterion(NamedTuple):
    """A user-defined criterion: a compiled function of the class totals left of a split and of the node.

    The function is compiled into a loop over many splits, which is called by its address. So the tree kernels need not
    be compiled again for another function, and a call costs little compared with scoring the splits.
    """

    address: int  # of the loop, from `_compile.compile_scorer`; 0 without a criterion
    unit: float  # the weight of one unit of the integer class totals
    totals: NDArray[np.float64]  # (n_classes,) class totals of the node
    lefts: NDArray[np.float64]  # (_BATCH, n_classes) left class totals of the pending splits, not yet scored
    indices: NDArray[np.int64]  # (_BATCH,) the index of the last bin on the left of each pending split
    scores: NDArray[np.float64]  # (_BATCH,)
    failed: NDArray[np.bool_]  # (1,) whether the function raised an exception

    @classmethod
    def of(cls, n_classes: int) -> "CustomCriterion":
        """Allocate the buffers, without a criterion."""
        indices, scores, failed = np.empty(_BATCH, dtype=np.int64), np.empty(_BATCH), np.zeros(1, dtype=np.bool_)
        return cls(0, 1.0, np.empty(n_classes), np.empty((_BATCH, n_classes)), indices, scores, failed)


@bare_device
def start_scores(criterion, classes, buffers):
    """Prepare the buffers for scoring the splits of a node."""
    if criterion == CUSTOM_CRITERION:
        custom = buffers.custom
        custom.totals[:] = 0.0
        for k in range(classes.n):
            custom.totals[classes.labels[k]] = classes.totals[k] * custom.unit
        for k in range(len(custom.totals)):
            if custom.totals[k] == 0.0:
                custom.lefts[:, k] = 0.0
    elif classes.n > 2:
        unit = _PAIR_SUM_LIMIT / (classes.n * classes.n) if criterion == AUC else 1.0
        for k in range(classes.n):
            buffers.score.scale[k] = unit / classes.totals[k]


@bare_device
def add_split(custom, n_pending, left, classes, index):
    """Add a split, given by its left class totals, to the pending splits; return the number of pending splits."""
    for k in range(classes.n):
        custom.lefts[n_pending, classes.labels[k]] = left[k] * custom.unit
    custom.indices[n_pending] = index
    return n_pending + 1


@bare_device
def score_pending(custom, n_pending, gain, index):
    """Return gain and index of the best split among the given one and the pending ones; the first one wins a tie."""
    if call_scorer(custom.address, custom.lefts, custom.totals, custom.scores, n_pending) != 0:
        custom.failed[0] = True
        return gain, index
    for i in range(n_pending):
        # A score of NaN or infinity never wins.
        if gain < custom.scores[i] < np.inf:
            gain, index = custom.scores[i], custom.indices[i]
    return gain, index
