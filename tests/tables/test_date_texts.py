"""Dates and durations in text: as in a file with types, or text; and what is said on them."""

import re
from datetime import date, datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.tables import date_texts
from aucforest.tables.read_options import ReadOptions
from tests.tables.text_tables import read_column

DAY = timedelta(1)


@pytest.fixture
def read(tmp_path):
    """Return a function that writes the text of a column and returns what is read of it, and the notes."""
    return partial(read_column, tmp_path)


def test_formats_that_dates_may_have():
    assert date_texts.formats_of(["31.12.2024", " 1.2.2024 10:30"]) == ["%d.%m.%Y"]
    assert date_texts.formats_of(["1/2/24"]) == ["%d/%m/%y", "%m/%d/%y"]
    assert date_texts.formats_of(["soon", "2024-01-01", "1.2.3", "12"]) == []
    for day in date_texts.FORMATS:
        written = date(2024, 2, 29).strftime(day)
        assert day in date_texts.formats_of([written])
        assert re.match(date_texts.pattern_of(day), f" {written} 10:30")
        assert re.match(date_texts.MAY_BE, written)
    assert date_texts.pattern_of("%d.%m.%Y %H:%M") is None


def test_the_formats_that_read_most_texts():
    assert date_texts.best_formats({"%d.%m.%Y": 3, "%d.%m.%y": 1}) == ["%d.%m.%Y"]
    assert date_texts.best_formats({"%d/%m/%Y": 3, "%m/%d/%Y": 2}) == ["%d/%m/%Y"]
    assert sorted(date_texts.best_formats({"%d/%m/%Y": 3, "%m/%d/%Y": 3})) == ["%d/%m/%Y", "%m/%d/%Y"]
    assert date_texts.best_formats({"%d %b %Y": 3, "%d %B %Y": 3}) == ["%d %b %Y"]  # in May


def test_columns_of_months_by_name_are_dates(read):
    days = [date(2023, 1 + i % 12, 5) for i in range(12)]
    for form, found in (("%-d-%b-%Y", "%d-%b-%Y"), ("%d %B %Y", "%d %B %Y"), ("%b %-d, %Y", "%b %d, %Y")):
        texts = [day.strftime(form) for day in days]
        column, notes = read(texts)
        assert (column.type, column.to_pylist()) == (pa.date32(), days)
        assert notes == [f"column 'd': dates such as {min(texts)!r} are read as {found}"]
    assert read(["5-Jan-23", "6-Feb-67", "7-JUN-99"])[0].to_pylist()[1:] == [date(2067, 2, 6), date(1999, 6, 7)]
    column, notes = read(["23-Jan-05", "06-Feb-20"], ReadOptions(date_format="%y-%b-%d"))
    assert (column.to_pylist(), notes) == ([date(2023, 1, 5), date(2006, 2, 20)], [])
    assert read(["5-Jan-23", "soon"])[0].type == pa.string()


@pytest.mark.parametrize(
    ("zeros", "date_format", "written"),
    [
        ("0000-00-00", None, "%Y-%m-%d"),
        ("0000-00-00 00:00:00", None, "%Y-%m-%d 10:00:00"),
        ("00.00.0000", "%d.%m.%Y", "%d.%m.%Y"),
        ("1900-01-00", "%d-%b-%Y", "%d-%b-%Y"),
    ],
)
def test_zeros_in_place_of_a_date_are_missing(read, zeros, date_format, written):
    days = [datetime(2023, 1, 1) + i * DAY for i in range(29)]
    values = [zeros, *(day.strftime(written) for day in days)]
    column, notes = read(values, ReadOptions(date_format=date_format))
    assert pa.types.is_temporal(column.type)
    assert [column.null_count, column[0].as_py()] == [1, None]
    option = "--stray-text text (in Python, stray_text='text') reads the column as text"
    assert notes[0] == f"column 'd': 1 of 30 values is no date ({zeros!r}), read as missing; {option}"
    column, notes = read(values, ReadOptions(date_format=date_format, stray_text="text"))
    assert (column.type, notes) == (pa.string(), [])


