"""Whole reports: importances, facts, and errors of one line."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from aucforest import __version__
from aucforest.inspection import oob_permutation_importance
from aucforest.report import report
from tests.report.pages import BARE, FOREST_OPTIONS, QUICK, TEST, TRAIN, Page, X, Y, figures, printed

FOREST = object()  # stands for the fixture `forest`


@pytest.mark.slow
def test_importances_use_out_of_bag_rows_if_training_rows_are_given(forest, forest_page):
    page, seed = Page(forest_page.html), int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    expected = oob_permutation_importance(forest, X[TRAIN], Y[TRAIN], n_repeats=1, random_state=seed)
    shown = figures(page, "Decrease of the ROC AUC by column")
    for name, fall in zip(expected.feature_names, expected.importances_mean):
        assert printed(shown[name][0]) == pytest.approx(fall, abs=5e-4)
    assert "<strong>Warning:</strong>" not in forest_page.html
    counts = [cells[1] for cells in page.tables["Classes of the training rows"][1:]]
    assert counts == list(map(str, np.bincount(Y[TRAIN])))


def test_equal_seeds_give_equal_pages_with_progress_on_request(forest, forest_page, capfd):
    assert report(forest, X[TEST], Y[TEST], **FOREST_OPTIONS, verbose=1).html == forest_page.html
    assert capfd.readouterr().err.count("report: ") >= 1


def test_sparse_rows_have_no_columns_to_describe():
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    page = Page(report(model, csr_array(X[TEST]), Y[TEST], **QUICK).html)
    assert not {"Feature importance", "Partial dependence"} & set(page.headings)


def test_facts_and_a_target_of_zeros_and_ones(forest, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    facts = {"Data": "payments of May", "Model": "forest 3"}
    options = {"facts": facts, "intended_use": "Ranks <payments>.", "by": {"part": np.arange(200) % 2}}
    html = report(forest, X[TEST], pd.Series(Y[TEST], name="fraud"), **options, **BARE).html
    assert dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", html)) == facts | {
        "Target": "fraud", "Rows evaluated": "200", "Positive class": "fraud = 1",
        "Positive rows": f"{Y[TEST].sum()} (50.5 %)", "Date": "1970-01-02", "Written by": f"aucforest {__version__}",
    }  # fmt: skip
    for text in (
        "Intended use: Ranks &lt;payments&gt;.",
        "<title>AUCForestClassifier: fraud = 1 against fraud = 0</title>",
        "A row with fraud = 1 has a higher score than another row in",
        'class="r">rows with fraud = 1</th>',
        ">of a missed row with fraud = 1</label>",
        "the proportion of all rows with fraud = 1 found among",
        "what it adds to the log odds of fraud = 1",
        "The mean probability of fraud = 1 is",
        "predicted fraud = 0</th>",
    ):
        assert text in html, text
    sentences = re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL)
    assert not re.search(r"(class|of|all|missed|predicts) [01]\b(?! %|\.\d)", sentences)  # a number alone


def test_a_notebook_shows_the_page_in_a_frame(forest_page):
    _, frame = Page(forest_page._repr_html_()).tags[0]
    assert (frame["srcdoc"], frame["title"], forest_page.title) == (forest_page.html, 'a "b"', 'a "b"')
    assert re.fullmatch(r"<Report .* kB>", repr(forest_page))


@pytest.mark.parametrize(("arguments", "options", "error", "sentence"), [
    ((FOREST,), {}, ValueError, "the report of a model needs X_test and y_test"),
    (("model", X, Y), {}, TypeError, "report needs a fitted classifier or a CriteriaComparison, but got a str"),
    ((LogisticRegression(), X, Y), {}, NotFittedError, "not fitted yet"),
    ((FOREST, X, Y[:9]), {}, ValueError, "^X_test has 500 rows, but y_test has 9$"),
    ((FOREST, X[:, :3], Y), {}, ValueError, "^the model cannot read X_test: X has 3 features.*expecting 5"),
    ((FOREST, X[:5], np.zeros(5)), {}, ValueError, "^y_test must have rows of at least two classes.*class 0$"),
    ((FOREST, X, Y + 1), {}, ValueError, "^y_test has the label 2, which is none of the 2 classes of the model$"),
    ((FOREST, X, Y), {"sample_weight": [1.0]}, ValueError, "^sample_weight has 1 samples, but y_test has 500$"),
    ((FOREST, X, Y), {"sample_weight": np.zeros(500)}, ValueError, "none with weight$"),
    ((FOREST, X, Y), {"X_train": X}, ValueError, "^the training data are X_train and y_train: give both or none$"),
    ((FOREST, X, Y), {"X_train": X[TEST], "y_train": Y[TEST]}, ValueError, "must be the training"),
    ((FOREST, X, Y), {"cost": (1, 3)}, ValueError, "^cost must be a 2 x 2.*pass .* instead of"),
    ((FOREST, X, Y), {"n_bootstrap": 1}, ValueError, "^n_bootstrap must be an integer >= 2, got 1$"),
    ((FOREST, X, Y), {"n_repeats": -1}, ValueError, "^n_repeats must be an integer >= 0, got -1$"),
])  # fmt: skip
def test_wrong_models_and_rows_are_errors_of_one_line(forest, arguments, options, error, sentence):
    with pytest.raises(error, match=rf"\A[^\n]*{sentence}[^\n]*\Z"):
        report(*(forest if argument is FOREST else argument for argument in arguments), **options)


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_one_sentence(forest, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"^a report needs {module}: pip install aucforest\[report\]$"):
        report(forest, X[TEST], Y[TEST], **QUICK)
