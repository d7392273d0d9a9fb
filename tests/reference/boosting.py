"""Gradient boosting in plain numpy: probabilities, Newton steps of leaves, and the best split by brute force."""

import numpy as np


def probabilities(scores):
    """Return the softmax of the scores of each row, (n_rows, n_classes)."""
    powers = [[np.exp(score - max(row)) for score in row] for row in scores.tolist()]
    return np.array([[power / sum(row) for power in row] for row in powers])


def newton_steps(leaves, labels, k, proba, weights, n_classes, penalty=1.0, most=5.0):
    """Return the step of the score of class k in each leaf, by leaf.

    Each step is a Newton step of the log loss of class k against all others, times 0.1 and a factor for the number of
    classes.
    """
    rate = 0.1 * min(np.sqrt(n_classes / 2), 3.0) * (n_classes - 1) / n_classes
    steps = {}
    for leaf in set(leaves.tolist()):
        gradient = hessian = 0.0
        for row in np.flatnonzero(leaves == leaf).tolist():
            gradient += weights[row] * ((labels[row] == k) - proba[row])
            hessian += weights[row] * proba[row] * (1.0 - proba[row])
        steps[leaf] = rate * min(max(gradient / (hessian + penalty), -most), most)
    return steps


def increase(errors, weights, goes_left):
    """Return the increase of the sum of G^2 / W by a split, where G sums weight * error and W weight * abs(error)."""

    def term(rows):
        return np.sum((weights * errors)[rows]) ** 2 / np.sum((weights * np.abs(errors))[rows])

    return term(goes_left) + term(~goes_left) - term(np.ones(len(errors), dtype=bool))


def best_increase(X, errors, weights, least):
    """Return the maximum of `increase` over all features and thresholds with at least `least` rows on both sides."""
    found = []
    for column in X.T:
        for threshold in np.unique(column)[:-1].tolist():
            goes_left = column <= threshold
            if min(goes_left.sum(), (~goes_left).sum()) >= least:
                found.append(increase(errors, weights, goes_left))
    return max(found)
