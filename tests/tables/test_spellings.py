"""Numbers and dates as people write them: what is one, and the same for Python and for the engine."""

import re
from datetime import date, datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest import AUCForestClassifier
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.tables import spellings
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.spellings import PATTERNS, PLAIN, as_number, count_readings, is_number
from tests.tables.text_tables import read_column

SPACES = " \u00a0\u2007\u2009\u202f"
PLAIN_NUMBERS = ["1", "-1", "+1.5", " .5", "5.", "1e5", "-1.5E-3 ", "inf", "-Infinity", "NaN", "1e999", "\t1\n"]
SPELLED = {
    "1,234.5": 1234.5, "1 234.5": 1234.5, "1'234’567": 1234567.0, "12,34,567": 1234567.0, "\u00a3 1,000": 1000.0,
    "$-3.5": -3.5, "-$3.5": -3.5, "- 3": -3.0, "\u22123": -3.0, "3-": -3.0, "3 \u2013": -3.0, "(3.5)": -3.5,
    "US$ 7": 7.0, "7 km/h": 7.0, "7.5%": 7.5, "5 m²": 5.0, "2.5K": 2500.0, "2.5k": 2500.0, "3M €": 3e6,
    "15.-": 15.0, "-3.-": -3.0, "- 3.\u2013": -3.0, "CHF 1'250.--": 1250.0, "15.\u2013": 15.0,
    "1B": 1e9, "1e3 kg": 1000.0, "12A": 12.0, "Rs 9": 9.0, "Rs.500": 500.0, " $ -   ": 0.0, "€\u2013": 0.0,
    "-Rs. .5": -0.5, "kr. 5": 5.0, "Kr -5": -5.0, "1,234.5 kr.": 1234.5, "1,234.-kr": 1234.0,
    "$(3.5)": -3.5, "$ (3.5)": -3.5, "₱5": 5.0, "1,234.- €": 1234.0, "\u00a03.5": 3.5, "\u200b-3.5\ufeff": -3.5,
}  # fmt: skip
OTHERS = [
    "", "-", ".", "e5", "1e+", "1,2,3", "1.2.3", "1_000", "0x10", "--1", "-1-", "(-1)", "1,23,4", "12 34",
    "0 123", "01,234,567", "1,234e5,6", "10:30", "5-6", "18+", "<5", "\u0661", "1 234 56", "1 kg extra", "€",
    "1\u000b2", "15.---", "SAR-1", "COP21", "USD(12)", "Fr. 12", "kr", "12 Rs..",
]  # fmt: skip


def test_plain_numbers_are_those_of_python():
    for text in [*PLAIN_NUMBERS, *SPELLED, *OTHERS, "1\n2", "nan(1)", "infinit"]:
        try:
            float(text)
        except ValueError:
            expected = False
        else:
            expected = "_" not in text and text.isascii()
        assert bool(re.match(PLAIN, text)) == expected, text


def test_what_is_a_number():
    for text, number in SPELLED.items():
        assert float(as_number(text, ".")) == number, text
        assert is_number(text), text
    for text in OTHERS:
        assert not is_number(text), text


TEXTS = st.text(
    st.sampled_from("0123456789" * 2 + ".,,'’-+()eEkKMB%€$/µ²\u2212\u2013 \u00a0\u202f\t\n\r\v\x85RsEURgk"), max_size=12
)


@given(st.lists(TEXTS, min_size=20, max_size=200))
def test_patterns_mean_the_same_to_python_and_to_the_engine(engine, texts):
    patterns = [*PATTERNS.values(), spellings.MINUS, spellings.DIGITS, spellings.FACTOR]
    for pattern in patterns:
        (found,) = engine.execute("SELECT [regexp_matches(t, ?) FOR t IN ?::VARCHAR[]]", [pattern, texts]).fetchone()
        assert found == [re.search(pattern, text) is not None for text in texts]
    left = f"[regexp_replace(t, '{spellings.NO_UNIT.replace(chr(39), chr(39) * 2)}', '', 'g') FOR t IN ?::VARCHAR[]]"
    (found,) = engine.execute(f"SELECT {left}", [texts]).fetchone()
    assert found == [re.sub(spellings.NO_UNIT, "", text) for text in texts]


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=2), st.data())
def test_a_written_number_is_read_back(number, data):
    """With any mark between thousands, either decimal mark, and a sign before or behind."""
    decimal = data.draw(st.sampled_from(".,"))
    thousands = data.draw(st.sampled_from(["", *SPACES, "'", "’", {".": ",", ",": "."}[decimal]]))
    plain = f"{abs(number):,.2f}"
    written = plain.translate(str.maketrans({",": thousands, ".": decimal}))
    minus = data.draw(st.sampled_from(["-{}", "\u2212{}", "{}-", "({})", "- {}"]))
    text = minus.format(written) if number < 0 else written
    assert re.match(PATTERNS[decimal], text)
    assert float(as_number(text, decimal)) == float(number)


