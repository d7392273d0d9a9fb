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


def estimated_auc(blocks, scores, labels, new_scores):
    """Return the estimate of new rows by a curve of these blocks; labels may be fractions."""
    return auc_by_thresholds(new_scores, [curve_at(blocks, labels, score) for score in new_scores])


def corrected_auc(blocks, scores, labels, new_scores):
    """Return the estimate of new rows minus (estimated - realized) of the reference."""
    optimism = estimated_auc(blocks, scores, labels, scores) - auc_by_thresholds(scores, labels)
    return estimated_auc(blocks, scores, labels, new_scores) - optimism


def variance_by_block(estimate, scores, labels, new_scores, step=1e-6):
    """Return [(variance through the labels of a block, its rows)]: blocks stay, every label is moved a little."""
    blocks = pooled_blocks(scores, labels)
    parts = []
    for _, _, rows in blocks:
        chance = (sum(labels[r] for r in rows) + 0.5) / (len(rows) + 1)
        slopes = []
        for r in rows:
            up, down = ([*labels[:r], labels[r] + sign * step, *labels[r + 1 :]] for sign in (1, -1))
            slopes.append(estimate(blocks, scores, up, new_scores) - estimate(blocks, scores, down, new_scores))
        parts.append((sum(chance * (1 - chance) * (slope / (2 * step)) ** 2 for slope in slopes), len(rows)))
    return parts
