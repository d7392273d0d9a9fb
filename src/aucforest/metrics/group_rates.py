"""Selection rate, recall, false positive rate and calibration by group, and their differences, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import hypot
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._display import HtmlTable
from aucforest._optional import import_optional
from aucforest.metrics.intervals import normal_quantile, require_level, score_interval
from aucforest.metrics.validation import (
    FloatArray,
    as_column,
    check_length,
    check_scores,
    check_weights,
    is_missing,
    is_positive,
    require_range,
    require_weight,
)

_MOST_GROUPS = 100  # the maximum number of groups
_MOST_NAMED = 5  # the maximum number of differences in a verdict, and of groups in an error message
_TITLES = {"selection_rate": "selection rate", "fpr": "false positive rate"}


class GroupRate(NamedTuple):
    """A metric of a group and its difference from the reference group, with intervals.

    Undefined values are NaN. The group of missing values is None. The intervals of all differences are simultaneous.
    """

    group: Any
    metric: str
    n_rows: int
    n_positive: int
    value: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float

    @property
    def title(self) -> str:
        """The name of the metric in words."""
        return _TITLES.get(self.metric, self.metric)

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        return self.difference_low > 0.0 or self.difference_high < 0.0


@dataclass(frozen=True, repr=False)
class GroupRates(HtmlTable):
    """Results of `group_rates`.

    Attributes
    ----------
    rates : tuple of GroupRate
        One for each group and metric; the metrics of a group are adjacent.
    reference : object
        The group with which the others are compared.
    level : float
        The level of the intervals.
    """

    rates: tuple[GroupRate, ...]
    reference: Any
    level: float

    def verdict(self) -> str:
        """Return a sentence that lists the differences whose intervals exclude 0."""
        known = [rate for rate in self.rates if rate.group != self.reference and not np.isnan(rate.difference)]
        differing = [rate for rate in known if rate.differs]
        verb = "exclude" if len(differing) > 1 else "excludes"
        predicate = f"from the group {_name(self.reference)} {verb} 0, jointly at {100 * self.level:g} %"
        if not differing:
            return f"None of the {len(known)} differences {predicate}."
        named = [
            f"{rate.title} of {_name(rate.group)} {rate.difference:+.3f} [{rate.difference_low:+.3f},"
            f" {rate.difference_high:+.3f}]"
            for rate in differing[:_MOST_NAMED]
        ]
        more = f" and {len(differing) - _MOST_NAMED} more" if len(differing) > _MOST_NAMED else ""
        return f"{len(differing)} of the {len(known)} differences {predicate}: {'; '.join(named)}{more}."

    def summary(self) -> str:
        """Return a text with a line for each group: numbers of rows and positives, and metrics with intervals."""
        lines = []
        for group, rates in groupby(self.rates, key=attrgetter("group", "n_rows", "n_positive")):
            metrics = [f"{rate.title} {rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]" for rate in rates]
            name, n_rows, n_positive = group
            lines.append("; ".join([f"{_name(name)}: {n_rows:,} rows, {n_positive:,} positive", *metrics]))
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each group and metric."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame(self.rates)

    _table = to_frame

    def __repr__(self) -> str:
        n_groups = len({rate.group for rate in self.rates})
        return f"GroupRates({n_groups} groups, reference {_name(self.reference)})"

    def __str__(self) -> str:
        return f"{self.verdict()}\n{self.summary()}"


def _name(group: Any) -> str:
    return "missing" if group is None else str(group)


def group_rates(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    group: ArrayLike,
    *,
    y_proba: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    reference: Any = None,
    level: float = 0.95,
) -> GroupRates:
    """Return selection rate, recall, false positive rate and calibration of each group, and how groups differ.

    Rates have Wilson's interval; with weights, it uses Kish's effective number of rows. The difference of two rates has
    Newcombe's hybrid score interval [1]_. The intervals of all differences from the reference group are simultaneous:
    `level` is their joint level, by Bonferroni's correction.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True and predicted labels of two classes: bool, int, float or str.
    group : array-like of shape (n_samples,)
        The group of each sample: text or numbers, at most 100 groups. Missing values are a group, too.
    y_proba : array-like of shape (n_samples,), optional
        The probability p of the positive class, for the metric "calibration": the mean probability minus the frequency
        of positives. Its interval is a score interval of the frequency, with the observed variance of y - p.
    sample_weight, pos_label
        As in `precision_at_k`. Samples of weight 0 are ignored.
    reference : object, optional
        The group with which the others are compared, by default the largest. NaN is the group of missing values.
    level : float in (0, 1), default=0.95
        Level of the intervals.

    Returns
    -------
    GroupRates
        Undefined rates are NaN, such as the recall of a group without positives.

    Raises
    ------
    ValueError, TypeError
        As `roc_curve`. ValueError also if there are more than 100 groups, no group `reference`, a probability outside
        [0, 1], or no weight.

    References
    ----------
    .. [1] R. G. Newcombe, "Interval estimation for the difference between independent proportions", Statistics in
       Medicine 17 (1998), 873-890, method 10.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import group_rates
    >>> random = np.random.default_rng(0)
    >>> region, y_true = random.choice(["north", "south"], 2000), random.random(2000) < 0.2
    >>> y_pred = random.random(2000) < np.where(y_true, np.where(region == "north", 0.8, 0.6), 0.1)
    >>> rates = group_rates(y_true, y_pred, region)
    >>> rates.reference
    'south'
    >>> print(rates.verdict().partition("; ")[2])
    recall of north +0.160 [+0.054, +0.261].
    """
    require_level(level)
    predicted, truth = as_column(y_pred), as_column(y_true)
    if predicted.size == 0:
        raise ValueError("y_pred is empty")
    check_length(truth, "y_true", predicted.size, of="y_pred")
    both, name = np.concatenate([truth, predicted]), "y_true and y_pred"
    positive, selected = np.split(is_positive(both, both.size, pos_label=pos_label, name=name), 2)
    proba = None
    if y_proba is not None:
        proba = check_scores(as_column(y_proba), name="y_proba", finite=True).astype(np.float64)
        check_length(proba, "y_proba", predicted.size, of="y_pred")
        require_range(proba, "y_proba")
    weights = check_weights(sample_weight, predicted.size, of="y_pred")
    groups = as_column(group)
    check_length(groups, "group", predicted.size, of="y_pred")
    rows = PredictedRows(positive, selected, proba, weights)
    return compare_groups(*_code_groups(groups), rows, reference=reference, level=level)


def _code_groups(groups: NDArray[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the sorted groups, with None for missing values at the end, and the index of the group of each row."""
    if groups.dtype.kind in "mM":
        groups = np.where(np.isnat(groups), np.array(None), groups.astype(str).astype(object))
    values = [None if is_missing(value) else value for value in groups.tolist()]
    distinct = dict.fromkeys(values)
    if len(distinct) > _MOST_GROUPS:
        what = f"{len(distinct):,} values, more than {_MOST_GROUPS}: cut numbers into ranges, as pandas.qcut does"
        raise ValueError(f"group has {what}")
    known = [value for value in distinct if value is not None]
    try:
        names = sorted(known)
    except TypeError:
        names = sorted(known, key=str)
    names += [None] if None in distinct else []
    index = {name: k for k, name in enumerate(names)}
    return names, np.array([index[value] for value in values])


