"""Whole trees: node for node as the reference, in whatever order they grow and wherever rows are kept."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.binning import bin_matrix
from aucforest.tree.growing import Sizes, branch_rows, level_rows, make_workspace
from aucforest.tree.samples import MOST_ROWS
from tests.reference.tree import leaf_of
from tests.tree.growing import NAMES, Growth, bin_for, canonical, grow, grow_binned, make_columns, make_params
from tests.tree.oracle import check_rows_land, check_tree, random_data, weighings


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("max_bins", [255, None, 4])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"max_features": 2},
        {"max_depth": 3},
        {"min_samples_split": 9, "min_samples_leaf": 2},
        {"min_weight_leaf": 5},
        {"min_gain": 0.06},
    ],
)
def test_the_reference_grows_the_same_tree(criterion, max_bins, how):
    for seed in range(3):
        X, labels = random_data(seed, 2 + seed)
        growth, weighing = Growth(criterion, key=2**63 + seed, **how), weighings(seed, 60)[1]
        check_tree(X, labels, growth, max_bins, 1 if max_bins else 2, 2 + seed, **weighing)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("max_leaf_nodes", [2, 13])
@pytest.mark.parametrize("how", [{}, {"max_features": 2, "max_depth": 4}, {"min_samples_leaf": 3}, {"random": True}])
def test_the_leaf_that_gains_most_is_split_next(criterion, max_leaf_nodes, how):
    for seed in range(4):
        X, labels = random_data(seed, 2 + seed % 2, n_rows=100, n_values=12)
        growth, weighing = Growth(criterion, key=seed, max_leaf_nodes=max_leaf_nodes, **how), weighings(seed, 100)[seed]
        grown = check_tree(X, labels, growth, n_classes=2 + seed % 2, **weighing)
        assert grown.tree.n_leaves <= max_leaf_nodes


@pytest.mark.parametrize("criterion", NAMES)
def test_of_equal_leaves_the_first_one_is_split_next(criterion):
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 4, axis=0)
    labels = np.repeat([0, 0, 1, 1, 1, 0], [4, 2, 2, 4, 2, 2])
    tree = check_tree(X, labels, Growth(criterion, max_leaf_nodes=3)).tree
    assert tree.feature.tolist() == [0, 1, -1, -1, -1]


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize("by_set", [(), (0, 2)])
@pytest.mark.parametrize("how", [{}, {"max_depth": 3, "min_samples_leaf": 3}, {"min_gain": 0.05, "max_features": 2}])
def test_best_first_without_a_limit_is_depth_first(criterion, n_classes, random, by_set, how):
    for seed in range(2):
        X, labels = random_data(seed, n_classes, n_rows=200, n_values=40)
        how = {"criterion": criterion, "key": seed, "random": random, "by_set": by_set, **how}
        expected = grow(2 * X + 2, labels, **how)
        for max_leaf_nodes in (max(2, expected.tree.n_leaves), 10**6):
            assert canonical(grow(2 * X + 2, labels, max_leaf_nodes=max_leaf_nodes, **how)) == canonical(expected)


@pytest.mark.parametrize(("n_classes", "by_set"), [(2, ()), (2, (0, 2)), (4, (0, 2))])
@pytest.mark.parametrize("n_bytes", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", [{}, {"random": True}, {"min_samples_leaf": 4, "min_weight_leaf": 6}])
def test_copies_of_branches_change_nothing(n_classes, n_bytes, weighted, by_set, how, monkeypatch):
    X, labels = random_data(3, n_classes, n_rows=1000, n_values=150)
    X = 2 * X + 2  # categories count from 0
    weights = np.rint(np.random.default_rng(0).uniform(1, 2, 1000) * 2**50) if weighted else None
    how = {"weights": weights, "n_bytes": n_bytes, "by_set": by_set, "max_features": 2, "n_classes": n_classes, **how}
    for criterion in ("auc", "entropy"):
        plain = canonical(grow(X, labels, criterion=criterion, last_rows=0, **how))
        assert len(plain) > 50
        for last_rows, ratio in ((3, 8), (10, 2), (40, 3), (40, 1000), (10_000, 8)):
            monkeypatch.setattr("aucforest.tree.growing._RATIO", ratio)
            assert canonical(grow(X, labels, criterion=criterion, last_rows=last_rows, **how)) == plain


def test_branches_are_copied_where_it_pays():
    assert branch_rows(30, 5) == 4096
    assert branch_rows(1000, 500) == 2**18 // 1000
    assert branch_rows(1000, 10) == 0


def test_copies_are_as_large_as_the_samples():
    assert level_rows(10**6, 632_000, 4096) == [10**6, 125_000, 15_625, 4096]
    assert level_rows(10**8, 50_000, 4096) == [10**8, 50_000, 4096]
    assert level_rows(10**8, 2_000, 4096) == [10**8, 2_000, 4096]
    assert level_rows(10**6, 10**6, 0) == [10**6, 0]


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_integer_weights_are_repeated_rows(criterion, n_classes):
    for seed in range(3):
        X, labels = random_data(seed, n_classes)
        counts, binned = np.random.default_rng(seed).poisson(1.0, len(labels)), bin_for(X)
        repeated = binned._replace(codes=np.ascontiguousarray(np.repeat(binned.codes, counts, axis=1)))
        how = Growth(criterion, key=seed)
        expected = canonical(grow_binned(repeated, np.repeat(labels, counts), how, n_classes))
        for kind in ({"counts": counts}, {"counts": counts > 0, "weights": np.maximum(counts, 1)}):
            grown = canonical(grow_binned(binned, labels, how, n_classes, **kind))
            # all but the numbers of samples
            for node, other in zip(grown, expected, strict=True):
                assert (*node[:4], *node[6:]) == (*other[:4], *other[6:])
                assert node[4] == pytest.approx(other[4], abs=1e-15)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_order_of_rows_changes_nothing(criterion, n_classes):
    X, labels = random_data(1, n_classes, n_rows=200)
    X = 2 * X + 2
    weights = np.rint(np.random.default_rng(0).uniform(1, 2, 200) * 2**50)
    order = np.random.default_rng(1).permutation(200)
    how = {"criterion": criterion, "by_set": (0, 2)}
    other = grow(X[order], labels[order], weights=weights[order], **how)
    assert canonical(grow(X, labels, weights=weights, **how)) == canonical(other)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("random", [False, True])
def test_exact_mode_is_hist_mode_where_every_value_has_a_bin(criterion, n_classes, random):
    X, labels = random_data(2, n_classes, n_rows=500, n_values=255)
    X[:, 1] = np.random.default_rng(0).integers(0, 255, 500) / 7.0
    hist = grow(X, labels, criterion=criterion, random=random)
    assert hist.binned.codes.dtype == np.uint8
    exact = grow(X, labels, max_bins=None, n_bytes=2, criterion=criterion, random=random)
    assert canonical(hist) == canonical(exact)


def test_exact_mode_finds_what_bins_hide():
    X = np.arange(3000.0)[:, None]
    labels = (X[:, 0] >= 1234).astype(int)
    exact = grow(X, labels, max_bins=None)
    assert exact.binned.codes.dtype == np.uint16
    assert exact.tree.threshold.tolist() == [1233.5, 0.0, 0.0]
    assert grow(X, labels).tree.n_nodes > 3


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("value", [0.0, np.inf, -np.inf, np.nan])
def test_constant_features_make_one_leaf(n_classes, value):
    grown = grow(np.full((30, 3), value), np.arange(30) % n_classes)
    assert grown.tree.n_nodes == 1
    assert grown.tree.value[0] == pytest.approx(1 / n_classes)


@pytest.mark.parametrize(("bound", "size"), [("min_samples_split", 6), ("min_weight_leaf", 4)])
def test_a_node_of_just_the_least_size_is_split(bound, size):
    X, labels, counts = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1]), np.array([1, 2, 1, 2, 1, 1])
    assert grow(X, labels, counts=counts, **{bound: size}).tree.n_nodes == 3
    assert grow(X, labels, counts=counts, **{bound: size + 1}).tree.n_nodes == 1


@pytest.mark.parametrize("criterion", NAMES)
def test_min_gain_is_a_least_gain(criterion):
    X, labels = random_data(5, 2)
    gain = float(grow(X, labels, criterion=criterion).tree.gain[0])
    assert grow(X, labels, criterion=criterion, min_gain=gain, max_depth=1).tree.n_nodes == 3
    assert grow(X, labels, criterion=criterion, min_gain=np.nextafter(gain, 1.0)).tree.n_nodes == 1


def test_a_pure_node_is_not_searched():
    assert grow(np.arange(9.0)[:, None], np.ones(9, dtype=int), n_classes=3).tree.n_nodes == 1


def test_infinite_values_are_values():
    X = np.array([-np.inf, -np.inf, -1e308, 1e308, np.inf, np.inf, np.nan])[:, None]
    for labels in ([0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 1]):
        tree = grow(X, np.array(labels)).tree
        assert tree.value[tree.is_leaf].max(axis=1).min() == 1.0
        for row, label in zip(X, labels):
            assert tree.value[leaf_of(tree, row)][label] == 1.0
    assert grow(X[:2].repeat(4, axis=0), np.arange(8) % 2).tree.n_nodes == 1


AWKWARD = [-np.inf, -1.7e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1, 2), 2.5, 1.7e308, np.inf, np.nan]


@st.composite
def datasets(draw):
    """Small matrices of awkward values, with labels and a bootstrap sample."""
    n_classes, n_features = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    row = st.tuples(
        st.lists(st.sampled_from(AWKWARD) | st.floats(-9, 9), min_size=n_features, max_size=n_features),
        st.integers(0, n_classes - 1),
        st.integers(0, 3),
    )
    rows = draw(st.lists(row, min_size=1, max_size=40))
    X, labels, counts = (np.array(part) for part in zip(*rows))
    if not np.any(counts):
        counts[0] = 1
    return X.astype(float), labels, counts, n_classes


@given(datasets(), st.sampled_from(NAMES), st.sampled_from([2, 5, 255, None]), st.integers(0, 2**64 - 1), st.data())
def test_any_tree_is_valid_and_its_rows_land_by_value_where_they_went_by_code(data, criterion, max_bins, key, more):
    X, labels, counts, n_classes = data
    how = {
        "max_features": more.draw(st.integers(1, X.shape[1])),
        "min_samples_leaf": more.draw(st.integers(1, 3)),
        "min_weight_leaf": more.draw(st.integers(0, 4)),
        "max_depth": more.draw(st.sampled_from([1, 3, 99])),
        "max_leaf_nodes": more.draw(st.sampled_from([None, 4])),
        "random": more.draw(st.booleans()),
        "last_rows": more.draw(st.sampled_from([0, 5, 100])),
    }
    kwargs = {"max_bins": max_bins, "n_bytes": 1 if max_bins else 2, "counts": counts, "n_classes": n_classes}
    grown = grow(X, labels, criterion=criterion, key=key, **kwargs, **how)
    check_rows_land(grown, X, labels, counts)
    assert grown.tree.max_depth <= how["max_depth"]
    assert np.all(grown.tree.gain[~grown.tree.is_leaf] > 0)


@pytest.mark.slow
def test_more_distinct_values_than_16_bits_hold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70_000, 2))
    labels = (X[:, 0] + 0.1 * rng.normal(size=len(X)) > 0).astype(int)
    binned = bin_matrix(X, max_bins=None)
    assert binned.codes.dtype == np.uint32
    how = Growth(max_depth=9)
    grown = grow_binned(binned, labels, how)
    assert canonical(grown) == canonical(grow_binned(binned, labels, how._replace(last_rows=0)))
    assert grown.tree.gain[0] == pytest.approx(0.5 - math.atan(0.1) / math.pi, abs=0.01)


def test_more_rows_than_nodes_have_numbers_for_are_refused():
    params, columns = make_params(Growth(), 3), make_columns(bin_for(np.ones((2, 3))))
    with pytest.raises(ValueError, match="536,870,912 samples are more than the 536,870,911 that a tree can grow from"):
        make_workspace(columns, params, Sizes(MOST_ROWS + 1, 9, 2, 0), np.empty(0))
