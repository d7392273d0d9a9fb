"""Numbers as people write them: what is one, by which decimal mark, and the same for Python and for the engine."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tables import number_texts
from aucforest.tables.database import connect
from aucforest.tables.number_texts import PATTERNS, PLAIN, Readings, as_number, count_readings, is_few, is_number

SPACES = " \u00a0\u2007\u2009\u202f"
PLAIN_NUMBERS = ["1", "-1", "+1.5", " .5", "5.", "1e5", "-1.5E-3 ", "inf", "-Infinity", "NaN", "1e999", "\t1\n"]
SPELLED = {
    "1,234.5": 1234.5, "1 234.5": 1234.5, "1'234’567": 1234567.0, "12,34,567": 1234567.0, "\u00a3 1,000": 1000.0,
    "$-3.5": -3.5, "-$3.5": -3.5, "- 3": -3.0, "\u22123": -3.0, "3-": -3.0, "3 \u2013": -3.0, "(3.5)": -3.5,
    "US$ 7": 7.0, "7 km/h": 7.0, "7.5%": 7.5, "5 m²": 5.0, "2.5K": 2500.0, "2.5k": 2500.0, "3M €": 3e6,
    "1B": 1e9, "1e3 kg": 1000.0, "12A": 12.0, "Rs 9": 9.0,
}  # fmt: skip
OTHERS = [
    "", "-", ".", "e5", "1e+", "1,2,3", "1.2.3", "1_000", "0x10", "--1", "-1-", "(-1)", "1,23,4", "12 34",
    "0 123", "01,234,567", "1,234e5,6", "10:30", "5-6", "18+", "<5", "\u0661", "1 234 56", "1 kg extra", "€",
    "1\u000b2",
]  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    with connect() as connection:
        yield connection


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
    st.sampled_from("0123456789" * 2 + ".,,'’-+()eEkKMB%€$/µ²\u2212\u2013 \u00a0\u202f\t\n\r\v\x85RsEURg"), max_size=12
)


@given(st.lists(TEXTS, min_size=20, max_size=200))
def test_patterns_mean_the_same_to_python_and_to_the_engine(engine, texts):
    patterns = [*PATTERNS.values(), number_texts.MINUS, number_texts.DIGITS, number_texts.FACTOR]
    for pattern in patterns:
        (found,) = engine.execute("SELECT [regexp_matches(t, ?) FOR t IN ?::VARCHAR[]]", [pattern, texts]).fetchone()
        assert found == [re.search(pattern, text) is not None for text in texts]
    left = f"[regexp_replace(t, '{number_texts.NO_UNIT.replace(chr(39), chr(39) * 2)}', '', 'g') FOR t IN ?::VARCHAR[]]"
    (found,) = engine.execute(f"SELECT {left}", [texts]).fetchone()
    assert found == [re.sub(number_texts.NO_UNIT, "", text) for text in texts]


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
        (["1", "2"], "."),
        (["1,234", "5"], ""),
        (["1.234", "5"], ""),
        (["1,234", "1.5"], "."),
        (["1,234", "1,234,567"], "."),
        (["1.234", "1,5"], ","),
        (["1.234", "0,123"], ","),
        (["1.234,5"], ","),
        (["1 234", "5"], "."),
        (["1.5", "1,5"], None),
        (["1 kg", "2 g"], None),
        (["12A", "7A"], None),
        (["12a", "7a"], "."),
        (["1", "x"], None),
    ],
)
def test_the_decimal_mark_of_a_column(texts, decimal):
    readings = count_readings(texts, [1] * len(texts))
    assert readings.decimal(0.0) == decimal
    if decimal == "":
        assert [readings.decimal(0.0, given) for given in ".,"] == [".", ","]
    elif decimal is not None:
        assert [readings.decimal(0.0, given) for given in ".,"] == [decimal] * 2


def test_counts_are_those_of_the_rows():
    readings = count_readings(["1,5", "1", "x", "1.234 kg", "1,234"], [5, 4, 3, 2, 1])
    assert readings[:5] == (15, 7, 12, 7, 3)
    assert sorted(readings.units) == ["", "kg"]
    assert (readings.n_read_any, readings.is_sure) == (12, ",")
    assert readings.decimal(0.2) is None
    assert readings.decimal(0.21) == ","


@pytest.mark.parametrize(("n_stray", "few"), [(0, True), (1, True), (99, True), (100, False)])
def test_few_is_fewer_than_a_tenth(n_stray, few):
    assert is_few(n_stray, 1000, 0.1) == few
    assert is_few(n_stray, 1000, 0.0) == (n_stray == 0)


def test_no_values_have_no_unit_that_differs():
    assert Readings().has_unit
    assert not Readings(units=["kg", "g"]).has_unit


def test_long_texts_take_no_time():
    for text in ("1 " * 50_000, "1," * 24, "1 " * 25, " " * 49 + "x", "(1,111" + ",111" * 10):
        assert not is_number(f"{text}x")
