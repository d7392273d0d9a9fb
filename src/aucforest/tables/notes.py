"""Notes on suspicious feature columns: empty, constant, identifiers, or numbers that were read as strings."""

import re
import shlex
from typing import Any

import numpy as np

from aucforest.tables.columns import Column, Factor, count_values, names_of, read_column, read_table

_EMPTY = "no values, never used in a split"
_CONSTANT = "the same value in every row, never used in a split"
_DECIMAL_COMMA = "numbers with a decimal comma are read as text; write a decimal point"
_SIGN = "numbers with a currency or percent sign are read as text; write the numbers alone"
_IDENTIFIER = "every value is distinct, as in an identifier; consider --drop"
# A number with or without a decimal comma, with or without points as thousands separators.
_NUMBER = re.compile(r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?\s*")
_NUMBER_WITH_SIGN = re.compile(r"\s*[€$£¥]?\s*[-+]?\d[\d.,]*\s*[€$£¥%]?\s*")
# The number of rows that are checked first; they rule out constants and identifiers for most columns.
_HEAD = 1000
# With fewer rows, distinct values do not indicate an identifier.
_LEAST_ROWS = 20
# The maximum number of columns that a note lists by name.
_MOST_NAMES = 10


def column_notes(table: Any) -> list[str]:
    """Return a sentence for each kind of suspicious columns of an Arrow table or a frame, with their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from aucforest.tables.notes import column_notes
    >>> frame = pd.DataFrame({"id": range(30), "site": "A", "price": ["1,5", "12,25", "3"] * 10})
    >>> for note in column_notes(frame):
    ...     print(note)
    column 'site': the same value in every row, never used in a split
    column 'price': numbers with a decimal comma are read as text; write a decimal point
    column 'id': every value is distinct, as in an identifier; consider --drop id
    """
    frame = read_table(table)
    found: dict[str, list[str]] = {kind: [] for kind in (_EMPTY, _CONSTANT, _DECIMAL_COMMA, _SIGN, _IDENTIFIER)}
    for feature, name in enumerate(names_of(table)):
        kind = _kind(read_column(frame, feature), len(frame))
        if kind is not None:
            found[kind].append(str(name))
    return [_sentence(kind, names) for kind, names in found.items() if names]


def _kind(column: Column, n_rows: int) -> str | None:
    """Return the kind of note on a column, or None if it is not suspicious."""
    if isinstance(column, Factor):
        texts = [value for value in column.values if isinstance(value, str)]
        if any("," in text for text in texts) and all(map(_NUMBER.fullmatch, texts)):
            return _DECIMAL_COMMA
        if any(set(text) & set("€$£¥%") for text in texts) and all(map(_NUMBER_WITH_SIGN.fullmatch, texts)):
            return _SIGN
    for rows in (np.arange(min(n_rows, _HEAD)), None):
        values, counts = count_values(column, rows)
        n_known, n_checked = int(np.sum(counts)), n_rows if rows is None else len(rows)
        is_constant = len(values) == 0 or (len(values) == 1 and n_known == n_checked)
        is_identifier = len(values) == n_known and n_rows >= _LEAST_ROWS and _are_integers_or_text(values)
        if not (is_constant or is_identifier):
            return None
    if len(values) == 0:
        return _EMPTY
    return _CONSTANT if is_constant else _IDENTIFIER if n_known >= _LEAST_ROWS else None


def _are_integers_or_text(values: Any) -> bool:
    """Return whether all values are whole numbers or all are strings, as those of identifiers are."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "iu" or (values.dtype.kind == "f" and bool(np.all(values == np.floor(values))))
    return all(isinstance(value, str) for value in values)


def _sentence(kind: str, names: list[str]) -> str:
    """Return the sentence of a note with the names of its columns."""
    listed = ", ".join(map(repr, names[:_MOST_NAMES]))
    more = f" and {len(names) - _MOST_NAMES:,} more" if names[_MOST_NAMES:] else ""
    advice = f" {shlex.quote(','.join(names))}" if kind == _IDENTIFIER and not more else ""
    return f"column{'s' if names[1:] else ''} {listed}{more}: {kind}{advice}"
