"""Logistic regression with a ridge penalty for each categorical column, chosen by an approximate marginal likelihood.

The coefficients of the categories of a column have the penalty p / 2 times their sum of squares. For the best p, p
times the sum of squares equals the effective number of these coefficients (MacKay 1992, Neural Computation 4, 720-736).
A prior on p acts like additional coefficients of 1 or -1, which pull p towards 1. The coefficients of other columns
have the penalty 1 / 2 times their sum of squares. The intercept has no penalty.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from scipy.special import expit, logsumexp, softmax

from aucforest.metrics.validation import FloatArray

# Maximum number of updates of the penalties, and the relative change of all penalties below which the updates stop.
_MOST_UPDATES, _LEAST_CHANGE = 10, 0.05
# Newton's method stops after a step whose squared length, in standard errors of the coefficients, is below _LOOSE, or
# in the last fit below _PRECISE. The remaining error is much smaller than this last step.
_LOOSE, _PRECISE = 1.0, 1e-5
# Maximum number of Newton steps, maximum number of conjugate gradient iterations in a Newton step, and the smallest
# factor of a step in backtracking.
_MOST_STEPS, _MOST_PRODUCTS, _LEAST_LENGTH = 50, 100, 1e-4
# Maximum number of coefficients in the block of `_Curvature`. With more dense columns there is no block.
_MOST_PAIRED = 256
# Added to the curvature of the intercept, which has no penalty, so that the curvature is positive.
_LEAST_CURVATURE = 1e-6


class _Curvature(NamedTuple):
    """Second derivatives of the loss: the diagonal, and the block of dense columns and frequent categories."""

    proba: FloatArray  # (n_rows, 1 or n_classes), from which products with the second derivatives are computed
    category_curvature: FloatArray  # (n_categories, 1 or n_classes), the diagonal for categories, without the penalty
    diagonal: FloatArray  # (n_coefficients, 1 or n_classes), with the penalty
    block_factors: list[Any]  # the Cholesky factor of the block for each class; empty if there is no block


class _Loss:
    """The penalized log loss as a function of the intercept and the coefficients of dense columns and categories."""

    def __init__(
        self, dense: FloatArray, indicators: csr_matrix, labels: NDArray[np.int64], weights: FloatArray
    ) -> None:
        self.dense = np.column_stack((np.ones(len(dense)), dense))
        self.indicators, self.transposed, self.weights = indicators, indicators.T.tocsr(), weights[:, None]
        n_classes = int(labels.max()) + 1
        self.is_class = (labels[:, None] == np.arange(n_classes)[-1 if n_classes == 2 else 0 :]).astype(np.float64)
        self.n_dense, self.n_scores = self.dense.shape[1], self.is_class.shape[1]
        # The coefficients of frequent categories depend most on each other and on the intercept.
        n_frequent = max(0, _MOST_PAIRED - self.n_dense)
        frequent = np.argsort(-indicators.sum(axis=0).A1, kind="stable")[:n_frequent]
        self.frequent_indicators = indicators[:, frequent]
        self.paired = np.concatenate((np.arange(self.n_dense), self.n_dense + frequent))

    def set_penalty(self, category_penalty: FloatArray) -> None:
        self.penalty = np.concatenate(([0.0], np.ones(self.n_dense - 1), category_penalty))[:, None]

    def scores(self, coef: FloatArray) -> FloatArray:
        return self.dense @ coef[: self.n_dense] + self.indicators @ coef[self.n_dense :]

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum over rows of each column times `values`, (n_coefficients, 1 or n_classes)."""
        return np.vstack((self.dense.T @ values, self.transposed @ values))

    def value(self, coef: FloatArray) -> float:
        scores = self.scores(coef)
        total = np.logaddexp(0.0, scores) if self.n_scores == 1 else logsumexp(scores, axis=1, keepdims=True)
        losses = total - np.sum(self.is_class * scores, axis=1, keepdims=True)
        return float(np.sum(self.weights * losses) + 0.5 * np.sum(self.penalty * coef**2))

    def derivatives(self, coef: FloatArray) -> tuple[FloatArray, _Curvature]:
        """Return the gradient and the curvature."""
        scores = self.scores(coef)
        proba = expit(scores) if self.n_scores == 1 else softmax(scores, axis=1)
        gradient = self.sums(self.weights * (proba - self.is_class)) + self.penalty * coef
        weights = self.weights * proba * (1.0 - proba)
        category_curvature = self.transposed @ weights
        diagonal = np.vstack(((self.dense**2).T @ weights, category_curvature)) + self.penalty
        diagonal[0] += _LEAST_CURVATURE
        factors = [self.block_factor(weight[:, None]) for weight in weights.T] if self.n_dense <= _MOST_PAIRED else []
        return gradient, _Curvature(proba, category_curvature, diagonal, factors)

    def block_factor(self, weight: FloatArray) -> Any:
        """Return the Cholesky factor of the block of a class; `weight` are sample weights times p (1 - p)."""
        weighted, scaled = weight * self.dense, self.frequent_indicators.T.tocsr()
        scaled.data = weight[scaled.indices, 0]
        mixed = self.frequent_indicators.T @ weighted
        frequent_product = (scaled @ self.frequent_indicators).toarray()
        product = np.block([[self.dense.T @ weighted, mixed.T], [mixed, frequent_product]])
        penalty = self.penalty[self.paired, 0]
        penalty[0] = _LEAST_CURVATURE
        return cho_factor(product + np.diag(penalty))

    def product(self, curvature: _Curvature, coef: FloatArray) -> FloatArray:
        """Return the product of the matrix of all second derivatives with coefficients."""
        slopes = curvature.proba * self.scores(coef)
        if self.n_scores == 1:
            slopes *= 1.0 - curvature.proba
        else:
            slopes -= curvature.proba * slopes.sum(axis=1, keepdims=True)
        return self.sums(self.weights * slopes) + self.penalty * coef

    def precondition(self, curvature: _Curvature, gradient: FloatArray) -> FloatArray:
        """Return the product of the approximate inverse of the second derivatives with the gradient."""
        result = gradient / curvature.diagonal
        for k, factor in enumerate(curvature.block_factors):
            result[self.paired, k] = cho_solve(factor, gradient[self.paired, k])
        return result


