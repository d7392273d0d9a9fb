"""Reports: what does not fit is one sentence."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from aucforest.inspection import compare_criteria
from aucforest.report import report
from tests.estimators.data import make_table, small_forest

X, Y = make_table(n_rows=500, missing=0.0, seed=3)
TRAIN, TEST = slice(0, 300), slice(300, 500)
QUICK = {"n_bootstrap": 20, "n_repeats": 1, "random_state": 0}
FITTED = small_forest().fit(X[TRAIN], Y[TRAIN])
COMPARISON = compare_criteria(X, Y, cv=2, metrics=["roc_auc"], n_estimators=2, verbose=0, random_state=0)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "sentence"),
    [
        ((FITTED,), {}, ValueError, "the report of a model needs X_test and y_test"),
        (("model", X, Y), {}, TypeError, "report needs a fitted classifier or a CriteriaComparison, but got a str"),
        ((LogisticRegression(), X, Y), {}, NotFittedError, "not fitted yet"),
        ((FITTED, X, Y[:9]), {}, ValueError, "^X_test has 500 rows, but y_test has 9$"),
        ((FITTED, X[:, :3], Y), {}, ValueError, "^the model cannot read X_test: X has 3 features.*expecting 5"),
        ((FITTED, X[:5], np.zeros(5)), {}, ValueError, "^y_test must have rows of at least two classes.*class 0$"),
        ((FITTED, X, Y + 1), {}, ValueError, "^y_test has the label 2, which is none of the 2 classes of the model$"),
        ((FITTED, X, np.where(Y, np.nan, 0.0)), {}, ValueError, "^y_test has a missing value"),
        ((FITTED, X, Y), {"sample_weight": [1.0]}, ValueError, "^sample_weight has 1 samples, but y_test has 500$"),
        ((FITTED, X, Y), {"sample_weight": np.zeros(500)}, ValueError, "none with weight$"),
        ((FITTED, X, Y), {"X_train": X}, ValueError, "^the training data are X_train and y_train: give both or none$"),
        ((FITTED, X, Y), {"X_train": X, "y_train": Y[:9]}, ValueError, "^X_train has 500 rows, but y_train has 9$"),
        ((FITTED, X, Y), {"X_train": X[TEST], "y_train": Y[TEST]}, ValueError, "must be the training"),
        ((FITTED, X, Y), {"cost": (1, 3)}, ValueError, "^cost must be a 2 x 2.*pass .* instead of"),
        ((FITTED, X, Y), {"n_bootstrap": 1}, ValueError, "^n_bootstrap must be an integer >= 2, got 1$"),
        ((FITTED, X, Y), {"n_repeats": -1}, ValueError, "^n_repeats must be an integer >= 0, got -1$"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_sentence(arguments, options, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        report(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_a_column_that_is_not_there_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = small_forest().fit(frame[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match=r"^X_test lacks the column 'd', which the model was fitted to$"):
        report(model, frame[TEST].rename(columns={"d": "x"}), Y[TEST])
    with pytest.raises(ValueError, match=r"^the model cannot read X_test: ") as caught:
        report(model, frame[TEST][list("edcba")], Y[TEST])
    assert "\n" not in str(caught.value)


def test_a_comparison_takes_no_rows():
    with pytest.raises(ValueError, match=r"^the report of a comparison takes no rows"):
        report(COMPARISON, X, Y)


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_one_sentence(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"^a report needs {module}: pip install aucforest\[report\]$"):
        report(FITTED, X[TEST], Y[TEST], **QUICK)


def test_nothing_half_written(tmp_path):
    page = report(COMPARISON)
    with pytest.raises(OSError, match="nowhere"):
        page.save(tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []
