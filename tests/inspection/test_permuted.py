"""Rows that walk anew against rows that all walk in plain Python."""

import numpy as np
import pytest

from aucforest.inspection._permuted import BLOCK_ROWS, add_permuted, find_homes, path_words
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
    """Return counts; all rows are out of the bag of the first tree, none of that of the second."""
    counts = np.random.default_rng(0).poisson(1.0, (n_trees, n_rows)).astype(np.uint16)
    counts[0], counts[1] = 0, 1
    return counts


@pytest.mark.parametrize("first_feature", [0, 2, 70])
def test_words_tell_the_features_on_the_way(first_feature):
    X, trees = make_data(2, n_features=90)
    packed = PackedTrees(trees).take_predictions(trees)
    words = path_words(trees, packed, first_feature)
    found = find_homes(packed.arguments(words), X, draw(5, len(X)) * 0, np.isnan(X).any())
    for tree in range(5):
        entries = slice(*found.starts[tree : tree + 2])
        for row, leaf, met in zip(found.rows[entries], found.leaves[entries], found.met[entries]):
            number = packed.nodes.numbers[packed.first[tree] + leaf]
            assert words[packed.first_leaf[tree] + number] == met
            expected = features_on_the_way(trees[tree], X[row]) & set(range(first_feature, first_feature + 64))
            assert {first_feature + b for b in range(64) if int(met) >> b & 1} == expected


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("any_missing", [False, True])
def test_sums_with_other_values_of_a_feature(n_classes, any_missing):
    X, trees = make_data(n_classes)
    X = X if any_missing else np.nan_to_num(X)
    counts, packed = draw(5, len(X)), PackedTrees(trees).take_predictions(trees)
    before = X.copy()
    homes = find_homes(packed.arguments(path_words(trees, packed, 0)), X, counts, any_missing)
    scratch = [np.full(BLOCK_ROWS, 99, dtype) for dtype in (np.uint64, np.uint32, np.uint64)]
    for feature in range(4):
        column = np.random.default_rng(feature).permutation(X[:, feature])
        given, total = column.copy(), np.zeros((len(X), n_classes))
        new = X, feature, np.uint64(1) << np.uint64(feature), given, any_missing
        add_permuted(*packed.arguments(packed.values), *new, homes, total, *scratch)
        expected = out_of_bag_sums(trees, before.tolist(), counts.tolist(), feature, column.tolist())
        assert total.tolist() == expected
        np.testing.assert_array_equal(X, before)
        np.testing.assert_array_equal(given, column)
