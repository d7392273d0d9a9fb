"""Criteria: what one cut is worth, from the class totals of its left side and of the node.

A criterion knows nothing of features. `cut_gain` states what each criterion means, in one place, for any number of
classes; it is evaluated once for the winning cut of a node. The scans in `splitter` rank cuts by something cheaper
that orders them alike.

With alpha_k the fraction of class k that a cut sends to the right, over the classes present in the node:

auc         mean over pairs of max((1 - alpha_i + alpha_j) / 2, (1 - alpha_j + alpha_i) / 2), minus 1/2
gini        decrease of the Gini impurity 1 - sum q_k^2
entropy     decrease of the entropy -sum q_k log2 q_k, in bits
hellinger   mean over pairs of the Hellinger distance between (alpha_i, 1 - alpha_i) and (alpha_j, 1 - alpha_j)

References
----------
O'Brien, Ishwaran: "AUC splitting", randomForestSRC vignette (the two-class formula). Hand, Till 2001 (the mean over
pairs). Cieslak, Hoens, Chawla, Kegelmeyer 2012 (Hellinger distance trees).
"""

import math

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel

AUC, GINI, ENTROPY, HELLINGER = 0, 1, 2, 3
# A user's own: see `own_criterion`.
OWN = -1

CRITERIA = {"auc": AUC, "gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY, "hellinger": HELLINGER}


@bare_device
def hellinger_distance(left_a: float, left_b: float) -> float:
    """Return the Hellinger distance of two classes that send these fractions to the left.

    Not by way of their overlap, 1 - distance**2 / 2: that cancels, and makes 1e-8 of what rounding leaves of nothing.
    """
    on_left = math.sqrt(left_a) - math.sqrt(left_b)
    on_right = math.sqrt(1.0 - left_a) - math.sqrt(1.0 - left_b)
    return math.sqrt(on_left * on_left + on_right * on_right)


@bare_device
def x_log_x(x: float) -> float:
    """Return x log2 x, and 0 at 0."""
    return x * math.log2(x) if x > 0.0 else 0.0


@bare_device
def _mean_over_pairs(criterion: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return the mean of a pair score over the pairs of classes present."""
    score, n_pairs = 0.0, 0
    for i in range(len(left)):
        total_i = left[i] + right[i]
        if total_i == 0:
            continue
        for j in range(i):
            total_j = left[j] + right[j]
            if total_j == 0:
                continue
            a, b = left[i] / total_i, left[j] / total_j
            score += 0.5 * abs(a - b) if criterion == AUC else hellinger_distance(a, b)
            n_pairs += 1
    return score / n_pairs if n_pairs > 0 else 0.0


@bare_device
def _disorder(criterion: int, share: float) -> float:
    """Return what a class of this share adds to the Gini impurity or to the entropy in bits."""
    return share * (1.0 - share) if criterion == GINI else -x_log_x(share)


@bare_device
def _impurity_decrease(criterion: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return the impurity of the node less the weighted impurities of its children."""
    left_weight, right_weight = 0.0, 0.0
    for k in range(len(left)):
        left_weight += left[k]
        right_weight += right[k]
    weight = left_weight + right_weight
    if left_weight == 0.0 or right_weight == 0.0:
        return 0.0
    decrease = 0.0
    for k in range(len(left)):
        decrease += (
            weight * _disorder(criterion, (left[k] + right[k]) / weight)
            - left_weight * _disorder(criterion, left[k] / left_weight)
            - right_weight * _disorder(criterion, right[k] / right_weight)
        )
    return decrease / weight


@bare_device
def cannot_be_beaten(criterion: int, n_left: int, n_present: int) -> bool:
    """Say whether a cut that parts no class has the greatest gain of all cuts, whatever the class totals are.

    Parameters
    ----------
    criterion : int
        False unless something is known of it.
    n_left, n_present : int
        How many classes are on the left of the cut, and in the node.
    """
    if criterion == AUC:
        # The mean over pairs of |alpha_i - alpha_j| is convex in the fractions, so it is greatest with half of them 0
        # and half 1.
        return abs(n_present - 2 * n_left) < 2
    if criterion in (GINI, ENTROPY, HELLINGER):
        # Two pure children; of more classes it depends on the class totals which ones should be on the left.
        return n_present == 2 and n_left == 1
    return False


@bare_kernel
def cut_gain(criterion: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return what a cut gains over no cut.

    Parameters
    ----------
    criterion : int
        One of the codes in `CRITERIA`.
    left, right : ndarray of shape (n_classes,), int64
        Class totals of the two children.

    Returns
    -------
    float
        0 for a cut that separates nothing; at most 1/2 for auc, 1 for gini, log2(n_classes) for entropy, sqrt(2)
        for hellinger.
    """
    if criterion in (AUC, HELLINGER):
        return _mean_over_pairs(criterion, left, right)
    return _impurity_decrease(criterion, left, right)
