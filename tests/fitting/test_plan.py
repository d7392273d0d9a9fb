"""Plans keep to a limit, and say which limit would do."""

import re

import numpy as np
import pytest

from aucforest.estimators._coded_fit import Target
from aucforest.fitting import plan as _memory
from aucforest.fitting.growth_params import GrowthParams
from aucforest.fitting.plan import parse_bytes, plan_fit
from aucforest.fitting.sampling import resolve_draws
from tests.fitting.tables import make_forest

N_ROWS = 10_000_000
PARTS = [(np.array([0, 1]), (np.arange(N_ROWS) % 2).astype(np.uint16))]
TARGET = Target(PARTS, None)


def plan(limit, n_features=100, target=TARGET, **params):
    forest = make_forest(n_jobs=4, **params)
    draws = resolve_draws(forest, target.kept_labels, target.classes)
    resolved = GrowthParams.resolve(forest, len(target.kept_labels), n_features, draws)
    return plan_fit(forest, target, resolved, n_features, limit)


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("2GiB", 2**31), ("500MB", 5 * 10**8), (" 1.5 gb ", 1_500_000_000), ("100", 100), (7, 7), (np.int64(8), 8),
     ("3kB", 3000), ("2 TiB", 2**41), ("16k", 16000)],
)  # fmt: skip
def test_bytes(text, n_bytes):
    assert parse_bytes(text, "memory_limit") == n_bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1GB", "0", 0, -5, True, None, 1.5, "2XB", "1 2", "2iB"])
def test_what_is_no_number_of_bytes(text):
    with pytest.raises(ValueError, match="memory_limit must be bytes"):
        parse_bytes(text, "memory_limit")


def test_less_memory_is_fewer_threads_and_then_levels():
    limits = np.geomspace(2**33, 750e6, 40).astype(int).tolist()
    plans = [plan(limit) for limit in limits]
    assert plans[0].n_threads == 4
    assert plans[0].levels is None
    threads = [found.n_threads for found in plans if found.levels is None]
    assert threads == sorted(threads, reverse=True)
    assert set(threads) >= {2, 3, 4}
    is_level = [found.levels is not None for found in plans]
    assert is_level == sorted(is_level)
    for found, limit in zip(plans, limits):
        assert found.n_bytes <= limit


def test_levels_shrink_with_the_limit():
    large, small = plan(1_500_000_000), plan(1_000_000_000)
    assert large.levels is not None
    assert small.levels is not None
    assert all(one > other for one, other in zip(large.levels, small.levels))


@pytest.mark.parametrize("params", [{}, {"max_bins": None}, {"max_leaf_nodes": 8}, {"threshold": "gmean"}])
def test_the_limit_that_is_asked_for_is_enough(params):
    with pytest.raises(ValueError, match="memory_limit=1,000 bytes is too small for 10,000,000 rows of 100") as error:
        plan(1000, **params)
    needed = int(re.search(r"([\d,]+) bytes are needed", str(error.value))[1].replace(",", ""))
    assert plan(needed, **params).n_bytes <= needed
    with pytest.raises(ValueError, match="too small"):
        plan(needed - 2**21, **params)


def test_what_takes_more():
    """Weights, sums out of bag, all rows instead of samples; shallow trees take less."""
    base = plan(2**40).n_bytes
    assert plan(2**40, target=Target(PARTS, np.ones(N_ROWS))).n_bytes > base
    assert plan(2**40, oob_score=True, threshold="gmean").n_bytes > base
    assert plan(2**40, max_bins=None).n_bytes > base
    assert plan(2**40, max_depth=3).n_bytes < base
    assert plan(2**40, max_samples=0.1).n_bytes < base


def test_copies_of_branches_take_memory_where_there_are_any():
    """Each of four threads copies an eighth of the rows, and an eighth of these."""
    with_copies, without = plan(2**40, max_features=9).n_bytes, plan(2**40, max_features=8).n_bytes
    assert with_copies - without > 4 * 100 * (N_ROWS // 8 + N_ROWS // 64)


def test_rows_that_are_too_many_for_one_place_go_by_levels(monkeypatch):
    monkeypatch.setattr(_memory, "MOST_ROWS", N_ROWS)
    assert plan(2**40).levels is None
    monkeypatch.setattr(_memory, "MOST_ROWS", N_ROWS - 1)
    assert plan(2**40).levels.local_rows == N_ROWS - 1


def test_plans_are_said():
    assert re.fullmatch(r"up to [\d,]+ MiB beside the trees, 4 threads", str(plan(2**40)))
    assert "level by level down to" in str(plan(1_000_000_000))
