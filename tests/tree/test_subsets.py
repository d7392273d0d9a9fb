"""Cuts of categorical features against all subsets, and against the order along the principal component."""

import numpy as np
import pytest

from aucforest.tree.binning import bin_matrix
from tests.reference.subsets import best_gain, component_scores, ordered_gain
from tests.reference.tree import leaf_of
from tests.tree.growing import Growth, bin_for, canonical, grow, grow_binned

CRITERIA = ["auc", "gini", "entropy", "hellinger"]
ROUNDING = 1e-9


def one_column(seed, n_classes=2, n_categories=8, n_rows=120, missing=0.15):
    """Draw one categorical column with classes that lean on it, and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, n_rows)
    lean = rng.normal(0, 1.5, (n_categories, n_classes))
    labels = np.argmax(lean[codes] + rng.gumbel(size=(n_rows, n_classes)), axis=1)
    labels[:n_classes] = np.arange(n_classes)
    X = codes.astype(float)[:, None]
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(1, 6, n_rows)
    return X, labels, weights


def as_codes(X):
    return [None if np.isnan(value) else int(value) for value in X[:, 0]]


def root_cut(X, labels, weights, **how):
    """Grow one cut by sets."""
    return grow(X, labels, weights=weights, by_set=(0,), max_depth=1, n_classes=int(labels.max()) + 1, **how).tree


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_categories", [2, 3, 5, 8])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_of_two_classes_the_cut_is_the_best_of_all_subsets(criterion, n_categories, missing):
    for seed in range(4):
        X, labels, weights = one_column(seed, n_categories=n_categories, missing=missing)
        expected = best_gain(as_codes(X), labels.tolist(), weights.tolist(), 2, criterion)
        tree = root_cut(X, labels, weights, criterion=criterion)
        assert tree.gain[0] == pytest.approx(float(expected), abs=ROUNDING)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(("min_samples_leaf", "min_weight_leaf"), [(15, 0), (1, 60), (20, 70)])
def test_bounds_allow_the_best_cut_of_the_order(criterion, min_samples_leaf, min_weight_leaf):
    """With bounds on the children some other subset may be better: the order alone is promised."""
    for seed in range(4):
        X, labels, weights = one_column(seed, n_categories=6, missing=0.2)
        bounds = {"min_samples_leaf": min_samples_leaf, "min_weight_leaf": min_weight_leaf}
        data = (as_codes(X), labels.tolist(), weights.tolist(), 2, criterion)
        shares = {
            code: float(np.average(labels[X[:, 0] == code], weights=weights[X[:, 0] == code])) for code in range(6)
        }
        tree = root_cut(X, labels, weights, criterion=criterion, **bounds)
        assert tree.gain[0] == pytest.approx(float(ordered_gain(*data, shares, **bounds)), abs=ROUNDING)
        assert tree.gain[0] <= best_gain(*data, **bounds) + ROUNDING
        assert tree.n_samples.min() >= min_samples_leaf
        assert tree.weight.min() >= min_weight_leaf


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("n_rows", [16, 150])
def test_of_more_classes_the_order_is_that_of_the_principal_component(criterion, n_classes, n_rows):
    n_checked = 0
    for seed in range(40):
        X, labels, weights = one_column(seed, n_classes, 7, n_rows)
        data = (as_codes(X), labels, weights, n_classes)
        scores, ratio = component_scores(*data, alike=criterion in ("auc", "hellinger"))
        if ratio > 0.6 or np.diff(sorted(scores.values())).min() < 1e-3:
            continue
        n_checked += 1
        mirrored = {code: -score for code, score in scores.items()}
        gains = [ordered_gain(data[0], labels, weights.tolist(), n_classes, criterion, s) for s in (scores, mirrored)]
        tree = root_cut(X, labels, weights, criterion=criterion)
        assert tree.gain[0] == pytest.approx(float(max(gains)), abs=ROUNDING)
    assert n_checked >= 2


def mixed(seed, n_classes, n_rows=300):
    """Draw two categorical columns and two of numbers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 12, n_rows), rng.normal(size=n_rows).round(1), rng.integers(0, 90, n_rows)])
    X = np.column_stack([X, rng.normal(size=n_rows)])
    labels = (np.isin(X[:, 0], (1, 5, 9)) + (X[:, 1] > 0) + X[:, 2] // 30 + rng.integers(0, 2, n_rows)) % n_classes
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, labels.astype(int)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("wide", [False, True])
def test_rows_reach_the_leaves_they_were_counted_in(criterion, n_classes, wide):
    """The sets tell of categories, whatever codes bins and local copies of branches gave them."""
    X, labels = mixed(1, n_classes)
    X[:, 0] = np.where(X[:, 0] > 4, X[:, 0] + 100, X[:, 0])
    tree = grow(X, labels, criterion=criterion, by_set=(0, 2), wide=wide, n_classes=n_classes).tree
    leaves = [leaf_of(tree, row) for row in X]
    assert np.array_equal(np.bincount(leaves, minlength=tree.n_nodes)[tree.is_leaf], tree.n_samples[tree.is_leaf])
    assert {int(f) for f in tree.feature[tree.set_nodes]} == {0, 2}
    assert np.array_equal(np.flatnonzero(np.isin(tree.feature, (0, 2))), tree.set_nodes)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("bounds", [{}, {"min_samples_leaf": 4, "min_weight_leaf": 6}])
def test_a_local_copy_of_a_branch_changes_nothing(n_classes, wide, bounds):
    X, labels = mixed(2, n_classes)
    binned = bin_for(X, None if wide else 255, wide)
    trees = [
        grow_binned(binned, labels, Growth(by_set=(0, 2), max_features=2, aside_rows=rows, **bounds), n_classes)
        for rows in (0, 40, 400)
    ]
    assert canonical(trees[0]) == canonical(trees[1]) == canonical(trees[2])
    sets = [sorted(grown.tree.sets.tolist()) for grown in trees]
    assert sets[0] == sets[1] == sets[2]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_order_of_rows_changes_nothing(n_classes):
    X, labels = mixed(3, n_classes)
    weights = np.random.default_rng(0).integers(1, 2**40, len(X))
    shuffled = np.random.default_rng(1).permutation(len(X))
    one = grow(X, labels, weights=weights, by_set=(0, 2))
    other = grow(X[shuffled], labels[shuffled], weights=weights[shuffled], by_set=(0, 2))
    assert canonical(one) == canonical(other)
    assert np.array_equal(one.tree.sets, other.tree.sets)


@pytest.mark.parametrize("missing_left", [False, True])
def test_categories_that_a_node_has_not_seen_follow_its_missing_values(missing_left):
    X = np.repeat([[3.0], [5.0], [9.0], [np.nan]], 6, axis=0)
    # With two classes the lower share is on the left.
    labels = np.repeat([0, 1, 1, 0 if missing_left else 1], 6)
    tree = root_cut(X, labels, np.ones(24, dtype=int))
    left = tree.goes_left(0)
    assert left[[3, 5, 9]].tolist() == [True, False, False]
    assert np.all(np.delete(left, [3, 5, 9]) == missing_left)
    assert tree.missing_left[0] == missing_left


def test_without_missing_values_they_follow_the_heavier_child():
    X, labels = np.repeat([[0.0], [1.0], [2.0]], 4, axis=0), np.repeat([0, 1, 1], 4)
    for weight, expected in ((1, False), (9, True)):
        tree = root_cut(X, labels, np.where(labels == 0, weight, 1))
        assert tree.goes_left(0)[[0, 1, 2, 7]].tolist() == [True, False, False, expected]


def test_missing_values_alone_may_be_cut_off():
    X, labels = np.repeat([[4.0], [8.0], [6.0], [np.nan]], 5, axis=0), np.repeat([0, 0, 0, 1], 5)
    tree = root_cut(X, labels, np.ones(20, dtype=int))
    assert tree.n_samples.tolist() == [20, 15, 5]
    assert np.flatnonzero(tree.goes_left(0)).tolist() == [4, 6, 8]


def test_equal_shares_are_ordered_by_code():
    """Three categories with half of each class, one that is pure: the cut takes that one alone."""
    X = np.repeat([7.0, 2.0, 4.0, 9.0], 4)[:, None]
    labels = np.array([0, 1, 0, 1] * 3 + [1] * 4)
    tree = root_cut(X, labels, np.ones(16, dtype=int), criterion="gini")
    assert np.flatnonzero(tree.goes_left(0)[[2, 4, 7]]).tolist() == [0, 1, 2]
    assert not tree.goes_left(0)[9]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_255_codes(n_classes):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(255), 8)
    labels = rng.integers(0, n_classes, 255)[codes]
    tree = grow(codes.astype(float)[:, None], labels, by_set=(0,)).tree
    assert tree.n_leaves == n_classes
    leaves = [leaf_of(tree, [code]) for code in codes]
    assert np.array_equal(tree.value[leaves].argmax(axis=1), labels)


def test_max_bins_leaves_categories_alone():
    X = np.repeat(np.arange(40.0), 5)[:, None]
    labels = (X[:, 0].astype(int) * 7 % 40 < 20).astype(int)
    assert grow(X, labels, by_set=(0,)).tree.n_nodes == 3
    binned = bin_matrix(np.column_stack([X, X]), max_bins=4, by_set=np.array([True, False]))
    assert binned.n_bins.tolist() == [40, 4]
