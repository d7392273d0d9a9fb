import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import roc_curve
from aucforest.metrics.confidence import auc_confidence_interval, compare_auc, delong_covariance, roc_confidence_band
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference


@st.composite
def two_of_each(draw):
    """Draw (is_positive, scores, weights) with two rows of each class that have weight."""
    positive, scores, weights = draw(two_classes(min_size=6))
    positive[:4], weights[:4] = [True, False, True, False], [1.0, 0.5, 2.0, 1.0]
    return positive, scores, weights


@given(two_of_each())
def test_covariance_is_the_quadratic_form(rows):
    positive, scores, weights = rows
    columns = np.column_stack([scores, np.roll(scores, 1), -scores])
    for sample_weight in (None, weights):
        auc, covariance = delong_covariance(positive, columns, sample_weight)
        expected_auc, expected = reference.delong(positive, columns.T, sample_weight)
        np.testing.assert_allclose(auc, expected_auc, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-14)


@given(two_of_each())
def test_bounds_of_the_score_interval_by_definition(rows):
    positive, scores, weights = rows
    for sample_weight in (None, weights):
        auc, *ends = auc_confidence_interval(positive, scores, level=0.9, sample_weight=sample_weight)
        assert 0.0 <= ends[0] <= auc <= ends[1] <= 1.0
        for end in ends:
            variance = reference.auc_variance_at(end, positive, scores, sample_weight)
            assert abs(auc - end) == pytest.approx(1.6448536 * math.sqrt(variance), rel=1e-6, abs=1e-7)
        # Negated scores have the interval of 1 - AUC.
        _, *mirrored = auc_confidence_interval(positive, -scores, level=0.9, sample_weight=sample_weight)
        assert mirrored == pytest.approx([1.0 - ends[1], 1.0 - ends[0]], abs=1e-9)


@pytest.mark.parametrize(("y_true", "weights", "defined"), [
    ([0, 0, 1], None, True), ([0, 0, 0], None, False), ([0, 0, 1, 1], [1, 1, 1, 0], True),
])  # fmt: skip
def test_too_few_rows_are_undefined(y_true, weights, defined):
    scores, few = [0.3, 0.1, 0.2, 0.25][: len(y_true)], "fewer than two samples"
    with pytest.warns(UndefinedMetricWarning, match=few):
        auc, covariance = delong_covariance(y_true, scores, weights)
    assert np.isnan(auc[0]) == (not defined)
    with pytest.warns(UndefinedMetricWarning, match=few):
        result = auc_confidence_interval(y_true, scores, sample_weight=weights)
    assert np.isnan([*covariance.ravel(), *result[1:]]).all()
    with pytest.warns(UndefinedMetricWarning, match="no estimated variance"):
        assert np.isnan(compare_auc(y_true, scores, scores, sample_weight=weights).pvalue)


def test_paired_test_by_hand():
    positive, first, weights = random_rows(300)
    second = first + np.random.default_rng(3).normal(size=300)
    result = compare_auc(positive, first, second, sample_weight=weights)
    auc, parts = reference.delong_by_class(positive, [first, second], weights)
    by_class = [(c[0][0] + c[1][1] - 2 * c[0][1], n - 1) for c, n in parts]
    variance = sum(v for v, _ in by_class)
    error, freedom = math.sqrt(variance), variance**2 / sum(v**2 / n for v, n in by_class)
    assert result.difference == pytest.approx(auc[0] - auc[1], rel=1e-10)
    assert result.z == pytest.approx((auc[0] - auc[1]) / error, rel=1e-10)
    assert result.pvalue == pytest.approx(2 * stats.t.sf(abs(result.z), freedom), rel=1e-9)
    assert result.interval[1] - result.interval[0] == pytest.approx(2 * stats.t.ppf(0.975, freedom) * error, rel=1e-6)
    assert (result.auc_a, result.auc_b) == pytest.approx(auc, rel=1e-12)
    swapped = compare_auc(positive, second, first, sample_weight=weights)
    assert (swapped.z, swapped.pvalue) == pytest.approx((-result.z, result.pvalue), rel=1e-9)


