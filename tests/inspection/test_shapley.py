"""Shapley values against all subsets of features, for trees of any shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.inspection.shapley import ShapleyTree, add_shapley_values, make_scratch, scratch_shape
from aucforest.tree.tree import SHARED_CODE, Tree
from tests.persistence.trees import make_tree
from tests.reference import shapley as reference
from tests.reference.tree import walk
from tests.tree.chains import make_chain


def shapley_values(tree, X, k=1):
    """Return the Shapley values of what a tree predicts of a class, shape (n_rows, n_features)."""
    prepared, values = ShapleyTree.of(tree, np.arange(tree.n_features), 1), np.array(tree.prediction[:, k])
    shape, total = scratch_shape([prepared]), np.zeros(X.shape)
    for start in range(0, len(X), shape[-1]):
        columns = np.array(X[start : start + shape[-1]].T, dtype=np.float64, order="C")
        sums = np.zeros((1, *columns.shape))
        add_shapley_values(prepared, values, columns, make_scratch(shape), sums)
        total[start : start + shape[-1]] = sums[0].T
    return total


def sides(tree, row):
    goes_left = []
    for node, value in enumerate(row[tree.feature]):
        if np.isnan(value):
            goes_left.append(bool(tree.missing_left[node]))
        elif tree.has_set(node):
            goes_left.append(bool(tree.goes_left(node)[min(int(value), SHARED_CODE)]))
        else:
            goes_left.append(bool(value <= tree.threshold[node]))
    return goes_left


def by_subsets(tree, row, k=1, inputs=None):
    """Return the Shapley values of a tree; features that are made of the same input are known together."""
    inputs = range(tree.n_features) if inputs is None else inputs
    children = [None if left < 0 else (left, left + 1) for left in tree.left_child.tolist()]
    feature = [inputs[feature] if feature >= 0 else -1 for feature in tree.feature.tolist()]
    parts = feature, children, tree.weight.tolist(), tree.prediction[:, k].tolist()
    return reference.shapley_values(*parts, sides(tree, row), max(inputs) + 1)


def make_rows(tree, n_rows=6, seed=0):
    """Return rows of codes where a tree has sets, and of numbers elsewhere; some values are missing or infinite."""
    rng = np.random.default_rng(seed)
    X, by_set = rng.normal(size=(n_rows, tree.n_features)), np.unique(tree.feature[tree.set_nodes])
    X[rng.random(X.shape) < 0.1] = np.inf
    X[:, by_set] = rng.integers(0, 255, (n_rows, len(by_set)))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@given(st.integers(0, 2**32 - 1), st.integers(0, 14), st.integers(1, 5), st.booleans(), st.integers(2, 3))
def test_values_equal_those_by_all_subsets(seed, n_splits, n_features, with_sets, n_classes):
    tree = make_tree(seed, n_splits, n_features, n_classes, by_set=range(n_features)[::2] if with_sets else ())
    X = make_rows(tree, seed=seed)
    for k in range(n_classes):
        expected = [by_subsets(tree, row, k) for row in X]
        np.testing.assert_allclose(shapley_values(tree, X, k), expected, rtol=0, atol=1e-13)


@given(st.integers(0, 2**32 - 1), st.integers(0, 400), st.integers(1, 60), st.integers(1, 300))
def test_values_sum_to_the_prediction(seed, n_splits, n_features, n_rows):
    tree = make_tree(seed, n_splits, n_features, by_set=(0,))
    X, leaf = make_rows(tree, n_rows, seed), tree.is_leaf
    predicted = np.array([tree.prediction[walk(tree, row)[-1], 1] for row in X])
    base = tree.prediction[leaf, 1] @ tree.weight[leaf] / tree.weight[0]
    np.testing.assert_allclose(shapley_values(tree, X).sum(axis=1), predicted - base, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_splits", [200, 1000])
def test_deep_trees_of_many_features_are_precise(n_splits):
    """In a chain with another feature at each node, all features have the same value for a row in the last leaf."""
    chain = make_chain(n_splits)
    node = np.arange(chain.n_nodes)
    changed = {
        "feature": np.where(chain.is_leaf, -1, node // 2).astype(np.int32), "threshold": np.zeros(chain.n_nodes),
        "weight": np.ldexp(1.0, -((node + 1) // 2)),
        "frequencies": np.stack([node < node[-1], node == node[-1]], axis=1).astype(float), "n_features": n_splits,
    }  # fmt: skip
    X = np.ones((2, n_splits))
    X[1, 0] = -1.0
    found = shapley_values(Tree(**{**vars(chain), **changed}), X)
    np.testing.assert_allclose(found[0], 1.0 / n_splits, rtol=1e-12)
    assert found[1].min() == found[1, 0]
    assert abs(found[1].sum()) < 1e-12


def test_values_are_finite_if_weights_are_extreme():
    tree = make_tree(3, 12, 2)
    weight = tree.weight * np.where(np.arange(tree.n_nodes) < 6, 1e290, 1e-290)
    assert np.isfinite(shapley_values(Tree(**{**vars(tree), "weight": weight}), make_rows(tree))).all()
