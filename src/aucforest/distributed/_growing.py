"""Trees as tasks over rows that every worker has."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from aucforest.distributed._executor import DaskExecutor, WorkerStop, import_distributed
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.growing import grow_batch
from aucforest.fitting.parts import Growth, Part
from aucforest.tree.tree import Tree

# Seconds of a task of growing: long enough that its costs do not count, short enough that little is lost with a worker.
_LEAST_TASK, _MOST_TASK = 0.5, 20.0


def grow_replicated(
    parts: list[Any], growth: Growth, keys: list[int], executor: DaskExecutor, tree_seconds: float
) -> Iterator[tuple[list[int], list[Tree]]]:
    """Grow trees where all rows are copied to; yield the places of some keys and their trees, as they are done."""
    rows = executor.submit(_join_all, growth, parts)
    bounds, order = cut_tasks(len(keys), executor.n_workers, tree_seconds), growth.by_variant(keys)
    # The longest first.
    tasks = [order[i:j] for i, j in pairwise(bounds)]
    places = {executor.submit(_grow, rows, [keys[i] for i in task], in_order=True): task for task in tasks}
    # Workers keep the rows as long as tasks need them.
    del rows
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


def _join_all(growth: Growth, parts: list[Part]) -> tuple[Growth, Part]:
    """Return all rows, with the sampler of all."""
    samplers = [part.sampler for part in parts if part.sampler is not None]
    return growth, Part.joined(parts)._replace(sampler=BootstrapSampler.joined(samplers) if samplers else None)


def _grow(rows: tuple[Growth, Part], keys: list[int]) -> list[Tree]:
    """Grow some trees, until the task is cancelled."""
    trees = grow_batch(*rows, WorkerStop(), [], keys)
    if len(trees) < len(keys):
        # Should somebody want the task again meanwhile, it has to begin anew.
        raise import_distributed().Reschedule()
    return trees
