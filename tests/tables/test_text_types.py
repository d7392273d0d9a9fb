"""Types of text columns: their SQL gives the values that Python gives, and they depend on all rows and columns."""

import re
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.columns.spellings import PATTERNS, as_number
from aucforest.tables import text_types
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.text_types import infer_types
from tests.tables.text_tables import evaluated, read_all, read_column, write_column


@given(st.lists(st.floats() | st.integers(-(2**70), 2**70).map(float), min_size=1))
def test_plain_numbers_are_those_of_python_to_the_last_bit(engine, numbers):
    texts = [spelled for x in numbers for spelled in (repr(x), f" {x:.17g} ", f"{x:.3e}", f"{x:+f}")]
    found = np.array(evaluated(engine, text_types.NUMBER.sql, texts), np.float64)
    np.testing.assert_array_equal(found, np.array(list(map(float, texts))))


HOUR = 3600 * 10**6
DURATIONS = {"3 days": 72 * HOUR, "1 day": 24 * HOUR, "05:00:00.000000001": 5 * HOUR, "12:30": 12.5 * HOUR}
DURATIONS |= {"P1DT2H": 26 * HOUR, "-PT3600.5S": -HOUR - 500_000, " P0DT0H30M0S": HOUR // 2, "P2D": 48 * HOUR}
INTEGERS = {"7": 7, "-7": -7, "+7": 7, " 7 ": 7, str(2**63 - 1): 2**63 - 1, str(-(2**63)): -(2**63)}
CLOCKS = {"0:00": time(0), "09:05": time(9, 5), "23:59:59": time(23, 59, 59)}
FLAGS = dict.fromkeys(["1", "true", "True", "TRUE"], True) | dict.fromkeys(["0", "false", "False", "FALSE"], False)
NO_NUMBERS = ["1_000", "0x1F", "1,5", "1 kg", "", "-", "e5", "1e", "True", "1.5.2", "(1)", "\u0661"]
NO_DURATIONS = ["", "25:00", "12:75:00", "days", "5 days ago", "3", ", ", "1 days 30", "-", "P", "PT1", "3 hours"]
NO_DATES = [
    "2024-02-29 10:00 PM", "2024-02-29 10:00 Europe/Berlin", "2024-02-29 24:00", "2023-02-29", "2024-13-01",
    "2024-02-29x", "20240229", "2024-02", "0000-00-00", "10:00",
]  # fmt: skip


@pytest.mark.parametrize(("sql", "values", "others"), [
    (text_types.NUMBER.sql, {}, NO_NUMBERS),
    (text_types.INTEGER.sql, INTEGERS, ["7.0", "7e0", "1_0", "x"]),
    (text_types.DURATION.sql, DURATIONS | {"-00:00:02.5": -2_500_000}, NO_DURATIONS),
    (text_types.TIME.sql, CLOCKS, ["24:00", "12:60", "12:30:15.5", "12"]),
    (text_types.FLAG.sql, FLAGS, ["tRue", "yes", "T", "", "2"]),
    (text_types.MOMENT.sql, {}, NO_DATES),  # the engine would ignore parts of these
    # formats with a time of day, and with the day of the week
    (text_types.dates_in("%d.%m.%Y %H.%M"), {"29.02.2024 10.30": datetime(2024, 2, 29, 10, 30)}, ["29.02.2024"]),
    (text_types.dates_in("%a, %d %b %Y"), {"Thu, 29 Feb 2024": datetime(2024, 2, 29)}, ["29 Feb 2024"]),
])  # fmt: skip
def test_text_that_is_of_a_type_and_other_text(engine, sql, values, others):
    assert evaluated(engine, sql, [*values, *others, None]) == [*values.values(), *[None] * (len(others) + 1)]


UNITS = ["", "", "kg", " kg", "%", " €", "km/h", " m²"]
MARKS = ["", *" \u00a0\u2007\u2009\u202f'’,"]


@given(st.decimals(-(10**12), 10**12, places=3), st.sampled_from(".,"), st.sampled_from(UNITS), st.sampled_from(MARKS))
def test_spelled_numbers_are_those_of_python_to_the_last_bit(engine, number, decimal, unit, mark):
    """Numbers have any mark between thousands, either decimal mark, and a sign at either end."""
    thousands = {".": mark, ",": "." if mark == "," else mark}[decimal]
    plain = f"{abs(number):,.3f}".translate(str.maketrans({",": thousands, ".": decimal}))
    forms = ["-{}", "\u2212{}", "- {}", "({})"] + ["{}-"] * (unit == "")
    texts = [(form if number < 0 else "{}").format(f"{plain}{unit}") for form in forms]
    type_ = text_types.spelled_numbers({"decimal": decimal, "unit": unit.strip()})
    assert evaluated(engine, type_.sql, texts) == [float(number)] * len(texts)
    assert [float(as_number(text, decimal)) for text in texts] == [float(number)] * len(texts)
    assert all(re.match(PATTERNS[decimal], text) for text in texts)
    other = text_types.spelled_numbers({"decimal": decimal, "unit": "lb"})
    assert evaluated(engine, other.sql, texts) == [None if unit else float(number)] * len(texts)


@pytest.mark.parametrize("decimal", PATTERNS)
def test_factors_exponents_and_zeros_of_accountants(engine, decimal):
    type_ = text_types.spelled_numbers({"decimal": decimal, "unit": "$"})
    texts = {"2K": 2e3, "25M": 25e6, "1e3": 1e3, "$ 1": 1.0, " $ -   ": 0.0, "-": None, "$": None, "9 %": None}
    assert evaluated(engine, type_.sql, list(texts)) == list(texts.values())


@given(st.timedeltas(timedelta(-9999), timedelta(9999)))
def test_durations_as_python_and_pandas_write_them(engine, duration):
    minus = duration < timedelta(0)
    hours, rest = divmod(abs(duration), timedelta(hours=1))
    days, clock = duration.days, duration - timedelta(duration.days)
    padded = f"{datetime.min + clock:%H:%M:%S.%f}"
    texts = [str(duration), f"{days} days {padded}", f"{days} days {'+' * minus}{padded}"]
    if hours < 10_000:
        texts.append(f"{'-' * minus}{hours}{f'{datetime.min + rest:%H:%M:%S.%f}'[2:]}")
    assert evaluated(engine, text_types.DURATION.sql, texts) == [duration // timedelta(microseconds=1)] * len(texts)


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.timezones() | st.just(UTC)))
def test_times_are_those_of_python(engine, moment):
    """The values, without or with an offset, do not depend on the time zone of the machine."""
    moment = moment.astimezone(UTC) if moment.utcoffset().seconds % 60 else moment
    plain = moment.replace(tzinfo=None)
    texts = [str(plain), plain.isoformat(), f" {plain}", plain.strftime("%Y/%m/%d %H:%M:%S.%f").rjust(26, "0")]
    texts.append(str(plain).replace(".", ","))
    assert evaluated(engine, text_types.MOMENT.sql, texts) == [plain] * 5
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    spaced = f"{plain} {str(moment)[-6:]}"
    zoned = [str(moment), moment.isoformat(), spaced, spaced.replace(".", ",")]
    assert evaluated(engine, text_types.ZONED.sql, zoned) == [microseconds] * 4
    assert evaluated(engine, text_types.ZONED.sql, texts) == [None] * 5


