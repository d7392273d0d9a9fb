"""X in every form that `predict_proba` takes gives the results of the same array, in every public function."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from aucforest import AUCTreeClassifier, LinearAUCClassifier
from aucforest.inspection import (
    OOBCurveDisplay,
    ThresholdCurveDisplay,
    compare_criteria,
    explain,
    oob_permutation_importance,
)
from aucforest.metrics import GainsDisplay, RocCurveDisplay
from aucforest.monitoring import CBPE, Chunks
from tests.estimators.data import small_forest

pyplot = pytest.importorskip("matplotlib.pyplot")

RANDOM = np.random.default_rng(0)
X = np.where(RANDOM.random((120, 4)) < 0.6, np.round(RANDOM.normal(size=(120, 4)), 2), 0.0)
Y = (X[:, 0] + X[:, 1] > 0.3).astype(int)
NAMES = [f"feature_{j}" for j in range(4)]


@cache
def fitted_forest():
    return small_forest(20, oob_score=True).fit(X, Y)


@cache
def fitted_tree():
    return AUCTreeClassifier(random_state=0).fit(X, Y)


class ArrayLike:
    """An object that is an array to numpy alone."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype=dtype)


# Matrices differ from arrays in operators and in the shape of sums, whatever the format.
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
SPARSE = {form: lambda X, form=form: sp.csr_array(X).asformat(form) for form in FORMATS} | {"matrix": sp.csr_matrix}
DENSE = {
    "list of lists": np.ndarray.tolist,
    "tuple of arrays": tuple,
    "objects": lambda X: X.astype(object),
    "masked": np.ma.masked_array,
    "array-like": ArrayLike,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T))),
}
FORMS = {**SPARSE, **DENSE}


def encoded(X):
    found = fitted_forest().encode(X)
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def compared(X):
    how = {"cv": 2, "metrics": ["roc_auc"], "n_estimators": 2, "random_state": 0, "verbose": 0}
    return compare_criteria(X, Y, **how).folds["roc_auc"]


def shift(X):
    whole = Chunks.by_number(1)  # without limits of shifts, for which each chunk takes a domain classifier
    monitor = CBPE.from_forest(fitted_forest(), Y, X, metrics=["roc_auc"], chunks=whole)
    (found,) = monitor.estimate(fitted_forest().predict_proba(X), X=X, chunks=whole).shifts.values()
    return found[:5]


CALLS = {
    "fit": lambda X: small_forest(3).fit(X, Y).predict_proba(X),
    "apply": lambda X: fitted_forest().apply(X),
    "decision_path": lambda X: fitted_forest().decision_path(X)[0].toarray(),
    "predict": lambda X: fitted_forest().predict(X),
    "encode": encoded,
    "score": lambda X: fitted_forest().score(X, Y),
    "set_threshold": lambda X: small_forest(9).fit(X, Y).set_threshold("gmean", X, Y).threshold_,
    "tree": lambda X: AUCTreeClassifier(random_state=0).fit(X, Y).predict_proba(X),
    "tree.apply": lambda X: fitted_tree().apply(X),
    "tree.decision_path": lambda X: fitted_tree().decision_path(X).toarray(),
    "explain": lambda X: explain(fitted_forest(), X).values,
    "oob_permutation_importance": lambda X: (
        oob_permutation_importance(fitted_forest(), X, Y, n_repeats=1, random_state=0).importances
    ),
    "OOBCurveDisplay": lambda X: OOBCurveDisplay.from_estimator(fitted_forest(), X, Y).scores,
    "ThresholdCurveDisplay": lambda X: ThresholdCurveDisplay.from_estimator(fitted_forest(), X, Y).curves["F1"],
    "RocCurveDisplay": lambda X: (
        RocCurveDisplay.from_estimator(fitted_forest(), X, Y, band=None).lines_[0].get_xydata()
    ),
    "GainsDisplay": lambda X: GainsDisplay.from_estimator(fitted_forest(), X, Y).lines_[0].get_xydata(),
    "compare_criteria": compared,
    "CBPE": shift,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:.*standard errors are NaN", "ignore:.*out-of-bag", "ignore:X (has|does not have)")
@pytest.mark.filterwarnings("ignore:there are no alert limits", "ignore:Constructing a DIA matrix")
def test_every_form_gives_the_same(name):
    call = CALLS[name]
    expected = call(X)
    for form, make in FORMS.items():
        np.testing.assert_array_equal(call(make(X)), expected, err_msg=form)
        pyplot.close("all")


def test_rows_of_text_and_numbers_keep_their_types():
    rows = [["ash" if row[0] > 0 else "elm", *row[1:].tolist()] for row in X]
    options = {"categorical_features": [0], "cv": 2, "metrics": ["roc_auc"], "n_estimators": 2, "random_state": 0}
    frame = pd.DataFrame(rows)
    found, expected = (compare_criteria(table, Y, verbose=0, **options) for table in (rows, frame))
    np.testing.assert_array_equal(found.folds["roc_auc"], expected.folds["roc_auc"])


def test_string_views():
    """pyarrow cannot take rows of them."""
    words = pa.array(np.where(X[:, 0] > 0, "ash", "elm").tolist(), pa.string_view())
    frame = pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([words]))), "b": X[:, 1]})
    expected = compared(pd.DataFrame({"a": words.to_pylist(), "b": X[:, 1]}))
    for table in (pa.table({"a": words, "b": X[:, 1]}), frame):
        np.testing.assert_array_equal(compared(table), expected)


