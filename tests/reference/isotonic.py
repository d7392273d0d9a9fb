"""Isotonic curves and the noise they carry, by pooling in plain loops and by numerical derivatives."""

from itertools import pairwise

from tests.reference.soft import auc_by_thresholds


def pooled_blocks(scores, labels):
    """Return [(lowest score, highest score, rows)] of the blocks of a rising isotonic fit."""
    blocks = []
    for score in sorted(set(scores)):
        blocks.append((score, score, [r for r, s in enumerate(scores) if s == score]))
        while len(blocks) > 1 and mean(labels, blocks[-2][2]) >= mean(labels, blocks[-1][2]):
            upper = blocks.pop()
            lower = blocks.pop()
            blocks.append((lower[0], upper[1], lower[2] + upper[2]))
    return blocks


def mean(labels, rows):
    """Return the mean label of some rows."""
    return sum(labels[r] for r in rows) / len(rows)


def curve_at(blocks, labels, score):
    """Return the curve at a score: flat inside blocks and beyond the ends, linear between."""
    if score <= blocks[0][1]:
        return mean(labels, blocks[0][2])
    for lower, upper in pairwise(blocks):
        if score < upper[0]:
            share = (score - lower[1]) / (upper[0] - lower[1])
            return (1 - share) * mean(labels, lower[2]) + share * mean(labels, upper[2])
        if score <= upper[1]:
            return mean(labels, upper[2])
    return mean(labels, blocks[-1][2])


def corrected_auc(blocks, scores, labels, new_scores):
    """Return the estimate of new rows minus (estimated - realised) of the reference; labels may be fractions."""
    new_p = [curve_at(blocks, labels, score) for score in new_scores]
    p = [curve_at(blocks, labels, score) for score in scores]
    realised = auc_by_thresholds(scores, labels)
    return auc_by_thresholds(new_scores, new_p) - (auc_by_thresholds(scores, p) - realised)


def corrected_auc_variance(scores, labels, new_scores, step=1e-6):
    """Return the variance through the labels of the reference: blocks stay, every label is moved a little."""
    blocks = pooled_blocks(scores, labels)
    chance = {}
    for _, _, rows in blocks:
        chance.update(dict.fromkeys(rows, (sum(labels[r] for r in rows) + 0.5) / (len(rows) + 1)))
    total = 0.0
    for r in range(len(scores)):
        up, down = ([*labels[:r], labels[r] + sign * step, *labels[r + 1 :]] for sign in (1, -1))
        slope = corrected_auc(blocks, scores, up, new_scores) - corrected_auc(blocks, scores, down, new_scores)
        total += chance[r] * (1 - chance[r]) * (slope / (2 * step)) ** 2
    return total
