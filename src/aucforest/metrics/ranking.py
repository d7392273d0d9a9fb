"""Sorting of rows by score, which all exact metrics use, and sums over the sorted rows.

A float64 score has two words of 32 bits, and a float32 score has one. The high (or only) word is mapped to an unsigned
key of the same order. The key and the row number are packed into one uint64. The packed numbers are sorted by three
passes of a radix sort. Float64 scores with the same high word form a run, and each run is then sorted by the low word.

    packed   key of the high word | row        sorted by three radix passes
             key of the low word  | row        sorted within runs of equal high words
    ranked   rank of the score    | row        equal scores have the same rank, ranks start at 0

`weights` is None if all weights are 1. Sums are then exact integers.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel, device, kernel
from aucforest.metrics.validation import FloatArray, Scores, require_finite

ONE = np.uint64(1)
SIGN = np.uint64(1 << 31)  # the sign bit of a high word
WORD = np.uint64((1 << 32) - 1)  # a mask of the lower word
HALF = np.uint64(32)  # the number of bits of a word
DIGIT = np.uint64(11)  # the number of bits of a radix digit
DIGIT_MASK = np.uint64((1 << 11) - 1)
INFINITE_32 = np.uint64(0x7F800000)  # the high word of infinity as float32
INFINITE_64 = np.uint64(0x7FF00000)  # the high word of infinity as float64
SHORT_RUN = 48  # Up to about this length, insertion sort is faster than clearing the 3 * 2048 counters of a radix sort.


@device
def ordered_key(word):
    """Map the bits of a float32, or the high word of a float64, to an unsigned key of the same order."""
    return (word ^ WORD) if word & SIGN else (word | SIGN)


@bare_device
def _radix_sort(packed, spare, counts):
    """Sort `packed` in place by its upper word: by three digits, from the least significant one. The sort is stable."""
    for digit in range(3):
        for value in range(counts.shape[1]):
            counts[digit, value] = np.uint32(0)
    for item in packed:
        key = item >> HALF
        counts[0, key & DIGIT_MASK] += np.uint32(1)
        counts[1, (key >> DIGIT) & DIGIT_MASK] += np.uint32(1)
        counts[2, key >> (DIGIT + DIGIT)] += np.uint32(1)
    source, target = packed, spare
    shift = HALF
    moves = 0
    for digit in range(3):
        starts = counts[digit]
        if starts[(packed[0] >> shift) & DIGIT_MASK] < packed.size:  # else all rows have the same digit
            total = np.uint32(0)
            for value in range(starts.size):
                count = starts[value]
                starts[value] = total
                total += count
            for item in source:
                value = (item >> shift) & DIGIT_MASK
                target[starts[value]] = item
                starts[value] += np.uint32(1)
            source, target = target, source
            moves += 1
        shift += DIGIT
    if moves & 1:
        # This is a loop, because an assignment of slices takes seconds to compile.
        for i in range(packed.size):
            packed[i] = spare[i]


@bare_device
def _insertion_sort(packed, start, end):
    for i in range(start + 1, end):
        value = packed[i]
        j = i
        while j > start and packed[j - 1] > value:
            packed[j] = packed[j - 1]
            j -= 1
        packed[j] = value


@bare_device
def _pack_high_words(words, packed):
    """Write (key of the high word, row) to `packed`; return whether every score is finite."""
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
    """Write (key of the low word, row) to `lows` in the order of `packed`."""
    for i in range(packed.size):
        row = packed[i] & WORD
        low = np.uint64(words[row, 0])
        # Keys below SIGN are those of negative scores, which increase as the low word decreases.
        lows[i] = ((low if packed[i] >> HALF >= SIGN else low ^ WORD) << HALF) | row


@bare_device
def _number_groups(source, start, end, rank, ranked):
    """Write (rank, row) of a sorted slice to `ranked`. The lowest rank is `rank`; return the next unused rank."""
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
    """Sort runs of equal keys by `lows`, and replace the keys in `packed` by ranks."""
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
    """Write (rank, row) in ascending order of score to `packed`; return whether every score is finite."""
    if not _pack_high_words(words, packed):
        return False
    _radix_sort(packed, spare, counts)
    if words.shape[1] == 1:
        _number_groups(packed, 0, packed.size, np.uint64(0), packed)
    else:
        _pack_low_words(words, packed, spare)
        _finish_runs(packed, spare, counts)
    return True


def rank_rows(y_score: Scores) -> NDArray[np.uint64]:
    """Return packed (rank, row) in ascending order. Raise ValueError if a score is not finite."""
    packed, spare, counts = _make_buffers(y_score.size)
    if not _rank_rows(_words(y_score), packed, spare, counts):
        require_finite(y_score, "y_score")
    return packed


def _words(y_score: Scores) -> NDArray[np.uint32]:
    """Return the 32-bit words of contiguous scores along an additional last axis."""
    return y_score.view(np.uint32).reshape(*y_score.shape, -1)


def _make_buffers(n_rows: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint32]]:
    """Allocate the buffers of `_rank_rows` with numpy, because numba does not use huge pages."""
    return np.empty(n_rows, np.uint64), np.empty(n_rows, np.uint64), np.empty((3, 2048), np.uint32)


@kernel
def _twice_u(ranked, positive, weights):
    """Return the sum over pairs of w_i w_j (2 [s_i > s_j] + [s_i = s_j]), and the total weights of both classes."""
    twice_u: Any = 0
    below_positive: Any = 0
    below_negative: Any = 0
    tied_positive: Any = 0
    tied_negative: Any = 0
    rank = np.uint64(0)
    for value in ranked:
        if value >> HALF != rank:
            rank = value >> HALF
            twice_u += tied_positive * (2 * below_negative + tied_negative)
            below_positive += tied_positive
            below_negative += tied_negative
            tied_positive, tied_negative = 0, 0
        row = value & WORD
        weight = 1 if weights is None else weights[row]
        positive_weight = weight * np.int64(positive[row])
        tied_positive += positive_weight
        tied_negative += weight - positive_weight
    twice_u += tied_positive * (2 * below_negative + tied_negative)
    return twice_u, below_positive + tied_positive, below_negative + tied_negative


def mann_whitney(positive: NDArray[np.bool_], ranked: NDArray[np.uint64], weights: FloatArray | None) -> float:
    """Return U / (W1 W0), the AUC of ranked rows with ties counted half; NaN if a class has no weight."""
    twice_u, positive_weight, negative_weight = _twice_u(ranked, positive, weights)
    pairs = positive_weight * negative_weight
    return min(twice_u / (2 * pairs), 1.0) if pairs > 0 else float("nan")  # Sums of weights have rounding errors.


@kernel
def _cumulate(ranked, positive, weights, tps, fps, rows):
    """For each distinct score, descending from index 1, write the weights of both classes at or above it, and a row."""
    tp, fp = 0.0, 0.0
    last = np.uint64(tps.size - 1)
    for i in range(ranked.size - 1, -1, -1):
        row = ranked[i] & WORD
        weight = 1.0 if weights is None else weights[row]
        # There is no branch on the label, because the processor could not predict it.
        tp += weight if positive[row] else 0.0
        fp += 0.0 if positive[row] else weight
        step = last - (ranked[i] >> HALF)
        tps[step] = tp
        fps[step] = fp
        rows[step] = row


class Cumulated(NamedTuple):
    """Weights of positives and negatives with scores >= each threshold. Thresholds descend from infinity."""

    tps: FloatArray
    fps: FloatArray
    thresholds: NDArray[Any]

    @property
    def selected(self) -> FloatArray:
        """Weight of all samples at or above each threshold."""
        return self.tps + self.fps

    # Bounds, such as a minimum precision, are compared with these quotients: products would be rounded differently.

    @property
    def precision(self) -> FloatArray:
        """Precision at each threshold, 0 if no sample is selected."""
        return np.divide(self.tps, self.selected, out=np.zeros(self.tps.shape), where=self.selected > 0.0)

    @property
    def fpr(self) -> FloatArray:
        """False positive rate at each threshold, 0 without negatives."""
        return self.fps / self.fps[-1] if self.fps[-1] > 0.0 else np.zeros(self.fps.shape)


def cumulate(positive: NDArray[np.bool_], y_score: Scores, weights: FloatArray | None) -> Cumulated:
    """Return the cumulative weights. The thresholds are infinity and all distinct scores with positive weight."""
    if weights is not None and not weights.all() and weights.any():
        require_finite(y_score, "y_score")
        kept = weights > 0.0
        positive, y_score, weights = positive[kept], y_score[kept], weights[kept]
    ranked = rank_rows(y_score)
    n_thresholds = int(ranked[-1] >> HALF) + 2
    (tps, fps), rows = np.zeros((2, n_thresholds)), np.zeros(n_thresholds, dtype=np.int64)
    _cumulate(ranked, positive, weights, tps, fps, rows)
    thresholds = y_score[rows]
    thresholds[0] = np.inf
    return Cumulated(tps, fps, thresholds)


@kernel
def _placements(ranked, positive, weights, placed):
    """For each row, write the weight of the other class at lower scores; ties count half. Return both class weights."""
    below_positive, below_negative = 0.0, 0.0
    start = 0
    while start < ranked.size:
        rank = ranked[start] >> HALF
        tied_positive, tied_negative = 0.0, 0.0
        end = start
        while end < ranked.size and ranked[end] >> HALF == rank:
            row = ranked[end] & WORD
            positive_weight = weights[row] * np.float64(positive[row])
            tied_positive += positive_weight
            tied_negative += weights[row] - positive_weight
            end += 1
        for i in range(start, end):
            row = ranked[i] & WORD
            if positive[row]:
                placed[row] = below_negative + 0.5 * tied_negative
            else:
                placed[row] = below_positive + 0.5 * tied_positive
        below_positive += tied_positive
        below_negative += tied_negative
        start = end
    return below_positive, below_negative


def placements(positive: NDArray[np.bool_], y_score: Scores, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the proportion of negatives below each positive, and of positives above each negative; ties count half."""
    placed = np.empty(y_score.size)
    positive_weight, negative_weight = _placements(rank_rows(y_score), positive, weights, placed)
    # The totals are summed in the same order as `placed`, so perfect scores have proportions of exactly 1.
    return placed[positive] / (negative_weight or np.nan), 1.0 - placed[~positive] / (positive_weight or np.nan)


