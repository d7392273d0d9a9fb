"""The features that a tree grows on: sets of categories, or target rates (target encoding) in the tree's sample."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE, Digits
from aucforest.tables.target_rates import INTERACTIONS, SETS, TargetRates
from aucforest.tree.ordered_rates import RateRule, SampleData, encode_rates, sample_order, shuffle, sort_by_category

# The first index of the random numbers for interactions. Smaller indices are for the order of samples.
_FIRST_OF_INTERACTIONS = 2**32


class TreeSample(NamedTuple):
    """The sample of a tree with the codes of the features that it grows on."""

    growth: Growth
    part: Part
    features: NDArray[np.int64]  # the indices of these features among all features


def encode_sample(growth: Growth, part: Part, key: int) -> TreeSample:
    """Return the sample of a tree with the codes of its features; target rates are computed from this sample."""
    rates, digits = _rates_and_digits(growth)
    base = np.arange(digits.first)
    if growth.encoding == SETS:
        return TreeSample(growth.of_features(base), part._replace(codes=part.codes[: digits.first]), base)
    base = np.setdiff1d(base, list(digits.n_categories))
    tables = _tables_of_tree(rates, growth.encoding, key)
    features = np.concatenate((base, _features_of(growth, tables)))
    codes = np.empty((len(features), part.n_rows), dtype=part.codes.dtype)
    np.take(part.codes, base, axis=0, out=codes[: len(base)], mode="clip")  # any other mode copies once more
    _write_rates(growth, part, key, tables, codes[len(base) :])
    return TreeSample(growth.of_features(features), part._replace(codes=codes), features)


def _rates_and_digits(growth: Growth) -> tuple[TargetRates, Digits]:
    assert growth.rates is not None
    assert growth.digits is not None
    return growth.rates, growth.digits


def _features_of(growth: Growth, tables: list[int]) -> NDArray[np.int64]:
    """Return the indices of the features that are the rates of tables."""
    rates, digits = _rates_and_digits(growth)
    return digits.first + np.concatenate([np.arange(rates.n_features)[rates.indices(number)] for number in tables])


def _tables_of_tree(rates: TargetRates, encoding: str, key: int) -> list[int]:
    """Return the indices of the tables whose rates a tree grows on, in ascending order."""
    alone = [i for i, table in enumerate(rates.tables) if not table.is_interaction]
    if encoding != INTERACTIONS:
        return alone
    others = np.array([i for i, table in enumerate(rates.tables) if table.is_interaction], dtype=np.int32)
    shuffle(np.uint64(key), _FIRST_OF_INTERACTIONS, others)
    return sorted(alone + others[:INTERACTIONS_OF_TREE].tolist())


def _write_rates(growth: Growth, part: Part, key: int, tables: list[int], codes: NDArray[np.unsignedinteger]) -> None:
    """Write the codes of the rates of tables; a sample's rates are computed from earlier samples in random order."""
    rates, digits = _rates_and_digits(growth)
    groups = None if part.groups is None else np.unique(part.groups, return_inverse=True)[1].astype(np.int64)
    data = SampleData.of(part.codes, groups, part.rate_weights)
    order, first = sample_order(key, part.n_rows, groups), 0
    for feature, n_categories in digits.n_categories.items():
        rule = _rule_of(growth, [number for number in tables if rates.tables[number].feature == feature])
        by_category = sort_by_category(digits.decode(part.codes, feature), n_categories, order, part.labels)
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
    edges = [growth.edges_of(feature) for feature in _features_of(growth, numbers).tolist()]
    return RateRule(
        classes=rates.classes,
        prior=rates.frequencies[rates.classes],
        smoothing=np.array([table.smoothing for table in tables]),
        others=np.array([max(table.other, 0) for table in tables]),
        parts=parts,
        edges=np.concatenate(edges),
        first_edge=np.cumsum([0, *map(len, edges)]),
    )
