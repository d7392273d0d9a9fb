"""AUC and accuracy of Dask collections: those of all rows, whatever their partitions are."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from aucforest.distributed import auc_sketch
from aucforest.distributed._sketches import accuracy
from aucforest.metrics import AUCSketch

GENERATOR = np.random.default_rng(0)
N_ROWS = 2000
LABELS = GENERATOR.random(N_ROWS) < 0.2
SCORES = GENERATOR.normal(size=N_ROWS) + LABELS
WEIGHTS = GENERATOR.integers(0, 5, N_ROWS) / 3.0


def chunked(*columns, chunks):
    return [da.from_array(column, chunks=(chunks,)) for column in columns]


def test_the_sketch_equals_that_of_all_rows(client):
    for chunks in (N_ROWS, 100):
        whole = AUCSketch(18 if chunks == N_ROWS else 10)
        whole.update(LABELS, SCORES, WEIGHTS)
        sketch = auc_sketch(*chunked(LABELS, SCORES, WEIGHTS, chunks=chunks), bits=whole.bits)
        assert sketch.to_bytes() == whole.to_bytes()


def test_series_and_arrays_of_unknown_lengths_and_empty_partitions(client):
    frame = pd.DataFrame({"label": LABELS, "score": SCORES})
    parts = dd.from_pandas(frame, npartitions=4)
    parts = parts[parts.score < 5.0].map_partitions(_without_second, meta=frame)
    labels, scores = parts.label, parts.score.to_dask_array()
    rest = parts.compute()
    whole = AUCSketch()
    whole.update(rest.label, rest.score)
    assert auc_sketch(labels, scores).to_bytes() == whole.to_bytes()
    assert 0 < len(rest) < N_ROWS


def _without_second(part):
    """Return a partition, or no row of it if it is the second."""
    return part[:0] if len(part) > 0 and 400 < part.index[0] < 600 else part


def test_invalid_labels_and_lengths_are_refused(client):
    labels, scores = chunked(LABELS, SCORES, chunks=300)
    with pytest.raises(TypeError, match="y_true must be a Dask Series or a one-dimensional Dask Array, but is a numpy"):
        auc_sketch(LABELS, scores)
    with pytest.raises(ValueError, match="y_true must be bool, 0 and 1, or -1 and 1"):
        auc_sketch(da.from_array([0, 1, -1, 1], chunks=2), da.ones(4, chunks=2))
    with pytest.raises(ValueError, match="y_true has no samples"):
        auc_sketch(labels[:0], scores[:0])
    unequal = [da.from_delayed(delayed(np.array)(rows), (np.nan,), float) for rows in ([0, 1, 1], [0.5, 0.5])]
    with pytest.raises(ValueError, match="y_true has 3 samples"):
        auc_sketch(*unequal)


def test_accuracy_compares_the_lengths_of_partitions():
    """Lengths that are not known before; a single label is not compared to all predictions."""
    y_pred, y_true = (da.from_delayed(delayed(np.ones)(n_rows), (np.nan,), dtype=np.float64) for n_rows in (3, 1))
    with pytest.raises(ValueError, match=r"different numbers of rows in y_pred, y and sample_weight: \[3, 1\]"):
        accuracy(y_pred, y_true)