FORMATS = ["%d.%m.%Y", "%m/%d/%Y", "%d-%b-%y", "%B %d, %Y", "%d/%m/%Y"]


@given(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)), st.sampled_from(FORMATS))
def test_dates_in_a_format_are_those_of_strptime(engine, moment, day):
    clocks = ["", " %H:%M", " %H:%M:%S", "T%H:%M:%S", ", %I:%M %p", " %H:%M:%S.%f"]
    for form in (f"{day}{clock}" for clock in clocks):
        text = moment.strftime(form)
        texts = [text, f"{text} "]
        if "%b" in day or "%B" in day:
            texts += [f"{moment:%A}, {text}", f" {moment:%a}  {text}"]
        assert evaluated(engine, text_types.dates_in(day), texts) == [datetime.strptime(text, form)] * len(texts)
    assert evaluated(engine, text_types.dates_in(day), [str(moment), "soon", None]) == [moment, None, None]


INTEGER, NUMBER, TEXT, FLAG = pa.int64(), pa.float64(), pa.string(), pa.bool_()
DAY, MOMENT, ZONED = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")
TIME, DURATION = pa.time32("s"), pa.duration("us")

# Columns, and their types.
COLUMNS = [
    (["1", "-2", "+3"], INTEGER), (["1", "2.5"], NUMBER), (["1e5", "inf", "-Infinity"], NUMBER), (["0x1F"], TEXT),
    (["1_000"], TEXT), (["007", "123"], TEXT), (["00.5", "1"], NUMBER), (["0", "1"], INTEGER), ([" 1", "2 "], INTEGER),
    (["\u00a01", "\u200b2"], NUMBER), (["$(1.5)", "$ 2"], NUMBER), (["1.234,-", "5,- €"], NUMBER),
    (["kr 5"], NUMBER), (["5 kr.", "7 kr."], NUMBER), (["Rs.500"], NUMBER), (["kr. 1.234"], TEXT),
    (["1,234,541円", "900円"], NUMBER), (["1 541,5 руб.", "9 руб."], NUMBER),
    (["Rs. 500", "Rs. 1,23,456.00"], NUMBER), (["5 KB", "3 MB"], TEXT), (["2024-01", "1999-12"], DAY),
    (["Jan 2024", "May 2024"], DAY), (["4711-01", "2024-01"], TEXT), (["1:06 PM", "12:00:01am"], TIME),
    (["24/01/01", "25/12/28"], TEXT), (["99/12/31"], DAY), (["01JAN2024"], DAY),
    (["Jan  1 2024 1:00PM", "Jan 31 2024 1:00AM"], MOMENT),
    ([str(2**63)], NUMBER), ([str(-(2**63)), str(2**63 - 1)], INTEGER),
    ([str(-(2**127)), "1"], NUMBER), (["1" * 45], NUMBER), (["true", "False", "1"], FLAG), (["tRue"], TEXT),
    (["T", "F"], TEXT), (["yes", "no"], TEXT), (["12,345"], TEXT), (["1,5", "2"], NUMBER), (["1.234,5"], NUMBER),
    (["1.5K", "2M", "3"], NUMBER), (["(1.5)", "2"], NUMBER), (["1.5-"], NUMBER), (["12 %", "-3%"], NUMBER),
    (["1 kg", "2.5 kg"], NUMBER), (["1 kg", "2 g"], TEXT), (["12A", "13A"], TEXT), (["0-5", "6-10"], TEXT),
    (["1.2.3", "4.5.6"], TEXT), (["2024"], INTEGER), (["20240229"], INTEGER), (["2024-02-29"], DAY),
    (["2024-02-29 00:00:00", "2024-03-01"], DAY), (["2024-02-29 10:00", "2024-03-01"], MOMENT), (["2024/2/29"], DAY),
    (["2024-02-29T10:00:00Z", "2024-02-29T10:00:00+02:00"], ZONED), (["2024-02-29T10:00Z", "2024-02-29T10:00"], TEXT),
    (["31.12.2024", "1.2.24"], TEXT), (["1.2.2024"], DAY), (["1.2.2024 10:30"], MOMENT), (["1/2/2024"], TEXT),
    (["1/2/2024", "13/2/2024"], DAY), (["1/2/2024", "2/13/2024"], DAY), (["13/2/2024", "2/13/2024"], TEXT),
    (["5-Jan-23"], DAY), (["March 5, 2024", "May 6, 2024"], DAY), (["5. Mai 2023"], TEXT), (["10:00", "9:30"], TIME),
    (["10:00:01", "25:00:00"], DURATION), (["3 days", "-1 days +23:59:58"], DURATION), (["25:00"], TEXT),
    (["0000-00-00"], TEXT), (["a", "b"], TEXT), (["NA", "null", ""], pa.null()), (["NA", "1"], INTEGER),
    ([" " * 20], pa.null()), ([" ", "1.5"], NUMBER), ([" ", "  ", "2024-01-31"], DAY),
    ([" ", "1,5 €"], NUMBER), (["true", " "], FLAG), ([" ", "x"], TEXT), ([" ", "31.1.2024"], DAY),
    ([" ", "007"], TEXT), ([" ", "7"], INTEGER), (["-", "1"], TEXT),
    (["2024-02-29 10:00:00,123", "2024-03-01"], MOMENT),
    (["2024-02-29 10:00:00,5+01:00"], ZONED), (["Thursday, February 29, 2024", "Friday, March  1, 2024"], DAY),
    (["Thu 29 Feb 2024 10:30", "Fri. 1 Mar 2024"], MOMENT), (["01AUG2024:00:43:28"], MOMENT),
    (["24-10-2023 12.29"], MOMENT), (["31-JAN-24 10.00.00.123456789 AM"], MOMENT),
    (["31.12.2024 10:00:00.1234567"], MOMENT), (["26-NOV-23 11.24.42 PM"], MOMENT),
    (["2 Sept 2024", "Mon 30 Sep 2024"], DAY), (["05JAN24"], DAY), (["JAN2024"], DAY), (["12MAR4"], TEXT),
    (["3DEC10"], TEXT), (["5 млн", "7"], TEXT), (["3Б"], TEXT), (["3 SEPT 2024"], DAY),
    (["12.\u2014", "—.50"], TEXT), (["5 кг", "7 кг"], NUMBER),
    (["2024 Jan 05 01:45:07 PM"], MOMENT), (["2024-02-29 10:00 Z", "2024-02-29 10:00:00+01"], ZONED),
    ([" 007", "12"], TEXT), (["1,5 Mio", "7"], TEXT), (["1,5 Mio", "7 Mio"], NUMBER), (["5 DR", "7"], TEXT),
    (["10:00:00", "PT30M", "00:00:00.5"], DURATION), (["2024. 08. 24.", "2023. 1. 2."], DAY), (["24. 8. 2024"], DAY),
    (["2024年7月12日", "2024年12月1日"], DAY), (["10/13/23, 6:52\u202fAM"], MOMENT), (["6:52\u202fAM"], TIME),
    ([" $ 1,234.50 ", " $ -   "], NUMBER), (["Mon 5", "Tue 7"], TEXT), (["Sun 3 kg"], TEXT),
]  # fmt: skip


