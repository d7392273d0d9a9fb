"""Predictions for a table, batch by batch, from columns in the types that a fitted model expects."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aucforest.columns.categorical import count_unseen, read_column, read_table, repeated
from aucforest.columns.dates import SECONDS, DateColumn
from aucforest.columns.expansion import categories_of_columns, parts_of_unseen
from aucforest.columns.texts import listed, unseen_note
from aucforest.columns.values import DATE, DURATION, FLAG, NUMBER, TEXT, ZONED
from aucforest.metrics.thresholds import decide
from aucforest.tables import text_types
from aucforest.tables.kinds import as_flags, as_kind, check_has_columns, decode, kind_of, nearest, plain_type
from aucforest.tables.sources import stray_notes

_LABEL = "prediction"
_MOST_UNSEEN = 100  # the maximum number of unseen categories that are kept for a message
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

    They are found by name. For a model without feature names, they are all columns of the table except `other_columns`,
    which must exist. Text is read in the types of the model; see `TextFiles.read_as`. The columns `numbers`, some
    of `other_columns`, are read as numbers.
    """

    def __init__(self, model: Any, table: Any, other_columns: Sequence[str] = (), numbers: Sequence[str] = ()) -> None:
        self._table, self.has_names = table, hasattr(model, "feature_names_in_")
        self.n_rows = 0  # the number of rows that `batches` has read
        # For each column with unseen categories: the number of their rows, and examples of them.
        self._unseen: dict[str, tuple[int, dict[Any, None]]] = {}
        check_has_columns(table, *other_columns)
        if self.has_names:
            self.names = model.feature_names_in_.tolist()
            present = set(table.columns)
            if missing := [name for name in self.names if name not in present]:
                hint = table.hint or nearest(missing[0], table.columns)
                raise ValueError(
                    f"{table.name} lacks feature columns seen in fit: {listed(list(map(repr, missing)), 5)}{hint}"
                )
        else:
            left_out = set(other_columns)
            self.names = [name for name in table.columns if name not in left_out]
            if len(self.names) != model.n_features_in_:
                raise ValueError(
                    f"{table.name} has {len(self.names)} columns, but the model was fitted on"
                    f" {model.n_features_in_} without names"
                )
        categories, expanded = categories_of_columns(model), getattr(model, "expanded_", {})
        self._kinds = [kind_of(categories[j].tolist()) if j in categories else NUMBER for j in range(len(self.names))]
        for j, column in expanded.items():
            if isinstance(column, DateColumn):
                self._kinds[j] = DURATION if column.parts == SECONDS else DATE if column.zone is None else ZONED
        # A refreshed model knows the categories of the old model among its members, too.
        old = model
        while (old := getattr(old, "members_", {}).get("old")) is not None:
            old_categories = categories_of_columns(old)
            categories |= {j: np.append(categories[j], old_categories[j]) for j in categories.keys() & old_categories}
        self._categories = {self.names[j]: values for j, values in categories.items()}
        self._parts_of_unseen = {self.names[j]: part for j, part in parts_of_unseen(model).items()}
        if table.is_text:
            formats = getattr(model, "text_formats_", {})
            kinds = dict.fromkeys(numbers, NUMBER) | dict(zip(self.names, self._kinds))
            table.read_as({name: _text_type(kind, formats.get(name, {})) for name, kind in kinds.items()})

    def batches(self, other_columns: Sequence[str] = ()) -> Iterator[tuple[Any, Any]]:
        """Yield for each batch a table of the features, in the kinds of the model, and a batch with `other_columns`."""
        for batch in self._table.batches(list(dict.fromkeys([*self.names, *other_columns]))):
            columns = [self._read(batch.column(name), kind, name) for name, kind in zip(self.names, self._kinds)]
            self.n_rows += batch.num_rows
            yield pa.table(columns, names=self.names), batch

    def _read(self, column: Any, kind: str, name: str) -> Any:
        """Return a column of a batch, converted to its kind; unseen categories are counted."""
        categories = self._categories.get(name)
        if kind == NUMBER and categories is None and pa.types.is_integer(column.type):
            return column  # float64 could round it
        if kind == FLAG:
            column = as_flags(decode(column), name, self._table, self.n_rows)
        column = as_kind(column, kind, name, self._table, self.n_rows)
        if categories is not None and len(categories) > 0:
            frame = read_table(pa.table([column], [name]))
            if unseen := count_unseen(read_column(frame, 0), categories):
                n_before, examples = self._unseen.get(name, (0, {}))
                examples |= dict.fromkeys(list(unseen)[: _MOST_UNSEEN - len(examples)])
                self._unseen[name] = n_before + sum(unseen.values()), examples
        return column

    def unseen_notes(self) -> list[str]:
        """Return sentences on the unseen categories of all batches."""
        parts, unseen = self._parts_of_unseen, self._unseen.items()
        return [unseen_note(name, n, self.n_rows, [*values], parts.get(name, "")) for name, (n, values) in unseen]

    def model_input(self, features: Any) -> Any:
        """Return a table of features, or a matrix of them if the model was fitted without feature names."""
        if self.has_names:
            return features
        if all(kind == NUMBER for kind in self._kinds):
            # The transpose is in column-major order, as most data frames are.
            return np.stack([column.to_numpy() for column in features.columns]).T
        return np.array([column.to_pylist() for column in features.columns], dtype=object).T


