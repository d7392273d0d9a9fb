"""Statistical inference for ROC curves: DeLong's covariance, intervals and the paired test of AUCs, and bands."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import kolmogi, stdtr

from aucforest.metrics.intervals import normal_quantile, require_level, score_interval, t_quantile
from aucforest.metrics.ranking import cumulate, placements
from aucforest.metrics.validation import (
    FloatArray,
    check_scores,
    check_weights,
    is_positive,
    two_classes,
    warn_undefined,
)


def delong_covariance(
    y_true: ArrayLike, y_scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Compute the AUCs of several scores on the same samples, and the covariance of these AUCs.

    V10 of a positive is the proportion of negatives with a lower score. V01 of a negative is the proportion of
    positives with a higher score. Ties count half. Let a and b be the weights of positives and negatives, each
    normalized to sum to 1, D1 = a (V10 - AUC) and D0 = b (V01 - AUC). Then the covariance is
    D1 D1' / (1 - sum a^2) + D0 D0' / (1 - sum b^2). Without weights, this is the estimator of DeLong et al. [1]_. It is
    computed in O(R n log n) for R scores, as in [2]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels (bool, int, float or str). The greater one is positive.
    y_scores : array-like of shape (n_samples,) or (n_samples, n_scores)
        Finite scores, one column for each model.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative importance weights. For frequency weights, repeat the samples instead.

    Returns
    -------
    auc : ndarray of shape (n_scores,)
        The AUC of each column. NaN with an UndefinedMetricWarning if a class has no weight.
    covariance : ndarray of shape (n_scores, n_scores)
        The covariance of AUCs. NaN with an UndefinedMetricWarning if a class has fewer than two samples with weight.

    Raises
    ------
    ValueError, TypeError
        As `roc_curve`.

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
    scores = check_scores(y_scores, n_dims=2 if np.ndim(y_scores) == 2 else 1, name="y_scores", finite=True)
    weights = check_weights(sample_weight, len(scores), of="y_scores")
    positive = is_positive(y_true, len(scores), of="y_scores")
    auc, covariances, _ = _delong(positive, scores.reshape(len(scores), -1), weights)
    covariance = covariances.sum(axis=0)
    if np.isnan(covariance).any():
        warn_undefined("the covariance is not defined: a class has fewer than two samples with weight in y_true")
    return auc, covariance


def _delong(
    positive: NDArray[np.bool_], scores: NDArray[np.floating], weights: FloatArray | None, *, contrast: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the AUCs of R columns, the covariance due to each class, (2, R, R), and the effective class sizes, (2,).

    Positives come first; undefined values are NaN. The effective size of a class is (sum w)^2 / sum w^2. With
    `contrast`, the first AUC minus the second is appended, because var(a) + var(b) - 2 cov(a, b) would lose digits.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    columns = [placements(positive, column, weights) for column in np.ascontiguousarray(scores.T)]
    v10, v01 = map(np.array, zip(*columns))
    if contrast:
        v10, v01 = np.vstack([v10, v10[0] - v10[1]]), np.vstack([v01, v01[0] - v01[1]])
    auc, *positives = _mean_and_covariance(v10, weights[positive])
    _, *negatives = _mean_and_covariance(v01, weights[~positive])
    covariances, n_rows = map(np.array, zip(positives, negatives))
    return auc, covariances, n_rows


def _mean_and_covariance(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the weighted means of the rows of `values`, their covariance (or NaN) and the effective sample size."""
    undefined = np.full((len(values), len(values)), np.nan)
    if not weights.any():
        return undefined[0], undefined, 0.0
    shares = weights / weights.sum()
    # The first value is subtracted, so that the mean of equal values is exact, and their variance is 0.
    means = values[:, 0] + (values - values[:, :1]) @ shares
    squares = float(shares @ shares)
    if 1.0 / squares <= 1.0:  # one sample has all the weight
        return means, undefined, 1.0
    deviations = (values - means[:, None]) * shares
    return means, deviations @ deviations.T / (1.0 - squares), 1.0 / squares


