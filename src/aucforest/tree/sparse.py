"""Sparse codes: which samples of a node have a stored code of a feature. All others have the code of zero.

A node whose samples have few stored codes links these by feature, so that each feature is known to be constant or not
before it is sampled. For a larger node there are fewer in the columns of the features that are searched, and their rows
are looked up: each row has the number of its node, as long as that is not one that links codes.
"""

import numpy as np

from aucforest._compile import bare_device, outlined_device
from aucforest.tree.samples import code_at, row_of

# Linking a code takes about as long as looking up so many rows. A small node may always link some codes.
_LINK_COST = 2
_LEAST_LINKED = 64


def most_linked(n_stored: int, n_features: int, max_features: int) -> int:
    """Return the maximum number of stored codes that a node links."""
    return min(n_stored, 2**31 - 1, max(_LEAST_LINKED, max_features * n_stored // (_LINK_COST * n_features)))


@bare_device
def is_sparse(columns):
    """Return whether the codes of `Columns` are sparse."""
    return len(columns.sparse.row_starts) > 0


@bare_device
def _start_tree(node, samples):
    """Note the samples of a tree by row."""
    node.node_of[:] = -1
    for i in range(len(samples)):
        row = row_of(samples[i])
        node.node_of[row], node.sample_of[row] = 0, samples[i]


@outlined_device
def enter_node(columns, samples, number):
    """Link the stored codes of the samples of a node, unless they are too many; earlier links are forgotten."""
    sparse, node = columns.sparse, columns.node
    if number == 0:
        _start_tree(node, samples)
    for i in range(node.state[1]):
        node.n_linked[node.feature[i]] = 0
    n_linked, capacity = np.int64(0), len(node.before)
    for i in range(len(samples)):
        row = np.int64(row_of(samples[i]))
        n_linked += sparse.row_starts[row + 1] - sparse.row_starts[row]
        if n_linked > capacity:
            node.state[0], node.state[1] = number, -1
            return
    node.state[0], node.state[1] = number, n_linked
    at = np.uint64(0)
    for i in range(len(samples)):
        row = np.int64(row_of(samples[i]))
        for stored in range(np.uint64(sparse.row_starts[row]), np.uint64(sparse.row_starts[row + 1])):
            feature = np.uint64(sparse.features[stored])
            node.before[at], node.last[feature] = node.last[feature], at
            node.feature[at], node.code[at], node.sample[at] = feature, code_at(sparse.row_codes, stored), samples[i]
            node.n_linked[feature] += 1
            at += np.uint64(1)


@outlined_device
def find_codes(columns, feature):
    """Write the samples of the node with a stored code of a feature, and the codes, and return their number."""
    sparse, node, n_found = columns.sparse, columns.node, np.uint64(0)
    if node.state[1] >= 0:
        at = np.uint64(node.last[feature])
        while n_found < np.uint64(node.n_linked[feature]):
            node.found[n_found], node.found_codes[n_found] = node.sample[at], node.code[at]
            at = np.uint64(node.before[at])
            n_found += np.uint64(1)
        return np.int64(n_found)
    number = np.int32(node.state[0])
    for stored in range(np.uint64(sparse.column_starts[feature]), np.uint64(sparse.column_starts[feature + 1])):
        # Each is written, and the next one is written over it unless it is in the node: a branch is unpredictable.
        row = np.uint64(sparse.rows[stored])
        node.found[n_found], node.found_codes[n_found] = node.sample_of[row], code_at(sparse.column_codes, stored)
        n_found += np.uint64(node.node_of[row] == number)
    return np.int64(n_found)


@outlined_device
def _compare_codes(columns, feature, samples):
    """Return whether all samples have the same code of a feature."""
    sparse, node = columns.sparse, columns.node
    start, stop = sparse.column_starts[feature], sparse.column_starts[feature + 1]
    if node.state[1] < 0 and stop - start < len(samples):
        # Some sample has a zero, so one that has none is enough.
        for at in range(start, stop):
            if node.node_of[sparse.rows[at]] == node.state[0]:
                return False
        return True
    n_found = find_codes(columns, feature)
    for i in range(1, n_found):
        if node.found_codes[i] != node.found_codes[0]:
            return False
    return n_found == 0 or n_found == len(samples)


@bare_device
def has_one_code(columns, feature, samples):
    """Return whether all samples have the same code of a feature."""
    n_linked = np.int64(columns.node.n_linked[feature])
    if columns.node.state[1] >= 0 and n_linked < len(samples):
        return n_linked == 0
    return _compare_codes(columns, np.int64(feature), samples)


@outlined_device
def partition_sparse(columns, split, left_child, samples, spill, also_left):
    """Do what `samples.partition` does for a split by a threshold; the left child has the number left_child."""
    node, zero = columns.node, columns.sparse.zeros[split.feature]
    n_found = find_codes(columns, split.feature)
    zero_left = zero <= split.code or zero == also_left
    for i in range(n_found):
        code = np.int64(node.found_codes[i])
        node.is_other[row_of(node.found[i])] = (code <= split.code or code == also_left) != zero_left
    looks_up, n_left, n_right, zeros = node.state[1] < 0, np.uint64(0), np.uint64(0), np.uint64(zero_left)
    for i in range(len(samples)):
        sample = samples[i]
        row = row_of(sample)
        is_left = zeros ^ np.uint64(node.is_other[row])
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
