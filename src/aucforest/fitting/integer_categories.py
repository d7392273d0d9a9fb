"""Columns of integers that are categories, such as numbers of customers or merchants, and how they are found.

Rows of the same customer have similar labels, but customers with neighboring numbers have nothing in common. So the
integers of a column are categories if the labels of rows are estimated well from the other rows of the same value, and
badly from the rows of neighboring values. Both estimates are smoothed class frequencies, compared by log likelihood.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import MOST_IN_SETS, SMOOTHING, choose_smoothing, hash_integers
from aucforest.tables.columns import Counted, Table, count_values, order_categories, read_numbers

# Estimates from the same value increase the log likelihood by at least this amount, and estimates from neighboring
# values by at most this fraction of it. Both were chosen with `benchmarks/many_categories.py integers`.
_LEAST_GAIN, _MOST_BY_NEIGHBORS = 10.0, 0.5
# Numbers of neighbors on each side, the most first: most columns of numbers are recognized by them.
_NEIGHBORS = (128, 64, 32, 16, 8, 4, 2, 1)
# Maximum number of values of a column that are counted, and of counts of all columns. Columns are not searched if these
# allow fewer values than the minimum.
_MOST_VALUES, _LEAST_VALUES, _MOST_COUNTS = 2**14, 200, 2**20
_BLOCK_ROWS = 2**18  # rows are counted in blocks, so that values that are not in the sample are not sorted
_FIRST_ROWS = 256  # most columns that are not integers are recognized by these rows
_MOST_EXACT = 2.0**53  # greater integers have no exact float64
_MOST_CLASSES = 2**9  # so that the product of an integer and the number of classes is an int64
# Rows are copies if at least the first proportion of a class is repeated, and at least the second proportion of these
# rows are equal to rows of their class only. Of a class with more than the third proportion, that happens by chance.
_LEAST_REPEATED, _LEAST_PURE, _MOST_FREQUENT = 0.5, 0.98, 0.6
ROWS = -1  # the counts of whole rows, in place of the index of a column

# The values of columns of integers that are categories, by the index of the column, in the order of `index_values`.
Integers = dict[int, NDArray[np.float64]]


class CountedRows(NamedTuple):
    """The labels of rows whose values are counted."""

    labels: NDArray[np.integer]  # -1 for rows that are left out
    n_classes: int
    max_values: int  # maximum number of values of a column that are counted

    @classmethod
    def of(cls, labels: NDArray[np.integer], n_classes: int, n_features: int) -> "CountedRows | None":
        """Return the rows of a table with so many features, or None if counts would take too much memory."""
        max_values = min(_MOST_VALUES, _MOST_COUNTS // (n_features * n_classes))
        is_bounded = max_values >= _LEAST_VALUES and n_classes <= _MOST_CLASSES
        return cls(labels, n_classes, max_values) if is_bounded else None

    @classmethod
    def of_target(cls, target: Target, n_features: int) -> "CountedRows | None":
        """Return the training rows of positive weight, of each group only the first, as in `of`."""
        labels = target.kept_labels
        if target.groups is not None:
            first = np.unique(target.groups, return_index=True)[1]
            labels = np.full(len(labels), -1, dtype=np.int32)
            labels[first] = target.kept_labels[first]
        return cls.of(labels, len(target.classes), n_features)

    def part(self, rows: slice) -> "CountedRows":
        """Return some of the rows."""
        return self._replace(labels=self.labels[rows])


@dataclass(frozen=True)
class IntegerCounts:
    """The class counts of the values of a column of integers, or of a sample of its values if there are many.

    The sample consists of the values whose hash is less than 2**(64 - shift), with the smallest shift for which there
    are at most `max_values`. So it depends only on the values, and the counts of all rows are those of parts merged.
    """

    values: NDArray[np.int64]  # sorted
    counts: NDArray[np.int64]  # (n_values, n_classes)
    max_values: int
    shift: int = 0

    @classmethod
    def of(cls, values: NDArray[np.int64], rows: CountedRows, shift: int) -> "IntegerCounts":
        """Count the labels of the rows for each value, in a sample with at least this shift."""
        is_sampled, n_classes = _is_sampled(values, shift) & (rows.labels >= 0), rows.n_classes
        # A value and a label are sorted as one number, because sorting their indices takes longer.
        cells, n_rows = np.unique(values[is_sampled] * n_classes + rows.labels[is_sampled], return_counts=True)
        is_first = np.ones(len(cells), dtype=np.bool_)
        is_first[1:] = np.diff(cells // n_classes) != 0
        while np.count_nonzero(is_first) > rows.max_values:  # before counts by class, since there may be many classes
            shift += 1
            is_sampled = _is_sampled(cells // n_classes, shift)
            cells, n_rows, is_first = cells[is_sampled], n_rows[is_sampled], is_first[is_sampled]
        distinct, labels = np.divmod(cells, n_classes)
        counts = np.zeros((np.count_nonzero(is_first), n_classes), dtype=np.int64)
        counts[np.cumsum(is_first) - 1, labels] = n_rows
        return cls(distinct[is_first], counts, rows.max_values, shift)

    def merge(self, other: "IntegerCounts") -> "IntegerCounts":
        """Return the counts of the rows of both."""
        shift = max(self.shift, other.shift)
        parts = [part._sampled(shift) for part in (self, other)]
        values, inverse = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
        counts = np.zeros((len(values), self.counts.shape[1]), dtype=np.int64)
        np.add.at(counts, inverse, np.concatenate([part.counts for part in parts]))
        merged = replace(self, values=values, counts=counts, shift=shift)
        while len(merged.values) > merged.max_values:
            merged = merged._sampled(merged.shift + 1)
        return merged

    def _sampled(self, shift: int) -> "IntegerCounts":
        """Return the counts of a sample with a greater shift."""
        if shift == self.shift:
            return self
        is_sampled = _is_sampled(self.values, shift)
        return replace(self, values=self.values[is_sampled], counts=self.counts[is_sampled], shift=shift)

    def are_categories(self) -> bool:
        """Return whether the values are categories.

        The most frequent values are left out: thresholds can separate them, and among numbers they can be codes, such
        as 99 for unknown.
        """
        by_frequency = np.argsort(-self.counts.sum(axis=1), kind="stable")
        counts = self.counts[np.sort(by_frequency[MOST_IN_SETS:])].astype(np.float64)
        if len(counts) < 2:
            return False
        frequencies = counts.sum(axis=0) / counts.sum()
        known = frequencies > 0.0
        by_all = float(np.sum(counts.sum(axis=0)[known] * np.log(frequencies[known])))
        gain = choose_smoothing(counts, frequencies)[1] - by_all
        return gain >= _LEAST_GAIN and all(
            by_neighbors - by_all <= _MOST_BY_NEIGHBORS * gain
            for by_neighbors in _likelihoods_by_neighbors(counts, frequencies)
        )

    def are_copies(self) -> bool:
        """Return whether rows are copied, such as those of a rare class, given the counts of hashes of rows."""
        totals, n_rows = self.counts.sum(axis=0), self.counts.sum(axis=1)
        repeated = self.counts[n_rows > 1]
        n_repeated, n_pure = repeated.sum(axis=0), repeated[np.count_nonzero(repeated, axis=1) == 1].sum(axis=0)
        is_rare = totals <= _MOST_FREQUENT * totals.sum()
        is_repeated = (n_repeated > 0) & (n_repeated >= _LEAST_REPEATED * totals)
        return bool(np.any(is_rare & is_repeated & (n_pure >= _LEAST_PURE * n_repeated)))


def _is_sampled(values: NDArray[np.int64], shift: int) -> NDArray[np.bool_]:
    """Return which values are in the sample, see `IntegerCounts`."""
    if shift == 0:
        return np.ones(len(values), dtype=np.bool_)
    is_sampled: NDArray[np.bool_] = hash_integers(values) < np.uint64(2 ** (64 - shift))
    return is_sampled


def _likelihoods_by_neighbors(counts: NDArray[np.float64], frequencies: NDArray[np.float64]) -> Iterator[float]:
    """Yield log likelihoods of the labels, estimated from neighboring values with each smoothing."""
    sums, index = np.vstack((np.zeros_like(counts[:1]), np.cumsum(counts, axis=0))), np.arange(len(counts))
    values, classes = np.nonzero(counts)
    weights, priors = counts[values, classes], frequencies[classes]
    for n_neighbors in _NEIGHBORS:
        stop, start = np.minimum(index + n_neighbors + 1, len(counts)), np.maximum(index - n_neighbors, 0)
        others = sums[stop] - sums[start] - counts
        of_class, total = others[values, classes], others.sum(axis=1)[values]
        for smoothing in SMOOTHING.tolist():
            yield float(np.sum(weights * np.log((of_class + smoothing * priors) / (total + smoothing))))


def count_integers(values: NDArray[Any], rows: CountedRows) -> IntegerCounts | None:
    """Return the class counts of the values of a column, None if not all are integers; missing values are left out."""
    counted = None
    for start, stop in pairwise([0, *range(_FIRST_ROWS, len(values), _BLOCK_ROWS), len(values)]):
        block, part = np.asarray(values[start:stop], dtype=np.float64), rows.part(slice(start, stop))
        is_known = ~np.isnan(block)
        known = block[is_known]
        if not np.all((np.abs(known) <= _MOST_EXACT) & (known == np.floor(known))):
            return None
        known_rows, shift = part._replace(labels=part.labels[is_known]), 0 if counted is None else counted.shift
        of_part = IntegerCounts.of(known.astype(np.int64), known_rows, shift)
        counted = of_part if counted is None else counted.merge(of_part)
    return counted


def count_rows(columns: Iterable[NDArray[Any]], rows: CountedRows) -> IntegerCounts:
    """Return the class counts of hashes of rows, which are equal if all numbers in `columns` are."""
    hashes = np.zeros(len(rows.labels), dtype=np.uint64)
    for values in columns:
        bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        hashes = hash_integers((hashes ^ np.where(np.isnan(values), np.uint64(1), bits)).view(np.int64))
    return IntegerCounts.of((hashes >> np.uint64(12)).astype(np.int64), rows, shift=0)  # of at most `_MOST_EXACT`


def merge_counts(one: IntegerCounts | None, other: IntegerCounts | None) -> IntegerCounts | None:
    """Return the class counts of the rows of both parts of a column, None if a part has other numbers than integers."""
    return None if one is None or other is None else one.merge(other)


def searched_columns(n_columns: int, skipped: Container[int], spec: FitSpec) -> list[int]:
    """Return the columns whose integers can be categories.

    Skipped are categorical columns, dates, and columns with a monotonic constraint, for which the order matters.
    """
    constrained = np.flatnonzero(spec.params.signs).tolist()
    return [feature for feature in range(n_columns) if feature not in skipped and feature not in constrained]


def find_integer_categories(counted: Mapping[int, IntegerCounts | None], columns: Iterable[int]) -> list[int]:
    """Return which of the columns have integers that are categories, given the counts of features and of `ROWS`.

    If rows are copied, equal values do not say that rows belong together, so there are none.
    """
    counts = ((feature, counted.get(feature)) for feature in columns)
    found = [feature for feature, of_feature in counts if of_feature is not None and of_feature.are_categories()]
    rows = counted.get(ROWS)
    return [] if rows is not None and rows.are_copies() else found


def count_values_of(table: Table, rows: NDArray[np.int64] | None, features: Iterable[int]) -> dict[int, Counted]:
    """Return the values of numeric columns and their counts in the given rows, or in all rows if `rows` is None."""
    columns = {feature: np.asarray(read_numbers(table, feature), dtype=np.float64) for feature in features}
    return {feature: count_values(values, rows) for feature, values in columns.items()}


def merge_values(one: dict[int, Counted], other: dict[int, Counted]) -> dict[int, Counted]:
    """Return the values of both parts of the rows, with their total counts."""
    return {feature: counted.merge(other[feature]) for feature, counted in one.items()}


def order_values(counted: dict[int, Counted]) -> Integers:
    """Return the values of each column in the order of their indices, given their counts."""
    return {feature: order_categories(values, f"feature {feature}") for feature, values in counted.items()}
