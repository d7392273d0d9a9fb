"""Where rows and trees go on a cluster, by what fits into the memory of a worker."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aucforest._optional import import_optional
from aucforest.distributed._errors import ClusterError
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.plan import parse_bytes
from aucforest.tree.samples import MOST_ROWS

STRATEGIES = ("auto", "replicate", "gather", "level")

# The part of a worker's memory that the rows of trees may take: tasks need theirs, and results on their way.
_SHARE = 0.4
# Bytes a row of a tree beside its codes: two orders of the rows, draws, weights, and the nodes they end in.
_TREE_ROW = 40
# Bytes a row of a part beside its codes: label, place in its stratum, weight.
_PART_ROW = 12
# The same while the rows of a tree are arranged there: two orders, label, draws, weights and weights in units.
_ROUTED_ROW = 36
# Bytes of every value, at least, while those that codes stand for are chosen from all: of parts, together, and sorted.
_CHOOSING = 24
# How often the rows of a branch are there: for the task that runs and the next one, and joined.
_COPIES = 3
_BINS, _COUNT = 256, 4
# Bytes of the codes of a part, so that a lost one is soon made anew; but most parts for each thread of a worker: every
# task costs milliseconds.
_PART_BYTES, _PARTS = 2**26, 4


@dataclass(frozen=True)
class Cluster:
    """What a cluster has.

    Attributes
    ----------
    n_workers : int
        Processes.
    n_threads : int
        Tasks that run at once, in all of them.
    memory : int
        Bytes of the smallest worker.
    """

    n_workers: int
    n_threads: int
    memory: int

    @property
    def threads_per_worker(self) -> int:
        """Tasks that a worker runs at once."""
        return -(-self.n_threads // max(1, self.n_workers))


@dataclass(frozen=True)
class Plan:
    """How a forest is grown on a cluster; as text a table.

    Attributes
    ----------
    n_rows, n_features, n_classes, n_trees : int
    code_bytes : int
        Of a code of one value.
    tree_rows : int
        Most distinct rows of a tree.
    max_features : int
        Features that a node looks at.
    cluster : Cluster
    strategy : {"replicate", "gather", "level"}
    reason : str
    local_rows : int
        Most rows of a node, or a tree, that one task grows.
    max_hist_bytes : int
        Most bytes of histograms that a part sends at once.
    n_parts : int
        Parts of the rows.
    """

    n_rows: int
    n_features: int
    n_classes: int
    n_trees: int
    code_bytes: int
    tree_rows: int
    max_features: int
    cluster: Cluster
    strategy: str
    reason: str
    local_rows: int
    max_hist_bytes: int
    n_parts: int

    @property
    def matrix_bytes(self) -> int:
        """Bytes of all codes."""
        return self.n_rows * self.n_features * self.code_bytes

    @property
    def level_bytes(self) -> int:
        """Bytes of the histograms of a tree's widest level, before its nodes are handed off."""
        n_nodes = max(1, 2 * self.tree_rows // max(1, self.local_rows))
        node = self.max_features * _BINS * (self.n_classes + 1) * _COUNT
        return min(self.max_hist_bytes, n_nodes * node) if self.strategy == "level" else 0

    @property
    def worker_bytes(self) -> int:
        """Bytes that a worker needs."""
        return max(self._choosing_bytes, self._growing_bytes)

    @property
    def _choosing_bytes(self) -> int:
        """Bytes of values on the worker that chooses codes; few unless it chooses from all."""
        return _CHOOSING * self.n_rows * self.n_features if self.code_bytes > 1 else 0

    @property
    def _growing_bytes(self) -> int:
        """Bytes of rows and histograms on a worker while trees grow."""
        part = self.n_rows * (self.n_features * self.code_bytes + _PART_ROW)
        parts = -(-part // max(1, self.cluster.n_workers))
        threads = self.cluster.threads_per_worker
        if self.strategy == "replicate":
            return part + parts + threads * self.tree_rows * _TREE_ROW
        rows = min(self.local_rows, self.tree_rows)
        row = _bytes_of_branch_row(self.n_features * self.code_bytes)
        # Two rounds have results of every part, and a task counts in words of twice the size.
        rounds = 2 * -(-self.n_parts // max(1, self.cluster.n_workers)) + 3 * threads
        hist = 0 if self.strategy == "gather" else rounds * self.max_hist_bytes
        routed = -(-self.n_rows // self.n_parts) * _ROUTED_ROW
        return parts + threads * (rows * row + routed) + hist

    @property
    def _needed(self) -> str:
        """What a worker needs, to read; how many distinct values there are is not known before they are read."""
        return f"{'about' if self.code_bytes == 1 else 'at least'} {_format(self.worker_bytes)}"

    @property
    def advice(self) -> str:
        """What to change where memory is too little."""
        change = {
            "replicate": 'take strategy="gather" or "level", more memory or fewer threads a worker, or max_samples',
            "gather": 'take strategy="level", max_samples, more workers (n_workers), or more memory for each',
            "level": "lower local_rows or max_hist_bytes, take more workers (n_workers), or more memory for each",
        }[self.strategy]
        if self._choosing_bytes > self._growing_bytes:
            change = "set max_bins, without which one worker has all values, or take more memory"
        return (
            f"strategy={self.strategy!r} with local_rows={self.local_rows}, max_hist_bytes={self.max_hist_bytes} needs"
            f" {self._needed} on each of n_workers={self.cluster.n_workers} workers, of which the"
            f" smallest has {_format(self.cluster.memory)}: {change}"
        )

    def check(self) -> None:
        """Raise ClusterError when the smallest worker has too little."""
        if self.worker_bytes > self.cluster.memory:
            raise ClusterError(f"too little memory: {self.advice}")

    def __str__(self) -> str:
        rows = {
            "rows x features": f"{self.n_rows} x {self.n_features}, {self.n_classes} classes",
            "codes": f"{_format(self.matrix_bytes)} in {self.n_parts} parts",
            "workers": f"{self.cluster.n_workers} of {self.cluster.threads_per_worker} threads, the smallest with"
            f" {_format(self.cluster.memory)}",
            "strategy": f"{self.strategy}: {self.reason}",
            "a worker needs": self._needed,
            "trees": f"{self.n_trees} of at most {self.tree_rows} rows, local_rows {self.local_rows}",
            "messages": f"{_format(self.level_bytes)} of histograms for a tree's widest level from each part",
        }
        return "\n".join(f"{name:<16} {text}" for name, text in rows.items())


def choose_plan(
    forest: Any, *, shape: tuple[int, int], n_classes: int, tree_rows: int, max_features: int, cluster: Cluster
) -> Plan:
    """Choose how to grow a forest of given rows and features.

    Parameters
    ----------
    forest : DaskAUCForestClassifier
        Its `strategy`, `local_rows`, `max_hist_bytes`, `max_bins` and `n_estimators`.
    shape : (int, int)
    n_classes, tree_rows, max_features : int
        As in `Plan`.
    cluster : Cluster
    """
    n_rows, n_features = shape
    # Without bins there may be as many codes as rows.
    code_bytes = 1 if forest.max_bins is not None else 4
    room = _SHARE * cluster.memory
    matrix = n_rows * n_features * code_bytes
    n_parts = max(cluster.n_threads, min(-(-matrix // _PART_BYTES), _PARTS * cluster.n_threads))
    n_parts = min(n_parts, -(-n_rows // BLOCK_ROWS))
    row = _bytes_of_branch_row(n_features * code_bytes)
    fitting = max(1, min(int(room / cluster.threads_per_worker / row), MOST_ROWS))
    local_rows = fitting if forest.local_rows is None else int(forest.local_rows)
    strategy, of = forest.strategy, f"of {_format(cluster.memory)}"
    reason = "as asked for"
    if strategy == "auto":
        if matrix <= room and n_rows <= MOST_ROWS:
            strategy, reason = "replicate", f"all codes, {_format(matrix)}, fit into {_SHARE:.0%} {of}"
        elif tree_rows <= local_rows:
            strategy, reason = "gather", f"the codes do not fit into {_SHARE:.0%} {of}, the rows of a tree do"
        else:
            strategy, reason = "level", f"the rows of a tree, {tree_rows}, are more than fit into {_SHARE:.0%} {of}"
    if strategy != "level":
        local_rows = max(local_rows, tree_rows)
    return Plan(
        n_rows, n_features, n_classes, forest.n_estimators, code_bytes, tree_rows, max_features, cluster, strategy,
        reason, local_rows, parse_bytes(forest.max_hist_bytes, "max_hist_bytes"), n_parts,
    )  # fmt: skip


def count_tree_rows(n_rows: int, sizes: Any, replace: bool) -> int:
    """Return about how many distinct rows a tree has that makes draws of these sizes."""
    n_draws = n_rows if sizes is None else int(np.sum(sizes))
    if sizes is None or not replace:
        return min(n_draws, n_rows)
    return int(np.ceil(n_rows * -np.expm1(-n_draws / n_rows)))


def _bytes_of_branch_row(code_row: int) -> int:
    """Return what a row of a branch takes on the worker that grows it, given the bytes of its codes."""
    return _COPIES * (code_row + _PART_ROW) + _TREE_ROW


def _format(n_bytes: int) -> str:
    """Return a number of bytes as people read it."""
    text: str = import_optional("dask.utils", purpose="Dask", extra="dask").format_bytes(int(n_bytes))
    return text
