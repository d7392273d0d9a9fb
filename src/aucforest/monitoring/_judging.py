"""From a metric of a chunk to its corrected estimate, standard error and interval."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics._intervals import t_quantile, tails
from aucforest.monitoring._influence import Estimate, Rows, label_variance
from aucforest.monitoring._metrics import Metric
from aucforest.monitoring._noise import CurveNoise, Curves, Offset
from aucforest.monitoring._ranked import RankedColumn, side_by_side
from aucforest.monitoring.calibration import Calibrated
from aucforest.monitoring.soft import is_small

MANY = 1e9  # degrees of freedom of a normal variable, for a generator that cannot take infinity


class Judged(NamedTuple):
    """A metric of a chunk."""

    estimate: float = float("nan")
    standard_error: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")


class Scored(NamedTuple):
    """The rows of a chunk and, unless their scores are taken as they are, the curves their chances come from."""

    rows: Rows
    curves: Curves | None
    calibrated: Calibrated | None


def score_rows(columns: list[RankedColumn], predicted: NDArray[np.uint32] | None, curves: Curves | None) -> Scored:
    """Return the rows of a chunk with their chances."""
    if curves is None:
        p = side_by_side([column.scores for column in columns])
        return Scored(Rows(columns, p, predicted), None, None)
    calibrated = curves.calibration.apply(columns)
    return Scored(Rows(columns, calibrated.p, predicted), curves, calibrated)


class Judge(NamedTuple):
    """How estimates are made; see the parameters of CBPE."""

    level: float
    bias_correction: bool
    n_draws: int
    random: np.random.Generator

    def judge(self, metric: Metric, scored: Scored, offset: Offset | None) -> Judged:
        """Return the judgement of one metric; `offset` is estimated minus realised on the reference, if known."""
        estimate = metric.estimate(scored.rows)
        if np.isnan(estimate.value):
            return Judged()
        centre = estimate.expected if self.bias_correction else estimate.value
        shift, noise = _curve_noise(scored, estimate, offset)
        if metric.draw is not None and (metric.always_drawn or is_small(scored.rows.p)):
            drawn = metric.draw(scored.rows, self.n_draws, self.random)
            drawn = drawn[~np.isnan(drawn)]
            if drawn.size < 2:
                return Judged(float(np.clip(centre - shift, metric.low, metric.high)))
            variance = float(drawn.var())
            moved = np.sqrt(noise.variance) * self.random.standard_t(min(noise.freedom, MANY), drawn.size)
            bounds = np.quantile(drawn + moved, tails(self.level))
            error = np.sqrt(variance + noise.variance)
        else:
            variance, freedom = noise.with_labels(label_variance(scored.rows.p, estimate.influence))
            error = np.sqrt(variance)
            half = error * t_quantile(freedom, self.level)
            bounds = np.array([centre - half, centre + half])
        value, low, high = np.clip(np.array([centre, *bounds]) - shift, metric.low, metric.high).tolist()
        return Judged(value, float(error), low, high)


def _curve_noise(scored: Scored, estimate: Estimate, offset: Offset | None) -> tuple[float, CurveNoise]:
    """Return what is taken off the estimate, and the noise from the labels of the reference."""
    if scored.curves is None or scored.calibrated is None or not estimate.influence.any():
        return 0.0, CurveNoise(0.0, np.inf)
    offset = scored.curves.no_offset() if offset is None else offset
    return offset.value, scored.curves.noise(scored.calibrated, estimate.influence, offset)
