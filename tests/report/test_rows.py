"""Reports take X in every form that the model's `predict_proba` takes."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from aucforest.report import report
from aucforest.report.rows import score_rows
from tests.columns.test_rows import FORMS, SPARSE, X, Y, fitted_forest
from tests.estimators.data import small_forest

QUICK = {"n_bootstrap": 2, "n_repeats": 1, "random_state": 0, "title": "t"}


def sections(X):
    page = report(fitted_forest(), X, Y, X_train=X, y_train=Y, **QUICK).html
    return dict(re.findall(r'<section id="(.*?)"(.*?)</section>', page, re.DOTALL))


@pytest.fixture(scope="module")
def of_arrays():
    return sections(X)


# Tests of the command line make pages on frames, too.
OTHERS = [pytest.param(form, marks=pytest.mark.slow) for form in FORMS if form not in ("bsr", "matrix")]


@pytest.mark.parametrize("form", ["bsr", *OTHERS])
@pytest.mark.filterwarnings("ignore:.*out-of-bag", "ignore:X (has|does not have)", "ignore:Constructing a DIA")
def test_every_form_gives_the_same_page(form, of_arrays):
    page, expected = sections(FORMS[form](X)), dict(of_arrays)
    if form in SPARSE:  # which have no columns to describe, to compare and to replace
        assert "they have no columns to compare" in page["use"]
        del expected["dependence"], expected["drift"]
        expected |= {name: page[name] for name in ("data", "use")}
    assert page == expected


def test_text_beside_numbers_in_a_list_of_lists():
    rows = [["ash" if row[0] > 0 else "elm", *row[1:].tolist()] for row in X]
    forest = small_forest(9, categorical_features=[0], bootstrap=False).fit(rows, Y)
    options = {"X_train": rows, "y_train": Y, "by": pa.table({"tree": [row[0] for row in rows]})}
    page = report(forest, rows, Y, **options, **QUICK).html
    assert "on 120 rows of this report, decreases" in page  # there are no out-of-bag rows
    assert re.search(r"<th scope=\"row\">feature_0</th>\s*<td class=\"l\">category</td>", page)
    assert re.search(r"feature_0 = (ash|elm) \(", page)
    assert "Performance by tree" in page


def test_pipelines_take_texts_and_lists_of_words():
    words = np.where(Y, "good fine day", "bad grim night").tolist()
    tokens = [text.split()[: 2 + k % 2] for k, text in enumerate(words)]
    for rows, vectorizer in ((words, CountVectorizer()), (tokens, CountVectorizer(analyzer=list))):
        model = make_pipeline(vectorizer, LogisticRegression()).fit(rows, Y)
        assert score_rows(model, rows, Y, None).scores[:, 1].tolist() == model.predict_proba(rows)[:, 1].tolist()


def test_scores_of_another_shape_are_refused(monkeypatch):
    model = LogisticRegression().fit(X, Y)
    monkeypatch.setattr(model, "predict_proba", lambda X: np.ones((len(X), 3)), raising=False)
    with pytest.raises(ValueError, match=r"its .* returns the shape \(120, 3\), but rows and classes are"):
        score_rows(model, X, Y, None)


@pytest.mark.parametrize(("labels", "name", "classes", "rows_of"), [
    ([0, 1], "cancelled", ("cancelled = 0", "cancelled = 1"), "with cancelled = 1"),
    ([False, True], "fraud", ("fraud = False", "fraud = True"), "with fraud = True"),
    (["no", "yes"], "cancelled", ("no", "yes"), "of class yes"), ([0, 1], None, ("0", "1"), "of class 1"),
])  # fmt: skip
def test_numbers_are_named_after_the_target(labels, name, classes, rows_of):
    y = pd.Series(np.array(labels)[Y], name=name)
    rows = score_rows(small_forest().fit(X, y), X, y, None)
    assert rows.classes == classes
    assert rows.row_phrases[1] == rows_of
