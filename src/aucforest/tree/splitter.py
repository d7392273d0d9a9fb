"""Search for the best split of a node: features are sampled, and their best splits are compared.

In a tie, the feature that was sampled first wins, then the split with missing values on the right, then the lowest bin.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, replacing
from aucforest.tree.binning import bin_of, midway
from aucforest.tree.categories import OrderBuffers, score_bins_of_more_classes, score_bins_of_two_classes
from aucforest.tree.criteria.criterion import CUSTOM_CRITERION, ROUNDING, ScoreBuffers, sum_of
from aucforest.tree.criteria.custom import CustomCriterion
from aucforest.tree.criteria.table import gain_by_definition, is_optimal, prepare_scores
from aucforest.tree.features import NUMERIC, FeatureBuffers, order_bins, put_back, sample_features, sample_split
from aucforest.tree.histogram import (
    JOINT_SAMPLES,
    Classes,
    HistogramBuffers,
    add_bin_of_more_classes,
    add_bin_of_two_classes,
    bin_weight_of_more_classes,
    bin_weight_of_two_classes,
    clear_more_classes,
    clear_two_classes,
    count_more_classes,
    count_two_classes,
    has_minimum_sizes,
    index_more_classes,
    index_two_classes,
    keep_entries,
    next_bin,
    sort_entries,
    sum_left,
)
from aucforest.tree.random import SPLIT, derive_key
from aucforest.tree.random_split import sample_random_split, score_more_classes, score_two_classes
from aucforest.tree.samples import Columns, add_code, has_code
from aucforest.tree.scan import Constraint, Splits, find_admissible, scan_more_classes, scan_two_classes
from aucforest.tree.sparse import is_sparse
from aucforest.tree.tree import SET_WORDS


class TreeParams(NamedTuple):
    """The parameters of an estimator that determine how a tree is grown, as numbers."""

    criterion: int
    random_splits: bool  # whether one split of every feature is sampled, instead of searching all splits
    max_features: int
    max_depth: int
    min_samples_split: int
    min_samples_leaf: int
    min_weight_leaf: int  # in units of weight
    min_gain: float
    max_leaf_nodes: int  # 0 if there is no limit
    signs: NDArray[np.int8]  # (n_features,) monotonic constraints, -1, 0 or 1; empty if there are none


class Node(NamedTuple):
    """A node that is to be split."""

    columns: Columns
    samples: NDArray[np.uint64]
    labels: NDArray[np.int32]  # (n,) the classes of the samples, at least two
    totals: NDArray[np.int64]  # (n,) their class totals
    weight: np.int64  # the sum of the class totals
    key: np.uint64  # determines all random numbers of the node
    low: float  # limits of the frequency of the second class
    high: float


class Split(NamedTuple):
    """A split, or none if `feature` is -1."""

    feature: int | np.int64
    code: int | np.int64  # the last code on the left, in the order of the bins
    next_code: int | np.int64  # the first code on the right; -1 if only missing values go right
    missing_left: bool  # whether missing values go left; if the node has none, they go to the child with more weight
    threshold: float  # sampled by the random splitter; 0 if all splits were searched
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
            np.empty(n_classes, dtype=np.int64),
            *np.empty((2, SET_WORDS), dtype=np.uint64),
        )


class SearchFunctions(NamedTuple):
    """The functions of a search that differ between two classes and more.

    The two searches are compiled separately, because a compiled function prepares all its loops when it starts, also
    those that it does not run.
    """

    index_classes: Callable[..., Any]
    count: Callable[..., Any]
    add_bin: Callable[..., Any]
    bin_weight: Callable[..., Any]
    score_bins: Callable[..., Any]
    sort_entries: Callable[..., Any]
    clear: Callable[..., Any]
    scan: Callable[..., Any]
    score: Callable[..., Any]


class Search(NamedTuple):
    """The search for the best split of a node."""

    functions: SearchFunctions
    node: Node
    classes: Classes
    params: TreeParams
    buffers: SplitBuffers


@bare_device
def _is_known_optimal(criterion, left, classes):
    """Return whether a split divides no class, and is known to be the best of all splits of the class totals."""
    for k in range(classes.n):
        if left[k] != 0 and left[k] != classes.totals[k]:
            return False
    return is_optimal(criterion, left, classes.totals)


@bare_device
def _is_half(weight, classes):
    """Return whether a weight is at least half of the node weight, up to rounding errors."""
    return 2.0 * weight >= (1.0 - ROUNDING) * classes.weight


@bare_device
def _store_split(search, histogram, index, missing_left, by_set):
    """Store the left totals and sets of a split; return its `next_code` and `missing_left`."""
    classes, buffers = search.classes, search.buffers
    left = buffers.left[: classes.n]
    sum_left(histogram, index, missing_left, left)
    if not histogram.has_missing:
        missing_left = _is_half(sum_of(left), classes)
    if by_set:
        buffers.codes_left[:] = buffers.codes_right[:] = 0
        for t in range(histogram.n_bins):
            add_code(buffers.codes_left if t <= index else buffers.codes_right, np.uint64(histogram.codes[t]))
    right = next_bin(histogram, index)
    return np.int64(histogram.codes[right]) if right < histogram.n_bins else np.int64(-1), missing_left


_replace = replacing(Split, "feature", "code", "next_code", "missing_left", "threshold", "gain")
_with_gain = replacing(Split, "gain")


@bare_device
def _needs_no_histogram(search):
    """Return whether a small node computes random splits of numeric features without a histogram."""
    params, columns = search.params, search.node.columns
    # For more classes, scores agree with those of a histogram up to `ROUNDING` only if sums of weights are exact.
    is_exact = search.classes.n == 2 or len(columns.weights) == 0
    return params.random_splits and is_exact and len(params.signs) == 0 and not is_sparse(columns)


@bare_device
def _random_split(search, feature, best):
    """Try a feature's random split without a histogram; return whether this was possible, and the best split so far."""
    classes, params, score = search.classes, search.params, search.buffers.score
    key = derive_key(search.node.key, SPLIT, feature)
    code, next_code, n_left, threshold = sample_random_split(search, feature, key)
    if code < 0:
        return False, best
    left = score.left[: classes.n]
    weight = sum_of(left)
    if min(n_left, len(search.node.samples) - n_left) < params.min_samples_leaf:
        return True, best
    if min(weight, classes.weight - weight) < params.min_weight_leaf:
        return True, best
    gain = search.functions.score(params.criterion, left, classes.totals, best.gain, score)
    if gain <= best.gain:
        return True, best
    for k in range(classes.n):
        best.left[k] = left[k]
    missing_left = _is_half(weight, classes)
    return True, _replace(best, feature, code, next_code, missing_left, threshold, gain)


