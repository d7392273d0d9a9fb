"""Gains and scores of all criteria, compared with textbook formulas in exact fractions."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aucforest.tree.criteria.criterion import ROUNDING, ScoreBuffers
from aucforest.tree.criteria.entropy import entropy_table
from aucforest.tree.criteria.table import CRITERIA
from tests.reference.growing import rank_of
from tests.reference.tree import GAINS
from tests.tree.criteria.scoring import FORMS, children, exceeds, gain, is_best, score_many, score_pair, split_gain
from tests.tree.growing import NAMES


@pytest.mark.parametrize("criterion", NAMES)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_no_split_has_a_greater_gain_than_an_optimal_split(criterion, totals):
    code, of_node = CRITERIA[criterion], np.array(totals)
    lefts = [np.array(left) for left in product(*(range(total + 1) for total in totals))]
    most = max(split_gain(code, left, of_node - left) for left in lefts)
    undivided = [left for left in lefts if np.all((left == 0) | (left == of_node)) and 0 < left.sum() < of_node.sum()]
    optimal = [left for left in undivided if is_best(code, left, of_node)]
    for left in optimal:
        assert split_gain(code, left, of_node - left) == pytest.approx(most, abs=ROUNDING)
    if len(totals) == 2 or (criterion == "gini" and len(set(totals)) == 1):
        assert len(optimal) == len(undivided)
    if criterion == "auc" or (criterion == "entropy" and len(set(totals)) == 1 and len(totals) % 2 == 0):
        assert len(optimal) > 0


@pytest.mark.parametrize("criterion", NAMES)
@given(children())
def test_gain_is_that_of_the_definition(criterion, sides):
    assert gain(criterion, *sides) == pytest.approx(float(GAINS[criterion](*sides)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("criterion", "offset"), FORMS)
@given(
    totals=st.tuples(st.integers(1, 99), st.integers(1, 99)),
    fractions=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9),
    unit=st.sampled_from([1, 1, 7, 2**40 - 87, 2**48]) | st.just(2**54 + 1),  # has no exact float64
    with_table=st.booleans(),
)
def test_scores_of_two_classes(criterion, offset, totals, fractions, unit, with_table):
    lefts = np.rint(np.array(fractions) * totals).astype(np.int64)
    lefts = unit * lefts[(lefts.sum(axis=1) > 0) & (lefts.sum(axis=1) < sum(totals))]
    totals = unit * np.array(totals)
    table = entropy_table([CRITERIA[criterion]], float(totals.sum()) if with_table else math.inf)
    code, buffers = CRITERIA[criterion] + offset, ScoreBuffers.of(2, table)
    unit_of_score = float(totals[0]) * float(totals[1]) if code == CRITERIA["auc"] else 1.0
    for left in lefts:
        # The score of the fast form; without a fast form, the gain.
        expected = float(rank_of(criterion, left.tolist(), (totals - left).tolist())[offset == 0])
        score = score_pair(code, left, totals, buffers)
        assert score / unit_of_score == pytest.approx(expected, rel=0, abs=0.1 * ROUNDING)
        # `may_exceed` is true for all scores above the bar and, except for entropy, false for scores clearly below it.
        tie = ROUNDING * unit_of_score
        for bar in (tie, max(0.5 * score, tie), max(score - tie, tie)):
            assert score <= bar or exceeds(code, left, totals, bar)
        if offset == 0 and criterion != "entropy" and score < 1.4 * unit_of_score:
            assert not exceeds(code, left, totals, score + 1e-6 * unit_of_score)


@pytest.mark.parametrize(("criterion", "offset"), FORMS)
@given(children(), st.booleans())
def test_scores_of_more_classes(criterion, offset, sides, with_table):
    left, right = np.array(sides)
    is_present = left + right > 0
    assume(np.count_nonzero(is_present) > 2)
    left, right = left[is_present], right[is_present]
    table = entropy_table([CRITERIA[criterion]], float((left + right).sum()) if with_table else math.inf)
    code, buffers = CRITERIA[criterion] + offset, ScoreBuffers.of(len(left), table)
    expected = gain(criterion, left, right)
    for bar in (0.0, expected - 1.5 * ROUNDING):
        score = score_many(code, left, left + right, max(bar, 0.0), buffers)
        assert score == pytest.approx(max(expected, 0.0), rel=0, abs=1.5 * ROUNDING)
    assert score_many(code, left, left + right, expected + ROUNDING, buffers) == expected + ROUNDING
