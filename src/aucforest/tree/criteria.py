"""Criteria: what a split gains, from the class totals of the left child and of the node.

Every criterion is a function of the class totals left and right, its definition, and a row in `_TABLE`. That is all a
criterion needs. A row may also have fast forms, which score many splits of a node at less cost: of two classes from
the totals on the left of each split, of more classes by what moves to the left from one split to the next. They may
differ from the definition by rounding: gains that differ by at most `ROUNDING` are ties, and the gain that a tree
stores is that of the definition.

With a_k the fraction of class k that a split sends to the left, over the classes present in the node:

auc         mean over pairs of max((1 - a_i + a_j) / 2, (1 - a_j + a_i) / 2), minus 1/2
gini        decrease of the Gini impurity 1 - sum q_k^2
entropy     decrease of the entropy -sum q_k log2 q_k, in bits
hellinger   mean over pairs of the Hellinger distance between (a_i, 1 - a_i) and (a_j, 1 - a_j)

AUC of two classes: O'Brien, Ishwaran, "AUC splitting", randomForestSRC vignette. Mean over pairs: Hand, Till 2001.
Hellinger distance trees: Cieslak, Hoens, Chawla, Kegelmeyer 2012.
"""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel, by_code, call_scorer

# Gains that differ by no more are ties: rounding may have parted them.
ROUNDING = 1e-12
# What rounding may do to a sum that is added to from one split to the next, and to one of a few products up to 1.
_DRIFT, _DRIFT_OF_SQUARES = 1e-9, 1e-14
# A little less than ln 2, for what rounding does to a bound.
_LN_2 = (1.0 - 1e-6) * math.log(2.0)
# A user's own criterion, which is called by its address, and the codes of the others.
OWN, AUC, GINI, ENTROPY, HELLINGER = -1, 0, 1, 2, 3
# Fractions of classes are fixed-point numbers: sums of integers are exact in any order, so compilers may vectorise
# them. 2**60 leaves a sign and a spare bit for the sum over all pairs.
_PAIR_SUM_LIMIT = 2.0**60
# n log2 n is looked up for totals below this; the table takes 32 MiB at most.
_MOST_TABLE = 2**22
# Up to so many classes bounds of a sum over pairs cost less than keeping them in order.
_FEW_CLASSES = 10
# Below this product of class totals the AUC of two classes is told apart exactly.
_EXACT_LIMIT = 2.0**50
# How many splits a user's own criterion scores at once.
_WAITING = 64


class ScoreBuffers(NamedTuple):
    """What the scores of more than two classes keep of every class, (n_classes,), and the table of n log2 n.

    `table` is empty where totals are too large for it, or where the criterion has no use for it.
    """

    scale: NDArray[np.float64]  # what the fraction of one unit of weight is; filled once a node
    left_root: NDArray[np.float64]
    right_root: NDArray[np.float64]
    half_cosine: NDArray[np.float64]
    half_sine: NDArray[np.float64]
    fraction: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    order: NDArray[np.uint64]
    place: NDArray[np.uint64]
    table: NDArray[np.float64]

    @classmethod
    def of(cls, n_classes: int, table: NDArray[np.float64]) -> "ScoreBuffers":
        """Allocate the buffers."""
        floats, (fraction, left, right) = np.empty((5, n_classes)), np.empty((3, n_classes), dtype=np.int64)
        return cls._make((*floats, fraction, left, right, *np.empty((2, n_classes), dtype=np.uint64), table))


def entropy_table(criteria: Collection[int], weight: float) -> NDArray[np.float64]:
    """Return n log2 n for all n up to the weight of a tree; nothing where it is large, or of other criteria."""
    if ENTROPY not in criteria or not weight < _MOST_TABLE:
        return np.empty(0)
    table = np.arange(int(weight) + 1, dtype=np.float64)
    table[1:] *= np.log2(table[1:])
    return table


# Mean over pairs of classes: AUC and Hellinger distance.