@pytest.mark.parametrize(
    ("texts", "decimal"),
    [
        (["1", "2"], "."), (["1,234", "5"], ""), (["1.234", "5"], ""), (["1,234", "1.5"], "."), (["1 234", "5"], "."),
        (["1,234", "1,234,567"], "."), (["1.234", "1,5"], ","), (["1.234", "0,123"], ","), (["1.234,5"], ","),
        (["1.5", "1,5"], None), (["1 kg", "2 g"], None), (["12A", "7A"], None), (["12a", "7a"], "."),
        (["1", "x"], None), (["1.5M", "2bn", "7K"], None), (["1.5M", "3m", "20"], None), (["512B", "12kB"], None),
        (["1.5M", "2", "7K"], "."), (["1.5k€", "200€"], "."), (["1.5k kg", "2 kg"], "."), (["15,-", "1,5"], ","),
        (["15.-", "16.50", "-3.-", "CHF 1'234.--"], "."), (["1.5K", "20", "30 EUR"], "."),
    ],
)  # fmt: skip
def test_the_decimal_mark_of_a_column(texts, decimal):
    readings = count_readings(texts, [1] * len(texts))
    assert readings.decimal(0.0) == decimal
    if decimal == "":
        assert [readings.decimal(0.0, given) for given in ".,"] == [".", ","]
    elif decimal is not None:
        assert [readings.decimal(0.0, given) for given in ".,"] == [decimal] * 2


def test_long_texts_take_no_time():
    for text in ("1 " * 50_000, "1," * 24, "1 " * 25, " " * 49 + "x", "(1,111" + ",111" * 10):
        assert not is_number(f"{text}x")


DAY = timedelta(1)


@pytest.fixture
def read(tmp_path):
    """Return a function that writes the text of a column and returns what is read of it, and the notes."""
    return partial(read_column, tmp_path)


def test_formats_that_dates_may_have():
    assert spellings.date_formats(" 1.2.2024 10:30", "31.12.2024") == ["%d.%m.%Y"]
    assert spellings.date_formats("1/2/24", "soon") == ["%d/%m/%y", "%m/%d/%y"]
    assert spellings.date_formats("11/02/24", "soon") == ["%d/%m/%y", "%m/%d/%y", "%y/%m/%d"]
    assert spellings.date_formats("1.2.3", "soon") == []
    assert spellings.date_formats("1899-01", "12DEC1001") == []
    for day in spellings.DATE_FORMATS:
        written = date(2024, 2, 29).strftime(day)
        assert day in spellings.date_formats(written, written)
        assert re.match(spellings.date_pattern(day), f" {written} 10:30")
        assert re.match(spellings.DATE_LIKE, written)
    assert spellings.date_pattern("%d.%m.%Y %H:%M") is None


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["2024.01.31", "2024.02.01"], [date(2024, 1, 31), date(2024, 2, 1)]),
        (["01/15/2024 04:23AM", "01/16/2024 04:23PM"], [datetime(2024, 1, 15, 4, 23), datetime(2024, 1, 16, 16, 23)]),
        (["2024-01-15 04:23 AM", "2024-01-16 04:23 PM"], [datetime(2024, 1, 15, 4, 23), datetime(2024, 1, 16, 16, 23)]),
    ],
)
def test_other_dates(read, texts, found):
    assert read(texts)[0].to_pylist() == found


