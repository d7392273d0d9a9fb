"""Growing of trees as tasks: from all rows on each worker, or from the gathered rows of each tree."""

from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.distributed._executor import DaskExecutor, import_distributed, watch_task
from aucforest.fitting.growing import TreeBuffers, estimate_seconds, grow_batch, grow_rows
from aucforest.fitting.parts import Grown, Growth, Part
from aucforest.tree.tree import Tree

# Minimum seconds of a task, so that its overhead is small, and maximum, so that a lost worker loses little work.
_LEAST_TASK_SECONDS, _MOST_TASK_SECONDS = 0.5, 20.0

# For each tree, the sampled rows of a part, and the number of times that each row is in the sample, (1, n_rows).
_Samples = list[tuple[Part, NDArray[np.uint16]]]


def grow_replicated(part: Any, growth: Growth, keys: list[int], executor: DaskExecutor) -> Grown:
    """Yield indices of keys and their trees in the order of completion; the part is copied to all workers."""
    shared, running = executor.share(growth), {}
    most_trees = int(_MOST_TASK_SECONDS / estimate_seconds(growth))
    # The longest tasks are submitted first.
    for task in cut_tasks(len(keys), executor.n_threads, estimate_seconds(growth), most_trees):
        running[executor.submit(_grow, shared, part, [keys[i] for i in task], in_order=True)] = task
    for future, trees in executor.as_completed(running):
        yield running[future], trees


def grow_gathered(
    parts: list[Any], growth: Growth, keys: list[int], executor: DaskExecutor, trees_per_task: int
) -> Grown:
    """Yield indices of keys and their trees in the order of completion; the rows of a tree are sent from all parts.

    Two tasks for each thread are submitted at a time, so that rows are sent while trees grow.
    """
    shared, running, completed = executor.share(growth), {}, executor.as_completed()
    waiting = deque(cut_tasks(len(keys), executor.n_threads, estimate_seconds(growth), trees_per_task))

    def submit_next() -> None:
        task = waiting.popleft()
        task_keys = [keys[i] for i in task]
        samples = [executor.submit(_sample, part, task_keys, in_order=True) for part in parts]
        future = executor.submit(_grow_samples, shared, task_keys, samples, in_order=True)
        running[future] = task
        completed.add(future)

    for _ in range(min(2 * executor.n_threads, len(waiting))):
        submit_next()
    for future, trees in completed:
        if waiting:
            submit_next()
        yield running.pop(future), trees


def cut_tasks(n_trees: int, n_threads: int, tree_seconds: float, most_trees: int) -> list[range]:
    """Return the trees of each task as ranges of decreasing length, so that threads finish at about the same time."""
    most = max(1, most_trees)
    least = max(1, min(most, int(_LEAST_TASK_SECONDS / tree_seconds), n_trees // (4 * n_threads)))
    bounds = [0]
    while bounds[-1] < n_trees:
        left = n_trees - bounds[-1]
        bounds.append(bounds[-1] + min(left, max(least, min(most, left // (2 * n_threads)))))
    return [range(start, stop) for start, stop in pairwise(bounds)]


def _grow(growth: Growth, part: Part, keys: list[int]) -> list[Tree]:
    """Return the trees of a task; raise Reschedule if the task is cancelled before all trees are grown."""
    trees = grow_batch(growth, part, watch_task(), [], keys)
    if len(trees) < len(keys):
        # Dask computes the task again if it was requested again after its cancellation.
        raise import_distributed().Reschedule()
    return trees


def _sample(part: Part, keys: list[int]) -> _Samples:
    """Return copies of the rows of each tree that are in a part."""
    return [part.sample([key]) for key in keys]


def _grow_samples(growth: Growth, keys: list[int], samples: list[_Samples]) -> list[Tree]:
    """Return the trees of a task, grown on their sampled rows in all parts."""
    most_rows = max(sum(part.n_rows for part, _ in of_tree) for of_tree in zip(*samples))
    work, trees = TreeBuffers(most_rows), []
    for key, of_tree in zip(keys, zip(*samples)):
        part = Part.joined([rows for rows, _ in of_tree])
        counts = np.concatenate([counts for _, counts in of_tree], axis=1)
        trees += grow_rows(growth, part, counts, [key], work)
    return trees
