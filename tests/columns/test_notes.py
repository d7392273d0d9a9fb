"""Notes on columns are the same in frames of all libraries."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.columns.notes import suspicious_columns, unseen_categories

N = 1500
NUMBERS = np.random.default_rng(0).normal(size=N)
# Columns by the note that they get, "" for none.
COLUMNS = {
    "": {
        "number": NUMBERS, "rounded": np.round(NUMBERS), "coded": np.arange(N) // 2, "late": [0.0] * (N - 1) + [1.0],
        "sometimes": [1.0] * (N - 1) + [None], "word": ["a", "b"] * (N // 2),
        "two words": [f"{i}" for i in range(N - 1)] + ["0"], "flag": [True, False] * (N // 2),
        "a tenth is text": ["unknown", *(["1.5", "2.5", "3", "4", "5", "6", "7", "8", "9"])] * (N // 10),
    },
    "no values": {"nothing": [None] * N, "not a number": [np.nan] * N},
    "the same value": {"one": [1] * N, "same word": ["a"] * N, "same flag": [True] * N},
    "each is a category: write": {"rate": ["12 %", "-3.5%", None] * (N // 3)},
    "with a decimal point, but": {"visits": [f"{1000 + i:,}" for i in range(N)]},
    "differ only by case and spaces": {"answer": ["Yes", "yes ", "no"] * (N // 3)},
    "1 of 1,500 values is no number ('unknown')": {"amount": ["unknown", *(f"{i % 7}.5" for i in range(N - 1))]},
    "300 of 1,500 values are no numbers ('?')": {"half": ["?" if i % 5 == 0 else f"{i}" for i in range(N)]},
    "dates such as": {"words": ["3 March 2024", "Mar 4, 2024", None] * (N // 3)},
    "distinct": {
        "id": range(N), "key": [f"k{i}" for i in range(N)], "gaps": [None, *range(N - 1)],
        "gaps in text": [None, *(f"k{i}" for i in range(N - 1))],
    },
}  # fmt: skip


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame])
def test_which_columns_get_a_note(library):
    for word, wanted in COLUMNS.items():
        for name, values in wanted.items():
            notes = suspicious_columns(library({name: pa.array(values, from_pandas=False).to_pylist()}))
            assert [word in note and repr(name) in note for note in notes] == ([True] if word else []), (name, notes)


def test_one_note_for_many_columns():
    (note,) = suspicious_columns(pd.DataFrame({name: range(30) for name in ("a", "b c")}), drop=True)
    identifiers = "columns 'a', 'b c': every value is distinct, as in an identifier; consider --drop 'a,b c'"
    assert note == f"{identifiers}, unless the first digits or characters have a meaning"
    (note,) = suspicious_columns(pd.DataFrame({f"c{i}": [np.nan] * 30 for i in range(12)}))
    assert note.startswith("columns 'c0', 'c1', ")
    assert note.endswith("'c9' and 2 more: no values, never used in a split")


def test_few_rows_have_no_identifiers():
    for n in (19, 20):
        assert len(suspicious_columns(pd.DataFrame({"id": range(n), "word": [f"k{i}" for i in range(n)]}))) == n - 19


def test_columns_that_separate_the_classes_are_named_with_their_auc():
    random = np.random.default_rng(0)
    y = random.random(400) < 0.2
    close = y + random.normal(scale=0.3, size=400)
    leaks = {
        "number": np.where(y, 10.0, 1.0) + random.random(400), "reversed": np.where(y, 1.0, 10.0) + random.random(400),
        "flag": y, "word": np.where(y, "won", random.choice(["lost", "open"], size=400)),
        "only if positive": np.where(y, random.random(400), np.nan),
    }  # fmt: skip
    others = {
        "close": close, "key": [f"k{i}" for i in range(400)], "word": np.where(close > 0.5, "high", "low"),
        "one": np.ones(400),
    }  # fmt: skip
    for library in (pd.DataFrame, lambda columns: pl.DataFrame(columns, strict=False)):
        for name, values in leaks.items():
            sentence = f"{name!r} alone separates the classes (ROC AUC 1.0000): is it known at prediction time?"
            assert suspicious_columns(library({name: values}), y.astype(int)) == [sentence]
        assert not any("separate" in note for note in suspicious_columns(library(others), y.astype(int)))
    (both,) = suspicious_columns(np.column_stack([leaks["number"], leaks["flag"]]), y.astype(int))
    assert both.startswith("columns 'feature_0' (ROC AUC 1.0000), 'feature_1' (ROC AUC 1.0000) each separate")


def test_a_leak_of_three_classes_and_too_few_rows_to_tell():
    y = np.arange(90) % 3
    frame = pd.DataFrame({"code": y * 1.5, "word": np.array(["a", "b", "c"])[y], "half": y == 1})
    (note,) = suspicious_columns(frame, y)
    assert [word in note for word in ("'code'", "'word'", "'half'")] == [True, True, False]
    assert suspicious_columns(frame[["code"]], np.r_[np.zeros(86, int), np.ones(4, int)]) == []


def test_notes_on_some_rows_of_a_table_say_so():
    frame = pd.DataFrame({"site": ["a"] * 30})
    (note,) = suspicious_columns(frame, n_rows=1000)
    assert note == "in 30 of 1,000 rows, column 'site': the same value in every row"
    assert suspicious_columns(frame, n_rows=30) == suspicious_columns(frame)


def test_unseen_categories_are_counted_and_named():
    frame = pd.DataFrame({"a": ["x", "y", None, "z", "w", "v", "v"], "b": range(7)})
    known = {0: np.array(["x", "y"], dtype=object), 1: np.arange(7)}
    (note,) = unseen_categories(frame, known, {})
    start = "column 'a': 4 of 7 rows (57 %) have a category that training has not seen"
    assert note == f"{start} ('z', 'w', 'v'); it counts as a missing value"
