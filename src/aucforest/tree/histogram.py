"""The histogram of a feature in a node: the class totals of every bin that a sample of the node lies in.

It is counted from samples in memory, or taken from counts of the parts of a distributed table; ordering the bins and
searching for a split read it alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, lowest_bit
from aucforest.tree.samples import Columns, add_code, label_of, packed_weight, row_of

# Up to here sorting the samples costs less than filling cells.
SORT_SAMPLES = 16
# From here on filling the histograms of two features at once pays.
PAIR_SAMPLES = 64


class Classes(NamedTuple):
    """The classes that a node holds; what follows numbers them 0, 1, ... without those it lacks."""

    n: int
    shift: np.uint64  # by how many bits a code is shifted to make room for so many classes
    places: NDArray[np.int32]  # (n_classes,) class -> number among the classes of the node
    totals: NDArray[np.int64]  # (n,) their weights in the node


class Histogram(NamedTuple):
    """The bins that samples of a node lie in, in the order in which they may be split; the missing ones stand apart.

    Of two classes left_0[i] and left_1[i] are the weights in the bins 0 .. i, which a split after bin i has on its
    left. Of more classes those that a bin has are listed: the entries starts[i] .. starts[i + 1] of the next two.
    """

    n_bins: int
    n_classes: int
    has_missing: bool
    missing_samples: int | np.int64  # filled only where it is asked for, and so is `samples`
    missing: NDArray[np.int64]  # (n_classes,) class totals
    codes: NDArray[np.uint32]
    left_0: NDArray[np.int64]
    left_1: NDArray[np.int64]
    starts: NDArray[np.int64]
    classes: NDArray[np.uint32]
    weights: NDArray[np.int64]
    samples: NDArray[np.int64]  # the number of samples in each bin


class HistogramBuffers(NamedTuple):
    """What counting writes to. `cells`, `n_samples` and `mask` are all zero between histograms.

    A cell is a code and a class: there are up to n_codes * n_classes of them, n_classes rounded up to a power of two.
    """

    cells: NDArray[np.int64]  # (2, n_cells): two features may be counted at once
    n_samples: NDArray[np.int64]  # (n_codes,)
    mask: NDArray[np.uint64]  # (ceil(n_cells / 64),)
    listed: NDArray[np.uint32]  # (n_cells,)
    codes: NDArray[np.uint32]  # (n_codes,) and so on: as in `Histogram`
    left_0: NDArray[np.int64]
    left_1: NDArray[np.int64]
    starts: NDArray[np.int64]
    classes: NDArray[np.uint32]
    weights: NDArray[np.int64]
    samples: NDArray[np.int64]
    missing: NDArray[np.int64]
    places: NDArray[np.int32]  # as in `Classes`
    totals: NDArray[np.int64]

    @classmethod
    def of(cls, n_codes: int, n_classes: int) -> "HistogramBuffers":
        """Allocate the buffers for features of up to n_codes codes, the missing one included."""
        n_cells = n_codes << max(1, (n_classes - 1).bit_length())
        if n_cells > 2**32:
            raise ValueError(f"{n_codes} codes with {n_classes} classes are too many: set max_bins to 255 or less")
        return cls(
            cells=np.zeros((2, n_cells), dtype=np.int64),
            n_samples=np.zeros(n_codes, dtype=np.int64),
            mask=np.zeros((n_cells + 63) // 64, dtype=np.uint64),
            listed=np.empty(n_cells + SORT_SAMPLES, dtype=np.uint32),
            codes=np.empty(n_codes, dtype=np.uint32),
            left_0=np.empty(n_codes, dtype=np.int64),
            left_1=np.empty(n_codes, dtype=np.int64),
            starts=np.empty(n_codes + 1, dtype=np.int64),
            # one more than there are: a cell that is listed again is written, too
            classes=np.empty(n_cells + 1, dtype=np.uint32),
            weights=np.empty(n_cells + 1, dtype=np.int64),
            samples=np.empty(n_codes, dtype=np.int64),
            missing=np.empty(n_classes, dtype=np.int64),
            places=np.empty(n_classes, dtype=np.int32),
            totals=np.empty(n_classes, dtype=np.int64),
        )


@bare_device
def class_shift(n):
    """Return by how many bits a code is shifted to make room for n classes."""
    shift = np.uint64(0)
    while (1 << shift) < n:
        shift += np.uint64(1)
    return shift


@bare_device
def present_classes(totals, buffers):
    """Number the classes of a node with these totals."""
    n = 0
    for k in range(len(totals)):
        if totals[k] > 0:
            buffers.places[k] = n
            buffers.totals[n] = totals[k]
            n += 1
    return Classes(n, class_shift(n), buffers.places, buffers.totals[:n])


@bare_device
def list_bits(mask, n_bits, listed):
    """Write the positions of the set bits in rising order, clear them and return how many there were."""
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
def _cell_of(column, sample, classes):
    """Return the cell of the code and the class of a sample."""
    return (np.uint64(column[row_of(sample)]) << classes.shift) + np.uint64(classes.places[label_of(sample)])


@bare_device
def _fill(column, samples, weights, classes, cells):
    """Add the weight of every sample to the cell of its code and class; one loop for both kinds is slower."""
    if len(weights) > 0:
        for i in range(len(samples)):
            cells[_cell_of(column, samples[i], classes)] += weights[row_of(samples[i])]
    else:
        for i in range(len(samples)):
            cells[_cell_of(column, samples[i], classes)] += packed_weight(samples[i])


@bare_device
def _fill_pair(column, next_column, samples, classes, cells, next_cells):
    """Fill the cells of two features, of two classes: what is read of a sample serves both."""
    for i in range(len(samples)):
        sample = samples[i]
        row = row_of(sample)
        place, weight = np.uint64(classes.places[label_of(sample)]), packed_weight(sample)
        cells[(np.uint64(column[row]) << np.uint64(1)) + place] += weight
        next_cells[(np.uint64(next_column[row]) << np.uint64(1)) + place] += weight


@bare_device
def _collect_pair(n_listed, n_codes, cells, buffers):
    """Sum the cells of two classes up, of the listed codes or for -1 of all, and clear them; return the number of bins.

    A code that is listed again finds its cells empty.
    """
    codes, left_0, left_1 = buffers.codes, buffers.left_0, buffers.left_1
    sum_0, sum_1, n_bins = np.int64(0), np.int64(0), np.uint64(0)
    if n_listed >= 0:
        for t in range(np.uint64(n_listed)):
            cell = np.uint64(2) * np.uint64(buffers.listed[t])
            first, second = cells[cell], cells[cell + np.uint64(1)]
            sum_0 += first
            sum_1 += second
            codes[n_bins], left_0[n_bins], left_1[n_bins] = buffers.listed[t], sum_0, sum_1
            n_bins += np.uint64(first + second > 0)
            cells[cell] = cells[cell + np.uint64(1)] = 0
        return np.int64(n_bins)
    for code in range(np.uint64(n_codes)):
        cell = np.uint64(2) * code
        first, second = cells[cell], cells[cell + np.uint64(1)]
        sum_0 += first
        sum_1 += second
        codes[n_bins], left_0[n_bins], left_1[n_bins] = code, sum_0, sum_1
        n_bins += np.uint64(first + second > 0)
    cells[: 2 * n_codes] = 0
    return np.int64(n_bins)


@bare_device
def _collect_all(n_codes, classes, cells, buffers):
    """Move the cells of more classes to a histogram, and return the number of bins."""
    n_bins, n_entries, first = np.uint64(0), np.uint64(0), np.uint64(0)
    buffers.starts[0] = 0
    for code in range(np.uint64(n_codes)):
        for k in range(np.uint64(classes.n)):
            weight = cells[first + k]
            cells[first + k] = 0
            buffers.classes[n_entries] = k
            buffers.weights[n_entries] = weight
            n_entries += np.uint64(weight > 0)
        first += np.uint64(1) << classes.shift
        buffers.codes[n_bins] = code
        n_bins += np.uint64(n_entries > np.uint64(buffers.starts[n_bins]))
        buffers.starts[n_bins] = n_entries
    return np.int64(n_bins)


@bare_device
def _collect_listed(n_listed, shift, cells, buffers):
    """Do the same for the cells that are listed in rising order; one that is listed again is empty."""
    n_bins, n_entries, last = np.uint64(0), np.uint64(0), np.uint64(0)
    buffers.starts[0] = 0
    for t in range(np.uint64(n_listed)):
        cell = np.uint64(buffers.listed[t])
        # Where a bin ends is written with each of its entries: cheaper than a branch that cannot be predicted.
        code, weight = cell >> shift, cells[cell]
        cells[cell] = 0
        n_bins += np.uint64((t == np.uint64(0)) | (code != last))
        buffers.codes[n_bins - np.uint64(1)] = code
        buffers.classes[n_entries], buffers.weights[n_entries] = cell - (code << shift), weight
        n_entries += np.uint64(weight > 0)
        buffers.starts[n_bins] = n_entries
        last = code
    return np.int64(n_bins)


@bare_device
def _key_of(column, sample, classes):
    """Return what is listed of a sample: the code of two classes, the cell of more."""
    return np.uint64(column[row_of(sample)]) if classes.n == 2 else _cell_of(column, sample, classes)


@bare_device
def _list_keys(column, samples, n_codes, classes, buffers):
    """List the keys of the samples in rising order, and return how many; or -1 where stepping over all costs less."""
    is_pair, n, listed = classes.n == 2, len(samples), buffers.listed
    # Of two classes listing codes costs little where there are few.
    if n <= SORT_SAMPLES and not (is_pair and n_codes <= 64 * n):
        for i in range(n):
            key, place = _key_of(column, samples[i], classes), i
            while place > 0 and listed[place - 1] > key:
                listed[place] = listed[place - 1]
                place -= 1
            listed[place] = key
        return np.int64(n)
    n_keys, pays = (n_codes, n) if is_pair else (n_codes << np.int64(classes.shift), 4 * n)
    if n_keys <= pays:
        return np.int64(-1)
    for i in range(n):
        add_code(buffers.mask, _key_of(column, samples[i], classes))
    return list_bits(buffers.mask, n_keys, listed)


@bare_device
def weights_of_pair(histogram, i):
    """Return the weights of two classes in a bin."""
    if i == 0:
        return histogram.left_0[0], histogram.left_1[0]
    return histogram.left_0[i] - histogram.left_0[i - 1], histogram.left_1[i] - histogram.left_1[i - 1]


@bare_device
def weight_of_bin(histogram, i):
    """Return the weight of all classes in a bin."""
    if histogram.n_classes == 2:
        first, second = weights_of_pair(histogram, i)
        return first + second
    return histogram.weights[histogram.starts[i] : histogram.starts[i + 1]].sum()


@bare_device
def add_bin(histogram, i, totals):
    """Add the class totals of a bin to others."""
    if histogram.n_classes == 2:
        first, second = weights_of_pair(histogram, i)
        totals[0] += first
        totals[1] += second
    else:
        for entry in range(histogram.starts[i], histogram.starts[i + 1]):
            totals[np.uint64(histogram.classes[entry])] += histogram.weights[entry]


@bare_device
def sum_left(histogram, place, missing_left, left):
    """Set the class totals on the left to those of a split after the bin at a place; -1 is before all bins."""
    for k in range(histogram.n_classes):
        left[k] = histogram.missing[k] if missing_left else 0
    if histogram.n_classes > 2:
        for entry in range(np.uint64(histogram.starts[place + 1])):
            left[np.uint64(histogram.classes[entry])] += histogram.weights[entry]
    elif place >= 0:
        left[0] += histogram.left_0[place]
        left[1] += histogram.left_1[place]


@bare_device
def take_apart(n_bins, missing_code, n_classes, buffers):
    """Return the histogram that lies in the buffers, its last bin apart if it is that of the missing values."""
    has_missing = n_bins > 0 and buffers.codes[n_bins - 1] == missing_code
    n_bins -= np.int64(has_missing)
    n_missing = buffers.samples[n_bins] if has_missing else np.int64(0)
    bins = buffers.codes, buffers.left_0, buffers.left_1, buffers.starts, buffers.classes, buffers.weights
    histogram = Histogram(n_bins, n_classes, has_missing, n_missing, buffers.missing, *bins, buffers.samples)
    for k in range(n_classes):
        buffers.missing[k] = 0
    if has_missing:
        add_bin(histogram, n_bins, buffers.missing)
    return histogram


class NodeSamples(NamedTuple):
    """Where the histograms of a node come from in memory: the columns, and the samples of the node."""

    columns: Columns
    samples: NDArray[np.uint64]


@bare_device
def count_samples(node, features, t, classes, with_samples, buffers):
    """Count the histogram of features[t] in a node, `NodeSamples`; those of all t are asked for in turn.

    with_samples says whether the numbers of samples are asked for.
    """
    columns, samples = node.columns, node.samples
    feature = features[t]
    column, n_codes = columns.codes[feature], columns.n_bins[feature] + 1
    # Two features are counted at a time.
    paired = classes.n == 2 and len(columns.weights) == 0 and len(samples) >= PAIR_SAMPLES
    cells = buffers.cells[t & 1 if paired else 0]
    if paired and t & 1 == 0 and t + 1 < len(features):
        _fill_pair(column, columns.codes[features[t + 1]], samples, classes, cells, buffers.cells[1])
    elif not paired or t & 1 == 0:
        _fill(column, samples, columns.weights, classes, cells)
    n_listed = _list_keys(column, samples, n_codes, classes, buffers)
    if classes.n == 2:
        n_bins = _collect_pair(n_listed, n_codes, cells, buffers)
    elif n_listed < 0:
        n_bins = _collect_all(n_codes, classes, cells, buffers)
    else:
        n_bins = _collect_listed(n_listed, classes.shift, cells, buffers)
    if with_samples:
        for i in range(len(samples)):
            buffers.n_samples[np.uint64(column[row_of(samples[i])])] += 1
        for i in range(n_bins):
            buffers.samples[i] = buffers.n_samples[buffers.codes[i]]
            buffers.n_samples[buffers.codes[i]] = 0
    return take_apart(n_bins, n_codes - 1, classes.n, buffers)
