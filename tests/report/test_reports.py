"""Reports: what they say is what scikit-learn computes, and they are well-made pages."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucforest import AUCForestClassifier, __version__
from aucforest.inspection import compare_criteria, oob_permutation_importance
from aucforest.metrics import auc_confidence_interval, hand_till_score
from aucforest.report import report
from aucforest.report.data import column_table, describe_columns
from aucforest.report.explorer import find_thresholds
from aucforest.report.importances import held_out_importance
from aucforest.report.rows import score_rows
from tests.estimators.data import make_table, small_forest

X, Y = make_table(n_rows=500, missing=0.0, seed=3)

X3, Y3 = make_table(n_rows=500, n_classes=3, missing=0.0, seed=1)
TRAIN, TEST = slice(0, 300), slice(300, 500)
QUICK = {"n_bootstrap": 20, "n_repeats": 1, "random_state": 0}
BARE = QUICK | {"n_repeats": 0}  # without importances


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


@pytest.fixture(scope="module")
def model():
    return small_forest(threshold="gmean").fit(X[TRAIN], Y[TRAIN])


def report_on(model):
    return report(model, X[TEST], Y[TEST], cost=[[0, 1], [7, 0]], title='a "b"', **QUICK)


@pytest.fixture(scope="module")
def made(model):
    """Return a report on a forest: drawing one takes most of the time of these tests."""
    return report_on(model)


@pytest.fixture(scope="module")
def three_classes():
    """Return a forest of three classes and its report, training rows included."""
    model = small_forest(20).fit(X3[TRAIN], Y3[TRAIN])
    return model, report(model, X3[TEST], Y3[TEST], X_train=X3[TRAIN], y_train=Y3[TRAIN], **QUICK)


@pytest.fixture(scope="module")
def with_training_rows():
    """Return a forest of two classes and its report, training rows included."""
    model = small_forest(30).fit(X[TRAIN], Y[TRAIN])
    return model, report(model, X[TEST], Y[TEST], X_train=X[TRAIN], y_train=Y[TRAIN], **QUICK)


SCORES = "Metrics on these rows, beside a model that only knows the class frequencies"


def printed(value):
    """Return a figure of the page as a number."""
    return float(value.replace(",", "").replace("−", "-"))


@pytest.mark.parametrize(
    ("model", "weighted"),
    [(small_forest(threshold="gmean"), True), (RandomForestClassifier(20, random_state=0), False),
     (make_pipeline(StandardScaler(), LogisticRegression()), True)],
    ids=["aucforest", "forest", "pipeline"],
)  # fmt: skip
def test_the_scores_are_those_of_scikit_learn(model, weighted):
    model.fit(X[TRAIN], Y[TRAIN])
    weight = 1.0 + np.arange(200) % 3 if weighted else None
    page = Page(report(model, X[TEST], Y[TEST], sample_weight=weight, **BARE).html)
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


def test_the_explorer_counts_as_scikit_learn_does(model, made):
    data = Page(made.html).explorer
    scores, y = model.predict_proba(X[TEST])[:, 1], Y[TEST]
    assert data["thresholds"][-1] is None
    for threshold, tp, fp in zip(data["thresholds"][:-1], data["tp"], data["fp"]):
        (_, false), (_, true) = confusion_matrix(y, scores >= threshold)
        assert (tp, fp) == (true, false)
    own = confusion_matrix(y, model.predict(X[TEST]))
    assert [data["fp"][data["own"]], data["tp"][data["own"]]] == own[:, 1].tolist()
    assert data["cost"] == [1.0, 7.0]


def test_the_interval_of_the_auc(model, made):
    interval = auc_confidence_interval(Y[TEST], model.predict_proba(X[TEST])[:, 1])
    shown = figures(Page(made.html), SCORES)["ROC AUC"]
    assert shown[:2] == [f"{interval[0]:.3f}", f"{interval[1]:.3f} to {interval[2]:.3f}"]


def test_more_classes_are_judged_each_against_the_rest(three_classes):
    model, page = three_classes[0], Page(three_classes[1].html)
    proba, y = model.predict_proba(X3[TEST]), Y3[TEST]
    found = figures(page, SCORES)
    assert printed(found["ROC AUC"][0]) == pytest.approx(hand_till_score(y, proba), abs=5e-4)
    assert printed(found["log loss"][0]) == pytest.approx(log_loss(y, proba), abs=5e-4)
    recalls = recall_score(y, model.predict(X3[TEST]), average=None)
    assert printed(found["G-mean"][0]) == pytest.approx(np.prod(recalls) ** (1 / 3), abs=5e-4)
    for k, cells in enumerate(page.tables["Each class against all others"][1:]):
        assert printed(cells[2]) == pytest.approx(roc_auc_score(y == k, proba[:, k]), abs=5e-4)
        assert printed(cells[5]) == pytest.approx(recalls[k], abs=5e-4)
    matrix = [list(map(printed, cells[1:])) for cells in page.tables[MATRIX][1:]]
    assert matrix == confusion_matrix(y, model.predict(X3[TEST])).tolist()
    assert page.explorer is None


MATRIX = "Confusion matrix of the labels that the model predicts"


def test_a_class_without_test_rows_is_left_out():
    model = small_forest().fit(X3[TRAIN], Y3[TRAIN])
    rows = np.flatnonzero(Y3[TEST] != 1)
    page = Page(report(model, X3[TEST][rows], Y3[TEST][rows], **BARE).html)
    assert [cells[0] for cells in page.tables["Each class against all others"]] == ["class", "0", "2"]


def test_importances_are_those_out_of_bag_where_training_rows_are_given(with_training_rows):
    model, page = with_training_rows[0], Page(with_training_rows[1].html)
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    expected = oob_permutation_importance(model, X[TRAIN], Y[TRAIN], n_repeats=1, random_state=seed)
    found = figures(page, DECREASES)
    for name, fall in zip(expected.feature_names, expected.importances_mean):
        assert printed(found[name][0]) == pytest.approx(fall, abs=5e-4)
    assert "<strong>Warning:</strong>" not in with_training_rows[1].html
    assert "Out-of-bag ROC AUC by the number of trees, with 95 % intervals." in page.alts
    assert [cells[1] for cells in page.tables["Classes of the training rows"][1:]] == [
        str(n) for n in np.bincount(Y[TRAIN])
    ]


DECREASES = "Decrease of the ROC AUC by column"


def test_equal_seeds_give_equal_pages_and_nothing_is_printed(model, made, capfd):
    assert report_on(model).html == made.html
    assert capfd.readouterr() == ("", "")


def test_a_model_of_decision_values_has_no_calibration():
    model = RidgeClassifier().fit(X[TRAIN], Y[TRAIN])
    page = Page(report(model, X[TEST], Y[TEST], **BARE).html)
    assert list(figures(page, SCORES)) == ["ROC AUC", "average precision", "G-mean"]
    assert "Calibration" not in page.headings
    own = page.explorer["own"]
    assert page.explorer["thresholds"][own] >= 0.0
    called = confusion_matrix(Y[TEST], model.predict(X[TEST]))[:, 1]
    assert [page.explorer["fp"][own], page.explorer["tp"][own]] == called.tolist()


def explorer_of(model, X, y):
    """Return the data of the explorer without its page."""
    return find_thresholds(score_rows(model, X, y, None)).as_json(np.array([[0, 1], [1, 0]]))


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.9, 1.0])
def test_the_threshold_of_a_model_is_found(threshold):
    model = FixedThresholdClassifier(LogisticRegression(), threshold=threshold).fit(X[TRAIN], Y[TRAIN])
    found, called = explorer_of(model, X[TEST], Y[TEST]), confusion_matrix(Y[TEST], model.predict(X[TEST]))[:, 1]
    assert [found["fp"][found["own"]], found["tp"][found["own"]]] == called.tolist()


def test_labels_that_follow_no_threshold_are_said():
    class Odd(LogisticRegression):
        def predict(self, X):
            return np.arange(len(X)) % 2

    html = report(Odd().fit(X[TRAIN], Y[TRAIN]), X[TEST], Y[TEST], **BARE).html
    assert Page(html).explorer["own"] is None
    assert "follow no single threshold" in html


def test_many_scores_keep_the_model_s_own_cut():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6000, 1)), rng.random(6000) < 0.3
    x[y] += 1.0
    model = LogisticRegression().fit(x, y)
    explorer = explorer_of(model, x, y)
    assert len(explorer["tp"]) <= 600
    scores = model.predict_proba(x)[:, 1]
    for threshold, tp, fp in zip(explorer["thresholds"][:-1], explorer["tp"], explorer["fp"]):
        assert (tp, fp) == (np.sum(y & (scores >= threshold)), np.sum(~y & (scores >= threshold)))
    steps = np.abs(np.diff(explorer["tp"])) / y.sum() + np.abs(np.diff(explorer["fp"])) / np.sum(~y)
    assert steps.max() < 0.02
    cuts = np.append(np.unique(scores), np.inf)
    fp = np.array([np.sum(~y & (scores >= cut)) for cut in cuts])
    fn = np.array([np.sum(y & (scores < cut)) for cut in cuts])
    for cost in [(7, 1), (3, 1), (2, 1), (3, 2), (1, 1), (2, 3), (1, 2), (1, 3), (1, 7)]:
        kept = cost[0] * np.array(explorer["fp"]) + cost[1] * (y.sum() - np.array(explorer["tp"]))
        assert kept.min() == np.min(cost[0] * fp + cost[1] * fn)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_described_and_their_columns_permuted(library):
    frames = pytest.importorskip(library)
    kinds = np.where(X[:, 0] > np.median(X[:, 0]), "big", "small").tolist()
    columns = {"kind": kinds, "<script>alert(1)</script>": X[:, 1].tolist(), "$x_{1$": [None, *X[1:, 2].tolist()]}
    frame = frames.DataFrame(columns)
    model = small_forest(20).fit(frame[:300], Y[TRAIN])
    html = report(model, frame[300:], Y[TEST], **QUICK).html
    page = Page(html)
    assert set(figures(page, DECREASES)) == set(columns)
    described = {cells[0]: cells[1:] for cells in page.tables["The 3 columns"][1:]}
    assert list(described) == list(columns)
    assert described["kind"][0] == "category"
    assert "big (" in described["kind"][3]
    numbers = described["<script>alert(1)</script>"]
    assert numbers[0] == "number"
    assert printed(numbers[2]) == len(set(X[300:, 1]))
    assert printed(numbers[3].split()[0]) == pytest.approx(np.median(X[300:, 1]), rel=5e-3)
    assert "<script>alert" not in html


def test_a_frame_of_numbered_columns_is_described():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, index=np.arange(500) % 7)
    page = Page(report(LogisticRegression().fit(frame[:300], Y[TRAIN]), frame[300:], Y[TEST], **QUICK).html)
    plain = score_rows(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TEST], Y[TEST], None)
    seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
    expected, found = held_out_importance(plain, 1, seed).importances_mean, figures(page, DECREASES)
    assert [printed(found[str(j)][0]) for j in range(5)] == pytest.approx(expected, abs=5e-4)


def test_flags_with_gaps_are_described():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"flag": pd.array([True, None, False] * 50 + [True] * 50, dtype="boolean")})
    (cells,) = column_table(describe_columns(X)).rows
    assert cells == ["flag", "category", "25.0 %", "2", "True (66.7 %), False (33.3 %)"]


@pytest.mark.parametrize("gaps", [False, True])
def test_large_integers_are_told_apart(gaps):
    """float64 holds 63 of these numbers."""
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    numbers = [2**62 + 16 * row for row in range(1000)] * 2 + [None] * gaps
    tables = [
        pd.DataFrame({"id": pd.array(numbers, dtype="Int64")}),
        pd.DataFrame({"id": pd.array(numbers, dtype=pd.ArrowDtype(pa.uint64()))}),
        pl.DataFrame({"id": numbers}),
        pa.table({"id": numbers}),
        np.array(numbers, dtype=object)[:, None],
    ]
    for table in tables if gaps else [*tables, np.array(numbers)[:, None], pd.DataFrame({"id": numbers})]:
        ((_, kind, missing, distinct, _),) = column_table(describe_columns(table)).rows
        assert (kind, distinct) == ("number", "1,000"), type(table)
        assert missing == ("0.050 %" if gaps else "0.0 %")


def test_a_sparse_table_has_no_columns_to_describe():
    page = Page(report(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), csr_array(X[TEST]), Y[TEST], **QUICK).html)
    assert "Feature importance" not in page.headings
    assert list(figures(page, SCORES)) == ["ROC AUC", "average precision", "Brier score", "log loss", "G-mean"]


def test_a_model_without_skill_has_what_no_skill_has():
    model = DummyClassifier().fit(X[TRAIN], Y[TRAIN])
    found = figures(Page(report(model, X[TEST], Y[TEST], **BARE).html), SCORES)
    for name in ("ROC AUC", "average precision", "G-mean"):
        assert found[name][0] == found[name][2]


@pytest.mark.parametrize(("n_positive", "interval"), [(1, "–"), (20, "0.904 to 1")])
def test_the_interval_of_a_perfect_model(n_positive, interval):
    x = np.arange(200.0)[:, None]
    y = x[:, 0] >= 200 - n_positive
    html = report(small_forest(20, shrinkage=0).fit(x, y), x, y, **BARE).html
    assert figures(Page(html), SCORES)["ROC AUC"][:2] == ["1", interval]
    assert (
        f"ROC AUC 1{'' if interval == '–' else f', with 95 % confidence {interval}'}; a model without skill has 0.5"
        in html
    )


@pytest.fixture(scope="module")
def strange():
    """Return the page of rows with missing values, whose classes and title are code."""
    x = X.copy()
    x[300:350, 2] = np.nan
    classes = np.array(["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)> & $x_{$"])
    model = small_forest().fit(x[TRAIN], classes[Y[TRAIN]])
    return report(model, x[TEST], classes[Y[TEST]], title="<i>t</i>", **QUICK).html


def test_missing_values_are_counted(strange):
    page = Page(strange)
    assert [cells[2] for cells in page.tables["The 5 columns"][1:]] == ["0.0 %", "0.0 %", "25.0 %", "0.0 %", "0.0 %"]


def test_names_of_strangers_are_text(strange):
    page = Page(strange)
    assert page.headings[0] == "<i>t</i>"
    assert {tag for tag, _ in page.tags} & {"img", "i"} == set()
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2
    assert strange.count("</script>") == 2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_page_is_well_made(n_classes, with_training_rows, three_classes):
    html = (with_training_rows if n_classes == 2 else three_classes)[1].html
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    targets = re.findall(r'(?:href="|url\()#([^")]+)', html)
    assert set(targets) <= set(page.ids)
    assert all(len(alt) > 20 for alt in page.alts)
    assert [tag for tag, _ in page.tags if tag in ("h1", "main", "nav", "header", "footer")] == [
        "header", "h1", "nav", "main", "footer",
    ]  # fmt: skip
    labelled = {attributes["for"] for tag, attributes in page.tags if tag == "label"}
    assert {attributes["id"] for tag, attributes in page.tags if tag == "input"} == labelled
    assert not re.search(r'(?:src|href)="(?!#|data:)', html)
    assert len(html.encode()) < 1e6


def test_a_comparison_with_a_stack_says_what_it_compares():
    how = {"cv": 2, "metrics": ["roc_auc"], "n_estimators": 25, "verbose": 0, "random_state": 0}
    page = report(compare_criteria(X, Y, criteria=["stack"], **how)).html
    assert "Forests that differ only in the split criterion, and a stack of a forest, on the same 2 folds" in page


def test_a_comparison_is_shown_with_its_tests(tmp_path):
    metrics, criteria = ["roc_auc", "fit_seconds", "brier"], ["auc", "gini"]
    comparison = compare_criteria(
        X, Y, criteria=criteria, cv=3, metrics=metrics, n_estimators=5, verbose=0, random_state=0
    )
    page = report(comparison, title="Criteria")
    page.save(tmp_path / "page.html")
    found = Page((tmp_path / "page.html").read_text())
    assert found.headings == ["Criteria", "At a glance", "Metrics", "Fit time and sizes of trees"]
    assert comparison.verdict() in (tmp_path / "page.html").read_text()
    first = comparison.summary()[0]
    cells = figures(found, "ROC AUC (more is better)")["auc"]
    assert printed(cells[0]) == pytest.approx(first.mean, abs=5e-4)
    assert printed(cells[2]) == pytest.approx(first.difference, abs=5e-4)
    assert cells[4] == first.pvalue_text.removeprefix("p = ").removeprefix("p ")
    assert figures(found, "Brier score (less is better)")["gini"][2:] == ["–", "–", "–"]


def test_criteria_that_are_equal_on_every_fold_have_no_intervals():
    x = np.linspace(-1, 1, 60)[:, None]
    comparison = compare_criteria(
        x, x[:, 0] > 0, criteria=["auc"], cv=3, metrics=["roc_auc"], n_estimators=10, verbose=0, random_state=0
    )
    page = Page(report(comparison).html)
    assert figures(page, "ROC AUC (more is better)") == {"auc": ["1", "–", "0", "–", "1"], "gini": ["1", *"––––"]}


def test_a_notebook_shows_the_page_in_a_frame(made):
    frame, found = HTMLParser(), []
    frame.handle_starttag = lambda tag, attributes: found.append(dict(attributes))
    frame.feed(made._repr_html_())
    assert found[0]["srcdoc"] == made.html
    assert found[0]["title"] == made.title == 'a "b"'
    assert re.fullmatch(r"<Report .* kB>", repr(made))


def test_facts_stand_below_the_title(model, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    pandas = pytest.importorskip("pandas")
    facts = {"Data": "payments of May", "Model": "forest 3"}
    y = pandas.Series(Y[TEST], name="fraud")
    html = report(model, X[TEST], y, facts=facts, intended_use="Ranks <payments>.", **BARE).html
    shown = dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", html))
    assert shown == {
        "Target": "fraud", "Data": "payments of May", "Model": "forest 3", "Rows evaluated": "200",
        "Positive class": "fraud = 1",
        "Positive rows": shown["Positive rows"],
        "Date": "1970-01-02", "Written by": f"aucforest {__version__}",
    }  # fmt: skip
    assert "Intended use: Ranks &lt;payments&gt;." in html


def test_the_summary_says_in_words_what_scikit_learn_counts(model, made):
    p, y = model.predict_proba(X[TEST])[:, 1], Y[TEST]
    lead = re.search('id="summary".*?class="lead">(.*?)</p>', made.html, re.DOTALL)[1]
    top = y[np.argsort(-p, kind="stable")[:20]]
    assert f"than another row in {100 * roc_auc_score(y, p):.1f} % of all such pairs" in lead
    assert f"Of the 10 % of rows with the highest scores, {100 * top.mean():.1f} % are" in lead
    predicted = model.predict(X[TEST])
    assert (
        f"for {100 * predicted.mean():.1f} % of the rows: this is right for {100 * y[predicted == 1].mean():.1f} %"
        in lead
    )
    assert f"finds {100 * recall_score(y, predicted):.1f} % of all rows" in lead


def test_suspicious_columns_are_named(made):
    pandas = pytest.importorskip("pandas")
    rows = np.arange(200)
    columns = {
        "id": 2**62 + 16 * rows, "code": [f"n{row}" for row in rows], "empty": np.full(200, np.nan),
        "constant": ["x"] * 200, "amount": X[TEST][:, 0], "age": rows % 90, "outcome": np.where(Y[TEST], "won", "lost"),
    }  # fmt: skip
    frame = pandas.DataFrame(columns)
    forest = AUCForestClassifier(2, random_state=0).fit(frame, Y[TEST])
    page = unescape(report(forest, frame, Y[TEST], **BARE).html)
    for sentence in (
        "Column 'empty': no values, never used in a split.",
        "Column 'constant': the same value in every row, never used in a split.",
        "Columns 'id', 'code': every value is distinct, as in an identifier.",
        "'outcome' separates the classes alone (ROC AUC 1.0000): is it known at prediction time?",
    ):
        assert sentence in page, sentence
    assert "at prediction time" not in made.html


def test_progress_is_shown(model, capfd):
    report(model, X[TEST], Y[TEST], verbose=1, **BARE)
    assert "report: " in capfd.readouterr().err
