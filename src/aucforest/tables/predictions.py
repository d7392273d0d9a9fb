"""Predictions for a table, batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from aucforest.metrics.thresholds import decide
from aucforest.tables.frames import repeated
from aucforest.tables.model_columns import ModelColumns
from aucforest.tables.sources import stray_notes

_LABEL = "prediction"


class Notes(NamedTuple):
    """Additional columns as Arrow fields, and a function that computes them from features and class probabilities."""

    fields: Sequence[Any] = ()
    write: Callable[[Any, NDArray[Any]], Sequence[Any]] = lambda X, proba: ()


class Predictions:
    """Predictions for a table as record batches.

    Their columns are those of the table named in `kept`, the predicted label, the class probabilities, and the notes.
    With `proba` True the label is left out, with False the probabilities are.
    """

    def __init__(
        self,
        model: Any,
        table: Any,
        kept: Sequence[str],
        proba: bool | None,
        notes: Notes | None = None,
    ) -> None:
        self._model, self._table, self._kept, self._proba = model, table, kept, proba
        self._notes = Notes() if notes is None else notes
        self._columns = ModelColumns(model, table, kept)
        # The columns of the table that are kept; text stays as it is, also in a column that the model reads as numbers.
        self._sources = table.as_written(kept) if table.is_text else kept
        self._probabilities = [] if proba is False else [f"probability_{label}" for label in model.classes_.tolist()]
        fields = [
            pa.field(name, type_.value_type if pa.types.is_dictionary(type_) else type_)
            for name, type_ in zip(kept, table.schema(self._sources).types)
        ]
        if proba is not True:
            fields.append(pa.field(_LABEL, pa.array(model.classes_.tolist()).type))
        fields += [pa.field(name, pa.float64()) for name in self._probabilities]
        fields += self._notes.fields
        for name in repeated(field.name for field in fields):
            raise ValueError(f"the result would have two columns named {name!r}: rename the column in keep")
        self.schema = pa.schema(fields)
        # Sentences on how columns are read, and on unseen categories, known after the last batch.
        self.stray = stray_notes(table, self._columns.names)
        self.unseen: list[str] = []

    def batches(self) -> Iterator[Any]:
        """Yield record batches with the columns of `schema`."""
        n_rows = 0
        for batch in self._table.batches(list(dict.fromkeys([*self._columns.names, *self._sources]))):
            X = self._columns.features(self._columns.typed(batch, n_rows))
            proba = self._model.predict_proba(X)
            made: dict[str, Any] = dict(zip(self._probabilities, proba.T))
            if self._proba is not True:
                made[_LABEL] = labels_of(self._model, X, proba).tolist()
            made |= dict(zip((field.name for field in self._notes.fields), self._notes.write(X, proba)))
            made |= {name: batch.column(source) for name, source in zip(self._kept, self._sources)}
            values = [made[name] for name in self.schema.names]
            columns = [pa.array(column).cast(field.type) for column, field in zip(values, self.schema)]
            yield pa.record_batch(columns, schema=self.schema)
            n_rows += batch.num_rows
        self.unseen = self._columns.unseen_notes()


def labels_of(model: Any, X: Any, proba: NDArray[Any]) -> NDArray[Any]:
    """Return the predicted labels for class probabilities; models with `threshold_` need no second prediction."""
    if hasattr(model, "threshold_"):
        labels: NDArray[Any] = model.classes_[decide(model, proba)]
        return labels
    return model.predict(X)
