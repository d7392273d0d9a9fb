"""Ties and missing values: every statement of docs/mathematics/ties.md, in its order."""

import numba
import numpy as np
import pytest

from aucforest import AUCForestClassifier, AUCTreeClassifier
from aucforest.metrics import optimal_threshold
from tests.estimators.data import digest, make_table

CRITERIA = ["auc", "gini", "entropy", "hellinger"]
NAN = np.nan

all_criteria = pytest.mark.parametrize("criterion", CRITERIA)
both_splitters = pytest.mark.parametrize("splitter", ["best", "random"])
two_and_four_classes = pytest.mark.parametrize("n_classes", [2, 4])


def grow(X, y, weights=None, **params):
    """Grow one tree, on one column where X is flat."""
    X = np.asarray(X, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    return AUCTreeClassifier(**{"random_state": 0, **params}).fit(X, y, weights)


def cut(*args, **params):
    """Return feature, threshold and missing_left of the first cut."""
    tree = grow(*args, max_depth=1, **params).tree_
    return int(tree.feature[0]), float(tree.threshold[0]), bool(tree.missing_left[0])


def blocks(*counts):
    """Return a column of 1, 2, ... whose rows have so many of each class."""
    counts = np.array(counts)
    values, classes = np.indices(counts.shape)
    return np.repeat(1.0 + values.ravel(), counts.ravel()), np.repeat(classes.ravel(), counts.ravel())


# Which cut wins


def winner_and_first(X, y, weights=None, **params):
    """Return the feature that is cut and, as a node that looks at one feature says it, the one that is drawn first."""
    return cut(X, y, weights, **params)[0], cut(X, y, weights, max_features=1, **params)[0]


@all_criteria
@both_splitters
@two_and_four_classes
def test_the_feature_drawn_first_wins(criterion, splitter, n_classes):
    x, y = blocks(np.arange(1, n_classes + 1), np.arange(n_classes, 0, -1))
    found = [
        winner_and_first(np.column_stack([x] * 4), y, criterion=criterion, splitter=splitter, random_state=seed)
        for seed in range(20)
    ]
    assert [winner for winner, _ in found] == [first for _, first in found]
    assert {winner for winner, _ in found} == {0, 1, 2, 3}


@all_criteria
@both_splitters
@two_and_four_classes
def test_missing_values_on_the_right_win(criterion, splitter, n_classes):
    # of either side the two first classes are parted alike
    both = [2, 2, 2, 2][:n_classes]
    x, y = blocks([2, 0, 1, 1][:n_classes], [0, 2, 1, 1][:n_classes], both)
    _, threshold, missing_left = cut(np.where(x == 3, NAN, x), y, criterion=criterion, splitter=splitter)
    assert 1 <= threshold < 2
    assert not missing_left


@all_criteria
@two_and_four_classes
def test_the_lowest_threshold_wins(criterion, n_classes):
    # cuts after 1 and after 2 mirror one another
    x, y = blocks([2, 0, 1, 1][:n_classes], [0, 4, 2, 2][:n_classes], [2, 0, 1, 1][:n_classes])
    assert cut(x, y, criterion=criterion)[1] == 1.5


@all_criteria
@both_splitters
@two_and_four_classes
def test_all_values_or_bins_of_them_make_no_difference(criterion, splitter, n_classes):
    X, y = make_table(n_classes=n_classes, missing=0.2)
    params = {"criterion": criterion, "splitter": splitter, "max_features": 3}
    assert digest(grow(X.round(), y, max_bins=None, **params)) == digest(grow(X.round(), y, **params))


# What alike means


@all_criteria
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("by_class", [np.ones(4), np.array([0.7, 1.9, 0.3, 1 / 3])], ids=["alike", "weighted"])
def test_splits_that_mirror_each_other_are_alike(criterion, n_classes, by_class):
    rng = np.random.default_rng(0)
    for _ in range(60):
        outer, inner = rng.integers(1, 9, (2, n_classes))
        x, y = blocks(outer, inner, outer)
        tree = grow(x, y, by_class[y], criterion=criterion, max_depth=1).tree_
        assert tree.n_nodes == 1 or tree.threshold[0] == 1.5


@all_criteria
@two_and_four_classes
def test_columns_that_mirror_each_other_are_alike(criterion, n_classes):
    x, y = blocks([4, 3, 1, 2][:n_classes], [2, 5, 4, 7][:n_classes])
    weights = np.array([0.7, 1.9, 0.3, 1 / 3])[y]
    for seed in range(8):
        winner, first = winner_and_first(np.column_stack([x, -x]), y, weights, criterion=criterion, random_state=seed)
        assert winner == first


# class fractions on the left that differ by 1 / (2000001 * 1999999): an AUC of 1/2 and 1.2e-13
NEARLY_ALIKE = np.array([1_000_000, 999_999, 1_000_001, 1_000_000])


@numba.njit
def own_auc(left, node):
    return 0.5 * abs(left[0] / node[0] - left[1] / node[1])


@pytest.mark.parametrize(
    ("params", "n_nodes"),
    [
        ({"criterion": "auc"}, 3),
        ({"criterion": own_auc}, 3),
        ({"criterion": "gini"}, 1),
        ({"criterion": "entropy"}, 1),
        ({"criterion": "hellinger"}, 1),
        ({"criterion": "auc", "splitter": "random"}, 3),
        ({"criterion": "auc", "monotonic_cst": [-1]}, 1),
    ],
    ids=["auc", "own", "gini", "entropy", "hellinger", "random", "monotonic"],
)
def test_how_little_a_cut_may_gain(params, n_nodes):
    assert grow([1, 1, 2, 2], [0, 1, 0, 1], NEARLY_ALIKE, **params).tree_.n_nodes == n_nodes


@pytest.mark.parametrize(
    ("unit", "params", "threshold"), [(1, {}, 2.5), (0.1, {}, 1.5), (1, {"monotonic_cst": [1]}, 2.5)], ids=str
)
def test_auc_of_two_classes_tells_integers_apart(unit, params, threshold):
    # the rows in the middle have the fractions above: cuts after 1 and 2 gain 1/8, and 1/8 and 1.2e-13;
    # tenths are no multiples of the least weight
    x, y = [1, 2, 2, 3, 3], [0, 0, 1, 0, 1]
    weights = np.array([500_000, 1_000_000, 999_999, 500_001, 1_000_000])
    assert cut(x, y, weights * unit, **params)[1] == threshold


@all_criteria
def test_min_gain_is_enough(criterion):
    x, y = blocks([3, 1], [1, 2])
    gain = grow(x, y, criterion=criterion).tree_.gain[0]
    assert grow(x, y, criterion=criterion, min_gain=gain).tree_.n_nodes == 3
    assert grow(x, y, criterion=criterion, min_gain=np.nextafter(gain, 1)).tree_.n_nodes == 1


# Where the threshold lies


@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize(
    ("low", "high", "threshold"),
    [
        (1.0, 4.0, 2.5),
        (-np.inf, np.inf, 0.0),
        (-np.inf, 1.0, -0.5 * np.finfo(float).max),
        (1.0, np.inf, 0.5 * np.finfo(float).max),
        (1.0, np.nextafter(1, 2), 1.0),
        (np.nextafter(1, 0), 1.0, np.nextafter(1, 0)),
    ],
)
def test_a_threshold_lies_midway(low, high, threshold, max_bins):
    tree = grow([low, high], [0, 1], max_bins=max_bins)
    assert tree.tree_.threshold[0] == threshold
    assert tree.predict([[low], [threshold], [high]]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("max_bins", [255, None])
def test_between_the_values_of_the_node(max_bins):
    # the node left of the first cut has the values 1 and 9 alone
    X = [[1, 0], [9, 0], [0, 1], [0, 1], [4, 1], [10, 1]]
    tree = grow(X, [0, 1, 1, 1, 1, 1], max_bins=max_bins).tree_
    assert tree.feature[:2].tolist() == [1, 0]
    assert tree.threshold[:2].tolist() == [0.5, 5.0]


def test_between_bins_where_values_share_them():
    assert cut([0, 1, 2, 3, 10, 11, 12, 13], [0, 0, 0, 1, 1, 1, 1, 1], max_bins=2)[1] == 6.5


@all_criteria
@two_and_four_classes
def test_a_drawn_cut_lies_between_the_values_of_the_node(criterion, n_classes):
    x, y = blocks(np.arange(1, n_classes + 1), np.arange(n_classes, 0, -1))
    drawn = [cut(x, y, criterion=criterion, splitter="random", random_state=seed)[1] for seed in range(30)]
    assert min(drawn) >= 1
    assert max(drawn) < 2
    assert len(set(drawn)) == 30


# Where missing values go


@all_criteria
@both_splitters
@two_and_four_classes
@pytest.mark.parametrize("side", [0, 1])
def test_missing_values_go_where_the_gain_is_greater(criterion, splitter, n_classes, side):
    x, y = blocks(*np.diag(np.full(n_classes, 2))[[0, -1]])
    x, y = np.append(x, [NAN, NAN]), np.append(y, [(n_classes - 1) * side] * 2)
    tree = grow(x, y, criterion=criterion, splitter=splitter)
    assert bool(tree.tree_.missing_left[0]) is (side == 0)
    assert tree.predict([[NAN]])[0] == (n_classes - 1) * side


@all_criteria
@both_splitters
@pytest.mark.parametrize(("weights", "missing_left"), [((3, 1), True), ((1, 1), False), ((3, 2), True)])
def test_where_none_was_seen_they_follow_the_heavier_child(criterion, splitter, weights, missing_left):
    x, y = blocks([2, 0], [0, 3])
    assert cut(x, y, np.array(weights)[y], criterion=criterion, splitter=splitter)[2] is missing_left


@all_criteria
@both_splitters
@two_and_four_classes
def test_missing_values_alone_may_go_right(criterion, splitter, n_classes):
    x, y = [1, 1, NAN, NAN], [0, 0, n_classes - 1, n_classes - 1]
    tree = grow(x, y, criterion=criterion, splitter=splitter)
    assert tree.tree_.threshold[0] == np.inf
    assert tree.predict([[np.inf], [-5], [NAN]]).tolist() == [0, 0, n_classes - 1]


def test_constant_and_missing_columns_are_passed_over():
    X = [[NAN, 1, 7], [NAN, 2, 7]]
    assert {cut(X, [0, 1], max_features=1, random_state=seed)[0] for seed in range(9)} == {1}


# Categories


def goes_left(x, y, **params):
    """Return the codes of a column of categories that go left in the only cut, of the first five, and of NaN."""
    tree = grow(x, y, max_depth=1, categorical_features=[0], **params).tree_
    return [*np.flatnonzero(tree.goes_left(0)[:5]).tolist(), *([NAN] if tree.missing_left[0] else [])]


@all_criteria
def test_the_set_with_the_least_shares_wins(criterion):
    # codes 0, 1, 2 with 2 of 2, 2 of 4 and none of 2 rows of the second class: sets {2} and {1, 2} mirror one another
    x, y = blocks([0, 2], [2, 2], [2, 0])
    assert goes_left(x, y, criterion=criterion) == [2]


@pytest.mark.parametrize(("least", "left"), [(2, [0, 2]), (3, [0, 2]), (4, [0, 1, 2, NAN])])
def test_categories_of_equal_shares_come_in_their_order(least, left):
    # code 2 has the first class alone, the others a row of either: only bounds part equal shares
    x, y = blocks([1, 1], [1, 1], [1, 0], [1, 1], [1, 1])
    assert goes_left(x, y, min_samples_leaf=least) == left


@all_criteria
@pytest.mark.parametrize("least", [3, 6])
def test_categories_of_equal_totals_come_in_their_order_for_more_classes(criterion, least):
    x, y = blocks([1, 1, 1], [1, 1, 1], [2, 0, 0], [1, 1, 1], [1, 1, 1])
    left = [code for code in goes_left(x, y, criterion=criterion, min_samples_leaf=least) if code in (0, 1, 3, 4)]
    assert left == [0, 1, 3, 4][: len(left)]
    assert 0 < len(left) < 4


@pytest.mark.parametrize(("left", "missing_left"), [(1, False), (9, True)])
@pytest.mark.parametrize("n_categories", [2, 3])
def test_unseen_categories_go_where_missing_values_go(left, missing_left, n_categories):
    x = np.arange(n_categories)
    tree = grow(x, np.minimum(x, 1), np.where(x == 0, left, 3), categorical_features=[0])
    assert bool(tree.tree_.missing_left[0]) is missing_left
    unseen, missing = tree.predict_proba([[77], [NAN]])
    assert unseen.tolist() == missing.tolist() == [float(missing_left), float(not missing_left)]


def test_a_category_that_the_node_has_not_seen_goes_there_too():
    # the node left of the first cut has the categories 0, 1 and 2, and missing values go left there
    X = [[0, 0], [0, 0], [1, 0], [2, 0], [0, 1], [0, 1], [0, 1], [3, 1], [3, 1]]
    tree = grow(X, [0, 0, 1, 1, 1, 1, 1, 1, 1], categorical_features=[0])
    assert tree.tree_.feature[:2].tolist() == [1, 0]
    assert tree.predict_proba([[3, 0], [NAN, 0]]).tolist() == [[1.0, 0.0]] * 2


@pytest.mark.parametrize(("frequent", "rarest"), [(range(46, 300), range(46)), (range(0), range(254, 300))])
def test_the_rarest_of_many_categories_share_a_place(frequent, rarest):
    x = np.concatenate([np.arange(300), frequent])
    tree = grow(x, np.arange(len(x)) % 2, categorical_features=[0])
    assert tree.categories_[0].tolist() == [*sorted(set(range(300)) - set(rarest)), *rarest]
    assert len(set(tree.apply(np.array(rarest)[:, None]).tolist())) == 1


# Leaves, labels


@all_criteria
@both_splitters
def test_of_leaves_that_gain_alike_the_first_is_cut(criterion, splitter):
    # the second column says the class in one half, and its opposite in the other
    x0, x1 = np.repeat([0, 1], 4), np.array([0, 1, 1, 1, 1, 1, 1, 0])
    tree = grow(np.column_stack([x0, x1]), x0 ^ x1, criterion=criterion, splitter=splitter, max_leaf_nodes=3).tree_
    assert tree.feature.tolist() == [0, 1, -1, -1, -1]


def test_the_first_of_equally_probable_classes_is_predicted():
    X = np.zeros((6, 1))
    assert grow(X, ["b", "b", "a", "a", "c", "c"]).predict(X[:1]) == ["a"]
    assert grow(X, [0, 1] * 3).predict(X[:1]) == [0]


@pytest.mark.parametrize(
    ("threshold", "label"),
    [(None, 0), (0.5, 1), (np.nextafter(0.5, 1), 0), ("prevalence", 1)],
)
def test_from_the_threshold_on_the_second_of_two_classes_is_predicted(threshold, label):
    X = np.zeros((4, 1))
    forest = AUCForestClassifier(3, bootstrap=False, threshold=threshold).fit(X, [0, 1, 0, 1])
    assert forest.predict(X[:1]) == [label]


@pytest.mark.parametrize("threshold", [None, "prevalence", {"cost": 1 - np.eye(3)}], ids=["none", "prevalence", "cost"])
def test_the_first_of_more_classes_is_predicted(threshold):
    X = np.zeros((6, 1))
    forest = AUCForestClassifier(4, bootstrap=False, threshold=threshold).fit(X, [0, 1, 2, 0, 1, 2])
    assert forest.predict(X[:1]) == [0]


def test_the_greatest_of_equally_good_thresholds_is_taken():
    assert optimal_threshold([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]) == 0.4
