"""Logistic regression with a ridge penalty for each categorical column, chosen by an approximate marginal likelihood.

The coefficients of a column's categories have the penalty p / 2 times their sum of squares, which is the logarithm of a
normal density of variance 1 / p. The best p is where the sum of squares, times p, is the effective number of these
coefficients (MacKay 1992, Neural Computation 4, 720-736). The coefficients of all other columns have the penalty 1 / 2
times their sum of squares, and the intercept has none.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from scipy.special import expit, logsumexp, softmax

Array = NDArray[np.float64]

# So many more coefficients of the size 1 per column, without which the penalty of a few categories may be anything.
_PRIOR = 2.0
# Maximum number of choices of the penalties, and the relative change that is none.
_MOST_CHOICES, _LEAST_CHANGE = 10, 0.05
# A step is the last if its square, in standard errors of the coefficients, is less than this: before a choice, and at
# the end. What is left after it is much less.
_LOOSE, _PRECISE = 1.0, 1e-5
_MOST_STEPS, _MOST_PRODUCTS, _LEAST_LENGTH = 50, 100, 1e-4
# Maximum number of coefficients whose pairs have their second derivatives computed.
_MOST_PAIRED = 256
# The curvature of the intercept is at least this.
_LEAST_CURVATURE = 1e-6


class Fitted(NamedTuple):
    """Coefficients, for two classes only those of the second."""

    coef: Array  # (1 or n_classes, n_dense + n_categories)
    intercept: Array
    penalties: Array  # (n_columns,)


class _Curvature(NamedTuple):
    """The second derivatives of the loss at some coefficients, without those of most pairs."""

    proba: Array  # (n_rows, 1 or n_classes)
    of_categories: Array  # (n_categories, 1 or n_classes), without the penalty
    diagonal: Array  # of all coefficients
    of_pairs: list[Any]  # for each class the Cholesky factor of the derivatives of pairs


class _Loss:
    """The penalized log loss of coefficients: those of a 1, of the dense columns and of the categories."""

    def __init__(self, dense: Array, indicators: csr_matrix, labels: NDArray[np.int64], weights: Array) -> None:
        self.dense = np.column_stack((np.ones(len(dense)), dense))
        self.indicators, self.transposed, self.weights = indicators, indicators.T.tocsr(), weights[:, None]
        n_classes = int(labels.max()) + 1
        self.is_class = (labels[:, None] == np.arange(n_classes)[-1 if n_classes == 2 else 0 :]).astype(np.float64)
        self.n_dense, self.n_scores = self.dense.shape[1], self.is_class.shape[1]
        self.of_dense = np.concatenate(([0.0], np.ones(self.n_dense - 1)))[:, None]
        # Most iterations are for columns of few categories, which depend on each other and on the intercept.
        n_frequent = max(0, _MOST_PAIRED - self.n_dense)
        self.frequent = np.argsort(-indicators.sum(axis=0).A1, kind="stable")[:n_frequent]
        self.frequent_indicators = indicators[:, self.frequent]

    def with_penalty(self, of_categories: Array) -> Self:
        """Set the penalty of each category."""
        self.penalty = np.vstack((self.of_dense, of_categories[:, None]))
        return self

    def scores(self, coef: Array) -> Array:
        scores: Array = self.dense @ coef[: self.n_dense] + self.indicators @ coef[self.n_dense :]
        return scores

    def sums(self, values: Array) -> Array:
        """Return the sums of values of rows times columns."""
        return np.vstack((self.dense.T @ values, self.transposed @ values))

    def value(self, coef: Array) -> float:
        scores = self.scores(coef)
        total = np.logaddexp(0.0, scores) if self.n_scores == 1 else logsumexp(scores, axis=1, keepdims=True)
        losses = total - np.sum(self.is_class * scores, axis=1, keepdims=True)
        return float(np.sum(self.weights * losses) + 0.5 * np.sum(self.penalty * coef**2))

    def proba(self, coef: Array) -> Array:
        scores = self.scores(coef)
        proba: Array = expit(scores) if self.n_scores == 1 else softmax(scores, axis=1)
        return proba

    def gradient(self, coef: Array, proba: Array) -> Array:
        return self.sums(self.weights * (proba - self.is_class)) + self.penalty * coef

    def curvature(self, coef: Array) -> _Curvature:
        proba = self.proba(coef)
        weights = self.weights * proba * (1.0 - proba)
        of_categories = self.transposed @ weights
        diagonal = np.vstack(((self.dense**2).T @ weights, of_categories)) + self.penalty
        diagonal[0] += _LEAST_CURVATURE
        of_pairs = [self.pairs(weight[:, None]) for weight in weights.T] if self.n_dense <= _MOST_PAIRED else []
        return _Curvature(proba, of_categories, diagonal, of_pairs)

    def pairs(self, weight: Array) -> Any:
        """Return the Cholesky factor of the second derivatives of pairs, of the weights of rows for one class."""
        weighted, scaled = weight * self.dense, self.frequent_indicators.T.tocsr()
        scaled.data = weight[scaled.indices, 0]
        mixed = self.frequent_indicators.T @ weighted
        of_frequent = (scaled @ self.frequent_indicators).toarray()
        product = np.block([[self.dense.T @ weighted, mixed.T], [mixed, of_frequent]])
        penalty = np.concatenate((self.of_dense[:, 0], self.penalty[self.n_dense + self.frequent, 0]))
        penalty[0] = _LEAST_CURVATURE
        return cho_factor(product + np.diag(penalty))

    def product(self, curvature: _Curvature, coef: Array) -> Array:
        """Return all second derivatives times coefficients."""
        slopes = curvature.proba * self.scores(coef)
        if self.n_scores == 1:
            slopes *= 1.0 - curvature.proba
        else:
            slopes -= curvature.proba * slopes.sum(axis=1, keepdims=True)
        return self.sums(self.weights * slopes) + self.penalty * coef

    def divided(self, curvature: _Curvature, gradient: Array) -> Array:
        """Return a gradient divided by the second derivatives, without those of most pairs."""
        result = gradient / curvature.diagonal
        paired = np.concatenate((np.arange(self.n_dense), self.n_dense + self.frequent))
        for k, factor in enumerate(curvature.of_pairs):
            result[paired, k] = cho_solve(factor, gradient[paired, k])
        return result


def _newton_step(loss: _Loss, curvature: _Curvature, gradient: Array) -> tuple[Array, float]:
    """Return a step of Newton's method by conjugate gradients, and about its squared length in standard errors."""
    step, left = np.zeros_like(gradient), -gradient
    divided = loss.divided(curvature, left)
    direction, size = divided, float(np.sum(left * divided))
    first = size
    for _ in range(_MOST_PRODUCTS):
        # A step far from the minimum need not be precise, and one close to it is more so than the one before.
        if size <= min(0.1, first) * 0.1 * first:
            break
        product = loss.product(curvature, direction)
        length = size / float(np.sum(direction * product))
        step, left = step + length * direction, left - length * product
        divided = loss.divided(curvature, left)
        before, size = size, float(np.sum(left * divided))
        direction = divided + size / before * direction
    return step, first


