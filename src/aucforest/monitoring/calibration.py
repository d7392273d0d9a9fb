"""Probabilities from scores: isotonic curves, and tests on reference labels of whether scores need one.

A curve is fitted to reference labels, so it is noisy too. Block b of a curve holds m_b reference rows; a metric whose
influence on the rows of block b sums to S_b moves by S_b / m_b when one of these labels flips.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from sklearn.model_selection import StratifiedShuffleSplit

from aucforest.monitoring._rows import (
    FloatArray,
    IntArray,
    RankedColumn,
    Rows,
    dot,
    is_probability,
    label_variance,
    side_by_side,
)
from aucforest.monitoring.soft import soft_roc_auc

Rule = Literal["brier_or_auc", "brier", "ece"]
RULES = ("brier_or_auc", "brier", "ece")
CALIBRATIONS = ("auto", "isotonic", "none")
ONE_SIDED_95 = 1.645
TWO_SIDED_97 = 2.241  # 97.5 %
N_FOLDS = 5
ECE_FOLDS = 3
ECE_BINS = 10


class _Position(NamedTuple):
    """Where the distinct scores of a column lie: between two blocks, `fraction` of the way to the right one."""

    left: IntArray
    right: IntArray
    fraction: FloatArray


class IsotonicCurve:
    """Isotonic regression of labels on scores, linear between blocks and flat beyond the outermost.

    A model that ranks the wrong way round has a falling curve. Of each block: its level, and the weight (`mass`) of its
    rows and (`hits`) of its positives, which are 1.0 in `positive`.
    """

    def __init__(self, column: RankedColumn, positive: FloatArray, weights: FloatArray | None = None) -> None:
        mass = np.diff(column.edges).astype(np.float64) if weights is None else column.sums(weights)
        hits = column.sums(positive if weights is None else weights * positive)
        values = column.values
        fit = isotonic_regression(hits / mass, weights=mass, increasing=is_rising(column, positive))
        starts = fit.blocks[:-1].astype(np.intp)
        self.levels: FloatArray = fit.x[starts]
        self.mass: FloatArray = np.add.reduceat(mass, starts)
        self.hits: FloatArray = np.add.reduceat(hits, starts)
        ends = np.column_stack([values[starts], values[fit.blocks[1:] - 1]]).ravel()
        distinct = np.concatenate([[True], np.diff(ends) > 0.0])
        self._knots = ends[distinct]
        self._blocks = np.repeat(np.arange(starts.size), 2)[distinct]

    def locate(self, column: RankedColumn) -> _Position:
        """Return between which blocks the distinct scores of a column lie."""
        # scores are sorted too, so it is the knots that are looked up
        firsts = np.searchsorted(column.values, self._knots)
        knots = np.maximum(np.arange(-1, self._knots.size), 0)
        left = np.repeat(knots, np.diff(firsts, prepend=0, append=column.values.size))
        right = np.minimum(left + 1, self._knots.size - 1)
        gap = np.where(right > left, self._knots[right] - self._knots[left], 1.0)
        fraction = np.clip((column.values - self._knots[left]) / gap, 0.0, 1.0)
        return _Position(self._blocks[left], self._blocks[right], fraction)

    def at(self, position: _Position) -> FloatArray:
        """Return the curve at the distinct scores of a located column."""
        left = self.levels[position.left]
        return left + position.fraction * (self.levels[position.right] - left)

    def spread(self, position: _Position, sums: FloatArray) -> FloatArray:
        """Return for every block what falls to it of `sums`, which belong to located scores."""
        n_blocks = self.levels.size
        to_right = position.fraction * sums
        to_left = np.bincount(position.left, weights=sums - to_right, minlength=n_blocks).astype(np.float64)
        return to_left + np.bincount(position.right, weights=to_right, minlength=n_blocks)


class Calibrated(NamedTuple):
    """Probabilities of some rows, and the way back from their influences to the blocks of the curves.

    With several columns they are the curves' values divided by `totals`, (n, 1), their sum over a row.
    """

    p: FloatArray
    totals: FloatArray | None
    columns: list[RankedColumn]
    positions: dict[int, _Position]


class Calibration:
    """Curves by number of column, fitted to reference labels (1.0 in `truth`); other columns are probabilities."""

    def __init__(
        self,
        columns: list[RankedColumn],
        truth: FloatArray,
        fitted: NDArray[np.bool_],
        weights: FloatArray | None = None,
    ) -> None:
        self.curves = {k: IsotonicCurve(columns[k], truth[:, k], weights) for k in np.flatnonzero(fitted).tolist()}

    def apply(self, columns: list[RankedColumn]) -> Calibrated:
        """Return the probabilities of new rows."""
        positions = {k: curve.locate(columns[k]) for k, curve in self.curves.items()}
        calibrated = [column.scores for column in columns]
        for k, curve in self.curves.items():
            calibrated[k] = columns[k].to_rows(curve.at(positions[k]))
        p, totals = side_by_side(calibrated), None
        if len(columns) > 1:
            p[p.sum(axis=1) == 0.0] = 1.0  # every curve says impossible: all classes alike
            totals = p.sum(axis=1, keepdims=True)
            p /= totals
        return Calibrated(p, totals, columns, positions)

    def spread(self, rows: Calibrated, influence: FloatArray) -> FloatArray:
        """Return the influence of every block's level on a metric with this influence of the rows' probabilities."""
        if rows.totals is not None:
            influence = (influence - (rows.p * influence).sum(axis=1, keepdims=True)) / rows.totals
        sums = {k: rows.columns[k].sums(influence[:, k]) for k in self.curves}
        return np.concatenate([curve.spread(rows.positions[k], sums[k]) for k, curve in self.curves.items()])

    @property
    def mass(self) -> FloatArray:
        """Weight of the reference rows of every block, curve after curve."""
        return np.concatenate([curve.mass for curve in self.curves.values()])


def is_rising(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the scores of positives are the higher ones: an AUC of at least 1/2."""
    return dot(column.midranks, positive) >= 0.0


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
    return np.array([
        needs_calibration(column, truth[:, k], rule=rule, random_state=random_state) for k, column in enumerate(columns)
    ])  # fmt: skip


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
        p[test] = _out_of_fold(known, positive[train], held_out)
    gain = (scores - positive) ** 2 - (p - positive) ** 2
    return bool(gain.mean() > ONE_SIDED_95 * gain.std() / np.sqrt(gain.size))


