"""Walks over ranked rows: what a metric counts once the rows are in the order of their scores.

`weights` is None for weights of one, and the counts are then integers and exact.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import kernel
from aucforest.metrics._ranking import HALF, WORD, rank_rows
from aucforest.metrics._validation import Scores, Weights, require_finite


@kernel
def _twice_u(ranked, positive, weights):
    """Return the sum over pairs of w_i w_j (2 [s_i > s_j] + [s_i = s_j]), and the weights of both classes."""
    twice_u: Any = 0
    below_positive: Any = 0
    below_negative: Any = 0
    tied_positive: Any = 0
    tied_negative: Any = 0
    rank = np.uint64(0)
    for value in ranked:
        if value >> HALF != rank:
            rank = value >> HALF
            twice_u += tied_positive * (2 * below_negative + tied_negative)
            below_positive += tied_positive
            below_negative += tied_negative
            tied_positive, tied_negative = 0, 0
        row = value & WORD
        weight = 1 if weights is None else weights[row]
        of_positive = weight * np.int64(positive[row])
        tied_positive += of_positive
        tied_negative += weight - of_positive
    twice_u += tied_positive * (2 * below_negative + tied_negative)
    return twice_u, below_positive + tied_positive, below_negative + tied_negative


def mann_whitney(positive: NDArray[np.bool_], y_score: Scores, weights: Weights | None) -> float:
    """Return U / (W1 W0), the AUC with ties counted half; NaN when a class has no weight."""
    twice_u, of_positive, of_negative = _twice_u(rank_rows(y_score), positive, weights)
    pairs = of_positive * of_negative
    return twice_u / (2 * pairs) if pairs > 0 else float("nan")


@kernel
def _cumulate(ranked, positive, weights, scores, tps, fps, thresholds):
    """Fill, from place 1 for the greatest score on, the weights at or above each distinct score."""
    tp, fp = 0.0, 0.0
    last = np.uint64(tps.size - 1)
    for i in range(ranked.size - 1, -1, -1):
        row = ranked[i] & WORD
        weight = 1.0 if weights is None else weights[row]
        # no branch: labels in the order of scores cannot be foretold
        tp += weight if positive[row] else 0.0
        fp += 0.0 if positive[row] else weight
        step = last - (ranked[i] >> HALF)
        tps[step] = tp
        fps[step] = fp
        thresholds[step] = scores[row]


class Cumulated(NamedTuple):
    """Weights of positives and negatives at or above each threshold: descending, from infinity."""

    tps: NDArray[np.float64]
    fps: NDArray[np.float64]
    thresholds: NDArray[Any]


def cumulate(positive: NDArray[np.bool_], y_score: Scores, weights: Weights | None) -> Cumulated:
    """Return the cumulated weights at infinity and at every distinct score of a row that has weight."""
    if weights is not None and not weights.all() and weights.any():
        require_finite(y_score, "y_score")
        kept = weights > 0.0
        positive, y_score, weights = positive[kept], y_score[kept], weights[kept]
    ranked = rank_rows(y_score)
    n_thresholds = int(ranked[-1] >> HALF) + 2
    cumulated = Cumulated(np.empty(n_thresholds), np.empty(n_thresholds), np.empty(n_thresholds, y_score.dtype))
    cumulated.tps[0], cumulated.fps[0], cumulated.thresholds[0] = 0.0, 0.0, np.inf
    _cumulate(ranked, positive, weights, y_score, *cumulated)
    return cumulated


@kernel
def _placements(ranked, positive, weights, placed):
    """Fill, for every row, the weight of the other class below it, ties half; return both class weights."""
    below_positive, below_negative = 0.0, 0.0
    start = 0
    while start < ranked.size:
        rank = ranked[start] >> HALF
        tied_positive, tied_negative = 0.0, 0.0
        end = start
        while end < ranked.size and ranked[end] >> HALF == rank:
            row = ranked[end] & WORD
            of_positive = weights[row] * np.float64(positive[row])
            tied_positive += of_positive
            tied_negative += weights[row] - of_positive
            end += 1
        for i in range(start, end):
            row = ranked[i] & WORD
            if positive[row]:
                placed[row] = below_negative + 0.5 * tied_negative
            else:
                placed[row] = below_positive + 0.5 * tied_positive
        below_positive += tied_positive
        below_negative += tied_negative
        start = end
    return below_positive, below_negative


def placements(
    positive: NDArray[np.bool_], y_score: Scores, weights: Weights
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of the other class that each positive, and each negative, is ordered rightly against.

    Ties count half. The shares of a class whose other class has no weight are NaN.
    """
    placed = np.empty(y_score.size)
    of_positive, of_negative = _placements(rank_rows(y_score), positive, weights, placed)
    # the totals come from the walk, so that a perfect score has shares of exactly 1
    above = placed[positive] / of_negative if of_negative > 0.0 else np.full(positive.sum(), np.nan)
    below = placed[~positive] / of_positive if of_positive > 0.0 else np.full((~positive).sum(), np.nan)
    return above, 1.0 - below


@kernel
def _lost_pairs(ranked, k, codes, weights, lost):
    """Add to lost[j] the sum over rows of class j of w (2 (weight of class k below it) + (tied with it))."""
    below: Any = 0
    start = 0
    while start < ranked.size:
        rank = ranked[start] >> HALF
        tied: Any = 0
        end = start
        while end < ranked.size and ranked[end] >> HALF == rank:
            row = ranked[end] & WORD
            weight = 1 if weights is None else weights[row]
            tied += weight * np.int64(codes[row] == k)
            end += 1
        for i in range(start, end):
            row = ranked[i] & WORD
            weight = 1 if weights is None else weights[row]
            lost[codes[row]] += weight * (2 * below + tied)
        below += tied
        start = end


def lost_pairs(codes: NDArray[np.uint32], y_score: Scores, n_classes: int, weights: Weights | None) -> NDArray[Any]:
    """Return (K, K): by column k, twice the pairs of a class-k row below a class-j row; diagonal unused."""
    lost: NDArray[Any] = np.zeros((n_classes, n_classes), np.int64 if weights is None else np.float64)
    for k in range(n_classes):
        _lost_pairs(rank_rows(np.ascontiguousarray(y_score[:, k])), k, codes, weights, lost[k])
    return lost
