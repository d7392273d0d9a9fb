"""Conversion of parameters and labels to JSON and back: numbers, strings, and lists and dicts of them."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.persistence.model_file import Arrays, ModelFormatError, StoredModel, narrow, require

# The maximum size of an array of strings in bytes. Each element takes as much memory as the longest string.
_MOST_TEXT = 2**26
# The maximum number of labels in JSON. More labels are stored as arrays, because the header of a file is limited.
_MOST_PLAIN = 2**12
# Dates and durations are stored as integers: microseconds since the origin of their kind.
_ORIGINS: dict[str, Any] = {
    "date": datetime(1970, 1, 1),
    "date in UTC": datetime(1970, 1, 1, tzinfo=UTC),
    "duration": timedelta(0),
}
_NUMBERS = {"bool", "float16", "float32", "float64"} | {f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}


def to_plain(value: Any) -> Any:
    """Return the value in a form that JSON can represent; raise TypeError for unsupported types.

    Arrays and tuples become lists. A dict becomes ``{"pairs": [[key, value], ...]}``, because its keys can have any
    type. Infinity becomes ``{"float": "inf"}``, and -inf and NaN are converted in the same way.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # `str(value)` of a member of an Enum would be its name
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {"pairs": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        # Arrays of three dimensions are cost matrices of training samples, which a model file does not store.
        if array.ndim < 3 and (array.dtype.name in _NUMBERS or array.dtype.kind in "UO"):
            return to_plain(array.tolist())
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def from_plain(value: Any) -> Any:
    """Return the value from the result of `to_plain`; raise ModelFormatError if it cannot be such a result."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag, content = next(iter(value.items())) if len(value) == 1 else ("", None)
    if tag == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if tag == "pairs" and isinstance(content, list):
        pairs = [from_plain(pair) for pair in content]
        if all(isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], list | dict) for pair in pairs):
            return dict(pairs)
    raise ModelFormatError(f"a value has an invalid encoding: {str(value)[:50]}")


def labels_to_plain(labels: NDArray[Any]) -> dict[str, Any]:
    """Return labels or categories as a dict for JSON.

    Raises TypeError for unsupported types, and ModelFormatError for text that would take too much memory.
    """
    kind = {"U": "text", "O": "object"}.get(labels.dtype.kind, labels.dtype.name)
    if kind not in _NUMBERS | {"text", "object"}:
        raise TypeError(f"labels of dtype {labels.dtype} cannot be stored, only strings and numbers of at most 64 bits")
    values = labels.tolist()
    date_kind = _kind_of_date(values[0]) if kind == "object" and values else None
    if date_kind is not None and all(_kind_of_date(value) == date_kind for value in values):
        kind, values = date_kind, [(value - _ORIGINS[date_kind]) // timedelta.resolution for value in values]
    for value in values if kind == "object" else ():
        if not isinstance(value, str | bool | int | float):
            raise TypeError(f"the label {value!r} is neither a number nor a string")
    length = labels.dtype.itemsize // 4 if kind == "text" else 0
    if kind == "text":
        _check_length(len(values), length)
    return {"kind": kind, "length": length, "values": to_plain(values)}


def _kind_of_date(value: Any) -> str | None:
    """Return the key of `_ORIGINS` for a Python date or duration, or None for other values."""
    for kind, origin in _ORIGINS.items():
        if type(value) is type(origin) and getattr(value, "tzinfo", None) == getattr(origin, "tzinfo", None):
            return kind
    return None


def _check_length(n_labels: int, length: Any) -> None:
    """Raise ModelFormatError if an array of strings of this length would take more than `_MOST_TEXT` bytes."""
    fits = type(length) is int and 1 <= length <= _MOST_TEXT // (4 * max(n_labels, 1))
    require(fits, f"{n_labels} labels of {length} characters are too long for a model file")


def labels_from_plain(stored: Any) -> NDArray[Any]:
    """Return the labels from the dict of `labels_to_plain`; raise ModelFormatError if it cannot be such a dict."""
    is_encoded = isinstance(stored, dict) and set(stored) == {"kind", "length", "values"}
    require(is_encoded, "labels have an invalid encoding")
    kind, length, values = stored["kind"], stored["length"], from_plain(stored["values"])
    are_scalars = isinstance(values, list) and all(isinstance(value, str | bool | int | float) for value in values)
    require(are_scalars, "labels are neither numbers nor strings")
    is_known = isinstance(kind, str) and kind in {*_NUMBERS, *_ORIGINS, "text", "object"}
    require(is_known, f"labels have the unknown type {kind!r}")
    dtype, mismatch = kind, f"labels do not match their type {kind}"
    if kind == "text":
        _check_length(len(values), length)
        dtype = f"U{length}"
    try:
        if kind in _ORIGINS:
            require(all(type(value) is int for value in values), mismatch)
            dtype, values = "object", [_ORIGINS[kind] + value * timedelta.resolution for value in values]
        with np.errstate(all="ignore"):
            labels = np.array(values, dtype=dtype)
    except (ValueError, OverflowError):
        raise ModelFormatError(mismatch) from None
    require(labels.tolist() == values, mismatch)
    return labels


def fold_labels(labels: NDArray[Any], name: str) -> tuple[dict[str, Any], Arrays]:
    """Return the dict of `labels_to_plain` and arrays. If there are many labels, their values are in the arrays."""
    plain = labels_to_plain(labels)
    if len(labels) <= _MOST_PLAIN:
        return plain, {}
    values = from_plain(plain["values"])
    kinds, without_values = set(map(type, values)), {**plain, "values": None}
    if kinds == {str}:
        texts = [text.encode("utf-8", "surrogatepass") for text in values]
        lengths = narrow(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), "BHI")
        return without_values, {f"{name}.text": np.frombuffer(b"".join(texts), np.uint8), f"{name}.lengths": lengths}
    numbers = np.array(values) if kinds in ({int}, {float}) else np.empty(0, dtype=object)
    if numbers.dtype.name not in ("int64", "uint64", "float64") or numbers.tolist() != values:
        return plain, {}  # for example if strings and numbers are mixed
    return without_values, {f"{name}.numbers": numbers}


def unfold_labels(plain: Any, stored: StoredModel, name: str) -> NDArray[Any]:
    """Return the labels from the dict of `fold_labels` and its arrays, which are taken from `stored`."""
    if not isinstance(plain, dict) or plain.get("values", ()) is not None:
        return labels_from_plain(plain)
    if f"{name}.text" not in stored:
        return labels_from_plain({**plain, "values": stored.take_array(f"{name}.numbers", "qQd", (-1,)).tolist()})
    text, lengths = stored.take_array(f"{name}.text", "B", (-1,)), stored.take_array(f"{name}.lengths", "BHI", (-1,))
    ends = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
    require(ends[-1] == len(text), f"{name}: the lengths of labels do not add up to that of their text")
    content = text.tobytes()
    values = [content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]
    return labels_from_plain({**plain, "values": values})
