"""Weights of the rows of a tree as integers, and trees in parallel."""

import threading
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config

from aucforest.fitting import growing as _growing
from aucforest.fitting.growing import grow_batches, map_in_threads, thread_map, tree_weights, trees_per_call
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.parts import TreeRows
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.target import Target
from tests.estimators.data import digest, make_table, small_forest

X, Y = make_table(n_rows=101, n_classes=3)


def training(weights=None, n_sampled=101, **params):
    """Return the parameters of the trees, and the rows."""
    forest = small_forest(1000, criterion="auc", max_samples=n_sampled, **params)
    target = Target(np.arange(3), Y.astype(np.uint16), weights)
    table = RowsInMemory(X, None, {}, {}, target)
    table.code(FitSpec.resolve(forest.get_params(), target, None, X.shape[1], 0))
    return table.growth_and_part()


def grow_trees(growth, part, keys, n_jobs=1):
    """Return one tree for every key."""
    trees = {}
    for indices, grown in grow_batches(growth, part, keys, n_jobs):
        trees |= zip(indices, grown)
    return [trees[index] for index in range(len(keys))]


@pytest.mark.parametrize("weights", [None, np.linspace(1, 3, 101)])
def test_weights_of_one_tree(weights):
    growth, part = training(weights, n_sampled=60)
    several = part.sample(tree_keys(0, range(3)))
    fixed, unit = tree_weights(growth, several)
    if weights is None:
        assert fixed.shape == (0,)
    else:
        np.testing.assert_allclose(fixed * unit, np.tile(weights, 3) * several.counts, rtol=1e-12)
    # Classes are balanced in the sample of this tree, not among all rows.
    counts = several.counts[:101]
    growth, part = training(weights, n_sampled=60, class_weight="balanced_subsample")
    fixed, unit = tree_weights(growth, TreeRows.of_tree(part, counts))
    sampled = counts * (1 if weights is None else weights)
    totals = np.bincount(Y, sampled)
    assert totals.max() > totals.min() > 0
    expected = sampled * sampled.sum() / (3 * totals[Y])
    np.testing.assert_allclose(fixed * unit, expected, rtol=1e-12)


def test_balanced_weights_of_a_sample_without_a_class():
    counts = np.where(Y == 2, 0, 1).astype(np.uint16)
    growth, part = training(class_weight="balanced_subsample")
    fixed, unit = tree_weights(growth, TreeRows.of_tree(part, counts))
    np.testing.assert_allclose(np.bincount(Y, fixed * unit), [counts.sum() / 2, counts.sum() / 2, 0])


@pytest.mark.parametrize("n_items", [0, 1, 5])
def test_the_parallel_map(n_items):
    assert list(thread_map(2)(lambda i: i * i, range(n_items))) == [i * i for i in range(n_items)]


def test_short_tasks_run_in_this_thread(monkeypatch):
    monkeypatch.setattr(_growing, "_LEAST_TASK_SECONDS", 1e-3)
    assert set(thread_map(2, 1e-4)(lambda _: threading.get_ident(), range(9))) == {threading.get_ident()}


def test_an_exception_in_another_thread_ends_the_map():
    this, is_raised, begun = threading.get_ident(), threading.Event(), []

    def fail_elsewhere(i):
        begun.append(i)
        if threading.get_ident() != this:
            is_raised.set()
            raise ValueError("elsewhere")
        is_raised.wait(10)
        time.sleep(0.1)

    with pytest.raises(ValueError, match="elsewhere"):
        list(thread_map(2)(fail_elsewhere, range(100)))
    assert len(begun) < 100


@pytest.mark.parametrize("run", [thread_map(2), partial(map_in_threads, n_threads=2)])
def test_a_parallel_map_that_is_interrupted_starts_no_more_tasks(run):
    begun, go_on = [], threading.Event()

    def wait(i):
        begun.append(i)
        go_on.wait(10)
        time.sleep(0.01)
        if i == 0:
            raise KeyboardInterrupt

    threading.Timer(0.2, go_on.set).start()
    with pytest.raises(KeyboardInterrupt):
        list(run(wait, range(100)))
    assert len(begun) < 100


def test_the_parallel_map_shares_memory_whatever_the_backend():
    seen = []
    with parallel_config(backend="loky", n_jobs=2):
        assert list(thread_map(None)(seen.append, range(6))) == [None] * 6
    assert sorted(seen) == list(range(6))


@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
@pytest.mark.parametrize("least", [0.0, np.inf], ids=["streamed", "at once"])
def test_a_tree_depends_on_its_key_only(class_weight, least, monkeypatch):
    monkeypatch.setattr(_growing, "_LEAST_STREAM_SECONDS", least)
    monkeypatch.setattr(_growing, "_LEAST_TASK_SECONDS", 0.0)
    growth, part = training(class_weight=class_weight)
    keys = tree_keys(0, range(40))
    expected = digest(SimpleNamespace(trees_=grow_trees(growth, part, keys)))
    assert len({tree[0] + tree[1] for tree in expected}) == 40
    for n_jobs in (2, 3):
        assert digest(SimpleNamespace(trees_=grow_trees(growth, part, keys, n_jobs))) == expected
    alone = [grow_trees(growth, part, [key])[0] for key in keys[::-1]]
    assert digest(SimpleNamespace(trees_=alone)) == expected[::-1]
    assert grow_trees(growth, part, []) == []
    assert (trees_per_call(growth, part) > 1) == (class_weight is None)
    assert trees_per_call(growth, part._replace(copies_rows=True)) == 1


def test_batches_get_smaller():
    """A batch takes at least 1 ms, and at most 0.1 s or an eighth of the time of a thread. The last ones are small."""
    assert list(_growing._batch_sizes(100, 1, 1e-3)) == [100]
    assert list(_growing._batch_sizes(80, 2, 5e-4)) == [26, 18, 12, 8, 5, 3, 2, 2, 2, 2]
    assert list(_growing._batch_sizes(64, 2, 1.0)) == [4] * 13 + [4, 2, 2, 1, 1, 1, 1]
