"""Best-first growth, drawn cuts, monotonic constraints and a user's own criterion as parameters of both classifiers."""

import pickle

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from aucforest import AUCForestClassifier
from aucforest.datasets import load_abalone
from tests.estimators.data import digest, make_table, own_auc, small_forest, small_tree

X, Y = make_table(missing=0.1)
WITH_CATEGORIES = pd.DataFrame(np.nan_to_num(X), columns=list("abcde")).assign(c=pd.Categorical(["u", "v", "w"] * 80))

CRITERIA = ["auc", "gini", "entropy", "hellinger"]

both = pytest.mark.parametrize("make", [small_tree, small_forest])


@both
def test_max_leaf_nodes(make):
    whole = make().fit(X, Y)
    most = max(tree.n_leaves for tree in whole.trees_)
    for n_leaves in (2, 7, most):
        limited = make(max_leaf_nodes=n_leaves).fit(X, Y)
        assert [tree.n_leaves for tree in limited.trees_] == [min(n_leaves, t.n_leaves) for t in whole.trees_]
        for tree in limited.trees_:
            tree.validate()
    np.testing.assert_array_equal(limited.predict_proba(X), whole.predict_proba(X))


@both
@pytest.mark.parametrize("max_bins", [20, 255])
def test_drawn_cuts_lie_between_values_of_the_feature(make, max_bins):
    model = make(splitter="random", max_bins=max_bins).fit(X, Y)
    assert digest(model) != digest(make(max_bins=max_bins).fit(X, Y))
    assert digest(model) == digest(make(splitter="random", max_bins=max_bins).fit(X, Y))
    for tree in model.trees_:
        tree.validate()
        for feature, at in zip(tree.feature, tree.threshold):
            assert feature < 0 or at == np.inf or np.nanmin(X[:, feature]) <= at < np.nanmax(X[:, feature])


@pytest.mark.parametrize(
    "params",
    [
        {"splitter": "random"},
        {"max_leaf_nodes": 9},
        {"monotonic_cst": [1, -1, 0, 0, 1], "criterion": "gini"},
        {"criterion": own_auc, "max_leaf_nodes": 20, "splitter": "random", "class_weight": "balanced"},
    ],
)
def test_threads_and_processes_change_no_bit(params):
    expected = digest(small_forest(20, **params).fit(X, Y))
    for n_jobs in (2, 3):
        assert digest(small_forest(20, n_jobs=n_jobs, **params).fit(X, Y)) == expected


def assert_monotone(model, table, signs):
    """Check that probabilities move one way along every constrained feature, to the last bit."""
    for feature, sign in enumerate(signs):
        thresholds = np.concatenate([tree.threshold[tree.feature == feature] for tree in model.trees_])
        grid = np.concatenate(([-np.inf], np.unique(thresholds), [np.inf]))
        for row in table[:12] if sign != 0 else []:
            moved = np.repeat(row[None], len(grid), axis=0)
            moved[:, feature] = grid
            assert np.all(sign * np.diff(model.predict_proba(moved)[:, 1]) >= 0)


@both
@settings(max_examples=40)
@given(st.integers(0, 2**31 - 1), st.sampled_from([*CRITERIA, own_auc]), st.data())
def test_probabilities_are_monotone(make, seed, criterion, more):
    table, labels = make_table(n_rows=more.draw(st.integers(10, 120)), seed=seed, missing=0.1)
    signs = more.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=5, max_size=5))
    params = {
        "splitter": more.draw(st.sampled_from(["best", "random"])),
        "max_leaf_nodes": more.draw(st.sampled_from([None, 3, 20])),
        "class_weight": more.draw(st.sampled_from([None, "balanced", {0: 0.3, 1: 2.7}])),
        "max_bins": more.draw(st.sampled_from([6, 255])),
    }
    if make is small_forest:
        params["shrinkage"] = more.draw(st.sampled_from(["auto", 0.0, 1.0, 30.0]))
    weights = more.draw(st.sampled_from([None, np.linspace(0.1, 3.0, len(table))]))
    model = make(criterion=criterion, monotonic_cst=signs, random_state=seed, **params).fit(table, labels, weights)
    assert_monotone(model, table, signs)


@both
@pytest.mark.parametrize("criterion", CRITERIA)
def test_constraints_bind(make, criterion):
    free = make(criterion=criterion).fit(X, Y)
    with pytest.raises(AssertionError):
        assert_monotone(free, X, [1, 1, 0, 0, 0])
    bound = make(criterion=criterion, monotonic_cst=[1, 1, 0, 0, 0]).fit(X, Y)
    assert_monotone(bound, X, [1, 1, 0, 0, 0])
    assert roc_auc_score(Y, bound.predict_proba(X)[:, 1]) > 0.85


