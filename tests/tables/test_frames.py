import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.tables.columns import read_table
from aucforest.tables.frames import Frame, repeated


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, pa.table])
def test_names_and_types_are_listed_once(form, monkeypatch):
    table = read_table(form({"a": [1, 2], "b": ["x", None]}))
    assert isinstance(table, Frame)
    schema = table.schema
    for name in ("columns", "schema"):
        monkeypatch.delattr(nw.DataFrame, name)
    assert (table.columns, table.shape, len(table)) == (["a", "b"], (2, 2), 2)
    assert table.schema is schema
    assert list(schema.values()) == [nw.Int64, nw.String]
    assert table.get_column(table.columns[0]).to_list() == [1, 2]


def test_new_columns_are_listed():
    table = read_table(pd.DataFrame({"a": [1, 2], "b": [3, 4]}))
    added = [nw.new_series(name, [5.0, 6.0], backend="pandas") for name in ("c", "a")]
    wider = table.with_columns(added)
    assert wider.columns == ["a", "b", "c"]
    assert wider.schema == {"a": nw.Float64, "b": nw.Int64, "c": nw.Float64}
    assert table.columns == ["a", "b"]


def test_repeated_names():
    assert repeated(["b", "a", "b", 1, "a", "b"]) == {"b": 3, "a": 2}
    assert repeated([]) == {}
