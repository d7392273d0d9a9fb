import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.persistence.model_file import VERSION, ModelFormatError, StoredModel, read_model, write_model

ARRAYS = {
    "flags": np.array([0, 1, 1], dtype=np.uint8), "codes": np.arange(-5, 5, dtype=np.int8).reshape(2, 5),
    "numbers": np.array([[0.5, np.nan], [-0.0, np.inf]]), "scalar": np.array(0.25),
    "empty": np.empty((0, 4), dtype=np.uint64), "words": np.arange(6, dtype=np.uint32)[::2],
}  # fmt: skip
METADATA = {"name": "snow\N{SNOWMAN} and a lone \ud800", "values": [1, 0.1, None, True, {"key": []}]}


@pytest.fixture
def path(tmp_path):
    write_model(tmp_path / "model", ARRAYS, METADATA)
    return tmp_path / "model"


def assert_same_content(stored):
    for name, array in ARRAYS.items():
        found = stored.take_array(name, array.dtype.char)
        assert found.shape == array.shape
        assert found.tobytes() == array.tobytes()
    for name, value in METADATA.items():
        assert stored.take(name, type(value)) == value
    stored.check_taken()


def test_the_content_of_a_file(path):
    """Its bytes do not depend on the order of arrays, and arrays are aligned."""
    assert_same_content(read_model(path))
    assert_same_content(read_model(str(path)))
    content = path.read_bytes()
    header = int.from_bytes(content[:8], "little")
    assert header % 8 == 0
    assert len(content) == 8 + header + sum(array.nbytes for array in ARRAYS.values())
    write_model(path, dict(reversed(ARRAYS.items())), METADATA)
    assert path.read_bytes() == content


def test_truncated_extended_and_missing_files_are_refused(path):
    content = path.read_bytes()
    for changed in [*(content[:length] for length in range(0, len(content), 7)), content[:-1], content + b"0"]:
        path.write_bytes(changed)
        with pytest.raises(ModelFormatError):
            read_model(path)
    with pytest.raises(FileNotFoundError):
        read_model(path.with_name("no"))


def test_a_flipped_bit_in_any_byte_is_refused_or_without_effect(path):
    content, n_read = path.read_bytes(), 0
    for index in range(len(content)):
        flipped = bytearray(content)
        flipped[index] ^= 1 << index % 8
        path.write_bytes(flipped)
        try:
            stored = read_model(path)
        except ModelFormatError:
            continue
        # The flipped bit made another whitespace in the header, or changed the case of an escape sequence.
        assert index < 8 + int.from_bytes(content[:8], "little")
        assert_same_content(stored)
        n_read += 1
    assert n_read < 20


EMPTY = {"__metadata__": {"aucforest": "1 00000000 {}"}}
# If ml_dtypes is imported, numpy has the type bfloat16.
HOSTILE_HEADERS = [
    ({}, "not a model file of aucforest"),
    ({**EMPTY, "a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}, "bfloat16|checksum"),
    ({**EMPTY, "a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, "float8"),
    ({**EMPTY, "a": {"dtype": "I16", "shape": [1], "data_offsets": [0, 2]}}, "the checksum does not match"),
    ({"__metadata__": {"aucforest": "0 00000000 {}"}}, "not a model file of aucforest"),
    ({"__metadata__": {"aucforest": f"{'1' * 5000} 00000000 {{}}"}}, "not a model file of aucforest"),
]  # fmt: skip


@pytest.mark.parametrize(("header", "message"), HOSTILE_HEADERS)
def test_hostile_headers_are_refused(header, message, tmp_path):
    header = json.dumps(header).encode()
    (tmp_path / "model").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2 if b"shape" in header else 0))
    with pytest.raises(ModelFormatError, match=message):
        read_model(tmp_path / "model")


def test_impossible_header_lengths_are_refused(tmp_path):
    with open(tmp_path / "model", "wb") as file:
        file.write((2**24 + 1).to_bytes(8, "little"))
        file.truncate(2**25)  # a sparse file, which takes no space
    with pytest.raises(ModelFormatError, match="its header is too large"):
        read_model(tmp_path / "model")


def test_a_newer_version_is_refused(path):
    old, new = (f'"aucforest":"{version} '.encode() for version in (VERSION, VERSION + 1))
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(ModelFormatError, match=f"written by a newer aucforest: format {VERSION + 1}"):
        read_model(path)


@pytest.mark.parametrize("text", ["", "[]", "1", "{", "[" * 10**5, '{"a":' * 10**5, '{"a": ' + "1" * 5000 + "}"])
def test_hostile_metadata_are_refused(text, tmp_path, monkeypatch):
    monkeypatch.setattr("aucforest.persistence.model_file.json.dumps", lambda *_, **__: text)
    write_model(tmp_path / "model", ARRAYS, METADATA)
    monkeypatch.undo()
    with pytest.raises(ModelFormatError, match="metadata"):
        read_model(tmp_path / "model")


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError):
        read_model(path)


def test_metadata_too_large_are_refused(path):
    content = path.read_bytes()
    with pytest.raises(ValueError, match="larger than 16 MiB"):
        write_model(path, ARRAYS, {"text": "x" * 2**24})
    assert path.read_bytes() == content


@pytest.mark.parametrize(("name", "dtypes", "shape", "message"), [
    ("other", "d", None, "the array other is missing"), ("numbers", "BH", None, "numbers must be uint8 or uint16"),
    ("numbers", "d", (4,), r"of shape \(4,\), but is float64 of \(2, 2\)"),
    ("numbers", "d", (-1, 3), r"of shape \(-1, 3\)"),
    ("scalar", "d", (1,), r"of shape \(1,\), but is float64 of \(\)"),
])  # fmt: skip
def test_arrays_need_the_dtype_and_shape(name, dtypes, shape, message):
    with pytest.raises(ModelFormatError, match=message):
        StoredModel(ARRAYS, {}).take_array(name, dtypes, shape)


def test_metadata_need_the_type():
    for name, type_, message in (("number", int, "number must be int, but is bool"), ("text", str, "text is missing")):
        with pytest.raises(ModelFormatError, match=message):
            StoredModel({}, {"number": True}).take(name, type_)
    for rest in (StoredModel({}, {"rest": 1}), StoredModel({"rest": np.ones(1)}, {})):
        with pytest.raises(ModelFormatError, match="rest is unknown"):
            rest.check_taken()


def test_a_model_within_another():
    arrays = dict(zip(("a", "one/a", "one/two/a", "onerous"), np.arange(4.0)))
    stored = StoredModel(arrays, {"one": {"name": "x", "two": {}}, "name": "y"})
    one = stored.take_model("one")
    assert [model.take_array("a", "d") for model in (stored, one, one.take_model("two"))] == [0.0, 1.0, 2.0]
    assert (one.take("name", str), stored.take("name", str)) == ("x", "y")
    one.check_taken()
    with pytest.raises(ModelFormatError, match="onerous is unknown"):
        stored.check_taken()
    with pytest.raises(ModelFormatError, match="one is missing"):
        stored.take_model("one")


def test_metadata_of_too_many_parts_are_refused(path, monkeypatch):
    with pytest.raises(ValueError, match="more than 262144 lists and dicts"):
        write_model(path, {}, {"lists": [[]] * 2**18})
    write_model(path, {}, {"lists": [[]] * 1000})
    monkeypatch.setattr("aucforest.persistence.model_file._MOST_BRACKETS", 1000)
    with pytest.raises(ModelFormatError, match="more than 1000 lists and dicts"):
        read_model(path)
