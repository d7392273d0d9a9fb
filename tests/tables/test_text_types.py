"""Types of columns of text: what their SQL reads is what Python reads."""

import re
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


HOUR = 3600 * 10**6
DURATIONS = {"3 days": 72 * HOUR, "1 day": 24 * HOUR, "05:00:00.000000001": 5 * HOUR, "12:30": 12.5 * HOUR}
INTEGERS = {"7": 7, "-7": -7, "+7": 7, " 7 ": 7, str(2**63 - 1): 2**63 - 1, str(-(2**63)): -(2**63)}
CLOCKS = {"0:00": time(0), "09:05": time(9, 5), "23:59:59": time(23, 59, 59)}
FLAGS = dict.fromkeys(["1", "true", "True", "TRUE"], True) | dict.fromkeys(["0", "false", "False", "FALSE"], False)
NO_DURATIONS = ["", "25:00", "12:75:00", "days", "5 days ago", "3", ", ", "1 days 30", "-", "PT1H", "3 hours"]
NO_DATES = [
    "2024-02-29 10:00 PM", "2024-02-29 10:00 Europe/Berlin", "2024-02-29 24:00", "2023-02-29", "2024-13-01",
    "2024-02-29x", "20240229", "2024-02", "0000-00-00", "10:00",
]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "values", "others"),
    [
        (NUMBER.sql, {}, ["1_000", "0x1F", "1,5", "1 kg", "", "-", "e5", "1e", "True", "1.5.2", "(1)", "\u0661"]),
        (INTEGER.sql, INTEGERS, ["7.0", "7e0", "1_0", "x"]),
        (DURATION.sql, DURATIONS | {"-00:00:02.5": -2_500_000}, NO_DURATIONS),
        (TIME.sql, CLOCKS, ["24:00", "12:60", "12:30:15.5", "12"]),
        (FLAG.sql, FLAGS, ["tRue", "yes", "T", "", "2"]),
        (MOMENT.sql, {}, NO_DATES),  # of whose parts the engine ignores some
        # a format with a clock is the whole text, and a format may have the day of the week
        (text_types.dates_in("%d.%m.%Y %H.%M"), {"29.02.2024 10.30": datetime(2024, 2, 29, 10, 30)}, ["29.02.2024"]),
        (text_types.dates_in("%a, %d %b %Y"), {"Thu, 29 Feb 2024": datetime(2024, 2, 29)}, ["29 Feb 2024"]),
    ],
)
def test_text_that_is_of_a_type_and_other_text(engine, sql, values, others):
    assert evaluated(engine, sql, [*values, *others, None]) == [*values.values(), *[None] * (len(others) + 1)]


UNITS = ["", "", "kg", " kg", "%", " €", "km/h", " m²"]
MARKS = ["", *" \u00a0\u2007\u2009\u202f'’,"]


@given(st.decimals(-(10**12), 10**12, places=3), st.sampled_from(".,"), st.sampled_from(UNITS), st.sampled_from(MARKS))
def test_spelled_numbers_are_those_of_python_to_the_last_bit(engine, number, decimal, unit, mark):
    """With any mark between thousands, either decimal mark, and a sign before or behind; also as Python reads them."""
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