def auc_confidence_interval(
    y_true: ArrayLike, y_score: ArrayLike, *, level: float = 0.95, sample_weight: ArrayLike | None = None
) -> tuple[float, float, float]:
    """Compute the AUC with a score interval based on DeLong's variance.

    Like Wilson's interval for a proportion [1]_, the interval contains all values t that a test of "the true AUC is t"
    does not reject. The test uses the variance for a true AUC of t, so the interval has a positive length even if the
    AUC is 0 or 1.

    Parameters
    ----------
    y_true, sample_weight
        As in `delong_covariance`, with the same errors.
    y_score : array-like of shape (n_samples,)
        Finite scores.
    level : float in (0, 1), default=0.95
        Confidence level.

    Returns
    -------
    auc, low, high : float
        The AUC and the bounds. The bounds are NaN with an UndefinedMetricWarning if a class has fewer than two samples
        with weight.

    Notes
    -----
    In each class, the variance of V10 or V01 (see `delong_covariance`) is r AUC (1 - AUC), where r is at most 1. The
    estimate of r is shrunk towards one half, as if there were two more samples. For a true AUC of t, the contribution
    of a class of n samples to the variance of the AUC is assumed to be r t (1 - t) / n.

    In simulations (``python benchmarks/intervals.py auc``, table in the documentation) the coverage of 95 % intervals
    was 94 to 99 % for normal scores, and 88 to 98 % if positives had three times the standard deviation of negatives.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American
       Statistical Association 22 (1927), 209-212.

    Examples
    --------
    >>> from aucforest.metrics import auc_confidence_interval
    >>> y_true, y_score = [0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 3, 5, 4, 6, 7, 8]
    >>> auc, low, high = auc_confidence_interval(y_true, y_score)
    >>> f"{auc:.3f} [{low:.3f}, {high:.3f}]"
    '0.938 [0.506, 0.995]'
    """
    auc, low, high = auc_with_interval(y_true, y_score, sample_weight, level)
    if np.isnan(low):
        warn_undefined("the interval is not defined: a class has fewer than two samples with weight in y_true")
    return auc, low, high


def auc_with_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    *,
    auc: float | None = None,
) -> tuple[float, float, float]:
    """Return `auc_confidence_interval` without a warning. `auc` may be another estimate than the AUC of the scores."""
    quantile = normal_quantile(level)
    positive, scores, weights = two_classes(y_true, y_score, sample_weight)
    aucs, covariances, n_rows = _delong(positive, scores[:, None], weights)
    observed, variances = float(aucs[0]), covariances[:, 0, 0]
    auc = observed if auc is None else auc
    if np.isnan(variances).any():
        return auc, np.nan, np.nan
    # The ratios are r in the Notes of `auc_confidence_interval`. Shrunk, they are also defined for an AUC of 0 or 1.
    inner = (n_rows.min() * observed + 0.5) / (n_rows.min() + 1.0)
    prior = inner * (1.0 - inner)
    ratios = (n_rows**2 * variances + prior) / (n_rows * observed * (1.0 - observed) + 2.0 * prior)
    return auc, *score_interval(auc, float(np.sum(np.minimum(ratios, 1.0) / n_rows)), quantile)


