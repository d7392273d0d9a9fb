"""Thresholds and class frequencies that are set after the fit."""

import copy

import numpy as np
import pandas as pd
import pytest

from aucforest.metrics import optimal_threshold
from tests.estimators.data import WEIGHT, X3, Y3, assert_same, make_rare, small_forest
from tests.estimators.stacks import small_stack
from tests.estimators.test_model_files import saved
from tests.persistence.trees import assert_same_trees

X, Y = make_rare(300, seed=2)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
def test_a_threshold_set_afterwards(weight):
    params = {"n_estimators": 30, "sampling": "balanced"}
    forest = small_forest(**params, threshold="youden").fit(X, Y, weight)
    trees = copy.deepcopy(forest.trees_)
    for rule in ("f1", {"cost": [[-1, 2], [9, 0.5]]}, {"alerts": 40}, "prevalence", 0.3, None):
        fitted = small_forest(**params, threshold=rule).fit(X, Y, weight)
        assert forest.set_threshold(rule, X, Y, weight) is forest
        assert forest.threshold_ == fitted.threshold_
        assert getattr(forest, "threshold_std_", None) == getattr(fitted, "threshold_std_", None)
        assert forest.get_params()["threshold"] == rule
        assert_same_trees(forest.trees_, trees)
        np.testing.assert_array_equal(forest.predict(X), fitted.predict(X))


def test_a_threshold_that_needs_no_data():
    forest = small_forest(30, bootstrap=False).fit(X, Y)
    for rule, expected in (("prevalence", np.mean(Y == "rare")), (0.9, 0.9), (None, None)):
        assert forest.set_threshold(rule).threshold_ == expected
    many, cost = small_forest(3).fit(X3, Y3), {"cost": 1 - np.eye(3)}
    np.testing.assert_array_equal(many.set_threshold(cost).predict(X3), many.set_threshold(None).predict(X3))


@pytest.fixture(scope="module")
def fitted():
    return small_forest(30, threshold="gmean").fit(X, Y), small_stack(30, stack={"threshold": "gmean"}).fit(X, Y)


