"""Estimates of the memory of a fit, and plans that keep to a limit: in this process, out of core and on a cluster.

One model of memory for all three: `FitSize` says what rows, trees and histograms take. tests/fitting/test_plan.py and
benchmarks/out_of_core.py compare it with measured peaks.
"""

import re
import warnings
from bisect import bisect_left
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from aucforest._memory import check_memory
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.spec import FitSpec, GrowthParams, needs_all_rows
from aucforest.fitting.target import Target
from aucforest.tree.binning import MAX_BINS, SAMPLE_ROWS
from aucforest.tree.growing import branch_rows
from aucforest.tree.samples import MOST_ROWS

STRATEGIES = ("auto", "replicate", "gather", "level")

# More than _MANY_CLASSES classes with fewer than _LEAST_OF_CLASS samples on average are probably a quantity.
_LEAST_OF_CLASS, _MANY_CLASSES = 10, 50
# Bytes of a thread for each row, and for each node of its tree.
_ROW_BYTES, _NODE_BYTES = 26, 49
# Bytes of a thread for the weight of a row, and for a weight that depends on the sample of the tree.
_WEIGHT_BYTES, _BALANCED_BYTES = 8, 12
# Bytes of a feature besides its codes: the bounds of a bin or two, and what trees and bins keep for each feature.
_FEATURE_BYTES = 100
# Bytes for each class of a node: its total and its frequency.
_CLASS_BYTES = 16
# Bytes of a histogram for each code, and for each cell, which is a class at a code.
_CODE_BYTES, _CELL_BYTES = 48, 21
# One code in _COPIED is copied for branches: 1 / 8 + 1 / 64 + ... = 1 / 7.
_COPIED = 7
# For a row of a branch that is a task: bytes besides its codes, and number of copies in waiting and running tasks.
_HANDED_BYTES, _HANDED_OVER = 12, 4
# Bytes of a sampled value while bins are computed: for all features, and for the current feature if there are weights.
_SAMPLED_BYTES, _WEIGHED_BYTES = 16, 40
# Out of core: bytes of batches for each reading thread and for reading ahead, and the maximum number of such threads.
_BATCH_BYTES, _READERS = 2**26, 8
# Out of core: number of copies of the histograms of a part, in two rounds and as sums, and size of those that a thread
# counts, in words of twice the size.
_HISTOGRAMS, _COUNTED = 3, 2
# On a cluster: the proportion of a worker's memory for rows of trees, since tasks and results need the rest.
_ROWS_FRACTION = 0.4
# On a cluster without bins: minimum bytes of each value on the worker that chooses codes from all values.
_CHOOSING = 24
# On a cluster: bytes of the codes of a part, which is computed again if it is lost, and maximum number of parts for
# each thread of a worker, since each task costs milliseconds.
_PART_BYTES, _PARTS = 2**26, 4
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True)
class FitSize:
    """The sizes that the memory of a fit depends on."""

    n_rows: int
    n_features: int
    n_classes: int
    n_trees: int
    n_codes: int  # maximum number of codes of a feature
    tree_rows: int  # approximate maximum number of distinct rows of a tree
    tree_nodes: int  # maximum number of nodes of a tree
    max_features: int  # number of features that are searched at a node
    weight_bytes: int  # of a thread for the weight of a row; 0 without weights
    sample_bytes: int = 0  # of the sizes of all samples by block
    score_bytes: int = 0  # of the sums for the choice of shrinkage and variants

    @classmethod
    def of(cls, spec: FitSpec, n_rows: int, n_features: int, n_classes: int, n_codes: int | None = None) -> "FitSize":
        """Return the size of a fit; the default of n_codes is its upper bound."""
        params = spec.params
        if n_codes is None:
            n_codes = MAX_BINS + 1 if spec.max_bins is not None else n_rows + 1
        tree_rows = n_rows if spec.sampler is None else spec.sampler.n_distinct
        tree_nodes = _most_nodes(params, tree_rows, n_classes)
        weight_bytes = 0 if spec.weights is None else _WEIGHT_BYTES
        return cls(
            n_rows,
            n_features,
            n_classes,
            len(spec.numbers),
            n_codes,
            tree_rows,
            tree_nodes,
            params.max_features,
            _BALANCED_BYTES if params.balanced_subsample else weight_bytes,
            0 if spec.sampler is None else spec.sampler.bytes_of_tree * spec.numbers.stop,
            spec.score_bytes,
        )

    @property
    def code_bytes(self) -> int:
        """Bytes of a code."""
        return 1 if self.n_codes <= 2**8 else 2 if self.n_codes <= 2**16 else 4

    @property
    def matrix_bytes(self) -> int:
        """Bytes of the codes of all rows."""
        return self.n_rows * self.n_features * self.code_bytes

    @property
    def feature_bytes(self) -> int:
        """Bytes of the codes of all rows, and of what is kept for each feature."""
        return self.matrix_bytes + _FEATURE_BYTES * self.n_features

    @property
    def row_bytes(self) -> int:
        """Bytes of a thread for a row that is sorted by node."""
        return _ROW_BYTES + self.weight_bytes

    @property
    def tree_bytes(self) -> int:
        """Bytes of a thread for growing a tree, without codes and histograms."""
        has_copies = branch_rows(self.n_features, self.max_features) > 0
        copied = self.code_bytes * self.n_features / _COPIED if has_copies else 0.0
        # The bytes of a node include two classes.
        node_bytes = _NODE_BYTES + _CLASS_BYTES * (self.n_classes - 2)
        return int((self.row_bytes + copied) * self.n_rows) + node_bytes * self.tree_nodes

    @property
    def histogram_bytes(self) -> int:
        """Bytes of the histograms of a thread that grows trees."""
        return _CODE_BYTES * self.n_codes + _CELL_BYTES * (self.n_codes << (self.n_classes - 1).bit_length())

    @property
    def branch_row_bytes(self) -> int:
        """Bytes of a row of a branch that is a task: all its copies, and its nodes."""
        return _HANDED_OVER * (self.n_features * self.code_bytes + _HANDED_BYTES) + self.row_bytes + _NODE_BYTES

    def sum_bytes(self, n_rows: int) -> int:
        """Return the bytes of the sums of class frequencies over trees, and of the numbers of trees, for all rows."""
        return 8 * (self.n_classes + 1) * n_rows

    def node_histogram_bytes(self, item_bytes: int) -> int:
        """Return the bytes of the histograms of one node that a part sends."""
        return self.max_features * (MAX_BINS + 1) * (self.n_classes + 1) * item_bytes


def _most_nodes(params: GrowthParams, n_distinct: int, n_classes: int) -> int:
    """Return the maximum number of nodes of a tree; for two classes, leaves are assumed to have two rows on average."""
    leaves = min(
        n_distinct // 2 if n_classes == 2 else n_distinct,
        n_distinct // params.min_samples_leaf,
        2 ** min(params.max_depth, 40),
    )
    return 2 * (leaves if params.max_leaf_nodes is None else min(leaves, params.max_leaf_nodes))


def parse_bytes(given: Any, name: str) -> int:
    """Return a number of bytes, given as an integer or as text such as "2GiB", "500MB" or "1.5 GB".

    Examples
    --------
    >>> [parse_bytes(given, "memory_limit") for given in ("2GiB", "500MB", 10**9)]
    [2147483648, 500000000, 1000000000]
    """
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) > 0:
        return int(given)
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?i?)b?\s*", str(given).lower())
    if found is None or found[2] not in _UNITS or float(found[1]) == 0 or not isinstance(given, str):
        raise ValueError(f"{name} must be a number of bytes, such as 2147483648 or '2GiB', but is {given!r}")
    return int(float(found[1]) * _UNITS[found[2]])


def format_bytes(n_bytes: float) -> str:
    """Return a number of bytes as text with a unit."""
    units = ["KiB", "MiB", "GiB", "TiB"]
    place = min(int(np.log2(max(n_bytes, 1024)) / 10), len(units))
    return f"{n_bytes / 1024**place:,.2f} {units[place - 1]}"


def bytes_in_memory(size: FitSize, n_threads: int, n_sums: int = 0) -> int:
    """Return the approximate bytes of a fit, without the table and the trees, whose size is not known in advance.

    So many threads grow trees at a time, and so many sums over trees out of bag are kept for every row.
    """
    growing = min(n_threads, size.n_trees) * (size.tree_bytes + size.histogram_bytes)
    sums = n_sums * size.sum_bytes(size.n_rows) + size.score_bytes
    return size.feature_bytes + size.sample_bytes + growing + sums


