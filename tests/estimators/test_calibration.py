"""Priors corrected: the formula of odds, and what is fitted to out-of-bag rows."""

import numpy as np
import pytest
from aucforest.estimators._prior_correction import PriorCorrection, fit_correction, odds_formula
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.metrics import roc_auc_score
from tests.estimators.data import make_table, small_forest


def simulate(n_classes: int, n_rows: int = 4000, seed: int = 0):
    """Return probabilities and the labels that are drawn by something else than them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_rows, n_classes))
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = PriorCorrection(1.7, np.linspace(0, -2, n_classes)).apply(proba)
    return proba, (true.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1).astype(np.uint16)


def test_the_formula_divides_odds_by_rates():
    labels = np.repeat(np.array([0, 1], dtype=np.uint16), [90, 10])
    correction = odds_formula(BootstrapSampler.of_strata(labels, np.array([10, 10])), 2)
    corrected = correction.apply(np.array([[0.5, 0.5], [0.2, 0.8]]))
    # Of the rare class every row is drawn, of the other one in nine.
    np.testing.assert_allclose(corrected[:, 1] / corrected[:, 0], [1 / 9, 4 / 9])
    np.testing.assert_allclose(corrected.sum(axis=1), 1)


def test_the_formula_with_many_classes():
    labels = np.repeat(np.arange(3, dtype=np.uint16), [60, 30, 10])
    correction = odds_formula(BootstrapSampler.of_strata(labels, np.array([10, 10, 20])), 3)
    proba = np.array([[0.2, 0.3, 0.5]])
    expected = proba / [10 / 60, 10 / 30, 20 / 10]
    np.testing.assert_allclose(correction.apply(proba), expected / expected.sum())


def test_equal_rates_need_no_correction():
    labels = np.repeat(np.array([0, 1], dtype=np.uint16), [90, 10])
    assert odds_formula(None, 2) is None
    assert odds_formula(BootstrapSampler.of_all(100, 50), 2) is None
    assert odds_formula(BootstrapSampler.of_strata(labels, np.array([45, 5])), 2) is None


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_finds_what_made_the_labels(n_classes, weighted):
    proba, labels = simulate(n_classes, 40_000)
    weights = np.random.default_rng(1).integers(1, 4, len(labels)) * 0.1 if weighted else None
    shares = np.bincount(labels, weights) / (len(labels) if weights is None else weights.sum())
    fitted = fit_correction(PriorCorrection(1.0, np.zeros(n_classes)), proba, labels, weights, shares)
    assert fitted.exponent == pytest.approx(1.7, abs=0.06)
    np.testing.assert_allclose(fitted.offsets - fitted.offsets[0], np.linspace(0, -2, n_classes), atol=0.12)
    # The likelihood is greatest where the means are the shares.
    np.testing.assert_allclose(np.average(fitted.apply(proba), axis=0, weights=weights), shares, atol=1e-5)


def test_a_class_with_few_rows_out_of_bag_keeps_its_share():
    proba, labels = simulate(2, 40_000)
    shares = np.bincount(labels) / len(labels)
    kept = (labels == 0) | (np.arange(len(labels)) % 5 == 0)
    start = PriorCorrection(1.0, np.zeros(2))
    every = fit_correction(start, proba, labels, None, shares)
    some = fit_correction(start, proba[kept], labels[kept], None, shares)
    np.testing.assert_allclose(some.apply(proba).mean(axis=0), shares, atol=0.01)
    np.testing.assert_allclose(some.apply(proba), every.apply(proba), atol=0.03)


def test_the_fit_of_two_classes_is_a_logistic_regression():
    proba, labels = simulate(2, 40_000, seed=3)
    fitted = fit_correction(PriorCorrection(1.0, np.zeros(2)), proba, labels, None, np.bincount(labels) / len(labels))
    odds = np.log(proba[:, 1] / proba[:, 0])[:, None]
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(odds, labels)
    # The prior of the exponent weighs as much as a row or so.
    np.testing.assert_allclose(fitted.apply(proba), peer.predict_proba(odds), atol=1e-4)


def test_few_rows_stay_near_the_formula():
    start = PriorCorrection(1.0, np.array([0.0, -3.0]))
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])
    fitted = fit_correction(start, proba, np.array([0, 0, 1], dtype=np.uint16), None, np.array([2, 1]) / 3)
    assert 1.0 < fitted.exponent < 4.0
    assert fit_correction(start, proba, np.zeros(3, dtype=np.uint16), None, np.array([2, 1]) / 3) is start


def test_shares_of_zero():
    corrected = PriorCorrection(1.3, np.array([0.0, -2.0])).apply(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.all(np.isfinite(corrected))
    assert corrected[0, 1] < 1e-6 < 0.99 < corrected[1, 1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_forest_of_balanced_draws_keeps_to_the_prevalence(n_classes):
    X, y = make_table(n_rows=1200, n_classes=n_classes)
    y = np.where(np.arange(1200) % 4 == 0, y, 0)
    forest = small_forest(60, sampling="balanced", oob_score=True).fit(X, y)
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(forest.class_prior_, shares)
    np.testing.assert_allclose(forest.oob_decision_function_.mean(axis=0), shares, atol=2e-3)
    raw = small_forest(60, sampling="balanced", prior_correction=False, shrinkage=forest.shrinkage_).fit(X, y)
    np.testing.assert_allclose(raw.class_prior_, 1 / n_classes)
    assert raw.predict_proba(X).mean(axis=0)[0] < shares[0] - 0.1
    if n_classes == 2:
        ours, plain = forest.predict_proba(X)[:, 1], raw.predict_proba(X)[:, 1]
        assert roc_auc_score(y, ours) == pytest.approx(roc_auc_score(y, plain), abs=1e-12)
        np.testing.assert_array_equal(np.argsort(ours, kind="stable"), np.argsort(plain, kind="stable"))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 20.0, 2: 3.0}, "balanced", "balanced_subsample"], ids=str)
def test_class_weights_stay_in_probabilities(n_classes, class_weight):
    X, y = make_table(n_rows=1200, n_classes=n_classes)
    y = np.where(np.arange(1200) % 4 == 0, y, 0)
    if isinstance(class_weight, dict):
        class_weight = {k: class_weight[k] for k in range(n_classes)}
    forest = small_forest(60, sampling="balanced", class_weight=class_weight, oob_score=True).fit(X, y)
    # Trees of balanced draws have nothing to balance, so "balanced_subsample" changes nothing.
    given = None if class_weight == "balanced_subsample" else class_weight
    weight = compute_sample_weight(given, y)
    expected = np.bincount(y, weight) / weight.sum()
    mean = np.average(forest.oob_decision_function_, axis=0, weights=weight)
    np.testing.assert_allclose(mean, expected, atol=5e-3)