@bare_device
def _distance(left_a: float, left_b: float) -> float:
    """Return the Hellinger distance of two classes that send these fractions to the left.

    Not by way of their overlap, 1 - distance**2 / 2: that cancels, and makes 1e-8 of what rounding leaves of nothing.
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
    """Return up to which difference scores of two classes are ties: 0 where they are exact, the AUC's as integers."""
    if criterion != AUC:
        return ROUNDING
    largest = np.float64(total_0) * np.float64(total_1)
    return 0.0 if largest < _EXACT_LIMIT else ROUNDING * largest


@bare_device
def _association(left_0, left_1, total_0, total_1):
    """Return d = total_0 left_1 - total_1 left_0, the determinant of the table of two classes and two sides."""
    return np.float64(total_0) * np.float64(left_1) - np.float64(total_1) * np.float64(left_0)


@bare_device
def _auc_pair(left_0, left_1, total_0, total_1, buffers):
    """Score a split by |d|, the gain times 2 total_0 total_1."""
    return abs(_association(left_0, left_1, total_0, total_1))


@bare_device
def _auc_exceeds(left_0, left_1, total_0, total_1, bar):
    """Say whether the score of a split exceeds the bar."""
    return abs(_association(left_0, left_1, total_0, total_1)) > bar


@bare_device
def _start_order(n, buffers):
    """Put n classes in the order of their numbers, all of them on the right."""
    for k in range(np.uint64(n)):
        _put(k, k, buffers)


@bare_device
def _put(k, place, buffers):
    """Put a class at a place of the order."""
    buffers.order[place], buffers.place[k] = k, place


@bare_device
def _leave_right(k, n_right, buffers):
    """Return the place of a class and how many are whole on the right, once it has gone left; these come first."""
    place, last = buffers.place[k], np.uint64(n_right - 1)
    if np.int64(place) >= n_right:
        return place, n_right
    _put(buffers.order[last], place, buffers)
    return last, n_right - 1


@bare_device
def _pair_sum(n, fraction):
    """Return the sum of |f_i - f_j| over pairs of classes."""
    distances = np.int64(0)
    for i in range(np.uint64(n)):
        own, of_class = fraction[i], np.int64(0)
        for j in range(i):
            of_class += abs(own - fraction[j])
        distances += of_class
    return distances


@bare_device
def _auc_start(totals, bar, crowded, buffers):
    """Return the sum over pairs of |f_i - f_j|, f the fractions on the left as integers, and what it takes to go on.

    That is how many classes are whole on the right, which sum reaches the bar, and what a sum of 1 gains: the gain is a
    mean over n (n - 1) / 2 pairs of half the difference of two fractions. The number is -1 where bounds of the sum cost
    less than keeping the order: with few classes, and in crowded bins, from which many classes move at once.
    """
    n = len(totals)
    unit = n / ((n - 1) * _PAIR_SUM_LIMIT)
    _start_order(n, buffers)
    for k in range(n):
        buffers.fraction[k] = 0
    return np.int64(0), np.int64(-1 if crowded or n <= _FEW_CLASSES else n), np.int64(bar / unit), unit


@bare_device
def _auc_move(state, k, left, moved, totals, buffers):
    """Return the sum after a class has moved, with the classes kept in the order of their fractions, or a bound of it.

    A class moves away from those before it and towards those behind it, until it overtakes them: at most away from all.
    """
    pair_sum, n_right, limit, unit = state
    last, fraction, at = len(totals) - 1, np.int64(left[k] * buffers.scale[k]), buffers.fraction[k]
    buffers.fraction[k] = fraction
    if n_right < 0:
        return pair_sum + (fraction - at) * last, n_right, limit, unit
    place, n_right = _leave_right(k, n_right, buffers)
    while place < np.uint64(last):
        other = buffers.order[place + np.uint64(1)]
        passed = buffers.fraction[other]
        if passed >= fraction:
            break
        pair_sum += (passed - at) * (2 * np.int64(place) - last)
        at = passed
        _put(other, place, buffers)
        place += np.uint64(1)
    _put(k, place, buffers)
    return pair_sum + (fraction - at) * (2 * np.int64(place) - last), n_right, limit, unit


