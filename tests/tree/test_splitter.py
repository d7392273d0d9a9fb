"""The best split of a node is that of the reference, which evaluates every split."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.reference.tree import leaf_of, sample_features
from tests.tree.growing import NAMES, Growth, grow
from tests.tree.oracle import check_tree, check_trees, random_data, weighings


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize(("n_classes", "n_bytes"), [(2, 1), (3, 2), (6, 4)])
@pytest.mark.parametrize("how", [{}, {"min_samples_leaf": 3, "min_weight_leaf": 6}])
@pytest.mark.parametrize("random", [False, True])
def test_every_node_has_the_best_split(criterion, n_classes, n_bytes, how, random):
    check_trees(Growth(criterion, max_features=3, random=random, **how), n_classes, n_bytes=n_bytes)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n_bytes", "random"), [(1, False), (2, False), (2, True)])
def test_many_codes_in_small_and_large_nodes(criterion, n_classes, n_bytes, random):
    rng = np.random.default_rng(7)
    X = rng.integers(0, 200, (250, 2)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = np.minimum(np.nan_to_num(X[:, 0], nan=40.0) // 80 + (rng.random(250) < 0.2), n_classes - 1)
    for weighing in weighings(7, 250)[::3]:
        check_tree(X, labels.astype(int), Growth(criterion, max_depth=5, random=random), n_bytes=n_bytes, **weighing)


@pytest.mark.parametrize("n_classes", [20, 60])
def test_many_classes(n_classes):
    rng, labels = np.random.default_rng(n_classes), np.repeat(np.arange(n_classes), 2)
    X = np.column_stack((labels // 10 + rng.integers(0, 3, len(labels)), rng.integers(0, 9, len(labels)))).astype(float)
    for criterion in ("auc", "gini"):
        check_tree(X, labels, Growth(criterion, max_depth=1))


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("unit", [1, 2**28, 2**50 + 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_weights_of_any_size_give_one_tree(criterion, unit, n_classes):
    """The products of class totals exceed 2**53, so they are rounded in float64."""
    for seed in range(3):
        X, labels = random_data(seed, n_classes)
        # A feature that ties with the first one, and a feature that differs from it in one row.
        X = np.column_stack((X, X[:, 0], np.where(np.arange(len(X)) == 7, 9.0, X[:, 0])))
        expected = grow(X, labels, criterion=criterion, key=seed)
        grown = check_tree(X, labels, Growth(criterion, key=seed), weights=np.full(len(labels), unit))
        assert np.array_equal(grown.tree.feature, expected.tree.feature)
        assert np.array_equal(grown.tree.threshold, expected.tree.threshold)
        assert np.array_equal(grown.totals, expected.totals * unit)


@pytest.mark.parametrize(("excess", "feature"), [(3, "first"), (2**20, "better")])
def test_scores_that_differ_by_a_rounding_error_tie(excess, feature):
    """The split of one of two features has a greater gain. It only counts as better if the gains differ by 1e-12."""
    labels = np.repeat([0, 1], 3)
    weights = np.array([2**40, 2**40, 2**40, 2**40, 2**40 - excess, 2**40 + excess])
    X = np.array([[0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 0]], dtype=float).T
    for key in range(8):
        tree = check_tree(X[:, ::-1], labels, Growth(max_depth=1, key=key), weights=weights).tree
        assert tree.feature[0] == (sample_features(key, 2)[0] if feature == "first" else 1)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_useless_splits_are_not_taken(criterion, n_classes):
    """All values have the same class frequencies, so the gains of all splits are rounding errors."""
    frequencies = np.array([3, 1, 7, 5, 2])[:n_classes]
    labels = np.tile(np.repeat(np.arange(n_classes), frequencies), 40)
    X = np.repeat(np.arange(40.0), frequencies.sum())[:, None]
    for unit in (1, 0.1 * 2**50, np.pi * 2**47):
        assert grow(X, labels, criterion=criterion, weights=np.full(len(labels), np.rint(unit))).tree.n_nodes == 1
    by_value = np.rint(np.repeat(np.random.default_rng(2).uniform(1, 2, 40), frequencies.sum()) * 2**50)
    assert grow(X, labels, criterion=criterion, weights=by_value).tree.n_nodes == 1


# Another implementation of the AUC of two classes.
PEER = json.loads((Path(__file__).parents[1] / "data" / "rfsrc_auc_two_class.json").read_text())["cases"]
# In these cases, the peer chooses another of several splits of equal gain, so later splits differ.
TIED = [10, 56]


@pytest.mark.parametrize("case", range(len(PEER)))
def test_scores_of_random_forest_src(case):
    X, labels = np.array(PEER[case]["X"]), np.array(PEER[case]["y"])
    tree = grow(X, labels, max_depth=3).tree
    assert 0.5 + tree.gain[0] == pytest.approx(PEER[case]["root_score"], abs=1e-12)
    auc = roc_auc_score(labels, [tree.value[leaf_of(tree, row), 1] for row in X])
    assert (auc == pytest.approx(PEER[case]["depth3_auc"], abs=1e-12)) is (case not in TIED)
