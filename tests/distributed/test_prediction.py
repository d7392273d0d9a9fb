"""Lazy predictions equal those of the forest in memory."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from aucforest import AUCForestClassifier
from aucforest.distributed import _prediction as _dask_prediction
from aucforest.distributed._prediction import predict_lazily

GENERATOR = np.random.default_rng(1)
X = GENERATOR.normal(size=(500, 4))
Y = np.where(X[:, 0] + GENERATOR.normal(size=500) > 0.5, "yes", "no")
FRAME = pd.DataFrame(X, columns=list("abcd"), index=np.arange(500) * 2)
METHODS = ["predict", "predict_proba", "predict_log_proba", "apply", "encode"]


@pytest.fixture(scope="module")
def forest():
    return AUCForestClassifier(10, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def named_forest():
    return AUCForestClassifier(10, random_state=0).fit(FRAME, Y)


@pytest.mark.parametrize("method", METHODS)
def test_predictions_of_arrays(forest, method):
    predicted, known = predict_lazily(forest, da.from_array(X, chunks=(150, 2)), method), getattr(forest, method)(X)
    assert predicted.chunks[0] == (150, 150, 150, 50)
    assert (predicted.dtype, predicted.shape) == (known.dtype, known.shape)
    np.testing.assert_array_equal(predicted.compute(), known)


@pytest.mark.parametrize("method", METHODS)
def test_predictions_of_frames_with_an_empty_partition(named_forest, method):
    parts = dd.from_pandas(FRAME, npartitions=4)
    parts = dd.concat([parts, dd.from_pandas(FRAME[:0] + 0.0, npartitions=1)], interleave_partitions=True)
    predicted, known = predict_lazily(named_forest, parts, method), getattr(named_forest, method)(FRAME)
    found = predicted.compute()
    np.testing.assert_array_equal(found, known)
    if method == "predict":
        assert predicted.divisions == parts.divisions
        assert found.index.equals(FRAME.index)
    if method == "encode":
        pd.testing.assert_frame_equal(found, known)


def test_predictions_of_unknown_chunks(forest):
    rows = da.from_array(X, chunks=(100, 4))
    predicted = predict_lazily(forest, rows[rows[:, 0] > 0], "predict_proba")
    np.testing.assert_array_equal(predicted.compute(), forest.predict_proba(X[X[:, 0] > 0]))


def test_the_forest_is_one_task(forest, monkeypatch):
    shared = []
    monkeypatch.setattr(_dask_prediction, "identity", lambda forest: shared.append(forest) or forest)
    predict_lazily(forest, da.from_array(X, chunks=(50, 4)), "predict_proba").compute(scheduler="sync")
    assert len(shared) == 1


def test_other_features_are_refused_before_computation(forest, named_forest):
    parts = dd.from_pandas(FRAME, npartitions=2)
    for model, rows, error, sentence in (
        (forest, da.zeros((4, 3)), ValueError, "X has 3 features, but AUCForestClassifier is expecting 4"),
        (named_forest, parts["a"], TypeError, r"X must be a Dask DataFrame .*, but is a dask Series"),
        (named_forest, parts.rename(columns={"b": "a"}), ValueError, "X has 2 columns named 'a'"),
        (named_forest, parts.rename(columns={"a": "e"}), ValueError, "feature names"),
    ):
        with pytest.raises(error, match=sentence):
            predict_lazily(model, rows, "predict")
