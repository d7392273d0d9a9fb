"""Plans keep to the memory there is, and say which would do."""

import re
from dataclasses import replace

import numpy as np
import pytest

from aucforest.distributed import DaskAUCForestClassifier
from aucforest.fitting import plan as module
from aucforest.fitting.plan import (
    FitSize,
    Workers,
    advice_on_cluster,
    bytes_in_memory,
    format_bytes,
    parse_bytes,
    plan_on_cluster,
    plan_on_disk,
)
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.tree.samples import MOST_ROWS
from tests.fitting.tables import make_forest

GIB = 2**30
N_ROWS = 10_000_000
LABELS = (np.arange(N_ROWS) % 2).astype(np.uint16)
TARGET = Target(np.array([0, 1]), LABELS, None)


def plan(limit, n_features=100, target=TARGET, **params):
    forest = make_forest(**{"n_jobs": 4, **params})
    spec = FitSpec.resolve(forest.get_params(), target, None, n_features, 0, n_sums=forest._n_sums(2))
    return plan_on_disk(spec, target, n_features, limit)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("2GiB", 2**31), ("500MB", 5 * 10**8), (" 1.5 gb ", 1_500_000_000), ("100", 100), (7, 7), (np.int64(8), 8),
     ("3kB", 3000), ("2 TiB", 2**41), ("16k", 16000)],
)  # fmt: skip
def test_bytes(text, n_bytes):
    assert parse_bytes(text, "memory_limit") == n_bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1GB", "0", 0, -5, True, None, 1.5, "2XB", "1 2", "2iB"])
def test_what_is_no_number_of_bytes(text):
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes"):
        parse_bytes(text, "memory_limit")


def test_less_memory_is_fewer_threads_and_then_levels():
    limits = np.geomspace(2**33, 750e6, 40).astype(int).tolist()
    plans = [plan(limit) for limit in limits]
    assert plans[0].workers.n_threads == 4
    assert plans[0].strategy == "replicate"
    threads = [found.workers.n_threads for found in plans if found.strategy == "replicate"]
    assert threads == sorted(threads, reverse=True)
    assert set(threads) >= {2, 3, 4}
    is_level = [found.strategy == "level" for found in plans]
    assert is_level == sorted(is_level)
    for found, limit in zip(plans, limits):
        assert found.worker_bytes <= limit


def test_many_threads_do_not_read_more_than_the_limit_allows():
    labels = Target(np.array([0, 1]), LABELS[:150], None)
    forest = make_forest(n_jobs=64)
    spec = FitSpec.resolve(forest.get_params(), labels, None, 2, 0)
    wide, narrow = plan_on_disk(spec, labels, 2, 2**31), plan_on_disk(spec, labels, 2, 300_000_000)
    assert (wide.n_readers, narrow.n_readers) == (8, 2)
    assert wide.workers.n_threads == 64


def test_levels_shrink_with_the_limit():
    large, small = plan(1_500_000_000), plan(1_000_000_000)
    assert large.strategy == small.strategy == "level"
    for name in ("part_rows", "local_rows", "max_hist_bytes"):
        assert getattr(large, name) > getattr(small, name)


@pytest.mark.parametrize("params", [{}, {"max_bins": None}, {"max_leaf_nodes": 8}, {"threshold": "gmean"}])
def test_the_limit_that_is_asked_for_is_enough(params):
    with pytest.raises(ValueError, match="memory_limit=1,000 bytes is too small for 10,000,000 rows of 100") as error:
        plan(1000, **params)
    needed = int(re.search(r"([\d,]+) bytes are needed", str(error.value))[1].replace(",", ""))
    assert plan(needed, **params).worker_bytes <= needed
    with pytest.raises(ValueError, match="too small"):
        plan(needed - 2**21, **params)


def test_what_takes_more():
    """Weights, sums out of bag, all rows instead of samples; shallow trees take less."""
    base = plan(2**40).worker_bytes
    assert plan(2**40, target=Target(np.array([0, 1]), LABELS, np.ones(N_ROWS))).worker_bytes > base
    narrow = {"n_features": 2, "n_jobs": 1}
    assert plan(2**40, **narrow, threshold="gmean").worker_bytes > plan(2**40, **narrow).worker_bytes
    assert plan(2**40, max_bins=None).worker_bytes > base
    assert plan(2**40, max_depth=3).worker_bytes < base
    assert plan(2**40, max_samples=0.1).worker_bytes < base


def test_a_tuned_threshold_takes_some_100_bytes_a_row():
    options = {"n_features": 2, "n_jobs": 1, "max_depth": 3}
    tuned = plan(2**40, **options, threshold={"alerts": 0.01}).worker_bytes
    assert 0 < tuned - plan(2**40, **options).worker_bytes < 150 * N_ROWS


