"""One tree as a scikit-learn classifier: the checks of scikit-learn, parameters, weights and ties."""

import pickle

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucforest import AUCTreeClassifier
from aucforest.tree import growing
from tests.estimators.data import both, digest, make_table, own_auc, refuse, small_forest, small_tree

X, Y = make_table(n_rows=240, n_classes=3, missing=0.1)

CRITERIA = ["auc", "gini", "entropy", "hellinger"]


@parametrize_with_checks([AUCTreeClassifier()])
def test_scikit_learn(estimator, check):
    check(estimator)


@both
def test_criteria_differ_and_log_loss_is_entropy(make):
    trees = [str(digest(make(criterion=name).fit(X, Y))) for name in [*CRITERIA, "log_loss"]]
    assert trees[-1] == trees[CRITERIA.index("entropy")]
    assert len(set(trees)) == 4


BOUNDS = {
    "max_depth": (3, lambda tree: tree.max_depth == 3),
    "min_samples_split": (24, lambda tree: tree.n_samples[~tree.is_leaf].min() >= 24),
    # The fraction is of the rows of positive weight.
    "min_samples_leaf": (0.1, lambda tree: 12 <= tree.n_samples[tree.is_leaf].min() < 24),
    "min_weight_fraction_leaf": (0.1, lambda tree: np.all(tree.weight[tree.is_leaf] >= 0.1 * tree.weight[0])),
    "max_leaf_nodes": (7, lambda tree: tree.n_leaves == 7),
}


@both
@pytest.mark.parametrize("name", BOUNDS)
def test_trees_keep_to_bounds(make, name):
    value, holds = BOUNDS[name]
    weights = np.where(np.arange(240) % 2, np.linspace(0.5, 2.0, 240), 0.0)
    assert all(map(holds, make(**{name: value}).fit(X, Y, weights).trees_))
    assert not any(map(holds, make().fit(X, Y, weights).trees_))


@both
def test_max_features_are_drawn_anew_at_every_node(make):
    def roots(n):
        return {make(max_features=n, random_state=seed).fit(X, Y).trees_[0].feature[0] for seed in range(30)}

    assert roots(1) == set(range(5))
    assert roots(None) <= {0, 1}


@both
def test_max_bins(make):
    # With 240 bins every value has its own bin; with two bins a feature has one threshold.
    assert digest(make(max_bins=240).fit(X, Y)) == digest(make(max_bins=None).fit(X, Y))
    coarse = make(max_bins=2).fit(X, Y)
    splits = (zip(tree.feature[~tree.is_leaf], tree.threshold[~tree.is_leaf]) for tree in coarse.trees_)
    thresholds = {(feature, threshold) for pairs in splits for feature, threshold in pairs if np.isfinite(threshold)}
    assert len(thresholds) == len(dict(thresholds))


@both
def test_parameters_of_any_number_type_compile_nothing(make):
    make().fit(X, Y)
    before = len(growing._grow_for_more_classes.signatures)
    make(max_depth=np.int32(3), min_gain=0, min_samples_leaf=np.uint8(2), max_features=np.int16(2)).fit(X, Y)
    make(min_samples_split=np.float64(0.5), min_weight_fraction_leaf=0).fit(X, Y)
    make(min_gain=np.float64(0.5), criterion="gini").fit(X, Y)
    assert len(growing._grow_for_more_classes.signatures) == before


# With few values, the bins do not depend on weights.
COARSE = np.round(X, 1)


@both
@pytest.mark.parametrize("criterion", CRITERIA)
def test_class_weights_are_weights_of_rows(make, criterion):
    shares = 240 / (3 * np.bincount(Y))
    balanced, by_class, by_row, unweighted = (
        digest(make(class_weight=given, criterion=criterion).fit(COARSE, Y, weights))
        for given, weights in (("balanced", None), (dict(enumerate(shares)), None), (None, shares[Y]), (None, None))
    )
    assert balanced == by_class == by_row != unweighted


@both
@pytest.mark.parametrize("values", [[0, 0.3, 1, 2], [0, 1]])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2, 1: 1, 2: 7.5}])
def test_a_row_of_weight_zero_is_absent(make, values, class_weight):
    weights = np.random.default_rng(0).choice(values, 240)
    kept, model = weights > 0, make(class_weight=class_weight)
    some, proba = digest(model.fit(X, Y, weights)), model.predict_proba(X)
    assert some == digest(model.fit(X[kept], Y[kept], weights[kept]))
    if values == [0, 1]:
        np.testing.assert_array_equal(proba, model.fit(X[kept], Y[kept]).predict_proba(X))


