"""Rows that were trained on are found."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from aucforest import AUCStackingClassifier
from aucforest.report import report
from aucforest.report.checks import Training, check_training, trained_on
from aucforest.report.rows import score_rows
from tests.estimators.data import make_table, small_forest

X, Y = make_table(n_rows=500, missing=0.1, seed=3)
X = np.column_stack([X, np.arange(500) + 2.0**53])
MODEL = LogisticRegression().fit(np.nan_to_num(X), Y)
QUICK = {"n_bootstrap": 5, "n_repeats": 0, "random_state": 0}


def check(test, train, X=X):
    rows = score_rows(small_forest(10).fit(X[train], Y[train]), X[test], Y[test], None)
    return check_training(rows, Training(X[train], Y[train], Y[train], None, None))


def test_rows_of_the_training_are_counted():
    text, warning = check(slice(260, 500), slice(0, 300))
    assert text.startswith("40 of the 240 rows of this report (16.7 %) have the same label and values as")
    assert warning is not None
    assert warning.startswith(text)
    assert check(slice(300, 500), slice(0, 300)) == (
        "No row of this report has the same label and values as a training row.",
        None,
    )


def test_duplicates_that_are_as_frequent_in_the_training_do_not_alarm():
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 6, size=(500, 2)).astype(float)
    text, warning = check(slice(300, 500), slice(0, 300), X=coarse)
    assert text.startswith("188 of the 200 rows of this report (94.0 %)")
    assert "among the training rows themselves 9" in text
    assert warning is None


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_compared_by_name_whatever_their_types(library):
    frames = pytest.importorskip(library)
    names = ["a", "b", None, "c", "d"] * 40
    ids = [2**62 + row for row in range(200)]
    train = frames.DataFrame({"id": ids, "name": names, "count": [float(row) for row in range(200)]})
    test = frames.DataFrame(
        {"name": names[:50], "count": list(range(50)), "id": [2**62 + 2 * row for row in range(50)]}
    )
    y = np.arange(200) % 2
    rows = score_rows(small_forest(5).fit(train, y), test[["id", "name", "count"]], y[:50], None)
    text, _ = check_training(rows, Training(train, y, y, None, None))
    assert text.startswith("1 of the 50 rows")  # float64 would call 50 of the identifiers equal


def test_a_forest_is_compared_with_its_out_of_bag_rows():
    forest = small_forest(60, oob_score=True, shrinkage=0).fit(X[:300], Y[:300])
    rows = {name: score_rows(forest, X[part], Y[part], None) for name, part in
            [("trained on", slice(0, 300)), ("new", slice(300, 500))]}  # fmt: skip
    text, warning = check_training(rows["trained on"], None)
    assert "was not checked" in text
    assert warning is not None
    assert warning.endswith("Check that the model was not trained on these rows.")
    assert check_training(rows["new"], None) == (text, None)


def test_a_stack_is_compared_with_its_own_out_of_bag_rows():
    stack = AUCStackingClassifier(small_forest(40), oob_score=True).fit(X[:200], Y[:200])
    proba = stack.predict_proba(X)
    known = trained_on(stack, X[:200], Y[:200], None, proba[:200])
    assert known is not None
    assert known.endswith(f"the ROC AUC of out-of-bag rows is {stack.oob_score_:.4f}")
    assert trained_on(stack, X[200:], Y[200:], None, proba[200:]) is None
    part = trained_on(stack, X[:150], Y[:150], None, proba[:150])
    assert part is not None
    assert f"exceeds that of the out-of-bag rows, {stack.oob_score_:.3f}, by more than chance explains" in part


def test_the_warning_stands_on_the_page():
    x = np.nan_to_num(X)
    page = report(MODEL, x[200:], Y[200:], X_train=x, y_train=Y, **QUICK).html
    assert page.count("<strong>Warning:</strong> 300 of the 300 rows of this report") == 1