@kernel
def _lost_pairs(ranked, k, codes, weights, lost):
    """Add to lost[j], for each row of class j, its weight * (2 * weight of class k below + weight of class k tied)."""
    below: Any = 0
    start = 0
    while start < ranked.size:
        rank = ranked[start] >> HALF
        tied: Any = 0
        end = start
        while end < ranked.size and ranked[end] >> HALF == rank:
            row = ranked[end] & WORD
            weight = 1 if weights is None else weights[row]
            tied += weight * np.int64(codes[row] == k)
            end += 1
        for i in range(start, end):
            row = ranked[i] & WORD
            weight = 1 if weights is None else weights[row]
            lost[codes[row]] += weight * (2 * below + tied)
        below += tied
        start = end


@kernel
def _lost_columns(words, codes, weights, buffers, lost):
    """Write the result of `lost_columns`; return whether every score is finite."""
    packed, spare, counts = buffers
    for k in range(len(words)):
        if not _rank_rows(words[k], packed, spare, counts):
            return False
        for i in range(len(weights)):
            _lost_pairs(packed, k, codes, weights[i], lost[i, k])
    return True


def lost_columns(codes: NDArray[np.unsignedinteger], columns: FloatArray, weights: FloatArray) -> FloatArray:
    """Return `lost_pairs` for each array of `weights`, (n_weights, n_rows). Scores have shape (n_classes, n_rows)."""
    n_classes, n_rows = columns.shape
    lost = np.zeros((len(weights), n_classes, n_classes))
    if not _lost_columns(_words(columns), codes, weights, _make_buffers(n_rows), lost):
        require_finite(columns, "y_score")
    return lost


def lost_pairs(codes: NDArray[np.uint32], y_score: Scores, weights: FloatArray | None) -> NDArray[Any]:
    """Return lost[k, j], twice the weight of the pairs in which column k ranks class k below class j (k != j)."""
    n_classes = y_score.shape[1]
    lost: NDArray[Any] = np.zeros((n_classes, n_classes), np.int64 if weights is None else np.float64)
    for k in range(n_classes):
        _lost_pairs(rank_rows(np.ascontiguousarray(y_score[:, k])), k, codes, weights, lost[k])
    return lost
