"""The sections on the model: members of a stack and reasons for the highest scores."""

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
from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection import PermutationImportance, explain
from aucforest.metrics import compare_auc, hand_till_score
from aucforest.report import report
from aucforest.report.model import importance_section, members_sections, model_section, reasons_sections
from aucforest.report.rows import score_rows
from tests.estimators.data import small_forest
from tests.report.pages import QUICK, TEST, TRAIN, X3, Y3, Page, X, Y, figures, printed

TWO = X[TEST], Y[TEST]
ALONE = "The stack and its forest alone, on these rows"


@pytest.mark.parametrize("weighted", [False, True])
def test_the_stack_is_compared_with_its_forest(stack, weighted):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 200) if weighted else None
    (section,) = members_sections(score_rows(stack, X[TEST], Y[TEST], weights), 200, 0)
    assert [row[0] for row in section.tables[0].rows] == list(stack.members_)
    assert [printed(row[1]) for row in section.tables[0].rows] == pytest.approx(stack.weights_, abs=5e-3)
    shown, alone = {row[0]: row[1:] for row in section.tables[1].rows}, stack.members_["forest"].predict_proba(X[TEST])
    proba, y = stack.predict_proba(X[TEST]), Y[TEST]
    aucs = [roc_auc_score(y, scores[:, 1], sample_weight=weights) for scores in (alone, proba)]
    losses = [log_loss(y, scores, sample_weight=weights) for scores in (alone, proba)]
    for name, (before, after) in {"ROC AUC": aucs, "log loss": losses}.items():
        *values, difference = map(printed, shown[name][:3])
        assert values == pytest.approx([before, after], abs=5e-4)
        assert difference == pytest.approx(after - before, rel=0.05)
    expected = compare_auc(y, proba[:, 1], alone[:, 1], sample_weight=weights).interval
    assert list(map(printed, shown["ROC AUC"][3].split(" to "))) == pytest.approx(expected, rel=0.05, abs=1e-3)
    if not weighted:  # the interval of the log loss is about that of a mean
        falls = np.log(alone[np.arange(200), y]) - np.log(proba[np.arange(200), y])
        error = 1.96 * falls.std() / np.sqrt(200)
        ends = list(map(printed, shown["log loss"][3].split(" to ")))
        assert ends == pytest.approx([falls.mean() - error, falls.mean() + error], rel=0.2)


def test_a_stack_that_is_its_forest():
    """With few groups there is no evidence for other members."""
    with pytest.warns(UserWarning, match="groups"):
        stack = AUCStackingClassifier(small_forest(60)).fit(X[TRAIN], Y[TRAIN], groups=np.arange(300) % 8)
    (section,) = members_sections(score_rows(stack, X[TEST], Y[TEST], None), 200, 0)
    assert [row[:2] for row in section.tables[0].rows] == [["forest", "1"]]
    assert len(section.tables) == 1


def test_three_classes_and_training_rows():
    """Importances are of the stack, from rows of the report; the number of trees is that of its forest."""
    linear = make_pipeline(LogisticRegression())
    stack = AUCStackingClassifier(small_forest(30), linear=linear).fit(X3[TRAIN], Y3[TRAIN])
    page = report(stack, X3[TEST], Y3[TEST], X_train=X3[TRAIN], y_train=Y3[TRAIN], **QUICK).html
    shown = Page(page)
    expected = hand_till_score(Y3[TEST], stack.predict_proba(X3[TEST]))
    assert printed(figures(shown, ALONE)["ROC AUC"][1]) == pytest.approx(expected, abs=5e-4)
    assert " to " in figures(shown, ALONE)["ROC AUC"][3]
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


def test_the_reasons_of_the_highest_scores(data):
    X, y = data
    forest = AUCForestClassifier(20, pos_label="bad", random_state=0).fit(X[:200], y[:200])
    rows = score_rows(forest, X[200:], y[200:], None)
    (section,) = reasons_sections(rows, None)
    table = section.tables[0]
    highest = np.argsort(-rows.scores[:, 1], kind="stable")[:10]
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
    rows = score_rows(stack, X[200:], y[200:], None)
    (section,) = reasons_sections(rows, None)
    (table,) = section.tables
    highest = np.argsort(-rows.scores[:, 1], kind="stable")[:10]
    explanation = explain(stack, X[200:].iloc[highest])
    for row, score, reasons in zip(table.rows, explanation.probabilities, explanation.top(3)):
        assert printed(row[1]) == pytest.approx(score, abs=5e-4)
        assert row[3].count(";") == len(reasons) - 1
        assert row[3].startswith(reasons[0].feature)
    assert "adds to the log odds of good, of which the score is the probability." in section.lead
    assert [row[0] for row in table.rows] == X.index[200:][highest].strftime("%Y-%m-%d").tolist()
    own = copy(stack)
    own.members_, own.weights_ = {**stack.members_, "linear": LogisticRegression()}, np.ones(4)
    assert reasons_sections(replace(rows, model=own), None) == []


@pytest.mark.parametrize("n_trees", [1, 2, 3])
def test_few_trees_have_words_in_place_of_a_curve(n_trees):
    forest = small_forest(n_trees, criterion="gini", splitter="best").fit(X[TRAIN], Y[TRAIN])
    section = model_section(forest, training_rows(forest, X[TRAIN], Y[TRAIN], None))
    assert len(section.plots) == (n_trees >= 3)
    too_few = {1: "A single tree is too few for a curve", 2: "2 trees are too few for a curve", 3: "where it is flat"}
    assert too_few[n_trees] in section.lead


def test_importances_have_the_digits_of_their_intervals():
    importances = np.array([[0.0810, 0.0814], [8e-6, 9e-6], [-2e-7, -1e-7]])
    errors, names = np.array([0.003, 0.0006, 0.0002]), ("a", "b", "c")
    found = PermutationImportance(importances, errors, 0.7, 200, "roc_auc", names, 20)
    (table,) = importance_section(found, "rows of this report").tables
    assert [cells[1] for cells in table.rows] == ["+0.0812", "0.0000", "0.0000"]


def test_other_models_and_more_classes_have_no_reasons_and_members(data, forest):
    X, y = data
    sizes = X[["size"]].fillna(0.0)
    assert reasons_sections(score_rows(RandomForestClassifier(5).fit(sizes, y), sizes, y, None), None) == []
    kinds = np.arange(300) % 3
    assert reasons_sections(score_rows(AUCForestClassifier(5).fit(X, kinds), X, kinds, None), None) == []
    assert members_sections(score_rows(forest, TWO[0], TWO[1], None), 200, 0) == []
