"""Samples of a node packed into integers, their codes and weights, and the partition of samples by a split.

A sample is one uint64: the row of the training data (32 bits), the class (16) and the weight (16). For float or large
weights, the bits of the weight are 0 and `Columns.weights[row]` is the weight as a fixed-point int64. Sums of integers
do not depend on the order of the samples. So trees do not depend on it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel

MAX_CLASSES = 0xFFFF
# The indices of nodes are int32. A tree has less than two nodes per row, so these indices are below 2**30.
MOST_ROWS = 2**29 - 1
# `CodeBins.bin_of_rank` if codes are not replaced by ranks.
NO_RANKS = np.empty((0, 0), dtype=np.uint32)
_CODE_TYPES = [np.dtype("u1"), np.dtype("u2"), np.dtype("u4")]
_ROW = np.uint64(0xFFFFFFFF)
_LABEL = np.uint64(0xFFFF)
_LABEL_SHIFT = np.uint64(32)
_WEIGHT_SHIFT = np.uint64(48)


class Codes(NamedTuple):
    """Codes of one, two or four bytes, in one of three arrays. So kernels are compiled once for all sizes."""

    n_bytes: int
    one: NDArray[np.uint8]
    two: NDArray[np.uint16]
    four: NDArray[np.uint32]

    @classmethod
    def of(cls, codes: NDArray[np.unsignedinteger]) -> "Codes":
        """Return the codes of an array, which is not copied."""
        arrays = [np.empty((0,) * codes.ndim, dtype) for dtype in _CODE_TYPES]
        arrays[_CODE_TYPES.index(codes.dtype)] = codes
        return cls(codes.itemsize, *arrays)

    @property
    def array(self) -> NDArray[np.unsignedinteger]:
        """The array that has the codes."""
        return next(array for array in self[1:] if array.itemsize == self.n_bytes)


class SparseCodes(NamedTuple):
    """The codes of a matrix, without those of zero, by column and by row; all arrays are empty for a dense matrix."""

    zeros: NDArray[np.int64]  # (n_features,) the code of zero
    column_starts: NDArray[np.int64]  # (n_features + 1,)
    rows: NDArray[np.int32]  # (n_stored,)
    column_codes: Codes  # (n_stored,)
    row_starts: NDArray[np.int64]  # (n_rows + 1,)
    features: NDArray[np.int32]  # (n_stored,)
    row_codes: Codes  # (n_stored,)


class SparseNode(NamedTuple):
    """Buffers for the stored codes of the samples of a node; `tree.sparse` explains them.

    A node that lists its codes has a linked list of n_listed[f] codes for feature f, which starts at index last[f].
    """

    number: NDArray[np.int64]  # (1,) the index of the node
    n_codes: NDArray[np.int64]  # (1,) number of listed codes; -1 if rows are looked up instead
    n_listed: NDArray[np.int32]  # (n_features,) number of listed codes of each feature
    last: NDArray[np.int32]  # (n_features,) the index of the last listed code of each feature
    previous: NDArray[np.int32]  # (capacity,), as the next three; index of the preceding listed code of the feature
    feature: NDArray[np.int32]
    code: NDArray[np.uint32]
    sample: NDArray[np.uint64]
    node_of: NDArray[np.int32]  # (n_rows,) row -> its node, or the highest ancestor that lists codes; -1 if out of bag
    sample_of: NDArray[np.uint64]  # (n_rows,) row -> sample
    found: NDArray[np.uint64]  # (n_rows + 1,) the samples with a stored code of a feature
    found_codes: NDArray[np.uint32]  # (n_rows + 1,)
    is_other: NDArray[np.uint8]  # (n_rows,) whether a row goes to the other side than zeros; 0 between splits

    @classmethod
    def of(cls, sparse: SparseCodes, capacity: int) -> "SparseNode":
        """Allocate the buffers; capacity is from `sparse.most_listed`."""
        n_features, n_rows = len(sparse.zeros), max(len(sparse.row_starts) - 1, 0)
        return cls(
            number=np.zeros(1, dtype=np.int64),
            n_codes=np.zeros(1, dtype=np.int64),
            n_listed=np.zeros(n_features, dtype=np.int32),
            last=np.empty(n_features, dtype=np.int32),
            previous=np.empty(capacity, dtype=np.int32),
            feature=np.empty(capacity, dtype=np.int32),
            code=np.empty(capacity, dtype=np.uint32),
            sample=np.empty(capacity, dtype=np.uint64),
            node_of=np.empty(n_rows, dtype=np.int32),
            sample_of=np.empty(n_rows, dtype=np.uint64),
            found=np.empty(n_rows + 1, dtype=np.uint64),
            found_codes=np.empty(n_rows + 1, dtype=np.uint32),
            is_other=np.zeros(n_rows, dtype=np.uint8),
        )


_NO_INDEX, _NO_ITEM, _NO_CODE = np.empty(0, np.int64), np.empty(0, np.int32), Codes.of(np.empty(0, np.uint8))
NO_SPARSE = SparseCodes(_NO_INDEX, _NO_INDEX, _NO_ITEM, _NO_CODE, _NO_INDEX, _NO_ITEM, _NO_CODE)
NO_NODE = SparseNode.of(NO_SPARSE, 0)


class CodeBins(NamedTuple):
    """The bins of codes. In the smallest matrix of `growing`, codes may be replaced by their ranks."""

    bin_of_rank: NDArray[np.uint32]  # (n_features, n_ranks); empty if codes are not replaced by ranks
    values: Any  # the bounds of the bins, a `binning.BinValues`


class Columns(NamedTuple):
    """The training data as input of the splitter; a greater code is a greater value."""

    codes: Codes  # (n_features, n_rows), or (n_features, 0) if codes are sparse; code n_bins[f] is a missing value
    n_bins: NDArray[np.int64]  # (n_features,)
    weights: NDArray[np.int64]  # (n_rows,), or empty if the samples contain the weights
    bins: CodeBins
    kinds: NDArray[np.int8]  # (n_features,) see `features`
    is_sampled: bool  # whether bins were computed from a sample of the rows, so that values may be outside all bins
    sparse: SparseCodes = NO_SPARSE
    node: SparseNode = NO_NODE


class Side(NamedTuple):
    """The condition for samples to go left: contains(rule, code) is true, or the code equals `also_left`."""

    contains: Callable[..., Any]
    rule: Any
    also_left: int | np.int64  # the code of missing values; -1 if they go right


@bare_device
def _read_narrow(codes, index):
    return np.uint64(codes.one[index])


@bare_device
def _read_wide(codes, index):
    return np.uint64(codes.two[index]) if codes.n_bytes == 2 else np.uint64(codes.four[index])


@bare_device
def code_at(codes, index):
    """Return a code, given its index in the array."""
    return _read_narrow(codes, index) if codes.n_bytes == 1 else _read_wide(codes, index)


@bare_device
def set_code(codes, index, code):
    """Write a code, given its index in the array."""
    if codes.n_bytes == 1:
        codes.one[index] = code
    elif codes.n_bytes == 2:
        codes.two[index] = code
    else:
        codes.four[index] = code


@bare_device
def with_codes(function, codes, *arguments):
    """Return function(codes, read_code, *arguments), where read_code(codes, index) returns a code."""
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
    """Write the samples of a tree from the labels and counts of all rows, and return the number of samples.

    Out-of-bag rows, which have a count of 0, are left out. If use_counts, the weight of a sample is its count.
    """
    n_taken = np.uint64(0)
    for row in range(len(labels)):
        samples[n_taken] = pack(row, labels[row], counts[row] if use_counts else 0)
        n_taken += np.uint64(counts[row] > 0)
    return np.int64(n_taken)


@bare_device
def is_at_most(most, code):
    """Return whether a code is at most another."""
    return code <= most


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
def partition(codes, read_code, feature, left, samples, spill):
    """Move the samples that go left, given a `Side`, to the front, and return their number.

    Samples on the same side keep their order. There are no branches: each sample is written to both sides, but only one
    index advances.
    """
    feature, n_left, n_right = np.uint64(feature), np.uint64(0), np.uint64(0)
    for i in range(len(samples)):
        sample = samples[i]
        code = np.int64(read_code(codes, (feature, row_of(sample))))
        is_left = np.uint64(left.contains(left.rule, code) | (code == left.also_left))
        samples[n_left] = sample
        spill[n_right] = sample
        n_left += is_left
        n_right += np.uint64(1) - is_left
    for i in range(n_right):
        samples[n_left + i] = spill[i]
    return np.int64(n_left)


class FixedPoint(NamedTuple):
    """Conversion of weights to integers: weights are divided by `divisor`, multiplied by 2**exponent and rounded."""

    divisor: float
    exponent: int

    @classmethod
    def of(cls, weights: NDArray[np.float64], n_draws: int) -> "FixedPoint":
        """Choose the unit of weights, not all 0, such that sums of n_draws weights do not overflow.

        If all weights are multiples of 1 or of the least weight, they become small integers, for which AUC scores are
        exact: sums are below 2**31, and products of two sums fit into int64. Else, they get as many bits as possible.
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
        return cls.for_sums(most, n_draws)

    @classmethod
    def for_sums(cls, most: float, n_draws: int) -> "FixedPoint":
        """Choose the smallest unit for which sums of n_draws weights up to `most` do not overflow."""
        # `frexp` has no rounding errors, unlike a logarithm. So weights times a power of two become the same integers.
        return cls(1.0, 61 - int(np.frexp(most)[1]) - n_draws.bit_length())

    @property
    def unit(self) -> float:
        """The weight of the integer 1."""
        return float(np.ldexp(self.divisor, -self.exponent))

    def apply(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the weights as integers of at least 1."""
        return np.maximum(np.rint(np.ldexp(weights / self.divisor, self.exponent)), 1.0).astype(np.int64)


def exact_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights as integers by `FixedPoint`, with 8 bits less than in trees, so that float64 sums are exact."""
    return FixedPoint.of(weights, len(weights) << 8).apply(weights).astype(np.float64)
