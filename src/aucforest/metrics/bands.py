"""Confidence bands of ROC curves."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import kolmogi

from aucforest.metrics.intervals import require_level, tails
from aucforest.metrics.ranking import cumulate
from aucforest.metrics.validation import FloatArray, check_option, two_classes


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


def roc_confidence_band(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    method: Literal["simultaneous", "bootstrap"] = "simultaneous",
    level: float = 0.95,
    n_points: int = 201,
    n_bootstrap: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> RocBand:
    """Compute a confidence band of the ROC curve.

    "simultaneous" covers the whole true curve with probability `level` or more. Each rate is within its
    Kolmogorov-Smirnov distance, d or e, of the true rate with probability sqrt(level), so the true positive rate at t
    is between TPR(t - d) - e and TPR(t + d) + e [1]_. "bootstrap" covers the true positive rate at each t separately,
    by percentiles of bootstrap curves. Its coverage is too low near rates of 0 and 1.

    The simultaneous band stays open at the ends of the curve: beyond the highest and the lowest score of few samples,
    the true curve may rise earlier or later than the curve of these samples.

    Parameters
    ----------
    y_true, y_score, level
        As in `auc_confidence_interval`.
    method : {"simultaneous", "bootstrap"}, default="simultaneous"
        The type of band.
    n_points : int, default=201
        The number of false positive rates.
    n_bootstrap : int, default=1000
        The number of bootstrap samples for "bootstrap".
    random_state : int, numpy.random.Generator or None
        Controls the bootstrap samples for "bootstrap".

    Returns
    -------
    RocBand
        Named tuple (fpr, low, high).

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
    check_option("method", method, ("simultaneous", "bootstrap"))
    require_level(level)
    if min(n_points, n_bootstrap) < 2:
        raise ValueError(f"n_points and n_bootstrap must be at least 2, but are {n_points} and {n_bootstrap}")
    tps, fps, _ = cumulate(*two_classes(y_true, y_score, None))
    if min(tps[-1], fps[-1]) == 0.0:
        raise ValueError("y_true must have two classes, but has one")
    grid = np.linspace(0.0, 1.0, n_points)
    if method == "bootstrap":
        # the counts of a bootstrap sample at the distinct scores are multinomial
        generator, n_positive, n_negative = np.random.default_rng(random_state), int(tps[-1]), int(fps[-1])
        positives, negatives = np.diff(tps) / n_positive, np.diff(fps) / n_negative
        curves = np.empty((n_bootstrap, grid.size))
        for curve in curves:
            tpr = np.cumsum(generator.multinomial(n_positive, positives)) / n_positive
            fpr = np.cumsum(generator.multinomial(n_negative, negatives)) / n_negative
            curve[:] = np.interp(grid, np.append(0.0, fpr), np.append(0.0, tpr))
        low, high = np.quantile(curves, tails(level), axis=0)
        return RocBand(grid, low, high)
    distance = kolmogi(1.0 - np.sqrt(level))  # asymptotic, a little too wide
    across, up = distance / np.sqrt(fps[-1]), distance / np.sqrt(tps[-1])
    fpr, tpr = fps / fps[-1], tps / tps[-1]
    first = np.minimum(np.searchsorted(fpr, grid - across), fpr.size - 1)
    last = np.searchsorted(fpr, grid + across, side="right") - 1
    return RocBand(grid, np.maximum(tpr[first] - up, 0.0), np.minimum(tpr[last] + up, 1.0))
