import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import gains_curve, lift_at_k, optimal_threshold
from aucforest.metrics.at_k import metrics_at_k, precision_at_k, recall_at_fpr, recall_at_k, recall_at_precision
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference


@given(two_classes(), st.floats(0.01, 1.0))
def test_metrics_of_a_proportion_of_samples_are_as_defined(rows, k):
    positive, scores, weights = rows
    for options, weight in (({}, np.ones(len(scores))), ({"sample_weight": weights}, weights)):
        total, of_positives = weight.sum(), weight[positive].sum()
        hits = reference.positives_among_first(k * total, positive, scores, weight)
        expected = hits / (k * total), hits / of_positives, hits / of_positives / k
        found = metrics_at_k(positive, scores, k, **options)
        for metric, (value, low, high), defined in zip((precision_at_k, recall_at_k, lift_at_k), found, expected):
            assert value == pytest.approx(defined)
            assert metric(positive, scores, k, **options) == pytest.approx(defined)
            assert 0.0 <= low <= value <= high
        # The threshold is the lowest score of the selected samples with weight.
        with_weight = scores[weight > 0.0]
        above = np.array([weight[scores >= t].sum() for t in with_weight])
        assert found.threshold == with_weight[above >= k * total * (1.0 - 1e-12)].max()


def test_without_samples_beyond_the_boundary_the_interval_is_wilsons():
    positive, scores, _ = random_rows(500)
    hits, found = int(positive.sum()), metrics_at_k(positive, scores, 500)
    assert found.precision[1:] == pytest.approx(tuple(binomtest(hits, 500).proportion_ci(method="wilson")))
    assert found.recall == found.lift == (1.0, 1.0, 1.0)
    found = metrics_at_k(positive, scores, 50, level=0.9)
    assert found.lift == pytest.approx([10.0 * each for each in found.recall])


