"""The table of criteria by name and code, and functions compiled for each of them.

The definition of a criterion is a function of the class totals of both children. Most criteria also have fast forms:
functions that score many splits of a node in less time. For two classes, they take the class totals on the left of each
split. For more classes, they take the weights that move to the left between two splits. Fast forms may differ from the
definition by rounding errors, so gains that differ by at most `ROUNDING` are ties. Trees store the gain by definition.

Let a_k be the fraction of class k that a split sends to the left, and q_k the frequency of class k in a node:

auc         mean over pairs of max((1 - a_i + a_j) / 2, (1 - a_j + a_i) / 2), minus 1/2
gini        decrease of the Gini impurity 1 - sum q_k^2
entropy     decrease of the entropy -sum q_k log2 q_k, in bits
hellinger   mean over pairs of the Hellinger distance between (a_i, 1 - a_i) and (a_j, 1 - a_j)
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from aucforest._compile import bare_device, by_code
from aucforest.tree.criteria import auc, entropy, gini, hellinger
from aucforest.tree.criteria.auc import PAIR_SUM_LIMIT
from aucforest.tree.criteria.criterion import AUC, CUSTOM_CRITERION, ENTROPY, ROUNDING, Criterion
from aucforest.tree.criteria.custom import prepare_node

# Below this product of class totals, the scores of AUC for two classes are exact integers.
_EXACT_LIMIT = 2.0**50

TABLE = {
    "auc": auc.CRITERION,
    "gini": gini.CRITERION,
    "entropy": entropy.CRITERION,
    "hellinger": hellinger.CRITERION,
}
CRITERIA = {name: criterion.code for name, criterion in TABLE.items()} | {"log_loss": ENTROPY}


def _define_pair_score(gain: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Criterion.pair_score` for a criterion that only has a definition."""

    @bare_device
    def pair_score(left_0, left_1, total_0, total_1, buffers):
        left, right = buffers.left[:2], buffers.right[:2]
        left[0], left[1], right[0], right[1] = left_0, left_1, total_0 - left_0, total_1 - left_1
        return gain(left, right)

    return pair_score


@bare_device
def _start_without_state(totals, bar, crowded, buffers):
    """Return a placeholder, because the definition needs no state."""
    return 0.0


@bare_device
def _keep_state(state, k, left, moved_weight, totals, buffers):
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
    if criterion.pair_score is None:
        criterion = criterion._replace(pair_score=_define_pair_score(criterion.gain))
    if criterion.start is None:
        score = _define_score(criterion.gain)
        criterion = criterion._replace(start=_start_without_state, move=_keep_state, score=score)
    return criterion


def by_criterion(
    function: Callable[..., Any], criteria: Iterable[Criterion] = tuple(TABLE.values())
) -> Callable[..., Any]:
    """Return a compiled f(code, *arguments) that calls function(criterion, *arguments) with the `Criterion` of a code.

    The function is compiled once for each criterion, so that the functions of the criterion are inlined.
    """

    def bind(criterion: Criterion) -> Callable[..., Any]:
        return bare_device(lambda *arguments: function(criterion, *arguments))

    return by_code({criterion.code: bind(_with_all_forms(criterion)) for criterion in criteria})


gain_by_definition = by_criterion(bare_device(lambda criterion, left, right: criterion.gain(left, right)))
is_optimal = by_criterion(bare_device(lambda criterion, left, totals: criterion.is_best(left, totals)))


@bare_device
def pair_rounding(criterion, total_0, total_1):
    """Return the difference up to which scores of two classes are ties; 0 for AUC if its scores are exact integers."""
    if criterion != AUC:
        return ROUNDING
    largest = np.float64(total_0) * np.float64(total_1)
    return 0.0 if largest < _EXACT_LIMIT else ROUNDING * largest


@bare_device
def prepare_scores(criterion, classes, buffers):
    """Prepare the buffers for scoring the splits of a node."""
    if criterion == CUSTOM_CRITERION:
        prepare_node(buffers.custom, classes)
    elif classes.n > 2:
        unit = PAIR_SUM_LIMIT / (classes.n * classes.n) if criterion == AUC else 1.0
        for k in range(classes.n):
            buffers.score.scale[k] = unit / classes.totals[k]