class _RateEstimate(NamedTuple):
    """A proportion and the `dispersion` of `score_interval`. For "calibration" also the mean probability."""

    proportion: float
    dispersion: float
    mean: float | None = None

    def interval(self, quantile: float) -> tuple[float, float, float]:
        """Return the proportion, or the mean probability minus the proportion, with its interval."""
        low, high = score_interval(self.proportion, self.dispersion, quantile)
        if self.mean is None:
            return self.proportion, low, high
        return self.mean - self.proportion, self.mean - high, self.mean - low


class PredictedRows(NamedTuple):
    """Whether each row is positive, and whether it is predicted positive, with optional probabilities and weights."""

    positive: NDArray[np.bool_]
    selected: NDArray[np.bool_]
    proba: FloatArray | None = None
    weights: FloatArray | None = None


def compare_groups(
    names: Sequence[Any], indices: NDArray[np.int64], rows: PredictedRows, *, reference: Any = None, level: float
) -> GroupRates:
    """Return `group_rates` of validated rows, given the names of the groups and the group index of each row."""
    positive, selected, proba, weights = rows
    weights = np.ones(positive.size) if weights is None else weights / (weights.max() or 1.0)
    require_weight(weights)
    has_weight = weights > 0.0
    n_rows = np.bincount(indices[has_weight], minlength=len(names))
    n_positive = np.bincount(indices[has_weight & positive], minlength=len(names))
    present, estimates = np.flatnonzero(n_rows).tolist(), {}
    for k in present:
        inside = indices == k
        denominators = {"selection_rate": inside, "recall": inside & positive, "fpr": inside & ~positive}
        estimates[k] = {name: rate_estimate(selected[part], weights[part]) for name, part in denominators.items()}
        if proba is not None:
            estimates[k]["calibration"] = _calibration(positive[inside], proba[inside], weights[inside])
    base = int(np.argmax(n_rows)) if reference is None else _find_reference(reference, names, present)
    pairs = [(estimates[k][metric], estimates[base][metric]) for k in present if k != base for metric in estimates[k]]
    n_known = sum(not np.isnan(one.proportion - other.proportion) for one, other in pairs)
    quantile, wide_quantile = normal_quantile(level), normal_quantile(1.0 - (1.0 - level) / max(n_known, 1))
    rates = []
    for k in present:
        for metric, estimate in estimates[k].items():
            difference = (0.0, 0.0, 0.0) if k == base else _difference(estimate, estimates[base][metric], wide_quantile)
            interval = estimate.interval(quantile)
            rates.append(GroupRate(names[k], metric, int(n_rows[k]), int(n_positive[k]), *interval, *difference))
    return GroupRates(tuple(rates), names[base], level)


