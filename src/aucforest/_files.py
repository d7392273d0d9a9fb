"""Files that are either whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


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
