"""Sparse codes in a node: which samples have a stored code of a feature; all other samples have the code of zero.

A node with few stored codes lists the codes of each feature. A feature without listed codes is constant. In larger
nodes, it takes less time to read the columns of the sampled features and to look up the node of each row in `node_of`.
Below a node that lists its codes, `node_of` is not updated, because all descendants list their codes, too.
"""

import numpy as np

from aucforest._compile import bare_device, outlined_device
from aucforest.tree.samples import code_at, row_of

# Listing a code takes about as long as looking up _LIST_COST rows. Up to _LEAST_LISTED codes are always listed.
_LIST_COST = 2
_LEAST_LISTED = 64


def most_listed(n_stored: int, n_features: int, max_features: int) -> int:
    """Return the maximum number of stored codes that a node lists."""
    return min(n_stored, 2**31 - 1, max(_LEAST_LISTED, max_features * n_stored // (_LIST_COST * n_features)))


@bare_device
def is_sparse(columns):
    """Return whether the codes of `Columns` are sparse."""
    return len(columns.sparse.row_starts) > 0


@bare_device
def _is_listed(node):
    """Return whether the stored codes of a node are listed; if not, rows are looked up in `node_of`."""
    return node.n_codes[0] >= 0


@outlined_device
def enter_node(columns, samples, node_index):
    """Replace the listed codes of the previous node by those of a node, or by none if there are too many."""
    sparse, node = columns.sparse, columns.node
    if node_index == 0:
        node.node_of[:] = -1
        for i in range(len(samples)):
            node.node_of[row_of(samples[i])], node.sample_of[row_of(samples[i])] = 0, samples[i]
    for i in range(node.n_codes[0]):
        node.n_listed[node.feature[i]] = 0
    node.number[0], node.n_codes[0], n_codes = node_index, -1, np.int64(0)
    for i in range(len(samples)):
        row = np.int64(row_of(samples[i]))
        n_codes += sparse.row_starts[row + 1] - sparse.row_starts[row]
        if n_codes > len(node.previous):
            return
    node.n_codes[0], index = n_codes, np.uint64(0)
    for i in range(len(samples)):
        row = np.int64(row_of(samples[i]))
        for stored in range(np.uint64(sparse.row_starts[row]), np.uint64(sparse.row_starts[row + 1])):
            feature = np.uint64(sparse.features[stored])
            node.previous[index], node.last[feature] = node.last[feature], index
            node.feature[index], node.code[index] = feature, code_at(sparse.row_codes, stored)
            node.sample[index] = samples[i]
            node.n_listed[feature] += 1
            index += np.uint64(1)


@outlined_device
def find_codes(columns, feature):
    """Write the samples of the node that have a stored code of a feature, and their codes; return their number."""
    sparse, node, n_found = columns.sparse, columns.node, np.uint64(0)
    if _is_listed(node):
        index = np.uint64(node.last[feature])
        while n_found < np.uint64(node.n_listed[feature]):
            node.found[n_found], node.found_codes[n_found] = node.sample[index], node.code[index]
            index = np.uint64(node.previous[index])
            n_found += np.uint64(1)
        return np.int64(n_found)
    node_index = np.int32(node.number[0])
    for stored in range(np.uint64(sparse.column_starts[feature]), np.uint64(sparse.column_starts[feature + 1])):
        # Every sample is written, and overwritten if it is not in the node. This avoids an unpredictable branch.
        row = np.uint64(sparse.rows[stored])
        node.found[n_found], node.found_codes[n_found] = node.sample_of[row], code_at(sparse.column_codes, stored)
        n_found += np.uint64(node.node_of[row] == node_index)
    return np.int64(n_found)


@outlined_device
def _compare_codes(columns, feature, samples):
    """Return whether all samples have the same code of a feature, by reading its stored codes."""
    sparse, node = columns.sparse, columns.node
    start, stop = sparse.column_starts[feature], sparse.column_starts[feature + 1]
    if not _is_listed(node) and stop - start < len(samples):
        # At least one sample has the code of zero, so the codes differ if any sample has a stored code.
        for index in range(start, stop):
            if node.node_of[sparse.rows[index]] == node.number[0]:
                return False
        return True
    n_found = find_codes(columns, feature)
    for i in range(1, n_found):
        if node.found_codes[i] != node.found_codes[0]:
            return False
    return n_found == 0 or n_found == len(samples)


@bare_device
def has_one_code(columns, feature, samples):
    """Return whether a feature is constant: all samples have the same code, which may be the code of zero."""
    n_listed = np.int64(columns.node.n_listed[feature])
    if _is_listed(columns.node) and n_listed < len(samples):
        return n_listed == 0
    return _compare_codes(columns, np.int64(feature), samples)


@outlined_device
def partition_sparse(columns, split, left_child, samples, spill, also_left):
    """Partition samples like `samples.partition`, for a split by a threshold.

    `left_child` is the index of the left child.
    """
    node, zero = columns.node, columns.sparse.zeros[split.feature]
    n_found = find_codes(columns, split.feature)
    zero_left = zero <= split.code or zero == also_left
    for i in range(n_found):
        code = np.int64(node.found_codes[i])
        node.is_other[row_of(node.found[i])] = (code <= split.code or code == also_left) != zero_left
    looks_up, n_left, n_right, side = not _is_listed(node), np.uint64(0), np.uint64(0), np.uint64(zero_left)
    for i in range(len(samples)):
        sample = samples[i]
        row = row_of(sample)
        is_left = side ^ np.uint64(node.is_other[row])
        samples[n_left] = sample
        spill[n_right] = sample
        n_left += is_left
        n_right += np.uint64(1) - is_left
        if looks_up:
            node.node_of[row] = np.uint64(left_child + 1) - is_left
    for i in range(n_right):
        samples[n_left + i] = spill[i]
    for i in range(n_found):
        node.is_other[row_of(node.found[i])] = 0
    return np.int64(n_left)