def test_the_type_of_each_column(tmp_path):
    """All columns are in one table. Some require a decimal comma, and some a decimal point."""
    table = {str(index): (values * 3)[:3] for index, (values, _) in enumerate(COLUMNS)}
    source = write_column(tmp_path, ["1"] * 3, **table)
    types, _ = infer_types(list(table), source._count, ReadOptions())
    assert {name: type_.arrow for name, type_ in types.items()} == {
        str(index): type_ for index, (_, type_) in enumerate(COLUMNS)
    }
    assert read_all(source).schema.types[2:] == [type_ for _, type_ in COLUMNS]


@pytest.mark.parametrize(("values", "others", "options", "wanted"), [
    (["1.234"], ["0,5"], {}, 1234.0), (["1,234"], ["0,5"], {}, 1.234), (["1,234"], ["1,234.5"], {}, 1234.0),
    (["12,345"], ["x"], {"decimal": ","}, 12.345), (["12,345"], ["x"], {"decimal": "."}, 12345.0),
    (["12,345"], ["x"], {"thousands": ","}, 12345.0), (["1.234"], ["x"], {"thousands": "."}, 1234.0),
    (["1.234"], ["x"], {}, 1.234), (["1.234", "1.5"], ["0,5"], {}, 1.234), (["1,234"], ["1.5", "1,5"], {}, "1,234"),
    (["1.234", "5"], ["0,5", "7"], {}, 1234.0),
])  # fmt: skip
def test_other_columns_and_options_decide_about_marks(tmp_path, values, others, options, wanted):
    column, _ = read_column(tmp_path, (values * 2)[:2], ReadOptions(**options), other=(others * 2)[:2])
    assert column[0].as_py() == wanted


