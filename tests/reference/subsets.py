"""The best set of categories by trying all of them, and their order along the first principal component."""

from itertools import product

import numpy as np

from tests.reference.tree import GAINS


def best_gain(codes, labels, weights, n_classes, criterion, min_samples_leaf=1, min_weight_leaf=0):
    """Return the greatest gain over all ways to part the categories, None for missing ones among them."""
    categories = sorted(set(codes), key=lambda c: (c is None, c or 0))
    best = 0
    for sides in product((False, True), repeat=len(categories)):
        left_codes = {category for category, side in zip(categories, sides) if side}
        sums = {True: [0] * n_classes, False: [0] * n_classes}
        rows = {True: 0, False: 0}
        for code, label, weight in zip(codes, labels, weights):
            sums[code in left_codes][label] += weight
            rows[code in left_codes] += 1
        if min(rows.values()) < max(min_samples_leaf, 1) or min(map(sum, sums.values())) < min_weight_leaf:
            continue
        best = max(best, GAINS[criterion](sums[True], sums[False]))
    return best


def ordered_gain(codes, labels, weights, n_classes, criterion, scores, min_samples_leaf=1, min_weight_leaf=0):
    """Return the greatest gain over the cuts of the categories in the order of their scores, missing on both sides."""
    order = sorted(scores, key=lambda c: (scores[c], c))
    best = 0
    for n_left, missing_left in product(range(1, len(order) + 1), (False, True)):
        on_left = {*order[:n_left], None} if missing_left else set(order[:n_left])
        sums = {True: [0] * n_classes, False: [0] * n_classes}
        rows = {True: 0, False: 0}
        for code, label, weight in zip(codes, labels, weights):
            sums[code in on_left][label] += weight
            rows[code in on_left] += 1
        if min(rows.values()) < max(min_samples_leaf, 1) or min(map(sum, sums.values())) < min_weight_leaf:
            continue
        best = max(best, GAINS[criterion](sums[True], sums[False]))
    return best


def component_scores(codes, labels, weights, n_classes, alike):
    """Return the score of each category and how far the second eigenvalue is below the first, as a ratio.

    `alike` scales the classes to equal weight before shares are taken.
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
    shares = table / totals[:, None]
    centred = shares - totals @ shares / totals.sum()
    values, vectors = np.linalg.eigh(centred.T * totals @ centred)
    return dict(zip(categories, (centred @ vectors[:, -1]).tolist())), values[-2] / values[-1]