@bare_device
def _auc_score(state, bar, left, totals, buffers):
    """Return the sum and the gain, both no more than bounds where the gain cannot exceed `bar`."""
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
    """Score a split by the gain."""
    return _distance(left_0 / total_0, left_1 / total_1)


@bare_device
def _hellinger_exceeds(left_0, left_1, total_0, total_1, bar):
    """Say whether the score of a split may exceed the bar.

    With a and b the fractions on the left, distance**2 = 2 - 2 sqrt(a b) - 2 sqrt((1 - a) (1 - b)), which is compared
    without a root, times the product of the totals. It cancels, hence the allowance.
    """
    on_left = np.float64(left_0) * np.float64(left_1)
    on_right = np.float64(total_0 - left_0) * np.float64(total_1 - left_1)
    overlap = 1.0 - 0.5 * bar * bar
    rest = (overlap * overlap + _DRIFT_OF_SQUARES) * (np.float64(total_0) * np.float64(total_1)) - on_left - on_right
    return (rest > 0.0) & (rest * rest > 4.0 * on_left * on_right)


# With cos(t) and sin(t) the roots of the fractions of a class on the left and on the right, the distance of two classes
# is 2 sin(|t_a - t_b| / 2). Of classes in the order of t, the sum over all pairs takes one step a class, by
# sin(x - y) = sin(x) cos(y) - cos(x) sin(y).


@bare_device
def _hellinger_start(totals, bar, crowded, buffers):
    """Return a bound of the sum over pairs, the sums of both roots, and how many classes are whole on the right."""
    n = len(totals)
    _start_order(n, buffers)
    for k in range(n):
        buffers.left_root[k], buffers.right_root[k] = 0.0, 1.0
        buffers.half_cosine[k] = buffers.half_sine[k] = math.sqrt(0.5)
    return 0.0, 0.0, np.float64(n), np.int64(n)


@bare_device
def _hellinger_move(state, k, left, moved, totals, buffers):
    """Return a bound of the sum: a class whose roots move changes it by at most K - 1 times as much.

    The root on the left rises, that on the right falls; the length of the move is at most the sum of both.
    """
    bound, on_left, on_right, n_right = state
    # Not by way of 1 less the fraction: a whole class on the left must leave nothing on the right.
    left_root = math.sqrt(left[k] * buffers.scale[k])
    right_root = math.sqrt((totals[k] - left[k]) * buffers.scale[k])
    left_step, right_step = left_root - buffers.left_root[k], right_root - buffers.right_root[k]
    buffers.left_root[k], buffers.right_root[k] = left_root, right_root
    buffers.half_cosine[k] = math.sqrt(0.5 + 0.5 * left_root)
    buffers.half_sine[k] = 0.5 * right_root / buffers.half_cosine[k]
    place, n_right = _leave_right(k, n_right, buffers)
    while place + np.uint64(1) < np.uint64(len(totals)):
        other = buffers.order[place + np.uint64(1)]
        if buffers.left_root[other] >= left_root:
            break
        _put(other, place, buffers)
        place += np.uint64(1)
    _put(k, place, buffers)
    bound += (len(totals) - 1) * (left_step - right_step)
    return bound, on_left + left_step, on_right + right_step, n_right


