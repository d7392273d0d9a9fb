"""Metrics of predicted classes and of class probabilities: G-mean, Brier score and log loss.

`codes` are the indices of the true classes, (n_samples,), and `proba` has a column for each class.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.validation import FloatArray


def g_mean(codes: NDArray[Any], predicted: NDArray[Any], weights: FloatArray | None = None) -> float:
    """Return the geometric mean of the recalls of all classes with weight. `predicted` are class indices."""
    totals = np.bincount(codes, weights)
    is_hit = codes == predicted
    hits = np.bincount(codes, is_hit if weights is None else weights * is_hit)
    recalls = hits[totals > 0.0] / totals[totals > 0.0]
    return float(np.prod(recalls) ** (1.0 / recalls.size))


def brier_losses(codes: NDArray[Any], proba: FloatArray) -> FloatArray:
    """Return for every sample the sum of squared errors of class probabilities, or half of it for two classes."""
    is_class = codes[:, None] == np.arange(proba.shape[1])
    return np.asarray(np.square(proba - is_class).sum(axis=1) / (2.0 if proba.shape[1] == 2 else 1.0))


def log_losses(codes: NDArray[Any], proba: FloatArray) -> FloatArray:
    """Return for every sample the negative logarithm of the probability of its true class, at most 36."""
    least = np.finfo(np.float64).eps
    return np.asarray(-np.log(np.clip(proba[np.arange(codes.size), codes], least, 1.0 - least)))


def brier_score(codes: NDArray[Any], proba: FloatArray, sample_weight: FloatArray | None = None) -> float:
    """Return the mean of the Brier losses."""
    return float(np.average(brier_losses(codes, proba), weights=sample_weight))


def log_loss(codes: NDArray[Any], proba: FloatArray, sample_weight: FloatArray | None = None) -> float:
    """Return the mean of the log losses."""
    return float(np.average(log_losses(codes, proba), weights=sample_weight))
