"""Tables from JSON lines: the same as from a CSV of the same values, and what is wrong with a file."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucforest.tables.kinds import feature_names
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source
from tests.tables.text_tables import read_all


@pytest.fixture
def written(tmp_path):
    """Write objects, or text, as JSON lines."""

    def write(content, name="t.jsonl"):
        lines = content if isinstance(content, str) else "".join(f"{json.dumps(row)}\n" for row in content)
        path = tmp_path / name
        path.write_bytes(gzip.compress(lines.encode()) if name.endswith("gz") else lines.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["t.JSONL", "t.ndjson.gz"])
def test_types_and_values_are_those_of_a_csv(tmp_path, written, name):
    numbers = np.random.default_rng(0).normal(size=500)
    frame = pd.DataFrame({
        "number": numbers, "small": numbers * 1e-300, "integer": np.arange(500) + 2**53, "flag": numbers > 0,
        "word": ["a\nb", 'say "ü"'] * 250, "day": pd.date_range("2024-01-01", periods=500).strftime("%Y-%m-%d"),
        "comma": [f"{i},5" for i in range(500)], "code": ["007", "NA"] * 250, 'a"b': 1, "it's": "1.5 kg",
        "gaps": [None, 2.5] * 250, "nothing": None,
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    rows = [{key: value for key, value in row.items() if value == value} for row in frame.to_dict("records")]
    found, expected = read_all(written(rows, name)), read_all(tmp_path / "t.csv")
    assert found.select(expected.column_names).equals(expected)
    assert open_source(tmp_path / name).location(4) == f"{name}, row 5"


def test_numbers_are_what_they_are_beside_text_with_a_comma(written):
    assert read_all(written([{"a": 1.125}, {"a": "2,5"}])).to_pydict() == {"a": ["1.125", "2,5"]}
    assert read_all(written([{"a": 1125}, {"a": "2,5"}])).to_pydict() == {"a": [1125.0, 2.5]}


def test_columns_are_those_of_all_objects(written):
    rows = [{f"k{i}": i} for i in range(300)]
    found = read_all(written(rows))
    assert found.column_names == [f"k{i}" for i in range(300)]
    assert [column.drop_null().to_pylist() for column in found.columns] == [[i] for i in range(300)]
    assert read_all(written([{"a": 1}, {}, {"a": None, "b": "x"}])).to_pydict() == {
        "a": [1, None, None], "b": [None, None, "x"],
    }  # fmt: skip


def test_several_files(written):
    paths = [written([{"a": 1}], "1.jsonl"), written([{"a": 2.5, "b": "x"}], "2.jsonl")]
    assert read_all(open_source(paths)).to_pydict() == {"a": [1.0, 2.5], "b": [None, "x"]}


@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(sample=1), ReadOptions(where="b > 1")])
def test_objects_and_lists_are_no_features(written, options):
    path = written([{"a": [1], "o": {"x": 1}, "b": 1, "y": 0}, {"a": [], "o": {"z": 1}, "b": 2, "y": 1}])
    source = open_source(path, options=options)
    with pytest.raises(ValueError, match=r"column 'a' has type struct<json: string>: features must be .*--drop a "):
        feature_names(source, ["y"])
    assert feature_names(source, ["y", "a", "o"]) == ["b"]
    assert read_all(source)["a"].to_pylist()[-1]["json"] in ("[1]", "[]")


def test_columns_that_stay_text(written):
    path = written([{"a": 1.50, "b": 1}, {"a": 2, "b": "x"}])
    assert read_all(open_source(path, None)).schema.types == [pa.string()] * 2
    assert read_all(open_source(path, ["a"]))["a"].to_pylist() == ["1.5", "2"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "cannot read t.jsonl: it is empty"),
        ("[1]\n", "cannot read t.jsonl: each line must be an object with a name for each value"),
        ('{"a":1}\n[2]\n', "cannot read t.jsonl: each line must be an object with a name for each value"),
        ('{"a":1}\nx\n', "t.jsonl, line 2 is not one JSON object: unexpected character"),
        ('{"a":1}\n{"a":1} {"a":2}\n', "t.jsonl, line 2 is not one JSON object: text follows the object"),
        ('{"a":1}\n' * 90_000 + '{"a":"x\n', "t.jsonl, line 90001 is not one JSON object: unexpected"),
        ('{"a":1,"a":2}\n', "t.jsonl, line 1 is not one JSON object: Object"),
        ('{"a":1,"A":2}\n', "t.jsonl: the key 'A' differs from another in upper and lower case alone"),
    ],
)
def test_files_that_are_no_table(written, content, sentence):
    with pytest.raises(ValueError) as caught:
        read_all(written(content))
    assert str(caught.value).startswith(sentence)


def test_another_encoding(tmp_path):
    (tmp_path / "t.jsonl").write_bytes('{"a":"x"}\n{"a":"ü"}\n'.encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"^t.jsonl, line 2 is not encoded in UTF-8: pass its encoding, such as --encoding"
    ):
        open_source(tmp_path / "t.jsonl")
    assert read_all(open_source(tmp_path / "t.jsonl", (), ReadOptions(encoding="latin-1")))["a"].to_pylist() == [
        "x",
        "ü",
    ]


def test_keys_that_look_like_those_the_engine_renames(written):
    for row in ({"json": 1}, {"a": 1, "a_1": 2}, {"A_1": 1, "a": 2}):
        assert read_all(written([row])).to_pylist() == [row]


def test_nan_is_missing_in_expressions(written):
    path = written('{"x":2.5}\n{"x":NaN}\n{"x":5}\n')
    table = open_source(path, options=ReadOptions(where="x > 1"))
    assert pa.Table.from_batches(table.batches(["x"]))["x"].to_pylist() == [2.5, 5.0]
