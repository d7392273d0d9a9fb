"""Batches are read in order by several threads; a fit that was killed goes on in its folder, with the same forest."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aucforest
from aucforest.distributed import fit_out_of_core
from aucforest.fitting import on_disk
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


def make_pieces_small(monkeypatch):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 800)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    make_pieces_small(monkeypatch)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=700)
    return path


def fit(source, folder, forest=None, **options):
    return fit_out_of_core(
        aucforest.AUCForestClassifier(**EXPECTED.get_params()) if forest is None else forest,
        source,
        "label",
        drop=["weight"],
        folder=folder,
        **options,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a source and the folder of a fit that came through; it is for copying."""
    path = tmp_path_factory.mktemp("finished")
    pq.write_table(TABLE, path / "rows.parquet", row_group_size=700)
    with pytest.MonkeyPatch.context() as patch:
        make_pieces_small(patch)
        fit(path / "rows.parquet", path / "folder")
    return path / "rows.parquet", path / "folder"


# Forks of one process that has imported all: each goes on in the folder until it is killed after the n-th call of a
# function, or is done.
PROGRAM = """
import os, signal, sys
from itertools import count
from pathlib import Path
from aucforest.fitting import code_matrix, growing
from aucforest.fitting.coding import Coding
from aucforest.fitting.job import JobFolder
from tests.fitting.test_on_disk import fit, on_disk
on_disk._BATCH_CELLS = 800
growing._LEAST_BATCH_SECONDS = 0.0  # quick trees would be saved together

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
    assert {path.name.partition("-")[0] for path in (tmp_path / "folder").iterdir()} == {
        "manifest.json",
        "lock",
        "trees",
    }
    model = aucforest.load(tmp_path / "model")
    X, _ = features_and_labels(TABLE)
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))


@pytest.mark.usefixtures("mapped_files_stay")
def test_a_finished_fit_is_read_again(source, tmp_path, expected, monkeypatch):
    assert_same_fit(fit(source, tmp_path / "folder"), expected)
    monkeypatch.setattr(on_disk, "grow_batches", None)
    assert_same_fit(fit(source, tmp_path / "folder"), expected)


def test_more_trees_later(source, tmp_path, expected):
    fewer = aucforest.AUCForestClassifier(**EXPECTED.get_params()).set_params(n_estimators=7, oob_score=False)
    fit(source, tmp_path / "folder", fewer)
    assert_same_fit(fit(source, tmp_path / "folder"), expected)


@pytest.mark.usefixtures("mapped_files_stay")
@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_damaged_files_are_made_anew(finished, tmp_path, expected, damage):
    source, folder = finished[0], tmp_path / "folder"
    path = sorted(Path(shutil.copytree(finished[1], folder)).glob("trees-*"))[-1]
    content = bytearray(path.read_bytes())
    content[-len(content) // 3] ^= 1
    path.write_bytes(content if damage == "changed" else content[: len(content) // 2])
    if damage == "gone":
        path.unlink()
    with pytest.warns(UserWarning, match="its trees are grown again") if damage != "gone" else nullcontext():
        assert_same_fit(fit(source, folder), expected)


def test_other_files_in_the_folder_stay(finished, tmp_path, expected, monkeypatch):
    """A checkpoint of a version that also stored codes, say, is resumed."""
    folder, others = Path(shutil.copytree(finished[1], tmp_path / "folder")), ("codes.bin", "coding.safetensors")
    for name in others:
        folder.joinpath(name).write_text("codes")
    monkeypatch.setattr(on_disk, "grow_batches", None)  # all trees are there
    assert_same_fit(fit(finished[0], folder), expected)
    assert [folder.joinpath(name).read_text() for name in others] == ["codes", "codes"]


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
def test_a_fit_with_target_rates_goes_on_after_an_interruption(tmp_path, monkeypatch):
    table, params = make_many(), RATED | {"oob_score": True}
    pq.write_table(table, tmp_path / "rows.parquet")
    options = {"sample_weight": "weight", "drop": ["customer"], "folder": tmp_path / "folder"}

    def fit(**others):
        return fit_out_of_core(make_forest(**params | others), tmp_path / "rows.parquet", "label", **options)

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
    with pytest.raises(ValueError, match="categorical_encoding is 'auto' there, but 'rates' here"):
        fit(categorical_encoding="rates")


@pytest.mark.usefixtures("mapped_files_stay")
def test_what_a_full_disk_has_no_room_for_is_not_believed_later(source, tmp_path, monkeypatch, expected):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    for owner, name in [(os, "posix_fallocate"), (JobFolder, "save")]:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(OSError, match="No space left"):
                fit(source, tmp_path / "folder")
    assert_same_fit(fit(source, tmp_path / "folder"), expected)


@pytest.mark.usefixtures("mapped_files_stay")
def test_nothing_is_left_of_a_temporary_file(source, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    fit(source, None, make_forest(random_state=None))
    monkeypatch.setattr(on_disk, "grow_batches", None)
    with pytest.raises(TypeError):
        fit(source, None)
    assert sorted(tmp_path.iterdir()) == before


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
        fit(source, None)
    assert len(released) == (30 if copies_rows else 0)  # batches of 100 rows


def test_a_warm_start_with_the_seed_of_another_fit_is_another_fit(source, tmp_path):
    """Its trees are not those of its random_state."""
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


def features(n=1000, weight=None):
    target = Target(np.array([0, 1]), (np.arange(n) % 2).astype(np.uint16), weight)
    table = open_source(pa.table({"a": range(n), "b": range(n)}))
    return FeatureBatches(table, ["a", "b"], to_features, target, dates={})


@pytest.fixture
def tiny_batches(monkeypatch):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 20)


@pytest.mark.usefixtures("tiny_batches")
def test_results_come_in_order():
    def look(start, table):
        time.sleep(0.002 * (start % 3 == 0))
        return start, table.get_column("a").to_list()

    results = list(features().map(look, "rows", 3))
    assert [value for _, values in results for value in values] == list(range(1000))
    assert [start for start, _ in results] == [values[0] for _, values in results]


@pytest.mark.usefixtures("tiny_batches")
def test_few_batches_are_on_their_way():
    begun = []

    def look(start, table):
        begun.append(start)

    for n_ended, _ in enumerate(features().map(look, "rows", 2), 1):
        assert len(begun) <= n_ended + 3


@pytest.mark.usefixtures("tiny_batches")
def test_an_error_stops_all():
    def look(start, table):
        if start == 100:
            raise ValueError("no")

    before = threading.active_count()
    with pytest.raises(ValueError, match="no"):
        list(features().map(look, "rows", 2))
    assert threading.active_count() == before


@pytest.mark.usefixtures("tiny_batches")
@pytest.mark.parametrize(("there", "found"), [(990, "990"), (2000, "1,010 or more")])
def test_rows_that_come_and_go(there, found):
    changed = features()._replace(source=features(there).source)
    with pytest.raises(ValueError, match=rf"had 1,000 rows when it was read first, but has {found} now: it must not"):
        list(changed.map(lambda start, table: None, "rows", 2))
