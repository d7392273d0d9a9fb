"""Dask collections as partitions of rows, with X, y and weights split at the same rows."""

from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from aucforest._optional import import_optional


class Partitions(NamedTuple):
    """X, y and weights as lists of delayed partitions, which are split at the same rows."""

    X: list[Any]
    y: list[Any]
    sample_weight: list[Any] | None  # None if all weights are 1
    meta: Any  # a table without rows, with the columns and types of X
    n_features: int


def import_dask() -> Any:
    return import_optional("dask", purpose="Dask", extra="dask")


def import_distributed() -> Any:
    return import_optional("distributed", purpose="Dask", extra="dask")


def is_collection(X: Any) -> bool:
    return bool(import_dask().is_dask_collection(X))


def refuse_collections(*arguments: Any) -> None:
    """Raise TypeError if an argument is a Dask collection, because numpy would load it into memory."""
    if any(map(is_collection, arguments)):
        raise TypeError("this method takes no Dask collections: call it on model.to_local(), with X.compute()")


def as_rows(X: Any) -> Any:
    """Return X with whole rows in its partitions; TypeError or ValueError unless it is a dense 2-D Dask collection."""
    if not (is_collection(X) and getattr(X, "ndim", 0) == 2):
        raise TypeError(
            f"X must be a Dask DataFrame or a two-dimensional Dask Array, but is {_describe(X)}; for data in memory"
            " use AUCForestClassifier"
        )
    if X.shape[1] == 0:
        raise ValueError("X has no columns: at least one feature is required")
    refuse_sparse(getattr(X, "_meta", None))
    return X.rechunk({1: -1}) if hasattr(X, "chunks") and X.numblocks[1] > 1 else X


def refuse_sparse(block: Any) -> None:
    """Raise TypeError if a block of X is sparse."""
    if issparse(block) or type(block).__module__.partition(".")[0] == "sparse":
        raise TypeError(
            f"X has sparse blocks ({type(block).__name__}), which a cluster does not support: fit an"
            " AUCForestClassifier in memory, or pass dense blocks, X.map_blocks(lambda block: block.toarray())"
        )


def _describe(value: Any) -> str:
    ndim = f" of {value.ndim} dimensions" if hasattr(value, "ndim") else ""
    return f"a {type(value).__module__.partition('.')[0]} {type(value).__name__}{ndim}"


def align(X: Any, y: Any, sample_weight: Any = None) -> Partitions:
    """Return the partitions of a fit; raise TypeError or ValueError if X, y and weights do not match."""
    X = as_rows(X)
    delayed = align_columns(X=X, y=y, sample_weight=sample_weight)
    return Partitions(delayed[0], delayed[1], None if sample_weight is None else delayed[2], X._meta, X.shape[1])


def align_columns(**columns: Any) -> list[list[Any]]:
    """Return the delayed partitions of the collections that are not None. All except X must be one-dimensional.

    Raises TypeError for other values, and ValueError if the partitions differ in number or known lengths. Unknown
    lengths are compared later, by the tasks that read the partitions.
    """
    columns = {name: values for name, values in columns.items() if values is not None}
    for name, values in columns.items():
        if name != "X" and not (is_collection(values) and getattr(values, "ndim", 0) == 1):
            kind = _describe(values)
            raise TypeError(f"{name} must be a Dask Series or a one-dimensional Dask Array, but is {kind}")
    (first, leading), *others = columns.items()
    for name, values in others:
        n_parts, n_values = leading.npartitions, values.npartitions
        if n_parts != n_values:
            raise ValueError(
                f"{first} has {n_parts} partitions, but {name} has {n_values}: both must be split at the same rows"
            )
        lengths = [known_lengths(collection) for collection in (leading, values)]
        if None not in lengths and lengths[0] != lengths[1]:
            raise ValueError(
                f"{first} has chunks of {lengths[0]} rows, but {name} of {lengths[1]}: rechunk one of them to match"
                " the other"
            )
    return delayed_partitions(*columns.values())


def known_lengths(collection: Any) -> tuple[int, ...] | None:
    """Return the lengths of the chunks of an array, or None if they are not known."""
    chunks = getattr(collection, "chunks", None)
    return None if chunks is None or np.isnan(chunks[0]).any() else chunks[0]


def delayed_partitions(*collections: Any) -> list[list[Any]]:
    """Return the delayed partitions of each collection. Partitions of an array are chunks of whole rows.

    Frames and Series are joined to one collection. If Dask optimized each collection alone, their partitions could
    differ: Dask merges partitions if it reads few columns of Parquet files.
    """
    frame_indices = [index for index, collection in enumerate(collections) if not hasattr(collection, "chunks")]
    parts = {index: _delay(collection) for index, collection in enumerate(collections) if index not in frame_indices}
    if frame_indices:
        first, *others = (collections[index] for index in frame_indices)
        options = {"meta": (None, object), "enforce_metadata": False, "align_dataframes": False}
        rows = _delay(first.map_partitions(lambda *parts: parts, *others, **options))
        pick = import_dask().delayed(getitem)
        parts |= {index: [pick(row, i) for row in rows] for i, index in enumerate(frame_indices)}
    return [parts[index] for index in range(len(collections))]


def _delay(collection: Any) -> list[Any]:
    with keep_partitions():
        delayed = collection.to_delayed()
    if len(delayed) != collection.npartitions:
        # Dask before 2026.1 ignores the option of `keep_partitions`.
        delayed = collection.to_delayed(optimize_graph=False)
    return list(delayed.ravel()) if isinstance(delayed, np.ndarray) else list(delayed)


def keep_partitions() -> Any:
    """Return a context in which Dask's optimizer does not merge partitions."""
    return import_dask().config.set({"optimization.tune.active": False})