def test_differences_without_variance_or_of_about_one():
    result = compare_auc([0, 0, 1, 1], [1, 3, 2, 4], [4, 2, 3, 1])
    assert (result.difference, result.interval) == (0.5, (-1.0, 1.0))
    positive, scores, weights = random_rows(100)
    result = compare_auc(positive, scores, np.exp(scores), sample_weight=weights)
    assert (result.difference, result.z, result.pvalue, result.interval) == (0.0, 0.0, 1.0, (0.0, 0.0))
    with pytest.warns(UndefinedMetricWarning, match="no estimated variance"):
        result = compare_auc([0, 0, 1, 1], [1, 2, 3, 4], [1, 1, 1, 1])
    assert result.difference == 0.5
    assert np.isnan([result.z, result.pvalue, *result.interval]).all()


def test_intervals_ignore_rows_of_negligible_weight():
    least = 1e-18
    with pytest.warns(UndefinedMetricWarning, match="not defined"):
        interval = auc_confidence_interval([0, 0, 1, 1], [1, 2, 3, 1.5], sample_weight=[1, 1, 1, least])
    np.testing.assert_array_equal(interval, [1.0, np.nan, np.nan])
    interval = auc_confidence_interval([0, 0, 1, 1, 1], [1, 2, 3, 3, 1.5], sample_weight=[1, 1, 1, 1, least])
    assert interval == auc_confidence_interval([0, 0, 1, 1], [1, 2, 3, 3])


def test_intervals_with_a_level_close_to_one():
    positive, scores, _ = random_rows(60)
    for interval in (
        lambda level: auc_confidence_interval(positive, scores, level=level)[1:],
        lambda level: compare_auc(positive, scores, np.abs(scores), level=level).interval,
    ):
        (low, high), (lower, higher) = interval(0.99), interval(1 - 1e-16)
        assert lower < low < high < higher


@pytest.mark.parametrize(("function", "arguments", "options", "message"), [
    (compare_auc, ([1, 2, np.nan], [1, 2, 3]), {}, "score_a must be finite, but value 2 is nan"),
    (compare_auc, ([1, 2, 3], [1, 2, np.nan]), {}, "score_b must be finite, but value 2 is nan"),
    (compare_auc, ([1, 2, 3], [1, 2]), {}, "score_a has 3 samples, but score_b has 2"),
    (compare_auc, ([1, 2], [1, 2]), {}, "^y_true has 3 samples, but score_a has 2$"),
    (compare_auc, ([1, 2, 3], [1, 2, 3]), {"level": 0.0}, "level must be in"),
    *((auc_confidence_interval, ([1, 2, 3],), {"level": level}, "level must be in") for level in (1.0, np.nan)),
    (delong_covariance, ([1, 2, np.nan],), {}, "y_scores must be finite, but value 2 is nan"),
    (delong_covariance, ([1, 2, 3], [1, 1]), {}, "^sample_weight has 2 samples, but y_scores has 3$"),
    (delong_covariance, ([[[1], [2], [3]]],), {}, "y_scores must have 1 dimension"),
    (lambda _, y_score: roc_confidence_band([1, 1], y_score), ([1, 2],), {}, "two classes"),
    (roc_confidence_band, ([1, 2, 3],), {"level": 1.0}, "level must be in"),
    (roc_confidence_band, ([1, 2, 3],), {"n_points": 1}, "^n_points must be at least 2, but is 1$"),
])  # fmt: skip
def test_invalid_scores_and_options(function, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        function([0, 1, 1], *arguments, **options)


def test_band_by_its_definition():
    y_true, y_score = np.arange(200) % 2, np.repeat(np.arange(20.0), 10)
    y_score[y_true == 1] += 3.0
    band = roc_confidence_band(y_true, y_score, level=0.9, n_points=11)
    # The Kolmogorov distribution, nearly 1 - 2 exp(-2 x^2), reaches sqrt(0.9) at 1.3533. Each class has 100 rows.
    distance = math.sqrt(math.log(2.0 / (1.0 - math.sqrt(0.9))) / 2.0) / 10.0
    fpr, tpr, _ = roc_curve(y_true, y_score, drop_intermediate=False)
    for t, low, high in zip(*band):
        reachable = tpr[(fpr >= t - distance) & (fpr <= t + distance)]
        assert low == pytest.approx(max(reachable.min() - distance, 0.0), abs=1e-5)
        assert high == pytest.approx(min(reachable.max() + distance, 1.0), abs=1e-5)
