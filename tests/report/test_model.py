"""The sections on the model: members of a stack and reasons for the highest scores."""

from contextlib import nullcontext
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.inspection import PermutationImportance, explain
from aucforest.metrics import compare_auc, hand_till_score
from aucforest.report import report
from aucforest.report.data import read_training
from aucforest.report.model import importance_section, members_sections, model_section, reasons_sections
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest
from tests.report import pages
from tests.report.pages import QUICK, TEST, TRAIN, X3, Y3, Page, X, Y, figures, printed


@pytest.mark.parametrize("weighted", [False, True])
def test_the_stack_is_compared_with_its_forest(stack, weighted):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 200) if weighted else None
    (section,) = members_sections(score_rows(stack, X[TEST], Y[TEST], weights), 200, 0)
    members, shown = section.tables[0].rows, {row[0]: row[1:] for row in section.tables[1].rows}
    assert [row[0] for row in members] == list(stack.members_)
    assert [printed(row[1]) for row in members] == pytest.approx(stack.weights_, abs=5e-3)
    alone, proba, y = stack.members_["forest"].predict_proba(X[TEST]), stack.predict_proba(X[TEST]), Y[TEST]
    for name, metric in {"ROC AUC": lambda p, w: roc_auc_score(y, p[:, 1], sample_weight=w),
                         "log loss": lambda p, w: log_loss(y, p, sample_weight=w)}.items():  # fmt: skip
        before, after = metric(alone, weights), metric(proba, weights)
        *values, difference = map(printed, shown[name][:3])
        assert values == pytest.approx([before, after], abs=5e-4)
        assert difference == pytest.approx(after - before, rel=0.05)
    expected = compare_auc(y, proba[:, 1], alone[:, 1], sample_weight=weights).interval
    assert list(map(printed, shown["ROC AUC"][3].split(" to "))) == pytest.approx(expected, rel=0.05, abs=1e-3)


def test_a_stack_of_one_forest_is_not_compared():
    with pytest.warns(UserWarning, match="groups"):
        stack = AUCStackingClassifier(small_forest(60)).fit(X[TRAIN], Y[TRAIN], groups=np.arange(300) % 8)
    (section,) = members_sections(score_rows(stack, X[TEST], Y[TEST], None), 200, 0)
    (table,) = section.tables
    assert [row[:2] for row in table.rows] == [["forest", "1"]]


def test_three_classes_and_training_rows():
    """Importances are of the stack, from rows of the report; the number of trees is that of its forest."""
    linear = make_pipeline(LogisticRegression())
    stack = AUCStackingClassifier(small_forest(30), linear=linear).fit(X3[TRAIN], Y3[TRAIN])
    page = report(stack, X3[TEST], Y3[TEST], X_train=X3[TRAIN], y_train=Y3[TRAIN], **QUICK).html
    shown, expected = Page(page), hand_till_score(Y3[TEST], stack.predict_proba(X3[TEST]))
    cells = figures(shown, "The stack and its forest alone, on these rows")["ROC AUC"]
    assert printed(cells[1]) == pytest.approx(expected, abs=5e-4)
    assert " to " in cells[3]
    meanings = {row[0]: row[2] for row in shown.tables["The members of the stack and their weights"]}
    assert meanings["linear"] == "Pipeline"
    assert meanings["boosted"].startswith("gradient boosted trees")
    assert f"How much the ROC AUC, {expected:.3f} on 200 rows of this report, decreases" in page
    assert "Out-of-bag ROC AUC of the stack&#39;s forest by the number of trees. The first points" in page
    assert figures(shown, "The trees of the stack's forest")["trees"] == ["30"]
    assert "Reasons for the highest scores" not in shown.headings


