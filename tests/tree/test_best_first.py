"""Best-first growth: without a limit the depth-first tree, with one that of a reference that looks at all leaves."""

from functools import partial

import numpy as np
import pytest

from tests.reference import growing
from tests.reference import tree as reference
from tests.tree.growing import Growth, bin_for, canonical, grow, grow_binned, preorder
from tests.tree.oracle import make_rules, make_table, random_data

CRITERIA = ["auc", "gini", "entropy", "hellinger"]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("random", [False, True])
@pytest.mark.parametrize("how", [{}, {"max_depth": 3, "min_samples_leaf": 3}, {"min_gain": 0.05, "max_features": 2}])
def test_without_a_limit_the_tree_is_the_depth_first_one(criterion, n_classes, random, how):
    for seed in range(3):
        X, labels = random_data(seed, n_classes, n_rows=200, n_values=40)
        how = {"criterion": criterion, "key": seed, "random": random, **how}
        expected = grow(X, labels, **how)
        n_leaves = expected.tree.n_leaves
        for max_leaves in (n_leaves, n_leaves + 1, 10**6):
            assert canonical(grow(X, labels, max_leaves=max_leaves, **how)) == canonical(expected)


@pytest.mark.parametrize("max_leaves", [2, 3, 5, 8, 13, 21])
@pytest.mark.parametrize("how", [{}, {"max_features": 2, "max_depth": 4}, {"min_samples_leaf": 3}])
def test_the_leaf_that_gains_most_is_cut_next(max_leaves, how):
    for seed in range(4):
        X, labels = random_data(seed, 2, n_rows=100, n_values=12)
        counts = np.random.default_rng(seed).poisson(1.5, len(labels))
        growth, binned = Growth(key=seed, max_leaves=max_leaves, **how), bin_for(X)
        grown = grow_binned(binned, labels, growth, 2, counts)
        table, rows = make_table(binned, labels, 2, counts)
        rules = make_rules(growth)
        best_of = partial(reference.best_cut, table, rules=rules)
        root = growing.grow_best_first(table, rows, seed, rules, max_leaves, best_of)
        expected, order = list(growing.parents_first(root)), preorder(grown.tree)
        assert grown.totals[order].tolist() == [table.totals(node.rows) for node in expected]
        cuts = [-1 if node.cut is None else node.cut.feature for node in expected]
        assert grown.tree.feature[order].tolist() == cuts
        # The numbers of cuts that did not come to pass are left out, the others keep their order.
        assert np.argsort(order).tolist() == np.argsort([node.number for node in expected]).tolist()
        assert grown.tree.n_leaves <= max_leaves


@pytest.mark.parametrize("signs", [(), (1, -1, 0, 1)])
def test_a_limited_tree_is_the_top_of_the_whole_one(signs):
    X, labels = random_data(2, 2, n_rows=300, n_values=60)
    whole = {}
    for part in ({}, {"max_leaves": 9}):
        grown = grow(X, labels, criterion="gini", signs=signs, extras=True, **part)
        cuts = [i for i in preorder(grown.tree) if grown.tree.feature[i] >= 0]
        said = {(int(grown.tree.feature[i]), *grown.totals[i].tolist()): grown.tree.gain[i] for i in cuts}
        if part:
            assert grown.tree.n_leaves == 9
            assert said.items() <= whole.items()
        whole = said


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_leaves", [4, 9, 999])
def test_sets_of_cuts_that_did_not_come_to_pass_are_left_out(n_classes, max_leaves):
    for seed in range(3):
        X, labels = random_data(seed, n_classes, n_rows=200, n_values=12)
        X = 2 * X + 2
        tree = grow(X, labels, by_set=(0, 2), max_leaves=max_leaves).tree
        assert np.array_equal(tree.set_nodes, np.flatnonzero((tree.feature == 0) | (tree.feature == 2)))
        leaves = np.array([reference.leaf_of(tree, row) for row in X])
        for node in np.flatnonzero(tree.is_leaf):
            counts = np.bincount(labels[leaves == node], minlength=n_classes)
            np.testing.assert_allclose(tree.value[node] * tree.weight[node], counts, atol=1e-9)
