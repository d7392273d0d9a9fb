"""onnxruntime predicts what the trees do."""

import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.exports.onnx import Ensemble, write_onnx
from tests.exports.data import mean_of, random_rows, random_tree

N_CODES = {1: 7, 3: 3}
# Probabilities and their sums are float32 at the end.
TOLERANCE = {"rtol": 0, "atol": 1e-6}


def drawn(seed, n_trees=4, n_cuts=8, dtype=np.float64, **params):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, n_cuts, n_codes=N_CODES, n_features=5, **params) for _ in range(n_trees)]
    X = random_rows(rng, trees[0], N_CODES, dtype=dtype)
    X[1:4, [0, 2, 4]] = np.array([[np.inf], [-np.inf], [np.nan]])
    return trees, X


def run(path, X):
    onnx.checker.check_model(path, full_check=True)
    return onnxruntime.InferenceSession(path).run(["label", "probabilities"], {"X": X})


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    n_cuts=st.integers(0, 20),
    n_classes=st.sampled_from([2, 4]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_mean_is_the_same(tmp_path_factory, seed, n_cuts, n_classes, dtype):
    path = tmp_path_factory.getbasetemp() / "mean.onnx"
    trees, X = drawn(seed, n_cuts=n_cuts, n_classes=n_classes, shrinkage=2.0, dtype=dtype)
    write_onnx(path, Ensemble(trees, N_CODES), np.arange(n_classes) * 10, dtype=dtype)
    labels, proba = run(path, X)
    expected = mean_of(trees, X)
    np.testing.assert_allclose(proba, expected, **TOLERANCE)
    assert proba.dtype == np.float32
    assert labels.tolist() == (proba.argmax(axis=1) * 10).tolist()
    # One row: onnxruntime then goes through trees rather than rows in parallel.
    np.testing.assert_allclose(run(path, X[:1])[1], expected[:1], **TOLERANCE)


@pytest.mark.parametrize(
    "classes",
    [
        ["a", "b"], [False, True], [3, 7], [0.5, 1.5], np.array(["a", "b"], dtype=object), np.array([1, 2], "i1"),
        [2**53, 2**53 + 1], [-(2**63), 2**63 - 1], np.array([1, 2**64 - 1], "u8"), np.array([2**63, 2**63 + 1], "u8"),
    ],
)  # fmt: skip
def test_labels_keep_their_type(tmp_path, classes):
    trees, X = drawn(1)
    write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES), np.asarray(classes))
    labels, proba = run(tmp_path / "a.onnx", X)
    assert labels.tolist() == np.asarray(classes)[proba.argmax(axis=1)].tolist()
    assert type(labels.tolist()[0]) is type(np.asarray(classes).tolist()[0])


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [([1j, 2j], "complex128"), ([1, 2**63 + 1], "object"), ([0.5, 2**53 + 1], "object"), ([1, 2], np.longdouble)],
)
def test_labels_of_other_types_are_refused(tmp_path, classes, dtype):
    trees, _ = drawn(1)
    sentence = f"labels that are str, bool or numbers of at most 64 bits, not {np.dtype(dtype)}$"
    with pytest.raises(TypeError, match=sentence):
        write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES), np.array(classes, dtype=dtype))
    assert list(tmp_path.iterdir()) == []


def test_correction(tmp_path):
    trees, X = drawn(2, n_classes=3)
    offsets = np.array([0.3, -2.0, -np.inf])
    write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES, (1.4, offsets, 1e-6)), np.arange(3))
    powers = np.maximum(mean_of(trees, X), 1e-6) ** 1.4 * np.exp(offsets)
    np.testing.assert_allclose(run(tmp_path / "a.onnx", X)[1], powers / powers.sum(axis=1, keepdims=True), **TOLERANCE)


def test_a_sample_at_the_threshold_is_in_the_second_class(tmp_path):
    trees, X = drawn(3, n_trees=7)
    proba = mean_of(trees, X)[:, 1]
    for threshold in np.unique(proba):
        write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES), np.array(["no", "yes"]), threshold)
        assert (run(tmp_path / "a.onnx", X)[0] == "yes").tolist() == (proba >= threshold).tolist()


def test_class_thresholds_and_costs(tmp_path):
    trees, X = drawn(4, n_classes=3)
    proba = mean_of(trees, X)
    write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES), np.arange(3), np.array([0.61, 0.39, 0.0]))
    assert run(tmp_path / "a.onnx", X)[0].tolist() == (proba[:, :2] / [0.61, 0.39]).argmax(axis=1).tolist()
    cost = np.array([[0.0, 1.3, 2.7], [4.1, 0.0, 1.9], [0.7, 3.3, 0.0]])
    for unit in (1.0, 1e-60, 1e300):
        write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES), np.arange(3), unit * cost)
        assert run(tmp_path / "a.onnx", X)[0].tolist() == (proba @ cost).argmin(axis=1).tolist()


def test_an_infinite_threshold(tmp_path):
    trees, X = drawn(4)
    write_onnx(tmp_path / "a.onnx", Ensemble(trees, N_CODES), np.arange(2), np.inf)
    assert not np.any(run(tmp_path / "a.onnx", X)[0])


def test_a_file_that_reads_float32_has_thresholds_of_float32(tmp_path):
    for dtype, is_narrow in (("float32", True), ("float64", False)):
        write_onnx(tmp_path / "a.onnx", Ensemble(drawn(4)[0], N_CODES), np.arange(2), dtype=dtype)
        (trees,) = (node for node in onnx.load(tmp_path / "a.onnx").graph.node if node.op_type.startswith("Tree"))
        (tensor,) = (one.t for one in trees.attribute if one.name == "nodes_values_as_tensor")
        thresholds = onnx.numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):
            assert np.array_equal(thresholds.astype(np.float32), thresholds) == is_narrow


def test_other_types_of_values_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^dtype must be 'float32' or 'float64', got 'float16'$"):
        write_onnx(tmp_path / "a.onnx", Ensemble(drawn(0)[0], N_CODES), np.arange(2), dtype="float16")


def test_a_missing_onnx_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"^writing ONNX needs onnx: pip install aucforest\[onnx\]$"):
        write_onnx(tmp_path / "a.onnx", Ensemble(drawn(0)[0], N_CODES), np.arange(2))
