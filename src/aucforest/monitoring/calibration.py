"""Calibration of scores by isotonic regression, and tests on reference data whether scores need it.

A curve depends on the labels of the reference. Block b of a curve has m_b reference samples. If the influences of the
probabilities in block b on a metric sum to S_b, the metric changes by S_b / m_b if one label in the block changes from
0 to 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from aucforest.monitoring._rows import FloatArray, IntArray, RankedColumn, Rows, dot, is_probability, label_variance
from aucforest.monitoring.soft import soft_roc_auc

ONE_SIDED_95 = 1.645
TWO_SIDED_97 = 2.241  # 97.5 %
N_FOLDS = 5


class Position(NamedTuple):
    """The two neighbouring blocks of each distinct score, and the weight of the right one in the interpolation."""

    left: IntArray
    right: IntArray
    fraction: FloatArray


class IsotonicCurve:
    """Isotonic regression of labels on scores, interpolated linearly between blocks and constant beyond the outermost.

    The curve decreases if the AUC is below 1/2. `positive` is 1.0 for positive labels and 0.0 for others. Each block
    has a probability (`levels`), the weight of its samples (`mass`) and the weight of its positives (`hits`).
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

    def locate(self, column: RankedColumn) -> Position:
        """Return the neighbouring blocks of the distinct scores of a column."""
        # Knots and scores are sorted, and there are fewer knots, so knots are searched among scores.
        firsts = np.searchsorted(column.values, self._knots)
        knots = np.maximum(np.arange(-1, self._knots.size), 0)
        left = np.repeat(knots, np.diff(firsts, prepend=0, append=column.values.size))
        right = np.minimum(left + 1, self._knots.size - 1)
        gap = np.where(right > left, self._knots[right] - self._knots[left], 1.0)
        fraction = np.clip((column.values - self._knots[left]) / gap, 0.0, 1.0)
        return Position(self._blocks[left], self._blocks[right], fraction)

    def at(self, position: Position) -> FloatArray:
        """Return the value of the curve at the distinct scores of a column, given their position."""
        left = self.levels[position.left]
        return left + position.fraction * (self.levels[position.right] - left)

    def spread(self, position: Position, sums: FloatArray) -> FloatArray:
        """Return for every block the sum of `sums`, one for each distinct score, weighted as in the interpolation."""
        n_blocks = self.levels.size
        to_right = position.fraction * sums
        to_left = np.bincount(position.left, weights=sums - to_right, minlength=n_blocks).astype(np.float64)
        return to_left + np.bincount(position.right, weights=to_right, minlength=n_blocks)


def is_rising(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the AUC is at least 1/2."""
    return dot(column.midranks, positive) >= 0.0


def columns_to_fit(
    columns: list[RankedColumn], truth: FloatArray, calibration: str | Sequence[bool], random_state: int | None
) -> NDArray[np.bool_]:
    """Return whether each column is calibrated; see the parameters of CBPE."""
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
    return np.array([needs_calibration(column, truth[:, k], random_state) for k, column in enumerate(columns)])


def needs_calibration(column: RankedColumn, positive: FloatArray, random_state: int | None = 0) -> bool:
    """Return whether calibration improves scores in [0, 1]; see `calibration` of CBPE."""
    return _brier_improves(column, positive, random_state) or _expected_auc_differs(column, positive)


def _brier_improves(column: RankedColumn, positive: FloatArray, random_state: int | None) -> bool:
    """Return whether out-of-fold calibration has a lower Brier score than the scores, by a one-sided paired test."""
    # Sorting by score makes the folds independent of the order of samples, and the scores of each fold are sorted.
    scores, positive = column.scores[column.order], positive[column.order]
    fold = np.random.default_rng(random_state).permutation((np.arange(positive.size) % N_FOLDS).astype(np.uint8))
    p = np.empty(positive.size)
    for k in range(N_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        train_column, test_column = RankedColumn.from_sorted(scores[train]), RankedColumn.from_sorted(scores[test])
        curve = IsotonicCurve(train_column, positive[train])
        p[test] = test_column.to_rows(curve.at(curve.locate(test_column)))
    gain = (scores - positive) ** 2 - (p - positive) ** 2
    return bool(gain.mean() > ONE_SIDED_95 * gain.std() / np.sqrt(gain.size))


def _expected_auc_differs(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the AUC expected from the scores differs significantly from the realized AUC."""
    p = column.scores[:, None]
    estimate = soft_roc_auc(Rows([column], p))
    realized = soft_roc_auc(Rows([column], positive[:, None])).value
    return bool(abs(estimate.expected - realized) > TWO_SIDED_97 * np.sqrt(label_variance(p, estimate.influence)))
