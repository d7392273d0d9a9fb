"""What the rows of a report look like: classes, columns, missing values."""

from collections import Counter
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import is_missing
from aucforest.report.importances import column_names
from aucforest.report.page import Table, number, percent, shortened

_MOST_COLUMNS = 200
_MOST_VALUES = 3


def class_table(caption: str, classes: tuple[str, ...], labels: NDArray[Any], weights: NDArray[Any] | None) -> Table:
    """Return rows and shares of the classes."""
    counts = np.bincount(labels, minlength=len(classes))
    columns = ["class", "rows", "share"]
    body = [[name, f"{n:,}", percent(n / labels.size)] for name, n in zip(classes, counts.tolist())]
    if weights is not None:
        columns.append("share by weight")
        by_weight = np.bincount(labels, weights, minlength=len(classes)) / weights.sum()
        for cells, share in zip(body, by_weight.tolist()):
            cells.append(percent(share))
    return Table(caption, columns, body, "lrrr"[: len(columns)])


def column_table(X: Any) -> Table | None:
    """Return type, missing share and usual values of every column; None for what is no table."""
    names = column_names(X)
    if names is None:
        return None
    frame: Any = nw.from_native(X, eager_only=True) if hasattr(X, "columns") else np.asarray(X)
    body = [[name, *_describe(frame[:, place])] for place, name in enumerate(names[:_MOST_COLUMNS])]
    left_out = len(names) - len(body)
    caption = f"The {len(names)} columns" + (f"; {left_out} more are not listed" if left_out else "")
    return Table(caption, ["column", "type", "missing", "distinct", "usual values"], body, "llrrl")


def _n_distinct(column: Any, values: NDArray[Any], numbers: NDArray[np.float64]) -> int:
    """Count the distinct numbers of a column: integers as they are, since float64 does not tell large ones apart."""
    if isinstance(column, nw.Series) and column.dtype.is_integer():
        return column.drop_nulls().n_unique()
    if values.dtype.kind == "O":
        return len({value for value in values.tolist() if not is_missing(value)})
    return np.unique(values if values.dtype.kind in "iu" else numbers).size


def _describe(column: Any) -> list[str]:
    """Return type, missing share, number of distinct values, and the usual ones."""
    values: NDArray[Any] = column.to_numpy() if isinstance(column, nw.Series) else column
    try:
        numbers = values.astype(np.float64) if values.dtype.kind in "fiuO" else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is not None:
        known = numbers[~np.isnan(numbers)]
        missing = percent(1.0 - known.size / max(numbers.size, 1))
        if known.size == 0:
            return ["number", missing, "0", "–"]
        low, middle, high = np.quantile(known, [0.05, 0.5, 0.95])
        usual = f"{number(middle)} (90 % from {number(low)} to {number(high)})"
        return ["number", missing, f"{_n_distinct(column, values, known):,}", usual]
    listed = [str(value) for value in values.tolist() if not is_missing(value)]
    counts, missing = Counter(listed), percent(1.0 - len(listed) / max(len(values), 1))
    most = counts.most_common(_MOST_VALUES)
    usual = ", ".join(f"{shortened(value, 40)} ({percent(n / len(listed))})" for value, n in most)
    kind = {"b": "yes or no", "M": "date", "m": "duration"}.get(values.dtype.kind, "category")
    return [kind, missing, f"{len(counts):,}", usual or "–"]
