"""A node is cut by its histograms as it is cut by its rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.criteria import CRITERIA
from aucforest.tree.growing import Stops
from aucforest.tree.histogram_search import draw_candidates, make_top, split_by_histograms
from aucforest.tree.splitter import Rules, make_scratch
from aucforest.tree.subsets import make_subsets
from tests.reference import tree as reference
from tests.tree.growing import NO_LIMIT, NO_NAMES, Growth, bin_for, check_scratch_is_clean, grow_binned
from tests.tree.oracle import random_data


def count(codes, n_bins, labels, counts, n_classes):
    """Return the weight of every class, and the number of rows, at every code: (n_bins + 1, n_classes + 1)."""
    histogram = np.zeros((n_bins + 1, n_classes + 1), dtype=np.int64)
    np.add.at(histogram, (codes, labels), counts)
    np.add.at(histogram[:, -1], codes, counts > 0)
    return histogram


@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([2, 3, 5]),
    criterion=st.sampled_from(["auc", "gini", "entropy", "hellinger"]),
    by_set=st.sampled_from([(), (0, 2)]),
    min_samples_leaf=st.sampled_from([1, 8]),
    min_weight_leaf=st.sampled_from([0, 11]),
    max_features=st.integers(1, 4),
)
def test_cuts_are_those_of_rows(seed, n_classes, criterion, by_set, min_samples_leaf, min_weight_leaf, max_features):
    X, labels = random_data(seed, n_classes)
    if by_set:
        X[:, list(by_set)] = np.nan_to_num(2 * X[:, list(by_set)] + 2, nan=np.nan)
    binned = bin_for(X)
    counts = np.random.default_rng(seed).poisson(1, len(labels))
    bounds = {"min_samples_leaf": min_samples_leaf, "min_weight_leaf": min_weight_leaf}
    how = Growth(criterion, max_features, **bounds, key=seed, max_depth=1, by_set=by_set)
    expected, totals, _ = grow_binned(binned, labels, how, n_classes, counts)

    scratch = make_scratch(4, int(binned.n_bins.max()) + 1, n_classes)
    histograms = [count(*column, labels, counts, n_classes) for column in zip(binned.codes, binned.n_bins)]
    is_constant = np.array([np.count_nonzero(histogram[:, -1]) <= 1 for histogram in histograms])
    candidates = scratch.tried[: draw_candidates(np.uint64(seed), is_constant, max_features, scratch)].copy()
    top = make_top(3, n_classes, by_set=len(by_set) > 0)
    top.keys[0], top.nodes.n_samples[0] = seed, np.count_nonzero(counts)
    top.nodes.totals[0] = np.bincount(labels, counts, minlength=n_classes)
    worth = split_by_histograms(
        np.concatenate([histograms[feature].ravel() for feature in candidates] or [np.empty(0, dtype=np.int64)]),
        candidates,
        binned.n_bins,
        NO_NAMES,
        binned.values,
        Rules(CRITERIA[criterion], max_features, min_samples_leaf, min_weight_leaf),
        Stops(NO_LIMIT, 2, 0, 0.0),
        top,
        0,
        1,
        scratch,
        make_subsets(np.isin(np.arange(4), by_set), 1, n_classes) if by_set else None,
    )
    check_scratch_is_clean(scratch, 4)
    assert (worth < 0) == (expected.n_nodes == 1)
    for name in ("feature", "threshold", "missing_left", "left_child", "gain", "n_samples"):
        np.testing.assert_array_equal(getattr(top.nodes, name)[: expected.n_nodes], getattr(expected, name), name)
    np.testing.assert_array_equal(top.nodes.totals[: expected.n_nodes], totals)
    if len(expected.sets) > 0:
        np.testing.assert_array_equal(top.sets[0], expected.sets[0])
    if worth >= 0:
        assert top.depth.tolist() == [0, 1, 1]
        assert top.keys[1:].tolist() == [reference.derive_key(seed, side) for side in range(2)]
        assert [bool(worth >> side & 1) for side in range(2)] == [np.count_nonzero(totals[1 + s]) > 1 for s in range(2)]


@pytest.mark.parametrize("key", [0, 5, 2**63 + 1])
def test_candidates_are_the_first_drawn_that_are_not_constant(key):
    scratch = make_scratch(6, 3, 2)
    drawn = reference.draw_features(key, 6)
    is_constant = np.isin(np.arange(6), drawn[1:3])
    for max_features in range(1, 7):
        n_tried = draw_candidates(np.uint64(key), is_constant, max_features, scratch)
        assert scratch.tried[:n_tried].tolist() == [drawn[0], *drawn[3:]][:max_features]
        check_scratch_is_clean(scratch, 6)
