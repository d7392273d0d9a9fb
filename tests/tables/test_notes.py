"""Notes on columns: which get one, in frames of any library and in arrow tables."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.tables.notes import column_notes

N = 1500


def columns():
    """Return columns by the note that each must get, "" for none."""
    numbers = np.random.default_rng(0).normal(size=N)
    return {
        "": {
            "number": numbers,
            "rounded": np.round(numbers),
            "coded": np.arange(N) // 2,
            "late": [0.0] * (N - 1) + [1.0],
            "sometimes": [1.0] * (N - 1) + [None],
            "word": ["a", "b"] * (N // 2),
            "two words": [f"{i}" for i in range(N - 1)] + ["0"],
            "flag": [True, False] * (N // 2),
            "list": ["1,2,3", "4,5"] * (N // 2),
            "pair": ["1,5", "x"] * (N // 2),
            "codes": ["A$", "12 %"] * (N // 2),
        },
        "no values": {"nothing": [None] * N, "not a number": [np.nan] * N},
        "the same value": {"one": [1] * N, "same word": ["a"] * N, "same flag": [True] * N},
        "percent sign": {"fee": [f"€ {i}.50" for i in range(N)], "rate": ["12 %", "-3.5%", None] * (N // 3)},
        "decimal comma": {"price": [f"{i},50" for i in range(N)], "euro": ["1.234,5", "-7", None] * (N // 3)},
        "distinct": {
            "id": range(N),
            "key": [f"k{i}" for i in range(N)],
            "gaps": [None, *range(N - 1)],
            "gaps in text": [None, *(f"k{i}" for i in range(N - 1))],
        },
    }


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame])
def test_which_columns_get_a_note(library):
    for word, wanted in columns().items():
        for name, values in wanted.items():
            notes = column_notes(library({name: pa.array(values, from_pandas=False).to_pylist()}))
            assert [word in note and repr(name) in note for note in notes] == ([True] if word else []), (name, notes)


def test_categories_of_arrow_and_pandas():
    words = pd.Series([f"{i},5" for i in range(30)], dtype="category")
    assert "decimal comma" in column_notes(pd.DataFrame({"a": words}))[0]
    assert "distinct" in column_notes(pa.table({"a": pa.array([f"k{i}" for i in range(30)]).dictionary_encode()}))[0]


def test_one_note_for_many_columns():
    ids = pd.DataFrame({name: range(30) for name in ("a", "b c")})
    assert column_notes(ids) == [
        "columns 'a', 'b c': every value is distinct, as in an identifier; consider --drop 'a,b c'"
    ]
    empty = pd.DataFrame({f"c{i}": [np.nan] * 30 for i in range(12)})
    (note,) = column_notes(empty)
    assert note.startswith("columns 'c0', 'c1', ")
    assert note.endswith("'c9' and 2 more: no values, never used in a split")


def test_few_rows_have_no_identifiers():
    assert column_notes(pd.DataFrame({"id": range(19), "word": [f"k{i}" for i in range(19)]})) == []
    assert len(column_notes(pd.DataFrame({"id": range(20), "word": [f"k{i}" for i in range(20)]}))) == 1
