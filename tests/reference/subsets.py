"""The best set of categories by trying all of them, and their order along the first principal component."""

from itertools import product

import numpy as np

from tests.reference.tree import GAINS


def _greatest(sides, codes, labels, weights, n_classes, criterion):
    """Return the greatest gain over sets of codes that go left."""
    best = 0
    for left_codes in sides:
        sums = {True: [0] * n_classes, False: [0] * n_classes}
        for code, label, weight in zip(codes, labels, weights):
            sums[code in left_codes][label] += weight
        if min(map(sum, sums.values())) > 0:
            best = max(best, GAINS[criterion](sums[True], sums[False]))
    return best


def best_gain(codes, *data):
    """Return the greatest gain over all ways to part the categories, None for missing ones among them.

    The data are the labels, their weights, the number of classes and the criterion.
    """
    categories = list(set(codes))
    parts = product((False, True), repeat=len(categories))
    return _greatest(({c for c, side in zip(categories, sides) if side} for sides in parts), codes, *data)


def ordered_gain(codes, labels, weights, n_classes, criterion, scores):
    """Return the greatest gain over splits of categories in the order of their scores, missing ones on either side."""
    order = sorted(scores, key=lambda c: (scores[c], c))
    sides = ({*order[:n], *alone} for n in range(1, len(order) + 1) for alone in ((), (None,)))
    return _greatest(sides, codes, labels, weights, n_classes, criterion)


def component_scores(codes, labels, weights, n_classes, alike):
    """Return the score of each category and how far the second eigenvalue is below the first, as a ratio.

    `alike` scales the classes to equal weight before frequencies are taken.
    """
    scale = np.ones(n_classes)
    if alike:
        scale = 1 / np.bincount(labels, weights=weights, minlength=n_classes)
    categories = sorted({code for code in codes if code is not None})
    table = np.zeros((len(categories), n_classes))
    for code, label, weight in zip(codes, labels, weights):
        if code is not None:
            table[categories.index(code), label] += weight * scale[label]
    totals = table.sum(axis=1)
    frequencies = table / totals[:, None]
    centred = frequencies - totals @ frequencies / totals.sum()
    values, vectors = np.linalg.eigh(centred.T * totals @ centred)
    return dict(zip(categories, (centred @ vectors[:, -1]).tolist())), values[-2] / values[-1]
