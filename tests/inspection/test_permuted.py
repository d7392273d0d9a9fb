"""The features on the paths of rows against a reference; the tests of importances compare sums of predictions."""

import numpy as np
import pytest

from aucforest.inspection._permuted import BLOCK_ROWS, PermutedRows, find_path_features
from aucforest.tree.prediction import PackedTrees
from tests.persistence.trees import make_tree
from tests.reference.importance import features_on_the_way


@pytest.mark.parametrize("first_feature", [0, 2, 70])
def test_bits_are_the_features_on_the_path(first_feature):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(BLOCK_ROWS + 90, 90))
    X[rng.random(X.shape) < 0.15] = np.nan
    trees = [make_tree(seed, n_splits, 90) for seed, n_splits in enumerate([3, 60, 0, 25, 40])]
    packed = PackedTrees(trees).take_predictions(trees)
    paths = find_path_features(trees, first_feature, np.arange(90))
    found = PermutedRows(packed, paths, X, np.zeros((5, len(X)), dtype=np.uint16), True).leaves
    for tree in range(5):
        entries = slice(*found.starts[tree : tree + 2])
        for row, leaf, bits in zip(found.rows[entries], found.leaves[entries], found.path_features[entries]):
            assert paths[packed.first[tree] + leaf] == bits
            expected = features_on_the_way(trees[tree], X[row]) & set(range(first_feature, first_feature + 64))
            assert {first_feature + b for b in range(64) if int(bits) >> b & 1} == expected
