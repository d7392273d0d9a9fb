"""The features of a node, sampled with its key, and the thresholds that the random splitter samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest._compile import bare_kernel
from aucforest.tree.features import FeatureBuffers, put_back, sample_features
from aucforest.tree.samples import NO_NAMES, Codes, Columns, take_samples
from aucforest.tree.splitter import Node, Split, TreeParams, threshold_of
from tests.reference import growing as reference
from tests.tree.growing import Growth, bin_for, grow
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
def find_threshold(split, names, rules):
    """Find the threshold of a split."""
    return threshold_of(split, names, rules)


@given(
    codes=st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=1, max_size=12),
    is_taken=st.lists(st.booleans(), min_size=5, max_size=5).filter(any),
    key=st.integers(0, 2**64 - 1),
    max_features=st.integers(1, 13),
)
def test_features_are_those_of_the_reference(codes, is_taken, key, max_features):
    matrix, n_features = np.array(codes, dtype=np.uint8), len(codes)
    columns = Columns(Codes.of(matrix), np.full(n_features, 3), np.empty(0, dtype=np.int64), NO_NAMES)
    samples, buffers = np.empty(5, dtype=np.uint64), FeatureBuffers.of(n_features)
    n_samples = take_samples(np.zeros(5, dtype=np.uint16), np.array(is_taken, dtype=np.uint16), True, samples)
    classes = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64), np.int64(0)
    given_node = Node(columns, samples[:n_samples], *classes, np.uint64(key), 0.0, 1.0)
    table, node = reference.Table(codes, [0] * 5, [1] * 5, 1), reference.Node(np.flatnonzero(is_taken), key)
    expected = reference.tried_features(table, node, reference.Rules(max_features=max_features))
    for steps in ([max_features], range(1, max_features + 1)):
        n_tried = sample(given_node, np.array(steps), buffers)
        assert buffers.tried[:n_tried].tolist() == expected
        assert buffers.features.tolist() == list(range(n_features))


def test_features_are_sampled_evenly():
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(30, 6)), rng.integers(0, 2, 30)
    sampled = [grow(X, labels, max_features=1, max_depth=1, key=key).tree.feature[0] for key in range(1200)]
    # Each of six is expected 200 times with a standard deviation of 13.
    assert np.bincount(sampled, minlength=6) == pytest.approx(200, abs=60)


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


@pytest.mark.parametrize("values", [[0.0, 10.0], [0.0, 1.0, 2.0, 9.0, 10.0]])
def test_thresholds_are_sampled_uniformly(values):
    X, labels = np.repeat(values, 3)[:, None], np.tile([0, 1, 1], len(values))
    labels[0] = 1
    thresholds = [grow(X, labels, random=True, max_depth=1, key=key).tree.threshold[0] for key in range(2000)]
    # Every tenth of the range is expected 200 times with a standard deviation of 13.
    assert np.histogram(thresholds, bins=10, range=(0, 10))[0] == pytest.approx(200, abs=60)


def test_an_infinite_value_is_as_far_out_as_the_others_reach():
    X, labels = np.array([-np.inf, 1.0, 2.0, 3.0])[:, None], np.array([0, 1, 1, 1])
    thresholds = np.array([grow(X, labels, random=True, max_depth=1, key=key).tree.threshold[0] for key in range(999)])
    assert thresholds.min() > -1.0
    # Half of the thresholds separate the infinite value from the others: 500 with a standard deviation of 16.
    assert np.count_nonzero(thresholds < 1.0) == pytest.approx(500, abs=80)
    alone = grow(np.array([-np.inf, np.inf])[:, None], np.array([0, 1]), random=True).tree
    assert alone.threshold[0] == 0.0


def test_a_sampled_threshold_that_leaves_too_few_samples_is_no_split():
    X, labels = np.arange(20.0)[:, None], np.arange(20) % 2
    sizes = [grow(X, labels, random=True, max_depth=1, min_samples_leaf=8, key=key).tree.n_nodes for key in range(60)]
    sampled = [reference.draw(X[:, 0].tolist(), key, 0) for key in range(60)]
    # A split of even numbers of samples that gains nothing is none either.
    assert {size for size, at in zip(sizes, sampled) if not 7 <= at < 12} == {1}
    assert 3 in {size for size, at in zip(sizes, sampled) if 7 <= at < 12}


@pytest.mark.parametrize("sampled", [0.0, 1.0, 4.2, 6.9, 9.0])
def test_values_outside_all_bins_part_as_their_codes_do(sampled):
    """Of many rows bins come from some: the others have the codes that the edges midway between bins say."""
    values = bin_for(np.array([0.0, 1.0, 4.0, 8.0, 9.0])[:, None]).values
    numeric, none = np.zeros(1, dtype=np.int8), np.empty(0, dtype=np.int8)
    params = TreeParams(0, True, 1, 1, 2, 1, 0, 0.0, 0, none, numeric, values, is_sampled=True)
    arrays = np.zeros(2, dtype=np.int64), *np.zeros((2, 4), dtype=np.uint64)
    for code, next_code, low, high in ((1, 2, 2.5, 2.5), (1, 3, 2.5, 6.0), (0, 4, 0.5, 8.5)):
        split = Split(0, code, next_code, False, sampled, 0.1, *arrays)
        assert find_threshold(split, NO_NAMES, params) == min(max(sampled, low), high)
