"""The function `column_notes`, which describes suspicious columns of a table."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from aucforest.columns.categorical import as_table, check_table
from aucforest.columns.expansion import categories_of_columns, parts_of_unseen
from aucforest.columns.notes import suspicious_columns, unseen_categories


def column_notes(X: Any, y: ArrayLike | None = None, *, model: Any = None) -> list[str]:
    """Describe suspicious columns, like the notes of the commands ``fit``, ``evaluate`` and ``predict``.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The features: a pandas, polars or pyarrow table, or an array, for which columns are named feature_0, feature_1
        and so on.
    y : array-like of shape (n_samples,), default=None
        Class labels, to find columns that alone separate the classes, if there are at most ten classes. Such a column,
        used as a score, has a mean ROC AUC of at least 0.999 over pairs of classes. The score of a category is the
        class frequency of other rows with this category.
    model : estimator, default=None
        A fitted tree, forest or stack, to find categories that were not seen in `fit`. The model treats these as
        missing values. X must have the columns of `fit`.

    Returns
    -------
    list of str
        Sentences on columns that are empty, constant or identifiers, on numbers and dates that are read as text, on
        text that differs only by case and spaces, on integers that float64 rounds, on columns that separate the
        classes, and on unseen categories.

    Raises
    ------
    ValueError, TypeError
        If X is not two-dimensional, y has another length, or X is a polars LazyFrame or a pyarrow RecordBatch.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.inspection import column_notes
    >>> y = np.arange(60) % 3 == 0
    >>> X = pd.DataFrame({"refund": np.where(y, 20.0, 0.0), "channel": ["web", "shop", "shop", "web"] * 15})
    >>> column_notes(X, y)
    ["'refund' alone separates the classes (ROC AUC 1.0000): is it known at prediction time?"]
    >>> forest = AUCForestClassifier(20, random_state=0).fit(X, y)
    >>> for note in column_notes(X.replace("shop", "fax"), model=forest):
    ...     print(note)
    column 'channel': 30 of 60 rows (50 %) have a category that training has not seen ('fax'); it counts as a missing
    value
    """
    check_table(X)
    table = as_table(X)
    if table is None:
        raise ValueError("X must have two dimensions: pass a table or an array of shape (n_samples, n_features)")
    labels = None if y is None else np.unique(column_or_1d(y), return_inverse=True)[1]
    check_consistent_length(table, labels)
    notes = suspicious_columns(X, labels)
    if model is not None:
        check_is_fitted(model)
        validate_data(model, X, skip_check_array=True, reset=False)
        notes += unseen_categories(X, categories_of_columns(model), parts_of_unseen(model))
    return notes
