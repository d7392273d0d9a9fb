"""AUC, average precision, and precision and recall at k of samples that are positive with probability p.

Each metric is computed with p in place of the labels, together with the expectation of the realized metric and the
influence of the labels. The functions `simulate_*` compute metrics of simulated labels (parametric bootstrap).
"""

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from aucforest.metrics.intervals import normal_quantile, quantile_interval
from aucforest.metrics.roc import precision_area
from aucforest.metrics.validation import FloatArray, check_option, warn_undefined
from aucforest.monitoring._rows import Estimate, RankedColumn, RankedSamples, check_scored, dot, label_variance

FEW = 30  # With fewer expected samples of a class, intervals use simulated labels.
MOST_LABELS = 1 << 22  # the maximum number of labels that are simulated at once, which limits the memory
# `_expected_precision` integrates over 1 - t from 0 to REACH / sum(p).
REACH = 30.0
# The nodes and weights of Gauss-Legendre quadrature, converted from [-1, 1] to [0, 1].
QUADRATURE = tuple(0.5 * (part + shift) for part, shift in zip(np.polynomial.legendre.leggauss(20), (1.0, 0.0)))


def soft_auc(*, p: ArrayLike, y_score: ArrayLike) -> float:
    """Compute the ROC AUC of `y_score` if sample i is positive with probability p[i].

    With midranks R of the scores, P = sum p, Q = n - P and D = P Q,

        AUC = 1/2 + sum(p (R - (n + 1) / 2)) / D.

    This is the area under the curve of expected rates at all thresholds (Bialek et al., see `CBPE`). Ties count half.
    If each p is 0 or 1, it is the ordinary AUC.

    Parameters
    ----------
    p : array-like of shape (n_samples,)
        Calibrated probabilities of the positive class, in [0, 1].
    y_score : array-like of shape (n_samples,)
        Finite scores.

    Returns
    -------
    float
        The AUC. NaN with an UndefinedMetricWarning for a single sample, or if p is all 0 or all 1.

    Raises
    ------
    ValueError, TypeError
        If the input is empty or not finite real numbers, lengths differ, or p is outside [0, 1].

    Examples
    --------
    >>> from aucforest.monitoring import soft_auc
    >>> score = [0.1, 0.4, 0.35, 0.8]
    >>> round(soft_auc(p=score, y_score=score), 4)
    0.7772
    >>> soft_auc(p=[0, 0, 1, 1], y_score=score)
    0.75
    """
    return _two_classes(y_score, p)[1].value


def _two_classes(y_score: ArrayLike, p: ArrayLike) -> tuple[RankedSamples, Estimate]:
    """Return the validated samples and the estimate of their AUC; warn if it is undefined."""
    samples = check_scored(y_score, p, n_dims=1)
    if len(samples.p) < 2:
        warn_undefined("the AUC is not defined: y_score has 1 row")
        return samples, Estimate.undefined(samples.p)
    estimate = soft_roc_auc(samples)
    if np.isnan(estimate.value):
        warn_undefined(f"the AUC is not defined: every p is {samples.p[0, 0]:g}")
    return samples, estimate


class SoftAUCInterval(NamedTuple):
    """Expected AUC and confidence interval of the realized AUC.

    Attributes
    ----------
    auc : float
        The expected value of the realized AUC.
    low, high : float
        The bounds of the interval, within [0, 1].
    standard_error : float
        The standard deviation of the realized AUC.
    """

    auc: float
    low: float
    high: float
    standard_error: float


