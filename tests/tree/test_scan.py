"""Admissible splits: bounds on the children, and monotonic constraints."""

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.binning import MAX_BINS
from aucforest.tree.criteria.criterion import ROUNDING
from tests.reference.growing import rank_of
from tests.reference.tree import leaf_of
from tests.tree.growing import NAMES, Growth, canonical, grow
from tests.tree.oracle import check_tree, random_data, weighings


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("min_samples_leaf", "min_weight_leaf"), [(4, 0), (1, 9), (3, 8), (20, 0), (1, 200)])
def test_children_keep_to_both_bounds(criterion, n_classes, min_samples_leaf, min_weight_leaf):
    for seed in range(3):
        X, labels = random_data(seed, n_classes, missing=0.3)
        how = Growth(criterion, min_samples_leaf=min_samples_leaf, min_weight_leaf=min_weight_leaf, key=seed)
        for weighing in weighings(seed, 60)[:3]:
            grown = check_tree(X, labels, how, n_classes=n_classes, **weighing)
            if grown.tree.n_nodes > 1:
                assert grown.tree.n_samples.min() >= min_samples_leaf
                assert grown.tree.weight.min() >= min_weight_leaf


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("signs", [(1, 0, 0, -1), (-1, -1, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("how", [{}, {"random": True}, {"max_leaf_nodes": 9}])
def test_every_node_holds_the_best_allowed_split(criterion, signs, how):
    for seed in range(4):
        X, labels = random_data(seed, 2, n_rows=100, n_values=12)
        growth = Growth(criterion, max_features=3, key=seed, signs=signs, min_samples_leaf=1 + seed % 2, **how)
        check_tree(X, labels, growth, **weighings(seed, 100)[seed])


def test_a_sign_of_0_is_no_constraint():
    X, labels = random_data(1, 2, n_rows=300, n_values=100)
    assert canonical(grow(X, labels)) == canonical(grow(X, labels, signs=(0, 0, 0, 0)))


def test_a_split_between_missing_values_and_others_is_free():
    X, labels = np.array([1.0, 1.0, 1.0, np.nan, np.nan])[:, None], np.array([1, 1, 1, 0, 0])
    for sign in (1, -1):
        tree = grow(X, labels, signs=(sign,)).tree
        assert (tree.n_nodes, tree.threshold[0], tree.missing_left[0]) == (3, np.inf, False)


VALUES = [-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan]


@st.composite
def datasets(draw):
    """Small matrices with labels and a bootstrap sample."""
    n_features = draw(st.integers(1, 3))
    row = st.tuples(
        st.lists(st.sampled_from(VALUES) | st.floats(-9, 9), min_size=n_features, max_size=n_features),
        st.integers(0, 1),
        st.integers(1, 4),
    )
    X, labels, counts = zip(*draw(st.lists(row, min_size=4, max_size=60)))
    return np.array(X, dtype=float), np.array(labels), np.array(counts)


def assert_monotone(tree, X, signs):
    """Move every row along every constrained feature, through all thresholds."""
    for feature, sign in enumerate(signs):
        grid = [-np.inf, *np.sort(tree.threshold[tree.feature == feature]), np.inf]
        for row in X[:20] if sign != 0 else []:
            moved = np.repeat(row[None], len(grid), axis=0)
            moved[:, feature] = grid
            frequencies = tree.prediction[[leaf_of(tree, other) for other in moved], 1]
            assert np.all(sign * np.diff(frequencies) >= 0)


@given(datasets(), st.sampled_from(NAMES), st.sampled_from([3, MAX_BINS]), st.integers(0, 2**64 - 1), st.data())
def test_frequencies_are_monotone_to_the_last_bit(data, criterion, max_bins, key, more):
    X, labels, counts = data
    signs = tuple(more.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=X.shape[1], max_size=X.shape[1])))
    weighted = more.draw(st.booleans())
    kind = {"weights": np.rint(counts * 1e15 / 3)} if weighted else {"counts": counts}
    how = {
        "max_features": more.draw(st.integers(1, X.shape[1])),
        "random": more.draw(st.booleans()),
        "max_leaf_nodes": more.draw(st.sampled_from([None, 2, 5, 100])),
        "min_samples_leaf": more.draw(st.integers(1, 3)),
    }
    grown = grow(X, labels, max_bins, criterion=criterion, key=key, signs=signs, n_classes=2, **kind, **how)
    assert_monotone(grown.tree, X, signs)


def test_ties_of_small_gains_go_to_the_lower_bin():
    """Two of many splits hardly differ in a small gain."""
    unit, later, n_bins = 2**36, 2**30, 129

    def count(earlier):
        counts = np.full((n_bins, 2), unit)
        counts[[3, 4, 31, 32], 1] += np.array([earlier, -earlier, later, -later])
        return counts

    def scores(earlier):
        totals, lefts = count(earlier).sum(axis=0), count(earlier).cumsum(axis=0)
        return [rank_of("gini", lefts[t].tolist(), (totals - lefts[t]).tolist())[1] for t in (3, 31)]

    earlier = bisect_left(range(later), -0.3 * ROUNDING, key=lambda earlier: np.subtract(*scores(earlier))) - 1
    low, high = scores(earlier)
    assert 0.3 * ROUNDING < high - low < ROUNDING < 1e-9 < low < 1e-3
    X, labels = np.repeat(np.arange(float(n_bins)), 2)[:, None], np.tile([0, 1], n_bins)
    tree = grow(X, labels, weights=count(earlier).ravel(), criterion="gini", max_depth=1).tree
    assert tree.threshold[0] == 3.5
