"""What a split is worth, against textbook formulas written with numpy, scikit-learn and exact fractions.

All of this runs as plain Python, too.
"""

import math
from bisect import bisect_left
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.criteria import (
    _TABLE,
    CRITERIA,
    ROUNDING,
    Criterion,
    ScoreBuffers,
    by_criterion,
    entropy_table,
    gain_by_definition,
    is_optimal,
    start_scores,
    sum_of,
)
from aucforest.tree.histogram import add_to_cells, clear, list_filled, make_histogram, next_bin
from aucforest.tree.scan import _LONG, Constraint, Splits, scan_many, scan_pair
from aucforest.tree.splitter import SplitBuffers
from tests.reference.growing import rank_of
from tests.reference.tree import GAINS
from tests.tree.growing import NAMES, number_classes

# Beside all criteria one that has its definition alone.
_ALONE = 10
_ROWS = [*_TABLE.values(), Criterion(_ALONE + CRITERIA["gini"], _TABLE["gini"].gain)]
_FORMS = [*((name, 0) for name in NAMES), ("gini", _ALONE)]
_score_pair = by_criterion(bare_device(lambda criterion, *arguments: criterion.pair(*arguments)), _ROWS)
_exceeds = by_criterion(bare_device(lambda criterion, *arguments: criterion.exceeds(*arguments)), _ROWS)
_scan_pair = by_criterion(scan_pair, _ROWS)
_scan_many = by_criterion(scan_many, _ROWS)
_LABELS = np.arange(64, dtype=np.int32)


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
def scan_counts(code, counts, totals, keeps_empty, missing_left, span, gain, buffers):
    """Scan the splits of a feature, given the class totals at all codes, the missing one last.

    Return the gain, the last code on the left and the first one on the right.
    """
    classes = number_classes(_LABELS[: len(totals)], totals, sum_of(totals), buffers.histogram.indices)
    start_scores(code, classes, buffers)
    cells = buffers.histogram.cells[0]
    for at in range(len(counts)):
        for k in range(len(totals)):
            add_to_cells(cells, np.uint64(at), k, counts[at, k], classes.shift)
    n_listed = np.int64(-1) if keeps_empty else list_filled(len(counts), classes, cells, buffers.histogram)
    histogram = make_histogram(n_listed, len(counts), classes, False, cells, buffers.histogram)
    first = max(span[0], histogram.first)
    stop = min(span[1], histogram.n_bins if histogram.has_missing and not missing_left else histogram.n_bins - 1)
    splits = Splits(histogram, classes, first, stop, missing_left, Constraint(False, 0, 0.0, 1.0))
    if classes.n == 2:
        gain, index = _scan_pair(code, splits, gain, buffers)
    else:
        gain, index = _scan_many(code, splits, gain, buffers)
    last, following = np.int64(-1), np.int64(-1)
    if index >= 0:
        after = next_bin(histogram, index)
        last = np.int64(histogram.codes[index])
        following = np.int64(histogram.codes[after]) if after < histogram.n_bins else np.int64(-1)
    clear(histogram)
    return gain, last, following


ALL = (0, 2**40)


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
def test_classes_absent_from_the_node_do_not_count(criterion, sides, index):
    left, right = sides
    wider = [[*side[:index], 0, *side[index:]] for side in (left, right)]
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