def soft_auc_interval(
    *,
    p: ArrayLike,
    y_score: ArrayLike,
    level: float = 0.95,
    method: Literal["auto", "wald", "bootstrap"] = "auto",
    n_simulations: int = 2000,
    random_state: int | None = 0,
) -> SoftAUCInterval:
    """Compute the expected AUC of labels with probabilities `p`, and an interval for the realized AUC.

    The realized AUC is that of the actual labels. The interval is valid if the probabilities p are correct. With
    v = p (1 - p) and the symbols of `soft_auc`, the influence of a label is psi = (R - (P + 1/2) - AUC (n - 2 P)) / D,
    and the variance is sum(v psi^2). The expectation is AUC + (AUC - 1/2) sum(v) / D - (n - 2 P) sum(v psi) / D, by the
    second-order delta method.

    Parameters
    ----------
    p, y_score : array-like of shape (n_samples,)
        As in `soft_auc`. Invalid values raise the same errors.
    level : float in (0, 1), default=0.95
        Confidence level of the interval.
    method : {"auto", "wald", "bootstrap"}, default="auto"
        "wald" is expectation -+ z * standard error, clipped to [0, 1]. "bootstrap" uses quantiles of simulations.
        "auto" uses "bootstrap" if fewer than 30 samples of a class are expected.
    n_simulations : int, default=2000
        The number of simulated labelings.
    random_state : int or None, default=0
        Controls the simulated labels.

    Returns
    -------
    SoftAUCInterval
        The results. NaN with an UndefinedMetricWarning if the AUC is not defined, as in `soft_auc`. The bounds are NaN
        if no simulation has both classes.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.monitoring import soft_auc_interval
    >>> p = np.random.default_rng(0).random(1000)
    >>> auc, low, high, _ = soft_auc_interval(p=p, y_score=p)
    >>> f"{auc:.3f} [{low:.3f}, {high:.3f}]"
    '0.829 [0.806, 0.852]'
    """
    check_option("method", method, ("auto", "wald", "bootstrap"))
    check_scalar(n_simulations, "n_simulations", Integral, min_val=1)
    z = normal_quantile(level)
    samples, estimate = _two_classes(y_score, p)
    error = float(np.sqrt(label_variance(samples.p, estimate.influence)))
    if np.isnan(estimate.value):
        return SoftAUCInterval(np.nan, np.nan, np.nan, np.nan)
    if method == "bootstrap" or (method == "auto" and is_small(samples.p)):
        simulated = simulate_aucs(samples, n_simulations, np.random.default_rng(random_state))
        low, high = quantile_interval(simulated, level)
    else:
        low, high = estimate.expected - z * error, estimate.expected + z * error
    auc, low, high = np.clip([estimate.expected, low, high], 0.0, 1.0).tolist()
    return SoftAUCInterval(auc, low, high, error)


def is_small(p: FloatArray) -> bool:
    """Return whether there are two classes, and fewer than FEW positives or negatives are expected."""
    positive = p.sum()
    return p.shape[1] == 1 and bool(min(positive, p.size - positive) < FEW)


def soft_auc_multiclass(*, p: ArrayLike, y_score: ArrayLike, multi_class: Literal["ovo", "ovr"] = "ovo") -> float:
    """Compute the multiclass ROC AUC if sample i is of class c with probability p[i, c].

    "ovo" is Hand and Till's mean over ordered pairs of classes, as in `aucforest.metrics.hand_till_score`, of

        A(c, d) = sum_i p_ic below_d(i) / (P_c P_d), with P_c = sum_i p_ic.

    Samples are ranked by column c. below_d(i) is the expected number of samples of class d below i; ties count half.
    "ovr" is the mean of `soft_auc` of each class against the others.

    Parameters
    ----------
    p : array-like of shape (n_samples, n_classes)
        Calibrated probabilities. Rows must sum to 1.
    y_score : array-like of shape (n_samples, n_classes)
        Finite scores of each class.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One-vs-one or one-vs-rest.

    Returns
    -------
    float
        The AUC. NaN with an UndefinedMetricWarning if the probability of a class is 0 for all samples.

    Raises
    ------
    ValueError, TypeError
        As `soft_auc`. ValueError also if `multi_class` is unknown or rows of p do not sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.monitoring import soft_auc_multiclass
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.2, 0.1, 0.7]])
    >>> round(soft_auc_multiclass(p=p, y_score=p), 4)
    0.7901
    >>> round(soft_auc_multiclass(p=p, y_score=p, multi_class="ovr"), 4)
    0.7907
    """
    check_option("multi_class", multi_class, ("ovo", "ovr"))
    samples = check_scored(y_score, p, n_dims=2)
    impossible = np.flatnonzero(samples.p.sum(axis=0) == 0.0)
    if impossible.size:
        warn_undefined(f"the AUC is not defined: column {impossible[0]} of p is 0 throughout")
    return MULTICLASS_AUCS[multi_class](samples).value


def soft_roc_auc(samples: RankedSamples) -> Estimate:
    """Return the AUC of two classes; its expectation is approximated by the second-order delta method."""
    p = np.ascontiguousarray(samples.p[:, 0])
    positive, negative = float(p.sum()), float((1.0 - p).sum())
    pairs = positive * negative  # 0 if all labels are certain to be the same
    if pairs <= 0.0:
        return Estimate.undefined(samples.p)
    midranks = samples.columns[0].midranks
    excess = dot(midranks, p) / pairs
    influence = (midranks - excess * (negative - positive)) / pairs
    noise = p * (1.0 - p)
    bias = (excess * noise.sum() - (negative - positive) * dot(noise, influence)) / pairs
    return Estimate(0.5 + excess, 0.5 + excess + bias, influence[:, None])


def _mean_of_columns(metric: Callable[[RankedSamples], Estimate], samples: RankedSamples) -> Estimate:
    """Return the mean over columns of a binary metric, with each class against the others."""
    values, expected, influences = zip(*map(metric, samples.by_column()))
    return Estimate(float(np.mean(values)), float(np.mean(expected)), np.hstack(influences) / len(values))


