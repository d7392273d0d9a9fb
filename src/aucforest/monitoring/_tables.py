"""Validation of the parameters and the input data of CBPE."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_scalar
from sklearn.utils.validation import validate_data

from aucforest._caller import warn
from aucforest.columns.categorical import (
    Categories,
    Table,
    as_table,
    check_table,
    column_name,
    column_of,
    encode,
    find_categorical,
    learn,
    read_numbers,
)
from aucforest.columns.dates import find_dates
from aucforest.columns.rows import indexable_rows
from aucforest.columns.sparse import SparseRows
from aucforest.metrics.intervals import require_level
from aucforest.metrics.validation import (
    are_missing,
    as_column,
    check_length,
    check_option,
    check_scores,
    class_codes,
    unmask,
)
from aucforest.monitoring._rows import FloatArray, IntArray, is_probability
from aucforest.monitoring.chunks import Chunks
from aucforest.monitoring.metrics import NORMALIZATIONS, EstimatedMetric

UNKNOWN = np.iinfo(np.uint32).max  # the class index of a missing label


class Samples(NamedTuple):
    """Validated samples."""

    scores: FloatArray  # one column for two classes
    codes: NDArray[np.uint32] | None  # class indices of the labels, UNKNOWN for missing labels
    predicted: NDArray[np.uint32] | None  # class indices of the predictions
    X: FloatArray | None
    kept: NDArray[np.bool_]  # False for samples without a score, and for reference samples without a label

    def take(self, indices: slice | IntArray) -> "Samples":
        """Return the samples with the given indices, without the samples for which `kept` is False."""
        kept = self.kept[indices]
        chosen = indices if kept.all() else np.arange(len(self.kept))[indices][kept]
        return Samples._make(None if values is None else values[chosen] for values in self)


def read_samples(
    cbpe: Any, y_score: ArrayLike, y_true: ArrayLike | None, y_pred: ArrayLike | None, X: Any, *, is_reference: bool
) -> tuple[Samples, NDArray[Any]]:
    """Return the validated samples and the classes, by default the sorted labels of the reference."""
    classes = cbpe.labels if is_reference else cbpe.classes_
    scores = _columns(y_score)
    n_rows = len(scores)
    unscored, unlabelled = np.asarray(np.isnan(scores).any(axis=1)), np.zeros(n_rows, dtype=bool)
    codes = None
    if y_true is not None:
        labels = as_column(y_true)
        check_length(labels, "y_true", n_rows)
        unlabelled = are_missing(labels)
        codes = np.full(n_rows, UNKNOWN, dtype=np.uint32)
        if not unlabelled.all():
            labels = labels[~unlabelled]
            codes[~unlabelled], classes = class_codes(labels, labels.size, labels=classes)
        elif is_reference:
            raise ValueError(f"all {n_rows} labels of y_true are missing")
    _report_missing(int(unscored.sum()), int(unlabelled.sum()), cbpe.on_nan, is_reference)
    kept = ~(unscored | unlabelled) if is_reference else ~unscored
    if not kept.any():
        raise ValueError("no samples are left: each lacks a score or a label")
    classes = np.asarray(classes)
    if is_reference and codes is not None:
        present = np.bincount(codes[kept], minlength=classes.size) > 0
        if classes.size < 2 or not present.all():
            only = classes[present]
            raise ValueError(f"the reference must have samples of all classes, two or more, but has {only} only")
    predicted = None if y_pred is None else class_codes(y_pred, n_rows, labels=classes, name="y_pred")[0]
    if classes.size == 2:
        scores = _positive_column(scores)
    if scores.shape[1] != (1 if classes.size == 2 else classes.size):
        raise ValueError(f"y_score has {scores.shape[1]} columns, but there are {classes.size} classes")
    return Samples(scores, codes, predicted, _features(X, n_rows), kept), classes


def _columns(y_score: ArrayLike) -> FloatArray:
    """Return scores as float64 with a column axis, NaN for missing scores."""
    given = np.asarray(unmask(y_score))
    if given.dtype.kind == "O":  # pandas columns with missing values, or text
        given = np.where(are_missing(given.ravel()).reshape(given.shape), np.nan, given)
    scores = np.asarray(check_scores(given, n_dims=2 if given.ndim == 2 else 1), dtype=np.float64)
    scores = scores.reshape(len(scores), -1)
    if np.isinf(scores).any():
        raise ValueError(f"y_score has {np.isinf(scores).sum()} infinite values")
    return scores


def _positive_column(scores: FloatArray) -> FloatArray:
    """Return the second of two columns; ValueError if these are not probabilities. Return other scores unchanged."""
    if scores.shape[1] != 2:
        return scores
    complete = scores[~np.isnan(scores).any(axis=1)]
    if complete.size and not is_probability(complete):
        raise ValueError("two columns of y_score must be probabilities that sum to 1: pass other scores as one column")
    return scores[:, 1:]


def _report_missing(n_scores: int, n_labels: int, on_nan: str, is_reference: bool) -> None:
    """Raise ValueError or warn, depending on `on_nan`, if scores or labels are missing."""
    if not n_scores and not n_labels:
        return
    counts = f"y_score has {n_scores} and y_true {n_labels} missing values"
    if on_nan == "raise":
        raise ValueError(f'{counts}: set on_nan="drop" to drop these samples')
    dropped = "dropped" if is_reference or not n_labels else "samples without a score are dropped"
    warn(f"{counts}: {dropped}")


def learn_features(X: Any) -> tuple[Any, Categories]:
    """Return X with codes in place of categories and text, and the categories of the columns that were encoded."""
    table = _without_dates(X)
    if table is None:
        return X, {}
    by_dtype = find_categorical(table, "from_dtype")
    categorical = [j for j in range(table.shape[1]) if j in by_dtype or _holds_text(table, j)]
    if not categorical:
        return X, {}
    try:
        return learn(table, categorical, None)
    except TypeError as error:
        raise TypeError(f"{error}; make all its values text, or encode it as numbers") from error


def encode_features(cbpe: Any, X: Any, categories: Categories) -> Any:
    """Validate the columns of X, and return X with codes in place of known categories and NaN for unknown ones."""
    table = _without_dates(X)
    if X is not None and not hasattr(cbpe, "n_features_in_"):
        raise ValueError("X is passed, but the reference has no X: pass X to fit, too")
    if table is not None or issparse(X):
        validate_data(cbpe, X, skip_check_array=True, reset=False)
    if table is None:
        return X
    for feature in range(table.shape[1]):
        if feature not in categories and _holds_text(table, feature):
            what = f"{column_name(table, feature)} holds text, but numbers in the reference"
            raise TypeError(f"X: {what}: pass missing values in place of text")
    return encode(table, categories) if categories else X


def _without_dates(X: Any) -> Table | None:
    """Return X as a table, or None if it is not a table; TypeError for a column of dates or durations."""
    if X is None:
        return None
    check_table(X)
    table = as_table(X)
    if table is None:
        return None
    for feature in find_dates(table, "auto"):
        raise TypeError(
            f"X: {column_name(table, feature)} holds dates or durations: leave dates out, because they"
            " suffice to tell new samples from the reference, and pass durations as numbers"
        )
    return table


def _holds_text(table: Table, feature: int) -> bool:
    """Return whether a column has text; if not, raise TypeError unless its values are numbers."""
    try:
        read_numbers(table, feature)
    except (TypeError, ValueError):
        if not any(isinstance(value, str) for value in column_of(table, feature)):
            what = f"{column_name(table, feature)} holds values that are neither numbers nor text"
            raise TypeError(f"X: {what}: encode them as numbers or text") from None
        return True
    return False


def _features(X: Any, n_rows: int) -> FloatArray | None:
    """Return features as float64; ValueError if they do not have `n_rows` rows and two dimensions."""
    if X is None:
        return None
    X = indexable_rows(X)
    try:
        features = np.asarray(SparseRows(X).toarray() if issparse(X) else X, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise TypeError(f"X must hold real numbers: {error}") from None
    if features.ndim != 2 or len(features) != n_rows:
        raise ValueError(f"X must have {n_rows} samples and two dimensions, but has shape {features.shape}")
    return features


def check_options(cbpe: Any) -> None:
    """Raise ValueError if a parameter of CBPE is invalid."""
    check_option("multi_class", cbpe.multi_class, ("ovo", "ovr"))
    check_option("normalize", cbpe.normalize, NORMALIZATIONS)
    check_option("on_nan", cbpe.on_nan, ("raise", "drop"))
    if isinstance(cbpe.calibration, str):
        check_option("calibration", cbpe.calibration, ("auto", "isotonic", "none"))
    if not cbpe.metrics or isinstance(cbpe.metrics, str):
        raise ValueError(f"metrics must be a sequence of names, but is {cbpe.metrics!r}")
    if len(set(cbpe.metrics)) < len(cbpe.metrics):
        raise ValueError(f"metrics must not contain duplicates, but is {cbpe.metrics!r}")
    if not cbpe.threshold >= 0:
        raise ValueError(f"threshold must not be negative, but is {cbpe.threshold}")
    check_scalar(cbpe.n_simulations, "n_simulations", Integral, min_val=2)
    if cbpe.random_state is not None:
        check_scalar(cbpe.random_state, "random_state", Integral, min_val=0)
    require_level(cbpe.level)


def require_columns(cbpe: Any, metrics: list[EstimatedMetric], samples: Samples) -> None:
    """Raise ValueError if y_pred or X is needed, but was not passed."""
    for metric in metrics:
        if metric.needs_predictions and samples.predicted is None:
            raise ValueError(f"metric {metric.name!r} needs y_pred")
    if cbpe.importance_weighted and samples.X is None:
        raise ValueError("importance_weighted=True needs X, in fit and in estimate")


def choose_chunks(chunks: Chunks | None, default: Chunks) -> Chunks:
    """Return `chunks`, or `default` if none are given.

    If the default has timestamps, ValueError is raised instead, because they are those of the reference.
    """
    if chunks is None:
        if default.has_timestamps:
            raise ValueError("pass chunks: the timestamps in fit were those of the reference")
        return default
    if not isinstance(chunks, Chunks):
        raise TypeError(f"chunks must be created by Chunks.by_size, by_number or by_period, but is {chunks!r}")
    return chunks