COSTS = {"cost": np.ones((300, 2, 2)) - np.eye(2)}
OF_BAG = "^threshold='f1' is tuned on out-of-bag samples: pass the X and y of fit$"
IN_ORDER = "must be the training %s in the order of fit.*; to tune a threshold on other samples, pass oob=False$"
BETWEEN = "^prevalence must be a number between 0 and 1"
BAD_ARGUMENTS = {
    "set_threshold": [
        (("f1",), OF_BAG), (("f1", X), OF_BAG), (("f1", X[::-1], Y), "^X " + IN_ORDER % "samples"),
        (("f1", X[:299], Y[:299]), "^X and y must be the training data: the trees were grown on 300 of 300 samples"),
        (("f1", X, Y, WEIGHT), "on 300 of 300 samples, not on ([12]..) of \\1 samples"),
        (("f1", X, Y, WEIGHT[:9]), r"sample_weight.*; to tune a threshold on other samples, pass oob=False$"),
        (("f1", X, Y, -np.ones(300)), "Negative values"), (("f1", X, Y[:299]), "^y has 299 samples, but X has 300"),
        (("f1", X, np.where(Y == "rare", "z", Y)), "the label 'z'"), (("f1", X, Y[::-1]), "^y " + IN_ORDER % "labels"),
        (("f1", X, np.where(Y == "rare", "common", "rare")), "^y " + IN_ORDER % "labels"),
        (("best",), "^threshold must be one of prevalence, gmean, youden, f1, but is 'best'$"),
        ((1.5,), "^threshold must be a number between 0 and 1, but is 1.5$"),
        ((np.nan,), "^threshold must be a number between 0 and 1, but is nan$"),
        (([0.5],), r"^threshold must be a number between 0 and 1, but is \[0.5\]$"),
        (("cost", X, Y), r"^threshold='cost' takes its costs from fit\(X, y, cost=...\): here pass {'cost': array}$"),
    ],
    "tune on other samples": [
        (("f1",), "^threshold='f1' is tuned on samples: pass X and y$"),
        (("f1", X, np.full(300, "rare")), "^threshold='f1' needs samples of both classes in y$"),
        (("f1", X, np.full(300, "other")), "^y has the label 'other', which is no class of the model$"),
        (("f1", X, Y[1:]), "^y has 299 "),
        ((COSTS, X[:9], Y[:9]), "^threshold: cost has 300 matrices, but there are 9 samples$"),
    ],
    "set_prevalence": [
        ((0.0,), f"{BETWEEN}, or positive frequencies of all classes that sum to 1, but is 0.0"),
        *(((given,), BETWEEN) for given in (1.0, float("nan"), [0.5, 0.4], "rare")),
        (([0.5, 0.4, 0.1],), "^prevalence must be a frequency for each of 2 classes"),
        (({"rare": 0.1, "usual": 0.9},), r"has the classes \['rare', 'usual'\], but the model \['common', 'rare'\]"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "arguments", "sentence"),
    [(method, *case) for method, method_cases in BAD_ARGUMENTS.items() for case in method_cases],
)
def test_refused_arguments_change_nothing(method, arguments, sentence, fitted):
    name, options = (method, {}) if "_" in method else ("set_threshold", {"oob": False})
    for model in fitted:
        before = dict(vars(model))
        with pytest.raises(ValueError, match=sentence):
            getattr(model, name)(*arguments, **options)
        assert vars(model) == before


def of_prevalence(proba, prior, prevalence):
    """Return probabilities for other class frequencies by Bayes' rule, sample by sample and class by class."""
    odds = [[p * new / old for p, new, old in zip(row, prevalence, prior)] for row in proba.tolist()]
    return np.array([[each / sum(row) for each in row] for row in odds])


def forest_of(**params):
    return small_forest(30, **params)


def stack_of(**params):
    return small_stack(30, stack=params)


@pytest.mark.parametrize(("make", "params", "n_classes"), [
    *((forest_of, params, 2) for params in ({}, {"calibration": None}, {"sampling": "balanced"})),
    (forest_of, {}, 3), (stack_of, {}, 2),
])  # fmt: skip
def test_probabilities_of_a_population_of_other_class_frequencies(make, params, n_classes, tmp_path):
    rows, labels = (X, Y) if n_classes == 2 else (X3, Y3)
    model = make(oob_score=True, **params).fit(rows, labels)
    before, of_bags = model.predict_proba(rows), model.oob_decision_function_
    new = np.array([0.98, 0.02]) if n_classes == 2 else np.array([0.7, 0.2, 0.1])
    model.set_prevalence(0.02 if n_classes == 2 else new)
    np.testing.assert_allclose(model.prevalence_, new)
    seen = np.isfinite(of_bags[:, 0]) & (of_bags > 1e-6).all(axis=1)  # others are clipped
    out_of_bag = of_prevalence(of_bags[seen], model.class_prior_, new)
    np.testing.assert_allclose(model.oob_decision_function_[seen], out_of_bag, atol=1e-12)
    is_inner = (before > 1e-6).all(axis=1)
    expected = of_prevalence(before[is_inner], model.class_prior_, new)
    np.testing.assert_allclose(model.predict_proba(rows)[is_inner], expected, atol=1e-12)
    assert_same(saved(model, tmp_path), model)
    by_label = dict(zip(model.classes_.tolist()[::-1], new.tolist()[::-1]))
    np.testing.assert_allclose(model.set_prevalence(by_label).predict_proba(rows)[is_inner], expected)
    np.testing.assert_allclose(model.set_prevalence(None).predict_proba(rows)[is_inner], before[is_inner], atol=1e-12)
    assert not hasattr(model, "prevalence_")
    assert not hasattr(model.set_prevalence(new).fit(rows, labels), "prevalence_")


@pytest.mark.parametrize("rule", ["gmean", "youden", {"fpr": 0.1}, {"recall": 0.8}], ids=str)
@pytest.mark.parametrize("make", [forest_of, stack_of])
def test_thresholds_that_do_not_depend_on_prevalence_label_the_same_samples(make, rule):
    model = make(threshold=rule, oob_score=True).fit(X, Y)
    labels, of_bags = model.predict(X), model.oob_decision_function_[:, 1] >= model.threshold_
    model.set_prevalence(0.003)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.oob_decision_function_[:, 1] >= model.threshold_, of_bags)
    kept = model.threshold_
    assert model.set_threshold(rule, X, Y).threshold_ == pytest.approx(kept, rel=1e-9)


