"""Trees and out-of-bag sums as tasks over parts that workers hold."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.distributed._coding import Coding, places_within
from aucforest.distributed._dask_executor import DaskExecutor, WorkerStop
from aucforest.distributed._parts import CodedPart, Growth, join_parts
from aucforest.estimators._growing import GrowthParams, TrainingSet, grow_batch
from aucforest.estimators._out_of_bag import Bags
from aucforest.tree.sampling import BLOCK_ROWS
from aucforest.tree.structure import Tree
from aucforest.tree.traverse import PackedTrees, add_out_of_bag

# Seconds of a task of growing: long enough that its costs do not count, short enough that little is lost with a worker.
_LEAST_TASK, _MOST_TASK = 2.0, 20.0
# Bytes of trees that walk over parts at a time.
_GROUP_BYTES = 2**28


def grow_replicated(
    parts: list[Any], growth: Growth, keys: list[int], executor: DaskExecutor, tree_seconds: float
) -> Iterator[tuple[list[int], list[Tree]]]:
    """Grow trees where all rows are copied to; yield the places of some keys and their trees, as they are done."""
    rows = executor.submit(_join_all, growth, parts)
    bounds = cut_tasks(len(keys), executor.n_workers, tree_seconds)
    batches = [list(range(*pair)) for pair in pairwise(bounds)]
    futures = [executor.submit(_grow, rows, keys[batch[0] : batch[-1] + 1]) for batch in batches]
    # Workers keep the rows as long as tasks need them.
    del rows
    for task, trees in executor.as_completed(futures):
        yield batches[task], trees


def cut_tasks(n_trees: int, n_workers: int, tree_seconds: float) -> list[int]:
    """Cut trees into tasks that shrink towards the end, so that all workers end together; return the bounds."""
    most = max(1, int(_MOST_TASK / tree_seconds))
    least = max(1, min(most, int(_LEAST_TASK / tree_seconds), n_trees // (4 * n_workers)))
    bounds = [0]
    while bounds[-1] < n_trees:
        left = n_trees - bounds[-1]
        bounds.append(bounds[-1] + min(left, max(least, min(most, left // (2 * n_workers)))))
    return bounds


def _join_all(growth: Growth, parts: list[CodedPart]) -> tuple[TrainingSet, GrowthParams]:
    """Return all rows, and what trees need to know with the draws of all."""
    draws = parts[0].draws
    if draws is not None:
        members = np.concatenate([part.draws.members for part in parts if part.draws is not None])
        draws = replace(draws, members=members, first_block=0)
    return join_parts(growth, *parts), replace(growth.params, draws=draws)


def _grow(rows: tuple[TrainingSet, GrowthParams], keys: list[int]) -> list[Tree]:
    """Grow some trees, until the task is cancelled."""
    return grow_batch(*rows, WorkerStop(), keys)


def sum_rows(
    parts: list[Any],
    bounds: list[int],
    coding: Coding,
    executor: DaskExecutor,
    n_rows: int,
    bags: Bags,
    packed: PackedTrees,
    trees: range,
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum out of bag as `_out_of_bag.sum_out_of_bag` does, part by part on the workers.

    Trees come in groups, each on top of the sums of those before it: sums are rounded as if all came at once.
    """
    shared = executor.share(coding)
    sums: list[Any] = [None] * len(parts)
    leaf_bytes = values.itemsize * values.shape[1]
    bytes_before = packed.nodes.itemsize * packed.first + leaf_bytes * packed.first_leaf
    start = trees.start
    while start < trees.stop:
        stop = int(np.searchsorted(bytes_before, bytes_before[start] + _GROUP_BYTES, side="right")) - 1
        group = range(start, min(max(stop, start + 1), trees.stop))
        walk = executor.share(_take_group(packed, trees, group, values))
        keys = bags.keys[group.start : group.stop]
        sums = [executor.submit(_add_trees, part, shared, walk, keys, before) for part, before in zip(parts, sums)]
        start = group.stop
    total, n_trees = np.zeros((n_rows, values.shape[1])), np.zeros(n_rows, dtype=np.int64)
    for place, (part_total, part_n_trees) in executor.as_completed(sums):
        rows: Any = slice(bounds[place], bounds[place + 1])
        rows = rows if bags.kept is None else bags.kept[rows]
        total[rows], n_trees[rows] = part_total, part_n_trees
    return total, n_trees


def _take_group(packed: PackedTrees, trees: range, group: range, values: NDArray[np.float64]) -> tuple[Any, ...]:
    """Return the first arguments of a walk through some trees, with their nodes and leaves alone."""
    nodes, sets, first, _, first_leaf = packed.arguments(values, group)
    before = packed.first_leaf[group.start] - packed.first_leaf[trees.start]
    leaves = values[before : before + first_leaf[-1]]
    return nodes[first[0] : first[-1]], sets, first - first[0], leaves, first_leaf


def _add_trees(
    part: CodedPart,
    coding: Coding,
    walk: tuple[Any, ...],
    keys: list[int],
    before: tuple[NDArray[np.float64], NDArray[np.int64]] | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Add what some trees predict of the rows that they did not draw to the sums of the trees before them."""
    draws, n_rows = part.draws, part.n_rows
    assert draws is not None
    if before is None:
        total, n_trees = np.zeros((n_rows, walk[3].shape[1])), np.zeros(n_rows, dtype=np.int64)
    else:
        total, n_trees = before[0].copy(), before[1].copy()
    first_block = part.first_row // BLOCK_ROWS
    by_block = [draws.by_block(key)[first_block:] for key in keys]
    for start in range(0, n_rows, BLOCK_ROWS):
        rows, i = slice(start, start + BLOCK_ROWS), start // BLOCK_ROWS
        counts = np.stack([
            draws.counts_of_blocks(key, some[i : i + 1], first_block + i) for key, some in zip(keys, by_block)
        ])  # fmt: skip
        table = np.ascontiguousarray(coding.decode(part.codes[:, rows]))
        scratch = np.empty(len(table), dtype=np.uint64), np.empty(len(table), dtype=np.uint32)
        add_out_of_bag(*walk, table, counts, *scratch, total[rows], n_trees[rows])
    return total, n_trees


def take_codes(
    parts: list[Any], bounds: list[int], executor: DaskExecutor, places: NDArray[np.int64]
) -> NDArray[np.unsignedinteger]:
    """Fetch the codes of some rows of positive weight, given by rising places, shape (n_features, n_places)."""
    found = [
        executor.submit(_take, part, places_within(places, start, stop - start))
        for part, (start, stop) in zip(parts, pairwise(bounds))
    ]
    return np.concatenate(executor.gather(found), axis=1)


def _take(part: CodedPart, rows: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
    """Return the codes of some rows of a part."""
    return part.codes[:, rows]
