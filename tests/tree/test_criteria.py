"""What a split is worth, against textbook formulas written with numpy, scikit-learn and exact fractions.

All of this runs as plain Python, too.
"""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from aucforest._compile import bare_kernel, by_code
from aucforest.tree.criteria import (
    _TABLE,
    CRITERIA,
    ROUNDING,
    Criterion,
    ScoreBuffers,
    entropy_table,
    split_gain,
    start_scores,
)
from aucforest.tree.histogram import Classes, Histogram
from aucforest.tree.scan import _define_pair, _many_scan
from aucforest.tree.splitter import SplitBuffers
from tests.reference.growing import rank_of
from tests.reference.tree import GAINS
from tests.tree.growing import NAMES

# Beside every criterion one that has its definition alone.
_ALONE = 10
_ROWS = [*_TABLE.values(), *(Criterion(_ALONE + row.code, row.gain) for row in _TABLE.values())]
_score_pair = by_code({row.code: row.pair or _define_pair(row.gain) for row in _ROWS})
_scan_many = by_code({row.code: _many_scan(row) for row in _ROWS})


@bare_kernel
def score_pair(code, left, totals, bar, buffers):
    """Score a split of two classes."""
    return _score_pair(code, left[0], left[1], totals[0], totals[1], bar, buffers)


@bare_kernel
def scan_many(code, histogram, classes, first, stop, missing_left, gain, buffers):
    """Scan splits of more classes."""
    start_scores(code, classes.totals, classes, buffers)
    return _scan_many(code, histogram, classes, (first, stop), missing_left, gain, buffers)


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
    assert gain(criterion, *sides) == pytest.approx(float(GAINS[criterion](*sides)), rel=1e-12, abs=1e-12)


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


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_hellinger_gain_is_the_distance_of_two_distributions(a, b):
    expected = np.linalg.norm(np.sqrt([a / 1e6, 1 - a / 1e6]) - np.sqrt([b / 1e6, 1 - b / 1e6]))
    distance = gain("hellinger", [a, b], [10**6 - a, 10**6 - b])
    assert distance == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert distance == gain("hellinger", [b, a], [10**6 - b, 10**6 - a])
    assert gain("hellinger", [a, a], [10**6 - a, 10**6 - a]) == 0.0


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


@pytest.mark.parametrize("criterion", NAMES)
@given(st.integers(1, 9), st.integers(1, 9))
def test_of_two_classes_no_split_beats_pure_children(criterion, total_0, total_1):
    most = max(
        gain(criterion, left, np.subtract((total_0, total_1), left))
        for left in product(range(total_0 + 1), range(total_1 + 1))
    )
    assert gain(criterion, [total_0, 0], [0, total_1]) == pytest.approx(most, rel=1e-12)


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
def test_gini_is_auc_that_rewards_splits_near_the_ends(n0, n1, data):
    left = [data.draw(st.integers(0, n)) for n in (n0, n1)]
    right = [n0 - left[0], n1 - left[1]]
    assume(sum(left) > 0 and sum(right) > 0)
    n = n0 + n1
    difference = 2 * gain("auc", left, right)
    expected = 2 * (n0 * n1 / n**2 * difference) ** 2 / (sum(left) * sum(right) / n**2)
    assert gain("gini", left, right) == pytest.approx(expected, abs=1e-12)


UNITS = st.sampled_from([1, 1, 7, 2**40 - 87, 2**48])


@pytest.mark.parametrize("alone", [0, _ALONE])
@pytest.mark.parametrize("criterion", NAMES)
@settings(max_examples=50)
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
    table = entropy_table(CRITERIA[criterion], float(totals.sum()) if with_table else math.inf)
    code, buffers = CRITERIA[criterion] + alone, ScoreBuffers.of(2, table)
    for left in lefts:
        # The gain of a definition, or what the fast form ranks by.
        expected = float(rank_of(criterion, left.tolist(), (totals - left).tolist())[alone == 0])
        same = pytest.approx(expected, rel=0, abs=0.1 * ROUNDING)
        assert score_pair(code, left, totals, 0.0, buffers) == same
        # Beyond the bar it is the score, up to it anything that is.
        assert score_pair(code, left, totals, expected - 0.5 * ROUNDING, buffers) == same
        assert score_pair(code, left, totals, expected + 0.5 * ROUNDING, buffers) <= expected + 0.5 * ROUNDING


@st.composite
def histograms(draw):
    """The bins of a feature, (n_bins, n_classes), the class totals of missing values, and those of the node."""
    n_classes, n_bins = draw(st.integers(3, 7)), draw(st.integers(2, 12))
    row = st.lists(st.sampled_from([0, 0, 1, 2, 30]), min_size=n_classes, max_size=n_classes)
    bins = np.array(draw(st.lists(row.filter(any), min_size=n_bins, max_size=n_bins)))
    missing = np.array(draw(row)) * draw(st.booleans())
    present = (bins.sum(axis=0) + missing) > 0
    assume(present.sum() > 2)
    unit = draw(UNITS)
    bins, missing = unit * bins[:, present], unit * missing[present]
    return bins, missing, bins.sum(axis=0) + missing


@pytest.mark.parametrize("alone", [0, _ALONE])
@pytest.mark.parametrize("criterion", NAMES)
@settings(max_examples=50)
@given(parts=histograms(), missing_left=st.booleans(), with_table=st.booleans())
def test_scan_of_more_classes(criterion, alone, parts, missing_left, with_table):
    bins, missing, totals = parts
    code, n_classes = CRITERIA[criterion] + alone, len(totals)
    at, classes = np.nonzero(bins)
    n_bins, none = len(bins), np.empty(0, dtype=np.int64)
    starts = np.searchsorted(at, np.arange(n_bins + 1))
    listed = classes.astype(np.uint32), bins[at, classes], none
    codes = np.arange(n_bins, dtype=np.uint32)
    histogram = Histogram(n_bins, n_classes, bool(missing.any()), 0, missing, codes, none, none, starts, *listed)
    present = Classes(n_classes, np.uint64(3), np.arange(n_classes, dtype=np.int32), totals)
    table = entropy_table(CRITERIA[criterion], float(totals.sum()) if with_table else math.inf)
    buffers = SplitBuffers.of(1, 1, n_classes, table)

    lefts = np.cumsum(bins, axis=0) + missing * missing_left
    stop = n_bins if missing.any() and not missing_left else n_bins - 1
    sides = zip(lefts[:stop].tolist(), (totals - lefts).tolist())
    gains = [float(GAINS[criterion](left, right)) for left, right in sides]
    best, bar = -1, ROUNDING
    for t, exact in enumerate(gains):
        if exact > bar:
            best, bar = t, exact + ROUNDING
    found, place = scan_many(code, histogram, present, 0, stop, missing_left, 0.0, buffers)
    assert place == best
    assert found == pytest.approx(gains[best] if best >= 0 else 0.0, rel=0, abs=0.1 * ROUNDING)
    # Bounds on the way to a split hide nothing, and what they promise is there.
    for t, exact in enumerate(gains):
        found, place = scan_many(code, histogram, present, t, t + 1, missing_left, exact - 1.5 * ROUNDING, buffers)
        assert (place, found) == (t, pytest.approx(exact, rel=0, abs=0.1 * ROUNDING))
        assert scan_many(code, histogram, present, t, t + 1, missing_left, exact - 0.5 * ROUNDING, buffers)[1] == -1
