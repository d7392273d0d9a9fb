"""Growing of trees as tasks, with a copy of all rows on each worker."""

from itertools import pairwise
from typing import Any

from aucforest.distributed._executor import DaskExecutor, WorkerStop, import_distributed
from aucforest.fitting.growing import grow_batch
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.tree.tree import Tree

# Minimum and maximum seconds of a task: its overhead is small, and little work is lost with a worker.
_LEAST_TASK, _MOST_TASK = 0.5, 20.0


def grow_replicated(part: Any, growth: Growth, keys: list[int], executor: DaskExecutor, tree_seconds: float) -> Grown:
    """Yield indices of keys and their trees in the order of completion; the part is copied to all workers."""
    shared = executor.share(growth)
    # The longest tasks first.
    tasks = [range(*pair) for pair in pairwise(cut_tasks(len(keys), executor.n_workers, tree_seconds))]
    places = {executor.submit(_grow, shared, part, [keys[i] for i in task], in_order=True): task for task in tasks}
    for future, trees in executor.as_completed(places):
        yield places[future], trees


def cut_tasks(n_trees: int, n_workers: int, tree_seconds: float) -> list[int]:
    """Return the bounds of tasks with decreasing numbers of trees, so that workers finish at about the same time."""
    most = max(1, int(_MOST_TASK / tree_seconds))
    least = max(1, min(most, int(_LEAST_TASK / tree_seconds), n_trees // (4 * n_workers)))
    bounds = [0]
    while bounds[-1] < n_trees:
        left = n_trees - bounds[-1]
        bounds.append(bounds[-1] + min(left, max(least, min(most, left // (2 * n_workers)))))
    return bounds


def _grow(growth: Growth, part: Part, keys: list[int]) -> list[Tree]:
    """Grow trees until the task is cancelled."""
    trees = grow_batch(growth, part, WorkerStop(), [], keys)
    if len(trees) < len(keys):
        # The task is computed again if it was requested again after its cancellation.
        raise import_distributed().Reschedule()
    return trees
