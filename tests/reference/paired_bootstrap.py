"""Paired differences of two models on stratified bootstrap samples, sample by sample in plain loops."""

import math

import numpy as np


def stratified_samples(codes, n_samples, seed):
    """Yield the rows of each sample: of every class as many as it has, with replacement, the same for all models."""
    generator = np.random.default_rng(seed)
    for _ in range(n_samples):
        drawn = []
        for k in sorted(set(codes)):
            members = [row for row, code in enumerate(codes) if code == k]
            drawn += [members[index] for index in generator.integers(0, len(members), len(members))]
        yield drawn


def paired_differences(metric, codes, score_a, score_b, weights, n_samples, seed):
    """Return metric(b) - metric(a) of each sample; `metric` takes codes, scores and weights."""
    differences = []
    for rows in stratified_samples(codes, n_samples, seed):
        a, b = (
            metric([codes[row] for row in rows], [score[row] for row in rows], [weights[row] for row in rows])
            for score in (score_a, score_b)
        )
        differences.append(b - a)
    return differences


def two_sided_pvalue(differences):
    """Return twice the share of samples on the rarer side of 0, those at 0 on both, and one more that is on both."""
    below = 1 + sum(difference <= 0.0 for difference in differences)
    above = 1 + sum(difference >= 0.0 for difference in differences)
    return min(1.0, 2.0 * min(below, above) / (1 + len(differences)))


def holm(pvalues):
    """Return p-values adjusted by Holm's method: the smallest times their number, the next times one less."""
    adjusted, least = [0.0] * len(pvalues), 0.0
    for index, position in enumerate(sorted(range(len(pvalues)), key=lambda position: pvalues[position])):
        least = max(least, min(1.0, (len(pvalues) - index) * pvalues[position]))
        adjusted[position] = least
    return adjusted


def top_hits(codes, proba, weights, proportion):
    """Return (positives, size): the weight of positives in the top proportion, of a tie that is cut its share."""
    left = size = proportion * math.fsum(weights)
    hits = 0.0
    for score in sorted({p[1] for p in proba}, reverse=True):
        tied = [(code, w) for code, p, w in zip(codes, proba, weights) if p[1] == score]
        weight = math.fsum(w for _, w in tied)
        hits += min(1.0, left / weight) * math.fsum(w for code, w in tied if code == 1)
        left = max(0.0, left - weight)
    return hits, size
