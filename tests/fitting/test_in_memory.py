"""Training data in memory: codes of dense and sparse rows, and what would take too much memory."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from aucforest.fitting import growing, in_memory
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.tables.sparse import SparseRows
from tests.estimators.data import small_forest

RANDOM = np.random.default_rng(0)
X = np.where(RANDOM.random((200, 6)) < 0.4, np.round(RANDOM.normal(size=(200, 6)), 1), 0.0)
Y = (X[:, 0] > 0.1).astype(np.uint16)


def part_of(rows, weights=None, **params):
    """Return the coded rows of a fit."""
    target = Target(np.arange(2), Y, weights)
    spec = FitSpec.resolve(small_forest(**params)._params(), target, None, X.shape[1], 0)
    table = RowsInMemory(rows, None, {}, {}, target)
    return table.code(spec), table._make_part()


@pytest.mark.parametrize("max_bins", [255, 4, None])
def test_sparse_rows_have_the_codes_of_dense_ones(max_bins):
    coding, part = part_of(X, max_bins=max_bins)
    other, sparse = part_of(SparseRows(csr_array(X)), max_bins=max_bins)
    np.testing.assert_array_equal(coding.values.n_bins, other.values.n_bins)
    np.testing.assert_array_equal(part.codes, sparse.codes)


@pytest.mark.parametrize("weights", [None, np.arange(200) % 3 * 0.5])
@pytest.mark.parametrize("max_bins", [4, None])
def test_very_sparse_rows_have_codes_of_stored_values_alone(max_bins, weights):
    rare = np.hstack((X * (np.arange(200) % 12 == 0)[:, None], np.zeros((200, 9))))
    target = Target(np.arange(2), Y, weights)
    spec = FitSpec.resolve(small_forest(max_bins=max_bins)._params(), target, None, 15, 0)
    dense, table = (RowsInMemory(rows, None, {}, {}, target) for rows in (rare, SparseRows(csr_array(rare))))
    for expected, found in zip(dense.code(spec).values, table.code(spec).values):
        np.testing.assert_array_equal(found, expected)
    codes, sparse = dense._make_part().codes, table._make_part().sparse
    assert table._make_part().codes.shape == (15, 0)
    for row in range(codes.shape[1]):
        found, some = sparse.zeros.copy(), slice(*sparse.row_starts[row : row + 2])
        found[sparse.features[some]] = sparse.row_codes.array[some]
        np.testing.assert_array_equal(found, codes[:, row])


@pytest.mark.parametrize("max_bins", [255, None])
def test_the_estimate_for_sparse_rows_is_true(max_bins, monkeypatch):
    n_rows, sizes = 20_000, []
    rows = SparseRows(random_array((n_rows, 3_000), density=0.008, format="csr", rng=np.random.default_rng(0)))
    target = Target(np.arange(2), (np.arange(n_rows) % 2).astype(np.uint16), None)
    spec = FitSpec.resolve(small_forest(max_bins=max_bins)._params(), target, None, 3_000, 0)
    monkeypatch.setattr(in_memory, "check_fit", lambda size, n_bytes: sizes.append(size))
    RowsInMemory(rows, None, {}, {}, target).code(spec)  # loads the kernels
    tracemalloc.start()
    RowsInMemory(rows, None, {}, {}, target).code(spec)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    planned = sizes[-1].matrix_bytes + sizes[-1].feature_bytes
    assert 0.6 * planned < peak < 1.1 * planned
    assert planned < n_rows * 3_000 / 2


def test_stages_of_a_fit_share_buffers(monkeypatch):
    """Eight variants are evaluated after 32 and after 96 trees, so that there are three stages."""
    made, tables, make, grow_trees = [], set(), growing.make_workspace, RowsInMemory._grow_trees
    monkeypatch.setattr(growing, "make_workspace", lambda *given: made.append(0) or make(*given))
    monkeypatch.setattr(RowsInMemory, "_grow_trees", lambda self, *given: tables.add(self) or grow_trees(self, *given))
    small_forest(100, n_jobs=1).fit(X, Y)
    assert len(made) == 1
    assert [table._spare for table in tables] == [[]]
