"""Validation of labels, scores and weights. Also missing values, the positive class, and class counts."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning

from aucforest._caller import warn

Scores = NDArray[np.floating[Any]]
FloatArray = NDArray[np.float64]
# Bounds of weights, whose sums and products could otherwise overflow or underflow.
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
# Codes are used as indices in blocks of this many rows, because numpy copies indices to 64-bit integers.
_BLOCK_ROWS = 2**20


def _require(is_valid: NDArray[np.bool_], values: NDArray[Any], condition: str) -> None:
    """Raise ValueError with the condition and the first value that is not valid, if there is one."""
    if not is_valid.all():
        where = int(np.argmin(is_valid))
        raise ValueError(f"{condition}, but value {where} is {values.ravel()[where]}")


def require_finite(values: NDArray[Any], name: str) -> None:
    """Raise ValueError with the first value that is NaN or infinite, if there is one."""
    _require(np.isfinite(values), values, f"{name} must be finite")


def require_range(values: NDArray[Any], name: str) -> None:
    """Raise ValueError with the first value that is not a probability, if there is one."""
    _require((values >= 0.0) & (values <= 1.0), values, f"{name} must be in [0, 1]")


def check_option(name: str, value: Any, options: Sequence[Any]) -> None:
    """Raise ValueError unless the value is one of the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, but is {value!r}")


def unmask(values: Any) -> Any:
    """Return a masked array as an array with NaN, NaT or None for masked values; return other values unchanged."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    kind = values.dtype.kind
    array = values.data.astype(values.dtype if kind in "fmM" else np.float64 if kind in "biu" else object)
    array[np.ma.getmaskarray(values)] = "NaT" if kind in "mM" else np.nan if kind in "fbiu" else None
    return array


def as_column(values: ArrayLike) -> NDArray[Any]:
    """Return values as an array; a matrix with one column becomes a vector."""
    array = np.asarray(unmask(values))
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _real_numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return values as an array; TypeError unless they are real numbers."""
    array = np.asarray(unmask(values))
    if array.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, but its dtype is {array.dtype}")
    return array


def check_scores(y_score: ArrayLike, *, n_dims: int = 1, name: str = "y_score", finite: bool = False) -> Scores:
    """Return scores as contiguous float32 or float64. NaN and infinity raise ValueError only if `finite` is True."""
    scores = _real_numbers(y_score, name)
    if scores.ndim != n_dims:
        raise ValueError(f"{name} must have {n_dims} dimension(s), but has shape {scores.shape}")
    if scores.size == 0:
        raise ValueError(f"{name} is empty: it has shape {scores.shape}")
    if len(scores) >= 1 << 32:
        raise ValueError(f"{name} must have fewer than 2**32 samples, but has {len(scores)}: use AUCSketch")
    if scores.dtype.kind in "iu" and max(-int(scores.min()), int(scores.max())) > 1 << 53:
        raise ValueError(f"{name} has integers above 2**53, which float64 does not represent exactly: pass their ranks")
    is_single = scores.dtype.kind == "f" and scores.dtype.itemsize <= 4
    # Scores are writeable, because numba would compile every kernel again for read-only arrays.
    scores = np.require(scores, np.float32 if is_single else np.float64, ["C", "W"])
    if finite:
        require_finite(scores, name)
    return scores


def check_length(values: NDArray[Any], name: str, n_rows: int, *, of: str = "y_score") -> None:
    """Raise ValueError unless `values` has one entry per row."""
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, but has shape {values.shape}")
    if values.size != n_rows:
        raise ValueError(f"{name} has {values.size} samples, but {of} has {n_rows}")