def test_a_tree_fits_rows_that_can_be_told_apart():
    tree = small_tree().fit(X, Y)
    assert tree.score(X, Y) == 1.0
    assert tree.tree_.weight[0] == 240
    np.testing.assert_allclose(tree.tree_.value[0], np.bincount(Y) / 240)
    assert tree.get_depth() == tree.tree_.max_depth > 3
    assert tree.get_n_leaves() == tree.tree_.n_leaves == len(np.unique(tree.apply(X)))


@both
def test_random_state(make):
    def grow(state):
        return digest(make(max_features=1, random_state=state).fit(X, Y))

    assert grow(5) == grow(5) != grow(6)
    state, again = np.random.RandomState(0), np.random.RandomState(0)
    first, second = grow(state), grow(state)
    assert [grow(again), grow(again)] == [first, second]
    assert first != second
    assert grow(None) != grow(None)


X_OPTIONS, Y_OPTIONS = make_table(missing=0.1)
FRAME = pd.DataFrame(X_OPTIONS, columns=list("abcde"))
KINDS = FRAME.assign(c=list("uvw") * 80)


@given(st.integers(0, 2**31 - 1), st.sampled_from([*CRITERIA, own_auc]), st.data())
def test_probabilities_are_monotone(seed, criterion, more):
    """Probabilities are monotone in every constrained feature, to the last bit."""
    table, labels = make_table(n_rows=more.draw(st.integers(10, 120)), seed=seed, missing=0.1)
    signs = more.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=5, max_size=5))
    params = {
        "splitter": more.draw(st.sampled_from(["best", "random"])),
        "max_leaf_nodes": more.draw(st.sampled_from([None, 3, 20])),
        "class_weight": more.draw(st.sampled_from([None, "balanced", {0: 0.3, 1: 2.7}])),
        "max_bins": more.draw(st.sampled_from([6, 255])),
        "shrinkage": more.draw(st.sampled_from(["auto", 0.0, 1.0, 30.0])),
    }
    weights = more.draw(st.sampled_from([None, np.linspace(0.1, 3.0, len(table))]))
    model = small_forest(criterion=criterion, monotonic_cst=signs, **params).fit(table, labels, weights)
    for feature in np.flatnonzero(signs):
        thresholds = np.concatenate([tree.threshold[tree.feature == feature] for tree in model.trees_])
        grid = np.concatenate(([-np.inf], np.unique(thresholds), [np.inf]))
        for row in table[:12]:
            moved = np.repeat(row[None], len(grid), axis=0)
            moved[:, feature] = grid
            assert np.all(signs[feature] * np.diff(model.predict_proba(moved)[:, 1]) >= 0)


@both
def test_constraints_by_name(make):
    by_name = make(monotonic_cst={"b": 1, "d": -1}).fit(FRAME, Y_OPTIONS)
    assert digest(by_name) == digest(make(monotonic_cst=[0, 1, 0, -1, 0]).fit(X_OPTIONS, Y_OPTIONS))
    assert roc_auc_score(Y_OPTIONS, by_name.predict_proba(FRAME)[:, 1]) > 0.8
    assert digest(make(monotonic_cst=[0] * 5).fit(X_OPTIONS, Y_OPTIONS)) == digest(make().fit(X_OPTIONS, Y_OPTIONS))


@both
@pytest.mark.parametrize(("signs", "data", "sentence"), [
    ([1, 0], (FRAME, Y_OPTIONS), r"monotonic_cst has shape \(2,\) but the input data X has 5 features"),
    ([2, 0, 0, 0, 0], (FRAME, Y_OPTIONS), "must be an array-like of -1, 0 or 1"),
    ({"a": 1}, (X_OPTIONS, Y_OPTIONS), "monotonic_cst is a dict of feature names, but X has no feature names"),
    ([1, 0, 0, 0, 0], (X, Y), "^monotonic_cst needs two classes, but y has 3$"),
    ({"a": 1, "c": 1}, (KINDS, Y_OPTIONS), "^monotonic_cst of feature 2 must be 0, because the feature"),
], ids=["shape", "values", "names", "classes", "categories"])  # fmt: skip
def test_wrong_constraints(make, signs, data, sentence):
    refuse(make(monotonic_cst=signs), sentence, *data)


