"""Rows in the order of their scores: the one sort that every exact metric of the package walks over.

A score is cut into 32-bit words (one for float32, two for float64). The high word, mapped to an unsigned key
of the same order, is packed with the row number into one uint64; three passes of a radix sort order it.
Float64 scores that share their high word form a run, and only those runs are sorted again, by the low word.

    packed   key of the high word | row        three radix passes
             key of the low word  | row        within runs of equal high words
    ranked   rank of the score    | row        equal scores share a rank, ranks count up from 0
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel, device
from aucforest.metrics._validation import raise_not_finite

ONE = np.uint64(1)
SIGN = np.uint64(1 << 31)
WORD = np.uint64((1 << 32) - 1)
HALF = np.uint64(32)
DIGIT = np.uint64(11)
DIGIT_MASK = np.uint64((1 << 11) - 1)
LAST_DIGIT = np.uint64(2)
INFINITE_32 = np.uint64(0x7F800000)
INFINITE_64 = np.uint64(0x7FF00000)
SHORT_RUN = 48  # up to about here insertion beats clearing 3 * 2048 counters


@device
def ordered_key(word):
    """Map the bits of a float32, or the high word of a float64, to an unsigned key of the same order."""
    return (word ^ WORD) if word & SIGN else (word | SIGN)


@bare_device
def _count_digits(packed, counts):
    """Count the three digits of every key into `counts` (3, 2048)."""
    for value in packed:
        key = value >> HALF
        counts[0, key & DIGIT_MASK] += np.uint32(1)
        counts[1, (key >> DIGIT) & DIGIT_MASK] += np.uint32(1)
        counts[2, key >> (DIGIT + DIGIT)] += np.uint32(1)


@bare_device
def _radix_sort(packed, spare, counts):
    """Sort `packed` in place by its upper 32 bits: stable, least significant of three digits first."""
    for digit in range(3):
        for value in range(counts.shape[1]):
            counts[digit, value] = np.uint32(0)
    _count_digits(packed, counts)
    source, target = packed, spare
    shift = HALF
    moves = 0
    for digit in range(3):
        starts = counts[digit]
        if starts[(packed[0] >> shift) & DIGIT_MASK] < packed.size:
            total = np.uint32(0)
            for value in range(starts.size):
                count = starts[value]
                starts[value] = total
                total += count
            for row in source:
                value = (row >> shift) & DIGIT_MASK
                target[starts[value]] = row
                starts[value] += np.uint32(1)
            source, target = target, source
            moves += 1
        shift += DIGIT
    if moves & 1:
        # A loop: assigning slices takes seconds to compile.
        for i in range(packed.size):
            packed[i] = spare[i]


@bare_device
def _insertion_sort(packed, start, end):
    """Sort the slice from start to end in place."""
    for i in range(start + 1, end):
        value = packed[i]
        j = i
        while j > start and packed[j - 1] > value:
            packed[j] = packed[j - 1]
            j -= 1
        packed[j] = value


@bare_device
def _pack_high_words(words, packed):
    """Fill `packed` with (key of the high word, row); return whether every score is finite."""
    last = words.shape[1] - 1
    infinite = INFINITE_64 if last else INFINITE_32
    finite: Any = True
    for i in range(packed.size):
        word = np.uint64(words[i, last])
        finite &= (word & ~SIGN) < infinite
        if word == SIGN and (last == 0 or words[i, 0] == 0):
            word = np.uint64(0)  # -0.0 equals 0.0
        packed[i] = (ordered_key(word) << HALF) | np.uint64(i)
    return finite


@bare_device
def _pack_low_words(words, packed, lows):
    """Fill `lows` with (key of the low word, row) in the order of `packed`: one pass, so loads overlap."""
    for i in range(packed.size):
        row = packed[i] & WORD
        low = np.uint64(words[row, 0])
        # a negative score has the lower half of the keys, and its low word counts downwards
        lows[i] = ((low if packed[i] >> HALF >= SIGN else low ^ WORD) << HALF) | row


@bare_device
def _number_groups(source, start, end, rank, ranked):
    """Write (rank, row) of a sorted slice, ranks counted from `rank`; return the next rank."""
    key = source[start] >> HALF
    for i in range(start, end):
        value = source[i]
        if value >> HALF != key:
            key = value >> HALF
            rank += ONE
        ranked[i] = (rank << HALF) | (value & WORD)
    return rank + ONE


@bare_device
def _finish_runs(packed, lows, counts):
    """Turn keys of high words into ranks: runs of one key are sorted by `lows` first."""
    rank = np.uint64(0)
    start = 0
    while start < packed.size:
        key = packed[start] >> HALF
        end = start + 1
        while end < packed.size and packed[end] >> HALF == key:
            end += 1
        if end - start == 1:
            packed[start] = (rank << HALF) | (packed[start] & WORD)
            rank += ONE
        else:
            if end - start > SHORT_RUN:
                _radix_sort(lows[start:end], packed[start:end], counts)
            else:
                _insertion_sort(lows, start, end)
            rank = _number_groups(lows, start, end, rank, packed)
        start = end


@bare_kernel
def _rank_rows(words, packed, spare, counts):
    """Fill `packed` with (rank, row) in ascending order of score; return whether every score is finite."""
    if not _pack_high_words(words, packed):
        return False
    _radix_sort(packed, spare, counts)
    if words.shape[1] == 1:
        _number_groups(packed, 0, packed.size, np.uint64(0), packed)
    else:
        _pack_low_words(words, packed, spare)
        _finish_runs(packed, spare, counts)
    return True


def rank_rows(y_score: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
    """Return (rank, row) packed and ascending, shape (n,); ValueError where a score is not finite."""
    # numpy's buffers, not numba's: numpy asks for huge pages
    packed = np.empty(y_score.size, np.uint64)
    words = y_score.view(np.uint32).reshape(y_score.size, -1)
    if not _rank_rows(words, packed, np.empty_like(packed), np.empty((3, 2048), np.uint32)):
        raise_not_finite(y_score, "y_score")
    return packed