@bare_device
def _search_feature(search, features, t, best):
    """Return the better one of `best` and the best split of features[t]; `best` wins a tie."""
    node, params, buffers = search.node, search.params, search.buffers
    feature, is_constrained = np.int64(features[t]), len(params.signs) > 0
    kind, only_index, threshold = node.columns.kinds[feature], np.int64(-1), 0.0
    is_plain_scan = kind == NUMERIC and not params.random_splits and params.criterion != CUSTOM_CRITERION
    compact = not is_plain_scan or has_minimum_sizes(params)  # only plain scans allow empty bins
    histogram = search.functions.count(search, features, t, compact)
    if params.random_splits:
        key = derive_key(node.key, SPLIT, feature)
        only_index, threshold = sample_split(kind, histogram, feature, node.columns.bins, key, buffers.order)
    else:
        order_bins(kind, params.criterion, histogram, search.classes, buffers.order)
    constraint = Constraint(is_constrained, params.signs[feature] if is_constrained else 0, node.low, node.high)
    for side in range(2 if histogram.has_missing else 1):  # on side 1, missing values go left
        first, stop = find_admissible(histogram, search.classes, side == 1, len(node.samples), params)
        if only_index >= 0:
            first, stop = max(first, only_index), min(stop, only_index + 1)
        splits = Splits(histogram, search.classes, first, stop, side == 1, constraint)
        gain, index = search.functions.scan(params.criterion, splits, best.gain, buffers)
        if index >= 0:
            next_code, missing_left = _store_split(search, histogram, index, side == 1, kind != NUMERIC)
            code = np.int64(histogram.codes[index])
            best = _replace(best, feature, code, next_code, missing_left, threshold, gain)
    search.functions.clear(histogram)
    return best