def _text_type(kind: str, text_format: Mapping[str, str]) -> text_types.TextType:
    if kind == NUMBER and "decimal" in text_format:
        return text_types.spelled_numbers(text_format)
    if kind == DATE and "date" in text_format:
        return text_types.spelled_dates(text_format["date"], has_clock=True)
    return _TEXT_TYPES[kind]


class AddedColumns(NamedTuple):
    """Additional columns as Arrow fields, and a function that computes them from features and class probabilities."""

    fields: Sequence[Any] = ()
    compute: Callable[[Any, NDArray[Any]], Sequence[Any]] = lambda X, proba: ()


NOTHING_ADDED = AddedColumns()


class Predictions:
    """Predictions for a table as record batches.

    The columns are the columns `kept` of the table, the predicted label, the class probabilities, and the columns
    `added`. If `proba` is True, the label is omitted; if it is False, the probabilities are omitted.
    """

    def __init__(
        self, model: Any, table: Any, kept: Sequence[str], proba: bool | None, added: AddedColumns = NOTHING_ADDED
    ) -> None:
        self._model, self._table, self._kept, self._proba, self._added = model, table, kept, proba, added
        self._columns = ModelColumns(model, table, kept)
        # The kept columns of the table. Their text is copied unchanged, even if the model reads it as numbers.
        self._sources = table.add_raw_columns(kept) if table.is_text else kept
        self._probabilities = [] if proba is False else [f"probability_{label}" for label in model.classes_.tolist()]
        fields = [pa.field(name, plain_type(type_)) for name, type_ in zip(kept, table.schema(self._sources).types)]
        if proba is not True:
            fields.append(pa.field(_LABEL, pa.array(model.classes_.tolist()).type))
        fields += [pa.field(name, pa.float64()) for name in self._probabilities]
        fields += added.fields
        for name in repeated(field.name for field in fields):
            raise ValueError(f"the result would have two columns named {name!r}: rename it, or keep it once")
        self.schema = pa.schema(fields)
        # Notes on how columns are read, and notes on unseen categories, which are set after the last batch.
        self.stray_notes = stray_notes(table, self._columns.names)
        self.unseen_notes: list[str] = []

    def batches(self) -> Iterator[Any]:
        """Yield record batches with the columns of `schema`."""
        for features, batch in self._columns.batches(self._sources):
            X = self._columns.model_input(features)
            proba = self._model.predict_proba(X)
            values: dict[str, Any] = dict(zip(self._probabilities, proba.T))
            if self._proba is not True:
                values[_LABEL] = labels_of(self._model, X, proba).tolist()
            values |= dict(zip((field.name for field in self._added.fields), self._added.compute(X, proba)))
            values |= {name: batch.column(source) for name, source in zip(self._kept, self._sources)}
            columns = [pa.array(values[field.name]).cast(field.type) for field in self.schema]
            yield pa.record_batch(columns, schema=self.schema)
        self.unseen_notes = self._columns.unseen_notes()


def labels_of(model: Any, X: Any, proba: NDArray[Any]) -> NDArray[Any]:
    """Return the predicted labels, from `proba` if the model has a `threshold_`, else by `predict`."""
    return model.classes_[decide(model, proba)] if hasattr(model, "threshold_") else model.predict(X)
