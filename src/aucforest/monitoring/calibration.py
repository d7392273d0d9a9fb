"""Probabilities from scores: isotonic curves and the noise that they carry.

A curve is fitted to reference labels, so it is noisy too. Block b of a curve holds m_b reference rows; a metric whose
influence on the rows of block b sums to S_b moves by S_b / m_b when one of these labels flips. `Design` knows the
covariance of the blocks' label sums, so that the variance of a metric through the curves is a quadratic form.
"""

from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from aucforest.monitoring._ranked import FloatArray, IntArray, RankedColumn, dot, side_by_side


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

    Parameters
    ----------
    column : RankedColumn
        The scores.
    positive : ndarray of shape (n,)
        1.0 for rows of the class, else 0.0.
    increasing : bool
        Direction; a model that ranks the wrong way round needs a falling curve.
    weights : ndarray of shape (n,), optional
        Importance of the rows, positive.

    Attributes
    ----------
    levels : ndarray of shape (n_blocks,)
        Value of each block.
    mass, hits : ndarray of shape (n_blocks,)
        Weight of the rows of each block, and of its positives.
    """

    def __init__(
        self, column: RankedColumn, positive: FloatArray, *, increasing: bool, weights: FloatArray | None = None
    ) -> None:
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

    Attributes
    ----------
    p : ndarray of shape (n, n_columns)
        Chances; with several columns the curves' values divided by their sum over a row.
    totals : ndarray of shape (n, 1) or None
        That sum.
    columns, positions
        The rows' scores and where they lie on the curves.
    """

    p: FloatArray
    totals: FloatArray | None
    columns: list[RankedColumn]
    positions: list[_Position]


class Calibration:
    """A curve a column, fitted to reference labels.

    Parameters
    ----------
    columns : list of RankedColumn
        Reference scores.
    truth : ndarray of shape (n, n_columns)
        1.0 where a row is of the class of the column.
    fitted : ndarray of shape (n_columns,)
        Which columns need a curve; the others are chances as they are.
    weights : ndarray of shape (n,), optional
        Importance of the rows, positive.
    """

    def __init__(
        self,
        columns: list[RankedColumn],
        truth: FloatArray,
        fitted: NDArray[np.bool_],
        weights: FloatArray | None = None,
    ) -> None:
        self.curves = [
            IsotonicCurve(column, positive, increasing=is_rising(column, positive), weights=weights)
            if fit
            else RawCurve()
            for column, positive, fit in zip(columns, np.ascontiguousarray(truth.T), fitted)
        ]
        self._weights = weights

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


class Design:
    """The label sums of the curves' blocks as random variables.

    Parameters
    ----------
    calibration : Calibration
        The curves.
    reference : Calibrated
        The reference rows.
    weights : ndarray of shape (n,), optional
        Their importance.

    Attributes
    ----------
    p : ndarray of shape (n, n_columns)
        Chances of the reference rows, smoothed to (k + 1/2) / (m + 1), so that a block of one class is not certain.
    """

    def __init__(self, calibration: Calibration, reference: Calibrated, weights: FloatArray | None = None) -> None:
        levels, self._blocks, self._fitted, starts = [], [], [], [0]
        for k, (curve, column, position) in enumerate(zip(calibration.curves, reference.columns, reference.positions)):
            if isinstance(curve, RawCurve):
                levels.append(column.scores)
                continue
            block = column.to_rows(position.left)
            levels.append(((curve.hits + 0.5) / (curve.mass + 1.0))[block])
            self._blocks.append(block)
            self._fitted.append(k)
            starts.append(starts[-1] + curve.levels.size)
        self.p = side_by_side(levels)
        if len(levels) > 1:
            self.p /= self.p.sum(axis=1, keepdims=True)
        self._weights = np.ones(len(self.p)) if weights is None else weights
        self._slices = [slice(*ends) for ends in pairwise(starts)]

    def _by_block(self, of_cells: FloatArray) -> FloatArray:
        """Return for every block the sum over its cells, (n, n_columns)."""
        sums = [
            np.bincount(block, weights=of_cells[:, k], minlength=part.stop - part.start)
            for block, k, part in zip(self._blocks, self._fitted, self._slices)
        ]
        return np.concatenate(sums)

    def squared_weights(self) -> FloatArray:
        """Return for every block the sum of the squared weights of its rows."""
        return self._by_block(np.repeat(self._weights[:, None] ** 2, self.p.shape[1], axis=1))

    def covariance(self) -> FloatArray:
        """Return the covariance of the blocks' weighted sums of labels, (n_blocks, n_blocks).

        Of one column every row is in one block only; of two, a row that is of one class is not of the other.
        """
        weighted = self._weights[:, None] * self.p
        result = np.diag(self._by_block(weighted * (self._weights[:, None] - weighted)))
        for (one, k, rows), (other, j, columns) in combinations(zip(self._blocks, self._fitted, self._slices), 2):
            shape = rows.stop - rows.start, columns.stop - columns.start
            joint = np.bincount(one * shape[1] + other, weighted[:, k] * weighted[:, j], minlength=shape[0] * shape[1])
            result[rows, columns] = -joint.reshape(shape)
            result[columns, rows] = result[rows, columns].T
        return result

    def cross(self, influence: FloatArray) -> FloatArray:
        """Return the covariance of the blocks' sums and a metric with this influence of the labels."""
        product = self.p * influence
        return self._by_block(self._weights[:, None] * (product - self.p * product.sum(axis=1, keepdims=True)))


def is_rising(column: RankedColumn, positive: FloatArray) -> bool:
    """Return whether the scores of positives are the higher ones: an AUC of at least 1/2."""
    return dot(column.midranks, positive) >= 0.0