@bare_device
def _hellinger_score(state, bar, left, totals, buffers):
    """Return the sums and the gain, both no more than bounds where the gain cannot exceed `bar`.

    A mean is at most the root of the mean square, and that takes one step: the squared distances of K points on the
    unit circle sum to K**2 less the square of the sum of the points.
    """
    bound, on_left, on_right, n_right = state
    n = np.float64(len(totals))
    n_pairs = 0.5 * n * (n - 1.0)
    squares = n * n - on_left * on_left - on_right * on_right
    # The sums over classes were added to step by step.
    limit = (bar - _DRIFT) * n_pairs
    if bound <= limit or (limit > 0.0 and squares * n_pairs <= limit * limit):
        return state, 0.0
    half, sines, cosines = 0.0, 0.0, 0.0
    for place in range(len(totals)):
        k = buffers.order[place]
        sine, cosine = buffers.half_sine[k], buffers.half_cosine[k]
        half += sines * cosine - cosines * sine
        sines, cosines = sines + sine, cosines + cosine
    return (2.0 * half, on_left, on_right, n_right), 2.0 * half / n_pairs


# Decrease of an impurity: Gini and entropy.


@bare_device
def _x_log_x(x: float) -> float:
    """Return x log2 x, and 0 at 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


def _impurity_decrease(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled gain that is the impurity of the node less the weighted impurities of its children."""

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
    """Return the product of both class totals and both sides; d over its root is the correlation of class and side."""
    first, second = np.float64(left_0), np.float64(left_1)
    # Of large totals not the rest of their sum, which may cancel: a side is empty only where d is 0.
    on_left, on_right = first + second, (np.float64(total_0) - first) + (np.float64(total_1) - second)
    return (np.float64(total_0) * np.float64(total_1)) * (on_left * on_right)


@bare_device
def _gini_pair(left_0, left_1, total_0, total_1, buffers):
    """Score a split by the correlation of class and side: its square is the gain over 2 total_0 total_1 / weight**2."""
    d = _association(left_0, left_1, total_0, total_1)
    return abs(d) / math.sqrt(_margins(left_0, left_1, total_0, total_1))


@bare_device
def _gini_exceeds(left_0, left_1, total_0, total_1, bar):
    """Say whether the score of a split may exceed the bar."""
    d = _association(left_0, left_1, total_0, total_1)
    return d * d > bar * bar * _margins(left_0, left_1, total_0, total_1)


@bare_device
def _gini_start(totals, bar, crowded, buffers):
    """Return the sums of squared totals on the left and on the right, both weights, what no split has, and a unit."""
    weight, squares = 0.0, 0.0
    for k in range(len(totals)):
        total = np.float64(totals[k])
        weight += total
        squares += total * total
    return 0.0, squares, 0.0, weight, squares / weight, 1.0 / weight


@bare_device
def _gini_move(state, k, left, moved, totals, buffers):
    """Return the sums after a class has moved."""
    on_left, on_right, left_weight, weight, base, unit = state
    on_left += np.float64(moved) * np.float64(2 * left[k] - moved)
    on_right -= np.float64(moved) * np.float64(2 * (totals[k] - left[k]) + moved)
    return on_left, on_right, left_weight + moved, weight, base, unit


@bare_device
def _gini_score(state, bar, left, totals, buffers):
    """Return the sums and the gain."""
    on_left, on_right, left_weight, weight, base, unit = state
    return state, (on_left / left_weight + on_right / (weight - left_weight) - base) * unit


@bare_device
def _n_log_n(n, weight, table):
    """Return n log2 n by the table; where there is none, of n as a fraction of the weight, in units of the weight.

    Terms in proportion to n cancel in a decrease of the entropy.
    """
    if len(table) > 0:
        return table[np.uint64(np.int64(n))]
    return weight * _x_log_x(n / weight)


@bare_device
def _entropy_pair(left_0, left_1, total_0, total_1, buffers):
    """Score a split by the gain."""
    weight, table = np.float64(total_0 + total_1), buffers.table
    node = _n_log_n(weight, weight, table) - _n_log_n(total_0, weight, table) - _n_log_n(total_1, weight, table)
    parts = _n_log_n(left_0, weight, table) + _n_log_n(left_1, weight, table)
    parts += _n_log_n(total_0 - left_0, weight, table) + _n_log_n(total_1 - left_1, weight, table)
    on_left = left_0 + left_1
    wholes = _n_log_n(on_left, weight, table) + _n_log_n(total_0 + total_1 - on_left, weight, table)
    return (node - (wholes - parts)) / weight


