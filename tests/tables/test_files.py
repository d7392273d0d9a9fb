"""Batches of a limited number of rows."""

import pyarrow as pa

from aucforest.tables import files
from aucforest.tables.files import rows_of_batch, split_batches


def test_batches_of_wide_tables_have_few_rows(monkeypatch):
    monkeypatch.setattr(files, "_MOST_CELLS", 1000)
    assert [rows_of_batch(n_columns) for n_columns in (0, 1, 100, 5000)] == [1000, 1000, 10, 1]
    batch = pa.record_batch({f"c{i}": [0.0] * 25 for i in range(100)})
    assert [part.num_rows for part in split_batches([batch, batch])] == [10, 10, 5] * 2
    assert [part.num_rows for part in split_batches([batch, batch], 30, 15)] == [15, 5]
