"""Training data in memory: the bytes of sparse rows, and the buffers that the stages of a fit share."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import random_array

from aucforest.columns.sparse import SparseRows
from aucforest.fitting import growing, in_memory
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from tests.estimators.data import make_table, small_forest


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
    made, make = [], growing.make_workspace
    monkeypatch.setattr(growing, "make_workspace", lambda *given: made.append(0) or make(*given))
    small_forest(100, n_jobs=1).fit(*make_table(n_rows=200))
    assert len(made) == 1