def check_weights(sample_weight: ArrayLike | None, n_rows: int, *, of: str = "y_score") -> FloatArray | None:
    """Return weights as contiguous float64, or None for None; ValueError unless they are valid."""
    if sample_weight is None:
        return None
    weights = np.require(_real_numbers(sample_weight, "sample_weight"), np.float64, ["C", "W"])
    check_length(weights, "sample_weight", n_rows, of=of)
    require_finite(weights, "sample_weight")
    _require(weights >= 0.0, weights, "sample_weight must not be negative")
    greatest = weights.max(initial=0.0)
    if not (greatest == 0.0 or LEAST_WEIGHT <= greatest <= MOST_WEIGHT):
        bounds = f"from {LEAST_WEIGHT} to {MOST_WEIGHT}"
        raise ValueError(f"sample_weight: the greatest must be {bounds} (or all are 0), but is {greatest}")
    return weights


def require_weight(weights: FloatArray | None) -> None:
    """Raise ValueError if all weights are 0."""
    if weights is not None and not weights.any():
        raise ValueError("sample_weight is 0 for every sample")


def is_positive(
    y_true: ArrayLike, n_rows: int, *, pos_label: Any = None, name: str = "y_true", of: str = "y_score"
) -> NDArray[np.bool_]:
    """Return whether each row has `pos_label`, by default the greater of two labels, or 1 if there is only one."""
    labels = as_column(y_true)
    check_length(labels, name, n_rows, of=of)
    first = labels[0]  # Labels are compared with the first two distinct ones, which is faster than sorting them.
    try:
        is_first = np.asarray(labels == first, dtype=np.bool_)
    except TypeError:  # A comparison with pandas.NA is neither true nor false.
        raise ValueError(f"{name} has a missing value") from None
    n_first = np.count_nonzero(is_first)
    if n_first == n_rows:
        return np.full(n_rows, bool(first == (1 if pos_label is None else pos_label)))
    where = int(np.argmin(is_first))
    second = labels[where]
    if n_first + np.count_nonzero(labels == second) != n_rows:
        raise ValueError(f"{name} must have two labels, but has more, or a missing value (NaN, None)")
    if pos_label is None:
        try:
            first_is_positive = bool(first > second)
        except TypeError:
            raise TypeError(f"{name} has labels that cannot be sorted: {first!r} and {second!r}") from None
    else:
        first_is_positive = bool(first == pos_label)
        if not first_is_positive and second != pos_label:
            raise ValueError(f"pos_label={pos_label!r} is not one of the labels {labels[[0, where]]} of {name}")
    return is_first if first_is_positive else ~is_first


def positive_last(classifier: Any) -> list[int]:
    """Return the indices of the classes of a fitted classifier. If there are two, the positive class is last.

    The positive class is `pos_label_` if the classifier has this attribute, or else the second class.
    """
    classes = classifier.classes_.tolist()
    order = list(range(len(classes)))
    return order[::-1] if len(classes) == 2 and getattr(classifier, "pos_label_", None) == classes[0] else order


def two_classes(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, pos_label: Any = None
) -> tuple[NDArray[np.bool_], Scores, FloatArray | None]:
    """Validate samples. Return whether each is positive, the scores, and the weights."""
    scores = check_scores(as_column(y_score))
    weights = check_weights(sample_weight, scores.size)
    return is_positive(y_true, scores.size, pos_label=pos_label), scores, weights


def stream_rows(y_true: ArrayLike, y_score: ArrayLike) -> tuple[NDArray[np.bool_], Scores]:
    """Validate a batch. Labels must be bool, 0 and 1, or -1 and 1, because a batch may have a single class."""
    scores = check_scores(as_column(y_score), finite=True)
    labels = as_column(y_true)
    check_length(labels, "y_true", scores.size)
    positive = np.asarray(labels == 1)
    n_rest = scores.size - np.count_nonzero(positive)
    if n_rest and n_rest not in (np.count_nonzero(labels == 0), np.count_nonzero(labels == -1)):
        raise ValueError("y_true must be bool, 0 and 1, or -1 and 1 for a stream: pass y_true == positive_label")
    return positive, scores


