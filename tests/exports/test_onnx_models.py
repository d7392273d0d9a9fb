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

from aucforest import AUCStackingClassifier, AUCTreeClassifier
from tests.estimators.data import make_table, small_forest
from tests.estimators.rated import make_interaction, make_rated
from tests.estimators.stacks import DATA, fitted
from tests.exports.data import run_onnx


def run(stack, X, folder, dtype="float64"):
    """Return labels and probabilities by the ONNX file of a stack."""
    stack.to_onnx(folder / "stack.onnx", dtype=dtype)
    encoded = stack.encode(X, dtype=dtype)
    return run_onnx(folder / "stack.onnx", encoded.toarray() if issparse(encoded) else encoded)


def assert_same(stack, X, folder, dtype="float64", weights=None):
    """Compare predictions, perhaps with other weights, and return the types of the nodes of the graph."""
    if weights is not None:
        stack = copy.copy(stack)
        stack.weights_ = np.array(weights, dtype=np.float64)
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
@pytest.mark.parametrize("coef", [
    [0, 0, 0, 0], [2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0, 3], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1],
    [5, 9, 4, 2], [0, 0, 30, 0],  # which multiplies rounding errors by 30
])  # fmt: skip
def test_members_of_weight_0_are_left_out(name, coef, tmp_path):
    kinds = assert_same(*fitted(name), tmp_path, weights=coef)
    of_forest, of_residual, of_boosted, of_linear = (weight > 0 for weight in coef)
    has_forest = of_forest or of_residual or not (of_boosted or of_linear)
    assert kinds.count("TreeEnsembleRegressor") == has_forest + of_residual + of_boosted
    assert ("Clip" in kinds) == of_linear


def test_coefficients_of_many_categories_are_looked_up(tmp_path):
    """Also those of rare, unseen and missing categories."""
    rng = np.random.default_rng(0)
    x, code = rng.normal(size=900).astype("float32").astype(float), rng.integers(600, size=900)
    X = pd.DataFrame({"x": x, "id": pd.Categorical(code.astype(str)), "kind": list("abc") * 300})
    y = x + 2.0 * rng.normal(size=600)[code] + rng.normal(size=900) > 0.0
    stack = AUCStackingClassifier(small_forest(20), random_state=0).fit(X, y)
    stack.weights_ = np.array([0.0, 0.0, 0.0, 1.0])
    X["id"] = pd.Categorical(["other", None, *X["id"][2:]])
    assert stack.encode(X)["id"].max() > 254
    for dtype in ("float32", "float64"):
        assert assert_same(stack, X, tmp_path, dtype).count("LabelEncoder") == 2
        assert (tmp_path / "stack.onnx").stat().st_size < 30_000


def test_infinite_and_missing_values(tmp_path):
    values = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 0.0])
    assert_same(fitted("missing values")[0], np.tile(values[:, None], 5), tmp_path)


@pytest.mark.parametrize("params", [{"linear": None}, {"residual": False}, {"boosted": False}])
def test_stacks_without_a_member_or_calibration(params, tmp_path):
    X, y = make_table()
    stack = AUCStackingClassifier(small_forest(30, calibration=None), **params).fit(X, y)
    assert_same(stack, X, tmp_path, weights=[1.0, 0.7, 0.4])


def test_boosted_trees_without_a_step(tmp_path):
    """The classes are equally frequent in each fold, and X is constant."""
    X, y = np.zeros((200, 2)), np.arange(200) % 2
    stack = AUCStackingClassifier(small_forest(20)).fit(X, y)
    assert all(np.all(tree.prediction == 0.5) for tree in stack.members_["boosted"].trees_)
    assert_same(stack, X, tmp_path, weights=np.ones(4))


@pytest.mark.parametrize("coef", [None, [0, 0, 20, 0]], ids=["all members", "large scores of boosted trees"])
def test_samples_at_the_threshold_are_in_the_second_class(coef, tmp_path):
    stack, X = fitted("two classes")
    stack = copy.copy(stack)
    stack.weights_ = stack.weights_ if coef is None else np.array(coef, dtype=np.float64)
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


def make_many():
    """Return codes of 600 categories, a number and labels; the rare categories have an effect, too."""
    random = np.random.default_rng(0)
    code, number = random.integers(0, 600, 2000), random.normal(size=2000)
    return np.column_stack((code, number)), code % 2 + 0.5 * (code > 300) + random.logistic(0.0, 0.5, 2000) > 0.5


@pytest.fixture(scope="module", params=[2, 3])
def rated(request):
    X, y = make_rated(n_classes=request.param)
    return small_forest(12, max_depth=6).fit(X, y), X, y


