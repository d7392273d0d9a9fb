"""Monotonic constraints: cuts against the reference that tries all, and shares that move along a feature one way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.tree.binning import MAX_BINS
from tests.reference.tree import leaf_of
from tests.tree.growing import Growth, canonical, grow
from tests.tree.oracle import check_tree, random_data

CRITERIA = ["auc", "gini", "entropy", "hellinger"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("signs", [(1, 0, 0, -1), (-1, -1, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("random", [False, True])
def test_every_node_holds_a_best_allowed_cut(criterion, signs, random):
    for seed in range(4):
        X, labels = random_data(seed, 2, n_rows=100, n_values=12)
        counts = np.random.default_rng(seed).poisson(1.5, len(labels))
        how = Growth(criterion, max_features=3, key=seed, signs=signs, random=random, min_samples_leaf=1 + seed % 2)
        check_tree(X, labels, how, counts=counts)
        weights = np.rint(np.random.default_rng(seed).uniform(1, 2, len(labels)) * 2**50)
        check_tree(X, labels, how, weights=weights)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_constraints_the_tree_is_the_plain_one(criterion, n_classes):
    X, labels = random_data(1, n_classes, n_rows=300, n_values=100)
    plain = grow(X, labels, criterion=criterion, max_features=2)
    assert canonical(plain) == canonical(grow(X, labels, criterion=criterion, max_features=2, extras=True))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_constraints_that_hold_anyway_change_nothing(criterion):
    """The share of the second class rises along the only feature: no cut of the plain tree is forbidden."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, 600).astype(float)[:, None]
    labels = (rng.random(600) < X[:, 0] / 30).astype(int)
    plain = grow(X, labels, criterion=criterion, max_depth=1)
    assert canonical(plain) == canonical(grow(X, labels, criterion=criterion, max_depth=1, signs=(1,)))
    falling = grow(X, labels, criterion=criterion, signs=(-1,)).tree
    assert falling.gain[0] < 0.2 * plain.tree.gain[0]


def test_a_cut_between_missing_values_and_others_is_free():
    X, labels = np.array([1.0, 1.0, 1.0, np.nan, np.nan])[:, None], np.array([1, 1, 1, 0, 0])
    for sign in (1, -1):
        tree = grow(X, labels, signs=(sign,)).tree
        assert (tree.n_nodes, tree.threshold[0], tree.missing_left[0]) == (3, np.inf, False)


VALUES = [-np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan]


@st.composite
def datasets(draw):
    """Small matrices with labels and draws."""
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
            shares = tree.prediction[[leaf_of(tree, other) for other in moved], 1]
            assert np.all(sign * np.diff(shares) >= 0)


@settings(max_examples=150, deadline=None)
@given(datasets(), st.sampled_from(CRITERIA), st.sampled_from([3, MAX_BINS]), st.integers(0, 2**64 - 1), st.data())
def test_shares_are_monotone_to_the_last_bit(data, criterion, max_bins, key, more):
    X, labels, counts = data
    signs = tuple(more.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=X.shape[1], max_size=X.shape[1])))
    weighted = more.draw(st.booleans())
    kind = {"weights": np.rint(counts * 1e15 / 3)} if weighted else {"counts": counts}
    how = {
        "max_features": more.draw(st.integers(1, X.shape[1])),
        "random": more.draw(st.booleans()),
        "max_leaves": more.draw(st.sampled_from([None, 2, 5, 100])),
        "min_samples_leaf": more.draw(st.integers(1, 3)),
        "extras": True,
    }
    grown = grow(X, labels, max_bins, criterion=criterion, key=key, signs=signs, n_classes=2, **kind, **how)
    assert_monotone(grown.tree, X, signs)
