"""Target rates by their definitions, as sums over single samples."""

import numpy as np


def rate_of(cells, labels, weights, counted, cell, k, smoothing, towards):
    """Return the smoothed frequency of class k among the counted samples of a cell."""
    samples = [i for i in counted if cells[i] == cell]
    of_class = sum(weights[i] for i in samples if labels[i] == k)
    return (of_class + smoothing * towards) / (sum(weights[i] for i in samples) + smoothing)


def ordered_rates(order, groups, cells, labels, weights, classes, smoothing, towards):
    """Return the rates of every sample by earlier ones in `order` of other groups, (n_classes, n_samples)."""
    rates = np.array(towards, dtype=float)
    for index, i in enumerate(order):
        counted = [j for j in order[:index] if groups[j] != groups[i]]
        for c, k in enumerate(classes):
            if cells[i] >= 0:
                rates[c, i] = rate_of(cells, labels, weights, counted, cells[i], k, smoothing, towards[c][i])
    return rates


def rates_without_own(groups, cells, labels, weights, classes, smoothing, towards):
    """Return the rates of every sample by those of other groups, (n_samples, n_classes)."""
    everyone = range(len(labels))
    rates = np.array(towards, dtype=float)
    for i in everyone:
        counted = [j for j in everyone if groups[j] != groups[i]]
        for c, k in enumerate(classes):
            if cells[i] >= 0:
                rates[i, c] = rate_of(cells, labels, weights, counted, cells[i], k, smoothing, towards[i][c])
    return rates


def leave_one_out(labels_by_cell, towards, smoothing):
    """Return the log likelihood of labels, each by the smoothed rate of the other samples of its cell."""
    score = 0.0
    for labels, rates in zip(labels_by_cell, towards):
        for i, k in enumerate(labels):
            others = labels[:i] + labels[i + 1 :]
            score += np.log((others.count(k) + smoothing * rates[k]) / (len(others) + smoothing))
    return score
