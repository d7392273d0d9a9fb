"""Forests and trees that are exported to other libraries predict the same, after fits to all kinds of data."""

import pickle
from functools import cache

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import shap
import treelite
from sklearn.exceptions import NotFittedError

from aucforest.exports.sklearn import CalibratedForestClassifier
from tests.estimators.data import make_table, small_forest, small_tree


def make_frame(n_rows=400, n_codes=9):
    """Return a frame with categories, also of two and of too many for codes of their own, and labels."""
    X, _ = make_table(n_rows, 2, missing=0.1)
    rng = np.random.default_rng(1)
    shop, town = rng.integers(0, n_codes, n_rows), rng.integers(0, 12, n_rows)
    frame = pd.DataFrame({"a": X[:, 0], "shop": shop.astype(str), "b": X[:, 1], "town": pd.Categorical(town)})
    frame["both"] = np.where(rng.random(n_rows) < 0.5, "x", "y")
    frame.loc[rng.random(n_rows) < 0.1, "shop"] = None
    score = np.nan_to_num(X[:, 0]) + (shop % 3 == 0) - (town % 4 == 1) + rng.normal(size=n_rows)
    return frame, (score >= np.median(score)).astype(int)


X, Y = make_table()
X3, Y3 = make_table(400, n_classes=3)
MODELS = {
    "two classes": (small_forest(), X, Y), "missing values": (small_forest(), *make_table(missing=0.3)),
    "names of columns": (small_forest(), pd.DataFrame(X).add_prefix("x"), Y),
    "categories": (small_forest(), *make_frame()),
    "more categories than codes": (small_forest(1, max_depth=3), *make_frame(900, 300)),
    "balanced and tuned": (small_forest(20, sampling="balanced", threshold="gmean"), X3, np.maximum(Y3 - 1, 0)),
    "costs": (small_forest(threshold={"cost": [[0, 1, 2], [4, 0, 3], [9, 5, 0]]}), *make_table(n_classes=3)),
    "tuned": (small_forest(20, threshold="youden"), X, Y),
    "tuned for the first class": (small_forest(20, threshold="youden", pos_label=0), X, Y),
    "a tree": (small_tree(), *make_table(missing=0.1)),
}  # fmt: skip


@cache
def model_and_rows(name):
    """Return a model, and rows for it and for its exports; some values equal thresholds, and some are missing."""
    model, X, y = MODELS[name]
    model.fit(X, y)
    if isinstance(X, pd.DataFrame) and "shop" in X:
        X = X.copy()
        X.loc[:2, "shop"], X.loc[0, "both"], X.loc[3] = "never seen", "z", np.nan
        return model, X, model.encode(X).to_numpy()
    thresholds = np.concatenate([tree.threshold for tree in model.trees_]).astype(np.float32)
    at = np.random.default_rng(0).choice(thresholds[np.isfinite(thresholds)], size=(100, X.shape[1]))
    rows = np.vstack((np.asarray(X, np.float32), at, np.nextafter(at, np.float32(9)), np.full_like(at[:1], np.nan)))
    return model, pd.DataFrame(rows, columns=X.columns) if isinstance(X, pd.DataFrame) else rows, rows


@pytest.mark.parametrize("name", MODELS)
def test_scikit_learn_treelite_and_onnxruntime_predict_the_same(name, tmp_path):
    model, X, rows = model_and_rows(name)
    exported = model.to_sklearn()
    table = pd.DataFrame(rows, columns=model.split_features_) if hasattr(model, "feature_names_in_") else rows
    proba = exported.predict_proba(table)
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(exported.predict(table), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_array_equal(exported.classes_, model.classes_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(exported)).predict_proba(table), proba)
    forest = exported.estimator if isinstance(exported, CalibratedForestClassifier) else exported
    if hasattr(forest, "estimators_"):
        predicted = treelite.gtil.predict(treelite.sklearn.import_model(forest), rows)
        expected = forest.predict_proba(table)
        # treelite sums in float32 if rows are float32.
        np.testing.assert_allclose(predicted.reshape(expected.shape), expected, rtol=0, atol=1e-6)
    model.to_onnx(tmp_path / "model.onnx")
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert [output.name for output in session.get_outputs()] == ["label", "probabilities"]
    label, proba = session.run(None, {"X": rows.astype(np.float64)})
    expected = model.predict_proba(X)
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-6)
    # Without a threshold, two classes may have the same probability.
    tied = np.diff(np.sort(expected, axis=1)[:, -2:], axis=1)[:, 0] < 1e-6
    np.testing.assert_array_equal(label[~tied], model.predict(X)[~tied])


