"""Categorical features: a split is a set of codes in place of a threshold.

With two classes, the bins are sorted by the frequency of the second class. The best split in this order is the best of
all subsets if leaves have no minimum size, and if the criterion, like all criteria here, is (quasi-)convex in the class
totals of the left child (Fisher 1958; Breiman et al. 1984, theorem 4.5). Missing values may go to either side.
With more classes, the bins are sorted by the first principal component of their class frequencies, weighted by bin
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
from aucforest.tree.histogram import read_entry, two_class_weights
from aucforest.tree.random import ATTEMPT, CATEGORY, derive_key

MOST_CODES = 256  # maximum number of codes of a categorical feature, including that of missing values


class OrderBuffers(NamedTuple):
    """Buffers for sorting bins: their scores, their order, and copies of the arrays of the histogram in this order."""

    entries: NDArray[np.uint32]  # (n_entries,) the entries of the histogram, bin after bin
    codes: NDArray[np.uint32]  # (256,), like the next four
    scores: NDArray[np.float64]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]  # where the entries of each bin end
    n_samples: NDArray[np.int64]
    mean: NDArray[np.float64]  # (n_classes,), like the next three: the mean class frequencies of the bins
    direction: NDArray[np.float64]  # the current estimate of the principal component
    product: NDArray[np.float64]  # the covariance times the direction
    scale: NDArray[np.float64]  # the factor of the weights of each class

    @classmethod
    def of(cls, n_classes: int) -> "OrderBuffers":
        """Allocate buffers of the maximum size. Memory pages that are never written take no memory."""
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
        buffers.codes[rank], buffers.n_samples[rank] = histogram.codes[i], histogram.n_samples[i]
    for i in range(histogram.n_bins):
        histogram.codes[i], histogram.n_samples[i] = buffers.codes[i], buffers.n_samples[i]
    histogram.functions.sort_entries(histogram, buffers)


@bare_device
def _project(histogram, n_classes, buffers):
    """Set the score of each bin to the dot product of its centered class frequencies with the direction."""
    center = 0.0
    for k in range(n_classes):
        center += buffers.mean[k] * buffers.direction[k]
    for i in range(histogram.n_bins):
        score, weight = 0.0, 0.0
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            label, total = read_entry(histogram, entry)
            scaled = total * buffers.scale[label]
            score += scaled * buffers.direction[label]
            weight += scaled
        buffers.scores[i] = score / weight - center


@bare_device
def _update_direction(histogram, n_classes, buffers):
    """Multiply the direction by the covariance of the frequencies, normalize it, and return its squared change.

    The product is the sum of w_i s_i f_i over the bins i, with weight w, score s and class frequencies f. It needs no
    covariance matrix.
    """
    direction, product = buffers.direction, buffers.product
    for k in range(n_classes):
        product[k] = 0.0
    for i in range(histogram.n_bins):
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            label, total = read_entry(histogram, entry)
            product[label] += total * buffers.scale[label] * buffers.scores[i]
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
def score_bins_of_two_classes(criterion, histogram, classes, buffers):
    """Score the bins of two classes by the frequency of the second."""
    for i in range(histogram.n_bins):
        first, second = two_class_weights(histogram, i)
        buffers.scores[i] = second / (first + second)


@bare_device
def score_bins_of_more_classes(criterion, histogram, classes, buffers):
    """Score the bins by the first principal component of their class frequencies, computed by power iteration.

    If the criterion is a mean over pairs of classes, all classes have the same total weight. The covariance is positive
    semidefinite, so no step flips the sign of the direction, which determines the order of the bins.
    """
    weight = 0.0
    for k in range(classes.n):
        weight_of_class = np.float64(classes.totals[k] - histogram.missing[k])
        buffers.scale[k] = 1.0 / classes.totals[k] if criterion in (AUC, HELLINGER) else 1.0
        buffers.mean[k] = weight_of_class * buffers.scale[k]
        weight += buffers.mean[k]
        # Multiples of the golden ratio modulo 1: the direction is unlikely to be orthogonal to the component.
        buffers.direction[k] = ((k + 1) * 0.6180339887498949) % 1.0 - 0.5
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
    histogram.functions.score_bins(criterion, histogram, classes, buffers)
    sort_bins(histogram, buffers)


@outlined_device
def sample_categories(histogram, feature, bins, key, buffers):
    """Sample categories and move their bins to the front; return the index of the last of them, and 0 as threshold.

    The side is derived from the category, not from its code, which is a rank if the rows of the node are copies.
    """
    n_bins, n_left, attempt = histogram.n_bins, 0, 0
    # Sample again if the subset is empty, or if it has all of several bins.
    while n_left == 0 or n_left == n_bins > 1:
        attempt_key = derive_key(key, ATTEMPT, attempt)
        attempt += 1
        n_left = 0
        for i in range(n_bins):
            category = int(bins.values.lower[bin_of(bins, feature, histogram.codes[i])])  # its bin has one value
            goes_left = derive_key(attempt_key, CATEGORY, category) & np.uint64(1)
            buffers.scores[i] = 1.0 - np.float64(goes_left)
            n_left += int(goes_left)
    sort_bins(histogram, buffers)
    return n_left - 1, 0.0
