"""Values of log odds by all subsets of features, along a path on which each feature is known with probability t.

A worth has, for each subset of features, a tuple in ascending order, the mean probabilities of the classes. Scores are
logarithms of these, times a slope, plus an intercept for each class.
"""

from itertools import combinations
from math import exp, factorial, log


def log_odds(scores, k):
    """Return the log odds of class k."""
    return scores[k] - log(sum(exp(score) for j, score in enumerate(scores) if j != k))


def shapley_values(worth, n_features, value_of):
    """Return the Shapley values of a function of the mean probabilities."""
    values = []
    for i in range(n_features):
        others, total = [j for j in range(n_features) if j != i], 0.0
        for size in range(n_features):
            chance = factorial(size) * factorial(n_features - size - 1) / factorial(n_features)
            for some in combinations(others, size):
                total += chance * (value_of(worth[tuple(sorted((*some, i)))]) - value_of(worth[some]))
        values.append(total)
    return values


def change_at(worth, n_features, i, k, t):
    """Return the derivative of the mean probability of class k by the chance of feature i, where all chances are t."""
    others, total = [j for j in range(n_features) if j != i], 0.0
    for size in range(n_features):
        for some in combinations(others, size):
            change = worth[tuple(sorted((*some, i)))][k] - worth[some][k]
            total += t**size * (1.0 - t) ** (n_features - 1 - size) * change
    return total


def ratio(function, before, after):
    """Return the change of a function over that of its argument."""
    return (function(after) - function(before)) / (after - before)


def values_on_the_way(worth, n_features, k, score_of, points, weights):
    """Return the values of the log odds of class k; `score_of(j, p)` is the score of a mean probability."""
    mean = list(worth[()])
    classes, values = range(len(mean)), [0.0] * n_features
    others = [j for j in classes if j != k]
    for t, weight in zip(points, weights):
        parts = [[weight * change_at(worth, n_features, i, j, t) for i in range(n_features)] for j in classes]
        after = [p + sum(part) for p, part in zip(mean, parts)]
        slopes = [ratio(lambda p, j=j: score_of(j, p), mean[j], after[j]) for j in classes]
        scores, scores_after = ([score_of(j, p[j]) for j in classes] for p in (mean, after))
        gaps, gaps_after = ([z[j] - z[k] for j in others] for z in (scores, scores_after))
        odds = ratio(log, sum(map(exp, gaps)), sum(map(exp, gaps_after)))
        for i in range(n_features):
            of_scores = [slope * part[i] for slope, part in zip(slopes, parts)]
            for j, gap, gap_after in zip(others, gaps, gaps_after):
                values[i] += odds * ratio(exp, gap, gap_after) * (of_scores[k] - of_scores[j])
        mean = after
    return values
