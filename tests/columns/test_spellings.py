"""Numbers and dates as people write them are recognized, alike by Python and by the database engine."""

import re
from datetime import date, datetime, timedelta
from functools import partial

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.columns import spellings
from aucforest.columns.spellings import PATTERNS, PLAIN, as_number, count_readings, is_number
from aucforest.tables.read_options import ReadOptions
from tests.tables.text_tables import read_column

PLAIN_NUMBERS = ["1", "-1", "+1.5", " .5", "5.", "1e5", "-1.5E-3 ", "inf", "-Infinity", "NaN", "1e999", "\t1\n"]
SPELLED = {
    "1,234.5": 1234.5, "1 234.5": 1234.5, "1'234’567": 1234567.0, "12,34,567": 1234567.0, "\u00a3 1,000": 1000.0,
    "$-3.5": -3.5, "-$3.5": -3.5, "- 3": -3.0, "\u22123": -3.0, "3-": -3.0, "3 \u2013": -3.0, "(3.5)": -3.5,
    "US$ 7": 7.0, "7 km/h": 7.0, "7.5%": 7.5, "5 m²": 5.0, "2.5K": 2500.0, "2.5k": 2500.0, "3M €": 3e6,
    "15.-": 15.0, "-3.-": -3.0, "- 3.\u2013": -3.0, "CHF 1'250.--": 1250.0, "15.\u2013": 15.0,
    "1B": 1e9, "1e3 kg": 1000.0, "12A": 12.0, "Rs 9": 9.0, "Rs.500": 500.0, " $ -   ": 0.0, "€\u2013": 0.0,
    "-Rs. .5": -0.5, "kr. 5": 5.0, "Kr -5": -5.0, "1,234.5 kr.": 1234.5, "1,234.-kr": 1234.0,
    "$(3.5)": -3.5, "$ (3.5)": -3.5, "₱5": 5.0, "Fr. 12": 12.0, "CHF -  ": 0.0, "- €": 0.0,
    "Rp 1.5": 1.5, "MXN 5": 5.0, "9 ºC": 9.0, "15.\u2014": 15.0, "￥9": 9.0, "5 Kč": 5.0,
    "1,234.- €": 1234.0, "\u00a03.5": 3.5, "\u200b-3.5\ufeff": -3.5,
}  # fmt: skip
OTHERS = [
    "", "-", ".", "e5", "1e+", "1,2,3", "1.2.3", "1_000", "0x10", "--1", "-1-", "(-1)", "1,23,4", "12 34",
    "0 123", "01,234,567", "1,234e5,6", "10:30", "5-6", "18+", "<5", "\u0661", "1 234 56", "1 kg extra", "€",
    "1\u000b2", "15.---", "SAR-1", "COP21", "USD(12)", "PT1H", "kr", "THB-1", "MXN001", "RM5",
    "Fr 12", "12 Rs..", "5\u2014",
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


@pytest.mark.parametrize(("texts", "decimal"), [
    (["1", "2"], "."), (["1,234", "5"], ""), (["1.234", "5"], ""), (["1,234", "1.5"], "."), (["1 234", "5"], "."),
    (["1,234", "1,234,567"], "."), (["1.234", "1,5"], ","), (["1.234", "0,123"], ","), (["1.234,5"], ","),
    (["1.5", "1,5"], None), (["1 kg", "2 g"], None), (["12A", "7A"], None), (["12a", "7a"], "."),
    (["1", "x"], None), (["1.5M", "2bn", "7K"], None), (["1.5M", "3m", "20"], None), (["512B", "12kB"], None),
    (["1.5M", "2", "7K"], "."), (["1.5k€", "200€"], "."), (["1.5k kg", "2 kg"], "."), (["15,-", "1,5"], ","),
    (["15.-", "16.50", "-3.-", "CHF 1'234.--"], "."), (["1.5K", "20", "30 EUR"], "."),
])  # fmt: skip
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
    """Return a function that writes a column of text, and returns the column that is read and the notes."""
    return partial(read_column, tmp_path)


def test_formats_that_dates_may_have():
    for day in spellings.DATE_FORMATS:
        written = date(2024, 2, 29).strftime(day)
        assert day in spellings.date_formats(written, written)
        assert re.match(spellings.date_pattern(day), f" {written} 10:30")
        assert re.match(spellings.DATE_LIKE, written)


DAYS = [date(2023, 12, 1) + k * DAY for k in range(60)]
YEAR_FIRST, YEARLY = [day.strftime("%y/%m/%d") for day in DAYS], ["31/12/19", "31/12/20", "31/12/21"]
UNSURE, DAY_FIRST = ["1/2/24", "3/4/24"], [date(2024, 2, 1), date(2024, 4, 3)]
MONTH_FIRST = [date(2024, 1, 2), date(2024, 3, 4)]
CLOCKS = [datetime(2024, 1, 15, 4, 23), datetime(2024, 1, 16, 16, 23)]
# The text of a column, the option `date_format`, other columns, and the values that are read, None if they stay text.
READ = [
    (["2024.01.31", "2024.02.01"], None, {}, [date(2024, 1, 31), date(2024, 2, 1)]),
    (["01/15/2024 04:23AM", "01/16/2024 04:23PM"], None, {}, CLOCKS),
    (["2024-01-15 04:23 AM", "2024-01-16 04:23 PM"], None, {}, CLOCKS),
    # digits are dates if the option is given
    (["20240131", "20240229"] * 10 + ["00000000"], None, {}, None),
    (["20240131", "20240229"] * 10 + ["00000000"], "%Y%m%d", {"n": "5"},
     [date(2024, 1, 31), date(2024, 2, 29)] * 10 + [None]),
    (["20240131", "99"], "%Y%m%d", {}, [20240131, 99]), (["20240131", "20230229"], "%d%m%Y", {}, [20240131, 20230229]),
    # the order of day and month is that of the option
    (UNSURE, "%d/%m/%Y", {}, DAY_FIRST), (["1-2-2024", "3-4-2024"], "%m/%d/%y", {}, MONTH_FIRST),
    (["13/2/24", "3/4/24"], "%m/%d/%Y", {}, [date(2024, 2, 13), date(2024, 4, 3)]),
    # or, without the option, that of other columns
    (UNSURE, None, {"sure": ["24/02/28", "24/04/30"]}, None),
    (UNSURE, None, {"sure": ["31/1/2024", "2/3/2024"]}, DAY_FIRST),
    (UNSURE, None, {"sure": ["1/31/24", "2/3/24"]}, MONTH_FIRST),
    (UNSURE, None, {"sure": ["31/1/24", "2/3/24"], "other": ["1/31/24", "2/3/24"]}, None),
    (UNSURE, "%m/%d/%y", {"sure": ["31/1/24", "2/3/24"]}, MONTH_FIRST),
    # the year may be the first of two digits: text if the dates would be closer to each other then, perhaps by chance
    ([day.strftime("%d/%m/%y") for day in DAYS], None, {}, DAYS), (YEAR_FIRST, None, {}, None),
    (YEAR_FIRST, "%y/%m/%d", {}, DAYS), ([*YEAR_FIRST, "99/12/31"], None, {}, [*DAYS, date(1999, 12, 31)]),
    (YEARLY, None, {}, None), (YEARLY, None, {"sure": ["13/01/2020"] * 3}, None),
    (UNSURE, None, {"texts": ["24/03/07"] * 2}, None),
    (YEARLY, "%d/%m/%Y", {}, [date(year, 12, 31) for year in (2019, 2020, 2021)]),
    (["31.12.19", "31.12.20"], None, {}, [date(2019, 12, 31), date(2020, 12, 31)]),
    # months by name, and codes that look like months
    (["5-Jan-23", "6-Feb-67", "7-JUN-99"], None, {}, [date(2023, 1, 5), date(2067, 2, 6), date(1999, 6, 7)]),
    (["23-Jan-05", "06-Feb-20"], "%y-%b-%d", {}, [date(2023, 1, 5), date(2006, 2, 20)]),
    (["5-Jan-23", "soon"], None, {}, None),
    ([f"{1000 + i}-{1 + i % 12:02}" for i in range(40)], None, {"other": "2024-01"}, None),
    ([f"{2000 + i}-{1 + i:02}" for i in range(13)], None, {}, None),
    ([f"2020-{1 + i % 4}" for i in range(40)], None, {}, None), (["May-2020"] * 30 + ["Pro-2020"], None, {}, None),
    *(([*codes], None, {}, None) for codes in (["12DEC1001", "13MAR1999"], ["05/4711"], ["12-2004"])),
    (["9999-12-31 23:59:59.999", "2024-01-01 10:00:00.5"], None, {},
     [datetime(9999, 12, 31, 23, 59, 59, 999_000), datetime(2024, 1, 1, 10, 0, 0, 500_000)]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "date_format", "others", "found"), READ)
def test_what_is_read_of_dates(read, texts, date_format, others, found):
    column, notes = read(texts, ReadOptions(date_format=date_format), **others)
    assert column.to_pylist() == (texts if found is None else found)
    if found in (DAY_FIRST, MONTH_FIRST) and date_format is None:
        form = "%d/%m/%y" if found == DAY_FIRST else "%m/%d/%y"
        assert any("'d'" in note and f"are read as {form}" in note for note in notes)
    elif date_format == "%y-%b-%d" or "-12-31 23" in texts[0]:
        assert notes == []  # there are none on a given format and on ISO dates


MONTHS = ["%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%B %Y", "%b-%Y", "%-d-%b-%Y", "%d %B %Y", "%b %-d, %Y"]


@pytest.mark.parametrize("form", MONTHS)
def test_columns_of_months_without_days_and_by_name_are_dates(read, form):
    days = [date(1990 + i, 1 + i % 12, 5 if "d" in form else 1) for i in range(40)]
    texts = [day.strftime(form) for day in days]
    column, notes = read(texts)
    assert (column.type, column.to_pylist()) == (pa.date32(), days)
    assert notes == [f"column 'd': dates such as {min(texts)!r} are read as {form.replace('%-d', '%d')}"]


@pytest.mark.parametrize(("zeros", "date_format", "written"), [
    ("0000-00-00", None, "%Y-%m-%d"), ("0000-00-00 00:00:00", None, "%Y-%m-%d 10:00:00"),
    ("00.00.0000", "%d.%m.%Y", "%d.%m.%Y"), ("1900-01-00", "%d-%b-%Y", "%d-%b-%Y"),
])  # fmt: skip
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


def test_a_note_says_that_a_csv_has_no_zone(read):
    moments = pd.Series(pd.date_range("2024-01-01", periods=200, freq="11h", tz="UTC"))
    column, notes = read(moments.dt.tz_convert("America/New_York"))
    assert column.type == pa.timestamp("us", "UTC")
    assert notes == ["column 'd': times have an offset, but no time zone: month, day of week and hour are those of UTC"]
    assert read(moments)[1] == []
