"""Traversal of trees by compiled code, compared with traversal of single rows in Python."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from aucforest.tree.prediction import (
    ALL_ROWS,
    GROUP_ROWS,
    BagCounts,
    PackedTrees,
    WalkBuffers,
    add_probabilities,
    add_row,
)
from tests.persistence.trees import make_tree
from tests.reference.tree import leaf_of
from tests.tree.growing import grow
from tests.tree.oracle import random_data

N_SPLITS = [3, 60, 0, 25, 40]


@pytest.fixture(scope="module", params=[2, 3])
def trees(request):
    """Trees of different sizes, one of them a single leaf; the last two roots only separate missing values."""
    trees = [make_tree(i, n, n_features=4, n_classes=request.param) for i, n in enumerate(N_SPLITS)]
    trees[3:] = [replace(tree, threshold=np.append(np.inf, tree.threshold[1:])) for tree in trees[3:]]
    return [replace(tree, shrinkage=float(i)) for i, tree in enumerate(trees)]


@pytest.fixture(scope="module", params=[2, 3, 20])
def pure_trees(request):
    """Trees without shrinkage, in which most leaves have a single class; some have sparse frequencies."""
    X, labels = random_data(0, request.param, n_rows=300, n_values=99)
    how = {"max_features": 1, "n_classes": request.param}
    trees = [grow(X, labels, key=i, max_depth=depth, **how).tree for i, depth in enumerate([2, 99, 0, 8, 11])]
    return [replace(tree, frequencies=csr_array(tree.value)) if i % 2 else tree for i, tree in enumerate(trees)]


def rows_for(trees, n_rows: int, seed: int = 0) -> np.ndarray:
    """Return rows with values that are equal to thresholds, next to thresholds, random, missing or infinite."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 2, (n_rows, trees[0].n_features))
    for tree in trees:
        splits = np.flatnonzero(~tree.is_leaf)
        for node in rng.choice(splits, n_rows) if len(splits) > 0 else []:
            at = tree.threshold[node]
            beside = [at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)]
            X[rng.integers(n_rows), tree.feature[node]] = rng.choice(beside)
    special = rng.random(X.shape) < 0.2
    X[special] = rng.choice([-np.inf, np.inf, np.nan, 0.0, -0.0, 5e-324, 1e308, -1e308], special.sum())
    return X


def scratch(n_rows: int):
    """Return buffers with values that must have no effect."""
    return WalkBuffers(np.full(n_rows, 2**63, dtype=np.uint64), np.full(n_rows, 99, dtype=np.uint32))


def check_leaves(trees, X, expected=None) -> None:
    """Check the leaf of each row in each tree against naive traversal of `expected`, by default the same trees."""
    packed, naive = PackedTrees(trees), [[leaf_of(tree, row) for row in X] for tree in expected or trees]
    assert packed.find_leaves(packed.as_read(X)).tolist() == naive


def check_sums(trees, X, bag_counts=None) -> None:
    """Check the sums of predictions; with bag counts, only of out-of-bag rows, and the number of trees of each row."""
    counts = np.zeros((len(trees), len(X)), dtype=np.uint16) if bag_counts is None else bag_counts
    packed, expected = PackedTrees(trees).take_predictions(trees), np.full((len(X), trees[0].n_classes), 0.1)
    total, n_trees = expected.copy(), np.full(len(X), 7)
    bags = ALL_ROWS if bag_counts is None else BagCounts(counts, n_trees)
    add_probabilities(packed.arrays_for(X), X, scratch(len(X)), total, bags)
    for tree, tree_counts in zip(trees, counts):
        for row in np.flatnonzero(tree_counts == 0):
            expected[row] += tree.prediction[leaf_of(tree, X[row])]
    assert np.array_equal(total, expected)
    assert np.array_equal(n_trees, 7 + np.sum(counts == 0, axis=0) * (bag_counts is not None))


