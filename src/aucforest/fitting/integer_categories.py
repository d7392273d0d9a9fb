"""Columns of integers that are categories, such as numbers of customers or merchants, and how they are found.

Rows of the same customer have similar labels, and customers with neighboring numbers can be very different. So the
integers of a column are categories if the label of a row is estimated better from the other rows with the same value,
alone or with neighboring values, than from the rows with neighboring values alone. The estimates are smoothed class
frequencies. They are compared by the log likelihood of the labels.

Postal codes of the same region have the same first digits. So labels are also estimated from the rows in the same range
of 10, 100, ... values. If this is better than single values, the ranges are categories, too.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import Counted, Table, count_values, order_categories, read_numbers
from aucforest.columns.expansion import RANGES, FoundCategories
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import MOST_IN_SETS, choose_smoothing, hash_integers

# If integers are categories, estimates from the same value or range increase the log likelihood by _LEAST_GAIN or more.
# Estimates from neighboring values alone increase it less than the best estimates do: by _LEAST_GAIN or more, and by
# the fraction _LEAST_LOSS or more. These constants, and the number of most frequent values whose labels do not count,
# were chosen with `benchmarks/many_categories.py integers` and `ranges`.
_LEAST_GAIN, _LEAST_LOSS, _N_LEFT_OUT = 10.0, 0.04, 20
# Numbers of neighboring values on each side, and the smoothings of estimates from them.
_NEIGHBORS, _SMOOTHING = (1, 2, 4, 8, 16, 32, 64, 128), (1.0, 8.0, 64.0)
# Smoothings of estimates from the other values of a group, as numbers of values of mean weight.
_VALUE_SMOOTHING = (0.5, 2.0, 8.0, 32.0)
# Maximum number of values of a column that are counted, and maximum number of counts of all columns. If these maxima
# allow fewer than _LEAST_VALUES values of a column, no column is searched.
_MOST_VALUES, _LEAST_VALUES, _MOST_COUNTS = 2**14, 200, 2**20
_BLOCK_ROWS = 2**18  # rows are counted in blocks: a later block sorts only values in the sample, see `IntegerCounts`
_FIRST_ROWS = 256  # size of the first block, which is enough to recognize most columns that are not integers
_MOST_EXACT = 2.0**53  # greater integers have no exact float64
_MOST_CLASSES = 2**9  # the product of an integer and the number of classes must be an int64
# Rows of a class are copies if at least the proportion _LEAST_REPEATED of them is equal to other rows, and at least the
# proportion _LEAST_PURE of these repeated rows is equal only to rows of the same class. A class with more than the
# proportion _MOST_FREQUENT of all rows is not tested, because its rows can be repeated in this way by chance.
_LEAST_REPEATED, _LEAST_PURE, _MOST_FREQUENT = 0.5, 0.98, 0.6
ROWS = -1  # the key of the counts of whole rows, in place of the index of a column


class CountedRows(NamedTuple):
    """The labels of rows whose values are counted."""

    labels: NDArray[np.integer]  # -1 for rows that are left out
    n_classes: int
    max_values: int  # maximum number of values of a column that are counted

    @classmethod
    def of(cls, labels: NDArray[np.integer], n_classes: int, n_features: int) -> "CountedRows | None":
        """Return the rows of a table with n_features features, or None for too many features or classes."""
        max_values = min(_MOST_VALUES, _MOST_COUNTS // (n_features * n_classes))
        is_bounded = max_values >= _LEAST_VALUES and n_classes <= _MOST_CLASSES
        return cls(labels, n_classes, max_values) if is_bounded else None

    @classmethod
    def of_target(cls, target: Target, n_features: int) -> "CountedRows | None":
        """Return the training rows of positive weight, but of each group only the first row; see `of`."""
        labels = target.kept_labels
        if target.groups is not None:
            first = np.unique(target.groups, return_index=True)[1]
            labels = np.full(len(labels), -1, dtype=np.int32)
            labels[first] = target.kept_labels[first]
        return cls.of(labels, len(target.classes), n_features)


@dataclass(frozen=True)
class IntegerCounts:
    """The class counts of the values of a column of integers, or of a sample of its values if there are many.

    The sample consists of the values whose hash is less than 2**(64 - shift), with the smallest shift for which there
    are at most `max_values`. So the sample depends only on the values, and counts of parts of the rows can be merged.
    """

    values: NDArray[np.int64]  # sorted
    counts: NDArray[np.int64]  # (n_values, n_classes)
    max_values: int
    shift: int = 0

    @classmethod
    def of(cls, values: NDArray[np.int64], rows: CountedRows, shift: int) -> "IntegerCounts":
        """Count the labels of rows, given the value of each row; the sample has at least the given shift."""
        is_sampled, n_classes = _is_sampled(values, shift) & (rows.labels >= 0), rows.n_classes
        # A value and a label are sorted as one number, because sorting their indices takes longer.
        cells, n_rows = np.unique(values[is_sampled] * n_classes + rows.labels[is_sampled], return_counts=True)
        is_first = np.ones(len(cells), dtype=np.bool_)
        is_first[1:] = np.diff(cells // n_classes) != 0
        # The sample is chosen before the counts are allocated, because there may be many classes.
        while np.count_nonzero(is_first) > rows.max_values:
            shift += 1
            is_sampled = _is_sampled(cells // n_classes, shift)
            cells, n_rows, is_first = cells[is_sampled], n_rows[is_sampled], is_first[is_sampled]
        distinct, labels = np.divmod(cells, n_classes)
        counts = np.zeros((np.count_nonzero(is_first), n_classes), dtype=np.int64)
        counts[np.cumsum(is_first) - 1, labels] = n_rows
        return cls(distinct[is_first], counts, rows.max_values, shift)

    @classmethod
    def merged(cls, parts: Sequence["IntegerCounts"]) -> "IntegerCounts":
        """Return the counts of the rows of all parts together."""
        shift = max(part.shift for part in parts)
        parts = [part._sampled(shift) for part in parts]
        values, inverse = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
        counts = np.zeros((len(values), parts[0].counts.shape[1]), dtype=np.int64)
        np.add.at(counts, inverse, np.concatenate([part.counts for part in parts]))
        merged = replace(parts[0], values=values, counts=counts)
        while len(merged.values) > merged.max_values:
            merged = merged._sampled(merged.shift + 1)
        return merged

    def _sampled(self, shift: int) -> "IntegerCounts":
        if shift == self.shift:
            return self
        is_sampled = _is_sampled(self.values, shift)
        return replace(self, values=self.values[is_sampled], counts=self.counts[is_sampled], shift=shift)

    def find_widths(self) -> tuple[int, ...]:
        """Return the widths of the ranges of values that are categories: none, 1, or 1 and one of `RANGES`.

        There are none for at most `MOST_IN_SETS` different values. The labels of the most frequent values do not count,
        because thresholds can separate them, and because a column of numbers may have frequent values that are codes,
        such as 99 for unknown.
        """
        if len(self.values) <= MOST_IN_SETS:
            return ()
        estimates, starts_of_width = _LabelEstimates.of(self.counts), self._starts_of_ranges()
        by_range = {width: estimates.by_group(starts) for width, starts in starts_of_width.items()}
        by_all, by_value = estimates.by_all(), estimates.by_value()
        if max([by_value, *(found.likelihood for found in by_range.values())]) - by_all < _LEAST_GAIN:
            return ()
        by_neighbors, by_value_and_neighbors = estimates.by_neighbors()
        by_ranges = (estimates.by_value_and_group(found) for found in by_range.values())
        best = max(by_value, by_value_and_neighbors, *by_ranges)
        if best - max(by_neighbors, by_all) < max(_LEAST_GAIN, _LEAST_LOSS * (best - by_all)):
            return ()
        width = find_groups(estimates.counts, estimates.scored, starts_of_width)
        return (1, width) if width > 0 else (1,)

    def find_range(self) -> int:
        """Return the width of the ranges of values that estimate labels best together with the value.

        It is 0 if the value alone suffices, see `find_groups`, or if there are at most `MOST_IN_SETS` different values.
        """
        counts = self.counts.astype(np.float64)
        return find_groups(counts, counts, self._starts_of_ranges()) if len(counts) > MOST_IN_SETS else 0

    def _starts_of_ranges(self) -> dict[int, NDArray[np.int64]]:
        """Return the index of the first value of each range, by the width of the ranges."""
        starts_of_width = dict[int, NDArray[np.int64]]()
        for width in RANGES:
            ranges = self.values // width
            starts = np.flatnonzero(np.append(True, ranges[1:] != ranges[:-1]))
            if len(starts) <= 2:  # a threshold suffices
                break
            if len(starts) < len(self.values):
                starts_of_width[width] = starts
        return starts_of_width

    def are_copies(self) -> bool:
        """Return whether rows of a class are copies, for example of an oversampled class; values are hashes of rows."""
        totals, n_rows = self.counts.sum(axis=0), self.counts.sum(axis=1)
        repeated = self.counts[n_rows > 1]
        n_repeated, n_pure = repeated.sum(axis=0), repeated[np.count_nonzero(repeated, axis=1) == 1].sum(axis=0)
        is_rare = totals <= _MOST_FREQUENT * totals.sum()
        is_repeated = (n_repeated > 0) & (n_repeated >= _LEAST_REPEATED * totals)
        return bool(np.any(is_rare & is_repeated & (n_pure >= _LEAST_PURE * n_repeated)))


def _is_sampled(values: NDArray[np.int64], shift: int) -> NDArray[np.bool_]:
    if shift == 0:
        return np.ones(len(values), dtype=np.bool_)
    return hash_integers(values) < np.uint64(2 ** (64 - shift))


def find_groups(
    counts: NDArray[np.float64], scored: NDArray[np.float64], starts_of_size: Mapping[int, NDArray[np.int64]]
) -> int:
    """Return the size of the groups that estimate labels best together with the value; 0 if values alone suffice.

    `counts` are the class counts of sorted values, and `scored` those of the samples whose labels count, (n_values,
    n_classes). `starts_of_size` has the index of the first value of each group. The log likelihood must exceed that by
    values alone by `_LEAST_GAIN` or more. In priors, a value with n samples has the weight n / (n + a), where `a` is
    the best smoothing, as in random-effects models (DerSimonian and Laird 1986). With the weight n, a few frequent
    values would determine the prior of all others, and any groups would seem to be better than it.
    """
    n_samples = counts.sum(axis=1, keepdims=True)
    weights = n_samples / (n_samples + choose_smoothing(counts, counts.sum(axis=0) / counts.sum())[0])
    shares, mean_weight = counts / n_samples * weights, weights.mean()
    frequencies = shares.sum(axis=0) / weights.sum()
    best, found = choose_smoothing(scored, frequencies)[1] + _LEAST_GAIN, 0
    for size, starts in starts_of_size.items():
        sizes = np.diff(starts, append=len(counts))
        others, weight = (np.repeat(np.add.reduceat(a, starts), sizes, axis=0) - a for a in (shares, weights))
        for n_values in _VALUE_SMOOTHING:
            smoothing = n_values * mean_weight
            priors = (others + smoothing * frequencies) / (weight + smoothing)
            likelihood = choose_smoothing(scored, priors)[1]
            if likelihood > best:
                best, found = likelihood, size
    return found


class _GroupEstimates(NamedTuple):
    """Estimates of labels from groups of consecutive values alone."""

    starts: NDArray[np.int64]  # the index of the first value of each group
    smoothing: float
    likelihood: float  # the log likelihood of the labels


class _LabelEstimates(NamedTuple):
    """Log likelihoods of labels by estimates from the values of a column, from groups of them, or from neighbors."""

    counts: NDArray[np.float64]  # (n_values, n_classes), in the order of the values
    scored: NDArray[np.float64]  # the counts of the samples whose labels count
    frequencies: NDArray[np.float64]  # (n_classes,), of the same samples

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> "_LabelEstimates":
        """Return the estimates for these counts. The labels of the `_N_LEFT_OUT` most frequent values do not count."""
        scored = counts.astype(np.float64)
        scored[np.argsort(-counts.sum(axis=1), kind="stable")[:_N_LEFT_OUT]] = 0.0
        return cls(counts.astype(np.float64), scored, scored.sum(axis=0) / max(1.0, scored.sum()))

    def by_all(self) -> float:
        """Return the log likelihood by the class frequencies of all samples."""
        totals, known = self.scored.sum(axis=0), self.frequencies > 0.0
        return float(np.sum(totals[known] * np.log(self.frequencies[known])))

    def by_value(self) -> float:
        """Return the log likelihood by the other samples of the same value."""
        return choose_smoothing(self.scored, self.frequencies)[1]

    def by_group(self, starts: NDArray[np.int64]) -> _GroupEstimates:
        """Return the estimates from the other samples of the same group."""
        return _GroupEstimates(starts, *choose_smoothing(np.add.reduceat(self.scored, starts), self.frequencies))

    def by_value_and_group(self, group: _GroupEstimates) -> float:
        """Return the log likelihood by the group alone, or by the value smoothed to its group, whichever is greater."""
        sizes = np.diff(group.starts, append=len(self.counts))
        others = np.repeat(np.add.reduceat(self.counts, group.starts), sizes, axis=0) - self.counts
        return max(group.likelihood, choose_smoothing(self.scored, self._smooth(others, group.smoothing))[1])

    def by_neighbors(self) -> tuple[float, float]:
        """Return the log likelihood by neighboring values alone, and by the value smoothed to its neighbors.

        Of all numbers of neighbors and smoothings, those with the greatest likelihood are used.
        """
        values, classes = np.nonzero(self.scored)
        weights, priors, best = self.scored[values, classes], self.frequencies[classes], (-np.inf, 0, 0.0)
        sums, index = np.zeros((len(self.counts) + 1, self.counts.shape[1])), np.arange(len(self.counts))
        np.cumsum(self.counts, axis=0, out=sums[1:])

        def count_neighbors(n_neighbors: int) -> NDArray[np.float64]:
            stop, start = np.minimum(index + n_neighbors + 1, len(index)), np.maximum(index - n_neighbors, 0)
            return sums[stop] - sums[start] - self.counts

        for n_neighbors in _NEIGHBORS:
            others = count_neighbors(n_neighbors)
            of_class, n_others = others[values, classes], others.sum(axis=1)[values]
            for smoothing in _SMOOTHING:
                estimates = (of_class + smoothing * priors) / (n_others + smoothing)
                best = max(best, (float(np.sum(weights * np.log(estimates))), n_neighbors, smoothing))
        likelihood, n_neighbors, smoothing = best
        by_value = choose_smoothing(self.scored, self._smooth(count_neighbors(n_neighbors), smoothing))[1]
        return likelihood, by_value

    def _smooth(self, counts: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
        return (counts + smoothing * self.frequencies) / (counts.sum(axis=1, keepdims=True) + smoothing)


def count_integers(values: NDArray[Any], rows: CountedRows) -> IntegerCounts | None:
    """Return the class counts of the known values of a column, or None if a known value is not an integer."""
    counted = None
    for start, stop in pairwise([0, *range(_FIRST_ROWS, len(values), _BLOCK_ROWS), len(values)]):
        block = np.asarray(values[start:stop], dtype=np.float64)
        is_known = ~np.isnan(block)
        known = block[is_known]
        if not np.all((np.abs(known) <= _MOST_EXACT) & (known == np.floor(known))):
            return None
        known_rows, shift = rows._replace(labels=rows.labels[start:stop][is_known]), counted.shift if counted else 0
        of_block = IntegerCounts.of(known.astype(np.int64), known_rows, shift)
        counted = IntegerCounts.merged([counted, of_block]) if counted else of_block
    return counted


def count_rows(columns: Iterable[NDArray[Any]], rows: CountedRows) -> IntegerCounts:
    """Return the class counts of rows by their hashes; rows with equal numbers in all `columns` have equal hashes."""
    hashes = np.zeros(len(rows.labels), dtype=np.uint64)
    for values in columns:
        bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        hashes = hash_integers((hashes ^ np.where(np.isnan(values), np.uint64(1), bits)).view(np.int64))
    return IntegerCounts.of((hashes >> np.uint64(12)).astype(np.int64), rows, shift=0)  # less than `_MOST_EXACT`


def merge_counts(*parts: IntegerCounts | None) -> IntegerCounts | None:
    """Return the class counts of a column in parts of the rows together, None if it has no counts in one part."""
    counted = [part for part in parts if part is not None]
    return IntegerCounts.merged(counted) if len(counted) == len(parts) else None


def searched_columns(n_columns: int, skipped: Container[int], spec: FitSpec) -> list[int]:
    """Return the columns whose integers can be categories: not in `skipped`, and without a monotonic constraint."""
    constrained = np.flatnonzero(spec.params.signs).tolist()
    return [feature for feature in range(n_columns) if feature not in skipped and feature not in constrained]


def find_integer_categories(
    counted: Mapping[int, IntegerCounts | None], columns: Iterable[int]
) -> dict[int, tuple[int, ...]]:
    """Return the widths of the ranges of values that are categories, by the index of the column, see `find_widths`.

    Only the given columns are searched. `counted` has the counts of features and of `ROWS`. If rows were copied, no
    column is returned, because rows with the same value may be copies.
    """
    found = {f: widths for f in columns if (counts := counted.get(f)) is not None and (widths := counts.find_widths())}
    rows = counted.get(ROWS)
    return {} if rows is not None and rows.are_copies() else found


def count_values_of(table: Table, rows: NDArray[np.int64] | None, features: Iterable[int]) -> dict[int, Counted]:
    """Return the values of numeric columns and their counts in the given rows, or in all rows if `rows` is None."""
    return {f: count_values(np.asarray(read_numbers(table, f), dtype=np.float64), rows) for f in features}


def merge_values(parts: Sequence[dict[int, Counted]]) -> dict[int, Counted]:
    """Return the values of columns and their counts in all parts of the rows together."""
    return {feature: reduce(Counted.merge, (part[feature] for part in parts)) for feature in parts[0]}


def order_values(counted: Mapping[int, Counted], found: Mapping[int, tuple[int, ...]]) -> FoundCategories:
    """Return the categories of the found columns, given the counts of their values and the widths of ranges."""
    integers = dict[tuple[int, int], NDArray[np.int64]]()
    for feature, widths in found.items():
        values, counts = counted[feature]
        for width in widths:
            ranges, index = np.unique(values // width, return_inverse=True)
            of_ranges = Counted(ranges, np.bincount(index, counts).astype(np.int64))
            integers[feature, width] = order_categories(of_ranges, f"feature {feature}").astype(np.int64)
    return integers
