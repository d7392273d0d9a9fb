"""Confidence levels, quantiles and intervals."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit


def require_level(level: float) -> None:
    """Raise ValueError unless `level` is a probability between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be in (0, 1), but is {level}")


def tails(level: float) -> list[float]:
    """Return the probabilities below the bounds of an equal-tailed interval."""
    return [0.5 - 0.5 * level, 0.5 + 0.5 * level]


def normal_quantile(level: float) -> float:
    """Return z such that a normal variable is within -z and z with probability `level`."""
    require_level(level)
    return -float(ndtri(0.5 - 0.5 * level))  # the lower tail, because 0.5 + 0.5 * level may round to 1


def t_quantile(freedom: float, level: float) -> float:
    """Return t such that a variable of Student's t distribution is within -t and t with probability `level`."""
    return -float(stdtrit(freedom, 0.5 - 0.5 * level))


def score_interval(value: float, dispersion: float, quantile: float, upper: float = 1.0) -> tuple[float, float]:
    """Return the score interval of a quantity between 0 and `upper`: all values that a score test does not reject.

    The variance of an estimate of t is assumed to be ``dispersion * t * (1 - t / upper)``, so the bounds are the roots
    of (value - t)^2 = quantile^2 dispersion t (1 - t / upper). For a proportion of n rows the dispersion is 1 / n, and
    this is Wilson's interval (Journal of the American Statistical Association 22, 1927). `upper` may be infinite.
    """
    c = quantile**2 * dispersion
    scale = 1.0 + c / upper
    middle = (value + 0.5 * c) / scale
    half = np.sqrt(c * (value * (1.0 - value / upper) + 0.25 * c)) / scale
    # the interval contains `value` despite rounding errors
    return float(min(max(middle - half, 0.0), value)), float(max(min(middle + half, upper), value))


def share_interval(
    part: NDArray[np.float64], rest: NDArray[np.float64], correlation: float = 0.0
) -> tuple[float, float]:
    """Return the interval of ``part / (part + rest)`` from two estimates, which are not negative, and their intervals.

    Both are arrays of an estimate a or b and of the bounds of its interval. The share s is 0 for ``a (1 - s) - b s``;
    its bounds are those at which this is as far from 0 as its interval reaches, which combines the distances from a and
    b to their bounds as if they were standard errors (MOVER: Donner and Zou, Statistical Methods in Medical Research
    21, 2012).
    """
    return _lowest_share(part, rest, correlation), 1.0 - _lowest_share(rest, part, correlation)


def _lowest_share(part: NDArray[np.float64], rest: NDArray[np.float64], correlation: float) -> float:
    """Return the lower bound of the share of `part`: the smaller root s of ``A s^2 - 2 B s + C``."""
    a, below, b, above = part[0], part[0] - part[1], rest[0], rest[2] - rest[0]
    common = correlation * below * above
    A = (a + b) ** 2 - below**2 - above**2 - 2.0 * common
    B = a * (a + b) - below**2 - common
    C = a**2 - below**2
    divisor = B + sqrt(max(B**2 - A * C, 0.0))
    return float(min(max(C / divisor, 0.0), 1.0)) if divisor > 0.0 else 0.0
