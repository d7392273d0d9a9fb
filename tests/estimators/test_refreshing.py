"""Models that are refreshed with new rows."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import t as student
from sklearn.metrics import log_loss

from aucforest import LinearAUCClassifier, refresh
from aucforest.estimators import _stack_fit
from aucforest.estimators._combination import combine
from aucforest.fitting.out_of_bag import parts_of_rows
from aucforest.metrics import compare_auc, roc_auc_score
from tests.estimators.data import assert_same, make_table, small_forest
from tests.estimators.stacks import small_stack
from tests.estimators.test_model_files import assert_same_predictions, saved
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
    before, found = copy.deepcopy(old), [refresh(old, *draw(n_rows, AFTER, 1)) for n_rows in (60, 400, 2000)]
    models = old, *(refreshed.model for refreshed in found)
    aucs = [roc_auc_score(FAR[1], model.predict_proba(FAR[0])[:, 1]) for model in models]
    assert aucs == sorted(set(aucs))
    assert found[0].old_weight > found[1].old_weight > found[2].old_weight
    assert found[2].roc_auc.low > 0.0
    assert str(found[2]).startswith("The refreshed model ranks better than the old one on the new rows: ROC AUC")
    assert_same(old, before)


def test_where_nothing_has_changed_the_old_model_stays(old):
    refreshed = refresh(old, *draw(200, BEFORE, 2))
    assert refreshed.old_weight > 0.8
    assert refreshed.roc_auc.low <= 0.0 <= refreshed.roc_auc.high
    assert "neither better nor worse than the old one" in str(refreshed)
    assert "The old model is kept; weights of the members: old " in str(refreshed)


def test_intervals_on_noise():
    """The interval of the difference contains 0 in almost all cases."""
    model = small_forest(20).fit(*draw(200, np.zeros(4), 3))
    found = (refresh(model, *draw(150, np.zeros(4), seed)).roc_auc for seed in range(10, 20))
    assert sum(auc.low <= 0.0 <= auc.high for auc in found) >= 9


@pytest.mark.parametrize("make", [small_forest, small_stack])
def test_probabilities_are_the_combination_of_both_models(make, tmp_path):
    X, y = draw(500, [0.5, 0.5, 0.5, 0.0], 4)
    refreshed = refresh(make(30).set_params(threshold="gmean").fit(*OLD), X, y).model
    assert list(refreshed.members_)[:2] == ["old", "forest"]
    assert (len(refreshed.members_) > 2) == (make is small_stack)
    if make is small_forest:
        scores = [np.log(member.predict_proba(X)) for member in refreshed.members_.values()]
        given = refreshed.weights_, refreshed.intercepts_, scores
        expected = [softmax(reference.class_scores(*given, row)) for row in range(len(X))]
        np.testing.assert_allclose(refreshed.predict_proba(X), expected, atol=1e-12)
    assert refreshed.threshold == "gmean"
    loaded = saved(refreshed, tmp_path)
    assert_same_predictions(loaded, refreshed, X)
    again = refresh(loaded, *draw(300, [0.5, 0.5, 0.5, 0.0], 5)).model
    np.testing.assert_array_equal(again.members_["old"].predict_proba(X), refreshed.predict_proba(X))
    assert_same_predictions(saved(again, tmp_path), again, X)
    with pytest.raises(TypeError, match=r"^a refreshed model that keeps an old one cannot be exported to ONNX"):
        refreshed.to_onnx(tmp_path / "model.onnx")


def test_an_old_model_without_weight_is_no_member():
    X, y = draw(1500, AFTER, 6)
    refreshed = refresh(small_forest(20).fit(X[:500], ~y[:500]), X[500:], y[500:])
    assert refreshed.old_weight == 0.0
    assert list(refreshed.model.members_) == ["forest"]
    assert str(refreshed).endswith("The old model is not kept.")
    assert refreshed.model.predict_proba(X).shape == (1500, 2)


def test_the_interval_is_that_of_delong(old):
    X, y = draw(400, AFTER, 7)
    refreshed = refresh(old, X, y, level=0.9)
    seen = np.isfinite(refreshed.model.oob_decision_function_[:, 0])
    new, before = refreshed.model.oob_decision_function_[seen], old.predict_proba(X)[seen]
    test = compare_auc(y[seen], new[:, 1], before[:, 1], level=0.9)
    assert refreshed.roc_auc == (test.auc_a, test.auc_b, *test.interval)
    assert refreshed.log_loss == pytest.approx([log_loss(y[seen], proba) for proba in (new, before)])


def test_the_interval_of_groups_is_that_of_a_jackknife(old):
    """The parts that the jackknife leaves out contain whole groups."""
    X, y = draw(300, AFTER, 8)
    groups = np.arange(300) // 3
    refreshed = refresh(old, X, y, groups=groups, level=0.9)
    new, before = refreshed.model.oob_decision_function_[:, 1], old.predict_proba(X)[:, 1]
    parts = parts_of_rows(y.astype(int), groups)
    assert all(len(set(parts[groups == group])) == 1 for group in range(100))
    difference, *others = (
        roc_auc_score(y[kept], new[kept]) - roc_auc_score(y[kept], before[kept])
        for kept in (parts != part for part in (None, *range(10)))
    )
    margin = student.ppf(0.95, 9) * 3.0 * np.std(others)
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
    assert len(set(scores[0][:, 0])) == 400
    for fitted_to, combination in of_parts:
        out = np.flatnonzero(~np.isin(scores[0][:, 0], fitted_to[0][:, 0]))
        assert 35 <= len(out) <= 45
        own = combination.coef * coef.sum() / combination.coef.sum()
        expected = softmax([own @ [score[row] for score in scores] + intercept for row in out], axis=1)
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
    X, is_old = pd.DataFrame({"shop": shop, "n": random.normal(size=900)}), shop != "c"
    is_new = ~is_old | (np.arange(900) > 450)
    model = refresh(small_forest(30).fit(X[is_old], y[is_old]), X[is_new], y[is_new]).model
    proba = model.predict_proba(pd.DataFrame({"shop": ["a", "c"], "n": [0.0, 0.0]}))
    assert proba[1, 1] > 0.6 > 0.3 > proba[0, 1]


def test_what_cannot_refresh(old):
    X, y = draw(200, AFTER, 1)
    with pytest.raises(TypeError, match=r"^refresh needs an AUCForestClassifier or an AUCStackingClassifier, got"):
        refresh(LinearAUCClassifier().fit(X, y), X, y)
    for data, options, sentence in (
        (OLD, {}, "^these are the rows that the old model was fitted to: pass new ones$"),
        ((X, np.arange(200) < 9), {}, "^y has class True in 9 of the rows, but a refresh needs 10 of every class"),
        ((X, y), {"groups": np.arange(200) % 5}, "^y has class False in 5 of the groups"),
        ((X, np.where(y, "yes", "no")), {}, "no class of the old model"),
        ((X[:, :3], y), {}, "^X has 3 features, but AUCForestClassifier is expecting 4"),
        ((X, y), {"level": 95}, "level"),
    ):
        with pytest.raises(ValueError, match=sentence):
            refresh(old, *data, **options)


def test_the_old_model_may_change_afterwards(old, request):
    """The rows that its member "old" was fitted to are refused, too, and columns without names before the fit."""
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
    request.getfixturevalue("nothing_grows")
    with (
        pytest.warns(UserWarning, match="X does not have valid feature names"),
        pytest.raises(ValueError, match=r"^X must be like the rows .* was fitted to: columns with names"),
    ):
        refresh(named, X, y)
