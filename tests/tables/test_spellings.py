"""Numbers in other spellings: what a note says, and that what it says works when it is done."""

import ast
import re

import numpy as np
import pyarrow as pa
import pytest

from aucforest.tables.kinds import to_numbers
from aucforest.tables.spellings import read_spelling
from aucforest.tables.texts import StrayText, text_note

RANDOM = np.random.default_rng(0)
# Amounts from 1.01 to some 100,000, of which some are below 1,000.
AMOUNTS = [round(float(x), 2) + 1.01 for x in RANDOM.lognormal(7, 2, 60)]
WHOLE = [int(x) for x in RANDOM.lognormal(9, 1, 60)]


def swapped(text):
    """Exchange points and commas."""
    return text.translate(str.maketrans(",.", ".,"))


# Spellings of a number, and what they are called.
SPELLINGS = {
    "with commas between thousands": lambda x: f"{x:,.2f}",
    "with points between thousands": lambda x: swapped(f"{x:,.2f}"),
    "with a decimal comma": lambda x: swapped(f"{x:.2f}"),
    "with spaces": lambda x: f"{x:,.2f}".replace(",", " "),
    "with spaces or": lambda x: f"{x:,.2f}".replace(",", "\u00a0"),
    "with spaces or apostrophes": lambda x: swapped(f"{x:_.2f}").replace("_", "\u202f"),
    "or apostrophes": lambda x: f"{x:,.2f}".replace(",", "'"),
    "with 'kg' as unit": lambda x: f"{x:.2f} kg",
    "with 'K' as unit": lambda x: f"{x:.2f}K",
    "with a currency": lambda x: f"${x:,.2f}",
    "with a minus behind": lambda x: f"{-x:.2f}-" if x < 0 else f"{x:.2f}",
    "with a minus behind ": lambda x: swapped(f"{-x:,.2f}-" if x < 0 else f"{x:,.2f}"),
    "with a minus sign that is not": lambda x: f"{x:.2f}".replace("-", "\u2212"),
    "in parentheses": lambda x: f"({-x:.2f})" if x < 0 else f"{x:.2f}",
}


def note_on(texts):
    """Return the note on a column."""
    distinct = list(dict.fromkeys(texts))
    return text_note(distinct, [texts.count(text) for text in distinct])


def obeyed(note):
    """Return what a note says to write for some texts."""
    pairs = re.findall(r"""(-?[0-9][0-9.]*) for ('[^']*'|"[^"]*")""", note)
    return {ast.literal_eval(text): float(number) for number, text in pairs}


@pytest.mark.parametrize("share", [0.03, 0.3, 0.97], ids=["few", "some", "most"])
@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("order", [1, -1], ids=["forwards", "backwards"])
def test_the_note_says_what_to_write(name, share, order):
    """Whatever share of the numbers is negative, and in any order of the rows."""
    numbers = [-x if i < share * len(AMOUNTS) else x for i, x in enumerate(AMOUNTS)][::order]
    spell = SPELLINGS[name]
    spelled = {spell(x): x for x in numbers}
    note = note_on([spell(x) for x in numbers])
    assert name.strip() in note, note
    said = obeyed(note)
    assert len(said) > 0, note
    for text, number in said.items():
        assert number == pytest.approx(spelled[text], abs=1e-9), note
    written = [f"{x:.2f}" for x in numbers]
    assert text_note(written, [1] * len(written)) is None


def test_both_readings_of_a_comma_are_named():
    """Until a text can be read in one way only."""
    texts = [f"{x:,}" for x in WHOLE]
    first = next(text for text in texts if "," in text)
    number, fraction = first.replace(",", ""), first.replace(",", ".")
    note = f"write {number} for '{first}' if commas separate thousands, but {fraction} if they mark decimals"
    assert note_on(texts) == f"numbers with commas are read as text: {note}"
    assert "with commas between thousands" in note_on([*texts, "1,234,567"])
    assert "with commas between thousands" in note_on([*texts, "12.5"])
    assert "with a decimal comma" in note_on([*texts, "12,5"])
    assert "with a decimal comma" in note_on([*texts, "0,123"])
    both = note_on([*texts, "7.654"])
    assert f"write {number} for '{first}' and 7.654 for '7.654' if commas separate" in both
    assert f"but {fraction} and 7654 if they mark" in both
    points = note_on([f"{swapped(text)} €" for text in texts])
    assert f"{number} for '{swapped(first)} €' if points separate thousands, but {fraction} if they mark" in points
    several = note_on([*texts, "1,234.5", "0,5"])
    assert several == "numbers in several spellings are read as text: write 1234.5 for '1,234.5' and 0.5 for '0,5'"


def test_units_that_are_not_the_same_are_not_left_out():
    factors = note_on(["950", *(f"{x}.5{'KM'[x % 2]}" for x in range(40))])
    wanted = "numbers with 'K', 'M' as unit are read as text: write the numbers alone, all in the same unit"
    assert factors == f"{wanted}; codes can stay text"
    assert "all in the same unit" in note_on(["0.5", "50 %"])


def test_other_values_among_them():
    texts = [f"{x:,.2f}" for x in AMOUNTS]
    assert note_on([*texts, "n/k"]).endswith("; 1 of 61 values is no number ('n/k'): leave it empty")
    assert note_on([*texts, *(["n/k"] * 40)]).endswith("; 40 of 100 values are no numbers ('n/k'): leave these empty")
    assert note_on([*texts[:19], *(["n/k"] * 19)]) is None


@pytest.mark.parametrize(
    "texts",
    [
        ["1,2,3", "4,5"], ["1.2.3", "10.0.12"], [f"{x}-{x + 5}" for x in range(50)], ["18+", "21+", "12"],
        [f"{x}A" for x in range(50)], [f"{x} {unit}" for x in range(5) for unit in "abcdef"], ["10:30", "9:15"],
        ["12-3", "--1", "-1-", "(-1)"], ["1,23,4", "12 34", "0 123", "01,234,567"], ["1,234e5,6", "1.2e"],
    ],
    ids=str,
)  # fmt: skip
def test_what_are_no_numbers(texts):
    assert note_on(texts) is None


def test_long_texts_take_no_time():
    for text in ("1 " * 50_000, "1," * 24, "1 " * 25, " " * 49 + "x", "(1,111" + ",111" * 10):
        assert read_spelling(f"{text}x") is None


def test_stray_text_that_is_a_number_is_not_to_be_left_empty():
    stray = StrayText()
    to_numbers(pa.array(["n/k", "?", "-", "x", "1,234.5", *map(str, range(90))]), stray)
    assert str(stray) == "5 of 95 values are no numbers ('n/k', '?', '-')"
    assert stray.advice == "; write numbers such as '1,234.5' with digits and a decimal point alone"
