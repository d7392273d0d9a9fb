"""Files that are either whole or not there, and folders that one process has at a time."""

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
    """Give a name beside `path`; what is written there is renamed to `path` in the end, or removed after an error.

    Parameters
    ----------
    path : path-like
        The file to be; an existing one is replaced.

    Raises
    ------
    OSError
        When the folder does not exist or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with file_beside(Path(folder) / "a.txt") as beside:
    ...         _ = beside.write_text("all of it")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('a.txt', 'all of it')]
    """
    target = Path(path)
    # not mkstemp: its files are private to the user, and a result should have the permissions of any new file
    beside = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` beside `path`, then rename it there: a reader never sees half a file.

    Parameters
    ----------
    path : path-like
        The file to write; an existing one is replaced.
    content : bytes
        All of it.

    Raises
    ------
    OSError
        When the folder does not exist or cannot be written; nothing is left behind.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", b"all of it")
    ...     [(file.name, file.read_bytes()) for file in Path(folder).iterdir()]
    [('a.txt', b'all of it')]
    """
    with file_beside(path) as beside:
        beside.write_bytes(content)


def half_written(path: Path) -> str | None:
    """Return the name of the file that a killed process was writing when it left this one; None for any other.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> half_written(Path(".a.txt.0123456789abcdef0123456789abcdef"))
    'a.txt'
    >>> half_written(Path("a.txt"))
    """
    found = re.fullmatch(r"\.(.+)\.[0-9a-f]{32}", path.name)
    return found and found[1]


def lock(path: str | os.PathLike[str]) -> IO[bytes]:
    """Take the lock of a file until it is closed, or the process ends in whatever way.

    Parameters
    ----------
    path : path-like
        It is made where it is missing, says who has the lock, and stays.

    Returns
    -------
    file
        To be closed. Processes that are forked meanwhile, and live on without starting a program, keep the lock.

    Raises
    ------
    BlockingIOError
        When somebody has the lock: another process, or the same one.
    OSError
        When the folder does not exist or cannot be written.

    Notes
    -----
    Where the operating or the file system knows no locks, there is none.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock(f"{folder}/lock"):
    ...     try:
    ...         lock(f"{folder}/lock")
    ...     except BlockingIOError as error:
    ...         print(error.strerror)
    in use by process ...
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
