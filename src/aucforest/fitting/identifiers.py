"""Identifiers: integer columns whose values are categories, such as numbers of customers, merchants or postal codes.

Rows of the same customer have similar labels, but customers with neighboring numbers have nothing in common. So a
column is an identifier if the labels of rows are estimated well from the other rows of the same value, and badly from
the rows of neighboring values. Both estimates are smoothed class frequencies, compared by their log likelihoods.
"""

from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.fitting.spec import resolve_encodings
from aucforest.fitting.target_rates import MOST_IN_SETS, SMOOTHING, choose_smoothing, hash_integers
from aucforest.tables.target_rates import SETS
from aucforest.tables.texts import listed

# An identifier improves the log likelihood by at least this amount, and neighboring values by at most this fraction of
# it. Both were chosen with `benchmarks/many_categories.py integers`.
_LEAST_GAIN, _MOST_BY_NEIGHBORS = 10.0, 0.25
# Numbers of neighbors on each side from which labels are estimated.
_NEIGHBORS = (1, 2, 4, 8, 16, 32, 64, 128)
# Maximum number of values of a column that are counted, and of all columns together.
_MOST_VALUES, _MOST_OF_ALL = 2**14, 2**20
_BLOCK_ROWS = 2**18  # rows are counted in blocks, so that values that are not in the sample are not sorted
_MOST_EXACT = 2.0**53  # greater integers have no exact float64
_FIRST_ROWS = 256  # most columns that are not integers are recognized by these rows


class IntegerCounts(NamedTuple):
    """The class counts of the values of a column of integers, or of a sample of its values if they are many.

    The sample consists of the values whose hash is less than 2**(64 - shift). So it depends on the values only, and the
    counts of all rows are the sums of the counts of parts of the rows.
    """

    values: NDArray[np.int64]  # sorted
    counts: NDArray[np.int64]  # (n_values, n_classes)
    shift: int

    @classmethod
    def of(cls, values: NDArray[np.int64], labels: NDArray[np.integer], max_values: int, shift: int) -> "IntegerCounts":
        """Count the classes of the values whose hash is small enough."""
        if shift > 0:
            is_sampled = _is_sampled(values, shift)
            values, labels = values[is_sampled], labels[is_sampled]
        n_classes = int(labels.max(initial=0)) + 1
        distinct, inverse = np.unique(values, return_inverse=True)
        counts = np.bincount(inverse * n_classes + labels, minlength=len(distinct) * n_classes)
        return cls(distinct, counts.reshape(-1, n_classes), shift).limited(max_values)

    def limited(self, max_values: int) -> "IntegerCounts":
        """Return the counts of a smaller sample if there are more than `max_values` values."""
        limited = self
        while len(limited.values) > max_values:
            is_sampled = _is_sampled(limited.values, limited.shift + 1)
            limited = IntegerCounts(limited.values[is_sampled], limited.counts[is_sampled], limited.shift + 1)
        return limited

    def merge(self, other: "IntegerCounts", max_values: int) -> "IntegerCounts":
        """Return the counts of the rows of both."""
        shift, n_classes = max(self.shift, other.shift), max(self.counts.shape[1], other.counts.shape[1])
        values, counts = [], []
        for part in (self, other):
            is_sampled = _is_sampled(part.values, shift)
            values.append(part.values[is_sampled])
            counts.append(np.pad(part.counts[is_sampled], ((0, 0), (0, n_classes - part.counts.shape[1]))))
        distinct, inverse = np.unique(np.concatenate(values), return_inverse=True)
        total = np.zeros((len(distinct), n_classes), dtype=np.int64)
        np.add.at(total, inverse, np.concatenate(counts))
        return IntegerCounts(distinct, total, shift).limited(max_values)

    def is_identifier(self) -> bool:
        """Return whether the values are categories and not numbers.

        The most frequent values are left out: trees can separate them by thresholds, and they can be codes such as 99
        for unknown among numbers.
        """
        order = np.argsort(-self.counts.sum(axis=1), kind="stable")
        counts = self.counts[np.sort(order[MOST_IN_SETS:])].astype(np.float64)
        if len(counts) < 2:
            return False
        total = counts.sum(axis=0)
        frequencies = total / total.sum()
        constant = float(np.sum(total[total > 0] * np.log(frequencies[total > 0])))
        gain = choose_smoothing(counts, frequencies)[1] - constant
        if gain < _LEAST_GAIN:
            return False
        limit = min(gain - _LEAST_GAIN, _MOST_BY_NEIGHBORS * gain)
        return all(_likelihood_by_neighbors(counts, frequencies, n) - constant <= limit for n in _NEIGHBORS)


