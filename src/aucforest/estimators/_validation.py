"""Validation of X and y, and conversion to the features of trees: numbers, codes of categories, and parts of dates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from aucforest._sklearn import check_sample_weight
from aucforest.columns.categorical import (
    Categories,
    as_numbers,
    as_table,
    check_table,
    column_name,
    find_categorical,
    learn,
    numpy_cannot_read,
)
from aucforest.columns.dates import DateColumn, check_same_kind, find_dates, has_dates, table_of
from aucforest.columns.expansion import (
    Expanded,
    FoundCategories,
    append_categories,
    columns_of_features,
    columns_of_found,
    expand,
    n_added,
    read_features,
    split_names,
)
from aucforest.columns.integers import rounded_columns, rounded_features, warn_of_rounding
from aucforest.columns.sparse import SparseRows, as_csr
from aucforest.columns.target_rates import TargetRates, append_rates
from aucforest.estimators._model_files import Model
from aucforest.metrics.validation import class_codes, unmask

# Options of scikit-learn's validation of X.
_OPTIONS: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}


def check_weights(X: Any, sample_weight: Any) -> NDArray[np.float64] | None:
    """Return the validated weights of the rows of X, or None for None."""
    if sample_weight is None:
        return None
    return check_sample_weight(unmask(sample_weight), X, dtype=np.float64, ensure_non_negative=True)


def encode_labels(
    y: Any, n_rows: int, classes: NDArray[Any], unknown_is: str = "no class of the model"
) -> NDArray[np.int64]:
    """Return the class index of each label; raise ValueError for unknown labels or if there are not n_rows labels."""
    labels = np.asarray(column_or_1d(unmask(y)))
    codes, _ = class_codes(labels, n_rows, labels=classes, name="y", of="X", unknown_is=unknown_is)
    return codes.astype(np.int64)


class FeatureModel(Model):
    """Base of the models that convert the columns of X to the features of trees."""

    categories_: Categories
    expanded_: Expanded
    target_rates_: TargetRates | None = None
    classes_: NDArray[Any]
    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def _features_of(self, X: Any) -> Any:
        """Validate X, and return the features of trees, with target rates after all other features."""
        return append_rates(self._validate_X(X, reset=False), self.target_rates_)

    def _validate_X(
        self, X: Any, *, reset: bool, y: Any = "no_validation", kept: NDArray[np.int64] | None = None
    ) -> Any:
        """Return validated X with encoded categories and dates, but without target rates; and y if it is given.

        With reset=True, categories are learned from the rows `kept`, or from all rows if it is None.
        """
        if not reset and self._is_plain(X):
            return append_categories(X, self._integers)
        X = unmask(X)
        check_table(X)
        if issparse(X):
            return self._validate_sparse(X, reset=reset, y=y)
        matrix = None
        if reset:
            matrix = self._learn(X, kept)
        else:
            must_encode = not self._reads_numbers or numpy_cannot_read(X)
            table = as_table(X) if must_encode else table_of(X)
            if table is not None and (must_encode or has_dates(table)):
                validate_data(self, X, skip_check_array=True, reset=False)  # checks the names and number of columns
                check_same_kind(table, self.expanded_, self.categories_)
                matrix = read_features(table, self.expanded_, self.categories_)
        try:
            if matrix is None:
                valid = validate_data(self, X, y, reset=reset, **_OPTIONS)
            elif not reset:
                valid = check_array(matrix, estimator=self, **_OPTIONS)
            else:
                validate_data(self, X, skip_check_array=True)
                valid = check_X_y(matrix, y, estimator=self, **_OPTIONS)
        except (TypeError, ValueError) as error:
            if "Complex data" in str(error):
                raise ValueError("Complex data not supported: X and y must be real") from None
            # Messages of float() and numpy about values that are not numbers. `as_numbers` names the column, or reads
            # pandas.NA as missing.
            if not any(words in str(error) for words in ("could not convert", "float() argument", "array element")):
                raise
            valid = validate_data(self, as_numbers(X), y, reset=reset, **_OPTIONS)
        if reset and (table := as_table(X)) is not None:
            numeric = [feature for feature in rounded_features(table) if feature not in self.categories_]
            warn_of_rounding([column_name(table, feature) for feature in numeric])
        return valid if reset or matrix is not None else append_categories(valid, self._integers)

    def _learn(self, X: Any, kept: NDArray[np.int64] | None) -> NDArray[Any] | None:
        """Find categorical columns and dates, and return X as a matrix of features; None if scikit-learn can convert X.

        scikit-learn cannot convert categorical columns, dates and Arrow dictionaries.
        """
        given = self.categorical_features
        table = table_of(X) if given is None or isinstance(given, str) else as_table(X)
        categorical = find_categorical(table, given)
        self.categories_, self.expanded_ = {}, find_dates(table, self.date_parts, categorical)
        if table is None or not (categorical or self.expanded_ or numpy_cannot_read(X)):
            return None
        expanded = expand(table, self.expanded_)
        matrix, self.categories_ = learn(expanded, categorical, kept, warns=isinstance(given, str))
        return matrix

    def _validate_sparse(self, X: Any, *, reset: bool, y: Any) -> Any:
        """Return validated sparse X, and y if given; all features are numeric."""
        if not reset and self._reads_numbers and self._integers:
            return self._validate_X(X.toarray(), reset=False)
        given = self.categorical_features if reset else list(self.categories_)
        if given is not None and len(given) > 0 and not isinstance(given, str):
            raise ValueError("X is sparse, but categorical features need a dense X or a table: pass X.toarray()")
        if reset:
            self.categories_, self.expanded_ = {}, {}
        X = as_csr(X)
        if reset:
            warn_of_rounding([f"column {feature}" for feature in rounded_columns(X)])
        valid = validate_data(self, X, y, reset=reset, accept_sparse="csr", **_OPTIONS)
        return (SparseRows(valid[0]), *valid[1:]) if isinstance(valid, tuple) else SparseRows(valid)

    def _is_plain(self, X: Any) -> bool:
        """Return whether X needs no validation; validating one row would take longer than predicting it."""
        is_matrix = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32) and len(X) > 0
        has_columns = is_matrix and X.shape[1] == self.n_features_in_
        return has_columns and self._reads_numbers and not hasattr(self, "feature_names_in_")

    @property
    def _reads_numbers(self) -> bool:
        """Whether all columns are numbers, some of which may also be categories."""
        are_dates = (isinstance(column, DateColumn) for column in self.expanded_.values())
        return len(self._integers) == len(self.categories_) and not any(are_dates)

    @property
    def split_features_(self) -> NDArray[Any]:
        """The names of the features of the trees: columns of X, those computed from columns, then target rates."""
        check_is_fitted(self, "classes_")
        names = getattr(self, "feature_names_in_", None)
        names = [f"feature_{j}" for j in range(self.n_features_in_)] if names is None else names.tolist()
        return np.array(self._names_of_features(names), dtype=object)

    def _names_of_features(self, names: Sequence[Any]) -> list[Any]:
        """Return the names of the features of the trees, from the names of the columns of X."""
        split, rates = split_names(names, self.expanded_), self.target_rates_
        if rates is None:
            return split
        integers = columns_of_found(self.n_features_in_, self.expanded_, categorical=False)
        rated = {feature: split[column] for feature, (column, width) in integers.items() if width == 1}
        return split + rates.names(split, rated, self.classes_)

    @property
    def _columns_of_features(self) -> list[int]:
        """The index of the column of X that each feature of the trees is computed from."""
        columns = columns_of_features(self.n_features_in_, self.expanded_)
        rates = [] if self.target_rates_ is None else self.target_rates_.columns
        return columns + [columns[feature] for feature in rates]

    @property
    def _inputs_of_features(self) -> list[int]:
        """The index of each feature of the trees or, for found categories and target rates, of its input."""
        inputs = [*range(self.n_features_in_ + n_added(self.expanded_))]
        for feature, (column, _) in columns_of_found(self.n_features_in_, self.expanded_).items():
            inputs[feature] = column
        rates = [] if self.target_rates_ is None else self.target_rates_.columns
        return inputs + [inputs[feature] for feature in rates]

    @property
    def _integers(self) -> FoundCategories:
        """The categories of columns of integers that are also numbers."""
        features = columns_of_found(self.n_features_in_, self.expanded_, categorical=False)
        return {column_and_width: self.categories_[feature] for feature, column_and_width in features.items()}

    @property
    def _found(self) -> FoundCategories:
        """The categories of all features that were found by the labels."""
        features = columns_of_found(self.n_features_in_, self.expanded_)
        return {column_and_size: self.categories_[feature] for feature, column_and_size in features.items()}
