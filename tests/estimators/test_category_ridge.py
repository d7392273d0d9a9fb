"""The ridge penalties of categories: what they minimize, and how they are chosen."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from aucforest.estimators import _category_ridge
from aucforest.estimators._category_ridge import fit_category_ridge
from tests.reference.stacking import penalty_of_categories


def make(sizes=(40,), n_classes=2, n_rows=600, seed=0):
    """Return dense columns, indicators, columns and priors of categories with effects of these sizes, and labels."""
    rng = np.random.default_rng(seed)
    dense, codes = rng.normal(size=(n_rows, 2)), [rng.integers(30, size=n_rows) for _ in sizes]
    score = dense[:, 0] + rng.logistic(size=n_rows)
    score += sum(size * rng.normal(size=30)[code] for size, code in zip(sizes, codes))
    indicators = np.hstack([code[:, None] == np.arange(30) for code in codes]).astype(np.float64)
    labels = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    categories = sp.csr_matrix(indicators), np.repeat(np.arange(len(sizes)), 30), np.full(len(sizes), 2.0)
    return dense, categories, labels


@pytest.mark.parametrize("most_paired", [256, 20, 0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_coefficients_are_those_of_logistic_regression(n_classes, most_paired, monkeypatch):
    """A column divided by the root of p has the penalty p."""
    monkeypatch.setattr(_category_ridge, "_MOST_PAIRED", most_paired)
    dense, (indicators, column, prior), labels = make((1.0, 0.5), n_classes)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, len(labels))
    coef, intercept, penalties = fit_category_ridge(dense, indicators, column, prior, labels, weights)
    roots = np.append(np.ones(2), np.sqrt(penalties[column]))
    table = np.hstack((dense, indicators.toarray())) / roots
    peer = LogisticRegression(tol=1e-9, max_iter=10_000).fit(table, labels, weights)
    # The first of two classes has the score 0.
    scores = np.hstack((np.zeros((600, 3 - n_classes)), table @ (coef * roots).T + intercept))
    np.testing.assert_allclose(softmax(scores, axis=1), peer.predict_proba(table), atol=2e-4)


@pytest.mark.slow
def test_the_penalty_is_about_that_of_the_greatest_marginal_likelihood():
    dense, (indicators, column, _), labels = make((0.7,), n_rows=200)
    *_, (penalty,) = fit_category_ridge(dense, indicators, column, np.full(1, 1e-9), labels, np.ones(len(labels)))
    # It is not exact, because its equation neglects how the curvature depends on the penalty.
    assert 0.5 < penalty / penalty_of_categories(dense, indicators.toarray(), labels) < 2.0


def test_each_column_has_its_own_penalty():
    """The variances of the effects are 4, 1/4 and 0."""
    dense, (indicators, column, prior), labels = make((2.0, 0.5, 0.0), n_rows=4000)
    *_, (great, small, none) = fit_category_ridge(dense, indicators, column, prior, labels, np.ones(len(labels)))
    assert 0.15 < great < 0.5
    assert 1.5 < small < 8.0
    assert none > 2.0 * small
    strong = np.array([2.0, 2.0, 1000.0])
    *_, (_, _, near_prior) = fit_category_ridge(dense, indicators, column, strong, labels, np.ones(len(labels)))
    assert 0.9 < near_prior < 1.1


def test_one_category_and_classes_that_it_separates():
    """Neither a penalty nor a coefficient is infinite."""
    labels = np.repeat([0, 1], 20)
    separate, alike = sp.csr_matrix(labels[:, None].astype(np.float64)), sp.csr_matrix(np.ones((40, 1)))
    others = np.zeros(1, np.int64), np.full(1, 2.0), labels, np.ones(40)
    coef, _, _ = fit_category_ridge(np.empty((40, 0)), separate, *others)
    assert 1.0 < coef[0, 0] < 20.0
    coef, intercept, _ = fit_category_ridge(np.empty((40, 0)), alike, *others)
    np.testing.assert_allclose([coef[0, 0], intercept[0]], 0.0, atol=1e-6)
