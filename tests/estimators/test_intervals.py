"""Confidence intervals of class probabilities."""

import numpy as np
import pytest
from scipy.special import expit

from aucforest.estimators._intervals import bounds_of, estimate_dispersion
from aucforest.fitting.bootstrap import N_HALVES
from aucforest.fitting.out_of_bag import Sums
from tests.estimators.data import assert_same_fit, make_table, small_forest
from tests.estimators.test_model_files import saved

X, SCORED = make_table(300, n_classes=3)
TWO = SCORED > 0


def halves(n_trees=100, **params):
    return small_forest(n_trees, sampling="half-samples", **params)


@pytest.fixture(scope="module")
def forest():
    return halves(pos_label=True).fit(X, TWO)


def sums_of_trees(between, within, rng, n_trees=300, n_rows=4000):
    """Return out-of-bag sums of trees, with the variances of half-samples and of trees as multiples of p (1 - p)."""
    p, numbers = rng.uniform(0.2, 0.8, n_rows), rng.integers(N_HALVES, size=n_trees)
    unit = np.sqrt(p * (1.0 - p))
    of_half = p + np.sqrt(between) * unit * rng.normal(size=(N_HALVES, n_rows))
    of_tree = of_half[numbers] + np.sqrt(within) * unit * rng.normal(size=(n_trees, n_rows))
    is_out = (rng.random((N_HALVES, n_rows)) < 0.5)[numbers]
    both = np.stack((1.0 - of_tree, of_tree), axis=2) * is_out[:, :, None]
    return [Sums(*each) for each in zip(both, is_out.astype(np.int64))], numbers.tolist()


@pytest.mark.parametrize(("between", "within"), [(0.01, 0.0), (0.01, 0.1), (0.0, 0.1), (0.002, 0.1)])
def test_the_dispersion_is_that_of_the_mean_over_trees(between, within):
    by_tree, numbers = sums_of_trees(between, within, np.random.default_rng(0))
    sizes = np.bincount(numbers, minlength=N_HALVES) / len(numbers)
    expected = between * (1.0 + np.sum(sizes**2)) + within / len(numbers)
    # The variances of 4,000 rows with 11 degrees of freedom have a mean with a standard error of 0.007.
    assert estimate_dispersion(by_tree, numbers) == pytest.approx(expected, abs=0.025 * (between + within / 12))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_delta_method_is_that_of_the_map(n_classes):
    """Against numeric derivatives of p ** slope, normalized, and the covariance of proportions."""
    p, slope, dispersion, step = np.random.default_rng(1).dirichlet(np.full(n_classes, 2.0)), 1.7, 1e-9, 1e-6

    def calibrated(p):
        return p**slope / np.sum(p**slope)

    gradient = np.array([(calibrated(p + each) - calibrated(p - each)) / (2 * step) for each in step * np.eye(len(p))])
    variance = np.diag(gradient.T @ (dispersion * (np.diag(p) - np.outer(p, p))) @ gradient)
    bounds = bounds_of(p[None], calibrated(p)[None], slope, dispersion, 2.0)[0]
    assert np.diff(bounds)[:, 0] == pytest.approx(4.0 * np.sqrt(variance), rel=1e-4)


def test_bounds_next_to_0_and_1():
    for mean in (0.0, 1e-300, 1e-17, 1.0 - 1e-16, 1.0):
        both = np.array([[1.0 - mean, mean]])
        for proba in (both, both**3 / np.sum(both**3)):
            low, high = np.moveaxis(bounds_of(both, proba, 3.0, 0.02, 1.96), 2, 0)
            assert np.all((low >= 0.0) & (low <= proba) & (high <= 1.0) & (high >= proba))


def test_intervals_hold_the_mean_over_training_sets():
    rng, found, bounds = np.random.default_rng(5), [], []
    new = rng.normal(size=(100, 3))
    for seed in range(16):
        train = rng.normal(size=(200, 3))
        model = halves(random_state=seed).fit(train, rng.random(200) < 0.3 * expit(2.0 * train[:, 0]))
        found.append(model.predict_proba(new)[:, 1])
        bounds.append(model.predict_interval(new))
    expected, low_high = np.mean(found, axis=0), np.array(bounds)
    coverage = np.mean((low_high[:, :, 0] <= expected) & (expected <= low_high[:, :, 1]))
    # The mean includes each forest; the standard error is about 0.02.
    assert 0.92 < coverage < 0.995
    assert np.mean(np.diff(low_high)) < 6.0 * np.std(found, axis=0).mean()


def test_the_interval_is_of_the_positive_class(forest):
    (low, high), proba = forest.predict_interval(X).T, forest.predict_proba(X)[:, 1]
    assert np.all((low > 0.0) & (low < proba) & (high < 1.0) & (high > proba))
    of_other = halves(pos_label=False).fit(X, TWO).predict_interval(X)
    assert pytest.approx(np.array([high, low]), abs=1e-12) == 1.0 - of_other.T
    lower, higher = forest.predict_interval(X, level=0.99).T
    assert np.all((lower < low) & (higher > high))


@pytest.mark.parametrize("params", [{}, {"calibration": None}, {"shrinkage": None}], ids=str)
def test_every_class_of_several_has_an_interval(params):
    model = halves(**params).fit(X, SCORED)
    low, high, proba = *np.moveaxis(model.predict_interval(X), 2, 0), model.predict_proba(X)
    assert np.all((low >= 0.0) & (low <= proba) & (high <= 1.0) & (high >= proba))


def test_the_dispersion_depends_on_nothing_but_data_and_seed(forest, tmp_path):
    threads = halves(n_jobs=3, pos_label=True).fit(X, TWO)
    grown = halves(warm_start=True, pos_label=True).fit(X, TWO).set_params(n_estimators=130).fit(X, TWO)
    for one, other in ((forest, threads), (halves(130, pos_label=True).fit(X, TWO), grown)):
        assert_same_fit(one, other)
    loaded = saved(forest, tmp_path)
    assert np.array_equal(forest.predict_interval(X), loaded.predict_interval(X))
    for tree, rows in zip(loaded.trees_, loaded.estimators_samples_):
        assert tree.value[0, 1] == pytest.approx(TWO[rows].mean())
    assert loaded.set_threshold("f1", X, TWO).threshold_ > 0.0  # from samples that are drawn again


def test_whole_groups_are_halved():
    groups = np.repeat(np.arange(60), 5)
    model = halves(oob_score=True).fit(X, TWO, groups=groups)
    sampled = {tuple(np.bincount(groups[rows], minlength=60)) for rows in model.estimators_samples_}
    assert len(sampled) == N_HALVES
    assert {sum(one) for one in sampled} == {150}
    assert model.dispersion_ > 0.0


def test_other_forests_have_no_intervals(forest):
    with pytest.raises(ValueError, match=r"half-samples, but these were grown on 300 of 300 samples: fit the forest"):
        small_forest().fit(X, TWO).predict_interval(X)
    with pytest.raises(ValueError, match=r"^level must be in \(0, 1\), but is 1$"):
        forest.predict_interval(X, level=1)
    mixed = halves(warm_start=True).fit(X, TWO).set_params(n_estimators=101, sampling="bootstrap")
    with pytest.warns(UserWarning, match="150 of 300 samples without replacement, 25 times for all trees, 300 of 300"):
        mixed.fit(X, TWO)
    with pytest.raises(ValueError, match=r"^predict_interval needs trees that share half-samples"):
        mixed.predict_interval(X)
