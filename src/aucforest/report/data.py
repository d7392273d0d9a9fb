"""The section on the data: classes, columns and missing values; `tables.notes` has the suspicious columns."""

from collections import Counter
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import is_missing
from aucforest.report.importances import column_names
from aucforest.report.page import Table, number, percent, shortened
from aucforest.tables.dates import as_datetimes, format_time, in_seconds

_MOST_COLUMNS = 200
_MOST_VALUES = 3


class Column(NamedTuple):
    """The description of a column."""

    name: str
    kind: str
    missing: float
    n_distinct: int
    usual: str


def class_table(caption: str, classes: tuple[str, ...], labels: NDArray[Any], weights: NDArray[Any] | None) -> Table:
    """Return a table of the number of rows and the frequency of each class."""
    counts = np.bincount(labels, minlength=len(classes))
    columns = ["class", "rows", "frequency"]
    body = [[name, f"{n:,}", percent(n / labels.size)] for name, n in zip(classes, counts.tolist())]
    if weights is not None:
        columns.append("frequency by weight")
        by_weight = np.bincount(labels, weights, minlength=len(classes)) / weights.sum()
        for cells, frequency in zip(body, by_weight.tolist()):
            cells.append(percent(frequency))
    return Table(caption, columns, body, "lrrr"[: len(columns)])


def columns_of(X: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a table as arrays by name."""
    return {name: _values(column) for name, column in _series(X)}


def _values(column: Any) -> NDArray[Any]:
    """Return a column as an array, dates as datetime64."""
    dates = as_datetimes(column)
    if dates is not None:
        return dates
    values: NDArray[Any] = column.to_numpy() if isinstance(column, nw.Series) else column
    return values


def describe_columns(X: Any) -> list[Column]:
    """Return the descriptions of the columns of X, which are none if X is not a table."""
    return [_describe(name, column) for name, column in _series(X)]


def column_table(columns: list[Column]) -> Table:
    """Return a table of type, missing values and typical values of the first columns."""
    left_out = len(columns) - _MOST_COLUMNS
    caption = f"The {len(columns)} columns" + (f"; {left_out} more are not listed" if left_out > 0 else "")
    body = [
        [each.name, each.kind, percent(each.missing), f"{each.n_distinct:,}", each.usual]
        for each in columns[:_MOST_COLUMNS]
    ]
    return Table(caption, ["column", "type", "missing", "distinct", "usual values"], body, "llrrl")


def numbers_in(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the values of a column as numbers with NaN for missing ones, or None if they are not numeric."""
    try:
        return values.astype(np.float64) if values.dtype.kind in "fiuO" else None
    except (TypeError, ValueError):
        return None


def _series(X: Any) -> list[tuple[str, Any]]:
    """Return the columns of a table by name."""
    names = column_names(X)
    if names is None:
        return []
    frame: Any = nw.from_native(X, eager_only=True) if hasattr(X, "columns") else np.asarray(X)
    return [(name, frame[:, place]) for place, name in enumerate(names)]


def _n_distinct(column: Any, values: NDArray[Any], numbers: NDArray[np.float64]) -> int:
    """Return the number of distinct values; integers are not converted to float64, which merges large ones."""
    if isinstance(column, nw.Series) and column.dtype.is_integer():
        return column.drop_nulls().n_unique()
    if values.dtype.kind == "O":
        return len({value for value in values.tolist() if not is_missing(value)})
    return np.unique(values if values.dtype.kind in "iu" else numbers).size


def _describe(name: str, column: Any) -> Column:
    """Return the description of a column."""
    values = _values(column)
    if values.dtype.kind == "M":
        return _describe_dates(name, values)
    numbers = numbers_in(values)
    if numbers is not None:
        known = numbers[~np.isnan(numbers)]
        missing, usual = 1.0 - known.size / max(numbers.size, 1), "–"
        if known.size:
            low, middle, high = np.quantile(known, [0.05, 0.5, 0.95])
            usual = f"{number(middle)} (90 % from {number(low)} to {number(high)})"
        return Column(name, "number", missing, _n_distinct(column, values, known), usual)
    listed = [str(value) for value in values.tolist() if not is_missing(value)]
    counts, missing = Counter(listed), 1.0 - len(listed) / max(len(values), 1)
    most = counts.most_common(_MOST_VALUES)
    usual = ", ".join(f"{shortened(value, 40)} ({percent(n / len(listed))})" for value, n in most)
    kind = {"b": "boolean", "m": "duration"}.get(values.dtype.kind, "category")
    return Column(name, kind, missing, len(counts), usual or "–")


def _describe_dates(name: str, values: NDArray[Any]) -> Column:
    """Return the description of a column of dates."""
    known = np.sort(in_seconds(values[~np.isnat(values)]))
    usual = "–"
    if known.size:
        low, middle, high = (format_time(known[int(place * (known.size - 1))]) for place in (0.05, 0.5, 0.95))
        usual = f"{middle} (90 % from {low} to {high})"
    return Column(name, "date", 1.0 - known.size / max(values.size, 1), np.unique(known).size, usual)
