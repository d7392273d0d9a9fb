"""Pairwise losses and the smoothed AUC, with their derivatives with respect to scores."""

from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.losses._exponential import sum_pairs, write_exponents
from aucforest.losses._series import TABLES, add_series, write_hinge
from aucforest.metrics.ranking import WORD, rank_rows
from aucforest.metrics.validation import (
    FloatArray,
    check_option,
    check_scores,
    check_weights,
    class_codes,
    is_positive,
    require_finite,
)

Loss = Literal["exp", "logistic", "sigmoid", "squared_hinge"]

LEAST_EPS = 1e-150  # Second derivatives are divided by the square of eps, which must not be 0.
LARGEST_DISTANCE = 1e100  # of two scores, in units of eps, so that sums of squared distances are finite
SAFE_RANGE = 500.0  # of the scores of a group, in units of eps: exp(-500) is far above the smallest float64


class Pairs(NamedTuple):
    """All pairs of a positive and a negative row of the same group; `total` is the sum of their weights w_i w_j."""

    positive: NDArray[np.bool_]
    weights: FloatArray | None
    groups: NDArray[np.intp] | None  # codes from 0; None for one group
    total: float

    def starts(self) -> NDArray[np.intp]:
        """Return the index of the first row of each group in sorted order, and the number of rows at the end."""
        sizes = [self.positive.size] if self.groups is None else np.bincount(self.groups)
        return np.append(0, np.cumsum(sizes)).astype(np.intp)


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
        - "sigmoid": phi(x) = 1 / (1 + exp(x)); L is one minus the AUC smoothed with width eps, see `smooth_auc`. L is
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
    gradient, hessian : ndarray of shape (n_samples,), float64
        First derivatives, and the diagonal of the second derivatives, with respect to the scores.

    Raises
    ------
    ValueError, TypeError
        If the loss is unknown, there is no pair with positive weight, scores are not finite real numbers or differ by
        more than 1e100 eps, eps is not a positive number, weights are negative, groups are missing or cannot be sorted,
        or lengths differ.

    Notes
    -----
    "sigmoid" and "logistic" are computed by polynomials of degree 20 in ``exp(-|x|)``. The relative truncation error is
    at most 1e-14 in the value and 1e-13 in the gradient. The absolute error of a pair in the hessian is at most
    5e-13 w_i w_j / eps^2, divided by the sum of all w_i w_j.

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

    The smoothed AUC is the mean of sigmoid((f_i - f_j) / eps) over pairs of a positive sample i and a negative sample j
    ([1]_, equations 4 and 5). It is one minus the `pairwise_loss` "sigmoid", and converges to the AUC as eps goes to 0.

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
    return _log_mean_exp(pairs, scores, eps) if loss == "exp" else _mean_of_pairs(pairs, scores, loss, eps, 3)


def value_and_gradient(pairs: Pairs, scores: FloatArray, loss: str, eps: float) -> tuple[float, FloatArray]:
    """Return value and gradient of "sigmoid" or "logistic" from validated arguments."""
    return _mean_of_pairs(pairs, scores, loss, eps, 2)[:2]


def _mean_of_pairs(
    pairs: Pairs, scores: FloatArray, loss: str, eps: float, n_functions: int
) -> tuple[float, FloatArray, FloatArray]:
    """Return the mean loss, its gradient, and its diagonal hessian if `n_functions` (phi, -phi', phi'') is 3."""
    rows = (rank_rows(scores) & WORD).astype(np.intp)  # in ascending order of score
    if pairs.groups is not None:
        rows = rows[np.argsort(pairs.groups[rows], kind="stable")]
    weights = np.ones(rows.size) if pairs.weights is None else pairs.weights
    signed = np.where(pairs.positive, weights, -weights)
    ranked, starts, scale = scores[rows], pairs.starts(), 1.0 / eps
    sums = np.zeros((rows.size, n_functions))  # over the pairs of each row, so each pair is in two sums
    if loss == "squared_hinge":
        write_hinge(ranked, signed[rows], starts, scale, sums)
    else:
        add_series(ranked, signed[rows], starts, scale, np.ascontiguousarray(TABLES[loss][:, :n_functions]), sums)
    sums[rows] = sums.copy()  # in the original order of the rows
    value = 0.5 * float(weights / pairs.total @ sums[:, 0])
    gradient = -signed / pairs.total * sums[:, 1] / eps
    return value, gradient, weights * sums[:, -1] / (pairs.total * eps * eps)


