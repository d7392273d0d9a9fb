"""Reports on several models, with paired intervals by brute force, and on split criteria."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.svm import LinearSVC

from aucforest.inspection import compare_criteria
from aucforest.inspection.comparison import ComparisonRow
from aucforest.metrics import compare_auc
from aucforest.report import report
from aucforest.report.html import report_on_models
from aucforest.report.model_comparison import compare_models, distinct_names, join_columns, verdict
from aucforest.report.rows import ScoredRows, score_rows
from tests.estimators.data import small_forest
from tests.reference import metrics
from tests.reference import paired_bootstrap as brute
from tests.report.pages import BARE, TEST, TRAIN, X3, Y3, Page, X, Y, figures, printed

N_SAMPLES, SEED = 30, 5
compare = partial(compare_criteria, verbose=0, random_state=0)


def three_models(n_rows, n_classes, weight=None):
    """Return the scores of three models for the same rows: good ones, worse ones and bad ones, some of them tied."""
    rng, names = np.random.default_rng(0), tuple(map(str, range(n_classes)))
    labels, rows, models = np.arange(n_rows) % n_classes, np.zeros((n_rows, 1)), {}
    for name, skill in (("first", 2.0), ("second", 1.5), ("third", 0.2)):
        odds = np.exp(skill * (labels[:, None] == np.arange(n_classes)) + rng.normal(size=(n_rows, n_classes)))
        proba = np.round(odds / odds.sum(axis=1, keepdims=True), 1).clip(0.05, None)
        proba = proba / proba.sum(axis=1, keepdims=True)
        predicted = proba.argmax(axis=1)
        models[name] = ScoredRows(SimpleNamespace(), rows, names, names, labels, predicted, proba, True, weight)
    return models


TWO_CLASSES = {
    "average_precision": lambda y, p, w: metrics.average_precision([code == 1 for code in y], [q[1] for q in p], w),
    "precision_at_0.1": lambda y, p, w: np.divide(*brute.top_hits(y, p, w, 0.1)),
    "recall_at_0.1": lambda y, p, w: brute.top_hits(y, p, w, 0.1)[0] / np.dot(y, w),
    "log_loss": lambda y, p, w: log_loss(y, p, sample_weight=w),
    "brier": lambda y, p, w: brier_score_loss(y, np.asarray(p)[:, 1], sample_weight=w),
}
THREE_CLASSES = {
    "roc_auc": lambda y, p, w: metrics.hand_till(y, p, 3, w),
    "log_loss": TWO_CLASSES["log_loss"],
    "brier": lambda y, p, w: np.average(np.sum((np.asarray(p) - np.eye(3)[y]) ** 2, axis=1), weights=w),
}


@pytest.mark.parametrize(("n_rows", "n_classes", "is_weighted"), [(40, 2, False), (40, 2, True), (24, 3, False)])
def test_paired_intervals_are_those_of_brute_force(n_rows, n_classes, is_weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n_rows) if is_weighted else None
    models, of_metrics = three_models(n_rows, n_classes, weight), TWO_CLASSES if n_classes == 2 else THREE_CLASSES
    compared = compare_models(models, N_SAMPLES, SEED)
    assert list(compared) == list({"roc_auc": None} | of_metrics)
    first, *others = models.values()
    labels, weights = first.labels.tolist(), (np.ones(n_rows) if weight is None else weight).tolist()
    for name, metric in of_metrics.items():
        values = [metric(labels, rows.scores.tolist(), weights) for rows in models.values()]
        assert [row.mean for row in compared[name]] == pytest.approx(values, abs=1e-12)
        for rows, row in zip(others, compared[name][1:]):
            scores = first.scores.tolist(), rows.scores.tolist()
            drawn = np.round(brute.paired_differences(metric, labels, *scores, weights, N_SAMPLES, SEED), 12)
            ends = np.quantile(drawn, [0.025, 0.975])
            assert (row.difference_low, row.difference_high) == pytest.approx(tuple(ends), abs=1e-9), name
            assert row.difference == pytest.approx(row.mean - compared[name][0].mean)
            # a tie may be off by rounding
            assert row.pvalue == pytest.approx(brute.two_sided_pvalue(drawn), abs=2.1 / N_SAMPLES), name
    for rows in compared.values():
        adjusted = brute.holm([row.pvalue for row in rows[1:]])
        assert [row.adjusted_pvalue for row in rows[1:]] == pytest.approx(adjusted)
    for row, rows in zip(compared["roc_auc"][1:], others if n_classes == 2 else ()):
        scores = rows.scores[:, 1], first.scores[:, 1]
        test = compare_auc(first.labels, *scores, sample_weight=weight)
        assert (row.difference, row.pvalue) == (test.difference, test.pvalue)
        assert (row.difference_low, row.difference_high) == test.interval


def test_equal_models_and_scores_that_are_no_probabilities():
    first = three_models(40, 2)["first"]
    for rows in compare_models({"a": first, "b": first}, N_SAMPLES, SEED).values():
        assert rows[1][5:] == (0.0, 0.0, 0.0, 1.0, 1.0)
    models = {"svm": LinearSVC().fit(X[TRAIN], Y[TRAIN]), "logit": LogisticRegression().fit(X[TRAIN], Y[TRAIN])}
    html = report(models, X[TEST], Y[TEST], **BARE).html
    assert "The scores of svm are no probabilities: log loss and Brier score are left out." in html
    assert "Brier score" not in Page(html).tables["Metrics by model"][0]
    assert html.count("<svg") == 3  # ROC and gains of both, and the calibration of the logit


def test_the_verdict_says_better_worse_and_no_difference():
    def row_of(model, auc, difference, low, high, pvalue):
        return ComparisonRow(model, "roc_auc", auc, auc - 0.02, auc + 0.02, difference, low, high, pvalue, pvalue)

    forest = row_of("forest", 0.903, 0.0, 0.0, 0.0, 1.0)
    stack = row_of("stack", 0.912, 0.009, 0.004, 0.014, 0.001)
    other = row_of("other", 0.904, 0.001, -0.004, 0.006, 0.7)
    worse = row_of("worse", 0.853, -0.05, -0.07, -0.03, 0.001)
    nothing = row_of("tree", 0.5, -0.403, np.nan, np.nan, np.nan)
    assert verdict([forest, other, stack]) == (
        "stack ranks better than forest: ROC AUC 0.9120 against 0.9030, difference +0.0090, 95 % interval +0.0040 to "
        "+0.0140; other does not differ significantly from forest: ROC AUC 0.9040 against 0.9030, difference +0.0010, "
        "95 % interval −0.0040 to +0.0060."
    )
    sentence = verdict([forest, worse, nothing])
    assert sentence.startswith("worse ranks worse than forest: ROC AUC 0.853 against 0.903, ")
    assert "; tree cannot be tested against forest: ROC AUC 0.500 against 0.903, " in sentence
    unclear = worse._replace(adjusted_pvalue=0.06)  # though its interval, which is not adjusted, excludes 0
    assert verdict([forest, unclear]).startswith("worse does not differ significantly from forest")


FRAME = pd.DataFrame(X, columns=list("abcde"))
ROWS = FRAME[TEST], Y[TEST]


@pytest.fixture(scope="module")
def models():
    columns = {"<script>_$x$": ["c", "a"], "_b & {0}": ["b", "a"], "all": list("abcde")}
    return {name: LogisticRegression().fit(FRAME[TRAIN][names], Y[TRAIN]) for name, names in columns.items()}


@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.filterwarnings("ignore:X has feature names|X does not have")
def test_each_model_reads_its_columns_and_names_are_escaped(models, form):
    frame = FRAME.assign(unused="x")[[*"edcba", "unused"]]
    html = report(models, form(frame[TEST]), Y[TEST], **BARE).html
    page, shown = Page(html), figures(Page(html), "Metrics by model")
    for name, model in models.items():
        auc = metrics.auc(Y[TEST] == 1, model.predict_proba(frame[TEST][model.feature_names_in_])[:, 1])
        assert shown[name][0] == f"{auc:.3f}"
    assert "<script>_" not in html
    assert "{0}" in page.headings[0]
    pictures = [re.findall("<text .*?>(.*?)</text>", svg) for svg in re.findall("<svg.*?</svg>", html, flags=re.DOTALL)]
    for name in ("&lt;script&gt;_$x$", "_b &amp; {0}", "all"):  # in each of the three plots
        assert [name in texts for texts in pictures] == [True] * 3
    described = [row[0] for caption, rows in page.tables.items() if caption.endswith(" columns") for row in rows[1:]]
    assert sorted(described) == list("abcde")
    assert page.headings[1:] == ["Which model ranks better", "Metrics", "Curves", "Data"]


def test_three_classes_are_compared_by_hand_and_till():
    skilled = LogisticRegression().fit(X3[TRAIN], Y3[TRAIN])
    guessing = LogisticRegression(C=1e-9).fit(np.random.default_rng(0).normal(size=X3[TRAIN].shape), Y3[TRAIN])
    options = {"sample_weight": np.full(200, 2.0), **BARE, "n_bootstrap": 60}
    html = report([guessing, skilled], X3[TEST], Y3[TEST], **options).html
    assert "LogisticRegression 2 ranks better than LogisticRegression: ROC AUC 0." in html
    assert "Rows count by their weights." in html
    assert html.count("<svg") == 6
    compared = compare_models({"a": score_rows(skilled, X3, Y3, None), "b": score_rows(guessing, X3, Y3, None)}, 60, 0)
    assert verdict(compared["roc_auc"]).startswith("b ranks worse than a: ROC AUC 0.")
    assert report([skilled, guessing], X3[Y3 != 1], Y3[Y3 != 1], **BARE).html.count("<svg") == 4


def test_a_warning_of_training_rows_comes_once_or_for_each_model(models):
    html = report(models, *ROWS, X_train=FRAME, y_train=Y, **BARE).html
    assert html.count("<strong>Warning:</strong> 200 of the 200 rows of this report") == 1
    forests = {name: small_forest(40, oob_score=True, random_state=i).fit(X, Y) for i, name in enumerate("ab")}
    html = report(forests, X, Y, **BARE).html
    for name in forests:
        assert html.count(f"<strong>Warning:</strong> {name}: The ROC AUC of these rows") == 1


def test_wrong_models_and_rows_are_errors_of_one_line(models):
    words = LogisticRegression().fit(FRAME[TRAIN], np.where(Y[TRAIN], "yes", "no"))
    for given, arguments, options, error, sentence in [
        ([], ROWS, {}, ValueError, "takes 2 to 10 of them, but got 0$"),
        (models, ROWS, {"by": "a"}, ValueError, "takes no by and no cost"),
        ({"a": models["all"], "b": words}, ROWS, {}, ValueError, r"'a' has \[0, 1\] and 'b' has \['no', 'yes'\]"),
        (models, (FRAME[TEST].drop(columns="b"), Y[TEST]), {}, ValueError, "the column 'b', which the model '_b & "),
        (models, (FRAME[TEST].assign(e="x"), Y[TEST]), {}, ValueError, "^the model 'all' cannot read X_test: "),
        ([models["all"], "x"], ROWS, {}, TypeError, "needs a fitted classifier .* but got a str$"),
    ]:
        with pytest.raises(error, match=rf"\A[^\n]*{sentence}[^\n]*\Z"):
            report(given, *arguments, **options)
    one, other = three_models(40, 2), three_models(42, 2)
    with pytest.raises(ValueError, match="must score the same rows, but these have different labels"):
        report_on_models({"one": one["first"], "other": other["first"]})


def test_names_are_made_distinct_and_tables_are_joined():
    assert distinct_names(["a", "a 2", "a", "a"]) == ["a", "a 2", "a 3", "a 4"]
    both = join_columns([FRAME[["b", "a"]], FRAME[["a", "c"]], pl.from_pandas(FRAME[["c"]])])
    assert list(both.columns) == ["b", "a", "c"]
    assert join_columns([X, FRAME]) is X


def test_a_comparison_is_shown_with_its_tests(tmp_path):
    options = {"metrics": ["roc_auc", "fit_seconds", "brier"], "n_estimators": 5}
    comparison = compare(X, Y, criteria=["auc", "gini"], cv=3, **options)
    page = report(comparison, title="Criteria")
    for given in ({"X_test": X}, {"sample_weight_train": Y}, {"by": "a"}, {"cost": np.eye(2)}, {"intended_use": "no"}):
        with pytest.raises(ValueError, match=r"^the report of a comparison takes no rows"):
            report(comparison, **given)
    with pytest.raises(OSError, match="nowhere"):
        page.save(tmp_path / "nowhere" / "page.html")
    assert list(tmp_path.iterdir()) == []
    page.save(tmp_path / "page.html")
    html, first = (tmp_path / "page.html").read_text(), comparison.summary()[0]
    shown = Page(html)
    assert shown.headings == ["Criteria", "At a glance", "Metrics", "Fit time and sizes of trees"]
    assert comparison.verdict() in html
    cells = figures(shown, "ROC AUC (more is better)")["auc"]
    assert [printed(cells[k]) for k in (0, 2)] == pytest.approx([first.mean, first.difference], abs=5e-4)
    assert cells[4] == first.pvalue_text.removeprefix("p = ").removeprefix("p ")
    assert figures(shown, "Brier score (less is better)")["gini"][2:] == ["–", "–", "–"]
    assert shown.tables["fit time in seconds (less is better)"][0][-1] == "95 % interval"  # without p-values


def test_a_comparison_with_a_stack_says_so_and_equal_criteria_have_no_intervals():
    html = report(compare(X, Y, criteria=["stack"], cv=2, metrics=["roc_auc"], n_estimators=25)).html
    assert "Forests that differ only in the split criterion, and a stack of a forest, on the same 2 folds" in html
    x = np.linspace(-1, 1, 60)[:, None]
    page = Page(report(compare(x, x[:, 0] > 0, criteria=["auc"], cv=3, metrics=["roc_auc"], n_estimators=10)).html)
    assert figures(page, "ROC AUC (more is better)") == {"auc": ["1", "–", "0", "–", "1"], "gini": ["1", *"––––"]}
