"""Integers that float64 rounds are found in all types of tables, and other values are not taken for them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from aucforest import AUCForestClassifier
from aucforest.columns.integers import ROUNDED, is_rounded
from aucforest.distributed import fit_out_of_core
from aucforest.inspection import column_notes
from tests.cli.data import succeed
from tests.tables.text_tables import write_table

SMALL, LARGE = np.arange(60), np.arange(60) + 2**60 + 1
UNSIGNED = np.arange(60, dtype=np.uint64) + np.uint64(2**63)
Y = np.arange(60) % 3 == 0


@given(st.integers(0, 2**64 - 1), st.integers(0, 20), st.sampled_from([-1, 1]))
def test_a_number_is_rounded_if_python_says_so(size, n_zeros, sign):
    value = sign * (size >> n_zeros << n_zeros)
    expected = int(float(value)) != value
    assert is_rounded(np.array([value], dtype=object)) == expected
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            assert is_rounded(np.array([1, value], dtype=dtype)) == expected


def test_other_values_are_not_rounded():
    values = [1.5e300, np.nan, None, pd.NA, "9007199254740993", True, 2**53, float("inf"), 1j]
    for array in (np.array(values, dtype=object), np.array([], dtype=np.int64), np.array([2**63 - 2**10, -(2**63)])):
        assert not is_rounded(array)
    assert is_rounded(np.array([10**400], dtype=object))


@pytest.mark.parametrize(
    ("X", "name"),
    [
        (pd.DataFrame({"a": SMALL, "key": UNSIGNED}), "column 'key'"),
        (pd.DataFrame({"a": SMALL, "key": LARGE}).astype("Int64"), "column 'key'"),
        (pl.DataFrame({"word": ["9007199254740993", "y"] * 30, "key": LARGE}), "column 'key'"),
        (pl.DataFrame({"a": SMALL, "key": pl.Series(LARGE).cast(pl.Int128)}), "column 'key'"),
        (pa.table({"a": SMALL, "key": [None, *LARGE[1:].tolist()]}), "column 'key'"),
        (np.column_stack([SMALL, LARGE]), "column 1"), (csr_array(np.column_stack([SMALL, LARGE])), "column 1"),
    ],
    ids=["pandas", "nullable", "polars", "int128", "arrow", "matrix", "sparse"],
)  # fmt: skip
def test_a_fit_warns_with_the_name_of_the_column(X, name):
    with pytest.warns(UserWarning, match=rf"^X: {name}: integers above 2\*\*53 are rounded"):
        forest = AUCForestClassifier(2, random_state=0).fit(X, Y)
    forest.predict_proba(X)
    if isinstance(X, pd.DataFrame):
        AUCForestClassifier(2, categorical_features=["key"]).fit(X, Y)
    labels = pl.Series(1 * Y).cast(pl.Int128)
    assert AUCForestClassifier(2).fit(SMALL[:, None], labels).classes_.tolist() == [0, 1]


def test_rounded_integers_are_noted_in_memory_and_in_batches(tmp_path):
    """The fits are in memory and out of core. A CSV may have integers that no Arrow type represents."""
    sentence = f"column 'key': {ROUNDED}"
    frame = pd.DataFrame({"a": SMALL / 7, "key": UNSIGNED, "label": np.where(Y, "yes", "no")})
    assert sentence in column_notes(frame[["a", "key"]])
    for rows, name in ((frame, "t.csv"), (frame, "t.parquet"), (frame.assign(key=LARGE), "int64.csv")):
        write_table(rows, tmp_path / name)
    for name, options in (("t.csv", ()), ("t.csv", ("--memory-limit", "1GB")), ("int64.csv", ()), ("t.parquet", ())):
        fitted = succeed("fit", tmp_path / name, "--target", "label", "--trees", 30, "--out", tmp_path / "m", *options)
        said = [line.partition(": ")[2].removeprefix("X: ") for line in fitted.stderr.splitlines()]
        assert said.count(sentence) == 1, (name, options, fitted.stderr)
        assert "column 'key': the same value in every row, never used in a split" not in fitted.stderr
    with pytest.warns(UserWarning, match="integers above"):
        fit_out_of_core(AUCForestClassifier(2, random_state=0), tmp_path / "t.parquet", "label")