def _newton_step(loss: _Loss, curvature: _Curvature, gradient: FloatArray) -> tuple[FloatArray, float]:
    """Return a Newton step by conjugate gradients, and its approximate squared length in standard errors."""
    step, residual = np.zeros_like(gradient), -gradient
    preconditioned = loss.precondition(curvature, residual)
    direction, size = preconditioned, float(np.sum(residual * preconditioned))
    first_size = size
    for _ in range(_MOST_PRODUCTS):
        # Far from the minimum, where the size is large, an approximate step is enough.
        if size <= min(0.1, first_size) * 0.1 * first_size:
            break
        product = loss.product(curvature, direction)
        length = size / float(np.sum(direction * product))
        step, residual = step + length * direction, residual - length * product
        preconditioned = loss.precondition(curvature, residual)
        previous, size = size, float(np.sum(residual * preconditioned))
        direction = preconditioned + size / previous * direction
    return step, first_size


def _minimize(loss: _Loss, coef: FloatArray, precision: float) -> tuple[FloatArray, _Curvature]:
    """Minimize the loss by Newton's method; return the coefficients, and the curvature before the last step."""
    value = loss.value(coef)
    for _ in range(_MOST_STEPS):
        gradient, curvature = loss.derivatives(coef)
        step, size = _newton_step(loss, curvature, gradient)
        slope, length = float(np.sum(step * gradient)), 1.0
        # Backtracking until the loss has decreased enough (Armijo's condition).
        while (after := loss.value(coef + length * step)) > value + 1e-4 * length * slope and length > _LEAST_LENGTH:
            length *= 0.5
        if after < value:
            coef, value = coef + length * step, after
        if size < precision or length <= _LEAST_LENGTH:
            break
    return coef, curvature


def _choose_penalties(
    coef: FloatArray, curvature: FloatArray, penalty: FloatArray, column: NDArray[np.int64], prior: FloatArray
) -> FloatArray:
    """Return updated penalties of columns. All arguments except `prior` have a row or a value for each category."""
    n_scores = coef.shape[1]
    effective = curvature / (curvature + penalty[:, None])  # near 1 if the data determine the coefficient, else near 0
    # With more than two classes, the coefficients of a category sum to 0, so only n_classes - 1 of them are free.
    free = 1.0 if n_scores == 1 else (n_scores - 1) / n_scores
    n_effective, squares = (np.bincount(column, values.sum(axis=1)) for values in (effective, coef**2))
    return (free * n_effective + prior) / (squares + prior)


def fit_category_ridge(
    dense: FloatArray,
    indicators: csr_matrix,
    column: NDArray[np.int64],
    prior: FloatArray,
    labels: NDArray[np.int64],
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit the model to dense columns and to the indicators of categories, (n_rows, n_categories).

    `column` has the index of the categorical column of each category. `prior`, (n_columns,), has the number of
    additional coefficients of 1 or -1 of each categorical column. All labels from 0 to the maximum must occur. Returns
    the coefficients, (1 or n_classes, n_dense + n_categories), the intercepts, and the penalty of each categorical
    column. Of two classes, only the second one has coefficients and an intercept.
    """
    loss, penalties = _Loss(dense, indicators, labels, weights), np.ones(len(prior))
    coef = np.zeros((loss.n_dense + len(column), loss.n_scores))
    loss.set_penalty(penalties[column])
    for _ in range(_MOST_UPDATES):
        coef, curvature = _minimize(loss, coef, _LOOSE)
        before = penalties
        penalties = _choose_penalties(coef[loss.n_dense :], curvature.category_curvature, before[column], column, prior)
        loss.set_penalty(penalties[column])
        if np.all(np.abs(penalties - before) <= _LEAST_CHANGE * before):
            break
    coef, _ = _minimize(loss, coef, _PRECISE)
    return np.ascontiguousarray(coef[1:].T), coef[0], penalties
