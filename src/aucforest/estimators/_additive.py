"""The additive member of a stack: logistic regression on categories, interactions, and splines of numeric features."""

import warnings
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from aucforest.columns.target_rates import RateTable
from aucforest.estimators._category_ridge import fit_category_ridge
from aucforest.estimators._class_sample import class_factors, sample_classes
from aucforest.estimators.linear import thread_controller
from aucforest.tree.random import STACK_SAMPLE

# The median and the quartiles determine the scale of a numeric feature, and are the knots of its spline.
_QUARTILES = (0.25, 0.5, 0.75)
# The interquartile range of the standard normal distribution.
_NORMAL_RANGE = 1.349
# Values with a greater absolute value are not used for the scale, because their squares could overflow.
_MAX_ABS_VALUE = 1e150
# The maximum number of samples of a fit is _MOST_CELLS divided by columns times classes, but at least _LEAST_ROWS and
# at most _MOST_ROWS. More samples take longer, but hardly change the coefficients.
_MOST_ROWS, _MOST_CELLS, _LEAST_ROWS = 2**16, 2**23, 2**12
# Maximum number of bytes of the columns of all samples. Tables with very many columns get fewer than _LEAST_ROWS.
_MOST_BYTES = 2**30
# The `prior` of `fit_category_ridge` for a categorical feature and for an interaction. Few categories do not determine
# a penalty without a prior. The prior of an interaction is stronger, because its estimated penalty is too large: the
# estimate ignores that the coefficients of an interaction depend on those of its categorical feature.
_CATEGORY_PRIOR, _INTERACTION_PRIOR = 2.0, 100.0
# Maximum number of coefficients for which Newton's method is used.
_MOST_NEWTON = 256
# Maximum number of rows that are predicted at once, to limit the memory of their columns.
_BLOCK_ROWS = 2**13

# The limit of BLAS threads is for the whole process. Without the lock, one fit could remove the limit of another one.
_LOCK = Lock()