@pytest.mark.parametrize("hits", [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
def test_intervals_of_few_samples_stay_in_range(hits):
    positive = np.array([*hits, *[True] * 2 * (hits == [1, 1, 1] or not any(hits))])
    for k in range(1, len(positive) + 1):
        found = metrics_at_k(positive, -np.arange(len(positive)), k, pos_label=True)
        for value, low, high in found[:3]:
            assert 0.0 <= low <= value <= high < np.inf
        assert found.recall[2] <= 1.0


def test_class_weights_are_not_more_samples():
    """One tenth of the negatives with ten times the weight: the intervals are nearly those of all the negatives."""
    random = np.random.default_rng(0)
    positive = random.random(100_000) < 0.02
    scores = random.normal(size=positive.size) + 2.0 * positive
    kept = positive | (random.random(positive.size) < 0.1)
    all_of_them = metrics_at_k(positive, scores, 0.05)
    some = metrics_at_k(positive[kept], scores[kept], 0.05, sample_weight=np.where(positive, 1.0, 10.0)[kept])
    for (_, low, high), (_, expected_low, expected_high) in zip(some[:2], all_of_them[:2]):
        assert high - low == pytest.approx(expected_high - expected_low, rel=0.5)


@pytest.mark.parametrize(("prevalence", "apart", "k"), [(0.02, 2.5, 0.01), (0.1, 1.0, 0.02), (0.3, 2.5, 0.2)])
def test_intervals_cover(prevalence, apart, k):
    """If the coverage is 95 %, fewer than 360 or more than 393 of 400 intervals cover with a probability below 1 %."""
    random = np.random.default_rng(0)

    def drawn(n):
        positive = random.random(n) < prevalence
        return positive, random.normal(size=n) + apart * positive

    of_all, held = metrics_at_k(*drawn(1_000_000), k), np.zeros(3)
    for _ in range(400):
        found = metrics_at_k(*drawn(2000), k)
        held += [low <= value <= high for (value, _, _), (_, low, high) in zip(of_all, found[:3])]
    assert 360 <= held.min() <= held.max() <= 393, held


def test_a_number_of_samples_is_a_proportion_of_them():
    positive, scores, weights = random_rows(200, levels=5)
    assert precision_at_k(positive, scores, np.int64(50)) == precision_at_k(positive, scores, 0.25)
    assert recall_at_k(positive, scores, 200) == 1.0
    assert recall_at_k(positive, scores, 1.0, sample_weight=weights) == 1.0
    assert precision_at_k(["bad", "good", "bad"], [0.1, 0.2, 0.3], 1, pos_label="bad") == 1.0


def test_equal_weights_change_nothing():
    """Copies of samples do not make intervals narrower, and a sum of weights may be rounded."""
    positive, scores, _ = random_rows(500)
    found = metrics_at_k(positive, scores, 300, sample_weight=np.full(500, 3.0))
    expected = metrics_at_k(positive, scores, 100)
    np.testing.assert_allclose(found[:3], expected[:3])
    assert found.threshold == expected.threshold
    tenths = np.full(20, 0.1)
    assert tenths.sum() < 2 + 1e-9
    assert recall_at_k(np.arange(20) % 2, np.arange(20.0), 2, sample_weight=tenths) == pytest.approx(1.0)


@given(two_classes(), st.floats(0.01, 1.0))
def test_recall_at_a_bound_is_that_of_the_best_threshold(rows, bound):
    positive, scores, weights = rows
    for weight in (None, weights):
        fp, tp, _ = np.transpose(reference.roc_points(positive, scores, weight))
        for metric, value in ((recall_at_fpr, -fp / fp[-1]), (recall_at_precision, tp / np.maximum(tp + fp, 1e-300))):
            least = bound if metric is recall_at_precision else -bound
            # Rounding decides whether a bound is reached.
            expected = {tp[value >= least + tiny * bound].max(initial=0.0) / tp[-1] for tiny in (-1e-12, 1e-12)}
            found = metric(positive, scores, bound, sample_weight=weight)
            assert min(abs(found - recall) for recall in expected) < 1e-12


def test_gains_are_recall_at_each_proportion():
    positive, scores, weights = random_rows(300, levels=4)
    proportion, gain, thresholds = gains_curve(positive, scores, sample_weight=weights)
    assert thresholds[0] == np.inf
    np.testing.assert_array_equal(thresholds[1:], np.unique(scores)[::-1])
    for k, expected in zip(proportion[1:], gain[1:]):
        assert recall_at_k(positive, scores, min(k, 1.0), sample_weight=weights) == pytest.approx(expected)
    assert (proportion[0], gain[0], gain[-1]) == (0.0, 0.0, 1.0)


def test_without_positives_recall_is_not_defined():
    undefined = pytest.warns(UndefinedMetricWarning, match="recall is not defined")
    with undefined:
        precision, *others, _ = metrics_at_k([0, 0], [1, 2], 1)
    assert np.isnan(others).all()
    assert precision[0] == precision_at_k([0, 0], [1, 2], 1) == 0.0 < precision[2]
    for metric, bound in ((recall_at_k, 1), (lift_at_k, 1), (recall_at_precision, 0.5), (recall_at_fpr, 0.5)):
        with undefined:
            assert np.isnan(metric([0, 0], [1, 2], bound))
    with undefined:
        assert np.isnan(gains_curve([0, 0], [1, 2])[1]).all()


@pytest.mark.parametrize(("metric", "bound", "options", "sentence"), [
    *((precision_at_k, k, {}, "^k must be") for k in (0, 3, -1, 0.0, 1.5, True, float("nan"))),
    (precision_at_k, 1, {"sample_weight": [0, 0]}, "^sample_weight is 0 for every sample$"),
    (metrics_at_k, 1, {"sample_weight": [1e-30] * 2}, r"^k must be from 1 to 2e-30, the number \(or weight\) of"),
    (metrics_at_k, 1, {"level": 95}, "^level must be in"),
    (recall_at_precision, 0, {}, r"^precision must be in \(0, 1\], but is 0$"),
    (recall_at_fpr, 2, {}, r"^fpr must be in \[0, 1\], but is 2$"),
])  # fmt: skip
def test_invalid_bounds_and_options(metric, bound, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric([0, 1], [1, 2], bound, **options)


@pytest.mark.parametrize("n", [25, 100])
def test_bounds_that_are_met_exactly_are_met(n):
    """Products of a bound and sums of weights are rounded: 0.29 * 100 is less than 29, and 0.28 * 25 more than 7."""
    for part in range(1, n):
        negatives_first = [0] * part + [1] + [0] * (n - part), [3] * part + [2] + [1] * (n - part)
        for weight in (1.0, 0.1):
            weights = np.full(n + 1, weight)
            assert recall_at_fpr(*negatives_first, part / n, sample_weight=weights) == 1.0, part
            positives_tie = [1] * part + [0] * (n - part), [0] * n
            assert recall_at_precision(*positives_tie, part / n, sample_weight=weights[1:]) == 1.0, part
        assert optimal_threshold(*negatives_first, criterion={"fpr": part / n}) == 2
        assert optimal_threshold([1] * part + [0] * (n - part), [5] * n, criterion={"precision": part / n}) == 5
        all_scores = np.arange(2 * n)
        assert optimal_threshold(all_scores >= n, all_scores, criterion={"recall": part / n}) == 2 * n - part
        assert optimal_threshold(all_scores[:n] % 2, all_scores[:n], criterion={"alerts": part / n}) == n - part
