"""What growing a tree over parts of its rows asks of one part: histograms of nodes, and the rows of nodes.

No row remembers its node: whenever rows are needed, they go from the root down the part of the tree that there is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.growing import partition
from aucforest.tree.histogram import label_of, row_of, weight_of

# Weights of a cell in the low bits, its rows in the high ones: one addition for both.
_ONE_ROW = np.uint64(1) << np.uint64(32)
_WEIGHT = _ONE_ROW - np.uint64(1)
# Up to here an addition more for every row costs less than emptying the cells.
_DIRECT_ROWS = 512


class PartColumns(NamedTuple):
    """The codes of a part: those of feature f are flat[f * stride : f * stride + n_rows].

    So a part that is cut from a matrix looks to compiled code like one that stands alone.
    """

    flat: NDArray[np.unsignedinteger]
    stride: int
    n_rows: int

    @classmethod
    def of(cls, codes: NDArray[np.unsignedinteger]) -> "PartColumns":
        """Look at a matrix of codes, (n_features, n_rows > 0), of contiguous rows; copy one that is read-only."""
        if not codes.flags.writeable or codes.strides[1] != codes.itemsize:
            # To compiled code a read-only array is of another type.
            codes = codes.copy()
        n_features, n_rows = codes.shape
        stride = codes.strides[0] // codes.itemsize
        shape = ((n_features - 1) * stride + n_rows,)
        return cls(np.lib.stride_tricks.as_strided(codes, shape, (codes.itemsize,)), stride, n_rows)


class Route(NamedTuple):
    """The top of a tree, by codes; -1 for the feature of a node without children, which stand side by side.

    Where features are cut by sets, `codes_left`, (n_nodes, 4), has the codes that go left; elsewhere it is empty.
    """

    feature: NDArray[np.int32]
    code: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    codes_left: NDArray[np.uint64]


@bare_device
def _span(columns, feature):
    """Return where the codes of a feature start and end."""
    start = columns.stride * np.int64(feature)
    return start, start + columns.n_rows


@bare_kernel
def route_rows(columns, n_bins, by_set, route, is_wanted, elements, spill, starts, ends):
    """Arrange the rows of a tree by node.

    Parameters
    ----------
    columns : PartColumns
    n_bins : ndarray of shape (n_features,), int64
    by_set : ndarray of shape (n_features,), bool
    route : Route
    is_wanted : ndarray of shape (n_nodes,), bool
        The nodes whose rows are asked for; on return those above them, too.
    elements, spill : ndarray of shape (n_rows,), uint64
        The rows of the tree in rising order, and a buffer; in every node the order stays.
    starts, ends : ndarray of shape (n_nodes,), int64
        On return elements[starts[node] : ends[node]] are the rows of every node that is wanted.
    """
    for node in range(len(route.feature) - 1, -1, -1):
        if route.feature[node] >= 0:
            left_child = route.left_child[node]
            is_wanted[node] |= is_wanted[left_child] | is_wanted[left_child + 1]
    starts[0], ends[0] = 0, len(elements)
    for node in range(len(route.feature)):
        feature, left_child = route.feature[node], route.left_child[node]
        if feature < 0 or not (is_wanted[left_child] | is_wanted[left_child + 1]):
            continue
        start, end = _span(columns, feature)
        rows, column = elements[starts[node] : ends[node]], columns.flat[start:end]
        code = route.code[node]
        if len(route.codes_left) > 0 and by_set[feature]:
            also_left = n_bins[feature] if route.missing_left[node] else -1
            n_left = partition(column, rows, spill, code, also_left, route.codes_left[node])
        else:
            also_left = n_bins[feature] if route.missing_left[node] else code
            n_left = partition(column, rows, spill, code, also_left, None)
        middle = starts[node] + n_left
        starts[left_child], ends[left_child] = starts[node], middle
        starts[left_child + 1], ends[left_child + 1] = middle, ends[node]


@bare_device
def _fill_directly(column, elements, weights, n_classes, histogram):
    """Add weights and rows to a histogram."""
    width = np.uint64(n_classes + 1)
    for i in range(len(elements)):
        row = row_of(elements[i])
        cell = np.uint64(column[row]) * width
        histogram[cell + label_of(elements[i])] += weights[row] if len(weights) > 0 else weight_of(elements[i])
        histogram[cell + width - np.uint64(1)] += 1


@bare_device
def _fill_in_cells(column, elements, n_codes, n_classes, shift, cells, histogram):
    """Do the same by way of cells that hold both, for weights that lie in the elements."""
    for i in range(len(elements)):
        element = elements[i]
        cell = (np.uint64(column[row_of(element)]) << shift) + label_of(element)
        cells[cell] += np.uint64(weight_of(element)) + _ONE_ROW
    at = 0
    for code in range(n_codes):
        n_rows = np.uint64(0)
        for k in range(n_classes):
            cell = (np.uint64(code) << shift) + np.uint64(k)
            histogram[at + k] = np.int64(cells[cell] & _WEIGHT)
            n_rows += cells[cell] >> np.uint64(32)
            cells[cell] = np.uint64(0)
        histogram[at + n_classes] = np.int64(n_rows)
        at += n_classes + 1


@bare_kernel
def fill_histograms(columns, n_bins, weights, elements, starts, ends, nodes, features, n_classes, cells, histograms):
    """Fill the histograms of some features of some nodes.

    Parameters
    ----------
    columns : PartColumns
    n_bins : ndarray of shape (n_features,), int64
    weights : ndarray of shape (n_rows,), int64
        Empty when the elements hold the weights.
    elements : ndarray of uint64
    starts, ends : ndarray of int64
        Where the rows of a node lie among the elements.
    nodes, features : ndarray of shape (n_histograms,), int64
    n_classes : int
    cells : ndarray of uint64
        Zero before and after: (max n_codes times n_classes, rounded up to a power of two). Empty where the weights of
        a cell may be 2**32 or more.
    histograms : ndarray of int64
        Zero before, one histogram after the other: (n_bins[feature] + 1, n_classes + 1), the weight of every class at
        every code and, last, the number of rows.
    """
    shift, at = np.uint64(0), 0
    while (1 << shift) < n_classes:
        shift += np.uint64(1)
    for i in range(len(nodes)):
        start, end = _span(columns, features[i])
        column, n_codes = columns.flat[start:end], n_bins[features[i]] + 1
        rows = elements[starts[nodes[i]] : ends[nodes[i]]]
        next_at = at + n_codes * (n_classes + 1)
        if len(weights) > 0 or len(cells) == 0 or len(rows) <= _DIRECT_ROWS:
            _fill_directly(column, rows, weights, n_classes, histograms[at:next_at])
        else:
            _fill_in_cells(column, rows, n_codes, n_classes, shift, cells, histograms[at:next_at])
        at = next_at


@bare_kernel
def copy_rows(columns, elements, codes):
    """Copy the codes of some rows, all features, to (n_features, n_rows)."""
    for feature in range(len(codes)):
        start, end = _span(columns, feature)
        column, copied = columns.flat[start:end], codes[feature]
        for i in range(len(elements)):
            copied[i] = column[row_of(elements[i])]
