"""Files that are either whole or not there, and folders that one process has at a time."""

import errno
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def file_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a name beside `path`; what is written there is renamed to `path` in the end, or removed after an error."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    # not mkstemp: its files are private to the user, and a result should have the permissions of any new file
    beside = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` beside `path`, then rename it there: a reader never sees half a file."""
    with file_beside(path) as beside:
        beside.write_bytes(content)


def half_written(path: Path) -> str | None:
    """Return the name of the file that a killed process was writing when it left this one; None for any other."""
    found = re.fullmatch(r"\.(.+)\.[0-9a-f]{32}", path.name)
    return found and found[1]


def lock(path: str | os.PathLike[str]) -> IO[bytes]:
    """Take the lock of a file until it is closed, or the process ends; BlockingIOError when somebody has it.

    The file is made where it is missing, says who has the lock, and stays. Processes that are forked meanwhile, and
    live on without starting a program, keep the lock. Where the operating or the file system knows no locks, there is
    none.
    """
    file = open(path, "ab+", buffering=0)  # noqa: SIM115
    try:
        _lock(file, path)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}".encode())
    except BaseException:
        file.close()
        raise
    return file


def _lock(file: IO[bytes], path: str | os.PathLike[str]) -> None:
    """Take the lock of an open file, where there are locks."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        who = file.read().decode(errors="replace") or "another process"
        raise BlockingIOError(error.errno, f"in use by {who}", os.fspath(path)) from None
    except OSError:
        pass  # a file system without locks
