import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from scipy.special import ndtri
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import auc_confidence_interval, compare_auc, delong_covariance, roc_auc_score
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference


@given(two_classes(min_size=6))
def test_covariance_is_the_quadratic_form(rows):
    positive, scores, weights = rows
    positive[:4] = [True, False, True, False]
    weights[:4] = [1.0, 0.5, 2.0, 1.0]
    columns = np.column_stack([scores, np.roll(scores, 1), -scores])
    for sample_weight in (None, weights):
        auc, covariance = delong_covariance(positive, columns, sample_weight)
        expected_auc, expected = reference.delong(positive, columns.T, sample_weight)
        np.testing.assert_allclose(auc, expected_auc, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_auc_of_covariance_is_the_auc(dtype):
    positive, scores, weights = random_rows(3000, levels=30, dtype=dtype)
    auc, _ = delong_covariance(positive, scores, weights)
    assert auc[0] == pytest.approx(roc_auc_score(positive, scores, sample_weight=weights), rel=1e-12)


def test_equal_weights_change_nothing():
    positive, scores, _ = random_rows(50)
    plain = delong_covariance(positive, scores)[1]
    np.testing.assert_allclose(delong_covariance(positive, scores, np.full(50, 7.0))[1], plain, rtol=1e-12)


@given(two_classes(min_size=6))
def test_the_ends_of_the_score_interval_are_just_not_rejected(rows):
    positive, scores, weights = rows
    positive[:4] = [True, False, True, False]
    weights[:4] = [1.0, 0.5, 2.0, 1.0]
    for sample_weight in (None, weights):
        auc, *ends = auc_confidence_interval(positive, scores, level=0.9, sample_weight=sample_weight)
        assert 0.0 <= ends[0] <= auc <= ends[1] <= 1.0
        for end in ends:
            variance = reference.auc_variance_at(end, positive, scores, sample_weight)
            assert abs(auc - end) == pytest.approx(1.6448536 * math.sqrt(variance), rel=1e-6, abs=1e-7)
        # the other way round it is the interval of 1 - AUC
        _, *mirrored = auc_confidence_interval(positive, -scores, level=0.9, sample_weight=sample_weight)
        assert mirrored == pytest.approx([1.0 - ends[1], 1.0 - ends[0]], abs=1e-9)


@pytest.mark.parametrize("y_score", [np.arange(100), -np.arange(100), np.zeros(100)])
def test_an_interval_without_variance_is_no_point(y_score):
    auc, low, high = auc_confidence_interval(np.arange(100) >= 95, y_score)
    assert high - low > 0.2
    assert low <= auc <= high


def test_a_higher_level_is_a_wider_interval():
    positive, scores, _ = random_rows(200)
    (_, *wide), (_, *narrow) = (auc_confidence_interval(positive, scores, level=level) for level in (0.9, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(
    ("y_true", "weights", "defined"),
    [([0, 0, 1], None, True), ([0, 0, 0], None, False), ([0, 0, 1, 1], [1, 1, 1, 0], True)],
)
def test_too_few_rows_are_undefined(y_true, weights, defined):
    scores = [0.3, 0.1, 0.2, 0.25][: len(y_true)]
    with pytest.warns(UndefinedMetricWarning, match="fewer than two samples"):
        auc, covariance = delong_covariance(y_true, scores, weights)
    assert np.isnan(auc[0]) == (not defined)
    assert np.isnan(covariance).all()
    with pytest.warns(UndefinedMetricWarning, match="fewer than two samples"):
        result = auc_confidence_interval(y_true, scores, sample_weight=weights)
    assert np.isnan(result[1:]).all()
    with pytest.warns(UndefinedMetricWarning, match="no estimated variance"):
        assert np.isnan(compare_auc(y_true, scores, scores, sample_weight=weights).pvalue)


def test_paired_test_by_hand():
    rng = np.random.default_rng(3)
    positive, first, weights = random_rows(300)
    second = first + rng.normal(size=300)
    result = compare_auc(positive, first, second, sample_weight=weights)
    auc, covariance = reference.delong(positive, [first, second], weights)
    error = np.sqrt(covariance[0][0] + covariance[1][1] - 2 * covariance[0][1])
    _, parts = reference.delong_by_class(positive, [first, second], weights)
    by_class = [(c[0][0] + c[1][1] - 2 * c[0][1], n - 1) for c, n in parts]
    freedom = sum(v for v, _ in by_class) ** 2 / sum(v**2 / n for v, n in by_class)
    assert result.difference == pytest.approx(auc[0] - auc[1], rel=1e-10)
    assert result.z == pytest.approx((auc[0] - auc[1]) / error, rel=1e-10)
    assert result.interval[1] - result.interval[0] == pytest.approx(2 * stats.t.ppf(0.975, freedom) * error, rel=1e-6)
    assert (result.auc_a, result.auc_b) == pytest.approx(auc, rel=1e-12)
    swapped = compare_auc(positive, second, first, sample_weight=weights)
    assert swapped.z == pytest.approx(-result.z, rel=1e-9)
    assert swapped.pvalue == pytest.approx(result.pvalue, rel=1e-9)
    assert result.pvalue == pytest.approx(2 * stats.t.sf(abs(result.z), freedom), rel=1e-9)


def test_the_interval_of_a_difference_is_within_one():
    result = compare_auc([0, 0, 1, 1], [1, 3, 2, 4], [4, 2, 3, 1])
    assert (result.difference, result.interval) == (0.5, (-1.0, 1.0))


def test_equal_order_is_no_difference():
    positive, scores, weights = random_rows(100)
    result = compare_auc(positive, scores, np.exp(scores), sample_weight=weights)
    assert (result.difference, result.z, result.pvalue, result.interval) == (0.0, 0.0, 1.0, (0.0, 0.0))


def test_a_difference_without_variance_is_undefined():
    with pytest.warns(UndefinedMetricWarning, match="no estimated variance"):
        result = compare_auc([0, 0, 1, 1], [1, 2, 3, 4], [1, 1, 1, 1])
    assert result.difference == 0.5
    assert np.isnan([result.z, result.pvalue, *result.interval]).all()


@pytest.mark.parametrize("least", [1e-18, 1e-300])
def test_a_row_with_next_to_no_weight(least):
    with pytest.warns(UndefinedMetricWarning, match="not defined"):
        auc, *bounds = auc_confidence_interval([0, 0, 1, 1], [1, 2, 3, 1.5], sample_weight=[1, 1, 1, least])
    assert auc == 1.0
    assert np.isnan(bounds).all()
    interval = auc_confidence_interval([0, 0, 1, 1, 1], [1, 2, 3, 3, 1.5], sample_weight=[1, 1, 1, 1, least])
    assert interval == auc_confidence_interval([0, 0, 1, 1], [1, 2, 3, 3])


def test_the_offending_scores_are_named():
    good, bad = [1, 2, 3], [1, 2, np.nan]
    with pytest.raises(ValueError, match="score_a must be finite, but value 2 is nan"):
        compare_auc([0, 1, 1], bad, good)
    with pytest.raises(ValueError, match="score_b must be finite, but value 2 is nan"):
        compare_auc([0, 1, 1], good, bad)
    with pytest.raises(ValueError, match="y_scores must be finite, but value 2 is nan"):
        delong_covariance([0, 1, 1], bad)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, np.nan])
def test_bad_level(level):
    with pytest.raises(ValueError, match="level must be in"):
        auc_confidence_interval([0, 1], [1, 2], level=level)
    with pytest.raises(ValueError, match="level must be in"):
        compare_auc([0, 1], [1, 2], [1, 2], level=level)


def test_a_level_next_to_one():
    positive, scores, _ = random_rows(60)
    wide, wider = (
        [
            auc_confidence_interval(positive, scores, level=level)[1:],
            compare_auc(positive, scores, np.abs(scores), level=level).interval,
        ]
        for level in (0.99, 1 - 1e-16)
    )
    for inner, outer in zip(wide, wider):
        assert outer[0] < inner[0] < inner[1] < outer[1]


def test_bad_input():
    with pytest.raises(ValueError, match="score_a has 3 samples, but score_b has 2"):
        compare_auc([0, 1, 1], [1, 2, 3], [1, 2])
    with pytest.raises(ValueError, match="y_scores must have 1 dimension"):
        delong_covariance([0, 1], [[[1], [2]]])


def coverage(n_positive, n_negative, auc, spread=1.0, n_runs=1000):
    """Return how often the 95 % interval of normal rows holds the true AUC; positives have a spread of their own."""
    rng = np.random.default_rng(4)
    positive = np.repeat([True, False], [n_positive, n_negative])
    shift, scale = ndtri(auc) * np.sqrt(1.0 + spread**2), np.where(positive, spread, 1.0)
    covered = 0
    for _ in range(n_runs):
        _, low, high = auc_confidence_interval(positive, scale * rng.normal(size=positive.size) + shift * positive)
        covered += low <= auc <= high
    return covered / n_runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_positive", "n_negative", "auc"), [(5, 95, 0.6), (5, 95, 0.9), (5, 95, 0.99), (50, 950, 0.9), (50, 950, 0.99)]
)
def test_the_interval_covers_with_few_positives_and_near_one(n_positive, n_negative, auc):
    # 1,000 runs have a standard error of 0.007 at 0.95; the logit interval covers 0.91, 0.85, 0.62, 0.935 and 0.875
    assert coverage(n_positive, n_negative, auc) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("auc", [0.6, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("spread", [1.0, 3.0])
@pytest.mark.parametrize("n_rows", [5, 10, 30])
def test_the_interval_covers_in_balanced_rows(n_rows, spread, auc):
    assert coverage(n_rows, n_rows, auc, spread, n_runs=2000) >= 0.92


@pytest.mark.parametrize("auc", [0.6, 0.8])
def test_the_paired_test_keeps_its_level_with_few_positives(auc):
    # two equally good readings: at most 5 % of 2,000 runs and 3 standard errors of 0.005; the z-test rejects 10 and 8 %
    rng = np.random.default_rng(5)
    positive = np.repeat([True, False], [5, 95])
    rejected = 0
    for _ in range(2000):
        common, *own = rng.normal(size=(3, positive.size))
        first, second = np.sqrt(0.5) * (common + own) + ndtri(auc) * np.sqrt(2.0) * positive
        rejected += compare_auc(positive, first, second).pvalue < 0.05
    assert rejected / 2000 <= 0.065
