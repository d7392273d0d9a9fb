"""The random split of a numeric feature in a small node: samples are divided without a histogram.

The split is the same as with a histogram, but takes less time. A feature needs the histogram if it has missing values
in the node, or if its least or greatest value is infinite.
"""

import numpy as np

from aucforest._compile import bare_device
from aucforest.tree.binning import bin_of
from aucforest.tree.criteria.criterion import ROUNDING
from aucforest.tree.criteria.table import by_criterion, pair_rounding
from aucforest.tree.features import location, middle_of, threshold_between
from aucforest.tree.samples import label_of, row_of, weight_of, with_codes


@bare_device
def _find_range(codes, read_code, feature, samples):
    least = greatest = read_code(codes, (feature, row_of(samples[0])))
    for i in range(1, len(samples)):
        code = read_code(codes, (feature, row_of(samples[i])))
        least, greatest = min(least, code), max(greatest, code)
    return least, greatest


@bare_device
def _sum_left(codes, read_code, search, feature, ends, threshold):
    """Write the class totals on the left; return the greatest code left, the least code right, and n_left.

    `ends` are the least code of the node, which always goes left, and the greatest, which always goes right. All bins
    between them have finite bounds.
    """
    samples, weights, bins = search.node.samples, search.node.columns.weights, search.node.columns.bins
    left, indices, (least, greatest) = search.buffers.score.left, search.classes.indices, ends
    left[: search.classes.n] = 0
    last_left, first_right, n_left = np.uint64(0), ~np.uint64(0), np.uint64(0)
    for i in range(len(samples)):
        code = read_code(codes, (feature, row_of(samples[i])))
        is_low = middle_of(bin_of(bins, feature, code), bins.values) <= threshold
        is_left = np.uint64((code == least) | (is_low & (code != greatest)))
        left[np.uint64(indices[label_of(samples[i])])] += weight_of(samples[i], weights) * np.int64(is_left)
        # There are no branches, because the side of a sample is unpredictable.
        last_left, first_right = max(last_left, code * is_left), min(first_right, code | (np.uint64(0) - is_left))
        n_left += is_left
    return np.int64(last_left), np.int64(first_right), np.int64(n_left)


@bare_device
def sample_random_split(search, feature, key):
    """Sample a split of a feature, and write the class totals on the left to `ScoreBuffers.left`.

    Return the greatest code on the left, the least code on the right, the number of samples on the left, and the
    threshold. The codes are -1 if the feature needs the histogram.
    """
    columns, feature = search.node.columns, np.uint64(feature)
    least, greatest = with_codes(_find_range, columns.codes, feature, search.node.samples)
    low = high = 0.0
    has_missing = np.int64(greatest) == columns.n_bins[feature]
    if not has_missing:
        low, high = location(columns.bins, feature, least), location(columns.bins, feature, greatest)
    if has_missing or low == -np.inf or high == np.inf:
        return np.int64(-1), np.int64(-1), np.int64(0), 0.0
    threshold = threshold_between(low, high, key)
    code, next_code, n_left = with_codes(_sum_left, columns.codes, search, feature, (least, greatest), threshold)
    return code, next_code, n_left, threshold


@bare_device
def _score_two_classes(criterion, left, totals, best_score, buffers):
    """Return the score of a split of two classes, or `best_score` if it is not better."""
    # A scan makes this check, too. Without it, a rounding error could make the results differ.
    bar = best_score + pair_rounding(criterion.code, totals[0], totals[1])
    if not criterion.may_exceed(left[0], left[1], totals[0], totals[1], bar):
        return best_score
    score = criterion.pair_score(left[0], left[1], totals[0], totals[1], buffers)
    return score if score > bar else best_score


@bare_device
def _score_more_classes(criterion, left, totals, best_score, buffers):
    bar = best_score + ROUNDING
    state = criterion.start(totals, bar, True, buffers)
    for k in range(np.uint64(len(totals))):
        if left[k] > 0:
            state = criterion.move(state, k, left, left[k], totals, buffers)
    state, score = criterion.score(state, bar, left, totals, buffers)
    return score if score > bar else best_score


# f(criterion, left, totals, best_score, buffers) -> the score of a split, the same as in a scan
score_two_classes = by_criterion(_score_two_classes)
score_more_classes = by_criterion(_score_more_classes)
