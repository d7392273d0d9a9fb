"""Extremely randomised cuts: against a reference, uniform by value, and the same by value as by code."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.tree.random_splits import drawn_threshold, make_random_splits
from aucforest.tree.splitter import Cut
from tests.reference import tree as reference
from tests.reference.growing import draw
from tests.tree.growing import Growth, bin_for, canonical, grow
from tests.tree.oracle import check_tree, random_data

CRITERIA = ["auc", "gini", "entropy", "hellinger"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("max_bins", [255, 5])
def test_every_node_holds_the_best_of_the_drawn_cuts(criterion, n_classes, max_bins):
    for seed in range(4):
        X, labels = random_data(seed, n_classes, n_rows=90, n_values=25)
        counts = np.random.default_rng(seed).poisson(1.2, len(labels))
        how = Growth(criterion, max_features=3, key=seed, random=True, min_samples_leaf=1 + seed, min_weight_leaf=seed)
        check_tree(X, labels, how, max_bins, n_classes=n_classes, counts=counts)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_infinite_values(n_classes):
    rng = np.random.default_rng(0)
    for seed in range(6):
        X, labels = random_data(seed, n_classes, n_rows=80, n_values=9)
        X[rng.random(X.shape) < 0.1] = np.inf
        X[rng.random(X.shape) < 0.1] = -np.inf
        grown = check_tree(X, labels, Growth(key=seed, random=True))
        assert np.all(np.isfinite(grown.tree.threshold) | (grown.tree.threshold == np.inf))


@pytest.mark.slow
def test_weights_and_wide_codes_and_copies_of_branches():
    X, labels = random_data(3, 3, n_rows=300, n_values=200)
    X[:, 1] = np.random.default_rng(0).normal(size=300)
    weights = np.rint(np.random.default_rng(3).uniform(1, 2, 300) * 2**50)
    how = {"weights": weights, "random": True, "max_features": 2, "key": 7}
    narrow = canonical(grow(X, labels, aside_rows=0, **how))
    assert len(narrow) > 100
    assert narrow == canonical(grow(X, labels, aside_rows=40, **how))
    exact = canonical(grow(X, labels, max_bins=None, wide=True, aside_rows=0, **how))
    assert exact == canonical(grow(X, labels, max_bins=None, wide=True, **how))
    check_tree(X, labels, Growth(random=True, max_features=2, key=7), max_bins=None, wide=True)


@pytest.mark.parametrize("values", [[0.0, 10.0], [0.0, 1.0, 2.0, 9.0, 10.0]])
def test_draws_are_uniform_by_value(values):
    X, labels = np.repeat(values, 3)[:, None], np.tile([0, 1, 1], len(values))
    labels[0] = 1
    thresholds = [grow(X, labels, random=True, max_depth=1, key=key).tree.threshold[0] for key in range(2000)]
    # Every tenth of the range is expected 200 times with a standard deviation of 13.
    assert np.histogram(thresholds, bins=10, range=(0, 10))[0] == pytest.approx(200, abs=60)


def test_an_infinite_value_is_as_far_out_as_the_others_reach():
    X, labels = np.array([-np.inf, 1.0, 2.0, 3.0])[:, None], np.array([0, 1, 1, 1])
    thresholds = np.array([grow(X, labels, random=True, max_depth=1, key=key).tree.threshold[0] for key in range(999)])
    assert thresholds.min() > -1.0
    # Half of the draws part the infinite value from the others: 500 with a standard deviation of 16.
    assert np.count_nonzero(thresholds < 1.0) == pytest.approx(500, abs=80)
    alone = grow(np.array([-np.inf, np.inf])[:, None], np.array([0, 1]), random=True).tree
    assert alone.threshold[0] == 0.0


def test_missing_rows_are_tried_on_both_sides():
    X = np.array([1.0, 1.0, 2.0, 2.0, np.nan, np.nan])[:, None]
    for side in (0, 1):
        labels = np.array([0, 0, 1, 1, side, side])
        tree = grow(X, labels, random=True).tree
        assert tree.n_nodes == 3
        assert 1.0 <= tree.threshold[0] < 2.0
        assert bool(tree.missing_left[0]) is (side == 0)
    beside = grow(np.where(np.isnan(X), X, 1.0), np.array([0, 0, 0, 0, 1, 1]), random=True).tree
    assert (beside.n_nodes, beside.threshold[0], beside.missing_left[0]) == (3, np.inf, False)


def test_a_draw_that_leaves_too_few_rows_is_no_cut():
    X, labels = np.arange(20.0)[:, None], np.arange(20) % 2
    sizes = [grow(X, labels, random=True, max_depth=1, min_samples_leaf=8, key=key).tree.n_nodes for key in range(60)]
    drawn = [draw(X[:, 0].tolist(), key, 0, 1) for key in range(60)]
    # A cut of even numbers of rows that gains nothing is none either.
    assert {size for size, at in zip(sizes, drawn) if not 7 <= at < 12} == {1}
    assert 3 in {size for size, at in zip(sizes, drawn) if 7 <= at < 12}


@pytest.mark.parametrize("drawn", [0.0, 1.0, 4.2, 6.9, 9.0])
def test_values_outside_all_bins_part_as_their_codes_do(drawn):
    """Of many rows bins come from a sample: the others have the codes that the edges midway between bins say."""
    values = bin_for(np.array([0.0, 1.0, 4.0, 8.0, 9.0])[:, None]).values
    names = np.empty((0, 0), dtype=np.uint32)
    for code, next_code, low, high in ((1, 2, 2.5, 2.5), (1, 3, 2.5, 6.0), (0, 4, 0.5, 8.5)):
        cut = Cut(np.int64(0), code, next_code, False)
        at = drawn_threshold(values, names, cut, make_random_splits(True, 2)._replace(drawn=np.array([drawn])))
        assert at == min(max(drawn, low), high)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
def test_sets_of_categories_are_drawn_alike(missing):
    """Of four categories there are 14 sets that are neither empty nor all."""
    X, labels = np.repeat([0.0, 1.0, 2.0, 3.0, np.nan], 2)[: 10 if missing else 8, None], [0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    weights = np.arange(1, len(X) + 1) ** 2
    drawn = {}
    for key in range(1400):
        tree = grow(X, labels[: len(X)], weights=weights, random=True, by_set=(0,), max_depth=1, key=key).tree
        goes_left = tuple(tree.goes_left(0)[:4])
        drawn[goes_left] = drawn.get(goes_left, 0) + 1
    assert len(drawn) == 14
    # Each is expected 100 times with a standard deviation of 10.
    assert list(drawn.values()) == pytest.approx([100] * 14, abs=45)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_with_drawn_sets(n_classes):
    for seed in range(4):
        X, labels = random_data(seed, n_classes, n_rows=200, n_values=12)
        X = 2 * X + 2
        how = {"random": True, "by_set": (0, 2), "key": seed}
        grown = grow(X, labels, aside_rows=0, **how)
        assert len(grown.tree.set_nodes) > 3
        assert canonical(grown) == canonical(grow(X, labels, **how))
        assert canonical(grown) == canonical(grow(X, labels, max_leaves=999, **how))
        leaves = np.array([reference.leaf_of(grown.tree, row) for row in X])
        for node in np.flatnonzero(grown.tree.is_leaf):
            counts = np.bincount(labels[leaves == node], minlength=n_classes)
            assert grown.totals[node].tolist() == counts.tolist()


AWKWARD = [-np.inf, -1.7e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1, 2), 2.5, 1.7e308, np.inf, np.nan]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(AWKWARD) | st.floats(-9, 9), st.integers(0, 2)), min_size=2, max_size=40),
    st.sampled_from([2, 5, 255]),
    st.sampled_from(CRITERIA),
    st.integers(0, 2**64 - 1),
)
def test_rows_land_by_value_where_they_went_by_code(rows, max_bins, criterion, key):
    X, labels = np.array([x for x, _ in rows])[:, None], np.array([k for _, k in rows])
    grown = grow(X, labels, max_bins, random=True, criterion=criterion, key=key, n_classes=3)
    tree = grown.tree
    leaves = np.array([reference.leaf_of(tree, row) for row in X])
    for node in np.flatnonzero(tree.is_leaf):
        assert grown.totals[node].tolist() == np.bincount(labels[leaves == node], minlength=3).tolist()
    assert not any(math.isnan(t) for t in tree.threshold)