class AUCComparison(NamedTuple):
    """Results of `compare_auc`: two AUCs on the same samples and the paired test of their difference.

    Attributes
    ----------
    auc_a, auc_b, difference : float
        The two AUCs and ``auc_a - auc_b``.
    z : float
        The difference divided by its standard error.
    pvalue : float
        The two-sided p-value from Student's t distribution.
    interval : tuple of float
        Confidence interval of the difference, clipped to [-1, 1].
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
    """Paired test of two AUCs on the same samples with DeLong's variance of their difference.

    The statistic is z = (AUC_a - AUC_b) / sqrt(var_a + var_b - 2 cov_ab), see `delong_covariance`. It is compared with
    Student's t with (v1 + v0)^2 / (v1^2 / (n1 - 1) + v0^2 / (n0 - 1)) degrees of freedom [1]_, where v1 and v0 are the
    contributions of n1 positives and n0 negatives to the variance. For large samples, this is DeLong's z-test. In
    simulations (``python benchmarks/intervals.py compare``, table in the documentation) the rejection rate at the 5 %
    level was at most 5.5 % for equal true ROC curves, and up to 21 % for different curves with equal AUCs of 0.99.

    Parameters
    ----------
    y_true, level, sample_weight
        As in `auc_confidence_interval`, with the same errors; `level` is for the interval of the difference.
    score_a, score_b : array-like of shape (n_samples,)
        Finite scores of the two models.

    Returns
    -------
    AUCComparison
        The results. For scores with the same ranking, z is 0 and p is 1. If the variance is undefined, or if it is 0
        but the difference is not, z, p and the interval are NaN with an UndefinedMetricWarning.

    References
    ----------
    .. [1] F. E. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2
       (1946), 110-114.

    Examples
    --------
    >>> from aucforest.metrics import compare_auc
    >>> y_true = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> result = compare_auc(y_true, [1, 2, 3, 5, 4, 6, 7, 8], [1, 6, 3, 5, 4, 2, 7, 8])
    >>> f"{result.difference:.3f}, z = {result.z:.2f}, p = {result.pvalue:.2f}"
    '0.250, z = 1.22, p = 0.28'
    """
    test = paired_test(y_true, score_a, score_b, level=level, sample_weight=sample_weight)
    if np.isnan(test.z):
        warn_undefined("the test of two AUCs is not defined: their difference has no estimated variance")
    return test


def paired_test(
    y_true: ArrayLike, score_a: ArrayLike, score_b: ArrayLike, *, level: float, sample_weight: ArrayLike | None
) -> AUCComparison:
    """Return the test of `compare_auc` without a warning."""
    require_level(level)
    first = check_scores(score_a, name="score_a", finite=True)
    second = check_scores(score_b, name="score_b", finite=True)
    if first.size != second.size:
        raise ValueError(f"score_a has {first.size} samples, but score_b has {second.size}")
    weights = check_weights(sample_weight, first.size, of="score_a")
    positive = is_positive(y_true, first.size, of="score_a")
    aucs, covariances, n_rows = _delong(positive, np.column_stack([first, second]), weights, contrast=True)
    auc_a, auc_b, difference = aucs.tolist()
    variances = covariances[:, 2, 2]
    error = float(np.sqrt(variances.sum()))
    if error == 0.0 and difference != 0.0:
        error = float("nan")
    z = difference / error if error != 0.0 else 0.0
    freedom = variances.sum() ** 2 / np.sum(variances**2 / (n_rows - 1.0)) if error > 0.0 else 1.0
    half_width = error * t_quantile(freedom, level)
    interval = max(difference - half_width, -1.0), min(difference + half_width, 1.0)
    return AUCComparison(auc_a, auc_b, difference, z, float(2.0 * stdtr(freedom, -abs(z))), interval)


class RocBand(NamedTuple):
    """Confidence band of a ROC curve.

    Attributes
    ----------
    fpr : ndarray of shape (n_points,)
        False positive rates, evenly spaced from 0 to 1.
    low, high : ndarray of shape (n_points,)
        Bounds of the true positive rate.
    """

    fpr: FloatArray
    low: FloatArray
    high: FloatArray


def roc_confidence_band(y_true: ArrayLike, y_score: ArrayLike, *, level: float = 0.95, n_points: int = 201) -> RocBand:
    """Compute a confidence band of the ROC curve.

    It covers the whole true curve with probability `level` or more. With probability sqrt(level) each, all false
    positive rates are within a Kolmogorov-Smirnov distance d of the true ones, and all true positive rates within a
    distance e. So the true positive rate at t is between TPR(t - d) - e and TPR(t + d) + e [1]_. The band has a
    positive width also at the ends of the curve.

    Parameters
    ----------
    y_true, y_score, level
        As in `auc_confidence_interval`.
    n_points : int, default=201
        The number of false positive rates.

    Returns
    -------
    RocBand
        The band.

    Raises
    ------
    ValueError, TypeError
        As `roc_curve`. ValueError also if y_true has one class or an option is out of range.

    References
    ----------
    .. [1] G. Campbell, "Advances in statistical methodology for the evaluation of diagnostic and laboratory tests",
       Statistics in Medicine 13 (1994), 499-508.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import roc_confidence_band
    >>> y_true = np.arange(400) % 2
    >>> y_score = np.random.default_rng(0).normal(size=400) + y_true
    >>> band = roc_confidence_band(y_true, y_score, n_points=5)
    >>> bool(np.all(band.low <= band.high)), band.fpr.tolist()
    (True, [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    require_level(level)
    if n_points < 2:
        raise ValueError(f"n_points must be at least 2, but is {n_points}")
    tps, fps, _ = cumulate(*two_classes(y_true, y_score, None))
    if min(tps[-1], fps[-1]) == 0.0:
        raise ValueError("y_true must have two classes, but has one")
    grid = np.linspace(0.0, 1.0, n_points)
    distance = kolmogi(1.0 - np.sqrt(level))  # This is asymptotic, so the band is a little too wide.
    fpr_distance, tpr_distance = distance / np.sqrt(fps[-1]), distance / np.sqrt(tps[-1])
    fpr, tpr = fps / fps[-1], tps / tps[-1]
    first = np.searchsorted(fpr, grid - fpr_distance)
    last = np.searchsorted(fpr, grid + fpr_distance) - 1
    return RocBand(grid, np.maximum(tpr[first] - tpr_distance, 0.0), np.minimum(tpr[last] + tpr_distance, 1.0))
