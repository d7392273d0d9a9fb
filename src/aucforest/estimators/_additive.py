"""Logistic regression on linear splines of numbers and on frequent categories, the additive member of a stack."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from aucforest.estimators._evidence import sample_classes

# A number is scaled and clipped to +-_MOST, so that a few outliers do not decide about its coefficient.
_MOST = 5.0
# A number with more than two values has a knot at each of these quantiles.
_KNOTS = (0.25, 0.5, 0.75)
# A category with fewer training samples has no coefficient.
_LEAST_SAMPLES = 10
# Maximum number of training samples, and of their values times classes, unless that would be less than _LEAST_ROWS:
# with more the fit takes longer, but the coefficients hardly change.
_MOST_ROWS, _MOST_CELLS, _LEAST_ROWS = 2**16, 2**23, 2**12
# Number of rows whose columns are in memory at a time.
_BLOCK_ROWS = 2**13


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on scaled numbers, their linear splines, missing values and frequent categories.

    It reads the features of a forest: numbers, codes of categories, and NaN for missing values. Of a sparse matrix it
    uses scaled numbers alone.

    Parameters
    ----------
    categorical : tuple of int
        The features that are codes of categories.
    """

    def __init__(self, categorical: tuple[int, ...] = ()) -> None:
        self.categorical = categorical

    def fit(self, X: Any, y: NDArray[np.int64], sample_weight: NDArray[np.float64] | None = None) -> Self:
        """Fit the coefficients to training data, or to a sample of it if it is large; y are numbers of classes."""
        from sklearn.linear_model import LogisticRegression  # here, because its import is slow and forests need none

        n_classes = int(y.max()) + 1
        n_values = 1 if issparse(X) else (1 + len(_KNOTS)) * X.shape[1] * (1 if n_classes == 2 else n_classes)
        most = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_CELLS // n_values)) // n_classes
        sample = sample_classes(y, n_classes, most, seed=0)
        # restores the class frequencies
        weight = (np.bincount(y) / np.maximum(np.bincount(y[sample]), 1))[y[sample]]
        if sample_weight is not None:
            weight = weight * sample_weight[sample]
        X, y = X[sample], y[sample]
        self.is_sparse_ = issparse(X)
        if self.is_sparse_:
            self.scale_ = StandardScaler(with_mean=False).fit(X).scale_
        else:
            self._choose_columns(X)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # The sum of the weights decides about the strength of the penalty.
            weight *= len(weight) / weight.sum()
            model = LogisticRegression().fit(self._columns(X), y, weight)
        self.classes_, self.coef_, self.intercept_ = model.classes_, model.coef_, model.intercept_
        return self

    def _choose_columns(self, X: NDArray[np.float64]) -> None:
        """Set scales, knots and categories by training data."""
        is_number = np.ones(X.shape[1], dtype=np.bool_)
        is_number[list(self.categorical)] = False
        self.numbers_, self.missing_ = np.flatnonzero(is_number), np.flatnonzero(np.isnan(X).any(axis=0))
        numbers = np.ma.masked_invalid(X[:, self.numbers_])
        self.centre_, scale = numbers.mean(axis=0).filled(0.0), numbers.std(axis=0).filled(0.0)
        self.scale_ = np.where(scale > 0.0, scale, 1.0)
        knots: list[tuple[int, float]] = []
        for place, values in enumerate(self._scaled(X).T):
            within = np.unique(np.quantile(values, _KNOTS)) if len(np.unique(values)) > 2 else np.empty(0)
            knots += [(place, knot) for knot in within if values.min() < knot < values.max()]
        self.knot_places_ = np.array([place for place, _ in knots], dtype=np.int64)
        self.knots_ = np.array([knot for _, knot in knots], dtype=np.float64)
        codes: list[tuple[int, float]] = []
        for feature in self.categorical:
            values, counts = np.unique(X[:, feature], return_counts=True)
            codes += [(feature, code) for code in values[(counts >= _LEAST_SAMPLES) & ~np.isnan(values)]]
        self.code_features_ = np.array([feature for feature, _ in codes], dtype=np.int64)
        self.codes_ = np.array([code for _, code in codes], dtype=np.float64)

    def _scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numbers, scaled and clipped; missing ones are 0, the mean."""
        scaled = (X[:, self.numbers_] - self.centre_) / self.scale_
        return np.nan_to_num(np.clip(scaled, -_MOST, _MOST))

    def _columns(self, X: Any) -> Any:
        """Return the columns that the coefficients belong to; those of a sparse matrix are not centred."""
        if self.is_sparse_:
            scaled = csr_matrix(X, dtype=np.float64, copy=True)
            scaled.data = np.nan_to_num(np.clip(scaled.data / self.scale_[scaled.indices], -_MOST, _MOST))
            return scaled
        X = X.toarray() if issparse(X) else X
        scaled = self._scaled(X)
        splines = np.maximum(scaled[:, self.knot_places_] - self.knots_, 0.0)
        return np.hstack((scaled, splines, np.isnan(X[:, self.missing_]), X[:, self.code_features_] == self.codes_))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of classes, (n_samples, n_classes), that of the first of two classes 0."""
        coef, intercept = self.coef_, self.intercept_
        if len(self.classes_) == 2:
            coef, intercept = np.vstack((np.zeros_like(coef), coef)), np.concatenate(([0.0], intercept))
        scores = np.empty((X.shape[0], len(intercept)))
        with threadpool_limits(1):
            for start in range(0, X.shape[0], _BLOCK_ROWS):
                rows = slice(start, start + _BLOCK_ROWS)
                scores[rows] = self._columns(X[rows]) @ coef.T + intercept
        return scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities, (n_samples, n_classes)."""
        proba: NDArray[np.float64] = softmax(self.decision_function(X), axis=1)
        return proba
