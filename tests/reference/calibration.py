"""The calibration of probabilities by a general optimizer, in plain loops."""

import numpy as np
from scipy.optimize import minimize


def penalized_loss(slope, intercepts, proba, labels, weights, centre, offsets, n_rarer):
    """Return the sum of weighted log losses and the penalty; intercepts are differences with mean 0."""
    total = 0.0
    for p, label, weight in zip(proba, labels, weights):
        scores = [
            centre[k] + offsets[k] + slope * (np.log(max(p[k], 1e-6)) - centre[k]) + intercepts[k]
            for k in range(len(p))
        ]
        total += weight * (np.log(np.sum(np.exp(scores))) - scores[label])
    of_few = 150.0 if slope >= 1.0 else 300.0
    return total + (0.1 + of_few / n_rarer) * np.log(slope) ** 2 + 0.1 * np.sum(np.square(intercepts))


def fit(proba, labels, weights, frequencies, offsets, n_rarer):
    """Return the logarithm of the slope, and the intercepts less their mean."""
    centre = np.log(frequencies) - offsets

    def loss(parameters):
        intercepts = np.append(0.0, parameters[1:])
        rest = proba, labels, weights, centre, offsets, n_rarer
        return penalized_loss(np.exp(parameters[0]), intercepts - intercepts.mean(), *rest)

    found = minimize(loss, np.zeros(proba.shape[1]), method="BFGS", options={"gtol": 1e-7}).x
    intercepts = np.append(0.0, found[1:])
    return np.append(found[0], intercepts - intercepts.mean())


def evidence(found, proba, labels, weights, frequencies, offsets):
    """Return the variance of the log of the slope by the likelihood over that by the sandwich formula."""
    centre, information, gradients = np.log(frequencies) - offsets, 0.0, []
    for p, label, weight in zip(proba, labels, weights):
        scaled = np.exp(found[0]) * (np.log(np.maximum(p, 1e-6)) - centre)
        scores = centre + offsets + scaled + found[1:]
        q = np.exp(scores) / np.exp(scores).sum()
        # The derivatives of the scores by the parameters; the intercept of the first class is the reference.
        design = np.column_stack((scaled, np.eye(len(p))[:, 1:]))
        information = information + weight * design.T @ (np.diag(q) - np.outer(q, q)) @ design
        gradients.append(weight * design.T @ (q - np.eye(len(p))[label]))
    inverse = np.linalg.inv(information)
    sandwich = inverse @ np.transpose(gradients) @ gradients @ inverse
    return inverse[0, 0] / sandwich[0, 0]


def calibrate(halves, labels, weights, frequencies, offsets, n_rarer, n_trees):
    """Return the slope and the intercepts for a forest of n_trees trees; halves are pairs of means and tree counts."""
    (first, n_first), (second, n_second) = halves
    n_whole = n_first + n_second
    whole = (first * n_first[:, None] + second * n_second[:, None]) / n_whole[:, None]
    if np.ptp(weights) > 1e-9:
        found = fit(whole, labels, weights, frequencies, offsets, n_rarer)
        of_class = [weights[labels == k] for k in range(len(frequencies))]
        most = max(w.sum() / np.sum(w**2) for w in of_class)
        weights = weights * min(most, evidence(found, whole, labels, weights, frequencies, offsets))
    fits = [fit(proba, labels, weights, frequencies, offsets, n_rarer) for proba in (first, second, whole)]
    # A line in 1 / n through the mean fit of the halves and that of all trees, at 1 / n_trees.
    x_half, x_whole = np.mean([1.0 / n_first.mean(), 1.0 / n_second.mean()]), 1.0 / n_whole.mean()
    half = (fits[0] + fits[1]) / 2.0
    found = half + (fits[2] - half) * (1.0 / n_trees - x_half) / (x_whole - x_half)
    slope = np.exp(found[0])
    return slope, offsets + (1.0 - slope) * (np.log(frequencies) - offsets) + found[1:]
