"""The features that a tree grows on: sets of categories, or rates of the target among the samples of the tree."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.target_rates import INTERACTIONS_OF_TREE
from aucforest.tables.target_rates import INTERACTIONS, SETS, TargetRates
from aucforest.tree.binning import BinValues, encode_matrix
from aucforest.tree.ordered_rates import ordered_rates, sample_order, shuffle
from aucforest.tree.random import INTERACTION


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
    made = np.concatenate([np.arange(digits.first, digits.first + rates.n_features)[rates.places(i)] for i in tables])
    features = np.concatenate((base, made))
    own = growth.of_features(features)
    codes = np.concatenate((part.codes[base], _rate_codes(growth, own, part, key, tables)))
    return TreeSample(own, part._replace(codes=codes), features)


def _tables_of_tree(rates: TargetRates, encoding: str, key: int) -> list[int]:
    """Return the numbers of the tables whose rates a tree sees, in order."""
    alone = [i for i, table in enumerate(rates.tables) if not table.is_interaction]
    if encoding != INTERACTIONS:
        return alone
    others = np.array([i for i, table in enumerate(rates.tables) if table.is_interaction])
    shuffle(np.uint64(key), INTERACTION, others)
    return sorted(alone + others[:INTERACTIONS_OF_TREE].tolist())


def _rate_codes(growth: Growth, own: Growth, part: Part, key: int, tables: list[int]) -> NDArray[np.unsignedinteger]:
    """Return the codes of the rates of some tables, each sample having those of earlier ones in a random order."""
    rates, digits = growth.rates, growth.digits
    assert rates is not None
    assert digits is not None
    order = sample_order(key, part.n_rows, part.groups)
    weights = np.empty(0) if part.rate_weights is None else part.rate_weights
    alone = prior = np.repeat(rates.frequencies[rates.classes][:, None], part.n_rows, axis=1)
    made: list[NDArray[np.unsignedinteger]] = []
    for number, values in zip(tables, _bins_of_tables(own, len(tables), len(rates.classes))):
        table = rates.tables[number]
        categories = digits.decode(part.codes, table.feature)
        cells, n_cells, towards = categories, digits.n_categories[table.feature], prior
        if table.is_interaction:
            cells = table.cells(categories, table.parts_of_codes(growth.values)[part.codes[table.other]])
            n_cells, towards = n_cells * table.n_parts, alone
        found = ordered_rates(order, cells, n_cells, part.labels, weights, rates.classes, table.smoothing, towards)
        if not table.is_interaction:
            alone = found  # the next tables are interactions of the same column
        made.append(encode_matrix(found.T, values).codes.astype(part.codes.dtype, copy=False))
    return np.concatenate(made)


def _bins_of_tables(own: Growth, n_tables: int, n_classes: int) -> Iterator[BinValues]:
    """Yield the bins of the features of each table, which are the last ones of a tree."""
    for last in range(n_tables - 1, -1, -1):
        stop = len(own.n_bins) - last * n_classes
        first = own.values.first[stop - n_classes : stop + 1]
        yield BinValues(first - first[0], *(edges[first[0] : first[-1]] for edges in own.values[1:]))
