"""What a split is worth, against textbook formulas written with numpy, scikit-learn and exact fractions.

All of this runs as plain Python, too.
"""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.criteria import (
    _PAIR_SUM_LIMIT,
    _TABLE,
    AUC,
    CRITERIA,
    ROUNDING,
    Criterion,
    ScoreBuffers,
    by_criterion,
    entropy_table,
    gain_by_definition,
    is_optimal,
)
from aucforest.tree.random_split import _score_many
from tests.reference.growing import rank_of
from tests.reference.tree import GAINS
from tests.tree.growing import NAMES

# Beside all criteria one that has its definition alone.
_ALONE = 10
_ROWS = [*_TABLE.values(), Criterion(_ALONE + CRITERIA["gini"], _TABLE["gini"].gain)]
_FORMS = [*((name, 0) for name in NAMES), ("gini", _ALONE)]
_score_pair = by_criterion(bare_device(lambda criterion, *arguments: criterion.pair(*arguments)), _ROWS)
_exceeds = by_criterion(bare_device(lambda criterion, *arguments: criterion.exceeds(*arguments)), _ROWS)
_score_many = by_criterion(_score_many, _ROWS)


@bare_kernel
def score_pair(code, left, totals, buffers):
    """Score a split of two classes."""
    return _score_pair(code, left[0], left[1], totals[0], totals[1], buffers)


@bare_kernel
def exceeds(code, left, totals, bar):
    """Say whether the score of a split of two classes may exceed the bar."""
    return _exceeds(code, left[0], left[1], totals[0], totals[1], bar)


@bare_kernel
def are_apart(code, left, totals):
    """Say whether a split that sends each class to one side is optimal."""
    return is_optimal(code, left, totals)


@bare_kernel
def score_many(code, left, totals, best_score, buffers):
    """Score a split of more classes, whose weight moves to the left class by class."""
    unit = _PAIR_SUM_LIMIT / len(totals) ** 2 if code == AUC else 1.0
    for k in range(len(totals)):
        buffers.scale[k] = unit / totals[k]
    return _score_many(code, left, totals, best_score, buffers)


@bare_kernel
def _split_gain(criterion, left, right):
    return gain_by_definition(criterion, left, right)


def gain(criterion: str, left, right) -> float:
    return _split_gain(CRITERIA[criterion], np.array(left, dtype=np.int64), np.array(right, dtype=np.int64))


@st.composite
def children(draw, most=10**6):
    """Class totals of two children that hold something, at least two classes of it."""
    n_classes = draw(st.integers(2, 6))
    totals = st.lists(st.integers(0, draw(st.sampled_from([3, 50, most]))), min_size=n_classes, max_size=n_classes)
    left, right = draw(totals), draw(totals)
    assume(sum(a + b > 0 for a, b in zip(left, right)) > 1 and sum(left) > 0 and sum(right) > 0)
    return left, right


@pytest.mark.parametrize("criterion", NAMES)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_no_split_gains_more_than_one_that_is_optimal(criterion, totals):
    code, of_node = CRITERIA[criterion], np.array(totals)
    lefts = [np.array(left) for left in product(*(range(total + 1) for total in totals))]
    most = max(_split_gain(code, left, of_node - left) for left in lefts)
    apart = [left for left in lefts if np.all((left == 0) | (left == of_node)) and 0 < left.sum() < of_node.sum()]
    optimal = [left for left in apart if are_apart(code, left, of_node)]
    for left in optimal:
        assert _split_gain(code, left, of_node - left) == pytest.approx(most, abs=ROUNDING)
    if len(totals) == 2 or (criterion == "gini" and len(set(totals)) == 1):
        assert len(optimal) == len(apart)
    if criterion == "auc" or (criterion == "entropy" and len(set(totals)) == 1 and len(totals) % 2 == 0):
        assert len(optimal) > 0


def test_log_loss_is_entropy():
    assert CRITERIA["log_loss"] == CRITERIA["entropy"]
    assert set(CRITERIA) == {*NAMES, "log_loss"}


@pytest.mark.parametrize("criterion", NAMES)
@given(children())
def test_gain_is_what_the_definition_says(criterion, sides):
    assert gain(criterion, *sides) == pytest.approx(float(GAINS[criterion](*sides)), rel=1e-12, abs=1e-12)


@given(children(most=40))
def test_auc_gain_is_the_mean_roc_auc_over_pairs(sides):
    left, right = map(np.array, sides)
    scores = []
    for i, j in combinations(np.flatnonzero(left + right), 2):
        y_true = np.repeat([0, 0, 1, 1], [left[i], right[i], left[j], right[j]])
        y_score = np.repeat([0, 1, 0, 1], [left[i], right[i], left[j], right[j]])
        auc = roc_auc_score(y_true, y_score)
        scores.append(max(auc, 1 - auc))
    assert gain("auc", left, right) == pytest.approx(np.mean(scores) - 0.5, abs=1e-12)


