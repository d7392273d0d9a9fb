"""Predictions of sparse rows are those of dense rows, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from aucforest.columns.sparse import SparseRows
from aucforest.tree.prediction import ALL_ROWS, PackedTrees, WalkBuffers, add_probabilities
from aucforest.tree.sparse_prediction import SparseWalk, add_sparse, dense_rows
from tests.tree.growing import grow


@pytest.mark.parametrize("n_rows", [2, 9, 32, 101, 400])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("density", "missing"), [(0.15, False), (0.15, True), (0.0, False)])
def test_sums_are_those_of_dense_rows(n_rows, n_classes, density, missing):
    random = np.random.default_rng(0)
    dense = np.where(random.random((n_rows, 12)) < density, np.round(random.normal(size=(n_rows, 12)), 3), 0.0)
    if missing:
        dense[random.random(dense.shape) < 0.05] = np.nan
    labels = random.integers(0, n_classes, n_rows)
    trees = [grow(dense, labels, max_features=3, key=key, n_classes=n_classes).tree for key in range(4)]
    packed, rows = PackedTrees(trees).take_predictions(trees), SparseRows(sp.csr_array(dense))
    X, (total, sums) = packed.as_read(dense), np.zeros((2, n_rows, n_classes))
    add_probabilities(packed.arrays_for(X), X, WalkBuffers.of(len(X)), total, ALL_ROWS)
    work, arrays = SparseWalk.of(dense.shape[1], rows.dtype), packed.arrays_for(rows.stored.values)
    # The second half of the rows comes first.
    for some in (slice(n_rows // 2, n_rows), slice(0, n_rows // 2)):
        add_sparse(arrays, rows.stored, some.start, work, sums[some])
    np.testing.assert_array_equal(sums, total)
    assert not work.dense.any()


def test_wide_rows_are_dense_a_few_at_a_time():
    assert [dense_rows(n_features) for n_features in (1, 1000, 2**20, 2**30)] == [32, 32, 4, 1]
