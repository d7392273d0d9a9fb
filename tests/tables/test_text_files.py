"""Text files: stray text in any row, columns in the types of a model, and files that change while they are read."""

from datetime import date, datetime, time, timedelta

import pandas as pd
import pyarrow as pa
import pytest

from aucforest.tables import text_files, text_types
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source
from aucforest.tables.text_types import DURATION, FLAG, MOMENT, NUMBER, TEXT, ZONED
from tests.tables.text_tables import read_all, write_column, write_table


@pytest.mark.parametrize("at", [0, 15_000, 29_999], ids=["first", "middle", "last"])
def test_stray_text_is_counted_wherever_it_is(tmp_path, at):
    n = 30_000
    columns = {
        "d": [f"{row % 40}.5" for row in range(n)], "b": list(map(str, range(n))), "c": ["x", *["7"] * 4] * (n // 5),
        "e": [f"2024-01-0{1 + row % 9}" for row in range(n)],
    }  # fmt: skip
    columns["d"][at], columns["b"][at], columns["e"][at] = "unknown", "NA", "soon"
    source = write_column(tmp_path, columns.pop("d"), **columns)
    assert source.schema(["d", "b", "c", "e"]).types == [pa.float64(), pa.int64(), pa.string(), pa.date32()]
    assert {name: str(stray) for name, stray in source.stray.items()} == {
        "d": "1 of 30,000 values is no number ('unknown')",
        "e": "1 of 30,000 values is no date ('soon')",
    }
    content = pa.Table.from_batches(source.batches(["e", "d"]))
    assert content["d"].to_pylist() == [None if row == at else row % 40 + 0.5 for row in range(n)]
    assert content["e"][at].as_py() is None
    part = pa.Table.from_batches(source.batches(["d"], first_row=14_990, max_rows=7))
    assert part["d"].to_pylist() == content["d"].to_pylist()[14_990:]
    path = tmp_path / "t.csv"
    assert (source.n_rows, open_source(path).n_rows) == (n, 0)
    kept = open_source(path, options=ReadOptions(stray_text="text"))
    assert (kept.schema(["d"]).types, kept.stray) == ([pa.string()], {})
    assert kept.fingerprint() != source.fingerprint()


def test_the_most_frequent_stray_text_is_named_first(tmp_path):
    source = write_column(tmp_path, ["b", "c", "a", "c", "b", "c"] + ["1"] * 100)
    source.schema(["d"])
    assert str(source.stray["d"]) == "6 of 106 values are no numbers ('c', 'b', 'a')"


def test_a_file_that_changes_between_readings(tmp_path):
    source = write_column(tmp_path, ["1", "2"])
    before = source.fingerprint()
    assert list(source.batches(["d"]))
    (tmp_path / "t.csv").write_text("d,x\n1,2\n3,5.5\n")
    with pytest.raises(ValueError, match=r"t.csv changed while it was read"):
        list(source.batches(["d"]))
    with pytest.raises(ValueError, match=r"t.csv changed while it was read"):
        source.schema(["x"])
    assert before != open_source(tmp_path / "t.csv").fingerprint()


def test_values_as_they_are_written_beside_others(tmp_path):
    source = write_column(tmp_path, ["01,50", "NA", "?"] + ["2,5"] * 30)
    source.schema(["d"])
    (raw,) = source.add_raw_columns(["d"])
    rows = pa.Table.from_batches(source.batches(["d", raw, "x"])).to_pylist()[:4]
    assert [list(row.values()) for row in rows] == [[1.5, "01,50", 1], [None, "NA", 1], [None, "?", 1], [2.5, "2,5", 1]]


def test_columns_that_stay_text(tmp_path):
    source = write_column(tmp_path, ["007", "NA"], e=["1", "2"])
    source.keep_as_text(["d"])
    assert source.schema(["d", "e"]).types == [pa.string(), pa.int64()]
    assert read_all(source)["d"].to_pylist() == ["007", None]
    source.keep_as_text(None)
    assert read_all(source).to_pylist()[0] == {"d": "007", "x": "1", "e": "1"}
    source.keep_as_text(())
    assert source.schema(["d", "e"]).types == [pa.string(), pa.int64()]


POINT, COMMA, KG, PERCENT = (
    text_types.spelled_numbers({"decimal": mark} | unit)
    for mark, unit in ((".", {}), (",", {}), (".", {"unit": "kg"}), (".", {"unit": "%"}))
)
DAY_FIRST, MONTH_FIRST, LONG, YEAR = (
    text_types.spelled_dates(form, has_clock=True) for form in ("%d/%m/%y", "%m/%d/%y", "%d/%m/%Y", "%y/%m/%d")
)
# The text of a column, its type in the model, other columns by their text, the values that are read, and the note.
READ_AS = [
    (["1,5", "2"], COMMA, {}, [1.5, 2.0], None), (["1.5", "2"], POINT, {}, [1.5, 2.0], None),
    (["1 kg", "2"], KG, {}, [1.0, 2.0], None), (["1.5 kg", "2 kg"], KG, {}, [1.5, 2.0], None),
    (["1.5 kg", "2"], POINT, {}, [1.5, 2.0], "numbers such as '1.5 kg' are read as 1.5, but had no unit in fit"),
    (["1.5", "2"], PERCENT, {}, [1.5, 2.0], "numbers have no unit, but had '%' in fit"),
    (["1,5 kg", "2 kg"], NUMBER, {}, [1.5, 2.0], "numbers such as '1,5 kg' are read as 1.5, but had no unit in fit"),
    (["007", "008"], NUMBER, {}, [7.0, 8.0], None), (["1", "0"], FLAG, {}, [True, False], None),
    (["1", "true"], TEXT, {}, ["1", "true"], None), (["NA", ""], NUMBER, {}, [None, None], None),
    (["x"] + ["1"] * 20, NUMBER, {}, [None] + [1.0] * 20, None),  # rare stray text is missing in new rows
    (["x"] + ["2024-12-31"] * 20, MOMENT, {}, [None] + [datetime(2024, 12, 31)] * 20, None),
    (["1/2/2024", "3/4/2024"], LONG, {}, [datetime(2024, 2, 1), datetime(2024, 4, 3)], None),
    (["31.12.2024", "01.01.2024"], MOMENT, {}, [datetime(2024, 12, 31), datetime(2024, 1, 1)], None),
    (["0000-00-00", "5-Jan-24"], MOMENT, {}, [None, datetime(2024, 1, 5)], None),
    (["2024-12-31", "2024-01-01 10:00"], MOMENT, {}, [datetime(2024, 12, 31), datetime(2024, 1, 1, 10)], None),
    # The formats of other columns of the file precede those of the model.
    (["1/2/24"], MONTH_FIRST, {"31/1/2024": MONTH_FIRST}, [datetime(2024, 2, 1)],
     "dates such as '1/2/24' are read as %d/%m/%y, unlike in fit"),
    (["1/2/24"], MONTH_FIRST, {"1/1/24": MONTH_FIRST}, [datetime(2024, 1, 2)], None),
    (["1.2.24"], DAY_FIRST, {"31/1/24": DAY_FIRST}, [datetime(2024, 2, 1)],
     "dates such as '1.2.24' are read as %d.%m.%y, unlike in fit"),
    (["1,234"], POINT, {"0,5": POINT}, [1.234], "numbers such as '1,234' are read as 1.234, unlike in fit"),
    (["1,234"], POINT, {"x": TEXT}, [1234.0], None),
    (["1,234"], COMMA, {"0.5": NUMBER}, [1.234], None),  # plain numbers do not determine the mark
    # Columns that are written as in fit do not decide about others, but those that are not, do.
    (["8,125"], COMMA, {"1,234.50": POINT}, [8.125], None), (["3.125"], COMMA, {"0.5": COMMA}, [3.125], None),
    (["85,211"], COMMA, {"0.5": COMMA}, [85211.0], "numbers such as '85,211' are read as 85211, unlike in fit"),
    (["3/12/24"], DAY_FIRST, {"12/15/24": MONTH_FIRST}, [datetime(2024, 12, 3)], None),
    (["24/03/02"], YEAR, {}, [datetime(2024, 3, 2)], None),
    (["true", "False"], NUMBER, {}, [True, False], "true and false are read as 1 and 0"),
    (["48.137"], POINT, {"12,50": COMMA}, [48.137], None),
]  # fmt: skip


@pytest.mark.parametrize(("values", "type_", "others", "found", "note"), READ_AS)
def test_columns_are_read_as_a_model_says(tmp_path, values, type_, others, found, note):
    source = write_column(tmp_path, values, **{f"_{value}": value for value in others})
    source.read_as({"d": type_, **{f"_{value}": of_other for value, of_other in others.items()}})
    assert pa.Table.from_batches(source.batches(["d"]))["d"].to_pylist() == found
    assert source.remarks.get("d") == note
    assert list(source.stray) == ["d"] * (values[0] in ("x", "0000-00-00"))


NO_NUMBER = "which is not a number"


@pytest.mark.parametrize(("values", "type_", "options", "sentence"), [
    (["1", "x", "y"], NUMBER, {}, f"t.csv, line 3: column 'd' has the value 'x', {NO_NUMBER}; 2 of 3"),
    (["1", "yes"], FLAG, {}, "line 3: column 'd' has the value 'yes', which is not a boolean"),
    (["3 days", "x"], DURATION, {}, "line 3: column 'd' has the value 'x', which is not a duration"),
    (["soon", "2024-01-01"], MOMENT, {}, "line 2: column 'd' has the value 'soon', which is not a date"),
    (["1.5", "1,5"], NUMBER, {}, f"column 'd' has the value '1,5', {NO_NUMBER}; 1 of 2 values is no number"),
    (["2024-01-01T10:00+09:00", "2024-01-01T10:00-08:00"], MOMENT, {}, "column 'd' has times with an offset"),
    (["0000-00-00", "5-Jan-24"], MOMENT, {"stray_text": "text"}, "line 2: column 'd' has the value '0000-00-00'"),
    (
        ["1,234"], NUMBER, {},
        "'1,234'): --decimal or --thousands (in Python, decimal or thousands) says how to read it",
    ),
    (
        ["1/2/2024"], MOMENT, {},
        "1 of 1 values is no date ('1/2/2024'): --date-format (in Python, date_format) says",
    ),
    (["1.5", "2,5"], NUMBER, {}, "('2,5'): write all numbers of the column in the same way"),
    (["true"], COMMA, {}, "'true', which is not a number; 1 of 1"), (["31.02.2024"], MOMENT, {}, "): leave values"),
    (["1 lb", "2 lb"], KG, {}, "'2 lb'): write numbers in 'kg', as in fit, or without a unit"),
    (["?"], NUMBER, {}, "1 of 1 values is no number ('?'): leave values that are not known empty"),
    (["2024-01-01 10:00"], ZONED, {}, "which is not a zoned date; 1 of 1 values"),
    (["x"] + ["1"] * 20, NUMBER, {"stray_text": "text"}, "line 2: column 'd' has the value 'x'"),
    (["x"] + ["1"] * 20, FLAG, {}, "line 2: column 'd' has the value 'x'"),
])  # fmt: skip
def test_a_value_of_another_type_than_in_the_model_is_named(tmp_path, values, type_, options, sentence):
    with pytest.raises(ValueError) as caught:
        write_column(tmp_path, values, ReadOptions(**options)).read_as({"d": type_})
    assert sentence in str(caught.value)


def test_streams_at_the_same_time_and_streams_that_are_not_exhausted(tmp_path, monkeypatch):
    """The connection to the engine is closed after a stream of many rows."""
    monkeypatch.setattr(text_files, "_MANY_ROWS", 5)
    source = write_column(tmp_path, [f"{number}.5" for number in range(40_000)])
    first, second, third = (source.batches(["d"]) for _ in range(3))
    heads = [next(first), next(second), next(third)]
    del third
    assert sum(batch.num_rows for batch in first) == sum(batch.num_rows for batch in second) == 40_000 - len(heads[0])
    assert "_connection" not in vars(source)
    assert sum(batch.num_rows for batch in source.batches(["x", "d"])) == 40_000


def test_types_of_wide_tables_are_those_of_narrow_ones(tmp_path, monkeypatch):
    columns = {
        "number": ["1,5", "2"], "date": ["31.12.2024", ""], "word": ["NA", "x"], "flag": ["true", "0"],
        "clock": ["1:06 PM", "12:00 AM"], "span": ["25:00:00", "1:00:00"], "empty": ["", ""], "code": ["007", "1"],
    }  # fmt: skip
    frame = pd.DataFrame({f"{name}{k}": values for k in range(3) for name, values in columns.items()}, dtype=object)
    for path in (tmp_path / "t.csv", tmp_path / "t.jsonl"):
        whole = read_all(write_table(frame, path))
        with monkeypatch.context() as patch:
            patch.setattr(text_files, "_MOST_COUNTED", 5)
            assert read_all(path).equals(whole)
        for k in range(1, 3):
            for name in columns:
                assert whole[f"{name}{k}"].equals(whole[f"{name}0"])
        wanted = {
            "clock0": [time(13, 6), time(0)], "span0": [timedelta(hours=25), timedelta(hours=1)],
            "word1": [None, "x"], "date2": [date(2024, 12, 31), None],
        }  # fmt: skip
        assert whole.select(list(wanted)).to_pydict() == wanted


@pytest.mark.slow
def test_tables_of_many_columns_of_text(tmp_path):
    """One statement for all columns would take more memory than the engine may have."""
    names = [f"c{k}" for k in range(15_000)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *[",".join(["1.5"] * len(names))] * 20]))
    table = open_source(tmp_path / "t.csv")
    assert table.schema(names).types == [pa.float64()] * len(names)
    assert sum(batch.num_rows for batch in table.batches(names)) == 20


def test_text_is_read_as_numbers(tmp_path):
    source = write_column(tmp_path, ["1,000", "2"], e=["x", "y"], f=["0.5", "1,000.5"])
    source.keep_as_text(["d", "e"])
    source.read_numbers(["d", "e"])
    source.schema(["x", "d", "e", "f"])
    assert read_all(source).select(["d", "e"]).to_pylist() == [{"d": 1000.0, "e": "x"}, {"d": 2.0, "e": "y"}]
