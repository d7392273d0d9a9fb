"""Labels that are read batch by batch are those of the whole column."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tables.labels import LabelReader, parse_labels, read_weights
from aucforest.tables.sources import open_source

TABLE = open_source(pa.table({"y": []}))


def read(*parts, positive=None):
    reader = LabelReader(TABLE, "y", positive)
    for part in parts:
        reader.add(part)
    return reader.finish()


LABELS = st.sampled_from([
    (["no", "yes", "maybe"], pa.string()), (["no", "yes", "maybe"], pa.string_view()),
    (["no", "yes", "maybe"], pa.dictionary(pa.int8(), pa.string())), ([True, False], pa.bool_()),
    ([3, -1, 7], pa.int16()), ([0.0, 4.0, -2.0], pa.float32()),
    ([np.float16(0), np.float16(4), np.float16(-2)], pa.float16()),
    ([Decimal(0), Decimal(4), Decimal(-2)], pa.decimal128(5, 0)),
])  # fmt: skip


@given(LABELS, st.lists(st.integers(0, 2), min_size=2, max_size=30), st.integers(0, 30), st.booleans())
def test_batches_give_the_same_as_the_whole_column(kind, indices, cut, chunked):
    values, type_ = kind
    labels = [values[index % len(values)] for index in indices]
    if len(set(labels)) == 1:
        return
    parts = [pa.array(part, type_) for part in (labels[:cut], labels[cut:])]
    classes, numbers = read(pa.chunked_array(parts)) if chunked else read(*parts)
    expected = np.unique(labels, return_inverse=True)
    assert classes.tolist() == expected[0].tolist()
    assert np.array_equal(numbers, expected[1])
    assert numbers.dtype == np.uint16
    assert classes.dtype.kind == {str: "U", bool: "b"}.get(type(labels[0]), "i")


def test_labels_of_text_may_have_a_plus_sign():
    assert parse_labels(pa.array(["+1", "-1", " 2"])).to_pylist() == [1, -1, 2]
    assert parse_labels(pa.array(["+1", "007"])).to_pylist() == ["+1", "007"]


@pytest.mark.parametrize(("labels", "positive", "expected"), [
    (["a", "b", "c", "b"], "b", [0, 1, 0, 1]), ([1, 2, 3, 2], 2, [0, 1, 0, 1]), ([1, 2, 3, 2], "2", [0, 1, 0, 1]),
    ([False, True, False, True], True, [0, 1, 0, 1]), ([False, True, False, True], "True", [0, 1, 0, 1]),
    ([3, 18, 20, 18], ">=18", [0, 1, 1, 1]), ([3, 18, 20, 18], "> 18", [0, 0, 1, 0]),
    ([0.5, 18.0, -2.0], "<1e0", [1, 0, 1]),
    (["<18", ">=18", "<18"], ">=18", [0, 1, 0]),  # compared as strings, because the column has strings
    ([1.0, float("inf"), 2.0], ">=inf", [0, 1, 0]),
    (np.arange(2**17), "7", (np.arange(2**17) == 7).tolist()),  # any number of other labels
])  # fmt: skip
def test_one_label_against_the_others(labels, positive, expected):
    classes, numbers = read(pa.array(labels[:1]), pa.array(labels[1:]), positive=positive)
    assert (classes.tolist(), numbers.tolist()) == ([False, True], expected)


@pytest.mark.parametrize("positive", ["true", "True", "TRUE"])
def test_a_column_of_booleans_has_one_pair_of_names(positive):
    reader = LabelReader(TABLE, "y", positive)
    reader.add(pa.array([True, False]))
    assert (reader.finish()[1].tolist(), reader.names().tolist()) == ([1, 0], ["false", "true"])


@pytest.mark.parametrize(("parts", "positive", "sentence"), [
    ([[1, 2], [1, None, None]], None, "column 'y' has 2 missing labels, the first in the Table, row 4"),
    ([[1.0, 2.0], [float("nan")]], None, "has 1 missing labels, the first in the Table, row 3"),
    ([[float("inf"), 0.0, 1.0]], None, "column 'y' has numbers such as inf, not class labels"),
    ([[1.0, 4.0, 2.5]], None, "such as 2.5, not class labels; --positive '>=2.5' (in Python, positive) makes two"),
    ([[Decimal("0.5"), Decimal(2)]], None, "numbers such as 0.5, not class labels; --positive '>=2.0' (in Python"),
    ([[0.5, 9.0, 7.0, 8.0]], None, "such as 0.5, not class labels; --positive '>=8.0' (in Python, positive) makes"),
    ([[1.0, 2.0], [float("nan")]], ">1", "has 1 missing labels, the first in the Table, row 3"),
    ([[1, 2]], ">0", "has only one class, True"),
    ([[1, 1], [1]], None, "column 'y' has only one class, 1: at least 2"),
    ([["b", "b"]], "b", "has only one class, True"),
    ([pa.array([3, 18], pa.uint8()).dictionary_encode()], "<=-0.5e-3", "column 'y' has no number <=-0.5e-3"),
    ([[1.0, 2.0]], ">nan", "column 'y' has no number >nan"),
    ([["yes", "no"]], "yess", "has no label 'yess'; its labels are 'no', 'yes'"),
    ([[[1], [2]]], None, "not class labels"),
    ([range(2**16 + 1)], None, "65,536 different labels; --positive '>=32768' (in Python, positive) makes"),
])  # fmt: skip
def test_labels_that_are_refused(parts, positive, sentence):
    with pytest.raises(ValueError) as error:
        read(*map(pa.array, parts), positive=positive)
    assert sentence in str(error.value)


LIKE_YES = "differ only by case and spaces and are different labels: write them alike if they mean the same"


@pytest.mark.parametrize(("positive", "notes"), [
    (None, [f"column 'y': ' Yes' (1), 'Yes' (3), 'yes ' (2) {LIKE_YES}"]),
    ("Yes", [f"column 'y': 'Yes' (3), 'yes ' (2), ' Yes' (1) {LIKE_YES}"]), ("no", []),
])  # fmt: skip
def test_labels_that_differ_by_case_and_spaces_are_counted(positive, notes):
    reader = LabelReader(TABLE, "y", positive)
    for part in (["Yes", "yes ", "no"], ["Yes", " Yes", "Yes", "yes ", "maybe"]):
        reader.add(pa.array(part))
    reader.finish()
    assert reader.alike_notes() == notes


@pytest.mark.parametrize("bad", [-1.0, float("inf"), float("nan"), None])
def test_weights_are_finite_and_not_negative(bad):
    assert read_weights(TABLE, pa.array([0, 1, 2]), "w").tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match=r"the Table, row 12: column 'w' has (the|no) weight"):
        read_weights(TABLE, pa.array([1.0, bad, 2.0]), "w", 10)
