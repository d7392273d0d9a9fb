"""Whether integers are categories, by definition: the label of each row is estimated from other single rows."""

from collections import Counter

import numpy as np


def estimate(rows, others, smoothing, priors):
    """Return the smoothed frequencies of the label of each (value, label) pair, from the labels of `others`."""
    return [
        (labels.count(label) + smoothing * prior[label]) / (len(labels) + smoothing)
        for (_, label), labels, prior in zip(rows, others, priors, strict=True)
    ]


def best_by(rows, keys, smoothings, priors):
    """Return the greatest log likelihood if labels are estimated from the other rows with the same key."""
    others = [[k for j, (_, k) in enumerate(rows) if j != i and keys[j] == keys[i]] for i in range(len(rows))]
    return max(np.sum(np.log(estimate(rows, others, smoothing, priors))) for smoothing in smoothings)


def find_widths(values, labels, n_frequent, smoothings, neighbors, neighbor_smoothings):
    """Return the widths of the ranges of integers that are categories, () if the column has numbers."""
    counts = Counter(values)
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:n_frequent]
    rows = [(value, label) for value, label in zip(values, labels) if value not in frequent]
    kept = [value for value, _ in rows]
    if len(set(kept)) < 2:
        return ()
    rank, n_of_class = {value: index for index, value in enumerate(sorted(set(kept)))}, Counter(k for _, k in rows)
    frequencies = [{label: n / len(rows) for label, n in n_of_class.items()}] * len(rows)
    by_all = np.sum(np.log([frequencies[0][label] for _, label in rows]))
    by_value = best_by(rows, kept, smoothings, frequencies)
    if by_value - by_all < 10:
        return ()
    by_neighbors = -np.inf
    for n in neighbors:
        near = [[k for other, k in rows if 0 < abs(rank[value] - rank[other]) <= n] for value in kept]
        for smoothing in neighbor_smoothings:
            by_class = {
                label: estimate([(value, label) for value in kept], near, smoothing, frequencies)
                for label in n_of_class
            }
            priors = [{label: by_class[label][i] for label in n_of_class} for i in range(len(rows))]
            score = np.sum(np.log([prior[label] for prior, (_, label) in zip(priors, rows)]))
            if score > by_neighbors:
                by_neighbors, best = score, priors
    by_both = max(by_value, best_by(rows, kept, smoothings, best))
    if by_both - max(by_neighbors, by_all) < max(10, 0.15 * (by_both - by_all)):
        return ()
    by_range, width = {}, 10
    while len({value // width for value in kept}) > 2:
        by_range[width] = best_by(rows, [value // width for value in kept], smoothings, frequencies)
        width *= 10
    width = max(by_range, key=by_range.get, default=None)
    return (1, width) if width is not None and by_range[width] - by_value >= 10 else (1,)
