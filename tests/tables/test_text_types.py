"""Types of columns of text: what their SQL reads is what Python reads."""

from datetime import UTC, datetime, time, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tables import text_types
from aucforest.tables.spellings import PATTERNS, as_number
from aucforest.tables.text_types import DURATION, FLAG, INTEGER, MOMENT, NUMBER, TIME, ZONED
from tests.tables.text_tables import evaluated


@given(st.lists(st.floats() | st.integers(-(2**70), 2**70).map(float), min_size=1))
def test_plain_numbers_are_those_of_python_to_the_last_bit(engine, numbers):
    texts = [spelled for x in numbers for spelled in (repr(x), f" {x:.17g} ", f"{x:.3e}", f"{x:+f}")]
    found = np.array(evaluated(engine, NUMBER.sql, texts), np.float64)
    np.testing.assert_array_equal(found, np.array(list(map(float, texts))))


def test_other_text_is_no_plain_number(engine):
    texts = ["1_000", "0x1F", "1,5", "1 kg", "", "-", "e5", "1e", "True", "1.5.2", "(1)", "\u0661", None]
    assert evaluated(engine, NUMBER.sql, texts) == [None] * len(texts)


def test_integers_are_exact(engine):
    texts = ["7", "-7", "+7", " 7 ", str(2**63 - 1), str(-(2**63)), "7.0", "7e0", "1_0", "x", None]
    wanted = [7, -7, 7, 7, 2**63 - 1, -(2**63), None, None, None, None, None]
    assert evaluated(engine, INTEGER.sql, texts) == wanted


UNITS = ["", "", "kg", " kg", "%", " €", "km/h", " m²"]


@given(st.decimals(-(10**12), 10**12, places=3), st.sampled_from(".,"), st.sampled_from(UNITS), st.sampled_from(" '’,"))
def test_spelled_numbers_are_those_of_python_to_the_last_bit(engine, number, decimal, unit, mark):
    thousands = {".": mark, ",": "." if mark == "," else mark}[decimal]
    plain = f"{abs(number):,.3f}".translate(str.maketrans({",": thousands, ".": decimal}))
    forms = ["-{}", "\u2212{}", "({})"] + ["{}-"] * (unit == "")
    texts = [(form if number < 0 else "{}").format(f"{plain}{unit}") for form in forms]
    type_ = text_types.spelled_numbers({"decimal": decimal, "unit": unit.strip()})
    assert evaluated(engine, type_.sql, texts) == [float(number)] * len(texts)
    other = text_types.spelled_numbers({"decimal": decimal, "unit": "lb"})
    assert evaluated(engine, other.sql, texts) == [None if unit else float(number)] * len(texts)


@pytest.mark.parametrize("decimal", PATTERNS)
def test_what_a_note_says_is_what_is_read(engine, decimal):
    """`as_number` writes in Python what the SQL reads."""
    texts = ["1,5", "1.5", "12,345", "1.234,5", "2K", "2.5M", "(3)", "7-", "\u22128", "1 234", "9 %", "1e3", "$5", "x"]
    found = evaluated(engine, text_types.spelled_numbers({"decimal": decimal, "unit": "%"}).sql, texts)
    assert found[-1] is found[-2] is None
    numbers = [(text, value) for text, value in zip(texts, found) if value is not None]
    assert len(numbers) >= 10
    for text, value in numbers:
        assert value == pytest.approx(float(as_number(text, decimal)), rel=1e-12), text
    in_dollars = text_types.spelled_numbers({"decimal": decimal, "unit": "$"})
    assert evaluated(engine, in_dollars.sql, [" $ -   ", "$ 1", "-", "$"]) == [0.0, 1.0, None, None]
    assert as_number(" $ -   ", decimal) == "0"


@given(st.timedeltas(timedelta(-9999), timedelta(9999)))
def test_durations_as_python_and_pandas_write_them(engine, duration):
    minus = duration < timedelta(0)
    hours, rest = divmod(abs(duration), timedelta(hours=1))
    days, clock = duration.days, duration - timedelta(duration.days)
    padded = f"{datetime.min + clock:%H:%M:%S.%f}"
    texts = [str(duration), f"{days} days {padded}", f"{days} days {'+' * minus}{padded}"]
    if hours < 10_000:
        texts.append(f"{'-' * minus}{hours}{f'{datetime.min + rest:%H:%M:%S.%f}'[2:]}")
    assert evaluated(engine, DURATION.sql, texts) == [duration // timedelta(microseconds=1)] * len(texts)


def test_other_durations(engine):
    known = {"3 days": 3 * 86400, "1 day": 86400, "05:00:00.000000001": 18000, "12:30": 45000, "-00:00:02.5": -2.5}
    assert evaluated(engine, DURATION.sql, list(known)) == [seconds * 10**6 for seconds in known.values()]
    others = ["", "25:00", "12:75:00", "days", "5 days ago", "3", ", ", "1 days 30", "-", "PT1H", "3 hours", None]
    assert evaluated(engine, DURATION.sql, others) == [None] * len(others)


def test_times_of_day_and_booleans(engine):
    texts = ["0:00", "09:05", "23:59:59", "24:00", "12:60", "12:30:15.5", "12", None]
    assert evaluated(engine, TIME.sql, texts) == [time(0), time(9, 5), time(23, 59, 59)] + [None] * 5
    words = ["1", "true", "True", "TRUE", "0", "false", "False", "FALSE", "tRue", "yes", "T", "", "2", None]
    assert evaluated(engine, FLAG.sql, words) == [True] * 4 + [False] * 4 + [None] * 6


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.timezones() | st.just(UTC)))
def test_times_are_those_of_python(engine, moment):
    """As they are written, without or with an offset, whatever the zone of the machine."""
    moment = moment.astimezone(UTC) if moment.utcoffset().seconds % 60 else moment
    plain = moment.replace(tzinfo=None)
    texts = [str(plain), plain.isoformat(), f" {plain}", plain.strftime("%Y/%m/%d %H:%M:%S.%f").rjust(26, "0")]
    texts.append(str(plain).replace(".", ","))
    assert evaluated(engine, MOMENT.sql, texts) == [plain] * 5
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    spaced = f"{plain} {str(moment)[-6:]}"
    zoned = [str(moment), moment.isoformat(), spaced, spaced.replace(".", ",")]
    assert evaluated(engine, ZONED.sql, zoned) == [microseconds] * 4
    assert evaluated(engine, ZONED.sql, texts) == [None] * 5


def test_text_with_parts_that_the_engine_ignores_is_no_date(engine):
    texts = [
        "2024-02-29 10:00 PM", "2024-02-29 10:00 Europe/Berlin", "2024-02-29 24:00", "2023-02-29", "2024-13-01",
        "2024-02-29x", "20240229", "2024-02", "0000-00-00", "10:00", None,
    ]  # fmt: skip
    assert evaluated(engine, MOMENT.sql, texts) == [None] * len(texts)


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


def test_a_format_with_a_clock_is_the_whole_text(engine):
    sql = text_types.dates_in("%d.%m.%Y %H.%M")
    assert evaluated(engine, sql, ["29.02.2024 10.30", "29.02.2024"]) == [datetime(2024, 2, 29, 10, 30), None]


def test_a_format_may_have_the_day_of_the_week(engine):
    sql = text_types.dates_in("%a, %d %b %Y")
    assert evaluated(engine, sql, ["Thu, 29 Feb 2024", "29 Feb 2024"]) == [datetime(2024, 2, 29), None]
