"""Rows that descend again where a value has changed, against a reference in which all rows descend."""

import numpy as np
import pytest

from aucforest.inspection._permuted import BLOCK_ROWS, PermutedRows, find_path_features
from aucforest.tree.prediction import PackedTrees
from tests.persistence.trees import make_tree
from tests.reference.importance import features_on_the_way, out_of_bag_sums


def make_data(n_classes, n_features=4):
    """Return rows, some values missing, and trees of different sizes, a single leaf among them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(BLOCK_ROWS + 90, n_features))
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, [make_tree(seed, n, n_features, n_classes) for seed, n in enumerate([3, 60, 0, 25, 40])]


def draw(n_trees, n_rows):
    """Return counts; all rows are out of bag for the first tree, none for the second."""
    counts = np.random.default_rng(0).poisson(1.0, (n_trees, n_rows)).astype(np.uint16)
    counts[0], counts[1] = 0, 1
    return counts


@pytest.mark.parametrize("first_feature", [0, 2, 70])
def test_bits_are_the_features_on_the_path(first_feature):
    X, trees = make_data(2, n_features=90)
    packed = PackedTrees(trees).take_predictions(trees)
    paths = find_path_features(trees, first_feature, np.arange(90))
    found = PermutedRows(packed, paths, X, draw(5, len(X)) * 0, True).leaves
    for tree in range(5):
        entries = slice(*found.starts[tree : tree + 2])
        for row, leaf, bits in zip(found.rows[entries], found.leaves[entries], found.path_features[entries]):
            assert paths[packed.first[tree] + leaf] == bits
            expected = features_on_the_way(trees[tree], X[row]) & set(range(first_feature, first_feature + 64))
            assert {first_feature + b for b in range(64) if int(bits) >> b & 1} == expected


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("any_missing", [False, True])
def test_sums_with_changed_values_of_a_feature(n_classes, any_missing):
    X, trees = make_data(n_classes)
    X = X if any_missing else np.nan_to_num(X)
    counts, packed = draw(5, len(X)), PackedTrees(trees).take_predictions(trees)
    before = X.copy()
    rows = PermutedRows(packed, find_path_features(trees, 0, np.arange(4)), X, counts, any_missing)
    for feature in range(4):
        column = np.random.default_rng(feature).permutation(X[:, feature])
        given = column.copy()
        total = rows.sums(feature, np.array([feature]), given[:, None])
        expected = out_of_bag_sums(trees, before.tolist(), counts.tolist(), feature, column.tolist())
        assert total.tolist() == expected
        np.testing.assert_array_equal(X, before)
        np.testing.assert_array_equal(given, column)
