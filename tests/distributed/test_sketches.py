"""The sketch of Dask collections equals that of all rows, for any partitions."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from aucforest.distributed import auc_sketch
from aucforest.metrics import AUCSketch
from tests.fitting.forests import chunked

GENERATOR = np.random.default_rng(0)
N_ROWS = 2000
LABELS = GENERATOR.random(N_ROWS) < 0.2
SCORES = GENERATOR.normal(size=N_ROWS) + LABELS
WEIGHTS = GENERATOR.integers(0, 5, N_ROWS) / 3.0


def test_the_sketch_equals_that_of_all_rows(client):
    for n_parts, bits in ((1, 18), (20, 10)):
        whole = AUCSketch(bits)
        whole.update(LABELS, SCORES, WEIGHTS)
        assert auc_sketch(*chunked(n_parts, LABELS, SCORES, WEIGHTS), bits=bits).to_bytes() == whole.to_bytes()


def test_series_and_arrays_of_unknown_lengths_and_empty_partitions(client):
    frame = pd.DataFrame({"label": LABELS, "score": SCORES})
    without_second = lambda part: part[:0] if 400 < part.index.min() < 600 else part  # noqa: E731
    parts = dd.from_pandas(frame, npartitions=4)
    parts = parts[parts.score < 2.0].map_partitions(without_second, meta=frame)
    rest, whole = parts.compute(), AUCSketch()
    assert [n_rows > 0 for n_rows in parts.map_partitions(len).compute()] == [True, False, True, True]
    whole.update(rest.label, rest.score)
    assert auc_sketch(parts.label, parts.score.to_dask_array()).to_bytes() == whole.to_bytes()


def test_invalid_labels_and_lengths_are_refused(client):
    labels, scores = chunked(7, LABELS, SCORES)
    mixed = da.from_array([0, 1, -1, 1], chunks=2)
    unequal = [da.from_delayed(delayed(np.array)(rows), (np.nan,), float) for rows in ([0, 1, 1], [0.5, 0.5])]
    kind = "y_true must be a Dask Series or a one-dimensional Dask Array, but is a numpy"
    for given, error, sentence in (
        ((LABELS, scores), TypeError, kind),
        ((mixed, da.ones(4, chunks=2)), ValueError, "y_true must be bool, 0 and 1, or -1 and 1"),
        ((labels[:0], scores[:0]), ValueError, "y_true has no samples"),
        (unequal, ValueError, "y_true has 3 samples"),
    ):
        with pytest.raises(error, match=sentence):
            auc_sketch(*given)
