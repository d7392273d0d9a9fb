"""Which columns are learned from, and as what."""

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from aucforest.tables.features import feature_names, to_features
from aucforest.tables.sources import open_source


def test_kinds_of_columns():
    batch = pa.record_batch({
        "integer": pa.array([1, None], pa.int8()),
        "number": pa.array([0.5, None], pa.float32()),
        "decimal": pa.array([Decimal("1.5"), None]),
        "text": pa.array(["a", None], pa.string_view()),
        "large": pa.array(["a", None], pa.large_string()),
        "flag": pa.array([True, None]),
        "coded": pa.array(["a", None]).dictionary_encode(),
        "nothing": pa.nulls(2),
    })  # fmt: skip
    assert feature_names(open_source(batch), ["text"]) == [name for name in batch.schema.names if name != "text"]
    table = to_features(batch)
    assert table.column_names == batch.schema.names
    kinds = ["d" if pa.types.is_dictionary(type_) else str(type_) for type_ in table.schema.types]
    assert kinds == ["int8", "float", "double", "d", "d", "d", "d", "double"]
    assert [column.to_pylist() for column in table.columns][2:6] == [
        [1.5, None],
        ["a", None],
        ["a", None],
        [True, None],
    ]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([date(2024, 2, 29)], "column 'x' is not numeric but date32"),
        ([timedelta(1)], "column 'x' is not numeric but duration"),
        (pa.array([date(2024, 2, 29)]).dictionary_encode(), "column 'x' is not numeric but date32"),
        ([[1, 2]], "column 'x' holds list<.*>, which is no number, text or flag"),
        ([{"a": 1}], "column 'x' holds struct<.*>, which"),
        ([b"a"], "column 'x' holds binary, which"),
    ],
)
def test_refusals(column, sentence):
    source = open_source(pa.table({"x": column, "y": [1]}))
    with pytest.raises(ValueError, match=sentence):
        feature_names(source, ["y"])
    assert feature_names(open_source(pa.table({"x": column, "y": [1], "z": [2]})), ["y", "x"]) == ["z"]


def test_nothing_to_learn_from():
    with pytest.raises(ValueError, match="the Table has no column besides 'y' to learn from"):
        feature_names(open_source(pa.table({"x": [1], "y": [1]})), ["y", "x"])


def test_an_index_of_pandas_is_no_feature():
    source = open_source(pa.table({"x": [1], "y": [1], "__index_level_0__": [7]}))
    with pytest.warns(UserWarning, match="a column without a name, such as numbers of rows, is left out"):
        assert feature_names(source, ["y"]) == ["x"]
    assert feature_names(source, ["y", "__index_level_0__"]) == ["x"]
