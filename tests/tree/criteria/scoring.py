"""Gains and scores of single splits, for the tests of the criteria."""

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.criteria.auc import PAIR_SUM_LIMIT
from aucforest.tree.criteria.criterion import AUC, ROUNDING, Criterion, ScoreBuffers
from aucforest.tree.criteria.table import CRITERIA, TABLE, by_criterion, gain_by_definition, is_optimal
from aucforest.tree.random_split import _score_more_classes
from tests.reference.growing import rank_of
from tests.tree.growing import NAMES

# All criteria, and Gini without fast forms, whose code is greater by _OFFSET.
_OFFSET = 10
_CRITERIA = [*TABLE.values(), Criterion(_OFFSET + CRITERIA["gini"], TABLE["gini"].gain)]
FORMS = [*((name, 0) for name in NAMES), ("gini", _OFFSET)]
_score_pair = by_criterion(bare_device(lambda criterion, *arguments: criterion.pair_score(*arguments)), _CRITERIA)
_exceeds = by_criterion(bare_device(lambda criterion, *arguments: criterion.may_exceed(*arguments)), _CRITERIA)
_score_more_classes = by_criterion(_score_more_classes, _CRITERIA)


@bare_kernel
def score_pair(code, left, totals, buffers):
    return _score_pair(code, left[0], left[1], totals[0], totals[1], buffers)


@bare_kernel
def exceeds(code, left, totals, bar):
    return _exceeds(code, left[0], left[1], totals[0], totals[1], bar)


@bare_kernel
def is_best(code, left, totals):
    return is_optimal(code, left, totals)


@bare_kernel
def score_many(code, left, totals, best_score, buffers):
    """Score a split of more classes, whose weight moves to the left class by class."""
    unit = PAIR_SUM_LIMIT / len(totals) ** 2 if code == AUC else 1.0
    for k in range(len(totals)):
        buffers.scale[k] = unit / totals[k]
    return _score_more_classes(code, left, totals, best_score, buffers)


@bare_kernel
def split_gain(criterion, left, right):
    return gain_by_definition(criterion, left, right)


def gain(criterion: str, left, right) -> float:
    return split_gain(CRITERIA[criterion], np.array(left, dtype=np.int64), np.array(right, dtype=np.int64))


@st.composite
def children(draw, most=10**6):
    """Class totals of two nonempty children that have at least two classes in total."""
    n_classes = draw(st.integers(2, 6))
    totals = st.lists(st.integers(0, draw(st.sampled_from([3, 50, most]))), min_size=n_classes, max_size=n_classes)
    left, right = draw(totals), draw(totals)
    assume(sum(a + b > 0 for a, b in zip(left, right)) > 1 and sum(left) > 0 and sum(right) > 0)
    return left, right


def check_weights_far_apart(criterion):
    """Check scores of splits whose weight on the right is below the rounding error of the node weight."""
    for weight_right in (1, 200):
        totals = np.array([2**60, 2**40])
        left = totals - (0, weight_right)
        _, expected = rank_of(criterion, left.tolist(), (totals - left).tolist())
        score = score_pair(CRITERIA[criterion], left, totals, ScoreBuffers.of(2, np.empty(0)))
        assert score == pytest.approx(expected, rel=1e-9, abs=0.1 * ROUNDING)
        assert expected < ROUNDING or exceeds(CRITERIA[criterion], left, totals, 0.99 * expected)
