"""Bins and codes of stored values are those of the dense matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree import binning, sparse_binning
from aucforest.tree.binning import bin_matrix
from aucforest.tree.sparse_binning import StoredColumns, bin_sparse


def stored(dense, is_stored) -> StoredColumns:
    """Return the stored values of a matrix."""
    columns, rows = np.nonzero(is_stored.T)
    starts = np.searchsorted(columns, np.arange(dense.shape[1] + 1))
    return StoredColumns(starts, rows.astype(np.int32), np.ascontiguousarray(dense.T[columns, rows]), len(dense))


def check(dense, is_stored=None, **options) -> None:
    """Check that `bin_sparse` returns the bins and codes of `bin_matrix`."""
    expected = bin_matrix(dense, **options)
    codes, values = bin_sparse(stored(dense, dense != 0.0 if is_stored is None else is_stored), **options)
    np.testing.assert_array_equal(values.first, expected.values.first)
    assert values.lower.tobytes() == expected.values.lower.tobytes()  # also the signs of zeros
    assert values.upper.tobytes() == expected.values.upper.tobytes()
    assert codes.row_codes.array.dtype == codes.column_codes.array.dtype == expected.codes.dtype
    columns = np.repeat(np.arange(dense.shape[1]), np.diff(codes.column_starts))
    rows = np.repeat(np.arange(len(dense)), np.diff(codes.row_starts))
    for indices, items in (((columns, codes.rows), codes.column_codes), ((codes.features, rows), codes.row_codes)):
        full = np.repeat(codes.zeros[:, None], len(dense), axis=1)
        assert np.all(items.array != full[indices])
        full[indices] = items.array
        np.testing.assert_array_equal(full, expected.codes)


VALUES = st.sampled_from([0.0, 0.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 5e-324]) | st.floats(-4, 4)


@given(st.data())
def test_bins_and_codes_are_those_of_the_dense_matrix(data):
    n_rows, n_features = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 4))
    items = data.draw(st.lists(VALUES, min_size=n_rows * n_features, max_size=n_rows * n_features))
    dense, seed = np.array(items).reshape(n_rows, n_features), data.draw(st.integers(0, 99))
    # Some zeros are stored.
    is_stored = (dense != 0.0) | (np.random.default_rng(seed).random(dense.shape) < 0.3)
    weights = data.draw(st.none() | st.lists(st.sampled_from([0.1, 1.0, 2.5]), min_size=n_rows, max_size=n_rows))
    max_bins, dense = data.draw(st.sampled_from([2, 3, 7, 255, None])), np.where(is_stored, dense, 0.0)
    check(dense, is_stored, max_bins=max_bins, weights=None if weights is None else np.array(weights))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_bins", [4, 9, 255, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [200, 200_000], ids=["sampled", "all"])
def test_columns_of_many_values(weighted, max_bins, dtype, size, monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", size)
    monkeypatch.setattr(sparse_binning, "_GROUP_COLUMNS", 3)
    random, densities = np.random.default_rng(0), [0.01, 0.2, 0.9, 0.003, 0.0, 1.0, 0.5]
    dense = np.where(random.random((1800, 7)) < densities, random.normal(size=(1800, 7)), 0.0)
    dense[:, 6] = np.sign(dense[:, 6]) * (1 + np.arange(1800) % 3)
    dense[random.random(dense.shape) < 0.01] = np.nan
    check(dense.astype(dtype), max_bins=max_bins, weights=random.random(1800) + 0.1 if weighted else None)
