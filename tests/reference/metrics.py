"""AUC metrics by their definitions: every pair, every threshold, in plain loops."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np


def pair_weight(above: float, below: float) -> float:
    """Return 1 when the first is greater, 0.5 when they tie, else 0."""
    return float(above > below) + 0.5 * float(above == below)


def auc(is_positive, scores, weights=None) -> float:
    """Return the weighted share of (positive, negative) pairs in the right order; NaN without any pair."""
    weights = [1.0] * len(scores) if weights is None else weights
    won, total = [], []
    for p, s, w in zip(is_positive, scores, weights):
        for q, t, v in zip(is_positive, scores, weights):
            if p and not q:
                won.append(w * v * pair_weight(s, t))
                total.append(w * v)
    return math.fsum(won) / math.fsum(total) if math.fsum(total) > 0 else math.nan


def rates_at(threshold, is_positive, scores, weights=None):
    """Return (true, false) positive weight of the rows at or above a threshold."""
    weights = [1.0] * len(scores) if weights is None else weights
    called = [(p, w) for p, s, w in zip(is_positive, scores, weights) if s >= threshold]
    return math.fsum(w for p, w in called if p), math.fsum(w for p, w in called if not p)


def roc_points(is_positive, scores, weights=None):
    """Return [(false, true positive weight, threshold)] at infinity and at every score that has weight."""
    weighted = scores if weights is None else [s for s, w in zip(scores, weights) if w > 0]
    points = [(0.0, 0.0, math.inf)]
    for threshold in sorted(set(weighted), reverse=True):
        tp, fp = rates_at(threshold, is_positive, scores, weights)
        points.append((fp, tp, threshold))
    return points


def average_precision(is_positive, scores, weights=None) -> float:
    """Return the sum over thresholds of (gain in recall) * precision; NaN without positives."""
    points = roc_points(is_positive, scores, weights)
    positives = points[-1][1] or math.nan
    return math.fsum((tp - before) / positives * tp / (tp + fp) for (_, before, _), (fp, tp, _) in pairwise(points))


def pair_matrix(codes, scores, n_classes, weights=None):
    """Return A(i, j) for all i != j, by column i on the rows of classes i and j; NaN on the diagonal."""
    weights = [1.0] * len(codes) if weights is None else weights
    matrix = [[math.nan] * n_classes for _ in range(n_classes)]
    for i in range(n_classes):
        for j in range(n_classes):
            rows = [r for r, code in enumerate(codes) if code in (i, j)]
            if i != j:
                of_pair = [codes[r] == i for r in rows]
                matrix[i][j] = auc(of_pair, [scores[r][i] for r in rows], [weights[r] for r in rows])
    return matrix


def hand_till(codes, scores, n_classes, weights=None, prevalence_weighted=False) -> float:
    """Return the mean over the pairs that exist of A(i, j), plain or by the weight of the two classes."""
    weights = [1.0] * len(codes) if weights is None else weights
    matrix = pair_matrix(codes, scores, n_classes, weights)
    total = [math.fsum(w for code, w in zip(codes, weights) if code == k) for k in range(n_classes)]
    terms = [
        (matrix[i][j], total[i] + total[j] if prevalence_weighted else 1.0)
        for i in range(n_classes)
        for j in range(n_classes)
        if not math.isnan(matrix[i][j])
    ]
    return math.fsum(a * w for a, w in terms) / math.fsum(w for _, w in terms)


def delong_by_class(is_positive, score_columns, weights=None):
    """Return aucs and, of positives and of negatives, (covariance, effective number of rows), by definition."""
    n = len(is_positive)
    weights = [1.0] * n if weights is None else weights
    positives = [r for r in range(n) if is_positive[r]]
    negatives = [r for r in range(n) if not is_positive[r]]

    def share(column, row, others):
        sign = 1.0 if is_positive[row] else -1.0
        right = [weights[o] * pair_weight(sign * column[row], sign * column[o]) for o in others]
        return math.fsum(right) / math.fsum(weights[o] for o in others)

    aucs, parts = [auc(is_positive, column, weights) for column in score_columns], []
    for rows, others in ((positives, negatives), (negatives, positives)):
        total = math.fsum(weights[r] for r in rows)
        share_of = [weights[r] / total for r in rows]
        squares = math.fsum(w * w for w in share_of)
        placed = [[share(column, r, others) for r in rows] for column in score_columns]
        covariance = [[0.0] * len(score_columns) for _ in score_columns]
        for i, a in enumerate(aucs):
            for j, b in enumerate(aucs):
                terms = [w * w * (placed[i][k] - a) * (placed[j][k] - b) for k, w in enumerate(share_of)]
                covariance[i][j] = math.fsum(terms) / (1.0 - squares)
        parts.append((covariance, 1.0 / squares))
    return aucs, parts


def delong(is_positive, score_columns, weights=None):
    """Return (aucs, covariance)."""
    aucs, ((of_positives, _), (of_negatives, _)) = delong_by_class(is_positive, score_columns, weights)
    return aucs, [[a + b for a, b in zip(*rows)] for rows in zip(of_positives, of_negatives)]


def auc_variance_at(t, is_positive, scores, weights=None) -> float:
    """Return the variance of an AUC that is truly t: of each class n rows whose share r of t (1 - t) / n is shrunk.

    Towards one half, as if by two more rows, of an AUC next to the observed one that is neither 0 nor 1.
    """
    (observed,), parts = delong_by_class(is_positive, [scores], weights)
    least = min(n for _, n in parts)
    near = (observed * least + 0.5) / (least + 1)
    dispersion = 0.0
    for ((variance,),), n in parts:
        of_rows, of_two = n * variance * n, 2 * 0.5 * near * (1 - near)
        ratio = (of_rows + of_two) / (n * observed * (1 - observed) + 2 * near * (1 - near))
        dispersion += min(ratio, 1.0) / n
    return dispersion * t * (1 - t)


def decision_counts(threshold, is_positive, scores, weights=None):
    """Return (tp, fp, fn, tn) of the rule score >= threshold."""
    tp, fp = rates_at(threshold, is_positive, scores, weights)
    positives, negatives = rates_at(-math.inf, is_positive, scores, weights)
    return tp, fp, positives - tp, negatives - fp


def best_threshold(criterion, positive, scores, cost=None):
    """Return the greatest of the best thresholds in exact fractions, for labels without weights."""
    values = {}
    for threshold in (math.inf, *scores):
        tp, fp, fn, tn = (Fraction(count) for count in decision_counts(threshold, positive, scores))
        values[threshold] = {
            "youden": tp / (tp + fn) - fp / (fp + tn),
            "gmean": tp * tn,
            "f1": 2 * tp / (2 * tp + fp + fn),
            "cost": -np.sum(np.multiply(cost or 0, [[tn, fp], [fn, tp]])),
        }[criterion]
    return max(threshold for threshold, value in values.items() if value == max(values.values()))


def threshold_within(rule, bound, is_positive, scores, weights=None):
    """Return the highest recall of the thresholds within a bound, or None without such a threshold but infinity.

    The rule is "alerts" (a proportion of the weight), "precision", "recall" or "fpr". Of equally good thresholds the
    greatest is returned, of alerts the lowest, and for recall the greatest within the bound. Rounding apart: a bound
    may be met up to 1e-12 of itself.
    """
    best = None
    for fp, tp, threshold in roc_points(is_positive, scores, weights)[1:]:
        _, _, fn, tn = decision_counts(threshold, is_positive, scores, weights)
        value, limit = {
            "alerts": (tp + fp, bound * (tp + fp + fn + tn)),
            "precision": (-tp, -bound * (tp + fp)),
            "recall": (-tp, -bound * (tp + fn)),
            "fpr": (fp, bound * (fp + tn)),
        }[rule]
        gain = {"alerts": tp + fp, "recall": 1}.get(rule, tp)
        if value <= limit + 1e-12 * abs(limit) and gain > 0 and (best is None or gain > best[0]):
            best = gain, threshold
    return None if best is None else best[1]


def total_cost(threshold, is_positive, scores, costs, weights=None) -> float:
    """Return what the decisions of the rule score >= threshold cost, each row by its own matrix."""
    weights = [1.0] * len(scores) if weights is None else weights
    return math.fsum(w * c[int(p)][int(s >= threshold)] for p, s, c, w in zip(is_positive, scores, costs, weights))


def cheapest_within(budget, is_positive, scores, costs, weights=None) -> float:
    """Return the greatest of the cheapest thresholds with at most a proportion of the weight predicted positive."""
    totals = {}
    for threshold in (math.inf, *scores):
        tp, fp, fn, tn = decision_counts(threshold, is_positive, scores, weights)
        if tp + fp <= budget * (tp + fp + fn + tn) * (1 + 1e-12):
            totals[threshold] = total_cost(threshold, is_positive, scores, costs, weights)
    return max(threshold for threshold, total in totals.items() if total <= min(totals.values()) + 1e-9)


def rates_of_group(positive, selected, proba, weights):
    """Return selection rate, recall, false positive rate and calibration of rows; NaN where they are undefined."""
    rows = list(zip(positive, selected, proba, weights))

    def share(kept):
        total = math.fsum(w for _, _, _, w in kept)
        return math.fsum(w for _, s, _, w in kept if s) / total if total else math.nan

    total = math.fsum(weights)
    calibration = math.fsum(w * (p - int(y)) for y, _, p, w in rows) / total
    return share(rows), share([row for row in rows if row[0]]), share([row for row in rows if not row[0]]), calibration


def positives_among_first(size, is_positive, scores, weights=None) -> float:
    """Return the weight of positives among the first rows, of that weight in all; rows that tie are taken alike."""
    weights = [1.0] * len(scores) if weights is None else weights
    found = 0.0
    for level in sorted(set(scores), reverse=True):
        tied = [(p, w) for p, s, w in zip(is_positive, scores, weights) if s == level]
        weight = math.fsum(w for _, w in tied)
        taken = min(size, weight)
        if weight > 0.0:
            found += math.fsum(w for p, w in tied if p) * taken / weight
        size -= taken
    return found
