"""Walks of compiled code against a row that goes from node to node in plain Python."""

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
from tests.tree.test_tree import small_tree

EXTREMES = [-np.inf, np.inf, np.nan, 0.0, -0.0, 5e-324, 1e308, -1e308]


@pytest.fixture(scope="module", params=[2, 3])
def trees(request):
    """Trees of different sizes on the same classes, a single leaf among them."""
    trees = [make_tree(seed, n, n_features=4, n_classes=request.param) for seed, n in enumerate([3, 60, 0, 25, 40])]
    return [replace(tree, shrinkage=float(i)) for i, tree in enumerate(trees)]


def with_sets(tree, feature: int, seed: int):
    """Return the tree with a random set of codes in every split of a feature."""
    nodes = np.flatnonzero(tree.feature == feature)
    sets = np.random.default_rng(seed).integers(0, 2**64, (len(nodes), 4), dtype=np.uint64)
    sets[:, 3] = (sets[:, 3] & ~np.uint64(2**63)) | (tree.missing_left[nodes].astype(np.uint64) << np.uint64(63))
    threshold = np.where(tree.feature == feature, 0.0, tree.threshold)
    changed = replace(tree, threshold=threshold, set_nodes=nodes, sets=sets)
    changed.validate()
    return changed


def rows_for(trees, n_rows: int, seed: int = 0) -> np.ndarray:
    """Return rows whose values lie on, just beside and far from the thresholds of the trees, missing and infinite."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 2, (n_rows, trees[0].n_features))
    for tree in trees:
        splits = np.flatnonzero(~tree.is_leaf)
        if len(splits) == 0:
            continue
        for node in rng.choice(splits, n_rows):
            at = tree.threshold[node]
            beside = [at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)]
            X[rng.integers(n_rows), tree.feature[node]] = rng.choice(beside)
    special = rng.random(X.shape) < 0.2
    X[special] = rng.choice(EXTREMES, special.sum())
    return X


def scratch(n_rows: int):
    """Return buffers whose content must not matter."""
    return WalkBuffers(np.full(n_rows, 2**63, dtype=np.uint64), np.full(n_rows, 99, dtype=np.uint32))


def leaves_of(trees, X) -> np.ndarray:
    """Return the leaf of every row in every tree."""
    packed = PackedTrees(trees)
    return packed.find_leaves(packed.as_read(X)).T


def test_packed_trees_hold_every_leaf_once(trees):
    packed = PackedTrees(trees).take_predictions(trees)
    assert packed.first.tolist() == np.cumsum([0, *(tree.n_nodes for tree in trees)]).tolist()
    for i, tree in enumerate(trees):
        numbers = packed.nodes.numbers[slice(*packed.first[i : i + 2])][tree.is_leaf]
        assert sorted(numbers) == list(range(tree.n_leaves))
        assert np.array_equal(packed.values[packed.first_leaf[i] + numbers], tree.prediction[tree.is_leaf])
    assert packed.values.ctypes.data % 64 == 0


@pytest.mark.parametrize("n_rows", [1, 2, GROUP_ROWS + 90])
def test_rows_reach_the_leaves_of_a_naive_walk(trees, n_rows):
    X = rows_for(trees, n_rows)
    assert leaves_of(trees, X).tolist() == [[leaf_of(tree, row) for tree in trees] for row in X]
    X[np.isnan(X)] = 0.0
    assert leaves_of(trees, X).tolist() == [[leaf_of(tree, row) for tree in trees] for row in X]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_float32_holds_are_walked_in_it(trees, dtype):
    """Among them those next to thresholds, which float32 does not hold."""
    with np.errstate(over="ignore"):
        X = np.asfortranarray(rows_for(trees, GROUP_ROWS + 90).astype(np.float32).astype(dtype))
    assert PackedTrees(trees).as_read(X).dtype == np.float32
    expected = [[leaf_of(tree, row) for tree in trees] for row in X.astype(np.float64)]
    assert leaves_of(trees, X).tolist() == expected
    other = X.astype(np.float64)
    other[-1, -1] = 0.1
    assert PackedTrees(trees).as_read(other).dtype == np.float64
    with_codes = [with_sets(tree, 3, i) for i, tree in enumerate(trees)]
    assert PackedTrees(with_codes).as_read(X).dtype == np.float64


def test_nodes_of_many_features_have_wide_words(trees):
    X, wide = rows_for(trees, 90), [replace(tree, n_features=2**30) for tree in trees]
    assert PackedTrees(trees).nodes.words.dtype == np.uint32
    assert PackedTrees(wide).nodes.words.dtype == np.uint64
    assert leaves_of(wide, X).tolist() == [[leaf_of(tree, row) for tree in trees] for row in X]


def test_sets_of_codes_are_walked(trees):
    """Feature 3 holds codes; one of the trees has no set."""
    mixed = [tree if i == 1 else with_sets(tree, 3, i) for i, tree in enumerate(trees)]
    X = rows_for(trees, GROUP_ROWS + 90)
    codes = np.random.default_rng(5).integers(0, 255, len(X)).astype(float)
    codes[GROUP_ROWS:][:40] = np.nan
    X[:, 3] = codes
    packed = PackedTrees(mixed)
    assert len(packed.nodes.sets) == sum(len(tree.sets) for tree in mixed) > 4
    assert leaves_of(mixed, X).tolist() == [[leaf_of(tree, row) for tree in mixed] for row in X]
    assert PackedTrees(trees).nodes.sets is None


@pytest.mark.parametrize("n_rows", [1, GROUP_ROWS + 90])
def test_probabilities_are_added_in_the_order_of_trees(trees, n_rows):
    packed, X = PackedTrees(trees).take_predictions(trees), rows_for(trees, n_rows, seed=1)
    total = np.full((n_rows, trees[0].n_classes), 0.25)
    add_probabilities(packed.arrays_for(X), X, scratch(n_rows), total, ALL_ROWS)
    expected = np.full_like(total, 0.25)
    for tree in trees:
        expected += tree.prediction[[leaf_of(tree, row) for row in X]]
    assert np.array_equal(total, expected)


@pytest.fixture(scope="module", params=[2, 3, 20])
def pure_trees(request):
    """Trees without shrinkage, most of whose leaves hold one class, stored as a sparse matrix or not."""
    trees = [make_pure(seed, n, request.param) for seed, n in enumerate([3, 60, 0, 25, 40])]
    return [replace(tree, frequencies=csr_array(tree.value)) if i % 2 else tree for i, tree in enumerate(trees)]


def make_pure(seed: int, n_splits: int, n_classes: int):
    """Return a tree in which leaves of an odd number hold one class alone."""
    tree = make_tree(seed, n_splits, n_features=4, n_classes=n_classes)
    totals = tree.value * tree.weight[:, None]
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.is_leaf[node] and node % 2:
            totals[node] = np.where(np.arange(n_classes) == node // 2 % n_classes, 1.0 + node, 0.0)
        elif not tree.is_leaf[node]:
            totals[node] = totals[tree.left_child[node]] + totals[tree.left_child[node] + 1]
    weight = totals.sum(axis=1)
    pure = replace(tree, frequencies=totals / weight[:, None], weight=weight, shrinkage=0.0)
    pure.validate()
    return pure


def test_leaves_of_one_class_are_not_stored(pure_trees):
    packed, n_negative = PackedTrees(pure_trees).take_predictions(pure_trees), 0
    for i, tree in enumerate(pure_trees):
        numbers = packed.nodes.numbers[slice(*packed.first[i : i + 2])][tree.is_leaf]
        stored, expected = packed.values[slice(*packed.first_leaf[i : i + 2])], tree.prediction[tree.is_leaf]
        assert np.array_equal(stored, expected[np.count_nonzero(expected, axis=1) > 1])
        assert np.array_equal(numbers[numbers >= 0], np.arange(len(stored)))
        assert np.array_equal(~numbers[numbers < 0], expected[numbers < 0].argmax(axis=1))
        assert np.all(expected[numbers < 0].max(axis=1) == 1.0)
        n_negative += np.count_nonzero(numbers < 0)
    assert n_negative > 50
    shrunk = [replace(tree, shrinkage=1.0) for tree in pure_trees]
    assert len(PackedTrees(shrunk).take_predictions(shrunk).values) == sum(tree.n_leaves for tree in shrunk)


def test_leaves_of_one_class_are_added_in_the_order_of_trees(pure_trees):
    packed, X = PackedTrees(pure_trees).take_predictions(pure_trees), rows_for(pure_trees, GROUP_ROWS + 90, seed=1)
    counts = np.random.default_rng(0).poisson(1.0, (len(pure_trees), len(X))).astype(np.uint16)
    for drawn in (np.zeros_like(counts), counts):
        total, expected = np.full((2, len(X), pure_trees[0].n_classes), 0.1)
        out_of_bag = ALL_ROWS if drawn is not counts else BagCounts(counts, np.zeros(len(X), dtype=np.int64))
        add_probabilities(packed.arrays_for(X), X, scratch(len(X)), total, out_of_bag)
        for tree, of_tree in zip(pure_trees, drawn):
            for row in np.flatnonzero(of_tree == 0):
                expected[row] += tree.prediction[leaf_of(tree, X[row])]
        assert np.array_equal(total, expected)


def test_one_row_goes_down_all_trees_at_once(trees):
    check_one_row(trees)


def test_one_row_adds_leaves_of_one_class(pure_trees):
    check_one_row(pure_trees)


def check_one_row(trees):
    packed = PackedTrees(trees).take_predictions(trees)
    for row in rows_for(trees, 20, seed=3):
        total, expected = np.full((1, trees[0].n_classes), 0.25), np.full(trees[0].n_classes, 0.25)
        copies, starts = np.tile(row, (len(trees), 1)), (packed.first, packed.first_leaf)
        add_row(packed.nodes, packed.values, starts, copies, tuple(scratch(len(trees))), total)
        for tree in trees:
            expected += tree.prediction[leaf_of(tree, row)]
        assert np.array_equal(total[0], expected)


def test_out_of_bag_rows_alone_are_walked(trees):
    n_rows = GROUP_ROWS + 90
    packed, X = PackedTrees(trees).take_predictions(trees), rows_for(trees, n_rows, seed=2)
    counts = np.random.default_rng(0).poisson(1.0, (len(trees), n_rows)).astype(np.uint16)
    # All rows are out of the bag of the first tree, none of that of the second.
    counts[0], counts[1] = 0, 1
    total, n_trees = np.full((n_rows, trees[0].n_classes), 0.25), np.full(n_rows, 7)
    add_probabilities(packed.arrays_for(X), X, scratch(n_rows), total, BagCounts(counts, n_trees))
    expected = np.full_like(total, 0.25)
    for tree, drawn in zip(trees, counts):
        for row in np.flatnonzero(drawn == 0):
            expected[row] += tree.prediction[leaf_of(tree, X[row])]
    assert np.array_equal(total, expected)
    assert np.array_equal(n_trees, 7 + np.sum(counts == 0, axis=0))
    found = packed.find_leaves(X, counts)
    assert np.array_equal(found[counts == 0], leaves_of(trees, X).T[counts == 0])


@pytest.mark.parametrize("missing_left", [False, True])
def test_missing_values_go_where_the_tree_says(missing_left):
    tree = replace(small_tree(), missing_left=np.array([missing_left, False, False, False, False]))
    assert leaves_of([tree], np.array([[0.0, np.nan], [0.0, 1.0]]))[:, 0].tolist() == [1 if missing_left else 3, 3]


def test_an_infinite_threshold_parts_missing_values_from_all_others():
    tree = small_tree()
    assert (tree.feature[2], tree.threshold[2]) == (0, np.inf)
    X = np.array([[np.inf, 1.0], [np.nan, 1.0], [0.0, 1.0], [-np.inf, 1.0]])
    assert leaves_of([tree], X)[:, 0].tolist() == [3, 4, 3, 3]
