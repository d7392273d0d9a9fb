"""The features that a tree grows on: sets of categories, or target rates (target encoding) in the tree's sample."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.parts import Growth, TreeRows
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE, Digits
from aucforest.tables.target_rates import INTERACTIONS, SETS, TargetRates
from aucforest.tree.binning import BinValues
from aucforest.tree.ordered_rates import RateRule, SampleData, encode_rates, sample_order, shuffle, sort_by_category

# The first index of the random numbers for interactions. Smaller indices are for the order of samples.
_FIRST_OF_INTERACTIONS = 2**32
# The maximum bytes of cached bins of features. Estimates of memory do not include them.
_MOST_CACHED = 2**22


class TreeFeatures(NamedTuple):
    """The features of trees that grow on the same tables of rates."""

    indices: NDArray[np.int64]  # their indices among all features; rates are last
    values: BinValues  # their bins
    rules: dict[int, RateRule]  # the rule of each column with rates, by the index of the column

    @classmethod
    def of(cls, growth: Growth, tables: tuple[int, ...]) -> Self:
        """Return the features of a tree, given the indices of the tables whose rates it grows on."""
        rates, digits = _rates_and_digits(growth)
        base, rules = np.arange(digits.first), dict[int, RateRule]()
        if growth.encoding == SETS:
            return cls(base, growth.bins_of(base), rules)
        for column in digits.n_categories:
            rules[column] = _rule_of(growth, [number for number in tables if rates.tables[number].feature == column])
        base = np.setdiff1d(base, list(rules))
        indices = np.concatenate((base, _rates_of(growth, tables)))
        return cls(indices, growth.bins_of(indices), rules)


class EncodedRows(NamedTuple):
    """The rows of trees with the codes of the features that they grow on."""

    growth: Growth
    rows: TreeRows
    features: NDArray[np.int64]  # the indices of these features among all features


def encode_samples(growth: Growth, rows: TreeRows, keys: Sequence[int]) -> EncodedRows:
    """Return the rows of trees with the codes of their features; the target rates of a tree are those in its sample.

    The trees have the same features, and each tree has separate rows.
    """
    part = rows.part
    indices, values, rules = _find_features(growth, tables_of_tree(growth, keys[0]))
    tree_growth = growth.with_features(indices, values)
    if not rules:
        return EncodedRows(tree_growth, rows._replace(part=part._replace(codes=part.codes[: len(indices)])), indices)
    n_base = len(indices) - sum(rule.n_features for rule in rules.values())
    codes = np.empty((len(indices), part.n_rows), dtype=part.codes.dtype)
    np.take(part.codes, indices[:n_base], axis=0, out=codes[:n_base], mode="clip")  # other modes copy once more
    _write_rates(growth, rows, keys, rules, codes[n_base:])
    return EncodedRows(tree_growth, rows._replace(part=part._replace(codes=codes)), indices)


def _find_features(growth: Growth, tables: tuple[int, ...]) -> TreeFeatures:
    """Return the features of a tree. They are cached, because they take as much time as growing on 100 rows or more."""
    cached = growth.tree_features
    if tables in cached:
        return cached[tables]
    features = TreeFeatures.of(growth, tables)
    if (len(cached) + 1) * 2 * features.values.lower.nbytes <= _MOST_CACHED:
        cached[tables] = features
    return features


def _rates_and_digits(growth: Growth) -> tuple[TargetRates, Digits]:
    assert growth.rates is not None
    assert growth.digits is not None
    return growth.rates, growth.digits


def _rates_of(growth: Growth, tables: Sequence[int]) -> NDArray[np.int64]:
    """Return the indices of the features that are the rates of tables."""
    rates, digits = _rates_and_digits(growth)
    return digits.first + np.concatenate([np.arange(rates.n_features)[rates.indices(number)] for number in tables])


def tables_of_tree(growth: Growth, key: int) -> tuple[int, ...]:
    """Return the indices of the tables whose rates a tree grows on, in ascending order."""
    rates, _ = _rates_and_digits(growth)
    column_tables = [i for i, table in enumerate(rates.tables) if not table.is_interaction]
    if growth.encoding != INTERACTIONS:
        return () if growth.encoding == SETS else tuple(column_tables)
    interactions = np.array([i for i, table in enumerate(rates.tables) if table.is_interaction], dtype=np.int32)
    shuffle(np.uint64(key), _FIRST_OF_INTERACTIONS, interactions)
    return tuple(sorted(column_tables + interactions[:INTERACTIONS_OF_TREE].tolist()))


def _write_rates(
    growth: Growth,
    rows: TreeRows,
    keys: Sequence[int],
    rules: dict[int, RateRule],
    codes: NDArray[np.unsignedinteger],
) -> None:
    """Write the codes of rates; the rates of a sample are computed from earlier samples of its tree in random order."""
    _, digits = _rates_and_digits(growth)
    part, slices, first = rows.part, rows.slices, 0
    groups = None if part.groups is None else part.groups.astype(np.int64)
    data = SampleData.of(part.codes, groups, part.rate_weights)
    order = np.concatenate([_order_of_tree(key, tree_rows, groups) for key, tree_rows in zip(keys, slices)])
    for column, rule in rules.items():
        categories, n_categories = digits.decode(part.codes, column), digits.n_categories[column]
        # The category indices of trees differ, so that no rate counts samples of another tree.
        for tree, tree_rows in enumerate(slices[1:], 1):
            indices = categories[tree_rows]  # a view, which is changed
            np.add(indices, tree * n_categories, out=indices, where=indices >= 0)
        by_category = sort_by_category(categories, n_categories * len(keys), order, part.labels)
        encode_rates(rule, data, by_category, codes[first : first + rule.n_features])
        first += rule.n_features


def _order_of_tree(key: int, tree_rows: slice, groups: NDArray[np.int64] | None) -> NDArray[np.int32]:
    """Return a random order of the rows of a tree; groups stay together."""
    group_indices = None if groups is None else np.unique(groups[tree_rows], return_inverse=True)[1]
    return sample_order(key, tree_rows.stop - tree_rows.start, group_indices) + np.int32(tree_rows.start)


def _rule_of(growth: Growth, numbers: list[int]) -> RateRule:
    """Return the rule for the rates of the tables of one column; the first table has no interaction."""
    rates, _ = _rates_and_digits(growth)
    tables = [rates.tables[number] for number in numbers]
    parts = np.zeros((len(tables), growth.most_bins + 1), dtype=np.int64)
    for index, table in enumerate(tables[1:], 1):
        code_parts = table.parts_of_codes(growth.values)
        parts[index, : len(code_parts)] = code_parts
    edges = [growth.edges_of(feature) for feature in _rates_of(growth, numbers).tolist()]
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
