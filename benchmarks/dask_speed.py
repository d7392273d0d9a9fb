"""What does a cluster gain, and what does it cost? Dask on this machine: workers and strategies.

    python benchmarks/dask_speed.py [PART ...]

runs some parts: workers (one against two, of a thread each), strategies (against one process with as many threads),
tasks (what the workers do in these, by kind of task). 1,000,000 rows of 30 features, 100 trees; whole fits of data that
lie in files; warm; medians of fits that take turns, for workers of clusters that do. Bytes are all that went through
sockets of this machine. In the part workers these have Dask's defaults; in the others they keep their memory.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from _timing import interleaved
from dask import delayed
from distributed import Client, LocalCluster, get_task_stream
from distributed.utils import key_split
from sklearn.datasets import make_classification

from aucforest import AUCForestClassifier
from aucforest.distributed import DaskAUCForestClassifier

N_ROWS, N_FEATURES, N_TREES, N_CHUNKS = 1_000_000, 30, 100, 8
N_WORKERS = 2
REPEATS = 3


def write_arrays(folder: Path, n_rows: int = N_ROWS) -> None:
    """Write a matrix and labels, of which 5 % are positive."""
    X, y = make_classification(n_rows, N_FEATURES, n_informative=10, n_redundant=5, weights=[0.95], random_state=0)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)


def _load(file: str, start: int, stop: int) -> np.ndarray:
    return np.load(file, mmap_mode="r")[start:stop].copy()


def read_arrays(folder: Path) -> tuple[Any, Any]:
    """Return both as dask arrays that workers read."""
    n_rows = len(np.load(folder / "y.npy", mmap_mode="r"))
    bounds = np.linspace(0, n_rows, N_CHUNKS + 1).astype(int).tolist()
    columns = []
    for name, shape, dtype in (("X", (N_FEATURES,), np.float64), ("y", (), np.int64)):
        chunks = [
            da.from_delayed(delayed(_load)(str(folder / f"{name}.npy"), start, stop), (stop - start, *shape), dtype)
            for start, stop in pairwise(bounds)
        ]
        columns.append(da.concatenate(chunks))
    return columns[0], columns[1]


@contextmanager
def cluster(n_workers: int, *, keep_memory: bool = True) -> Iterator[Client]:
    """Start processes of one thread each."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "host": "127.0.0.1"}
    # By default workers give memory back after every task, and pay for fresh pages in the next one.
    sizes = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), 2**30)
    environment = {"distributed.nanny.pre-spawn-environ": {**sizes, "OMP_NUM_THREADS": 1}} if keep_memory else {}
    with (
        dask.config.set(environment),
        LocalCluster(n_workers=n_workers, **options) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def fit(client: Client, data: tuple[Any, Any], **options: Any) -> DaskAUCForestClassifier:
    """Fit a forest on a cluster."""
    params = {
        "n_estimators": N_TREES,
        "criterion": "auc",
        "random_state": 0,
        "n_jobs": N_WORKERS,
        "client": client,
        **options,
    }
    return DaskAUCForestClassifier(**params).fit(*data)


def sent_bytes() -> int:
    """Return how many bytes this machine has sent, to itself above all."""
    return psutil.net_io_counters().bytes_sent


def compare_workers(folder: Path) -> None:
    """Print what a second worker gains."""
    data = read_arrays(folder)
    seconds: dict[int, list[float]] = {1: [], N_WORKERS: []}
    for _ in range(REPEATS):
        for n_workers, times in seconds.items():
            # One cluster at a time: one that has nothing to do takes some of the two cores, too.
            with cluster(n_workers, keep_memory=False) as client:
                run = partial(fit, client, data, strategy="replicate")
                run()  # warm
                times.append(interleaved({"": run}, REPEATS)[""])
    one, two = map(median, seconds.values())
    print(f"replicate, {N_ROWS:,} x {N_FEATURES}, {N_TREES} trees: one worker {one:.2f} s,", end=" ")
    print(f"two workers {two:.2f} s, gain {one / two:.2f}")


def strategies(client: Client, data: tuple[Any, Any]) -> dict[str, Callable[[], Any]]:
    """Return a fit for each strategy."""
    return {name: partial(fit, client, data, strategy=name) for name in ("replicate", "gather")}


def list_tasks(folder: Path) -> None:
    """Print the seconds of the threads of the workers by task, of transfers, and of this process with the scheduler."""
    with cluster(N_WORKERS) as client:
        for name, run in strategies(client, read_arrays(folder)).items():
            run()  # warm
            start, own = perf_counter(), process_time()
            with get_task_stream(client) as stream:
                run()
            wall, own, seconds = perf_counter() - start, process_time() - own, Counter()
            for task in stream.data:
                for step in task["startstops"]:
                    what = key_split(task["key"]) if step["action"] == "compute" else step["action"]
                    seconds[what.split("-")[0]] += step["stop"] - step["start"]
            listed = ", ".join(f"{what} {of_step:.2f}" for what, of_step in seconds.most_common(6))
            print(f"{name:<28}{wall:>8.2f} s; client and scheduler {own:.2f}; threads of workers: {listed}", flush=True)


def compare_strategies(folder: Path) -> None:
    """Print what strategies cost against one process that has the arrays in memory."""
    data, X, y = read_arrays(folder), np.load(folder / "X.npy"), np.load(folder / "y.npy")
    with cluster(N_WORKERS) as client:
        runs: dict[str, Callable[[], Any]] = {
            "one process": lambda: AUCForestClassifier(N_TREES, criterion="auc", n_jobs=N_WORKERS, random_state=0).fit(
                X, y
            ),
            **strategies(client, data),
        }
        sent, trees = {}, None
        for name, run in runs.items():
            before = sent_bytes()
            forest = run()  # warm
            sent[name] = sent_bytes() - before
            grown = [tree.threshold.tobytes() for tree in forest.trees_]
            trees = grown if trees is None else trees
            assert grown == trees, f"{name} has grown other trees"
        seconds = interleaved(runs, REPEATS)
    print(f"two workers, {N_ROWS:,} x {N_FEATURES}, {N_TREES} trees, the same to the last bit")
    for name, time in seconds.items():
        print(f"{name:<28}{time:>8.2f} s{time / seconds['one process']:>7.2f}{sent[name] / 2**20:>9,.0f} MiB sent")


PARTS = {
    "workers": compare_workers,
    "strategies": compare_strategies,
    "tasks": list_tasks,
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as arrays:
        write_arrays(Path(arrays))
        for part in sys.argv[1:] or PARTS:
            PARTS[part](Path(arrays))
