"""The section on the members of a stack."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline

from aucforest import AUCStackingClassifier
from aucforest.metrics import compare_auc, hand_till_score
from aucforest.report import report
from aucforest.report.members import members_section
from aucforest.report.rows import score_rows
from tests.estimators.data import make_table, small_forest
from tests.report.test_reports import BARE, QUICK, Page, figures, printed

X, Y = make_table(n_rows=500, seed=3)
X3, Y3 = make_table(n_rows=500, n_classes=3, seed=1)
TRAIN, TEST = slice(0, 300), slice(300, 500)
MEMBERS = "The members of the stack and their weights"
ALONE = "The stack and its forest alone, on these rows"


@pytest.fixture(scope="module")
def stack():
    return AUCStackingClassifier(small_forest(30), threshold="gmean").fit(X[TRAIN], Y[TRAIN])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_stack_stands_beside_its_forest(stack, weighted):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 200) if weighted else None
    page = Page(report(stack, X[TEST], Y[TEST], sample_weight=weights, **BARE).html)
    found, alone = figures(page, ALONE), stack.members_["forest"].predict_proba(X[TEST])
    proba, y = stack.predict_proba(X[TEST]), Y[TEST]
    for name, metric in {"ROC AUC": lambda p: roc_auc_score(y, p[:, 1], sample_weight=weights),
                         "log loss": lambda p: log_loss(y, p, sample_weight=weights)}.items():  # fmt: skip
        before, after, difference, _ = found[name]
        assert printed(before) == pytest.approx(metric(alone), abs=5e-4)
        assert printed(after) == pytest.approx(metric(proba), abs=5e-4)
        assert printed(difference) == pytest.approx(metric(proba) - metric(alone), rel=0.05)
    ends = list(map(printed, found["ROC AUC"][3].split(" to ")))
    expected = compare_auc(y, proba[:, 1], alone[:, 1], sample_weight=weights).interval
    assert ends == pytest.approx(expected, rel=0.05)


def test_the_interval_of_the_log_loss_is_that_of_a_mean(stack):
    rows = score_rows(stack, X[TEST], Y[TEST], None)
    _, _, _, difference, ends = members_section(rows).tables[1].rows[1]
    place, codes = np.arange(200), Y[TEST]
    alone = stack.members_["forest"].predict_proba(X[TEST])
    falls = np.log(alone[place, codes]) - np.log(rows.scores[place, codes])
    error = 1.96 * falls.std() / np.sqrt(200)
    assert printed(difference) == pytest.approx(falls.mean(), rel=0.05)
    found = list(map(printed, ends.split(" to ")))
    assert found == pytest.approx([falls.mean() - error, falls.mean() + error], rel=0.05)


def test_the_weights(stack):
    section = members_section(score_rows(stack, X[TEST], Y[TEST], None))
    assert [row[0] for row in section.tables[0].rows] == list(stack.members_)
    assert [printed(row[1]) for row in section.tables[0].rows] == pytest.approx(stack.coef_, abs=5e-3)
    own = AUCStackingClassifier(small_forest(30), linear=make_pipeline(LogisticRegression())).fit(X[TRAIN], Y[TRAIN])
    assert members_section(score_rows(own, X[TEST], Y[TEST], None)).tables[0].rows[2][2] == "Pipeline"


def test_a_stack_that_is_its_forest():
    """With few groups there is no evidence for other members."""
    with pytest.warns(UserWarning, match="groups"):
        stack = AUCStackingClassifier(small_forest(60)).fit(X[TRAIN], Y[TRAIN], groups=np.arange(300) % 8)
    section = members_section(score_rows(stack, X[TEST], Y[TEST], None))
    assert [row[:2] for row in section.tables[0].rows] == [["forest", "1"]]
    assert len(section.tables) == 1


def test_three_classes_and_training_rows():
    """Importances are of the stack, from rows of the report; the number of trees is that of its forest."""
    stack = AUCStackingClassifier(small_forest(30)).fit(X3[TRAIN], Y3[TRAIN])
    page = report(stack, X3[TEST], Y3[TEST], X_train=X3[TRAIN], y_train=Y3[TRAIN], **QUICK).html
    shown = Page(page)
    expected = hand_till_score(Y3[TEST], stack.predict_proba(X3[TEST]))
    assert printed(figures(shown, ALONE)["ROC AUC"][1]) == pytest.approx(expected, abs=5e-4)
    assert figures(shown, ALONE)["ROC AUC"][3] == "–"
    assert f"How much the ROC AUC, {expected:.3f} on 200 rows of this report, decreases" in page
    assert "Out-of-bag ROC AUC of the stack&#39;s forest by the number of trees" in page
    assert figures(shown, "The trees of the stack's forest")["trees"] == ["30"]
    assert "Reasons for the highest scores" not in shown.headings


def test_other_models_have_none():
    assert members_section(score_rows(small_forest().fit(X[TRAIN], Y[TRAIN]), X[TEST], Y[TEST], None)) is None