@bare_device
def _find_split(functions, node, params, buffers):
    classes = functions.index_classes(node.labels, node.totals, node.weight, buffers.histogram.indices)
    prepare_scores(params.criterion, classes, buffers)
    search, none = Search(functions, node, classes, params, buffers), np.int64(-1)
    left, right = buffers.left[: classes.n], buffers.score.right[: classes.n]
    best = Split(none, none, none, False, 0.0, 0.0, left, buffers.codes_left, buffers.codes_right)
    # A small node samples one feature at a time, and stops at a split that is known to be optimal. A larger node counts
    # the histograms of two features at once if possible, so it samples all features first.
    may_stop = len(node.samples) < JOINT_SAMPLES and params.criterion != CUSTOM_CRITERION
    without_histogram = may_stop and _needs_no_histogram(search)
    n_sampled, n_candidates = 0, 0
    for t in range(params.max_features):
        n_wanted = t + 1 if may_stop else params.max_features
        n_sampled, n_candidates = sample_features(node, n_wanted, n_sampled, n_candidates, buffers.features)
        if t == n_candidates:
            break
        features, is_done = buffers.features.candidates[:n_candidates], False
        feature = np.int64(features[t])
        if without_histogram and node.columns.kinds[feature] == NUMERIC:
            is_done, best = _random_split(search, feature, best)
        if not is_done:
            best = _search_feature(search, features, t, best)
        if may_stop and best.feature == feature and _is_known_optimal(params.criterion, left, classes):
            break
    put_back(n_sampled, buffers.features)
    if best.feature < 0 or params.criterion == CUSTOM_CRITERION:
        return best
    for k in range(classes.n):
        right[k] = classes.totals[k] - left[k]
    return _with_gain(best, gain_by_definition(params.criterion, left, right))


TWO_CLASSES = SearchFunctions(
    index_two_classes,
    count_two_classes,
    add_bin_of_two_classes,
    bin_weight_of_two_classes,
    score_bins_of_two_classes,
    keep_entries,
    clear_two_classes,
    scan_two_classes,
    score_two_classes,
)
MORE_CLASSES = SearchFunctions(
    index_more_classes,
    count_more_classes,
    add_bin_of_more_classes,
    bin_weight_of_more_classes,
    score_bins_of_more_classes,
    sort_entries,
    clear_more_classes,
    scan_more_classes,
    score_more_classes,
)


@bare_device
def find_two_class_split(node, params, buffers):
    """Return the best split of a node with two classes, as `find_split` does."""
    return _find_split(TWO_CLASSES, node, params, buffers)


@bare_device
def find_split(node, params, buffers):
    """Return the best split of a node, with `Criterion.gain` as its gain; the next search overwrites its arrays."""
    if len(node.labels) == 2:
        return find_two_class_split(node, params, buffers)
    return _find_split(MORE_CLASSES, node, params, buffers)


@bare_device
def threshold_of(split, columns, random_splits):
    """Return the threshold of a numeric split: less than all values on the right, or +inf if only NaN goes right."""
    if split.next_code < 0:
        return np.inf
    values, feature = columns.bins.values, split.feature
    index, next_index = bin_of(columns.bins, feature, split.code), bin_of(columns.bins, feature, split.next_code)
    low, high = values.upper[index], values.lower[next_index]
    if random_splits and columns.is_sampled:
        # Rows outside the sample may have values between two bins, and the edge decides their code. So the threshold is
        # at least the upper edge of the left bin, and at most the lower edge of the right bin.
        lowest = midway(low, values.lower[index + 1])
        return min(max(split.threshold, lowest), midway(values.upper[next_index - 1], high))
    return split.threshold if random_splits and low <= split.threshold < high else midway(low, high)


@bare_device
def write_set(split, bins, words):
    """Write the set of categories that go left. The codes of the split are bins or, in a copied branch, ranks."""
    # First, all categories go to the side of missing values. Then the bits of those on the other side are flipped.
    flipped = split.codes_right if split.missing_left else split.codes_left
    words[:] = ~np.uint64(0) if split.missing_left else np.uint64(0)
    for code in range(64 * SET_WORDS):
        if has_code(flipped, code):
            category = np.uint64(bins.values.lower[bin_of(bins, split.feature, code)])
            words[category >> np.uint64(6)] ^= np.uint64(1) << (category & np.uint64(63))
