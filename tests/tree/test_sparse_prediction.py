"""Predictions of sparse rows are those of dense ones, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from aucforest.tables.sparse import SparseRows
from aucforest.tree.prediction import ALL_ROWS, PackedTrees, WalkBuffers, add_probabilities
from aucforest.tree.sparse_prediction import SparseWalk, add_sparse, dense_rows
from tests.tree.growing import grow


def both(dense, n_classes=2):
    """Return the sums over trees of dense and of sparse rows, and the buffers of the latter."""
    random = np.random.default_rng(1)
    labels = random.integers(0, n_classes, len(dense))
    labels[:n_classes] = np.arange(n_classes)
    trees = [grow(dense, labels, max_features=3, key=key, n_classes=n_classes).tree for key in range(4)]
    packed, rows = PackedTrees(trees).take_predictions(trees), SparseRows(sp.csr_array(dense))
    X, total, sums = packed.as_read(dense), np.zeros((len(dense), n_classes)), np.zeros((len(dense), n_classes))
    add_probabilities(packed.arrays_for(X), X, WalkBuffers.of(len(X)), total, ALL_ROWS)
    work, arrays = SparseWalk.of(dense.shape[1], rows.dtype), packed.arrays_for(rows.stored.values)
    # The rows begin in the middle.
    half = len(dense) // 2
    for some in (slice(half, len(dense)), slice(0, half)):
        add_sparse(arrays, rows.stored, some.start, work, sums[some])
    return total, sums, work


@pytest.mark.parametrize("n_rows", [2, 9, 32, 101, 400])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_sums_are_those_of_dense_rows(n_rows, n_classes, missing):
    random = np.random.default_rng(0)
    dense = np.where(random.random((n_rows, 12)) < 0.15, np.round(random.normal(size=(n_rows, 12)), 3), 0.0)
    if missing:
        dense[random.random(dense.shape) < 0.05] = np.nan
    total, sums, work = both(dense, min(n_classes, n_rows))
    np.testing.assert_array_equal(sums, total)
    assert not work.dense.any()


def test_wide_rows_are_dense_a_few_at_a_time():
    assert [dense_rows(n_features) for n_features in (1, 1000, 2**20, 2**30)] == [32, 32, 4, 1]


def test_trees_of_one_leaf():
    total, sums, _ = both(np.zeros((50, 3)))
    np.testing.assert_array_equal(sums, total)
