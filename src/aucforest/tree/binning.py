"""Values to ordered codes, and codes back to thresholds.

A bigger code is a bigger value. Code c of a feature stands for the values from `lower` to `upper`; a value that was
not seen goes by the edge midway to the next code. The code after the last, n_bins[f], is the missing value (NaN).
Infinite values are values like any other. A feature with at most max_bins distinct values keeps them all, others get
bins of about equal weight, in which a heavy value stands alone.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.criteria import ROUNDING
from aucforest.tree.random import mix
from aucforest.tree.samples import exact_weights

MAX_BINS = 255
# Edges come from the rows with the smallest hashes: the same rows however the data are partitioned.
SAMPLE_ROWS = 200_000
# Rows that are hashed at a time: all hashes would take more memory than the labels.
_HASHED_ROWS = 2**18
_GROUP_CELLS = 4_000_000
_BLOCK_ROWS = 16_384
_TILE_ROWS = 512
_LARGEST = float(np.finfo(np.float64).max)

ParallelMap = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
# The least and the greatest value of every bin of a feature.
Bins = tuple[NDArray[np.float64], NDArray[np.float64]]


class BinValues(NamedTuple):
    """The values behind the codes: lower[first[f] + c] and upper[first[f] + c] bound those of code c of feature f."""

    first: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class BinnedMatrix(NamedTuple):
    """A matrix of codes, (n_features, n_rows), unsigned; n_bins, (n_features,), int64; and what the codes stand for."""

    codes: NDArray[np.unsignedinteger]
    n_bins: NDArray[np.int64]
    values: BinValues


@bare_kernel
def midway(low: float, high: float) -> float:
    """Return the threshold between two neighbouring values: at least `low` and never `high`.

    It never falls when a side rises: so rows go to one side by their codes and by their values, whatever codes lie
    between. An infinite side counts as the largest finite value. Halves are added so that nothing overflows; rounding
    can still push the middle out.
    """
    middle = 0.5 * max(low, -_LARGEST) + 0.5 * min(high, _LARGEST)
    return middle if low <= middle < high else low


@bare_device
def bin_of(feature, code, names, values):
    """Return where the values of a code lie in `BinValues`; names are those of `Columns`."""
    return values.first[feature] + (np.int64(names[feature, code]) if len(names) > 0 else np.int64(code))


@bare_kernel
def _hash_rows(first_row, hashes):
    for i in range(len(hashes)):
        hashes[i] = mix(np.uint64(first_row + i) + np.uint64(1))


def sample_rows(n_rows: int, size: int = SAMPLE_ROWS) -> NDArray[np.int64]:
    """Return the rows with the smallest hashes, in rising order; all rows when there are at most `size`."""
    if n_rows <= size:
        return np.arange(n_rows)
    rows, hashes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
    for start in range(0, n_rows, _HASHED_ROWS):
        fresh = np.empty(min(_HASHED_ROWS, n_rows - start), dtype=np.uint64)
        _hash_rows(start, fresh)
        rows = np.concatenate((rows, np.arange(start, start + len(fresh))))
        hashes = np.concatenate((hashes, fresh))
        if len(rows) > size:
            least = np.argpartition(hashes, size)[:size]
            rows, hashes = rows[least], hashes[least]
    return np.sort(rows)


@bare_kernel
def _take(X, rows, first_feature, columns):
    """Copy some rows of some features, one feature a row of `columns`."""
    for i in range(len(rows)):
        for f in range(len(columns)):
            columns[f, i] = X[rows[i], first_feature + f]


@bare_kernel
def _find_bins(values, weights, max_bins, lower, upper):
    """Bin sorted values (no NaN); weights may be empty. Return the number of bins and whether a value is a bin."""
    n_distinct = 0
    for i in range(len(values)):
        if i == 0 or values[i] != values[i - 1]:
            if n_distinct < max_bins:
                lower[n_distinct], upper[n_distinct] = values[i], values[i]
            n_distinct += 1
    if n_distinct <= max_bins:
        return n_distinct, True
    weighted = len(weights) > 0
    left = weights.sum() if weighted else np.float64(len(values))
    n_bins, held, i = 0, 0.0, 0
    while i < len(values):
        value, mass = values[i], 0.0
        while i < len(values) and values[i] == value:
            mass += weights[i] if weighted else 1.0
            i += 1
        goal = left / (max_bins - n_bins)
        # Close the bin where that leaves it nearer to its goal, by more than rounding.
        if held > 0.0 and held + 0.5 * mass > goal * (1.0 + ROUNDING) and n_bins < max_bins - 1:
            n_bins += 1
            left -= held
            held = 0.0
        if held == 0.0:
            lower[n_bins] = value
        upper[n_bins] = value
        held += mass
    return n_bins + 1, False


@bare_kernel
def _all_distinct(X, feature, max_bins, known, n_known):
    """Insert the values of a feature that are not known yet in order; return how many there are, or max_bins + 1."""
    for row in range(len(X)):
        value = np.float64(X[row, feature])
        place = np.searchsorted(known[:n_known], value)
        if value != value or (place < n_known and known[place] == value):
            continue
        if n_known == max_bins:
            return max_bins + 1
        for i in range(n_known, place, -1):
            known[i] = known[i - 1]
        known[place] = value
        n_known += 1
    return n_known


@bare_kernel
def _find_edges(values, n_bins, edges):
    """Write the edge above every code but the last of each feature."""
    for f in range(len(n_bins)):
        for c in range(n_bins[f] - 1):
            at = values.first[f] + c
            edges[at] = midway(values.upper[at], values.lower[at + 1])


@bare_kernel
def _encode(X, start, stop, first, n_bins, edges, values, places, codes):
    """Write the codes of some rows: the number of edges below a value, by binary searches that go hand in hand.

    Each step is taken for a tile of rows, in a loop without branches that is compiled to vector instructions.
    """
    for f in range(len(n_bins)):
        base = np.uint64(first[f])
        for begin in range(start, stop, len(values)):
            n_rows = min(len(values), stop - begin)
            for i in range(n_rows):
                values[i] = X[begin + i, f]
                places[i] = base
            size = np.uint64(max(n_bins[f] - 1, 0))
            while size > np.uint64(1):
                half = size >> np.uint64(1)
                for i in range(n_rows):
                    place = places[i]
                    places[i] = place + half * np.uint64(edges[place + half - np.uint64(1)] < values[i])
                size -= half
            for i in range(n_rows):
                value, code = values[i], np.int64(places[i] - base)
                if size > np.uint64(0):
                    code += np.int64(edges[places[i]] < value)
                codes[f, begin + i] = code if value == value else n_bins[f]


def choose_bins(
    column: NDArray[np.float64],
    weights: NDArray[np.float64],
    max_bins: int,
    all_distinct: Callable[[NDArray[np.float64]], NDArray[np.float64] | None],
) -> Bins:
    """Return the bins of one feature, given its values in the sampled rows in their order, which may get sorted.

    Weights, of the same rows or none, are such that their sums are exact: rounding would move the ends of bins. Where
    the sample has few distinct values, `all_distinct` takes them and returns those of all rows, sorted, or None for
    more than max_bins.
    """
    if len(weights) > 0:
        order = np.argsort(column, kind="stable")
        column, weights = column[order], weights[order]
    else:
        column.sort()
    n_values = len(column) - int(np.count_nonzero(np.isnan(column)))
    room = min(max_bins, max(n_values, 1))
    lower, upper = np.empty(room), np.empty(room)
    n_bins, distinct = _find_bins(column[:n_values], weights[:n_values], room, lower, upper)
    if distinct and (known := all_distinct(lower[:n_bins])) is not None:
        return known, known
    return lower[:n_bins].copy(), upper[:n_bins].copy()


def add_distinct(X: NDArray[Any], feature: int, known: NDArray[Any], max_bins: int) -> NDArray[np.float64] | None:
    """Return the distinct values of a column and those known, sorted; None for more than max_bins."""
    both = np.empty(max_bins)
    both[: len(known)] = known
    n_known = _all_distinct(X, feature, max_bins, both, len(known))
    return both[:n_known] if n_known <= max_bins else None


def join_bins(bins: Iterable[Bins]) -> BinValues:
    """Put the bins of all features together."""
    lower, upper = zip(*bins)
    first = np.concatenate(([0], np.cumsum([len(values) for values in lower]))).astype(np.int64)
    # Of the two zeros, which are equal, always the same one.
    return BinValues(first, np.concatenate(lower) + 0.0, np.concatenate(upper) + 0.0)


def code_dtype(max_n_bins: int) -> type[np.unsignedinteger]:
    """Return the narrowest type that holds every code and the missing one."""
    if max_n_bins <= MAX_BINS:
        return np.uint8
    return np.uint16 if max_n_bins < 2**16 else np.uint32


def bin_matrix(
    X: NDArray[Any],
    *,
    max_bins: int | None = MAX_BINS,
    weights: NDArray[np.float64] | None = None,
    run: ParallelMap = map,
    by_set: NDArray[np.bool_] | None = None,
) -> BinnedMatrix:
    """Turn a matrix of values into one of codes.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float32 or float64
        NaN is missing, infinite values are allowed.
    max_bins : int or None
        At most this many codes a feature, 2 to 255; None keeps all distinct values.
    weights : ndarray of shape (n_rows,), float64, or None
        What a row counts for the size of bins.
    run : callable
        A parallel `map`; its calls share memory and release the GIL.
    by_set : ndarray of shape (n_features,), bool, or None
        Features that hold codes of categories; all of them are kept.
    """
    n_rows, n_features = X.shape
    rows = sample_rows(n_rows, n_rows if max_bins is None else SAMPLE_ROWS)
    row_weights = np.empty(0) if weights is None else exact_weights(weights[rows])
    group = max(1, min(_GROUP_CELLS // len(rows), (n_features + 1) // 2))
    room = max_bins or len(rows)
    most = [room] * n_features if by_set is None else np.where(by_set, MAX_BINS, room).tolist()

    def bin_feature(feature: int, column: NDArray[np.float64]) -> Bins:
        def all_distinct(known: NDArray[np.float64]) -> NDArray[np.float64] | None:
            return known.copy() if len(rows) == n_rows else add_distinct(X, feature, known, most[feature])

        return choose_bins(column, row_weights, most[feature], all_distinct)

    def bin_group(first_feature: int) -> list[Bins]:
        columns = np.empty((min(group, n_features - first_feature), len(rows)))
        _take(X, rows, first_feature, columns)
        return [bin_feature(first_feature + i, column) for i, column in enumerate(columns)]

    values = join_bins(pair for some in run(bin_group, range(0, n_features, group)) for pair in some)
    return encode_matrix(X, values, run)


def bin_blocks(blocks: Iterable[NDArray[Any]], codes: NDArray[np.unsignedinteger], **options: Any) -> BinnedMatrix:
    """Do what `bin_matrix` does for a matrix that is given as blocks of its columns; codes are written to `codes`."""
    bins: list[Bins] = []
    for block in blocks:
        binned = bin_matrix(block, **options)
        codes[len(bins) : len(bins) + len(binned.codes)] = binned.codes
        starts = binned.values.first[1:-1]
        bins += zip(np.split(binned.values.lower, starts), np.split(binned.values.upper, starts))
    values = join_bins(bins)
    return BinnedMatrix(codes, np.diff(values.first), values)


def encode_matrix(X: NDArray[Any], values: BinValues, run: ParallelMap = map) -> BinnedMatrix:
    """Turn a matrix of values into one of codes, given what codes stand for; arguments as those of `bin_matrix`."""
    n_bins = np.diff(values.first)
    edges = np.empty(len(values.lower))
    _find_edges(values, n_bins, edges)
    codes = np.empty((X.shape[1], X.shape[0]), dtype=code_dtype(int(n_bins.max())))

    def encode(start: int) -> None:
        scratch = np.empty(_TILE_ROWS), np.empty(_TILE_ROWS, dtype=np.uint64)
        _encode(X, start, min(start + _BLOCK_ROWS, len(X)), values.first, n_bins, edges, *scratch, codes)

    list(run(encode, range(0, len(X), _BLOCK_ROWS)))
    return BinnedMatrix(codes, n_bins, values)
