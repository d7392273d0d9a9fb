"""Losses of pairs, with gradient and diagonal hessian in the space of scores."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.losses._exponential import log_mean_exp
from aucforest.losses._series import TABLES, add_hinge_sums, add_series_sums
from aucforest.losses.pairs import Pairs, Vector, check_eps, check_loss_scores, check_pairs, in_row_order
from aucforest.metrics.validation import check_option

Loss = Literal["exp", "logistic", "sigmoid", "squared_hinge"]


def pairwise_loss(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    loss: Loss = "exp",
    eps: float = 1.0,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean loss over pairs of a positive and a negative row, its gradient and its diagonal hessian.

    L = sum over pairs of w_i w_j phi((f_i - f_j) / eps) / sum over pairs of w_i w_j, where row i is positive and row j
    negative. The sums over all pairs take O(n log n) time, O(n) for "exp".

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Two labels; the greater is the positive one.
    scores : array-like of shape (n_samples,)
        Scores f, finite.
    loss : {"exp", "logistic", "sigmoid", "squared_hinge"}, default="exp"
        - "exp" (RankBoost [1]_, [2]_): phi(x) = exp(-x). **The logarithm of L is returned**, with its gradient and
          hessian: L itself overflows where scores are some hundred eps apart. Both have the same minimum.
        - "logistic" (RankNet [3]_): phi(x) = log(1 + exp(-x)).
        - "sigmoid": phi(x) = 1 / (1 + exp(x)), so that L is one minus the AUC smoothed with width eps, see
          `smooth_auc`. Not convex: its hessian has negative entries.
        - "squared_hinge": phi(x) = max(0, 1 - x)^2, exact.
    eps : float, default=1.0
        Width of phi, in units of the scores.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, not negative; a pair has the product of its rows' weights.
    group : array-like of shape (n_samples,), optional
        Only rows of the same group make a pair. A group of one class adds nothing.

    Returns
    -------
    value : float
    gradient : ndarray of shape (n_samples,), float64
        Derivatives of the value by the scores.
    hessian : ndarray of shape (n_samples,), float64
        Second derivatives of the value by each score alone.

    Raises
    ------
    ValueError, TypeError
        For an unknown loss, one class, no pair with weight, scores that are not finite real numbers or more than 1e100
        eps apart, eps that is not a positive number, negative weights, groups that are missing or without an order, or
        lengths that differ.

    Notes
    -----
    "sigmoid" and "logistic" are summed as polynomials of degree 20 in ``exp(-|x|)``. The truncation error is at most
    1e-14 relative in the value and 1e-13 in the gradient, and 5e-13 w_i w_j / eps^2 for a pair in the hessian.

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


def evaluate(pairs: Pairs, scores: Vector, loss: str, eps: float) -> tuple[float, Vector, Vector]:
    """Return value, gradient and diagonal hessian of a loss from checked arguments."""
    return log_mean_exp(pairs, scores, eps) if loss == "exp" else _mean_of_pairs(pairs, scores, loss, eps, 3)


def value_and_gradient(pairs: Pairs, scores: Vector, loss: str, eps: float) -> tuple[float, Vector]:
    """Return value and gradient of "sigmoid" or "logistic" from checked arguments."""
    return _mean_of_pairs(pairs, scores, loss, eps, 2)[:2]


def _mean_of_pairs(
    pairs: Pairs, scores: Vector, loss: str, eps: float, n_functions: int
) -> tuple[float, Vector, Vector]:
    """Return the mean over pairs and its gradient; of three functions (phi, -phi', phi'') also its diagonal hessian."""
    rows, starts = pairs.by_score(scores)
    weights = np.ones(rows.size) if pairs.weights is None else pairs.weights
    sums = np.zeros((rows.size, n_functions))  # over the pairs of each row: every pair is seen from both rows
    walk = (scores[rows], pairs.positive[rows], weights[rows], starts, 1.0 / eps)
    for direction in (1, -1):
        if loss == "squared_hinge":
            add_hinge_sums(*walk, direction, sums)
        else:
            add_series_sums(*walk, direction, np.ascontiguousarray(TABLES[loss][:, :n_functions]), sums)
    sums, scale = in_row_order(sums, rows), weights / pairs.total
    gradient = np.where(pairs.positive, -scale, scale) * sums[:, 1] / eps
    return 0.5 * float(scale @ sums[:, 0]), gradient, weights * sums[:, -1] / (pairs.total * eps * eps)
