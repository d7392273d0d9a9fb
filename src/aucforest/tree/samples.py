"""The samples of a node, and their weights as integers.

A sample is one uint64: the row of the training data (32 bits), the class (16) and the weight (16). With float or large
weights these 16 bits are 0 and `Columns.weights[row]` holds a fixed-point int64 instead. Sums of integers do not depend
on the order of the samples, so no result does.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel

MAX_CLASSES = 0xFFFF
# Nodes are numbered in 32 bits, while a tree grows up to four times the rows.
MOST_ROWS = 2**29 - 1
# The names in `Columns` where a code is a bin.
NO_NAMES = np.empty((0, 0), dtype=np.uint32)
_ROW = np.uint64(0xFFFFFFFF)
_LABEL = np.uint64(0xFFFF)
_LABEL_SHIFT = np.uint64(32)
_WEIGHT_SHIFT = np.uint64(48)


class Columns(NamedTuple):
    """The training data as the splitter reads them; a greater code is a greater value."""

    codes: NDArray[np.unsignedinteger]  # (n_features, n_rows); code n_bins[f] is a missing value
    n_bins: NDArray[np.int64]  # (n_features,)
    weights: NDArray[np.int64]  # (n_rows,), or empty when the samples hold the weights
    names: NDArray[np.uint32]  # (n_features, n_local_codes) the bins of codes numbered anew; empty where a code is one


@bare_device
def pack(row: int, label: int, weight: int) -> np.uint64:
    """Make a sample."""
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
    """Return the weight that a sample holds."""
    return np.int64(sample >> _WEIGHT_SHIFT)


@bare_device
def with_row(sample: np.uint64, row: int) -> np.uint64:
    """Return the sample with another row."""
    return (sample & ~_ROW) | np.uint64(row)


@bare_device
def weight_of(sample, weights):
    """Return the weight of a sample, wherever it is kept."""
    return weights[row_of(sample)] if len(weights) > 0 else packed_weight(sample)


@bare_kernel
def take_samples(labels, counts, use_counts, samples):
    """Write the samples of a tree, given labels and counts of all rows, uint16 each; return how many there are.

    Rows that the bootstrap sample does not have, with a count of 0, are left out. use_counts says whether the count is
    the weight of a sample.
    """
    n_taken = np.uint64(0)
    for row in range(len(labels)):
        samples[n_taken] = pack(row, labels[row], counts[row] if use_counts else 0)
        n_taken += np.uint64(counts[row] > 0)
    return np.int64(n_taken)


@bare_device
def is_at_most(code, value):
    """Say whether a value is at most a code."""
    return value <= code


@bare_device
def has_code(words, code):
    """Say whether a code is in a set, four words of 64 bits."""
    code = np.uint64(code)
    return ((words[code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1)) == np.uint64(1)


@bare_device
def add_code(words, code):
    """Add a code, of type uint64, to a set of any number of words."""
    words[code >> np.uint64(6)] |= np.uint64(1) << (code & np.uint64(63))


@bare_device
def partition(goes_left, rule, column, samples, spill, also_left):
    """Move the samples whose code fulfils goes_left(rule, code) or is `also_left` to the front, and count them.

    Both sides stay in their order. Free of branches: each sample is written to both and only one of the ends moves on.
    """
    n_left, n_right = np.uint64(0), np.uint64(0)
    for i in range(len(samples)):
        sample = samples[i]
        code = np.int64(column[row_of(sample)])
        is_left = np.uint64(goes_left(rule, code) | (code == also_left))
        samples[n_left] = sample
        spill[n_right] = sample
        n_left += is_left
        n_right += np.uint64(1) - is_left
    for i in range(n_right):
        samples[n_left + i] = spill[i]
    return np.int64(n_left)


class FixedPoint(NamedTuple):
    """Weights as integers: they are divided by `grain` and multiplied by 2 ** `exponent`."""

    grain: float
    exponent: int

    @classmethod
    def of(cls, weights: NDArray[np.float64], n_draws: int) -> "FixedPoint":
        """Choose the unit of weights, not all 0, of which so many are summed: the same for weights in the same ratios.

        Multiples of one weight become small integers, of which AUC scores are exact: sums stay below 2**31, products of
        two of them in int64. Others get all the bits that cannot overflow.
        """
        positive = weights[weights > 0]
        least, most = float(positive.min()), float(positive.max())
        for grain in (1.0, least):
            if most / grain * n_draws >= 2**31:
                continue
            ratios = positive / grain
            wholes = np.rint(ratios)
            # But for the rounding of a product and a quotient.
            if np.all(np.abs(ratios - wholes) <= 2 * np.finfo(np.float64).eps * ratios):
                return cls(grain * float(np.gcd.reduce(wholes.astype(np.int64))), 0)
        # Exponents instead of logarithms: weights scaled by a power of two become the same integers.
        return cls(1.0, 61 - int(np.frexp(most)[1]) - n_draws.bit_length())

    @property
    def unit(self) -> float:
        """What one is worth."""
        return float(np.ldexp(self.grain, -self.exponent))

    def apply(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return weights in units, at least one."""
        return np.maximum(np.rint(np.ldexp(weights / self.grain, self.exponent)), 1.0).astype(np.int64)


def exact_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positive weights in the same ratios whose sums are exact in float64, which has 8 bits less."""
    return FixedPoint.of(weights, len(weights) << 8).apply(weights).astype(np.float64)
