"""Losses of pairs by a loop over every pair, from the definitions."""

import math

import numpy as np


def phi(loss, x):
    """Return phi(x), phi'(x) and phi''(x)."""
    if loss == "exp":
        return math.exp(-x), -math.exp(-x), math.exp(-x)
    if loss == "squared_hinge":
        return (0.0, 0.0, 0.0) if x >= 1 else ((1 - x) ** 2, -2 * (1 - x), 2.0)
    small = math.exp(-abs(x))  # never overflows
    sigmoid = 1 / (1 + small) if x > 0 else small / (1 + small)
    slope = small / (1 + small) ** 2
    if loss == "sigmoid":
        return small / (1 + small) if x > 0 else 1 / (1 + small), -slope, slope * (2 * sigmoid - 1)
    return math.log1p(small) + max(-x, 0.0), sigmoid - 1 if x < 0 else -small / (1 + small), slope


def pairwise_loss(positive, scores, loss, eps=1.0, weights=None, groups=None):
    """Return value, gradient and hessian diagonal; of the logarithm of the mean for "exp"."""
    n = len(scores)
    weights = [1.0] * n if weights is None else weights
    groups = [0] * n if groups is None else groups
    terms = [[] for _ in range(n)]  # (value, gradient, hessian) of each pair, at both of its rows
    total = 0.0
    values = []
    for i in range(n):
        for j in range(n):
            if positive[i] and not positive[j] and groups[i] == groups[j]:
                pair = weights[i] * weights[j]
                value, slope, bend = (pair * part for part in phi(loss, (scores[i] - scores[j]) / eps))
                total += pair
                values.append(value)
                terms[i].append((slope / eps, bend / eps**2))
                terms[j].append((-slope / eps, bend / eps**2))
    mean = math.fsum(values) / total
    gradient = [math.fsum(slope for slope, _ in row) / total for row in terms]
    hessian = [math.fsum(bend for _, bend in row) / total for row in terms]
    if loss == "exp":
        log_gradient = [slope / mean for slope in gradient]
        log_hessian = [bend / mean - slope**2 for bend, slope in zip(hessian, log_gradient, strict=True)]
        return math.log(mean), log_gradient, log_hessian
    return mean, gradient, hessian


def smooth_auc(positive, scores, eps, weights=None):
    """Return the value and the gradient of the smoothed AUC from the matrix of all pairs."""
    positive, scores = np.asarray(positive, bool), np.asarray(scores, float)
    weights = np.ones(scores.size) if weights is None else np.asarray(weights)
    pairs = np.outer(weights[positive], weights[~positive])
    distances = np.subtract.outer(scores[positive], scores[~positive]) / eps
    decay = np.exp(-np.abs(distances))
    slopes = pairs * decay / (1 + decay) ** 2
    gradient = np.empty(scores.size)
    gradient[positive], gradient[~positive] = slopes.sum(axis=1), -slopes.sum(axis=0)
    value = (pairs * np.where(distances > 0, 1, decay) / (1 + decay)).sum()
    return value / pairs.sum(), gradient / pairs.sum() / eps
