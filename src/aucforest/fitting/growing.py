"""Growing of trees from encoded rows: weights, buffers, parallel maps. A tree's key seeds all its random numbers."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

from aucforest._compile import compile_scorer
from aucforest.fitting.encodings import encode_samples, tables_of_tree
from aucforest.fitting.parts import Grown, Growth, Part, TreeRows
from aucforest.fitting.spec import balance
from aucforest.tree.binning import ParallelMap
from aucforest.tree.criteria.entropy import entropy_table
from aucforest.tree.features import NUMERIC
from aucforest.tree.growing import Batch, Sizes, Workspace, branch_rows, grow_trees, make_workspace, rows_per_call
from aucforest.tree.samples import FixedPoint
from aucforest.tree.tree import Tree

# A thread grows a batch of trees, then fetches the next batch, whose size is this proportion of the remaining trees per
# thread. With a large proportion, threads fetch batches less often. With a small one, they end at about the same time.
_NEXT_BATCH = 2 / 3
# Minimum seconds of a batch, because fetching a batch takes time.
_LEAST_BATCH_SECONDS = 1e-3
# Maximum seconds of a batch, unless 1 / _BATCHES_PER_JOB of the trees of a thread take longer.
_MOST_BATCH_SECONDS, _BATCHES_PER_JOB = 0.1, 8
# If all batches together take fewer seconds, their trees are returned together, not batch by batch.
_LEAST_STREAM_SECONDS = 0.5
# Minimum seconds of a task of a thread. Shorter tasks wait longer for the global interpreter lock than they run.
_LEAST_TASK_SECONDS = 7e-4
# Approximate seconds of a tree for each row, for each row and class, and for each row, tree level and searched feature.
_ROW_SECONDS, _CLASS_SECONDS, _SEARCH_SECONDS = 5e-8, 1e-8, 2e-9


@contextmanager
def _threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield an executor, which does not wait for running tasks after an exception."""
    threads = ThreadPoolExecutor(n_threads)
    try:
        yield threads
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise
    threads.shutdown()


def _work_together(function: Callable[..., Any], items: list[Any], n_threads: int) -> list[Any]:
    """Return the results of a function for all items, computed by this thread and n_threads - 1 other threads.

    If this thread only waited for n_threads others, a core would often be idle: when a thread releases the interpreter
    lock, the system wakes a waiting thread on the same core, and moves it to another core only after milliseconds.
    """
    results, indices = [None] * len(items), deque(range(len(items)))

    def work() -> None:
        try:
            for index in _taken_from(indices):
                results[index] = function(items[index])
        finally:
            indices.clear()  # after an exception, nothing is left for the other threads

    with _threads(n_threads - 1) as threads:
        try:
            others = [threads.submit(work) for _ in range(n_threads - 1)]
        except BaseException:
            indices.clear()
            raise
        work()
        for other in others:
            other.result()
    return results


def _taken_from(indices: deque[int]) -> Iterator[int]:
    """Remove and yield the items of a deque that threads share; they could not share an iterator without the GIL."""
    while True:
        try:
            index = indices.popleft()
        except IndexError:
            return
        yield index


def map_in_threads(function: Callable[..., Any], items: Iterable[Any], n_threads: int) -> Iterator[Any]:
    """Yield results in order, as soon as they are computed. Closing the iterator does not wait for running tasks."""
    with _threads(n_threads) as threads:
        yield from threads.map(function, items)


def thread_map(
    n_jobs: int | None, task_seconds: float = np.inf, map_in: Callable[..., Iterable[Any]] = _work_together
) -> ParallelMap:
    """Return a `map` in threads, or in this thread alone if the estimated seconds of a task are few.

    It does not use joblib, which polls its threads every 10 ms: small forests take less time than that.
    """

    def run(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        items = list(items)
        n_threads = min(effective_n_jobs(n_jobs), len(items)) if task_seconds > _LEAST_TASK_SECONDS else 1
        return iter(map_in(function, items, n_threads)) if n_threads > 1 else map(function, items)

    return run


def _backend_map(n_jobs: int | None, task_seconds: float, all_seconds: float) -> ParallelMap:
    """Return a `map` on the active joblib backend, by default in threads, given the seconds of a task and of all."""
    backend, _ = get_active_backend(prefer="threads")
    if getattr(backend, "supports_sharedmem", False):
        is_short = all_seconds < _LEAST_STREAM_SECONDS
        return thread_map(n_jobs, task_seconds, _work_together if is_short else map_in_threads)
    return_as = "generator" if backend.supports_return_generator else "list"
    # Copy on write, because kernels would be compiled again for read-only arrays.
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as, mmap_mode="c")
    return lambda function, items: iter(parallel(delayed(function)(item) for item in items))


