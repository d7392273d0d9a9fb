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
        return cls(labels, n_classes, max_values) if max_values >= _LEAST_VALUES else None

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
        is_sampled = _is_sampled(values, shift)
        (distinct, indices), labels = _find_distinct(values[is_sampled]), rows.labels[is_sampled]
        while len(distinct) > rows.max_values:  # before labels are counted, since there may be many classes
            shift += 1
            is_sampled = _is_sampled(distinct, shift)
            is_kept, distinct = is_sampled[indices], distinct[is_sampled]
            indices, labels = (np.cumsum(is_sampled) - 1)[indices[is_kept]], labels[is_kept]
        counts = np.bincount(indices * rows.n_classes + labels, minlength=len(distinct) * rows.n_classes)
        return cls(distinct, counts.reshape(-1, rows.n_classes), rows.max_values, shift)

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


def _is_sampled(values: NDArray[np.int64], shift: int) -> NDArray[np.bool_]:
    """Return which values are in the sample, see `IntegerCounts`."""
    if shift == 0:
        return np.ones(len(values), dtype=np.bool_)
    is_sampled: NDArray[np.bool_] = hash_integers(values) < np.uint64(2 ** (64 - shift))
    return is_sampled


def _find_distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sorted distinct values, and the index of each value among them."""
    if len(values) == 0 or (n_possible := int(values.max()) - int(values.min()) + 1) > len(values):
        return np.unique(values, return_inverse=True)
    is_present, first = np.zeros(n_possible, dtype=np.bool_), values.min()  # without sorting, which is slower
    is_present[values - first] = True
    return first + np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[values - first]


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
        is_counted, shift = is_known & (part.labels >= 0), 0 if counted is None else counted.shift
        part = part._replace(labels=part.labels[is_counted])
        of_part = IntegerCounts.of(block[is_counted].astype(np.int64), part, shift)
        counted = of_part if counted is None else counted.merge(of_part)
    return counted


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
    """Return which of the columns have integers that are categories, given the counts of features."""
    counts = ((feature, counted.get(feature)) for feature in columns)
    return [feature for feature, of_feature in counts if of_feature is not None and of_feature.are_categories()]


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
