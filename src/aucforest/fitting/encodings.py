"""The features that a tree grows on: sets of categories, or target rates (target encoding) in the tree's sample."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE, Digits
from aucforest.tables.target_rates import INTERACTIONS, SETS, TargetRates
from aucforest.tree.binning import BinValues
from aucforest.tree.ordered_rates import RateRule, SampleData, encode_rates, sample_order, shuffle, sort_by_category

# The first index of the random numbers for interactions. Smaller indices are for the order of samples.
_FIRST_OF_INTERACTIONS = 2**32
# The maximum bytes of the bins of features that are kept for other trees, which plans do not count.
_MOST_KEPT = 2**22


class TreeFeatures(NamedTuple):
    """The features of trees that grow on the same tables of rates."""

    indices: NDArray[np.int64]  # of these features among all features; rates are last
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


class TreeSample(NamedTuple):
    """The sample of a tree with the codes of the features that it grows on."""

    growth: Growth
    part: Part
    features: NDArray[np.int64]  # the indices of these features among all features


def encode_sample(growth: Growth, part: Part, key: int) -> TreeSample:
    """Return the sample of a tree with the codes of its features; target rates are computed from this sample."""
    indices, values, rules = _find_features(growth, _tables_of_tree(growth, key))
    tree_growth = growth.with_features(indices, values)
    if not rules:
        return TreeSample(tree_growth, part._replace(codes=part.codes[: len(indices)]), indices)
    n_base = len(indices) - sum(rule.n_features for rule in rules.values())
    codes = np.empty((len(indices), part.n_rows), dtype=part.codes.dtype)
    np.take(part.codes, indices[:n_base], axis=0, out=codes[:n_base], mode="clip")  # other modes copy once more
    _write_rates(growth, part, key, rules, codes[n_base:])
    return TreeSample(tree_growth, part._replace(codes=codes), indices)


def _find_features(growth: Growth, tables: tuple[int, ...]) -> TreeFeatures:
    """Return the features of a tree; they are kept for other trees, as they take as long as some hundred samples."""
    known = growth.tree_features
    if tables in known:
        return known[tables]
    features = TreeFeatures.of(growth, tables)
    if (len(known) + 1) * 2 * features.values.lower.nbytes <= _MOST_KEPT:
        known[tables] = features
    return features


def _rates_and_digits(growth: Growth) -> tuple[TargetRates, Digits]:
    assert growth.rates is not None
    assert growth.digits is not None
    return growth.rates, growth.digits


def _rates_of(growth: Growth, tables: Sequence[int]) -> NDArray[np.int64]:
    """Return the indices of the features that are the rates of tables."""
    rates, digits = _rates_and_digits(growth)
    return digits.first + np.concatenate([np.arange(rates.n_features)[rates.indices(number)] for number in tables])


def _tables_of_tree(growth: Growth, key: int) -> tuple[int, ...]:
    """Return the indices of the tables whose rates a tree grows on, in ascending order."""
    rates, _ = _rates_and_digits(growth)
    alone = [i for i, table in enumerate(rates.tables) if not table.is_interaction]
    if growth.encoding != INTERACTIONS:
        return () if growth.encoding == SETS else tuple(alone)
    others = np.array([i for i, table in enumerate(rates.tables) if table.is_interaction], dtype=np.int32)
    shuffle(np.uint64(key), _FIRST_OF_INTERACTIONS, others)
    return tuple(sorted(alone + others[:INTERACTIONS_OF_TREE].tolist()))


def _write_rates(
    growth: Growth, part: Part, key: int, rules: dict[int, RateRule], codes: NDArray[np.unsignedinteger]
) -> None:
    """Write the codes of rates; the rates of a sample are computed from earlier samples in random order."""
    _, digits = _rates_and_digits(growth)
    groups = None if part.groups is None else np.unique(part.groups, return_inverse=True)[1].astype(np.int64)
    data = SampleData.of(part.codes, groups, part.rate_weights)
    order, first = sample_order(key, part.n_rows, groups), 0
    for column, rule in rules.items():
        categories = digits.decode(part.codes, column)
        by_category = sort_by_category(categories, digits.n_categories[column], order, part.labels)
        encode_rates(rule, data, by_category, codes[first : first + rule.n_features])
        first += rule.n_features


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
    prior_codes = [np.searchsorted(of_feature, prior[i % len(prior)]) for i, of_feature in enumerate(edges)]
    return RateRule(
        classes=rates.classes,
        prior=prior,
        smoothing=np.array([table.smoothing for table in tables]),
        others=np.array([max(table.other, 0) for table in tables]),
        parts=parts,
        edges=np.concatenate(edges),
        first_edge=np.cumsum([0, *map(len, edges)]),
        prior_codes=np.array(prior_codes)[:, None],
    )
