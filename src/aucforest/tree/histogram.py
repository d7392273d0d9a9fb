"""The histogram of a feature in a node: the class totals of the bins that contain samples of the node."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, lowest_bit, outlined_device
from aucforest.tree.samples import add_code, label_of, packed_weight, row_of, weight_of, with_codes
from aucforest.tree.sparse import find_codes, is_sparse

# Up to this number of samples, sorting them costs less than marking their cells.
SORT_SAMPLES = 8
# From this number of samples on, filling the histograms of two features at once pays.
PAIR_SAMPLES = 64
# If the sum of the weights of two classes is below the limit, they share a cell, the second in the upper half.
_SHARED_LIMIT = 2**31
_HALF = 32
_LOWER_HALF = np.int64(2**_HALF - 1)


class Classes(NamedTuple):
    """The classes that are present in a node, which are numbered 0, 1, ... in its histograms."""

    n: int
    shift: np.uint64  # number of bits by which codes are shifted for the classes; 0 if two share a cell
    last: np.uint64  # the greatest label among them
    weight: np.int64  # of the node
    indices: NDArray[np.int32]  # (n_classes,) class -> number among the classes of the node; undefined for others
    labels: NDArray[np.int32]  # (n,) number among the classes of the node -> class
    totals: NDArray[np.int64]  # (n,) their weights in the node


class Histogram(NamedTuple):
    """The bins with samples of a node, in the order in which they are split, and the missing values separately.

    Weights are in the cells: that of class k at a code is cells[(code << shift) + k], or half of cells[code] if two
    classes share it. For more classes the positive cells are listed: entries[starts[i]] .. entries[starts[i + 1] - 1]
    are those of bin i. For two classes bins may be empty: all before `first`, and others, but not the last one.
    """

    n_listed: int | np.int64  # number of codes (two classes) or entries (more), including missing; -1 for all codes
    first: int | np.int64
    n_bins: int | np.int64
    n_classes: int
    shift: np.uint64  # as in `Classes`
    has_missing: bool
    missing_samples: int | np.int64  # only set if requested, like `samples`
    missing: NDArray[np.int64]  # (n_classes,) class totals
    codes: NDArray[np.uint32]
    starts: NDArray[np.int64]
    entries: NDArray[np.uint32]
    cells: NDArray[np.int64]
    samples: NDArray[np.int64]  # the number of samples in each bin


class HistogramBuffers(NamedTuple):
    """Buffers for counting. `cells`, `n_samples` and `mask` are all zero between histograms."""

    cells: NDArray[np.int64]  # (2, n_cells), as in `Histogram`; two features may be counted at once
    n_samples: NDArray[np.int64]  # (n_codes,)
    mask: NDArray[np.uint64]  # (ceil(n_cells / 64),)
    codes: NDArray[np.uint32]  # (n_codes,), this and the next three as in `Histogram`
    starts: NDArray[np.int64]
    entries: NDArray[np.uint32]
    samples: NDArray[np.int64]
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
            n_samples=np.zeros(n_codes, dtype=np.int64),
            mask=np.zeros((n_cells + 63) // 64, dtype=np.uint64),
            # One more, because a code is written before it is known whether it is listed.
            codes=np.empty(n_codes + 1, dtype=np.uint32),
            starts=np.empty(n_codes + 1, dtype=np.int64),
            entries=np.empty(n_cells + 1, dtype=np.uint32),
            samples=np.empty(n_codes, dtype=np.int64),
            all_codes=np.arange(n_codes, dtype=np.uint32),
            missing=np.empty(n_classes, dtype=np.int64),
            indices=np.empty(n_classes, dtype=np.int32),
        )


@bare_device
def class_shift(n):
    """Return the number of bits by which codes are shifted for n classes."""
    shift = np.uint64(0)
    while (1 << shift) < n:
        shift += np.uint64(1)
    return shift


@bare_device
def number_two_classes(labels, totals, weight, indices):
    """Number the classes of a node with two classes, given their totals and the sum of these."""
    indices[labels[0]], indices[labels[1]] = 0, 1
    shift = np.uint64(0) if weight < _SHARED_LIMIT else np.uint64(1)
    # Of these slices compilers know the length.
    return Classes(2, shift, np.uint64(labels[1]), weight, indices, labels[:2], totals[:2])


@bare_device
def number_more_classes(labels, totals, weight, indices):
    """Number the classes of a node with more classes."""
    n = len(labels)
    for k in range(n):
        indices[labels[k]] = k
    return Classes(n, class_shift(n), np.uint64(labels[n - 1]), weight, indices, labels, totals)


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
def add_to_cells(cells, code, index, weight, shift):
    """Add a weight to the cell of a class and a code."""
    if shift == 0:
        cells[code] += weight << (index * _HALF)
    else:
        cells[(code << shift) + np.uint64(index)] += weight


@bare_device
def _key_of(code, sample, classes):
    """Return what is listed for a sample: its code for two classes, its cell for more."""
    return code if classes.n == 2 else (code << classes.shift) + np.uint64(classes.indices[label_of(sample)])


@bare_device
def _fill(codes, read, feature, samples, weights, classes, marks, cells, mask):
    """Add the weight of every sample to its cell, and mark its key if `marks`; the first loop fits all cases."""
    if len(weights) > 0 or classes.shift == 1:
        for i in range(len(samples)):
            code, index = read(codes, (feature, row_of(samples[i]))), np.int64(classes.indices[label_of(samples[i])])
            add_to_cells(cells, code, index, weight_of(samples[i], weights), classes.shift)
            if marks:
                add_code(mask, _key_of(code, samples[i], classes))
    elif classes.shift == 0:
        for i in range(len(samples)):
            code, index = read(codes, (feature, row_of(samples[i]))), np.int64(label_of(samples[i]) == classes.last)
            cells[code] += packed_weight(samples[i]) << (index * _HALF)
            if marks:
                add_code(mask, code)
    else:
        for i in range(len(samples)):
            cell = read(codes, (feature, row_of(samples[i]))) << classes.shift
            cell += np.uint64(classes.indices[label_of(samples[i])])
            cells[cell] += packed_weight(samples[i])
            if marks:
                add_code(mask, cell)


@bare_device
def _fill_pair(codes, read, feature, next_feature, samples, classes, cells, next_cells):
    """Fill the cells of two features, for two classes that share cells; each sample is read once for both."""
    for i in range(len(samples)):
        sample = samples[i]
        row = row_of(sample)
        weight = packed_weight(sample) << (np.int64(label_of(sample) == classes.last) * _HALF)
        cells[read(codes, (feature, row))] += weight
        next_cells[read(codes, (next_feature, row))] += weight


@bare_device
def _sort_keys(codes, read, feature, samples, classes, listed):
    """Write the distinct keys of a few samples in ascending order and return their number."""
    n_listed = np.int64(0)
    for i in range(len(samples)):
        key, index = _key_of(read(codes, (feature, row_of(samples[i]))), samples[i], classes), n_listed
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
def _is_filled(cells, code, shift):
    """Return whether one of two classes has weight at a code."""
    return (cells[code << shift] | cells[(code << shift) + shift]) > 0


@bare_device
def list_filled(n_codes, classes, cells, buffers):
    """Write the nonempty codes (two classes) or cells (more classes) and return their number."""
    n_listed = np.uint64(0)
    if classes.n == 2:
        for code in range(np.uint64(n_codes)):
            buffers.codes[n_listed] = code
            n_listed += np.uint64(_is_filled(cells, code, classes.shift))
    else:
        for cell in range(np.uint64(n_codes) << classes.shift):
            buffers.entries[n_listed] = cell
            n_listed += np.uint64(cells[cell] > 0)
    return np.int64(n_listed)


@bare_device
def _divide(n_entries, shift, buffers):
    """Divide the entries into bins and return the number of bins."""
    n_bins, last = np.uint64(0), np.uint64(0)
    buffers.starts[0] = 0
    for t in range(np.uint64(n_entries)):
        code = np.uint64(buffers.entries[t]) >> shift
        n_bins += np.uint64((t == np.uint64(0)) | (code != last))
        # The end of a bin is written for each of its entries, which is cheaper than an unpredictable branch.
        buffers.codes[n_bins - np.uint64(1)], buffers.starts[n_bins] = code, t + np.uint64(1)
        last = code
    return np.int64(n_bins)


@bare_device
def _pair_at(cells, code, shift):
    """Return the weights of two classes at a code."""
    if shift == 0:
        return cells[code] & _LOWER_HALF, cells[code] >> _HALF
    return cells[code << np.uint64(1)], cells[(code << np.uint64(1)) + np.uint64(1)]


@bare_device
def weights_of_pair(histogram, i):
    """Return the weights of two classes in a bin."""
    return _pair_at(histogram.cells, np.uint64(histogram.codes[i]), histogram.shift)


@bare_device
def entry_of(histogram, entry):
    """Return the class and the weight of an entry."""
    cell = np.uint64(histogram.entries[entry])
    return cell & ((np.uint64(1) << histogram.shift) - np.uint64(1)), histogram.cells[cell]


@bare_device
def add_bin(histogram, i, totals):
    """Add the class totals of a bin to `totals`."""
    if histogram.n_classes == 2:
        first, second = weights_of_pair(histogram, i)
        totals[0] += first
        totals[1] += second
    else:
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            k, weight = entry_of(histogram, entry)
            totals[k] += weight


@bare_device
def weight_of_bin(histogram, i):
    """Return the weight of all classes in a bin."""
    if histogram.n_classes == 2:
        first, second = weights_of_pair(histogram, i)
        return first + second
    cell, weight = np.uint64(histogram.codes[i]) << histogram.shift, np.int64(0)
    for k in range(np.uint64(histogram.n_classes)):
        weight += histogram.cells[cell + k]
    return weight


@bare_device
def sum_left(histogram, index, missing_left, left):
    """Compute the class totals on the left of a split after the bin at `place`; -1 is before all bins."""
    for k in range(histogram.n_classes):
        left[k] = histogram.missing[k] if missing_left else 0
    for i in range(index + 1):
        add_bin(histogram, i, left)


@bare_device
def next_bin(histogram, index):
    """Return the first nonempty bin after `place`, or n_bins."""
    after = index + 1
    while histogram.n_classes == 2 and after < histogram.n_bins and weight_of_bin(histogram, after) == 0:
        after += 1
    return after


@bare_device
def make_histogram(n_listed, n_codes, classes, with_samples, cells, buffers):
    """Return the histogram of the codes or entries listed in the buffers, or of all codes if n_listed is -1."""
    codes, first = buffers.all_codes if n_listed < 0 else buffers.codes, np.int64(0)
    n_bins = n_codes if n_listed < 0 else n_listed
    if classes.n > 2:
        n_bins = _divide(n_listed, classes.shift, buffers)
    for i in range(n_bins if with_samples else 0):
        buffers.samples[i] = buffers.n_samples[codes[i]]
        buffers.n_samples[codes[i]] = 0
    has_missing = n_bins > 0 and np.int64(codes[n_bins - 1]) == n_codes - 1
    n_bins -= np.int64(has_missing)
    missing = buffers.missing
    if classes.n == 2:
        missing[0], missing[1] = _pair_at(cells, np.uint64(n_codes - 1), classes.shift)
        has_missing = missing[0] + missing[1] > 0
    else:
        for k in range(classes.n):
            missing[k] = cells[(np.uint64(n_codes - 1) << classes.shift) + np.uint64(k)] if has_missing else 0
    missing_samples = buffers.samples[n_bins] if has_missing else np.int64(0)
    if n_listed < 0:
        while n_bins > 0 and not _is_filled(cells, np.uint64(n_bins - 1), classes.shift):
            n_bins -= 1
        while first < n_bins and not _is_filled(cells, np.uint64(first), classes.shift):
            first += 1
    return Histogram(
        n_listed, first, n_bins, classes.n, classes.shift, has_missing, missing_samples, missing, codes,
        buffers.starts, buffers.entries, cells[: n_codes << np.int64(classes.shift)], buffers.samples,
    )  # fmt: skip


@bare_device
def clear(histogram):
    """Set the cells of a histogram that is no longer needed to zero."""
    n, cells, shift = histogram.n_listed, histogram.cells, histogram.shift
    # Clearing one listed cell costs as much as clearing several consecutive cells.
    if n < 0 or len(cells) <= (3 * n if histogram.n_classes == 2 else 8 * n):
        cells[:] = 0
    elif histogram.n_classes == 2:
        for i in range(np.uint64(n)):
            cell = np.uint64(histogram.codes[i]) << shift
            cells[cell] = cells[cell + shift] = 0
    else:
        for i in range(np.uint64(n)):
            cells[np.uint64(histogram.entries[i])] = 0


@outlined_device
def _count_stored(columns, samples, feature, classes, with_samples, buffers):
    """Do what `count_samples` does for sparse codes: all weight is first at the code of zero, and then moved."""
    n_found, zero = find_codes(columns, feature), np.uint64(columns.sparse.zeros[feature])
    n_codes, cells, mask, is_pair = columns.n_bins[feature] + 1, buffers.cells[0], buffers.mask, classes.n == 2
    for k in range(classes.n):
        add_to_cells(cells, zero, np.int64(k), classes.totals[k], classes.shift)
    for i in range(n_found):
        sample, code = columns.node.found[i], np.uint64(columns.node.found_codes[i])
        index, weight = np.int64(classes.indices[label_of(sample)]), weight_of(sample, columns.weights)
        add_to_cells(cells, zero, index, -weight, classes.shift)
        add_to_cells(cells, code, index, weight, classes.shift)
        add_code(mask, code if is_pair else (code << classes.shift) + np.uint64(index))
        buffers.n_samples[code] += with_samples
    buffers.n_samples[zero] += (len(samples) - n_found) * with_samples
    if is_pair and n_found < len(samples):
        add_code(mask, zero)
    for k in range(0 if is_pair else classes.n):
        cell = (zero << classes.shift) + np.uint64(k)
        if cells[cell] > 0:
            add_code(mask, cell)
    listed, n_keys = (buffers.codes, n_codes) if is_pair else (buffers.entries, n_codes << np.int64(classes.shift))
    return make_histogram(list_bits(mask, n_keys, listed), n_codes, classes, with_samples, cells, buffers)


@bare_device
def _count_dense(codes, read, node, features, t, classes, compact, with_samples, buffers):
    """Count the histogram of dense codes; return how many codes or entries are listed, as in `Histogram`, and cells."""
    samples, weights, n, is_pair = node.samples, node.columns.weights, len(node.samples), classes.n == 2
    feature, n_codes = np.uint64(features[t]), node.columns.n_bins[features[t]] + 1
    listed, n_keys = (buffers.codes, n_codes) if is_pair else (buffers.entries, n_codes << np.int64(classes.shift))
    # For two classes, marking codes costs little if there are few.
    sorts = n <= SORT_SAMPLES and not (is_pair and n_codes <= 64 * n)
    marks = not sorts and n_keys > (2 * n if is_pair else 4 * n)
    # Two features are counted at once.
    paired = classes.shift == 0 and len(weights) == 0 and n >= PAIR_SAMPLES
    cells = buffers.cells[t & 1 if paired else 0]
    if paired and t & 1 == 0 and t + 1 < len(features):
        _fill_pair(codes, read, feature, np.uint64(features[t + 1]), samples, classes, cells, buffers.cells[1])
    elif not paired or t & 1 == 0:
        _fill(codes, read, feature, samples, weights, classes, marks and not paired, cells, buffers.mask)
    for i in range(n if marks and paired else 0):
        add_code(buffers.mask, read(codes, (feature, row_of(samples[i]))))
    for i in range(n if with_samples else 0):
        buffers.n_samples[read(codes, (feature, row_of(samples[i])))] += 1
    n_listed = np.int64(-1)
    if sorts:
        n_listed = _sort_keys(codes, read, feature, samples, classes, listed)
    elif marks:
        n_listed = list_bits(buffers.mask, n_keys, listed)
    elif compact or not is_pair:
        n_listed = list_filled(n_codes, classes, cells, buffers)
    return n_listed, cells


@bare_device
def count_samples(node, features, t, classes, compact, with_samples, buffers):
    """Count the histogram of features[t] in a `splitter.Node`; it must be called for t = 0, 1, ... in this order.

    compact is whether empty bins are left out, and with_samples whether samples are counted, too. Each histogram must
    be cleared before the next call.
    """
    columns = node.columns
    if is_sparse(columns):
        return _count_stored(columns, node.samples, np.int64(features[t]), classes, with_samples, buffers)
    n_listed, cells = with_codes(
        _count_dense, columns.codes, node, features, t, classes, compact, with_samples, buffers
    )
    return make_histogram(n_listed, columns.n_bins[features[t]] + 1, classes, with_samples, cells, buffers)
