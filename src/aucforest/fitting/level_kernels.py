"""Kernels for growing level by level: a part counts the samples of nodes, and splits are found by summed counts.

No row remembers its node: whenever samples are needed, they go from the root down the part of the tree that there is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.features import NUMERIC, sample_features
from aucforest.tree.growing import may_split, record_split, start_node
from aucforest.tree.histogram import add_to_cells, class_shift, list_filled, make_histogram
from aucforest.tree.random import derive_key
from aucforest.tree.samples import has_code, is_at_most, label_of, packed_weight, partition, row_of
from aucforest.tree.splitter import Node, find_split
from aucforest.tree.tree import LEAF, SET_WORDS, Nodes, make_nodes

# A cell has the weight in its low bits and the number of samples in its high bits, so that one addition counts both.
_ONE_SAMPLE = np.uint64(1) << np.uint64(32)
_WEIGHT = _ONE_SAMPLE - np.uint64(1)
# Up to this number of samples, separate additions cost less than clearing the cells.
_DIRECT_SAMPLES = 512
# Initial capacity of the top of a tree in nodes.
_ROOM = 4


class PartColumns(NamedTuple):
    """The codes of a part, with the same array type for a slice of a matrix as for a whole one."""

    flat: NDArray[np.unsignedinteger]  # the codes of feature f begin at f * stride
    stride: int

    @classmethod
    def of(cls, codes: NDArray[np.unsignedinteger]) -> "PartColumns":
        """Return a view of a matrix of codes, (n_features, n_rows > 0), or of a copy if it is read-only."""
        if not codes.flags.writeable or codes.strides[1] != codes.itemsize:
            # Kernels would be compiled again for read-only arrays.
            codes = codes.copy()
        n_features, n_rows = codes.shape
        stride = codes.strides[0] // codes.itemsize
        shape = ((n_features - 1) * stride + n_rows,)
        return cls(np.lib.stride_tricks.as_strided(codes, shape, (codes.itemsize,)), stride)


class Route(NamedTuple):
    """The top of a tree, with splits by codes."""

    feature: NDArray[np.int32]  # -1 for a leaf
    code: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    codes_left: NDArray[np.uint64]  # (n_nodes, 4), for splits of categorical features; empty if there are none


@bare_kernel
def route_samples(columns, n_bins, kinds, route, is_wanted, samples, spill, starts, ends):
    """Sort the samples of a tree by node; those of a wanted node, or of an ancestor, are at starts[node] to ends[node].

    They come in the order of their rows, and stay so in every node.
    """
    for node in range(len(route.feature) - 1, -1, -1):
        if route.feature[node] >= 0:
            left_child = route.left_child[node]
            is_wanted[node] |= is_wanted[left_child] | is_wanted[left_child + 1]
    starts[0], ends[0] = 0, len(samples)
    for node in range(len(route.feature)):
        feature, left_child, code = route.feature[node], route.left_child[node], route.code[node]
        if feature < 0 or not (is_wanted[left_child] | is_wanted[left_child + 1]):
            continue
        column, of_node = columns.flat[columns.stride * np.int64(feature) :], samples[starts[node] : ends[node]]
        also_left = n_bins[feature] if route.missing_left[node] else np.int64(-1)
        if kinds[feature] == NUMERIC:
            n_left = partition(is_at_most, code, column, of_node, spill, also_left)
        else:
            n_left = partition(has_code, route.codes_left[node], column, of_node, spill, also_left)
        middle = starts[node] + n_left
        starts[left_child], ends[left_child] = starts[node], middle
        starts[left_child + 1], ends[left_child + 1] = middle, ends[node]


@bare_device
def _fill_directly(column, samples, weights, n_classes, histogram):
    """Add weights and samples to a histogram."""
    width = np.uint64(n_classes + 1)
    for i in range(len(samples)):
        row, weight = row_of(samples[i]), packed_weight(samples[i])
        cell = np.uint64(column[row]) * width
        histogram[cell + label_of(samples[i])] += weight * weights[row] if len(weights) > 0 else weight
        histogram[cell + width - np.uint64(1)] += 1


@bare_device
def _fill_in_cells(column, samples, n_codes, n_classes, shift, cells, histogram):
    """Add weights and samples to cells that have both, if samples contain their weights."""
    for i in range(len(samples)):
        cell = (np.uint64(column[row_of(samples[i])]) << shift) + label_of(samples[i])
        cells[cell] += np.uint64(packed_weight(samples[i])) + _ONE_SAMPLE
    at = 0
    for code in range(n_codes):
        n_samples = np.uint64(0)
        for k in range(n_classes):
            cell = (np.uint64(code) << shift) + np.uint64(k)
            histogram[at + k] = np.int64(cells[cell] & _WEIGHT)
            n_samples += cells[cell] >> np.uint64(32)
            cells[cell] = np.uint64(0)
        histogram[at + n_classes] = np.int64(n_samples)
        at += n_classes + 1


@bare_kernel
def fill_histograms(columns, n_bins, weights, samples, starts, ends, nodes, features, n_classes, cells, histograms):
    """Write the histograms of features[i] in nodes[i] one after the other: the weight of each class at each code.

    Last at a code comes the number of samples. A sample weighs what its row does, or 1 where there are no weights, for
    each time that it is in the bootstrap sample. The cells are zero before and after; there are none where the weights
    of one may be 2**32 or more.
    """
    shift, at = class_shift(n_classes), 0
    for i in range(len(nodes)):
        column, n_codes = columns.flat[columns.stride * features[i] :], n_bins[features[i]] + 1
        of_node = samples[starts[nodes[i]] : ends[nodes[i]]]
        next_at = at + n_codes * (n_classes + 1)
        if len(weights) > 0 or len(cells) == 0 or len(of_node) <= _DIRECT_SAMPLES:
            _fill_directly(column, of_node, weights, n_classes, histograms[at:next_at])
        else:
            _fill_in_cells(column, of_node, n_codes, n_classes, shift, cells, histograms[at:next_at])
        at = next_at


@bare_kernel
def copy_samples(columns, samples, rows, counts, codes):
    """Write the rows of samples, their counts in the bootstrap sample, and their codes, (n_features, n)."""
    for i in range(len(samples)):
        rows[i], counts[i] = row_of(samples[i]), packed_weight(samples[i])
    for feature in range(len(codes)):
        column, copied = columns.flat[columns.stride * np.int64(feature) :], codes[feature]
        for i in range(len(samples)):
            copied[i] = column[row_of(samples[i])]


class Top(NamedTuple):
    """The growing top of a tree with capacity for more nodes; `codes_left` is as in `Route`."""

    nodes: Nodes
    code: NDArray[np.int64]
    codes_left: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    depth: NDArray[np.int64]


def make_top(key: int, n_classes: int, *, by_set: bool) -> Top:
    """Allocate the top of a tree with an empty root; by_set is whether any feature is split by sets."""
    nodes = make_nodes(_ROOM, n_classes, by_set=by_set)
    for column in nodes:
        column[:1] = 0
    nodes.feature[0] = nodes.left_child[0] = LEAF
    code, depth = np.zeros((2, _ROOM), dtype=np.int64)
    return Top(nodes, code, np.zeros_like(nodes.sets), np.full(_ROOM, key, dtype=np.uint64), depth)


def enlarge_top(top: Top) -> Top:
    """Return the top with twice the capacity."""
    return Top(Nodes._make(map(_double, top.nodes)), *map(_double, top[1:]))


def _double(column):
    return np.concatenate((column, np.empty_like(column)))


class SummedCounts(NamedTuple):
    """The source of the histograms of a node: counts that are summed over all parts."""

    counts: NDArray[np.int64]  # histograms of the features to search, one after the other, from `fill_histograms`
    starts: NDArray[np.int64]  # (n_tried,), the start of each histogram
    n_bins: NDArray[np.int64]
    totals: NDArray[np.int64]  # of the node


@bare_device
def _take_counts(source, features, t, classes, compact, with_samples, buffers):
    """Return the histogram of features[t] from counts, with the arguments of `histogram.count_samples`."""
    counts, totals, n_codes = source.counts, source.totals, source.n_bins[features[t]] + 1
    cells, at = buffers.cells[0], source.starts[t]
    for code in range(n_codes):
        for k in range(len(totals)):
            if counts[at + k] > 0:
                add_to_cells(cells, np.uint64(code), np.int64(classes.places[k]), counts[at + k], classes.shift)
        if with_samples:
            buffers.n_samples[code] = counts[at + len(totals)]
        at += len(totals) + 1
    n_listed = list_filled(n_codes, classes, cells, buffers)
    return make_histogram(n_listed, n_codes, classes, with_samples, cells, buffers)


@bare_device
def _count_left(source, features, split, is_numeric):
    """Return the number of samples that go left."""
    t, n_left = 0, np.int64(0)
    while features[t] != split.feature:
        t += 1
    at, missing_code = source.starts[t] + len(source.totals), source.n_bins[split.feature]
    for code in range(missing_code + 1):
        goes_left = is_at_most(split.code, code) if is_numeric else has_code(split.codes_left, code)
        if split.missing_left if code == missing_code else goes_left:
            n_left += source.counts[at]
        at += len(source.totals) + 1
    return n_left


@bare_device
def _is_known_constant(is_constant, feature):
    """Return whether a feature is known to be constant in a node."""
    return is_constant[feature]


@bare_kernel
def draw_known(key, is_constant, max_features, buffers):
    """Write the features to search, given which are known to be constant, to `buffers.tried`; return their number."""
    return sample_features(_is_known_constant, is_constant, key, max_features, buffers)


@bare_kernel
def split_node(source, features, names, params, top, node, left_child, buffers):
    """Split a node of the top by summed counts if the gain is large enough.

    The features are those to search in the order in which they were drawn, none of them constant. Return whether its
    left and its right child, with the number of the left one and the next, are worth a search.
    """
    nodes, key, depth = top.nodes, top.keys[node], top.depth[node]
    n_samples = nodes.n_samples[node]
    if not may_split(source.totals, n_samples, depth, params):
        return False, False
    about = Node(source.totals, n_samples, key, 0.0, 1.0, names)
    split = find_split(_take_counts, source, features, about, params, buffers)
    if split.gain <= 0.0 or split.gain < params.min_gain:
        return False, False
    record_split(split, nodes, node, left_child, names, params)
    top.code[node] = split.code
    is_numeric = params.kinds[split.feature] == NUMERIC
    if not is_numeric:
        for word in range(SET_WORDS):
            top.codes_left[node, word] = split.codes_left[word]
    n_left = _count_left(source, features, split, is_numeric)
    start_node(nodes, left_child, n_left)
    start_node(nodes, left_child + 1, n_samples - n_left)
    for side in range(2):
        top.keys[left_child + side], top.depth[left_child + side] = derive_key(key, side), depth + 1
    return (
        may_split(nodes.totals[left_child], n_left, depth + 1, params),
        may_split(nodes.totals[left_child + 1], n_samples - n_left, depth + 1, params),
    )
