"""Probabilities from scores: isotonic curves and the noise that they carry.

A curve is fitted to reference labels, so it is noisy too. Block b of a curve holds m_b reference rows; a metric whose
influence on the rows of block b sums to S_b moves by S_b / m_b when one of these labels flips.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from aucforest.monitoring._rows import FloatArray, IntArray, RankedColumn, dot, side_by_side


class _Position(NamedTuple):
    """Where the distinct scores of a column lie: between two blocks, `share` of the way to the right one."""

    left: IntArray
    right: IntArray
    share: FloatArray


class RawCurve:
    """Scores taken as the chances they are: nothing fitted, no blocks."""

    levels = mass = hits = np.empty(0)

    def locate(self, column: RankedColumn) -> _Position:
        """Return no position."""
        nowhere = np.empty(0, dtype=np.intp)
        return _Position(nowhere, nowhere, self.levels)

    def at(self, column: RankedColumn, position: _Position) -> FloatArray:
        """Return the distinct scores."""
        return column.values

    def spread(self, position: _Position, sums: FloatArray) -> FloatArray:
        """Return nothing."""
        return self.levels


class IsotonicCurve:
    """Isotonic regression of labels on scores, linear between blocks and flat beyond the outermost.

    A model that ranks the wrong way round has a falling curve. Of each block: its level, and the weight (`mass`) of its
    rows and (`hits`) of its positives, which are 1.0 in `positive`.
    """

    def __init__(
        self,
        column: RankedColumn,
        positive: FloatArray,
        weights: FloatArray | None = None,
        *,
        increasing: bool | None = None,
    ) -> None:
        increasing = is_rising(column, positive) if increasing is None else increasing
        mass = np.diff(column.edges).astype(np.float64) if weights is None else column.sums(weights)
        hits = column.sums(positive if weights is None else weights * positive)
        values = column.values
        fit = isotonic_regression(hits / mass, weights=mass, increasing=increasing)
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
        share = np.clip((column.values - self._knots[left]) / gap, 0.0, 1.0)
        return _Position(self._blocks[left], self._blocks[right], share)

    def at(self, column: RankedColumn, position: _Position) -> FloatArray:
        """Return the curve at the distinct scores of a located column."""
        left = self.levels[position.left]
        return left + position.share * (self.levels[position.right] - left)

    def spread(self, position: _Position, sums: FloatArray) -> FloatArray:
        """Return for every block what falls to it of `sums`, which belong to located scores."""
        n_blocks = self.levels.size
        to_right = position.share * sums
        to_left = np.bincount(position.left, weights=sums - to_right, minlength=n_blocks).astype(np.float64)
        return to_left + np.bincount(position.right, weights=to_right, minlength=n_blocks)


class Calibrated(NamedTuple):
    """Chances of some rows, and the way back from their influences to the blocks of the curves.

    With several columns chances are the curves' values divided by `totals`, (n, 1), their sum over a row.
    """

    p: FloatArray
    totals: FloatArray | None
    columns: list[RankedColumn]
    positions: list[_Position]


class Calibration:
    """A curve a column, fitted to reference labels (1.0 in `truth`); columns not to be fitted are chances already."""

    def __init__(
        self,
        columns: list[RankedColumn],
        truth: FloatArray,
        fitted: NDArray[np.bool_],
        weights: FloatArray | None = None,
    ) -> None:
        self.curves = [
            IsotonicCurve(column, positive, weights) if fit else RawCurve()
            for column, positive, fit in zip(columns, np.ascontiguousarray(truth.T), fitted)
        ]

    def apply(self, columns: list[RankedColumn]) -> Calibrated:
        """Return the chances of new rows."""
        positions = [curve.locate(column) for curve, column in zip(self.curves, columns)]
        p = side_by_side([
            column.to_rows(curve.at(column, position))
            for curve, column, position in zip(self.curves, columns, positions)
        ])  # fmt: skip
        totals = None
        if len(columns) > 1:
            p[p.sum(axis=1) == 0.0] = 1.0  # every curve says impossible: all classes alike
            totals = p.sum(axis=1, keepdims=True)
            p /= totals
        return Calibrated(p, totals, columns, positions)

    def spread(self, rows: Calibrated, influence: FloatArray) -> FloatArray:
        """Return the influence of every block's level on a metric with this influence of the rows' chances."""
        if rows.totals is not None:
            influence = (influence - (rows.p * influence).sum(axis=1, keepdims=True)) / rows.totals
        return np.concatenate([
            curve.spread(position, column.sums(influence[:, k]))
            for k, (curve, position, column) in enumerate(zip(self.curves, rows.positions, rows.columns))
        ])  # fmt: skip

    @property
    def mass(self) -> FloatArray:
        """Weight of the reference rows of every block, curve after curve."""
        return np.concatenate([curve.mass for curve in self.curves])


def is_rising(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the scores of positives are the higher ones: an AUC of at least 1/2."""
    return dot(column.midranks, positive) >= 0.0
