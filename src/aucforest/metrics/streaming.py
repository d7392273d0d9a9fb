"""AUC of streams: a mergeable sketch of counts on a grid of scores."""

import struct
import zlib
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from aucforest._compile import kernel
from aucforest.metrics.ranking import HALF, SIGN, WORD, ordered_key
from aucforest.metrics.validation import FloatArray, check_weights, stream_rows, warn_undefined

UNIT_BITS = 20  # Weights are counted in units of 2**-20.
MOST_WEIGHT = 2 ** (62 - UNIT_BITS)  # the limit of the sum of weights, so that counts do not overflow
MOST_ROUNDED = 2**53  # the maximum number of rounded weights in a restored sketch, so that merging does not overflow
# bits, zeros (the bounds of the grid in older versions), and the number of rounded weights of each class
HEADER = struct.Struct("<B17s2q")
MAGIC = b"AUCSKT01"


@kernel
def _float_bins(words, shift, bins):
    """Write the bin of each float32 score: the leading bits of its ordered key."""
    for i in range(words.size):
        word = np.uint64(words[i])
        bins[i] = ordered_key(word if word != SIGN else np.uint64(0)) >> shift


@kernel
def _add(bins, positive, units, counts):
    """Add the weight of each row, in units, to the count of its class and bin. Without `units` all weights are 1."""
    for i in range(bins.size):
        counts[np.uint64(positive[i]), bins[i]] += (1 << UNIT_BITS) if units is None else units[i]


