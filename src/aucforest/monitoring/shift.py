"""Measures of the shift between new and reference data, and their limits, beyond which estimates may not be valid.

A new chunk is compared with the whole reference. For the limits, each full chunk of the reference is compared with the
rest of the reference. The measures are standardized: they are about normal, and do not depend on the numbers of samples
(see docs/mathematics/monitoring.md). The limits are prediction limits for the measures of a new chunk.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from aucforest.estimators import AUCForestClassifier
from aucforest.metrics import roc_auc_score
from aucforest.monitoring._rows import FloatArray, IntArray, RankedColumn
from aucforest.monitoring.metrics import is_beyond

N_BINS = 10
MOST_ROWS = 5_000  # the maximum number of reference and of new samples for the domain classifier
LEAST_PROBABILITY = 0.01  # Probabilities are clipped so that no density ratio is 0 or infinite.
LEAST_CHUNKS = 3  # the minimum number of full reference chunks for limits: two would only be compared with each other


class ShiftReport(NamedTuple):
    """Shift of a chunk relative to the reference, measured without labels.

    Attributes
    ----------
    psi : float
        The population stability index of the scores in ten quantile bins of the reference (the maximum over columns).
        Values above 0.2 are usually considered a large shift.
    outside : float
        The proportion of samples with a score outside the range of the reference.
    domain_auc : float
        The out-of-fold AUC of a forest that classifies new against reference samples. NaN without features.
    domain_auc_error : float
        The standard error of this AUC without a shift, sqrt((n0 + n1 + 1) / (12 n0 n1)) for n0 and n1 samples.
    effective_sample_size : float
        (sum w)^2 / sum w^2 / n for the density ratios w (new / reference) of n reference samples. 1 without a shift.
    psi_limit, domain_auc_limit, effective_sample_size_limit : float
        There is an alert if the PSI or the domain AUC is above its limit, or the effective sample size is below. The
        limits are computed from full reference chunks, each compared with the rest of the reference. NaN if unknown.
    valid : bool or None
        Whether the three measures are within their limits. If not, the estimates are in doubt. None (undefined) if
        there are no limits, if no shift could be beyond them, or if the chunk has fewer than two samples.
    """

    psi: float
    outside: float
    domain_auc: float = float("nan")
    domain_auc_error: float = float("nan")
    effective_sample_size: float = float("nan")
    psi_limit: float = float("nan")
    domain_auc_limit: float = float("nan")
    effective_sample_size_limit: float = float("nan")
    valid: bool | None = None


class ComparedSamples(NamedTuple):
    """The reference samples, or the new samples, of a comparison. The last two fields are for the reference only."""

    columns: list[RankedColumn]  # of scores
    X: FloatArray | None
    categorical: Sequence[int] = ()  # the indices of the columns of X that contain codes of categories
    all_reference: bool = False  # whether the domain classifier uses all samples of a large reference


def stability_index(
    reference: list[RankedColumn], new: list[RankedColumn], *, is_part: bool = False
) -> tuple[float, float]:
    """Return the population stability index of scores and the greatest possible index, each the maximum over columns.

    If the new samples are part of the reference, they are compared with the rest of the reference. The index is
    greatest if all new samples are in the bin with the fewest reference samples.
    """
    indices = []
    for column, new_column in zip(reference, new):
        deciles = np.arange(1, N_BINS) * (column.order.size - 1) // N_BINS
        bin_edges = np.unique(column.scores[column.order[deciles]])  # the upper edges of all bins but the last
        n_before, n_after = _bin_counts(column, bin_edges), _bin_counts(new_column, bin_edges)
        extreme = np.zeros_like(n_before)
        extreme[n_before.argmin()] = new_column.order.size
        rest = n_before - n_after if is_part else n_before
        indices.append((psi_from_counts(rest, n_after), psi_from_counts(n_before, extreme)))
    return np.max(indices, axis=0).tolist()


def psi_from_counts(n_before: IntArray, n_after: IntArray) -> float:
    """Return the population stability index of numbers of samples in bins; empty bins are ignored."""
    counts = np.array([n_before, n_after])
    # 1/2 is added to each count, so that no proportion is 0.
    smoothed = counts[:, counts.any(axis=0)] + 0.5
    before, after = smoothed / smoothed.sum(axis=1, keepdims=True)
    return float(((after - before) * np.log(after / before)).sum())


def _bin_counts(column: RankedColumn, bin_edges: FloatArray) -> IntArray:
    """Return the number of samples in each bin. A bin includes its upper but not its lower edge."""
    up_to = column.edges[np.searchsorted(column.distinct, bin_edges, side="right")]
    return np.diff(up_to, prepend=0, append=column.order.size)


def measure_shift(
    reference: ComparedSamples, new: ComparedSamples, random: np.random.Generator, rest: NDArray[np.bool_] | None = None
) -> "MeasuredShift":
    """Measure the shift of new samples. If they are part of the reference, `rest` is True for all other samples."""
    psi, greatest_psi = stability_index(reference.columns, new.columns, is_part=rest is not None)
    ends = [(column.distinct[0], column.distinct[-1]) for column in reference.columns]
    outside = [(column.scores < low) | (column.scores > high) for column, (low, high) in zip(new.columns, ends)]
    report, ratios = ShiftReport(psi, float(np.any(outside, axis=0).mean())), None
    if reference.X is not None and new.X is not None:
        X = reference.X if rest is None else reference.X[rest]
        auc, error, size, ratios = tell_apart(X, new.X, random, reference.categorical, reference.all_reference)
        report = report._replace(domain_auc=auc, domain_auc_error=error, effective_sample_size=size)
    n_reference = len(reference.columns[0].scores) if rest is None else int(np.count_nonzero(rest))
    return MeasuredShift(report, n_reference, len(new.columns[0].scores), greatest_psi, ratios)


def tell_apart(
    reference: FloatArray,
    new: FloatArray,
    random: np.random.Generator,
    categorical: Sequence[int] = (),
    all_reference: bool = False,
) -> tuple[float, float, float, FloatArray]:
    """Classify new against reference samples by out-of-fold predictions of forests.

    Return the AUC, its standard error, the effective sample size, and the density ratios (new / reference) of the
    reference samples that are used, with a mean of 1. The columns `categorical` contain codes. `reference` and `new`
    need two rows or more. At most MOST_ROWS random rows of each are used, but all reference rows if `all_reference`.
    """
    kept = np.arange(len(reference)) if all_reference else _choose_rows(len(reference), random)
    new = new[_choose_rows(len(new), random)]
    is_new = np.repeat([False, True], [len(kept), len(new)])
    seed = int(random.integers(2**31))
    options: dict[str, Any] = {"criterion": "gini", "shrinkage": None, "min_samples_leaf": 10}
    forest = AUCForestClassifier(50, **options, categorical_features=list(categorical), random_state=seed)
    folds = StratifiedKFold(min(5, len(kept), len(new)), shuffle=True, random_state=seed)
    X = np.vstack([reference[kept], new])
    proba = cross_val_predict(forest, X, is_new, cv=folds, method="predict_proba")[:, 1]
    clipped = np.clip(proba[: len(kept)], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    ratios = clipped / (1.0 - clipped)
    ratios /= ratios.mean()
    error = np.sqrt((is_new.size + 1) / (12 * len(kept) * len(new)))
    effective_size = float(ratios.sum() ** 2 / (ratios @ ratios) / ratios.size)
    return float(roc_auc_score(is_new, proba)), float(error), effective_size, ratios


def _choose_rows(n_rows: int, random: np.random.Generator) -> IntArray:
    """Return the indices of all rows, or of MOST_ROWS random rows if there are more."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, MOST_ROWS, replace=False))


