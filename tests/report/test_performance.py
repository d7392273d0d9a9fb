"""The sections on the performance of a model against scikit-learn and plain counting."""

import re
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import confusion_matrix, log_loss, recall_score, roc_auc_score

from aucforest.metrics import auc_confidence_interval, group_rates, hand_till_score
from aucforest.report import performance
from aucforest.report.importance import held_out_importance
from aucforest.report.metrics import resample
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest
from tests.report.pages import TEST, TRAIN, X3, Y3, Page, X, Y, figures, printed

SCORES = "Metrics on these rows, beside those of a model that only knows the class frequencies"
MATRIX = "Confusion matrix of the labels that the model predicts"
INDEX = np.arange(500)
SITE = np.where(INDEX % 3 == 0, "north", "south").astype(object)
SITE[:15] = None
RNG = np.random.default_rng(0)
RARE_X, RARE_Y = RNG.normal(size=(2000, 1)), RNG.random(2000) < 0.1
RARE_X[RARE_Y] += 1.5


@pytest.fixture(scope="module")
def model():
    return LogisticRegression().fit(X, Y)


def summary_of(rows):
    section = performance.summary_section(rows, resample(rows, 20, 0))
    return section, {cells[0]: cells[1:] for cells in section.tables[0].rows}


def test_the_explorer_counts_as_scikit_learn_does(forest, forest_page):
    page, scores, y = Page(forest_page.html), forest.predict_proba(X[TEST])[:, 1], Y[TEST]
    data, own = page.explorer, confusion_matrix(y, forest.predict(X[TEST]))
    assert data["thresholds"][-1] is None
    for threshold, tp, fp in zip(data["thresholds"][:-1], data["tp"], data["fp"]):
        assert [fp, tp] == confusion_matrix(y, scores >= threshold)[:, 1].tolist()
    assert [data["fp"][data["own"]], data["tp"][data["own"]]] == own[:, 1].tolist()
    assert data["cost"] == [1.0, 7.0]
    auc, low, high = auc_confidence_interval(y, scores)
    assert figures(page, SCORES)["ROC AUC"][:2] == [f"{auc:.3f}", f"{low:.3f} to {high:.3f}"]


def test_each_of_three_classes_is_evaluated_against_the_others(forest_of_three, page_of_three):
    page = Page(page_of_three.html)
    proba, y, predicted = forest_of_three.predict_proba(X3[TEST]), Y3[TEST], forest_of_three.predict(X3[TEST])
    recalls = recall_score(y, predicted, average=None)
    expected = {
        "ROC AUC": hand_till_score(y, proba), "log loss": log_loss(y, proba), "G-mean": recalls.prod() ** (1 / 3),
    }  # fmt: skip
    for name, value in expected.items():
        assert printed(figures(page, SCORES)[name][0]) == pytest.approx(value, abs=5e-4)
    for k, cells in enumerate(page.tables["Each class against all others"][1:]):
        assert printed(cells[2]) == pytest.approx(roc_auc_score(y == k, proba[:, k]), abs=5e-4)
        assert printed(cells[5]) == pytest.approx(recalls[k], abs=5e-4)
    matrix = [list(map(printed, cells[1:])) for cells in page.tables[MATRIX][1:]]
    assert matrix == confusion_matrix(y, predicted).tolist()
    assert page.explorer is None
    section, _ = summary_of(score_rows(forest_of_three, X3[TEST][y != 1], y[y != 1], None))  # a class without rows
    assert [cells[0] for cells in section.tables[1].rows] == ["0", "2"]


def test_decision_values_and_labels_that_follow_no_threshold():
    rows = score_rows(RidgeClassifier().fit(X[TRAIN], Y[TRAIN]), X[TEST], Y[TEST], None)
    assert list(summary_of(rows)[1]) == ["ROC AUC", "average precision", "G-mean"]
    assert performance.threshold_section(rows, None).explorer["model_sentence"] == "The model's own threshold is 0."
    rows = score_rows(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TEST], Y[TEST], None)
    explorer = performance.threshold_section(replace(rows, predicted=np.arange(200) % 2), None).explorer
    assert explorer["data"]["own"] is None
    assert "follow no single threshold" in explorer["model_sentence"]


def test_the_positive_class_may_be_the_first():
    model = small_forest(20, threshold=0.6, pos_label=0).fit(X[TRAIN], Y[TRAIN])
    rows = score_rows(model, X[TEST], Y[TEST], None)
    assert rows.classes == ("1", "0")
    np.testing.assert_array_equal(rows.scores[:, 1], model.predict_proba(X[TEST])[:, 0])
    explorer = performance.threshold_section(rows, np.array([[0, 7], [2, 0]])).explorer["data"]
    called = confusion_matrix(Y[TEST], model.predict(X[TEST]))[:, 0].tolist()
    assert [explorer["tp"][explorer["own"]], explorer["fp"][explorer["own"]]] == called
    assert explorer["cost"] == [2, 7]


