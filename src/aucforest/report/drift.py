"""The section on drift: whether rows differ from the training rows, column by column and as a whole."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from aucforest.inspection.comparison import holm
from aucforest.metrics.intervals import normal_quantile
from aucforest.monitoring.shift import MOST_ROWS, N_BINS, psi_from_counts, tell_apart
from aucforest.report.data import Pair, Training, as_numbers, encode_pair
from aucforest.report.metrics import LEVEL
from aucforest.report.page import Section, Table, number, percent
from aucforest.report.rows import ScoredRows

_MOST_LISTED = 10  # maximum number of columns in the table
_MOST_COLUMNS = 200  # maximum number of features of the forest that separates the rows from the training rows


def drift_sections(rows: ScoredRows, training: Training | None, pairs: Mapping[str, Pair], seed: int) -> list[Section]:
    """Return the section on drift in the columns `pairs`, or an empty list if there are no columns other than dates."""
    columns = {name: pair for name, pair in pairs.items() if all(values.dtype.kind != "M" for values in pair)}
    if training is None or not columns:
        return []
    psi, limits, raw_pvalues = zip(*(measure_drift(_as_bins(pair)) for pair in columns.values()))
    pvalues = holm(raw_pvalues).tolist()
    names, order = list(columns), np.argsort(-np.array(psi), kind="stable")
    drifted = [names[j] for j in order if pvalues[j] < 1.0 - LEVEL]
    n_drifted = f"{len(drifted)} of {len(names)}, most of all {drifted[0]}" if drifted else f"none of {len(names)}"
    lead = (
        f"Columns that differ from the training rows by more than chance: {n_drifted}. A population stability index "
        "(PSI) above 0.2 usually counts as large."
    )
    body = [[names[j], *map(number, (psi[j], limits[j], pvalues[j]))] for j in order[:_MOST_LISTED]]
    caption = "The columns that drifted most; p-values are adjusted for the number of columns by Holm's method"
    table = Table(caption, ["column", "PSI", "95 % limit without drift", "p"], body)
    points = [
        _forest_sentence(list(columns.values())[:_MOST_COLUMNS], seed),
        _labels_sentence(rows, training),
        "Weights of rows are not used, and columns of dates are left out.",
    ]
    return [Section("drift", "Drift", lead, tables=[table], points=points)]


def measure_drift(pair: Sequence[NDArray[Any]]) -> tuple[float, float, float]:
    """Return the population stability index (PSI), its 95 % quantile without drift, and the p-value for no drift.

    `pair` has the bins of the new values and of the training values. Without drift, PSI / (1 / n0 + 1 / n1) is about
    chi-squared with B - 1 degrees of freedom, for B nonempty bins and samples of n0 and n1 values (Yurdakul:
    Statistical properties of population stability index. Western Michigan University, 2018).
    """
    new, old = (np.bincount(bins, minlength=1 + max(map(np.max, pair))) for bins in pair)
    n_degrees, scale = np.count_nonzero(new + old) - 1, 1.0 / new.sum() + 1.0 / old.sum()
    if n_degrees == 0:
        return 0.0, 0.0, 1.0
    psi = psi_from_counts(old, new)
    return psi, float(chi2.ppf(LEVEL, n_degrees) * scale), float(chi2.sf(psi / scale, n_degrees))


def _as_bins(pair: Pair) -> Sequence[NDArray[Any]]:
    """Return the bin of each value: an interval between deciles of the training values, a category, or missing."""
    numbers = _numeric_pair(pair)
    if numbers is None:
        return encode_pair(pair, as_text=True)
    known = np.sort(numbers[1][~np.isnan(numbers[1])])
    edges = np.unique(known[np.arange(1, N_BINS) * (known.size - 1) // N_BINS]) if known.size else known
    return [np.where(np.isnan(values), N_BINS, np.searchsorted(edges, values)) for values in numbers]


def _numeric_pair(pair: Pair) -> Pair | None:
    """Return both columns as numbers, with NaN for missing values, or None if either column is categorical."""
    new, old = map(as_numbers, pair)
    return None if new is None or old is None else (new[0], old[0])


def _forest_sentence(pairs: list[Pair], seed: int) -> str:
    random = np.random.default_rng(seed)
    new_indices, old_indices = (np.sort(random.permutation(len(values))[:MOST_ROWS]) for values in pairs[0])
    if min(new_indices.size, old_indices.size) < 2:
        return "There are too few rows for a forest that tells them from the training rows."
    pairs = [(new[new_indices], old[old_indices]) for new, old in pairs]
    numeric_pairs = [_numeric_pair(pair) for pair in pairs]
    encoded = [numeric or encode_pair(pair, as_text=True) for pair, numeric in zip(pairs, numeric_pairs)]
    X, X_train = (np.column_stack(columns).astype(np.float64) for columns in zip(*encoded))
    categorical = [j for j, numeric in enumerate(numeric_pairs) if numeric is None]
    auc, error, *_ = tell_apart(X_train, X, random, categorical=categorical)
    limit = min(0.5 + normal_quantile(2.0 * LEVEL - 1.0) * error, 1.0)  # one-sided; normal_quantile is two-sided
    return (
        f"A forest that tells these rows from the training rows has a ROC AUC of {number(auc)} on rows that it was not "
        f"fitted to; without drift it is about 0.5, and rarely above {number(limit)}."
    )


def _labels_sentence(rows: ScoredRows, training: Training) -> str:
    pair, n_classes = (rows.labels, training.labels), len(rows.classes)
    new, old = (np.bincount(labels, minlength=n_classes) / labels.size for labels in pair)
    k = 1 if n_classes == 2 else int(np.argmax(np.abs(new - old)))  # the class whose frequency changed most
    how = "by more than" if measure_drift(pair)[2] < 1.0 - LEVEL else "by no more than"
    return (
        f"{percent(float(old[k]))} of the training rows and {percent(float(new[k]))} of these rows are "
        f"{rows.row_phrases[k]}: class frequencies differ {how} chance explains."
    )
