"""The features that a tree grows on: codes of categories, or target rates (target encoding) in the tree's sample."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.target_rates import INTERACTIONS, SETS, TargetRates
from aucforest.fitting.parts import Growth, TreeRows
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE, Digits
from aucforest.tree.binning import BinValues
from aucforest.tree.ordered_rates import (
    CategorySamples,
    RateRule,
    SampleData,
    encode_rates,
    ordered_rates,
    sample_order,
    shuffle,
    sort_by_category,
)

# The first index of the random numbers for interactions. Smaller indices are for the order of samples.
_FIRST_OF_INTERACTIONS = 2**32
# The maximum bytes of cached bins of features. Estimates of memory do not include them.
_MOST_CACHED = 2**22


class TreeFeatures(NamedTuple):
    """The features of trees that grow on the rates of the same tables."""

    indices: NDArray[np.int64]  # their indices among all features; rates are last
    values: BinValues  # their bins
    rules: dict[int, RateRule]  # how the rates of a column are computed, by the index of the column
    # For a column whose rates have the rates of another column as priors: that column, and how these are computed.
    priors: dict[int, tuple[int, RateRule]]


def encode_samples(growth: Growth, rows: TreeRows, keys: Sequence[int]) -> tuple[Growth, TreeRows, NDArray[np.int64]]:
    """Encode the rows of trees as the features that the trees grow on, with the target rates of each tree's sample.

    All trees have the same features, and each tree has separate rows. Returns the parameters and rows of the trees with
    only these features, and the indices of these features among all features.
    """
    part = rows.part
    features = _find_features(growth, tables_of_tree(growth, keys[0]))
    indices, values, rules, _ = features
    tree_growth = growth.with_features(indices, values)
    if not rules:
        return tree_growth, rows._replace(part=part._replace(codes=part.codes[: len(indices)])), indices
    n_base = len(indices) - sum(rule.n_features for rule in rules.values())
    codes = np.empty((len(indices), part.n_rows), dtype=part.codes.dtype)
    np.take(part.codes, indices[:n_base], axis=0, out=codes[:n_base], mode="clip")  # mode="raise" would copy twice
    _write_rates(growth, rows, keys, features, codes[n_base:])
    return tree_growth, rows._replace(part=part._replace(codes=codes)), indices


def _find_features(growth: Growth, tables: tuple[int, ...]) -> TreeFeatures:
    """Return the features of a tree that grows on the rates of `tables`, given by their indices.

    The features are cached, because computing them takes longer than growing a tree on 100 rows.
    """
    cached = growth.tree_features
    if tables in cached:
        return cached[tables]
    rates, digits = _rates_and_digits(growth)
    indices, rules, priors = np.arange(digits.first), dict[int, RateRule](), dict[int, tuple[int, RateRule]]()
    if growth.encoding != SETS:
        for column in digits.n_categories:
            if numbers := [number for number in tables if rates.tables[number].feature == column]:
                rules[column] = _rule_of(growth, numbers)
                if (prior := rates.prior_table(numbers[0])) >= 0:
                    priors[column] = rates.tables[prior].feature, _rule_of(growth, [prior])
        rated = [*digits.n_categories, *digits.found.values()]
        indices = np.concatenate((np.setdiff1d(indices, rated), _features_of_tables(growth, tables)))
    features = TreeFeatures(indices, growth.bins_of(indices), rules, priors)
    if (len(cached) + 1) * 2 * features.values.lower.nbytes <= _MOST_CACHED:
        cached[tables] = features
    return features


def _rates_and_digits(growth: Growth) -> tuple[TargetRates, Digits]:
    assert growth.rates is not None
    assert growth.digits is not None
    return growth.rates, growth.digits


def _features_of_tables(growth: Growth, tables: Sequence[int]) -> NDArray[np.int64]:
    rates, digits = _rates_and_digits(growth)
    return digits.first + np.concatenate([np.arange(rates.n_features)[rates.indices(number)] for number in tables])


def tables_of_tree(growth: Growth, key: int) -> tuple[int, ...]:
    """Return the indices of the tables whose rates a tree grows on, in ascending order.

    Rates that are the priors of another column are left out, but for the priors of interactions.
    """
    rates, _ = _rates_and_digits(growth)
    left_out = {table.prior for table in rates.tables}
    if growth.encoding == INTERACTIONS:
        left_out -= {table.feature for table in rates.tables if table.is_interaction}
    column_tables = [i for i, t in enumerate(rates.tables) if not t.is_interaction and t.feature not in left_out]
    if growth.encoding != INTERACTIONS:
        return () if growth.encoding == SETS else tuple(column_tables)
    interactions = np.array([i for i, table in enumerate(rates.tables) if table.is_interaction], dtype=np.int32)
    shuffle(np.uint64(key), _FIRST_OF_INTERACTIONS, interactions)
    return tuple(sorted(column_tables + interactions[:INTERACTIONS_OF_TREE].tolist()))


def _write_rates(
    growth: Growth,
    rows: TreeRows,
    keys: Sequence[int],
    features: TreeFeatures,
    codes: NDArray[np.unsignedinteger],
) -> None:
    """Write the codes of rates. The samples of a tree get a random order; rates are computed from preceding samples."""
    _, digits = _rates_and_digits(growth)
    part, slices, first = rows.part, rows.slices, 0
    groups = None if part.groups is None else part.groups.astype(np.int64)
    data = SampleData.of(part.codes, groups, part.rate_weights)
    order = np.concatenate([_order_of_tree(key, tree_rows, groups) for key, tree_rows in zip(keys, slices)])

    def by_category(column: int) -> CategorySamples:
        categories, n_categories = digits.decode(part.codes, column), digits.n_categories[column]
        # Category indices are made different for each tree, so that no rate counts samples of another tree.
        for tree, tree_rows in enumerate(slices[1:], 1):
            indices = categories[tree_rows]  # a view, which is changed
            np.add(indices, tree * n_categories, out=indices, where=indices >= 0)
        return sort_by_category(categories, n_categories * len(keys), order, part.labels)

    for column, rule in features.rules.items():
        column_data = data
        if column in features.priors:
            prior_column, prior_rule = features.priors[column]
            column_data = data._replace(priors=ordered_rates(prior_rule, data, by_category(prior_column)))
        encode_rates(rule, column_data, by_category(column), codes[first : first + rule.n_features])
        first += rule.n_features


def _order_of_tree(key: int, tree_rows: slice, groups: NDArray[np.int64] | None) -> NDArray[np.int32]:
    """Return a random order of the rows of a tree, in which the rows of a group are consecutive."""
    group_indices = None if groups is None else np.unique(groups[tree_rows], return_inverse=True)[1]
    return sample_order(key, tree_rows.stop - tree_rows.start, group_indices) + np.int32(tree_rows.start)


def _rule_of(growth: Growth, numbers: list[int]) -> RateRule:
    """Return the rule for the rates of the tables of a column; the first table is that of the column alone."""
    rates, _ = _rates_and_digits(growth)
    tables = [rates.tables[number] for number in numbers]
    parts = np.zeros((len(tables), growth.most_bins + 1), dtype=np.int64)
    for index, table in enumerate(tables[1:], 1):
        code_parts = table.parts_of_codes(growth.values)
        parts[index, : len(code_parts)] = code_parts
    edges = [growth.edges_of(feature) for feature in _features_of_tables(growth, numbers).tolist()]
    prior = rates.frequencies[rates.classes]
    prior_codes = [np.searchsorted(rate_edges, prior[i % len(prior)]) for i, rate_edges in enumerate(edges)]
    return RateRule(
        classes=rates.classes,
        prior=prior,
        smoothing=np.array([table.smoothing for table in tables]),
        code_rows=np.array([max(table.other, 0) for table in tables]),
        parts=parts,
        edges=np.concatenate(edges),
        first_edge=np.cumsum([0, *map(len, edges)]),
        prior_codes=np.array(prior_codes)[:, None],
    )
