"""The pairs that a loss sums over: validated classes, weights and groups, and their order by score."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics.ranking import WORD, rank_rows
from aucforest.metrics.validation import (
    FloatArray,
    check_scores,
    class_codes,
    is_positive,
    relative_weights,
    require_finite,
)

LEAST_EPS = 1e-150  # second derivatives are divided by the square of eps
LARGEST_DISTANCE = 1e100  # in units of eps; up to it, squares of distances and their sums are finite


class Pairs(NamedTuple):
    """The pairs of a positive and a negative row of the same group, and the sum of the pair weights w_i w_j."""

    positive: NDArray[np.bool_]
    weights: FloatArray | None
    groups: NDArray[np.intp] | None  # codes from 0; None for one group
    total: float

    def by_score(self, scores: FloatArray) -> NDArray[np.intp]:
        """Return the rows in ascending order of score within their group."""
        rows = (rank_rows(scores) & WORD).astype(np.intp)
        return rows if self.groups is None else rows[np.argsort(self.groups[rows], kind="stable")]

    def starts(self) -> NDArray[np.intp]:
        """Return the start of each group in sorted order, and the number of rows at the end."""
        sizes = [self.positive.size] if self.groups is None else np.bincount(self.groups)
        return np.append(0, np.cumsum(sizes)).astype(np.intp)


def in_row_order(values: FloatArray, order: NDArray[np.intp]) -> FloatArray:
    """Return values, (n, ...), in the order of the rows; they are given in `order`."""
    restored = np.empty_like(values)
    restored[order] = values
    return restored


def check_pairs(
    y: ArrayLike, n_rows: int, sample_weight: ArrayLike | None = None, group: ArrayLike | None = None
) -> Pairs:
    """Return the pairs of validated rows; raise ValueError if no pair has positive weight."""
    positive = is_positive(y, n_rows, name="y", of="scores")
    weights = relative_weights(sample_weight, n_rows, of="scores")
    groups = None if group is None else class_codes(group, n_rows, name="group", of="scores")[0].astype(np.intp)
    n_positive = np.count_nonzero(positive)
    if n_positive in (0, n_rows):
        raise ValueError(f"y has only one class in {n_rows} samples, but pairs need two")
    if weights is None and groups is None:
        return Pairs(positive, None, None, float(n_positive) * float(n_rows - n_positive))
    ones = np.ones(n_rows) if weights is None else weights
    codes = np.zeros(n_rows, dtype=np.intp) if groups is None else groups
    total = float(np.bincount(codes, ones * positive) @ np.bincount(codes, ones * ~positive))
    if not total > 0.0:
        cause = "sample_weight leaves" if groups is None else "group and sample_weight leave"
        raise ValueError(f"{cause} no pair of a positive and a negative sample with positive weight")
    return Pairs(positive, weights, groups, total)


def check_loss_scores(scores: ArrayLike, eps: float) -> FloatArray:
    """Return scores as contiguous float64, after checking that they are finite and that no loss overflows."""
    checked = check_scores(scores, name="scores").astype(np.float64, copy=False)
    lowest, highest = float(checked.min()), float(checked.max())
    if not (highest - lowest) / eps < LARGEST_DISTANCE:  # also False for NaN
        require_finite(checked, "scores")
        raise ValueError(f"scores from {lowest:g} to {highest:g} are too far apart for eps={eps:g}")
    return checked


def check_eps(eps: float) -> float:
    """Return the width as a float; raise ValueError unless it is positive, finite and not tiny."""
    if not isinstance(eps, Real) or isinstance(eps, bool):
        raise TypeError(f"eps must be a number, but is {eps!r}")
    width = float(eps)
    if not LEAST_EPS < width < np.inf:
        raise ValueError(f"eps must be positive and finite (above {LEAST_EPS:g}), but is {eps}")
    return width