@bare_device
def _entropy_exceeds(left_0, left_1, total_0, total_1, bar):
    """Say whether the score of a split may exceed the bar: it is at most the squared correlation over ln 2.

    The relative entropy of two distributions is at most their chi-squared distance, here of class and side together
    from what they would be if they were independent (Gibbs, Su 2002, On choosing and bounding probability metrics).
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
    """Return the sum of n log n over the class totals of both children, both weights, and what no split has of it."""
    weight, parts = np.float64(totals.sum()), 0.0
    for k in range(len(totals)):
        parts += _n_log_n(totals[k], weight, buffers.table)
    return parts, 0.0, weight, parts - _n_log_n(weight, weight, buffers.table)


@bare_device
def _entropy_move(state, k, left, moved, totals, buffers):
    """Return the sums after a class has moved."""
    parts, left_weight, weight, base = state
    right, table = totals[k] - left[k], buffers.table
    parts += _n_log_n(left[k], weight, table) - _n_log_n(left[k] - moved, weight, table)
    parts += _n_log_n(right, weight, table) - _n_log_n(right + moved, weight, table)
    return parts, left_weight + moved, weight, base


@bare_device
def _entropy_score(state, bar, left, totals, buffers):
    """Return the sums and the gain; where it matters without the rounding of the sum, which was added to often."""
    parts, left_weight, weight, base = state
    wholes = _n_log_n(left_weight, weight, buffers.table) + _n_log_n(weight - left_weight, weight, buffers.table)
    if (parts - wholes - base) / weight > bar - _DRIFT:
        parts = _entropy_parts(left, totals, weight, buffers.table)
    return (parts, left_weight, weight, base), (parts - wholes - base) / weight


@bare_device
def _half_of_classes(n_left, n):
    """Say whether half of n classes are on the left of a split, or as near to it as can be.

    The mean over pairs of |a_i - a_j| is convex in the fractions, so it is greatest with half of them 0 and half 1.
    """
    return abs(n - 2 * n_left) < 2


@bare_device
def _one_of_two(n_left, n):
    """Say whether two classes are parted. Of more it depends on the class totals which ones should be on the left."""
    return n == 2 and n_left == 1


@bare_device
def _always(left_0, left_1, total_0, total_1, bar):
    """Rule no split out."""
    return True


class Criterion(NamedTuple):
    """A criterion: its code, its definition and, where it has them, its fast forms, compiled functions all.

    gain(left, right) : the definition
        What a split gains over no split, from the class totals of both children; 0 if it separates nothing.
    pair(left_0, left_1, total_0, total_1, buffers) -> score
        Scores a split of two classes. Scores need not be the gains but must rise with them, and 0 must stand for no
        gain.
    exceeds(left_0, left_1, total_0, total_1, bar) -> bool
        Whether that score may exceed `bar`: at less cost, and free of branches, so that compilers vectorise it.
    start(totals, bar, crowded, buffers) -> state
    move(state, k, left, moved, totals, buffers) -> state
    score(state, bar, left, totals, buffers) -> (state, gain)
        The gains of splits of more classes one after the other: the state moves on by the weight `moved` of class k,
        which has gone left. Of a gain up to `bar` any number up to it will do.
    best(n_left, n) -> bool
        Whether no split gains more than one that sends n_left of n classes to the left and parts none.
    """

    code: int
    gain: Callable[..., Any]
    pair: Callable[..., Any] | None = None
    exceeds: Callable[..., Any] = _always
    start: Callable[..., Any] | None = None
    move: Callable[..., Any] | None = None
    score: Callable[..., Any] | None = None
    best: Callable[..., Any] = _one_of_two


_TABLE = {
    "auc": Criterion(AUC, _auc_gain, _auc_pair, _auc_exceeds, _auc_start, _auc_move, _auc_score, _half_of_classes),
    "gini": Criterion(GINI, _gini_gain, _gini_pair, _gini_exceeds, _gini_start, _gini_move, _gini_score),
    "entropy": Criterion(
        ENTROPY, _entropy_gain, _entropy_pair, _entropy_exceeds, _entropy_start, _entropy_move, _entropy_score
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


def each_criterion(choose: Callable[[Criterion], Callable[..., Any]]) -> dict[int, Callable[..., Any]]:
    """Return what a function chooses for each criterion, by their codes."""
    return {row.code: choose(row) for row in _TABLE.values()}


gain_by_definition = by_code(each_criterion(lambda row: row.gain))
gains_most = by_code(each_criterion(lambda row: row.best))


@bare_kernel
def split_gain(criterion: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return what a split gains over no split, from the class totals of both children, (n_classes,), int64.

    That is 0 for a split that separates nothing; at most 1/2 for auc, 1 for gini, log2(n_classes) for entropy, sqrt(2)
    for hellinger. Criteria are given by their codes in `CRITERIA`.
    """
    return gain_by_definition(criterion, left, right)


