"""AUC when every row is partly positive: p of a positive and 1 - p of a negative."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aucforest.metrics._intervals import normal_quantile, tails
from aucforest.metrics._validation import check_option, warn_undefined
from aucforest.monitoring._auc import draw_aucs, one_vs_one_auc, one_vs_rest_auc, ordered_pairs, soft_roc_auc
from aucforest.monitoring._rows import Estimate, FloatArray, Rows, check_scored, label_variance, undefined

FEW = 30  # expected rows of a class, below which an interval comes from drawn labels


def soft_auc(y_score: ArrayLike, p: ArrayLike) -> float:
    """Return the ROC AUC of `y_score` when row i is positive with probability p[i].

    With midranks R of the scores, P = sum p, Q = n - P and D = P Q,

        AUC = 1/2 + sum(p (R - (n + 1) / 2)) / D,

    which is the area under the curve of expected rates over all thresholds, ties counted half [1]_. One sort. For
    p of zeros and ones it is the ordinary AUC.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores, finite; only their order matters.
    p : array-like of shape (n_samples,)
        Calibrated probabilities of the positive class, in [0, 1].

    Returns
    -------
    float
        NaN with an UndefinedMetricWarning for a single row, or where p is all 0 or all 1.

    Raises
    ------
    ValueError
        For empty or non-finite input, lengths that differ or p outside [0, 1].
    TypeError
        For input that is not real numbers.

    References
    ----------
    .. [1] J. Bialek, W. Kuberski, N. Perrakis, A. Bifet, "Estimating model performance under covariate shift without
       labels", 2024.

    Examples
    --------
    >>> from aucforest.monitoring import soft_auc
    >>> round(soft_auc([0.1, 0.4, 0.35, 0.8], [0.1, 0.4, 0.35, 0.8]), 4)
    0.7772
    >>> soft_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    return _two_classes(y_score, p)[1].value


def _two_classes(y_score: ArrayLike, p: ArrayLike) -> tuple[Rows, Estimate]:
    """Return the checked rows and their estimate, with a warning where there is none."""
    rows = check_scored(y_score, p, n_dims=1)
    if len(rows.p) < 2:
        warn_undefined("the AUC is not defined: y_score has 1 row", stacklevel=4)
        return rows, undefined(rows.p)
    estimate = soft_roc_auc(rows)
    if np.isnan(estimate.value):
        warn_undefined(f"the AUC is not defined: every p is {rows.p[0, 0]:g}", stacklevel=4)
    return rows, estimate


class SoftAUCInterval(NamedTuple):
    """An expected AUC and the interval in which the realised one is expected.

    Attributes
    ----------
    auc : float
        Expectation of the realised AUC.
    low, high : float
        Bounds, inside [0, 1].
    standard_error : float
        Standard deviation of the realised AUC.
    """

    auc: float
    low: float
    high: float
    standard_error: float


def soft_auc_interval(
    y_score: ArrayLike,
    p: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal["auto", "wald", "bootstrap"] = "auto",
    n_draws: int = 2000,
    random_state: int | None = 0,
) -> SoftAUCInterval:
    """Return the expected AUC of labels drawn with probabilities `p`, and an interval for the realised AUC.

    It is conditional on p being right: no change of P(y = 1 | score) can be seen from scores. The realised AUC depends
    on two sums of labels, those of positives and of their ranks. With v = p (1 - p), the influence of a label is
    psi = (R - (P + 1/2) - AUC (n - 2 P)) / D, the variance sum(v psi^2), and the expectation (delta method, second
    order) AUC + (AUC - 1/2) sum(v) / D - (n - 2 P) sum(v psi) / D. See `soft_auc` for the symbols.

    Parameters
    ----------
    y_score, p : array-like of shape (n_samples,)
        As for `soft_auc`.
    level : float in (0, 1), default=0.95
        Chance that the interval holds the realised AUC.
    method : {"auto", "wald", "bootstrap"}, default="auto"
        "wald" is expectation -+ z * standard error, cut off at 0 and 1; "bootstrap" takes quantiles of the AUC of drawn
        labels; "auto" draws when fewer than 30 rows of a class are expected.
    n_draws : int, default=2000
        Number of draws.
    random_state : int or None, default=0
        Seed of the draws.

    Returns
    -------
    SoftAUCInterval
        NaN with an UndefinedMetricWarning where `soft_auc` is.

    Raises
    ------
    ValueError
        As `soft_auc`, and for a `level` or `method` that does not exist.
    TypeError
        For input that is not real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.monitoring import soft_auc_interval
    >>> p = np.random.default_rng(0).random(1000)
    >>> auc, low, high, _ = soft_auc_interval(p, p)
    >>> f"{auc:.3f} [{low:.3f}, {high:.3f}]"
    '0.829 [0.806, 0.852]'
    """
    check_option("method", method, ("auto", "wald", "bootstrap"))
    z = normal_quantile(level)
    rows, estimate = _two_classes(y_score, p)
    error = float(np.sqrt(label_variance(rows.p, estimate.influence)))
    if np.isnan(estimate.value):
        return SoftAUCInterval(np.nan, np.nan, np.nan, np.nan)
    if method == "bootstrap" or (method == "auto" and is_small(rows.p)):
        drawn = draw_aucs(rows, n_draws, np.random.default_rng(random_state))
        low, high = np.nanquantile(drawn, tails(level))
    else:
        low, high = estimate.expected - z * error, estimate.expected + z * error
    auc, low, high = np.clip([estimate.expected, low, high], 0.0, 1.0).tolist()
    return SoftAUCInterval(auc, low, high, error)


