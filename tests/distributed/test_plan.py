"""Where rows and trees go, by what fits into memory."""

import numpy as np
import pytest

from aucforest.distributed import ClusterError, DaskAUCForestClassifier
from aucforest.distributed._plan import Cluster, choose_plan, count_tree_rows
from aucforest.tree.samples import MOST_ROWS

GIB = 2**30


def plan_of(n_rows=10_000_000, n_features=50, memory=8 * GIB, n_workers=4, n_threads=4, tree_rows=None, **options):
    return choose_plan(
        DaskAUCForestClassifier(100, **options),
        shape=(n_rows, n_features),
        n_classes=2,
        tree_rows=n_rows if tree_rows is None else tree_rows,
        max_features=7,
        cluster=Cluster(n_workers, n_threads, memory),
    )


def test_the_first_strategy_that_fits_is_taken():
    assert plan_of().strategy == "replicate"
    assert plan_of(n_rows=100_000_000, tree_rows=10_000_000).strategy == "gather"
    assert plan_of(n_rows=100_000_000).strategy == "level"
    # Threads of a worker share its memory.
    assert plan_of(n_rows=100_000_000, tree_rows=10_000_000, n_threads=16).strategy == "level"
    assert plan_of(strategy="level").strategy == "level"
    assert plan_of(n_rows=100_000_000, tree_rows=10_000_000, local_rows=100_000).strategy == "level"


def test_trees_that_are_gathered_are_grown_in_one_task():
    assert plan_of(strategy="gather", local_rows=10).local_rows == 10_000_000
    assert plan_of(strategy="level", local_rows=10).local_rows == 10
    assert plan_of(strategy="level").local_rows < 100_000_000


def test_codes_of_distinct_values_take_more_bytes():
    assert plan_of(max_bins=None).matrix_bytes == 4 * plan_of().matrix_bytes == 2_000_000_000


def test_codes_for_all_values_are_chosen_by_one_worker_that_has_them():
    assert plan_of(max_bins=None).worker_bytes == 24 * 10_000_000 * 50
    busy = plan_of(memory=64 * GIB, max_bins=None, n_workers=1, n_threads=64)
    assert busy.worker_bytes == 10_000_000 * (2 * (4 * 50 + 12) + 64 * 40)
    with pytest.raises(ClusterError, match="set max_bins, without which"):
        plan_of(max_bins=None).check()
    assert "max_bins" not in plan_of().advice
    assert "max_bins" not in busy.advice


def test_the_rows_of_a_part_are_arranged_in_every_thread():
    for n_threads in (1, 4):
        plan = plan_of(strategy="gather", tree_rows=10, n_workers=1, n_threads=n_threads)
        a_thread = 10 * (3 * 62 + 40) + 36 * -(-10_000_000 // plan.n_parts)
        assert plan.worker_bytes == 10_000_000 * 62 + n_threads * a_thread


def test_parts_are_few_and_of_blocks():
    assert [plan_of(n_rows=n_rows).n_parts for n_rows in (10_000, 1_000_000, 10_000_000, 100_000_000)] == [3, 4, 8, 16]


def test_what_a_worker_needs_is_told_before_it_begins():
    plan_of().check()
    for strategy, advice in [
        ("replicate", "max_samples"),
        ("gather", "n_workers"),
        ("level", "max_hist_bytes,"),
    ]:
        plan = plan_of(n_rows=1_000_000_000, memory=GIB, strategy=strategy, max_hist_bytes="1GB")
        with pytest.raises(ClusterError, match=rf"needs about .* on each of n_workers=4 .* has 1\.00 GiB: .*{advice}"):
            plan.check()


def test_rows_of_branches_are_handed_over_ahead_and_joined():
    """A worker has them three times, beside what growing takes; together with the parts they fit."""
    for n_features in (10, 1000):
        plan = plan_of(n_rows=10**8, n_features=n_features, strategy="level", n_workers=100, n_threads=100)
        branches = 3 * plan.local_rows * n_features
        assert branches < 0.4 * 8 * GIB
        assert plan.worker_bytes > branches + 10**6 * n_features


def test_messages_are_counted_for_levels_alone():
    assert plan_of().level_bytes == 0
    # 200 nodes, 7 features, 256 bins, 2 classes, 4 bytes
    assert plan_of(strategy="level", local_rows=100_000).level_bytes == 200 * 7 * 256 * 3 * 4
    assert plan_of(strategy="level", local_rows=100, max_hist_bytes="1MB").level_bytes == 1_000_000


def test_distinct_rows_of_trees():
    assert count_tree_rows(1000, None, replace=False) == 1000
    assert count_tree_rows(1000, np.array([632]), replace=False) == 632
    assert count_tree_rows(10**6, np.array([10**6]), replace=True) == pytest.approx(0.632e6, rel=1e-3)
    assert count_tree_rows(10**6, np.array([100, 100]), replace=True) == 200


def test_the_plan_is_a_table():
    text = str(plan_of(n_rows=100_000_000, tree_rows=60_000_000))
    assert "rows x features  100000000 x 50, 2 classes" in text
    assert "strategy         level: the rows of a tree, 60000000, are more than fit into 40% of 8.00 GiB" in text


def test_rows_that_are_too_many_for_one_place_are_not_replicated():
    assert plan_of(n_rows=MOST_ROWS, memory=1000 * GIB).strategy == "replicate"
    plan = plan_of(n_rows=MOST_ROWS + 1, memory=1000 * GIB)
    assert plan.strategy == "level"
    assert plan.local_rows == MOST_ROWS


@pytest.mark.parametrize("given", ["256XB", "-5MB", "0MB"])
def test_bytes_that_are_none_are_refused(given):
    with pytest.raises(ValueError, match="max_hist_bytes must be bytes"):
        plan_of(max_hist_bytes=given)
