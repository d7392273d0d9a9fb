"""Log odds divided among features: equal to a computation by all subsets, with sums equal to those of predictions."""

from copy import copy
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import roots_legendre
from sklearn.linear_model import LogisticRegression

from aucforest import AUCStackingClassifier, refresh
from aucforest.inspection import explain
from tests.estimators.data import make_table, small_forest, small_tree
from tests.estimators.stacks import DATA, fitted, small_stack
from tests.estimators.test_model_files import saved
from tests.inspection.test_shapley import sides
from tests.reference import log_odds as reference
from tests.reference.shapley import expected

NEW, _ = make_table(20, 4, seed=1)
PLACES, WEIGHTS = roots_legendre(4)
WAY = ((PLACES + 1) / 2).tolist(), (WEIGHTS / 2).tolist()
FORESTS = {
    "default": {}, "pure leaves": {"shrinkage": None, "calibration": None, "bootstrap": False},
    "pure leaves, calibrated": {"shrinkage": None}, "balanced": {"sampling": "balanced"},
    "rates of classes alone": {"sampling": "balanced", "calibration": None},
}  # fmt: skip


def worth_of(forest, row):
    """Return the mean probabilities of the classes for each subset of the features."""
    worth, n_features = {}, len(row)
    for known in (some for size in range(n_features + 1) for some in combinations(range(n_features), size)):
        of_trees = []
        for tree in forest.trees_:
            children = [None if left < 0 else (left, left + 1) for left in tree.left_child.tolist()]
            parts = tree.feature.tolist(), children, tree.weight.tolist(), list(tree.prediction), sides(tree, row)
            of_trees.append(expected(*parts, set(known)))
        worth[known] = np.mean(of_trees, axis=0).tolist()
    return worth


def score_of(forest):
    if forest.calibration_ is None:
        return lambda j, p: np.log(max(p, 1e-9))
    slope, intercepts = forest.calibration_.slope, forest.calibration_.intercepts.tolist()
    return lambda j, p: slope * np.log(max(p, 1e-6)) + intercepts[j]


