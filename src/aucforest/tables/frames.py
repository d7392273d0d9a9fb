"""Frames whose names and types are listed once: narwhals makes a new list, of all columns, whenever it is asked."""

from collections import Counter
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any

import narwhals as nw


class Frame:
    """A pandas, polars or Arrow table, as narwhals' DataFrame, in loops over whose columns names and types may be read.

    What is not defined here is that of narwhals.
    """

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame, self.columns, self.shape = frame, frame.columns, frame.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._frame, name)

    @cached_property
    def schema(self) -> dict[Any, Any]:
        """The types of the columns by their names, in order."""
        return dict(self._frame.schema)

    def with_columns(self, columns: Iterable[nw.Series[Any]]) -> "Frame":
        """Return the frame with some columns in place of those of their names, and others behind its last column."""
        return Frame(self._frame.with_columns(*columns))


def repeated(names: Iterable[Hashable]) -> dict[Any, int]:
    """Return the names that occur more than once, in the order in which they first occur, and how often they do."""
    return {name: n for name, n in Counter(names).items() if n > 1}
