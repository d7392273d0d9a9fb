"""Plans of fits on clusters, and their advice if workers have too little memory."""

import re
from dataclasses import replace

import pytest

from aucforest.distributed._plan import Workers, plan_on_cluster
from aucforest.fitting.plan import FitSize
from aucforest.tree.samples import MOST_ROWS

GIB = 2**30
SIZE = FitSize(
    **{"n_rows": 10_000_000, "n_features": 50, "n_classes": 2, "n_trees": 100, "n_codes": 256, "tree_rows": 6_000_000},
    **{"leaf_rows": 2, "most_leaves": 2**40, "max_features": 7, "weight_bytes": 0},
)


def plan(memory=8 * GIB, n_workers=4, n_threads=4, strategy="auto", **sizes):
    return plan_on_cluster(replace(SIZE, **sizes), Workers(n_workers, n_threads, memory), strategy)


def test_rows_are_replicated_if_they_fit():
    assert plan().strategy == plan(n_rows=MOST_ROWS, memory=1000 * GIB).strategy == "replicate"
    for changed in ({"n_rows": 100_000_000}, {"n_rows": MOST_ROWS + 1, "memory": 1000 * GIB}, {"strategy": "gather"}):
        assert plan(**changed).strategy == "gather"


def test_one_worker_needs_all_values_without_max_bins():
    choosing = plan(n_codes=10_000_000)
    assert choosing.size.matrix_bytes == 4 * SIZE.matrix_bytes
    assert choosing.worker_bytes == 24 * 10_000_000 * 50
    assert "set max_bins, without which" in choosing.advice
    busy = plan(memory=64 * GIB, n_codes=10_000_000, n_workers=1, n_threads=64)
    assert busy.worker_bytes == 10_000_000 * 2 * (4 * 50 + 12) + 64 * busy.size.thread_bytes(10_000_000)
    assert "max_bins" not in busy.advice


def test_gathered_rows_are_counted_for_each_thread():
    one, four = (plan(strategy="gather", n_workers=1, n_threads=n_threads) for n_threads in (1, 4))
    rows = 4 * 6_000_000 * 62
    assert rows < one.worker_bytes - 10_000_000 * 62 < 1.5 * rows
    assert 3 * rows < four.worker_bytes - one.worker_bytes < 4.5 * rows


def test_small_trees_share_tasks_of_limited_size():
    for tree_rows, n_trees in ((1000, 100), (20_000, 2**26 // (20_000 * 62)), (6_000_000, 1)):
        assert plan(strategy="gather", tree_rows=tree_rows).trees_per_task == n_trees


def test_the_number_of_parts():
    for n_rows, n_parts in ((10_000, 3), (1_000_000, 4), (10_000_000, 8), (100_000_000, 16)):
        parts = [plan(n_rows=n_rows, strategy=strategy).n_parts for strategy in ("gather", "replicate")]
        assert parts == [n_parts, 1]


def test_sizes_of_samples_are_divided_among_workers():
    with_sizes, without = (plan(strategy="gather", sample_bytes=n_bytes) for n_bytes in (4_000_000, 0))
    assert with_sizes.worker_bytes - without.worker_bytes == 1_000_000


def test_advice_for_each_strategy():
    large = {"n_rows": 1_000_000_000, "memory": 32 * GIB}
    replicated, gathered = (plan(strategy=strategy, **large) for strategy in ("replicate", "gather"))
    assert gathered.worker_bytes < 32 * GIB < replicated.worker_bytes
    assert "set max_samples, or use more memory, or fewer threads" in gathered.advice
    sentence = r"^strategy='replicate' needs about .* on each of n_workers=4 .* has 32\.00 GiB: set strategy=\"gather\""
    assert re.search(sentence, replicated.advice)


@pytest.mark.parametrize(("sizes", "least"), [
    ({"n_rows": 10**9, "memory": 32 * GIB, "tree_rows": 632_000_000}, 10**7), ({"memory": 2**28}, 10**3),
])  # fmt: skip
def test_the_advised_samples_fit(sizes, least):
    too_large = plan(**sizes)
    max_samples = int(re.search(r"set max_samples=(\d+), or use more memory", too_large.advice)[1])
    assert max_samples > least
    fits, more = (plan(**sizes | {"tree_rows": n_rows}).worker_bytes for n_rows in (max_samples, max_samples + 1))
    assert fits <= sizes["memory"] < min(more, too_large.worker_bytes)


def test_the_plan_is_a_table():
    text = str(plan(n_rows=100_000_000, tree_rows=60_000_000))
    assert "rows x features  100000000 x 50, 2 classes" in text
    assert "strategy         gather: the binned data, 4.66 GiB, do not fit into 40% of 8.00 GiB" in text
    assert "messages         3.46 GiB for each tree" in text
