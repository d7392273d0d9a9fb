"""From validated arrays to trees: binning, weights, bootstraps, and growing in parallel."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from tqdm import tqdm

from aucforest._compile import compile_scorer
from aucforest.fitting.plan import check_trees
from aucforest.fitting.spec import GrowthParams
from aucforest.tree.binning import SAMPLE_ROWS, BinnedMatrix, BinValues, ParallelMap
from aucforest.tree.criteria import entropy_table
from aucforest.tree.features import NUMERIC
from aucforest.tree.growing import Stops, Workspace, branch_rows, grow_tree, make_workspace
from aucforest.tree.samples import NO_NAMES, Columns, FixedPoint, take_samples
from aucforest.tree.splitter import Rules
from aucforest.tree.tree import Nodes, Tree

# Enough batches that no thread waits long for the last, few enough that buffers are worth making.
_BATCHES_PER_JOB = 8
# Seconds: shorter tasks are done sooner one by one than by threads, which wait for each other's Python.
_LEAST_TASK = 3e-4
# Seconds that a row takes for each level of a tree and each feature that its nodes look at, or so.
_ROW_TIME = 2e-9


def run_in_threads(n_jobs: int | None, task_seconds: float = np.inf) -> ParallelMap:
    """Return a parallel `map` over shared memory, which takes tasks one by one where they are short.

    Threads of its own: joblib looks every 10 ms whether its are ready, longer than small forests take.
    """

    def run(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        items = list(items)
        n_threads = min(effective_n_jobs(n_jobs), len(items)) if task_seconds > _LEAST_TASK else 1
        return map_in_threads(function, items, n_threads) if n_threads > 1 else map(function, items)

    return run


def map_in_threads(function: Callable[..., Any], items: Iterable[Any], n_threads: int) -> Iterator[Any]:
    """Map; when it is given up, what has begun ends by itself."""
    threads = ThreadPoolExecutor(n_threads)
    try:
        yield from threads.map(function, items)
    except BaseException:
        threads.shutdown(wait=False, cancel_futures=True)
        raise
    threads.shutdown()


def _run_anywhere(n_jobs: int | None, task_seconds: float) -> ParallelMap:
    """Return a parallel `map` on whatever joblib backend is active, threads by default."""
    backend, _ = get_active_backend(prefer="threads")
    if getattr(backend, "supports_sharedmem", False):
        return run_in_threads(n_jobs, task_seconds)
    return_as = "generator" if backend.supports_return_generator else "list"
    # Copy on write: in processes read-only arrays would be another type, for which all is compiled again.
    parallel = Parallel(n_jobs=n_jobs, return_as=return_as, mmap_mode="c")
    return lambda function, items: iter(parallel(delayed(function)(item) for item in items))


@dataclass(frozen=True)
class TrainingSet:
    """What all trees of a fit share.

    binned : BinnedMatrix
    labels : ndarray of shape (n_rows,), uint16
    weights : ndarray of shape (n_rows,), float64, or None when every row counts 1
    n_classes : int
    kinds : ndarray of shape (n_features,), int8
        Of the features, see `tree.features`.
    """

    binned: BinnedMatrix
    labels: NDArray[np.uint16]
    weights: NDArray[np.float64] | None
    n_classes: int
    kinds: NDArray[np.int8]

    @property
    def by_set(self) -> NDArray[np.bool_]:
        """Which features are split by sets."""
        return self.kinds != NUMERIC


def fit_fixed_point(training: TrainingSet, params: GrowthParams, n_draws: int) -> FixedPoint | None:
    """Return the units of weights in all trees; None where draws are the weights, or where they differ by tree."""
    if training.weights is None or params.balance_draws:
        return None
    return FixedPoint.of(training.weights, n_draws)


def tree_weights(
    training: TrainingSet, counts: NDArray[np.uint16], params: GrowthParams, fixed: FixedPoint | None
) -> tuple[NDArray[np.int64], float]:
    """Return the fixed-point weights of all rows in one tree, and their unit; none when the draws are the weights.

    A function of the rows that are drawn, whatever others there are.
    """
    if training.weights is None and not params.balance_draws:
        return np.empty(0, dtype=np.int64), 1.0
    weights = np.ones(len(counts)) if training.weights is None else training.weights
    if params.balance_draws:
        per_class = np.bincount(training.labels, weights=counts * weights, minlength=training.n_classes)
        present = per_class > 0
        factors = np.zeros(training.n_classes)
        factors[present] = per_class.sum() / (np.count_nonzero(present) * per_class[present])
        weights = weights * factors[training.labels] * (counts > 0)
        fixed = FixedPoint.of(weights, int(counts.sum()))
    assert fixed is not None
    return fixed.apply(weights) * counts, fixed.unit


def tree_bounds(params: GrowthParams, weight: int) -> tuple[int, Stops]:
    """Return the least weight of a leaf, and when nodes are leaves, in a tree whose rows weigh so much."""
    least = int(np.ceil(params.min_weight_fraction_leaf * weight))
    # Both children must be heavy and large enough.
    least_rows = max(params.min_samples_split, 2 * params.min_samples_leaf)
    return least, Stops(params.max_depth, least_rows, 2 * least, params.min_gain, params.max_leaf_nodes or 0)


def make_rules(params: GrowthParams, kinds: NDArray[np.int8], values: BinValues, is_sampled: bool) -> Rules:
    """Return the rules of the splits; the least weight of a leaf is filled in for each tree."""
    return Rules(
        criterion=params.criterion,
        is_random=params.random_splits,
        max_features=params.max_features,
        min_samples_leaf=params.min_samples_leaf,
        min_weight_leaf=0,
        signs=np.array(params.signs, dtype=np.int8),
        kinds=kinds,
        values=values,
        is_sampled=is_sampled,
    )


def make_buffers(
    training: TrainingSet, params: GrowthParams, most_rows: int, fit_rows: int, n_draws: int
) -> tuple[Rules, Workspace]:
    """Return the rules of the splits, and the buffers for trees, or branches, of up to most_rows of the fit_rows rows.

    A tree draws n_draws rows. What depends on the weight of a tree is filled in for each.
    """
    weighted = training.weights is not None or params.balance_draws
    codes, n_bins, values = training.binned
    columns = Columns(codes, n_bins, np.empty(1 if weighted else 0, dtype=np.int64), NO_NAMES)
    rules = make_rules(params, training.kinds, values, codes.dtype == np.uint8 and fit_rows > SAMPLE_ROWS)
    # Best first, one branch does not follow the other.
    last_rows = branch_rows(len(codes), params.max_features) if params.max_leaf_nodes is None else 0
    address = compile_scorer(params.own_criterion).address if params.own_criterion else 0
    table = entropy_table(params.criterion, np.inf if weighted else n_draws)
    work = make_workspace(columns, rules, most_rows, training.n_classes, last_rows, table=table, address=address)
    return rules, work


def grow_rows(
    training: TrainingSet,
    counts: NDArray[np.uint16],
    weights: NDArray[np.int64],
    unit: float,
    params: GrowthParams,
    key: int,
    buffers: tuple[Rules, Workspace],
    tree_weight: int | None = None,
) -> Nodes:
    """Grow a tree from rows that are drawn so often, in the memory of the buffers.

    The fixed-point weights of the rows are those of `tree_weights`. A branch is grown alike, given the weight of the
    whole tree.
    """
    codes, n_bins, _ = training.binned
    rules, work = buffers
    n_samples = take_samples(training.labels, counts, len(weights) == 0, work.samples)
    if tree_weight is None:
        tree_weight = int(counts.sum()) if len(weights) == 0 else int(weights.sum())
    least_weight, stops = tree_bounds(params, tree_weight)
    own = work.buffers.own._replace(unit=unit)
    work = work._replace(buffers=work.buffers._replace(own=own))
    columns = Columns(codes, n_bins, weights, NO_NAMES)
    nodes = grow_tree(columns, rules._replace(min_weight_leaf=least_weight), stops, n_samples, key, work)
    if own.failed[0]:
        raise ValueError(f"criterion: {params.own_criterion.py_func.__name__} raised an exception")
    return nodes


def _grow_one(
    training: TrainingSet,
    params: GrowthParams,
    fixed: FixedPoint | None,
    key: int,
    buffers: tuple[Rules, Workspace],
) -> Tree:
    """Draw the rows of one tree and grow it."""
    n_rows = len(training.labels)
    counts = np.ones(n_rows, dtype=np.uint16) if params.draws is None else params.draws.counts(key)
    weights, unit = tree_weights(training, counts, params, fixed)
    nodes = grow_rows(training, counts, weights, unit, params, key, buffers)
    return Tree.from_nodes(nodes, unit, training.by_set)


def grow_batch(training: TrainingSet, params: GrowthParams, stopped: Any, keys: list[int]) -> list[Tree]:
    """Grow some trees in one set of buffers, until ``stopped[0]`` is true."""
    n_rows = len(training.labels)
    n_draws = params.n_draws(n_rows)
    fixed = fit_fixed_point(training, params, n_draws)
    buffers = make_buffers(training, params, n_rows, n_rows, n_draws)
    return [_grow_one(training, params, fixed, key, buffers) for key in keys if not stopped[0]]


def estimate_seconds(n_rows: int, params: GrowthParams) -> float:
    """Return about how long one thread takes for a tree that draws so many rows."""
    return float(_ROW_TIME * max(n_rows, 1) * np.log2(n_rows + 1) * params.max_features)


def grow_batches(
    training: TrainingSet, params: GrowthParams, keys: list[int], n_jobs: int | None = 1, verbose: int = 0
) -> Iterator[list[Tree]]:
    """Yield trees of some keys at a time, in order, grown on whatever joblib backend is active, threads by default."""
    size = max(1, len(keys) // (_BATCHES_PER_JOB * effective_n_jobs(n_jobs)))
    batches = [keys[i : i + size] for i in range(0, len(keys), size)]
    tree_seconds = estimate_seconds(params.n_draws(len(training.labels)), params)
    stopped = np.zeros(1, dtype=np.bool_)
    with tqdm(total=len(keys), desc="trees", disable=not verbose) as progress:
        try:
            for batch in _run_anywhere(n_jobs, tree_seconds)(partial(grow_batch, training, params, stopped), batches):
                progress.update(len(batch))
                yield batch
        finally:
            # Nobody else tells threads that the fit was interrupted.
            stopped[0] = True


def grow_trees(
    training: TrainingSet, params: GrowthParams, keys: list[int], n_jobs: int | None = 1, verbose: int = 0
) -> list[Tree]:
    """Return one tree for every key, as `grow_batches` grows them; refuse trees that would take too much memory."""
    trees: list[Tree] = []
    for batch in grow_batches(training, params, keys, n_jobs, verbose):
        if not trees:
            check_trees(batch, len(keys))
        trees += batch
    return trees
