"""Predictions and importances of the tree and the forest."""

from dataclasses import replace

import joblib
import numpy as np
import pytest

from tests.estimators.data import both, make_table, small_forest, small_tree
from tests.reference.tree import walk

X, Y = make_table(missing=0.1)


@both
@pytest.mark.parametrize("n_classes", [2, 4])
def test_prediction_is_the_mean_over_leaves(make, n_classes):
    table, labels = make_table(n_rows=300, n_classes=n_classes, missing=0.1)
    model = make(max_depth=4).fit(table[:200], labels[:200])
    leaves = np.array([[walk(tree, row)[-1] for tree in model.trees_] for row in table])
    np.testing.assert_array_equal(np.reshape(model.apply(table), leaves.shape), leaves)
    proba = model.predict_proba(table)
    expected = np.mean([tree.prediction[leaf] for tree, leaf in zip(model.trees_, leaves.T)], axis=0)
    np.testing.assert_allclose(proba, expected, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(table), model.classes_[proba.argmax(axis=1)])
    assert model.score(table, labels) == np.mean(model.predict(table) == labels)
    log_proba = model.predict_log_proba(table)  # without a warning
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(log_proba, np.log(proba))


@both
@pytest.mark.parametrize("max_depth", [1, None])
def test_importances_are_gains_by_weight(make, max_depth):
    model = make(max_depth=max_depth).fit(X, Y, np.linspace(0.5, 2, len(Y)))
    splits = ((tree, np.flatnonzero(tree.left_child >= 0)) for tree in model.trees_)
    gains = np.array([np.bincount(t.feature[nodes], (t.gain * t.weight)[nodes], 5) for t, nodes in splits])
    means = (gains / gains.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(model.feature_importances_, means, rtol=1e-12)
    if make is small_forest:  # every tree counts alike, except for trees without splits
        leaf, larger = small_tree().fit(np.zeros((4, 5)), [0, 1, 1, 1]).trees_, small_forest(1).fit(X, Y)
        larger.trees_ = [replace(tree, gain=1e300 * tree.gain) for tree in model.trees_[:3]] + model.trees_[3:] + leaf
        np.testing.assert_allclose(larger.feature_importances_, means, rtol=1e-12)


@both
def test_memory_maps_predict_alike(make, tmp_path):
    model = make(random_state=3, max_depth=3).fit(X, Y)
    joblib.dump(model, tmp_path / "model")
    other = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.apply(X), model.apply(X))


def test_large_forests_predict_what_single_rows_do():
    """Trees are prefetched if they have more than 2**17 nodes; single rows are predicted by another kernel."""
    table, random = np.random.default_rng(0).normal(size=(4000, 5)), np.random.default_rng(1)
    forest = small_forest(60, max_depth=None, splitter="random").fit(table, random.integers(0, 3, 4000))
    assert sum(tree.n_nodes for tree in forest.trees_) > 2**17
    alone = [forest.predict_proba(table[i : i + 1]) for i in range(0, 4000, 50)]
    np.testing.assert_array_equal(forest.predict_proba(table)[::50], np.concatenate(alone))