def test_an_own_criterion_sees_weights_of_rows():
    @numba.njit
    def most_weight_left(left, node):
        return left.sum()

    for unit in (1.0, 0.125, 3.7):
        stump = small_tree(criterion=most_weight_left, max_depth=1)
        tree = stump.fit(np.nan_to_num(X_OPTIONS), Y_OPTIONS, np.full(240, unit)).tree_
        assert (tree.gain[0], tree.weight[0]) == pytest.approx((tree.weight[1], 240 * unit), rel=1e-12)


@both
def test_an_own_criterion_is_cloned_and_pickled(make):
    model = make(criterion=own_auc)
    assert digest(clone(model).fit(X_OPTIONS, Y_OPTIONS)) == digest(model.fit(X_OPTIONS, Y_OPTIONS))
    assert digest(pickle.loads(pickle.dumps(model)).fit(X_OPTIONS, Y_OPTIONS)) == digest(model)


def test_functions_that_are_no_criteria():
    @numba.njit
    def fails(left, node):
        raise ZeroDivisionError

    no_number, divides = numba.njit(lambda left, node: left), numba.njit(lambda left, node: 1 / int(left[0] - left[0]))
    for function, sentence, error in (
        (own_auc.py_func, "own_auc is not compiled, decorate it with numba.njit$", TypeError),
        (no_number, "<lambda> does not compile to a function of two float64 arrays", ValueError),
        (fails, "fails ", ValueError),
        (divides, "<lambda> ", ValueError),
    ):
        refuse(small_tree(criterion=function), f"^criterion: {sentence}", X_OPTIONS, Y_OPTIONS, error=error)


def grow(X, y, weights=None, **params):
    """Fit a tree; a flat X is one column."""
    X = np.reshape(np.asarray(X, dtype=np.float64), (len(y), -1))
    return AUCTreeClassifier(**{"random_state": 0, **params}).fit(X, y, weights)


# With these weights, the fractions of the classes on the left differ by 2.5e-13, so the AUC is 1/2 + 1.2e-13.
NEARLY_ALIKE = np.array([1_000_000, 999_999, 1_000_001, 1_000_000])


@pytest.mark.parametrize(
    ("criterion", "params", "n_nodes"),
    [("auc", {}, 3), (own_auc, {}, 3), ("gini", {}, 1), ("entropy", {}, 1), ("hellinger", {}, 1),
     ("auc", {"splitter": "random"}, 3), ("auc", {"monotonic_cst": [-1]}, 1)],
)  # fmt: skip
def test_how_little_a_cut_may_gain(criterion, params, n_nodes):
    tree = grow([1, 1, 2, 2], [0, 1, 0, 1], NEARLY_ALIKE, criterion=criterion, **params).tree_
    assert tree.n_nodes == n_nodes


@pytest.mark.parametrize(
    ("unit", "params", "threshold"), [(1, {}, 2.5), (0.1, {}, 1.5), (1, {"monotonic_cst": [1]}, 2.5)], ids=str
)
def test_auc_of_two_classes_tells_integers_apart(unit, params, threshold):
    # The rows in the middle have the fractions above. The split after 2 gains 1.2e-13 more than the split after 1. Only
    # integer weights show this.
    x, y = [1, 2, 2, 3, 3], [0, 0, 1, 0, 1]
    weights = np.array([500_000, 1_000_000, 999_999, 500_001, 1_000_000])
    assert grow(x, y, weights * unit, max_depth=1, **params).tree_.threshold[0] == threshold


@pytest.mark.parametrize(("frequent", "rarest"), [(range(46, 300), range(46)), (range(0), range(254, 300))])
def test_the_rarest_of_many_categories_share_a_place(frequent, rarest):
    x = np.concatenate([np.arange(300), frequent])
    tree = grow(x, np.arange(len(x)) % 2, categorical_features=[0])
    assert tree.categories_[0].tolist() == [*sorted(set(range(300)) - set(rarest)), *rarest]
    assert len(set(tree.apply(np.array(rarest)[:, None]).tolist())) == 1
