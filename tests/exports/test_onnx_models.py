"""Predictions of exported stacks, and of models with target rates or with more categories than codes."""

import copy

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression

from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier
from tests.estimators.data import make_table, small_forest
from tests.estimators.rated import make_interaction, make_rated
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
    with pytest.raises(TypeError, match=r"^linear: a LogisticRegression cannot be exported to ONNX: use linear="):
        stack.to_onnx(tmp_path / "stack.onnx")
    assert list(tmp_path.iterdir()) == []
    stack.weights_[3] = 0.0
    assert_same(stack, X, tmp_path)


def make_many(n_rows=2000):
    """Return codes of 600 categories, a number and labels; the rare categories have an effect, too."""
    random = np.random.default_rng(0)
    code = random.integers(0, 600, n_rows)
    X = np.column_stack((code, random.normal(size=n_rows)))
    return X, (np.where(code % 2, 1.0, -1.0) + (code > 300) + random.logistic(size=n_rows) > 0).astype(int)


@pytest.fixture(scope="module", params=[2, 3])
def rated(request):
    X, y = make_rated(n_classes=request.param)
    return AUCForestClassifier(12, random_state=0, max_depth=6).fit(X, y), X


def test_encoded_tables_contain_rates(rated):
    forest, X = rated
    assert forest.target_rates_ is not None
    encoded = forest.encode(X)
    assert encoded.columns.tolist() == forest.split_features_.tolist()
    rates = encoded.iloc[:, 3:].to_numpy()
    table, classes = forest.target_rates_.tables[0], forest.target_rates_.classes
    totals = table.totals[X["merchant"].cat.codes]
    towards = forest.target_rates_.frequencies[classes]
    expected = (totals[:, classes] + table.smoothing * towards) / (totals.sum(axis=1)[:, None] + table.smoothing)
    np.testing.assert_allclose(rates, expected, rtol=1e-14)
    strings = X.astype({"merchant": str, "kind": str})
    for other in (pl.from_pandas(strings), pa.Table.from_pandas(strings, preserve_index=False)):
        made = forest.encode(other)
        assert type(made) is type(other)
        names = made.columns if isinstance(made, pl.DataFrame) else made.column_names
        assert names == forest.split_features_.tolist()
        np.testing.assert_array_equal(np.asarray(made), encoded.to_numpy())
    assert forest.encode(X, dtype="float32").dtypes.unique().tolist() == [np.float32]


def test_encoded_matrices_contain_rates():
    X, y = make_many()
    forest = AUCForestClassifier(12, random_state=0, max_depth=6, categorical_features=[0]).fit(X, y)
    rows = np.array([[3.0, 0.0], [9999.0, 0.0], [np.nan, 0.0]])
    encoded = forest.encode(rows)
    assert encoded.shape == (3, 3)
    assert np.isnan(encoded[1:, 0]).all()
    # Unknown and missing categories have the frequency of all samples.
    np.testing.assert_allclose(encoded[1:, 2], y.mean())
    assert encoded[0, 2] != encoded[1, 2]


def test_forests_with_rates_predict_the_same(rated, tmp_path):
    forest, X = rated
    rows = X.copy()
    rows["merchant"] = rows["merchant"].astype(object)
    rows.loc[:20, "merchant"] = None
    rows.loc[21:40, "merchant"] = "never seen"
    for model in (forest, forest[forest.encodings_.index("rates")]):
        assert_same(model, rows, tmp_path)
        # scikit-learn rounds values to float32.
        exported, narrow = model.to_sklearn(), model.encode(rows).astype(np.float32)
        known = model._predict_valid(narrow.to_numpy(np.float64))
        np.testing.assert_allclose(exported.predict_proba(narrow), known, rtol=0, atol=1e-12)


def test_models_with_interactions_predict_the_same(tmp_path):
    X, y = make_interaction()
    forest = AUCForestClassifier(12, random_state=0, max_depth=6).fit(X, y)
    assert "interactions" in forest.encodings_
    stack = AUCStackingClassifier(small_forest(40, max_depth=4)).fit(X, y)
    stack.weights_[:] = 0.5  # all members count
    assert stack.members_["linear"].interactions
    for model in (forest, stack):
        assert_same(model, X, tmp_path)


def test_additive_models_with_interactions_predict_the_same(tmp_path):
    """With categories and numbers, of which some are missing or infinite."""
    X, y = make_interaction()
    night = X["night"].to_numpy(np.float64)
    X["night"] = night + np.random.default_rng(0).normal(0.0, 0.1, len(X))
    late = (night * np.random.default_rng(1).integers(1, 3, len(X))).astype(int)
    X["evening"] = pd.Categorical(np.array(["no", "yes", "late"])[late])
    stack = AUCStackingClassifier(small_forest(40, max_depth=4)).fit(X, y)
    n_edges = {table.other: len(table.edges) for table in stack.members_["linear"].interactions if table.feature == 0}
    assert n_edges[1] > 0
    assert n_edges[3] == 0
    stack.weights_ = np.array([0.0, 0.0, 0.0, 1.0])
    X.loc[:20, "night"], X.loc[20:25, "night"], X.loc[25:30, "night"] = np.nan, np.inf, -np.inf
    X.loc[10:40, "merchant"], X.loc[30:60, "evening"] = np.nan, None
    assert_same(stack, X, tmp_path)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stacks_with_rates_predict_the_same(n_classes, tmp_path):
    X, y = make_rated(n_classes=n_classes)
    stack = AUCStackingClassifier(AUCForestClassifier(20, max_depth=5), random_state=0).fit(X, y)
    stack.weights_[:] = 0.5  # all members count
    for name in ("residual", "boosted"):
        assert stack.target_rates_ is stack.members_[name].target_rates_ is not None
    assert stack.split_features_.tolist() == stack.members_["forest"].split_features_.tolist()
    assert stack.encode(X).columns.tolist() == stack.split_features_.tolist()
    assert_same(stack, X, tmp_path)


@pytest.mark.parametrize("estimator", ["forest", "tree", "stack"])
def test_models_of_more_categories_than_codes_predict_the_same(estimator, tmp_path):
    X, y = make_many()
    params = {"max_depth": 6, "random_state": 0, "categorical_features": [0], "categorical_encoding": "sets"}
    forest = AUCForestClassifier(4, **params)
    tree = AUCTreeClassifier(random_state=0, max_depth=6, categorical_features=[0])
    stack = AUCStackingClassifier(forest.set_params(n_estimators=20), random_state=0)
    model = {"forest": forest, "tree": tree, "stack": stack}[estimator].fit(X, y)
    encoded = model.encode(X)
    assert encoded.shape == X.shape
    if estimator == "stack":
        model.weights_ = np.ones(4)
    assert len(np.unique(encoded[:, 0])) > 500
    for rows in (encoded, np.where(np.arange(len(X))[:, None] % 5, encoded, np.nan)):
        model.to_onnx(tmp_path / "model.onnx")
        _, proba = run_onnx(tmp_path / "model.onnx", rows)
        np.testing.assert_allclose(proba, model._predict_valid(rows), rtol=0, atol=1e-6)
        if estimator == "tree":
            narrow = rows.astype(np.float32)
            expected = model._predict_valid(narrow.astype(np.float64))
            np.testing.assert_allclose(model.to_sklearn().predict_proba(narrow), expected, rtol=0, atol=1e-12)
    # The rarest categories go to the same side.
    rare = np.column_stack((np.arange(254, len(model.categories_[0])), np.zeros(len(model.categories_[0]) - 254)))
    if estimator != "stack":
        assert np.ptp(model._predict_valid(rare), axis=0).max() == 0
