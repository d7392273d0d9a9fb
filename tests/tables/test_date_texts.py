"""Dates and durations in text: as in a file with types, or text; and what is said on them."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.date_texts import may_be_dates_or_durations, parse_durations, with_months_as_numbers
from aucforest.tables.sources import open_source, stray_notes
from aucforest.tables.texts import text_note

DAY = timedelta(1)


@pytest.fixture
def read(tmp_path):
    """Return a function that writes the text of a column and returns what is read of it, and the notes."""

    def written_and_read(values, csv_format=DEFAULT_FORMAT):
        path = tmp_path / "t.csv"
        pd.DataFrame({"d": values, "x": 1}).to_csv(path, index=False)
        source = open_source(path, csv_format=csv_format)
        return pa.Table.from_batches(source.batches(["d"]))["d"], stray_notes(source, ["d"])

    return written_and_read


DURATIONS = {
    "0 days 01:00:00.500000": timedelta(0, 3600, 500_000),
    "-1 days +23:59:58": timedelta(0, -2),
    "3 days": 3 * DAY,
    "1 day, 2:00:00": DAY + timedelta(0, 7200),
    "36:00:02": timedelta(0, 36 * 3600 + 2),
    "-00:00:02.5": timedelta(0, -2.5),
    "05:00:00.000000001": timedelta(0, 5 * 3600),
    "12:30": timedelta(0, 45_000),
}


@pytest.mark.parametrize("text", DURATIONS)
def test_durations_as_they_are_written(text):
    """By pandas, Python, polars and DuckDB."""
    assert parse_durations(pa.array([text, None])).to_pylist() == [DURATIONS[text], None]


@pytest.mark.parametrize("text", ["", "1:30", "25:00", "12:75:00", "days", "5 days ago", "3", ", ", "1 days 30"])
def test_other_text_is_no_duration(text):
    with pytest.raises(pa.ArrowInvalid):
        parse_durations(pa.array(["3 days", text]))


MONTHS = {
    "5-Jan-23": "2023-01-05",
    "05-JAN-1999": "1999-01-05",
    "5 September 2023": "2023-09-05",
    "5. Dec. 2023": "2023-12-05",
    "Jan 5, 2023 10:30": "2023-01-05 10:30",
    "Feb. 5 2023": "2023-02-05",
    "31/may/69": "1969-05-31",
    "31-Dec-68, 23:59:59.5": "2068-12-31 23:59:59.5",
}


@pytest.mark.parametrize("text", MONTHS)
def test_months_by_name(text):
    assert with_months_as_numbers(pa.array([text, None, "2024-02-03"])).to_pylist() == [
        MONTHS[text],
        None,
        "2024-02-03",
    ]


def test_text_with_other_words_stays():
    texts = ["5. Mai 2023", "Foo 5, 2023", "5 Jan", "Jan 5, 23", "10 downing 12", "Jan 5 2023 3pm", "marches"]
    assert with_months_as_numbers(pa.array(texts)).to_pylist() == texts


def test_columns_of_months_by_name_are_dates(read):
    days = [date(2023, 1 + i % 12, 5) for i in range(12)]
    for written in ("%-d-%b-%Y", "%d %B %Y", "%b %-d, %Y"):
        column, notes = read([day.strftime(written) for day in days])
        assert column.type == pa.date32()
        assert (column.to_pylist(), notes) == (days, [])
    column, notes = read(["5-Jan-23", "6-Feb-67"])
    assert column.to_pylist() == [date(2023, 1, 5), date(2067, 2, 6)]
    assert notes == [
        "column 'd': years of two digits are read as 1969 to 2068: write them with four if they are others"
    ]
    assert read(["23-Jan-05", "06-Feb-30"], CsvFormat(date_format="%y-%b-%d"))[0].to_pylist()[0] == date(2023, 1, 5)
    column, _ = read(["5-Jan-23", "soon"])
    assert column.type == pa.string()
    assert text_note(column.to_pylist() + ["6-Jan-23"] * 2, [9, 1, 9, 9]).startswith(
        "dates such as '5-Jan-23' are read as text"
    )


@pytest.mark.parametrize(
    ("zeros", "date_format", "written"),
    [
        ("0000-00-00", None, "%Y-%m-%d"),
        ("0000-00-00 00:00:00", None, "%Y-%m-%d 10:00:00"),
        ("00.00.0000", "%d.%m.%Y", "%d.%m.%Y"),
        ("1900-01-00", None, "%d-%b-%Y"),
    ],
)
def test_zeros_in_place_of_a_date_are_missing(read, zeros, date_format, written):
    days = [datetime(2023, 1, 1) + i * DAY for i in range(29)]
    values = [zeros, *(day.strftime(written) for day in days)]
    column, notes = read(values, CsvFormat(date_format=date_format))
    assert pa.types.is_temporal(column.type)
    assert [column.null_count, column[0].as_py()] == [1, None]
    option = "--stray-text text (in Python, stray_text='text') reads the column as text"
    assert notes == [f"column 'd': 1 of 30 values is no date ({zeros!r}), read as missing; {option}"]
    column, notes = read(values, CsvFormat(date_format=date_format, stray_text="text"))
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
    assert column.type == pa.timestamp("s", "UTC")
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


def test_most_text_is_known_to_be_no_dates_at_a_glance():
    known = [*DURATIONS, *MONTHS, "2024-01-31", "2024-01-31T10:00:00Z", "00.00.0000", "1900-01-00"]
    assert may_be_dates_or_durations(pa.array([*known, None]))
    for text in ("0.5", "-1e-05", "12", "a word", "T12"):
        assert not may_be_dates_or_durations(pa.array([*known, text]))