def check_fit(size: FitSize, n_threads: int, n_sums: int = 0) -> None:
    """Raise ValueError before a fit in memory starts if it would take too much memory.

    Warn of a target that looks like one of regression: of many classes with few samples each.
    """
    n_bytes, is_quantity = bytes_in_memory(size, n_threads, n_sums), size.n_classes > size.n_rows // _LEAST_OF_CLASS
    what = (
        f"growing {size.n_trees} trees on {size.n_rows:,} samples, {size.n_features:,} features and"
        f" {size.n_classes:,} classes"
    )
    advice = "set max_depth, max_leaf_nodes, max_samples or a larger min_samples_leaf, or a smaller n_jobs"
    if is_quantity:
        advice = "y looks like a regression target: predict whether it exceeds a threshold, y > threshold"
    of_features = size.feature_bytes > n_bytes / 2
    check_memory(n_bytes, what, "select fewer features, or pass fewer samples" if of_features else advice)
    if is_quantity and size.n_classes > _MANY_CLASSES:
        warnings.warn(
            f"y has {size.n_classes:,} classes of {size.n_rows / size.n_classes:.1f} samples on average, and the fit"
            f" takes about {format_bytes(n_bytes)} beside the trees; {advice}",
            stacklevel=7,
        )


def check_trees(n_bytes: int, n_grown: int, n_nodes: int, n_trees: int) -> None:
    """Raise ValueError if all trees would take too much memory, estimated from those that are grown.

    These have so many bytes, and the first of them so many nodes.
    """
    check_memory(
        n_trees * n_bytes / n_grown,
        f"{n_trees} trees of the size of the first {n_grown}, which have {n_nodes:,} nodes,",
        "set max_depth, max_leaf_nodes, max_samples or a larger min_samples_leaf, or fewer n_estimators",
    )


