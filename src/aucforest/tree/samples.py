"""The samples of a node, and their weights as integers.

A sample is one uint64: the row of the training data (32 bits), the class (16) and the weight (16). For float or large
weights these 16 bits are 0 and `Columns.weights[row]` is the weight as a fixed-point int64. Sums of integers do not
depend on the order of the samples, so the results do not either.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel

MAX_CLASSES = 0xFFFF
# Node numbers have 32 bits, and growing a tree takes up to four times as many nodes as rows.
MOST_ROWS = 2**29 - 1
# The names in `Columns` if codes are not renumbered.
NO_NAMES = np.empty((0, 0), dtype=np.uint32)
_ROW = np.uint64(0xFFFFFFFF)
_LABEL = np.uint64(0xFFFF)
_LABEL_SHIFT = np.uint64(32)
_WEIGHT_SHIFT = np.uint64(48)


class Codes(NamedTuple):
    """Codes of one, two or four bytes each: two of the arrays are empty, so that numba compiles one type for all."""

    n_bytes: int
    one: NDArray[np.uint8]
    two: NDArray[np.uint16]
    four: NDArray[np.uint32]

    @classmethod
    def of(cls, codes: NDArray[np.unsignedinteger]) -> "Codes":
        """Return the codes of an array, which is not copied."""
        arrays = [np.empty((0,) * codes.ndim, dtype) for dtype in ("u1", "u2", "u4")]
        arrays[["uint8", "uint16", "uint32"].index(codes.dtype.name)] = codes
        return cls(codes.itemsize, *arrays)

    @property
    def array(self) -> NDArray[np.unsignedinteger]:
        """The array that has the codes."""
        return next(array for array in self[1:] if array.itemsize == self.n_bytes)


class SparseCodes(NamedTuple):
    """The codes of a sparse matrix, by column and by row, without those of zeros; all are empty if it is dense."""

    zeros: NDArray[np.int64]  # (n_features,) the code of zero
    column_starts: NDArray[np.int64]  # (n_features + 1,)
    rows: NDArray[np.int32]  # (n_stored,)
    column_codes: Codes  # (n_stored,)
    row_starts: NDArray[np.int64]  # (n_rows + 1,)
    features: NDArray[np.int32]  # (n_stored,)
    row_codes: Codes  # (n_stored,)

    @classmethod
    def none(cls) -> "SparseCodes":
        """Return what stands beside dense codes."""
        starts, items = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
        codes = Codes.of(np.empty(0, dtype=np.uint8))
        return cls(starts, starts, items, codes, starts, items, codes)


class SparseNode(NamedTuple):
    """Buffers for the stored codes of the samples of a node; `tree.sparse` explains them.

    The linked codes of feature f are that at last[f], the one before it and so on, n_linked[f] in number.
    """

    state: NDArray[np.int64]  # (2,) the number of the node, and that of linked codes; -1 if rows are looked up instead
    n_linked: NDArray[np.int32]  # (n_features,) zero but for the features of linked codes
    last: NDArray[np.int32]  # (n_features,)
    before: NDArray[np.int32]  # (capacity,), this and the next three for each linked code
    feature: NDArray[np.int32]
    code: NDArray[np.uint32]
    sample: NDArray[np.uint64]
    node_of: NDArray[np.int32]  # (n_rows,) row -> the number of its node, or of one above that looks no rows up
    sample_of: NDArray[np.uint64]  # (n_rows,) row -> sample
    found: NDArray[np.uint64]  # (n_rows + 1,) the samples with a stored code of a feature
    found_codes: NDArray[np.uint32]  # (n_rows + 1,)
    is_other: NDArray[np.uint8]  # (n_rows,) zero between splits

    @classmethod
    def of(cls, sparse: SparseCodes, capacity: int) -> "SparseNode":
        """Allocate the buffers; capacity is from `sparse.most_linked`."""
        n_features, n_rows = len(sparse.zeros), max(len(sparse.row_starts) - 1, 0)
        return cls(
            np.zeros(2, dtype=np.int64),
            np.zeros(n_features, dtype=np.int32),
            np.empty(n_features, dtype=np.int32),
            np.empty(capacity, dtype=np.int32),
            np.empty(capacity, dtype=np.int32),
            np.empty(capacity, dtype=np.uint32),
            np.empty(capacity, dtype=np.uint64),
            np.empty(n_rows, dtype=np.int32),
            np.empty(n_rows, dtype=np.uint64),
            np.empty(n_rows + 1, dtype=np.uint64),
            np.empty(n_rows + 1, dtype=np.uint32),
            np.zeros(n_rows, dtype=np.uint8),
        )


NO_SPARSE = SparseCodes.none()
_NO_NODE = SparseNode.of(NO_SPARSE, 0)


class Columns(NamedTuple):
    """The training data as input of the splitter; a greater code is a greater value."""

    codes: Codes  # (n_features, n_rows), or (n_features, 0); code n_bins[f] is a missing value
    n_bins: NDArray[np.int64]  # (n_features,)
    weights: NDArray[np.int64]  # (n_rows,), or empty if the samples contain the weights
    names: NDArray[np.uint32]  # (n_features, n_local_codes) the bins of renumbered codes; empty if codes are bins
    sparse: SparseCodes = NO_SPARSE
    node: SparseNode = _NO_NODE


@bare_device
def _read_narrow(codes, index):
    """Return the code at a place in an array of codes of one byte."""
    return np.uint64(codes.one[index])


@bare_device
def _read_wide(codes, index):
    """Return the code at a place in an array of codes of more bytes."""
    return np.uint64(codes.two[index]) if codes.n_bytes == 2 else np.uint64(codes.four[index])


@bare_device
def code_at(codes, index):
    """Return the code at a place, which is an index of the array."""
    return _read_narrow(codes, index) if codes.n_bytes == 1 else _read_wide(codes, index)


@bare_device
def set_code(codes, index, code):
    """Write the code at a place, which is an index of the array."""
    if codes.n_bytes == 1:
        codes.one[index] = code
    elif codes.n_bytes == 2:
        codes.two[index] = code
    else:
        codes.four[index] = code


@bare_device
def with_codes(function, codes, *arguments):
    """Return function(codes, read, *arguments), where read(codes, place) is the fastest way to read these codes."""
    if codes.n_bytes == 1:
        return function(codes, _read_narrow, *arguments)
    return function(codes, _read_wide, *arguments)


@bare_device
def pack(row: int, label: int, weight: int) -> np.uint64:
    """Pack a row, a class and a weight into a sample."""
    return np.uint64(row) | (np.uint64(label) << _LABEL_SHIFT) | (np.uint64(weight) << _WEIGHT_SHIFT)


@bare_device
def row_of(sample: np.uint64) -> np.uint64:
    """Return the row of a sample."""
    return sample & _ROW


@bare_device
def label_of(sample: np.uint64) -> np.uint64:
    """Return the class of a sample."""
    return (sample >> _LABEL_SHIFT) & _LABEL


@bare_device
def packed_weight(sample: np.uint64) -> np.int64:
    """Return the weight that is packed in a sample."""
    return np.int64(sample >> _WEIGHT_SHIFT)


@bare_device
def with_row(sample: np.uint64, row: int) -> np.uint64:
    """Return the sample with another row."""
    return (sample & ~_ROW) | np.uint64(row)


@bare_device
def weight_of(sample, weights):
    """Return the weight of a sample, packed or from `weights`."""
    return weights[row_of(sample)] if len(weights) > 0 else packed_weight(sample)


@bare_kernel
def take_samples(labels, counts, use_counts, samples):
    """Write the samples of a tree from labels and counts of all rows, uint16 each, and return the number of samples.

    Out-of-bag rows, which have a count of 0, are left out. use_counts is whether the weight of a sample is its count.
    """
    n_taken = np.uint64(0)
    for row in range(len(labels)):
        samples[n_taken] = pack(row, labels[row], counts[row] if use_counts else 0)
        n_taken += np.uint64(counts[row] > 0)
    return np.int64(n_taken)


@bare_device
def is_at_most(code, value):
    """Return whether a value is at most a code."""
    return value <= code


@bare_device
def has_code(words, code):
    """Return whether a code is in a set, which is four words of 64 bits."""
    code = np.uint64(code)
    return ((words[code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1)) == np.uint64(1)


@bare_device
def add_code(words, code):
    """Add a code, of type uint64, to a set of any number of words."""
    words[code >> np.uint64(6)] |= np.uint64(1) << (code & np.uint64(63))


@bare_device
def partition(codes, read, feature, goes_left, rule, samples, spill, also_left):
    """Move the samples for which goes_left(rule, code) or code == also_left to the front, and return their number.

    Both sides keep their order. To avoid branches, each sample is written to both sides and only one index advances.
    """
    feature, n_left, n_right = np.uint64(feature), np.uint64(0), np.uint64(0)
    for i in range(len(samples)):
        sample = samples[i]
        code = np.int64(read(codes, (feature, row_of(sample))))
        is_left = np.uint64(goes_left(rule, code) | (code == also_left))
        samples[n_left] = sample
        spill[n_right] = sample
        n_left += is_left
        n_right += np.uint64(1) - is_left
    for i in range(n_right):
        samples[n_left + i] = spill[i]
    return np.int64(n_left)


class FixedPoint(NamedTuple):
    """Conversion of weights to integers: they are divided by `divisor` and multiplied by 2 ** `exponent`."""

    divisor: float
    exponent: int

    @classmethod
    def of(cls, weights: NDArray[np.float64], n_draws: int) -> "FixedPoint":
        """Choose the unit of weights, not all 0, for sums of n_draws terms. Only the ratios of the weights matter.

        Multiples of one weight become small integers, for which AUC scores are exact: sums are below 2**31 and products
        of two of them fit into int64. Other weights get as many bits as possible without overflow.
        """
        positive = weights[weights > 0]
        least, most = float(positive.min()), float(positive.max())
        for divisor in (1.0, least):
            if most / divisor * n_draws >= 2**31:
                continue
            ratios = positive / divisor
            wholes = np.rint(ratios)
            # The tolerance is the rounding error of a product and a quotient.
            if np.all(np.abs(ratios - wholes) <= 2 * np.finfo(np.float64).eps * ratios):
                return cls(divisor * float(np.gcd.reduce(wholes.astype(np.int64))), 0)
        # With frexp, unlike a logarithm, weights scaled by a power of two become the same integers.
        return cls(1.0, 61 - int(np.frexp(most)[1]) - n_draws.bit_length())

    @property
    def unit(self) -> float:
        """The weight that the integer 1 stands for."""
        return float(np.ldexp(self.divisor, -self.exponent))

    def apply(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the weights as integers of at least 1."""
        return np.maximum(np.rint(np.ldexp(weights / self.divisor, self.exponent)), 1.0).astype(np.int64)


def exact_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positive weights with the same ratios whose sums are exact in float64, which needs 8 bits less."""
    return FixedPoint.of(weights, len(weights) << 8).apply(weights).astype(np.float64)
