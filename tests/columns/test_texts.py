"""Notes on columns of text that are probably numbers or dates."""

import ast

import numpy as np
import pytest

from aucforest.columns.texts import StrayText, stray_note, text_note, unseen_note

# Amounts from 1.01 to about 100,000. Some are below 1,000, so that they have no mark between thousands.
AMOUNTS = [round(float(x), 2) + 1.01 for x in np.random.default_rng(0).lognormal(7, 2, 60)]


SWAPPED = str.maketrans(",.", ".,")
# Spellings of a number.
SPELLINGS = [
    lambda x: f"{x:,.2f}", lambda x: f"{x:,.2f}".translate(SWAPPED), lambda x: f"{x:.2f}".translate(SWAPPED),
    lambda x: f"{x:,.2f}".replace(",", "\u202f"), lambda x: f"{x:.2f} kg", lambda x: f"${x:,.2f}",
    lambda x: f"{-x:.2f}-" if x < 0 else f"{x:.2f}", lambda x: f"({-x:.2f})" if x < 0 else f"{x:.2f}",
    lambda x: f"{x:.2f}".replace("-", "\u2212"),
]  # fmt: skip


def note_on(texts):
    distinct = list(dict.fromkeys(texts))
    return text_note(distinct, [texts.count(text) for text in distinct])


@pytest.mark.parametrize("share", [0.03, 0.3, 0.97])
@pytest.mark.parametrize("spell", SPELLINGS)
def test_the_note_says_what_to_write(spell, share):
    """The note does not depend on the proportion of negative numbers."""
    numbers = [-x if i < share * len(AMOUNTS) else x for i, x in enumerate(AMOUNTS)]
    spelled, note = {spell(x): x for x in numbers}, note_on([spell(x) for x in numbers])
    start, _, written = note.partition(" are read as text, so that each is a category: write ")
    assert start.startswith("numbers such as "), note
    assert float(written) == pytest.approx(spelled[ast.literal_eval(start.removeprefix("numbers such as "))], abs=1e-9)
    assert note_on([f"{x:.2f}" for x in numbers]) is None


def test_both_readings_of_a_comma_are_named():
    texts = [f"{x:,}" for x in range(1001, 1050)]
    readings = "'1,001' is 1001 with a decimal point, but 1.001 with a decimal comma: for a file, set --decimal"
    assert readings in note_on(texts)
    assert note_on([*texts, "12.5"]).endswith("write 1001")
    assert note_on([*texts, "12,5"]).endswith("write 1.001")


def test_other_values_among_numbers():
    texts = [f"{x:,.2f}" for x in AMOUNTS]
    assert note_on([*texts, "n/k"]).endswith("; 1 of 61 values is no number ('n/k'): leave it empty")
    assert note_on([*texts, *(["n/k"] * 40)]).endswith("; 40 of 100 values are no numbers ('n/k'): leave these empty")
    assert note_on([*texts[:19], *(["n/k"] * 19)]) is None
    assert note_on([*[str(x) for x in range(20)], *(["?"] * 90)]).startswith(
        "90 of 110 values are no numbers ('?'), so"
    )
    assert note_on([*[str(x) for x in range(20)], *(["?", "-", "*", "x"] * 9)]) is None
    assert "some a decimal comma (such as '12,5'): write" in note_on([*(f"{x}.25" for x in range(20)), "12,5", "9"])
    others = ["1.5 kg", "2.5 g"], ["1.2.3", "10.0.12"], ["0-5", "6-10", "18+"], ["1,2,3", "4,5"], ["A$", "12 %"]
    for values in (*others, [f"{x}A" for x in range(50)]):
        assert note_on(values) is None


def test_sentences_on_stray_text():
    stray = StrayText(5, 1095, ["n/k", "?", "-", "1,234.5"])
    assert str(stray) == "5 of 1,095 values are no numbers ('n/k', '?', '-')"
    option = "; --stray-text text (in Python, stray_text='text') reads the column as text"
    note = f"column 'a': {stray}, read as missing{option}"
    assert stray_note("a", stray, can_be_text=True) == note
    one = StrayText(1, 9, ["1,5"], "date")
    assert str(one) == "1 of 9 values is no date ('1,5')"
    assert stray_note("a", one, can_be_text=False) == f"column 'a': {one}, read as missing"


