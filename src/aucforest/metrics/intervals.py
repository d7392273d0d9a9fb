"""Confidence levels, quantiles and intervals."""

import warnings
from collections.abc import Callable
from math import sqrt
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_scalar

from aucforest.metrics.validation import FloatArray, as_column, check_weights, is_positive, require_weight


def require_level(level: float) -> None:
    """Raise ValueError unless `level` is a probability between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be in (0, 1), but is {level}")


def tails(level: float) -> list[float]:
    """Return the probabilities below the bounds of an equal-tailed interval."""
    return [0.5 - 0.5 * level, 0.5 + 0.5 * level]


def quantile_interval(values: FloatArray, level: float) -> tuple[float, float]:
    """Return the ends of the equal-tailed interval of the values other than NaN. They are NaN if there are none."""
    known = values[~np.isnan(values)]
    low, high = np.quantile(known, tails(level)).tolist() if known.size else (np.nan, np.nan)
    return low, high


def normal_quantile(level: float) -> float:
    """Return z such that a normal variable is within -z and z with probability `level`."""
    require_level(level)
    return -float(ndtri(0.5 - 0.5 * level))  # not ndtri(0.5 + 0.5 * level), which may be rounded to ndtri(1)


def t_quantile(freedom: float, level: float) -> float:
    """Return t such that a variable of Student's t distribution is within -t and t with probability `level`."""
    return -float(stdtrit(freedom, 0.5 - 0.5 * level))


def score_interval(value: float, dispersion: float, quantile: float, upper: float = 1.0) -> tuple[float, float]:
    """Return `score_bounds` of a single value as floats."""
    low, high = score_bounds(value, dispersion, quantile, upper)
    return float(low), float(high)


def score_bounds(value: Any, dispersion: Any, quantile: float, upper: float = 1.0) -> tuple[Any, Any]:
    """Return the bounds of score intervals, which contain all values that a score test does not reject.

    The estimated quantities are between 0 and `upper`, which may be infinite. If the true value is t, the variance of
    the estimate is assumed to be ``dispersion * t * (1 - t / upper)``. For a proportion of n rows, the dispersion is
    1 / n, and this is Wilson's interval.
    """
    c = quantile**2 * dispersion
    scale = 1.0 + c / upper
    middle = (value + 0.5 * c) / scale
    half = np.sqrt(c * (value * (1.0 - value / upper) + 0.25 * c)) / scale
    # The interval contains `value` in spite of rounding errors.
    return np.minimum(np.maximum(middle - half, 0.0), value), np.maximum(np.minimum(middle + half, upper), value)


def share_interval(part: FloatArray, rest: FloatArray, correlation: float = 0.0) -> tuple[float, float]:
    """Return the interval of ``part / (part + rest)`` from the intervals of two non-negative estimates.

    `part` and `rest` are arrays of estimate, lower and upper bound. The distances of the bounds from the estimates are
    combined like standard errors (MOVER: Donner and Zou, Statistical Methods in Medical Research 21, 2012).
    """
    return _lowest_share(part, rest, correlation), 1.0 - _lowest_share(rest, part, correlation)


def _lowest_share(part: FloatArray, rest: FloatArray, correlation: float) -> float:
    """Return the lower bound of the share of `part`: the smaller root s of ``A s^2 - 2 B s + C``."""
    a, below, b, above = part[0], part[0] - part[1], rest[0], rest[2] - rest[0]
    common = correlation * below * above
    A = (a + b) ** 2 - below**2 - above**2 - 2.0 * common
    B = a * (a + b) - below**2 - common
    C = a**2 - below**2
    divisor = B + sqrt(max(B**2 - A * C, 0.0))
    return float(min(max(C / divisor, 0.0), 1.0)) if divisor > 0.0 else 0.0


def bootstrap_interval(
    metric: Callable[..., float],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *args: Any,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> tuple[float, float, float]:
    """Return a metric with its percentile bootstrap interval.

    Each bootstrap sample is drawn from all samples of positive weight, without stratification by label. Bootstrap
    samples for which the metric is undefined are ignored.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_score, *args, sample_weight=...)``, such as `precision_at_k`.
    y_true, y_score, *args
        The arguments of the metric: arrays of shape (n_samples,), and others such as k.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights. In each bootstrap sample they are scaled to the sum of all weights.
    level : float in (0, 1), default=0.95
        Level of the interval.
    n_resamples : int, default=1000
        Number of bootstrap samples.
    random_state : int, Generator or None
        Controls the bootstrap.

    Returns
    -------
    value, low, high : float
        The metric of all samples and the ends of the interval.

    Raises
    ------
    ValueError, TypeError
        As the metric. ValueError also if all weights are 0, or `level` or `n_resamples` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import bootstrap_interval, precision_at_k
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(2, size=1000)
    >>> y_score = y_true + rng.normal(size=1000)
    >>> value, low, high = bootstrap_interval(precision_at_k, y_true, y_score, 0.1, random_state=0)
    >>> print(f"{value:.2f} [{low:.2f}, {high:.2f}]")
    0.90 [0.84, 0.96]
    """
    require_level(level)
    check_scalar(n_resamples, "n_resamples", Integral, min_val=1)
    truth, scores = as_column(y_true), as_column(y_score)
    weights = check_weights(sample_weight, scores.size)
    require_weight(weights)
    value = metric(truth, scores, *args, sample_weight=weights)
    positive = is_positive(truth, scores.size)
    rows = np.arange(scores.size) if weights is None else np.flatnonzero(weights)

    random, resampled = np.random.default_rng(random_state), np.empty(n_resamples)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for i in range(n_resamples):
            sample, scaled = rows[random.integers(len(rows), size=len(rows))], None
            if weights is not None:  # Bootstrap samples get the same sum of weights, because k may be a weight.
                scaled = weights[sample] * (weights.sum() / weights[sample].sum())
            resampled[i] = metric(positive[sample], scores[sample], *args, sample_weight=scaled)
    return float(value), *quantile_interval(resampled, level)
