"""Trees as tasks over rows that every worker has."""

from itertools import pairwise
from typing import Any

from aucforest.distributed._executor import DaskExecutor, WorkerStop, import_distributed
from aucforest.fitting.growing import grow_batch
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.tree.tree import Tree

# Seconds of a task of growing: long enough that its costs do not count, short enough that little is lost with a worker.
_LEAST_TASK, _MOST_TASK = 0.5, 20.0


def grow_replicated(part: Any, growth: Growth, keys: list[int], executor: DaskExecutor, tree_seconds: float) -> Grown:
    """Yield places of keys and their trees, as they are done; a part of all rows is copied to all workers."""
    shared = executor.share(growth)
    # The longest first.
    tasks = [range(*pair) for pair in pairwise(cut_tasks(len(keys), executor.n_workers, tree_seconds))]
    places = {executor.submit(_grow, shared, part, [keys[i] for i in task], in_order=True): task for task in tasks}
    for future, trees in executor.as_completed(places):
        yield places[future], trees


def cut_tasks(n_trees: int, n_workers: int, tree_seconds: float) -> list[int]:
    """Cut trees into tasks that shrink towards the end, so that all workers end together; return the bounds."""
    most = max(1, int(_MOST_TASK / tree_seconds))
    least = max(1, min(most, int(_LEAST_TASK / tree_seconds), n_trees // (4 * n_workers)))
    bounds = [0]
    while bounds[-1] < n_trees:
        left = n_trees - bounds[-1]
        bounds.append(bounds[-1] + min(left, max(least, min(most, left // (2 * n_workers)))))
    return bounds


def _grow(growth: Growth, part: Part, keys: list[int]) -> list[Tree]:
    """Grow some trees, until the task is cancelled."""
    trees = grow_batch(growth, part, WorkerStop(), [], keys)
    if len(trees) < len(keys):
        # If the task is wanted again meanwhile, it has to begin again.
        raise import_distributed().Reschedule()
    return trees
