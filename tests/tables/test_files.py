"""Batches of a limited number of rows, and files that differ or change."""

from pathlib import Path

import pyarrow as pa
import pytest

from aucforest.tables import files
from aucforest.tables.files import check_names, check_same_names, rows_of_batch, split


def test_batches_of_wide_tables_have_few_rows(monkeypatch):
    monkeypatch.setattr(files, "_CELLS", 1000)
    assert [rows_of_batch(n_columns) for n_columns in (0, 1, 100, 5000)] == [1000, 1000, 10, 1]
    batch = pa.record_batch({f"c{i}": [0.0] * 25 for i in range(100)})
    assert [part.num_rows for part in split([batch, batch])] == [10, 10, 5] * 2
    assert [part.num_rows for part in split([batch, batch], 30, 15)] == [15, 5]


def test_names_of_columns():
    with pytest.raises(ValueError, match=r"^t has two columns named 'a': column names must be unique$"):
        check_names("t", ["a", "b", "a"])
    first, second = Path("1.csv"), Path("2.csv")
    check_same_names(first, ["a", "b"], second, ["a", "b"])
    with pytest.raises(ValueError, match=r"^2.csv differs from 1.csv in column 'c'$"):
        check_same_names(first, ["a", "b"], second, ["a", "c"])
    with pytest.raises(ValueError, match=r"^2.csv differs from 1.csv in the order of its columns$"):
        check_same_names(first, ["a", "b"], second, ["b", "a"])
