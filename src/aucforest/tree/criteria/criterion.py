"""What all criteria share: the form of a criterion, buffers for scores, and the tolerance for ties."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device

# The codes of the criteria. A user-defined criterion is called by its address.
CUSTOM_CRITERION, AUC, GINI, ENTROPY, HELLINGER = -1, 0, 1, 2, 3
ROUNDING = 1e-12  # gains that differ by at most this are ties, because the difference may be a rounding error
DRIFT = 1e-9  # upper bound of the rounding error of a sum that is updated from split to split


class ScoreBuffers(NamedTuple):
    """Buffers for scores of more than two classes, (n_classes,) each, and the table of n log2 n for entropy.

    `table` is empty for other criteria, and if the class totals are too large for it.
    """

    scale: NDArray[np.float64]  # 1 / class total (for AUC in fixed-point units), computed once per node
    left_root: NDArray[np.float64]  # the square root of the fraction on the left, for Hellinger
    right_root: NDArray[np.float64]
    fraction: NDArray[np.int64]  # the fraction on the left, for AUC
    left: NDArray[np.int64]  # class totals
    right: NDArray[np.int64]
    order: NDArray[np.uint64]  # the classes, sorted by their fraction on the left
    index_of: NDArray[np.uint64]  # class -> index in `order`
    table: NDArray[np.float64]

    @classmethod
    def of(cls, n_classes: int, table: NDArray[np.float64]) -> "ScoreBuffers":
        """Allocate the buffers."""
        floats, (fraction, left, right) = np.empty((3, n_classes)), np.empty((3, n_classes), dtype=np.int64)
        return cls._make((*floats, fraction, left, right, *np.empty((2, n_classes), dtype=np.uint64), table))


@bare_device
def are_two_classes(left, totals):
    """Return whether there are two classes: then a split that divides no class is the best one."""
    return len(totals) == 2


@bare_device
def _always(left_0, left_1, total_0, total_1, bar):
    return True


class Criterion(NamedTuple):
    """A criterion: its code, the compiled function that defines the gain, and optional functions that take less time.

    gain(left, right) : the definition
        The gain of a split from the class totals of both children; 0 if it separates nothing.
    pair_score(left_0, left_1, total_0, total_1, buffers) -> score
        The score of a split of two classes. It must increase with the gain, and be 0 if the gain is 0.
    may_exceed(left_0, left_1, total_0, total_1, bar) -> bool
        Whether the score of a split of two classes may exceed `bar`. It takes less time than the score.
    start(totals, bar, crowded, buffers) -> state
    move(state, k, left, moved_weight, totals, buffers) -> state
    score(state, bar, left, totals, buffers) -> (state, gain)
        The gains of consecutive splits of more classes: `move` updates the state after `moved_weight` of class k has
        moved to the left. If the gain does not exceed `bar`, `score` may return any value up to `bar`. `crowded` is
        whether bins have samples of many classes.
    is_best(left, totals) -> bool
        Whether a split that divides no class, so that each left[k] is 0 or totals[k], has the greatest gain.
    """

    code: int
    gain: Callable[..., Any]
    pair_score: Callable[..., Any] | None = None
    may_exceed: Callable[..., Any] = _always
    start: Callable[..., Any] | None = None
    move: Callable[..., Any] | None = None
    score: Callable[..., Any] | None = None
    is_best: Callable[..., Any] = are_two_classes


@bare_device
def sum_of(values):
    """Return the sum of an array; np.sum would take a hundred times as long to compile."""
    total = 0
    for i in range(len(values)):
        total += values[i]
    return total


def mean_over_pairs(distance: Callable[..., Any]) -> Callable[..., Any]:
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


def impurity_decrease(term: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled gain that is the decrease of an impurity, the sum of term(q_k) over the classes k."""

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
            whole = weight * term((left[k] + right[k]) / weight)
            decrease += whole - left_weight * term(left[k] / left_weight) - right_weight * term(right[k] / right_weight)
        return decrease / weight

    return gain


@bare_device
def association(left_0, left_1, total_0, total_1):
    """Return d = total_0 left_1 - total_1 left_0, the determinant of the contingency table of class and side."""
    return np.float64(total_0) * np.float64(left_1) - np.float64(total_1) * np.float64(left_0)


@bare_device
def margins(left_0, left_1, total_0, total_1):
    """Return the product of the margins of the contingency table; association / sqrt(product) is the correlation."""
    first, second = np.float64(left_0), np.float64(left_1)
    # For large totals, the node weight minus the left weight could be 0 although the right side is not empty.
    on_left, on_right = first + second, (np.float64(total_0) - first) + (np.float64(total_1) - second)
    return (np.float64(total_0) * np.float64(total_1)) * (on_left * on_right)


@bare_device
def reset_order(n, buffers):
    """Set the order of n classes to 0, 1, ...: all are on the right, so that the fraction on the left is 0."""
    for k in range(np.uint64(n)):
        place_class(k, k, buffers)


@bare_device
def place_class(k, index, buffers):
    """Set the index of a class in the order."""
    buffers.order[index], buffers.index_of[k] = k, index
