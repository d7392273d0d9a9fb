"""All public functions give the same results for all types of X that `predict_proba` accepts."""

from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from aucforest import AUCForestClassifier, AUCTreeClassifier, LinearAUCClassifier
from aucforest.inspection import (
    OOBCurveDisplay,
    ThresholdCurveDisplay,
    compare_criteria,
    explain,
    oob_permutation_importance,
)
from aucforest.metrics import RocCurveDisplay
from aucforest.monitoring import CBPE, Chunks
from aucforest.report import report
from tests.estimators.data import small_forest

pyplot = pytest.importorskip("matplotlib.pyplot")

RANDOM = np.random.default_rng(0)
X = np.where(RANDOM.random((120, 4)) < 0.6, np.round(RANDOM.normal(size=(120, 4)), 2), 0.0)
Y, NAMES = (X[:, 0] + X[:, 1] > 0.3).astype(int), [f"feature_{j}" for j in range(4)]


@cache
def fitted_forest():
    return small_forest(20, oob_score=True).fit(X, Y)


class ArrayLike:
    """An object that only numpy can convert to an array."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype=dtype)


# Sparse matrices differ from sparse arrays in operators and in the shape of sums.
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
SPARSE = {form: lambda X, form=form: sp.csr_array(X).asformat(form) for form in FORMATS} | {"matrix": sp.csr_matrix}
DENSE = {
    "list of lists": np.ndarray.tolist, "tuple of arrays": tuple, "objects": lambda X: X.astype(object),
    "masked": np.ma.masked_array, "array-like": ArrayLike, "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES), "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T))),
}  # fmt: skip
FORMS = {**SPARSE, **DENSE}


def importance(X):
    return oob_permutation_importance(fitted_forest(), X, Y, n_repeats=1, random_state=0).importances


def encoded(X):
    found = fitted_forest().encode(X)
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def compared(X, categorical="from_dtype"):
    how = {"cv": 2, "metrics": ["roc_auc"], "n_estimators": 2, "random_state": 0, "verbose": 0}
    return compare_criteria(X, Y, categorical_features=categorical, **how).folds["roc_auc"]


def shift(X):
    whole = Chunks.by_number(1)  # one chunk, because limits of shifts need a domain classifier for each
    monitor = CBPE.from_forest(fitted_forest(), Y, X, metrics=["roc_auc"], chunks=whole)
    (found,) = monitor.estimate(fitted_forest().predict_proba(X), X=X, chunks=whole).shifts.values()
    return found[:5]


CALLS = {
    "fit": lambda X: small_forest(3).fit(X, Y).predict_proba(X), "apply": lambda X: fitted_forest().apply(X),
    "decision_path": lambda X: fitted_forest().decision_path(X)[0].toarray(),
    "predict": lambda X: fitted_forest().predict(X), "encode": encoded,
    "set_threshold": lambda X: small_forest(9).fit(X, Y).set_threshold("gmean", X, Y).threshold_,
    "tree": lambda X: AUCTreeClassifier(random_state=0).fit(X, Y).predict_proba(X),
    "explain": lambda X: explain(fitted_forest(), X).values, "oob_permutation_importance": importance,
    "OOBCurveDisplay": lambda X: OOBCurveDisplay.from_estimator(fitted_forest(), X, Y).scores,
    "ThresholdCurveDisplay": lambda X: ThresholdCurveDisplay.from_estimator(fitted_forest(), X, Y).curves["F1"],
    "RocCurveDisplay": lambda X: RocCurveDisplay.from_estimator(fitted_forest(), X, Y, band=None).lines_[0].get_data(),
    "compare_criteria": compared, "CBPE": shift,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:.*standard errors are NaN", "ignore:.*out-of-bag", "ignore:X (has|does not have)")
@pytest.mark.filterwarnings("ignore:there are no alert limits", "ignore:Constructing a DIA matrix")
def test_every_form_gives_the_same(name):
    expected = CALLS[name](X)
    for form, make in FORMS.items():
        given, before = make(X), make(X)
        np.testing.assert_array_equal(CALLS[name](given), expected, err_msg=form)
        if form in ("coo", "csr", "bsr"):  # the caller's matrix must not change
            assert (given != before).nnz == 0
            np.testing.assert_array_equal(given.data, before.data)
        pyplot.close("all")


def test_rows_with_text_in_every_form():
    """pyarrow cannot take rows of string views."""
    words = pa.array(np.where(X[:, 0] > 0, "ash", "elm").tolist(), pa.string_view())
    frame = pd.DataFrame({"a": words.to_pylist(), "b": X[:, 1]})
    expected, views = compared(frame), pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([words])))
    for table in (pa.table({"a": words, "b": X[:, 1]}), frame.assign(a=views)):
        np.testing.assert_array_equal(compared(table), expected)
    np.testing.assert_array_equal(compared(list(zip(*frame.to_dict("list").values())), [0]), expected)


def test_masked_values_are_missing():
    mask = RANDOM.random(X.shape) < 0.3
    masked, expected = np.ma.masked_array(X, mask), np.where(mask, np.nan, X)
    forest, same = (small_forest(9).fit(rows, Y) for rows in (expected, masked))
    whole = (10 * X).astype(int)
    text = np.ma.masked_array(np.where(X > 0, "ash", "elm").astype(object), mask)
    of_text = small_forest(5, categorical_features=[0, 1, 2, 3])
    for call, rows, filled in (
        (forest.predict_proba, masked, expected), (same.predict_proba, masked, expected), (compared, masked, expected),
        (forest.predict_proba, np.ma.masked_array(whole, mask), np.where(mask, np.nan, whole)),
        (forest.predict_proba, np.where(mask, pd.NA, X), expected),
        (lambda rows: clone(forest).fit(rows, Y).predict_proba(rows), np.where(mask, pd.NA, X), expected),
        (lambda rows: clone(of_text).fit(rows, Y).predict_proba(rows), text, np.where(mask, None, text.data)),
    ):  # fmt: skip
        np.testing.assert_array_equal(call(rows), call(filled))
    np.testing.assert_array_equal(same.predict_proba(X), forest.predict_proba(X))
    linear = LinearAUCClassifier(tol=1.0).fit(X, Y)
    for call in (linear.decision_function, lambda rows: linear.fit(rows, Y)):
        with pytest.raises(ValueError, match=r"^Input X contains NaN"):
            call(masked)


def test_masked_labels_and_weights_are_refused():
    labels, weights, scores = (np.ma.masked_array(each, np.arange(120) == 5) for each in (Y, np.ones(120), X[:, 0]))
    cost, draw = np.ma.masked_array(np.ones((120, 2, 2)), False), RocCurveDisplay.from_predictions
    cost[5] = np.ma.masked
    forest = small_forest(9).fit(X, Y)
    for call, given, sentence in (
        (forest.fit, (X, labels), "^Input y contains NaN"), (forest.fit, (X, Y, weights), "weight contains NaN"),
        (forest.fit, (X, Y, None, labels), "^groups has a missing value in row 5"),
        (AUCForestClassifier(threshold="cost").fit, (X, Y, None, None, cost), "finite numbers"),
        (partial(forest.set_threshold, "f1"), (X, Y, weights), "weight contains NaN"),
        (partial(forest.set_threshold, "f1", oob=False), (X, labels), "^y has a missing value"),
        (lambda y, s: CBPE().fit(y_true=y, y_score=s), (Y, scores), "^y_score has 1 and"),
        (report, (forest, X, labels), "^y_test has a missing value"),
        (draw, (Y, scores), "^y_score must be finite, but value 5 is nan$"), (draw, (labels, X[:, 0]), "missing value"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=sentence):
            call(*given)


@pytest.mark.parametrize(("form", "index", "value"), [
    ("csr", "indices", 10**6), ("csr", "indices", -1), ("csr", "indptr", 10**6), ("csc", "indices", 120),
    ("coo", "row", 10**6), ("coo", "col", -7), ("bsr", "indices", 10**6),
])  # fmt: skip
def test_an_index_outside_of_a_sparse_matrix_is_refused(form, index, value):
    """scipy would access memory outside of the arrays, and the process could crash."""
    matrix = sp.csr_matrix(X).asformat(form)
    getattr(matrix, index)[5] = value
    for name in ("fit", "predict", "compare_criteria", "oob_permutation_importance", "CBPE"):
        with pytest.raises(ValueError, match=r"^X is a damaged sparse matrix, build it again: .*(ind(ex|ices)|indptr)"):
            CALLS[name](matrix)
