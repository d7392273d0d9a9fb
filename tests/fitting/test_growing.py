"""Weights of the rows of a tree as integers, and trees in parallel."""

import threading
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config

from aucforest.fitting import growing as _growing
from aucforest.fitting.growing import (
    estimate_seconds,
    grow_batches,
    map_in_threads,
    thread_map,
    tree_weights,
    trees_per_call,
)
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.parts import TreeRows
from aucforest.fitting.spec import FitSpec, tree_keys
from aucforest.fitting.target import Target
from aucforest.tree.growing import rows_per_call
from tests.estimators.data import digest, make_table, small_forest

X, Y = make_table(n_rows=101, n_classes=3)


def training(weights=None, n_sampled=101, **params):
    """Return what trees share, and the rows."""
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
    # Balanced over the draws of this tree, not over the rows.
    counts = several.counts[:101]
    growth, part = training(weights, n_sampled=60, class_weight="balanced_subsample")
    fixed, unit = tree_weights(growth, TreeRows.of_tree(part, counts))
    drawn_weight = counts * (1 if weights is None else weights)
    drawn = np.bincount(Y, drawn_weight)
    assert drawn.max() > drawn.min() > 0
    expected = drawn_weight * drawn_weight.sum() / (3 * drawn[Y])
    np.testing.assert_allclose(fixed * unit, expected, rtol=1e-12)


def test_balancing_draws_without_a_class():
    counts = np.where(Y == 2, 0, 1).astype(np.uint16)
    growth, part = training(class_weight="balanced_subsample")
    fixed, unit = tree_weights(growth, TreeRows.of_tree(part, counts))
    shares = np.bincount(Y, fixed * unit)
    np.testing.assert_allclose(shares, [counts.sum() / 2, counts.sum() / 2, 0])


@pytest.mark.parametrize("n_jobs", [1, 2, None])
def test_the_parallel_map(n_jobs):
    for n_items in (0, 1, 5):
        assert list(thread_map(n_jobs)(lambda i: i * i, range(n_items))) == [i * i for i in range(n_items)]


def test_short_tasks_are_done_one_by_one(monkeypatch):
    monkeypatch.setattr(_growing, "_LEAST_TASK_SECONDS", 1e-3)
    assert set(thread_map(2, 1e-4)(lambda _: threading.get_ident(), range(9))) == {threading.get_ident()}


def test_this_thread_works_together_with_others():
    both = threading.Barrier(2)

    def meet(_):
        both.wait(10)
        return threading.get_ident()

    threads = list(thread_map(2)(meet, range(2)))
    assert threading.get_ident() in threads
    assert len(set(threads)) == 2


class _NotThreadSafe:
    """An iterator that may give two threads the same item, as those of Python may without the interpreter lock."""

    def __init__(self, items):
        self._items, self._place = list(items), 0

    def __iter__(self):
        return self

    def __next__(self):
        index = self._place
        if index >= len(self._items):
            raise StopIteration
        time.sleep(1e-3)  # another thread goes on
        self._place = index + 1
        return self._items[index]


def test_threads_share_no_iterator(monkeypatch):
    monkeypatch.setattr(_growing, "iter", _NotThreadSafe, raising=False)
    done = []
    list(thread_map(4)(done.append, range(20)))
    assert sorted(done) == list(range(20))


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
def test_a_parallel_map_that_is_given_up_begins_nothing_more(run):
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


def test_the_time_of_a_tree_is_never_zero():
    growth, _ = training(n_sampled=60)
    assert 0 < estimate_seconds(replace(growth, n_sampled=0)) < estimate_seconds(growth)


@pytest.mark.parametrize(
    ("n_trees", "n_threads", "seconds", "expected"),
    [
        (0, 2, 1.0, []),
        (100, 1, 1e-3, [100]),
        (100, 1, 0.05, [12] * 8 + [4]),
        (80, 2, 5e-4, [26, 18, 12, 8, 5, 3, 2, 2, 2, 2]),
        (100, 2, 1e-6, [50, 50]),
        (9, 2, 10.0, [1] * 9),
        (64, 2, 1.0, [4] * 13 + [4, 2, 2, 1, 1, 1, 1]),
    ],
)
def test_batches_get_smaller(n_trees, n_threads, seconds, expected):
    """They take 1 ms or more, at most 0.1 s unless a thread gets eight of them, and end with small ones."""
    assert list(_growing._batch_sizes(n_trees, n_threads, seconds)) == expected


def test_long_fits_yield_trees_as_they_are_grown(monkeypatch):
    growth, part = training()
    for least, run in ((0.0, "map_in_threads"), (np.inf, "_work_together")):
        monkeypatch.setattr(_growing, "_LEAST_STREAM_SECONDS", least)
        monkeypatch.setattr(_growing, "_LEAST_TASK_SECONDS", 0.0)
        runs, used = [], getattr(_growing, run)
        monkeypatch.setattr(_growing, run, lambda *given, used=used, runs=runs: runs.append(0) or used(*given))
        assert len(grow_trees(growth, part, tree_keys(0, range(40)), 2)) == 40
        assert len(runs) == 1


@pytest.mark.parametrize("class_weight", [None, "balanced_subsample"])
def test_a_tree_depends_on_its_key_only(class_weight):
    growth, part = training(class_weight=class_weight)
    keys = tree_keys(0, range(40))
    expected = digest(SimpleNamespace(trees_=grow_trees(growth, part, keys)))
    assert len({tree[0] + tree[1] for tree in expected}) == 40
    for n_jobs in (2, 3):
        assert digest(SimpleNamespace(trees_=grow_trees(growth, part, keys, n_jobs))) == expected
    alone = [grow_trees(growth, part, [key])[0] for key in keys[::-1]]
    assert digest(SimpleNamespace(trees_=alone)) == expected[::-1]
    assert grow_trees(growth, part, []) == []


def test_trees_of_large_sets_grow_one_by_one():
    growth, part = training()
    assert rows_per_call(2000) < rows_per_call(15) // 100
    assert trees_per_call(growth, part) == rows_per_call(2) // 101 > 1
    assert trees_per_call(replace(growth, spec=replace(growth.spec, numbers=range(3))), part) == 3
    assert trees_per_call(growth, part._replace(copies_rows=True)) == 1
    assert trees_per_call(growth, part._replace(labels=np.empty(rows_per_call(2) + 1))) == 1
