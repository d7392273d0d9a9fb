"""Files are either whole or not there, and locks are one's own."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aucforest import _files
from aucforest._files import file_beside, half_written, lock, write_whole


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
    with pytest.raises(FileNotFoundError, match=r"there is no such folder: .*nowhere'$"):
        write_whole(tmp_path / "nowhere" / "result.json", b"new")
    (tmp_path / "table.csv").touch()
    with pytest.raises(NotADirectoryError, match=r"this is a file, not a folder: .*table.csv'$"):
        write_whole(tmp_path / "table.csv" / "result.json", b"new")


@pytest.mark.parametrize("path", ["", ".", "results"])
def test_a_folder_is_no_file_to_write(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    with pytest.raises(IsADirectoryError, match=rf"this is a folder, not a file to write: '{path or '.'}'$"):
        write_whole(path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["results"]


def test_errors_name_the_file_not_the_temporary_one(tmp_path, monkeypatch):
    def open_no_file(beside):
        beside.write_bytes(b"half")
        os.open(beside / "more", os.O_RDONLY)

    def open_by_arrow(beside):
        raise OSError(errno.EACCES, f"Failed to open local file '{beside}'")

    def fail_without_number(beside):
        raise OSError(f"cannot write {beside}")

    target = tmp_path / "result.json"
    for write, kind in (
        (open_no_file, NotADirectoryError),
        (open_by_arrow, PermissionError),
        (fail_without_number, OSError),
    ):
        with pytest.raises(kind, match=r"result\.json'?$") as caught, file_beside(target) as beside:
            write(beside)
        assert beside.name not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_of_killed_processes_are_recognized(tmp_path):
    with file_beside(tmp_path / "result.json") as beside:
        beside.touch()
        assert half_written(beside) == "result.json"
    assert half_written(beside.with_name(f"{beside.name}0")) is None
    assert half_written(tmp_path / "result.json") is None


@pytest.mark.skipif(_files.fcntl is None, reason="there are no locks")
def test_a_lock_is_free_again_when_it_is_closed(tmp_path):
    with lock(tmp_path / "lock"), pytest.raises(BlockingIOError, match=f"in use by process {os.getpid()} on "):
        lock(tmp_path / "lock")
    lock(tmp_path / "lock").close()
    assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} on ")


@pytest.mark.skipif(_files.fcntl is None, reason="there are no locks")
def test_a_lock_ends_with_its_process(tmp_path):
    program = "import sys; from aucforest._files import lock; file = lock(sys.argv[1]); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, tmp_path / "lock"], **pipes) as process:
        process.stdout.readline()
        with pytest.raises(BlockingIOError, match=f"in use by process {process.pid} on "):
            lock(tmp_path / "lock")
        process.kill()
        process.wait()
        lock(tmp_path / "lock").close()


def test_without_support_of_locks_none_is_taken(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOLCK, "no locks available")

    if _files.fcntl is not None:
        with monkeypatch.context() as patched:
            patched.setattr(_files.fcntl, "flock", fail)
            with lock(tmp_path / "lock"), lock(tmp_path / "lock"):
                pass
    monkeypatch.setattr(_files, "fcntl", None)
    with lock(tmp_path / "lock"), lock(tmp_path / "lock"):
        pass


def test_a_lock_needs_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        lock(tmp_path / "nowhere" / "lock")
