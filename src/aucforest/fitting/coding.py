"""Coding of tables: tables are summarized one at a time, and codes are chosen from the merged summaries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import (
    CodedRows,
    Digits,
    OwnTotalsOf,
    RateRows,
    RateWeights,
    Sample,
    choose_rates,
    find_rated,
    sampled_rows,
    with_totals,
)
from aucforest.tables.columns import (
    Categories,
    Counted,
    Table,
    column_name,
    count_values,
    encode,
    feature_kinds,
    order_categories,
    read_column,
    read_numbers,
)
from aucforest.tables.dates import Dates, expand, times_in
from aucforest.tables.integers import is_rounded
from aucforest.tables.target_rates import INTERACTIONS, TargetRates
from aucforest.tree.binning import (
    MAX_BINS,
    SAMPLE_ROWS,
    Bins,
    BinValues,
    ParallelMap,
    add_distinct,
    bins_of_codes,
    choose_bins,
    encode_matrix,
    join_bins,
    sample_rows,
)
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import exact_weights

# Maximum number of bins of times. With more, trees tell single days apart, and learn events that do not come again.
TIME_BINS = 32


@dataclass(frozen=True)
class Summary:
    """A summary of the values of each feature in some rows."""

    names: list[str]  # of the features, for error messages
    counted: dict[int, Counted]  # the values of each categorical feature
    distinct: dict[int, NDArray[np.float64] | None]  # of each other feature, sorted; None if there are more than bins
    sampled: NDArray[np.float64]  # (n_features, n_sampled), in the order of rows; NaN in categorical features
    rounded: frozenset[int] = frozenset()  # features with integers that float64 rounds


def sample_for_bins(target: Target, max_bins: int | None) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return the rows for bins, rising positions among those of positive weight, and weights if bins depend on them."""
    n_rows, weight = len(target.kept_labels), target.kept_weight
    sample = sample_rows(n_rows, n_rows if max_bins is None else SAMPLE_ROWS)
    return sample, None if weight is None or max_bins is None else exact_weights(weight[sample])


def summarize(
    table: Table,
    rows: NDArray[np.int64] | None,
    sample: NDArray[np.int64],
    categorical: Sequence[int],
    max_bins: int | None,
) -> Summary:
    """Summarize a table of features: rows of positive weight, all if None, and those from which bins are computed."""
    n_features = table.shape[1]
    names, are_categorical = [column_name(table, feature) for feature in range(n_features)], set(categorical)
    counted: dict[int, Counted] = {}
    distinct: dict[int, NDArray[np.float64] | None] = {}
    rounded: set[int] = set()
    sampled = np.full((n_features, len(sample)), np.nan)
    for feature in range(n_features):
        if feature in are_categorical:
            counted[feature] = count_values(read_column(table, feature), rows)
            continue
        numbers = read_numbers(table, feature)
        if is_rounded(numbers):
            rounded.add(feature)
        values = np.asarray(numbers, dtype=np.float64)
        sampled[feature] = values[sample]
        if max_bins is None:
            # Bins are computed from all rows.
            distinct[feature] = None
            continue
        kept = values if rows is None else values[rows]
        distinct[feature] = add_distinct(kept[:, None], 0, np.empty(0), max_bins)
    return Summary(names, counted, distinct, sampled, frozenset(rounded))


def merge_all(summaries: Sequence[Summary], max_bins: int | None) -> Summary:
    """Return the summary of the rows of all summaries, in order."""
    first = summaries[0]
    if len(summaries) == 1:
        return first
    counted = {
        feature: reduce(Counted.merge, (some.counted[feature] for some in summaries)) for feature in first.counted
    }
    distinct: dict[int, NDArray[np.float64] | None] = {}
    for feature in first.distinct:
        values = [summary.distinct[feature] for summary in summaries]
        complete = [distinct_values for distinct_values in values if distinct_values is not None]
        merged = np.unique(np.concatenate(complete)) if len(complete) == len(values) else None
        distinct[feature] = None if merged is None or len(merged) > (max_bins or np.inf) else merged
    sampled = np.concatenate([some.sampled for some in summaries], axis=1)
    rounded = frozenset().union(*(some.rounded for some in summaries))
    return Summary(first.names, counted, distinct, sampled, rounded)


