"""The combination of scores by penalized likelihood: a general optimizer, logistic regression, and what must hold."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from aucforest.estimators._combination import Combination, combine, log_proba, residual_score
from tests.reference import stacking as reference


def simulate(n_models, n_classes, n_rows=60, seed=0):
    """Return the scores of models that know more or less of the classes, and the classes."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(n_rows, n_classes)) * 1.5
    scores = [true + rng.normal(scale=1.0 + m, size=true.shape) for m in range(n_models)]
    labels = (softmax(true, axis=1).cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1)
    return scores, labels.astype(np.uint16), rng.uniform(0.2, 2.0, n_rows)


@pytest.mark.parametrize("n_models", [1, 2, 3])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("penalty", [0.5, 30.0])
def test_combination_equals_the_reference(n_models, n_classes, penalty):
    data = *simulate(n_models, n_classes, seed=n_models), penalty
    found, (coef, intercept) = combine(*data), reference.combine(*data)
    np.testing.assert_allclose(found.coef, coef, atol=2e-4)
    np.testing.assert_allclose(found.intercept, intercept, atol=2e-4)
    assert found.intercept.sum() == pytest.approx(0.0, abs=1e-9)
    expected = reference.penalized_loss(coef, intercept, *data)
    assert reference.penalized_loss(*found, *data) == pytest.approx(expected, rel=1e-7)
    expected = [softmax(reference.class_scores(coef, intercept, data[0], row)) for row in range(60)]
    np.testing.assert_allclose(found.apply(data[0]), expected, atol=2e-4)


def test_a_model_that_harms_has_the_weight_0():
    scores, labels, weights = simulate(1, 3, 300)
    coef, _ = combine([scores[0], -scores[0] + np.eye(3)[labels]], labels, weights, 1.0)
    assert coef[0] > 0.2
    harmful = combine([scores[0], -3.0 * np.eye(3)[labels]], labels, weights, 1.0)
    assert harmful.coef[1] == 0.0
    np.testing.assert_allclose(harmful.coef[:1], combine(scores, labels, weights, 1.0).coef, atol=1e-4)
    # The scores of a model of weight 0 are not needed.
    np.testing.assert_array_equal(harmful.apply([scores[0], None]), harmful.apply([scores[0], scores[0]]))


def test_all_weights_may_be_0():
    _, labels, weights = simulate(1, 2, 300)
    opposite = [-2.0 * np.eye(2)[labels]]
    found = combine(opposite, labels, weights, 0.1)
    assert found.coef.tolist() == [0.0]
    expected = np.bincount(labels, weights) / weights.sum()
    np.testing.assert_allclose(found.apply(opposite), np.tile(expected, (300, 1)), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_residual_score(n_classes):
    """If the residual forest is right, it leads from the probabilities of the first forest to the true ones."""
    rng = np.random.default_rng(n_classes)
    proba, true = rng.dirichlet(np.ones(n_classes), 50), rng.dirichlet(np.ones(n_classes), 50)
    residual = (1.0 - proba) * true / np.sum((1.0 - proba) * true, axis=1, keepdims=True)
    score = residual_score(residual, proba)
    np.testing.assert_allclose(score, reference.residual_score(residual, proba), rtol=1e-9)
    np.testing.assert_allclose(softmax(log_proba(proba) + score, axis=1), true, rtol=1e-9)
    if n_classes == 2:
        np.testing.assert_allclose(expit(score[:, 1] - score[:, 0]), residual[:, 1], rtol=1e-9)


def test_probabilities_of_0_and_1_have_finite_scores():
    certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert np.all(np.isfinite(log_proba(certain)))
    assert np.all(np.isfinite(residual_score(certain, certain)))
    assert np.all(np.isfinite(residual_score(1.0 - certain, certain)))
    proba = Combination(np.array([1.5]), np.zeros(2)).apply([log_proba(certain)])
    np.testing.assert_allclose(proba, certain, atol=1e-9)
