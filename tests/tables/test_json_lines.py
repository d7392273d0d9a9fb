"""JSON lines give the same table as a CSV of the same values, and bad files are refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucforest.tables.kinds import feature_names
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source
from tests.tables.text_tables import read_all, write_table


@pytest.fixture
def read(written):
    """Return a function that writes objects or text as JSON lines, and returns the table that is read from them."""
    return lambda content, name="t.jsonl", **options: read_all(open_source(written(content, name), **options))


@pytest.mark.parametrize("name", ["t.JSONL", "t.ndjson.gz"])
def test_types_and_values_are_those_of_a_csv(tmp_path, read, name):
    numbers = np.random.default_rng(0).normal(size=500)
    frame = pd.DataFrame({
        "number": numbers, "small": numbers * 1e-300, "integer": np.arange(500) + 2**53, "flag": numbers > 0,
        "word": ["a\nb", 'say "ü"'] * 250, "day": pd.date_range("2024-01-01", periods=500).strftime("%Y-%m-%d"),
        "comma": [f"{i},5" for i in range(500)], "code": ["007", "NA"] * 250, 'a"b': 1, "it's": "1.5 kg",
        "gaps": [None, 2.5] * 250, "nothing": None,
    })  # fmt: skip
    rows = [{key: value for key, value in row.items() if value == value} for row in frame.to_dict("records")]
    found, expected = read(rows, name), read_all(write_table(frame, tmp_path / "t.csv"))
    assert found.select(expected.column_names).equals(expected)
    assert open_source(tmp_path / name).location(4) == f"{name}, row 5"


@pytest.mark.parametrize(("rows", "columns"), [
    ([{"a": 1.125}, {"a": "2,5"}], {"a": ["1.125", "2,5"]}),  # JSON numbers have a point
    ([{"a": 1125}, {"a": "2,5"}], {"a": [1125.0, 2.5]}),
    ([{"a": 1}, {}, {"a": None, "b": "x"}], {"a": [1, None, None], "b": [None, None, "x"]}),
    ([{"json": 1}], {"json": [1]}),  # the name that the engine gives to objects
    ([{"a": 1, "a_1": 2}], {"a": [1], "a_1": [2]}),  # the name that the engine gives to a repeated key
    ([{"A_1": 1, "a": 2}], {"A_1": [1], "a": [2]}),
    ([{f"k{i}": i} for i in range(300)], {f"k{i}": [None] * i + [i] + [None] * (299 - i) for i in range(300)}),
])  # fmt: skip
def test_columns_are_those_of_all_objects(read, rows, columns):
    found = read(rows)
    assert found.column_names == list(columns)
    assert found.to_pydict() == columns


def test_several_files(written):
    paths = [written([{"a": 1}], "1.jsonl"), written([], "2.jsonl"), written([{"a": 2.5, "b": "x"}], "3.jsonl")]
    assert read_all(paths[0].parent).to_pydict() == {"a": [1.0, 2.5], "b": [None, "x"]}


@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(sample=1), ReadOptions(where="b > 1")])
def test_objects_and_lists_are_no_features(written, options):
    rows = [{"a": [1], "o": {"x": 1}, "b": 1, "y": 0}, {"a": [], "o": {"z": 1}, "b": 2, "y": 1}]
    source = open_source(written(rows, "t.jsonl"), options=options)
    with pytest.raises(ValueError, match=r"column 'a' has type struct<json: string>: features must be .*--drop a "):
        feature_names(source, ["y"])
    assert feature_names(source, ["y", "a", "o"]) == ["b"]
    assert read_all(source)["a"].to_pylist()[-1]["json"] in ("[1]", "[]")


def test_columns_that_stay_text(read):
    rows = [{"a": 1.50, "b": 1}, {"a": 2, "b": "x"}]
    assert read(rows, as_text=None).schema.types == [pa.string()] * 2
    assert read(rows, as_text=["a"])["a"].to_pylist() == ["1.5", "2"]


@pytest.mark.parametrize(("content", "sentence"), [
    ("", "cannot read t.jsonl: it is empty"),
    ("[1]\n", "cannot read t.jsonl: each line must be an object with keys that are not empty"),
    ('{"a":1}\n[2]\n', "cannot read t.jsonl: each line must be an object with keys that are not empty"),
    ('{"a":1}\nx\n', "t.jsonl, line 2 is not one JSON object: unexpected character"),
    ('{"a":1}\n{"a":1} {"a":2}\n', "t.jsonl, line 2 is not one JSON object: text follows the object"),
    ('{"a":1}\n' * 90_000 + '{"a":"x\n', "t.jsonl, line 90001 is not one JSON object: unexpected"),
    ('{"a":1,"a":2}\n', "t.jsonl, line 1 is not one JSON object: Object"),
    ('{"a":1,"A":2}\n', "t.jsonl: the key 'A' differs from another in upper and lower case alone: rename one"),
    ("{}\n{}\n", "cannot read t.jsonl: each line must be an object with keys that are not empty"),
])  # fmt: skip
def test_files_that_are_no_table(read, content, sentence):
    with pytest.raises(ValueError) as caught:
        read(content)
    assert str(caught.value).startswith(sentence)


def test_another_encoding(read):
    content = '{"a":"x"}\n{"a":"ü"}\n'.encode("latin-1")
    with pytest.raises(ValueError, match=r"^t.jsonl, line 2 is not encoded in UTF-8: pass its encoding, such as --enc"):
        read(content)
    assert read(content, options=ReadOptions(encoding="latin-1"))["a"].to_pylist() == ["x", "ü"]


def test_nan_is_missing_in_expressions(read):
    found = read('{"x":2.5}\n{"x":NaN}\n{"x":5}\n', options=ReadOptions(where="x > 1"))
    assert found["x"].to_pylist() == [2.5, 5.0]
