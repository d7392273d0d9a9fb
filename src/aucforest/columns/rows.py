"""Conversion of X to a type whose rows can be selected by index."""

from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import issparse

from aucforest.columns.categorical import names_of
from aucforest.columns.sparse import as_csr
from aucforest.metrics.validation import unmask


def indexable_rows(X: Any) -> Any:
    """Return X in a type whose rows scikit-learn's `_safe_indexing` can select: a frame, an array, or a CSR matrix.

    Masked values become missing ones, and Arrow's string views become strings. A list with text, or with rows of
    different lengths, becomes an array of objects, which a pipeline may accept. Raises ValueError for a damaged sparse
    matrix.
    """
    if issparse(X):
        return as_csr(X)
    X = unmask(X)
    if isinstance(X, np.ndarray):
        return X
    if hasattr(X, "iloc") or nw.from_native(X, allow_series=True, pass_through=True) is not X:  # a frame or a Series
        return _cast_string_views(X)
    try:
        matrix = np.asarray(X)
    except ValueError:
        return np.fromiter(X, dtype=object, count=len(X))
    # Without `dtype`, numpy turns numbers beside text into text.
    return np.asarray(X, dtype=object) if matrix.dtype.kind in "US" else matrix


def _cast_string_views(X: Any) -> Any:
    """Convert Arrow's string views in a frame to strings, because pyarrow cannot select rows of string views."""
    is_pandas, is_arrow = nw.dependencies.is_pandas_dataframe(X), nw.dependencies.is_pyarrow_table(X)
    types = X.dtypes if is_pandas else X.schema.types if is_arrow else ()
    views = [name for name, type_ in zip(names_of(X), types) if str(type_).startswith("string_view")]
    if is_pandas and views:  # pandas cannot convert views by `astype`
        return X.assign(**{name: X[name].array.to_numpy(dtype=object) for name in views})
    return nw.from_native(X).with_columns(nw.col(views).cast(nw.String)).to_native() if views else X
