"""The best split of one node: features drawn by the key of the node, a histogram and a scan for each of them.

Ties: the feature drawn first wins, within it a split with the missing values on the right, and then the lowest bin.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device
from aucforest.tree.binning import BinValues, bin_of, midway
from aucforest.tree.categories import OrderBuffers
from aucforest.tree.criteria import (
    OWN,
    ROUNDING,
    OwnCriterion,
    ScoreBuffers,
    gain_by_definition,
    gains_most,
    start_scores,
)
from aucforest.tree.features import NUMERIC, FeatureBuffers, draw_bins, order_bins
from aucforest.tree.histogram import PAIR_SAMPLES, HistogramBuffers, clear, next_bin, present_classes, sum_left
from aucforest.tree.random import derive_key
from aucforest.tree.samples import add_code, has_code
from aucforest.tree.scan import Limits, find_admissible, is_bounded, scan
from aucforest.tree.tree import SET_WORDS


class Rules(NamedTuple):
    """What splits are searched for."""

    criterion: int
    is_random: bool  # whether one split of every feature is drawn instead of all being searched
    max_features: int
    min_samples_leaf: int
    min_weight_leaf: int
    signs: NDArray[np.int8]  # (n_features,) monotonic constraints; empty where there are none
    kinds: NDArray[np.int8]  # (n_features,)
    values: BinValues
    is_sampled: bool  # whether rows may have values outside all bins, since the bins come from some of the rows


class Node(NamedTuple):
    """What the search knows of a node beside its samples."""

    totals: NDArray[np.int64]  # (n_classes,) class totals, at least two of them above zero
    n_samples: int
    key: np.uint64  # which alone decides what is drawn
    low: float  # the limits of the frequency of the second class
    high: float
    names: NDArray[np.uint32]  # as in `Columns`


class Split(NamedTuple):
    """A split. There is none where `feature` is -1."""

    feature: int | np.int64
    code: int | np.int64  # the last code on the left, in the order of the kind
    next_code: int | np.int64  # the first one on the right; -1 when only missing values go there
    missing_left: bool  # where missing values go; those of new data, where the node has none: to the heavier child
    drawn: float  # where the random splitter drew the threshold
    gain: float
    left: NDArray[np.int64]  # (n_present,) the totals on the left of the classes that the node holds
    codes_left: NDArray[np.uint64]  # (4,) the codes of the node on either side; filled where a kind splits by sets
    codes_right: NDArray[np.uint64]


class SplitBuffers(NamedTuple):
    """What the search writes to."""

    histogram: HistogramBuffers
    order: OrderBuffers
    score: ScoreBuffers
    own: OwnCriterion
    features: FeatureBuffers
    sums: NDArray[np.int64]  # (2, n_codes) what is left of each split, of two classes
    left: NDArray[np.int64]  # (n_classes,)
    codes_left: NDArray[np.uint64]  # (4,)
    codes_right: NDArray[np.uint64]

    @classmethod
    def of(
        cls, n_features: int, n_codes: int, n_classes: int, table: NDArray[np.float64], address: int = 0
    ) -> "SplitBuffers":
        """Allocate the buffers for features of up to n_codes codes, the missing one included, and an own criterion."""
        return cls(
            HistogramBuffers.of(n_codes, n_classes),
            OrderBuffers.of(n_classes),
            ScoreBuffers.of(n_classes, table),
            OwnCriterion.of(address, n_classes),
            FeatureBuffers.of(n_features),
            np.empty((2, n_codes), dtype=np.int64),
            np.empty(n_classes, dtype=np.int64),
            *np.empty((2, SET_WORDS), dtype=np.uint64),
        )


@bare_device
def _cannot_be_beaten(criterion, left, classes):
    """Say whether a split parts no class and so gains most of all, whatever the totals; False for some that do."""
    n_left = 0
    for k in range(classes.n):
        if left[k] != 0 and left[k] != classes.totals[k]:
            return False
        n_left += left[k] != 0
    return gains_most(criterion, n_left, classes.n)


@bare_device
def _keep(histogram, place, missing_left, by_set, classes, buffers):
    """Keep the totals and the sets left of a split, and return the code right of it and where missing values go."""
    sum_left(histogram, place, missing_left, buffers.left)
    if not histogram.has_missing:
        # What rounding may miss of one half counts as half.
        weight = np.int64(0)
        for k in range(classes.n):
            weight += buffers.left[k]
        missing_left = 2.0 * weight >= (1.0 - ROUNDING) * classes.weight
    if by_set:
        buffers.codes_left[:] = buffers.codes_right[:] = 0
        for t in range(histogram.n_bins):
            add_code(buffers.codes_left if t <= place else buffers.codes_right, np.uint64(histogram.codes[t]))
    after = next_bin(histogram, place)
    return np.int64(histogram.codes[after]) if after < histogram.n_bins else np.int64(-1), missing_left


@bare_device
def find_split(count, source, features, node, rules, buffers):
    """Return the best split of a node, whose arrays are overwritten by the next search; its gain is by the definition.

    Histograms come from count(source, features, t, ...): `histogram.count_samples`, or one with the same arguments.
    The features are those to search, in the order in which they were drawn.
    """
    classes = present_classes(node.totals, buffers.histogram)
    start_scores(rules.criterion, node.totals, classes, buffers)
    left, right = buffers.left[: classes.n], buffers.score.right[: classes.n]
    arrays = left, buffers.codes_left, buffers.codes_right
    best = Split(np.int64(-1), np.int64(-1), np.int64(-1), False, 0.0, 0.0, *arrays)
    is_constrained, with_samples = len(rules.signs) > 0, is_bounded(rules)
    # Larger nodes may have counted the next feature already.
    may_stop = node.n_samples < PAIR_SAMPLES and rules.criterion != OWN
    for t in range(len(features)):
        feature = np.int64(features[t])
        kind, only, drawn = rules.kinds[feature], np.int64(-1), 0.0
        compact = kind != NUMERIC or rules.is_random or with_samples or rules.criterion == OWN
        histogram = count(source, features, t, classes, compact, with_samples, buffers.histogram)
        if rules.is_random:
            # The first keys of a node are those of its children and of the features that it draws.
            key = derive_key(node.key, len(rules.values.first) + 1 + features[t])
            only, drawn = draw_bins(kind, histogram, classes, feature, node.names, rules.values, key, buffers.order)
        else:
            order_bins(kind, rules.criterion, histogram, classes, buffers.order)
        limits = Limits(is_constrained, rules.signs[feature] if is_constrained else 0, node.low, node.high)
        for side in range(2 if histogram.has_missing else 1):
            first, stop = find_admissible(histogram, classes, side == 1, node.n_samples, rules)
            if only >= 0:
                first, stop = max(first, only), min(stop, only + 1)
            span = first, stop
            gain, place = scan(rules.criterion, histogram, classes, span, side == 1, best.gain, limits, buffers)
            if place >= 0:
                next_code, missing_left = _keep(histogram, place, side == 1, kind != NUMERIC, classes, buffers)
                code = np.int64(histogram.codes[place])
                best = Split(feature, code, next_code, missing_left, drawn, gain, *arrays)
        clear(histogram)
        if may_stop and best.feature == feature and _cannot_be_beaten(rules.criterion, left, classes):
            break
    if best.feature < 0 or rules.criterion == OWN:
        return best
    for k in range(classes.n):
        right[k] = classes.totals[k] - left[k]
    gain = gain_by_definition(rules.criterion, left, right)
    return Split(best.feature, best.code, best.next_code, best.missing_left, best.drawn, gain, *arrays)


@bare_device
def threshold_of(split, names, rules):
    """Return the threshold of a split of a numeric feature: never the value on the right, +inf if only NaN is there."""
    if split.next_code < 0:
        return np.inf
    values, feature = rules.values, split.feature
    at, next_at = bin_of(feature, split.code, names, values), bin_of(feature, split.next_code, names, values)
    low, high = values.upper[at], values.lower[next_at]
    if rules.is_random and rules.is_sampled:
        # A value outside all bins has the code that the edge above it says.
        lowest = midway(low, values.lower[at + 1])
        return min(max(split.drawn, lowest), midway(values.upper[next_at - 1], high))
    return split.drawn if rules.is_random and low <= split.drawn < high else midway(low, high)


@bare_device
def write_set(split, names, values, words):
    """Write the categories that go left: those of the codes, not of bins or of a local copy."""
    # Codes that the node has not seen go with the missing values, and others do or are turned round.
    turned = split.codes_right if split.missing_left else split.codes_left
    words[:] = ~np.uint64(0) if split.missing_left else np.uint64(0)
    for code in range(64 * SET_WORDS):
        if has_code(turned, code):
            category = np.uint64(values.lower[bin_of(split.feature, code, names, values)])
            words[category >> np.uint64(6)] ^= np.uint64(1) << (category & np.uint64(63))