def test_values_that_equal_a_threshold_go_to_its_left_as_in_the_model(tmp_path):
    """Values with one decimal place are often midway between two others, and float32 represents hardly any of them."""
    rng = np.random.default_rng(0)
    X = rng.integers(100, 1200, size=(600, 4)) / 10
    y = (X[:, 0] + rng.normal(scale=20, size=600) > 90).astype(int)
    model = small_forest(20).fit(X[:300], y[:300])
    expected, rounded = model.predict_proba(X), model.encode(X, dtype="float32")
    is_moved = abs(model.predict_proba(rounded) - expected).max(axis=1) > 1e-6
    assert 3 < is_moved.sum() < 200
    model.to_onnx(tmp_path / "model.onnx")
    (proba,) = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(["probabilities"], {"X": model.encode(X)})
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-6)
    exported = model.to_sklearn()
    trees = treelite.sklearn.import_model(exported.estimator)
    proba = exported.calibration.apply(treelite.gtil.predict(trees, model.encode(X))[:, 0])
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-12)
    # scikit-learn rounds by itself
    np.testing.assert_allclose(exported.predict_proba(X), model.predict_proba(rounded), rtol=0, atol=1e-12)


def test_codes_are_indices_of_categories_and_keep_names_index_and_type_of_a_table():
    model, X, encoded = model_and_rows("categories")
    shops = model.categories_[1].tolist()
    expected = [shops.index(shop) if shop in shops else np.nan for shop in X["shop"]]
    np.testing.assert_array_equal(encoded[:, 1], expected)
    np.testing.assert_array_equal(encoded[:, 0], X["a"])
    with pytest.raises(ValueError, match=r"^dtype must be 'float32' or 'float64', got None$"):
        model.encode(X, dtype=None)
    X, y = make_frame(100)
    X.index += 1000
    model = small_forest().fit(X, y)
    encoded = model.encode(X)
    assert encoded.index.equals(X.index)
    assert encoded.columns.equals(X.columns)
    assert set(encoded.dtypes) == {np.dtype(np.float64)}
    assert set(model.encode(X, dtype=np.float32).dtypes) == {np.dtype(np.float32)}
    for table in (pl.from_pandas(X.astype({"town": str})), pa.Table.from_pandas(X, preserve_index=False)):
        model = small_forest().fit(table, y)
        other = model.encode(table)
        assert isinstance(other, type(table))
        np.testing.assert_array_equal(other["shop"].to_numpy(), encoded["shop"])
    np.testing.assert_array_equal(model.to_sklearn().predict_proba(model.encode(X)), model.predict_proba(table))


def test_tools_that_read_trees_need_the_forest_before_calibration():
    model, _, rows = model_and_rows("balanced and tuned")
    exported = model.to_sklearn()
    with pytest.raises(treelite.TreeliteError, match="Not supported model type"):
        treelite.sklearn.import_model(exported)
    with pytest.raises(Exception, match="not yet supported by TreeExplainer"):
        shap.TreeExplainer(exported)
    explainer = shap.TreeExplainer(exported.estimator)
    total = explainer.shap_values(rows[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, exported.estimator.predict_proba(rows[:5]), atol=1e-9)


@pytest.mark.parametrize(("method", "arguments"), [("to_sklearn", []), ("to_onnx", ["forest.onnx"]), ("encode", [[]])])
def test_what_is_not_fitted_is_not_exported(method, arguments):
    with pytest.raises(NotFittedError):
        getattr(small_forest(), method)(*arguments)
