"""The noise of the calibration curves, and the offset between estimated and realised metrics of the reference.

A curve that is fitted to the reference rows flatters them: in sample the estimate is the area under the convex hull of
the ROC curve. So the reference's own (estimated - realised) is taken off every estimate. The influence of the label of
reference row r, in block b, on the corrected estimate is then (S_b - Sref_b) / m_b + psi_ref_r.

That variance is itself estimated, block by block from m_b rows, which matters where few blocks decide: with a small
reference, and new scores at its edge. So intervals take quantiles of Student's t with the degrees of freedom of
Satterthwaite (Biometrics Bulletin 2, 1946), variance^2 / sum_b (variance of block b)^2 / (m_b - 1).
"""

from typing import NamedTuple

import numpy as np

from aucforest.monitoring._influence import Rows, label_variance
from aucforest.monitoring._metrics import Metric
from aucforest.monitoring._ranked import FloatArray
from aucforest.monitoring.calibration import Calibrated, Calibration, Design


class Offset(NamedTuple):
    """Estimated minus realised on the reference.

    Attributes
    ----------
    value : float
        The difference.
    spread : ndarray of shape (n_blocks,)
        Influence of the reference on the level of each block, Sref_b.
    cross : ndarray of shape (n_blocks,)
        Covariance of the realised metric and the label sum of each block.
    variance : float
        Variance of the realised metric.
    """

    value: float
    spread: FloatArray
    cross: FloatArray
    variance: float

    def scaled(self, ratio: float) -> "Offset":
        """Return the offset of a metric that is larger by this ratio."""
        return Offset(ratio * self.value, ratio * self.spread, ratio * self.cross, ratio**2 * self.variance)


class CurveNoise(NamedTuple):
    """The variance that the labels of the reference add, and the degrees of freedom from which it is known."""

    variance: float
    freedom: float

    def with_labels(self, variance: float) -> "CurveNoise":
        """Return the noise together with a variance that is known."""
        total = variance + self.variance
        freedom = self.freedom * (total / self.variance) ** 2 if self.variance > 0.0 else np.inf
        return CurveNoise(total, freedom)


class Curves:
    """Fitted curves and what their noise does to metrics.

    Parameters
    ----------
    calibration : Calibration
        The curves.
    reference : Rows
        The reference with its labels as zeros and ones.
    weights : ndarray of shape (n,), optional
        The importance of its rows in the fit.
    """

    def __init__(self, calibration: Calibration, reference: Rows, weights: FloatArray | None = None) -> None:
        self.calibration = calibration
        self._truth = reference
        self._rows = calibration.apply(reference.columns)
        self._mass = calibration.mass
        self._design = Design(calibration, self._rows, weights)
        self._covariance = self._design.covariance()
        n_rows = self._mass if weights is None else self._mass**2 / self._design.squared_weights()
        self._freedom = np.maximum(n_rows - 1.0, 0.5)

    def no_offset(self) -> Offset:
        """Return the offset of a metric that needs none."""
        nothing = np.zeros_like(self._mass)
        return Offset(0.0, nothing, nothing, 0.0)

    def offset(self, metric: Metric) -> Offset:
        """Return estimated minus realised on the reference; nothing where either is undefined."""
        estimate = metric.estimate(self._truth._replace(p=self._rows.p))
        realised = metric.estimate(self._truth)
        if np.isnan(estimate.expected - realised.value):
            return self.no_offset()
        return Offset(
            estimate.expected - realised.value,
            self.calibration.spread(self._rows, estimate.influence),
            self._design.cross(realised.influence),
            label_variance(self._design.p, realised.influence),
        )

    def noise(self, rows: Calibrated, influence: FloatArray, offset: Offset) -> CurveNoise:
        """Return what the labels of the reference add to the variance of a corrected estimate."""
        pull = (self.calibration.spread(rows, influence) - offset.spread) / self._mass
        variance = float(pull @ self._covariance @ pull + 2.0 * pull @ offset.cross + offset.variance)
        of_blocks = pull**2 * np.diag(self._covariance)
        spread = float((of_blocks**2 / self._freedom).sum())
        if variance <= 0.0 or spread == 0.0:
            return CurveNoise(max(0.0, variance), np.inf)
        return CurveNoise(variance, max(1.0, variance**2 / spread))
