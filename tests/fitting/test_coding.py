"""Codes that are chosen and written from parts of a table are those of the whole table; samples for target rates."""

from itertools import pairwise

import numpy as np
import pytest

from aucforest.columns.target_rates import RateTable
from aucforest.distributed import fit_out_of_core
from aucforest.fitting import on_disk, target_rates
from aucforest.fitting.target_rates import CellFinder, CodedRows, Digits, RateWeights, sampled_rows
from aucforest.tree import binning
from aucforest.tree.binning import BinValues
from tests.estimators.data import assert_same_fit
from tests.fitting.tables import RATED, features_and_labels, interactions_of, make_forest, make_many, make_rows


@pytest.mark.parametrize("size", [50, 200_000], ids=["sampled", "all"])
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("max_bins", [20, None])
def test_codes_are_those_of_a_fit_in_memory(monkeypatch, size, max_bins, weight):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", size)
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 3500)
    table, forests = make_rows(1000), [make_forest(max_bins=max_bins) for _ in range(2)]
    table = table.append_column("zeros", [np.where(np.arange(1000) % 2 == 0, 0.0, -0.0) * (np.arange(1000) > 500)])
    X, y = features_and_labels(table)
    forests[0].fit(X, y, None if weight is None else table[weight].to_numpy())
    drop = ["weight"] if weight is None else []
    assert_same_fit(fit_out_of_core(forests[1], table, "label", sample_weight=weight, drop=drop), forests[0])


N_CODED, N_CATEGORIES = 5000, 1000
RNG = np.random.default_rng(0)
CATEGORIES = RNG.integers(0, N_CATEGORIES, N_CODED).astype(float)
CATEGORIES[RNG.random(N_CODED) < 0.1] = np.nan
DIGITS = Digits(1, {0: N_CATEGORIES})
CODES = np.concatenate((np.zeros((1, N_CODED), dtype=np.uint8), DIGITS.encode([CATEGORIES], np.uint8)))


@pytest.mark.parametrize("most", [400, 10_000])
def test_rows_are_chosen_by_whole_categories_wherever_they_are(monkeypatch, most):
    monkeypatch.setattr(target_rates, "_SAMPLE_ROWS", most)
    rows = CodedRows(CODES, np.zeros(N_CODED, dtype=np.uint16))
    whole = sampled_rows(rows, DIGITS, 0, N_CODED)
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 333)
    slices = [slice(*pair) for pair in pairwise([0, 1, 700, 700, N_CODED])]
    parts = [each.start + sampled_rows(rows.take(each), DIGITS, 0, N_CODED, each.start) for each in slices]
    assert np.array_equal(np.concatenate(parts), whole)
    if most < N_CODED:
        assert 0.5 * most < len(whole) < 2 * most
        rare, found = CATEGORIES[whole][CATEGORIES[whole] >= 254], whole[CATEGORIES[whole] >= 254]
        assert np.array_equal(found, np.flatnonzero(np.isin(CATEGORIES, rare)))
        # rows of frequent categories are sampled one by one
        frequent, counts = np.unique(CATEGORIES[whole][CATEGORIES[whole] < 254], return_counts=True)
        assert np.any(counts < [np.count_nonzero(category == CATEGORIES) for category in frequent])


def test_totals_are_sums_of_weights(monkeypatch):
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 333)
    labels, weight = RNG.integers(0, 3, N_CODED).astype(np.uint16), RNG.choice([0.5, 1.0, 2.25], N_CODED)
    finder = CellFinder(DIGITS, BinValues(np.array([0, 1]), np.zeros(1), np.zeros(1)), np.array([True]))
    table = RateTable(0, -1, np.empty(0), 1, 1.0, np.empty((0, 3), dtype=np.int64))
    weights, expected = RateWeights.of(weight, None, 3), np.zeros((N_CATEGORIES, 3))
    known = np.isfinite(CATEGORIES)
    np.add.at(expected, (CATEGORIES[known].astype(int), labels[known]), weight[known] / weight.mean())
    totals = finder.count(table, CodedRows(CODES, labels, weights.integers(weight)), 3)
    np.testing.assert_allclose(totals * weights.factors, expected, rtol=1e-9)


@pytest.mark.parametrize("feature", [3, 4])
def test_categories_do_not_interact_with_their_own_column(feature):
    """The features 3 and 4 have the values of the column 1, and ranges of them, as categories."""
    values = BinValues.of([4, 4, 4, 2, 2], *np.tile(np.arange(16.0), (2, 1)))
    finder = CellFinder(Digits(5, {3: 60, 4: 60}, {3: 1, 4: 1}), values, np.repeat([False, True], [3, 2]))
    codes = np.tile(np.arange(4, dtype=np.uint8), 9)
    assert [tables[0].other for _, tables in finder.candidates(feature, lambda other: codes)] == [0, 2]


def test_heavy_rows_do_not_choose_interactions_with_noise():
    """If a heavy row was left out as one sample, a part of its weight would stay in its cell, with its label."""
    X, y = features_and_labels(make_many(), ["customer"])
    forest = make_forest(**RATED).fit(X, y, np.random.default_rng(1).choice([0.5, 1.0, 2.25, 9.0], len(y)))
    assert interactions_of(forest) == [(0, 1)]
