import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from aucforest.metrics import roc_confidence_band, roc_curve
from tests.metrics.strategies import random_rows


@pytest.mark.parametrize("method", ["simultaneous", "bootstrap"])
@pytest.mark.parametrize("levels", [None, 2])
def test_the_curve_is_inside(method, levels):
    positive, scores, _ = random_rows(400, levels=levels)
    band = roc_confidence_band(positive, scores, method=method, random_state=0)
    fpr, tpr, _ = roc_curve(positive, scores)
    at_grid = np.interp(band.fpr, fpr, tpr)
    assert np.all(band.low <= at_grid)
    assert np.all(at_grid <= band.high)
    assert np.all(np.diff(band.low) >= 0)
    assert np.all(np.diff(band.high) >= 0)
    assert band.low.min() >= 0.0
    assert band.high.max() <= 1.0


@pytest.mark.parametrize("method", ["simultaneous", "bootstrap"])
def test_more_confidence_or_fewer_rows_make_it_wider(method):
    def width(n_rows, level):
        positive, scores, _ = random_rows(n_rows)
        band = roc_confidence_band(positive, scores, method=method, level=level, random_state=0)
        return np.mean(band.high - band.low)

    assert width(200, 0.99) > width(200, 0.9) > width(2000, 0.9) > 0


def test_simultaneous_band_by_its_definition():
    y_true, y_score = np.arange(200) % 2, np.repeat(np.arange(20.0), 10)
    y_score[y_true == 1] += 3.0
    band = roc_confidence_band(y_true, y_score, level=0.9, n_points=11)
    # the Kolmogorov distribution, nearly 1 - 2 exp(-2 x^2), reaches sqrt(0.9) at 1.3533; 100 rows a class
    distance = math.sqrt(math.log(2.0 / (1.0 - math.sqrt(0.9))) / 2.0) / 10.0
    fpr, tpr, _ = roc_curve(y_true, y_score, drop_intermediate=False)
    for t, low, high in zip(*band):
        reachable = tpr[(fpr >= t - distance) & (fpr <= t + distance)]
        assert low == pytest.approx(max(reachable.min() - distance, 0.0), abs=1e-5)
        assert high == pytest.approx(min(reachable.max() + distance, 1.0), abs=1e-5)


def test_bootstrap_repeats_with_its_seed():
    positive, scores, _ = random_rows(100)
    first, second, other = (
        roc_confidence_band(positive, scores, method="bootstrap", n_bootstrap=50, random_state=seed)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.low, second.low)
    assert np.any(first.low != other.low)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "exact"}, "method must be"),
        ({"level": 1.0}, "level must be in"),
        ({"n_points": 1}, "must be at least 2"),
        ({"n_bootstrap": 1}, "must be at least 2"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        roc_confidence_band([0, 1], [1, 2], **options)


def test_one_class():
    with pytest.raises(ValueError, match="two classes"):
        roc_confidence_band([1, 1], [1, 2])


def coverage(method, n_runs, **options):
    """Return how often the true curve is in the 90 % band of 60 + 60 rows: everywhere, and at each rate."""
    rng = np.random.default_rng(0)
    positive = np.repeat([True, False], 60)
    inside = []
    for _ in range(n_runs):
        scores = rng.normal(size=120) + 1.2 * positive
        band = roc_confidence_band(positive, scores, method=method, level=0.9, random_state=rng, **options)
        truth = ndtr(1.2 + ndtri(band.fpr))
        inside.append((band.low <= truth) & (truth <= band.high))
    return np.mean(np.all(inside, axis=1)), np.mean(inside, axis=0)


@pytest.mark.slow
def test_simultaneous_band_covers_the_whole_curve():
    # two bounds that are both conservative: at least 0.9, binomial error of 1000 runs 0.01
    everywhere, _ = coverage("simultaneous", 1000)
    assert everywhere >= 0.9


@pytest.mark.slow
def test_bootstrap_band_covers_single_points():
    # between rates of 0.1 and 0.8: at the ends an empirical curve hardly varies, and the band covers less
    everywhere, at_rate = coverage("bootstrap", 300, n_bootstrap=300)
    assert 0.87 <= np.mean(at_rate[20:160]) <= 0.93
    assert everywhere < 0.5
