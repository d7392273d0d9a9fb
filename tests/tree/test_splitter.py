"""The best cut of a node against the reference that tries every cut: features, bounds, missing values, ties."""

import numpy as np
import pytest

from aucforest.tree.splitter import make_scratch
from tests.reference import tree as reference
from tests.tree.growing import Growth, grow
from tests.tree.oracle import check_tree, random_data

CRITERIA = ["auc", "gini", "entropy", "hellinger"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("wide", [False, True])
def test_every_node_holds_a_best_cut(criterion, n_classes, wide):
    for seed in range(4):
        X, labels = random_data(seed, n_classes)
        check_tree(X, labels, Growth(criterion, max_features=3, key=seed), wide=wide)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_draws_weigh_rows(criterion, n_classes):
    for seed in range(4):
        X, labels = random_data(seed, n_classes)
        counts = np.random.default_rng(seed).poisson(1.0, len(labels))
        check_tree(X, labels, Growth(criterion, key=seed), counts=counts, n_classes=n_classes)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("bits", [3, 53])
def test_fixed_point_weights(criterion, n_classes, bits):
    for seed in range(3):
        X, labels = random_data(seed, n_classes)
        weights = np.rint(np.random.default_rng(seed).uniform(1, 2, len(labels)) * 2**bits)
        check_tree(X, labels, Growth(criterion, key=seed), weights=weights)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("min_samples_leaf", "min_weight_leaf"), [(4, 0), (1, 9), (3, 8), (20, 0), (1, 200)])
def test_children_keep_to_both_bounds(criterion, n_classes, min_samples_leaf, min_weight_leaf):
    for seed in range(3):
        X, labels = random_data(seed, n_classes, missing=0.3)
        counts = np.random.default_rng(seed).poisson(1.5, len(labels))
        how = Growth(criterion, min_samples_leaf=min_samples_leaf, min_weight_leaf=min_weight_leaf, key=seed)
        grown = check_tree(X, labels, how, counts=counts, n_classes=n_classes)
        if grown.tree.n_nodes > 1:
            assert grown.tree.n_samples.min() >= min_samples_leaf
            assert grown.tree.weight.min() >= min_weight_leaf


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_codes_in_small_and_large_nodes(criterion, n_classes):
    """Codes by the hundred: lists of the codes that occur, and steps over those that do not."""
    rng = np.random.default_rng(7)
    X = rng.integers(0, 200, (250, 2)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = np.minimum(np.nan_to_num(X[:, 0], nan=40.0) // 80 + (rng.random(250) < 0.2), n_classes - 1)
    check_tree(X, labels.astype(int), Growth(criterion, max_depth=5))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_feature_drawn_first_wins_a_tie(criterion, n_classes):
    X, labels = random_data(3, n_classes)
    X = np.repeat(X[:, [np.nanargmax(np.nanstd(X, axis=0))]], 5, axis=1)
    roots = set()
    for key in range(30):
        tree = grow(X, labels, criterion=criterion, key=key, max_depth=1).tree
        assert tree.feature[0] == reference.draw_features(key, 5)[0]
        roots.add(int(tree.feature[0]))
    assert roots == set(range(5))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("repeats", [1, 20])
@pytest.mark.parametrize("third_class", [False, True])
def test_the_lowest_cut_wins_a_tie(criterion, repeats, third_class):
    # Cuts after 1 and after 3 mirror one another.
    X = np.repeat([[1.0], [2.0], [3.0], [4.0]], repeats, axis=0)
    labels = np.repeat([1, 0, 0, 1], repeats)
    if third_class:
        X, labels = np.vstack((X, X)), np.concatenate((labels, np.full(4 * repeats, 2)))
    assert grow(X, labels, criterion=criterion, max_depth=1).tree.threshold[0] == 1.5


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("repeats", [1, 20])
def test_missing_rows_go_right_in_a_tie(criterion, repeats):
    # The missing rows hold both classes alike, so both sides score alike: |1/4 - 3/4| either way.
    X = np.repeat([1.0, 1.0, 2.0, 2.0, np.nan, np.nan, np.nan, np.nan], repeats)[:, None]
    labels = np.repeat([0, 0, 1, 1, 0, 0, 1, 1], repeats)
    tree = grow(X, labels, criterion=criterion, max_depth=1).tree
    assert (tree.threshold[0], tree.missing_left[0]) == (1.5, False)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_missing_rows_alone_may_be_cut_off(criterion, n_classes):
    X = np.repeat([1.0, 2.0, np.nan], 12)[:, None]
    labels = np.concatenate((np.tile([0, n_classes - 2], 12), np.full(12, n_classes - 1)))
    tree = grow(X, labels, criterion=criterion, max_depth=1).tree
    assert (tree.threshold[0], tree.missing_left[0]) == (np.inf, False)
    assert tree.n_samples.tolist() == [36, 24, 12]


@pytest.mark.parametrize(("heavy", "missing_left"), [(0, True), (1, False), (None, True)])
def test_missing_values_follow_the_heavier_child_where_none_was_seen(heavy, missing_left):
    X, labels = np.array([[1.0], [1.0], [2.0], [2.0]]), np.array([0, 0, 1, 1])
    counts = np.array([1, 1, 1, 1]) if heavy is None else np.where(labels == heavy, 3, 1)
    assert bool(grow(X, labels, counts=counts).tree.missing_left[0]) is missing_left


def test_a_constant_feature_does_not_use_up_the_budget():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones((40, 9)), np.full((40, 3), np.nan), rng.integers(0, 4, 40)])
    labels = (X[:, -1] > 1).astype(int)
    for key in range(10):
        tree = grow(X, labels, max_features=1, key=key).tree
        assert tree.feature[0] == 12
        assert tree.n_nodes == 3


