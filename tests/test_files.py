"""Atomic writing of files, and file locks."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from aucforest import _files
from aucforest._files import file_beside, half_written, lock, write_whole


@pytest.fixture
def target(tmp_path):
    return tmp_path / "result.json"


def test_a_file_is_replaced_or_kept_and_nothing_else_is_left(target, monkeypatch):
    target.write_bytes(b"old and longer")
    write_whole(target, b"new")
    assert target.read_bytes() == b"new"
    monkeypatch.setattr(Path, "replace", Mock(side_effect=OSError("no space left")))
    with pytest.raises(OSError, match="no space left"):
        write_whole(target, b"newer")
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_paths_that_cannot_be_written_are_errors(target):
    target.touch()
    folder = target.parent
    for path, error, sentence in (
        (folder / "nowhere" / "a", FileNotFoundError, r"there is no such folder: .*nowhere'$"),
        (target / "a", NotADirectoryError, r"this is a file, not a folder: .*result.json'$"),
        (folder, IsADirectoryError, f"this is a folder, not a file to write: '{folder}'$"),
    ):
        with pytest.raises(error, match=sentence):
            write_whole(path, b"new")
    assert list(folder.iterdir()) == [target]


def test_errors_name_the_file_not_the_temporary_one(target):
    def open_no_file(beside):
        beside.write_bytes(b"half")
        os.open(beside / "more", os.O_RDONLY)

    def open_by_arrow(beside):
        raise OSError(errno.EACCES, f"Failed to open local file '{beside}'")

    def fail_without_number(beside):
        raise OSError(f"cannot write {beside}")

    kinds = {open_no_file: NotADirectoryError, open_by_arrow: PermissionError, fail_without_number: OSError}
    for write, kind in kinds.items():
        with pytest.raises(kind, match=r"result\.json'?$") as caught, file_beside(target) as beside:
            write(beside)
        assert beside.name not in str(caught.value)
    assert list(target.parent.iterdir()) == []


def test_temporary_files_of_killed_processes_are_recognized(target):
    with file_beside(target) as beside:
        beside.touch()
        assert half_written(beside) == "result.json"
    assert half_written(beside.with_name(f"{beside.name}0")) is None
    assert half_written(target) is None


@pytest.mark.skipif(_files.fcntl is None, reason="there are no locks")
def test_a_lock_is_free_again_when_it_is_closed(target):
    with lock(target), pytest.raises(BlockingIOError, match=f"in use by process {os.getpid()} on "):
        lock(target)
    lock(target).close()
    assert target.read_text().startswith(f"process {os.getpid()} on ")


@pytest.mark.skipif(_files.fcntl is None, reason="there are no locks")
def test_a_lock_ends_with_its_process(target):
    program = "import sys; from aucforest._files import lock; file = lock(sys.argv[1]); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, target], **pipes) as process:
        process.stdout.readline()
        with pytest.raises(BlockingIOError, match=f"in use by process {process.pid} on "):
            lock(target)
        process.kill()
        process.wait()
        lock(target).close()


def test_without_support_of_locks_none_is_taken(target, monkeypatch):
    flock = Mock(side_effect=OSError(errno.ENOLCK, "no locks available"))
    for fcntl in (SimpleNamespace(flock=flock, LOCK_EX=1, LOCK_NB=2), None):
        monkeypatch.setattr(_files, "fcntl", fcntl)
        with lock(target), lock(target):
            pass
