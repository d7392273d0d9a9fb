"""What a cut is worth, against textbook formulas written with numpy, scikit-learn and exact fractions."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from aucforest.tree.criteria import CRITERIA, OWN, cannot_be_beaten, split_gain, hellinger_distance, x_log_x
from tests.reference import tree as reference

NAMES = ["auc", "gini", "entropy", "hellinger"]


def gain(criterion: str, left, right) -> float:
    return split_gain(CRITERIA[criterion], np.array(left, dtype=np.int64), np.array(right, dtype=np.int64))


@st.composite
def children(draw, most=10**6):
    """Class totals of two children that hold something, at least two classes of it."""
    n_classes = draw(st.integers(2, 6))
    totals = st.lists(st.integers(0, draw(st.sampled_from([3, 50, most]))), min_size=n_classes, max_size=n_classes)
    left, right = draw(totals), draw(totals)
    assume(sum(a + b > 0 for a, b in zip(left, right)) > 1 and sum(left) > 0 and sum(right) > 0)
    return left, right


def test_log_loss_is_entropy():
    assert CRITERIA["log_loss"] == CRITERIA["entropy"]
    assert set(CRITERIA) == {*NAMES, "log_loss"}


@pytest.mark.parametrize("criterion", NAMES)
@given(children())
def test_gain_is_what_the_definition_says(criterion, sides):
    assert gain(criterion, *sides) == pytest.approx(float(reference.GAINS[criterion](*sides)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_pure_children_gain_the_most(n_classes):
    left, right = [7] + [0] * (n_classes - 1), [0] + [9] * (n_classes - 1)
    # Classes on the same side are not told apart: only the pairs with class 0 are.
    told_apart = (n_classes - 1) / math.comb(n_classes, 2)
    assert gain("auc", left, right) == pytest.approx(0.5 * told_apart, rel=1e-15)
    assert gain("hellinger", left, right) == pytest.approx(math.sqrt(2) * told_apart, rel=1e-15)
    if n_classes == 2:
        assert gain("gini", [8, 0], [0, 8]) == 0.5
        assert gain("entropy", [8, 0], [0, 8]) == 1.0


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


def numpy_decrease(impurity, left, right) -> float:
    def weighted(totals):
        totals = np.asarray(totals, dtype=float)
        return totals.sum() * impurity(totals / totals.sum())

    node = np.add(left, right)
    return (weighted(node) - weighted(left) - weighted(right)) / node.sum()


@given(children())
def test_impurities_are_the_textbook_ones(sides):
    assert gain("gini", *sides) == pytest.approx(numpy_decrease(lambda q: 1 - np.sum(q**2), *sides), abs=1e-12)

    def bits(q):
        return -np.sum(q[q > 0] * np.log2(q[q > 0]))

    assert gain("entropy", *sides) == pytest.approx(numpy_decrease(bits, *sides), abs=1e-12)


@given(st.floats(0, 1), st.floats(0, 1))
def test_hellinger_distance_is_that_of_two_distributions(a, b):
    expected = np.linalg.norm(np.sqrt([a, 1 - a]) - np.sqrt([b, 1 - b]))
    assert hellinger_distance(a, b) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert hellinger_distance(a, b) == hellinger_distance(b, a)
    assert hellinger_distance(a, a) == 0.0


@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-9])
def test_hellinger_distance_of_nearly_equal_classes_does_not_cancel(step):
    # To first order the distance is |a - b| / (2 sqrt(a (1 - a))).
    assert hellinger_distance(0.2, 0.2 + step) == pytest.approx(step / 0.8, rel=2 * step + 1e-6)


@pytest.mark.parametrize("criterion", NAMES)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6), st.integers(1, 1000), st.integers(1, 1000))
def test_a_cut_that_keeps_all_shares_gains_nothing(criterion, totals, a, b):
    assume(sum(t > 0 for t in totals) > 1)
    assert abs(gain(criterion, [t * a for t in totals], [t * b for t in totals])) <= 1e-15


@pytest.mark.parametrize("criterion", NAMES)
def test_an_empty_side_gains_nothing(criterion):
    assert gain(criterion, [0, 0, 0], [3, 4, 5]) == 0.0
    assert gain(criterion, [3, 4, 5], [0, 0, 0]) == 0.0
    assert gain(criterion, [0, 6], [0, 3]) == 0.0


@pytest.mark.parametrize("criterion", NAMES)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_no_split_beats_one_that_cannot_be_beaten(criterion, totals):
    most = max(
        gain(criterion, left, np.subtract(totals, left)) for left in product(*(range(total + 1) for total in totals))
    )
    for is_left in product((0, 1), repeat=len(totals)):
        left = np.multiply(is_left, totals)
        if cannot_be_beaten(CRITERIA[criterion], sum(is_left), len(totals)):
            assert gain(criterion, left, np.subtract(totals, left)) == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("criterion", [OWN, max(CRITERIA.values()) + 1])
def test_of_other_criteria_nothing_is_assumed(criterion):
    assert not cannot_be_beaten(criterion, 1, 2)


@pytest.mark.parametrize("criterion", NAMES)
@given(children())
def test_gain_is_never_negative_and_symmetric(criterion, sides):
    left, right = sides
    assert gain(criterion, left, right) >= -1e-12
    assert gain(criterion, left, right) == pytest.approx(gain(criterion, right, left), abs=1e-12)
    assert gain(criterion, left[::-1], right[::-1]) == pytest.approx(gain(criterion, left, right), abs=1e-12)


@pytest.mark.parametrize("criterion", NAMES)
@given(children(), st.integers(0, 6))
def test_classes_absent_from_the_node_do_not_count(criterion, sides, place):
    left, right = sides
    wider = [[*side[:place], 0, *side[place:]] for side in (left, right)]
    assert gain(criterion, *wider) == gain(criterion, left, right)


@given(children(most=1000), st.integers(1, 1000))
def test_auc_and_hellinger_do_not_see_the_weight_of_a_class(sides, factor):
    heavier = [[side[0] * factor, *side[1:]] for side in sides]
    for criterion in ("auc", "hellinger"):
        assert gain(criterion, *heavier) == pytest.approx(gain(criterion, *sides), abs=1e-12)


@given(st.integers(1, 500), st.integers(1, 500), st.data())
def test_gini_is_auc_that_rewards_cuts_near_the_ends(n0, n1, data):
    left = [data.draw(st.integers(0, n)) for n in (n0, n1)]
    right = [n0 - left[0], n1 - left[1]]
    assume(sum(left) > 0 and sum(right) > 0)
    n = n0 + n1
    difference = 2 * gain("auc", left, right)
    expected = 2 * (n0 * n1 / n**2 * difference) ** 2 / (sum(left) * sum(right) / n**2)
    assert gain("gini", left, right) == pytest.approx(expected, abs=1e-12)


def test_x_log_x_at_its_ends():
    assert [x_log_x(x) for x in (0.0, 0.5, 1.0, 2.0)] == [0.0, -0.5, 0.0, 2.0]
