"""Dask collections and their partitions."""

from contextlib import nullcontext

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from aucforest.distributed import _collections
from aucforest.distributed._collections import align, delayed_partitions

X, Y = da.zeros((10, 4), chunks=(4, 2)), da.zeros(10, chunks=4)
FRAME = dd.from_pandas(pd.DataFrame({"a": range(10), "b": range(10)}), npartitions=3)


def test_partitions_have_whole_rows():
    parts = align(X, Y, Y + 1)
    assert [part.shape for part in dask.compute(*parts.X)] == [(4, 4), (4, 4), (2, 4)]
    assert [part.shape for part in dask.compute(*parts.y)] == [(4,), (4,), (2,)]
    assert [part[0] for part in dask.compute(*parts.sample_weight)] == [1.0, 1.0, 1.0]
    assert parts.n_features == 4


SPARSE, OTHER = X.rechunk({1: -1}).map_blocks(sp.csr_matrix), Y.rechunk(((4, 3, 3),))


@pytest.mark.parametrize(("columns", "error", "sentence"), [
    ((np.zeros((10, 4)), Y), TypeError, "X must be a Dask DataFrame .* but is a numpy ndarray of 2 dimensions"),
    ((Y, Y), TypeError, "X must be a Dask DataFrame .* but is a dask Array of 1 dimensions"),
    ((X, [0] * 10), TypeError, "y must be a Dask Series or .* but is a builtins list"),
    ((FRAME, FRAME[["a"]]), TypeError, "y must be .* of 2 dimensions"),
    ((X, Y, np.ones(10)), TypeError, "sample_weight must be .* but is a numpy ndarray"),
    ((FRAME[[]], Y), ValueError, "^X has no columns: at least one feature is required$"),
    ((SPARSE, Y), TypeError, r"X has sparse blocks \(csr_matrix\), which a cluster does not support: fit an"),
    ((X, Y.rechunk(5)), ValueError, "X has 3 partitions, but y has 2: both must be split at the same"),
    ((X, Y, OTHER), ValueError, r"X has chunks of \(4, 4, 2\) rows, but sample_weight of \(4, 3, 3\)"),
])  # fmt: skip
def test_collections_that_do_not_match_are_refused(columns, error, sentence):
    with pytest.raises(error, match=sentence):
        align(*columns)


@pytest.mark.parametrize("tuned", [True, False], ids=["as-it-is", "before-2026.1"])
def test_columns_of_parquet_files_have_the_partitions_of_the_table(tmp_path, monkeypatch, tuned):
    """Dask's optimizer merges the small partitions of a few columns, but not those of many."""
    if not tuned:
        monkeypatch.setattr(_collections, "keep_partitions", nullcontext)
    rows = pd.DataFrame(np.arange(600.0).reshape(60, 10), columns=list("abcdefghiy"))
    for i in range(6):
        rows[10 * i : 10 * i + 10].to_parquet(tmp_path / f"{i}.parquet")
    frame = dd.read_parquet(tmp_path)
    X, shuffled = frame.drop(columns="y"), frame.shuffle("a", npartitions=4, shuffle_method="tasks")
    assert frame.y.optimize().npartitions < 6
    for table, *columns in (
        (X, frame.y),
        (frame[["a"]] + 1.0, frame.y, frame.b),
        (shuffled[["b", "a"]], shuffled.y),
        (X.to_dask_array(), frame.y),
    ):
        first, *others = dask.compute(*delayed_partitions(table, *columns), scheduler="sync")
        assert len(first) == table.npartitions
        for parts in others:
            assert [*map(len, parts)] == [*map(len, first)]
            np.testing.assert_array_equal(np.concatenate(parts) // 10, np.concatenate(first)[:, -1] // 10)