def _find_reference(reference: Any, names: Sequence[Any], present: list[int]) -> int:
    name = None if is_missing(reference) else reference
    for k in present:
        if names[k] == name:
            return k
    groups = ", ".join(_name(names[k]) for k in present[:_MOST_NAMED])
    raise ValueError(f"reference must be a group, such as {groups}, but is {reference!r}")


def rate_estimate(is_hit: NDArray[np.bool_], weights: FloatArray) -> _RateEstimate:
    """Return the weighted proportion of hits, and the inverse of Kish's effective number of rows."""
    total = float(weights.sum())
    if total == 0.0:
        return _RateEstimate(np.nan, np.nan)
    return _RateEstimate(float(weights[is_hit].sum()) / total, float(np.square(weights / total).sum()))


def _calibration(positive: NDArray[np.bool_], proba: FloatArray, weights: FloatArray) -> _RateEstimate:
    """Return the estimate for "calibration", with the variance of y - p, or of a proportion if y has one class."""
    frequency, dispersion = rate_estimate(positive, weights)[:2]
    shares, residuals = weights / weights.sum(), positive - proba
    if 0.0 < frequency < 1.0:
        variance = float(np.square(shares) @ np.square(residuals - shares @ residuals))
        dispersion = variance / (frequency * (1.0 - frequency))
    return _RateEstimate(frequency, dispersion, float(shares @ proba))


def _difference(estimate: _RateEstimate, other: _RateEstimate, quantile: float) -> tuple[float, float, float]:
    """Return the difference of two estimates with Newcombe's interval."""
    value, low, high = estimate.interval(quantile)
    base, base_low, base_high = other.interval(quantile)
    difference = value - base
    below, above = hypot(value - low, base_high - base), hypot(high - value, base - base_low)
    return difference, difference - below, difference + above