class OwnCriterion(NamedTuple):
    """A user's own criterion, a compiled function of the class totals left of a split and of the node.

    The function is compiled into a loop over many splits, and growing trees calls that by its address. So trees are
    compiled once, whatever the function, and a call costs nothing beside the splits that it scores.
    """

    address: int  # of the loop, as `_compile.compile_scorer` makes it; 0 for none
    unit: float  # the weight that one unit of the integer class totals stands for
    totals: NDArray[np.float64]  # (n_classes,) of the node
    lefts: NDArray[np.float64]  # (n_waiting, n_classes) of the splits that wait for their scores
    places: NDArray[np.int64]  # (n_waiting,) of these splits
    scores: NDArray[np.float64]  # (n_waiting,)
    failed: NDArray[np.bool_]  # (1,) whether the function raised an exception

    @classmethod
    def of(cls, address: int, n_classes: int) -> "OwnCriterion":
        """Allocate the buffers."""
        places, scores, failed = np.empty(_WAITING, dtype=np.int64), np.empty(_WAITING), np.zeros(1, dtype=np.bool_)
        return cls(address, 1.0, np.empty(n_classes), np.empty((_WAITING, n_classes)), places, scores, failed)


@bare_device
def start_scores(criterion, totals, classes, buffers):
    """Ready the scores of the splits of a node with these class totals."""
    if criterion == OWN:
        own = buffers.own
        for k in range(len(totals)):
            own.totals[k] = totals[k] * own.unit
            if totals[k] == 0:
                own.lefts[:, k] = 0.0
    elif classes.n > 2:
        unit = _PAIR_SUM_LIMIT / (classes.n * classes.n) if criterion == AUC else 1.0
        for k in range(classes.n):
            buffers.score.scale[k] = unit / classes.totals[k]


@bare_device
def add_split(own, n_waiting, left, classes, place):
    """Put a split, given by the totals left of it over the classes of the node, beside those that wait."""
    for k in range(len(own.totals)):
        if own.totals[k] > 0.0:
            own.lefts[n_waiting, k] = left[classes.places[k]] * own.unit
    own.places[n_waiting] = place
    return n_waiting + 1


@bare_device
def score_waiting(own, n_waiting, gain, place):
    """Return the gain and the place of the first of the best splits that wait and of the one given."""
    if call_scorer(own.address, own.lefts, own.totals, own.scores, n_waiting) != 0:
        own.failed[0] = True
        return gain, place
    for i in range(n_waiting):
        # What is not a finite number beats nothing.
        if gain < own.scores[i] < np.inf:
            gain, place = own.scores[i], own.places[i]
    return gain, place
