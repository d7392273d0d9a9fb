"""The histogram of a feature in a node: the class totals of the bins that contain samples of the node.

The weights of samples are summed in cells. In a node of two classes, both share the cell of a code, and each has
half of its bits, if the weight of the node is not too large. In other nodes, class k of a code has the cell
(code << shift) + k. With more than two classes, the cells of positive weight are listed. They are called entries.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, lowest_bit, outlined_device
from aucforest.tree.samples import add_code, label_of, packed_weight, row_of, weight_of, with_codes
from aucforest.tree.sparse import find_codes, is_sparse

SORT_SAMPLES = 8  # up to this number of samples, sorting their cells takes less time than marking them in a bit mask
JOINT_SAMPLES = 64  # from this number of samples on, the cells of two features are filled at once, which saves time
# If the weight of a node is below this limit, two classes share a cell, and the second class has the upper half.
_SHARED_LIMIT = 2**31
_HALF = 32
_LOWER_HALF = np.int64(2**_HALF - 1)


class Classes(NamedTuple):
    """The classes that are present in a node; they have the indices 0, 1, ... in its histograms."""

    n: int
    shift: np.uint64  # number of low bits of a cell index that are the class index; 0 if classes share cells
    last: np.uint64  # the greatest class
    weight: np.int64  # the weight of the node
    indices: NDArray[np.int32]  # (n_classes,) class -> index; undefined for classes that are not in the node
    labels: NDArray[np.int32]  # (n,) index -> class
    totals: NDArray[np.int64]  # (n,) the class totals of the node


class Histogram(NamedTuple):
    """The histogram of a feature: the bins in the order in which they are split, and missing values separately.

    With two classes, bins may be empty, but the last bin is not. With more classes, no bin is empty, and bin i has the
    cells entries[starts[i] : starts[i + 1]].
    """

    functions: Any  # the functions that read this histogram, see `splitter.SearchFunctions`
    codes: NDArray[np.uint32]
    n_samples: NDArray[np.int64]  # of each bin; only set if leaves have a minimum size
    first: int | np.int64  # all bins before this one are empty
    n_bins: int | np.int64
    has_missing: bool | np.bool_
    missing: NDArray[np.int64]  # (n_classes,) class totals
    n_missing: int | np.int64  # number of samples with a missing value; only set if `n_samples` is
    cells: NDArray[np.int64]
    shift: np.uint64  # as in `Classes`
    n_listed: int | np.int64  # number of listed codes (-1 if none are listed) or, for more classes, of entries
    starts: NDArray[np.int64]  # only set for more than two classes, like `entries`
    entries: NDArray[np.uint32]


class HistogramBuffers(NamedTuple):
    """Buffers for counting. `cells`, `n_samples_of_code` and `mask` are all zero between histograms."""

    cells: NDArray[np.int64]  # (2, n_cells), as in `Histogram`; the second row is for a second feature
    n_samples_of_code: NDArray[np.int64]  # (n_codes,)
    mask: NDArray[np.uint64]  # (ceil(n_cells / 64),)
    codes: NDArray[np.uint32]  # (n_codes,), this and the next three as in `Histogram`
    starts: NDArray[np.int64]
    entries: NDArray[np.uint32]
    n_samples: NDArray[np.int64]
    all_codes: NDArray[np.uint32]  # (n_codes,) 0, 1, 2, ...
    missing: NDArray[np.int64]
    indices: NDArray[np.int32]  # (n_classes,) as in `Classes`

    @classmethod
    def of(cls, n_codes: int, n_classes: int) -> "HistogramBuffers":
        """Allocate the buffers for features of up to n_codes codes, including that of missing values."""
        n_cells = n_codes << max(1, (n_classes - 1).bit_length())
        if n_cells > 2**32:
            raise ValueError(f"{n_codes} bins with {n_classes} classes are too many: set max_bins to 255 or less")
        return cls(
            cells=np.zeros((2, n_cells), dtype=np.int64),
            n_samples_of_code=np.zeros(n_codes, dtype=np.int64),
            mask=np.zeros((n_cells + 63) // 64, dtype=np.uint64),
            # One item more: `starts` has the end of the last bin, and a code is written before it is known to be kept.
            codes=np.empty(n_codes + 1, dtype=np.uint32),
            starts=np.empty(n_codes + 1, dtype=np.int64),
            entries=np.empty(n_cells + 1, dtype=np.uint32),
            n_samples=np.empty(n_codes, dtype=np.int64),
            all_codes=np.arange(n_codes, dtype=np.uint32),
            missing=np.empty(n_classes, dtype=np.int64),
            indices=np.empty(n_classes, dtype=np.int32),
        )


@bare_device
def index_two_classes(labels, totals, weight, indices):
    """Return the `Classes` of a node with two classes, given their totals and the weight of the node."""
    indices[labels[0]], indices[labels[1]] = 0, 1
    shift = np.uint64(0) if weight < _SHARED_LIMIT else np.uint64(1)
    # The slices have a known length, so the compiler can unroll loops over the classes.
    return Classes(2, shift, np.uint64(labels[1]), weight, indices, labels[:2], totals[:2])


@bare_device
def index_more_classes(labels, totals, weight, indices):
    """Return the `Classes` of a node with more than two classes."""
    n, shift = len(labels), np.uint64(0)
    while (1 << shift) < n:
        shift += np.uint64(1)
    for k in range(n):
        indices[labels[k]] = k
    return Classes(n, shift, np.uint64(labels[n - 1]), weight, indices, labels, totals)


@bare_device
def has_minimum_sizes(params):
    """Return whether leaves have a minimum size, so that a split must check the sizes of its children."""
    return params.min_samples_leaf > 1 or params.min_weight_leaf > 0


@bare_device
def list_bits(mask, n_bits, listed):
    """Write the positions of the set bits in ascending order, clear the bits and return their number."""
    n_listed = np.uint64(0)
    for word in range(np.uint64((n_bits + 63) // 64)):
        bits = mask[word]
        mask[word] = np.uint64(0)
        while bits != np.uint64(0):
            listed[n_listed] = (np.uint64(word) << np.uint64(6)) + lowest_bit(bits)
            n_listed += np.uint64(1)
            bits &= bits - np.uint64(1)
    return np.int64(n_listed)


@bare_device
def _add_to_cells(cells, code, index, weight, shift):
    if shift == 0:
        cells[code] += weight << (index * _HALF)
    else:
        cells[(code << shift) + np.uint64(index)] += weight


@bare_device
def _key_of(code, sample, classes):
    """Return the key by which a sample is listed: its code for two classes, its cell for more classes."""
    return code if classes.n == 2 else (code << classes.shift) + np.uint64(classes.indices[label_of(sample)])


@bare_device
def _sort_keys(codes, read_code, feature, search, listed):
    """Write the distinct keys of a few samples in ascending order and return their number."""
    samples, n_listed = search.node.samples, np.int64(0)
    for i in range(len(samples)):
        key, index = _key_of(read_code(codes, (feature, row_of(samples[i]))), samples[i], search.classes), n_listed
        while index > 0 and listed[index - 1] > key:
            listed[index] = listed[index - 1]
            index -= 1
        if index == 0 or listed[index - 1] < key:
            listed[index] = key
            n_listed += 1
        else:
            # The key is already listed, so the keys that were shifted for it move back.
            for t in range(index, n_listed):
                listed[t] = listed[t + 1]
    return n_listed


@bare_device
def _fill(codes, read_code, feature, search, marks, cells):
    """Add the weight of each sample to its cell, and mark its key if `marks`."""
    samples, weights, classes = search.node.samples, search.node.columns.weights, search.classes
    mask = search.buffers.histogram.mask
    if len(weights) > 0 or classes.shift == 1:
        for i in range(len(samples)):
            code, k = read_code(codes, (feature, row_of(samples[i]))), np.int64(classes.indices[label_of(samples[i])])
            _add_to_cells(cells, code, k, weight_of(samples[i], weights), classes.shift)
            if marks:
                add_code(mask, _key_of(code, samples[i], classes))
    elif classes.shift == 0:  # this loop and the next one are for packed weights, and are faster
        for i in range(len(samples)):
            code, k = read_code(codes, (feature, row_of(samples[i]))), np.int64(label_of(samples[i]) == classes.last)
            cells[code] += packed_weight(samples[i]) << (k * _HALF)
            if marks:
                add_code(mask, code)
    else:
        for i in range(len(samples)):
            cell = read_code(codes, (feature, row_of(samples[i]))) << classes.shift
            cell += np.uint64(classes.indices[label_of(samples[i])])
            cells[cell] += packed_weight(samples[i])
            if marks:
                add_code(mask, cell)


@bare_device
def _fill_two_features(codes, read_code, features, search):
    """Fill the cells of two features, for two classes that share cells; each sample is read once for both features."""
    samples, buffers, last = search.node.samples, search.buffers.histogram, search.classes.last
    cells, next_cells, feature, next_feature = buffers.cells[0], buffers.cells[1], features[0], features[1]
    for i in range(len(samples)):
        sample = samples[i]
        row = row_of(sample)
        weight = packed_weight(sample) << (np.int64(label_of(sample) == last) * _HALF)
        cells[read_code(codes, (np.uint64(feature), row))] += weight
        next_cells[read_code(codes, (np.uint64(next_feature), row))] += weight


@bare_device
def _count_samples(codes, read_code, feature, search):
    samples, n_samples_of_code = search.node.samples, search.buffers.histogram.n_samples_of_code
    for i in range(len(samples)):
        n_samples_of_code[read_code(codes, (feature, row_of(samples[i])))] += 1


@outlined_device
def _count_sparse(columns, samples, feature, classes, with_samples, buffers):
    """Count sparse codes; return the number of listed keys.

    First, all samples are counted at the code of zero. Then those with another code are moved to it.
    """
    n_found, zero = find_codes(columns, feature), np.uint64(columns.sparse.zeros[feature])
    n_codes, cells, mask, is_pair = columns.n_bins[feature] + 1, buffers.cells[0], buffers.mask, classes.n == 2
    for k in range(classes.n):
        _add_to_cells(cells, zero, np.int64(k), classes.totals[k], classes.shift)
    for i in range(n_found):
        sample, code = columns.node.found[i], np.uint64(columns.node.found_codes[i])
        index, weight = np.int64(classes.indices[label_of(sample)]), weight_of(sample, columns.weights)
        _add_to_cells(cells, zero, index, -weight, classes.shift)
        _add_to_cells(cells, code, index, weight, classes.shift)
        add_code(mask, code if is_pair else (code << classes.shift) + np.uint64(index))
        buffers.n_samples_of_code[code] += with_samples
    buffers.n_samples_of_code[zero] += (len(samples) - n_found) * with_samples
    if is_pair:
        if n_found < len(samples):
            add_code(mask, zero)
        return list_bits(mask, n_codes, buffers.codes)
    for k in range(classes.n):
        cell = (zero << classes.shift) + np.uint64(k)
        if cells[cell] > 0:
            add_code(mask, cell)
    return list_bits(mask, n_codes << np.int64(classes.shift), buffers.entries)


@bare_device
def _count_stored(search, feature):
    node, with_samples = search.node, has_minimum_sizes(search.params)
    return _count_sparse(node.columns, node.samples, feature, search.classes, with_samples, search.buffers.histogram)


@bare_device
def _move_counts(codes, n_bins, buffers):
    """Move the number of samples at each code to the bins."""
    for i in range(n_bins):
        buffers.n_samples[i] = buffers.n_samples_of_code[codes[i]]
        buffers.n_samples_of_code[codes[i]] = 0


@bare_device
def _weights_at(cells, code, shift):
    if shift == 0:
        return cells[code] & _LOWER_HALF, cells[code] >> _HALF
    return cells[code << np.uint64(1)], cells[(code << np.uint64(1)) + np.uint64(1)]


@bare_device
def _is_filled(cells, code, shift):
    """Return whether one of two classes has weight at a code."""
    return (cells[code << shift] | cells[(code << shift) + shift]) > 0


@bare_device
def two_class_weights(histogram, i):
    """Return the weights of two classes in a bin."""
    return _weights_at(histogram.cells, np.uint64(histogram.codes[i]), histogram.shift)


@bare_device
def add_bin_of_two_classes(histogram, i, totals):
    """Add the weights of two classes in a bin to `totals`."""
    first, second = two_class_weights(histogram, i)
    totals[0] += first
    totals[1] += second


@bare_device
def bin_weight_of_two_classes(histogram, i):
    """Return the weight of two classes in a bin."""
    first, second = two_class_weights(histogram, i)
    return first + second


@bare_device
def clear_two_classes(histogram):
    """Set the cells of two classes to zero."""
    n, cells, shift = histogram.n_listed, histogram.cells, histogram.shift
    # Clearing one listed cell costs as much as clearing several consecutive cells.
    if n < 0 or len(cells) <= 3 * n:
        cells[:] = 0
    else:
        for i in range(np.uint64(n)):
            cell = np.uint64(histogram.codes[i]) << shift
            cells[cell] = cells[cell + shift] = 0


@bare_device
def keep_entries(histogram, buffers):
    """Do nothing: bins of two classes have no entries."""


@bare_device
def _make_two_class_histogram(n_listed, feature, search, cells):
    """Return the histogram of two classes from the listed codes, or from all codes if n_listed is -1."""
    buffers, shift, n_codes = search.buffers.histogram, search.classes.shift, search.node.columns.n_bins[feature] + 1
    codes, missing = buffers.all_codes if n_listed < 0 else buffers.codes, buffers.missing
    n_bins, first = n_codes if n_listed < 0 else n_listed, np.int64(0)
    if has_minimum_sizes(search.params):
        _move_counts(codes, n_bins, buffers)
    missing[0], missing[1] = _weights_at(cells, np.uint64(n_codes - 1), shift)
    has_missing = missing[0] + missing[1] > 0
    n_bins -= np.int64(has_missing or n_listed < 0)
    n_missing = buffers.n_samples[n_bins] if has_missing else np.int64(0)
    if n_listed < 0:
        while n_bins > 0 and not _is_filled(cells, np.uint64(n_bins - 1), shift):
            n_bins -= 1
        while first < n_bins and not _is_filled(cells, np.uint64(first), shift):
            first += 1
    return Histogram(
        search.functions, codes, buffers.n_samples, first, n_bins, has_missing, missing, n_missing,
        cells[: n_codes << np.int64(shift)], shift, n_listed, buffers.starts, buffers.entries,
    )  # fmt: skip


@bare_device
def _count_dense_two_classes(codes, read_code, search, features, t, compact):
    """Count two classes if codes are not sparse; return the number of listed codes (-1 for all codes) and the cells."""
    columns, n, buffers = search.node.columns, len(search.node.samples), search.buffers.histogram
    feature, n_codes = np.uint64(features[t]), columns.n_bins[features[t]] + 1
    # If there are few codes, their bit mask is short. Then marking codes takes less time than sorting samples.
    sorts = n <= SORT_SAMPLES and n_codes > 64 * n
    marks = not sorts and n_codes > 2 * n
    # If `paired`, the cells of features t and t + 1 are filled at once if t is even.
    paired = search.classes.shift == 0 and len(columns.weights) == 0 and n >= JOINT_SAMPLES
    cells = buffers.cells[t & 1 if paired else 0]
    if paired and t & 1 == 0 and t + 1 < len(features):
        _fill_two_features(codes, read_code, features[t:], search)
    elif not paired or t & 1 == 0:
        _fill(codes, read_code, feature, search, marks and not paired, cells)
    if marks and paired:
        for i in range(n):
            add_code(buffers.mask, read_code(codes, (feature, row_of(search.node.samples[i]))))
    n_listed = np.int64(-1)
    if sorts:
        n_listed = _sort_keys(codes, read_code, feature, search, buffers.codes)
    elif marks:
        n_listed = list_bits(buffers.mask, n_codes, buffers.codes)
    elif compact:
        n_filled = np.uint64(0)
        for code in range(np.uint64(n_codes)):
            buffers.codes[n_filled] = code
            n_filled += np.uint64(_is_filled(cells, code, search.classes.shift))
        n_listed = np.int64(n_filled)
    if has_minimum_sizes(search.params):
        _count_samples(codes, read_code, feature, search)
    return n_listed, cells


@bare_device
def count_two_classes(search, features, t, compact):
    """Count the histogram of features[t] for two classes; it must be called for t = 0, 1, ... in this order.

    If `compact`, no bin is empty. Each histogram must be cleared before the next call.
    """
    columns, feature = search.node.columns, np.int64(features[t])
    cells = search.buffers.histogram.cells[0]
    if is_sparse(columns):
        n_listed = _count_stored(search, feature)
    else:
        n_listed, cells = with_codes(_count_dense_two_classes, columns.codes, search, features, t, compact)
    return _make_two_class_histogram(n_listed, feature, search, cells)


@bare_device
def read_entry(histogram, entry):
    """Return the class and the weight of an entry."""
    cell = np.uint64(histogram.entries[entry])
    return cell & ((np.uint64(1) << histogram.shift) - np.uint64(1)), histogram.cells[cell]


@bare_device
def add_bin_of_more_classes(histogram, i, totals):
    """Add the class totals of a bin to `totals`."""
    for entry in range(histogram.starts[i], histogram.starts[i + 1]):
        k, weight = read_entry(histogram, entry)
        totals[k] += weight


@bare_device
def bin_weight_of_more_classes(histogram, i):
    """Return the weight of all classes in a bin."""
    weight = np.int64(0)
    for entry in range(histogram.starts[i], histogram.starts[i + 1]):
        weight += histogram.cells[histogram.entries[entry]]
    return weight


@bare_device
def clear_more_classes(histogram):
    """Set the cells of more than two classes to zero."""
    n, cells = histogram.n_listed, histogram.cells
    if len(cells) <= 8 * n:
        cells[:] = 0
    else:
        for i in range(np.uint64(n)):
            cells[np.uint64(histogram.entries[i])] = 0


@bare_device
def sort_entries(histogram, buffers):
    """Move the entries to the new order of their bins, which is in `categories.OrderBuffers`."""
    n_entries = 0
    for rank in range(histogram.n_bins):
        i = buffers.order[rank]
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            buffers.entries[n_entries] = histogram.entries[entry]
            n_entries += 1
        buffers.ends[rank] = n_entries
    for i in range(histogram.n_bins):
        histogram.starts[i + 1] = buffers.ends[i]
    for entry in range(n_entries):
        histogram.entries[entry] = buffers.entries[entry]


@bare_device
def _make_histogram(n_entries, feature, search, cells):
    """Divide the entries into bins, and return the histogram."""
    buffers, n, shift = search.buffers.histogram, search.classes.n, search.classes.shift
    codes, starts, entries, missing = buffers.codes, buffers.starts, buffers.entries, buffers.missing
    n_codes, n_filled, last = search.node.columns.n_bins[feature] + 1, np.uint64(0), np.uint64(0)
    starts[0] = 0
    for t in range(np.uint64(n_entries)):
        code = np.uint64(entries[t]) >> shift
        n_filled += np.uint64((t == np.uint64(0)) | (code != last))
        # Each entry overwrites the end of its bin, which takes less time than an unpredictable branch.
        codes[n_filled - np.uint64(1)], starts[n_filled] = code, t + np.uint64(1)
        last = code
    n_bins = np.int64(n_filled)
    if has_minimum_sizes(search.params):
        _move_counts(codes, n_bins, buffers)
    has_missing = n_bins > 0 and np.int64(codes[n_bins - 1]) == n_codes - 1
    n_bins -= np.int64(has_missing)
    for k in range(n):
        missing[k] = cells[(np.uint64(n_codes - 1) << shift) + np.uint64(k)] if has_missing else 0
    n_missing = buffers.n_samples[n_bins] if has_missing else np.int64(0)
    return Histogram(
        search.functions, codes, buffers.n_samples, np.int64(0), n_bins, has_missing, missing, n_missing,
        cells[: n_codes << np.int64(shift)], shift, n_entries, starts, entries,
    )  # fmt: skip


@bare_device
def _count_dense_more_classes(codes, read_code, feature, search):
    """Count more than two classes if codes are not sparse; return the number of listed cells."""
    n, buffers = len(search.node.samples), search.buffers.histogram
    cells, n_cells = buffers.cells[0], (search.node.columns.n_bins[feature] + 1) << np.int64(search.classes.shift)
    sorts = n <= SORT_SAMPLES
    marks = not sorts and n_cells > 4 * n
    _fill(codes, read_code, feature, search, marks, cells)
    if has_minimum_sizes(search.params):
        _count_samples(codes, read_code, feature, search)
    if sorts:
        return _sort_keys(codes, read_code, feature, search, buffers.entries)
    if marks:
        return list_bits(buffers.mask, n_cells, buffers.entries)
    n_entries = np.uint64(0)
    for cell in range(np.uint64(n_cells)):
        buffers.entries[n_entries] = cell
        n_entries += np.uint64(cells[cell] > 0)
    return np.int64(n_entries)


@bare_device
def count_more_classes(search, features, t, compact):
    """Count the histogram of features[t] like `count_two_classes`, but for more classes and without empty bins."""
    columns, feature = search.node.columns, np.int64(features[t])
    if is_sparse(columns):
        n_entries = _count_stored(search, feature)
    else:
        n_entries = with_codes(_count_dense_more_classes, columns.codes, np.uint64(feature), search)
    return _make_histogram(n_entries, feature, search, search.buffers.histogram.cells[0])


@bare_device
def sum_left(histogram, index, missing_left, left):
    """Write the class totals on the left of the split after the bin `index`; -1 is the split before all bins."""
    for k in range(len(left)):
        left[k] = histogram.missing[k] if missing_left else 0
    for i in range(index + 1):
        histogram.functions.add_bin(histogram, i, left)


@bare_device
def next_bin(histogram, index):
    """Return the index of the first nonempty bin after the bin `index`, or n_bins if there is none."""
    next_index = index + 1
    while next_index < histogram.n_bins and histogram.functions.bin_weight(histogram, next_index) == 0:
        next_index += 1
    return next_index
