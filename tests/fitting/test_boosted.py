"""Gradient boosting: splits, steps and losses equal a reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.fitting.boosted import Booster, BoostingRows, boosted_classes, sum_steps
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.target import Target
from aucforest.tree.prediction import PackedTrees
from aucforest.tree.tree import LEAF
from tests.estimators.data import small_forest
from tests.reference.boosting import best_increase, increase, newton_steps, probabilities


def make_rows(n_rows=120, n_classes=2, seed=0):
    """Return features, of which all matter, and labels."""
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(n_rows, 3)), 1)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * random.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)).astype(np.uint16)


def booster_of(X, y, weights=None, held_out=None, labels=None, n_classes=None, **params):
    """Return a booster of rows; the held-out rows are the same rows if none are given."""
    n_classes = int(y.max()) + 1 if n_classes is None else n_classes
    params = {"criterion": "gini", "splitter": "best", "max_features": None, "min_samples_leaf": 5} | params
    target = Target(np.arange(n_classes), y, None)
    spec = FitSpec.resolve(small_forest(bootstrap=False, **params)._params(), target, None, X.shape[1], 0)
    table = RowsInMemory(X, None, {}, {}, target)
    table.code(spec)
    growth, part = table.growth_and_part()
    held_out, labels = (X, y) if held_out is None else (held_out, labels)
    rows = BoostingRows(part._replace(weights=weights), X, None, held_out, labels, np.ones(len(labels)))
    return Booster(growth, rows)


def add_stages(booster, n_stages, n_classes):
    """Add stages, and return their losses."""
    n_each = len(boosted_classes(n_classes))
    return [booster.add_stage(tree_keys(7, range(i * n_each, (i + 1) * n_each))) for i in range(n_stages)]


def start_of(y, weights):
    return np.log(np.bincount(y, weights) / weights.sum())


def leaves_of(boosted, X):
    return PackedTrees([boosted.tree]).find_leaves(X)[0]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_steps_and_losses_are_those_of_the_reference(n_classes):
    X, y = make_rows(200, n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    booster = booster_of(X, y, weights, max_depth=3)
    losses = add_stages(booster, 4, n_classes)
    scores, trees = np.tile(start_of(y, weights), (len(y), 1)), iter(booster.state.trees)
    for loss in losses:
        proba = probabilities(scores)
        for k in boosted_classes(n_classes):
            boosted = next(trees)
            assert boosted.k == k
            leaves = leaves_of(boosted, X)
            expected = newton_steps(leaves, y, k, proba[:, k], weights, n_classes)
            for leaf, step in expected.items():
                assert boosted.steps[leaf] == pytest.approx(step, rel=1e-9, abs=1e-12)
            scores[:, k] += [expected[leaf] for leaf in leaves.tolist()]
            if n_classes == 2:
                scores[:, 0] -= [expected[leaf] for leaf in leaves.tolist()]
        assert loss == pytest.approx(-np.sum(np.log(probabilities(scores)[np.arange(len(y)), y])))
    found = sum_steps(booster.state.trees, X, n_classes) + start_of(y, weights)
    np.testing.assert_allclose(found, scores, atol=1e-10)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**16), n_classes=st.integers(2, 3), later=st.booleans())
def test_the_first_split_has_the_greatest_increase(seed, n_classes, later):
    X, y = make_rows(60, n_classes, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(y))
    booster, n_each = booster_of(X, y, weights, max_depth=1), len(boosted_classes(n_classes))
    add_stages(booster, 2, n_classes)
    boosted = booster.state.trees[n_each if later else 0]
    before = sum_steps(booster.state.trees[:n_each] if later else [], X, n_classes) + start_of(y, weights)
    errors = (y == boosted.k) - probabilities(before)[:, boosted.k]
    best = best_increase(X, errors, weights, 5)
    if boosted.tree.feature[0] == LEAF:
        assert best < 1e-6
        return
    goes_left = leaves_of(boosted, X) == boosted.tree.left_child[0]
    assert increase(errors, weights, goes_left) == pytest.approx(best, rel=1e-6)


def test_steps_of_inner_nodes_are_means_over_rows():
    X, y = make_rows(200)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    booster = booster_of(X, y, weights, max_depth=4)
    add_stages(booster, 3, 2)
    for boosted in booster.state.trees:
        assert boosted.steps[0] == pytest.approx(np.average(boosted.steps[leaves_of(boosted, X)], weights=weights))
        assert boosted.tree.weight[0] == pytest.approx(weights.sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_bins", [255, 4, None])
def test_rows_are_in_the_leaves_that_they_grew(dtype, max_bins):
    X, y = make_rows(300)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    booster = booster_of(X.astype(dtype), y, max_bins=max_bins, max_depth=5)
    add_stages(booster, 1, 2)
    tree = booster.state.trees[0].tree
    counts = np.bincount(leaves_of(booster.state.trees[0], X.astype(dtype)), minlength=tree.n_nodes)
    np.testing.assert_array_equal(counts[tree.is_leaf], tree.n_samples[tree.is_leaf])
    np.testing.assert_array_equal(tree.weight, tree.n_samples)


@pytest.mark.parametrize("least", [1e-300, 1e-90])
def test_very_different_weights_have_finite_steps(least):
    X, y = make_rows(200)
    X[:, 0], y[:100] = np.arange(200) >= 100, X[:100, 1] > 0.0
    y[100:] = np.arange(100) % 10 != 0
    booster = booster_of(X, y, np.where(X[:, 0] > 0.0, 1.0, least), max_depth=4)
    assert np.all(np.isfinite(add_stages(booster, 5, 2)))
    assert all(np.all(np.isfinite(boosted.steps)) for boosted in booster.state.trees)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_may_be_absent(n_classes):
    X, y = make_rows(100, n_classes)
    is_last = y == n_classes - 1
    booster = booster_of(X, np.where(is_last, 0, y).astype(np.uint16), None, X[is_last], y[is_last], n_classes)
    assert np.all(np.isfinite(add_stages(booster, 10, n_classes)))


def test_rows_of_small_errors_are_left_out_of_a_tree_but_not_of_its_steps():
    X, y = make_rows(200)
    X[:, 0] = y  # all rows but those of the noise below are soon fitted
    y[:8] = 1 - y[:8]
    booster = booster_of(X, y, max_depth=3)
    add_stages(booster, 80, 2)
    last = booster.state.trees[-1]
    assert last.tree.n_samples[0] < len(y)
    assert last.tree.weight[0] == len(y)