@dataclass(frozen=True)
class Coding:
    """The conversion of tables to codes."""

    categories: Categories  # as in the fitted forest
    values: BinValues
    dates: Dates = field(default_factory=dict)  # as in the fitted forest
    rated: tuple[int, ...] = ()  # the columns that have target rates
    rates: TargetRates | None = None  # as in the fitted forest; None before labels are read

    @property
    def n_bins(self) -> NDArray[np.int64]:
        """Number of bins of each feature, without target rates."""
        return np.diff(self.values.first)

    @cached_property
    def digits(self) -> Digits:
        """Where the digits of categories are in the codes."""
        return Digits.of(len(self.n_bins), self.categories, self.rated)

    @property
    def n_codes(self) -> NDArray[np.int64]:
        """The number of codes of each row of the result of `encode`, without that of missing values."""
        return np.append(self.n_bins, np.full(self.digits.n_rows, MAX_BINS))

    @property
    def rate_rows(self) -> RateRows:
        """What the choice of rates knows of the features."""
        return RateRows(self.digits, self.values, self.kinds != NUMERIC)

    def reading(self, encodings: Sequence[str]) -> "Coding":
        """Return the coding with digits of the categories that the encodings need."""
        return replace(self, rated=tuple(find_rated(self.categories, encodings)))

    @property
    def kinds(self) -> NDArray[np.int8]:
        """Kind of each feature."""
        return feature_kinds(self.categories, len(self.n_bins))

    def read(self, table: Table, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """Return some rows, or all if None, as the input of trees, shape (n_rows, n_features)."""
        matrix = encode(expand(table, self.dates), self.categories)
        return matrix if rows is None else matrix[rows]

    def encode(self, matrix: NDArray[Any]) -> NDArray[np.unsignedinteger]:
        """Return the codes of a result of `read`, shape (n_features + n_digits, n_rows)."""
        return self.with_digits(encode_matrix(matrix, self.values).codes, matrix)

    def with_digits(self, codes: NDArray[np.unsignedinteger], matrix: NDArray[Any]) -> NDArray[np.unsignedinteger]:
        """Return the codes of rows with the digits of their categories."""
        if not self.rated:
            return codes
        return np.concatenate((codes, self.digits.encode(matrix, codes.dtype)))


def choose_coding(
    summary: Summary, sample_weight: NDArray[np.float64] | None, max_bins: int | None, dates: Dates, run: ParallelMap
) -> Coding:
    """Choose codes like a fit in memory, given the summary of all rows and the weights of the sampled ones."""
    categories = {f: order_categories(counted, summary.names[f]) for f, counted in summary.counted.items()}
    weights = np.empty(0) if sample_weight is None else sample_weight

    def bins_of(feature: int) -> Bins:
        if feature in categories:
            return bins_of_codes(min(len(categories[feature]), MAX_BINS))
        columns = summary.sampled[feature : feature + 1].copy()
        most = np.array([max_bins or columns.shape[1]])
        return choose_bins(columns, weights, most, lambda *_: summary.distinct[feature])

    values = join_bins(run(bins_of, range(len(summary.names))))
    return Coding(categories, values if max_bins is None else with_coarse_times(values, dates), dates)


def choose_target_rates(
    coding: Coding, spec: FitSpec, target: Target, weights: RateWeights, codes: NDArray[np.unsignedinteger]
) -> TargetRates:
    """Return the target rates of a fit, given the codes of all rows of positive weight."""
    labels = target.kept_labels
    coded = CodedRows(codes, labels, None)
    samples = (Sample(f, coded, sampled_rows(codes, coding.digits, f, len(labels))) for f in coding.rated)
    rates = rates_without_totals(coding, spec, target, weights, samples)
    coded = coded._replace(weights=weights.integers(target.kept_weight))
    return with_totals(rates, coding.rate_rows.count_all(rates.tables, coded, len(target.classes)))


def rates_without_totals(
    coding: Coding, spec: FitSpec, target: Target, weights: RateWeights, samples: Iterable[Sample]
) -> TargetRates:
    """Return the target rates of a fit, those of a warm start or chosen from samples, before totals are counted."""
    rates, labels = spec.rates, target.kept_labels
    if rates is None:
        interactions = INTERACTIONS in spec.encodings
        rates = choose_rates(coding.rate_rows, samples, labels, weights.by_class, interactions)
    return rates._replace(frequencies=weights.frequencies(labels, target.kept_weight), factors=weights.factors)


def own_totals(
    coding: Coding,
    target: Target,
    integers: NDArray[np.int64] | None,
    rates: TargetRates,
    codes: NDArray[np.unsignedinteger] | None = None,
) -> OwnTotalsOf:
    """Return the totals of the training rows themselves, given their weights as integers; groups need the codes."""

    def cells_of(number: int) -> NDArray[np.int64]:
        assert codes is not None
        return coding.rate_rows.cells(rates.tables[number], codes)

    return OwnTotalsOf(target.labels, target.kept, integers, len(target.classes), target.groups, cells_of)


def with_coarse_times(values: BinValues, dates: Dates) -> BinValues:
    """Return bins of which those of times are joined to at most `TIME_BINS` of about equal numbers of bins."""
    ends = values.first[1:-1]
    bounds = list(zip(np.split(values.lower, ends), np.split(values.upper, ends)))
    for feature in times_in(dates):
        lower, upper = bounds[feature]
        if len(lower) > TIME_BINS:
            starts = np.arange(TIME_BINS + 1) * len(lower) // TIME_BINS
            bounds[feature] = lower[starts[:-1]], upper[starts[1:] - 1]
    return join_bins(Bins(np.array([len(lower)]), lower, upper) for lower, upper in bounds)


def indices_within(rows: NDArray[np.int64], first: int, n_rows: int) -> NDArray[np.int64]:
    """Return the row numbers, in ascending order, that are in [first, first + n_rows), minus first."""
    return rows[slice(*np.searchsorted(rows, (first, first + n_rows)))] - first
