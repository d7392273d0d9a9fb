"""What would 10^8 to 10^10 rows take? Arithmetic with what the other scripts measured; no such data were seen.

    python benchmarks/scale_on_paper.py

Workers are of 16 threads, 64 GB and 10 Gbit/s; 30 features, two classes, 100 trees.
"""

from math import log2
from typing import NamedTuple

from aucforest.distributed._plan import Workers, plan_on_cluster
from aucforest.fitting.plan import FitSize

N_FEATURES, N_TREES, MAX_FEATURES, N_BINS, N_CLASSES = 30, 100, 5, 256, 2
THREADS, MEMORY, NETWORK = 16, 64e9, 10e9 / 8

# Measured on one machine of two cores, so that a second is two of a core. docs/scale.md has a later run of the other
# scripts on a slower machine.
# out_of_core.py at 10,000,000 rows: a tree, less what reading and coding take.
TREE_SECONDS, TREE_ROWS = 2 * 0.54, 1e7
# The same: the three looks at 300,000,000 values in Parquet.
VALUE_SECONDS = 2 * 6.0 / 3e8
# `BootstrapSampler.of_trees` at 10^9 rows, 19 ms a tree: sampled rows by block, once to grow and once out of bag.
BLOCK_SECONDS, BLOCK_ROWS, BLOCK_BYTES = 19.3e-3 / 244_141, 4096, 4
# Bytes of trees at 10,000,000 rows.
TREE_BYTES = 823 * 2**20 / 50
# dask_speed.py, strategies: two workers have so much of the speed of two threads of one process.
EFFICIENCY = {"replicate": 5.30 / 5.35, "gather": 5.30 / 7.49}
DISTINCT = 0.632


class Estimate(NamedTuple):
    """What a fit would take."""

    strategy: str
    worker_bytes: float
    sent: float
    coding: float
    drawing: float
    growing: float
    network: float
    trees: float


def estimate(n_rows: float, n_workers: int, max_samples: float | None) -> Estimate:
    """Return what a forest of so many rows takes on so many workers."""
    threads, n_sampled = n_workers * THREADS, max_samples or n_rows
    tree_rows = min(n_rows, n_sampled) * (DISTINCT if max_samples is None else 1.0)
    n_blocks = N_TREES * -(-int(n_rows) // BLOCK_ROWS)
    size = FitSize(
        n_rows=int(n_rows),
        n_features=N_FEATURES,
        n_classes=N_CLASSES,
        n_trees=N_TREES,
        n_codes=N_BINS,
        tree_rows=int(tree_rows),
        leaf_rows=2,
        most_leaves=2**40,
        max_features=MAX_FEATURES,
        weight_bytes=0,
        sample_bytes=n_blocks * BLOCK_BYTES,
    )
    plan = plan_on_cluster(size, Workers(n_workers, threads, int(MEMORY)), "auto")
    fits = plan.worker_bytes <= MEMORY
    is_replicated = plan.strategy == "replicate"
    sent = size.matrix_bytes * n_workers if is_replicated else N_TREES * size.copy_bytes
    # A tree grows in one place.
    busy = min(threads, N_TREES)
    growth = N_TREES * TREE_SECONDS * tree_rows / (DISTINCT * TREE_ROWS) * log2(tree_rows) / log2(TREE_ROWS)
    return Estimate(
        strategy=plan.strategy if fits else "does not fit",
        worker_bytes=plan.worker_bytes,
        sent=sent,
        coding=n_rows * N_FEATURES * VALUE_SECONDS / threads,
        drawing=n_blocks * BLOCK_SECONDS * (1 + (1 / busy if is_replicated else 1)),
        growing=growth / busy / EFFICIENCY[plan.strategy],
        network=sent / n_workers / NETWORK,
        trees=N_TREES * TREE_BYTES * tree_rows / (DISTINCT * TREE_ROWS),
    )


def minutes(seconds: float) -> str:
    """Return a time to read."""
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def gigabytes(n_bytes: float) -> str:
    """Return a size to read."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes < 1e11 else f"{n_bytes / 1e9:,.0f} GB"


if __name__ == "__main__":
    columns = ("rows", "workers", "max_samples", "strategy", "memory a worker", "sent in all", "coding", "drawing")
    print("| " + " | ".join((*columns, "growing", "sending", "trees")) + " |")
    print("|" + " ---: |" * (len(columns) + 3))
    for n_rows, n_workers, max_samples in [
        (1e7, 1, None),
        (1e8, 1, None),
        (1e8, 1, 1e7),
        (1e8, 4, 1e7),
        (1e9, 16, None),
        (1e9, 16, 1e7),
        (1e10, 64, 1e7),
    ]:
        fit = estimate(n_rows, n_workers, max_samples)
        samples = "" if max_samples is None else f"10^{log2(max_samples) / log2(10):.0f}"
        cells = (f"10^{log2(n_rows) / log2(10):.0f}", n_workers, samples, fit.strategy, gigabytes(fit.worker_bytes))
        cells += (gigabytes(fit.sent), minutes(fit.coding), minutes(fit.drawing), minutes(fit.growing))
        cells += (minutes(fit.network),)
        print("| " + " | ".join(map(str, (*cells, gigabytes(fit.trees)))) + " |")
