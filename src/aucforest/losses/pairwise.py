"""Pairwise losses and the smoothed AUC, with their derivatives with respect to scores."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from aucforest.losses._exponential import log_mean_exp
from aucforest.losses._series import TABLES, add_hinge_sums, add_series_sums
from aucforest.losses.pairs import Pairs, check_eps, check_loss_scores, check_pairs, in_row_order
from aucforest.metrics.validation import FloatArray, check_option

Loss = Literal["exp", "logistic", "sigmoid", "squared_hinge"]


def pairwise_loss(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    loss: Loss = "exp",
    eps: float = 1.0,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> tuple[float, FloatArray, FloatArray]:
    """Compute the mean loss over pairs of a positive and a negative sample, its gradient and its diagonal hessian.

    L = sum over pairs of w_i w_j phi((f_i - f_j) / eps) / sum over pairs of w_i w_j, where sample i is positive and
    sample j is negative. The computation takes O(n log n) time, O(n) for "exp".

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Binary labels. The greater one is positive.
    scores : array-like of shape (n_samples,)
        Finite scores f.
    loss : {"exp", "logistic", "sigmoid", "squared_hinge"}, default="exp"
        - "exp" (RankBoost [1]_, [2]_): phi(x) = exp(-x). **The logarithm of L is returned**, with its gradient and
          hessian, because L overflows if scores differ by some hundred eps. L and log L have the same minimum.
        - "logistic" (RankNet [3]_): phi(x) = log(1 + exp(-x)).
        - "sigmoid": phi(x) = 1 / (1 + exp(x)); L is one minus the AUC smoothed with width eps, see `smooth_auc`. It is
          not convex, and its hessian has negative entries.
        - "squared_hinge": phi(x) = max(0, 1 - x)^2.
    eps : float, default=1.0
        The width of phi in units of the scores.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights. The weight of a pair is the product of its two sample weights.
    group : array-like of shape (n_samples,), optional
        Group labels. Only samples of the same group form pairs.

    Returns
    -------
    value : float
        The loss.
    gradient : ndarray of shape (n_samples,), float64
        First derivatives with respect to the scores.
    hessian : ndarray of shape (n_samples,), float64
        Diagonal of the second derivatives with respect to the scores.

    Raises
    ------
    ValueError, TypeError
        If the loss is unknown, there is no pair with positive weight, scores are not finite real numbers or differ by
        more than 1e100 eps, eps is not a positive number, weights are negative, groups are missing or cannot be sorted,
        or lengths differ.

    Notes
    -----
    "sigmoid" and "logistic" are computed by polynomials of degree 20 in ``exp(-|x|)``. The relative truncation error is
    at most 1e-14 in the value and 1e-13 in the gradient. The absolute error of a pair in the
    hessian is at most 5e-13 w_i w_j / eps^2, divided by the sum of all w_i w_j.

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire, Y. Singer, "An efficient boosting algorithm for combining preferences",
       Journal of Machine Learning Research 4 (2003), 933-969.
    .. [2] C. Cortes, M. Mohri, "AUC optimization vs. error rate minimization", NIPS 2003.
    .. [3] C. Burges et al., "Learning to rank using gradient descent", ICML 2005.

    Examples
    --------
    >>> from aucforest.losses import pairwise_loss
    >>> value, gradient, hessian = pairwise_loss([0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], loss="logistic")
    >>> round(value, 4)
    0.5298
    >>> gradient.round(4)
    array([ 0.1893, -0.2283,  0.2192, -0.1803])
    """
    check_option("loss", loss, get_args(Loss))
    width = check_eps(eps)
    checked = check_loss_scores(scores, width)
    return evaluate(check_pairs(y, checked.size, sample_weight, group), checked, loss, width)


def smooth_auc(
    y: ArrayLike, scores: ArrayLike, eps: float, *, sample_weight: ArrayLike | None = None
) -> tuple[float, FloatArray]:
    """Compute the smoothed AUC and its gradient with respect to the scores.

    rAUC is the mean of sigmoid((f_i - f_j) / eps) over pairs of a positive sample i and a negative sample j ([1]_,
    equations 4 and 5), one minus the `pairwise_loss` "sigmoid". It converges to the AUC as eps goes to 0.

    Parameters
    ----------
    y, scores, eps, sample_weight
        As in `pairwise_loss`, with the same errors.

    Returns
    -------
    value : float
        The smoothed AUC.
    gradient : ndarray of shape (n_samples,), float64
        Derivatives with respect to the scores.

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


def evaluate(pairs: Pairs, scores: FloatArray, loss: str, eps: float) -> tuple[float, FloatArray, FloatArray]:
    """Return `pairwise_loss` of validated arguments."""
    return log_mean_exp(pairs, scores, eps) if loss == "exp" else _mean_of_pairs(pairs, scores, loss, eps, 3)


def value_and_gradient(pairs: Pairs, scores: FloatArray, loss: str, eps: float) -> tuple[float, FloatArray]:
    """Return value and gradient of "sigmoid" or "logistic" from validated arguments."""
    return _mean_of_pairs(pairs, scores, loss, eps, 2)[:2]


def _mean_of_pairs(
    pairs: Pairs, scores: FloatArray, loss: str, eps: float, n_functions: int
) -> tuple[float, FloatArray, FloatArray]:
    """Return the mean over pairs, its gradient and, with three functions (phi, -phi', phi''), its diagonal hessian."""
    rows, starts = pairs.by_score(scores), pairs.starts()
    weights = np.ones(rows.size) if pairs.weights is None else pairs.weights
    sums = np.zeros((rows.size, n_functions))  # sums over the pairs of each row; a pair is in the sums of both its rows
    in_order, positive, weights_in_order = scores[rows], pairs.positive[rows], weights[rows]
    for direction in (1, -1):
        if loss == "squared_hinge":
            add_hinge_sums(in_order, positive, weights_in_order, starts, 1.0 / eps, direction, sums)
        else:
            table = np.ascontiguousarray(TABLES[loss][:, :n_functions])
            add_series_sums(in_order, positive, weights_in_order, starts, 1.0 / eps, direction, table, sums)
    sums, scale = in_row_order(sums, rows), weights / pairs.total
    gradient = np.where(pairs.positive, -scale, scale) * sums[:, 1] / eps
    return 0.5 * float(scale @ sums[:, 0]), gradient, weights * sums[:, -1] / (pairs.total * eps * eps)
