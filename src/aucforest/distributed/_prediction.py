"""What a forest predicts of Dask collections, lazily; the forest is one task, not a copy in every partition."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from aucforest._optional import import_optional
from aucforest.distributed._collections import as_rows


def predict_lazily(forest: Any, X: Any, method: str) -> Any:
    """Return a collection of what a method of a forest says of every partition.

    Parameters
    ----------
    forest : AUCForestClassifier
    X : dask Array or DataFrame of shape (n_samples, n_features)
    method : {"predict", "predict_proba", "predict_log_proba"}

    Returns
    -------
    dask Array with the chunks of X, or of labels for a DataFrame a Series with its divisions

    Raises
    ------
    TypeError
        For another collection.
    ValueError
        For other features than those of `fit`.
    """
    X = as_rows(X)
    is_array = hasattr(X, "chunks")
    head = np.empty((0, X.shape[1])) if is_array else X._meta
    validate_data(forest, head, skip_check_array=True, reset=False)
    shared = import_optional("dask", purpose="Dask", extra="dask").delayed(_share, pure=False)(forest)
    meta = _predict_part(head, forest, method)
    if not is_array:
        predicted = X.map_partitions(_predict_part, shared, method, meta=meta)
        return predicted if method == "predict" else predicted.to_dask_array()
    axes = {"drop_axis": 1} if method == "predict" else {"chunks": (X.chunks[0], meta.shape[1:])}
    return X.map_blocks(_predict_part, forest=shared, method=method, dtype=meta.dtype, meta=meta, **axes)


def _share(forest: Any) -> Any:
    """Return what is given: a task whose result all others share."""
    return forest


def _predict_part(part: Any, forest: Any, method: str) -> Any:
    """Return the prediction of one partition, which may be without rows; of a frame with its index."""
    if len(part) > 0:
        values = getattr(forest, method)(part)
    else:
        values = forest.classes_[:0] if method == "predict" else np.empty((0, len(forest.classes_)))
    if not hasattr(part, "index"):
        return values
    pandas = import_optional("pandas", purpose="a Dask DataFrame", extra="dask")
    return (pandas.Series if method == "predict" else pandas.DataFrame)(values, index=part.index)
