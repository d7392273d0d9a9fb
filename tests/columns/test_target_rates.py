"""Target rates as features: their names, parts of other features, and rates of new rows."""

import numpy as np

from aucforest.columns.target_rates import RateTable, TargetRates
from aucforest.tree.binning import bin_matrix, encode_matrix


def make_rates(totals):
    totals = np.array(totals)
    frequencies, table = totals.sum(axis=0) / totals.sum(), RateTable(0, -1, np.empty(0), 1, 2.0, totals)
    return TargetRates((table,), np.array([1]), frequencies, np.ones(2))


def test_names():
    pair = make_rates([[1, 1]]).tables[0]._replace(other=1, n_parts=2)
    rates = make_rates([[1, 1]])._replace(tables=(*make_rates([[1, 1]]).tables, pair))
    # The categories may be those of a column of integers.
    names = ["shop: category", "night: category"]
    expected = ["shop: rate", "shop x night: category: rate"]
    assert rates.names(names, {0: "shop", 1: "night"}, np.array([False, True])) == expected
    three = rates._replace(classes=np.array([0, 2]))
    names = three.names(["shop", "night"], {}, np.array(["a", "b", "c"]))
    assert names[:2] == ["shop: rate of a", "shop: rate of c"]
    assert three.columns == [0, 0, 0, 0]


def test_parts_of_codes_are_those_of_values():
    rng = np.random.default_rng(4)
    column = np.round(rng.normal(size=500), 1)
    column[::17] = np.nan
    binned = bin_matrix(column[:, None], max_bins=20)
    edges = np.array([binned.values.lower[7] - 1e-9])
    table = RateTable(1, 0, edges, 2, 1.0, np.empty((0, 2), dtype=np.int64))
    codes = encode_matrix(column[:, None], binned.values).codes[0]
    np.testing.assert_array_equal(table.parts_of_codes(binned.values)[codes], table.parts_of(column))
    parts, counts = np.unique(table.parts_of(column), return_counts=True)
    assert parts.tolist() == [-1, 0, 1]
    assert counts.min() > 10


def test_rates_of_new_rows():
    rates = make_rates([[6, 2], [1, 3]])
    pair = rates.tables[0]._replace(other=1, n_parts=2, edges=np.array([0.5]), smoothing=1.0)
    pair = pair._replace(totals=np.array([[4, 0], [2, 2], [1, 1], [0, 2]]))
    rates, p = rates._replace(tables=(*rates.tables, pair)), 5 / 12
    first, second = (2 + 2 * p) / 10, (3 + 2 * p) / 6
    X = np.array([[0, 0.5], [0, 0.6], [1, np.inf], [1, np.nan], [np.nan, 0.0]])
    expected = [[first, first / 5], [first, (2 + first) / 5], [second, (2 + second) / 3], [second, second], [p, p]]
    np.testing.assert_allclose(rates.compute(X), expected, rtol=1e-12)


def test_rates_with_the_rates_of_first_characters_as_priors():
    rates = make_rates([[6, 2], [1, 3]])
    table = rates.tables[0]._replace(prior=1)
    prefix = table._replace(feature=1, smoothing=1.0, totals=np.array([[7, 5]]), prior=-1)
    pair = table._replace(other=2, n_parts=1, totals=np.array([[3, 1], [0, 0]]), prior=-1)
    r, p = (5 + 5 / 12) / 13, 5 / 12
    first, second = (2 + 2 * r) / 10, (3 + 2 * r) / 6
    X = np.array([[0, 0, 0], [1, 0, 0], [np.nan, 0, 0], [np.nan, np.nan, 0]])
    found = rates._replace(tables=(table, pair, prefix)).compute(X)
    expected = [[first, (1 + 2 * first) / 6, r], [second, second, r], [r, r, r], [p, p, p]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_parts_of_categories_beyond_those_that_sets_tell_apart():
    table = RateTable(0, 1, np.empty(0), 255, 1.0, np.empty((0, 2), dtype=np.int64))
    assert table.parts_of(np.array([0.0, 253.0, 254.0, 4000.0, np.nan])).tolist() == [0, 253, 254, 254, -1]
