"""The metrics of a comparison against scikit-learn and their definitions."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import make_classification

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.inspection.scoring import METRICS, FittedFold, find_metric
from aucforest.metrics import lift_at_k, precision_at_k, recall_at_k


def fold(n_classes, weighted, **params):
    X, y = make_classification(400, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=0)
    y = np.array(["a", "b", "c"])[y]
    weight = np.random.default_rng(0).integers(1, 4, 200).astype(float) if weighted else None
    forest = AUCForestClassifier(20, min_samples_leaf=5, random_state=0, **params).fit(X[:200], y[:200])
    return FittedFold(forest, 1.5, X[200:], y[200:], weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_of_quality_equal_those_of_scikit_learn(n_classes, weighted):
    fitted = fold(n_classes, weighted)
    y, proba, weight = fitted.y, fitted.proba, fitted.sample_weight
    onehot = np.stack([y == label for label in fitted.forest.classes_], axis=1)
    # scikit-learn has no weights for pairs of classes, so rows are repeated.
    rows = np.repeat(np.arange(len(y)), 1 if weight is None else weight.astype(int))
    is_class, shown = (onehot[:, 1], proba[:, 1]) if n_classes == 2 else (onehot, proba)
    predicted = fitted.forest.classes_[proba.argmax(axis=1)]
    expected = {
        "roc_auc": metrics.roc_auc_score(y[rows], shown[rows], multi_class="ovo"),
        "average_precision": metrics.average_precision_score(is_class, shown, sample_weight=weight),
        "brier": np.average(((onehot - proba) ** 2).sum(axis=1), weights=weight) / (2 if n_classes == 2 else 1),
        "log_loss": metrics.log_loss(y, proba, sample_weight=weight),
        "g_mean": metrics.recall_score(y, predicted, average=None, sample_weight=weight).prod() ** (1 / n_classes),
    }
    for name, value in expected.items():
        assert METRICS[name].measure(fitted) == pytest.approx(value, rel=1e-12), name


def test_the_positive_class_can_be_the_first():
    fitted = fold(2, False, pos_label="a")
    is_positive, score = fitted.y == "a", fitted.proba[:, 0]
    found = find_metric("average_precision").measure(fitted), find_metric("recall_at_0.1").measure(fitted)
    assert found[0] == pytest.approx(metrics.average_precision_score(is_positive, score))
    assert found[1] == recall_at_k(is_positive, score, 0.1)


def test_costs_are_the_fit_time_and_means_over_trees():
    fitted = fold(2, False)
    sizes = [(len(tree.feature), tree.depth.max()) for tree in fitted.forest.trees_]
    found = [METRICS[name].measure(fitted) for name in ("fit_seconds", "n_nodes", "depth")]
    assert found == [1.5, *np.mean(sizes, axis=0)]


@pytest.mark.parametrize(("n_classes", "weighted"), [(2, False), (3, True)])
def test_metrics_at_k(n_classes, weighted):
    fitted = fold(n_classes, weighted)
    classes = [1] if n_classes == 2 else range(n_classes)
    for kind, metric in (("precision", precision_at_k), ("recall", recall_at_k), ("lift", lift_at_k)):
        for text, k, words in (("0.05", 0.05, "5 %"), ("20", 20, "20"), ("1", 1, "1"), ("1.0", 1.0, "100 %")):
            found = find_metric(f"{kind}_at_{text}")
            expected = np.mean([
                metric(fitted.is_class[:, c], fitted.proba[:, c], k, sample_weight=fitted.sample_weight)
                for c in classes
            ])  # fmt: skip
            assert found.measure(fitted) == pytest.approx(expected)
            assert (found.title, found.higher_is_better) == (f"{kind} at {words}", True)
            assert found.upper_bound(n_classes) == (np.inf if kind == "lift" else 1.0)


@pytest.mark.parametrize("name", ["precision_at_k", "f1_at_1"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=f"must be among roc_auc, .*precision_at_K.* got '{name}'"):
        find_metric(name)
