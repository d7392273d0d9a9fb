"""Models that are refreshed with new rows."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import t as student

import aucforest
from aucforest import LinearAUCClassifier, refresh
from aucforest.estimators import _stack_fit
from aucforest.estimators._combination import combine
from aucforest.fitting.out_of_bag import parts_of_rows
from aucforest.metrics import compare_auc, roc_auc_score
from tests.estimators.data import make_table, small_forest
from tests.estimators.stacks import small_stack
from tests.persistence.trees import assert_same_trees
from tests.reference import stacking as reference


def draw(n_rows, effects, seed):
    """Return rows, of which about a fifth is positive."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    return X, random.random(n_rows) < 1.0 / (1.0 + np.exp(1.6 - X @ np.asarray(effects)))


BEFORE, AFTER = [1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.5, -1.0]
OLD = draw(600, BEFORE, 0)
FAR = draw(2000, AFTER, 9)


@pytest.fixture(scope="module")
def old():
    return small_forest(30).fit(*OLD)


def test_few_rows_change_little_and_many_replace_an_outdated_model(old):
    trees, options = copy.deepcopy(old.trees_), {"y_true": FAR[1]}
    by_old = roc_auc_score(y_score=old.predict_proba(FAR[0])[:, 1], **options)
    weights, aucs = [], []
    for n_rows in (60, 400, 2000):
        refreshed = refresh(old, *draw(n_rows, AFTER, 1))
        weights.append(refreshed.old_weight)
        aucs.append(roc_auc_score(y_score=refreshed.model.predict_proba(FAR[0])[:, 1], **options))
    assert weights[0] > weights[1] > weights[2]
    assert by_old < aucs[0] < aucs[1] < aucs[2]
    assert refreshed.roc_auc.low > 0.0
    assert str(refreshed).startswith("The refreshed model ranks better than the old one on the new rows: ROC AUC")
    assert_same_trees(old.trees_, trees)


def test_where_nothing_has_changed_the_old_model_stays(old):
    refreshed = refresh(old, *draw(200, BEFORE, 2))
    assert refreshed.old_weight > 0.8
    assert refreshed.roc_auc.low <= 0.0 <= refreshed.roc_auc.high
    assert "neither better nor worse than the old one" in str(refreshed)
    assert "The old model is kept; weights of the members: old " in str(refreshed)


def test_intervals_on_noise():
    """Where neither model knows anything, an interval leaves out 0 in few cases."""
    random, outside = np.random.default_rng(0), 0
    model = small_forest(20).fit(*draw(200, np.zeros(4), 3))
    for _ in range(10):
        X, y = draw(150, np.zeros(4), random.integers(2**32))
        refreshed = refresh(model, X, y)
        outside += not refreshed.roc_auc.low <= 0.0 <= refreshed.roc_auc.high
    assert outside <= 1


@pytest.mark.parametrize("make", [small_forest, small_stack])
def test_probabilities_are_the_combination_of_both_models(make, tmp_path):
    model = make(30, threshold="gmean") if make is small_forest else make(30, stack={"threshold": "gmean"})
    X, y = draw(500, [0.5, 0.5, 0.5, 0.0], 4)
    refreshed = refresh(model.fit(*OLD), X, y).model
    assert list(refreshed.members_)[:2] == ["old", "forest"]
    assert (len(refreshed.members_) > 2) == (make is small_stack)
    if make is small_forest:
        scores = [np.log(member.predict_proba(X)) for member in refreshed.members_.values()]
        given = refreshed.weights_, refreshed.intercepts_, scores
        expected = [softmax(reference.class_scores(*given, row)) for row in range(len(X))]
        np.testing.assert_allclose(refreshed.predict_proba(X), expected, atol=1e-12)
    assert refreshed.threshold == "gmean"
    refreshed.save(tmp_path / "model")
    loaded = aucforest.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), refreshed.predict_proba(X))
    again = refresh(loaded, *draw(300, [0.5, 0.5, 0.5, 0.0], 5)).model
    np.testing.assert_array_equal(again.members_["old"].predict_proba(X), refreshed.predict_proba(X))
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(aucforest.load(tmp_path / "again").predict_proba(X), again.predict_proba(X))
    with pytest.raises(TypeError, match=r"^a refreshed model that keeps an old one cannot be exported to ONNX"):
        refreshed.to_onnx(tmp_path / "model.onnx")


def test_an_old_model_without_weight_is_no_member():
    X, y = draw(1500, AFTER, 6)
    old = small_forest(20).fit(X[:500], ~y[:500])
    refreshed = refresh(old, X[500:], y[500:])
    assert refreshed.old_weight == 0.0
    assert list(refreshed.model.members_) == ["forest"]
    assert str(refreshed).endswith("The old model is not kept.")
    assert refreshed.model.predict_proba(X).shape == (1500, 2)


def test_the_interval_is_that_of_delong(old):
    X, y = draw(400, AFTER, 7)
    refreshed = refresh(old, X, y, level=0.9)
    seen = np.isfinite(refreshed.model.oob_decision_function_[:, 0])
    test = compare_auc(
        y[seen], refreshed.model.oob_decision_function_[seen, 1], old.predict_proba(X)[seen, 1], level=0.9
    )
    assert refreshed.roc_auc == (test.auc_a, test.auc_b, *test.interval)
    losses = [-np.log(proba[seen][np.arange(seen.sum()), y[seen].astype(int)]) for proba in (
        refreshed.model.oob_decision_function_, old.predict_proba(X)
    )]  # fmt: skip
    assert refreshed.log_loss == pytest.approx([np.mean(each) for each in losses])