def _location_and_scale(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the median and the standard deviation, which is estimated from the interquartile range.

    If this range is 0, the second number is the standard deviation itself or, if that is 0 too, 1.
    """
    values = values.astype(np.float64)
    values = values[np.abs(values) < _MAX_ABS_VALUE]
    if len(values) == 0:
        return 0.0, 1.0
    lower, median, upper = np.quantile(values, _QUARTILES)
    scale = (upper - lower) / _NORMAL_RANGE if upper > lower else values.std()
    return (median, scale) if scale > 0.0 else (median, 1.0)


def _scales_of_stored(X: Any) -> NDArray[np.float64]:
    """Return the root mean square of the stored values of each column of a CSR matrix, or 1 if this is 0."""
    stored = X.data.astype(np.float64)
    is_used = np.abs(stored) < _MAX_ABS_VALUE
    columns, values = X.indices[is_used], stored[is_used]
    squares, counts = (np.bincount(columns, weights, minlength=X.shape[1]) for weights in (values**2, None))
    scales: NDArray[np.float64] = np.sqrt(squares / np.maximum(counts, 1))
    return np.where((scales > 0.0) & np.isfinite(scales), scales, 1.0)


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on scaled numbers, their linear splines, and missing values, categories and interactions.

    X contains the features of a forest: numbers, codes of categories, and NaN for missing values. All features of a
    sparse X are numeric, and only the scaled numbers are used. Each category of the training data has a coefficient,
    however rare it is. These coefficients have a penalty, which is chosen for each categorical feature.

    `categorical` contains the indices of the categorical features in ascending order.
    `interactions` are pairs of features, see `RateTable`. The i-th interaction is an additional categorical feature
    with the index n_features + i. Its codes are the indices of the cells of the `RateTable`.
    """

    n_features_: int
    code_features_: NDArray[np.int64]  # (n_categories,), the feature of each category, in ascending order
    codes_: NDArray[np.float64]  # (n_categories,), the code of each category, in ascending order in each feature
    penalties_: NDArray[np.float64]  # (n_features_with_codes,); all other coefficients have the penalty 1
    # (1 or n_classes, n_columns), the coefficients of numbers, splines, and indicators of missing values and categories
    column_weights_: NDArray[np.float64]
    column_means_: NDArray[np.float64]  # (n_columns,), weighted means of training samples

    # Scaled numbers are clipped to [-MOST_SCALED, MOST_SCALED], so that a few outliers do not determine a coefficient.
    MOST_SCALED: ClassVar[float] = 5.0

    def __init__(self, categorical: tuple[int, ...] = (), interactions: tuple[RateTable, ...] = ()) -> None:
        self.categorical = categorical
        self.interactions = interactions

    def fit(self, X: Any, y: NDArray[np.int64], sample_weight: NDArray[np.float64] | None = None) -> Self:
        """Fit the coefficients to the training data or, if there are many rows, to a sample; y has class indices."""
        n_classes = int(y.max()) + 1
        max_rows = _MOST_ROWS if issparse(X) else self._most_rows(X, n_classes)
        sample = sample_classes(y, n_classes, max(2, max_rows // n_classes), seed=[0, STACK_SAMPLE])
        weight = class_factors(y, y[sample])
        if sample_weight is not None:
            weight = weight * sample_weight[sample]
        self.is_sparse_ = issparse(X)
        self.n_features_, self.numbers_ = X.shape[1], self.find_numbers(X.shape[1])
        X, y = self._with_cells(X[sample]), y[sample]
        if self.is_sparse_:
            self.centre_, self.scale_ = np.zeros(X.shape[1]), _scales_of_stored(X)
            self.missing_ = self.knot_indices_ = self.code_features_ = np.empty(0, dtype=np.int64)
            self.knots_ = self.codes_ = np.empty(0)
        else:
            self._choose_columns(X)
        # The weights are scaled to the mean 1, because the strength of the penalty depends on their sum.
        weight = weight * (len(weight) / weight.sum())
        # BLAS is limited to one thread, because the rounding of its sums depends on the number of threads.
        with _LOCK, thread_controller().limit(limits=1):
            fit = self._fit_with_categories if len(self.codes_) else self._fit_without_categories
            coef = fit(X, y, weight)
            self.column_means_ = self._means_of_columns(X, weight / len(weight))
        # Loaded models have this memory layout, and matrix products of another layout may be rounded differently.
        self.column_weights_ = np.ascontiguousarray(coef)
        return self

    def _fit_without_categories(self, X: Any, y: NDArray[np.int64], weight: NDArray[np.float64]) -> Any:
        """Return the coefficients, one row for two classes, and set the intercepts."""
        from sklearn.linear_model import LogisticRegression  # a slow import, which forests do not need

        columns = self._columns(X)
        # Newton's method takes fewer steps, but each step solves a linear system of all coefficients.
        is_small = int(y.max()) == 1 and columns.shape[1] <= _MOST_NEWTON and not self.is_sparse_
        model = LogisticRegression(solver="newton-cholesky" if is_small else "lbfgs")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(columns, y, weight)
        self.classes_, self.intercepts_, self.penalties_ = model.classes_, model.intercept_, np.empty(0)
        return model.coef_

    def _fit_with_categories(self, X: Any, y: NDArray[np.int64], weight: NDArray[np.float64]) -> Any:
        """Return the coefficients, and set the intercepts and the penalty of each categorical feature."""
        indices, n_codes = self._indices(X), len(self.codes_)
        is_known = indices < n_codes
        row, _ = np.nonzero(is_known)
        indicators = csr_matrix((np.ones(len(row)), (row, indices[is_known])), shape=(len(X), n_codes))
        features, column = np.unique(self.code_features_, return_inverse=True)
        self.classes_, labels = np.unique(y, return_inverse=True)
        prior = np.where(features >= self.n_features_, _INTERACTION_PRIOR, _CATEGORY_PRIOR)
        fitted = fit_category_ridge(self._columns(X), indicators, column, prior, labels, weight)
        coef, self.intercepts_, self.penalties_ = fitted
        return coef

    def _most_rows(self, X: NDArray[np.float64], n_classes: int) -> int:
        """Return the maximum number of samples of a fit to a dense matrix."""
        # Categorical features and interactions take about as long as numeric ones, which have a column and its spline.
        n_columns = (1 + len(_QUARTILES)) * (X.shape[1] + len(self.interactions))
        min_rows = min(_LEAST_ROWS, _MOST_BYTES // (8 * n_columns))
        return max(min_rows, min(_MOST_ROWS, _MOST_CELLS // (n_columns * (1 if n_classes == 2 else n_classes))))

    def _choose_columns(self, X: NDArray[np.float64]) -> None:
        """Set the scales, knots and categories from training data."""
        self.missing_ = np.flatnonzero(np.isnan(X[:, : self.n_features_]).any(axis=0))
        scales = [_location_and_scale(X[:, feature]) for feature in self.numbers_]
        self.centre_, self.scale_ = np.array(scales, dtype=np.float64).reshape(-1, 2).T
        scaled = self._scaled(X)
        quartiles = np.quantile(scaled, _QUARTILES, axis=0)
        # A knot at the smallest or largest value, or a second knot at the same value, would be redundant.
        is_knot = (quartiles > scaled.min(axis=0)) & (quartiles < scaled.max(axis=0))
        is_knot[1:] &= quartiles[1:] > quartiles[:-1]
        quantile, self.knot_indices_ = np.nonzero(is_knot)
        self.knots_ = quartiles[quantile, self.knot_indices_]
        features = [*self.categorical, *range(self.n_features_, X.shape[1])]
        codes = [np.unique(X[~np.isnan(X[:, feature]), feature]) for feature in features]
        self.code_features_ = np.repeat(np.array(features, dtype=np.int64), [len(values) for values in codes])
        self.codes_ = np.concatenate((np.empty(0), *codes))

    def find_numbers(self, n_features: int) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(n_features), self.categorical)

    def _with_cells(self, X: Any) -> Any:
        """Return the features followed by the cell of each interaction, NaN if one of its two values is missing."""
        if len(self.interactions) == 0:
            return X
        cells = np.column_stack([table.cells_of(X) for table in self.interactions])
        return np.hstack((X, np.where(cells < 0, np.nan, cells)))

    def _scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers, scaled and clipped; missing values are 0, the scaled median."""
        scaled = (X[:, self.numbers_] - self.centre_) / self.scale_
        return np.nan_to_num(np.clip(scaled, -self.MOST_SCALED, self.MOST_SCALED))

    def _indices(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index in `codes_` of each row's categories; `len(codes_)` for unknown or missing categories."""
        features, starts = np.unique(self.code_features_, return_index=True)
        indices = np.full((len(X), len(features)), len(self.codes_))
        for column, (feature, codes) in enumerate(zip(features.tolist(), np.split(self.codes_, starts[1:]))):
            index = np.minimum(np.searchsorted(codes, X[:, feature]), len(codes) - 1)
            is_known = codes[index] == X[:, feature]
            indices[is_known, column] = starts[column] + index[is_known]
        return indices

    def _columns(self, X: Any) -> Any:
        """Return all columns except the indicators of categories; columns of a sparse matrix are not centered."""
        if self.is_sparse_:
            scaled = csr_matrix(X, dtype=np.float64, copy=True)
            ratio = scaled.data / self.scale_[scaled.indices]
            scaled.data = np.nan_to_num(np.clip(ratio, -self.MOST_SCALED, self.MOST_SCALED))
            return scaled
        scaled = self._scaled(X)
        splines = np.maximum(scaled[:, self.knot_indices_] - self.knots_, 0.0)
        return np.hstack((scaled, splines, np.isnan(X[:, self.missing_])))

    def _means_of_columns(self, X: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted means of all columns, with weights that sum to 1."""
        means = np.asarray(weight @ self._columns(X))
        if len(self.codes_) == 0:
            return means
        indices = self._indices(X)
        code_means = np.bincount(indices.ravel(), np.repeat(weight, indices.shape[1]), len(self.codes_) + 1)
        return np.concatenate((means, code_means[:-1]))

    def coef_by_class(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the coefficients, (n_classes, n_columns), and intercepts; both are 0 for the first of two classes."""
        if len(self.classes_) > 2:
            return self.column_weights_, self.intercepts_
        weights = self.column_weights_
        return np.vstack((np.zeros_like(weights), weights)), np.concatenate(([0.0], self.intercepts_))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return class scores, (n_samples, n_classes), whose softmax gives the probabilities."""
        if not (isinstance(X, np.ndarray) or issparse(X)):
            raise TypeError(
                f"linear: X must be an array of numbers and codes of categories, but is a {type(X).__name__}: pass"
                " np.asarray(stack.encode(X))"
            )
        coef, intercept = self.coef_by_class()
        n_columns = coef.shape[1] - len(self.codes_)
        # One row for each category, and a row of zeros for values without a code.
        code_weights = np.vstack((coef[:, n_columns:].T, np.zeros(len(intercept))))
        scores = np.empty((X.shape[0], len(intercept)))
        max_rows = max(1, min(_BLOCK_ROWS, _MOST_CELLS // max(1, n_columns)))
        for start in range(0, X.shape[0], max_rows):
            rows = slice(start, start + max_rows)
            if self.is_sparse_:
                scores[rows] = self._columns(X[rows]) @ coef.T
                continue
            dense = self._with_cells(X[rows].toarray() if issparse(X) else X[rows])
            # Products use einsum instead of BLAS, whose rounding depends on its number of threads.
            scores[rows] = np.einsum("np,kp->nk", self._columns(dense), coef[:, :n_columns])
            for index in self._indices(dense).T:
                scores[rows] += code_weights[index]
        return scores + intercept

    def effects(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the effect of each feature on the class scores, and the mean scores of the training samples.

        Effects have the shape (n_classes, n_samples, n_features), and the mean 0 over the training samples. The effect
        of an interaction is added to the effect of its categorical feature.
        """
        coef, intercept = self.coef_by_class()
        effects = np.zeros((len(coef), *X.shape))
        effect_index = [*range(X.shape[1]), *(table.feature for table in self.interactions)]
        X = self._with_cells(X)
        columns = self._columns(X)
        columns = (columns.toarray() if issparse(columns) else columns) - self.column_means_[: columns.shape[1]]
        feature_of_column = np.concatenate((self.numbers_, self.numbers_[self.knot_indices_], self.missing_))
        for feature, column, weights in zip(feature_of_column.tolist(), columns.T, coef.T):
            effects[:, :, feature] += np.multiply.outer(weights, column)
        means = coef * self.column_means_
        code_weights = np.hstack((coef[:, columns.shape[1] :], np.zeros((len(coef), 1))))
        features = np.unique(self.code_features_)
        for feature, codes in zip(features.tolist(), self._indices(X).T if len(features) else ()):
            of_feature = np.flatnonzero(self.code_features_ == feature) + columns.shape[1]
            effects[:, :, effect_index[feature]] += code_weights[:, codes] - means[:, of_feature].sum(axis=1)[:, None]
        return effects, intercept + means.sum(axis=1)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return softmax(self.decision_function(X), axis=1)
