"""The AUC smoothed by a sigmoid, with gradient."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.losses.pairs import check_eps, check_loss_scores, check_pairs
from aucforest.losses.pairwise import value_and_gradient


def smooth_auc(
    y: ArrayLike, scores: ArrayLike, eps: float, *, sample_weight: ArrayLike | None = None
) -> tuple[float, NDArray[np.float64]]:
    """Compute the smoothed AUC and its gradient with respect to the scores.

    rAUC is the mean of sigmoid((f_i - f_j) / eps) over pairs of a positive sample i and a negative sample j ([1]_,
    equations 4 and 5). It converges to the AUC as eps goes to 0. It takes O(n log n), with the truncation error of
    `pairwise_loss`.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Binary labels. The greater one is positive.
    scores : array-like of shape (n_samples,)
        Finite scores f.
    eps : float
        The width of the sigmoid in units of the scores.
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
        As `pairwise_loss`.

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
    width = check_eps(eps)
    checked = check_loss_scores(scores, width)
    pairs = check_pairs(y, checked.size, sample_weight)
    loss, gradient = value_and_gradient(pairs, checked, "sigmoid", width)
    return 1.0 - loss, -gradient
