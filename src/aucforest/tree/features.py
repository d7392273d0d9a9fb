"""The features that a node looks at, and the kinds of features: how their bins are ordered and what a split records.

A kind whose order is that of the codes records a threshold; any other records the set of codes that go left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, by_code
from aucforest.tree.binning import bin_of
from aucforest.tree.categories import draw_categories, order_categories
from aucforest.tree.random import bounded, derive_key
from aucforest.tree.samples import row_of

NUMERIC, CATEGORICAL = 0, 1
_LARGEST = float(np.finfo(np.float64).max)


class FeatureBuffers(NamedTuple):
    """What drawing features writes to, (n_features,) each; `features` is 0, 1, 2, ... between nodes."""

    features: NDArray[np.int32]
    drawn: NDArray[np.int32]
    tried: NDArray[np.int32]

    @classmethod
    def of(cls, n_features: int) -> "FeatureBuffers":
        """Allocate the buffers."""
        return cls(np.arange(n_features, dtype=np.int32), *np.empty((2, n_features), dtype=np.int32))


@bare_device
def is_constant_in(node, feature):
    """Say whether all samples of a node, `NodeSamples`, share one code of a feature."""
    column, samples = node.columns.codes[feature], node.samples
    code = column[row_of(samples[0])]
    for i in range(1, len(samples)):
        if column[row_of(samples[i])] != code:
            return False
    return True


@bare_device
def draw_features(is_constant, node, key, max_features, buffers):
    """List in `tried` the features to search, drawn by the key of the node, and return how many they are.

    A feature for which is_constant(node, feature) is true does not use up the budget of max_features.
    """
    features, n_tried, n_drawn = buffers.features, 0, 0
    while n_drawn < len(features) and n_tried < max_features:
        pick = n_drawn + bounded(derive_key(key, n_drawn + 2), len(features) - n_drawn)
        feature = features[pick]
        features[pick], features[n_drawn] = features[n_drawn], feature
        buffers.drawn[n_drawn] = pick
        n_drawn += 1
        buffers.tried[n_tried] = feature
        n_tried += not is_constant(node, feature)
    while n_drawn > 0:
        n_drawn -= 1
        pick = buffers.drawn[n_drawn]
        features[pick], features[n_drawn] = features[n_drawn], features[pick]
    return n_tried


@bare_device
def _as_they_are(criterion, histogram, classes, buffers):
    """Leave the bins of a numeric feature in the order of their codes."""


@bare_device
def _location(feature, code, names, values):
    """Return the middle of a bin; its finite end if it has just one."""
    at = bin_of(feature, code, names, values)
    low, high = values.lower[at], values.upper[at]
    if low == -np.inf:
        return high
    return low if high == np.inf else 0.5 * low + 0.5 * high


@bare_device
def _draw_between(codes, feature, names, values, key):
    """Draw a number between the values of the least and the greatest of at least two codes (Geurts et al. 2006).

    A code lies at the middle of its bin, so in exact mode at its value. An infinite value would lie beyond every draw:
    it counts as if it lay as far beyond the finite values of the node as these reach, or 1 where they are all the same.
    """
    low, high = 0, len(codes) - 1
    least, greatest = _location(feature, codes[low], names, values), _location(feature, codes[high], names, values)
    if least == -np.inf or greatest == np.inf:
        low, high = low + (least == -np.inf), high - (greatest == np.inf)
        if low > high:
            return 0.0
        start, end = _location(feature, codes[low], names, values), _location(feature, codes[high], names, values)
        reach = min(end - start, _LARGEST) if low < high else 1.0
        least = max(start - reach, -_LARGEST) if least == -np.inf else start
        greatest = min(end + reach, _LARGEST) if greatest == np.inf else end
    proportion = np.float64(key >> np.uint64(11)) * 2.0**-53
    return (1.0 - proportion) * least + proportion * greatest


@bare_device
def _draw_threshold(histogram, classes, feature, names, values, key, buffers):
    """Draw a threshold of a numeric feature; return the place of the last bin on the left, and the threshold.

    A feature with one value beside missing ones has the split between the two.
    """
    codes = histogram.codes[: histogram.n_bins]
    if len(codes) == 1:
        return 0, np.inf
    drawn = _draw_between(codes, feature, names, values, key)
    low, high = 0, len(codes) - 1
    while low + 1 < high:
        middle = (low + high) >> 1
        if _location(feature, codes[middle], names, values) <= drawn:
            low = middle
        else:
            high = middle
    return low, drawn


# (kind, criterion, histogram, classes, buffers): bring the bins into the order of their splits.
order_bins = by_code({NUMERIC: _as_they_are, CATEGORICAL: order_categories})
# (kind, histogram, classes, feature, names, values, key, buffers) -> (place, threshold): draw the one split that the
# random splitter looks at, and bring the bins into an order in which those up to a place are on the left of it.
draw_bins = by_code({NUMERIC: _draw_threshold, CATEGORICAL: draw_categories})