def test_the_explorer_begins_with_the_bounds_of_the_model():
    model = small_forest(5).fit(X[TRAIN], Y[TRAIN])
    rows = score_rows(model, X[TEST], Y[TEST], None)
    for rule, alerts, recall in (
        ("gmean", 10, 0.8), ({"alerts": 30}, 10, 0.8), ({"recall": 0.9}, 10, 0.9),
        ({"alerts": 0.02, "cost": [[0, 1], [9, 0]]}, 20, 0.8),
    ):  # fmt: skip
        model.threshold = rule  # threshold_ does not matter
        section = performance.threshold_section(rows, None)
        assert section.explorer["aims"] == {"alerts": alerts, "precision": 0.5, "recall": recall}
    assert section.explorer["data"]["cost"] is None
    assert section.lead == "Metrics and alerts at any threshold, on these rows."


@pytest.mark.parametrize(("n_positive", "interval"), [(1, "–"), (20, "0.904 to 1.000")])
def test_the_interval_of_a_perfect_model(n_positive, interval):
    x = np.arange(200.0)[:, None]
    y = x[:, 0] >= 200 - n_positive
    section, scores = summary_of(score_rows(small_forest(20, shrinkage=0).fit(x, y), x, y, None))
    one, words = ("1", "") if interval == "–" else ("1.000", f", with 95 % confidence {interval}")
    assert scores["ROC AUC"][:2] == [one, interval]
    assert section.points[0].startswith(f"ROC AUC {one}{words}; a model without skill has 0.5")


def test_the_summary_in_words_has_the_numbers_of_scikit_learn(forest, forest_page):
    p, y, predicted = forest.predict_proba(X[TEST])[:, 1], Y[TEST], forest.predict(X[TEST])
    lead = re.search('id="summary".*?class="lead">(.*?)</p>', forest_page.html, re.DOTALL)[1]
    top, precision = y[np.argsort(-p, kind="stable")[:20]].mean(), y[predicted == 1].mean()
    for sentence, share in {
        "than another row in {} of all such pairs": roc_auc_score(y, p),
        "Of the 10 % of rows with the highest scores, {} are": top,
        "for {} of the rows: this is right for ": predicted.mean(),
        "this is right for {}": precision,
        "finds {} of all rows": recall_score(y, predicted),
    }.items():
        assert sentence.format(f"{100 * share:.1f} %") in lead


def test_alerts_are_the_rows_with_the_highest_scores():
    rows = score_rows(LogisticRegression().fit(RARE_X, RARE_Y), RARE_X, RARE_Y, None)
    order = np.argsort(-rows.scores[:, 1])
    for k in (1, 333, 2000):
        top, hits = performance.metrics_of_top(rows, k), int(RARE_Y[order[:k]].sum())
        assert (top.precision[0], top.recall[0]) == pytest.approx((hits / k, hits / RARE_Y.sum()))
        assert top.threshold == rows.scores[order[k - 1], 1]
    assert performance.alert_counts(1000)[1] == 1
    assert performance.alert_counts(250) == {5: 1, 10: 2, 20: 5, 50: 12, 100: 25, 200: 50, 500: 125}


def table_of(model, by, weight=None):
    rows = score_rows(model, X, Y, weight)
    table, *_ = performance.subgroups_section(rows, performance.read_grouping_columns(by, rows, weight)).tables
    return {row[0]: row[1:] for row in table.rows}


def test_metrics_are_those_of_the_rows_of_a_group(model):
    found = table_of(model, {"site": SITE})
    assert list(found) == ["south", "north", "missing"]
    for name in ("north", "south"):
        inside, cells = name == SITE, found[name]
        y, score, called = Y[inside], model.predict_proba(X[inside])[:, 1], model.predict(X[inside])
        assert cells[0] == str(inside.sum())
        assert cells[1].startswith(f"{y.sum()} (")
        rates = (called.mean(), recall_score(y, called), called[y == 0].mean(), score.mean() - y.mean())
        for cell, value in zip(cells[2:], (roc_auc_score(y, score), *rates), strict=True):
            assert printed(cell.split()[0]) == pytest.approx(value, abs=6e-4)
            assert " to " in cell
    assert (found["missing"][0], found["missing"][2]) == ("15", "too few")
    found = table_of(model, {"site": SITE}, np.where(INDEX < 200, 0.0, 1.0))
    assert {name: int(cells[0]) for name, cells in found.items()} == {"south": 200, "north": 100}


