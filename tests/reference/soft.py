"""Metrics of uncertain labels by their definitions: loops over all thresholds, pairs or labelings."""

import math
from itertools import pairwise, product

from tests.reference.metrics import average_precision, pair_weight, positives_among_first


def auc_by_thresholds(scores, p) -> float:
    """Return the area under the curve of expected rates: a confusion matrix for every threshold, and (0, 0)."""
    points = [(0.0, 0.0)]
    for threshold in sorted(set(scores), reverse=True):
        true_positive = math.fsum(q for s, q in zip(scores, p) if s >= threshold)
        false_positive = math.fsum(1 - q for s, q in zip(scores, p) if s >= threshold)
        points.append((false_positive / math.fsum(1 - q for q in p), true_positive / math.fsum(p)))
    return math.fsum((b[0] - a[0]) * (b[1] + a[1]) / 2 for a, b in pairwise(points))


def average_precision_by_thresholds(scores, p) -> float:
    """Return the average precision: every row counts p as a positive and 1 - p as a negative."""
    return average_precision([True] * len(p) + [False] * len(p), [*scores, *scores], [*p, *(1 - q for q in p)])


def over_all_labels(metric, scores, p):
    """Return (chance that the metric is defined, its mean, its variance) over all labellings."""
    chances, values = [], []
    for labels in product([False, True], repeat=len(p)):
        chance = math.prod(q if label else 1 - q for label, q in zip(labels, p))
        value = metric(labels, scores) if chance > 0 else math.nan
        if not math.isnan(value):
            chances.append(chance)
            values.append(value)
    defined = math.fsum(chances)
    mean = math.fsum(c * v for c, v in zip(chances, values)) / defined
    return defined, mean, math.fsum(c * (v - mean) ** 2 for c, v in zip(chances, values)) / defined


def at_k(kind, k, labels, scores):
    """Return precision or recall at a proportion k; NaN where it is undefined."""
    total = k * len(labels) if kind == "precision" else sum(labels)
    return positives_among_first(k * len(labels), labels, scores) / total if total > 0 else math.nan


def pair_matrix(scores, p):
    """Return A(c, d) from every pair of rows, a row with itself included; NaN on the diagonal."""
    n, n_classes = len(p), len(p[0])
    matrix = [[math.nan] * n_classes for _ in range(n_classes)]
    for c, d in product(range(n_classes), repeat=2):
        if c != d:
            won = math.fsum(
                p[i][c] * p[j][d] * pair_weight(scores[i][c], scores[j][c]) for i in range(n) for j in range(n)
            )
            matrix[c][d] = won / (math.fsum(row[c] for row in p) * math.fsum(row[d] for row in p))
    return matrix
