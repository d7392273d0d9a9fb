"""Weights of the rows of a tree as integers, and trees in parallel."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config

from aucforest.fitting import growing as _growing
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.growing import estimate_seconds, thread_map, tree_weights
from aucforest.fitting.spec import GrowthParams, combine_weights, tree_keys
from tests.estimators.data import digest, make_table, small_forest
from tests.fitting.rows import code_rows, grow_trees

X, Y = make_table(n_rows=101, n_classes=3)


def training(weights=None, by_class=None, n_sampled=None, **params):
    """Return what trees share, and the rows."""
    labels, sampler = Y.astype(np.uint16), None if n_sampled is None else BootstrapSampler.of_all(101, n_sampled)
    resolved = GrowthParams.resolve(small_forest(**{"criterion": "auc", **params}).get_params(), 101, X.shape[1])
    return code_rows(X, labels, resolved, sampler, combine_weights(labels, weights, by_class))


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
        assert list(thread_map(n_jobs)(lambda i: i * i, range(n_items))) == [i * i for i in range(n_items)]


def test_short_tasks_are_done_one_by_one(monkeypatch):
    monkeypatch.setattr(_growing, "_LEAST_TASK_SECONDS", 1e-3)
    threads = [set(thread_map(2, seconds)(lambda _: threading.get_ident(), range(9))) for seconds in (1e-4, 1e-2)]
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

    results = thread_map(2)(wait, range(100))
    threading.Timer(0.2, go_on.set).start()
    with pytest.raises(KeyboardInterrupt):
        list(results)
    assert len(begun) < 100


def test_the_parallel_map_shares_memory_whatever_the_backend():
    seen = []
    with parallel_config(backend="loky", n_jobs=2):
        assert list(thread_map(None)(seen.append, range(6))) == [None] * 6
    assert sorted(seen) == list(range(6))


def test_the_time_of_a_tree_is_never_zero():
    growth, _ = training(n_sampled=60)
    assert 0 < estimate_seconds(replace(growth, n_sampled=0)) < estimate_seconds(growth)


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