def test_the_interval_of_groups_is_that_of_a_jackknife(old):
    """Each part without which both AUCs are computed holds whole groups."""
    X, y = draw(300, AFTER, 8)
    groups = np.arange(300) // 3
    refreshed = refresh(old, X, y, groups=groups, level=0.9)
    new, before = refreshed.model.oob_decision_function_[:, 1], old.predict_proba(X)[:, 1]
    parts = parts_of_rows(y.astype(int), groups)
    assert all(len(set(parts[groups == group])) == 1 for group in range(100))
    differences = []
    for part in range(10):
        kept = parts != part
        differences.append(roc_auc_score(y[kept], new[kept]) - roc_auc_score(y[kept], before[kept]))
    error = np.sqrt(9 / 10 * np.sum((differences - np.mean(differences)) ** 2))
    difference, margin = roc_auc_score(y, new) - roc_auc_score(y, before), student.ppf(0.95, 9) * error
    assert refreshed.roc_auc[2:] == pytest.approx((difference - margin, difference + margin))


def test_rows_are_compared_by_weights_that_were_fitted_without_them(old, monkeypatch):
    X, y = draw(400, [0.7, 0.5, 0.7, 0.0], 7)
    calls = []

    def record(scores, labels, weights, penalty):
        calls.append((scores, combine(scores, labels, weights, penalty)))
        return calls[-1][1]

    monkeypatch.setattr(_stack_fit, "combine", record)
    refreshed = refresh(old, X, y).model
    (scores, (coef, intercept)), *of_parts = calls
    np.testing.assert_allclose(scores[0], np.log(old.predict_proba(X)))
    assert len(of_parts) == 10
    row_of = {score: row for row, score in enumerate(scores[0][:, 0].tolist())}
    assert len(row_of) == 400
    for fitted_to, combination in of_parts:
        out = np.setdiff1d(np.arange(400), [row_of[score] for score in fitted_to[0][:, 0].tolist()])
        assert 35 <= len(out) <= 45
        own = combination.coef * coef.sum() / combination.coef.sum()
        expected = softmax([own @ [score[row] for score in scores] + intercept for row in out.tolist()], axis=1)
        np.testing.assert_allclose(refreshed.oob_decision_function_[out], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(refreshed.weights_, coef)


def test_intervals_of_three_classes():
    X, y = make_table(400, n_classes=3, seed=1)
    found = refresh(small_forest(20).fit(X[:200], y[:200]), X[200:], y[200:]).roc_auc
    assert found.low < found.new - found.old < found.high


def test_new_categories_are_known_to_the_new_model():
    random = np.random.default_rng(0)
    shop = random.choice(["a", "b", "c"], 900)
    y = random.random(900) < np.where(shop == "c", 0.8, np.where(shop == "b", 0.3, 0.1))
    X = pd.DataFrame({"shop": shop, "n": random.normal(size=900)})
    is_old = shop != "c"
    old = small_forest(30).fit(X[is_old], y[is_old])
    refreshed = refresh(old, X[~is_old | (np.arange(900) > 450)], y[~is_old | (np.arange(900) > 450)])
    new = pd.DataFrame({"shop": ["a", "c"], "n": [0.0, 0.0]})
    assert refreshed.model.predict_proba(new)[1, 1] > 0.6 > 0.3 > refreshed.model.predict_proba(new)[0, 1]


def test_what_cannot_refresh(old):
    X, y = draw(200, AFTER, 1)
    with pytest.raises(TypeError, match=r"^refresh needs an AUCForestClassifier or an AUCStackingClassifier, got"):
        refresh(LinearAUCClassifier().fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"^these are the rows that the old model was fitted to: pass new ones$"):
        refresh(old, *OLD)
    with pytest.raises(ValueError, match=r"^y has class True in 9 of the rows, but a refresh needs 10 of every class"):
        refresh(old, X, np.arange(200) < 9)
    with pytest.raises(ValueError, match=r"^y has class False in 5 of the groups"):
        refresh(old, X, y, groups=np.arange(200) % 5)
    with pytest.raises(ValueError, match=r"no class of the old model"):
        refresh(old, X, np.where(y, "yes", "no"))
    with pytest.raises(ValueError, match=r"^X has 3 features, but AUCForestClassifier is expecting 4"):
        refresh(old, X[:, :3], y)
    with pytest.raises(ValueError, match=r"level"):
        refresh(old, X, y, level=95)


def test_the_old_model_may_change_afterwards(old):
    """And the rows of an older member are no new ones."""
    X, y = draw(400, AFTER, 1)
    model = small_forest(30).fit(*OLD)
    refreshed = refresh(model, X, y).model
    before = refreshed.predict_proba(X)
    model.set_prevalence(0.5)
    np.testing.assert_array_equal(refreshed.predict_proba(X), before)
    model.fit(X[:100], y[:100])
    np.testing.assert_array_equal(refreshed.predict_proba(X), before)
    with pytest.raises(ValueError, match=r"^these are the rows that the old model was fitted to"):
        refresh(refreshed, *OLD)
    named = small_forest(30).fit(pd.DataFrame(OLD[0]).add_prefix("x"), OLD[1])
    with (
        pytest.warns(UserWarning, match="X does not have valid feature names"),
        pytest.raises(ValueError, match=r"^X must be like the rows .* was fitted to: columns with names"),
    ):
        refresh(named, X, y)
