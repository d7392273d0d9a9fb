"""Whole trees are those of the reference, depth first and best first, with and without copies of branches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.growing import Sizes, level_rows, make_workspace
from aucforest.tree.samples import MOST_ROWS
from tests.tree.growing import NAMES, Growth, bin_for, canonical, grow, make_columns, make_params
from tests.tree.oracle import check_rows_by_value, check_tree, check_trees, datasets, random_data


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("max_bins", [255, None, 4])
@pytest.mark.parametrize("how", [{"max_features": 2}, {"max_depth": 3}, {"min_samples_split": 9}, {"min_gain": 0.06}])
def test_the_reference_grows_the_same_tree(criterion, max_bins, how):
    check_trees(Growth(criterion, **how), max_bins=max_bins, n_bytes=1 if max_bins else 2)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("max_leaf_nodes", [2, 13])
@pytest.mark.parametrize("how", [{}, {"max_features": 2, "max_depth": 4}, {"min_samples_leaf": 3}, {"random": True}])
def test_the_leaf_with_the_greatest_gain_is_split_next(criterion, max_leaf_nodes, how):
    grown = check_trees(Growth(criterion, max_leaf_nodes=max_leaf_nodes, **how), n_rows=100, n_values=12)
    assert all(one.tree.n_leaves <= max_leaf_nodes for one in grown)


@pytest.mark.parametrize("criterion", NAMES)
def test_the_first_of_equal_leaves_is_split_next(criterion):
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 4, axis=0)
    labels = np.repeat([0, 0, 1, 1, 1, 0], [4, 2, 2, 4, 2, 2])
    tree = check_tree(X, labels, Growth(criterion, max_leaf_nodes=3)).tree
    assert tree.feature.tolist() == [0, 1, -1, -1, -1]


@pytest.mark.parametrize(("n_classes", "by_set"), [(2, ()), (2, (0, 2)), (4, (0, 2))])
@pytest.mark.parametrize("n_bytes", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", [{}, {"random": True}, {"min_samples_leaf": 4, "min_weight_leaf": 6}])
def test_copies_of_branches_change_nothing(n_classes, n_bytes, weighted, by_set, how, monkeypatch):
    X, labels = random_data(3, n_classes, n_rows=1000, n_values=150)
    X = 2 * X + 2  # categories are integers from 0 on
    weights = np.rint(np.random.default_rng(0).uniform(1, 2, 1000) * 2**50) if weighted else None
    how = {"weights": weights, "n_bytes": n_bytes, "by_set": by_set, "max_features": 2, "n_classes": n_classes, **how}
    for criterion in ("auc", "entropy"):
        plain = canonical(grow(X, labels, criterion=criterion, last_rows=0, **how))
        assert len(plain) > 50
        for last_rows, ratio in ((3, 8), (10, 2), (40, 3), (40, 1000), (10_000, 8)):
            monkeypatch.setattr("aucforest.tree.growing._RATIO", ratio)
            assert canonical(grow(X, labels, criterion=criterion, last_rows=last_rows, **how)) == plain


def test_copies_have_at_most_the_rows_of_the_sample():
    assert level_rows(10**6, 632_000, 4096) == [10**6, 125_000, 15_625, 4096]
    assert level_rows(10**8, 50_000, 4096) == [10**8, 50_000, 4096]
    assert level_rows(10**8, 2_000, 4096) == [10**8, 2_000, 4096]
    assert level_rows(10**6, 10**6, 0) == [10**6, 0]


@pytest.mark.parametrize(
    ("n_rows", "dtype"), [(3000, np.uint16), pytest.param(70_000, np.uint32, marks=pytest.mark.slow)]
)
def test_without_bins_all_thresholds_are_found(n_rows, dtype):
    X, cuts = np.arange(2.0 * n_rows).reshape(n_rows, 2), np.array([0.1, 0.4, 0.7, 0.98]) * n_rows + 1
    X[:, 1] = np.random.default_rng(0).permutation(n_rows)
    labels = np.digitize(X[:, 0] / 2, cuts) % 2
    exact = grow(X, labels, max_bins=None)
    assert exact.binned.codes.dtype == dtype
    assert sorted(exact.tree.threshold[~exact.tree.is_leaf]) == (2 * cuts - 1).tolist()
    assert canonical(exact) == canonical(grow(X, labels, max_bins=None, last_rows=0))
    assert grow(X, labels).tree.n_nodes > 9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("value", [0.0, np.inf, -np.inf, np.nan])
def test_constant_features_make_one_leaf(n_classes, value):
    assert grow(np.full((30, 3), value), np.arange(30) % n_classes).tree.n_nodes == 1


@pytest.mark.parametrize("criterion", NAMES)
def test_min_gain_is_inclusive(criterion):
    X, labels = random_data(5, 2)
    gain = float(grow(X, labels, criterion=criterion).tree.gain[0])
    assert grow(X, labels, criterion=criterion, min_gain=gain, max_depth=1).tree.n_nodes == 3
    assert grow(X, labels, criterion=criterion, min_gain=np.nextafter(gain, 1.0)).tree.n_nodes == 1


@given(datasets(), st.sampled_from(NAMES), st.sampled_from([2, 5, 255, None]), st.integers(0, 2**64 - 1), st.data())
def test_any_tree_is_that_of_the_reference_and_rows_reach_the_same_leaves_by_value(
    data, criterion, max_bins, key, more
):
    X, labels, counts, n_classes = data
    how = Growth(
        criterion, max_features=more.draw(st.integers(1, X.shape[1])), min_samples_leaf=more.draw(st.integers(1, 3)),
        min_weight_leaf=more.draw(st.integers(0, 4)), max_depth=more.draw(st.sampled_from([1, 3, 99])),
        max_leaf_nodes=more.draw(st.sampled_from([None, 4])), random=more.draw(st.booleans()), key=key,
        last_rows=more.draw(st.sampled_from([0, 5, 100])),
    )  # fmt: skip
    grown = check_tree(X, labels, how, max_bins, 1 if max_bins else 2, n_classes, counts)
    check_rows_by_value(grown, X, labels, counts)


def test_too_many_rows_are_refused():
    params, columns = make_params(Growth(), 3), make_columns(bin_for(np.ones((2, 3))))
    with pytest.raises(ValueError, match="536,870,912 samples are more than the 536,870,911 that a tree can grow from"):
        make_workspace(columns, params, Sizes(MOST_ROWS + 1, 9, 2, 0), np.empty(0))
