"""Measures of the shift between new and reference data."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from aucforest.estimators import AUCForestClassifier
from aucforest.metrics import roc_auc_score
from aucforest.monitoring._rows import FloatArray, IntArray, RankedColumn

N_BINS = 10
N_FOLDS = 5
MOST_ROWS = 5_000  # the maximum number of reference and of new samples for the domain classifier
LEAST_PROBABILITY = 0.01  # Probabilities are clipped so that no density ratio is 0 or infinite.


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
        The standard error of that AUC without a shift, sqrt((n0 + n1 + 1) / (12 n0 n1)).
    effective_sample_size : float
        (sum w)^2 / sum w^2 divided by the number of reference samples, with their density ratios w. 1 without a shift.
    psi_limit, domain_auc_limit, effective_sample_size_limit : float
        The limits of the first and second above which, and of the third below which there is an alert: from full
        reference chunks, each compared with the rest of the reference. NaN if there are none.
    valid : bool or None
        Whether all three are within their limits. If not, the chunk differs from the reference more than chunks of the
        reference differ from each other, and its estimates are in doubt. None, which is undefined, without limits, if
        no shift of the chunk could be beyond them, and for a chunk of fewer than two samples.
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


class Sample(NamedTuple):
    """Samples of which the shift is measured: their scores, and their features or None."""

    columns: list[RankedColumn]
    X: FloatArray | None


def stability_index(reference: list[RankedColumn], new: list[RankedColumn], *, is_part: bool = False) -> float:
    """Return the maximum over columns of the population stability index of scores.

    If the new samples are part of the reference, they are compared with the rest of it.
    """
    indices = []
    for old, column in zip(reference, new):
        edges = _edges(old)
        n_before, n_after = _bin_counts(old, edges), _bin_counts(column, edges)
        indices.append(index_of_counts(n_before - n_after if is_part else n_before, n_after))
    return max(indices)


def greatest_index(reference: list[RankedColumn], n_new: int) -> float:
    """Return the population stability index of so many new samples that are all in the bin of the fewest others."""
    indices = []
    for old in reference:
        n_before = _bin_counts(old, _edges(old))
        n_after = np.zeros_like(n_before)
        n_after[n_before.argmin()] = n_new
        indices.append(index_of_counts(n_before, n_after))
    return max(indices)


def _edges(reference: RankedColumn) -> FloatArray:
    """Return the distinct deciles of reference scores: the upper bounds of all bins but the last."""
    deciles = np.arange(1, N_BINS) * (reference.order.size - 1) // N_BINS
    return np.unique(reference.scores[reference.order[deciles]])


def index_of_counts(n_before: IntArray, n_after: IntArray) -> float:
    """Return the population stability index of numbers of samples in bins; bins without any do not count."""
    counts = np.array([n_before, n_after])
    # 1/2 is added to each count, so that no proportion is 0
    smoothed = counts[:, counts.any(axis=0)] + 0.5
    before, after = smoothed / smoothed.sum(axis=1, keepdims=True)
    return float(((after - before) * np.log(after / before)).sum())


def _bin_counts(column: RankedColumn, edges: FloatArray) -> IntArray:
    """Return the number of samples in each bin (low, high]."""
    up_to = column.edges[np.searchsorted(column.values, edges, side="right")]
    return np.diff(up_to, prepend=0, append=column.order.size)


def measure_shift(
    reference: Sample,
    new: Sample,
    random: np.random.Generator,
    *,
    rest: NDArray[np.bool_] | None = None,
    categorical: Sequence[int] = (),
    all_reference: bool = False,
) -> tuple[ShiftReport, FloatArray | None]:
    """Return the shift report without limits, and the density ratios of `tell_apart` or None without features.

    If the new samples are part of the reference, `rest` is True for the others, with which they are compared.
    """
    psi = stability_index(reference.columns, new.columns, is_part=rest is not None)
    ends = [(column.values[0], column.values[-1]) for column in reference.columns]
    beyond = [(column.scores < low) | (column.scores > high) for column, (low, high) in zip(new.columns, ends)]
    outside = float(np.any(beyond, axis=0).mean())
    if reference.X is None or new.X is None:
        return ShiftReport(psi, outside), None
    others = reference.X if rest is None else reference.X[rest]
    auc, error, size, ratios = tell_apart(others, new.X, random, categorical=categorical, all_reference=all_reference)
    return ShiftReport(psi, outside, auc, error, size), ratios


def tell_apart(
    reference: FloatArray,
    new: FloatArray,
    random: np.random.Generator,
    *,
    categorical: Sequence[int] = (),
    all_reference: bool = False,
) -> tuple[float, float, float, FloatArray]:
    """Classify new against reference samples by out-of-fold predictions of forests.

    Return the AUC, its standard error, the effective sample size, and the density ratios (new / reference) of the
    reference, of mean 1. The columns `categorical` hold codes of categories. Both samples need at least two rows. At
    most MOST_ROWS of each are used, but all of the reference if `all_reference` is True, which then have ratios.
    """
    kept = np.arange(len(reference)) if all_reference else _sample(len(reference), random)
    new = new[_sample(len(new), random)]
    is_new = np.repeat([False, True], [len(kept), len(new)])
    seed = int(random.integers(2**31))
    forest = AUCForestClassifier(
        50,
        criterion="gini",
        shrinkage=None,
        min_samples_leaf=10,
        categorical_features=list(categorical),
        random_state=seed,
    )
    folds = StratifiedKFold(min(N_FOLDS, len(kept), len(new)), shuffle=True, random_state=seed)
    X = np.vstack([reference[kept], new])
    proba = cross_val_predict(forest, X, is_new, cv=folds, method="predict_proba")[:, 1]
    of_reference = np.clip(proba[: len(kept)], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
    ratios = of_reference / (1.0 - of_reference)
    error = np.sqrt((is_new.size + 1) / (12 * len(kept) * len(new)))
    ratios /= ratios.mean()
    kept_size = float(ratios.sum() ** 2 / (ratios @ ratios) / ratios.size)
    return float(roc_auc_score(is_new, proba)), float(error), kept_size, ratios


def _sample(n_rows: int, random: np.random.Generator) -> IntArray:
    """Return the indices of all rows, or of MOST_ROWS sampled ones if there are more."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(random.choice(n_rows, MOST_ROWS, replace=False))
