"""Stray text among numbers: what counts as a number, and as few; what Arrow reads is what `re` matches."""

import re

import pyarrow as pa
import pytest

from aucforest.tables.kinds import to_numbers
from aucforest.tables.texts import NUMBER_PATTERN, StrayText, text_note, unseen_note

NUMBERS = ["1", "-1", "+1.5", " .5", "5.", "1e5", "-1.5E-3 ", "inf", "-Infinity", "NaN", "1e999"]
OTHERS = ["unknown", "1,234.5", "1 2", "12 EUR", "0x10", "1_000", ".", "e5", "-", "\u0661", "1e", "١"]


def test_what_is_a_number_is_the_same_for_arrow_and_python():
    stray, of_python = StrayText(), StrayText()
    numbers = to_numbers(pa.array([*OTHERS, None, *NUMBERS]), stray, first_row=7)
    assert numbers.null_count == len(OTHERS) + 1
    assert [bool(re.match(NUMBER_PATTERN, text)) for text in [*NUMBERS, *OTHERS]] == [True] * len(NUMBERS) + [
        False
    ] * 12
    of_python.add([*OTHERS, *NUMBERS], [1] * (len(OTHERS) + len(NUMBERS)))
    assert str(stray) == str(of_python) == "12 of 23 values are no numbers ('unknown', '1,234.5', '1 2')"
    assert stray.first_row == 7


@pytest.mark.parametrize(("n_stray", "is_rare"), [(0, False), (1, True), (99, True), (100, False)])
def test_few_is_fewer_than_a_tenth(n_stray, is_rare):
    stray = StrayText()
    to_numbers(pa.array(["?"] * n_stray + ["1"] * (1000 - n_stray)), stray)
    assert stray.is_rare == is_rare


def test_batches_add_up():
    whole, parts = StrayText(), StrayText()
    column = pa.chunked_array([["1", "?", None], ["2"] * 30, ["n/k", "?"]])
    to_numbers(column, whole)
    for start in (0, 2, 20):
        to_numbers(column[start : {0: 2, 2: 20, 20: 40}[start]], parts, start)
    assert (str(whole), whole.first_row) == (str(parts), parts.first_row)
    assert str(whole) == "3 of 34 values are no numbers ('?', 'n/k')"


def test_text_is_only_text():
    assert text_note(["a", "b"], [1, 1]) is None
    assert text_note([], []) is None
    assert text_note([True, False], [1, 1]) is None
    assert text_note(["1", "2"], [1, 1]) is None  # such as codes that a frame holds as text on purpose


def test_dates_among_text():
    days = [f"{day}.12.2024" for day in range(10, 30)]
    plain = text_note(days, [5] * 20)
    advice = "convert the column to dates, or read a CSV with --date-format (in Python, date_format)"
    assert plain == f"dates such as '10.12.2024' are read as text, so that each is a category; {advice}"
    stray = text_note([*days, "soon"], [5] * 20 + [2])
    assert stray.endswith(f"; 2 of 102 values are no dates ('soon'): leave these empty; {advice}")
    iso = text_note(["2024-12-31", "2024-12-30", "soon"], [9, 9, 1])
    assert iso.endswith("; 1 of 19 values is no date ('soon'): leave it empty")
    assert text_note([*days, "soon"], [1] * 20 + [20]) is None


def test_shares_of_rows():
    assert "1 of 3,000 rows (0.033 %)" in unseen_note("a", 1, 3000, ["x"])
    assert "3,000 of 3,000 rows (100 %) have a category that training has not seen ('a', 'b', 'c', ...)" in unseen_note(
        "a", 3000, 3000, list("abcd")
    )
