"""Forms of X whose rows can be taken."""

from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from aucforest.metrics.validation import unmask
from aucforest.tables.sparse import as_csr


def indexable_rows(X: Any) -> Any:
    """Return X in a form whose rows scikit-learn's `_safe_indexing` takes: a frame, an array, or a CSR matrix.

    Frames and arrays are returned as they are. Masked values become missing ones, text stays beside numbers, and rows
    of different lengths, which a pipeline may accept, become an array of objects. Raises ValueError for a damaged
    sparse matrix.
    """
    if issparse(X):
        return as_csr(X)
    X = unmask(X)
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        return X
    if nw.from_native(X, allow_series=True, pass_through=True) is not X:
        return X
    try:
        matrix = np.asarray(X)
    except ValueError:
        return np.fromiter(X, dtype=object, count=len(X))
    # numpy would turn numbers beside text into text.
    return np.asarray(X, dtype=object) if matrix.dtype.kind in "US" else matrix