def test_copies_of_branches_take_memory_where_there_are_any():
    """Each of four threads copies an eighth of the rows, and an eighth of these."""
    with_copies, without = plan(2**40, max_features=9).worker_bytes, plan(2**40, max_features=8).worker_bytes
    assert with_copies - without > 4 * 100 * (N_ROWS // 8 + N_ROWS // 64)


def test_rows_that_are_too_many_for_one_place_go_by_levels(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", N_ROWS)
    assert plan(2**40).strategy == "replicate"
    monkeypatch.setattr(module, "MOST_ROWS", N_ROWS - 1)
    assert plan(2**40).local_rows == N_ROWS - 1


def cluster_plan(n_rows=10_000_000, n_features=50, memory=8 * GIB, n_workers=4, n_threads=4, tree_rows=None, **options):
    params = DaskAUCForestClassifier(100, **options).get_params()
    tree_rows = n_rows if tree_rows is None else tree_rows
    n_codes = 256 if params["max_bins"] else n_rows
    size = FitSize(n_rows, n_features, 2, 100, n_codes, tree_rows, tree_rows, 7, False)
    given = {name: params[name] for name in ("strategy", "local_rows", "max_hist_bytes")}
    spec = FitSpec.resolve(params, Target(np.array([0, 1]), LABELS[:2], None), None, n_features, 0)
    return plan_on_cluster(spec, size, Workers(n_workers, n_threads, memory), **given)


def test_the_first_strategy_that_fits_is_taken():
    assert cluster_plan().strategy == "replicate"
    assert cluster_plan(n_rows=100_000_000, tree_rows=10_000_000).strategy == "gather"
    assert cluster_plan(n_rows=100_000_000).strategy == "level"
    # Threads of a worker share its memory.
    assert cluster_plan(n_rows=100_000_000, tree_rows=10_000_000, n_threads=16).strategy == "level"
    assert cluster_plan(strategy="level").strategy == "level"
    assert cluster_plan(n_rows=100_000_000, tree_rows=10_000_000, local_rows=100_000).strategy == "level"


def test_level_by_level_is_not_chosen_where_trees_need_all_rows():
    plan = cluster_plan(n_rows=100_000_000, max_leaf_nodes=9)
    assert (plan.strategy, plan.reason) == ("gather", "max_leaf_nodes needs all samples of a tree on one worker")
    assert cluster_plan(n_rows=100_000_000, splitter="random", strategy="level").strategy == "level"


def test_trees_that_are_gathered_are_grown_in_one_task():
    assert cluster_plan(strategy="gather", local_rows=10).local_rows == 10_000_000
    assert cluster_plan(strategy="level", local_rows=10).local_rows == 10
    assert cluster_plan(strategy="level").local_rows < 100_000_000


def test_codes_of_distinct_values_take_more_bytes():
    assert cluster_plan(max_bins=None).size.matrix_bytes == 4 * cluster_plan().size.matrix_bytes == 2_000_000_000


def test_codes_for_all_values_are_chosen_by_one_worker_that_has_them():
    choosing = cluster_plan(max_bins=None)
    assert choosing.worker_bytes == 24 * 10_000_000 * 50
    assert "set max_bins, without which" in advice_on_cluster(choosing)
    busy = cluster_plan(memory=64 * GIB, max_bins=None, n_workers=1, n_threads=64)
    growing = busy.size.tree_bytes + busy.size.histogram_bytes
    assert busy.worker_bytes == 10_000_000 * 2 * (4 * 50 + 12) + 64 * growing
    assert "max_bins" not in advice_on_cluster(cluster_plan())
    assert "max_bins" not in advice_on_cluster(busy)


def test_the_rows_of_a_part_are_arranged_in_every_thread():
    for n_threads in (1, 4):
        plan = cluster_plan(strategy="gather", tree_rows=10, n_workers=1, n_threads=n_threads)
        a_thread = 10 * (4 * 62 + 26 + 49) + 26 * -(-10_000_000 // plan.n_parts)
        assert plan.worker_bytes == 10_000_000 * 62 + n_threads * a_thread


def test_weights_of_rows_are_counted():
    """More where those of a tree depend on its sample: they are multiplied before they are rounded."""
    sizes = {}
    for class_weight in (None, "balanced", "balanced_subsample"):
        spec = FitSpec.resolve(make_forest(class_weight=class_weight).get_params(), TARGET, None, 3, 0)
        sizes[class_weight] = FitSize.of(spec, N_ROWS, 3, 2).row_bytes
    assert sizes == {None: 26, "balanced": 34, "balanced_subsample": 38}


def test_histograms_fit_beside_each_other():
    """Those of all parts, in two rounds and summed; and what each thread counts in, words of twice the size."""
    of_level = [plan(limit) for limit in (600_000_000, 650_000_000, 700_000_000)]
    for found in of_level:
        assert found.strategy == "level"
        n_sent = 3 * found.n_parts + 2 * found.workers.n_threads
        assert (
            0
            <= (found.worker_bytes - 2 * N_ROWS - found.size.sample_bytes) // 4 - n_sent * found.max_hist_bytes
            <= n_sent
        )


def test_what_trees_draw_from_every_block_is_counted():
    """Of every tree, those of a warm start as well, and of both classes, for 4 bytes a block of 4096 rows."""
    target, params = Target(np.array([0, 1]), LABELS[:1_000_000], None), make_forest(sampling="stratified").get_params()
    spec = FitSpec.resolve(params | {"n_estimators": 50}, target, None, 3, 0, n_trees_before=20)
    size = FitSize.of(spec, 1_000_000, 3, 2)
    assert size.sample_bytes == 4 * 245 * 2 * 50
    assert FitSize.of(replace(spec, sampler=None), 1_000_000, 3, 2).sample_bytes == 0
    none = replace(size, sample_bytes=0)
    assert bytes_in_memory(size, 4) - bytes_in_memory(none, 4) == size.sample_bytes
    options = {"strategy": "level", "local_rows": None, "max_hist_bytes": "256MB"}
    ours, others = (plan_on_cluster(spec, some, Workers(7, 7, 8 * GIB), **options) for some in (size, none))
    assert ours.worker_bytes - others.worker_bytes == 4 * 245 * 2 * 50 / 7
    many, few = (plan(2**40, n_estimators=n_trees).worker_bytes for n_trees in (1000, 100))
    assert many - few == 900 * 4 * 2442


def test_parts_are_few_and_of_blocks():
    sizes = (10_000, 1_000_000, 10_000_000, 100_000_000)
    assert [cluster_plan(n_rows=n_rows, strategy="gather").n_parts for n_rows in sizes] == [3, 4, 8, 16]
    assert [cluster_plan(n_rows=n_rows, strategy="replicate").n_parts for n_rows in sizes] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("strategy", "advice"), [("replicate", "max_samples"), ("gather", "n_workers"), ("level", "max_hist_bytes,")]
)
def test_what_a_worker_needs_is_told(strategy, advice):
    plan = cluster_plan(n_rows=1_000_000_000, memory=GIB, strategy=strategy, max_hist_bytes="1GB")
    assert plan.worker_bytes > GIB > 0.1 * cluster_plan(n_rows=10_000_000).worker_bytes
    sentence = rf"needs about .* on each of n_workers=4 .* has 1\.00 GiB: .*{advice}"
    assert re.search(sentence, advice_on_cluster(plan))


def test_rows_of_branches_are_handed_over_ahead_and_joined():
    """A worker has them four times, beside what growing takes; together with the parts they fit."""
    for n_features in (10, 1000):
        plan = cluster_plan(n_rows=10**8, n_features=n_features, strategy="level", n_workers=100, n_threads=100)
        branches = 4 * plan.local_rows * n_features
        assert branches < 0.4 * 8 * GIB
        assert plan.worker_bytes > branches + 10**6 * n_features


def test_messages_are_counted_for_levels_alone():
    assert cluster_plan().level_bytes == 0
    # 200 nodes, 7 features, 256 bins, 2 classes, 4 bytes
    assert cluster_plan(strategy="level", local_rows=100_000).level_bytes == 200 * 7 * 256 * 3 * 4
    assert cluster_plan(strategy="level", local_rows=100, max_hist_bytes="1MB").level_bytes == 1_000_000


def test_distinct_rows_of_trees():
    def distinct(**params):
        target = Target(np.array([0, 1]), LABELS[:1_000_000], None)
        spec = FitSpec.resolve(make_forest(**params).get_params(), target, None, 3, 0)
        return FitSize.of(spec, 1_000_000, 3, 2).tree_rows

    assert distinct(bootstrap=False) == 1_000_000
    assert distinct(sampling="subsample") == 632_000
    assert distinct() == pytest.approx(0.632e6, rel=0.02)
    assert distinct(max_samples=200) == pytest.approx(200, abs=3)


def test_numbers_of_bytes_are_readable():
    assert [format_bytes(n) for n in (0, 1024, 36_000, 500e6, 8 * GIB, 2**45)] == [
        "0.00 KiB", "1.00 KiB", "35.16 KiB", "476.84 MiB", "8.00 GiB", "32.00 TiB",
    ]  # fmt: skip


def test_the_plan_is_a_table():
    text = str(cluster_plan(n_rows=100_000_000, tree_rows=60_000_000))
    assert "rows x features  100000000 x 50, 2 classes" in text
    assert "strategy         level: the 60000000 samples of a tree do not fit into 40% of 8.00 GiB" in text


def test_rows_that_are_too_many_for_one_place_are_not_replicated():
    assert cluster_plan(n_rows=MOST_ROWS, memory=1000 * GIB).strategy == "replicate"
    plan = cluster_plan(n_rows=MOST_ROWS + 1, memory=1000 * GIB)
    assert plan.strategy == "level"
    assert plan.local_rows == MOST_ROWS


@pytest.mark.parametrize("given", ["256XB", "-5MB", "0MB"])
def test_bytes_that_are_none_are_refused(given):
    with pytest.raises(ValueError, match="max_hist_bytes must be a number of bytes"):
        cluster_plan(max_hist_bytes=given)
