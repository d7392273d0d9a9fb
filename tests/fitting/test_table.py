"""Trees that take too much memory, and stored rows of training data that are not in memory."""

import numpy as np
import pytest

from aucforest import _memory
from aucforest.fitting import growing, in_memory
from aucforest.fitting.table import RowsWithValues
from tests.estimators.data import make_table, small_forest


def test_more_trees_than_fit_are_refused_after_the_first(monkeypatch):
    X, y = make_table(n_rows=400)
    monkeypatch.setattr(growing, "_LEAST_BATCH_SECONDS", 0.0)
    params = {"criterion": "auc", "bootstrap": True, "shrinkage": 0.0}
    trees = small_forest(40, **params).fit(X, y).trees_
    n_bytes = sum(tree.nbytes for tree in trees)
    monkeypatch.setattr(_memory, "machine_memory", lambda: 2.2 * n_bytes)
    monkeypatch.setattr(in_memory, "check_fit", lambda *_: None)
    small_forest(40, **params).fit(X, y)
    monkeypatch.setattr(_memory, "machine_memory", lambda: 1.8 * n_bytes)
    monkeypatch.setattr(growing, "_MOST_BATCH_SECONDS", 0.0)
    forest, n_nodes = small_forest(40, **params), sum(tree.n_nodes for tree in trees[:5])
    with pytest.raises(ValueError, match=f"40 trees of the size of the first 5, which have {n_nodes:,} nodes, would"):
        forest.fit(X, y)
    assert not hasattr(forest, "trees_")


def test_rows_are_known_by_their_numbers():
    rows = RowsWithValues(np.array([2, 5, 9]), np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(rows[np.array([9, 2])], [[4.0, 5.0], [0.0, 1.0]])
    with pytest.raises(AssertionError):
        rows[np.array([3])]
