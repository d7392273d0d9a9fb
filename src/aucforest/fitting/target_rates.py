"""Choice of the columns, interactions and smoothing of target rates (target encoding), and their totals and bins.

A cell is a category or, in an interaction, a pair of a category and a part (an interval or a category) of another
feature. A table has the totals of the cells of a column or of an interaction, which are the weights of each class.
Interactions and smoothing are chosen by leave-one-out likelihoods in a sample of rows. Bins are chosen from the totals
of all rows. All choices depend only on codes and labels, so they do not depend on where the rows are stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import Categories
from aucforest.columns.target_rates import INTERACTIONS, RATES, SETS, LeftOutTotals, RateTable, TargetRates
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.tree.binning import MAX_BINS, BinValues, choose_bins, midway
from aucforest.tree.ordered_rates import read_categories
from aucforest.tree.samples import FixedPoint, exact_weights
from aucforest.tree.tree import SHARED_CODE

# All constants were chosen with benchmarks/many_categories.py.
# Columns with more categories than this have target rates.
MOST_IN_SETS = 50
# Maximum number of classes that have target rates.
_MOST_CLASSES = 6
# Maximum number of interactions of a fit, and maximum number of interactions whose rates a tree grows on.
MOST_INTERACTIONS, INTERACTIONS_OF_TREE = 8, 3
# Maximum number of cells of all interactions together, and minimum gain in log likelihood of an interaction.
MOST_CELLS, _LEAST_GAIN = 2**20, 10.0
# Maximum number and minimum gain of the interactions of the additive model of a stack.
_MOST_ADDITIVE, _LEAST_ADDITIVE_GAIN = 16, 3.0
# In an interaction, a numeric feature is divided at its quantiles into one of these numbers of parts. The next greater
# number is tried only if the gain has increased by at least _LEAST_INCREASE.
PARTS, _LEAST_INCREASE = (2, 4, 8, 16), 1.0
# Approximate maximum number of pairs of a column and another feature that are tried as interactions.
_MOST_CANDIDATES = 512
# The candidates for smoothing, which is the weight of the prior as a number of samples.
SMOOTHING = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0])
# Approximate maximum number of sampled rows, and of their codes, from which interactions and smoothing are chosen.
_SAMPLE_ROWS, _SAMPLE_CODES = 2**16, 2**25
# Maximum number of cells of a table from which bins are chosen.
_BIN_CELLS = 2**14
# The base of the digits of a category index. A row has one code for each digit.
_BASE = 256
_BLOCK_ROWS = 2**18  # rows are decoded in blocks of this size, to save memory
_LEAST_RATE = 1e-12  # smaller rates are raised to this value, so that their logarithms are finite
_SPLITMIX_INCREMENT = np.uint64(0x9E3779B97F4A7C15)


def find_rated(categories: Categories, encodings: Sequence[str]) -> list[int]:
    """Return the indices of the columns that have target rates, in ascending order."""
    if tuple(encodings) == (SETS,):
        return []
    # Sorted, because the order of the columns in `categories` depends on where the rows are stored.
    return sorted(feature for feature, values in categories.items() if len(values) > MOST_IN_SETS)


def possible_encodings(given: Sequence[str], rates: TargetRates | None) -> tuple[str, ...]:
    """Return which of the given encodings are possible, or `RATES` if none is. Without target rates, return `SETS`."""
    if rates is None:
        return (SETS,)
    has_interactions = any(table.is_interaction for table in rates.tables)
    return tuple(name for name in given if name != INTERACTIONS or has_interactions) or (RATES,)


def count_rated_classes(n_classes: int) -> int:
    """Return the number of classes that have rates. Of two classes, only the second one has rates."""
    return 1 if n_classes == 2 else min(n_classes, _MOST_CLASSES)


def count_digits(n_categories: int) -> int:
    """Return the number of digits of category indices; an index whose digits are all 255 means a missing value."""
    return (n_categories.bit_length() + 7) // 8


@dataclass(frozen=True)
class Digits:
    """Encodes the category indices of columns as digits, which are stored after the codes of the features.

    Codes of one byte are enough for digits, but not for the indices of many categories.
    """

    first: int  # the index of the first digit in an array of codes, (n_features + n_digits, n_rows)
    n_categories: dict[int, int]  # the number of categories of each column that has target rates
    # For a feature whose categories are found in another column (integers or first characters): that column.
    found: Mapping[int, int] = field(default_factory=dict)
    # For a feature of categories whose first characters or ranges are a feature, too: the index of that feature, and
    # for each category the index of its first characters or its range.
    prefixes: Mapping[int, tuple[int, NDArray[np.int64]]] = field(default_factory=dict)

    @property
    def n_digits(self) -> int:
        """The number of digits of all columns."""
        return sum(map(count_digits, self.n_categories.values()))

    @cached_property
    def _slices(self) -> dict[int, slice]:
        ends = self.first + np.cumsum(list(map(count_digits, self.n_categories.values())))
        starts = [self.first, *ends[:-1].tolist()]
        return dict(zip(self.n_categories, map(slice, starts, ends.tolist())))

    def encode(self, columns: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        """Return the digits of the category indices of each column, NaN if missing, shape (n_digits, n_rows)."""
        digits, index = np.empty((self.n_digits, len(columns[0])), dtype=dtype), 0
        for values, n_categories in zip(columns, self.n_categories.values(), strict=True):
            n_digits = count_digits(n_categories)
            quotient = np.where(np.isnan(values), _BASE**n_digits - 1, values).astype(np.int64)
            for _ in range(n_digits):
                quotient, digits[index] = np.divmod(quotient, _BASE)
                index += 1
        return digits

    def decode(
        self, codes: NDArray[np.unsignedinteger], feature: int, rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.int32]:
        """Return the category index of the given rows (None for all) in a column, (n_rows,), -1 for missing values."""
        digits = codes[self._slices[feature]]
        digits = digits if rows is None else digits.take(rows, axis=1)
        categories = np.empty(digits.shape[1], dtype=np.int32)
        read_categories(digits, categories)
        # Compiled code uses the result as indices, which must be less than the number of categories.
        categories[categories >= self.n_categories[feature]] = -1
        return categories


class CodedRows(NamedTuple):
    """The codes, labels and weights of training rows."""

    codes: NDArray[np.unsignedinteger]  # (n_features + n_digits, n_rows)
    labels: NDArray[np.uint16]
    weights: NDArray[np.int64] | None = None  # as fixed-point integers; None if all are 1
    release: Callable[[], None] | None = None  # removes the codes from memory if they are in a mapped file

    def take(self, rows: Any) -> "CodedRows":
        """Return the selected rows."""
        weights = None if self.weights is None else self.weights[rows]
        return CodedRows(self.codes[:, rows], self.labels[rows], weights)

    def blocks(self) -> Iterator[tuple[int, "CodedRows"]]:
        """Yield blocks of rows, with the index of the first one; mapped codes are released after each block."""
        for start in range(0, len(self.labels), _BLOCK_ROWS):
            yield start, self.take(slice(start, start + _BLOCK_ROWS))
            if self.release is not None:
                self.release()

    def codes_of(self, feature: int, rows: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
        """Return the codes of a feature in the given rows; mapped codes are released."""
        codes = self.codes[feature][rows]
        if self.release is not None:
            self.release()
        return codes


class ColumnSample(NamedTuple):
    """A sample of rows, from which the smoothing and the interactions of a column are chosen."""

    feature: int  # the index of the column
    rows: CodedRows
    chosen: NDArray[np.int64]  # the indices of the sampled rows in `rows`


def count_totals(cells: NDArray[np.integer], n_cells: int, rows: CodedRows, n_classes: int) -> NDArray[np.int64]:
    """Return the total weight of each class in each cell, (n_cells, n_classes); rows with the cell -1 are left out."""
    known = cells >= 0
    indices = cells[known].astype(np.int64) * n_classes + rows.labels[known]
    if rows.weights is None:
        totals = np.bincount(indices, minlength=n_cells * n_classes)
    else:
        totals = np.zeros(n_cells * n_classes, dtype=np.int64)
        np.add.at(totals, indices, rows.weights[known])
    return totals.reshape(n_cells, n_classes)


class RateWeights(NamedTuple):
    """Converts sample weights to integer weights in target rates, because sums of integers are exact."""

    fixed: FixedPoint | None  # the unit of integer weights; None if all sample weights are 1
    mean: float  # the mean sample weight of all rows; a row of this weight counts as one sample
    by_class: NDArray[np.float64]  # (n_classes,) factors, lower for classes of which trees sample fewer rows

    @classmethod
    def of(cls, sample_weight: NDArray[np.float64] | None, sampler: BootstrapSampler | None, n_classes: int) -> Self:
        """Return the conversion, given the sample weights of all rows of positive weight."""
        fixed, mean, by_class = None, 1.0, np.ones(n_classes)
        if sample_weight is not None:
            fixed, mean = FixedPoint.of(sample_weight, len(sample_weight)), float(sample_weight.mean())
        if sampler is not None and len(sampler.sizes) == n_classes:
            # The expected proportion of the rows of a class that are in the sample of a tree at least once.
            sampled = -np.expm1(-np.nan_to_num(sampler.rates))
            by_class = sampled / sampled.max()
        return cls(fixed, mean, by_class)

    @property
    def factors(self) -> NDArray[np.float64]:
        """The factors that convert integer weights to numbers of samples, (n_classes,)."""
        return self.by_class if self.fixed is None else self.by_class * (self.fixed.unit / self.mean)

    def integers(self, sample_weight: NDArray[np.float64] | None) -> NDArray[np.int64] | None:
        """Return the weights of rows as integers, or None if all are 1."""
        return None if self.fixed is None or sample_weight is None else self.fixed.apply(sample_weight)

    def in_samples(self, sample_weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Return the weights of rows divided by the mean weight, or None if all are 1."""
        return None if sample_weight is None else sample_weight / self.mean


