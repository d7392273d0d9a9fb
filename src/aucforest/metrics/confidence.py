"""How sure an AUC is: DeLong's covariance, intervals, and the paired test of two scores on the same rows."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtr, ndtri

from aucforest.metrics._validation import (
    Scores,
    Weights,
    check_scores,
    is_positive,
    relative_weights,
    require_finite,
    two_classes,
    warn_undefined,
)
from aucforest.metrics._walks import placements

FloatArray = NDArray[np.float64]


def delong_covariance(
    y_true: ArrayLike, y_scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the AUC of several scores of the same rows, and the covariance of these AUCs.

    V10 of a positive is the share of negatives below it, V01 of a negative the share of positives above it,
    ties half. With weights a of the positives and b of the negatives, each normalised to sum to 1, D1 = a
    (V10 - AUC) and D0 = b (V01 - AUC), the covariance is D1 D1' / (1 - sum a^2) + D0 D0' / (1 - sum b^2):
    without weights that of DeLong et al. [1]_. O(R n log n) for R scores, by ranks as in [2]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two labels: bool, integer, float or string; the greater one is positive.
    y_scores : array-like of shape (n_samples,) or (n_samples, n_scores)
        Scores, finite; one column a model.
    sample_weight : array-like of shape (n_samples,), optional
        Importance weights, not negative. Frequency weights (a row that stands for several) need repeated
        rows.

    Returns
    -------
    auc : ndarray of shape (n_scores,)
        AUC of each column; NaN with an UndefinedMetricWarning when a class has no weight.
    covariance : ndarray of shape (n_scores, n_scores)
        NaN with an UndefinedMetricWarning when a class has fewer than two rows with weight.

    Raises
    ------
    ValueError
        For scores that are not finite, empty input, lengths that differ, negative weights or more than two
        labels.
    TypeError
        For scores that are not real numbers, or labels without an order.

    References
    ----------
    .. [1] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, "Comparing the areas under two or more correlated
       receiver operating characteristic curves: a nonparametric approach", Biometrics 44 (1988), 837-845.
    .. [2] X. Sun, W. Xu, "Fast implementation of DeLong's algorithm for comparing the areas under correlated
       receiver operating characteristic curves", IEEE Signal Processing Letters 21 (2014), 1389-1393.

    Examples
    --------
    >>> from aucforest.metrics import delong_covariance
    >>> auc, covariance = delong_covariance([0, 0, 1, 1], [[1, 2], [3, 1], [2, 3], [4, 4]])
    >>> auc
    array([0.75, 1.  ])
    >>> covariance
    array([[0.125, 0.   ],
           [0.   , 0.   ]])
    """
    scores = _finite_scores(y_scores, "y_scores", n_dims=2 if np.ndim(y_scores) == 2 else 1)
    weights = relative_weights(sample_weight, len(scores))
    positive = is_positive(y_true, len(scores))
    auc, covariance = _delong(positive, scores.reshape(len(scores), -1), weights)
    if np.isnan(covariance).any():
        warn_undefined("the covariance is not defined: a class has fewer than two rows with weight in y_true")
    return auc, covariance


def _finite_scores(values: ArrayLike, name: str, *, n_dims: int = 1) -> Scores:
    """Return checked scores; the sort would not know by which name a NaN came."""
    scores = check_scores(values, n_dims=n_dims, name=name)
    require_finite(scores, name)
    return scores


