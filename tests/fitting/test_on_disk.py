"""Batches are read in order by several threads; a killed fit is resumed from its folder, with the same forest."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aucforest
from aucforest.distributed import fit_out_of_core
from aucforest.fitting import on_disk, target_rates
from aucforest.fitting.code_matrix import CodeMatrix
from aucforest.fitting.job import JobFolder
from aucforest.fitting.on_disk import FeatureBatches
from aucforest.fitting.target import Target
from aucforest.tables.kinds import to_features
from aucforest.tables.sources import open_source
from tests.estimators.data import assert_same_fit
from tests.fitting.tables import RATED, copy_rows, features_and_labels, make_forest, make_many, make_rows

TABLE = make_rows()
EXPECTED = make_forest(oob_score="average_precision", max_samples=0.5, n_estimators=16)


@pytest.fixture(scope="module")
def expected():
    return EXPECTED.fit(*features_and_labels(TABLE))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 800)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=700)
    return path


def fit(source, folder, forest=None, **options):
    forest = aucforest.AUCForestClassifier(**EXPECTED.get_params()) if forest is None else forest
    return fit_out_of_core(forest, source, "label", drop=["weight"], folder=folder, **options)


# A process imports all modules, then forks. Each fork resumes the fit in the folder, and is killed after the n-th call
# of a function; the last one ends the fit.
PROGRAM = """
import os, signal, sys
from itertools import count
from pathlib import Path
from aucforest.fitting import code_matrix, growing
from aucforest.fitting.coding import Coding
from aucforest.fitting.job import JobFolder
from tests.fitting.test_on_disk import fit, on_disk
on_disk._BATCH_CELLS = 800
growing._LEAST_BATCH_SECONDS = 0.0  # trees that grow fast would be saved together

def kill_after(n, owner, name):
    function, numbers = getattr(owner, name), count(1)
    def call(*args, **kwargs):
        number, result = next(numbers), function(*args, **kwargs)
        if number == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, call)

early = (1, on_disk, "choose_coding"), (1, code_matrix, "_allocate"), (7, Coding, "encode")
for kill in [*early, (1, Path, "write_bytes"), (1, JobFolder, "save"), (2, JobFolder, "save"), None]:
    pid = os.fork()
    if pid == 0:
        if kill:
            kill_after(*kill)
        fit(*sys.argv[1:]).save(Path(sys.argv[2]).with_name("model"))
        os._exit(0)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


@pytest.mark.slow
def test_killed_at_many_moments(source, tmp_path, expected):
    arguments = [sys.executable, "-c", PROGRAM, str(source), str(tmp_path / "folder")]
    finished = subprocess.run(arguments, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert finished.stdout.split() == [*[str(int(signal.SIGKILL))] * 6, "0"], finished.stderr
    names = {path.name.partition("-")[0] for path in (tmp_path / "folder").iterdir()}
    assert names == {"manifest.json", "lock", "trees"}
    model = aucforest.load(tmp_path / "model")
    X, _ = features_and_labels(TABLE)
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))


@pytest.mark.usefixtures("mapped_files_stay")
def test_a_fit_reads_the_trees_in_its_folder_and_grows_the_others(source, tmp_path, expected, monkeypatch):
    folder = tmp_path / "folder"
    assert_same_fit(fit(source, folder), expected)
    with monkeypatch.context() as patch:
        patch.setattr(on_disk, "grow_batches", None)  # all trees are there
        assert_same_fit(fit(source, folder), expected)
    sorted(folder.glob("trees-*"))[-1].unlink()
    assert_same_fit(fit(source, folder), expected)
    path = sorted(folder.glob("trees-*"))[-1]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="its trees are grown again"):
        assert_same_fit(fit(source, folder), expected)


def test_more_trees_later(source, tmp_path, expected):
    fewer = aucforest.AUCForestClassifier(**EXPECTED.get_params()).set_params(n_estimators=7, oob_score=False)
    fit(source, tmp_path / "folder", fewer)
    assert_same_fit(fit(source, tmp_path / "folder"), expected)


def test_another_fit_in_the_folder_is_refused(source, tmp_path):
    folder = tmp_path / "folder"
    fit(source, folder)
    other = tmp_path / "other.parquet"
    pq.write_table(TABLE[1:], other)
    params = EXPECTED.get_params()
    cases = [
        ({"source": other}, "files is"),
        ({"forest": make_forest(**{**params, "criterion": "gini"})}, "criterion is 'auto' there, but 'gini' here"),
        ({"forest": make_forest(**{**params, "random_state": 4})}, "the seed is"),
        ({"positive": "b"}, "positive is None there, but 'b' here"),
    ]
    for options, sentence in cases:
        with pytest.raises(ValueError, match=f"the checkpoint of another fit: {sentence}"):
            fit(**{"source": source, "folder": folder, **options})
    os.utime(source, ns=(1, 1))
    with pytest.raises(ValueError, match="another fit: files is"):
        fit(source, folder)