def test_encoded_tables_have_columns_of_rates(rated):
    forest, X, _ = rated
    assert forest.target_rates_ is not None
    encoded, names = forest.encode(X), forest.split_features_.tolist()
    assert encoded.columns.tolist() == names
    of_polars, of_arrow = pl.from_pandas(X), pa.table(X)
    for found, made in ((forest.encode(of_polars), pl.DataFrame), (forest.encode(of_arrow), pa.table)):
        assert found.equals(made(dict(zip(names, encoded.to_numpy().T))))
    assert forest.encode(X, dtype="float32").dtypes.unique().tolist() == [np.float32]


def test_encoded_matrices_contain_rates():
    X, y = make_many()
    forest = small_forest(12, max_depth=6, categorical_features=[0]).fit(X, y)
    encoded = forest.encode(np.array([[3.0, 0.0], [9999.0, 0.0], [np.nan, 0.0]]))
    # Unknown and missing categories have the frequency of all samples.
    np.testing.assert_allclose(encoded[1:], [[np.nan, 0.0, y.mean()]] * 2)
    assert encoded[0, 2] != encoded[1, 2]


def test_forests_with_rates_predict_the_same(rated, tmp_path):
    forest, X, _ = rated
    rows = X.assign(merchant=[None] * 20 + ["never seen"] * 20 + X["merchant"].tolist()[40:])
    for model in (forest, forest[forest.encodings_.index("rates")]):
        assert_same(model, rows, tmp_path)
        # scikit-learn rounds values to float32.
        exported, narrow = model.to_sklearn(), model.encode(rows).astype(np.float32)
        expected = model._predict_valid(narrow.to_numpy(np.float64))
        np.testing.assert_allclose(exported.predict_proba(narrow), expected, rtol=0, atol=1e-12)


def test_forests_and_additive_models_with_interactions_predict_the_same(tmp_path):
    """The additive model has categories and numbers, of which some are missing or infinite."""
    X, y = make_interaction()
    forest = small_forest(12, max_depth=6).fit(X, y)
    assert "interactions" in forest.encodings_
    assert_same(forest, X, tmp_path)
    late = X["night"] * np.random.default_rng(1).integers(1, 3, len(X))
    X["night"] += np.random.default_rng(0).normal(0.0, 0.1, len(X))
    X["evening"] = pd.Categorical(np.array(["no", "yes", "late"])[late])
    stack = AUCStackingClassifier(small_forest(40, max_depth=4)).fit(X, y)
    n_edges = {table.other: len(table.edges) for table in stack.members_["linear"].interactions if table.feature == 0}
    assert n_edges[1] > 0 == n_edges[3]
    X.loc[:20, "night"], X.loc[20:25, "night"], X.loc[25:30, "night"] = np.nan, np.inf, -np.inf
    X.loc[10:40, "merchant"], X.loc[30:60, "evening"] = np.nan, None
    assert_same(stack, X, tmp_path, weights=[0, 0, 0, 1])


def test_stacks_with_rates_predict_the_same(rated, tmp_path):
    _, X, y = rated
    stack = AUCStackingClassifier(small_forest(20, max_depth=5)).fit(X, y)
    for name in ("residual", "boosted"):
        assert stack.target_rates_ is stack.members_[name].target_rates_ is not None
    for names in (stack.split_features_, stack.encode(X).columns):
        assert names.tolist() == stack.members_["forest"].split_features_.tolist()
    assert_same(stack, X, tmp_path, weights=np.full(4, 0.5))


OPTIONS = {"max_depth": 6, "categorical_features": [0], "random_state": 0}
FOREST = small_forest(20, categorical_encoding="sets", **OPTIONS)


@pytest.mark.parametrize("model", [FOREST, AUCTreeClassifier(**OPTIONS), AUCStackingClassifier(FOREST)], ids=str)
def test_models_of_more_categories_than_codes_predict_the_same(model, tmp_path):
    X, y = make_many()
    model.fit(X, y)
    if hasattr(model, "members_"):
        model.weights_ = np.ones(4)
    rows = np.where(np.arange(len(X))[:, None] % 5, X, np.nan)
    assert_same(model, rows, tmp_path)
    encoded = model.encode(rows, dtype="float32")
    assert len(np.unique(encoded[:, 0])) > 500
    if isinstance(model, AUCTreeClassifier):
        expected = model._predict_valid(encoded.astype(np.float64))
        np.testing.assert_allclose(model.to_sklearn().predict_proba(encoded), expected, rtol=0, atol=1e-12)
