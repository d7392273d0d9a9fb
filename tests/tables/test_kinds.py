"""The names of features, and the conversion of columns to the kinds that a fitted model expects."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from aucforest.columns.values import DATE, DURATION, FLAG, NUMBER, TEXT, ZONED
from aucforest.tables.kinds import MISSING, NamedTable, as_kind, feature_names, kind_of, to_features
from aucforest.tables.sources import open_source


def read(values, kind):
    table = NamedTable()
    table.name, table.missing = "t", MISSING
    return as_kind(pa.array(values), kind, "a", table).to_pylist()


def test_kinds_of_values():
    assert kind_of(["a", "b"]) == TEXT
    assert kind_of([False, True]) == FLAG
    assert kind_of([0, 1]) == kind_of([0.5]) == NUMBER
    assert kind_of([]) == TEXT  # the categories of a column without values


@pytest.mark.parametrize(("values", "kind", "wanted"), [
    ([" 1.5 ", "NA", "", "1e3", None], NUMBER, [1.5, None, None, 1000.0, None]),
    (["1", "True", "false", " TRUE", "", "0"], FLAG, [True, True, False, True, None, False]),
    (["1", "NA", " x"], TEXT, ["1", None, " x"]), (pa.array([1, None], pa.int8()), NUMBER, [1.0, None]),
    ([True, None], NUMBER, [1.0, None]), (pa.array(["x", "y"]).dictionary_encode(), TEXT, ["x", "y"]),
    (pa.array(["x", "y"], pa.large_string()), TEXT, ["x", "y"]),
    *((pa.nulls(1), kind, [None]) for kind in (NUMBER, TEXT, FLAG, DATE, ZONED, DURATION)),
])  # fmt: skip
def test_values_are_converted_to_the_kind_of_the_model(values, kind, wanted):
    assert read(values, kind) == wanted


@pytest.mark.parametrize(("values", "kind", "sentence"), [
    (["1"] * 70 + ["x", "y"], NUMBER, "t, row 71: column 'a' has the value 'x', which is not a number"),
    (["true", "", "maybe"], FLAG, "t, row 3: column 'a' has the value 'maybe', which is not a boolean"),
    ([1, 2], TEXT, "column 'a' has type int64, but the model needs a string"),
    ([1, 2], FLAG, "column 'a' has type int64, but the model needs a boolean"),
    (["1,250"], NUMBER, "value '1,250', which is not a number: convert the column, or write a CSV with such text"),
    (["2024-03-01", "1/3/2024"], DATE, "t, row 2: column 'a' has the value '1/3/2024', which is not a date: conv"),
    ([[1], [2]], NUMBER, "column 'a' has type list<item: int64>, but the model needs a number"),
])  # fmt: skip
def test_values_that_cannot_be_converted_are_named(values, kind, sentence):
    with pytest.raises(ValueError) as caught:
        read(values, kind)
    assert sentence in str(caught.value)


def test_kinds_of_columns():
    batch = pa.record_batch({
        "integer": pa.array([1, None], pa.int8()), "number": pa.array([0.5, None], pa.float32()),
        "decimal": pa.array([Decimal("1.5"), None]), "text": pa.array(["a", None], pa.string_view()),
        "large": pa.array(["a", None], pa.large_string()), "flag": pa.array([True, None]),
        "coded": pa.array(["a", None]).dictionary_encode(), "nothing": pa.nulls(2),
    })  # fmt: skip
    assert feature_names(open_source(batch), ["text"]) == [name for name in batch.schema.names if name != "text"]
    table = to_features(batch)
    assert table.column_names == batch.schema.names
    kinds = ["d" if pa.types.is_dictionary(type_) else str(type_) for type_ in table.schema.types]
    assert kinds == ["int8", "float", "double", "d", "d", "d", "d", "double"]
    found = [column.to_pylist() for column in table.columns]
    assert found[2:6] == [[1.5, None], ["a", None], ["a", None], [True, None]]


@pytest.mark.parametrize(("column", "sentence"), [
    (pa.array([date(2024, 2, 29)]).dictionary_encode(), "column 'x' has type dictionary<values=date32.*--drop x "),
    ([[1, 2]], "column 'x' has type list<.*>: features must be numeric, string, boolean, or dates; leave it out"),
    ([{"a": 1}], "column 'x' has type struct<.*>: features"), ([b"a"], "column 'x' has type binary: features"),
])  # fmt: skip
def test_columns_of_unsupported_types(column, sentence):
    source = open_source(pa.table({"x": column, "y": [1], "z": [2]}))
    with pytest.raises(ValueError, match=sentence):
        feature_names(source, ["y"])
    assert feature_names(source, ["y", "x"]) == ["z"]
    with pytest.raises(ValueError, match="the Table has no feature columns besides 'y'"):
        feature_names(source, ["y", "x", "z"])


def test_the_index_of_pandas_is_not_a_feature():
    source = open_source(pa.table({"x": [1], "y": [1], "__index_level_0__": [7]}))
    with pytest.warns(UserWarning, match="a column without a name, such as a row index, is ignored"):
        assert feature_names(source, ["y"]) == ["x"]
    assert feature_names(source, ["y", "__index_level_0__"]) == ["x"]