def _delong(
    positive: NDArray[np.bool_],
    scores: NDArray[np.floating],
    weights: Weights | None,
    *,
    contrast: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return AUCs and covariance of checked columns of scores; NaN where they are not defined.

    `contrast` adds the first AUC minus the second: its variance is then a sum of squares, nothing cancels.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    columns = [placements(positive, column, weights) for column in np.ascontiguousarray(scores.T)]
    v10, v01 = (np.array(shares) for shares in zip(*columns))
    if contrast:
        v10, v01 = np.vstack([v10, v10[0] - v10[1]]), np.vstack([v01, v01[0] - v01[1]])
    auc, of_positives = _mean_and_covariance(v10, weights[positive])
    _, of_negatives = _mean_and_covariance(v01, weights[~positive])
    return auc, of_positives + of_negatives


def _mean_and_covariance(shares: FloatArray, weights: Weights) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean of each row of `shares` and the covariance of the means, or NaN."""
    n_scores = len(shares)
    undefined = np.full((n_scores, n_scores), np.nan)
    if not weights.any():
        return undefined[0], undefined
    normalised = weights / weights.sum()
    # from the first share, so that equal shares have exactly that mean and no variance
    means = shares[:, 0] + (shares - shares[:, :1]) @ normalised
    spread = 1.0 - normalised @ normalised
    if spread <= 0.0:  # one row has all the weight
        return means, undefined
    deviations = (shares - means[:, None]) * normalised
    return means, deviations @ deviations.T / spread


def auc_confidence_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal["logit", "wald"] = "logit",
    sample_weight: ArrayLike | None = None,
) -> tuple[float, float, float]:
    """Return the AUC and a confidence interval from DeLong's variance.

    "logit" is symmetric on the scale log(AUC / (1 - AUC)), stays inside (0, 1) and covers close to its level;
    "wald" is AUC -+ z * standard error, cut off at 0 and 1, and covers too little for an AUC near 1 or few
    rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two labels: bool, integer, float or string; the greater one is positive.
    y_score : array-like of shape (n_samples,)
        Scores, finite; only their order matters.
    level : float in (0, 1), default=0.95
        Chance that the interval covers the true AUC.
    method : {"logit", "wald"}, default="logit"
        The scale on which the interval is symmetric.
    sample_weight : array-like of shape (n_samples,), optional
        Importance weights, not negative; see `delong_covariance`.

    Returns
    -------
    auc, low, high : float
        When the estimated variance is 0, as for an AUC of 0 or 1, the interval is a point and an
        UndefinedMetricWarning says so. NaN with an UndefinedMetricWarning when the variance is not defined.

    Raises
    ------
    ValueError
        As `delong_covariance`, and for a `level` or `method` that does not exist.
    TypeError
        For scores that are not real numbers, or labels without an order.

    Examples
    --------
    >>> from aucforest.metrics import auc_confidence_interval
    >>> y_true, y_score = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 5, 4, 6, 7, 8]
    >>> auc, low, high = auc_confidence_interval(y_true, y_score)
    >>> f"{auc:.3f} [{low:.3f}, {high:.3f}]"
    '0.938 [0.438, 0.997]'
    """
    if method not in ("logit", "wald"):
        raise ValueError(f"method must be 'logit' or 'wald', but is {method!r}")
    z = _normal_quantile(level)
    positive, scores, weights = two_classes(y_true, y_score, sample_weight)
    (auc,), ((variance,),) = _delong(positive, scores[:, None], weights)
    if np.isnan(variance):
        warn_undefined("the interval is not defined: a class has fewer than two rows with weight in y_true")
        return float(auc), float("nan"), float("nan")
    if variance == 0.0 or not 0.0 < auc < 1.0:
        warn_undefined(f"the interval around an AUC of {auc:g} is a point: its estimated variance is 0")
        return float(auc), float(auc), float(auc)
    half_width = z * np.sqrt(variance)
    if method == "logit":
        half_width /= auc * (1.0 - auc)
        return float(auc), float(expit(logit(auc) - half_width)), float(expit(logit(auc) + half_width))
    return float(auc), float(max(0.0, auc - half_width)), float(min(1.0, auc + half_width))


def _normal_quantile(level: float) -> float:
    """Return z such that a normal variable is within -z and z with chance `level`."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be in (0, 1), but is {level}")
    return float(ndtri(0.5 + 0.5 * level))


class AUCComparison(NamedTuple):
    """Two AUCs on the same rows and the paired test of their difference.

    Attributes
    ----------
    auc_a, auc_b : float
        The two AUCs.
    difference : float
        ``auc_a - auc_b``.
    z : float
        Difference over its standard error.
    pvalue : float
        Two-sided, from the normal distribution.
    interval : tuple of float
        Confidence interval of the difference.
    """

    auc_a: float
    auc_b: float
    difference: float
    z: float
    pvalue: float
    interval: tuple[float, float]


def compare_auc(
    y_true: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> AUCComparison:
    """Compare two AUCs on the same rows by DeLong's paired z-test.

    z = (AUC_a - AUC_b) / sqrt(var_a + var_b - 2 cov_ab), see `delong_covariance`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two labels: bool, integer, float or string; the greater one is positive.
    score_a, score_b : array-like of shape (n_samples,)
        Scores of the two models, finite; only their order matters.
    level : float in (0, 1), default=0.95
        Level of the interval of the difference.
    sample_weight : array-like of shape (n_samples,), optional
        Importance weights, not negative.

    Returns
    -------
    AUCComparison
        Named tuple (auc_a, auc_b, difference, z, pvalue, interval). Scores that place every row alike have z
        = 0 and p = 1. When the difference has no variance but is not 0, or the variance is not defined, z, p
        and the interval are NaN with an UndefinedMetricWarning.

    Raises
    ------
    ValueError
        As `delong_covariance`, and for a `level` outside (0, 1).
    TypeError
        For scores that are not real numbers, or labels without an order.

    Examples
    --------
    >>> from aucforest.metrics import compare_auc
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> result = compare_auc(y_true, [1, 2, 3, 5, 4, 6, 7, 8], [1, 6, 3, 5, 4, 2, 7, 8])
    >>> f"{result.difference:.3f}, z = {result.z:.2f}, p = {result.pvalue:.2f}"
    '0.250, z = 1.22, p = 0.22'
    """
    z_level = _normal_quantile(level)
    first, second = _finite_scores(score_a, "score_a"), _finite_scores(score_b, "score_b")
    if first.size != second.size:
        raise ValueError(f"score_a has {first.size} rows, but score_b has {second.size}")
    weights = relative_weights(sample_weight, first.size)
    scores = np.column_stack([first, second])
    (auc_a, auc_b, difference), covariance = _delong(is_positive(y_true, first.size), scores, weights, contrast=True)
    error = float(np.sqrt(covariance[2, 2]))
    if np.isnan(error) or (error == 0.0 and difference != 0.0):
        warn_undefined("the test of two AUCs is not defined: their difference has no estimated variance")
        error = float("nan")
    z = float(difference / error) if error != 0.0 else 0.0
    return AUCComparison(
        auc_a=float(auc_a),
        auc_b=float(auc_b),
        difference=float(difference),
        z=z,
        pvalue=float(2.0 * ndtr(-abs(z))),
        interval=(float(difference - z_level * error), float(difference + z_level * error)),
    )
