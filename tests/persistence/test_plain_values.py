import json
import math
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aucforest.persistence.model_file import ModelFormatError
from aucforest.persistence.plain_values import from_plain, labels_from_plain, labels_to_plain, to_plain

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
keys = st.booleans() | st.text() | st.floats()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=9)


@given(values)
@example(math.nan)
def test_plain_values_round_trip(value):
    back = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert repr(back) == repr(value)


@pytest.mark.parametrize(("value", "plain"), [
    (np.float32(0.5), 0.5), (np.int8(3), 3), (np.True_, True), (np.str_("a"), "a"), ((1, 2), [1, 2]),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]), (np.array(["a"], dtype=object), ["a"]),
    (pd.Series([0.5, 2.0]), [0.5, 2.0]), (pd.Index(["x", "y"]), ["x", "y"]), (np.array(2), 2),
])  # fmt: skip
def test_arrays_become_lists(value, plain):
    assert repr(from_plain(to_plain(value))) == repr(plain)


@pytest.mark.parametrize(
    "value", [len, object(), np.random.RandomState(0), np.longdouble(1), b"a", {1j}, 1j, np.array([1j]), [[len]]]
)
def test_other_values_are_refused(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        to_plain(value)


@pytest.mark.parametrize("stored", [
    {}, {"float": "1"}, {"float": "inf", "pairs": []}, {"pairs": {}}, {"pairs": [1]}, {"pairs": [[1]]},
    {"pairs": [[[], 1]]}, {"pairs": [[{"pairs": []}, 1]]}, {"object": "os.system"}, [{"a": 1}],
])  # fmt: skip
def test_hostile_values_are_refused(stored):
    with pytest.raises(ModelFormatError, match="a value has an invalid encoding"):
        from_plain(stored)


LABELS = [
    np.array([False, True]), np.array([-3, 2**62]), np.array([2**64 - 1], dtype="u8"), np.array([255], dtype="u1"),
    np.array([0.1, np.inf, -0.0]), np.array([0.1, 3e38], dtype=np.float32), np.array([0.1], dtype=np.float16),
    np.array(["b", "a\N{SNOWMAN}", "", "\ud800"]), np.array(["a"], dtype="U9"), np.array(["a", 1, True], dtype=object),
    np.array([], dtype=object), np.array([], dtype=np.int32),
    np.array([datetime.min, datetime(2024, 3, 1, 9, 30, 0, 1), datetime.max], dtype=object),
    np.array([datetime(1960, 3, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)], dtype=object),
    np.array([timedelta.min, timedelta(0, 0, -1), timedelta.max], dtype=object),
]  # fmt: skip


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(labels.dtype))
def test_labels_round_trip(labels):
    back = labels_from_plain(json.loads(json.dumps(labels_to_plain(labels), allow_nan=False)))
    assert back.dtype == labels.dtype
    assert repr(back.tolist()) == repr(labels.tolist())


@pytest.mark.parametrize("dtype", ["c16", "S1", "M8[D]", np.longdouble])
def test_labels_of_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match="cannot be stored, only strings and numbers of at most 64 bits"):
        labels_to_plain(np.array([1]).astype(dtype))


def test_text_that_takes_too_much_memory_is_refused():
    with pytest.raises(ValueError, match="2000 labels of 10000 characters are too long"):
        labels_to_plain(np.zeros(2000, dtype="U10000"))


def test_constants_of_enum_are_stored_by_their_value():
    red = Enum("Color", {"RED": "#f00"}, type=str).RED
    assert to_plain(red) == "#f00"
    assert labels_from_plain(labels_to_plain(np.array([red], dtype=object))).tolist() == ["#f00"]


@pytest.mark.parametrize("values", [
    [datetime(2024, 3, 1, tzinfo=timezone(timedelta(hours=9)))], [datetime.min, datetime.min.replace(tzinfo=UTC)],
    [datetime.min, "a"], [pd.Timestamp(0)], ["a", (1,)],
])  # fmt: skip
def test_objects_of_other_types_are_refused(values):
    with pytest.raises(TypeError, match=r"^the label .* is neither a number nor a string$"):
        labels_to_plain(np.array([*values, None], dtype=object)[:-1])


def stored(kind, values, length=0):
    return {"kind": kind, "length": length, "values": values}


VALUES_OF_OTHER_TYPES = [
    ("date", "2024-03-01"), ("date", 2**60), ("duration", True), ("duration", 2**99), ("int8", 300), ("uint64", -1),
    ("int64", 0.5), ("int64", "a"), ("float32", 1e300), ("float64", 10**400), ("text", "ab"), ("text", 1),
]  # fmt: skip


@pytest.mark.parametrize(("hostile", "message"), [
    *((labels, "labels have an invalid encoding") for labels in ([], {"kind": "int64", "values": []})),
    (stored("int64", {}), "a value has an invalid encoding"),
    *((stored("object", values), "neither numbers nor strings") for values in (3, [None], [[1]], [{"pairs": []}])),
    *((stored(kind, [value], 1), f"do not match their type {kind}$") for kind, value in VALUES_OF_OTHER_TYPES),
    *((stored(kind, [1]), "have the unknown type") for kind in ("M8[s]", "V100000000", ["object"])),
    *((stored("text", ["a"], length), "are too long") for length in (0, 2**60, True, -1)),
    (stored("text", ["a"] * 1000, 2**20), "are too long"),
])  # fmt: skip
def test_hostile_labels_are_refused(hostile, message):
    with pytest.raises(ModelFormatError, match=message):
        labels_from_plain(hostile)