def class_codes(
    y_true: ArrayLike,
    n_rows: int,
    *,
    labels: ArrayLike | None = None,
    name: str = "y_true",
    of: str = "y_score",
    unknown_is: str = "not in labels",
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return the class index of each row, and the classes: `labels`, by default the sorted values of `y_true`."""
    values = as_column(y_true)
    check_length(values, name, n_rows, of=of)
    present, codes = _code_integers(values) or _code_any(values, name)
    if labels is None:
        return codes, present
    classes = np.asarray(labels)
    index = {label: k for k, label in enumerate(classes.tolist())}
    if classes.ndim != 1 or len(index) != classes.size:
        raise ValueError(f"labels must be one-dimensional without duplicates, but is {labels!r}")
    for label in present.tolist():
        if label not in index:
            raise ValueError(f"{name} has the label {label!r}, which is {unknown_is}")
    return np.array([index[label] for label in present.tolist()], dtype=np.uint32)[codes], classes


def count_classes(
    codes: NDArray[np.integer], n_classes: int, weights: NDArray[np.float64] | None = None
) -> NDArray[Any]:
    """Return the number of rows of each class, or their total weight."""
    if weights is not None:  # in one call, because the sum of the sums of blocks is rounded differently
        return np.bincount(codes, weights, n_classes)
    counts = np.zeros(n_classes, dtype=np.int64)
    for start in range(0, len(codes), _BLOCK_ROWS):
        counts += np.bincount(codes[start : start + _BLOCK_ROWS], minlength=n_classes)
    return counts


def recode(codes: NDArray[np.unsignedinteger], new: NDArray[np.unsignedinteger]) -> NDArray[Any]:
    """Return new[code] for the code of each row."""
    recoded = np.empty(len(codes), dtype=new.dtype)
    for start in range(0, len(codes), _BLOCK_ROWS):
        recoded[start : start + _BLOCK_ROWS] = new[codes[start : start + _BLOCK_ROWS]]
    return recoded


def _code_integers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]] | None:
    """Return classes and codes from a lookup table, or None unless the values are integers in a small range."""
    if values.dtype.kind not in "biuf" or values.size == 0:
        return None
    low, high = values.min(), values.max()
    # The condition is also true if a value is NaN or outside int64.
    largest = max(abs(float(low)), abs(float(high)))
    if not (largest < 2**53 and float(high) - float(low) <= max(1 << 16, 2 * values.size)):
        return None
    whole = values.astype(np.int64)
    if values.dtype.kind == "f" and not np.array_equal(whole, values):
        return None
    offsets = whole - int(low)
    present = np.bincount(offsets) > 0
    code = np.cumsum(present, dtype=np.uint32) - np.uint32(1)
    return (np.flatnonzero(present) + int(low)).astype(values.dtype), code[offsets]


def _code_any(values: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Return sorted classes and codes. Python objects are hashed, so that only the classes are sorted."""
    if values.dtype.kind != "O":
        distinct, codes = np.unique(values, return_inverse=True)
        if not are_missing(distinct[-1:]).any():  # Missing values are sorted last.
            return distinct, codes.astype(np.uint32)
    listed = values.tolist()
    labels = dict.fromkeys(listed)
    if any(is_missing(label) for label in labels):
        raise ValueError(f"{name} has a missing value (NaN, None)")
    try:
        classes = sorted(labels)
    except TypeError:
        raise TypeError(f"{name} has labels that cannot be sorted, such as numbers and strings") from None
    code = {label: k for k, label in enumerate(classes)}
    return np.array(classes, dtype=values.dtype), np.fromiter(map(code.__getitem__, listed), np.uint32, len(listed))


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # A comparison with pandas.NA is neither true nor false.
        return True
    except ValueError:  # The value is an array.
        return False


def are_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each value of an array is missing: NaN, NaT, None, or another value that does not equal itself."""
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    return np.asarray(values != values)


def warn_undefined(message: str) -> None:
    """Warn that a metric is not defined."""
    warn(message, UndefinedMetricWarning)
