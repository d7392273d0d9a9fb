"""Lazy predictions for Dask collections: labels, probabilities, leaves or encoded rows."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from aucforest._optional import import_optional
from aucforest.columns.categorical import check_table
from aucforest.distributed._collections import as_rows, import_dask, keep_partitions, refuse_sparse
from aucforest.distributed._executor import identity


def predict_lazily(forest: Any, X: Any, method: str) -> Any:
    """Return the lazy result of a method of the forest, such as "predict": a Dask Array with the chunks of X.

    If X is a DataFrame, "predict" returns a Series and "encode" a DataFrame, with the divisions of X.
    """
    X = as_rows(X)
    is_array = hasattr(X, "chunks")
    head = np.empty((0, X.shape[1])) if is_array else X._meta
    check_table(head)
    validate_data(forest, head, skip_check_array=True, reset=False)
    # The forest is one task of the graph, so that it is not copied into the task of each partition.
    shared = import_dask().delayed(identity, pure=False)(forest)
    meta = _predict_part(head, forest, method)
    if not is_array:
        predicted = X.map_partitions(_predict_part, shared, method, meta=meta)
        with keep_partitions():
            return predicted if method in ("predict", "encode") else predicted.to_dask_array()
    axes = {"drop_axis": 1} if method == "predict" else {"chunks": (X.chunks[0], meta.shape[1:])}
    return X.map_blocks(_predict_part, forest=shared, method=method, dtype=meta.dtype, meta=meta, **axes)


def _predict_part(part: Any, forest: Any, method: str) -> Any:
    """Return the prediction for a partition, which may be empty. If it is a frame, the prediction has its index."""
    refuse_sparse(part)
    values = getattr(forest, method)(part) if len(part) > 0 else _predict_no_rows(forest, method)
    if not hasattr(part, "index"):
        return values
    pandas = import_optional("pandas", purpose="a Dask DataFrame", extra="dask")
    if method == "predict":
        return pandas.Series(values, index=part.index)
    names = None
    if method == "encode":
        is_split = forest.expanded_ or forest.target_rates_ is not None
        names = forest.split_features_.tolist() if is_split else part.columns.tolist()
    return pandas.DataFrame(values, index=part.index, columns=names)


def _predict_no_rows(forest: Any, method: str) -> Any:
    if method == "predict":
        return forest.classes_[:0]
    n_columns = {"apply": len(forest.trees_), "encode": forest.trees_[0].n_features}.get(method, len(forest.classes_))
    return np.empty((0, n_columns), dtype=np.int64 if method == "apply" else np.float64)
