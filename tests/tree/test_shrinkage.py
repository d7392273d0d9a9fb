"""Hierarchical shrinkage against its definition."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.tree import shrink
from tests.reference import shrinkage as reference
from tests.tree.test_tree import refusal, small_tree

SEEDS = st.integers(0, 2**32 - 1)


def random_tree(seed, n_classes):
    """Return left_child, weight and value of a tree grown at random; children add up to their parent."""
    rng = np.random.default_rng(seed)
    left_child, totals = [-1], [rng.integers(1, 50, n_classes).astype(float)]
    for _ in range(rng.integers(12)):
        node = rng.choice([i for i, left in enumerate(left_child) if left < 0])
        left = totals[node] * rng.random(n_classes)
        left_child[node] = len(left_child)
        left_child += [-1, -1]
        totals += [left, totals[node] - left]
    weight = np.sum(totals, axis=1)
    return np.array(left_child, dtype=np.int32), weight, np.array(totals) / weight[:, None]


@given(SEEDS, st.integers(2, 5), st.floats(0, 1e6))
def test_shrink(seed, n_classes, amount):
    left_child, weight, value = random_tree(seed, n_classes)
    found = shrink(left_child, weight, value, amount)
    np.testing.assert_allclose(found, reference.shrink(left_child, weight, value, amount), atol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.all((found >= 0.0) & (found <= 1.0))
    for node, row in enumerate(found):
        path = value[reference.path_to(left_child.tolist(), node)]
        assert np.all(row >= path.min(axis=0) - 1e-12)
        assert np.all(row <= path.max(axis=0) + 1e-12)


@given(SEEDS, st.floats(1e-30, 1e-12))
def test_frequencies_stay_frequencies(seed, amount):
    left_child, weight, value = random_tree(seed, 3)
    # as in trees grown to the end
    value[(left_child < 0)] = np.eye(3)[value[left_child < 0].argmax(axis=1)]
    found = shrink(left_child, weight, value, amount)
    assert np.all((found >= 0.0) & (found <= 1.0))


@given(SEEDS)
def test_from_the_frequencies_to_those_of_the_root(seed):
    left_child, weight, value = random_tree(seed, 3)
    np.testing.assert_allclose(shrink(left_child, weight, value, 0.0), value, atol=1e-14)
    np.testing.assert_allclose(shrink(left_child, weight, value, 1e15), np.tile(value[0], (len(value), 1)), atol=1e-9)


def test_a_tree_predicts_what_it_is_shrunk_to():
    tree = small_tree()
    assert tree.shrinkage == 0.0
    assert tree.prediction is tree.value
    shrunk = replace(tree, shrinkage=2.0)
    shrunk.validate()
    expected = reference.shrink(tree.left_child, tree.weight, tree.value, 2.0)
    np.testing.assert_allclose(shrunk.prediction, expected)
    assert shrunk.prediction[1] == pytest.approx([0.1, 0.9])
    assert shrunk.value is tree.value
    again = pickle.loads(pickle.dumps(shrunk))
    np.testing.assert_array_equal(again.prediction, shrunk.prediction)


@pytest.mark.parametrize("amount", [-1.0, np.nan])
def test_amounts_that_are_none_are_refused(amount):
    assert "shrinkage is negative or NaN" in refusal(replace(small_tree(), shrinkage=amount))


def test_an_infinite_amount_leaves_nothing_of_the_differences():
    tree = replace(small_tree(), shrinkage=np.inf)
    tree.validate()
    np.testing.assert_array_equal(tree.prediction, np.tile(tree.value[0], (tree.n_nodes, 1)))
