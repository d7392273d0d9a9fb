"""Sampling of the features of a node, and the two kinds of features.

A numeric feature is split by a threshold, and its bins keep the order of their codes. A categorical feature is split by
the set of codes that go left, and its bins are sorted first.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, by_code
from aucforest.tree.binning import bin_of
from aucforest.tree.categories import sample_categories, sort_category_bins
from aucforest.tree.random import FEATURE, bounded, derive_key
from aucforest.tree.samples import row_of, with_codes
from aucforest.tree.sparse import has_one_code, is_sparse

NUMERIC, CATEGORICAL = 0, 1
_LARGEST = float(np.finfo(np.float64).max)


class FeatureBuffers(NamedTuple):
    """Buffers for sampling features, (n_features,) each."""

    features: NDArray[np.int32]  # 0, 1, 2, ... between nodes
    swapped: NDArray[np.int32]  # the index with which the i-th sampled feature was swapped
    candidates: NDArray[np.int32]  # the sampled features that are not constant in the node

    @classmethod
    def of(cls, n_features: int) -> "FeatureBuffers":
        """Allocate the buffers."""
        return cls(np.arange(n_features, dtype=np.int32), *np.empty((2, n_features), dtype=np.int32))


@bare_device
def _has_one_dense_code(codes, read_code, feature, samples):
    feature = np.uint64(feature)
    code = read_code(codes, (feature, row_of(samples[0])))
    for i in range(1, len(samples)):
        if read_code(codes, (feature, row_of(samples[i]))) != code:
            return False
    return True


@bare_device
def _is_constant(columns, feature, samples):
    if is_sparse(columns):
        return has_one_code(columns, feature, samples)
    return with_codes(_has_one_dense_code, columns.codes, feature, samples)


@bare_device
def sample_features(node, n_wanted, n_sampled, n_candidates, buffers):
    """Sample more features of a `splitter.Node` until n_wanted of them are in `candidates`.

    A feature that is constant in the node is no candidate. Return the new number of sampled features and of candidates.
    """
    features = buffers.features
    while n_sampled < len(features) and n_candidates < n_wanted:
        index = n_sampled + bounded(derive_key(node.key, FEATURE, n_sampled), len(features) - n_sampled)
        feature = features[index]
        features[index], features[n_sampled] = features[n_sampled], feature
        buffers.swapped[n_sampled] = index
        n_sampled += 1
        buffers.candidates[n_candidates] = feature
        n_candidates += not _is_constant(node.columns, feature, node.samples)
    return n_sampled, n_candidates


@bare_device
def put_back(n_sampled, buffers):
    """Undo the swaps of `sample_features`, so that the features are in order for the next node."""
    features = buffers.features
    while n_sampled > 0:
        n_sampled -= 1
        index = buffers.swapped[n_sampled]
        features[index], features[n_sampled] = features[n_sampled], features[index]


@bare_device
def _keep_order(criterion, histogram, classes, buffers):
    """Leave the bins of a numeric feature in the order of their codes."""


@bare_device
def middle_of(index, values):
    """Return the middle of a bin with finite bounds, given its index in `BinValues`."""
    return 0.5 * values.lower[index] + 0.5 * values.upper[index]


@bare_device
def location(bins, feature, code):
    """Return the middle of a bin, or its finite bound if only one bound is finite."""
    index = bin_of(bins, feature, code)
    low, high = bins.values.lower[index], bins.values.upper[index]
    if low == -np.inf:
        return high
    return low if high == np.inf else middle_of(index, bins.values)


@bare_device
def threshold_between(least, greatest, key):
    """Return a random threshold, uniformly distributed between two finite values."""
    proportion = np.float64(key >> np.uint64(11)) * 2.0**-53  # uniform in [0, 1)
    return (1.0 - proportion) * least + proportion * greatest


@bare_device
def _sample_between(codes, feature, bins, key):
    """Sample a threshold uniformly between the least and the greatest of at least two codes (Geurts et al. 2006).

    The location of a code is the middle of its bin. A location of -inf is replaced by the least finite location minus
    the range of finite locations, and +inf by the greatest plus the range. With only one finite location, the range is
    taken as 1. Without finite locations, the threshold is 0.
    """
    low, high = 0, len(codes) - 1
    least, greatest = location(bins, feature, codes[low]), location(bins, feature, codes[high])
    if least == -np.inf or greatest == np.inf:
        low, high = low + (least == -np.inf), high - (greatest == np.inf)
        if low > high:
            return 0.0
        first, last = location(bins, feature, codes[low]), location(bins, feature, codes[high])
        extent = min(last - first, _LARGEST) if low < high else 1.0
        least = max(first - extent, -_LARGEST) if least == -np.inf else first
        greatest = min(last + extent, _LARGEST) if greatest == np.inf else last
    return threshold_between(least, greatest, key)


@bare_device
def _sample_threshold(histogram, feature, bins, key, buffers):
    """Sample a threshold of a numeric feature; return the index of the last bin on the left and the threshold.

    If all values that are not missing are in one bin, the only split separates them from the missing values.
    """
    codes = histogram.codes[: histogram.n_bins]
    if len(codes) == 1:
        return 0, np.inf
    threshold = _sample_between(codes, feature, bins, key)
    # The bisection leaves at least one bin on each side.
    low, high = 0, len(codes) - 1
    while low + 1 < high:
        middle = (low + high) >> 1
        if location(bins, feature, codes[middle]) <= threshold:
            low = middle
        else:
            high = middle
    return low, threshold


# f(kind, criterion, histogram, classes, buffers): sort the bins into the order in which they are split.
order_bins = by_code({NUMERIC: _keep_order, CATEGORICAL: sort_category_bins})
# f(kind, histogram, feature, bins, key, buffers) -> (index, threshold): sample one split, the only one that the random
# splitter evaluates for a feature. Sort the bins so that all bins up to the index are on the left.
sample_split = by_code({NUMERIC: _sample_threshold, CATEGORICAL: sample_categories})
