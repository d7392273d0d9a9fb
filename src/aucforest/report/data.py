"""What the rows of a report look like: classes, columns, missing values, and columns that cannot help."""

from collections import Counter
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import is_missing
from aucforest.report.importances import column_names
from aucforest.report.page import Table, number, percent, shortened

_MOST_COLUMNS = 200
_MOST_VALUES = 3
_LEAST_ROWS = 50  # of a column that may be called an identifier
_DISTINCT = 0.95  # and the proportion of its values that are distinct


class Column(NamedTuple):
    """A column as it is described."""

    name: str
    kind: str
    missing: float
    n_known: int
    n_distinct: int
    is_whole: bool  # integers or text
    usual: str

    @property
    def is_identifier(self) -> bool:
        """Whether nearly every row has an integer or a text of its own."""
        return self.is_whole and self.n_known >= _LEAST_ROWS and self.n_distinct >= _DISTINCT * self.n_known


def class_table(caption: str, classes: tuple[str, ...], labels: NDArray[Any], weights: NDArray[Any] | None) -> Table:
    """Return rows and frequencies of the classes."""
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
    return {name: column.to_numpy() if isinstance(column, nw.Series) else column for name, column in _series(X)}


def describe_columns(X: Any) -> list[Column]:
    """Describe the columns of a table; of what is no table there are none."""
    return [_describe(name, column) for name, column in _series(X)]


def column_table(columns: list[Column]) -> Table:
    """Return type, missing values and usual values of the first columns."""
    left_out = len(columns) - _MOST_COLUMNS
    caption = f"The {len(columns)} columns" + (f"; {left_out} more are not listed" if left_out > 0 else "")
    body = [
        [each.name, each.kind, percent(each.missing), f"{each.n_distinct:,}", each.usual]
        for each in columns[:_MOST_COLUMNS]
    ]
    return Table(caption, ["column", "type", "missing", "distinct", "usual values"], body, "llrrl")


def useless_columns(columns: list[Column]) -> list[str]:
    """Return sentences that name empty, constant and identifier-like columns."""
    found = {
        "Empty columns, without any value on these rows": [each.name for each in columns if each.n_known == 0],
        "Constant columns, with a single value on these rows": [each.name for each in columns if each.n_distinct == 1],
        "Columns that look like identifiers, with another value in nearly every row": [
            each.name for each in columns if each.is_identifier
        ],
    }
    return [f"{what}: {', '.join(names)}." for what, names in found.items() if names]


def numbers_in(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return the values of a column as numbers, missing ones as NaN; None for what are no numbers."""
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
    """Count the distinct numbers of a column: integers as they are, since float64 does not tell large ones apart."""
    if isinstance(column, nw.Series) and column.dtype.is_integer():
        return column.drop_nulls().n_unique()
    if values.dtype.kind == "O":
        return len({value for value in values.tolist() if not is_missing(value)})
    return np.unique(values if values.dtype.kind in "iu" else numbers).size


def _describe(name: str, column: Any) -> Column:
    """Return type, missing values, number of distinct values, and the usual ones."""
    values: NDArray[Any] = column.to_numpy() if isinstance(column, nw.Series) else column
    numbers = numbers_in(values)
    if numbers is not None:
        known = numbers[~np.isnan(numbers)]
        missing, usual = 1.0 - known.size / max(numbers.size, 1), "–"
        if known.size:
            low, middle, high = np.quantile(known, [0.05, 0.5, 0.95])
            usual = f"{number(middle)} (90 % from {number(low)} to {number(high)})"
        n_distinct, is_whole = _n_distinct(column, values, known), bool(np.all(known == np.floor(known)))
        return Column(name, "number", missing, known.size, n_distinct, is_whole, usual)
    listed = [str(value) for value in values.tolist() if not is_missing(value)]
    counts, missing = Counter(listed), 1.0 - len(listed) / max(len(values), 1)
    most = counts.most_common(_MOST_VALUES)
    usual = ", ".join(f"{shortened(value, 40)} ({percent(n / len(listed))})" for value, n in most)
    kind = {"b": "boolean", "M": "date", "m": "duration"}.get(values.dtype.kind, "category")
    is_text = values.dtype.kind not in "Mm"
    return Column(name, kind, missing, len(listed), len(counts), is_text, usual or "–")
