"""The combination of a stack by a general optimizer, and its additive model by plain loops."""

import math

import numpy as np
from scipy.optimize import minimize


def class_scores(coef, intercept, scores, row):
    """Return the score of each class, from those of each model."""
    n_classes = len(intercept)
    return [sum(b * score[row][k] for b, score in zip(coef, scores)) + intercept[k] for k in range(n_classes)]


def penalized_loss(coef, intercept, scores, labels, weights, penalty):
    """Return the sum of weighted log losses, and the penalty of the distance from the first model alone."""
    total = 0.0
    for row, (label, weight) in enumerate(zip(labels, weights)):
        of_class = class_scores(coef, intercept, scores, row)
        largest = max(of_class)
        total += weight * (largest + math.log(sum(math.exp(s - largest) for s in of_class)) - of_class[label])
    return total + penalty * sum((b - (1.0 if m == 0 else 0.0)) ** 2 for m, b in enumerate(coef))


def combine(scores, labels, weights, penalty):
    """Return the weights of the models, none negative, and the intercepts less their mean."""
    n_models, n_classes = len(scores), len(scores[0][0])

    def loss(parameters):
        return penalized_loss(parameters[:n_models], [0.0, *parameters[n_models:]], scores, labels, weights, penalty)

    start = np.array([1.0] + [0.1] * (n_models - 1) + [0.0] * (n_classes - 1))
    bounds = [(0.0, None)] * n_models + [(None, None)] * (n_classes - 1)
    found = minimize(loss, start, method="SLSQP", bounds=bounds, options={"ftol": 1e-12, "maxiter": 500}).x
    intercept = np.append(0.0, found[n_models:])
    return found[:n_models], intercept - intercept.mean()


def residual_score(residual, proba):
    """Return the log of the residual forest's probability of each class, less those of p and of 1 - p."""
    return np.array(
        [
            [math.log(q) - math.log(p) - math.log(1.0 - p) for q, p in zip(q_row, p_row)]
            for q_row, p_row in zip(residual, proba)
        ]
    )


def quantile(values, order):
    """Return a quantile, interpolated between the two sorted values beside it."""
    values, index = sorted(values), order * (len(values) - 1)
    below = math.floor(index)
    above = min(below + 1, len(values) - 1)
    return values[below] + (index - below) * (values[above] - values[below])


def location_and_scale(values, normal_range):
    """Return the median and the interquartile range by that of a standard normal distribution, or the deviation."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return 0.0, 1.0
    lower, median, upper = (quantile(known, order) for order in (0.25, 0.5, 0.75))
    if upper > lower:
        return median, (upper - lower) / normal_range
    mean = sum(known) / len(known)
    return median, math.sqrt(sum((value - mean) ** 2 for value in known) / len(known)) or 1.0


def additive_columns(train, rows, categorical, *, most, normal_range):
    """Return the columns of the additive model for some rows; lists of numbers, NaN where a value is missing.

    The columns are followed by the feature of each of the last of them, which are of categories.
    """
    numbers, splines, missing, categories, features = [], [], [], [], []
    for feature in range(len(train[0])):
        values, new = [row[feature] for row in train], [row[feature] for row in rows]
        if any(math.isnan(value) for value in values):
            missing.append([float(math.isnan(value)) for value in new])
        if feature in categorical:
            for code in sorted({value for value in values if not math.isnan(value)}):
                categories.append([float(value == code) for value in new])
                features.append(feature)
            continue
        median, spread = location_and_scale(values, normal_range)
        scaled, new = (
            [0.0 if math.isnan(value) else min(max((value - median) / spread, -most), most) for value in column]
            for column in (values, new)
        )
        numbers.append(new)
        for knot in sorted({quantile(scaled, order) for order in (0.25, 0.5, 0.75)}):
            if min(scaled) < knot < max(scaled):
                splines.append([max(value - knot, 0.0) for value in new])
    return np.array([*numbers, *splines, *missing, *categories]).T, features


def penalty_of_categories(dense, indicators, labels):
    """Return the penalty of the categories of one column that has the greatest marginal likelihood, for two classes.

    The likelihood is Laplace's approximation for the coefficients of categories, with the others at their best.
    """

    def log_odds(parameters):
        return np.column_stack((np.ones(len(dense)), dense, indicators)) @ parameters

    def loss(parameters, penalty):
        odds, of_categories = log_odds(parameters), parameters[1 + dense.shape[1] :]
        likelihood = np.sum(np.logaddexp(0.0, odds) - labels * odds)
        ridge = np.sum(parameters[1 : 1 + dense.shape[1]] ** 2) + penalty * np.sum(of_categories**2)
        return likelihood + 0.5 * ridge

    def evidence(penalty):
        start = np.zeros(1 + dense.shape[1] + indicators.shape[1])
        found = minimize(loss, start, penalty, method="BFGS", options={"gtol": 1e-6})
        proba = 1.0 / (1.0 + np.exp(-log_odds(found.x)))
        curvature = [np.sum((proba * (1.0 - proba))[column > 0.0]) for column in indicators.T]
        return -found.fun - 0.5 * sum(math.log(1.0 + each / penalty) for each in curvature)

    penalties = np.geomspace(0.1, 30.0, 25)
    found = [evidence(penalty) for penalty in penalties]
    return penalties[int(np.argmax(found))]