@pytest.mark.parametrize("n_rows", [10, 11])
def test_less_than_a_tenth_is_stray(tmp_path, n_rows):
    texts = {"1.5": NUMBER, "1,5": NUMBER, "7 kg": NUMBER, "2024-02-29": DAY, "29.02.2024": DAY, "10:00": TIME,
             "3 days": DURATION, "true": TEXT, "007": TEXT}  # fmt: skip
    source = write_column(tmp_path, ["1"] * n_rows, **{text: ["?"] + [text] * (n_rows - 1) for text in texts})
    types, _ = infer_types(list(texts), source._count, ReadOptions())
    wanted = texts if n_rows == 11 else dict.fromkeys(texts, TEXT)
    assert {text: type_.arrow for text, type_ in types.items()} == wanted
    assert all(type_.arrow == TEXT or not type_.is_sure for type_ in types.values())
    types, _ = infer_types(list(texts), source._count, ReadOptions(stray_text="text"))
    assert {type_.arrow for type_ in types.values()} == {TEXT}


def test_a_point_beside_commas_is_remembered(tmp_path):
    source = write_column(tmp_path, ["1.5", "2"], other=["0,5", "1"], whole=["3", "4"])
    source.schema(["d", "other", "whole"])
    assert source.text_formats == {"d": {"decimal": "."}, "other": {"decimal": ","}}


def test_integers_that_are_rounded(tmp_path):
    integers = {"a": 2**53, "b": 2**53 + 1, "c": -(2**53) - 1, "d": 2**64, "e": 2**64 + 1, "f": -(2**63), "g": 2**62}
    source = write_column(tmp_path, ["0"], **{name: [str(value)] for name, value in integers.items() if name != "d"})
    source.schema(source.columns)
    expected = {name for name, value in integers.items() if int(float(value)) != value}
    assert expected == {"b", "c", "e"}
    assert source.rounded == {"e"}  # the others are int64, on which the fit itself warns


@settings(max_examples=10)
@given(st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), min_size=1, max_size=30), st.sampled_from("/-."))
def test_days_and_months_by_all_rows(tmp_path_factory, days, mark):
    """Dates are read if their format is certain: with points the day is first, else a day after the 12th decides."""
    folder = tmp_path_factory.mktemp("days")
    for form in (f"%d{mark}%m{mark}%Y", f"%m{mark}%d{mark}%Y"):
        if mark == "." and form.startswith("%m"):
            continue
        column, _ = read_column(folder, [day.strftime(form) for day in days])
        is_sure = mark == "." or any(day.day > 12 for day in days)
        assert column.type == (DAY if is_sure else TEXT)
        assert not is_sure or column.to_pylist() == days


def test_tables_without_rows(tmp_path):
    found = read_all(write_column(tmp_path, []))
    assert (found.num_rows, found.schema.types) == (0, [pa.null()] * 2)
