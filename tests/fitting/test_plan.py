"""Plans stay below the memory limit or name a sufficient one; fits that are too large are refused at the start."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aucforest import AUCTreeClassifier, _memory
from aucforest.fitting import in_memory
from aucforest.fitting import plan as _plan
from aucforest.fitting.plan import FitSize, bytes_in_memory, plan_on_disk
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from tests.estimators.data import make_table, small_forest
from tests.fitting.tables import make_forest, make_many

N_ROWS = 10_000_000
LABELS = (np.arange(N_ROWS) % 2).astype(np.uint16)
TARGET = Target(np.array([0, 1]), LABELS, None)

# Prints the measured peak and the estimate of a fit in memory, given its sizes, or of a fit out of core, given a file.
MEASURE = """
import sys, threading
from pathlib import Path
import numpy as np
import pyarrow as pa
from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core
from aucforest.fitting import in_memory, on_disk

def anonymous():
    # without pages of the mapped file of codes, which the system may remove at any time
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])

rng, planned = np.random.default_rng(0), []
small, options = pa.table({name: rng.normal(size=9000) for name in "abc"} | {"y": np.arange(9000) % 3}), sys.argv[1:]
if len(options) == 1:
    forest = AUCForestClassifier(4, n_jobs=2, random_state=0)
    fit_out_of_core(forest, small, "y")
    plan_on_disk = on_disk.plan_on_disk
    on_disk.plan_on_disk = lambda *a, **options: planned.append(plan_on_disk(*a, **options)) or planned[-1]
    fit = lambda: fit_out_of_core(forest, options[0], "y", memory_limit="2GiB")
else:
    n_rows, n_classes, n_categories = map(int, options)
    X, y = rng.normal(size=(n_rows, 10)), rng.permutation(np.arange(n_rows) % n_classes)
    params = {"categorical_features": [0], "categorical_encoding": "rates"} if n_categories else {}
    if n_categories:
        X[:, 0] = np.arange(n_rows) % n_categories
    forest = AUCForestClassifier(2, random_state=0, shrinkage=0.0, max_depth=6, **params)
    forest.fit(X[:500], np.arange(500) % 3)
    in_memory.check_fit = lambda size, n_bytes: planned.append(n_bytes)
    fit = lambda: forest.set_params(max_depth=None).fit(X, y)
before, peak, is_done = anonymous(), [0], threading.Event()

def watch():
    while not is_done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

watching = threading.Thread(target=watch)
watching.start()
fit()
is_done.set()
watching.join()
if len(options) == 1:
    assert not planned[0].copies_rows
    print(peak[0] - before - sum(tree.nbytes for tree in forest.trees_), planned[0].n_bytes)
else:
    print(peak[0] - before, planned[-1])
