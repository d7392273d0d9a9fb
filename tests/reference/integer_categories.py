"""Whether integers are categories, by definition: the label of each row is estimated from other single rows."""

from collections import Counter

import numpy as np


def find_groups(values, labels, is_scored, group_of, smoothings, value_smoothings):
    """Return the size of the groups that estimate labels best together with the value, or 0; `group_of` groups values.

    `values` is a list, `group_of` has a function of a value for each size.
    """
    is_class = labels[:, None] == np.unique(labels)
    index_of = {value: i for i, value in enumerate(dict.fromkeys(values))}
    rows = np.array([index_of[value] for value in values])
    same = (rows[:, None] == rows) & ~np.eye(len(rows), dtype=bool)
    counts, n_rows = same @ is_class.astype(float), same.sum(axis=1, keepdims=True)
    shares = {value: is_class[rows == i].mean(axis=0) for value, i in index_of.items()}

    def likelihood(priors, is_scored=is_scored):
        """Return the greatest log likelihood, and minus its smoothing."""
        estimates = {s: (counts + s * priors[rows]) / (n_rows + s) for s in smoothings}
        return max((np.sum(np.log(estimates[s][is_scored][is_class[is_scored]])), -s) for s in smoothings)

    _, smoothing = likelihood(np.tile(is_class.mean(axis=0), (len(shares), 1)), np.ones(len(rows), dtype=bool))
    weights = {value: np.sum(rows == i) / (np.sum(rows == i) - smoothing) for value, i in index_of.items()}
    frequencies = np.average(list(shares.values()), axis=0, weights=list(weights.values()))

    def prior(value, group, smoothing):
        others = [other for other in shares if other != value and group(other) == group(value)]
        total = sum((weights[other] * shares[other] for other in others), smoothing * frequencies)
        return total / (sum(weights[other] for other in others) + smoothing)

    best, found = likelihood(np.tile(frequencies, (len(shares), 1)))[0] + 10, 0
    for size, group in group_of.items():
        for smoothing in np.array(value_smoothings) * np.mean(list(weights.values())):
            by_group, _ = likelihood(np.array([prior(value, group, smoothing) for value in index_of]))
            if by_group > best + 1e-9:
                best, found = by_group, size
    return found


def find_widths(values, labels, n_frequent, smoothings, neighbors, neighbor_smoothings, value_smoothings):
    """Return the widths of the ranges of integers that are categories, () if the column has numbers."""
    counts = Counter(values.tolist())
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:n_frequent]
    scored, all_classes = ~np.isin(values, frequent), labels[:, None] == np.unique(labels)
    frequencies, is_class = all_classes[scored].mean(axis=0), all_classes[scored]

    def estimate(is_used, classes, smoothing, priors):
        return (is_used @ classes + smoothing * priors) / (is_used.sum(axis=1, keepdims=True) + smoothing)

    def likelihood(estimates):
        return np.sum(np.log(estimates[is_class]))

    def by_equal(keys, priors):
        is_equal = ((keys[:, None] == keys) & ~np.eye(len(keys), dtype=bool)).astype(float)
        return max((likelihood(estimate(is_equal, is_class, s, priors)), -s) for s in smoothings)

    def by_others(is_used, smoothing):
        return estimate(is_used[scored].astype(float), all_classes, smoothing, frequencies)

    by_all, by_value = likelihood(np.tile(frequencies, (scored.sum(), 1))), by_equal(values[scored], frequencies)[0]
    widths = [10**k for k in range(1, 6) if 2 < len(set(values // 10**k)) < len(set(values))]
    by_range = {width: by_equal(values[scored] // width, frequencies) for width in widths}
    if max(by_value, *(score for score, _ in by_range.values())) - by_all < 10:
        return ()
    distance = np.abs(np.subtract.outer(*[np.unique(values, return_inverse=True)[1]] * 2))
    near = [by_others((distance > 0) & (distance <= n), s) for n in neighbors for s in neighbor_smoothings]
    nearest = max(near, key=likelihood)
    in_range = {}
    for width, (_, smoothing) in by_range.items():
        same_range = (distance > 0) & np.equal.outer(values // width, values // width)
        in_range[width] = by_equal(values[scored], by_others(same_range, -smoothing))[0]
    by_ranges = [max(by_range[width][0], in_range[width]) for width in widths]
    best = max(by_value, by_equal(values[scored], nearest)[0], *by_ranges)
    if best - max(likelihood(nearest), by_all) < max(10, 0.04 * (best - by_all)):
        return ()
    group_of = {width: lambda value, width=width: value // width for width in widths}
    width = find_groups(values.tolist(), labels, scored, group_of, smoothings, value_smoothings)
    return (1, width) if width > 0 else (1,)
