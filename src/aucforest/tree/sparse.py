"""Sparse codes: which samples of a node have a stored code of a feature. All others have the code of zero.

A node whose samples have few stored codes links these by feature, so that each feature is known to be constant or not
before it is sampled. In a larger node there are fewer in the columns of the features that are searched, and their rows
are looked up among the samples.
"""

import numpy as np

from aucforest._compile import bare_device, outlined_device
from aucforest.tree.samples import row_of

# Linking a code takes about as long as looking up so many rows.
_LINK_COST = 2
_LEAST_LINKED = 64


def most_linked(n_stored: int, n_features: int, max_features: int) -> int:
    """Return the maximum number of stored codes that a node links."""
    return min(n_stored, max(_LEAST_LINKED, max_features * n_stored // (_LINK_COST * n_features)))


@bare_device
def is_sparse(columns):
    """Return whether the codes of `Columns` are sparse."""
    return len(columns.sparse.row_starts) > 0


@outlined_device
def enter_node(columns, samples):
    """Link the stored codes of the samples of a node, or note their places; what was linked before is forgotten."""
    sparse, node = columns.sparse, columns.node
    for i in range(node.n_all[0]):
        node.n_linked[node.feature[i]] = 0
    n_all, capacity = np.int64(0), len(node.before)
    for i in range(len(samples)):
        row = np.int64(row_of(samples[i]))
        n_all += sparse.row_starts[row + 1] - sparse.row_starts[row]
        if n_all > capacity:
            break
    if n_all > capacity:
        node.n_all[0] = -1
        for i in range(len(samples)):
            node.place_of[row_of(samples[i])] = i
        return
    node.n_all[0], n_all = n_all, 0
    for i in range(len(samples)):
        row = np.int64(row_of(samples[i]))
        for at in range(sparse.row_starts[row], sparse.row_starts[row + 1]):
            feature = np.int64(sparse.features[at])
            node.before[n_all], node.last[feature] = node.last[feature], n_all
            node.feature[n_all], node.place[n_all], node.code[n_all] = feature, i, sparse.row_codes[at]
            node.n_linked[feature] += 1
            n_all += 1


@bare_device
def _find_place(node, samples, row):
    """Return the place of a row among the samples of the node, or -1: what is noted may be of another node."""
    place = np.int64(node.place_of[row])
    return place if place < len(samples) and np.int64(row_of(samples[place])) == np.int64(row) else np.int64(-1)


@outlined_device
def find_codes(columns, feature, samples):
    """Write the places and the codes of the samples with a stored code of a feature, and return their number."""
    sparse, node, n_found = columns.sparse, columns.node, np.int64(0)
    if node.n_all[0] >= 0:
        at = np.int64(node.last[feature])
        while n_found < node.n_linked[feature]:
            node.found[n_found], node.found_codes[n_found] = node.place[at], node.code[at]
            at = np.int64(node.before[at])
            n_found += 1
        return n_found
    for at in range(sparse.column_starts[feature], sparse.column_starts[feature + 1]):
        place = _find_place(node, samples, np.int64(sparse.rows[at]))
        if place >= 0:
            node.found[n_found], node.found_codes[n_found] = place, sparse.column_codes[at]
            n_found += 1
    return n_found


@outlined_device
def _compare_codes(columns, feature, samples):
    """Return whether all samples have the same code of a feature."""
    sparse, node = columns.sparse, columns.node
    start, stop = sparse.column_starts[feature], sparse.column_starts[feature + 1]
    if node.n_all[0] < 0 and stop - start < len(samples):
        # Some sample has a zero, so one that has none is enough.
        for at in range(start, stop):
            if _find_place(node, samples, np.int64(sparse.rows[at])) >= 0:
                return False
        return True
    n_found = find_codes(columns, feature, samples)
    for i in range(1, n_found):
        if node.found_codes[i] != node.found_codes[0]:
            return False
    return n_found == 0 or n_found == len(samples)


@bare_device
def has_one_code(columns, feature, samples):
    """Return whether all samples have the same code of a feature."""
    n_linked = np.int64(columns.node.n_linked[feature])
    if columns.node.n_all[0] >= 0 and n_linked < len(samples):
        return n_linked == 0
    return _compare_codes(columns, np.int64(feature), samples)


@outlined_device
def partition_sparse(columns, feature, code, samples, spill, also_left):
    """Do what `samples.partition` does for the samples with at most a code, or with the code `also_left`."""
    node, zero, n_found = columns.node, columns.sparse.zeros[feature], find_codes(columns, feature, samples)
    for i in range(len(samples)):
        node.is_left[i] = zero <= code or zero == also_left
    for i in range(n_found):
        found = np.int64(node.found_codes[i])
        node.is_left[node.found[i]] = found <= code or found == also_left
    n_left, n_right = np.uint64(0), np.uint64(0)
    for i in range(len(samples)):
        sample, is_left = samples[i], np.uint64(node.is_left[i])
        samples[n_left] = sample
        spill[n_right] = sample
        n_left += is_left
        n_right += np.uint64(1) - is_left
    for i in range(n_right):
        samples[n_left + i] = spill[i]
    return np.int64(n_left)
