"""The registry of metrics against scikit-learn and against the definition."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import make_classification

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.inspection.scoring import METRICS, FittedFold


def fold(n_classes, weighted):
    """Return a forest fitted on the first half of some data, with the second half as test rows."""
    X, y = make_classification(400, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0)
    y = np.array(["a", "b", "c"])[y]
    weight = np.random.default_rng(0).integers(1, 4, 200).astype(float) if weighted else None
    forest = AUCForestClassifier(20, min_samples_leaf=5, random_state=0).fit(X[:200], y[:200])
    return FittedFold(forest, 1.5, X[200:], y[200:], weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_quality_is_scikit_learns(n_classes, weighted):
    fitted = fold(n_classes, weighted)
    y, proba, weight = fitted.y, fitted.proba, fitted.sample_weight
    onehot = np.stack([y == label for label in fitted.forest.classes_], axis=1)
    if n_classes == 2:
        expected = {
            "roc_auc": metrics.roc_auc_score(onehot[:, 1], proba[:, 1], sample_weight=weight),
            "average_precision": metrics.average_precision_score(onehot[:, 1], proba[:, 1], sample_weight=weight),
            "brier": metrics.brier_score_loss(onehot[:, 1], proba[:, 1], sample_weight=weight),
        }
    else:
        expected = {
            "average_precision": metrics.average_precision_score(onehot, proba, sample_weight=weight),
            "brier": np.average(((onehot - proba) ** 2).sum(axis=1), weights=weight),
        }
        # scikit-learn has no weights for pairs of classes: an integer weight is that many rows
        rows = np.repeat(np.arange(len(y)), 1 if weight is None else weight.astype(int))
        expected["roc_auc"] = metrics.roc_auc_score(y[rows], proba[rows], multi_class="ovo")
    expected["log_loss"] = metrics.log_loss(y, proba, sample_weight=weight)
    predicted = fitted.forest.classes_[proba.argmax(axis=1)]
    recalls = [
        np.average(predicted[y == label] == label, weights=None if weight is None else weight[y == label])
        for label in fitted.forest.classes_
    ]
    expected["g_mean"] = np.prod(recalls) ** (1 / n_classes)
    for name, value in expected.items():
        assert METRICS[name].measure(fitted) == pytest.approx(value, rel=1e-12), name


def test_costs_are_the_clocks_and_means_over_trees():
    fitted = fold(2, False)
    assert METRICS["fit_seconds"].measure(fitted) == 1.5
    indicator, first = fitted.forest.decision_path(fitted.X)
    n_trees = len(first) - 1
    assert METRICS["n_nodes"].measure(fitted) == first[-1] / n_trees
    passed = [indicator[:, first[i] : first[i + 1]].sum(axis=1).max() - 1 for i in range(n_trees)]
    # test rows need not reach the deepest leaf of every tree
    assert np.mean(passed) <= METRICS["depth"].measure(fitted) <= np.mean(passed) + 1
