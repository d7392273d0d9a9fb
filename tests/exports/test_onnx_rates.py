"""Exports of models with target rates, and with sets of more than the 254 categories that have codes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest import AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier
from tests.estimators.data import small_forest
from tests.estimators.rated import make_interaction, make_rated
from tests.exports.data import run_onnx


def assert_onnx_equals(model, encoded, proba, folder):
    """Compare the probabilities by the ONNX file of a model with its own."""
    model.to_onnx(folder / "model.onnx")
    np.testing.assert_allclose(run_onnx(folder / "model.onnx", encoded)[1], proba, rtol=0, atol=1e-6)


def make_many(n_rows=2000):
    """Return codes of 600 categories, a number and labels; the rare categories have an effect, too."""
    random = np.random.default_rng(0)
    code = random.integers(0, 600, n_rows)
    X = np.column_stack((code, random.normal(size=n_rows)))
    return X, (np.where(code % 2, 1.0, -1.0) + (code > 300) + random.logistic(size=n_rows) > 0).astype(int)


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = make_rated(n_classes=request.param)
    return AUCForestClassifier(12, random_state=0, max_depth=6).fit(X, y), X


def test_encoded_tables_contain_rates(fitted):
    forest, X = fitted
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


def test_forests_predict_the_same(fitted, tmp_path):
    forest, X = fitted
    rows = X.copy()
    rows["merchant"] = rows["merchant"].astype(object)
    rows.loc[:20, "merchant"] = None
    rows.loc[21:40, "merchant"] = "never seen"
    for model in (forest, forest[forest.encodings_.index("rates")]):
        assert_onnx_equals(model, model.encode(rows), model.predict_proba(rows), tmp_path)
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
        assert_onnx_equals(model, model.encode(X), model.predict_proba(X), tmp_path)


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
    assert_onnx_equals(stack, stack.encode(X), stack.predict_proba(X), tmp_path)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stacks_predict_the_same(n_classes, tmp_path):
    X, y = make_rated(n_classes=n_classes)
    stack = AUCStackingClassifier(AUCForestClassifier(20, max_depth=5), random_state=0).fit(X, y)
    stack.weights_[:] = 0.5  # all members count
    for name in ("residual", "boosted"):
        assert stack.target_rates_ is stack.members_[name].target_rates_ is not None
    assert stack.split_features_.tolist() == stack.members_["forest"].split_features_.tolist()
    encoded = stack.encode(X)
    assert encoded.columns.tolist() == stack.split_features_.tolist()
    assert_onnx_equals(stack, encoded, stack.predict_proba(X), tmp_path)


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
        assert_onnx_equals(model, rows, model._predict_valid(rows), tmp_path)
        if estimator == "tree":
            narrow = rows.astype(np.float32)
            expected = model._predict_valid(narrow.astype(np.float64))
            np.testing.assert_allclose(model.to_sklearn().predict_proba(narrow), expected, rtol=0, atol=1e-12)
    # The rarest categories go to the same side.
    rare = np.column_stack((np.arange(254, len(model.categories_[0])), np.zeros(len(model.categories_[0]) - 254)))
    if estimator != "stack":
        assert np.ptp(model._predict_valid(rare), axis=0).max() == 0