def _minimize(loss: _Loss, coef: Array, precision: float) -> tuple[Array, _Curvature]:
    """Return the coefficients of the least loss by Newton's method, and the curvature before the last step."""
    value = loss.value(coef)
    for _ in range(_MOST_STEPS):
        curvature = loss.curvature(coef)
        gradient = loss.gradient(coef, curvature.proba)
        step, size = _newton_step(loss, curvature, gradient)
        slope, length = float(np.sum(step * gradient)), 1.0
        while (after := loss.value(coef + length * step)) > value + 1e-4 * length * slope and length > _LEAST_LENGTH:
            length *= 0.5
        if after < value:
            coef, value = coef + length * step, after
        if size < precision or length <= _LEAST_LENGTH:
            break
    return coef, curvature


def _choose(coef: Array, curvature: Array, penalties: Array, column: NDArray[np.int64]) -> Array:
    """Return penalties of columns that are better for these coefficients of categories and their curvature."""
    n_scores = coef.shape[1]
    known = curvature / (curvature + penalties[column, None])
    # The coefficients of all classes sum to 0, so that one of them is not free.
    free = 1.0 if n_scores == 1 else (n_scores - 1) / n_scores
    n_effective, squares = (np.bincount(column, values.sum(axis=1)) for values in (known, coef**2))
    better: Array = (free * n_effective + _PRIOR) / (squares + _PRIOR)
    return better


def fit_category_ridge(
    dense: Array, indicators: csr_matrix, column: NDArray[np.int64], labels: NDArray[np.int64], weights: Array
) -> Fitted:
    """Fit to dense columns and the indicators of categories; `column` is the number of the column of each category.

    All of the labels 0, 1, ... must occur.
    """
    loss, penalties = _Loss(dense, indicators, labels, weights), np.ones(int(column.max()) + 1)
    coef = np.zeros((loss.n_dense + len(column), loss.n_scores))
    for _ in range(_MOST_CHOICES):
        coef, curvature = _minimize(loss.with_penalty(penalties[column]), coef, _LOOSE)
        before = penalties
        penalties = _choose(coef[loss.n_dense :], curvature.of_categories, before, column)
        if np.all(np.abs(penalties - before) <= _LEAST_CHANGE * before):
            break
    coef, _ = _minimize(loss.with_penalty(penalties[column]), coef, _PRECISE)
    return Fitted(np.ascontiguousarray(coef[1:].T), coef[0], penalties)