def _score_ends(scores: FloatArray, positive: NDArray[np.uint8], starts: NDArray[np.intp], scale: float) -> FloatArray:
    """Return for each group an upper bound of the scores of negatives, and a lower bound of those of positives."""
    groups = starts[:-1]
    # Bounds of all rows suffice, unless they are so far apart that all exponentials of a class could underflow.
    highest, lowest = np.maximum.reduceat(scores, groups), np.minimum.reduceat(scores, groups)
    with np.errstate(invalid="ignore"):  # Both bounds are infinite in a group without weight.
        far_apart = not (scale * (highest - lowest) <= SAFE_RANGE).all()
    if far_apart:
        highest = np.maximum.reduceat(np.where(positive, -np.inf, scores), groups)
        lowest = np.minimum.reduceat(np.where(positive, scores, np.inf), groups)
        highest[np.isinf(highest)] = lowest[np.isinf(lowest)] = 0.0  # Any bound is valid for a class without weight.
    return np.stack([highest, lowest], axis=1)


def _log_mean_exp(pairs: Pairs, scores: FloatArray, eps: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the logarithm of the mean of exp(-(f_i - f_j) / eps) over pairs, its gradient and hessian diagonal."""
    scale = 1.0 / eps
    if pairs.weights is not None:
        # A weight is replaced by a shift of the score, as w exp(-f) = exp(-(f - log w)); for weight 0 it is infinite.
        with np.errstate(divide="ignore"):
            scores = scores + np.where(pairs.positive, -eps, eps) * np.log(pairs.weights)
    order: Any = slice(None) if pairs.groups is None else np.argsort(pairs.groups, kind="stable")
    starts = pairs.starts()
    scores, positive = scores[order], pairs.positive[order].view(np.uint8)
    ends = _score_ends(scores, positive, starts, scale)
    values = np.empty(scores.size)
    write_exponents(scores, positive, starts, scale, ends, values)
    np.exp(values, out=values)
    gradient = np.empty_like(values)
    log_sum = sum_pairs(values, positive, starts, scale, ends, gradient)
    if pairs.groups is not None:
        gradient[order], values[order] = gradient.copy(), values.copy()
    return float(log_sum - np.log(pairs.total)), gradient, values


def check_pairs(
    y: ArrayLike, n_rows: int, sample_weight: ArrayLike | None = None, group: ArrayLike | None = None
) -> Pairs:
    """Validate labels, weights and groups, and return the pairs; ValueError if no pair has positive weight."""
    positive = is_positive(y, n_rows, name="y", of="scores")
    weights = check_weights(sample_weight, n_rows, of="scores")
    groups = None if group is None else class_codes(group, n_rows, name="group", of="scores")[0].astype(np.intp)
    n_positive = np.count_nonzero(positive)
    if n_positive in (0, n_rows):
        raise ValueError(f"y has only one class in {n_rows} samples, but pairs need two")
    if weights is None and groups is None:
        return Pairs(positive, None, None, float(n_positive) * float(n_rows - n_positive))
    ones = np.ones(n_rows) if weights is None else weights
    codes = np.zeros(n_rows, dtype=np.intp) if groups is None else groups
    total = float(np.bincount(codes, ones * positive) @ np.bincount(codes, ones * ~positive))
    if not total > 0.0:
        cause = "sample_weight leaves" if groups is None else "group and sample_weight leave"
        raise ValueError(f"{cause} no pair of a positive and a negative sample with positive weight")
    return Pairs(positive, weights, groups, total)


def check_loss_scores(scores: ArrayLike, eps: float) -> FloatArray:
    """Return scores as contiguous float64; ValueError unless they are finite and so close that no loss overflows."""
    checked = check_scores(scores, name="scores").astype(np.float64, copy=False)
    lowest, highest = float(checked.min()), float(checked.max())
    if not (highest - lowest) / eps < LARGEST_DISTANCE:  # also if a score is NaN
        require_finite(checked, "scores")
        raise ValueError(f"scores from {lowest:g} to {highest:g} are too far apart for eps={eps:g}")
    return checked


def check_eps(eps: float) -> float:
    """Return the width as a float; raise ValueError unless it is positive, finite and not tiny."""
    if not isinstance(eps, Real) or isinstance(eps, bool):
        raise TypeError(f"eps must be a number, but is {eps!r}")
    width = float(eps)
    if not LEAST_EPS < width < np.inf:
        raise ValueError(f"eps must be positive and finite (above {LEAST_EPS:g}), but is {eps}")
    return width
