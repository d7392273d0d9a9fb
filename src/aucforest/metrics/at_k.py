"""Metrics of the highest-ranked samples: precision, recall, lift, recall at a given precision or FPR, gains curve."""

import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.intervals import normal_quantile, score_interval, share_interval
from aucforest.metrics.ranking import Cumulated, cumulate
from aucforest.metrics.validation import FloatArray, Scores, require_weight, two_classes, warn_undefined

Interval = tuple[float, float, float]  # a value and its bounds

ROUNDING = 1e-12  # Smaller relative differences are ignored, because sums of weights have rounding errors.


def _check_rows(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, pos_label: Any
) -> tuple[NDArray[np.bool_], Scores, FloatArray | None]:
    """Validate samples as `two_classes` does. Also raise ValueError if all weights are 0."""
    positive, scores, weights = two_classes(y_true, y_score, sample_weight, pos_label)
    require_weight(weights)
    return positive, scores, weights


def top_size(k: Any, total: float = np.inf, *, name: str = "k") -> float:
    """Return how many of `total` samples (or how much of their weight) `k` selects; ValueError if `k` is invalid."""
    if isinstance(k, Integral) and not isinstance(k, bool):
        if not 1 <= int(k) <= total * (1.0 + ROUNDING):
            raise ValueError(f"{name} must be from 1 to {total:g}, the number (or weight) of samples, but is {k}")
        return min(float(k), total)
    if isinstance(k, bool) or not (isinstance(k, Real) and 0.0 < float(k) <= 1.0):
        raise ValueError(f"{name} must be a number of samples (int) or a proportion of them in (0, 1], but is {k!r}")
    return float(k) * total


def parse_number(text: str) -> int | float:
    """Convert a text of digits to an integer (a number of samples), and any other text to a float (a proportion)."""
    return int(text) if text.isdigit() else float(text)


def check_bound(name: str, bound: Any) -> None:
    """Raise ValueError unless a bound is in (0, 1], or in [0, 1] if the name ends with "fpr"."""
    is_number = isinstance(bound, Real) and not isinstance(bound, bool)
    may_be_zero = name.endswith("fpr")
    if not is_number or not 0.0 <= float(bound) <= 1.0 or (bound == 0.0 and not may_be_zero):
        raise ValueError(f"{name} must be in {'[' if may_be_zero else '('}0, 1], but is {bound!r}")


def is_within(cumulated: Cumulated, name: str, bound: float) -> NDArray[np.bool_]:
    """Return whether each threshold meets the bound: "precision" or "recall" is at least, "fpr" at most `bound`."""
    if name == "fpr":
        return np.asarray(cumulated.fpr <= bound * (1.0 + ROUNDING))
    reached = cumulated.precision if name == "precision" else cumulated.tps / cumulated.tps[-1]
    return np.asarray(reached >= bound * (1.0 - ROUNDING))


def _positives_at(cumulated: Cumulated, k: float) -> tuple[float, float]:
    """Return the weight of the k highest-ranked samples, and the weight of the positives among them."""
    selected = cumulated.selected
    size = top_size(k, float(selected[-1]))
    return size, float(np.interp(size, selected, cumulated.tps))


def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: float, *, pos_label: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the proportion of positives among the k highest-ranked samples.

    If several samples at the boundary have the same score, the result is the mean over all orders of these samples.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two labels: bool, integer, float or string.
    y_score : array-like of shape (n_samples,)
        Scores, finite; only their order matters.
    k : int or float
        An integer is a number of samples (with `sample_weight`, a weight), a float in (0, 1] a proportion of samples.
    pos_label : label, optional
        The positive label. By default the greater of two labels; a single label is positive if it equals 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative sample weights.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError, TypeError
        As `roc_curve`; ValueError also if `k` is out of range.

    Examples
    --------
    >>> from aucforest.metrics import precision_at_k
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.3, 0.6, 0.9, 0.2]
    >>> precision_at_k(y_true, y_score, 2), precision_at_k(y_true, y_score, 0.5)
    (1.0, 0.8333333333333334)
    """
    size, positives = _positives_at(cumulate(*_check_rows(y_true, y_score, sample_weight, pos_label)), k)
    return min(positives / size, 1.0)


def recall_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: float, *, pos_label: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the proportion of all positives that is among the k highest-ranked samples; ties as in `precision_at_k`.

    Parameters
    ----------
    y_true, y_score, k, pos_label, sample_weight
        As for `precision_at_k`, with the same errors.

    Returns
    -------
    float
        In [0, 1]; NaN with an UndefinedMetricWarning when the positive class has no weight.

    Examples
    --------
    >>> from aucforest.metrics import recall_at_k
    >>> round(recall_at_k([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.3, 0.6, 0.9, 0.2], 2), 3)
    0.667
    """
    cumulated = cumulate(*_check_rows(y_true, y_score, sample_weight, pos_label))
    return float(_recall(_positives_at(cumulated, k)[1], cumulated))