class Workers(NamedTuple):
    """The processes and threads that grow trees."""

    n_workers: int  # processes
    n_threads: int  # of all processes together
    memory: int  # minimum bytes of a worker; out of core, the limit

    @property
    def threads_per_worker(self) -> int:
        """Number of threads of a worker."""
        return -(-self.n_threads // max(1, self.n_workers))


@dataclass(frozen=True)
class Plan:
    """The plan for growing a forest from rows in parts; its text is a table.

    Attributes
    ----------
    size : FitSize
    workers : Workers
    strategy : {"replicate", "gather", "level"}
        Trees from the codes of all rows, from those of their own rows, or level by level down to `local_rows`.
    reason : str
    local_rows : int
        Most rows of a node, or a tree, that one task grows.
    max_hist_bytes : int
        Most bytes of histograms that a part sends at once.
    n_parts : int
        Parts of the rows.
    worker_bytes : int
        What a worker needs, beside the trees.
    n_readers : int
        Threads that read and encode batches out of core.
    """

    size: FitSize
    workers: Workers
    strategy: str
    reason: str
    local_rows: int
    max_hist_bytes: int
    n_parts: int
    worker_bytes: int = 0
    n_readers: int = 1

    @property
    def part_rows(self) -> int:
        """Number of rows of a part, which are whole blocks."""
        return -(-self.size.n_rows // (self.n_parts * BLOCK_ROWS)) * BLOCK_ROWS

    @property
    def level_bytes(self) -> int:
        """Bytes of the histograms of the widest level of a tree, before branches become tasks."""
        n_nodes = max(1, 2 * self.size.tree_rows // max(1, self.local_rows))
        of_level = n_nodes * self.size.node_histogram_bytes(4)
        return min(self.max_hist_bytes, of_level) if self.strategy == "level" else 0

    @property
    def _needed(self) -> str:
        """The bytes that a worker needs, as text; "at least" if they depend on the number of distinct values."""
        return f"{'about' if self.size.code_bytes == 1 else 'at least'} {format_bytes(self.worker_bytes)}"

    def __str__(self) -> str:
        size, workers = self.size, self.workers
        rows = {
            "rows x features": f"{size.n_rows} x {size.n_features}, {size.n_classes} classes",
            "binned data": f"{format_bytes(size.matrix_bytes)} in {self.n_parts} parts",
            "workers": f"{workers.n_workers} of {workers.threads_per_worker} threads, the smallest with"
            f" {format_bytes(workers.memory)}",
            "strategy": f"{self.strategy}: {self.reason}",
            "a worker needs": self._needed,
            "trees": f"{size.n_trees} of at most {size.tree_rows} rows, local_rows {self.local_rows}",
            "messages": f"{format_bytes(self.level_bytes)} of histograms for a tree's widest level from each part",
        }
        return "\n".join(f"{name:<16} {text}" for name, text in rows.items())


def plan_on_cluster(
    spec: FitSpec, size: FitSize, workers: Workers, *, strategy: str, local_rows: int | None, max_hist_bytes: int | str
) -> Plan:
    """Choose the plan on a cluster; the options are those of `DaskAUCForestClassifier`."""
    in_one_place = "max_bins=None" if spec.max_bins is None else needs_all_rows(spec.variants)
    room = _ROWS_FRACTION * workers.memory
    n_parts = max(workers.n_threads, min(-(-size.matrix_bytes // _PART_BYTES), _PARTS * workers.n_threads))
    n_parts = min(n_parts, -(-size.n_rows // BLOCK_ROWS))
    fitting = max(1, min(int(room / workers.threads_per_worker / size.branch_row_bytes), MOST_ROWS))
    local_rows = fitting if local_rows is None else int(local_rows)
    fraction, reason = f"{_ROWS_FRACTION:.0%} of {format_bytes(workers.memory)}", "as requested"
    if strategy == "auto":
        if size.matrix_bytes <= room and size.n_rows <= MOST_ROWS:
            strategy, reason = "replicate", f"the binned data, {format_bytes(size.matrix_bytes)}, fit into {fraction}"
        elif size.tree_rows <= local_rows:
            strategy, reason = "gather", f"the binned data do not fit into {fraction}, the samples of a tree do"
        elif in_one_place is not None:
            strategy, reason = "gather", f"{in_one_place} needs all samples of a tree on one worker"
        else:
            strategy, reason = "level", f"the {size.tree_rows} samples of a tree do not fit into {fraction}"
    if strategy == "replicate":
        n_parts = 1
    if strategy != "level":
        local_rows = max(local_rows, size.tree_rows)
    plan = Plan(size, workers, strategy, reason, local_rows, parse_bytes(max_hist_bytes, "max_hist_bytes"), n_parts)
    return replace(plan, worker_bytes=max(_choosing_bytes(size), _growing_bytes(plan)))


def _choosing_bytes(size: FitSize) -> int:
    """Return the bytes of the values on the worker that chooses codes."""
    return _CHOOSING * size.n_rows * size.n_features if size.code_bytes > 1 else 0


def _growing_bytes(plan: Plan) -> int:
    """Return the bytes of rows and histograms on a worker while trees grow."""
    size, n_workers, n_threads = plan.size, max(1, plan.workers.n_workers), plan.workers.threads_per_worker
    whole = size.n_rows * (size.n_features * size.code_bytes + _HANDED_BYTES)
    parts = -(-(whole + size.sample_bytes) // n_workers)
    if plan.strategy == "replicate":
        return whole + parts + n_threads * (size.tree_bytes + size.histogram_bytes)
    # There are results of each part for two rounds, and a task counts in words of twice the size.
    rounds = 2 * -(-plan.n_parts // n_workers) + 3 * n_threads
    histograms = 0 if plan.strategy == "gather" else rounds * plan.max_hist_bytes
    branches = min(plan.local_rows, size.tree_rows) * size.branch_row_bytes
    arranged = -(-size.n_rows // plan.n_parts) * size.row_bytes
    return parts + n_threads * (branches + arranged) + histograms


def advice_on_cluster(plan: Plan) -> str:
    """Return advice for workers with too little memory."""
    change = {
        "replicate": 'use strategy="gather" or "level", more memory or fewer threads for each worker, or max_samples',
        "gather": 'use strategy="level", max_samples, more workers (n_workers), or more memory for each',
        "level": "decrease local_rows or max_hist_bytes, or use more workers (n_workers) or more memory for each",
    }[plan.strategy]
    if _choosing_bytes(plan.size) > _growing_bytes(plan):
        change = "set max_bins, without which one worker needs all values, or use more memory"
    return (
        f"strategy={plan.strategy!r} with local_rows={plan.local_rows}, max_hist_bytes={plan.max_hist_bytes} needs"
        f" {plan._needed} on each of n_workers={plan.workers.n_workers} workers, of which the"
        f" smallest has {format_bytes(plan.workers.memory)}: {change}"
    )


def plan_on_disk(spec: FitSpec, target: Target, n_features: int, limit: int) -> Plan:
    """Choose the plan out of core, with a limit of bytes in addition to the trees.

    From the codes of all rows where these fit into the limit with one thread at least, else level by level.

    Raises
    ------
    ValueError
        When the limit is too small for any way.
    """
    n_kept, n_threads = len(target.kept_labels), effective_n_jobs(spec.n_jobs)
    size = FitSize.of(spec, n_kept, n_features, len(target.classes))
    of_rows = _bytes_of_target(spec, target) + size.sample_bytes
    sampled = n_kept if spec.max_bins is None else min(n_kept, SAMPLE_ROWS)
    sums = size.sum_bytes(len(target.labels)) * spec.n_sums + size.score_bytes

    def reading(n: int) -> int:
        sorting = n * (_WEIGHED_BYTES if size.weight_bytes else 8) * sampled
        return _SAMPLED_BYTES * sampled * n_features + (n + 2) * _BATCH_BYTES + sorting

    readers = range(min(n_threads, _READERS), 1, -1)
    n_readers = next((n for n in readers if of_rows + reading(n) <= limit), 1)

    def whole(n_threads: int) -> Plan:
        growing = max(bytes_in_memory(size, n_threads) - size.sample_bytes, size.matrix_bytes + sums)
        needed, workers = of_rows + max(reading(n_readers), growing), Workers(1, n_threads, limit)
        return Plan(size, workers, "replicate", "the binned data fit into the limit", n_kept, 0, 1, needed, n_readers)

    for n in range(n_threads, 0, -1):
        if whole(n).worker_bytes <= limit and n_kept <= MOST_ROWS:
            return whole(n)
    least = whole(1).worker_bytes
    if spec.max_bins is not None and needs_all_rows(spec.variants) is None:
        fixed = of_rows + max(reading(n_readers), sums)
        plan = _plan_levels(size, n_threads, limit, of_rows) if fixed <= limit else None
        if plan is not None:
            return replace(plan, n_readers=n_readers)
        limits = range(fixed, max(least, fixed))
        with_plan = bisect_left(limits, 1, key=lambda some: _plan_levels(size, n_threads, some, of_rows) is not None)
        least = fixed + with_plan
    raise ValueError(
        f"memory_limit={limit:,} bytes is too small for {size.n_rows:,} rows of {size.n_features} features: in addition"
        f" to the trees {least:,} bytes are needed"
    )


def _bytes_of_target(spec: FitSpec, target: Target) -> int:
    """Return the bytes of labels, weights and strata of all rows."""
    n_rows, n_kept, sampler = len(target.labels), len(target.kept_labels), spec.sampler
    n_bytes = 2 * n_rows + (8 * n_rows if target.sample_weight is not None else 0)
    n_bytes += 8 * n_kept if spec.weights is not None or spec.params.balanced_subsample else 0
    n_bytes += 0 if target.kept is None else 18 * n_kept
    n_bytes += 0 if target.groups is None else 4 * (n_rows + n_kept)
    return n_bytes + (0 if sampler is None else sampler.members.nbytes)


def _plan_levels(size: FitSize, n_threads: int, limit: int, of_rows: int) -> Plan | None:
    """Divide the remaining memory: half for branches, a quarter each for parts and histograms; None if too little.

    Pages of the mapped codes do not count: they are read from end to end, and may go at any time.
    """
    room = (limit - of_rows) // 4
    n_blocks = room // (size.row_bytes * n_threads * BLOCK_ROWS)
    if n_blocks == 0:
        return None
    n_parts = -(-size.n_rows // (n_blocks * BLOCK_ROWS))
    max_hist_bytes = room // (_HISTOGRAMS * n_parts + _COUNTED * n_threads)
    local_rows = min(2 * room // (size.branch_row_bytes * n_threads), MOST_ROWS)
    if local_rows < BLOCK_ROWS or max_hist_bytes < size.node_histogram_bytes(8):
        return None
    reason = "the binned data do not fit into the limit"
    return Plan(size, Workers(1, n_threads, limit), "level", reason, local_rows, max_hist_bytes, n_parts, limit)
