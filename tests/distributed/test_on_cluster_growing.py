"""Tasks that grow trees: the number of trees of each task, and cancelled tasks. Also joblib with Dask."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config

from aucforest import AUCForestClassifier
from aucforest.distributed._executor import DaskExecutor, watch_task
from aucforest.distributed._on_cluster import cut_tasks
from tests.distributed.conftest import wait_for
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
    # A task takes at least half a second, here 5 trees.
    sizes = [len(task) for task in cut_tasks(1000, 2, 0.1, 200)]
    assert sizes[0] == 200
    assert min(sizes[:-1]) == 5


def run_until_stopped(started, stopped):
    stop = watch_task()
    started.touch()
    wait_for(stop)
    stopped.touch()


def test_a_cancelled_task_stops(client, tmp_path):
    executor, (started, stopped) = DaskExecutor(client), (tmp_path / "started", tmp_path / "stopped")
    task = executor.submit(run_until_stopped, started, stopped)
    assert wait_for(started.exists)
    assert (task.status, stopped.exists()) == ("pending", False)
    executor.close()
    assert wait_for(stopped.exists)


@pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning", "ignore:.*every one of the 8 trees")
def test_trees_grow_on_the_workers_by_joblib(client):
    X, y = make_rows(3000)
    local, forest = (AUCForestClassifier(8, oob_score=True, random_state=0) for _ in range(2))
    local.fit(X, y)
    with parallel_config(backend="dask"):
        forest.fit(X, y)
    assert_same_fit(local, forest)
