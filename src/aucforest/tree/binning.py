"""Binning: values are encoded as ordered codes, and splits of codes are converted to thresholds.

A bin is an interval of values, and its code is its index among the bins of the feature, so codes have the order of the
values. A value between two bins belongs to the lower bin up to the edge, which is midway between the bins. Missing
values (NaN) have the code after the last bin, n_bins[f]. Infinite values are ordinary values. A feature with at most
max_bins distinct values has a bin for each value. Other features have bins of about equal weight, and a value of large
weight has a separate bin.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.criteria.criterion import ROUNDING, sum_of
from aucforest.tree.random import mix
from aucforest.tree.samples import exact_weights

MAX_BINS = 255
# Bins are computed from at most this number of rows: those whose indices have the smallest hashes.
SAMPLE_ROWS = 200_000
# Number of rows that are hashed at once, because the hashes of all rows would take more memory than the labels.
_HASHED_ROWS = 2**18
_GROUP_CELLS = 2**20  # number of values whose bins are chosen in one call
_BLOCK_ROWS = 16_384  # number of rows that are encoded in one call
_TILE_ROWS = 512  # number of values of a feature that are encoded in one loop
_LARGEST = float(np.finfo(np.float64).max)

ParallelMap = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
AllDistinct = Callable[[int, NDArray[np.float64]], NDArray[np.float64] | None]


class BinValues(NamedTuple):
    """Bounds of the bins: code c of feature f has the values from lower[first[f] + c] to upper[first[f] + c]."""

    first: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, n_bins: ArrayLike, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> "BinValues":
        """Return bins, given their number for each feature, and their bounds, feature by feature."""
        return cls(np.append(0, np.cumsum(n_bins, dtype=np.int64)), lower, upper)

    @property
    def n_bins(self) -> NDArray[np.int64]:
        """The number of bins of each feature, (n_features,)."""
        return np.diff(self.first)

    def by_feature(self) -> list["BinValues"]:
        """Return the bins of each feature."""
        pairs = (np.split(bounds, self.first[1:-1]) for bounds in (self.lower, self.upper))
        return [BinValues.of([len(lower)], lower, upper) for lower, upper in zip(*pairs)]


class BinnedMatrix(NamedTuple):
    """Unsigned codes, (n_features, n_rows), and the bounds of the bins."""

    codes: NDArray[np.unsignedinteger]
    values: BinValues


@bare_kernel
def midway(low: float, high: float) -> float:
    """Return the threshold between two neighboring values: at least `low`, and less than `high`.

    The threshold never decreases if `low` or `high` increases. So even if bins between both values are empty in a node,
    a comparison with the threshold sends each row to the same side as a comparison of codes. An infinite value is
    replaced by the largest finite value. Rounding can move the middle out of the interval. Then the threshold is `low`.
    """
    middle = 0.5 * max(low, -_LARGEST) + 0.5 * min(high, _LARGEST)
    return middle if low <= middle < high else low


@bare_device
def bin_of(bins, feature, code):
    """Return the index of a bin in `BinValues`, given its code or, in copied rows, its rank: see `samples.CodeBins`."""
    bin_of_rank, first = bins.bin_of_rank, bins.values.first[feature]
    return first + (np.int64(bin_of_rank[feature, code]) if len(bin_of_rank) > 0 else np.int64(code))


@bare_kernel
def _hash_rows(first_row, hashes):
    for i in range(len(hashes)):
        hashes[i] = mix(np.uint64(first_row + i) + np.uint64(1))


def sample_rows(n_rows: int, max_bins: int | None) -> NDArray[np.int64]:
    """Return the rows that bins are computed from, ascending: all, or the `SAMPLE_ROWS` with the smallest hashes."""
    if n_rows <= SAMPLE_ROWS or max_bins is None:
        return np.arange(n_rows)
    rows, hashes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    for start in range(0, n_rows, _HASHED_ROWS):
        fresh = np.empty(min(_HASHED_ROWS, n_rows - start), dtype=np.uint64)
        _hash_rows(start, fresh)
        rows = np.concatenate((rows, np.arange(start, start + len(fresh))))
        hashes = np.concatenate((hashes, fresh))
        if len(rows) > SAMPLE_ROWS:
            least = np.argpartition(hashes, SAMPLE_ROWS)[:SAMPLE_ROWS]
            rows, hashes = rows[least], hashes[least]
    return np.sort(rows)


class _Stored(NamedTuple):
    """Consecutive rows of a matrix as they are stored, row by row or column by column.

    Kernels are compiled for contiguous, writeable float64 arrays. Parts of other arrays are copied to such arrays.
    """

    array: NDArray[Any]  # (n_rows, n_features), transposed if it is stored by column
    by_column: bool
    first_row: int  # the index of the first row in the matrix

    @classmethod
    def of(cls, X: NDArray[Any]) -> "_Stored":
        """Return a matrix as it is stored."""
        by_column = X.strides[0] < X.strides[1]
        return cls(X.T if by_column else X, by_column, 0)

    @property
    def _needs_no_copy(self) -> bool:
        """Whether kernels can read the array itself."""
        return self.array.dtype == np.float64 and self.array.flags.carray

    def columns(self, rows: NDArray[np.int64], features: slice) -> NDArray[np.float64]:
        """Return the given rows of consecutive features; each feature is a row of the result."""
        columns = np.empty((features.stop - features.start, len(rows)))
        if self._needs_no_copy:
            _copy_columns(self, rows, features.start, columns)
        else:
            columns[:] = self.array[features][:, rows] if self.by_column else self.array[:, features][rows].T
        return columns

    def with_rows(self, start: int, stop: int) -> "_Stored":
        """Return this matrix if kernels can read it, else a copy of the rows from `start` to `stop`."""
        if self._needs_no_copy:
            return self
        part = self.array[:, start:stop] if self.by_column else self.array[start:stop]
        return _Stored(np.array(part, dtype=np.float64, order="C"), self.by_column, start)


@bare_kernel
def _copy_columns(stored, rows, first_feature, columns):
    """Copy the given rows of consecutive features to `columns`, in which each feature is a row."""
    X = stored.array  # read in the order in which it is stored
    if stored.by_column:
        for f in range(len(columns)):
            for i in range(len(rows)):
                columns[f, i] = X[first_feature + f, rows[i]]
    else:
        for i in range(len(rows)):
            for f in range(len(columns)):
                columns[f, i] = X[rows[i], first_feature + f]


@bare_device
def _find_two(column, lower):
    """Write up to two distinct values of a column in ascending order; return their number, or 3 if there are more."""
    n, n_known, start = len(column), 0, 0
    while start < n and n_known < 2:
        value = column[start]
        if value == value and (n_known == 0 or value != lower[0]):
            lower[n_known] = value
            n_known += 1
        start += 1
    if n_known < 2:
        return n_known
    first, second = lower[0], lower[1]
    while start < n:
        stop = min(start + _TILE_ROWS, n)
        # The loop has no branches, so that it is vectorized.
        n_others = 0
        for i in range(start, stop):
            n_others += (column[i] != first) & (column[i] != second) & (column[i] == column[i])
        if n_others > 0:
            return 3
        start = stop
    lower[0], lower[1] = min(first, second), max(first, second)
    return 2


@bare_kernel
def _find_all_two(columns, lower, upper, n_bins):
    """Bin the columns with at most two distinct values; n_bins[f] is 3 for other columns."""
    for f in range(len(columns)):
        n_bins[f] = _find_two(columns[f], lower[f])
        for c in range(n_bins[f] if n_bins[f] < 3 else 0):
            upper[f, c] = lower[f, c]


@bare_kernel
def _find_bins(values, weights, max_bins, lower, upper):
    """Bin sorted values without NaN; weights may be empty. Return the number of bins."""
    n_distinct = 0
    for i in range(len(values)):
        if i == 0 or values[i] != values[i - 1]:
            if n_distinct < max_bins:
                lower[n_distinct], upper[n_distinct] = values[i], values[i]
            n_distinct += 1
    if n_distinct <= max_bins:
        return n_distinct
    weighted = len(weights) > 0
    remaining = sum_of(weights) if weighted else np.float64(len(values))
    n_bins, bin_weight, i = 0, 0.0, 0
    while i < len(values):
        value, value_weight = values[i], 0.0
        while i < len(values) and values[i] == value:
            value_weight += weights[i] if weighted else 1.0
            i += 1
        target = remaining / (max_bins - n_bins)
        # The bin ends before this value if the weight of the bin is closer to the target without the value, beyond
        # rounding errors. The last bin never ends, because its target is the whole remaining weight.
        if bin_weight > 0.0 and bin_weight + 0.5 * value_weight > target * (1.0 + ROUNDING):
            n_bins += 1
            remaining -= bin_weight
            bin_weight = 0.0
        if bin_weight == 0.0:
            lower[n_bins] = value
        upper[n_bins] = value
        bin_weight += value_weight
    return n_bins + 1


@bare_kernel
def add_all_distinct(column, max_bins, known, n_known):
    """Insert the values of a column into the sorted known values, and return the new n_known.

    If there would be more than max_bins known values, return max_bins + 1.
    """
    for row in range(len(column)):
        value = np.float64(column[row])
        index = np.searchsorted(known[:n_known], value)
        if value != value or (index < n_known and known[index] == value):
            continue
        if n_known == max_bins:
            return max_bins + 1
        for i in range(n_known, index, -1):
            known[i] = known[i - 1]
        known[index] = value
        n_known += 1
    return n_known


@bare_kernel
def _find_edges(values, edges):
    for i in range(len(edges) - 1):
        edges[i] = midway(values.upper[i], values.lower[i + 1])


def find_edges(values: BinValues) -> NDArray[np.float64]:
    """Return the upper edge of each bin, feature by feature; the edge of the last bin of a feature has no meaning."""
    edges = np.empty(len(values.lower))
    _find_edges(values, edges)
    return edges


@bare_device
def encode_values(edges, values, missing_code, indices, codes):
    """Write the codes of values by binary search: a code is the number of edges below the value.

    Each step is done for all values in a loop without branches, which the compiler vectorizes.
    """
    size, zero, one = np.uint64(len(edges)), np.uint64(0), np.uint64(1)
    for i in range(len(values)):
        indices[i] = zero
    while size > one:
        half = size >> one
        for i in range(len(values)):
            index = indices[i]
            indices[i] = index + half * np.uint64(edges[index + half - one] < values[i])
        size -= half
    for i in range(len(values)):
        value, code = values[i], indices[i]
        if size > zero:
            code += np.uint64(edges[code] < value)
        codes[i] = code if value == value else missing_code


@bare_kernel
def _encode(stored, rows, first, edges, buffers, codes):
    """Write the codes of the rows from rows[0] to rows[1], tile by tile; the buffers are for one tile."""
    X, offset, (tile, indices) = stored.array, stored.first_row, buffers
    for f in range(len(first) - 1):
        feature_edges, n_bins = edges[first[f] : max(first[f + 1] - 1, first[f])], np.uint64(first[f + 1] - first[f])
        for start in range(rows[0], rows[1], len(tile)):
            stop = min(start + len(tile), rows[1])
            values = tile[: stop - start]
            if stored.by_column:
                for i in range(len(values)):
                    values[i] = X[f, start - offset + i]
            else:
                for i in range(len(values)):
                    values[i] = X[start - offset + i, f]
            encode_values(feature_edges, values, n_bins, indices, codes[f, start:stop])


@bare_kernel
def _find_all_bins(columns, weights, features, max_bins, bounds):
    """Bin the sorted columns of the given features, in which NaN is last; weights may be empty."""
    lower, upper, n_bins = bounds
    for i in range(len(features)):
        n_values, f = columns.shape[1], features[i]
        while n_values > 0 and columns[i, n_values - 1] != columns[i, n_values - 1]:
            n_values -= 1
        values, capacity = columns[i, :n_values], min(max_bins, max(n_values, 1))
        n_bins[f] = _find_bins(values, weights[i, :n_values], capacity, lower[f], upper[f])


def choose_bins(
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
    most: int,
    all_distinct: AllDistinct | None = None,
) -> BinValues:
    """Return the bins of features from their values in the sampled rows, (n_features, n_rows).

    The values may be sorted in place. Weights may be empty. Sums of weights must be exact, because rounding errors
    would move bounds. A feature has at most `most` bins. If the sampled rows have at most `most` distinct values of
    feature f, all_distinct(f, values) adds the values of the other rows: it returns the sorted distinct values of all
    rows, or None if there are more than `most`. Without `all_distinct`, other rows are ignored.
    """
    n_features, n_rows = columns.shape
    capacity = most if all_distinct is not None else min(most, max(n_rows, 1))
    (lower, upper), n_bins = np.empty((2, n_features, capacity)), np.empty(n_features, dtype=np.int64)
    _find_all_two(columns, lower, upper, n_bins)
    # Only columns with more than two distinct values need to be sorted.
    many = np.flatnonzero(n_bins > 2)
    if len(many) < n_features:
        columns = columns[many]
    if len(weights) > 0:
        order = np.argsort(columns, axis=1, kind="stable")
        columns, sorted_weights = np.take_along_axis(columns, order, axis=1), weights[order]
    else:
        columns.sort(axis=1)
        sorted_weights = np.empty((len(many), 0))
    _find_all_bins(columns, sorted_weights, many, most, (lower, upper, n_bins))
    is_bin = np.arange(capacity) < n_bins[:, None]
    if all_distinct is not None:
        for f in np.flatnonzero(np.all((lower == upper) | ~is_bin, axis=1)).tolist():
            if (known := all_distinct(f, lower[f, is_bin[f]])) is not None:
                is_bin[f] = np.arange(capacity) < len(known)
                lower[f, : len(known)] = upper[f, : len(known)] = known
    return BinValues.of(is_bin.sum(axis=1), lower[is_bin], upper[is_bin])


def add_distinct(values: NDArray[Any], known: NDArray[Any], max_bins: int) -> NDArray[np.float64] | None:
    """Return the sorted union of the values of a column and the known values; None if it has more than max_bins."""
    distinct = np.empty(max_bins)
    distinct[: len(known)] = known
    n_known = len(known)
    for start in range(0, len(values), _BLOCK_ROWS):
        column = np.array(values[start : start + _BLOCK_ROWS], dtype=np.float64)
        n_known = add_all_distinct(column, max_bins, distinct, n_known)
        if n_known > max_bins:
            return None
    return distinct[:n_known]


def join_bins(bins: Iterable[BinValues]) -> BinValues:
    """Concatenate the bins of all features."""
    firsts, lower, upper = zip(*bins)
    n_bins = np.concatenate([np.diff(first) for first in firsts])
    # Adding 0.0 turns -0.0 into 0.0.
    return BinValues.of(n_bins, np.concatenate(lower) + 0.0, np.concatenate(upper) + 0.0)


def categorical_bins(n_codes: int) -> BinValues:
    """Return the bins of a feature with codes of categories: one bin for each code."""
    codes = np.arange(n_codes, dtype=np.float64)
    return BinValues.of([n_codes], codes, codes)


def code_dtype(max_n_bins: int) -> np.dtype[Any]:
    """Return the smallest unsigned type for all codes, including max_n_bins, the code of missing values."""
    return np.min_scalar_type(max_n_bins)


def bin_matrix(
    X: NDArray[Any],
    *,
    max_bins: int | None = MAX_BINS,
    weights: NDArray[np.float64] | None = None,
    run: ParallelMap = map,
    n_codes: NDArray[np.int64] | None = None,
) -> BinnedMatrix:
    """Bin a matrix of values, float32 or float64, in which NaN is missing and infinite values are allowed.

    A feature has at most `max_bins` bins, 2 to 255; with None, each distinct value has a bin. Sample weights determine
    the sizes of bins. `run` is a parallel `map` in shared memory; the calls release the GIL. A feature with codes of
    categories has n_codes[f] bins, one for each code, and greater codes are in the last bin. n_codes[f] is 0 for a
    numeric feature.
    """
    stored, (n_rows, n_features) = _Stored.of(X), X.shape
    rows = sample_rows(n_rows, max_bins)
    row_weights = np.empty(0) if weights is None else exact_weights(weights[rows])
    group = max(1, min(_GROUP_CELLS // len(rows), (n_features + 1) // 2))
    most = max_bins or len(rows)
    n_codes = np.zeros(n_features, dtype=np.int64) if n_codes is None else n_codes

    def bin_group(first: int) -> BinValues:
        features = slice(first, min(first + group, n_features))
        columns, group_codes = stored.columns(rows, features), n_codes[features]
        columns[group_codes > 0] = 0.0  # bins of categories do not depend on the values

        def all_distinct(f: int, known: NDArray[np.float64]) -> NDArray[np.float64] | None:
            return known if group_codes[f] > 0 else add_distinct(X[:, first + f], known, most)

        bins = choose_bins(columns, row_weights, most, None if len(rows) == n_rows else all_distinct)
        if not np.any(group_codes):
            return bins
        return join_bins(categorical_bins(n) if n > 0 else given for n, given in zip(group_codes, bins.by_feature()))

    return encode_matrix(X, join_bins(run(bin_group, range(0, n_features, group))), run)


def bin_blocks(blocks: Iterable[NDArray[Any]], codes: NDArray[np.unsignedinteger], **options: Any) -> BinnedMatrix:
    """Bin a matrix that is given as blocks of columns, with the options of `bin_matrix`, and write its codes."""
    bins: list[BinValues] = []
    first = 0
    for block in blocks:
        binned = bin_matrix(block, **options)
        codes[first : first + len(binned.codes)] = binned.codes
        bins.append(binned.values)
        first += len(binned.codes)
    return BinnedMatrix(codes, join_bins(bins))


def encode_matrix(X: NDArray[Any], values: BinValues, run: ParallelMap = map) -> BinnedMatrix:
    """Encode a matrix of values with given bins; X and `run` are as in `bin_matrix`."""
    stored, edges = _Stored.of(X), find_edges(values)
    codes = np.empty((X.shape[1], X.shape[0]), dtype=code_dtype(int(values.n_bins.max())))

    def encode(start: int) -> None:
        stop, buffers = min(start + _BLOCK_ROWS, len(X)), (np.empty(_TILE_ROWS), np.empty(_TILE_ROWS, np.uint64))
        _encode(stored.with_rows(start, stop), (start, stop), values.first, edges, buffers, codes)

    list(run(encode, range(0, len(X), _BLOCK_ROWS)))
    return BinnedMatrix(codes, values)
