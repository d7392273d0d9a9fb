"""Out-of-bag ROC AUC by pairs of rows, pair after pair."""

import math
from statistics import NormalDist, fmean

NORMAL = NormalDist()


def count(is_out, proba, labels, weights, trees):
    """Return (weight in order, weight, weight per tree) of each ordered pair of classes, by the trees given.

    is_out[t][i] says whether row i is out of bag for tree t, and proba[t][i] are its class probabilities.
    """
    found = {}
    for i, k in enumerate(labels):
        for j, other in enumerate(labels):
            both = [t for t in trees if is_out[t][i] and is_out[t][j]]
            if k == other or not both:
                continue
            difference = math.fsum(proba[t][i][k] - proba[t][j][k] for t in both) / len(both)
            won = 0.5 if abs(difference) <= 1e-12 else float(difference > 0.0)
            weight = weights[i] * weights[j]
            parts = found.setdefault((k, other), [0.0, 0.0, 0.0])
            for index, value in enumerate((weight * won, weight, weight / len(both))):
                parts[index] += value
    return found


def mean_of_pairs(found):
    """Return the mean over pairs of classes of the ROC AUC, and that of one over the number of trees."""
    return fmean(won / weight for won, weight, _ in found.values()), fmean(p / w for _, w, p in found.values())


def extrapolate(score, of_half, per_tree, per_tree_of_half, wanted):
    """Return phi(1 / sqrt(a + b wanted)), where 1 / z**2 = a + b x for all trees and for half of them."""
    z, z_half = NORMAL.inv_cdf(score), NORMAL.inv_cdf(of_half)
    slope = (z_half**-2 - z**-2) / (per_tree_of_half - per_tree)
    slope = min(max(slope, 0.0), z**-2 / per_tree)
    return NORMAL.cdf(math.copysign((z**-2 - slope * (per_tree - wanted)) ** -0.5, z))


def score(is_out, proba, labels, weights, half):
    """Return the ROC AUC of pairs, for as many trees as a row is out of bag for."""
    trees = range(len(half))
    whole, per_tree = mean_of_pairs(count(is_out, proba, labels, weights, trees))
    halves = [
        mean_of_pairs(count(is_out, proba, labels, weights, [t for t in trees if half[t] == part])) for part in (0, 1)
    ]
    of_class = []
    for k in set(labels):
        rows = [i for i, label in enumerate(labels) if label == k and any(is_out[t][i] for t in trees)]
        inverse = [weights[i] / sum(is_out[t][i] for t in trees) for i in rows]
        of_class.append(sum(inverse) / sum(weights[i] for i in rows))
    of_half, per_tree_of_half = map(fmean, zip(*halves))
    return extrapolate(whole, of_half, per_tree, per_tree_of_half, fmean(of_class))