def _is_sampled(values: NDArray[np.int64], shift: int) -> NDArray[np.bool_]:
    """Return which values are in the sample, see `IntegerCounts`."""
    if shift == 0:
        return np.ones(len(values), dtype=np.bool_)
    is_sampled: NDArray[np.bool_] = hash_integers(values) < np.uint64(2 ** (64 - shift))
    return is_sampled


def _likelihood_by_neighbors(counts: NDArray[np.float64], frequencies: NDArray[np.float64], n_neighbors: int) -> float:
    """Return the log likelihood of the labels, estimated from up to `n_neighbors` next values on each side."""
    sums, n_values = np.vstack((np.zeros_like(counts[:1]), np.cumsum(counts, axis=0))), len(counts)
    index = np.arange(n_values)
    window = sums[np.minimum(index + n_neighbors + 1, n_values)] - sums[np.maximum(index - n_neighbors, 0)]
    values, classes = np.nonzero(counts)
    others = (window - counts)[values]
    weights, in_class, total = counts[values, classes], others[np.arange(len(values)), classes], others.sum(axis=1)
    priors = frequencies[classes]
    return max(
        float(np.sum(weights * np.log((in_class + smoothing * priors) / (total + smoothing))))
        for smoothing in SMOOTHING
    )


def are_sought(categorical_features: Any, categorical_encoding: Any) -> bool:
    """Return whether a fit with these parameters looks for identifiers: if they could have target rates."""
    is_auto = isinstance(categorical_features, str) and categorical_features == "auto"
    return is_auto and resolve_encodings(categorical_encoding) != (SETS,)


def most_values(n_features: int) -> int:
    """Return the maximum number of values of a column that are counted."""
    return max(4 * MOST_IN_SETS, min(_MOST_VALUES, _MOST_OF_ALL // n_features))


def count_integers(values: NDArray[Any], labels: NDArray[np.integer], max_values: int) -> IntegerCounts | None:
    """Return the class counts of the values of a column, or None if not all of its numbers are integers.

    Missing values are not counted, nor are rows whose label is -1.
    """
    counted = None
    for start, stop in pairwise([0, *range(_FIRST_ROWS, len(values), _BLOCK_ROWS), len(values)]):
        block, block_labels = np.asarray(values[start:stop], dtype=np.float64), labels[start:stop]
        is_known = ~np.isnan(block)
        known = block[is_known]
        if not np.all((np.abs(known) <= _MOST_EXACT) & (known == np.floor(known))):
            return None
        is_counted, shift = is_known & (block_labels >= 0), 0 if counted is None else counted.shift
        part = IntegerCounts.of(block[is_counted].astype(np.int64), block_labels[is_counted], max_values, shift)
        counted = part if counted is None else counted.merge(part, max_values)
    return counted


def merge_counts(one: IntegerCounts | None, other: IntegerCounts | None, max_values: int) -> IntegerCounts | None:
    """Return the class counts of the rows of both parts of a column, None if a part has other numbers than integers."""
    return None if one is None or other is None else one.merge(other, max_values)


def searched_columns(n_columns: int, dates: Container[int], signs: Sequence[int]) -> list[int]:
    """Return the columns that can be identifiers: those without dates and monotonic constraints.

    A constraint says that the order of the values matters. `signs` are those of the constraints, or empty.
    """
    return [feature for feature in range(n_columns) if feature not in dates and not any(signs[feature : feature + 1])]


def find_identifiers(counted: Mapping[int, IntegerCounts | None], searched: Sequence[int]) -> list[int]:
    """Return the identifiers among the columns `searched`, given the class counts of all numeric features."""
    columns = ((feature, counted.get(feature)) for feature in searched)
    return [feature for feature, counts in columns if counts is not None and counts.is_identifier()]


def warn_of_identifiers(names: Sequence[str]) -> None:
    """Warn of columns of integers that are used as categories."""
    if names:
        warn(
            f"X: {listed(names)}: integers that are used as categories, because rows of the same value have similar"
            ' labels, and rows of neighboring values do not; with categorical_features="from_dtype" they are numbers'
        )
