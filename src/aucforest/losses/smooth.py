"""The AUC smoothed by a sigmoid, with gradient."""

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from aucforest.losses._series import double_loop
from aucforest.losses.pairs import Pairs, check_eps, check_loss_scores, check_pairs
from aucforest.losses.pairwise import value_and_gradient
from aucforest.metrics.validation import check_option


def smooth_auc(
    y: ArrayLike,
    scores: ArrayLike,
    eps: float,
    *,
    method: Literal["fast", "exact", "sampled"] = "fast",
    n_pairs: int = 1000,
    random_state: Any = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """Compute the smoothed AUC and its gradient with respect to the scores.

    rAUC is the mean of sigmoid((f_i - f_j) / eps) over pairs of a positive sample i and a negative sample j ([1]_,
    equations 4 and 5). It converges to the AUC as eps goes to 0.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Binary labels. The greater one is positive.
    scores : array-like of shape (n_samples,)
        Finite scores f.
    eps : float
        The width of the sigmoid in units of the scores.
    method : {"fast", "exact", "sampled"}, default="fast"
        - "fast": all pairs in O(n log n), with the truncation error of `pairwise_loss`.
        - "exact": all pairs one by one in O(n^2).
        - "sampled": an unbiased estimate from `n_pairs` pairs sampled with replacement.
    n_pairs : int, default=1000
        The number of pairs for "sampled".
    random_state : int, RandomState instance or None, default=None
        Controls the pairs for "sampled".
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights. The weight of a pair is their product.

    Returns
    -------
    value : float
        The smoothed AUC.
    gradient : ndarray of shape (n_samples,), float64
        Derivatives with respect to the scores.

    Raises
    ------
    ValueError, TypeError
        As `pairwise_loss`. ValueError also if `method` or `n_pairs` is invalid.

    References
    ----------
    .. [1] A. Morita, "AUC as Loss: directly fitting to optimize ROC AUC".

    Examples
    --------
    >>> from aucforest.losses import smooth_auc
    >>> y, scores = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]
    >>> [round(smooth_auc(y, scores, eps)[0], 4) for eps in (1.0, 0.1, 0.01)]
    [0.5914, 0.8908, 0.9983]
    """
    check_option("method", method, ("fast", "exact", "sampled"))
    width = check_eps(eps)
    checked = check_loss_scores(scores, width)
    pairs = check_pairs(y, checked.size, sample_weight)
    if method == "fast":
        loss, gradient = value_and_gradient(pairs, checked, "sigmoid", width)
        return 1.0 - loss, -gradient
    if method == "exact":
        slopes = np.empty(checked.size)
        weights = np.ones(checked.size) if pairs.weights is None else pairs.weights
        value = double_loop(checked, pairs.positive, weights, 1.0 / width, slopes)
        return float(value) / pairs.total, slopes / (pairs.total * width)
    if not isinstance(n_pairs, Integral) or n_pairs < 1:
        raise ValueError(f"n_pairs must be a positive integer, but is {n_pairs!r}")
    upper, lower = sample_pairs(pairs, int(n_pairs), check_random_state(random_state))
    sigmoid = expit((checked[upper] - checked[lower]) / width)
    slope = sigmoid * (1.0 - sigmoid) / (width * upper.size)
    gradient = np.bincount(upper, slope, checked.size) - np.bincount(lower, slope, checked.size)
    return float(sigmoid.mean()), gradient


def sample_pairs(pairs: Pairs, n_pairs: int, random: np.random.RandomState) -> list[NDArray[np.intp]]:
    """Return the positive and the negative rows of pairs sampled with replacement, by weight."""
    sampled = []
    for rows in (np.flatnonzero(pairs.positive), np.flatnonzero(~pairs.positive)):
        if pairs.weights is None:
            places = random.randint(rows.size, size=n_pairs)
        else:
            upto = np.cumsum(pairs.weights[rows])
            # less than the last sum, so that a last row of weight 0 is never sampled
            places = np.searchsorted(upto, random.random_sample(n_pairs) * upto[-1], side="right")
        sampled.append(rows[places])
    return sampled
