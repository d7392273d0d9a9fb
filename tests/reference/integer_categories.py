"""Whether integers are categories, by definition: the label of each row is estimated from other single rows."""

from collections import Counter

import numpy as np


def find_widths(values, labels, n_frequent, smoothings, neighbors, neighbor_smoothings):
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
    score, width = max((max(by_range[width][0], in_range[width]), -width) for width in widths)
    best = max(by_value, score, by_equal(values[scored], nearest)[0])
    if best - max(likelihood(nearest), by_all) < max(10, 0.15 * (best - by_all)):
        return ()
    return (1, -width) if score - by_value >= 10 else (1,)
