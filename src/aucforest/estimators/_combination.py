"""The combination of class scores of several models by a penalized likelihood.

Class k has the score sum_m b_m s_mk + a_k, where s_mk are the scores of model m, and the class probabilities are the
softmax of the scores. The weights b_m are not negative. The penalty c sum_m (b_m - d_m)^2 pulls b towards d = (1, 0,
..., 0), the first model alone. The derivation is in docs/mathematics/forests.md.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

# Smaller probabilities are replaced by this value, because the logarithm of 0 is infinite.
MIN_STACK_PROBA = 1e-9


def log_proba(proba: NDArray[np.float64], min_proba: float = MIN_STACK_PROBA) -> NDArray[np.float64]:
    """Return the class scores of a model, log(proba); with two classes, their difference is the log odds."""
    return np.log(np.maximum(proba, min_proba))


def residual_score(residual_proba: NDArray[np.float64], proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the class scores of a residual forest, log q_k - log(1 - p_k) - log p_k.

    Here q are the class probabilities of the residual forest, and p those of the forest. In the fit of the residual
    forest, a sample of class k has the weight 1 - p_k. The term log(1 - p_k) corrects for these weights. See
    docs/mathematics/forests.md.
    """
    return log_proba(residual_proba) - log_proba(proba) - log_proba(1.0 - proba)


class Combination(NamedTuple):
    """Weights of models and intercepts of classes."""

    coef: NDArray[np.float64]  # (n_models,)
    intercept: NDArray[np.float64]  # (n_classes,), with the mean 0

    def apply(self, scores: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
        """Return class probabilities. The scores of a model of weight 0 may be None, but not those of all models."""
        total = self.intercept + sum(b * score for b, score in zip(self.coef, scores) if score is not None)
        return softmax(total, axis=1)


def combine(
    scores: Sequence[NDArray[np.float64]], labels: NDArray[Any], weights: NDArray[np.float64], penalty: float
) -> Combination:
    """Fit a combination to the scores of each model, (n_samples, n_classes), and the class indices of the samples."""
    n_models, n_classes = len(scores), scores[0].shape[1]
    # Only differences of scores matter, so the scores of the first class are subtracted.
    differences = np.stack([score[:, 1:] - score[:, :1] for score in scores])
    is_label = labels[:, None] == np.arange(1, n_classes)
    target = np.eye(n_models)[0]

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        coef, intercept = np.split(parameters, [n_models])
        # The sums use einsum, because sums by BLAS depend on its number of threads.
        total = np.einsum("m,mnk->nk", coef, differences) + intercept
        norm = logsumexp(np.hstack((np.zeros((len(total), 1)), total)), axis=1)
        error = (np.exp(total - norm[:, None]) - is_label) * weights[:, None]
        gradient = np.einsum("nk,mnk->m", error, differences) + 2.0 * penalty * (coef - target)
        value = np.sum(weights * (norm - np.sum(total * is_label, axis=1))) + penalty * np.sum((coef - target) ** 2)
        return float(value), np.concatenate((gradient, error.sum(axis=0)))

    bounds = [(0.0, None)] * n_models + [(None, None)] * (n_classes - 1)
    start = np.concatenate((target, np.zeros(n_classes - 1)))
    coef, intercept = np.split(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x, [n_models])
    intercept = np.append(0.0, intercept)
    return Combination(coef, intercept - intercept.mean())
