"""Tables that are written in batches have the same values when they are read."""

from pathlib import Path

import pyarrow as pa
import pytest

from aucforest.cli._inputs import open_table
from aucforest.cli._outputs import table_writer

SCHEMA = pa.schema({"name, with a comma": pa.string(), "value": pa.float64()})
BATCHES = [["plain", "x"], ['quo"te', "a,b"], ["two\nlines", ""], ["plain", "z"]]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_written_tables_are_read_again(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    with table_writer(path, SCHEMA) as write:
        for names in BATCHES:
            write(pa.table([names, [1 / 3, 1e300]], schema=SCHEMA))
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]
    table = open_table(path, None)
    assert table.columns == SCHEMA.names
    rows = [row for batch in table.batches(table.columns) for row in batch.to_pylist()]
    assert [row["name, with a comma"] or "" for row in rows] == [name for names in BATCHES for name in names]
    assert [float(row["value"]) for row in rows] == [1 / 3, 1e300] * 4


def test_text_without_commas_has_no_quotes_and_booleans_are_spelled_as_classes():
    columns = {"a": ["x", "007"], "b": [False, True], "c": [None, True]}
    with table_writer(Path("table.csv"), pa.table(columns).schema) as write:
        write(pa.table(columns))
    assert Path("table.csv").read_text() == "a,b,c\nx,False,\n007,True,True\n"
