"""Correction of class probabilities if trees sample classes at rates other than their frequencies in the training data.

Sampling at rates r_k turns p_k into p_k r_k, normalized; dividing by r_k reverses it (Elkan 2001; Dal Pozzolo, Caelen,
Johnson, Bontempi 2015). In addition, trees of few samples are underconfident. So p_k becomes p_k ** b * c_k,
normalized, with b and c fitted to out-of-bag rows by maximum likelihood; division by r_k is b = 1 and c_k = 1 / r_k.
For two classes the ranking does not change, and the mean of the fitted probabilities is the frequency of each class.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from aucforest.fitting.bootstrap import BootstrapSampler

# Smaller probabilities are replaced by this one, because 0 has no logarithm.
LEAST = 1e-6


class PriorCorrection(NamedTuple):
    """The exponent b, and the offsets log c_k, shape (n_classes,)."""

    exponent: float
    offsets: NDArray[np.float64]

    def apply(self, proba: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return corrected probabilities, shape (n_rows, n_classes)."""
        corrected: NDArray[np.float64] = softmax(self.exponent * _logarithm(proba) + self.offsets, axis=1)
        return corrected


def _logarithm(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(np.maximum(proba, LEAST))


def odds_formula(sampler: BootstrapSampler | None, n_classes: int) -> PriorCorrection | None:
    """Return the correction by the sampling rates alone, or None if all classes have the same rate."""
    if sampler is None or len(sampler.sizes) < n_classes:
        return None
    rates = sampler.rates[~np.isnan(sampler.rates)]
    # A class without samples has no rate, and its corrected probability is 0.
    return (
        None if np.all(rates == rates[0]) else PriorCorrection(1.0, -np.log(np.nan_to_num(sampler.rates, nan=np.inf)))
    )


def fit_correction(
    start: PriorCorrection,
    proba: NDArray[np.float64],
    labels: NDArray[np.uint16],
    sample_weight: NDArray[np.float64] | None,
    prior: NDArray[np.float64],
) -> PriorCorrection:
    """Fit a correction to out-of-bag rows, given their uncorrected probabilities, class codes and weights.

    The logarithm of the exponent has a normal prior with mean 0 and standard deviation 1. The result is `start` if a
    class has no out-of-bag rows. `prior` are the class frequencies of the training data after class weights; the
    out-of-bag rows are weighted to have them, because classes with high sampling rates have fewer out-of-bag rows.
    """
    is_sampled = np.isfinite(start.offsets)
    if len(np.unique(labels)) < np.count_nonzero(is_sampled):
        return start
    logs, rows = _logarithm(proba[:, is_sampled]), np.arange(len(labels))
    places = (np.cumsum(is_sampled) - 1)[labels]
    weight = np.ones(len(labels)) if sample_weight is None else sample_weight / sample_weight.mean()
    frequencies = np.bincount(labels, weight, minlength=len(prior)) / len(labels)
    weight = weight * (prior[labels] / frequencies[labels])

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        exponent = np.exp(parameters[0])
        scores = exponent * logs + np.concatenate(([0.0], parameters[1:]))
        norm = logsumexp(scores, axis=1)
        residual = np.exp(scores - norm[:, None])
        value = weight @ (norm - scores[rows, places]) + 0.5 * parameters[0] ** 2
        residual[rows, places] -= 1.0
        residual *= weight[:, None]
        slope = exponent * np.sum(residual * logs) + parameters[0]
        return float(value), np.concatenate(([slope], residual.sum(axis=0)[1:]))

    offsets = start.offsets.copy()
    first = np.concatenate(([np.log(start.exponent)], np.diff(offsets[is_sampled]).cumsum()))
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"gtol": 1e-8 * len(labels)}).x
    offsets[is_sampled] = np.concatenate(([0.0], found[1:]))
    return PriorCorrection(float(np.exp(found[0])), offsets)
