"""Decision paths and sums of shrunk predictions, against the definitions."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aucforest.estimators._paths import OutOfBagRows, ShrinkageBuffers, ShrunkSums, add_shrunk, path_indicator
from tests.persistence.trees import make_tree
from tests.reference import shrinkage as reference
from tests.reference.tree import leaf_of
from tests.tree.chains import make_chain


def test_chains_take_time_in_proportion_to_their_nodes():
    """If the time were proportional to the square of the nodes, the test would not end."""
    chain = make_chain(10**6)
    found = path_indicator(chain, np.array([1, chain.n_nodes - 1]))
    assert found.indices.tolist() == [0, 1, *range(0, chain.n_nodes, 2)]
    assert found.indptr.tolist() == [0, 2, 3 + chain.n_nodes // 2]


def sum_shrunk(tree, leaves, is_out, amounts, n_columns):
    """Return by definition the predictions of the last classes for every amount; 0 for rows that are not out of bag."""
    by_amount = [np.array(reference.shrink(tree.left_child, tree.weight, tree.value, amount)) for amount in amounts]
    return np.where(is_out[:, None, None], np.stack(by_amount, axis=2)[leaves, -n_columns:], 0.0)


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4, 20]), st.booleans())
def test_add_shrunk(seed, n_classes, last_alone):
    """The frequencies of 20 classes are a sparse matrix. The second column contains codes of categories."""
    rng = np.random.default_rng(seed)
    amounts, n_rows = np.array([0.0, 0.3, 7.0, 1e4]), int(rng.choice([0, 1, 9, 33]))
    weighted_index, rows = int(rng.integers(4)), rng.normal(size=(n_rows, 3))
    rows[:, 1] = rng.integers(255, size=n_rows)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    options = {"n_classes": n_classes, "whole": False, "by_set": [1], "most": 1 if n_classes == 20 else 400}
    trees = [make_tree(seed + i, int(rng.integers(12)), **options) for i in range(3)]
    all_counts, variants = rng.integers(3, size=(3, n_rows)).astype(np.uint16), rng.integers(2, size=3)
    n_columns, has_variants = 1 if last_alone else n_classes, bool(rng.integers(2))
    sums = make_sums(n_rows, n_columns, len(amounts), has_variants=has_variants)
    for start, stop in itertools.pairwise((0, n_rows // 3, n_rows)):
        columns, counts = np.ascontiguousarray(rows[start:stop].T), all_counts[:, start:stop]
        add_shrunk(trees, variants, OutOfBagRows(start, columns, counts), amounts, weighted_index, sums)
    if n_rows > 0:
        leaves = [[leaf_of(tree, row) for row in rows] for tree in trees]
        of_trees = zip(trees, leaves, all_counts == 0)
        expected = np.stack([sum_shrunk(*of_tree, amounts, n_columns) for of_tree in of_trees])
        np.testing.assert_allclose(sums.whole, np.sum(expected, axis=0), atol=1e-13)
        for variant in range(2 if has_variants else 0):
            by_variant = expected[variants == variant, ..., weighted_index].sum(axis=0)
            np.testing.assert_allclose(sums.by_variant[variant], by_variant, atol=1e-13)
    for variant in range(2):
        np.testing.assert_array_equal(sums.n_trees[variant], np.sum(all_counts[variants == variant] == 0, axis=0))


def make_sums(n_rows, n_columns, n_amounts, *, has_variants=False):
    by_variant = np.zeros((2, n_rows if has_variants else 0, n_columns))
    return ShrunkSums(np.zeros((n_rows, n_columns, n_amounts)), by_variant, np.zeros((2, n_rows), dtype=np.int64))


def test_buffers_do_not_grow_with_the_depth():
    """One row goes left at every node of a chain."""
    rows, sums = np.arange(1000.0), make_sums(1000, 1, 1)
    columns, amounts = OutOfBagRows(0, rows[None], np.zeros((1, 1000), dtype=np.uint16)), np.array([5.0])
    add_shrunk([make_chain(1000)], [0], columns, amounts, 0, sums)
    assert len(ShrinkageBuffers.of(1000, 1, amounts, 0).branches) == 10
    np.testing.assert_allclose(sums.whole, 0.75)