def _column_precision(samples: RankedSamples) -> Estimate:
    (column,), p = samples.columns, samples.p[:, 0]
    positive = float(p.sum())
    if positive <= 0.0:
        return Estimate.undefined(samples.p)
    precision, positives, n_selected = _precision_steps(column, p)
    value = float(precision_area(np.cumsum(positives[::-1]), precision[::-1]))
    # One more positive adds 1 to the positives at its score, and 1 / n_selected to the precision there and below.
    from_lower = np.cumsum(positives / n_selected)
    influence = (precision + from_lower - value) / positive
    return Estimate(value, _expected_precision(column, p), column.to_rows(influence)[:, None])


def _expected_precision(column: RankedColumn, p: FloatArray) -> float:
    """Return the expected average precision of random labels with probabilities p, given at least one positive label.

    docs/mathematics/monitoring.md derives it as an integral over t from 0 to 1. If P is the sum of p, the part of the
    integral below t = 1 - REACH / P is negligible.
    """
    nodes, weights = QUADRATURE
    reach = min(1.0, REACH / float(p.sum()))
    expected = 0.0
    for step, weight in zip(reach * nodes, reach * weights):  # The step is 1 - t.
        factors = 1.0 - p * step
        tilted = p * (1.0 - step) / factors
        precision, positives, n_selected = _precision_steps(column, tilted)
        # The products of precision and positives have squares of labels. The expectation of a square is the squared
        # expectation plus the variance, which is added here.
        expected_w = dot(precision, positives) + float((column.sums(tilted * (1.0 - tilted)) / n_selected).sum())
        expected += weight * expected_w * np.exp(np.log(factors).sum()) / (1.0 - step)
    with np.errstate(divide="ignore"):
        return float(expected / -np.expm1(np.log1p(-p).sum()))


