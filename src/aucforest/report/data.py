"""The section on the data (classes, columns, missing values), and a check whether rows were used for training."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from aucforest.columns.categorical import column_of, names_of, read_table
from aucforest.columns.dates import as_datetimes, format_duration, format_time, in_seconds
from aucforest.columns.notes import suspicious_columns
from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection.models import forest_of
from aucforest.metrics.confidence import auc_with_interval
from aucforest.metrics.validation import is_missing
from aucforest.report.page import Section, Table, number, percent, shortened
from aucforest.report.rows import FloatArray, ScoredRows, check_rows, class_indices, ordered_classes

_MOST_COLUMNS = 200  # maximum number of columns in the table
_MOST_VALUES = 3  # number of frequent values shown for a categorical column
_LEVEL = 0.999  # A ROC AUC is suspicious if its confidence interval at this level is above the out-of-bag ROC AUC.

Pair = tuple[NDArray[Any], NDArray[Any]]  # a column of the rows, and the same column of the training rows


class Training(NamedTuple):
    """The training data. `labels` has the class indices of `y`."""

    X: Any
    y: NDArray[Any]
    labels: NDArray[np.int64]
    sample_weight: FloatArray | None


def read_training(model: Any, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Training | None:
    """Validate and return the training data, or None if none are given."""
    if X is None and y is None and sample_weight is None:
        return None
    if X is None or y is None:
        raise ValueError("the training data are X_train and y_train: give both or none")
    X, y_true, weights = check_rows(X, y, sample_weight, "train")
    return Training(X, y_true, class_indices(y_true, ordered_classes(model), "y_train"), weights)


def data_section(rows: ScoredRows, training: Training | None) -> Section:
    """Return the section on the classes and columns of the rows, and on the classes of the training data."""
    tables = [_class_table("Classes of the rows of this report", rows.classes, rows.labels, rows.sample_weight)]
    if training is not None:
        caption = "Classes of the training rows"
        tables.append(_class_table(caption, rows.classes, training.labels, training.sample_weight))
    notes: list[str] = []
    if (table := column_table(rows.X)) is not None:
        tables.append(table)
        notes = suspicious_columns(rows.X, rows.labels)
    sentences = [f"{note[0].upper()}{note[1:]}{'' if note.endswith('?') else '.'}" for note in notes]
    lead = f"The {rows.labels.size:,} rows that the model was evaluated on."
    return Section("data", "Data", lead, tables=tables, points=sentences)


def _class_table(
    caption: str, classes: tuple[str, ...], labels: NDArray[np.int64], weights: FloatArray | None
) -> Table:
    counts = np.bincount(labels, minlength=len(classes))
    frequencies = {"frequency": counts / labels.size}
    if weights is not None:
        frequencies["frequency by weight"] = np.bincount(labels, weights, minlength=len(classes)) / weights.sum()
    rows = zip(classes, counts.tolist(), *(values.tolist() for values in frequencies.values()))
    body = [[name, f"{n_rows:,}", *map(percent, values)] for name, n_rows, *values in rows]
    return Table(caption, ["class", "rows", *frequencies], body)


def column_table(X: Any) -> Table | None:
    """Return a table with the types and typical values of the first columns of X, or None if X has no columns."""
    names = column_names(X)
    if not names:
        return None
    body = [_describe(name, column) for name, column in islice(_named_columns(X), _MOST_COLUMNS)]
    rest = f"; {len(names) - len(body)} more are not listed" if len(names) > len(body) else ""
    columns = ["column", "type", "missing", "distinct", "usual values"]
    return Table(f"The {len(names)} columns{rest}", columns, body, "llrrl")


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of X, or None for sparse or one-dimensional input."""
    if hasattr(X, "columns"):
        return [str(name) for name in names_of(X)]
    if issparse(X) or np.ndim(X) != 2:
        return None
    return [f"feature_{i}" for i in range(np.shape(X)[1])]