def lift_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: float, *, pos_label: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return how many times more frequent positives are among the k highest-ranked samples than among all.

    This is recall at k divided by the proportion of samples selected. The parameters and errors are those of
    `recall_at_k`.

    Returns
    -------
    float
        About 1 for a random order; NaN with an UndefinedMetricWarning when the positive class has no weight.

    Examples
    --------
    >>> from aucforest.metrics import lift_at_k
    >>> lift_at_k([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.3, 0.6, 0.9, 0.2], 2)
    2.0
    """
    cumulated = cumulate(*_check_rows(y_true, y_score, sample_weight, pos_label))
    size, positives = _positives_at(cumulated, k)
    return float(_recall(positives, cumulated) * cumulated.selected[-1] / size)


class MetricsAtK(NamedTuple):
    """Metrics of the k highest-ranked samples.

    Attributes
    ----------
    precision, recall, lift : tuple of (float, float, float)
        The metric and the bounds of its interval.
    threshold : float
        The score of the last of the k samples.
    """

    precision: Interval
    recall: Interval
    lift: Interval
    threshold: float


def metrics_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: float,
    *,
    level: float = 0.95,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> MetricsAtK:
    """Return precision, recall and lift at k with score intervals, which need no resampling.

    If the proportion k of n samples is selected, the variance of the precision P is
    ``(P (1 - P) + (1 - k) (P - Q)^2) / (n k)``. Here Q is the proportion of positives near the boundary, among the
    samples with ranks from 0.5 n k to 1.5 n k. The interval of precision is a score interval (Wilson's) with this
    variance. The interval of recall is computed from the interval of precision, the interval of the proportion of
    positives among the other samples, and the correlation of both (Donner and Zou's MOVER). Lift is recall / k.

    Parameters
    ----------
    y_true, y_score, k, pos_label, sample_weight
        As for `precision_at_k`, with the same errors.
    level : float in (0, 1), default=0.95
        Level of the intervals.

    Returns
    -------
    MetricsAtK
        The metrics. Recall and lift are NaN with an UndefinedMetricWarning when the positive class has no weight.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import metrics_at_k
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.random(1000) < 0.1
    >>> top = metrics_at_k(y_true, y_true + rng.normal(size=1000), 0.05)
    >>> for name, (value, low, high) in zip(top._fields, top[:3]):
    ...     print(f"{name} {value:.2f} [{low:.2f}, {high:.2f}]")
    precision 0.40 [0.27, 0.54]
    recall 0.22 [0.16, 0.30]
    lift 4.49 [3.16, 5.94]
    """
    quantile = normal_quantile(level)
    positive, scores, weights = _check_rows(y_true, y_score, sample_weight, pos_label)
    cumulated = cumulate(positive, scores, weights)
    size, hits = _positives_at(cumulated, k)
    precision, others, correlation = _precisions(cumulated, size, _unit_weights(positive, weights), quantile)
    recall = low = high = float(_recall(hits, cumulated))
    total = float(cumulated.selected[-1])
    if cumulated.tps[-1] > 0.0:
        proportion = size / total
        low, high = share_interval(np.array(precision) * proportion, np.array(others) * (1.0 - proportion), correlation)
        low, high = min(low, recall), max(recall, high)  # The interval contains recall despite rounding errors.
    lift = (recall * total / size, low * total / size, high * total / size)  # rounded as in `lift_at_k`
    last = np.searchsorted(cumulated.selected, size * (1.0 - ROUNDING))
    return MetricsAtK(precision, (recall, low, high), lift, float(cumulated.thresholds[last]))


def _unit_weights(positive: NDArray[np.bool_], weights: FloatArray | None) -> FloatArray:
    """Return sum w^2 / sum w, the weight of one effective sample, for positives and for negatives."""
    if weights is None:
        return np.ones(2)
    by_class = [weights[is_class] if weights[is_class].any() else weights for is_class in (positive, ~positive)]
    return np.array([np.square(part).sum() / part.sum() for part in by_class])


def _precisions(
    cumulated: Cumulated, size: float, units: FloatArray, quantile: float
) -> tuple[Interval, Interval, float]:
    """Return the proportions of positives among selected and other samples, with intervals, and their correlation."""
    # The derivation is in docs/mathematics/metrics.md.
    total, n_positive = float(cumulated.selected[-1]), float(cumulated.tps[-1])
    ends = 0.5 * size, min(1.5 * size, total)
    hits, *at_ends = np.interp([size, *ends], cumulated.selected, cumulated.tps)
    boundary = (at_ends[1] - at_ends[0]) / (ends[1] - ends[0])
    sizes = np.array([size, max(total - size, 1e-16 * total)])  # not 0, because `influence` is divided by shares
    counts = np.clip([hits, n_positive - hits], 0.0, sizes)
    shares, smooth = sizes / total, (counts + units[0]) / (sizes + units.sum())
    # axes: proportion (selected, others), class (positive, negative), samples (selected, others)
    influence = np.eye(2)[:, None] * (np.array([[1.0], [0.0]]) - boundary) / shares
    influence += (boundary - smooth)[:, None, None]
    # the frequency of each class in each part, divided by the effective number of samples
    mass = shares * np.array([smooth, 1.0 - smooth]) * units[:, None] / total
    covariance = np.einsum("icp,jcp,cp", influence, influence, mass)
    dispersion = covariance.diagonal() / (smooth * (1.0 - smooth))
    estimates = zip(counts / sizes, dispersion)
    selected, others = ((float(value), *score_interval(value, factor, quantile)) for value, factor in estimates)
    return selected, others, float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def find_at_k(name: str) -> tuple[str, Callable[..., float], int | float] | None:
    """Return the title, the function and k for a name such as "precision_at_0.01" or "recall_at_100", else None."""
    match = re.fullmatch(r"(precision|recall|lift)_at_(\d*\.?\d+)", name)
    if match is None:
        return None
    kind, text = match.groups()
    k = parse_number(text)
    top_size(k, name=f"k of {name!r}")
    metric = {"precision": precision_at_k, "recall": recall_at_k, "lift": lift_at_k}[kind]
    return f"{kind} at {k if isinstance(k, int) else f'{100.0 * k:g} %'}", metric, k


def _recall(positives: Any, cumulated: Cumulated) -> Any:
    """Divide weights of positives by the total weight of positives. If the total is 0, warn and return NaN."""
    if cumulated.tps[-1] <= 0.0:
        warn_undefined("recall is not defined: no positive sample has weight")
        return positives * np.nan
    return np.minimum(positives / cumulated.tps[-1], 1.0)


def _recall_within(
    name: str, bound: float, y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, pos_label: Any
) -> float:
    check_bound(name, bound)
    cumulated = cumulate(*_check_rows(y_true, y_score, sample_weight, pos_label))
    return float(_recall(cumulated.tps[is_within(cumulated, name, bound)].max(initial=0.0), cumulated))


def recall_at_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    precision: float,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the maximum recall at thresholds where the precision is at least `precision`.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight
        As for `precision_at_k`, with the same errors.
    precision : float in (0, 1]
        The minimum precision.

    Returns
    -------
    float
        In [0, 1]. It is 0.0 if no threshold has that precision, and NaN with an UndefinedMetricWarning if the positive
        class has no weight.

    Examples
    --------
    >>> from aucforest.metrics import recall_at_precision
    >>> recall_at_precision([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.3, 0.6, 0.9, 0.2], 0.7)
    1.0
    """
    return _recall_within("precision", precision, y_true, y_score, sample_weight, pos_label)


def recall_at_fpr(
    y_true: ArrayLike, y_score: ArrayLike, fpr: float, *, pos_label: Any = None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the maximum recall at thresholds where the false positive rate is at most `fpr`.

    The other parameters and the errors are those of `recall_at_precision`.

    Parameters
    ----------
    fpr : float in [0, 1]
        The maximum false positive rate.

    Returns
    -------
    float
        As in `recall_at_precision`.

    Examples
    --------
    >>> from aucforest.metrics import recall_at_fpr
    >>> round(recall_at_fpr([0, 1, 0, 1, 1, 0], [0.1, 0.3, 0.3, 0.6, 0.9, 0.2], 0.1), 3)
    0.667
    """
    return _recall_within("fpr", fpr, y_true, y_score, sample_weight, pos_label)


def gains_curve(
    y_true: ArrayLike, y_score: ArrayLike, *, pos_label: Any = None, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, NDArray[np.floating[Any]]]:
    """Return the cumulative gains curve: recall against the proportion of samples that is selected.

    Lift is the quotient ``gain[1:] / proportion[1:]``.

    Parameters
    ----------
    y_true, y_score : array-like of shape (n_samples,)
        Labels and scores as for `precision_at_k`, with the same errors.
    pos_label, sample_weight
        As for `precision_at_k`.

    Returns
    -------
    proportion, gain : ndarray of shape (n_thresholds,), float64
        Proportions of all samples and of positive samples with a score of at least the threshold. The curve is linear
        between these points. Gain is NaN with an UndefinedMetricWarning when the positive class has no weight.
    thresholds : ndarray of shape (n_thresholds,), dtype of the scores
        Descending; the first is infinity, at which no sample is selected.

    Examples
    --------
    >>> from aucforest.metrics import gains_curve
    >>> proportion, gain, _ = gains_curve([0, 1, 0, 1], [0.1, 0.8, 0.4, 0.4])
    >>> proportion.tolist(), gain.tolist()
    ([0.0, 0.25, 0.75, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    cumulated = cumulate(*_check_rows(y_true, y_score, sample_weight, pos_label))
    selected = cumulated.selected
    return selected / selected[-1], _recall(cumulated.tps, cumulated), cumulated.thresholds
