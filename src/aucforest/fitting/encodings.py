"""The features that a tree grows on: sets of categories, or rates of the target among the samples of the tree."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE
from aucforest.tables.target_rates import INTERACTIONS, SETS, TargetRates
from aucforest.tree.ordered_rates import RateRule, encode_rates, sample_order, shuffle, sort_by_category

# The index of the random numbers for interactions, beyond those for the order of samples.
_FIRST_OF_INTERACTIONS = 2**32


class TreeSample(NamedTuple):
    """The sample of a tree with the codes of the features that it grows on."""

    growth: Growth
    part: Part
    features: NDArray[np.int64]  # their numbers among all features


def encode_sample(growth: Growth, part: Part, key: int) -> TreeSample:
    """Return the sample of a tree with its own rates of the target."""
    rates, digits = growth.rates, growth.digits
    assert rates is not None
    assert digits is not None
    base = np.arange(digits.first)
    if growth.encoding == SETS:
        return TreeSample(growth.of_features(base), part._replace(codes=part.codes[: digits.first]), base)
    base = np.setdiff1d(base, list(digits.n_categories))
    tables = _tables_of_tree(rates, growth.encoding, key)
    made = [digits.first + np.arange(rates.n_features)[rates.indices(number)] for number in tables]
    features = np.concatenate((base, *made))
    codes = np.empty((len(features), part.n_rows), dtype=part.codes.dtype)
    np.take(part.codes, base, axis=0, out=codes[: len(base)], mode="clip")  # any other mode copies once more
    _write_rates(growth, part, key, tables, codes[len(base) :])
    return TreeSample(growth.of_features(features), part._replace(codes=codes), features)


def _tables_of_tree(rates: TargetRates, encoding: str, key: int) -> list[int]:
    """Return the numbers of the tables whose rates a tree sees, in order."""
    alone = [i for i, table in enumerate(rates.tables) if not table.is_interaction]
    if encoding != INTERACTIONS:
        return alone
    others = np.array([i for i, table in enumerate(rates.tables) if table.is_interaction], dtype=np.int32)
    shuffle(np.uint64(key), _FIRST_OF_INTERACTIONS, others)
    return sorted(alone + others[:INTERACTIONS_OF_TREE].tolist())


def _write_rates(growth: Growth, part: Part, key: int, tables: list[int], codes: NDArray[np.unsignedinteger]) -> None:
    """Write the codes of the rates of some tables, each sample having those of earlier ones in a random order."""
    rates, digits = growth.rates, growth.digits
    assert rates is not None
    assert digits is not None
    groups = None if part.groups is None else np.unique(part.groups, return_inverse=True)[1].astype(np.int64)
    order, first = sample_order(key, part.n_rows, groups), 0
    by_feature: dict[int, list[int]] = {feature: [] for feature in digits.n_categories}
    for number in tables:
        by_feature[rates.tables[number].feature].append(number)
    for feature, n_categories in digits.n_categories.items():
        rule = _rule_of(growth, by_feature[feature])
        by_category = sort_by_category(digits.decode(part.codes, feature), n_categories, order, part.labels)
        encoded = codes[first : first + rule.n_features]
        encode_rates(rule, by_category, part.codes, groups, part.rate_weights, encoded)
        first += rule.n_features


def _rule_of(growth: Growth, tables: list[int]) -> RateRule:
    """Return how the rates of some tables of one column are computed; the first is that of the column alone."""
    rates, digits = growth.rates, growth.digits
    assert rates is not None
    assert digits is not None
    some = [rates.tables[number] for number in tables]
    parts = np.zeros((len(some), growth.most_bins + 1), dtype=np.int64)
    for index, table in enumerate(some[1:], 1):
        of_codes = table.parts_of_codes(growth.values)
        parts[index, : len(of_codes)] = of_codes
    made = [digits.first + np.arange(rates.n_features)[rates.indices(number)] for number in tables]
    edges = [growth.edges_of(feature) for feature in np.concatenate(made).tolist()]
    return RateRule(
        classes=rates.classes,
        prior=rates.frequencies[rates.classes],
        smoothing=np.array([table.smoothing for table in some]),
        others=np.array([max(table.other, 0) for table in some]),
        parts=parts,
        edges=np.concatenate(edges),
        first_edge=np.cumsum([0, *map(len, edges)]),
    )