def test_features_are_drawn_evenly():
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(30, 6)), rng.integers(0, 2, 30)
    binned = [grow(X, labels, max_features=1, max_depth=1, key=key).tree.feature[0] for key in range(1200)]
    # Each of six is expected 200 times with a standard deviation of 13.
    assert np.bincount(binned, minlength=6) == pytest.approx(200, abs=60)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_useless_cuts_are_not_taken(criterion, n_classes):
    """Every value holds the classes in the same shares: whatever rounding does, there is nothing to gain."""
    shares = np.array([3, 1, 7, 5, 2])[:n_classes]
    labels = np.tile(np.repeat(np.arange(n_classes), shares), 40)
    X = np.repeat(np.arange(40.0), shares.sum())[:, None]
    for unit in (1, 0.1 * 2**50, np.pi * 2**47):
        weights = np.full(len(labels), np.rint(unit))
        assert grow(X, labels, criterion=criterion, weights=weights).tree.n_nodes == 1
    by_value = np.rint(np.repeat(np.random.default_rng(2).uniform(1, 2, 40), shares.sum()) * 2**50)
    assert grow(X, labels, criterion=criterion, weights=by_value).tree.n_nodes == 1


@pytest.mark.parametrize("criterion", CRITERIA)
def test_min_gain_is_a_least_gain(criterion):
    X, labels = random_data(5, 2)
    gain = float(grow(X, labels, criterion=criterion).tree.gain[0])
    assert grow(X, labels, criterion=criterion, min_gain=gain, max_depth=1).tree.n_nodes == 3
    assert grow(X, labels, criterion=criterion, min_gain=np.nextafter(gain, 1.0)).tree.n_nodes == 1


@pytest.mark.parametrize(("n_codes", "n_classes"), [(2**31 + 1, 2), (2**25, 129)])
def test_cells_that_32_bits_cannot_number(n_codes, n_classes):
    with pytest.raises(ValueError, match=f"^{n_codes} codes with {n_classes} classes are too many"):
        make_scratch(1, n_codes, n_classes)
