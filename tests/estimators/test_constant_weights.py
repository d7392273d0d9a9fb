"""Weights count by their ratios: constant ones are as none, and a factor of all of them changes nothing."""

import numpy as np
import pytest

from aucforest import AUCForestClassifier
from tests.estimators.data import make_table

# Whole numbers, so that many splits of different features tie, and a column with more values than bins.
TABLES = {}
for n_classes in (2, 3):
    X, y = make_table(600, n_classes=n_classes, seed=n_classes)
    TABLES[n_classes] = np.column_stack([X.round(), X[:, 0] + 3 * X[:, 1]]), y
OPTIONS = [
    {},
    {"criterion": "gini"},
    {"criterion": "entropy"},
    {"criterion": "hellinger"},
    {"splitter": "random"},
    {"max_leaf_nodes": 20},
    {"min_weight_fraction_leaf": 0.01},
    {"bootstrap": False, "shrinkage": 0.0},
    {"class_weight": "balanced"},
    {"class_weight": "balanced_subsample"},
]


def assert_same(forest, other, X):
    """Compare trees, and predictions but for the rounding of weights."""
    assert forest.shrinkage_ == other.shrinkage_
    for tree, twin in zip(forest.trees_, other.trees_):
        np.testing.assert_array_equal(tree.feature, twin.feature)
        np.testing.assert_array_equal(tree.threshold, twin.threshold)
        np.testing.assert_array_equal(tree.missing_left, twin.missing_left)
    np.testing.assert_allclose(forest.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", TABLES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("constant", [1e-5, 1 / 3, 7.0])
def test_constant_weights_are_as_none(options, constant, n_classes):
    X, y = TABLES[n_classes]
    forest = AUCForestClassifier(10, random_state=0, **options).fit(X, y)
    other = AUCForestClassifier(10, random_state=0, **options).fit(X, y, np.full(len(y), constant))
    assert_same(forest, other, X)


@pytest.mark.parametrize("n_classes", TABLES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_factor_of_all_weights_changes_nothing(options, n_classes):
    X, y = TABLES[n_classes]
    weights = np.random.default_rng(0).choice([0.3, 0.7, 1.9], len(y))
    forest = AUCForestClassifier(10, random_state=0, **options).fit(X, y, weights)
    assert_same(forest, AUCForestClassifier(10, random_state=0, **options).fit(X, y, 0.123 * weights), X)