class MeasuredShift(NamedTuple):
    """A shift report without limits, and the numbers from which limits are computed."""

    report: ShiftReport
    n_reference: int
    n_new: int
    greatest_psi: float = np.inf
    ratios: FloatArray | None = None  # density ratios of reference samples, if there are features

    @property
    def _scales(self) -> tuple[float, float]:
        """1 / n0 + 1 / n1 for n0 reference and n1 new samples, first of all, then of those of the domain classifier."""
        return 1.0 / self.n_reference + 1.0 / self.n_new, 12.0 * self.report.domain_auc_error**2

    def standardized(self) -> FloatArray:
        """Return the PSI, domain AUC and effective sample size on scales independent of the numbers of samples."""
        score_scale, feature_scale = self._scales
        auc = (self.report.domain_auc - 0.5) / self.report.domain_auc_error
        size = np.cbrt((1.0 / self.report.effective_sample_size - 1.0) / feature_scale)
        return np.array([np.cbrt(self.report.psi / score_scale), auc, size])

    def with_limits(self, limits: FloatArray) -> ShiftReport:
        """Return the report with its limits and with `valid`. The given limits are on the scales of `standardized`."""
        (score_scale, feature_scale), report = self._scales, self.report
        most_psi = float(limits[0] ** 3 * score_scale)
        most_auc = float(np.minimum(0.5 + limits[1] * report.domain_auc_error, 1.0))
        least_size = float(1.0 / (1.0 + limits[2] ** 3 * feature_scale))
        report = report._replace(psi_limit=most_psi, domain_auc_limit=most_auc, effective_sample_size_limit=least_size)
        is_shifted = len(measures_beyond_limits(report)) > 0
        can_be_beyond = most_psi < self.greatest_psi or most_auc < 1.0 or least_size > 1.0 / self.n_reference
        return report._replace(valid=not is_shifted if is_shifted or can_be_beyond else None)


def measures_beyond_limits(report: ShiftReport) -> list[tuple[str, float, float]]:
    """Return the name, the value and the limit of each measure that is beyond its limit."""
    psi, auc = ("PSI", report.psi, report.psi_limit), ("domain AUC", report.domain_auc, report.domain_auc_limit)
    beyond = [measure for measure in (psi, auc) if is_beyond(measure[1], -np.inf, measure[2])]
    size, least_size = report.effective_sample_size, report.effective_sample_size_limit
    return beyond + ([("effective sample size", size, least_size)] if is_beyond(size, least_size, np.inf) else [])


def prediction_limits(standardized: FloatArray, threshold: float) -> FloatArray:
    """Return an upper prediction limit for each measure of a new chunk, by quantiles of Student's t distribution.

    `standardized` has a row for each reference chunk and a column for each measure. The probability that a measure is
    above its limit is the upper tail of a normal distribution at `threshold`, divided by the number of measures without
    NaN (Bonferroni). The limits are NaN with fewer than LEAST_CHUNKS rows.
    """
    n_rows, n_columns = standardized.shape
    if n_rows < LEAST_CHUNKS:
        return np.full(n_columns, np.nan)
    level = norm.sf(threshold) / max(1, np.count_nonzero(~np.isnan(standardized).any(axis=0)))
    distance = t.isf(level, n_rows - 1) * np.sqrt(1.0 + 1.0 / n_rows)
    return np.asarray(standardized.mean(axis=0) + distance * standardized.std(axis=0, ddof=1))
