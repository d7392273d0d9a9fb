"""Atomic writing of files, and file locks."""

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
    """Yield a temporary path in the folder of `path`. At the end, the file is renamed to `path`, or removed on error.

    Errors of the operating system refer to `path`, not to the temporary path.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file to write", str(target))
    if target.parent.is_file():
        raise NotADirectoryError(errno.ENOTDIR, "this is a file, not a folder", str(target.parent))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    # mkstemp would create a file that only its owner can read. Results should have the default permissions.
    beside = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        yield beside
        beside.replace(target)
    except OSError as error:
        if beside.name not in str(error):
            raise
        if error.errno is None:
            raise type(error)(str(error).replace(beside.name, target.name)) from error
        reason = str(error.strerror).replace(beside.name, target.name)
        raise OSError(error.errno, reason, str(target)) from error
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to a temporary file and rename it to `path`, so that readers never see a partial file."""
    with file_beside(path) as beside:
        beside.write_bytes(content)


def half_written(path: Path) -> str | None:
    """Return the name of the target if `path` is a temporary path of `file_beside`, else None."""
    match = re.fullmatch(r"\.(.+)\.[0-9a-f]{32}", path.name)
    return match and match[1]


def lock(path: str | os.PathLike[str]) -> IO[bytes]:
    """Lock a file until it is closed or the process ends; raise BlockingIOError if another process has the lock.

    The file is created if it does not exist, and never deleted. Its content names the process that has the lock.
    Processes forked from that process share the lock, until they end or execute another program. If the operating
    system or the file system does not support locks, nothing is locked.
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
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        owner = file.read().decode(errors="replace") or "another process"
        raise BlockingIOError(error.errno, f"in use by {owner}", os.fspath(path)) from None
    except OSError:
        pass  # The file system does not support locks.