def test_digits_are_dates_if_a_format_says_so(read):
    texts = ["20240131", "20240229"] * 10 + ["00000000"]
    assert read(texts)[0].type == pa.string()
    column, notes = read(texts, ReadOptions(date_format="%Y%m%d"), other="20240101", n="5")
    assert column.to_pylist()[-3:] == [date(2024, 1, 31), date(2024, 2, 29), None]
    assert notes[0].startswith("column 'd': 1 of 21 values is no date ('00000000'), read as missing")
    assert read(["20240131", "99"], ReadOptions(date_format="%Y%m%d"))[0].type == pa.int64()
    assert read(["20240131", "20230229"] * 9, ReadOptions(date_format="%d%m%Y"))[0].type == pa.int64()


def test_the_order_of_day_and_month_is_that_of_the_given_format(read):
    assert read(["1/2/24", "3/4/24"], ReadOptions(date_format="%d/%m/%Y"))[0].to_pylist()[0] == date(2024, 2, 1)
    assert read(["1-2-2024", "3-4-2024"], ReadOptions(date_format="%m/%d/%y"))[0].to_pylist()[0] == date(2024, 1, 2)
    assert read(["13/2/24", "3/4/24"], ReadOptions(date_format="%m/%d/%Y"))[0].to_pylist()[0] == date(2024, 2, 13)


def test_the_order_of_day_and_month_is_that_of_other_columns(read):
    texts = ["1/2/24", "3/4/24"]
    assert read(texts, sure=["24/02/28", "24/04/30"])[0].type == pa.string()
    for sure, month in ((["31/1/2024", "2/3/2024"], 2), (["1/31/24", "2/3/24"], 1)):
        column, notes = read(texts, sure=sure)
        assert column.to_pylist()[0] == date(2024, month, 3 - month)
        assert any("'d'" in note and f"are read as {'%d/%m' if month == 2 else '%m/%d'}/%y" in note for note in notes)
    assert read(texts, sure=["31/1/24", "2/3/24"], other=["1/31/24", "2/3/24"])[0].type == pa.string()
    assert read(texts, ReadOptions(date_format="%m/%d/%y"), sure=["31/1/24", "2/3/24"])[0][0].as_py() == date(
        2024, 1, 2
    )


def test_dates_whose_year_may_be_the_first_of_two_digits(read):
    """They are text if they would be closer to each other then, which may be by chance."""
    days = [date(2023, 12, 1) + k * DAY for k in range(60)]
    texts = [day.strftime("%d/%m/%y") for day in days]
    assert read(texts)[0].to_pylist() == days
    texts = [day.strftime("%y/%m/%d") for day in days]
    assert read(texts)[0].type == pa.string()
    assert read(texts, ReadOptions(date_format="%y/%m/%d"))[0].to_pylist() == days
    assert read([*texts, "99/12/31"])[0].to_pylist()[:-1] == days
    yearly = ["31/12/19", "31/12/20", "31/12/21"]
    assert read(yearly)[0].type == pa.string()
    assert read(yearly, sure=["13/01/2020"] * 3)[0].type == pa.string()
    assert read(["1/2/24", "3/4/24"], texts=["24/03/07", "24/03/07"])[0].type == pa.string()
    assert read(yearly, ReadOptions(date_format="%d/%m/%Y"))[0].to_pylist()[2] == date(2021, 12, 31)
    assert read(["31.12.19", "31.12.20"])[0].to_pylist()[1] == date(2020, 12, 31)


def test_columns_of_months_without_days_are_dates(read):
    days = [date(1990 + i, 1 + i % 12, 1) for i in range(40)]
    for form in ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y"):
        column, notes = read([day.strftime(form) for day in days])
        assert column.to_pylist() == days
        assert notes[0].endswith(f"are read as {form}")
    assert read([f"{1000 + i}-{1 + i % 12:02}" for i in range(40)], other="2024-01")[0].type == pa.string()
    seasons = [f"{2000 + i}-{1 + i:02}" for i in range(13)]
    quarters = [f"2020-{1 + i % 4}" for i in range(40)]
    for codes in (
        seasons,
        quarters,
        ["May-2020"] * 30 + ["Pro-2020"],
        ["12DEC1001", "13MAR1999"],
        ["05/4711"],
        ["12-2004"],
    ):
        assert read(codes)[0].type == pa.string()


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
