"""Several files as one table, and record batches of a limited number of rows."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from aucforest.columns.categorical import repeated
from aucforest.tables.kinds import NamedTable

# The default maximum numbers of cells and of rows of a batch.
_MOST_CELLS, _MOST_ROWS = 2**20, 2**14


class Files(NamedTable):
    """Files that are read as one table, several times. They must not change between two readings."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        self.name, self._files = name, files
        self._stamps = [_stamp(file) for file in files]

    def unchanged(self) -> Iterator[Path]:
        """Yield each file; ValueError if its size or its modification time has changed."""
        for file, stamp in zip(self._files, self._stamps):
            if _stamp(file) != stamp:
                raise ValueError(f"{file} changed while it was read")
            yield file

    def check_unchanged(self) -> None:
        """Raise ValueError if a file has changed."""
        list(self.unchanged())

    def stamps(self) -> list[list[Any]]:
        """Return path, size and modification time of each file."""
        return [[str(file.resolve()), *stamp] for file, stamp in zip(self._files, self._stamps)]


def check_exists(file: Path) -> None:
    """Raise ValueError if there is no such file."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")


def _stamp(file: Path) -> tuple[int, int]:
    """Return the size and the modification time of a file; ValueError if it does not exist."""
    check_exists(file)
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns


def check_column_names(name: str, columns: Sequence[str]) -> None:
    """Raise ValueError for a repeated column name, or for a null character in a name, which would end a string in C."""
    for column in repeated(columns):
        raise ValueError(f"{name} has two columns named {column!r}: column names must be unique")
    for column in columns:
        if "\0" in str(column):
            advice = "if it is a text file that is not in UTF-8, pass its encoding, such as utf-16-le"
            raise ValueError(
                f"{name} has the column {column!r}: column names must not have the null character; {advice}"
            )


def check_same_names(first: str, first_names: Sequence[str], file: str, names: Sequence[str], hint: str = "") -> None:
    """Raise ValueError if the column names of a file differ from those of the first; both are given by name.

    The message ends with `hint`, a probable reason.
    """
    if names != first_names:
        common = set(names) & set(first_names)
        different = [name for name in [*names, *first_names] if name not in common]
        difference = f"column {different[0]!r}" if different else "the order of its columns"
        raise ValueError(f"{file} differs from {first} in {difference}{hint}")


def rows_of_batch(n_columns: int) -> int:
    """Return the default maximum number of rows of a batch."""
    return max(1, min(_MOST_ROWS, _MOST_CELLS // max(n_columns, 1)))


def split_batches(batches: Iterable[Any], first_row: int = 0, max_rows: int | None = None) -> Iterator[Any]:
    """Yield the rows of record batches from `first_row` on, in batches of at most `max_rows` rows."""
    n_passed = 0
    for batch in batches:
        rest = batch.slice(max(0, first_row - n_passed))
        n_passed += batch.num_rows
        size = max_rows or rows_of_batch(batch.num_columns)
        for start in range(0, rest.num_rows, size):
            yield rest.slice(start, size)
