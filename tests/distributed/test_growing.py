"""How trees are cut into tasks, and that tasks stop."""

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aucforest.distributed._executor import DaskExecutor, WorkerStop
from aucforest.distributed._growing import cut_tasks


@given(st.integers(0, 2000), st.integers(1, 64), st.floats(1e-4, 100.0))
def test_tasks_shrink_and_are_of_some_seconds(n_trees, n_workers, tree_seconds):
    bounds = cut_tasks(n_trees, n_workers, tree_seconds)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, n_trees)
    assert np.all(sizes > 0)
    assert np.all(np.diff(sizes) <= 0)
    assert np.all(sizes * tree_seconds <= max(20.0, tree_seconds))
    # All workers get some; the first are left with no more than a share.
    assert len(sizes) >= min(n_trees, 2 * n_workers)


def test_short_trees_share_tasks():
    # half a second at least: 5 trees
    sizes = np.diff(cut_tasks(1000, 2, 0.1))
    assert sizes[0] == 200  # 20 seconds at most
    assert sizes[:-1].min() == 5


def run_until_stopped(started, stopped):
    stop = WorkerStop()
    started.touch()
    while not stop[0]:
        time.sleep(0.01)
    stopped.touch()


def wait_for(path):
    end = time.monotonic() + 20.0
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def test_a_cancelled_task_is_told_to_stop(client, tmp_path):
    executor = DaskExecutor(client)
    task = executor.submit(run_until_stopped, tmp_path / "started", tmp_path / "stopped")
    assert wait_for(tmp_path / "started")
    assert task.status == "pending"
    executor.close()
    assert wait_for(tmp_path / "stopped")
