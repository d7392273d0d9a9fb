"""Reports: what they say is what scikit-learn computes, and what does not fit is one sentence."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    recall_score,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucforest.inspection import report
from tests.estimators.data import make_table, small_forest

X, Y = make_table(n_rows=500, missing=0.0, seed=3)

TRAIN, TEST = slice(0, 300), slice(300, 500)
QUICK = {"n_bootstrap": 20, "n_repeats": 1, "random_state": 0}


class Page(HTMLParser):
    """The tables of a page by caption, its headings, its pictures' texts and the explorer's data."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.headings, self.alts, self.ids, self.tags = {}, [], [], [], []
        self.explorer, self._text, self._rows = None, "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._text = ""
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "svg":
            self.alts.append(attributes["aria-label"])
        elif tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        text = self._text.strip()
        if tag == "caption":
            self._caption = text
        elif tag in ("td", "th"):
            self._rows[-1].append(text)
        elif tag == "table":
            self.tables[self._caption] = self._rows
        elif tag in ("h1", "h2"):
            self.headings.append(text)
        elif tag == "script" and text.startswith("{"):
            self.explorer = json.loads(text)
        self._text = ""


def figures(page, caption):
    """Return the rows of a table by their heads."""
    return {row[0]: row[1:] for row in page.tables[caption][1:]}


SCORES = "Scores on these rows, beside a model that only knows how frequent the classes are"


def printed(value):
    """Return a figure of the page as a number."""
    return float(value.replace(",", "").replace("−", "-"))


@pytest.mark.parametrize(
    "model",
    [small_forest(threshold="gmean"), RandomForestClassifier(20, random_state=0),
     make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["aucforest", "forest", "pipeline"],
)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_the_scores_are_those_of_scikit_learn(model, weighted):
    model.fit(X[TRAIN], Y[TRAIN])
    weight = 1.0 + np.arange(200) % 3 if weighted else None
    page = Page(report(model, X[TEST], Y[TEST], sample_weight=weight, **QUICK).html)
    y, p, found = Y[TEST], model.predict_proba(X[TEST])[:, 1], figures(page, SCORES)
    share = np.average(y, weights=weight)
    recalls = recall_score(y, model.predict(X[TEST]), average=None, sample_weight=weight)
    expected = {
        "ROC AUC": (roc_auc_score(y, p, sample_weight=weight), 0.5),
        "average precision": (average_precision_score(y, p, sample_weight=weight), share),
        "Brier score": (brier_score_loss(y, p, sample_weight=weight), share * (1 - share)),
        "log loss": (log_loss(y, p, sample_weight=weight), log_loss(y, np.full(200, share), sample_weight=weight)),
        "G-mean": (np.sqrt(np.prod(recalls)), 0.0),
    }
    assert list(found) == list(expected)
    for name, (value, no_skill) in expected.items():
        assert printed(found[name][0]) == pytest.approx(value, abs=5e-4)
        assert printed(found[name][2]) == pytest.approx(no_skill, abs=5e-4)
        low, high = map(printed, found[name][1].split(" to "))
        assert low <= value <= high


def test_the_explorer_counts_as_scikit_learn_does():
    model = small_forest(threshold="gmean").fit(X[TRAIN], Y[TRAIN])
    data = Page(report(model, X[TEST], Y[TEST], cost=(1, 7), **QUICK).html).explorer
    scores, y = model.predict_proba(X[TEST])[:, 1], Y[TEST]
    assert data["thresholds"][-1] is None
    for threshold, tp, fp in zip(data["thresholds"][:-1], data["tp"], data["fp"]):
        (_, false), (_, true) = confusion_matrix(y, scores >= threshold)
        assert (tp, fp) == (true, false)
    own = confusion_matrix(y, model.predict(X[TEST]))
    assert [data["fp"][data["own"]], data["tp"][data["own"]]] == own[:, 1].tolist()
    assert data["cost"] == [1.0, 7.0]
