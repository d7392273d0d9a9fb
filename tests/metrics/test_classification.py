import numpy as np
import pytest
from sklearn import metrics

from aucforest.metrics.classification import brier_score, g_mean, log_loss


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_equal_those_of_scikit_learn(n_classes, weighted):
    random = np.random.default_rng(0)
    codes, proba = random.integers(n_classes, size=200), random.dirichlet(np.full(n_classes, 0.2), 200)
    weights, predicted = random.random(200) if weighted else None, proba.argmax(axis=1)
    one_hot = codes[:, None] == np.arange(n_classes)
    squares = np.average(np.square(proba - one_hot).sum(axis=1), weights=weights)
    assert brier_score(codes, proba, weights) == pytest.approx(squares / (2 if n_classes == 2 else 1))
    assert log_loss(codes, proba, weights) == metrics.log_loss(codes, proba, sample_weight=weights)
    recalls = metrics.recall_score(codes, predicted, average=None, sample_weight=weights)
    assert g_mean(codes, predicted, weights) == pytest.approx(np.prod(recalls) ** (1 / n_classes))


def test_g_mean_ignores_classes_without_weight():
    assert g_mean(np.array([0, 0, 2, 2]), np.array([0, 0, 2, 1])) == pytest.approx(np.sqrt(0.5))
    assert g_mean(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([0.0, 1.0, 1.0])) == 0.5