@pytest.mark.parametrize("step", [10**9, 10**6, 10**3])
def test_hellinger_distance_of_nearly_equal_classes_does_not_cancel(step):
    # To first order the distance of the fractions a and b is |a - b| / (2 sqrt(a (1 - a))).
    whole, a = 10**12, 2 * 10**11
    distance = gain("hellinger", [a, a + step], [whole - a, whole - a - step])
    assert distance == pytest.approx(step / whole / 0.8, rel=2 * step / whole + 1e-6)


@pytest.mark.parametrize("criterion", NAMES)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6), st.integers(1, 1000), st.integers(1, 1000))
def test_a_split_that_keeps_all_frequencies_gains_nothing(criterion, totals, a, b):
    assume(sum(t > 0 for t in totals) > 1)
    assert abs(gain(criterion, [t * a for t in totals], [t * b for t in totals])) <= 1e-15


@pytest.mark.parametrize("criterion", NAMES)
def test_an_empty_side_gains_nothing(criterion):
    assert gain(criterion, [0, 0, 0], [3, 4, 5]) == 0.0
    assert gain(criterion, [3, 4, 5], [0, 0, 0]) == 0.0
    assert gain(criterion, [0, 6], [0, 3]) == 0.0


UNITS = st.sampled_from([1, 1, 7, 2**40 - 87, 2**48])


@pytest.mark.parametrize(("criterion", "alone"), _FORMS)
@given(
    totals=st.tuples(st.integers(1, 99), st.integers(1, 99)),
    fractions=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=9),
    unit=UNITS | st.just(2**54 + 1),  # whose multiples are no float64
    with_table=st.booleans(),
)
def test_scores_of_two_classes(criterion, alone, totals, fractions, unit, with_table):
    lefts = np.rint(np.array(fractions) * totals).astype(np.int64)
    lefts = unit * lefts[(lefts.sum(axis=1) > 0) & (lefts.sum(axis=1) < sum(totals))]
    totals = unit * np.array(totals)
    table = entropy_table([CRITERIA[criterion]], float(totals.sum()) if with_table else math.inf)
    code, buffers = CRITERIA[criterion] + alone, ScoreBuffers.of(2, table)
    unit_of_score = float(totals[0]) * float(totals[1]) if code == CRITERIA["auc"] else 1.0
    for left in lefts:
        # The gain of a definition, or what the fast form ranks by.
        expected = float(rank_of(criterion, left.tolist(), (totals - left).tolist())[alone == 0])
        score = score_pair(code, left, totals, buffers)
        assert score / unit_of_score == pytest.approx(expected, rel=0, abs=0.1 * ROUNDING)
        # What is ruled out is not above the bar; but for entropy, all that is below is ruled out.
        tie = ROUNDING * unit_of_score
        for bar in (tie, max(0.5 * score, tie), max(score - tie, tie)):
            assert score <= bar or exceeds(code, left, totals, bar)
        if alone == 0 and criterion != "entropy" and score < 1.4 * unit_of_score:
            assert not exceeds(code, left, totals, score + 1e-6 * unit_of_score)


@pytest.mark.parametrize("alone", [1, 200])
def test_scores_of_weights_far_apart(alone):
    """What is right of the split is lost in the sum of all weights."""
    totals = np.array([2**60, 2**40])
    left = totals - (0, alone)
    for criterion in ("gini", "entropy"):
        _, expected = rank_of(criterion, left.tolist(), (totals - left).tolist())
        score = score_pair(CRITERIA[criterion], left, totals, ScoreBuffers.of(2, np.empty(0)))
        assert score == pytest.approx(expected, rel=1e-9, abs=0.1 * ROUNDING)
        assert expected < ROUNDING or exceeds(CRITERIA[criterion], left, totals, 0.99 * expected)


@pytest.mark.parametrize(("criterion", "alone"), _FORMS)
@given(children(), st.booleans())
def test_scores_of_more_classes(criterion, alone, sides, with_table):
    left, right = np.array(sides)
    is_present = left + right > 0
    assume(np.count_nonzero(is_present) > 2)
    left, right = left[is_present], right[is_present]
    table = entropy_table([CRITERIA[criterion]], float((left + right).sum()) if with_table else math.inf)
    code, buffers, expected = (
        CRITERIA[criterion] + alone,
        ScoreBuffers.of(len(left), table),
        gain(criterion, left, right),
    )
    for bar in (0.0, expected - 1.5 * ROUNDING):
        score = score_many(code, left, left + right, max(bar, 0.0), buffers)
        assert score == pytest.approx(max(expected, 0.0), rel=0, abs=1.5 * ROUNDING)
    assert score_many(code, left, left + right, expected + ROUNDING, buffers) == expected + ROUNDING
