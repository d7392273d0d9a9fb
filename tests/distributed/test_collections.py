"""Dask collections side by side."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from aucforest.distributed._collections import align, as_rows, is_collection

X = da.zeros((10, 4), chunks=(4, 2))
Y = da.zeros(10, chunks=4)
FRAME = dd.from_pandas(pd.DataFrame({"a": range(10), "b": range(10)}), npartitions=3)


def test_partitions_hold_whole_rows():
    parts = align(X, Y, Y + 1)
    assert [part.compute().shape for part in parts.X] == [(4, 4), (4, 4), (2, 4)]
    assert [part.compute().shape for part in parts.y] == [(4,), (4,), (2,)]
    assert [part.compute().tolist()[0] for part in parts.sample_weight] == [1.0, 1.0, 1.0]
    assert parts.n_features == 4


def test_frames_and_series_and_arrays_of_unknown_lengths():
    parts = align(FRAME, FRAME.a.to_dask_array())
    assert [len(part.compute()) for part in parts.X] == [len(part.compute()) for part in parts.y]
    assert parts.sample_weight is None
    assert (list(parts.meta.columns), parts.n_features) == (["a", "b"], 2)


def test_collections_are_told_apart():
    assert is_collection(X)
    assert is_collection(FRAME)
    assert not is_collection(np.zeros((3, 3)))
    assert as_rows(FRAME) is FRAME


def test_other_types_are_refused():
    with pytest.raises(TypeError, match=r"X must be a Dask DataFrame .* but is a numpy ndarray of 2 dimensions"):
        align(np.zeros((10, 4)), Y)
    with pytest.raises(TypeError, match=r"X must be a Dask DataFrame .* but is a dask Array of 1 dimensions"):
        align(Y, Y)
    with pytest.raises(TypeError, match=r"y must be a Dask Series or .* but is a builtins list"):
        align(X, [0] * 10)
    with pytest.raises(TypeError, match=r"y must be .* of 2 dimensions"):
        align(FRAME, FRAME[["a"]])
    with pytest.raises(TypeError, match=r"sample_weight must be .* but is a numpy ndarray"):
        align(X, Y, np.ones(10))


def test_tables_without_columns_are_refused():
    for table in (da.zeros((10, 0), chunks=(4, 1)), FRAME[[]]):
        with pytest.raises(ValueError, match=r"^X has no columns: at least one feature is required$"):
            align(table, Y)


def test_partitions_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"X has 3 partitions, but y has 2: both must be split at the same rows"):
        align(X, da.zeros(10, chunks=5))
    with pytest.raises(ValueError, match=r"X has chunks of \(4, 4, 2\) rows, but sample_weight of \(4, 3, 3\)"):
        align(X, Y, da.zeros(10, chunks=((4, 3, 3),)))
