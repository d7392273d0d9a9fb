"""Training data in memory: codes of dense and sparse rows, and what would take too much memory."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from aucforest import _memory
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
    return table.code(spec), table._part


@pytest.mark.parametrize("max_bins", [255, 4, None])
def test_sparse_rows_have_the_codes_of_dense_ones(max_bins):
    coding, part = part_of(X, max_bins=max_bins)
    other, sparse = part_of(SparseRows(csr_array(X)), max_bins=max_bins)
    np.testing.assert_array_equal(part.codes, sparse.codes)
    np.testing.assert_array_equal(coding.n_bins, other.n_bins)


def test_codes_rise_with_values():
    _, part = part_of(X)
    for codes, values in zip(part.codes, X.T):
        assert np.all(np.diff(codes[np.argsort(values, kind="stable")].astype(int)) >= 0)


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "machine_memory", lambda: 1000.0)
    with pytest.raises(ValueError, match=r"growing .* trees on 200 samples, 6 features"):
        part_of(X)