def is_small(p: FloatArray) -> bool:
    """Return whether fewer than FEW positives or negatives are expected in the one column."""
    positive = p.sum()
    return p.shape[1] == 1 and bool(min(positive, p.size - positive) < FEW)


def soft_auc_multiclass(
    y_score: ArrayLike,
    p: ArrayLike,
    *,
    multi_class: Literal["ovo", "ovr"] = "ovo",
    average: Literal["macro"] | None = "macro",
) -> float | FloatArray:
    """Return the multiclass ROC AUC when row i is of class c with probability p[i, c].

    "ovo" is Hand and Till's mean over ordered pairs, the same as `aucforest.metrics.hand_till_score`, with

        A(c, d) = sum_i p_ic below_d(i) / (P_c P_d),

    where rows are ranked by column c and below_d(i) is the expected number of class-d rows ranked below row i, ties
    half. "ovr" is the mean of `soft_auc` of each class against the others.

    Parameters
    ----------
    y_score : array-like of shape (n_samples, n_classes)
        Scores, finite; column c ranks class c.
    p : array-like of shape (n_samples, n_classes)
        Calibrated probabilities; rows sum to 1.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One class against one other, or against all others.
    average : {"macro"} or None, default="macro"
        None returns the A(c, d), or the AUC of each class.

    Returns
    -------
    float, or ndarray of shape (n_classes, n_classes) or (n_classes,)
        The matrix of A(c, d) has a NaN diagonal. NaN with an UndefinedMetricWarning where a class is impossible in all
        rows.

    Raises
    ------
    ValueError
        For an unknown option, empty or non-finite input, shapes that differ, p outside [0, 1] or rows of p that do not
        sum to 1.
    TypeError
        For input that is not real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.monitoring import soft_auc_multiclass
    >>> p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.2, 0.1, 0.7]])
    >>> round(soft_auc_multiclass(p, p), 4)
    0.7901
    >>> soft_auc_multiclass(p, p, multi_class="ovr", average=None).round(4)
    array([0.7707, 0.8022, 0.7991])
    """
    check_option("multi_class", multi_class, ("ovo", "ovr"))
    check_option("average", average, ("macro", None))
    rows = check_scored(y_score, p, n_dims=2)
    impossible = np.flatnonzero(rows.p.sum(axis=0) == 0.0)
    if impossible.size:
        warn_undefined(f"the AUC is not defined: column {impossible[0]} of p is 0 throughout")
        shape = (rows.p.shape[1],) * (2 if multi_class == "ovo" else 1)
        return float("nan") if average else np.full(shape, np.nan)
    if average == "macro":
        return (one_vs_one_auc if multi_class == "ovo" else one_vs_rest_auc)(rows).value
    if multi_class == "ovo":
        return ordered_pairs(rows.columns, rows.p)[0]
    return np.array([soft_roc_auc(one).value for one in rows.by_column()])