class AUCSketch:
    """Mergeable sketch for the AUC of a stream, with an error bound.

    The sketch counts the weight of each class in the bins of a fixed grid of scores. Let p_b and q_b be the proportions
    of positives and negatives in bin b. Then the AUC is sum p_b (q_{<b} + q_b / 2), with an error of at most
    1/2 * sum p_b q_b. Weights are rounded to multiples of 2**-20, and `error_bound` includes this error. The sum of the
    weights must be less than 2**42. Counts are integers, so the result does not depend on how the data are split.

    Parameters
    ----------
    bits : int from 4 to 24, default=18
        The grid has 2**bits bins, which take 4 MB for 18 bits. The bin of a score is given by the leading bits of its
        float32 value, so the grid has no bounds and a constant relative precision.

    Raises
    ------
    ValueError
        If `bits` is invalid.

    Examples
    --------
    >>> from aucforest.metrics import AUCSketch
    >>> first, second = AUCSketch(), AUCSketch()
    >>> first.update([0, 1, 1], [0.1, 0.35, 0.8])
    >>> second.update([0], [0.4])
    >>> both = first.merge(second)
    >>> both.score(), both.error_bound()
    (0.75, 0.0)
    >>> AUCSketch.from_bytes(both.to_bytes()).score()
    0.75
    """

    def __init__(self, bits: int = 18) -> None:
        self.bits = int(check_scalar(bits, "bits", Integral, min_val=4, max_val=24))
        self._counts = np.zeros((2, 1 << bits), np.int64)  # negatives, positives; in units of 2**-20
        self._rounded = np.zeros(2, np.int64)  # rows of each class with a rounded weight
        self._total = 0.0

    def update(self, y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Add a batch of samples.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Binary labels: bool, 0 and 1, or -1 and 1. A batch may have a single class.
        y_score : array-like of shape (n_samples,)
            Finite scores.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative sample weights.

        Raises
        ------
        ValueError, TypeError
            If labels are invalid, scores are not finite real numbers, weights are negative, their sum is 2**42 or more,
            the batch is empty, or lengths differ. The sketch is not changed.
        """
        positive, scores = stream_rows(y_true, y_score)
        weights = check_weights(sample_weight, scores.size)
        total = self._total_with(scores.size if weights is None else float(weights.sum()))
        units = None
        if weights is not None:
            exact = np.ldexp(weights, UNIT_BITS)
            units = np.rint(exact).astype(np.int64)
            self._rounded += np.bincount(positive[units != exact], minlength=2)
        bins = np.empty(scores.size, np.uint32)
        with np.errstate(over="ignore"):  # Scores outside the range of float32 become infinite.
            singles = scores.astype(np.float32, copy=False)
        _float_bins(singles.view(np.uint32), HALF - np.uint64(self.bits), bins)
        _add(bins, positive, units, self._counts)
        self._total = total

    def _total_with(self, weight: float) -> float:
        """Return the total weight after adding `weight`; ValueError if counts could overflow."""
        total = self._total + weight
        if total >= MOST_WEIGHT:
            raise ValueError(f"the sum of the weights of a sketch must be less than 2**42, but would be {total:g}")
        return total

    def merge(self, other: "AUCSketch") -> "AUCSketch":
        """Return the sketch of the combined data; neither sketch is changed.

        Raises a ValueError if the numbers of bits differ, or if the sum of weights is 2**42 or more.
        """
        if self.bits != other.bits:
            raise ValueError(f"the grids differ: they have {self.bits} and {other.bits} bits")
        merged = AUCSketch(self.bits)
        merged._total = self._total_with(other._total)
        merged._counts = self._counts + other._counts
        merged._rounded = self._rounded + other._rounded
        return merged

    def score(self) -> float:
        """Return the AUC of the data so far; NaN with an UndefinedMetricWarning if a class has no weight."""
        if not self._has_both_classes():
            warn_undefined("ROC AUC is not defined: a class has no weight in the sketch")
            return float("nan")
        negatives, positives = self._counts
        return self._proportion_of_pairs(positives, 2 * np.cumsum(negatives) - negatives)

    def error_bound(self) -> float:
        """Return the maximum difference of `score` from the exact AUC; NaN if a class has no weight."""
        if not self._has_both_classes():
            return float("nan")
        negatives, positives = self._counts
        # A rounded weight is wrong by at most half a unit. Each summand bounds the relative error of a class's weight.
        classes = zip(self._rounded.tolist(), self._counts.sum(axis=1).tolist())
        rounding = sum(n_rounded / max(2 * total - n_rounded, 1) for n_rounded, total in classes)
        return self._proportion_of_pairs(positives, negatives) + rounding

    def _has_both_classes(self) -> bool:
        return bool(self._counts.any(axis=1).all())

    def _proportion_of_pairs(self, positives: NDArray[np.int64], twice_others: NDArray[np.int64]) -> float:
        """Return sum(positives * twice_others / 2) as a proportion of all pairs; sums of Python integers are exact."""
        occupied = np.flatnonzero(positives)
        total = sum(p * q for p, q in zip(positives[occupied].tolist(), twice_others[occupied].tolist()))
        n_negative, n_positive = self._counts.sum(axis=1).tolist()
        return float(total / (2 * n_positive * n_negative))

    def roc_curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the ROC curve of the counts.

        Returns
        -------
        fpr, tpr : ndarray of shape (n_thresholds,)
            The rates at the edges of non-empty bins. NaN with an UndefinedMetricWarning for a class without weight.
        thresholds : ndarray of shape (n_thresholds,)
            Infinity, and the lower edges of the bins in descending order.
        """
        if not self._has_both_classes():
            warn_undefined("the ROC curve is not defined: a class has no weight in the sketch")
        occupied = np.flatnonzero(self._counts.any(axis=0))[::-1]
        counts = np.insert(np.cumsum(self._counts[:, occupied], axis=1, dtype=np.float64), 0, 0.0, axis=1)
        totals = self._counts.sum(axis=1, keepdims=True)
        fpr, tpr = np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0)
        keys = occupied.astype(np.uint64) << (HALF - np.uint64(self.bits))
        words = np.where(keys & SIGN, keys ^ SIGN, keys ^ WORD).astype(np.uint32)
        edges = words.view(np.float32)  # the lowest scores of the bins
        edges[np.isnan(edges)] = -np.inf  # Keys below that of -infinity are those of NaN.
        return fpr, tpr, np.append(np.inf, edges.astype(np.float64))

    def to_bytes(self) -> bytes:
        """Serialize the sketch to compressed bytes, which are the same on every platform."""
        header = HEADER.pack(self.bits, b"", *self._rounded.tolist())
        return MAGIC + zlib.compress(header + self._counts.astype("<i8").tobytes(), level=1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Restore a sketch from the bytes of `to_bytes`.

        Raises a ValueError if the bytes are not a valid sketch. Bytes of unknown origin are safe: their size and
        content are checked.
        """
        try:
            if data[: len(MAGIC)] != MAGIC:
                raise ValueError(f"they do not start with {MAGIC!r}")
            stream = zlib.decompressobj()
            header = stream.decompress(data[len(MAGIC) :], HEADER.size)
            bits, bounds, *rounded = HEADER.unpack(header)
            if any(bounds):
                raise ValueError("they are of a grid with bounds: count the scores again")
            sketch = cls(bits)
            size = sketch._counts.nbytes
            body = stream.decompress(stream.unconsumed_tail, size + 1)  # One byte more makes zlib read the checksum.
            if len(body) != size or not stream.eof or stream.unused_data:
                raise ValueError(f"their counts do not fill a grid of {bits} bits")
            counts = np.frombuffer(body, "<i8").astype(np.int64)
            sketch._total = float(np.ldexp(counts.sum(dtype=np.float64), -UNIT_BITS))
            in_range = sketch._total < MOST_WEIGHT and 0 <= min(rounded) <= max(rounded) < MOST_ROUNDED
            if counts.min() < 0 or not in_range:
                raise ValueError("their counts are out of range")
        except (struct.error, zlib.error, ValueError) as error:
            raise ValueError(f"the {len(data)} bytes are not an AUCSketch: {error}") from None
        sketch._counts, sketch._rounded = counts.reshape(2, -1), np.array(rounded, np.int64)
        return sketch
