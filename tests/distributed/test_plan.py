"""Plans of fits on clusters, and their advice if workers have too little memory."""

import re
from dataclasses import replace

import pytest

from aucforest.distributed._plan import Workers, plan_on_cluster
from aucforest.fitting.plan import FitSize
from aucforest.tree.samples import MOST_ROWS

GIB = 2**30
SIZE = FitSize(
    n_rows=10_000_000,
    n_features=50,
    n_classes=2,
    n_trees=100,
    n_codes=256,
    tree_rows=6_000_000,
    leaf_rows=2,
    most_leaves=2**40,
    max_features=7,
    weight_bytes=0,
)


def plan(memory=8 * GIB, n_workers=4, n_threads=4, strategy="auto", **sizes):
    return plan_on_cluster(replace(SIZE, **sizes), Workers(n_workers, n_threads, memory), strategy)


def test_rows_are_replicated_if_they_fit():
    assert plan().strategy == "replicate"
    assert plan(n_rows=100_000_000).strategy == "gather"
    assert plan(n_rows=MOST_ROWS, memory=1000 * GIB).strategy == "replicate"
    assert plan(n_rows=MOST_ROWS + 1, memory=1000 * GIB).strategy == "gather"
    assert plan(strategy="gather").strategy == "gather"


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
    small = plan(strategy="gather", tree_rows=1000)
    assert small.trees_per_task == 100
    assert plan(strategy="gather", tree_rows=20_000).trees_per_task == 2**26 // (20_000 * 62)
    assert plan(strategy="gather").trees_per_task == 1


def test_the_number_of_parts():
    sizes = (10_000, 1_000_000, 10_000_000, 100_000_000)
    assert [plan(n_rows=n_rows, strategy="gather").n_parts for n_rows in sizes] == [3, 4, 8, 16]
    assert [plan(n_rows=n_rows, strategy="replicate").n_parts for n_rows in sizes] == [1, 1, 1, 1]


def test_sizes_of_samples_are_divided_among_workers():
    many = plan(strategy="gather", sample_bytes=4_000_000)
    assert many.worker_bytes - plan(strategy="gather").worker_bytes == 1_000_000


def test_advice_for_each_strategy():
    large = {"n_rows": 1_000_000_000, "memory": 32 * GIB}
    replicated, gathered = (plan(strategy=strategy, **large) for strategy in ("replicate", "gather"))
    sentence = (
        r"^strategy='replicate' needs about .* on each of n_workers=4 .* has 32\.00 GiB: set strategy=\"gather\","
    )
    assert replicated.worker_bytes > 32 * GIB
    assert re.search(sentence, replicated.advice)
    assert gathered.worker_bytes < 32 * GIB
    assert "set max_samples, or use more memory, or fewer threads" in gathered.advice


@pytest.mark.parametrize(
    ("sizes", "least"),
    [({"n_rows": 10**9, "memory": 32 * GIB, "tree_rows": 632_000_000}, 10**7), ({"memory": 2**28}, 10**3)],
)
def test_the_advised_samples_fit(sizes, least):
    """With small samples, tasks gather the rows of several trees."""
    too_large = plan(**sizes)
    assert too_large.worker_bytes > sizes["memory"]
    max_samples = int(re.search(r"set max_samples=(\d+), or use more memory", too_large.advice)[1])
    assert max_samples > least
    assert plan(**sizes | {"tree_rows": max_samples}).worker_bytes <= sizes["memory"]
    assert plan(**sizes | {"tree_rows": max_samples + 1}).worker_bytes > sizes["memory"]


def test_the_plan_is_a_table():
    text = str(plan(n_rows=100_000_000, tree_rows=60_000_000))
    assert "rows x features  100000000 x 50, 2 classes" in text
    assert "strategy         gather: the binned data, 4.66 GiB, do not fit into 40% of 8.00 GiB" in text
    assert "messages         3.46 GiB for each tree" in text