@pytest.mark.parametrize("make", [forest_of, stack_of])
def test_thresholds_that_depend_on_prevalence_are_tuned_for_it(make):
    rule = {"cost": [[0, 1], [4, 0]]}
    model = make(threshold=rule, oob_score=True).fit(X, Y)
    labels = model.predict(X)
    with pytest.warns(UserWarning, match="was tuned for other class frequencies"):
        model.set_prevalence(0.4)
    np.testing.assert_array_equal(model.predict(X), labels)
    model.set_threshold(rule, X, Y)
    seen = np.isfinite(model.oob_decision_function_[:, 0])
    is_rare, score = (Y == "rare")[seen], model.oob_decision_function_[seen, 1]
    weights = np.where(is_rare, 0.4 / np.mean(Y == "rare"), 0.6 / np.mean(Y == "common"))
    expected = optimal_threshold(is_rare, score, criterion="cost", cost=rule["cost"], sample_weight=weights)
    assert model.threshold_ == pytest.approx(expected, rel=1e-12)
    assert model.set_threshold("prevalence").threshold_ == 0.4
    assert model.set_prevalence(0.01).threshold_ == 0.01
    assert model.set_threshold(0.4).set_prevalence(0.1).threshold_ == 0.4


def test_a_warm_start_begins_with_the_class_frequencies_of_the_training():
    forest = small_forest(30, warm_start=True, sampling="subsample").fit(X, Y)
    before = forest.calibration_.intercepts
    forest.set_prevalence(0.01).set_params(n_estimators=31, sampling="bootstrap")
    with pytest.warns(UserWarning, match="calibration stay"):
        forest.fit(X, Y)
    np.testing.assert_allclose(forest.calibration_.intercepts, before)


def test_weighted_classes_and_those_without_samples_have_no_prevalence():
    for model in (small_forest(5, class_weight="balanced"), small_stack(30, class_weight={"rare": 3})):
        with pytest.raises(ValueError, match=r"^set_prevalence needs a model without class weights, but it has"):
            model.fit(X, Y).set_prevalence(0.1)
    rows = np.arange(300) < 5
    forest = small_forest(5).fit(X, np.where(rows, "none", Y), np.where(rows, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"^set_prevalence needs training samples of all classes, but class 'none'"):
        forest.set_prevalence({"none": 0.1, "rare": 0.1, "common": 0.8})


def test_sampling_by_class_without_calibration_and_back():
    """The mean over trees is restored, and samples of probability 1 stay positive."""
    forest = small_forest(30, calibration=None, sampling="balanced", threshold="f1").fit(X, Y)
    before, labels = forest.predict_proba(X), forest.predict(X)
    with pytest.warns(UserWarning, match="other class frequencies"):
        forest.set_prevalence(0.3)
    np.testing.assert_array_equal(forest.predict(X), labels)
    with pytest.warns(UserWarning, match="other class frequencies"):
        forest.set_prevalence(None)
    assert forest.calibration_ is None
    np.testing.assert_array_equal(forest.predict_proba(X), before)
    np.testing.assert_array_equal(forest.predict(X), labels)
    threshold = forest.threshold_
    assert forest.set_prevalence(None).threshold_ == threshold
    table = np.arange(200.0)[:, None]
    sure = small_forest(30, calibration=None, threshold="gmean").fit(table, table[:, 0] > 150)
    labels = sure.predict(table)
    np.testing.assert_array_equal(sure.set_prevalence(0.001).predict(table), labels)


def test_the_class_frequencies_of_a_stack_are_those_of_its_samples():
    stack = small_stack(30, calibration=None, sampling="balanced").fit(X, Y)
    np.testing.assert_allclose(stack.class_prior_, [np.mean(Y == "common"), np.mean(Y == "rare")])
    series = pd.Series({"rare": 0.02, "common": 0.98})
    np.testing.assert_array_equal(stack.set_prevalence(series).prevalence_, [0.98, 0.02])
