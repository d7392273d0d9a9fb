"""The feature columns of a fitted model in a table, in the types that the model expects."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucforest.tables import text_types
from aucforest.tables.columns import count_unseen, read_column, read_table
from aucforest.tables.dates import SECONDS, DateColumn
from aucforest.tables.kinds import (
    DATE,
    DURATION,
    FLAG,
    NUMBER,
    TEXT,
    ZONED,
    as_kind,
    find_column,
    kind_of,
    nearest,
)
from aucforest.tables.texts import unseen_note

# The number of unseen categories that are kept for a sentence.
_MOST_UNSEEN = 100
_TEXT_TYPES = {
    NUMBER: text_types.NUMBER,
    TEXT: text_types.TEXT,
    FLAG: text_types.FLAG,
    DATE: text_types.MOMENT,
    ZONED: text_types.ZONED,
    DURATION: text_types.DURATION,
}


class ModelColumns:
    """The feature columns of a fitted model in a table.

    They are found by name. If the model was fitted without feature names, they are all columns except `others`, in the
    order of the table. The columns `others` must exist. Text is read in the types of the model and as it was written in
    the file that the model was fitted to; what is none of a type is missing if it is rare and `stray_text` allows it.
    """

    def __init__(self, model: Any, table: Any, others: Sequence[str] = ()) -> None:
        self._table, self.has_names = table, hasattr(model, "feature_names_in_")
        self._n_rows = 0
        # Of each column with unseen categories the number of rows, and some of the categories.
        self._unseen: dict[str, tuple[int, dict[Any, None]]] = {}
        find_column(table, *others)
        if self.has_names:
            self.names = model.feature_names_in_.tolist()
            present = set(table.columns)
            if missing := [name for name in self.names if name not in present]:
                hint = table.hint or nearest(missing[0], table.columns)
                listed = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if missing[5:] else "")
                raise ValueError(f"{table.name} lacks feature columns seen in fit: {listed}{hint}")
        else:
            left_out = set(others)
            self.names = [name for name in table.columns if name not in left_out]
            if len(self.names) != model.n_features_in_:
                raise ValueError(
                    f"{table.name} has {len(self.names)} columns, but the model was fitted on"
                    f" {model.n_features_in_} without names"
                )
        categories, dates = getattr(model, "categories_", {}), getattr(model, "dates_", {})
        self._kinds = [
            kind_of(categories[j].tolist()) if j in categories else _kind_of_dates(dates[j]) if j in dates else NUMBER
            for j in range(len(self.names))
        ]
        self._categories = {self.names[j]: values for j, values in categories.items()}
        if table.is_text:
            formats = getattr(model, "text_formats_", {})
            types = zip(self.names, self._kinds)
            table.read_as({name: _text_type(kind, formats.get(name, {})) for name, kind in types})

    def typed(self, batch: Any, first_row: int) -> Any:
        """Return the features of a batch, which begins at `first_row`, as an Arrow table in the kinds of the model."""
        columns = [self._read(batch.column(name), kind, name, first_row) for name, kind in zip(self.names, self._kinds)]
        self._n_rows += batch.num_rows
        return pa.table(columns, names=self.names)

    def _read(self, column: Any, kind: str, name: str, first_row: int) -> Any:
        """Return a column of a batch in its kind; unseen categories are counted."""
        categories, table = self._categories.get(name), self._table
        if kind == NUMBER and categories is None and pa.types.is_integer(column.type):
            return column  # which float64 could round
        column = as_kind(column, kind, name, lambda row: table.location(first_row + row), table.missing)
        if categories is not None and len(categories) > 0:
            frame = read_table(pa.table([column], [name]))
            if unseen := count_unseen(read_column(frame, 0), categories):
                n_before, seen = self._unseen.get(name, (0, {}))
                seen |= dict.fromkeys(list(unseen)[: _MOST_UNSEEN - len(seen)])
                self._unseen[name] = n_before + sum(unseen.values()), seen
        return column

    def unseen_notes(self) -> list[str]:
        """Return sentences on the unseen categories of all batches."""
        return [
            unseen_note(name, n_unseen, self._n_rows, list(categories))
            for name, (n_unseen, categories) in self._unseen.items()
        ]

    def features(self, typed: Any) -> Any:
        """Return the input for the model: the table, or a matrix if the model was fitted without feature names."""
        if self.has_names:
            return typed
        if all(kind == NUMBER for kind in self._kinds):
            # The transpose is in column-major order, as most data frames are.
            return np.stack([column.to_numpy() for column in typed.columns]).T
        matrix: NDArray[Any] = np.empty((typed.num_rows, typed.num_columns), dtype=object)
        for feature, column in enumerate(typed.columns):
            matrix[:, feature] = column.to_pylist()
        return matrix


def _kind_of_dates(column: DateColumn) -> str:
    """Return the kind of a column of dates or durations."""
    if column.parts == SECONDS:
        return DURATION
    return DATE if column.zone is None else ZONED


def _text_type(kind: str, written: Mapping[str, str]) -> text_types.TextType:
    """Return the type of a column of text for a model, of which is known how its values are written."""
    if kind == NUMBER and "decimal" in written:
        return text_types.spelled_numbers(written)
    if kind == DATE and "date" in written:
        return text_types.spelled_dates(written, pa.timestamp("us"))
    return _TEXT_TYPES[kind]