def _precision_steps(column: RankedColumn, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return for each distinct score its precision as a threshold, its positives, and how many samples reach it."""
    positives = column.sums(p)
    n_selected = (column.order.size - column.edges[:-1]).astype(np.float64)
    return np.cumsum(positives[::-1])[::-1] / n_selected, positives, n_selected


def ordered_pairs(columns: list[RankedColumn], p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the matrix of A(c, d) of `soft_auc_multiclass`, with a NaN diagonal, and the influence of p on its sum.

    No class may have probability 0 in all samples. A pair of a sample i of class c and a sample j of class d has the
    weight 1 / (P_c P_d). The pair counts if i ranks above j in column c, and half if they tie.
    """
    by_class = np.ascontiguousarray(p.T)
    totals = by_class.sum(axis=1)
    weight = 1.0 / np.outer(totals, totals)
    np.fill_diagonal(weight, 0.0)
    # einsum instead of BLAS, for the reason given in `dot`
    weighted = np.einsum("cd,di->ci", weight, by_class)
    above, influence = np.empty_like(by_class), np.empty_like(by_class)
    for c, column in enumerate(columns):
        above[c] = totals[c] - column.below(by_class[c])
        influence[c] = column.below(weighted[c])
    matrix = np.einsum("ci,di->cd", above, by_class) * weight
    # The totals in the denominators of A(c, d) depend on p, too.
    influence += np.einsum("cd,ci->di", weight, above) - ((matrix.sum(axis=0) + matrix.sum(axis=1)) / totals)[:, None]
    np.fill_diagonal(matrix, np.nan)
    return matrix, influence.T


def one_vs_one_auc(samples: RankedSamples) -> Estimate:
    """Return Hand and Till's mean over pairs of classes. The expectation excludes pairs of a sample with itself."""
    totals = samples.p.sum(axis=0)
    if totals.min() <= 0.0:
        return Estimate.undefined(samples.p)
    matrix, influence = ordered_pairs(samples.columns, samples.p)
    pairs = np.outer(totals, totals)
    # With p in place of labels, a sample forms pairs with itself, which tie. Realized labels have no such pairs.
    self_pairs = np.einsum("ic,id->cd", samples.p, samples.p)
    n_others = pairs - self_pairs
    expected = matrix.copy()
    np.divide(matrix * pairs - 0.5 * self_pairs, n_others, out=expected, where=n_others > 1e-9 * pairs)
    n_means = totals.size * (totals.size - 1)
    return Estimate(float(np.nansum(matrix)) / n_means, float(np.nansum(expected)) / n_means, influence / n_means)


def _selected(column: RankedColumn, k: float) -> FloatArray:
    """Return 1 for samples among the proportion k with the highest scores, 0 for others, and fractions for a tie."""
    n_above = column.order.size - column.edges[1:]
    return column.to_rows(np.clip((k * column.order.size - n_above) / np.diff(column.edges), 0.0, 1.0))


def _column_at_k(kind: str, k: float, samples: RankedSamples) -> Estimate:
    """Return precision or recall at k of one class; the expected recall is by the second-order delta method."""
    selected, p = _selected(samples.columns[0], k), samples.p[:, 0]
    if kind == "precision":
        influence = selected / (k * p.size)
        value = dot(influence, p)
        return Estimate(value, value, influence[:, None])
    positive = float(p.sum())
    if positive <= 0.0:
        return Estimate.undefined(samples.p)
    value = dot(selected, p) / positive
    influence = (selected - value) / positive
    return Estimate(value, value - dot(p * (1.0 - p), influence) / positive, influence[:, None])


def soft_at_k(kind: str, k: float, samples: RankedSamples) -> Estimate:
    """Return precision or recall at the proportion k, or their mean over more than two classes."""
    return _mean_of_columns(partial(_column_at_k, kind, k), samples)


# Means over classes.
one_vs_rest_auc = partial(_mean_of_columns, soft_roc_auc)
soft_average_precision = partial(_mean_of_columns, _column_precision)
MULTICLASS_AUCS: dict[str, Callable[[RankedSamples], Estimate]] = {"ovo": one_vs_one_auc, "ovr": one_vs_rest_auc}


def simulate_aucs(samples: RankedSamples, n_simulations: int, random: np.random.Generator) -> FloatArray:
    """Return the AUC of each simulation of the labels of two classes, NaN for simulations with a single class.

    Only members of the rarer class are simulated. A sample with probability q is a member if a Poisson variable with
    mean -log(1 - q) is positive. The sum of these variables is Poisson, too, so only the sum is drawn, and then divided
    among the samples at random.
    """
    midranks, p, n_rows = samples.columns[0].midranks, samples.p[:, 0], samples.p.shape[0]
    flipped = bool(p.sum() > n_rows / 2)
    rare = 1.0 - p if flipped else p
    certain = rare >= 1.0
    rates = np.cumsum(-np.log1p(-np.where(certain, 0.0, rare)))
    counts = random.poisson(rates[-1], n_simulations)
    simulation = np.repeat(np.arange(n_simulations), counts)
    row = np.searchsorted(rates, random.random(simulation.size) * rates[-1], side="right")
    simulation, row = np.divmod(np.unique(simulation * n_rows + row), n_rows)
    members = np.bincount(simulation, minlength=n_simulations) + float(certain.sum())
    ranks = np.bincount(simulation, weights=midranks[row], minlength=n_simulations) + midranks[certain].sum()
    pairs = members * (n_rows - members)
    excess = np.divide(ranks, pairs, out=np.full(n_simulations, np.nan), where=pairs > 0)
    return 0.5 - excess if flipped else 0.5 + excess


def simulate_average_precisions(samples: RankedSamples, n_simulations: int, random: np.random.Generator) -> FloatArray:
    """Return the average precision of each simulation, as a mean over classes; NaN if a class does not occur."""

    def average_precision(column: RankedColumn, labels: NDArray[np.bool_]) -> FloatArray:
        descending = labels[:, column.order[::-1]]
        n_selected = column.order.size - column.edges[-2::-1]
        positives = np.cumsum(descending, axis=1)[:, n_selected - 1]
        return np.asarray(precision_area(positives, positives / n_selected))

    return _simulate(average_precision, samples, n_simulations, random)


def simulate_at_k(
    kind: str, k: float, samples: RankedSamples, n_simulations: int, random: np.random.Generator
) -> FloatArray:
    """Return precision or recall at the proportion k of each simulation, as a mean over classes; NaN if undefined."""

    def at_k(column: RankedColumn, labels: NDArray[np.bool_]) -> FloatArray:
        hits = np.einsum("di,i->d", labels, _selected(column, k))
        total = labels.sum(axis=1) if kind == "recall" else np.full(len(labels), k * column.order.size)
        return np.divide(hits, total, out=np.full(len(labels), np.nan), where=total > 0)

    return _simulate(at_k, samples, n_simulations, random)


def _simulate(
    metric: Callable[[RankedColumn, NDArray[np.bool_]], FloatArray],
    samples: RankedSamples,
    n_simulations: int,
    random: np.random.Generator,
) -> FloatArray:
    """Return the mean over classes of a metric for each simulation.

    `metric` takes the scores of a class, and whether each sample has this class, (n_simulations, n_samples).
    """
    batch = max(1, MOST_LABELS // samples.p.size)
    values = []
    for start in range(0, n_simulations, batch):
        uniform = random.random((min(batch, n_simulations - start), samples.p.shape[0]))
        total, upper = np.zeros(len(uniform)), np.zeros(samples.p.shape[0])
        for k, column in enumerate(samples.columns):
            # A sample has class k if its uniform variable is in between.
            lower, upper = upper, upper + samples.p[:, k]
            total += metric(column, (uniform >= lower) & (uniform < upper))
        values.append(total / len(samples.columns))
    return np.concatenate(values)
