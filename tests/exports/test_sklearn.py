"""Predictions of scikit-learn for exported trees."""

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.tree import export_text
from sklearn.utils.validation import check_is_fitted

from aucforest import AUCForestClassifier, _memory
from aucforest.exports import sklearn as module
from aucforest.exports.sklearn import CalibratedForestClassifier, as_decision_tree, as_random_forest
from tests.estimators.data import make_table, small_forest
from tests.exports.data import mean_of, random_data, random_tree
from tests.memory import peak_below

N_CODES = {1: 7, 3: 255, 4: 3}


def make_data(seed, **params):
    return random_data(seed, N_CODES, n_splits=seed % 9, **params)


# To check for missing values, scikit-learn sums all values; the sum of the largest ones overflows.
@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")
@given(st.integers(0, 2**32), st.sampled_from([2, 4]), st.sampled_from([0.0, 3.0]))
def test_the_mean_is_the_same(seed, n_classes, shrinkage):
    trees, X = make_data(seed, n_classes=n_classes, shrinkage=shrinkage)
    expected, classes = mean_of(trees, X), np.array(list("abcd"))[:n_classes]
    forest, tree = as_random_forest(trees, classes, N_CODES), as_decision_tree(trees[:1], classes, N_CODES)
    np.testing.assert_allclose(forest.predict_proba(X), expected, rtol=0, atol=1e-12)
    assert forest.predict(X).tolist() == classes[forest.predict_proba(X).argmax(axis=1)].tolist()
    np.testing.assert_array_equal(tree.predict_proba(X), mean_of(trees[:1], X))


@given(st.integers(0, 2**32))
def test_attributes_of_nodes(seed):
    ((tree,), _) = make_data(seed, n_trees=1)
    made = as_decision_tree([tree], np.arange(2), N_CODES).tree_
    is_leaf, weight = made.children_left < 0, made.weighted_n_node_samples
    assert made.max_depth == made.compute_node_depths().max() - 1
    assert made.n_leaves == np.count_nonzero(is_leaf)
    assert np.all(made.n_node_samples >= 1)
    children = weight[made.children_left] + weight[made.children_right]
    np.testing.assert_allclose(weight[~is_leaf], children[~is_leaf])
    if not tree.set_nodes.size:
        splits, impurity = np.flatnonzero(~tree.is_leaf), tree.weight * (1.0 - np.square(tree.value).sum(axis=1))
        left = tree.left_child[splits]
        gains = impurity[splits] - impurity[left] - impurity[left + 1]
        expected = np.bincount(tree.feature[splits], gains, minlength=5) / tree.weight[0]
        np.testing.assert_allclose(made.compute_feature_importances(normalize=False), expected, atol=1e-12)


def test_a_forest_is_one_of_scikit_learn():
    trees, X = make_data(5)
    forest = as_random_forest(trees, np.arange(2), N_CODES)
    check_is_fitted(forest)
    assert forest.apply(X).shape == (len(X), 4)
    assert forest.decision_path(X)[0].shape[0] == len(X)
    assert "class" in export_text(forest.estimators_[0])
    assert clone(forest).fit(X, np.arange(len(X)) % 2).n_estimators == 4


def test_a_calibrated_forest_is_one_of_scikit_learn():
    X, y = make_table()
    corrected = small_forest(20).fit(X, y).to_sklearn()
    assert isinstance(corrected, CalibratedForestClassifier)
    assert not isinstance(corrected, RandomForestClassifier)
    check_is_fitted(corrected)
    assert corrected.fit(X, None) is clone(corrected) is corrected
    assert corrected.n_features_in_ == 5
    assert not hasattr(corrected, "feature_names_in_")
    assert permutation_importance(corrected, X, y, scoring="roc_auc", n_repeats=2).importances.shape == (5, 2)


def test_too_many_nodes_of_all_trees_are_refused(monkeypatch):
    trees, _ = make_data(8)
    n_nodes = sum(tree.tree_.node_count for tree in as_random_forest(trees, np.arange(2), N_CODES).estimators_)
    n_copies = n_nodes - sum(tree.n_nodes for tree in trees)
    monkeypatch.setattr(module, "_MOST_BYTES", 80 * n_copies)
    as_random_forest(trees, np.arange(2), N_CODES)
    monkeypatch.setattr(module, "_MOST_BYTES", 80 * n_copies - 1)
    with pytest.raises(ValueError, match="for each range of categories"):
        as_random_forest(trees, np.arange(2), N_CODES)


def test_another_layout_of_nodes_is_refused(monkeypatch):
    trees, _ = make_data(0)
    more = np.dtype([*sklearn.tree._tree.NODE_DTYPE.descr, ("split_kind", "u1")])
    monkeypatch.setattr(sklearn.tree._tree, "NODE_DTYPE", more)
    with pytest.raises(
        NotImplementedError, match=f"^to_sklearn does not support the tree format of scikit-learn {sklearn.__version__}"
    ):
        as_decision_tree(trees[:1], np.arange(2), N_CODES)


@pytest.mark.slow
def test_copies_take_little_memory_or_are_refused():
    """Small trees with sets of many features, and of many classes."""
    n_codes = dict.fromkeys(range(500), 60)
    many_sets = random_tree(np.random.default_rng(0), 400, n_codes=n_codes, n_features=500)
    many_classes = random_tree(np.random.default_rng(4), 300, n_codes=n_codes, n_features=3, n_classes=5000)
    for tree in (many_sets, many_classes):
        with peak_below(2**31), pytest.raises(ValueError, match="the trees are too large for scikit-learn"):
            as_random_forest([tree], np.arange(tree.n_classes), n_codes)


def test_nodes_that_take_too_much_memory_are_refused(monkeypatch):
    forest = AUCForestClassifier(3, random_state=0).fit(np.arange(40.0)[:, None], np.arange(40) % 2)
    monkeypatch.setattr(_memory, "machine_memory", lambda: 2**10)
    with pytest.raises(ValueError, match=r"the \d+ nodes for scikit-learn, of 2 classes, would take about"):
        forest.to_sklearn()
