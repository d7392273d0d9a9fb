"""Encoding of tables: parts of a table are summarized, and bins and categories are chosen from the merged summaries."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import (
    Categories,
    Counted,
    Table,
    column_name,
    count_values,
    feature_kinds,
    order_categories,
    read_column,
    read_numbers,
)
from aucforest.columns.dates import Dates
from aucforest.columns.expansion import (
    Expanded,
    FoundCategories,
    IntegerColumn,
    TextColumn,
    columns_of_found,
    n_added,
    prefixes_of,
    read_features,
    times_in,
)
from aucforest.columns.integers import is_rounded
from aucforest.columns.target_rates import TargetRates
from aucforest.fitting.integer_categories import (
    ROWS,
    CountedRows,
    IntegerCounts,
    count_integers,
    count_rows,
    merge_counts,
)
from aucforest.fitting.prefixes import count_categories, find_prefixes
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import CellFinder, Digits, find_rated
from aucforest.tree.binning import (
    MAX_BINS,
    BinValues,
    ParallelMap,
    add_distinct,
    categorical_bins,
    choose_bins,
    encode_matrix,
    join_bins,
    sample_rows,
)
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import exact_weights

# Maximum number of bins of a date part "time". With more, trees could learn events of single days, which do not recur.
TIME_BINS = 32


@dataclass(frozen=True)
class Summary:
    """A summary of the values of each feature in a part of the rows."""

    names: list[str]  # names of the features, for error messages
    counted: dict[int, Counted]  # the values of each categorical feature, with their counts
    distinct: dict[int, NDArray[np.float64] | None]  # sorted values of each other feature; None if more than max_bins
    # (n_features, n_sampled), the values of the rows from which bins are chosen; NaN in categorical features
    sampled: NDArray[np.float64]
    rounded: set[int]  # features with integers that float64 rounds
    # The class counts of the integers of each feature, and of the hashes of the text of each categorical feature, None
    # for a feature with other values. The key `ROWS` has the class counts of whole rows, None if no
    # feature has only integers. Empty if no categories are searched by the labels.
    by_class: dict[int, IntegerCounts | None]

    @classmethod
    def joined(cls, summaries: Sequence["Summary"], max_bins: int | None) -> "Summary":
        """Return the summary of the rows of all summaries, which are given in the order of the rows."""
        first = summaries[0]
        counted = {f: reduce(Counted.merge, (summary.counted[f] for summary in summaries)) for f in first.counted}
        distinct: dict[int, NDArray[np.float64] | None] = {}
        for feature in first.distinct:
            values = [summary.distinct[feature] for summary in summaries]
            complete = [distinct_values for distinct_values in values if distinct_values is not None]
            merged = np.unique(np.concatenate(complete)) if len(complete) == len(values) else None
            distinct[feature] = None if merged is None or len(merged) > (max_bins or np.inf) else merged
        sampled = np.concatenate([summary.sampled for summary in summaries], axis=1)
        rounded = set[int]().union(*(summary.rounded for summary in summaries))
        by_class = {f: merge_counts(*(summary.by_class[f] for summary in summaries)) for f in first.by_class}
        return cls(first.names, counted, distinct, sampled, rounded, by_class)


def sample_for_bins(target: Target, max_bins: int | None) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the rows from which bins are chosen, as indices among rows of positive weight, and their weights."""
    weight, sample = target.kept_weight, sample_rows(len(target.kept_labels), max_bins)
    return sample, None if weight is None or max_bins is None else exact_weights(weight[sample])


def summarize_table(
    table: Table,
    rows: NDArray[np.int64] | None,
    sample: NDArray[np.int64],
    categorical: Sequence[int],
    max_bins: int | None,
    counted_rows: CountedRows | None,
) -> Summary:
    """Summarize the given rows of a table, all if None; bins are chosen from the rows `sample`.

    `counted_rows` has the labels of `rows`. It is None if no categories are searched by the labels.
    """
    names, categorical_set = [column_name(table, feature) for feature in range(table.shape[1])], set(categorical)
    summary = Summary(names, {}, {}, np.full((len(names), len(sample)), np.nan), set(), {})
    columns: list[NDArray[np.float64]] = []
    for feature in range(len(names)):
        if feature in categorical_set:
            column = read_column(table, feature)
            summary.counted[feature] = count_values(column, rows)
            if counted_rows is not None:
                summary.by_class[feature] = count_categories(column, rows, counted_rows)
            continue
        numbers = read_numbers(table, feature)
        if is_rounded(numbers):
            summary.rounded.add(feature)
        values = np.asarray(numbers, dtype=np.float64)
        summary.sampled[feature] = values[sample]
        kept_values = values if rows is None else values[rows]
        # Without max_bins, all rows are sampled.
        summary.distinct[feature] = None if max_bins is None else add_distinct(kept_values, np.empty(0), max_bins)
        if counted_rows is not None:
            summary.by_class[feature] = count_integers(kept_values, counted_rows)
            columns.append(kept_values)
    if counted_rows is not None:
        # Counts of whole rows are only needed if there is a column of integers, which most tables do not have.
        has_integers = any(summary.by_class[feature] is not None for feature in summary.distinct)
        summary.by_class[ROWS] = count_rows(columns, counted_rows) if has_integers else None
    return summary


