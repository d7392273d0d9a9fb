"""Predictions of onnxruntime for exported stacks."""

import copy

import numpy as np
import onnx
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression

from aucforest import AUCStackingClassifier
from tests.estimators.data import make_table, small_forest
from tests.estimators.stacks import DATA, fitted
from tests.exports.data import run_onnx


def run(stack, X, folder, dtype="float64"):
    """Return labels and probabilities by the ONNX file of a stack."""
    stack.to_onnx(folder / "stack.onnx", dtype=dtype)
    encoded = stack.encode(X, dtype=dtype)
    return run_onnx(folder / "stack.onnx", encoded.toarray() if issparse(encoded) else encoded)


def assert_same(stack, X, folder, dtype="float64"):
    """Compare predictions, and return the types of the nodes of the graph."""
    labels, proba = run(stack, X, folder, dtype)
    np.testing.assert_allclose(proba, stack.predict_proba(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(labels, stack.predict(X))
    return [node.op_type for node in onnx.load(folder / "stack.onnx").graph.node]


@pytest.mark.parametrize("name", DATA)
def test_stacks_predict_the_same(name, tmp_path):
    stack, X = fitted(name)
    assert assert_same(stack, X, tmp_path).count("TreeEnsembleRegressor") == (2 if name == "sparse" else 3)
    if name == "categories":
        X = X.astype(dict.fromkeys("ab", "float32"))
    assert_same(stack, X, tmp_path, "float32")


@pytest.mark.parametrize("name", ["missing values", "three classes"])
@pytest.mark.parametrize(
    "coef",
    [
        [0, 0, 0, 0], [2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 3], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1],
        [5, 9, 4, 2], [0, 0, 30, 0],  # which multiplies rounding errors by 30
    ],
)  # fmt: skip
def test_members_of_weight_0_are_left_out(name, coef, tmp_path):
    stack, X = fitted(name)
    stack = copy.copy(stack)
    stack.weights_ = np.array(coef, dtype=np.float64)
    kinds = assert_same(stack, X, tmp_path)
    of_forest, of_residual, of_boosted, of_linear = (weight > 0 for weight in coef)
    has_forest = of_forest or of_residual or not (of_boosted or of_linear)
    assert kinds.count("TreeEnsembleRegressor") == has_forest + of_residual + of_boosted
    assert ("Clip" in kinds) == of_linear


def test_coefficients_of_many_categories_are_looked_up(tmp_path):
    """Also those of rare, unseen and missing categories."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=900), "id": pd.Categorical(rng.integers(600, size=900).astype(str))})
    frame["kind"] = pd.Categorical(rng.integers(3, size=900).astype(str))
    frame["x"] = frame["x"].astype("float32").astype("float64")
    y = frame["x"] + 2.0 * rng.normal(size=600)[frame["id"].cat.codes] + rng.normal(size=900) > 0.0
    stack = AUCStackingClassifier(small_forest(20), random_state=0).fit(frame, y)
    stack.weights_ = np.array([0.0, 0.0, 0.0, 1.0])
    new = frame.assign(id=pd.Categorical(["other", None, *frame["id"][2:]]))
    assert stack.encode(new)["id"].max() > 254
    for X in (frame, new):
        kinds = assert_same(stack, X, tmp_path)
        assert "Equal" not in kinds
        assert (tmp_path / "stack.onnx").stat().st_size < 30_000
        assert_same(stack, X, tmp_path, "float32")


def test_infinite_and_missing_values(tmp_path):
    stack, X = fitted("missing values")
    X = X.copy()
    X[:6] = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 0.0])[:, None]
    assert_same(stack, X, tmp_path)


@pytest.mark.parametrize("params", [{"linear": None}, {"residual": False}, {"boosted": False}])
@pytest.mark.parametrize("forest", [small_forest(30), small_forest(30, calibration=None)], ids=["calibrated", "mean"])
def test_stacks_without_a_member(params, forest, tmp_path):
    X, y = make_table()
    stack = AUCStackingClassifier(forest, **params).fit(X, y)
    stack.weights_ = np.array([1.0, 0.7, 0.4])
    assert_same(stack, X, tmp_path)


def test_boosted_trees_without_a_step(tmp_path):
    """The classes are equally frequent in each fold, and X is constant."""
    X, y = np.zeros((200, 2)), np.arange(200) % 2
    stack = AUCStackingClassifier(small_forest(20)).fit(X, y)
    assert all(np.all(tree.prediction == 0.5) for tree in stack.members_["boosted"].trees_)
    stack.weights_ = np.ones(4)
    assert_same(stack, X, tmp_path)


@pytest.mark.parametrize("coef", [None, [0, 0, 20, 0]], ids=["all members", "large scores of boosted trees"])
def test_samples_at_the_threshold_are_in_the_second_class(coef, tmp_path):
    stack, X = fitted("two classes")
    stack = copy.copy(stack)
    if coef is not None:
        stack.weights_ = np.array(coef, dtype=np.float64)
    proba = stack.predict_proba(X)[:, 1]
    for threshold in np.sort(proba)[:100:10]:
        stack.threshold_ = float(threshold)
        assert run(stack, X, tmp_path)[0].tolist() == (proba >= threshold).astype(int).tolist()


def test_members_of_other_packages_are_refused_unless_their_weight_is_0(tmp_path):
    X, y = make_table()
    stack = AUCStackingClassifier(small_forest(30), linear=LogisticRegression()).fit(X, y)
    assert stack.weights_[3] > 0.0
    with pytest.raises(
        TypeError, match=r'^linear: a LogisticRegression cannot be exported to ONNX: use linear="auto"$'
    ):
        stack.to_onnx(tmp_path / "stack.onnx")
    assert list(tmp_path.iterdir()) == []
    stack.weights_[3] = 0.0
    assert_same(stack, X, tmp_path)
