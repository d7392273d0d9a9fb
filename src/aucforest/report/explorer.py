"""Confusion matrices of two classes at every threshold, for the explorer."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from aucforest.inspection.threshold_display import threshold_curves
from aucforest.metrics.thresholds import error_costs, gain_at_thresholds
from aucforest.report.metrics import cumulate_class, thin
from aucforest.report.rows import FloatArray, ScoredRows

_MOST_THRESHOLDS = 500


@dataclass(frozen=True)
class Thresholds:
    """Thresholds in ascending order; a row is predicted positive if its score is at least the threshold."""

    thresholds: FloatArray  # scores of rows, and infinity, with which no row is predicted positive
    tp: FloatArray  # weight of true positives
    fp: FloatArray  # weight of false positives
    own: int | None  # index of the model's threshold, None if its labels do not follow a threshold
    own_threshold: float | None  # the value of the threshold of the model
    best_g_mean: int  # index of the threshold with the best G-mean

    def curves(self) -> dict[str, FloatArray]:
        """Return the metrics at each threshold; precision is NaN if no row is predicted positive."""
        return {name: curve[::-1] for name, curve in threshold_curves(self.tp[::-1], self.fp[::-1]).items()}

    def as_json(self, cost: FloatArray) -> dict[str, Any]:
        """Return the data for the script of the page as JSON values; None stands for infinity."""
        return {
            "thresholds": [*self.thresholds[:-1].tolist(), None],
            "tp": self.tp.tolist(),
            "fp": self.fp.tolist(),
            "own": self.own,
            "cost": list(error_costs(cost)),
        }


def find_thresholds(rows: ScoredRows) -> Thresholds:
    """Return about 500 thresholds, including the model's own and all that are optimal by G-mean, F1 or any costs."""
    cumulated = cumulate_class(rows, 1)
    own_score, own_threshold = _own_threshold(rows)
    best = int(gain_at_thresholds(cumulated.tps, cumulated.fps, "gmean").argmax())
    own = best if own_score is None else int(np.searchsorted(-cumulated.thresholds, -own_score))
    # every linear cost is least at a corner of the ROC curve's convex hull: an end of a block of a falling isotonic
    # regression of the labels on the rank
    positives, called = np.diff(cumulated.tps), np.diff(cumulated.tps + cumulated.fps)
    hull = isotonic_regression(positives / called, weights=called, increasing=False).blocks
    places = thin(cumulated, _MOST_THRESHOLDS, np.append(hull, [best, own]))[::-1]
    best_place, own_place = (places.tolist().index(place) for place in (best, own))
    return Thresholds(
        thresholds=np.asarray(cumulated.thresholds[places], dtype=np.float64),
        tp=cumulated.tps[places],
        fp=cumulated.fps[places],
        own=None if own_score is None else own_place,
        own_threshold=own_threshold,
        best_g_mean=best_place,
    )


def _own_threshold(rows: ScoredRows) -> tuple[float | None, float | None]:
    """Return the lowest score of a row that the model predicts positive (infinity if none), and the threshold to show.

    The threshold is that of the model if its labels agree with it, else the lowest score. Both are None if labels do
    not follow a threshold.
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


def costs_of(model: Any) -> FloatArray:
    """Return the cost matrix in the threshold parameter of a forest, or one with a cost of 1 for each error.

    If there is a matrix for each training sample, their mean is returned.
    """
    rule = getattr(model, "threshold", None)
    known = rule["cost"] if isinstance(rule, dict) and "cost" in rule else [[0, 1], [1, 0]]
    costs = np.asarray(known, dtype=np.float64)
    return costs.mean(axis=0) if costs.ndim == 3 else costs
