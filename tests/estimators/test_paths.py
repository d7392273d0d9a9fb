"""The nodes on the way to leaves against the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest import AUCTreeClassifier
from aucforest.estimators._paths import add_shrunk, leaves_out_of_bag, path_indicator
from tests.estimators.data import make_table
from tests.persistence.trees import make_tree
from tests.reference import shrinkage as reference
from tests.reference.paths import path
from tests.tree.chains import make_chain


@pytest.mark.parametrize("n_splits", [0, 1, 2, 30])
@pytest.mark.parametrize("seed", range(3))
def test_paths(n_splits, seed):
    tree = make_tree(seed, n_splits)
    left, right = tree.left_child.tolist(), tree.right_child.tolist()
    leaves = np.random.default_rng(seed).permutation(np.flatnonzero(tree.is_leaf).repeat(2))
    found = path_indicator(tree, leaves)
    assert found.shape == (len(leaves), tree.n_nodes)
    rows = np.split(found.indices, found.indptr[1:-1])
    assert [nodes.tolist() for nodes in rows] == [path(left, right, leaf) for leaf in leaves]


def test_chains_take_time_in_proportion_to_their_nodes():
    """Seconds are not measured, since machines differ: with the square of the nodes, this would take far too long."""
    for chain in (make_chain(10), make_chain(10**6)):
        assert chain.max_depth == chain.n_nodes // 2
        found = path_indicator(chain, np.array([1, chain.n_nodes - 1]))
        nodes, starts = found.indices, found.indptr
        assert nodes[:2].tolist() == [0, 1]
        assert nodes[2:].tolist() == [*range(0, chain.n_nodes, 2)]
        assert starts.tolist() == [0, 2, 3 + chain.n_nodes // 2]


@pytest.mark.parametrize("categorical_features", [None, [0, 2]])
def test_leaves_out_of_bag(categorical_features):
    table, labels = make_table(n_rows=150, n_classes=3, seed=0, missing=0.1)
    table[:, [0, 2]] = np.abs(np.floor(4 * table[:, [0, 2]]) % 12)
    tree = AUCTreeClassifier(categorical_features=categorical_features, random_state=0).fit(table, labels)
    assert categorical_features is None or len(tree.tree_.sets) > 3
    thresholds = tree.tree_.threshold[tree.tree_.feature == 1]
    table[: len(thresholds), 1] = thresholds
    counts = np.random.default_rng(0).integers(2, size=len(table)).astype(np.uint16)
    codes = tree._validate_X(table, reset=False)
    assert np.array_equal(leaves_out_of_bag(tree.tree_, codes, counts), np.where(counts == 0, tree.apply(table), 0))


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_add_shrunk(seed, n_classes, last_alone):
    rng = np.random.default_rng(seed)
    amounts, n_rows = np.array([0.0, 0.3, 7.0, 1e4]), 9
    n_columns = 1 if last_alone else n_classes
    total, n_trees = np.zeros((n_rows, n_columns, len(amounts))), np.zeros(n_rows, dtype=np.int64)
    expected, seen = np.zeros_like(total), np.zeros(n_rows)
    for i in range(3):
        tree = make_tree(seed + i, int(rng.integers(12)), n_classes=n_classes, whole=False)
        leaves = rng.choice(np.flatnonzero(tree.is_leaf), n_rows)
        counts = rng.integers(3, size=n_rows).astype(np.uint16)
        add_shrunk(tree, amounts, leaves, counts, total, n_trees)
        for i, amount in enumerate(amounts):
            shrunk = reference.shrink(tree.left_child, tree.weight, tree.value, amount)
            by_node = np.array(shrunk)[:, n_classes - n_columns :]
            expected[counts == 0, :, i] += by_node[leaves[counts == 0]]
        seen += counts == 0
    np.testing.assert_allclose(total, expected, atol=1e-13)
    np.testing.assert_array_equal(n_trees, seen)