def test_differences_of_groups_are_those_of_group_rates(model):
    rows, site = score_rows(model, X, Y, None), np.where(Y == 1, "north", "south")  # as different as can be
    site = np.where(INDEX % 5 == 0, "missing", site)
    section = performance.subgroups_section(rows, {"site": site})
    _, table = section.tables
    rates = group_rates(Y, model.predict(X), site, y_proba=rows.scores[:, 1])
    assert table.caption.startswith(f"Differences from {rates.reference}; a star marks those")
    shown = {row[0].split()[0]: row[1:] for row in table.rows}
    for rate in rates.rates:
        if rate.group != rates.reference:
            cell = shown[rate.group].pop(0)
            assert cell.endswith(" *") == rate.differs
            assert cell == "–" or printed(cell.split()[0]) == pytest.approx(rate.difference, abs=6e-4)
    assert section.points[0].startswith(f"By site: {rates.verdict()[:12]}")
    calibration = "Calibration is the mean predicted probability of 1 minus its frequency in the group"
    assert calibration in section.lead
    assert calibration not in performance.subgroups_section(replace(rows, is_probability=False), {"site": site}).lead


ZONED = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"])).dt.tz_localize("Europe/Berlin")
DAYS = np.where(INDEX < 5, np.datetime64("NaT"), np.datetime64("2024-01-01") + INDEX % 250)
QUARTERS = ["to 2024-03-05", "to 2024-05-06", "to 2024-07-06", "after 2024-07-06", "missing"]


@pytest.mark.parametrize(("values", "names"), [
    (INDEX, ["to 124.8", "to 249.5", "to 374.2", "above 374.2"]),
    (np.datetime64("2024-03-01") + 7 * (INDEX % 3), ["2024-03-01", "2024-03-08", "2024-03-15"]),
    *((days, QUARTERS) for days in (DAYS, DAYS.astype("M8[ns]"), pl.Series(DAYS.astype("M8[ns]")))),
    (np.array(["missing", None, "here"], dtype=object)[INDEX % 3], ["missing", "here", "missing (4)"]),
    (np.array([1, 30], dtype="m8[h]").astype("m8[ns]")[INDEX % 2], ["1:00:00", "1 day, 6:00:00"]),
    (ZONED[INDEX % 2], ["2024-01-01", "2024-01-02"]),
    (np.array([date(2024, 1, 1), "later"], dtype=object)[INDEX % 2], ["2024-01-01", "later"]),
])  # fmt: skip
def test_names_of_groups(model, values, names):
    assert list(table_of(model, {"name": values})) == names


def test_groups_are_quartiles_of_numbers_or_frequent_values(model):
    assert [cells[0] for cells in table_of(model, {"size": INDEX}).values()] == ["125"] * 4
    codes = table_of(model, {"code": np.array([f"v{min(row // 30, 14)}" for row in INDEX])})
    assert (len(codes), int(codes["all others"][0])) == (11, 500 - 9 * 30 - 80)
    names = np.array([f"a very long name of a type of machines, model {k}" for k in "ABC"])[INDEX % 3]
    found = table_of(model, {"machine": names})
    assert [int(cells[0]) for cells in found.values()] == [167, 167, 166]
    assert max(map(len, found)) <= 40
    assert len(table_of(model, {"size": 0.12341 + 1e-5 * (INDEX // 40)})) == 4


def test_grouping_columns_are_named_or_the_most_important_ones():
    frame = pd.DataFrame({"x": X[:, 0], "noise": np.tile(["a", "b"], 250), "kind": np.where(Y, "p", "q")})
    rows = score_rows(small_forest(20).fit(frame, Y), frame, Y, None)
    assert list(performance.default_groups(rows, held_out_importance(rows, 1, 0))) == ["kind", "noise"]
    assert list(performance.default_groups(rows, None)) == ["noise", "kind"]
    assert list(performance.read_grouping_columns("kind", rows, None)) == ["kind"]
    with pytest.raises(ValueError, match=r"^by names 'y', which is no column of X_test$"):
        performance.read_grouping_columns(["x", "y"], rows, None)
    with pytest.raises(ValueError, match=r"^by has 3 values of 's', but y_test has 500 rows$"):
        performance.read_grouping_columns({"s": [1, 2, 3]}, rows, None)


def test_groups_of_more_classes_have_accuracies():
    model, half = LogisticRegression(max_iter=500).fit(X3, Y3), INDEX < 250
    (table,) = performance.subgroups_section(score_rows(model, X3, Y3, None), {"half": half}).tables
    for name, rows, accuracy, _ in table.rows:
        inside = half == (name == "True")
        assert rows == "250"
        assert float(accuracy.split()[0]) == pytest.approx(100 * model.score(X3[inside], Y3[inside]), abs=0.06)