def check_by_subsets(model, forest, score):
    """Compare the values of a model with those by all subsets of the features of a forest."""
    found = explain(model, NEW[:2])
    for row in range(2):
        worth = worth_of(forest, NEW[row])
        for k in range(len(model.classes_)):
            by_hand = reference.values_on_the_way(worth, 4, k, score, *WAY)
            np.testing.assert_allclose(found.of_class(k).values[row], by_hand, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("calibration", ["auto", None])
def test_all_subsets(n_classes, calibration):
    forest = small_forest(3, calibration=calibration, max_depth=4).fit(*make_table(200, 4, n_classes))
    check_by_subsets(forest, forest, score_of(forest))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_subsets_of_boosted_trees(n_classes):
    """Their scores are linear in the mean over trees."""
    stack = small_stack(20, stack={"random_state": 0}).fit(*make_table(200, 4, n_classes))
    stack.weights_, stack.intercepts_ = np.array([0.0, 0.0, 0.7, 0.0]), np.linspace(-1.0, 1.0, n_classes)
    boosted, scale = stack.members_["boosted"], 0.7 * stack._boosted_scale
    boosted.trees_ = boosted.trees_[::20]
    check_by_subsets(stack, boosted, lambda j, p: scale * p + stack.intercepts_[j])


def shown_log_odds(model, X):
    """Return the log odds of `predict_proba`; probabilities of forests without calibration are raised to 1e-9."""
    proba, is_raw = model.predict_proba(X), getattr(model, "calibration_", None) is None
    proba = np.maximum(proba, 1e-9) if is_raw and not isinstance(model, AUCStackingClassifier) else proba
    others = np.stack([np.delete(proba, k, axis=1).sum(axis=1) for k in range(proba.shape[1])], axis=1)
    log_odds = np.log(proba) - np.log(others)
    return log_odds[:, 1] if proba.shape[1] == 2 else log_odds


def check_sums(model, X):
    found = explain(model, X)
    assert found.scale == "log_odds"
    assert np.all(np.isfinite(found.values))
    np.testing.assert_allclose(found.predictions, shown_log_odds(model, X), rtol=0, atol=1e-9)
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("params", FORESTS.values(), ids=FORESTS)
def test_sums_of_forests(params, n_classes):
    X, y = make_table(300, 4, n_classes)
    labels = np.array(["no", "yes", "perhaps"])[y]
    forest = small_forest(8, **params).fit(X, labels)
    assert set(forest.predict_proba(X).ravel()) > {0.0, 1.0} or "bootstrap" not in params
    check_sums(forest, np.concatenate((X[:100], NEW)))
    check_sums(small_tree().fit(X, labels), X)


def test_they_follow_other_intercepts():
    X, y = make_table(300, 4, 3)
    forest = small_forest(20).fit(X, y)
    before = check_sums(forest, NEW).base_values
    forest.calibration_ = forest.calibration_._replace(intercepts=np.array([0.0, 1.0, -2.0]))
    assert np.all(np.abs(check_sums(forest, NEW).base_values - before) > 0.1)
    forest.calibration_.intercepts[2] = -np.inf
    found = explain(forest, NEW)
    assert np.all(np.isfinite(found.values))
    logs = np.log(forest.predict_proba(NEW)[:, :2])
    np.testing.assert_allclose(found.predictions[:, :2], logs - logs[:, ::-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", DATA)
def test_sums_of_stacks(name, tmp_path, monkeypatch):
    stack, X = fitted(name)
    assert np.all(stack.weights_ > 0.0)
    found = check_sums(stack, X)
    np.testing.assert_array_equal(np.atleast_2d(found.probabilities.T)[-1], stack.predict_proba(X)[:, -1])
    assert found.values.shape[1] == len(found.feature_names) == len(set(stack._inputs_of_features))
    for other in (explain(stack, X, n_jobs=2), explain(saved(stack, tmp_path), X)):
        np.testing.assert_array_equal(found.values, other.values)
        np.testing.assert_array_equal(found.base_values, other.base_values)
    # Without the correction of rounding errors, the sums are almost exact.
    monkeypatch.setattr("aucforest.estimators.log_odds._match_proba", lambda divided, proba: divided)
    check_sums(stack, X)


def batches_of_towns(n_classes=2):
    """Return three tables with different categories, and their labels."""
    X, y = make_table(900, 3, n_classes)
    numbers, random = pd.DataFrame(X, columns=list("abc")), np.random.default_rng(0)
    towns = (random.integers(*limits, 900).astype(str) for limits in ((0, 60), (20, 90), (50, 150)))
    return [numbers.assign(town=pd.Categorical(town)) for town in towns], y


@pytest.mark.parametrize(("make", "n_classes"), [(small_forest, 3), (small_stack, 2)])
def test_sums_of_refreshed_models(make, n_classes, monkeypatch):
    batches, y = batches_of_towns(n_classes)
    model = make(30).fit(batches[0], y)
    monkeypatch.setattr("aucforest.estimators.log_odds._match_proba", lambda divided, proba: divided)
    for X in batches[1:]:
        model.weights_ = np.full_like(getattr(model, "weights_", np.ones(0)), 0.5)  # all members count
        model = refresh(model, X, y).model
        assert "old" in model.members_
        found = check_sums(model, X[:50])
        assert found.feature_names == ("a", "b", "c", "town")
    np.testing.assert_array_equal(found.values, explain(model, X[:50], n_jobs=2).values)


def test_a_refreshed_model_has_the_values_of_its_members():
    """Each of them reads its own categories and target rates."""
    (before, X, _), y = batches_of_towns()
    model = refresh(small_forest(30).fit(before, y), X, y).model
    assert list(model.members_) == ["old", "forest"]
    for weights, member in zip(np.eye(2), model.members_.values()):
        model.weights_, model.intercepts_ = weights, np.zeros(2)
        of_member = explain(member, X[:50]).values
        np.testing.assert_allclose(check_sums(model, X[:50]).values, of_member, rtol=0, atol=1e-9)


def dated_rows():
    X, y = make_table(600, 2)
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(600) % 300, unit="D")
    return pd.DataFrame(X, columns=["a", "b"]).assign(day=days), y


def test_parts_of_a_date_that_differ():
    """Parts that the new model does not read are one feature with the first part that it reads."""
    frame, y = dated_rows()
    old = small_forest(30, max_depth=4, date_parts=["time", "month", "day of week"]).fit(frame, y)
    model = refresh(copy(old).set_params(date_parts=["month", "hour"]), frame, y[::-1]).model
    assert check_sums(model, frame[:50]).feature_names == ("a", "b", "day: month", "day: hour")
    model.weights_, model.intercepts_ = np.array([1.0, 0.0]), np.zeros(2)
    found = explain(model, frame[:2]).values
    for row in range(2):
        worth = worth_of(old, old._features_of(frame[:2])[row])
        subsets = [known for known in worth if max(known, default=0) < 3]
        together = {known: worth[(*known[:-1], 2, 3, 4) if 2 in known else known] for known in subsets}
        by_hand = reference.values_on_the_way(together, 3, 1, score_of(old), *WAY)
        np.testing.assert_allclose(found[row], [*by_hand, 0.0], rtol=0, atol=1e-9)


def test_sums_of_refreshed_stacks_with_other_parts_of_dates(monkeypatch):
    monkeypatch.setattr("aucforest.estimators.log_odds._match_proba", lambda divided, proba: divided)
    frame, y = dated_rows()
    old = small_stack(30, date_parts=["time", "month", "day of week"]).fit(frame, y)
    old.weights_ = np.full(4, 0.5)  # all members count
    old.forest.set_params(date_parts=["month", "hour"])
    model = refresh(old, frame, y[::-1]).model
    check_sums(model, frame[:50])
    # With the additive model of the old stack alone, the values are its effects.
    old = model.members_["old"]
    old.weights_, old.intercepts_ = np.array([float(name == "linear") for name in old.members_]), np.zeros(2)
    model.weights_, model.intercepts_ = np.eye(len(model.members_))[0], np.zeros(2)
    negative, positive = old.members_["linear"].effects(old._features_of(frame[:50])[:, :5])[0]
    effects = positive - negative
    expected = np.column_stack((effects[:, :2], effects[:, 2:].sum(axis=1), np.zeros(50)))
    np.testing.assert_allclose(explain(model, frame[:50]).values, expected, rtol=0, atol=1e-9)


def test_a_forest_with_probabilities_below_1e_9():
    stack, X = fitted("three classes")
    stack, forest = copy(stack), copy(stack.members_["forest"])
    forest.calibration_ = forest.calibration_._replace(slope=15.0)
    stack.members_ = {**stack.members_, "forest": forest}
    assert forest.predict_proba(X).min() < 1e-9
    check_sums(stack, X)


def test_members_of_two_classes_add_up():
    stack, X = fitted("two classes")
    forest, residual, boosted, linear = stack.members_.values()
    of_boosted = 2.0 * stack._boosted_scale * explain(boosted, X, scale="probability").values
    (of_no, of_yes), _ = linear.effects(X)
    of_members = explain(forest, X).values, explain(residual, X).values, of_boosted, of_yes - of_no
    expected_values = sum(weight * values for weight, values in zip(stack.weights_, of_members, strict=True))
    np.testing.assert_allclose(check_sums(stack, X).values, expected_values, rtol=0, atol=1e-9)


def test_stacks_that_cannot_be_explained():
    stack, X = fitted("two classes")
    with pytest.raises(ValueError, match=r"^scale='probability' is for forests and trees, but the model is a stack: "):
        explain(stack, X, scale="probability")
    own = AUCStackingClassifier(small_forest(20), linear=LogisticRegression(), random_state=0).fit(*make_table())
    own.weights_[3] = 0.5
    with pytest.raises(TypeError, match=r"^linear: a LogisticRegression cannot be explained: use linear="):
        explain(own, X)
    own.weights_[3] = 0.0
    check_sums(own, X)