def column_arrays(X: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of a table as arrays by name."""
    return {name: as_array(column) for name, column in _named_columns(X)}


def as_array(values: Any) -> NDArray[Any]:
    """Return a column as an array; dates become datetime64 and durations timedelta64."""
    column = values if isinstance(values, nw.Series) else np.asarray(values)
    with suppress(ValueError):  # raised if dates are mixed with other values
        if (dates := as_datetimes(column)) is not None:
            return dates
    return np.asarray(column.to_numpy() if isinstance(column, nw.Series) else column)


def as_numbers(values: NDArray[Any]) -> tuple[FloatArray, Callable[[float], str]] | None:
    """Return a column as numbers, with NaN if missing, and a function that formats a number; None for categories."""
    if values.dtype.kind in "Mm":
        return in_seconds(values), format_time if values.dtype.kind == "M" else format_duration
    if values.dtype.kind == "O" and any(isinstance(value, str | bool | np.bool_) for value in values.tolist()):
        return None  # numpy would convert digits in text, and booleans
    with suppress(TypeError, ValueError):
        return (values.astype(np.float64), number) if values.dtype.kind in "fiuO" else None
    return None


def _named_columns(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and columns of a table, or nothing if X has no columns."""
    names = column_names(X)
    if names is not None:
        table = read_table(X) if hasattr(X, "columns") else np.asarray(X)
        yield from ((name, column_of(table, j)) for j, name in enumerate(names))


def _describe(name: str, column: Any) -> list[str]:
    """Return name, type, proportion of missing values, number of distinct values and typical values of a column."""
    values = as_array(column)
    numeric = as_numbers(values)
    if numeric is None:
        texts = [str(value) for value in values.tolist() if not is_missing(value)]
        counts = Counter(texts)
        frequent = counts.most_common(_MOST_VALUES)
        typical = ", ".join(f"{shortened(value, 40)} ({percent(n / len(texts))})" for value, n in frequent)
        kind = "boolean" if values.dtype.kind == "b" else "category"
        n_present, n_distinct = len(texts), len(counts)
    else:
        numbers, format_value = numeric
        present = np.sort(numbers[~np.isnan(numbers)])
        kind = {"M": "date", "m": "duration"}.get(values.dtype.kind, "number")
        n_present, n_distinct, typical = present.size, _n_distinct(column, values, present), ""
        if present.size:
            # Quantiles of dates and durations are not interpolated, so they are values of the column.
            quantiles = np.quantile(present, [0.05, 0.5, 0.95], method="linear" if kind == "number" else "lower")
            low, middle, high = map(format_value, quantiles)
            typical = f"{middle} (90 % from {low} to {high})"
    missing = 1.0 - n_present / max(len(values), 1)
    return [name, kind, percent(missing), f"{n_distinct:,}", typical or "–"]


def _n_distinct(column: Any, values: NDArray[Any], numbers: FloatArray) -> int:
    """Return the number of distinct values. For integers, `numbers` is not used, because float64 rounds large ones."""
    if isinstance(column, nw.Series) and column.dtype.is_integer():
        return column.drop_nulls().n_unique()
    if values.dtype.kind == "O":
        return len({value for value in values.tolist() if not is_missing(value)})
    return np.unique(values if values.dtype.kind in "iu" else numbers).size


def check_overlap(rows: ScoredRows, training: Training | None, pairs: Mapping[str, Pair]) -> tuple[str, str | None]:
    """Return a sentence on whether the model was trained on some of the rows, and a warning or None.

    Without training data, there is a warning if the ROC AUC is far above the out-of-bag ROC AUC. With training data,
    rows are compared in the columns `pairs`, and there is a warning if too many equal a training row: if their
    proportion is more than three standard errors above the proportion of training rows that have a duplicate.
    """
    if training is None:
        sentence = "Whether the model was trained on these rows was not checked: no training rows were given."
        return sentence, _high_auc_warning(rows.model, rows.labels, rows.scores, rows.sample_weight)
    if not pairs:
        return "Whether the model was trained on these rows was not checked: they have no columns to compare.", None
    n_seen, duplicate_rate = _count_seen([(rows.labels, training.labels), *pairs.values()])
    n_rows = rows.labels.size
    if n_seen == 0:
        return "No row of this report has the same label and values as a training row.", None
    is_suspicious = n_seen / n_rows > duplicate_rate + 3.0 * np.sqrt(duplicate_rate * (1.0 - duplicate_rate) / n_rows)
    text = (
        f"{n_seen:,} of the {n_rows:,} rows of this report ({percent(n_seen / n_rows)}) have the same label and values "
        f"as a training row; among the training rows themselves {percent(duplicate_rate)} have a duplicate."
    )
    warning = f"{text} If these rows were trained on, all metrics here are too good."
    return text, warning if is_suspicious else None


def pair_columns(rows: ScoredRows, training: Training | None) -> dict[str, Pair]:
    """Return the columns that both tables have, by name; {} for sparse rows and without training data.

    Columns are matched by name if both tables have names, else by position.
    """
    if training is None:
        return {}
    test, train = column_arrays(rows.X), column_arrays(training.X)
    if not (names_of(rows.X) and names_of(training.X)):
        if test and train and len(test) != len(train):
            raise ValueError(f"X_train has {len(train)} columns, but the rows of the report have {len(test)}")
        return dict(zip(test, zip(test.values(), train.values())))
    lacking = [name for name in getattr(rows.model, "feature_names_in_", []) if name not in train]
    if lacking:
        raise ValueError(f"X_train lacks the column {lacking[0]!r}, which the model was fitted to")
    return {name: (test[name], train[name]) for name in test if name in train}


def encode_pair(pair: Pair, *, as_text: bool = False) -> list[NDArray[np.int64]]:
    """Encode two columns with common codes. All missing values have the same code, and objects are encoded as text."""
    columns: list[Any] = list(pair)
    if as_text or any(values.dtype.kind == "O" for values in pair):
        columns = [["" if is_missing(value) else f"={value}" for value in values.tolist()] for values in pair]
    return np.split(np.unique(np.concatenate(columns), return_inverse=True)[1], [len(pair[0])])


def _count_seen(pairs: list[Pair]) -> tuple[int, float]:
    """Return the number of rows equal to a training row, and the proportion of training rows with a duplicate."""
    n_rows, n_training_rows = map(len, pairs[0])
    group = np.zeros(n_rows + n_training_rows, dtype=np.int64)  # rows of a group are equal in all columns so far
    for pair in pairs:
        group = np.unique(group * len(group) + np.concatenate(encode_pair(pair)), return_inverse=True)[1]
    counts = np.bincount(group[n_rows:])
    return int(np.isin(group[:n_rows], group[n_rows:]).sum()), float(counts[counts > 1].sum() / n_training_rows)


def training_rows_warning(
    model: Any, X: Any, y: NDArray[Any], sample_weight: FloatArray | None, proba: FloatArray
) -> str | None:
    """Return a warning if a forest or stack was trained on these rows, or probably on some of them, else None."""
    forest = forest_of(model)
    if forest is None:
        return None
    with suppress(ValueError):  # raised if the rows are not the training rows, or if samples are not bootstrapped
        training_rows(forest, X, y, sample_weight, same_weights=False)
        expected = f": the ROC AUC of out-of-bag rows is {model.oob_score_:.4f}" if model.oob_score is True else ""
        return f"these are the rows that the model was trained on, so that all metrics are too good{expected}"
    return _high_auc_warning(model, class_indices(y, model.classes_, "y"), proba, sample_weight)


def _high_auc_warning(
    model: Any, labels: NDArray[np.int64], proba: FloatArray, sample_weight: FloatArray | None
) -> str | None:
    """Return a warning if a binary forest or stack ranks rows far better than its out-of-bag rows."""
    if proba.shape[1] != 2 or forest_of(model) is None or model.oob_score is not True:
        return None
    auc, low, _ = auc_with_interval(labels == 1, proba[:, 1], sample_weight, _LEVEL)
    if not low > model.oob_score_:  # also if low is NaN
        return None
    return (
        f"The ROC AUC of these rows, {number(auc)}, exceeds that of the out-of-bag rows, "
        f"{number(float(model.oob_score_))}, by more than chance explains. Check that the model was not trained on "
        "these rows."
    )
