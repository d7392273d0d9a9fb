"""The features of a node, sampled with its key, and the thresholds that the random splitter samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest._compile import bare_kernel
from aucforest.tree.binning import BinnedMatrix, BinValues
from aucforest.tree.features import FeatureBuffers, put_back, sample_features
from aucforest.tree.samples import take_samples
from aucforest.tree.splitter import Node, Split, threshold_of
from tests.reference import growing as reference
from tests.tree.growing import Growth, bin_for, grow, make_columns
from tests.tree.oracle import check_tree, random_data


@bare_kernel
def sample(node, steps, buffers):
    """Sample the features of a node, in steps up to some numbers of them."""
    n_sampled, n_tried = 0, 0
    for n_wanted in steps:
        n_sampled, n_tried = sample_features(node, n_wanted, n_sampled, n_tried, buffers)
    put_back(n_sampled, buffers)
    return n_tried


@bare_kernel
def find_threshold(split, columns):
    """Find the threshold of a random split."""
    return threshold_of(split, columns, True)


@given(
    codes=st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=1, max_size=12),
    is_taken=st.lists(st.booleans(), min_size=5, max_size=5).filter(any),
    key=st.integers(0, 2**64 - 1),
    max_features=st.integers(1, 13),
)
def test_features_are_those_of_the_reference(codes, is_taken, key, max_features):
    n_features = len(codes)
    columns = make_columns(
        BinnedMatrix(np.array(codes, dtype=np.uint8), BinValues.of([3] * n_features, *np.empty((2, 0))))
    )
    samples, buffers = np.empty(5, dtype=np.uint64), FeatureBuffers.of(n_features)
    n_samples = take_samples(np.zeros(5, dtype=np.uint16), np.array(is_taken, dtype=np.uint16), True, samples)
    classes = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64), np.int64(0)
    given_node = Node(columns, samples[:n_samples], *classes, np.uint64(key), 0.0, 1.0)
    table, node = reference.Table(codes, [0] * 5, [1] * 5, 1), reference.Node(np.flatnonzero(is_taken), key)
    expected = reference.tried_features(table, node, reference.Rules(max_features=max_features))
    for steps in ([max_features], range(1, max_features + 1)):
        n_tried = sample(given_node, np.array(steps), buffers)
        assert buffers.candidates[:n_tried].tolist() == expected
        assert buffers.features.tolist() == list(range(n_features))


def test_a_constant_feature_does_not_use_up_the_budget():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones((40, 9)), np.full((40, 3), np.nan), rng.integers(0, 4, 40)])
    labels = (X[:, -1] > 1).astype(int)
    for key in range(10):
        tree = grow(X, labels, max_features=1, key=key).tree
        assert tree.feature[0] == 12
        assert tree.n_nodes == 3


def test_infinite_values_are_sampled_between():
    rng = np.random.default_rng(0)
    for seed in range(12):
        X, labels = random_data(seed, 2 + seed % 2, n_rows=80, n_values=9)
        X[rng.random(X.shape) < 0.1] = np.inf
        X[rng.random(X.shape) < 0.1] = -np.inf
        grown = check_tree(X, labels, Growth(key=seed, random=True))
        assert np.all(np.isfinite(grown.tree.threshold) | (grown.tree.threshold == np.inf))


def test_an_infinite_value_is_as_far_out_as_the_others_reach():
    X, labels = np.array([-np.inf, 1.0, 2.0, 3.0])[:, None], np.array([0, 1, 1, 1])
    thresholds = np.array([grow(X, labels, random=True, max_depth=1, key=key).tree.threshold[0] for key in range(999)])
    assert thresholds.min() > -1.0
    # Half of the thresholds separate the infinite value from the others: 500 with a standard deviation of 16.
    assert np.count_nonzero(thresholds < 1.0) == pytest.approx(500, abs=80)
    alone = grow(np.array([-np.inf, np.inf])[:, None], np.array([0, 1]), random=True).tree
    assert alone.threshold[0] == 0.0


@pytest.mark.parametrize("sampled", [0.0, 1.0, 4.2, 6.9, 9.0])
def test_values_outside_all_bins_part_as_their_codes_do(sampled):
    """Of many rows bins come from some: the others have the codes that the edges midway between bins say."""
    binned = bin_for(np.array([0.0, 1.0, 4.0, 8.0, 9.0])[:, None])
    columns = make_columns(binned)._replace(is_sampled=True)
    arrays = np.zeros(2, dtype=np.int64), *np.zeros((2, 4), dtype=np.uint64)
    for code, next_code, low, high in ((1, 2, 2.5, 2.5), (1, 3, 2.5, 6.0), (0, 4, 0.5, 8.5)):
        split = Split(0, code, next_code, False, sampled, 0.1, *arrays)
        assert find_threshold(split, columns) == min(max(sampled, low), high)