@pytest.mark.slow  # compiling all scans takes long; test_splitter.py holds grown trees to the same splits
@pytest.mark.parametrize(("criterion", "alone"), _FORMS)
@given(
    seed=st.integers(0, 10**6),
    n_codes=st.sampled_from([3, 20, int(_LONG), 256]),
    frequency=st.sampled_from([0.05, 0.5, 1.0]),
    trend=st.sampled_from([0.0, 0.02, 1.0]),
    missing=st.booleans(),
    missing_left=st.booleans(),
    unit=st.sampled_from([1, 1, 2**40 - 87]),
)
def test_scan_of_two_classes(criterion, alone, seed, n_codes, frequency, trend, missing, missing_left, unit):
    """Few bins and many, empty ones left out or kept: the best split, and the lowest of those that tie."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (n_codes, 2)) * (rng.random((n_codes, 1)) < frequency)
    counts[:, 1] = rng.binomial(counts[:, 1], np.clip(0.3 + trend * np.linspace(-0.5, 0.5, n_codes), 0.0, 1.0))
    counts[-1] *= missing
    counts *= unit
    totals = counts.sum(axis=0)
    filled = np.flatnonzero(counts[:-1].any(axis=1))
    assume(totals.all() and len(filled) > 1)
    code, buffers = CRITERIA[criterion] + alone, SplitBuffers.of(1, n_codes, 2, np.empty(0))
    unit_of_score = float(totals[0]) * float(totals[1]) if code == CRITERIA["auc"] else 1.0
    last = None if counts[-1].any() and not missing_left else -1
    lefts = counts[filled].cumsum(axis=0) + counts[-1] * missing_left
    bar, best = ROUNDING, -1
    for t, left in enumerate(lefts[:last].tolist()):
        score = float(rank_of(criterion, left, (totals - left).tolist())[alone == 0])
        if score > bar:
            best, bar = t, score + ROUNDING
    expected = (filled[best], (*filled, -1)[best + 1]) if best >= 0 else (-1, -1)
    for keeps_empty in (False, True):
        found, *codes = scan_counts(code, counts, totals, keeps_empty, missing_left, ALL, 0.0, buffers)
        assert tuple(codes) == expected
        assert found / unit_of_score == pytest.approx(bar - ROUNDING if best >= 0 else 0.0, rel=0, abs=0.1 * ROUNDING)
        assert not buffers.histogram.cells.any()


@pytest.mark.slow
def test_ties_of_small_gains_go_to_the_lower_bin():
    """Two of many splits hardly differ in a small gain, the later one at the end of a block."""
    unit, later = 2**36, 2**30

    def count(earlier):
        counts = np.full((_LONG + 25, 2), unit)
        counts[-1] = 0
        counts[[3, 4, 31, 32], 1] += np.array([earlier, -earlier, later, -later])
        return counts

    def scores(earlier):
        totals, lefts = count(earlier).sum(axis=0), count(earlier).cumsum(axis=0)
        return [rank_of("gini", lefts[t].tolist(), (totals - lefts[t]).tolist())[1] for t in (3, 31)]

    earlier = bisect_left(range(later), -0.3 * ROUNDING, key=lambda earlier: np.subtract(*scores(earlier))) - 1
    low, high = scores(earlier)
    assert 0.3 * ROUNDING < high - low < ROUNDING < 1e-9 < low < 1e-3
    counts, buffers = count(earlier), SplitBuffers.of(1, _LONG + 25, 2, np.empty(0))
    found = scan_counts(CRITERIA["gini"], counts, counts.sum(axis=0), False, False, ALL, 0.0, buffers)
    assert found[1:] == (3, 4)


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


@pytest.mark.slow
@pytest.mark.parametrize(("criterion", "alone"), _FORMS)
@given(parts=histograms(), missing_left=st.booleans(), with_table=st.booleans())
def test_scan_of_more_classes(criterion, alone, parts, missing_left, with_table):
    bins, missing, totals = parts
    code, n_classes = CRITERIA[criterion] + alone, len(totals)
    n_bins, counts = len(bins), np.concatenate((bins, missing[None]))
    table = entropy_table([CRITERIA[criterion]], float(totals.sum()) if with_table else math.inf)
    buffers = SplitBuffers.of(1, n_bins + 1, n_classes, table)

    lefts = np.cumsum(bins, axis=0) + missing * missing_left
    stop = n_bins if missing.any() and not missing_left else n_bins - 1
    sides = zip(lefts[:stop].tolist(), (totals - lefts).tolist())
    gains = [float(GAINS[criterion](left, right)) for left, right in sides]
    best, bar = -1, ROUNDING
    for t, exact in enumerate(gains):
        if exact > bar:
            best, bar = t, exact + ROUNDING
    found, index, _ = scan_counts(code, counts, totals, False, missing_left, ALL, 0.0, buffers)
    assert index == best
    assert found == pytest.approx(gains[best] if best >= 0 else 0.0, rel=0, abs=0.1 * ROUNDING)
    # Bounds on the way to a split hide nothing, and what they promise is there.
    for t, exact in enumerate(gains):
        found, index, _ = scan_counts(
            code, counts, totals, False, missing_left, (t, t + 1), exact - 1.5 * ROUNDING, buffers
        )
        assert (index, found) == (t, pytest.approx(exact, rel=0, abs=0.1 * ROUNDING))
        below = exact - 0.5 * ROUNDING
        assert scan_counts(code, counts, totals, False, missing_left, (t, t + 1), below, buffers)[1] == -1
