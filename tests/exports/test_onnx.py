"""Predictions of onnxruntime for exported trees."""

import sys

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.exports.onnx import Ensemble, write_onnx
from tests.exports.data import mean_of, random_data, run_onnx

N_CODES = {1: 7, 3: 255}
TOLERANCE = {"rtol": 0, "atol": 1e-6}  # Probabilities and their sums are float32 at the end.


def make_data(seed, dtype=np.float64, **params):
    trees, X = random_data(seed, N_CODES, dtype=dtype, **params)
    X[1:4, [0, 2, 4]] = np.array([[np.inf], [-np.inf], [np.nan]])
    return trees, X


def predict(folder, trees, X, classes, *args, calibration=None, **options):
    """Return the labels and the probabilities of rows by a file of trees."""
    write_onnx(folder / "a.onnx", Ensemble(trees, N_CODES, calibration), np.asarray(classes), *args, **options)
    return run_onnx(folder / "a.onnx", X)


@given(st.integers(0, 2**32), st.integers(0, 20), st.sampled_from([2, 4]), st.sampled_from([np.float32, np.float64]))
def test_the_mean_is_the_same(tmp_path_factory, seed, n_splits, n_classes, dtype):
    folder = tmp_path_factory.getbasetemp()
    trees, X = make_data(seed, dtype, n_splits=n_splits, n_classes=n_classes, shrinkage=2.0)
    labels, proba = predict(folder, trees, X, np.arange(n_classes) * 10, dtype=dtype)
    expected = mean_of(trees, X)
    np.testing.assert_allclose(proba, expected, **TOLERANCE)
    assert proba.dtype == np.float32
    assert labels.tolist() == (proba.argmax(axis=1) * 10).tolist()
    # For one row, onnxruntime processes trees instead of rows in parallel.
    np.testing.assert_allclose(run_onnx(folder / "a.onnx", X[:1])[1], expected[:1], **TOLERANCE)


@pytest.mark.parametrize("classes", [
    ["a", "b"], [False, True], [3, 7], [0.5, 1.5], np.array(["a", "b"], dtype=object), np.array([1, 2], "i1"),
    [2**53, 2**53 + 1], [-(2**63), 2**63 - 1], np.array([1, 2**64 - 1], "u8"), np.array([2**63, 2**63 + 1], "u8"),
])  # fmt: skip
def test_labels_keep_their_type(tmp_path, classes):
    labels, proba = predict(tmp_path, *make_data(1), classes)
    assert labels.tolist() == np.asarray(classes)[proba.argmax(axis=1)].tolist()
    assert type(labels.tolist()[0]) is type(np.asarray(classes).tolist()[0])


def test_what_cannot_be_written(tmp_path, monkeypatch):
    ensemble = Ensemble(make_data(0)[0], N_CODES)
    with pytest.raises(ValueError, match=r"^dtype must be 'float32' or 'float64', got 'float16'$"):
        write_onnx(tmp_path / "a.onnx", ensemble, np.arange(2), dtype="float16")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"^writing ONNX needs onnx: pip install aucforest\[onnx\]$"):
        write_onnx(tmp_path / "a.onnx", ensemble, np.arange(2))


@pytest.mark.parametrize(("classes", "dtype"), [
    ([1j, 2j], "complex128"), ([1, 2**63 + 1], "object"), ([0.5, 2**53 + 1], "object"), ([1, 2], np.longdouble),
])  # fmt: skip
def test_labels_of_other_types_are_refused(tmp_path, classes, dtype):
    sentence = f"labels that are str, bool or numbers of at most 64 bits, not {np.dtype(dtype)}$"
    with pytest.raises(TypeError, match=sentence):
        write_onnx(tmp_path / "a.onnx", Ensemble(make_data(1)[0], N_CODES), np.array(classes, dtype=dtype))
    assert list(tmp_path.iterdir()) == []


def test_calibrated_probabilities(tmp_path):
    trees, X = make_data(2, n_classes=3)
    intercepts = np.array([0.3, -2.0, -np.inf])
    powers = np.maximum(mean_of(trees, X), 1e-6) ** 1.4 * np.exp(intercepts)
    _, proba = predict(tmp_path, trees, X, range(3), calibration=(1.4, intercepts, 1e-6))
    np.testing.assert_allclose(proba, powers / powers.sum(axis=1, keepdims=True), **TOLERANCE)


def test_a_sample_at_the_threshold_is_in_the_second_class(tmp_path):
    trees, X = make_data(3, n_trees=7)
    proba = mean_of(trees, X)[:, 1]
    for threshold in (*np.unique(proba), np.inf):
        labels, _ = predict(tmp_path, trees, X, ["no", "yes"], threshold)
        assert (labels == "yes").tolist() == (proba >= threshold).tolist()


def test_class_thresholds_and_costs(tmp_path):
    trees, X = make_data(4, n_classes=3)
    proba = mean_of(trees, X)
    labels, _ = predict(tmp_path, trees, X, range(3), np.array([0.61, 0.39, 0.0]))
    assert labels.tolist() == (proba[:, :2] / [0.61, 0.39]).argmax(axis=1).tolist()
    cost = np.array([[0.0, 1.3, 2.7], [4.1, 0.0, 1.9], [0.7, 3.3, 0.0]])
    for unit in (1.0, 1e-60, 1e300):
        labels, _ = predict(tmp_path, trees, X, range(3), unit * cost)
        assert labels.tolist() == (proba @ cost).argmin(axis=1).tolist()


def test_a_file_that_reads_float32_has_thresholds_of_float32(tmp_path):
    for dtype, is_narrow in (("float32", True), ("float64", False)):
        write_onnx(tmp_path / "a.onnx", Ensemble(make_data(4)[0], N_CODES), np.arange(2), dtype=dtype)
        (trees,) = (node for node in onnx.load(tmp_path / "a.onnx").graph.node if node.op_type.startswith("Tree"))
        (tensor,) = (one.t for one in trees.attribute if one.name == "nodes_values_as_tensor")
        thresholds = onnx.numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):
            assert np.array_equal(thresholds.astype(np.float32), thresholds) == is_narrow
