"""From validated arrays to trees: parameters resolved, weights as integers, bootstrap samples, trees in parallel."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.tree import DecisionTreeClassifier

from aucforest.fitting import growing as _growing
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.growing import (
    run_in_threads,
    tree_weights,
)
from aucforest.fitting.spec import GrowthParams, combine_weights, resolve_max_features, tree_keys
from tests.estimators.data import digest, make_table, small_forest
from tests.fitting.rows import code_rows, grow_trees

X, Y = make_table(n_rows=101, n_classes=3)


def resolve(n_rows=101, **params):
    return GrowthParams.resolve({**small_forest(criterion="auc").get_params(), **params}, n_rows, X.shape[1])


def training(weights=None, by_class=None, n_sampled=None, **params):
    """Return what trees share, and the rows."""
    labels, sampler = Y.astype(np.uint16), None if n_sampled is None else BootstrapSampler.of_all(101, n_sampled)
    return code_rows(X, labels, resolve(**params), sampler, combine_weights(labels, weights, by_class))


@pytest.mark.parametrize("n_features", [1, 2, 5, 9, 100])
@pytest.mark.parametrize("max_features", [None, "sqrt", "log2", 1, 2, 1.0, 0.5, 0.34, 1e-9])
def test_max_features_as_in_scikit_learn(max_features, n_features):
    peer = DecisionTreeClassifier(max_features=max_features).fit(np.zeros((2, n_features)), [0, 1])
    assert resolve_max_features(max_features, n_features) == min(peer.max_features_, n_features)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"min_samples_split": 7}, {"min_samples_split": 7}),
        ({"min_samples_split": 0.1}, {"min_samples_split": 11}),
        ({"min_samples_split": 1e-9}, {"min_samples_split": 2}),
        ({"min_samples_leaf": 7}, {"min_samples_leaf": 7}),
        ({"min_samples_leaf": 0.1}, {"min_samples_leaf": 11}),
        ({"min_samples_split": 10**30}, {"min_samples_split": 102}),
        ({"min_samples_leaf": 10**30}, {"min_samples_leaf": 102}),
        ({"max_depth": 3}, {"max_depth": 3}),
        ({"max_depth": None}, {"max_depth": 2**31 - 1}),
        ({"max_depth": 10**12}, {"max_depth": 2**31 - 1}),
        ({"min_weight_fraction_leaf": 0.2}, {"min_weight_fraction_leaf": 0.2}),
        ({"class_weight": "balanced_subsample"}, {"balanced_subsample": True}),
        ({"class_weight": "balanced"}, {"balanced_subsample": False}),
    ],
)
def test_parameters_become_numbers(given, expected):
    assert {name: getattr(resolve(**given), name) for name in expected} == expected


def test_log_loss_is_entropy():
    assert resolve(criterion="log_loss") == resolve(criterion="entropy") != resolve(criterion="gini")


@pytest.mark.parametrize("value", [0, 0.0, np.float32(0), np.float64(0)])
def test_kernels_see_one_type(value):
    params = resolve(min_gain=value, max_depth=np.int32(3))
    assert (type(params.min_gain), type(params.max_depth)) == (float, int)


def test_keys_go_on():
    assert tree_keys(3, range(5))[3:] == tree_keys(3, range(3, 5))
    assert len({*tree_keys(3, range(5)), *tree_keys(4, range(5))}) == 10


def test_weights_are_multiplied():
    weights, by_class = np.linspace(1, 2, 101), np.array([3.0, 2.0, 1.0])
    labels = Y.astype(np.uint16)
    assert combine_weights(labels, None, None) is None
    np.testing.assert_array_equal(combine_weights(labels, weights, None), weights)
    np.testing.assert_array_equal(combine_weights(labels, None, by_class), by_class[Y])
    np.testing.assert_array_equal(combine_weights(labels, weights, by_class), weights * by_class[Y])


@pytest.mark.parametrize("weights", [None, np.linspace(1, 3, 101)])
def test_weights_of_one_tree(weights):
    counts = BootstrapSampler.of_all(101, 60).counts(tree_keys(0, range(1))[0])
    fixed, unit = tree_weights(*training(weights, n_sampled=60), counts)
    if weights is None:
        assert len(fixed) == 0
    else:
        np.testing.assert_allclose(fixed * unit, weights * counts, rtol=1e-12)
    # Balanced over the draws of this tree, not over the rows.
    fixed, unit = tree_weights(*training(weights, n_sampled=60, class_weight="balanced_subsample"), counts)
    drawn_weight = counts * (1 if weights is None else weights)
    drawn = np.bincount(Y, drawn_weight)
    assert drawn.max() > drawn.min() > 0
    expected = drawn_weight * drawn_weight.sum() / (3 * drawn[Y])
    np.testing.assert_allclose(fixed * unit, expected, rtol=1e-12)


def test_balancing_draws_without_a_class():
    counts = np.where(Y == 2, 0, 1).astype(np.uint16)
    fixed, unit = tree_weights(*training(n_sampled=101, class_weight="balanced_subsample"), counts)
    shares = np.bincount(Y, fixed * unit)
    np.testing.assert_allclose(shares, [counts.sum() / 2, counts.sum() / 2, 0])


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_the_parallel_map(n_jobs):
    for n_items in (0, 1, 5):
        assert list(run_in_threads(n_jobs)(lambda i: i * i, range(n_items))) == [i * i for i in range(n_items)]


def test_short_tasks_are_done_one_by_one(monkeypatch):
    monkeypatch.setattr(_growing, "_LEAST_TASK", 1e-3)
    threads = [set(run_in_threads(2, seconds)(lambda _: threading.get_ident(), range(9))) for seconds in (1e-4, 1e-2)]
    assert threads[0] == {threading.get_ident()}
    assert threading.get_ident() not in threads[1]


def test_a_parallel_map_that_is_given_up_begins_nothing_more():
    begun, go_on = [], threading.Event()

    def wait(i):
        begun.append(i)
        go_on.wait(10)
        time.sleep(0.01)
        if i == 0:
            raise KeyboardInterrupt

    results = run_in_threads(2)(wait, range(100))
    threading.Timer(0.2, go_on.set).start()
    with pytest.raises(KeyboardInterrupt):
        list(results)
    assert len(begun) < 100


def test_the_parallel_map_shares_memory_whatever_the_backend():
    seen = []
    with parallel_config(backend="loky", n_jobs=2):
        assert list(run_in_threads(None)(seen.append, range(6))) == [None] * 6
    assert sorted(seen) == list(range(6))


@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
def test_a_tree_depends_on_its_key_only(class_weight):
    growth, part = training(n_sampled=101, class_weight=class_weight)
    keys = tree_keys(0, range(40))
    expected = digest(SimpleNamespace(trees_=grow_trees(growth, part, keys)))
    assert len({tree[0] + tree[1] for tree in expected}) == 40
    for n_jobs in (2, 3):
        assert digest(SimpleNamespace(trees_=grow_trees(growth, part, keys, n_jobs))) == expected
    alone = [grow_trees(growth, part, [key])[0] for key in keys[::-1]]
    assert digest(SimpleNamespace(trees_=alone)) == expected[::-1]
    assert grow_trees(growth, part, []) == []


def test_trees_are_valid_and_own_their_arrays():
    trees = grow_trees(*training(np.linspace(0.1, 3, 101), n_sampled=101), tree_keys(0, range(9)))
    for tree in trees:
        tree.validate()
        assert tree.n_features == 5
        assert tree.feature.base is None
    assert not np.shares_memory(trees[0].threshold, trees[1].threshold)
