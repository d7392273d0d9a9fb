"""Class weights by code for the rows of one node, one feature at a time.

A row of a node is one uint64, an *element*: row number (32 bits), class (16), weight (16). With float or large
weights the element's weight is 0 and `weights[row]` holds a fixed-point int64 instead: sums of integers do not depend
on the order of rows, so no result does.
"""

import numpy as np

from aucforest._compile import bare_device, lowest_bit

# What rounding can make of a worthless cut, relative to the largest possible score.
ROUNDING = 1e-12

_ROW = np.uint64(0xFFFFFFFF)
_LABEL = np.uint64(0xFFFF)
_LABEL_SHIFT = np.uint64(32)
_WEIGHT_SHIFT = np.uint64(48)
MAX_CLASSES = 0xFFFF


@bare_device
def pack(row: int, label: int, weight: int) -> np.uint64:
    """Make an element."""
    return np.uint64(row) | (np.uint64(label) << _LABEL_SHIFT) | (np.uint64(weight) << _WEIGHT_SHIFT)


@bare_device
def row_of(element: np.uint64) -> np.uint64:
    """Return the row number of an element."""
    return element & _ROW


@bare_device
def label_of(element: np.uint64) -> np.uint64:
    """Return the class of an element."""
    return (element >> _LABEL_SHIFT) & _LABEL


@bare_device
def weight_of(element: np.uint64) -> np.int64:
    """Return the weight of an element."""
    return np.int64(element >> _WEIGHT_SHIFT)


@bare_device
def with_row(element: np.uint64, row: int) -> np.uint64:
    """Return the element with another row number."""
    return (element & ~_ROW) | np.uint64(row)


@bare_device
def element_weight(element, row, weights):  # type: ignore[no-untyped-def]
    """Return the weight of an element, wherever it is kept."""
    return weights[row] if len(weights) > 0 else weight_of(element)


@bare_device
def fill(column, elements, weights, slots, shift, histogram):  # type: ignore[no-untyped-def]
    """Add the weight of every element at code << shift | slots[class]."""
    if len(weights) > 0:
        for i in range(len(elements)):
            element = elements[i]
            row = row_of(element)
            cell = (np.uint64(column[row]) << shift) + np.uint64(slots[label_of(element)])
            histogram[cell] += weights[row]
    else:
        for i in range(len(elements)):
            element = elements[i]
            cell = (np.uint64(column[row_of(element)]) << shift) + np.uint64(slots[label_of(element)])
            histogram[cell] += weight_of(element)


@bare_device
def list_codes(column, elements, n_codes, mask, listed):  # type: ignore[no-untyped-def]
    """Write the distinct codes of the elements in rising order and return how many there are."""
    for i in range(len(elements)):
        mark_code(mask, np.uint64(column[row_of(elements[i])]))
    return list_bits(mask, n_codes, listed)


@bare_device
def mark_code(mask, code):  # type: ignore[no-untyped-def]
    """Set the bit of a code, or of a cell."""
    mask[code >> np.uint64(6)] |= np.uint64(1) << (code & np.uint64(63))


@bare_device
def list_bits(mask, n_bits, listed):  # type: ignore[no-untyped-def]
    """Write the positions of the set bits in rising order, clear them and return how many there were.

    Counting trailing zeros needs neither sorting nor a step for every empty code.
    """
    n_listed = np.uint64(0)
    for word in range(np.uint64((n_bits + 63) // 64)):
        bits = mask[word]
        mask[word] = np.uint64(0)
        while bits != np.uint64(0):
            listed[n_listed] = (np.uint64(word) << np.uint64(6)) + lowest_bit(bits)
            n_listed += np.uint64(1)
            bits &= bits - np.uint64(1)
    return np.int64(n_listed)
