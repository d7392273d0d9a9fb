"""Tables from files: types that fit all rows, text that is as it is, lines that an editor counts."""

import io
import os
import threading

import pandas as pd
import pyarrow as pa
import pytest

from aucforest.cli import _reading
from aucforest.cli._reading import MISSING, open_table
from aucforest.tables import sources


@pytest.fixture
def written(tmp_path):
    """Write a CSV."""

    def write(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        return path

    return write


def test_types_fit_all_rows(written, monkeypatch):
    """A word far down makes text of all numbers before it, as they are written."""
    monkeypatch.setattr(_reading, "_BLOCK", 100)
    path = written("a,b,c\n" + "01,2,\n" * 500 + "other,2.5,x\n")
    with open_table(path) as table:
        content = table.whole()
    assert content.schema.types == [pa.string(), pa.float64(), pa.string()]
    assert set(content.column("a").to_pylist()) == {"01", "other"}
    assert content.column("c").null_count == 500


def test_the_words_for_nothing_are_those_of_pandas(written):
    """Each is read as missing by pandas, in numbers and in text; a few other words are not."""
    words = [*MISSING, "none", "-", "0"]
    frame = pd.read_csv(io.StringIO("a,b\n" + "".join(f"{word},x\n" for word in words)))
    with open_table(written("a,b\n" + "".join(f"{word},x\n" for word in words))) as table:
        missing = [value is None for value in table.whole().column("a").to_pylist()]
    assert missing == frame["a"].isna().tolist() == [word in MISSING for word in words]


def test_batches_are_text_as_it_is(written, monkeypatch):
    monkeypatch.setattr(sources, "_MOST_ROWS", 2)
    with open_table(written('\ufeffa,b\r\n01,NA\r\n,"x,""y"""\r\n3, z\r\n')) as table:
        assert table.columns == ["a", "b"]
        batches = list(table.batches(["b", "a"]))
        assert table.done() == 1.0
    assert [batch.num_rows for batch in batches] == [2, 1]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"b": "NA", "a": "01"}, {"b": 'x,"y"', "a": ""}, {"b": " z", "a": "3"}]


def test_a_row_is_named_by_the_line_where_it_begins(written):
    path = written('a,b\n1,2\n\n"3\n4",5\n\n6,7\n8,9\n')
    with open_table(path) as table:
        assert [table.place(row) for row in range(4)] == [f"table.csv, line {line}" for line in (2, 4, 7, 8)]


@pytest.mark.parametrize("whole", [True, False])
def test_a_quote_that_is_not_closed(written, monkeypatch, whole):
    monkeypatch.setattr(_reading, "_BLOCK", 1000)
    path = written("a,b\n" + "1,2\n" * 10 + '"3,4\n' + "1,2\n" * 1000)
    with pytest.raises(ValueError, match="is a quote not closed"), open_table(path) as table:
        table.whole() if whole else list(table.batches(["a"]))


def test_a_pipe_is_a_csv(tmp_path):
    """As the shell's <(...) gives it; rows stand for lines, which nobody can look up."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("a,b\n1,2\n3\n",))
    writer.start()
    with pytest.raises(ValueError, match="pipe, row 2: the header names 2 columns"), open_table(path) as table:
        table.whole()
    writer.join()


def test_batches_of_wide_tables_have_few_rows(tmp_path):
    pd.DataFrame(0.0, index=range(50), columns=[f"c{i}" for i in range(100)]).to_parquet(tmp_path / "t.parquet")
    with pytest.MonkeyPatch.context() as patch, open_table(tmp_path / "t.parquet") as table:
        patch.setattr(sources, "_CELLS", 1000)
        assert [batch.num_rows for batch in table.batches(table.columns)] == [10] * 5
        assert table.done() == 1.0
