"""Files are either whole or not there."""

from pathlib import Path

import pytest

from aucforest._files import write_whole


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    target = tmp_path / "result.json"
    target.write_bytes(b"old and longer")
    write_whole(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "result.json"
    target.write_bytes(b"old")

    def fail(*paths):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "nowhere" / "result.json", b"new")