def test_numbers_of_several_units_are_named():
    texts = [f"{number} {'MB' if number % 3 else 'KB'}" for number in range(30)]
    note = "numbers with the units 'KB', 'MB' are read as text, so that each is a category: use one unit"
    assert text_note(texts, [1] * 30) == note
    for unit, advice in ((" DR", "write them alike"), (".5 C", "leave it out")):
        values = [f"{number}{unit}" if number < 29 or unit == ".5 C" else str(number) for number in range(30)]
        wanted = note.replace("units 'KB', 'MB'", f"unit {unit[-2:].strip()!r}").replace("use one unit", advice)
        assert text_note(values, [1] * 30) == wanted
    ordinals = [f"{number}{('th', 'st', 'ND')[number % 3]}" for number in range(30)]
    flats = [f"{number}{'ABC'[number % 3]}" for number in range(30)]
    for values in (texts[:19], ordinals, flats, [f"{number} {'abcdef'[number % 6] * 2}" for number in range(30)]):
        assert text_note(values, [1] * len(values)) is None


def test_text_is_only_text():
    """Text of plain numbers, which may be codes, gets no note."""
    for values in (["a", "b"], [], [True, False], ["1", "2"]):
        assert text_note(values, [1] * len(values)) is None


def test_dates_among_text():
    days = [f"{day}.12.2024" for day in range(10, 30)]
    note = "dates such as '10.12.2024' are read as text, so that each is a category"
    advice = "; convert the column to dates, or read a CSV with --date-format (in Python, date_format)"
    assert text_note(days, [5] * 20) == note + advice
    stray = "; 2 of 102 values are no dates ('soon'): leave these empty"
    assert text_note([*days, "soon"], [5] * 20 + [2]) == note + stray + advice
    iso = text_note(["2024-12-31", "2024-12-30", "soon"], [9, 9, 1])
    assert iso.endswith("; 1 of 19 values is no date ('soon'): leave it empty")
    assert text_note([*days, "?"], [1] * 20 + [40]).startswith(note)
    assert text_note([*days, "UK"], [1] * 20 + [40]) is None
    assert text_note([*days[1:], "soon"], [1] * 19 + [19]) is None
    offsets = text_note([f"2024-12-{day}T10:00{'Z' * (day % 2)}" for day in range(10, 30)], [1] * 20)
    assert offsets.endswith("; some times have an offset from UTC and some have none: write all alike")
    for other in ("Jan-24", "05Jan24", "Fri Jan 05 13:45:07 UTC 2024", "20240105T134507Z"):
        assert text_note([other], [1]) == note.replace(days[0], other) + advice
    assert (
        text_note(["Abc-24", "05ABC24", "ABC12", "Room 1001", "Golf 2015", "40MAR12", "20249999T134507"], [1] * 7)
        is None
    )
    named = text_note(["Montag, 30. Dez. 2024", "Dienstag, 31. Dez. 2024", "Thu 2 Jan 2025"], [1, 1, 1])
    assert named.startswith("dates such as 'Montag, 30. Dez. 2024' are read as text")
    for codes in (["Version 1.2.34", "Version 1.3.10"], ["Level 2 Room 14", "Level 3 Room 22"], ["Lot 12-03-04"]):
        assert text_note(codes, [1] * len(codes)) is None


def test_percentages_of_rows():
    assert "319 of 320 rows (99.69 %)" in unseen_note("a", 319, 320, ["x"])
    assert "1 of 3,000 rows (0.033 %)" in unseen_note("a", 1, 3000, ["x"])
    all_rows = "3,000 of 3,000 rows (100 %) have a category that training has not seen ('a', 'b', 'c', ...)"
    assert all_rows in unseen_note("a", 3000, 3000, list("abcd"))