"""


def measure(*options):
    """Return the measured peak of a fit and its estimate."""
    call = [sys.executable, "-c", MEASURE, *map(str, options)]
    return map(int, subprocess.run(call, capture_output=True, text=True, check=True).stdout.split())


def resolve(target=TARGET, n_features=3, **params):
    forest = make_forest(**{"n_jobs": 4, **params})
    spec = FitSpec.resolve(forest.get_params(), target, None, n_features, 0)
    return replace(spec, n_sums=0 if forest.threshold is None else 4)


def plan(limit, n_features=100, target=TARGET, **params):
    return plan_on_disk(resolve(target, n_features, **params), target, n_features, limit)


def test_less_memory_is_fewer_threads_and_then_copies_of_rows():
    limits = np.geomspace(2**33, 1_550_000_000, 30).astype(int).tolist()
    plans = [plan(limit) for limit in limits]
    assert (plans[0].n_threads, plans[0].copies_rows) == (4, False)
    copies = [chosen.copies_rows for chosen in plans]
    assert copies == sorted(copies)
    assert copies[-1]
    threads = [chosen.n_threads for chosen in plans if not chosen.copies_rows]
    assert threads == sorted(threads, reverse=True)
    assert set(threads) >= {1, 2, 3, 4}
    assert all(chosen.n_bytes <= limit for chosen, limit in zip(plans, limits))


def test_many_threads_do_not_read_more_than_the_limit_allows():
    target = Target(np.array([0, 1]), LABELS[:150], None)
    wide, narrow = (plan(limit, 2, target, n_jobs=64) for limit in (2**31, 300_000_000))
    assert (wide.n_readers, narrow.n_readers) == (8, 2)
    assert wide.n_threads == 64


@pytest.mark.parametrize("params", [{}, {"max_bins": None}, {"max_leaf_nodes": 8}, {"threshold": "gmean"}])
def test_the_limit_that_is_asked_for_is_enough(params):
    with pytest.raises(ValueError, match="memory_limit=1,000 bytes is too small for 10,000,000 rows of 100") as error:
        plan(1000, **params)
    needed = int(re.search(r"([\d,]+) bytes are needed$", str(error.value))[1].replace(",", ""))
    assert plan(needed, **params).n_bytes <= needed
    with pytest.raises(ValueError, match="too small"):
        plan(needed - 1, **params)


def test_memory_in_use_counts():
    spec = resolve(TARGET, 100)
    free, used = (plan_on_disk(spec, TARGET, 100, 2**33, used=used) for used in (0, 10**9))
    assert used.n_bytes == free.n_bytes + 10**9
    with pytest.raises(ValueError, match=r"[\d,]+ bytes are needed, of which 1,000,000,000 are in use(, or|$)"):
        plan_on_disk(spec, TARGET, 100, free.n_bytes // 4, used=10**9)


def test_memory_of_a_process_is_its_arrays():
    before, array = _memory.process_memory(), np.ones(2**24)
    assert array.nbytes <= _memory.process_memory() - before < 2 * array.nbytes


@pytest.mark.parametrize("grouped", [False, True])
def test_the_samples_that_are_asked_for_fit(grouped):
    target = Target(np.array([0, 1]), LABELS, None, np.arange(N_ROWS) // 4) if grouped else TARGET
    with pytest.raises(ValueError, match=r"bytes are needed, or max_samples=\d+$") as error:
        plan(800_000_000, target=target)
    max_samples = int(str(error.value).rpartition("=")[2])
    assert max_samples > 100_000
    assert plan(800_000_000, target=target, max_samples=max_samples).copies_rows


def test_memory_depends_on_parameters():
    """Weights, out-of-bag sums and more bins take more memory; shallow trees and small samples take less."""
    base = plan(2**40).n_bytes
    assert plan(2**40, target=Target(np.array([0, 1]), LABELS, np.ones(N_ROWS))).n_bytes > base
    narrow = {"n_features": 2, "n_jobs": 1}
    assert plan(2**40, **narrow, threshold="gmean").n_bytes > plan(2**40, **narrow).n_bytes
    assert plan(2**40, max_bins=None).n_bytes > base
    assert plan(2**40, max_depth=3).n_bytes < base
    assert plan(2**40, max_samples=0.1).n_bytes < base


def test_copies_of_branches_take_memory():
    """Each of four threads copies an eighth of the rows of its tree, and then an eighth of the copied rows."""
    with_copies, without = plan(2**40, max_features=9).n_bytes, plan(2**40, max_features=8).n_bytes
    assert with_copies - without > 4 * 100 * 0.63 * (N_ROWS // 8 + N_ROWS // 64)


def test_sizes_of_target_rates_are_those_of_the_codes():
    frame = make_many().to_pandas()[["shop", "postcode", "sign"]]
    forest, sizes = make_forest(categorical_features=["shop", "postcode"], n_estimators=1), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_memory, "check_fit", lambda size, n_bytes: sizes.append(size))
        forest.fit(frame, make_many()["label"].to_pandas())
    size = sizes[-1]
    assert (size.n_rated, size.n_digits) == (2, 2)
    assert size.n_categories == max(map(len, forest.categories_.values()))
    assert size.n_cells >= sum(len(table.totals) for table in forest.target_rates_.tables)
    # Copies of the rows of several trees are in memory at the same time, up to a maximum.
    assert size.n_rows > size.tree_rows

    def bytes_of_rates(n_trees):
        sizes = [replace(size, n_trees=n_trees, n_rated=n_rated) for n_rated in (size.n_rated, 0)]
        return np.subtract(*[one.thread_bytes(size.n_rows) for one in sizes])

    assert bytes_of_rates(2) - bytes_of_rates(1) > size.copy_bytes
    assert bytes_of_rates(2) < bytes_of_rates(1000) == bytes_of_rates(1001)


def test_rows_that_are_too_many_for_one_matrix_are_copied(monkeypatch):
    monkeypatch.setattr(_plan, "MOST_ROWS", N_ROWS)
    assert not plan(2**40).copies_rows
    monkeypatch.setattr(_plan, "MOST_ROWS", N_ROWS - 1)
    assert plan(2**40).copies_rows
    monkeypatch.setattr(_plan, "MOST_ROWS", N_ROWS // 2)
    sentence = rf"^the sample of a tree has [\d,]+ rows, more than the 5,000,000 .*: set max_samples={N_ROWS // 2}$"
    with pytest.raises(ValueError, match=sentence):
        plan(2**40)


def test_sizes_of_samples_by_block_are_counted():
    """They have 4 bytes for each tree, also of a warm start, for each class and for each block of 4096 rows."""
    target = Target(np.array([0, 1]), LABELS[:1_000_000], None)
    spec = replace(resolve(target, sampling="stratified", n_estimators=50), numbers=range(20, 50))
    size = FitSize.of(spec, target, 3)
    assert size.sample_bytes == 4 * 245 * 2 * 50
    assert FitSize.of(replace(spec, sampler=None), target, 3).sample_bytes == 0
    assert bytes_in_memory(size, 4) - bytes_in_memory(replace(size, sample_bytes=0), 4) == size.sample_bytes
    many, few = (plan(2**40, n_estimators=n_trees).n_bytes for n_trees in (1000, 100))
    assert many - few == 900 * 4 * 2442


def test_distinct_rows_of_trees():
    def distinct(**params):
        target = Target(np.array([0, 1]), LABELS[:1_000_000], None)
        return FitSize.of(resolve(target, **params), target, 3).tree_rows

    assert distinct(bootstrap=False) == 1_000_000
    assert distinct(sampling="subsample") == 632_000
    assert distinct() == pytest.approx(0.632e6, rel=0.02)
    assert distinct(max_samples=200) == pytest.approx(200, abs=3)


def test_a_quantity_as_target_is_refused_before_trees_grow(monkeypatch):
    monkeypatch.setattr(_memory, "machine_memory", lambda: 2**29)
    monkeypatch.setattr(in_memory, "grow_batches", lambda *_, **__: pytest.fail("it grew"))
    sentence = r"on 40,000 samples, 5 features and 40,000 classes would take about .* y looks like a regression target"
    table = np.random.default_rng(0).normal(size=(40_000, 5))
    with pytest.raises(ValueError, match=sentence), pytest.warns(UserWarning, match="The number of unique classes"):
        small_forest(300).fit(table, np.arange(40_000))


def test_targets_of_many_classes_and_few_samples_are_warned_of():
    rng = np.random.default_rng(0)
    sentence = r"y has 60 classes of 5\.0 samples on average, and the fit takes about .* y > threshold"
    with pytest.warns(UserWarning, match=sentence):
        small_forest(1).fit(rng.normal(size=(300, 5)), np.arange(300) % 60)


def test_fits_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(_memory, "machine_memory", lambda: 2**16)
    with pytest.raises(ValueError, match=r"samples, 5 features and 2 classes would take about .*: set max_depth"):
        AUCTreeClassifier(max_bins=None).fit(*make_table(n_rows=400))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize(
    ("n_rows", "n_classes", "n_categories"), [(400_000, 2, 0), (4000, 2000, 0), (60_000, 300, 0), (400_000, 8, 20_000)]
)
def test_estimates_are_near_measured_peaks(n_rows, n_classes, n_categories):
    measured, estimated = measure(n_rows, n_classes, n_categories)
    # Estimates leave out the values that bins are chosen from and the trees, which are few bytes here.
    little = 2**26
    assert measured / 2 - little <= estimated <= 2 * measured + little


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_plans_out_of_core_are_near_measured_peaks(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=1_200_000).astype(np.float32) for i in range(30)}
    table = pa.table({**columns, "y": columns["x0"] + columns["x1"] > 2})
    pq.write_table(table, tmp_path / "t", row_group_size=100_000)
    measured, planned = measure(tmp_path / "t")
    assert planned / 4 <= measured <= 1.3 * planned