def test_the_last_day_of_the_calendar_is_a_date(read):
    column, notes = read(["9999-12-31 23:59:59.999", "2024-01-01 10:00:00.5"])
    assert (column.to_pylist()[0], notes) == (datetime(9999, 12, 31, 23, 59, 59, 999_000), [])


def table():
    """Return durations, times of day and times in a zone, which a CSV has as text."""
    random, n = np.random.default_rng(0), 200
    frame = pd.DataFrame({
        "wait": pd.to_timedelta(random.integers(-(10**11), 10**12, n), "us"),
        "whole": pd.to_timedelta(random.integers(0, 9, n), "D"),
        "clock": [(datetime.min + timedelta(0, 0, us)).time() for us in random.integers(0, 86_400 * 10**6, n).tolist()],
        "at": pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(random.integers(0, 10**7, n), "s"),
    })  # fmt: skip
    return frame.assign(y=frame["wait"] > frame["wait"].median())


def test_a_csv_and_a_parquet_file_of_the_same_durations_and_times_are_the_same(tmp_path):
    frame, comma, parquet = table(), tmp_path / "t.csv", tmp_path / "t.parquet"
    frame.to_csv(comma, index=False)
    frame.to_parquet(parquet)
    forests = [fit_out_of_core(AUCForestClassifier(5, random_state=0), path, "y") for path in (comma, parquet)]
    assert [forest.dates_ for forest in forests] == [forests[0].dates_] * 2
    assert [column.parts for column in forests[0].dates_.values()][:3] == [("seconds",)] * 3
    tables = [
        pa.Table.from_batches(predict_out_of_core(forest, path)) for forest in forests for path in (comma, parquet)
    ]
    assert all(other.equals(tables[0]) for other in tables)


def test_a_note_says_that_a_csv_has_no_zone(tmp_path, read):
    moments = table()["at"].dt.tz_convert("America/New_York")
    column, notes = read(moments)
    assert column.type == pa.timestamp("us", "UTC")
    assert notes == ["column 'd': times have an offset, but no time zone: month, day of week and hour are those of UTC"]
    assert read(table()["at"])[1] == []
    y = np.arange(200) % 2 == 0
    pd.DataFrame({"d": moments, "y": y}).to_csv(tmp_path / "zone.csv", index=False)
    with pytest.warns(UserWarning, match="column 'd': times have an offset"):
        forest = fit_out_of_core(AUCForestClassifier(5, random_state=0), tmp_path / "zone.csv", "y")
    frame = pd.DataFrame({"d": moments})
    got = pa.Table.from_batches(predict_out_of_core(forest, tmp_path / "zone.csv", proba=True))
    np.testing.assert_array_equal(got["probability_True"], forest.predict_proba(frame)[:, 1])


def test_zeros_in_new_rows_are_missing(tmp_path):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60), "D")
    forest = AUCForestClassifier(5, random_state=0).fit(pd.DataFrame({"d": days}), np.arange(60) % 7 < 3)
    (tmp_path / "new.csv").write_text("d\n0000-00-00\n5-Jan-24\n")
    with pytest.warns(UserWarning, match=r"^column 'd': 1 of 2 values is no date \('0000-00-00'\), read as missing$"):
        got = pa.Table.from_batches(predict_out_of_core(forest, tmp_path / "new.csv", proba=True))
    wanted = forest.predict_proba(pd.DataFrame({"d": pd.to_datetime([None, "2024-01-05"])}))[:, 1]
    np.testing.assert_array_equal(got["probability_True"], wanted)
    with pytest.raises(ValueError, match="line 2: column 'd' has the value '0000-00-00', which is not a date"):
        list(predict_out_of_core(forest, tmp_path / "new.csv", stray_text="text"))
