"""The plan of a fit on a cluster: where trees grow, and the memory that workers need."""

from dataclasses import dataclass
from typing import NamedTuple

from aucforest._memory import format_bytes
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.plan import COUNT_BYTES, FitSize
from aucforest.tree.samples import MOST_ROWS

STRATEGIES = ("auto", "replicate", "gather")

# The maximum proportion of a worker's memory for the codes (binned values) of all rows. Trees and tasks need the rest.
_ROWS_FRACTION = 0.4
# Minimum bytes of each value of the table on the worker that chooses the bins. Without max_bins, it needs all values.
_CHOOSING_BYTES = 24
_ROW_BYTES = 12  # bytes of a row in memory besides its codes: its label and its weight
# Approximate bytes of the codes of a part, and of the rows of a task. Parts are small, as lost ones are computed again.
_PART_BYTES = 2**26
_PARTS_PER_THREAD = 4  # maximum number of parts for each thread; each task costs milliseconds
# Copies of the rows of a tree for each thread. A running and a waiting task each have the sent and the joined rows.
_COPIES = 4


class Workers(NamedTuple):
    """The workers of a cluster."""

    n_workers: int  # number of worker processes
    n_threads: int  # number of threads of all workers together
    memory: int  # bytes of memory of the smallest worker

    @property
    def threads_per_worker(self) -> int:
        """Maximum number of threads of a worker, if threads are distributed evenly."""
        return -(-self.n_threads // self.n_workers)


@dataclass(frozen=True)
class ClusterPlan:
    """The plan for growing a forest on a cluster. ``print`` shows it as a table."""

    size: FitSize
    workers: Workers
    strategy: str  # whether trees grow from the codes of all rows ("replicate") or of their samples ("gather")
    reason: str  # why this strategy was chosen

    @property
    def n_parts(self) -> int:
        """Number of parts of the rows."""
        if self.strategy == "replicate":
            return 1
        n_threads, n_blocks = self.workers.n_threads, -(-self.size.n_rows // BLOCK_ROWS)
        by_size = min(-(-self.size.matrix_bytes // _PART_BYTES), _PARTS_PER_THREAD * n_threads)
        return min(max(n_threads, by_size), n_blocks)

    @property
    def trees_per_task(self) -> int:
        """Maximum number of trees of a task that gathers their rows."""
        return max(1, min(_PART_BYTES // max(1, self.size.copy_bytes), self.size.n_trees))

    @property
    def worker_bytes(self) -> int:
        """Bytes that a worker needs besides the trees."""
        return max(self._choosing_bytes, self._growing_bytes(self.size))

    @property
    def _choosing_bytes(self) -> int:
        """Bytes of the values on the worker that chooses the bins; 0 with max_bins."""
        return _CHOOSING_BYTES * self.size.n_rows * self.size.n_features if self.size.code_bytes > 1 else 0

    def _growing_bytes(self, size: FitSize) -> int:
        """Return the bytes that a worker needs while the trees of a fit of the given size grow."""
        n_threads, matrix = self.workers.threads_per_worker, size.matrix_bytes + _ROW_BYTES * size.n_rows
        parts = -(-(matrix + size.sample_bytes) // self.workers.n_workers) + size.rate_total_bytes
        if self.strategy == "replicate":
            return parts + matrix + n_threads * size.thread_bytes(size.n_rows)
        # A task gathers the rows of one tree, or of several trees with a total of at most _PART_BYTES.
        gathered = _COPIES * min(max(size.copy_bytes, _PART_BYTES), size.n_trees * size.copy_bytes)
        counts = COUNT_BYTES * -(-size.n_rows // self.n_parts)
        return parts + n_threads * (gathered + counts + size.thread_bytes(size.tree_rows))

    @property
    def _needed(self) -> str:
        """The bytes that a worker needs, as text. Without max_bins, they depend on the number of distinct values."""
        return f"{'about' if self.size.code_bytes == 1 else 'at least'} {format_bytes(self.worker_bytes)}"

    @property
    def advice(self) -> str:
        """A sentence on what to change if workers have too little memory."""
        change = "more memory, or fewer threads for each worker"
        if self._choosing_bytes > self._growing_bytes(self.size):
            change = "set max_bins, without which one worker needs all values, or use more memory"
        elif self.strategy == "replicate":
            change = f'set strategy="gather", or use {change}'
        else:
            n_fitting = self.size.max_tree_rows(self.workers.memory, self._growing_bytes)
            is_smaller = 0 < n_fitting < self.size.tree_rows
            change = f"set {f'max_samples={n_fitting}' if is_smaller else 'max_samples'}, or use {change}"
        return (
            f"strategy={self.strategy!r} needs {self._needed} on each of n_workers={self.workers.n_workers} workers, of"
            f" which the smallest has {format_bytes(self.workers.memory)}: {change}"
        )

    def __str__(self) -> str:
        size, workers = self.size, self.workers
        sent = size.matrix_bytes if self.strategy == "replicate" else size.copy_bytes
        table = {
            "rows x features": f"{size.n_rows} x {size.n_features}, {size.n_classes} classes",
            "binned data": f"{format_bytes(size.matrix_bytes)} in {self.n_parts} parts",
            "workers": f"{workers.n_workers} of {workers.threads_per_worker} threads, the smallest with"
            f" {format_bytes(workers.memory)}",
            "strategy": f"{self.strategy}: {self.reason}",
            "a worker needs": self._needed,
            "trees": f"{size.n_trees} of at most {size.tree_rows} rows",
            "messages": f"{format_bytes(sent)} for each {'worker' if self.strategy == 'replicate' else 'tree'}",
        }
        return "\n".join(f"{name:<16} {text}" for name, text in table.items())


def plan_on_cluster(size: FitSize, workers: Workers, strategy: str) -> ClusterPlan:
    """Choose where trees grow; `strategy` is the parameter of `DaskAUCForestClassifier`."""
    if strategy != "auto":
        return ClusterPlan(size, workers, strategy, "as requested")
    binned = f"the binned data, {format_bytes(size.matrix_bytes)}"
    fraction = f"{_ROWS_FRACTION:.0%} of {format_bytes(workers.memory)}"
    if size.matrix_bytes <= _ROWS_FRACTION * workers.memory and size.n_rows <= MOST_ROWS:
        return ClusterPlan(size, workers, "replicate", f"{binned}, fit into {fraction}")
    return ClusterPlan(size, workers, "gather", f"{binned}, do not fit into {fraction}")
