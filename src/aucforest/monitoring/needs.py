"""When scores need a calibration curve: tests on reference labels."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

from aucforest.monitoring._auc import soft_roc_auc
from aucforest.monitoring._rows import FloatArray, RankedColumn, Rows, is_probability, label_variance
from aucforest.monitoring.calibration import IsotonicCurve

Rule = Literal["brier_or_auc", "brier", "ece"]
RULES = ("brier_or_auc", "brier", "ece")
CALIBRATIONS = ("auto", "isotonic", "none")
ONE_SIDED_95 = 1.645
TWO_SIDED_97 = 2.241  # 97.5 %
N_FOLDS = 5
ECE_FOLDS = 3
ECE_BINS = 10


def columns_to_fit(
    columns: list[RankedColumn],
    truth: FloatArray,
    calibration: str | Sequence[bool],
    rule: Rule,
    random_state: int | None,
) -> NDArray[np.bool_]:
    """Return which columns get a curve; see the parameters of CBPE."""
    n_columns = len(columns)
    if not isinstance(calibration, str):
        chosen = np.asarray(calibration, dtype=bool)
        if chosen.shape != (n_columns,):
            raise ValueError(f"calibration must be one bool for each of {n_columns} columns, but is {calibration!r}")
        return chosen
    if calibration != "auto":
        return np.full(n_columns, calibration == "isotonic")
    if not is_probability(np.column_stack([column.scores for column in columns])):
        return np.full(n_columns, True)
    labels = np.ascontiguousarray(truth.T)
    return np.array([needs_calibration(*each, rule=rule, random_state=random_state) for each in zip(columns, labels)])


def needs_calibration(
    column: RankedColumn, positive: FloatArray, *, rule: Rule = "brier_or_auc", random_state: int | None = 0
) -> bool:
    """Return whether a curve brings scores in [0, 1] closer to the labels (1.0) than they are; see CBPE for rules."""
    if rule == "ece":
        return _ece_improves(column, positive, random_state)
    return _brier_improves(column, positive, random_state) or (
        rule != "brier" and _promises_another_auc(column, positive)
    )


def _brier_improves(column: RankedColumn, positive: FloatArray, random_state: int | None) -> bool:
    """Return whether out-of-fold curves have the better Brier score, by a one-sided paired test."""
    # in the order of scores the folds do not depend on the order of rows, and nothing need be sorted again
    scores, positive = column.scores[column.order], positive[column.order]
    fold = np.random.default_rng(random_state).permutation((np.arange(positive.size) % N_FOLDS).astype(np.uint8))
    p = np.empty(positive.size)
    for k in range(N_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        known, held_out = RankedColumn.of_sorted(scores[train]), RankedColumn.of_sorted(scores[test])
        p[test] = _chances(known, positive[train], held_out)
    gain = (scores - positive) ** 2 - (p - positive) ** 2
    return bool(gain.mean() > ONE_SIDED_95 * gain.std() / np.sqrt(gain.size))


def _promises_another_auc(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the soft AUC of the scores is far from the AUC of the labels, for what the labels vary."""
    p = column.scores[:, None]
    promised = soft_roc_auc(Rows([column], p))
    realised = soft_roc_auc(Rows([column], positive[:, None])).value
    return bool(abs(promised.expected - realised) > TWO_SIDED_97 * np.sqrt(label_variance(p, promised.influence)))


def _ece_improves(column: RankedColumn, positive: FloatArray, random_state: int | None) -> bool:
    """Return whether curves lower the calibration error in every split."""
    splits = StratifiedShuffleSplit(ECE_FOLDS, test_size=1 / ECE_FOLDS, random_state=random_state)
    scores = column.scores
    for train, test in splits.split(scores[:, None], positive):
        p = _chances(RankedColumn(scores[train]), positive[train], RankedColumn(scores[test]))
        if calibration_error(positive[test], p) >= calibration_error(positive[test], scores[test]):
            return False
    return True


def _chances(train: RankedColumn, positive: FloatArray, test: RankedColumn) -> FloatArray:
    """Return what a curve fitted to some rows says of others."""
    curve = IsotonicCurve(train, positive)
    return test.to_rows(curve.at(test, curve.locate(test)))


def calibration_error(positive: NDArray[np.float64], p: FloatArray, n_bins: int = ECE_BINS) -> float:
    """Return the expected calibration error: mean |sum y - sum p| of bins of as many rows each, by rising p.

    The last bin takes the rows that are left over.
    """
    order = np.argsort(p, kind="stable")
    n_bins = min(n_bins, p.size)
    starts = np.arange(n_bins) * (p.size // n_bins)
    return float(np.abs(np.add.reduceat((positive - p)[order], starts)).sum() / p.size)
