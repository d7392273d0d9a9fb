"""One tree as a scikit-learn classifier: the checks of scikit-learn, parameters kept to, weights, nodes."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from aucforest import AUCTreeClassifier
from aucforest.tree import growing
from tests.estimators.data import digest, make_table, small_forest, small_tree, walk

X, Y = make_table(n_rows=240, n_classes=3, missing=0.1)

CRITERIA = ["auc", "gini", "entropy", "hellinger"]

both = pytest.mark.parametrize("make", [small_tree, small_forest])


@parametrize_with_checks([AUCTreeClassifier()])
def test_scikit_learn(estimator, check):
    check(estimator)


def leaves(model, name):
    return np.concatenate([getattr(tree, name)[tree.is_leaf] for tree in model.trees_])


def cuts(model, name):
    return np.concatenate([getattr(tree, name)[~tree.is_leaf] for tree in model.trees_])


def check_bound(make, smallest, bound, **params):
    """Trees keep to the bound, and would not without it."""
    assert smallest(make().fit(X, Y)) < bound <= smallest(make(**params).fit(X, Y))


@both
def test_max_depth(make):
    assert [tree.max_depth for tree in make(max_depth=3).fit(X, Y).trees_] == [3] * len(make().fit(X, Y).trees_)
    assert max(tree.max_depth for tree in make().fit(X, Y).trees_) > 3


@both
def test_min_samples_split(make):
    check_bound(make, lambda model: cuts(model, "n_samples").min(), 30, min_samples_split=30)
    exact = make(min_samples_split=24).fit(X, Y)
    assert digest(make(min_samples_split=0.1).fit(X, Y)) == digest(exact) != digest(make().fit(X, Y))


@both
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 240)], ids=["rows", "weights"])
def test_min_samples_leaf(make, weights):
    model = make(min_samples_leaf=12).fit(X, Y, weights)
    assert leaves(model, "n_samples").min() >= 12
    assert leaves(make().fit(X, Y, weights), "n_samples").min() < 12
    assert digest(make(min_samples_leaf=0.05).fit(X, Y, weights)) == digest(model)


@both
@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 3, 240) ** 3], ids=["rows", "weights"])
def test_min_weight_fraction_leaf(make, weights):
    def lightest(model):
        return min((tree.weight / tree.weight[0])[tree.is_leaf].min() for tree in model.trees_)

    assert lightest(make(min_weight_fraction_leaf=0.1).fit(X, Y, weights)) >= 0.1
    assert lightest(make().fit(X, Y, weights)) < 0.1
    halves = make(min_weight_fraction_leaf=0.5).fit(X, Y, weights)
    assert max(tree.n_leaves for tree in halves.trees_) <= 2


@both
@pytest.mark.parametrize("criterion", CRITERIA)
def test_min_gain(make, criterion):
    # The first cut takes all there is to gain, but for some labels at random.
    labels = (X[:, 0] > 0) ^ (np.arange(240) % 16 == 0)
    params = {"criterion": criterion, "max_features": None}
    full = make(**params).fit(X, labels)
    bound = min(tree.gain[0] for tree in full.trees_)
    kept = make(min_gain=bound, **params).fit(X, labels)
    assert cuts(full, "gain").min() < bound == cuts(kept, "gain").min()
    above = make(min_gain=np.nextafter(bound, 2), **params).fit(X, labels)
    assert min(tree.n_nodes for tree in above.trees_) == 1


@both
def test_fractions_are_of_the_rows_of_positive_weight(make):
    weights = np.where(np.arange(240) % 2 == 0, 1.0, 0.0)
    some = make(min_samples_leaf=0.1).fit(X, Y, weights)
    assert digest(some) == digest(make(min_samples_leaf=12).fit(X, Y, weights))


@both
@pytest.mark.parametrize(
    "alike", [[None, 5, 1.0, 9], ["sqrt", "log2", 2, 0.4, 0.59], [1, 1e-9, 0.2]], ids=["all", "two", "one"]
)
def test_max_features(make, alike):
    first, *others = [digest(make(max_features=value).fit(X, Y)) for value in alike]
    assert [other == first for other in others] == [True] * len(others)


@both
def test_max_features_are_drawn_anew_at_every_node(make):
    roots = [make(max_features=1, random_state=seed).fit(X, Y).trees_[0].feature[0] for seed in range(30)]
    assert set(roots) == set(range(5))
    best = [make(max_features=None, random_state=seed).fit(X, Y).trees_[0].feature[0] for seed in range(30)]
    assert set(best) <= {0, 1}


@both
def test_criteria_differ_and_log_loss_is_entropy(make):
    trees = {name: digest(make(criterion=name).fit(X, Y)) for name in [*CRITERIA, "log_loss"]}
    assert trees["log_loss"] == trees["entropy"]
    assert len({str(tree) for tree in trees.values()}) == 4


@both
def test_max_bins(make):
    # Every value has its own code already, so there is no difference; with two bins there is one threshold a feature.
    assert digest(make(max_bins=240).fit(X, Y)) == digest(make(max_bins=None).fit(X, Y))
    coarse = make(max_bins=2).fit(X, Y)
    thresholds = {(f, t) for f, t in zip(cuts(coarse, "feature"), cuts(coarse, "threshold")) if np.isfinite(t)}
    assert len(thresholds) == len({f for f, _ in thresholds})


@both
def test_parameters_of_any_number_type_compile_nothing(make):
    make().fit(X, Y)
    before = len(growing._grow.signatures)
    make(max_depth=np.int32(3), min_gain=0, min_samples_leaf=np.uint8(2), max_features=np.int16(2)).fit(X, Y)
    make(min_samples_split=np.float64(0.5), min_weight_fraction_leaf=0).fit(X, Y)
    make(min_gain=np.float64(0.5), criterion="gini").fit(X, Y)
    assert len(growing._grow.signatures) == before


# Values on a coarse grid: the bins do not depend on weights.
COARSE = np.round(X, 1)


@both
@pytest.mark.parametrize("criterion", CRITERIA)
def test_class_weights_are_weights_of_rows(make, criterion):
    shares = 240 / (3 * np.bincount(Y))
    balanced = make(class_weight="balanced", criterion=criterion).fit(COARSE, Y)
    assert digest(balanced) == digest(make(class_weight=dict(enumerate(shares)), criterion=criterion).fit(COARSE, Y))
    assert digest(balanced) == digest(make(criterion=criterion).fit(COARSE, Y, shares[Y]))
    assert digest(balanced) != digest(make(criterion=criterion).fit(COARSE, Y))


@both
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2, 1: 1, 2: 7.5}])
def test_a_row_of_weight_zero_is_absent(make, criterion, class_weight):
    weights = np.random.default_rng(0).choice([0, 0.3, 1, 2], 240)
    model = make(criterion=criterion, class_weight=class_weight)
    some = digest(model.fit(X, Y, weights))
    assert some == digest(model.fit(X[weights > 0], Y[weights > 0], weights[weights > 0]))


@both
def test_zeros_beside_ones_are_as_if_there_were_no_weights(make):
    weights = np.arange(240) % 3 != 0
    assert digest(make().fit(X, Y, weights)) == digest(make().fit(X[weights], Y[weights], np.ones(160)))
    some, unweighted = make().fit(X, Y, weights), make().fit(X[weights], Y[weights])
    np.testing.assert_array_equal(some.predict_proba(X), unweighted.predict_proba(X))


@both
def test_a_class_of_weight_zero_keeps_its_column(make):
    model = make().fit(X, Y, np.where(Y == 1, 0.0, 1.0))
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], np.zeros(240))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_bins", [20, None])
def test_an_integer_weight_is_copies(criterion, max_bins):
    weights = np.random.default_rng(1).integers(1, 5, 240)
    tree = small_tree(criterion=criterion, max_bins=max_bins).fit(X, Y, weights).tree_
    copies = small_tree(criterion=criterion, max_bins=max_bins)
    copies = copies.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights)).tree_
    for name in ("feature", "threshold", "missing_left", "left_child", "gain", "weight"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(copies, name))
    np.testing.assert_allclose(tree.value, copies.value, rtol=1e-15)
    np.testing.assert_array_equal(tree.n_samples < copies.n_samples, tree.weight > tree.n_samples)


@both
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("scale", [2.0**-600, 2.0**-3, 2.0**20, 2.0**600])
def test_weights_have_no_unit(make, criterion, scale):
    weights = np.random.default_rng(2).uniform(0.1, 3, 240)
    small, large = (make(criterion=criterion).fit(X, Y, weights * unit) for unit in (1.0, scale))
    for tree, other in zip(small.trees_, large.trees_, strict=True):
        other.validate()
        np.testing.assert_array_equal(other.weight, tree.weight * scale)
        for name in ("feature", "threshold", "missing_left", "left_child", "gain", "n_samples", "value"):
            np.testing.assert_array_equal(getattr(other, name), getattr(tree, name))


@both
@pytest.mark.parametrize("extremes", [(1e-200, 1e200), (1e-200, 1.0), (1.0, 1e200), (1e200, 1e200), (1e-200, 1e-200)])
def test_extreme_weights_stay_finite(make, extremes):
    model = make().fit(X, Y, np.resize(extremes, 240))
    for tree in model.trees_:
        tree.validate()
    assert np.all(np.isfinite(model.predict_proba(X)))


def test_a_tree_fits_rows_that_can_be_told_apart():
    tree = small_tree().fit(X, Y)
    assert tree.score(X, Y) == 1.0
    assert tree.tree_.weight[0] == 240
    np.testing.assert_allclose(tree.tree_.value[0], np.bincount(Y) / 240)
    assert tree.get_depth() == tree.tree_.max_depth > 3
    assert tree.get_n_leaves() == tree.tree_.n_leaves == len(np.unique(tree.apply(X)))
    tree.tree_.validate()


def test_every_leaf_says_what_its_rows_are():
    tree = small_tree(max_depth=4).fit(X, Y)
    for leaf in np.unique(tree.apply(X)):
        rows = tree.apply(X) == leaf
        assert tree.tree_.n_samples[leaf] == rows.sum()
        np.testing.assert_allclose(tree.tree_.value[leaf], np.bincount(Y[rows], minlength=3) / rows.sum())


def test_the_root_cut_beats_every_other():
    table, labels = make_table(n_rows=60)
    tree = small_tree(max_features=None, max_depth=1).fit(table, labels).tree_
    best = 0.0
    for column in table.T:
        for cut in np.sort(column)[:-1]:
            right = column > cut
            best = max(best, abs(right[labels == 1].mean() - right[labels == 0].mean()) / 2)
    assert tree.gain[0] == pytest.approx(best, rel=1e-12)
    right = table[:, tree.feature[0]] > tree.threshold[0]
    assert abs(right[labels == 1].mean() - right[labels == 0].mean()) / 2 == pytest.approx(best, rel=1e-12)


def test_the_path_of_a_row():
    tree = small_tree().fit(X, Y)
    paths = tree.decision_path(X)
    assert paths.shape == (240, tree.tree_.n_nodes)
    assert paths.dtype == np.int64
    for row in range(0, 240, 7):
        assert sorted(paths[row].indices) == walk(tree.tree_, X[row])
    assert set(paths.data) == {1}
    stump = small_tree().fit(np.zeros((3, 1)), [0, 1, 1])
    np.testing.assert_array_equal(stump.decision_path(np.zeros((2, 1))).toarray(), [[1], [1]])
    assert stump.get_depth() == 0


def test_random_state():
    def grow(state):
        return digest(AUCTreeClassifier(max_features=1, random_state=state).fit(X, Y))

    assert grow(5) == grow(5) != grow(6)
    state = np.random.RandomState(0)
    again = np.random.RandomState(0)
    assert [grow(state), grow(state)] == [grow(again), grow(again)]
    assert grow(np.random.RandomState(0)) != grow(state)
    assert grow(None) != grow(None)