def test_masked_values_are_missing():
    mask = RANDOM.random(X.shape) < 0.3
    masked, expected = np.ma.masked_array(X, mask), np.where(mask, np.nan, X)
    forest = small_forest(9).fit(expected, Y)
    same = small_forest(9).fit(masked, Y)
    for model in (forest, same):
        np.testing.assert_array_equal(model.predict_proba(masked), forest.predict_proba(expected))
    np.testing.assert_array_equal(CALLS["compare_criteria"](masked), CALLS["compare_criteria"](expected))
    whole = np.ma.masked_array((10 * X).astype(int), mask)
    np.testing.assert_array_equal(
        forest.predict_proba(whole), forest.predict_proba(np.where(mask, np.nan, (10 * X).astype(int)))
    )
    text = np.ma.masked_array(np.where(X > 0, "ash", "elm").astype(object), mask)
    options = {"categorical_features": [0, 1, 2, 3]}
    np.testing.assert_array_equal(
        small_forest(5, **options).fit(text, Y).predict_proba(text),
        small_forest(5, **options).fit(text.filled(None), Y).predict_proba(text.filled(None)),
    )
    linear = LinearAUCClassifier(tol=1.0)
    with pytest.raises(ValueError, match=r"^Input X contains NaN"):
        linear.fit(masked, Y)
    with pytest.raises(ValueError, match=r"^Input X contains NaN"):
        linear.fit(X, Y).decision_function(masked)


def test_masked_labels_and_weights_are_refused():
    gaps = np.arange(120) == 5
    with pytest.raises((TypeError, ValueError), match=r"^Input y contains NaN"):
        small_forest(2).fit(X, np.ma.masked_array(Y, gaps))
    with pytest.raises(ValueError, match=r"^Input sample_weight contains NaN"):
        small_forest(2).fit(X, Y, np.ma.masked_array(np.ones(120), gaps))
    with pytest.raises(ValueError, match=r"^y_score must be finite, but value 5 is nan$"):
        RocCurveDisplay.from_predictions(Y, np.ma.masked_array(X[:, 0], gaps))
    with pytest.raises(ValueError, match=r"missing value"):
        RocCurveDisplay.from_predictions(np.ma.masked_array(Y, gaps), X[:, 0])


@pytest.mark.parametrize(
    ("form", "index", "value"),
    [
        ("csr", "indices", 10**6), ("csr", "indices", -1), ("csr", "indptr", 10**6), ("csc", "indices", 120),
        ("coo", "row", 10**6), ("coo", "col", -7), ("bsr", "indices", 10**6),
    ],
)  # fmt: skip
def test_an_index_outside_of_a_sparse_matrix_is_refused(form, index, value):
    """scipy would read or write memory that is not its own, and end the process."""
    matrix = sp.csr_matrix(X).asformat(form)
    getattr(matrix, index)[5] = value
    for name in ("fit", "predict", "compare_criteria", "oob_permutation_importance", "CBPE"):
        with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix, build it again: .*(ind(ex|ices)|indptr)"):
            CALLS[name](matrix)


def test_the_matrix_of_the_caller_is_kept():
    for form in ("coo", "csr", "bsr"):
        matrix = sp.csr_matrix(X).asformat(form)
        before = matrix.copy()
        fitted_forest().predict_proba(matrix)
        assert (matrix != before).nnz == 0
        np.testing.assert_array_equal(matrix.data, before.data)
