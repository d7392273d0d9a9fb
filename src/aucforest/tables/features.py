"""Columns to learn from: numbers as numbers, text and flags as categories."""

import warnings
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from aucforest.tables.kinds import holds_text, is_number


def feature_names(source: Any, others: Sequence[str]) -> list[str]:
    """Return the columns to learn from: all but some others, and but those without a name, such as numbers of rows."""
    nameless = [name for name in source.columns if name == "" or name.startswith("__index_level_")]
    if set(nameless) - set(others):
        warnings.warn("a column without a name, such as numbers of rows, is left out", stacklevel=3)
    names = [name for name in source.columns if name not in others and name not in nameless]
    if not names:
        raise ValueError(f"{source.name} has no column besides {others[0]!r} to learn from")
    check_types(source.schema(names))
    return names


def check_types(schema: Any) -> None:
    """Refuse what is no number, text or flag."""
    for field in schema:
        type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_temporal(type_):
            raise ValueError(f"column {field.name!r} is not numeric but {type_}; encode dates and times as numbers")
        if not (is_number(type_) or holds_text(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_)):
            raise ValueError(f"column {field.name!r} holds {type_}, which is no number, text or flag")


def to_features(batch: Any) -> Any:
    """Return the columns of a record batch as a table: text and flags as dictionaries, nothing as no number."""
    columns = []
    for column in batch.columns:
        if pa.types.is_null(column.type):
            column = column.cast(pa.float64())
        elif holds_text(column.type) or pa.types.is_boolean(column.type):
            column = column.dictionary_encode()
        elif pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        columns.append(column)
    return pa.table(columns, names=batch.schema.names)
