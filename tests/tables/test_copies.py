"""Copies of what cannot be read as it is: pipes, other encodings, spreadsheets; and that they do not stay."""

import gc
import gzip
import io
import os
import sys
from codecs import BOM_UTF16_BE
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pandas as pd
import pytest

from aucforest.tables.copies import STANDARD, Readable, compression_of, open_unpacked
from aucforest.tables.sources import open_source
from tests.tables.text_tables import read_all


def test_a_file_of_text_is_no_copy(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n1\n")
    readable = Readable(path, None)
    assert readable.file == readable.path == readable.stamped == path


@pytest.mark.parametrize("ending", ["utf-16", "utf-16-be", "cp1252"])
def test_other_encodings_are_copied_into_utf8(tmp_path, ending):
    """Also where a block of bytes ends within a character."""
    path, text = tmp_path / "t.csv", "ü€" * 700_001
    path.write_bytes((BOM_UTF16_BE if ending == "utf-16-be" else b"") + text.encode(ending))
    readable = Readable(path, ending if ending == "cp1252" else None)
    assert readable.path.read_text("utf-8") == text
    assert (readable.file, readable.stamped) == (path, path)


def test_copies_are_removed_with_their_object(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n", "utf-16")
    source = open_source(path)
    (copied,) = (readable.path for readable in source._readable)
    assert copied.exists()
    assert read_all(source).to_pydict() == {"a": [1]}
    del source
    gc.collect()
    assert not copied.parent.exists()


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,x\n", gzip.compress(b"a,b\n1,x\n"), "a,b\n1,x\n".encode("utf-16")],
    ids=["plain", "gzip", "utf-16"],  # gzip has the time in it
)
def test_standard_input_and_pipes_can_be_read_again(tmp_path, monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    sources = [open_source(str(STANDARD))]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.csv")
        writer = Thread(target=(tmp_path / "pipe.csv").write_bytes, args=(content,))
        writer.start()
        sources.append(open_source(tmp_path / "pipe.csv"))
        writer.join()
    for source, name in zip(sources, ["standard input", "pipe.csv"]):
        for _ in range(2):
            assert read_all(source).to_pydict() == {"a": [1], "b": ["x"]}
        assert source.location(0) == f"{name}, line 2"


def test_a_spreadsheet_is_a_copy(tmp_path):
    pd.DataFrame({"a": [1, 2.5], "b": ["ü", None]}).to_excel(tmp_path / "t.xlsx", index=False)
    assert Readable(tmp_path / "t.xlsx", None).path.read_text("utf-8").split() == ["a,b", "1,ü", "2.5,"]


def test_compressed_files_are_known_by_their_first_bytes(tmp_path):
    for name, content in {"gzip": gzip.compress(b"a"), "none": b"a", "zstd": b"\x28\xb5\x2f\xfd"}.items():
        (tmp_path / "t").write_bytes(content)
        assert compression_of(tmp_path / "t") == name
        if name != "zstd":
            with open_unpacked(tmp_path / "t") as handle:
                assert handle.read() == b"a"


def test_no_file():
    with pytest.raises(ValueError, match=r"there is no file none\.csv"):
        Readable(Path("none.csv"), None)
