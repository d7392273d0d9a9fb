"""The job folder: trees are read again, other fits and folders are refused, and damaged files are removed."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import aucforest
from aucforest.columns.categorical import feature_kinds
from aucforest.fitting.job import JobFolder, describe_fit, find_versions
from aucforest.fitting.target import Target
from aucforest.persistence.folded_trees import fold
from aucforest.persistence.model_file import read_model, write_model
from tests.persistence.trees import assert_same_trees, make_tree

MANIFEST = {"criterion": "auc", "max_features": 1, "seed": 7, "class_weight": {True: 0.5, "rare": None}}
CATEGORIES = np.array(["a", "é", "c"], dtype=object)
SHAPE, SETS = (feature_kinds({}, 3), 2), feature_kinds(dict.fromkeys(range(3), CATEGORIES), 3)


def variants_of(numbers):
    return [number % 3 for number in numbers]


def save(folder, *groups, manifest=MANIFEST):
    with closing(JobFolder(folder, manifest)) as job:
        for numbers in groups:
            job.save(numbers, [make_tree(number, 5) for number in numbers], variants_of(numbers))


def trees_of(folder, manifest=MANIFEST, shape=SHAPE):
    with closing(JobFolder(folder, manifest)) as job:
        return job.trees(*shape, {number: number % 3 for number in range(10**4)})


def assert_trees(folder, numbers):
    trees = trees_of(folder)
    assert sorted(trees) == sorted(numbers)
    assert_same_trees(list(trees.values()), [make_tree(number, 5) for number in trees])


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def tree_files(folder):
    return sorted(folder.glob("trees-*"))


def test_trees_of_sets_and_several_classes_are_read_to_the_last_bit(tmp_path):
    shape, trees = (feature_kinds({1: CATEGORIES}, 3), 3), [make_tree(i, 9, 3, 3, by_set=[1]) for i in range(2)]
    with closing(JobFolder(tmp_path / "new" / "folder", MANIFEST)) as job:
        job.save([4, 6], trees, variants_of([4, 6]))
    assert_same_trees(list(trees_of(tmp_path / "new" / "folder", shape=shape).values()), trees)


def test_a_fit_is_resumed_from_its_folder(tmp_path):
    tmp_path.joinpath("fit").mkdir()
    assert_trees(tmp_path / "fit", [])
    save(tmp_path / "fit", [3, 5], [0])
    assert_trees(tmp_path / "fit", [0, 3, 5])
    save(tmp_path / "fit", [1, 2], manifest=dict(reversed(MANIFEST.items())))
    assert_trees(tmp_path / "fit", [0, 1, 2, 3, 5])
    content = content_of(tmp_path / "fit")
    save(tmp_path / "fit", [1, 2])
    assert content_of(tmp_path / "fit") == content


@pytest.mark.parametrize(("there", "here", "sentence"), [
    ({"seed": 1, "z": 1}, {"seed": 2, "z": 2}, "seed is 1 there, but 2 here"),
    ({"b": "x", "a": "x"}, {"b": "y", "a": "y"}, "b is 'x' there, but 'y' here"),
    ({"max_features": 1}, {"max_features": 1.0}, "max_features is 1 there, but 1.0 here"),
    ({"bootstrap": 1}, {"bootstrap": True}, "bootstrap is 1 there, but True here"),
    ({"low": float("nan")}, {"low": "nan"}, "low is nan there, but 'nan' here"),
    ({"rates": [1, (2.5, np.float64(3))]}, {"rates": [1, None]}, "rates is [1, [2.5, 3.0]] there, but [1, None]"),
    ({}, {"max_depth": None}, "max_depth is missing there, but None here"),
    ({"max_depth": "missing"}, {}, "max_depth is 'missing' there, but missing here"),
    ({"edges": "0" * 99}, {"edges": "1" * 99}, f"edges is '{'0' * 79} there, but '{'1' * 79} here"),
])  # fmt: skip
def test_another_fit_is_refused(tmp_path, there, here, sentence):
    save(tmp_path, [0], manifest=there)
    content = content_of(tmp_path)
    with pytest.raises(ValueError) as raised:
        trees_of(tmp_path, here)
    assert str(raised.value).startswith(f"{tmp_path} is the checkpoint of another fit: {sentence}")
    assert content_of(tmp_path) == content
    assert list(trees_of(tmp_path, there)) == [0]


def test_a_fit_of_another_version_is_another_fit():
    assert find_versions()["aucforest"] == aucforest.__version__
    assert set(find_versions()) == {"aucforest", "Python", "numpy", "numba", "scikit-learn"}
    described = describe_fit({}, 0, Target(np.arange(2), np.arange(4, dtype=np.uint16) % 2, None))
    assert {name: described[name] for name in find_versions()} == find_versions()


def test_values_that_cannot_be_stored_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"criterion=<.*> cannot be stored in a checkpoint: a function cannot be"):
        JobFolder(tmp_path / "fit", {"criterion": lambda: None})
    assert content_of(tmp_path) == {}


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("data.csv", "x,y", "holds data.csv, but no checkpoint: use a new or empty one"),
    ("trees-000000-000004.safetensors", "", "holds trees-000000-000004.safetensors, but no checkpoint"),
    ("manifest.json", '{"name": "app"}', "manifest.json is damaged or not a checkpoint file"),
    ("manifest.json", '{"checkpoint": 3, "fit": {"seed"', "manifest.json is damaged or not a checkpoint file"),
    ("manifest.json", '{"checkpoint": 3, "fit": []}', "manifest.json is damaged or not a checkpoint file"),
    ("manifest.json", '{"checkpoint": 2, "fit": {}}', r"is of format 2, .* knows 7: use a new or empty"),
])  # fmt: skip
def test_folders_of_others_are_left_alone(tmp_path, name, content, sentence):
    tmp_path.joinpath(name).write_text(content)
    with pytest.raises(ValueError, match=sentence):
        JobFolder(tmp_path, MANIFEST)
    assert content_of(tmp_path) == {name: content.encode()}


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    tmp_path.joinpath("fit").touch()
    with pytest.raises(ValueError, match="fit is a file, not a folder"):
        JobFolder(tmp_path / "fit", MANIFEST)


def test_only_half_written_files_of_a_killed_fit_are_removed(tmp_path):
    save(tmp_path / "fit", [0])
    whole = content_of(tmp_path / "fit")
    for name in whole.keys() - {"lock"}:  # the lock file is not written under another name
        tmp_path.joinpath("fit", f".{name}.{'0a' * 16}").write_text("half of it")
    others = {"notes.txt": b"", f".notes.txt.{'0a' * 16}": b"", f".mine.safetensors.{'0a' * 16}": b"", ".trees": b""}
    for name in others:
        tmp_path.joinpath("fit", name).touch()
    assert_trees(tmp_path / "fit", [0])
    assert content_of(tmp_path / "fit") == whole | others
    tmp_path.joinpath("new").mkdir()
    tmp_path.joinpath("new", f".manifest.json.{'0a' * 16}").write_text("half of it")
    save(tmp_path / "new", [0])
    assert content_of(tmp_path / "new") == whole


def test_damaged_files_are_removed_and_written_again(tmp_path):
    save(tmp_path, [0, 1], [2])
    path = tree_files(tmp_path)[0]
    content = path.read_bytes()
    damaged = [content[:length] for length in range(0, len(content), 499)]
    for index in range(0, len(content), 211):
        flipped = bytearray(content)
        flipped[index] ^= 1 << index % 8
        damaged.append(bytes(flipped))
    for some in damaged:
        path.write_bytes(some)
        with pytest.warns(UserWarning, match=r"trees-000000-000001.* is ignored and its trees are grown again: "):
            assert list(trees_of(tmp_path)) == [2]
        assert not path.exists()
    save(tmp_path, [0, 1])
    assert path.read_bytes() == content
    assert_trees(tmp_path, [0, 1, 2])


def test_trees_that_take_too_much_memory_stay_where_they_are(tmp_path, monkeypatch):
    """Their files are not damaged: a machine with more memory can resume the fit."""
    save(tmp_path, [0, 1])
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"the trees of the file would take .*: use a larger machine"):
        trees_of(tmp_path)
    monkeypatch.undo()
    assert_trees(tmp_path, [0, 1])


def test_trees_of_other_variants_stay_where_they_are(tmp_path):
    save(tmp_path, [0, 1, 2, 3])
    with closing(JobFolder(tmp_path, MANIFEST)) as job:
        assert list(job.trees(*SHAPE, {0: 0, 1: 2, 3: 0, 5: 2})) == [0, 3]
    assert_trees(tmp_path, [0, 1, 2, 3])


@pytest.mark.parametrize(("numbers", "manifest", "shape", "sentence"), [
    ([0, 1], {"seed": 8}, SHAPE, "it belongs to another fit"), ([1, 0], MANIFEST, SHAPE, "negative or unsorted"),
    ([1, 1], MANIFEST, SHAPE, "negative or unsorted"), ([-1, 0], MANIFEST, SHAPE, "negative or unsorted"),
    ([0], MANIFEST, SHAPE, "numbers must be int64 of shape"),
    ([0, 1], MANIFEST, (feature_kinds({}, 1), 2), "a feature is not in"),
    ([0, 1], MANIFEST, (feature_kinds({}, 3), 3), "tree.total must be"),
    ([0, 1], MANIFEST, (SETS, 2), "categorical split is on a numeric"),
])  # fmt: skip
def test_trees_that_do_not_belong_here_are_left_out(tmp_path, numbers, manifest, shape, sentence):
    save(tmp_path / "other", [0, 1], manifest=manifest)
    path = tree_files(tmp_path / "other")[0]
    known = {"numbers": np.array(numbers), "variants": np.zeros(2, dtype=np.int64)}
    arrays = fold([make_tree(number, 5) for number in (0, 1)]) | known
    write_model(path, arrays, {"fit": read_model(path).take("fit", str)})
    save(tmp_path / "fit")
    shutil.copy(path, tmp_path / "fit")
    with pytest.warns(UserWarning, match=sentence):
        assert trees_of(tmp_path / "fit", shape=shape) == {}


def test_a_folder_is_for_one_fit_at_a_time(tmp_path):
    with closing(JobFolder(tmp_path, MANIFEST)), pytest.raises(BlockingIOError, match="in use by process"):
        JobFolder(tmp_path, MANIFEST)
    save(tmp_path, [0])


def test_an_error_on_opening_frees_the_folder(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", lambda *paths: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            JobFolder(tmp_path, MANIFEST)
    assert sorted(content_of(tmp_path)) == ["lock"]
    save(tmp_path, [0])


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    resource = pytest.importorskip("resource")
    save(tmp_path, [0])
    content, limits = content_of(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(JobFolder(tmp_path, MANIFEST)) as job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(OSError, match=r"trees 1 to 2 cannot be saved: File too large.*trees-000001-000002"):
                job.save([1, 2], [make_tree(number, 5) for number in (1, 2)], [1, 2])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert content_of(tmp_path) == content
    assert_trees(tmp_path, [0])