@both
def test_constraints_by_name(make):
    frame = pd.DataFrame(X, columns=list("abcde"))
    by_name = make(monotonic_cst={"b": 1, "d": -1}).fit(frame, Y)
    assert digest(by_name) == digest(make(monotonic_cst=[0, 1, 0, -1, 0]).fit(X, Y))
    assert digest(make(monotonic_cst=[0] * 5).fit(X, Y)) == digest(make().fit(X, Y))


@both
@pytest.mark.parametrize(
    ("signs", "sentence"),
    [
        ([1, 0], r"monotonic_cst has shape \(2,\) but the input data X has 5 features"),
        ([2, 0, 0, 0, 0], "must be an array-like of -1, 0 or 1"),
        ({"a": 1}, "monotonic_cst is a dict of feature names, but X has no feature names"),
    ],
)
def test_wrong_constraints(make, signs, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(monotonic_cst=signs).fit(X, Y)


@both
def test_constraints_need_two_classes(make):
    with pytest.raises(ValueError, match=r"^monotonic_cst needs two classes, but y has 3$"):
        make(monotonic_cst=[1, 0, 0, 0, 0]).fit(*make_table(n_classes=3))


@both
def test_categories_have_no_order_to_constrain(make):
    with pytest.raises(ValueError, match=r"^monotonic_cst of feature 2 must be 0, because the feature is categorical$"):
        make(monotonic_cst={"a": 1, "c": 1}).fit(WITH_CATEGORIES, Y)


@pytest.mark.slow
@both
def test_probabilities_are_monotone_beside_categories(make):
    model = make(monotonic_cst={"a": 1, "b": 1}).fit(WITH_CATEGORIES, Y)
    moved = WITH_CATEGORIES.loc[np.repeat(np.arange(9), 20)].assign(a=np.tile(np.linspace(-3, 3, 20), 9))
    assert np.all(np.diff(model.predict_proba(moved)[:, 1].reshape(9, 20)) >= 0)


@both
def test_an_own_criterion_is_as_good_as_the_built_in_one(make):
    # Few rows keep fractions apart by more than rounding, so that ties are the same.
    table, labels = make_table(n_rows=64)
    for params in ({}, {"splitter": "random"}, {"max_leaf_nodes": 5}, {"class_weight": "balanced"}):
        own, built_in = (make(criterion=c, **params).fit(table, labels) for c in (own_auc, "auc"))
        np.testing.assert_allclose(
            [tree.gain[0] for tree in own.trees_], [tree.gain[0] for tree in built_in.trees_], rtol=1e-12
        )


@pytest.mark.parametrize("unit", [1.0, 0.125, 3.7])
def test_an_own_criterion_sees_weights_of_rows(unit):
    @numba.njit
    def most_weight_left(left, node):
        return left.sum()

    weights = np.full(len(Y), unit)
    tree = small_tree(criterion=most_weight_left, max_depth=1).fit(np.nan_to_num(X), Y, weights).tree_
    assert tree.gain[0] == pytest.approx(tree.weight[1], rel=1e-12)
    assert tree.weight[0] == pytest.approx(unit * len(Y), rel=1e-12)


@both
def test_an_own_criterion_is_cloned_and_pickled(make):
    model = make(criterion=own_auc)
    assert digest(clone(model).fit(X, Y)) == digest(model.fit(X, Y))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert digest(again.fit(X, Y)) == digest(model)


@both
def test_functions_that_are_no_criteria(make):
    with pytest.raises(TypeError, match=r"^criterion: own_auc is not compiled, decorate it with numba.njit$"):
        make(criterion=own_auc.py_func).fit(X, Y)
    with pytest.raises(ValueError, match=r"^criterion: <lambda> does not compile to a function of two float64 arrays"):
        make(criterion=numba.njit(lambda left, node: left)).fit(X, Y)

    @numba.njit
    def fails(left, node):
        raise ZeroDivisionError

    @numba.njit
    def divides(left, node):
        return 1 / int(left[0] - left[0])

    for function in (fails, divides):
        with pytest.raises(ValueError, match=f"^criterion: {function.__name__} "):
            make(criterion=function).fit(X, Y)


def extra_trees_data():
    abalone, rings = load_abalone(return_X_y=True)
    yield "abalone", abalone, rings >= 11
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "table", "labels"), [pytest.param(*d, id=d[0]) for d in extra_trees_data()])
@pytest.mark.parametrize("max_bins", [255, None])
def test_drawn_cuts_rank_like_extra_trees(name, table, labels, max_bins):
    ours = AUCForestClassifier(
        200, criterion="gini", splitter="random", bootstrap=False, shrinkage=None, max_bins=max_bins, random_state=0
    )
    theirs = ExtraTreesClassifier(200, bootstrap=False, random_state=0)
    aucs = []
    for model in (ours, theirs):
        proba = cross_val_predict(model, table, labels, cv=5, method="predict_proba")
        scores = proba[:, 1] if proba.shape[1] == 2 else proba
        aucs.append(roc_auc_score(labels, scores, multi_class="ovo"))
    assert aucs[0] == pytest.approx(aucs[1], abs=0.006)