def _promises_another_auc(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the soft AUC of the scores is far from the AUC of the labels, for what the labels vary."""
    p = column.scores[:, None]
    promised = soft_roc_auc(Rows([column], p))
    realized = soft_roc_auc(Rows([column], positive[:, None])).value
    return bool(abs(promised.expected - realized) > TWO_SIDED_97 * np.sqrt(label_variance(p, promised.influence)))


def _ece_improves(column: RankedColumn, positive: FloatArray, random_state: int | None) -> bool:
    """Return whether curves lower the calibration error in every split."""
    splits = StratifiedShuffleSplit(ECE_FOLDS, test_size=1 / ECE_FOLDS, random_state=random_state)
    scores = column.scores
    for train, test in splits.split(scores[:, None], positive):
        p = _out_of_fold(RankedColumn(scores[train]), positive[train], RankedColumn(scores[test]))
        if calibration_error(positive[test], p) >= calibration_error(positive[test], scores[test]):
            return False
    return True


def _out_of_fold(train: RankedColumn, positive: FloatArray, test: RankedColumn) -> FloatArray:
    """Return the probabilities of test rows by a curve of training rows."""
    curve = IsotonicCurve(train, positive)
    return test.to_rows(curve.at(curve.locate(test)))


def calibration_error(positive: NDArray[np.float64], p: FloatArray, n_bins: int = ECE_BINS) -> float:
    """Return mean |sum y - sum p| of bins of as many rows each, by rising p; the last takes the rows left over."""
    order = np.argsort(p, kind="stable")
    n_bins = min(n_bins, p.size)
    starts = np.arange(n_bins) * (p.size // n_bins)
    return float(np.abs(np.add.reduceat((positive - p)[order], starts)).sum() / p.size)
