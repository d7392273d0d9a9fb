"""Search for the best split of a node: its features are sampled, and the best split of each is compared.

Ties: the feature sampled first wins, within it a split with the missing values on the right, and then the lowest bin.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device
from aucforest.tree.binning import BinValues, bin_of, midway
from aucforest.tree.categories import OrderBuffers
from aucforest.tree.criteria import (
    CUSTOM_CRITERION,
    ROUNDING,
    CustomCriterion,
    ScoreBuffers,
    gain_by_definition,
    is_optimal,
    start_scores,
    sum_of,
)
from aucforest.tree.features import NUMERIC, FeatureBuffers, order_bins, put_back, sample_features, sample_split
from aucforest.tree.histogram import (
    PAIR_SAMPLES,
    HistogramBuffers,
    clear,
    count_samples,
    next_bin,
    number_more_classes,
    number_two_classes,
    sum_left,
)
from aucforest.tree.random import SPLIT, derive_key
from aucforest.tree.random_split import sample_random_split, score_more_classes, score_two_classes
from aucforest.tree.samples import Columns, add_code, has_code
from aucforest.tree.scan import (
    Constraint,
    Splits,
    find_admissible,
    has_minimum_sizes,
    scan_more_classes,
    scan_two_classes,
)
from aucforest.tree.sparse import is_sparse
from aucforest.tree.tree import SET_WORDS


class TreeParams(NamedTuple):
    """The parameters of growing a tree: those of estimators, resolved, and properties of the features."""

    criterion: int
    random_splits: bool  # whether one split of every feature is sampled instead of searching all
    max_features: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # in units of weight
    min_gain: float
    max_leaf_nodes: int  # 0 if there is no limit
    signs: NDArray[np.int8]  # (n_features,) monotonic constraints; empty if there are none
    kinds: NDArray[np.int8]  # (n_features,)
    values: BinValues
    is_sampled: bool  # whether bins were computed from a sample of the rows, so that values may be outside all bins


class Node(NamedTuple):
    """A node that is to be split."""

    columns: Columns
    samples: NDArray[np.uint64]
    labels: NDArray[np.int32]  # (n,) the classes of the samples, at least two
    totals: NDArray[np.int64]  # (n,) their class totals
    weight: np.int64  # the sum of these
    key: np.uint64  # determines all random numbers of the node
    low: float  # limits of the frequency of the second class
    high: float


class Split(NamedTuple):
    """A split, or none if `feature` is -1."""

    feature: int | np.int64
    code: int | np.int64  # the last code on the left, in the order of the bins
    next_code: int | np.int64  # the first code on the right; -1 if only missing values go right
    missing_left: bool  # whether missing values go left; if the node has none, they go to the child with more weight
    sampled: float  # the threshold that the random splitter sampled
    gain: float
    left: NDArray[np.int64]  # (n_present,) left totals of the classes that are present in the node
    codes_left: NDArray[np.uint64]  # (4,) the codes of the node on each side; only for splits by sets
    codes_right: NDArray[np.uint64]


class SplitBuffers(NamedTuple):
    """Buffers for the search."""

    histogram: HistogramBuffers
    order: OrderBuffers
    score: ScoreBuffers
    custom: CustomCriterion
    features: FeatureBuffers
    sums: NDArray[np.int64]  # (2, n_codes) weights of two classes on the left of each split
    left: NDArray[np.int64]  # (n_classes,)
    codes_left: NDArray[np.uint64]  # (4,)
    codes_right: NDArray[np.uint64]

    @classmethod
    def of(cls, n_features: int, n_codes: int, n_classes: int, table: NDArray[np.float64]) -> "SplitBuffers":
        """Allocate the buffers for up to n_codes codes, including missing."""
        return cls(
            HistogramBuffers.of(n_codes, n_classes),
            OrderBuffers.of(n_classes),
            ScoreBuffers.of(n_classes, table),
            CustomCriterion.of(n_classes),
            FeatureBuffers.of(n_features),
            np.empty((2, n_codes), dtype=np.int64),
            np.empty(n_classes, dtype=np.int64),
            *np.empty((2, SET_WORDS), dtype=np.uint64),
        )


class _Forms(NamedTuple):
    """The parts of a search that are other functions for two classes than for more.

    The two searches are compiled apart, which makes each faster: compilers prepare all loops of a search before it
    starts, also those of the other one.
    """

    number: Callable[..., Any]
    scan: Callable[..., Any]
    score: Callable[..., Any]


@bare_device
def _is_known_optimal(criterion, left, classes):
    """Return whether a split is optimal for all class totals since no class is on both sides; False if not known."""
    for k in range(classes.n):
        if left[k] != 0 and left[k] != classes.totals[k]:
            return False
    return is_optimal(criterion, left, classes.totals)


@bare_device
def _is_half(weight, classes):
    """Return whether a weight is at least half of that of the node, up to rounding errors."""
    return 2.0 * weight >= (1.0 - ROUNDING) * classes.weight


@bare_device
def _store_split(histogram, index, missing_left, by_set, classes, buffers):
    """Store the left totals and the sets of a split; return the first code on the right and where missing values go."""
    sum_left(histogram, index, missing_left, buffers.left)
    if not histogram.has_missing:
        missing_left = _is_half(sum_of(buffers.left[: classes.n]), classes)
    if by_set:
        buffers.codes_left[:] = buffers.codes_right[:] = 0
        for t in range(histogram.n_bins):
            add_code(buffers.codes_left if t <= index else buffers.codes_right, np.uint64(histogram.codes[t]))
    after = next_bin(histogram, index)
    return np.int64(histogram.codes[after]) if after < histogram.n_bins else np.int64(-1), missing_left


@bare_device
def _replace(best, feature, code, next_code, missing_left, sampled, gain):
    """Return another split, which is stored in the arrays of `best`."""
    left, codes_left, codes_right = best.left, best.codes_left, best.codes_right
    return Split(feature, code, next_code, missing_left, sampled, gain, left, codes_left, codes_right)


@bare_device
def _needs_no_histogram(node, classes, params):
    """Return whether random splits of numeric features of a small node are found without a histogram."""
    # Of more than two classes, scores are equal up to `ROUNDING` only if sums of weights are exact.
    is_exact = classes.n == 2 or len(node.columns.weights) == 0
    return params.random_splits and is_exact and len(params.signs) == 0 and not is_sparse(node.columns)


@bare_device
def _random_split(forms, node, feature, classes, best, params, buffers):
    """Return whether the random split of a feature is found without a histogram, and the best split after it."""
    left = buffers.score.left[: classes.n]
    key = derive_key(node.key, SPLIT, feature)
    split = sample_random_split(node, feature, classes, key, params.values, left)
    if split.code < 0:
        return False, best
    weight = sum_of(left)
    if min(split.n_left, len(node.samples) - split.n_left) < params.min_samples_leaf:
        return True, best
    if min(weight, classes.weight - weight) < params.min_weight_leaf:
        return True, best
    gain = forms.score(params.criterion, left, classes.totals, best.gain, buffers.score)
    if gain <= best.gain:
        return True, best
    for k in range(classes.n):
        best.left[k] = left[k]
    missing_left = _is_half(weight, classes)
    return True, _replace(best, feature, split.code, split.next_code, missing_left, split.threshold, gain)


@bare_device
def _search_feature(forms, node, features, t, classes, best, params, buffers):
    """Return the best split of features[t] if it is better than `best`, else `best`."""
    feature, is_constrained, with_samples = np.int64(features[t]), len(params.signs) > 0, has_minimum_sizes(params)
    kind, only, sampled = params.kinds[feature], np.int64(-1), 0.0
    compact = kind != NUMERIC or params.random_splits or with_samples or params.criterion == CUSTOM_CRITERION
    histogram = count_samples(node, features, t, classes, compact, with_samples, buffers.histogram)
    if params.random_splits:
        key, names, values = derive_key(node.key, SPLIT, feature), node.columns.names, params.values
        only, sampled = sample_split(kind, histogram, classes, feature, names, values, key, buffers.order)
    else:
        order_bins(kind, params.criterion, histogram, classes, buffers.order)
    sign = params.signs[feature] if is_constrained else 0
    constraint = Constraint(is_constrained, sign, node.low, node.high)
    for side in range(2 if histogram.has_missing else 1):
        first, stop = find_admissible(histogram, classes, side == 1, len(node.samples), params)
        if only >= 0:
            first, stop = max(first, only), min(stop, only + 1)
        splits = Splits(histogram, classes, first, stop, side == 1, constraint)
        gain, index = forms.scan(params.criterion, splits, best.gain, buffers)
        if index >= 0:
            next_code, missing_left = _store_split(histogram, index, side == 1, kind != NUMERIC, classes, buffers)
            code = np.int64(histogram.codes[index])
            best = _replace(best, feature, code, next_code, missing_left, sampled, gain)
    clear(histogram)
    return best


@bare_device
def _find_split(forms, node, params, buffers):
    """Find the best split with the functions of `forms`."""
    classes = forms.number(node.labels, node.totals, node.weight, buffers.histogram.indices)
    start_scores(params.criterion, classes, buffers)
    left, right, none = buffers.left[: classes.n], buffers.score.right[: classes.n], np.int64(-1)
    codes_left, codes_right = buffers.codes_left, buffers.codes_right
    best = Split(none, none, none, False, 0.0, 0.0, left, codes_left, codes_right)
    # Larger nodes count the next feature already, so all of theirs are sampled first.
    may_stop = len(node.samples) < PAIR_SAMPLES and params.criterion != CUSTOM_CRITERION
    without_histogram = may_stop and _needs_no_histogram(node, classes, params)
    n_sampled, n_tried = 0, 0
    for t in range(params.max_features):
        n_wanted = t + 1 if may_stop else params.max_features
        n_sampled, n_tried = sample_features(node, n_wanted, n_sampled, n_tried, buffers.features)
        if t == n_tried:
            break
        features, is_found = buffers.features.tried[:n_tried], False
        feature = np.int64(features[t])
        if without_histogram and params.kinds[feature] == NUMERIC:
            is_found, best = _random_split(forms, node, feature, classes, best, params, buffers)
        if not is_found:
            best = _search_feature(forms, node, features, t, classes, best, params, buffers)
        if may_stop and best.feature == feature and _is_known_optimal(params.criterion, left, classes):
            break
    put_back(n_sampled, buffers.features)
    if best.feature < 0 or params.criterion == CUSTOM_CRITERION:
        return best
    for k in range(classes.n):
        right[k] = classes.totals[k] - left[k]
    gain = gain_by_definition(params.criterion, left, right)
    return _replace(best, best.feature, best.code, best.next_code, best.missing_left, best.sampled, gain)


def _find_with(forms: _Forms) -> Callable[..., Any]:
    """Return the search for the best split of a node with two classes or with more."""
    return bare_device(lambda node, params, buffers: _find_split(forms, node, params, buffers))


find_two_class_split = _find_with(_Forms(number_two_classes, scan_two_classes, score_two_classes))
_find_more_class_split = _find_with(_Forms(number_more_classes, scan_more_classes, score_more_classes))


@bare_device
def find_split(node, params, buffers):
    """Return the best split of a node, with the gain of the definition; the next search overwrites its arrays."""
    if len(node.labels) == 2:
        return find_two_class_split(node, params, buffers)
    return _find_more_class_split(node, params, buffers)


@bare_device
def threshold_of(split, names, params):
    """Return the threshold of a numeric split, less than the values on the right, or +inf if only NaN is there."""
    if split.next_code < 0:
        return np.inf
    values, feature = params.values, split.feature
    at, next_at = bin_of(feature, split.code, names, values), bin_of(feature, split.next_code, names, values)
    low, high = values.upper[at], values.lower[next_at]
    if params.random_splits and params.is_sampled:
        # A value between two bins has the code of the bin on its side of the edge.
        lowest = midway(low, values.lower[at + 1])
        return min(max(split.sampled, lowest), midway(values.upper[next_at - 1], high))
    return split.sampled if params.random_splits and low <= split.sampled < high else midway(low, high)


@bare_device
def write_set(split, names, values, words):
    """Write the categories that go left, given the codes, which number bins or are renumbered in a local copy."""
    # Codes that do not occur in the node follow the missing values; those on the other side are flipped.
    flipped = split.codes_right if split.missing_left else split.codes_left
    words[:] = ~np.uint64(0) if split.missing_left else np.uint64(0)
    for code in range(64 * SET_WORDS):
        if has_code(flipped, code):
            category = np.uint64(values.lower[bin_of(split.feature, code, names, values)])
            words[category >> np.uint64(6)] ^= np.uint64(1) << (category & np.uint64(63))