@dataclass(frozen=True)
class Coding:
    """How tables are encoded: the categories and bins of their features."""

    categories: Categories  # becomes `categories_` of the forest
    values: BinValues  # without target rates
    expanded: Expanded = field(default_factory=dict)  # becomes `expanded_` of the forest
    rated: tuple[int, ...] = ()  # the categorical features that have target rates
    rates: TargetRates | None = None  # becomes `target_rates_`; None without target rates, and before they are chosen

    @property
    def n_features(self) -> int:
        """The number of features, without target rates."""
        return len(self.values.n_bins)

    @cached_property
    def digits(self) -> Digits:
        """The category indices of features with target rates as digits of one byte, which are appended to the codes."""
        n_categories = {f: len(self.categories[f]) for f in self.rated}
        n_columns = self.n_features - n_added(self.expanded)
        found = {f: column for f, (column, _) in columns_of_found(n_columns, self.expanded).items()}
        return Digits(self.n_features, n_categories, found, prefixes_of(n_columns, self.expanded, self.categories))

    @property
    def n_codes(self) -> NDArray[np.int64]:
        """The number of different codes of each feature and digit, without the code of missing values."""
        return np.append(self.values.n_bins, np.full(self.digits.n_digits, MAX_BINS))

    @cached_property
    def cell_finder(self) -> CellFinder:
        """Finds the cells of target rates, given codes."""
        return CellFinder(self.digits, self.values, self.kinds != NUMERIC)

    def with_rated(self, encodings: Sequence[str]) -> "Coding":
        """Return the coding with `rated` set, given the encodings that trees may use for columns of many categories.

        First characters and ranges have rates even if they are few. They are the priors of the rates of categories, and
        unseen ones have the class frequencies of all samples.
        """
        found = columns_of_found(self.n_features - n_added(self.expanded), self.expanded)
        return replace(self, rated=tuple(sorted({*find_rated(self.categories, encodings), *found})))

    def with_found(self, found: FoundCategories) -> "Coding":
        """Return the coding with the features that were found by the labels as further features."""
        if not found:
            return self
        columns = dict[int, IntegerColumn | TextColumn]()
        for column, keys in groupby(found, key=itemgetter(0)):
            sizes = tuple(size for _, size in keys)
            is_text = found[column, sizes[0]].dtype == object
            columns[column] = added = TextColumn(sizes) if is_text else IntegerColumn(sizes)
            if column in self.expanded or (column in self.categories) != added.is_categorical:
                kind = "text" if is_text else "categories" if added.is_categorical else "integers"
                raise ValueError(
                    f"warm_start: column {column} had {kind} in the previous fit, but has other values now"
                )
        all_categories = {**self.categories, **dict(enumerate(found.values(), self.n_features))}
        values = join_bins([self.values, *map(bins_of_categories, found.values())])
        return replace(self, categories=all_categories, values=values, expanded={**self.expanded, **columns})

    @property
    def kinds(self) -> NDArray[np.int8]:
        """Kind of each feature, see `tree.features`."""
        return feature_kinds(self.categories, self.n_features)

    def read(self, table: Table, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """Return the features of the given rows of a table, all if None, shape (n_rows, n_features)."""
        matrix = read_features(table, self.expanded, self.categories)
        return matrix if rows is None else matrix[rows]

    def encode(self, matrix: NDArray[Any]) -> NDArray[np.unsignedinteger]:
        """Return the codes of a matrix that `read` returned, shape (n_features + n_digits, n_rows)."""
        return self.with_digits(encode_matrix(matrix, self.values).codes, [matrix[:, f] for f in self.rated])

    def with_digits(
        self, codes: NDArray[np.unsignedinteger], columns: Sequence[NDArray[Any]]
    ) -> NDArray[np.unsignedinteger]:
        """Return codes with digits appended, given the category indices of each feature of `rated`."""
        if not self.rated:
            return codes
        return np.concatenate((codes, self.digits.encode(columns, codes.dtype)))


def bins_of_categories(categories: NDArray[Any]) -> BinValues:
    """Return the bins of a feature with these categories; the rarest ones share the last bin if there are many."""
    return categorical_bins(min(len(categories), MAX_BINS))


def choose_coding(
    run: ParallelMap,
    summary: Summary,
    sample_weight: NDArray[np.float64] | None,
    max_bins: int | None,
    dates: Dates,
    found: FoundCategories,
) -> Coding:
    """Choose the same codes as a fit in memory, given the summary of all rows and the weights of the sampled rows.

    `found` has the columns of integers that are categories or, in a warm start, all found features.
    """
    categories: Categories = {f: order_categories(counted, summary.names[f]) for f, counted in summary.counted.items()}
    weights = np.empty(0) if sample_weight is None else sample_weight

    def bins_of(feature: int) -> BinValues:
        if feature in categories:
            return bins_of_categories(categories[feature])
        columns = summary.sampled[feature : feature + 1].copy()
        # The last argument returns the distinct values of all rows, not only of the sample.
        return choose_bins(columns, weights, max_bins or columns.shape[1], lambda *_: summary.distinct[feature])

    values = join_bins(run(bins_of, range(len(summary.names))))
    coding = Coding(categories, values if max_bins is None else with_coarse_times(values, dates), dates)
    return coding.with_found({**found, **find_prefixes(summary.counted, summary.by_class)})


def with_coarse_times(values: BinValues, dates: Dates) -> BinValues:
    """Return the bins with those of each date part "time" joined, about evenly, to at most `TIME_BINS` bins."""
    bins = values.by_feature()
    for feature in times_in(dates):
        _, lower, upper = bins[feature]
        if len(lower) > TIME_BINS:
            starts = np.arange(TIME_BINS + 1) * len(lower) // TIME_BINS
            bins[feature] = BinValues.of([TIME_BINS], lower[starts[:-1]], upper[starts[1:] - 1])
    return join_bins(bins)