@pytest.mark.parametrize("n_rows", [1, 2, GROUP_ROWS + 90])
def test_rows_reach_the_leaves_of_a_naive_traversal(trees, n_rows):
    X = rows_for(trees, n_rows)
    check_leaves(trees, X)
    X[np.isnan(X)] = 0.0
    check_leaves(trees, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_values_are_compared_as_float32(trees, dtype):
    with np.errstate(over="ignore"):
        X = np.asfortranarray(rows_for(trees, GROUP_ROWS + 90).astype(np.float32).astype(dtype))
    assert PackedTrees(trees).as_read(X).dtype == np.float32
    check_leaves(trees, X)
    other = X.astype(np.float64)
    other[-1, -1] = 0.1
    assert PackedTrees(trees).as_read(other).dtype == np.float64
    assert PackedTrees([make_tree(0, 9, 4, trees[0].n_classes, by_set=[3])]).as_read(X).dtype == np.float64


def test_nodes_of_many_features_have_wide_words(trees):
    wide = [replace(tree, n_features=2**30) for tree in trees]
    assert PackedTrees(trees).nodes.words.dtype == np.uint32
    assert PackedTrees(wide).nodes.words.dtype == np.uint64
    check_leaves(wide, rows_for(trees, 90), trees)


def test_splits_by_sets(trees):
    mixed = [make_tree(i, n, 4, trees[0].n_classes, by_set=[3]) for i, n in enumerate(N_SPLITS)]
    mixed[1] = trees[1]
    X = rows_for(trees, GROUP_ROWS + 90)
    codes = np.random.default_rng(5).integers(0, 255, len(X)).astype(float)
    codes[GROUP_ROWS:][:40] = np.nan
    X[:, 3] = codes
    assert len(PackedTrees(mixed).nodes.sets) == sum(len(tree.sets) for tree in mixed) > 4
    check_leaves(mixed, X)
    assert PackedTrees(trees).nodes.sets is None


@pytest.mark.parametrize("n_rows", [1, GROUP_ROWS + 90])
def test_probabilities_are_added_in_the_order_of_trees(trees, pure_trees, n_rows):
    for some in (trees, pure_trees):
        check_sums(some, rows_for(some, n_rows, seed=1))


def test_only_out_of_bag_rows_are_predicted(trees, pure_trees):
    n_rows = GROUP_ROWS + 90
    counts = np.random.default_rng(0).poisson(1.0, (len(trees), n_rows)).astype(np.uint16)
    # All rows are out of bag for the first tree, and no row for the second.
    counts[0], counts[1] = 0, 1
    for some in (trees, pure_trees):
        X, packed = rows_for(some, n_rows, seed=2), PackedTrees(some)
        check_sums(some, X, counts)
        assert np.array_equal(packed.find_leaves(X, counts)[counts == 0], packed.find_leaves(X)[counts == 0])


def test_leaves_of_one_class_are_not_stored(trees, pure_trees):
    mixed = [np.count_nonzero(tree.value[tree.is_leaf], axis=1) > 1 for tree in pure_trees]
    assert 2 < np.concatenate(mixed).sum() < len(np.concatenate(mixed)) - 50
    assert len(PackedTrees(pure_trees).take_predictions(pure_trees).values) == np.concatenate(mixed).sum()
    shrunk = [replace(tree, shrinkage=1.0) for tree in pure_trees]
    values = PackedTrees(shrunk).take_predictions(shrunk).values
    assert len(values) == sum(tree.n_leaves for tree in shrunk)
    assert values.ctypes.data % 64 == 0  # a row of 8 classes is in one cache line


def test_one_row_descends_all_trees_at_once(trees, pure_trees):
    for some in (trees, pure_trees):
        packed = PackedTrees(some).take_predictions(some)
        for row in rows_for(some, 20, seed=3):
            total, expected = np.full((1, some[0].n_classes), 0.25), np.full(some[0].n_classes, 0.25)
            copies, starts = np.tile(row, (len(some), 1)), (packed.first, packed.first_leaf)
            add_row(packed.nodes, packed.values, starts, copies, tuple(scratch(len(some))), total)
            for tree in some:
                expected += tree.prediction[leaf_of(tree, row)]
            assert np.array_equal(total[0], expected)
