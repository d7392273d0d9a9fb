"""Frames with their names and types, of which narwhals makes a new list, of all columns, whenever it is asked."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType


class Frame:
    """A pandas, polars or Arrow table; what it has of narwhals' DataFrame is the same, but its columns are listed once.

    So a loop over columns may ask for names and types in every step.
    """

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame, self.columns, self.shape = frame, frame.columns, frame.shape
        self.implementation = frame.implementation

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def schema(self) -> dict[Any, DType]:
        """The types of the columns by their names, in order."""
        return dict(self._frame.schema)

    def get_column(self, name: Any) -> nw.Series[Any]:
        """Return a column by its name."""
        return self._frame.get_column(name)

    def iter_columns(self) -> Iterator[nw.Series[Any]]:
        """Yield the columns."""
        return self._frame.iter_columns()

    def with_columns(self, columns: Iterable[nw.Series[Any]]) -> "Frame":
        """Return the frame with some columns in place of those of their names, and others behind its last column."""
        return Frame(self._frame.with_columns(*columns))


def repeated(names: Iterable[Hashable]) -> dict[Any, int]:
    """Return the names that occur more than once, in the order in which they first occur, and how often they do."""
    return {name: n for name, n in Counter(names).items() if n > 1}