@pytest.mark.usefixtures("mapped_files_stay")
def test_a_fit_with_target_rates_is_resumed_after_an_interruption(tmp_path, monkeypatch):
    table, params = make_many(), RATED | {"oob_score": True}
    pq.write_table(table, tmp_path / "rows.parquet")
    options = {"sample_weight": "weight", "drop": ["customer"], "folder": tmp_path / "folder"}

    def fit():
        return fit_out_of_core(make_forest(**params), tmp_path / "rows.parquet", "label", **options)

    save, numbers = JobFolder.save, count(1)

    def interrupt(*arguments):
        if next(numbers) > 1:
            raise KeyboardInterrupt
        save(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(JobFolder, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fit()
    expected = make_forest(**params).fit(*features_and_labels(table, ["customer"]), table["weight"].to_numpy())
    assert_same_fit(fit(), expected)
    monkeypatch.setattr(on_disk, "grow_batches", None)  # all trees are there
    assert_same_fit(fit(), expected)


def test_codes_are_in_the_folder_of_the_fit(source, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    fit(source, tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        fit(source, None)


@pytest.mark.parametrize("copies_rows", [False, True])
def test_codes_that_are_only_copied_are_not_kept_in_memory(source, monkeypatch, copies_rows):
    released = []
    monkeypatch.setattr(CodeMatrix, "release", lambda matrix: released.append(1))
    monkeypatch.setattr(on_disk, "grow_batches", None)
    if copies_rows:
        copy_rows(monkeypatch)
    with pytest.raises(TypeError):
        fit(source, None, make_forest(categorical_encoding="sets"))
    assert len(released) == (30 if copies_rows else 0)  # batches of 100 rows


def bytes_in_memory(matrix):
    """Return how many bytes of a mapped file are in the memory of this process, on Linux."""
    _, mapping = Path("/proc/self/smaps").read_text().split(f"{matrix.codes.ctypes.data:x}-")
    return 1024 * int(re.search(r"Rss: *(\d+)", mapping)[1])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/smaps shows the memory of a mapped file")
def test_a_few_codes_at_a_time_are_in_memory_where_columns_have_target_rates(monkeypatch):
    for module, name, size in [(on_disk, "_BATCH_CELLS", 2**18), (target_rates, "_BLOCK_ROWS", 2**14)]:
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr("aucforest.fitting.parts.MAPPED_BYTES", 2**18)
    copy_rows(monkeypatch)
    release, n_bytes = CodeMatrix.release, []
    monkeypatch.setattr(CodeMatrix, "release", lambda each: (n_bytes.append(bytes_in_memory(each)), release(each)))
    random, n_rows = np.random.default_rng(0), 400_000
    columns = {f"x{j}": random.normal(size=n_rows) for j in range(7)}
    shop = random.integers(0, 300, n_rows)
    columns |= {"shop": pa.array(shop).cast(pa.string()), "label": (shop % 2 == 0) == (columns["x0"] > 0.0)}
    table = pa.table(columns)
    forest = fit_out_of_core(make_forest(n_estimators=2, max_samples=1000, max_depth=3), table, "label")
    assert len(forest.target_rates_.tables) > 1  # interactions have been counted
    assert 0 < max(n_bytes) < 9 * n_rows / 2  # a row has codes of 8 features and two digits


def test_a_warm_start_with_the_seed_of_another_fit_is_another_fit(source, tmp_path):
    """Its trees have another seed than the parameter random_state of the last fit."""
    forest = make_forest(n_estimators=2, warm_start=True, random_state=1)
    fit(source, tmp_path / "one", forest)
    fit(source, tmp_path / "two", forest.set_params(n_estimators=4, random_state=0))
    with pytest.raises(ValueError, match="is the checkpoint of another fit: the seed is"):
        fit(source, tmp_path / "two", make_forest(n_estimators=4, random_state=0))


@pytest.mark.parametrize("params", [{"max_samples": 10**6}, {"monotonic_cst": [7]}, {"oob_score": lambda *_: 0.5}])
def test_a_refused_fit_does_not_claim_the_folder(source, tmp_path, expected, params):
    with pytest.raises(ValueError, match=r"max_samples|monotonic_cst|oob_score"):
        fit(source, tmp_path / "folder", make_forest(**params))
    assert_same_fit(fit(source, tmp_path / "folder"), expected)


def features(n=40_000):
    """Return two columns in batches of 400 rows."""
    target = Target(np.array([0, 1]), (np.arange(n) % 2).astype(np.uint16), None)
    table = open_source(pa.table({"a": np.arange(n), "b": np.arange(n)}))
    return FeatureBatches(table, ["a", "b"], to_features, target, dates={})


def test_results_come_in_order():
    def look(start, table):
        time.sleep(0.002 * (start % 1200 == 0))
        return start, table.get_column("a").to_list()

    results = list(features().map(look, "rows", 3))
    assert [value for _, values in results for value in values] == list(range(40_000))
    assert [start for start, _ in results] == [values[0] for _, values in results]


def test_few_batches_are_read_ahead():
    begun = []

    def look(start, table):
        begun.append(start)

    for n_ended, _ in enumerate(features().map(look, "rows", 2), 1):
        assert len(begun) <= n_ended + 3


def test_an_error_stops_all_threads():
    def look(start, table):
        if start == 4000:
            raise ValueError("no")

    before = threading.active_count()
    with pytest.raises(ValueError, match="no"):
        list(features().map(look, "rows", 2))
    assert threading.active_count() == before


@pytest.mark.parametrize(("n_rows", "found"), [(39_990, "39,990"), (80_000, "40,400 or more")])
def test_a_table_that_changes_while_it_is_read_is_refused(n_rows, found):
    changed = features()._replace(source=features(n_rows).source)
    with pytest.raises(ValueError, match=rf"had 40,000 rows when it was read first, but has {found} now: it must not"):
        list(changed.map(lambda start, table: None, "rows", 2))