@pytest.fixture(scope="module")
def data():
    """Rows with a category and missing values, labelled, with an index of their own."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"size": random.normal(scale=1e7, size=300), "colour": random.choice(["red", "blue"], 300)})
    y = np.where((X["size"] > 0) & (X["colour"] == "red"), "bad", "good")
    X = X.astype({"colour": "category"}).set_index(pd.Index([f"row {i}" for i in range(300)]))
    X.loc[random.random(300) < 0.1, "size"] = np.nan
    return X, y


def reasons_of(model, X, y):
    """Return the rows that a model scores, the section of reasons, its table and the index of its rows."""
    rows = score_rows(model, X, y, None)
    (section,) = reasons_sections(rows, None)
    (table,) = section.tables
    return rows, section, table, np.argsort(-rows.scores[:, 1], kind="stable")[:10]


def test_the_reasons_of_the_highest_scores(data):
    X, y = data
    forest = AUCForestClassifier(20, pos_label="bad", random_state=0).fit(X[:200], y[:200])
    rows, section, table, highest = reasons_of(forest, X[200:], y[200:])
    assert [row[0] for row in table.rows] == X.index[200:][highest].tolist()
    assert [row[2] for row in table.rows] == y[200:][highest].tolist()
    np.testing.assert_array_equal(rows.scores[:, 1], forest.predict_proba(X[200:])[:, 0])
    assert "log odds of bad" in section.lead
    first = explain(forest, X[200:]).top(1)[highest[0]][0]
    assert table.rows[0][3].startswith(f"{first.feature} ")
    assert "e+" not in str(table.rows)
    assert any("colour = red (+" in row[3] for row in table.rows)


def test_reasons_of_a_stack_are_of_the_log_odds_of_the_score(data):
    X, y = data
    X = X.set_index(pd.date_range("2024-01-01", periods=300))
    stack = AUCStackingClassifier(small_forest(20), random_state=0).fit(X[:200], y[:200])
    rows, section, table, highest = reasons_of(stack, X[200:], y[200:])
    explanation = explain(stack, X[200:].iloc[highest])
    for row, score, reasons in zip(table.rows, explanation.probabilities, explanation.top(3)):
        assert printed(row[1]) == pytest.approx(score, abs=5e-4)
        assert row[3].count(";") == len(reasons) - 1
        assert row[3].startswith(reasons[0].feature)
    assert "adds to the log odds of good; the score is the probability of good." in section.lead
    assert [row[0] for row in table.rows] == X.index[200:][highest].strftime("%Y-%m-%d").tolist()
    own = copy(stack)
    own.members_, own.weights_ = {**stack.members_, "linear": LogisticRegression()}, np.ones(4)
    assert reasons_sections(replace(rows, model=own), None) == []


@pytest.mark.parametrize(("n_trees", "bootstrap"), [(2, True), (3, True), (3, False)])
def test_two_trees_and_trees_without_bootstrap_have_no_curve(n_trees, bootstrap):
    forest = small_forest(n_trees, criterion="gini", splitter="best", bootstrap=bootstrap).fit(X[TRAIN], Y[TRAIN])
    section = model_section(forest, read_training(forest, X[TRAIN], Y[TRAIN], None))
    assert len(section.plots) == ("where it is flat" in section.lead) == (n_trees == 3 and bootstrap)
    with pytest.raises(ValueError, match="must be the training data") if bootstrap else nullcontext():
        report(forest, X[TEST], Y[TEST], X_train=X[TEST], y_train=Y[TEST], n_bootstrap=2, n_repeats=0)


def test_importances_have_the_digits_of_their_intervals():
    importances = np.array([[0.0810, 0.0814], [8e-6, 9e-6], [-2e-7, -1e-7]])
    errors, names = np.array([0.003, 0.0006, 0.0002]), ("a", "b", "c")
    found = PermutationImportance(importances, errors, 0.7, 200, "roc_auc", names, 20)
    (table,) = importance_section(found, "rows of this report").tables
    assert [cells[1] for cells in table.rows] == ["+0.0812", "0.0000", "0.0000"]


def test_other_models_and_more_classes_have_no_reasons_and_members(data, forest):
    X, y = data
    sizes, kinds = X[["size"]].fillna(0.0), np.arange(300) % 3
    others = score_rows(RandomForestClassifier(5).fit(sizes, y), sizes, y, None)
    more_classes = score_rows(AUCForestClassifier(5).fit(X, kinds), X, kinds, None)
    assert reasons_sections(others, None) == reasons_sections(more_classes, None) == []
    assert members_sections(score_rows(forest, pages.X[TEST], Y[TEST], None), 200, 0) == []
