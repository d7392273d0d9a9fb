"""Entropy: the decrease of the entropy of a node in bits, -sum q_k log2 q_k, with q_k its class frequencies."""

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device
from aucforest.tree.criteria.criterion import DRIFT, ENTROPY, Criterion, association, impurity_decrease, margins, sum_of

# A little less than ln 2, because the bound in `_may_exceed` has rounding errors.
_LN_2 = (1.0 - 1e-6) * math.log(2.0)
# The table has n log2 n for n below this number. It takes up to 32 MiB.
_TABLE_SIZE = 2**22


def entropy_table(criteria: Collection[int], weight: float) -> NDArray[np.float64]:
    """Return n log2 n for n up to the weight of a tree; empty if the weight is large or no criterion is entropy."""
    if ENTROPY not in criteria or not weight < _TABLE_SIZE:
        return np.empty(0)
    table = np.arange(int(weight) + 1, dtype=np.float64)
    table[1:] *= np.log2(table[1:])
    return table


@bare_device
def _x_log_x(x: float) -> float:
    """Return x log2 x, and 0 at 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


@bare_device
def _n_log_n(n, weight, table):
    """Return n log2 n from the table; without a table, return n log2 (n / weight).

    The two results differ by a multiple of n. Such terms cancel in a decrease of the entropy.
    """
    if len(table) > 0:
        return table[np.uint64(np.int64(n))]
    return weight * _x_log_x(n / weight)


@bare_device
def _pair_score(left_0, left_1, total_0, total_1, buffers):
    weight, table = np.float64(total_0 + total_1), buffers.table
    node = _n_log_n(weight, weight, table) - _n_log_n(total_0, weight, table) - _n_log_n(total_1, weight, table)
    class_terms = _n_log_n(left_0, weight, table) + _n_log_n(left_1, weight, table)
    class_terms += _n_log_n(total_0 - left_0, weight, table) + _n_log_n(total_1 - left_1, weight, table)
    on_left = left_0 + left_1
    child_terms = _n_log_n(on_left, weight, table) + _n_log_n(total_0 + total_1 - on_left, weight, table)
    return (node - (child_terms - class_terms)) / weight


@bare_device
def _may_exceed(left_0, left_1, total_0, total_1, bar):
    """Return whether the score may exceed `bar`. It is at most r**2 / ln 2, with r the correlation of class and side.

    The score is the relative entropy of the joint distribution of class and side to the product of its marginals. The
    bound is their chi-squared distance (Gibbs, Su 2002, On choosing and bounding probability metrics).
    """
    d = association(left_0, left_1, total_0, total_1)
    return d * d > (_LN_2 * bar) * margins(left_0, left_1, total_0, total_1)


@bare_device
def _class_terms(left, totals, weight, table):
    """Return the sum of n log2 n over the class totals of both children."""
    class_terms = 0.0
    for k in range(len(totals)):
        class_terms += _n_log_n(left[k], weight, table) + _n_log_n(totals[k] - left[k], weight, table)
    return class_terms


@bare_device
def _start(totals, bar, crowded, buffers):
    """Return the state: the sum of n log2 n over the class totals of both children, left weight, node weight, and base.

    The base is the entropy of the node, times minus its weight.
    """
    weight, class_terms = np.float64(sum_of(totals)), 0.0
    for k in range(len(totals)):
        class_terms += _n_log_n(totals[k], weight, buffers.table)
    return class_terms, 0.0, weight, class_terms - _n_log_n(weight, weight, buffers.table)


@bare_device
def _move(state, k, left, moved_weight, totals, buffers):
    class_terms, left_weight, weight, base = state
    right, table = totals[k] - left[k], buffers.table
    class_terms += _n_log_n(left[k], weight, table) - _n_log_n(left[k] - moved_weight, weight, table)
    class_terms += _n_log_n(right, weight, table) - _n_log_n(right + moved_weight, weight, table)
    return class_terms, left_weight + moved_weight, weight, base


@bare_device
def _score(state, bar, left, totals, buffers):
    """Return the state and the gain. If the gain may exceed `bar`, class_terms is computed anew, without drift."""
    class_terms, left_weight, weight, base = state
    child_terms = _n_log_n(left_weight, weight, buffers.table) + _n_log_n(weight - left_weight, weight, buffers.table)
    if (class_terms - child_terms - base) / weight > bar - DRIFT:
        class_terms = _class_terms(left, totals, weight, buffers.table)
    return (class_terms, left_weight, weight, base), (class_terms - child_terms - base) / weight


@bare_device
def _half_of_weight(left, totals):
    """Return whether there are two classes, or a split that divides no class halves the weight, up to one unit.

    The gain is at most the entropy of the weights of both sides, and equals it if the split divides no class.
    """
    return len(totals) == 2 or abs(sum_of(totals) - 2 * sum_of(left)) < 2


_gain = impurity_decrease(bare_device(lambda frequency: -_x_log_x(frequency)))
CRITERION = Criterion(ENTROPY, _gain, _pair_score, _may_exceed, _start, _move, _score, _half_of_weight)