def trees_per_call(growth: Growth, part: Part) -> int:
    """Return the maximum number of trees that one call of the kernel grows.

    The overhead of a call in Python is about the time for growing a tree on a hundred rows. The trees of a call must
    have the same features and unit of weight.
    """
    # They also share rows, except with target rates: these differ between trees, so each tree copies its rows.
    one_by_one = growth.spec.balanced_subsample or part.copies_rows != (growth.digits is not None)
    if one_by_one or growth.params.max_leaf_nodes > 0 or growth.is_custom:
        return 1
    if growth.digits is None:
        most_rows, n_rows = rows_per_call(growth.n_classes), part.n_rows
    else:
        most_rows = rows_per_call(growth.n_classes, len(part.codes))
        n_rows = max(part.n_rows, *growth.digits.n_categories.values())
    return max(1, min(len(growth.spec.numbers), most_rows // n_rows))


def _calls(growth: Growth, keys: Sequence[int], max_trees: int) -> list[list[int]]:
    """Divide trees into calls of at most `max_trees` trees with the same features; return the indices of their keys."""
    by_features: dict[Any, list[int]] = {}
    for index, key in enumerate(keys):
        features = None if growth.rates is None or max_trees == 1 else tables_of_tree(growth.for_tree(key), key)
        by_features.setdefault(features, []).append(index)
    return [trees[i : i + max_trees] for trees in by_features.values() for i in range(0, len(trees), max_trees)]


def tree_weights(growth: Growth, rows: TreeRows) -> tuple[NDArray[np.int64], float]:
    """Return the fixed-point weights of the rows of trees, (n_counts,), and their unit.

    The weights are empty if the counts are the weights. Balanced weights depend only on the rows in the tree's sample.
    """
    part, counts = rows.part, rows.counts
    if not growth.weighted:
        return np.empty(0, dtype=np.int64), 1.0
    weights, fixed = np.ones(part.n_rows) if part.weights is None else part.weights, growth.fixed
    if growth.spec.balanced_subsample:
        # A call grows only one tree, because each tree has its own unit.
        totals = np.bincount(part.labels, weights=counts * weights, minlength=growth.n_classes)
        weights = weights * balance(totals)[part.labels] * (counts > 0)
        fixed = FixedPoint.of(weights, int(counts.sum()))
    assert fixed is not None
    return (fixed.apply(weights) * counts.reshape(-1, part.n_rows)).ravel(), fixed.unit


class TreeBuffers:
    """The buffers of a thread, by encoding, for calls that grow up to n_trees trees from up to most_rows rows."""

    def __init__(self, most_rows: int, n_trees: int = 1) -> None:
        self._most_rows, self._n_trees = most_rows, n_trees
        self._by_encoding: dict[str, Workspace] = {}

    def of(self, growth: Growth, part: Part) -> Workspace:
        """Return the buffers for trees that grow on all features of a part."""
        if growth.encoding not in self._by_encoding:
            self._by_encoding[growth.encoding] = self._allocate(growth, part)
        work = self._by_encoding[growth.encoding]
        work.copies.n_bins[:] = growth.n_bins  # trees with the same encoding may have different features
        return work

    def _allocate(self, growth: Growth, part: Part) -> Workspace:
        params = growth.params
        columns = growth.columns(part, np.empty(1 if growth.weighted else 0, dtype=np.int64))
        columns = columns._replace(n_bins=np.full(len(growth.n_bins), growth.most_bins))
        # Codes are copied for a branch, but not if they are sparse, or in best-first growth, which alternates branches.
        copies_codes = part.sparse is None and params.max_leaf_nodes == 0
        most = branch_rows(len(part.codes), params.max_features) if copies_codes else 0
        criteria = [variant.criterion for variant in growth.spec.variants]
        table = entropy_table(criteria, np.inf if growth.weighted else growth.n_sampled)
        sizes = Sizes(self._most_rows, growth.n_sampled, growth.n_classes, most, self._n_trees)
        return make_workspace(columns, params, sizes, table)


def grow_rows(growth: Growth, rows: TreeRows, keys: Sequence[int], buffers: TreeBuffers) -> list[Tree]:
    """Grow at most `trees_per_call` trees from `rows`, each with the parameters of its variant."""
    kinds, features, variants = growth.kinds, None, [growth.for_tree(key) for key in keys]
    if growth.rates is not None:
        growth, rows, features = encode_samples(variants[0], rows, keys)
    part, counts, starts = rows
    work, function = buffers.of(growth, part), variants[0].custom_criterion
    weights, unit = tree_weights(growth, rows)
    if function is not None:
        custom = work.buffers.custom._replace(address=compile_scorer(function).address, unit=unit)
        work = work._replace(buffers=work.buffers._replace(custom=custom))
    least_weights = np.zeros(len(keys), dtype=np.int64)
    if fraction := growth.spec.min_weight_fraction_leaf:
        tree_weight = np.add.reduceat(weights if growth.weighted else counts, starts[:-1], dtype=np.int64)
        least_weights = np.ceil(fraction * tree_weight).astype(np.int64)
    batch = Batch(
        labels=part.labels,
        keys=np.array(keys, dtype=np.uint64),
        counts=counts,
        weights=weights,
        starts=starts,
        first_rows=rows.first_rows,
        criteria=np.array([variant.params.criterion for variant in variants]),
        random_splits=np.array([variant.params.random_splits for variant in variants]),
        min_weight_leaf=least_weights,
        ends=np.empty(len(keys), dtype=np.int64),
    )
    columns = growth.columns(part, weights)._replace(node=work.sparse_node)
    nodes = grow_trees(columns, growth.params, batch, work)
    if function is not None and work.buffers.custom.failed[0]:
        raise ValueError(f"criterion: {function.py_func.__name__} raised an exception")
    return Tree.from_nodes(nodes, batch.ends, unit, kinds != NUMERIC, features)


def grow_batch(
    growth: Growth, part: Part, is_stopped: Callable[[], object], spare: list[TreeBuffers], keys: list[int]
) -> list[Tree]:
    """Grow trees from a part until `is_stopped` returns true; buffers are removed from `spare`, and put back later."""
    trees, per_call = dict[int, Tree](), trees_per_call(growth, part)
    try:
        work = spare.pop()
    except IndexError:
        n_rows = min(part.n_rows, growth.n_sampled) if part.copies_rows else part.n_rows
        work = TreeBuffers(n_rows, per_call)
    for indices in _calls(growth, keys, per_call):
        if is_stopped():
            break
        call_keys = [keys[index] for index in indices]
        trees |= zip(indices, grow_rows(growth, part.sample(call_keys), call_keys, work))
    # The next batch reuses the buffers. Freed buffers would leave gaps in the memory between trees.
    spare.append(work)
    return [trees[index] for index in sorted(trees)]


def estimate_seconds(growth: Growth) -> float:
    """Return the approximate seconds of one thread for a tree."""
    searching = _SEARCH_SECONDS * np.log2(growth.n_sampled + 1) * growth.params.max_features
    return float(growth.n_sampled * (_ROW_SECONDS + _CLASS_SECONDS * growth.n_classes + searching))


def _batch_sizes(n_trees: int, n_threads: int, tree_seconds: float) -> Iterator[int]:
    """Yield the numbers of trees of batches, in the order in which threads fetch them. The last ones are small."""
    least = min(ceil(_LEAST_BATCH_SECONDS / tree_seconds), -(-n_trees // n_threads))
    most = max(int(_MOST_BATCH_SECONDS / tree_seconds), n_trees // (_BATCHES_PER_JOB * n_threads))
    proportion = _NEXT_BATCH / n_threads if n_threads > 1 else 1.0
    while n_trees > 0:
        size = min(n_trees, max(1, least, min(int(proportion * n_trees), most)))
        yield size
        n_trees -= size


def grow_batches(
    growth: Growth, part: Part, keys: list[int], n_jobs: int | None = 1, spare: list[TreeBuffers] | None = None
) -> Grown:
    """Yield indices of keys and their trees, grown on the active joblib backend, by default in threads.

    Buffers are removed from the list `spare`, if it is given, and put back later.
    """
    n_threads, seconds = effective_n_jobs(n_jobs), estimate_seconds(growth)
    sizes = list(_batch_sizes(len(keys), n_threads, seconds))
    batches = [range(stop - size, stop) for size, stop in zip(sizes, accumulate(sizes))]
    stopped = np.zeros(1, dtype=np.bool_)
    grow = partial(grow_batch, growth, part, stopped.any, [] if spare is None else spare)
    try:
        # The time that a user-defined criterion takes is not known.
        run = _backend_map(n_jobs, max(sizes, default=0) * seconds, np.inf if growth.is_custom else len(keys) * seconds)
        yield from zip(batches, run(grow, [[keys[i] for i in batch] for batch in batches]))
    finally:
        # Threads that still grow trees stop when the fit is interrupted.
        stopped[0] = True
