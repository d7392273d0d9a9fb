"""Trees grow in tasks, which stop when they are cancelled."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config

from aucforest import AUCForestClassifier
from aucforest.distributed._executor import DaskExecutor, watch_task
from aucforest.distributed._on_cluster import cut_tasks
from tests.estimators.data import assert_same_fit
from tests.fitting.forests import make_rows


@given(st.integers(0, 2000), st.integers(1, 64), st.floats(1e-4, 100.0))
def test_tasks_become_shorter_and_have_a_maximum_time(n_trees, n_workers, tree_seconds):
    most_trees = int(20.0 / tree_seconds)
    tasks = cut_tasks(n_trees, n_workers, tree_seconds, most_trees)
    sizes = np.array([len(task) for task in tasks])
    assert [tree for task in tasks for tree in task] == list(range(n_trees))
    assert np.all(sizes > 0)
    assert np.all(np.diff(sizes) <= 0)
    assert np.all(sizes <= max(1, most_trees))
    # All workers get some trees, and the first tasks do not have too many.
    assert len(sizes) >= min(n_trees, 2 * n_workers)


def test_short_trees_share_tasks():
    # At least half a second: 5 trees.
    sizes = [len(task) for task in cut_tasks(1000, 2, 0.1, 200)]
    assert sizes[0] == 200
    assert min(sizes[:-1]) == 5


def run_until_stopped(started, stopped):
    stop = watch_task()
    started.touch()
    while not stop():
        time.sleep(0.01)
    stopped.touch()


def wait_for(path):
    end = time.monotonic() + 20.0
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def test_a_cancelled_task_stops(client, tmp_path):
    executor = DaskExecutor(client)
    task = executor.submit(run_until_stopped, tmp_path / "started", tmp_path / "stopped")
    assert wait_for(tmp_path / "started")
    assert task.status == "pending"
    executor.close()
    assert wait_for(tmp_path / "stopped")


@pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")
def test_trees_grow_on_the_workers_by_joblib(client):
    X, y = make_rows(3000)
    local = AUCForestClassifier(8, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="every one of the 8 trees"):
        local.fit(X, y)
    forest = AUCForestClassifier(8, oob_score=True, random_state=0)
    with parallel_config(backend="dask"), pytest.warns(UserWarning, match="every one of the 8 trees"):
        forest.fit(X, y)
    assert_same_fit(local, forest)