def prior_frequencies(
    labels: NDArray[np.uint16], integers: NDArray[np.int64] | None, by_class: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the expected class frequencies in the samples of trees; `by_class` is that of `RateWeights`."""
    totals = np.zeros(len(by_class), dtype=np.int64)
    np.add.at(totals, labels, 1 if integers is None else integers)
    weights = totals * by_class
    return weights / weights.sum()


def sampled_rows(rows: CodedRows, digits: Digits, feature: int, n_rows: int, first_row: int = 0) -> NDArray[np.int64]:
    """Return the indices of the rows from which the interactions and smoothing of a column are chosen.

    Rows of the `SHARED_CODE` most frequent categories are sampled one by one. Of a rarer category, all rows or none are
    sampled. Whether a row is sampled depends only on its category and on its index in the fit. So `rows` may be a part
    of the n_rows rows of the fit, which starts with `first_row`.
    """
    max_rows = min(_SAMPLE_ROWS, _SAMPLE_CODES // len(rows.codes))
    if n_rows <= max_rows:
        return np.arange(len(rows.labels))
    sampled = [np.empty(0, dtype=np.int64)]
    for start, block in rows.blocks():
        categories = digits.decode(block.codes, feature)
        numbers = first_row + start + np.arange(len(categories))
        hashes = hash_integers(np.where(categories < SHARED_CODE, numbers, n_rows + categories.astype(np.int64)))
        sampled.append(start + np.flatnonzero((categories >= 0) & (hashes < np.uint64(max_rows / n_rows * 2.0**64))))
    return np.concatenate(sampled)


def hash_integers(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the hash of each number by SplitMix64."""
    hashes = numbers.astype(np.uint64) * _SPLITMIX_INCREMENT + _SPLITMIX_INCREMENT
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    return hashes


@dataclass(frozen=True)
class CellFinder:
    """Finds the cells of rows in tables of target rates, given the codes of the rows."""

    digits: Digits
    values: BinValues  # the bins of all features
    by_set: NDArray[np.bool_]  # (n_features,) whether each feature is categorical

    def cells(self, table: RateTable, codes: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
        """Return the cell of each row in a table, (n_rows,), -1 if a value is missing."""
        categories = self.digits.decode(codes, table.feature).astype(np.int64)
        if not table.is_interaction:
            return categories
        return table.cells(categories, table.parts_of_codes(self.values)[codes[table.other]])

    def count(self, table: RateTable, rows: CodedRows, n_classes: int) -> NDArray[np.int64]:
        """Return the total weight of each class in each cell of a table, (n_cells, n_classes)."""
        n_cells = self.digits.n_categories[table.feature] * table.n_parts
        totals = np.zeros((n_cells, n_classes), dtype=np.int64)
        for _, block in rows.blocks():
            totals += count_totals(self.cells(table, block.codes), n_cells, block, n_classes)
        return totals

    def empty_table(self, feature: int) -> RateTable:
        """Return a table of a column without interaction, smoothing and totals."""
        return RateTable(feature, -1, np.empty(0), 1, 0.0, np.empty((0, 0), dtype=np.int64))

    def candidates(
        self, feature: int, codes_of: Callable[[int], NDArray[Any]]
    ) -> Iterator[tuple[NDArray[Any], list[RateTable]]]:
        """Yield the codes of other features, and the interactions with each of them, in ascending order of n_parts."""
        n_features, table, column_of = len(self.by_set), self.empty_table(feature), self.digits.found
        # All other features are tried, or every step-th feature if there are many.
        step = -(-n_features * len(self.digits.n_categories) // _MOST_CANDIDATES)
        for other in range(feature % step, n_features, step):
            n_bins = int(self.values.first[other + 1] - self.values.first[other])
            if column_of.get(other, other) == column_of.get(feature, feature) or n_bins < 2:
                continue
            codes = codes_of(other)
            if self.by_set[other]:
                yield codes, [table._replace(other=other, n_parts=n_bins)]
                continue
            known, tables = np.sort(codes[codes < n_bins]), []
            for n_parts in PARTS if len(known) > 0 else ():
                cuts = known[len(known) * np.arange(1, n_parts) // n_parts].astype(np.int64)
                cuts = np.unique(np.minimum(cuts, n_bins - 2))
                if len(cuts) == n_parts - 1:
                    bins = (self.values.first[other] + cuts).tolist()
                    edges = np.array([midway(self.values.upper[i], self.values.lower[i + 1]) for i in bins])
                    tables.append(table._replace(other=other, edges=edges, n_parts=n_parts))
            yield codes, tables


def choose_smoothing(totals: NDArray[np.float64], prior_rates: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smoothing with the greatest leave-one-out log likelihood of the labels, and this log likelihood.

    The rates of a sample are computed from the other samples of its cell. `totals`, (n_cells, n_classes), are the
    weights of the classes in cells. `prior_rates` have this shape or (n_classes,).
    """
    cells, classes = np.nonzero(totals)  # half of the totals are 0 if most cells have one class only
    weights, priors = totals[cells, classes], np.broadcast_to(prior_rates, totals.shape)[cells, classes]
    others, total = np.maximum(weights - 1.0, 0.0), np.maximum(totals.sum(axis=1) - 1.0, 0.0)[cells]
    rates = ((others + smoothing * priors) / (total + smoothing) for smoothing in SMOOTHING.tolist())
    likelihoods = [float(np.sum(weights * np.log(np.maximum(smoothed, _LEAST_RATE)))) for smoothed in rates]
    best = int(np.argmax(likelihoods))
    return float(SMOOTHING[best]), likelihoods[best]


def choose_tables(
    finder: CellFinder,
    sample: ColumnSample,
    frequencies: NDArray[np.float64],
    factors: NDArray[np.float64],
    with_interactions: bool,
) -> tuple[RateTable, list[tuple[float, RateTable]]]:
    """Return the table of a column, and its interactions of at least the gain `_LEAST_ADDITIVE_GAIN` with their gains.

    The returned tables have no totals.
    """
    feature, rows, chosen = sample
    n_classes, decoded = len(frequencies), finder.digits.decode(rows.codes, feature, chosen)
    # The codes of one feature are selected at a time, in `finder.candidates`. To select all codes would take longer.
    chosen, decoded = chosen[decoded >= 0], decoded[decoded >= 0]
    sampled = CodedRows(rows.codes[:0], rows.labels[chosen])
    # Categories outside the sample get no cells, so that the arrays of totals are small.
    categories = np.unique(decoded, return_inverse=True)[1].astype(np.int64)
    n_categories = int(categories.max(initial=-1)) + 1
    category_totals = count_totals(categories, n_categories, sampled, n_classes) * factors
    priors, prior = np.broadcast_to(frequencies, category_totals.shape), -1
    smoothing, likelihood = choose_smoothing(category_totals, priors)
    if feature in finder.digits.prefixes:
        prefix_feature, prefixes = finder.digits.prefixes[feature]
        by_prefix = _rates_by_prefix(category_totals, prefixes[np.unique(decoded)], frequencies)
        prefix_smoothing, prefix_likelihood = choose_smoothing(category_totals, by_prefix)
        if prefix_likelihood > likelihood:
            priors, prior, smoothing = by_prefix, prefix_feature, prefix_smoothing
    no_totals = np.empty((0, n_classes), dtype=np.int64)
    table = finder.empty_table(feature)._replace(smoothing=smoothing, totals=no_totals, prior=prior)
    interactions = []
    pairs = finder.candidates(feature, lambda other: rows.codes_of(other, chosen)) if with_interactions else ()
    for other_codes, candidates in pairs:
        previous_gain = -np.inf
        for candidate in candidates:
            n_cells = n_categories * candidate.n_parts
            n_all_cells = finder.digits.n_categories[feature] * candidate.n_parts
            if n_all_cells > MOST_CELLS or n_cells * n_classes > 4 * MOST_CELLS:
                break
            parts = candidate.parts_of_codes(finder.values)[other_codes]
            totals = count_totals(candidate.cells(categories, parts), n_cells, sampled, n_classes) * factors
            by_category = totals.reshape(n_categories, -1, n_classes)
            cell_smoothing, gain = interaction_gain(by_category, frequencies, smoothing * priors)
            if gain >= _LEAST_ADDITIVE_GAIN:
                interactions.append((gain, candidate._replace(smoothing=cell_smoothing, totals=no_totals)))
            # More parts take longer, so they are tried only while the gain increases.
            if gain < previous_gain + _LEAST_INCREASE:
                break
            previous_gain = gain
    return table, interactions


def _rates_by_prefix(
    totals: NDArray[np.float64], prefixes: NDArray[np.int64], frequencies: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return for each category the rates of the other categories with the same prefix, (n_categories, n_classes)."""
    prefix_totals = np.zeros((int(prefixes.max(initial=-1)) + 1, totals.shape[1]))
    np.add.at(prefix_totals, prefixes, totals)
    smoothing, _ = choose_smoothing(prefix_totals, frequencies)
    others = prefix_totals[prefixes] - totals
    rates: NDArray[np.float64] = (others + smoothing * frequencies) / (others.sum(axis=1, keepdims=True) + smoothing)
    return rates


def interaction_gain(
    totals: NDArray[np.float64], frequencies: NDArray[np.float64], prior_totals: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the smoothing of an interaction, and its gain in log likelihood over a model without the interaction.

    `totals`, (n_categories, n_parts, n_classes), are the weights of the classes in cells. `frequencies` are the class
    frequencies in all samples. `prior_totals`, (n_categories, n_classes), are the smoothing of the table of the column
    without interaction times its priors.
    """
    category_totals, part_totals = totals.sum(axis=1), totals.sum(axis=0) + frequencies
    # The class frequencies in the sample differ from `frequencies`, because categories are sampled.
    sample_frequencies = part_totals.sum(axis=0) / part_totals.sum()
    part_ratios = part_totals / part_totals.sum(axis=1, keepdims=True) / np.maximum(sample_frequencies, _LEAST_RATE)
    categories, parts = np.nonzero(totals.any(axis=2))
    nonzero, ratios = totals[categories, parts], part_ratios[parts]
    # Without the interaction, the ratios of a part are the same for all categories. The expected rate of a class leaves
    # out one sample of this class.
    weights = (category_totals + prior_totals)[categories] * ratios
    remaining = np.maximum(weights - ratios, _LEAST_RATE)
    expected_rates = remaining / np.maximum(weights.sum(axis=1, keepdims=True) - ratios, remaining)
    cell_smoothing, likelihood = choose_smoothing(nonzero, expected_rates)
    return cell_smoothing, likelihood - float(np.sum(nonzero * np.log(np.maximum(expected_rates, _LEAST_RATE))))


def choose_rates(
    finder: CellFinder,
    samples: Iterable[ColumnSample],
    labels: NDArray[np.uint16],
    by_class: NDArray[np.float64],
    with_interactions: bool,
) -> tuple[TargetRates, tuple[RateTable, ...]]:
    """Return the rates of a fit, and the interactions for an additive model, in descending order of their gains.

    A sample of rows is given for each column that has rates. `labels` are the labels of all rows, and `by_class` is the
    weight of a row of each class. Sample weights are not used, because leaving out one row would need its weight, which
    the totals of a cell do not show. The returned tables have no totals.
    """
    frequencies = prior_frequencies(labels, None, by_class)
    chosen = [choose_tables(finder, sample, frequencies, by_class, with_interactions) for sample in samples]
    gains = sorted((pair for _, interactions in chosen for pair in interactions), key=lambda pair: -pair[0])

    def select(max_tables: int, min_gain: float) -> list[RateTable]:
        """Return the interactions with the greatest gains, at most one for a column and another feature."""
        selected: dict[tuple[int, int], RateTable] = {}
        for gain, table in gains:
            n_cells = sum(finder.digits.n_categories[t.feature] * t.n_parts for t in (*selected.values(), table))
            if gain >= min_gain and n_cells <= MOST_CELLS and len(selected) < max_tables:
                selected.setdefault((table.feature, table.other), table)
        return list(selected.values())

    tables, interactions = list[RateTable](), sorted(select(MOST_INTERACTIONS, _LEAST_GAIN), key=lambda t: t.other)
    for column_table, _ in chosen:
        tables += [column_table, *(table for table in interactions if table.feature == column_table.feature)]
    classes = np.array([1])
    if len(frequencies) > 2:
        classes = np.sort(np.argsort(-frequencies, kind="stable")[: count_rated_classes(len(frequencies))])
    rates = TargetRates(tuple(tables), classes, frequencies, by_class)
    return rates, tuple(select(_MOST_ADDITIVE, _LEAST_ADDITIVE_GAIN))


def choose_rate_bins(rates: TargetRates, prefixes: Mapping[int, tuple[int, NDArray[np.int64]]]) -> list[BinValues]:
    """Return the bins of each feature of rates, see `_bins_of_cells`; at most `_BIN_CELLS` cells are used.

    `prefixes` are those of `Digits`.
    """
    bins: list[BinValues] = []

    def priors_of(number: int, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        table, prior = rates.tables[number], rates.prior_table(number)
        if prior < 0:
            return np.broadcast_to(rates.frequencies[rates.classes], (len(cells), len(rates.classes)))
        prior_cells = cells // table.n_parts if table.is_interaction else prefixes[table.feature][1][cells]
        priors = priors_of(prior, prior_cells)
        return rates.rate(rates.tables[prior].totals[prior_cells], rates.tables[prior].smoothing, priors)

    for number, table in enumerate(rates.tables):
        totals = table.totals
        cells = np.flatnonzero(totals.any(axis=1))
        cells = cells[:: max(1, -(-len(cells) // _BIN_CELLS))]
        prior_rates = priors_of(number, cells)
        weights = totals[cells] * rates.factors
        total, counts = weights.sum(axis=1), weights[:, rates.classes]
        for c in range(len(rates.classes)):
            bins.append(_bins_of_cells(total, counts[:, c], prior_rates[:, c], table.smoothing))
    return bins


def _bins_of_cells(
    total: NDArray[np.float64], counts: NDArray[np.float64], prior_rates: NDArray[np.float64], smoothing: float
) -> BinValues:
    """Return the bins of the rates of one class, given the total weight and the weight of the class in each cell.

    They are chosen from the rates that samples of the cells are expected to have in trees and out-of-bag predictions.
    """

    def rate(class_weight: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        return (np.maximum(class_weight, 0.0) + smoothing * prior_rates) / (np.maximum(weight, 0.0) + smoothing)

    # Out-of-bag rates leave out one sample, of the class or not. In a tree, rates are computed from about half of the
    # samples, or they are the prior rates.
    values = [rate(counts - 1.0, total - 1.0), rate(counts, total - 1.0), rate(0.5 * counts, 0.5 * total), prior_rates]
    weights = [counts, total - counts, 0.5 * total, 0.25 * total]
    weight = np.concatenate(weights)
    positive = weight > 0.0
    column = np.concatenate(values)[positive][None]
    if column.size == 0:
        return BinValues.of([1], np.zeros(1), np.zeros(1))
    return choose_bins(column, exact_weights(weight[positive]), MAX_BINS)


def left_out_rows(labels: NDArray[np.uint16], weights: NDArray[np.int64] | None, n_classes: int) -> LeftOutTotals:
    """Return a function that returns the totals left out for each row: its own weight in its class, for any table."""
    row_totals = np.zeros((len(labels), n_classes), dtype=np.int64)
    row_totals[np.arange(len(labels)), labels] = 1 if weights is None else weights
    return lambda number, cells: row_totals


@dataclass(frozen=True, eq=False)
class LeftOutTotalsFinder:
    """Finds the class totals that the out-of-bag rates of a row leave out: those of its group, or of the row itself."""

    labels: NDArray[np.uint16]  # of all rows
    kept: NDArray[np.int64] | None  # the indices of the rows of positive weight; None for all
    weights: NDArray[np.int64] | None  # of the kept rows, as fixed-point integers; None if all are 1
    n_classes: int
    groups: NDArray[np.integer] | None  # of the kept rows, if groups are sampled
    cells_of: Callable[[int], NDArray[np.integer]]  # returns the cells of the kept rows, given the index of a table
    _by_group: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock)

    def __call__(self, rows: NDArray[np.int64]) -> LeftOutTotals:
        """Return the function `LeftOutTotals` of the given rows."""
        indices = rows if self.kept is None else np.searchsorted(self.kept, rows)
        if self.groups is not None:
            groups = self.groups[indices]
            return lambda number, cells: self._of_groups(number, cells, groups)
        weights = None if self.weights is None else self.weights[indices]
        return left_out_rows(self.labels[rows], weights, self.n_classes)

    def _of_groups(self, number: int, cells: NDArray[np.int64], groups: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the class totals of each row's group in the row's cell, (n_rows, n_classes)."""
        assert self.groups is not None
        n_groups = int(self.groups.max()) + 1
        with self._lock:  # threads may need the same totals at the same time
            if number not in self._by_group:
                labels = self.labels if self.kept is None else self.labels[self.kept]
                cells_and_groups = self.cells_of(number).astype(np.int64) * n_groups + self.groups
                keys, indices = np.unique(cells_and_groups, return_inverse=True)
                totals = np.zeros((len(keys), self.n_classes), dtype=np.int64)
                np.add.at(totals, (indices, labels), 1 if self.weights is None else self.weights)
                self._by_group[number] = keys, totals
        keys, totals = self._by_group[number]
        return totals[np.searchsorted(keys, cells * n_groups + groups)]
