"""Two classes: exact integers as far as they reach, and what another implementation says."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.reference import tree as reference
from tests.tree.growing import Growth, bin_for, grow
from tests.tree.oracle import check_tree, make_table, random_data

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "rfsrc_auc_two_class.json").read_text())


# There the peer takes another of several equally good cuts, and a greedy search ends elsewhere.
TIED = [10, 30, 37, 56]


@pytest.mark.parametrize("case", range(len(GOLDEN["cases"])))
def test_scores_of_random_forest_src(case):
    data = GOLDEN["cases"][case]
    X, labels = np.array(data["X"]), np.array(data["y"])
    tree = grow(X, labels, max_depth=3).tree
    assert 0.5 + tree.gain[0] == pytest.approx(data["root_score"], abs=1e-12)
    auc = roc_auc_score(labels, [tree.value[reference.leaf_of(tree, row), 1] for row in X])
    assert (auc == pytest.approx(data["depth3_auc"], abs=1e-12)) is (case not in TIED)


def is_greedy(table, rows, leaves, depth=0) -> bool:
    """Say whether best cuts, however ties are broken, lead from some rows to these leaves of depth 3."""
    rules = reference.Rules(max_depth=3)
    cuts = list(reference.all_cuts(table, rows, 0, rules)) if reference.may_split(table, rows, depth, rules) else []
    most = max((cut.gain for cut in cuts), default=0)
    if most == 0:
        return len({leaves[r] for r in rows}) == 1
    return any(
        is_greedy(table, cut.left, leaves, depth + 1) and is_greedy(table, cut.right, leaves, depth + 1)
        for cut in cuts
        if cut.gain == most and not {leaves[r] for r in cut.left} & {leaves[r] for r in cut.right}
    )


@pytest.mark.parametrize("case", TIED)
def test_trees_of_random_forest_src_are_best_where_cuts_tie(case):
    data = GOLDEN["cases"][case]
    table, rows = make_table(bin_for(data["X"], max_bins=None), data["y"], 2)
    assert is_greedy(table, rows, data["depth3_leaf"])


def test_a_stump_scores_as_the_roc_auc_of_its_sides():
    for seed in range(20):
        X, labels = random_data(seed, 2, missing=0.0)
        tree = grow(X, labels, max_depth=1).tree
        auc = roc_auc_score(labels, X[:, tree.feature[0]] > tree.threshold[0])
        assert 0.5 + tree.gain[0] == pytest.approx(max(auc, 1 - auc), abs=1e-15)


@pytest.mark.parametrize("weight", [1, 999_983, 2**28, 2**40])
def test_equal_weights_of_any_size_give_one_tree(weight):
    """The products of class totals reach past 2**53, where floats lose units, and past 2**62, where integers end."""
    # There only a power of two leaves all ties as they are.
    for seed in range(5):
        X, labels = random_data(seed, 2)
        # A feature that only just loses, and its double, which ties with it.
        X = np.column_stack((X, X[:, 0], np.where(np.arange(len(X)) == 7, 9.0, X[:, 0])))
        expected = check_tree(X, labels, Growth(key=seed))
        grown = grow(X, labels, weights=np.full(len(labels), weight), key=seed)
        assert np.array_equal(grown.tree.feature, expected.tree.feature)
        assert np.array_equal(grown.tree.threshold, expected.tree.threshold)
        assert np.array_equal(grown.totals, expected.totals * weight)


def test_scores_past_2_to_53_are_compared_exactly():
    """Scores |n0 left1 - n1 left0| that differ by one are the same float: the larger must win, and ties the first."""
    n0_weights, n1_weights = [2**28 - 57, 2**28 + 1, 3], [2**28 - 63, 2**28 + 7, 1]
    weights, labels = np.array(n0_weights + n1_weights), np.repeat([0, 1], 3)
    n0, n1 = sum(n0_weights), sum(n1_weights)
    assert 2**53 < n0 * n1 < 2**62
    rng = np.random.default_rng(0)
    for _ in range(200):
        X = rng.integers(0, 2, (6, 5)).astype(float)
        X[0], X[3] = 0.0, 1.0
        check_tree(X, labels, Growth(max_depth=1, key=int(rng.integers(2**60))), weights=weights)


@pytest.mark.parametrize("criterion", ["auc", "gini"])
def test_class_weights_cancel_in_auc_alone(criterion):
    changed = False
    for seed in range(20):
        X, labels = random_data(seed, 2, n_rows=40)
        plain = grow(X, labels, criterion=criterion, key=seed)
        weighted = grow(X, labels, criterion=criterion, key=seed, weights=np.where(labels == 1, 7, 1))
        same = np.array_equal(plain.tree.threshold, weighted.tree.threshold)
        changed |= not (same and np.array_equal(plain.tree.feature, weighted.tree.feature))
    assert changed is (criterion == "gini")
