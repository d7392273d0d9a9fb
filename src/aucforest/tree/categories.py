"""Categorical features: a split is a set of codes in place of a threshold.

With two classes, the bins are ordered by the frequency of the second class. Unless children have a minimum size, the
best split in that order is the best of all subsets, with missing values on either side, for criteria that are
(quasi-)convex in the class totals on the left (Fisher 1958; Breiman et al. 1984, theorem 4.5), like all in `criteria`.
With more classes, the order follows the first principal component of the class frequencies of the bins, weighted by bin
totals (Coppersmith, Hong, Hosking 1999). The random splitter samples a nonempty proper subset of the categories of the
node uniformly. Codes that do not occur in a node go to the same side as missing values.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, outlined_device
from aucforest.tree.binning import bin_of
from aucforest.tree.criteria.criterion import AUC, HELLINGER
from aucforest.tree.histogram import entry_of, weights_of_pair
from aucforest.tree.random import ATTEMPT, CATEGORY, derive_key

# Maximum number of codes of a feature, including that of missing values.
MOST_CODES = 256


class OrderBuffers(NamedTuple):
    """Buffers for ordering bins: the scores to sort by, the order, and the histogram in that order."""

    entries: NDArray[np.uint32]  # (n_entries,)
    codes: NDArray[np.uint32]  # (256,), like the next four
    scores: NDArray[np.float64]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    samples: NDArray[np.int64]
    mean: NDArray[np.float64]  # (n_classes,), like the next three
    direction: NDArray[np.float64]
    product: NDArray[np.float64]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, n_classes: int) -> "OrderBuffers":
        """Allocate the buffers; memory pages that are never written cost nothing."""
        return cls(
            np.empty(MOST_CODES * n_classes, dtype=np.uint32),
            np.empty(MOST_CODES, dtype=np.uint32),
            np.empty(MOST_CODES),
            *np.empty((3, MOST_CODES), dtype=np.int64),
            *np.empty((4, n_classes)),
        )


@bare_device
def _rank(n_bins, buffers):
    """Write the stable order of the bins by score; the rank of a bin is the number of bins before it.

    Compilers vectorize the counting, which makes it faster than sorting for up to a few hundred bins.
    """
    scores, n = buffers.scores, np.uint64(n_bins)
    for i in range(n):
        score, rank = scores[i], 0
        for j in range(i):
            rank += scores[j] <= score
        for j in range(i + np.uint64(1), n):
            rank += scores[j] < score
        buffers.order[rank] = i


@bare_device
def sort_bins(histogram, buffers):
    """Sort the bins by their scores; the sort is stable."""
    _rank(histogram.n_bins, buffers)
    for rank in range(histogram.n_bins):
        i = buffers.order[rank]
        buffers.codes[rank], buffers.samples[rank] = histogram.codes[i], histogram.samples[i]
    for i in range(histogram.n_bins):
        histogram.codes[i], histogram.samples[i] = buffers.codes[i], buffers.samples[i]
    histogram.forms.sort_entries(histogram, buffers)


@bare_device
def _project(histogram, n_classes, buffers):
    """Set the score of every bin to the product of the direction and its centered class frequencies."""
    centre = 0.0
    for k in range(n_classes):
        centre += buffers.mean[k] * buffers.direction[k]
    for i in range(histogram.n_bins):
        score, weight = 0.0, 0.0
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            label, moved = entry_of(histogram, entry)
            part = moved * buffers.scale[label]
            score += part * buffers.direction[label]
            weight += part
        buffers.scores[i] = score / weight - centre


@bare_device
def _update_direction(histogram, n_classes, buffers):
    """Multiply the direction by the covariance of the frequencies, normalize it, and return its squared change.

    The scores are the product of the direction and a factor of the covariance; the full matrix is never computed.
    """
    direction, product = buffers.direction, buffers.product
    for k in range(n_classes):
        product[k] = 0.0
    for i in range(histogram.n_bins):
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            label, moved = entry_of(histogram, entry)
            product[label] += moved * buffers.scale[label] * buffers.scores[i]
    length = 0.0
    for k in range(n_classes):
        length += product[k] * product[k]
    if length == 0.0:
        return 0.0
    length, step = math.sqrt(length), 0.0
    for k in range(n_classes):
        product[k] /= length
        step += (product[k] - direction[k]) * (product[k] - direction[k])
        direction[k] = product[k]
    return step


@bare_device
def score_pairs(criterion, histogram, classes, buffers):
    """Score the bins of two classes by the frequency of the second."""
    for i in range(histogram.n_bins):
        first, second = weights_of_pair(histogram, i)
        buffers.scores[i] = second / (first + second)


@bare_device
def score_bins(criterion, histogram, classes, buffers):
    """Score the bins by the first principal component of their class frequencies, computed by power iteration.

    If the criterion is a mean over pairs of classes, all classes have equal weight. The matrix is positive
    semidefinite, so the initial direction determines the sign.
    """
    weight = 0.0
    for k in range(classes.n):
        weight_of_class = np.float64(classes.totals[k] - histogram.missing[k])
        buffers.scale[k] = 1.0 / classes.totals[k] if criterion in (AUC, HELLINGER) else 1.0
        buffers.mean[k] = weight_of_class * buffers.scale[k]
        weight += buffers.mean[k]
        buffers.direction[k] = ((k + 1) * 0.6180339887498949) % 1.0 - 0.5  # favors no class
    for k in range(classes.n):
        buffers.mean[k] /= weight
    for _ in range(24):
        _project(histogram, classes.n, buffers)
        if _update_direction(histogram, classes.n, buffers) < 1e-6:
            break
    _project(histogram, classes.n, buffers)


@outlined_device
def sort_category_bins(criterion, histogram, classes, buffers):
    """Sort the bins of a categorical feature into the order in which they are split."""
    histogram.forms.score_bins(criterion, histogram, classes, buffers)
    sort_bins(histogram, buffers)


@outlined_device
def sample_categories(histogram, feature, bins, key, buffers):
    """Sample categories and move them to the front; return the index of the last sampled one, and 0 as threshold.

    The side of a category depends on the category itself and not on its code.
    """
    n_bins, n_left, attempt = histogram.n_bins, 0, 0
    while n_left == 0 or n_left == n_bins > 1:
        attempt_key = derive_key(key, ATTEMPT, attempt)
        attempt += 1
        n_left = 0
        for i in range(n_bins):
            category = int(bins.values.lower[bin_of(bins, feature, histogram.codes[i])])
            goes_left = derive_key(attempt_key, CATEGORY, category) & np.uint64(1)
            buffers.scores[i] = 1.0 - np.float64(goes_left)
            n_left += int(goes_left)
    sort_bins(histogram, buffers)
    return n_left - 1, 0.0
