"""The optimism of a choice by ROC AUC: the choice is repeated without each part of the rows."""

from itertools import permutations
from typing import NamedTuple

import numpy as np


def weighted_auc(is_positive, y_score, weights):
    """Return the weighted proportion of pairs in which the positive row has the higher score; ties count half."""
    positive, negative = y_score[is_positive], y_score[~is_positive]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    of_positive, of_negative = weights[is_positive], weights[~is_positive]
    return of_positive @ wins @ of_negative / (of_positive.sum() * of_negative.sum())


class Trees(NamedTuple):
    """Trees of a forest, whose halves alternate, and the labels, weights and parts of the training rows."""

    by_amount: list  # for each amount of shrinkage the values of all trees, (n_trees, n_rows, n_classes)
    is_out: np.ndarray  # (n_trees, n_rows)
    encodings: np.ndarray  # (n_trees,), indices
    labels: np.ndarray
    weights: np.ndarray
    parts: np.ndarray

    @property
    def halves(self):
        """The trees of the first half, of the second half, and of both."""
        is_second = np.arange(len(self.encodings)) % 2
        return 1 - is_second, is_second, np.ones(len(self.encodings))

    def score(self, amount, factors, weights):
        """Return Hand and Till's AUC of the weighted mean over trees, given weights of trees and of rows."""
        factors = self.is_out * factors[:, None]
        rows = (weights > 0) & factors.any(axis=0)
        total = np.einsum("tnk,tn->nk", self.by_amount[amount], factors)
        proba, labels = total[rows] / factors.sum(axis=0)[rows, None], self.labels[rows]
        weights, areas = weights[rows], []
        for i, j in permutations(range(proba.shape[1]), 2):
            is_pair = (labels == i) | (labels == j)
            areas.append(weighted_auc(labels[is_pair] == i, proba[is_pair, i], weights[is_pair]))
        return np.mean(areas)

    def error(self, gain):
        """Return the standard error of a function of row weights by the delete-a-group jackknife."""
        gains = np.array([gain(self.weights * (self.parts != part)) for part in np.unique(self.parts)])
        return np.sqrt((len(gains) - 1) / len(gains) * np.sum((gains - gains.mean()) ** 2))


def tree_weights(trees, strength, weights):
    """Return the weight of each tree by the gains of its encoding, given the weights of rows."""
    known, n_of = np.unique(trees.encodings, return_counts=True)
    more = [1.0 + (trees.encodings == encoding) * n_of.mean() / n for encoding, n in zip(known, n_of)]
    scores = np.array([[trees.score(a, of_more, weights) for a in range(len(trees.by_amount))] for of_more in more])
    amounts, best = scores.argmax(axis=1), int(np.argmax(scores.max(axis=1)))
    gains = []
    for e in range(len(known)):
        error = trees.error(
            lambda rows, e=e: trees.score(amounts[e], more[e], rows) - trees.score(amounts[best], more[best], rows)
        )
        gains.append((scores[e].max() - scores[best].max()) / max(error, 1e-6))
    shares = np.exp(strength * np.array(gains))
    return sum(share / n * (trees.encodings == e) for share, e, n in zip(shares / shares.sum(), known, n_of))


def chosen_amount(trees, prior, factors, weights, n_trees):
    """Return the index of the amount of shrinkage that is clearly better than the prior, or the prior."""
    whole = trees.is_out * (factors * len(factors) / factors.sum())[:, None]
    further = 1.0 - whole.sum(axis=0).mean() / n_trees

    def extrapolated(amount, rows):
        first, second, both = (trees.score(amount, factors * half, rows) for half in trees.halves)
        return both + further * (both - (first + second) / 2)

    best = int(np.argmax([extrapolated(amount, weights) for amount in range(len(trees.by_amount))]))
    if best == prior:
        return prior
    error = trees.error(lambda rows: extrapolated(best, rows) - extrapolated(prior, rows))
    return best if extrapolated(best, weights) - extrapolated(prior, weights) > 1.5 * error else prior


def optimism(trees, prior, strength, *, chooses_amount) -> float:
    """Return the mean over parts of the AUC by the choice from all rows less that by the choice without the part."""
    n_trees = len(trees.encodings)

    def choose(weights):
        factors = tree_weights(trees, strength, weights)
        amount = chosen_amount(trees, prior, factors, weights, n_trees) if chooses_amount else prior
        return amount, factors

    by_all, differences = choose(trees.weights), []
    for part in np.unique(trees.parts):
        is_in = trees.parts == part
        by_others = choose(trees.weights * ~is_in)
        differences.append(trees.score(*by_all, trees.weights * is_in) - trees.score(*by_others, trees.weights * is_in))
    return float(np.mean(differences))
