"""What every threshold of two classes makes of the rows, for the explorer."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.inspection._report.figures import cumulate_class, thin
from aucforest.inspection._report.rows import FloatArray, ScoredRows

_MOST_CUTS = 500


@dataclass(frozen=True)
class Cuts:
    """Rising thresholds; a row is called positive when its score is at least the threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (n_cuts,), float64
        Scores of rows, and infinity last: nothing is called positive.
    tp, fp : ndarray of shape (n_cuts,), float64
        Weight of true and of false positives.
    own : int or None
        The place of the model's own threshold; None where its labels follow no threshold.
    own_threshold : float or None
        What the model calls its threshold.

    best_g_mean : int
        The place of the best G-mean.
    """

    thresholds: FloatArray
    tp: FloatArray
    fp: FloatArray
    own: int | None
    own_threshold: float | None
    best_g_mean: int

    @property
    def precision(self) -> FloatArray:
        """Share of positives among the rows called positive; NaN where there are none."""
        called = self.tp + self.fp
        return np.divide(self.tp, called, out=np.full_like(called, np.nan), where=called > 0.0)

    @property
    def recall(self) -> FloatArray:
        """Share of the positives that are called positive."""
        return np.asarray(self.tp / self.tp[0])

    @property
    def specificity(self) -> FloatArray:
        """Share of the negatives that are called negative."""
        return np.asarray(1.0 - self.fp / self.fp[0])

    def as_json(self, cost: tuple[float, float]) -> dict[str, Any]:
        """Return what the page's program needs; the threshold of infinity is None."""
        return {
            "thresholds": [*self.thresholds[:-1].tolist(), None],
            "tp": self.tp.tolist(),
            "fp": self.fp.tolist(),
            "own": self.own,
            "cost": list(cost),
        }


def find_cuts(rows: ScoredRows) -> Cuts:
    """Return up to some 500 thresholds of the second class, the model's own and that of the best G-mean among them."""
    cumulated = cumulate_class(rows, 1)
    own_score, own_threshold = _own_threshold(rows)
    gains = cumulated.tps * (cumulated.fps[-1] - cumulated.fps)
    keep = [int(gains.argmax())]
    if own_score is not None:
        keep.append(int(np.searchsorted(-cumulated.thresholds, -own_score)))
    places: NDArray[np.int64] = thin(cumulated, _MOST_CUTS, tuple(keep))[::-1]
    best, own = (int(np.flatnonzero(places == place)[0]) for place in (keep[0], keep[-1]))
    thresholds = np.asarray(cumulated.thresholds[places], dtype=np.float64)
    return Cuts(
        thresholds,
        cumulated.tps[places],
        cumulated.fps[places],
        None if own_score is None else own,
        own_threshold,
        best,
    )


def _own_threshold(rows: ScoredRows) -> tuple[float | None, float | None]:
    """Return the least score that the model calls positive (infinity if none), and its name for its threshold.

    The model's own figure is taken where its labels agree with it, else that least score; None twice where a row
    called negative has a score as high as one called positive.
    """
    score, positive = rows.scores[:, 1], rows.predicted == 1
    highest_negative = float(score[~positive].max(initial=-np.inf))
    lowest_positive = float(score[positive].min(initial=np.inf))
    if highest_negative >= lowest_positive:
        return None, None
    known = getattr(rows.model, "threshold_", getattr(rows.model, "best_threshold_", None))
    nominal = float(known) if isinstance(known, Real) else (0.5 if rows.is_probability else 0.0)
    agrees = highest_negative <= nominal <= lowest_positive
    return lowest_positive, nominal if agrees else lowest_positive


def costs_of(model: Any) -> tuple[float, float]:
    """Return the costs of a false positive and of a false negative that a forest of two classes was given, else 1."""
    rule = getattr(model, "threshold", None)
    if not isinstance(rule, dict):
        return 1.0, 1.0
    matrix = np.asarray(rule["cost"], dtype=np.float64)
    return float(matrix[0, 1] - matrix[0, 0]), float(matrix[1, 0] - matrix[1, 1])


def check_costs(cost: tuple[float, float]) -> tuple[float, float]:
    """Return two costs; refuse others."""
    if np.shape(cost) != (2,) or not np.isfinite(cost).all() or min(cost) < 0.0:
        raise ValueError(f"cost must be two finite costs, not negative, but is {cost!r}")
    return float(cost[0]), float(cost[1])
