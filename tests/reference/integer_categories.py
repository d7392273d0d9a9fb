"""Whether integers are categories, by definition: the label of each row is estimated from other single rows."""

from collections import Counter

import numpy as np


def log_likelihood(rows, frequencies, smoothing, estimated_from):
    """Return the log likelihood of the labels of (value, label) pairs, each estimated from some of the other rows."""
    score = 0.0
    for i, (value, label) in enumerate(rows):
        others = [k for j, (other, k) in enumerate(rows) if j != i and estimated_from(value, other)]
        score += np.log((others.count(label) + smoothing * frequencies[label]) / (len(others) + smoothing))
    return score


def are_categories(values, labels, n_frequent, smoothings, neighbors):
    """Return whether a column of integers has categories."""
    counts = Counter(values)
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:n_frequent]
    rows = [(value, label) for value, label in zip(values, labels) if value not in frequent]
    if len({value for value, _ in rows}) < 2:
        return False
    rank = {value: index for index, value in enumerate(sorted({value for value, _ in rows}))}
    n_of_class = Counter(label for _, label in rows)
    frequencies = {label: n / len(rows) for label, n in n_of_class.items()}
    by_all = sum(n * np.log(frequencies[label]) for label, n in n_of_class.items())
    gain = max(log_likelihood(rows, frequencies, s, lambda one, other: one == other) for s in smoothings) - by_all
    by_neighbors = max(
        log_likelihood(rows, frequencies, s, lambda one, other: 0 < abs(rank[one] - rank[other]) <= n)  # noqa: B023
        for s in smoothings
        for n in neighbors
    )
    return gain >= 10 and by_neighbors - by_all <= gain / 2
