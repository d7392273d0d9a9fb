"""The choice of target rates, their totals and those of training rows, against their definitions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aucforest import AUCForestClassifier
from aucforest.columns.target_rates import ENCODINGS, RateTable, TargetRates
from aucforest.fitting import target_rates
from aucforest.fitting.target_rates import (
    SMOOTHING,
    Digits,
    LeftOutTotalsFinder,
    RateWeights,
    choose_rate_bins,
    choose_smoothing,
    find_rated,
    interaction_gain,
    possible_encodings,
)
from tests.reference import target_rates as reference


def make_rates(totals, smoothing=2.0):
    """Return the rates of one column of two classes."""
    totals = np.array(totals)
    frequencies = totals.sum(axis=0) / totals.sum()
    table = RateTable(0, -1, np.empty(0), 1, smoothing, totals)
    return TargetRates((table,), np.array([1]), frequencies, np.ones(2))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [None, 9])
def test_rates_of_training_rows_leave_them_out(weighted, n_groups):
    rng, n, n_categories = np.random.default_rng(0), 80, 6
    categories, labels = rng.integers(-1, n_categories, n), rng.integers(0, 2, n).astype(np.uint16)
    sample_weight = rng.integers(0, 4, n).astype(float) if weighted else np.ones(n)
    rows = np.flatnonzero(sample_weight)
    kept, weight = (rows, sample_weight[rows]) if weighted else (None, None)
    weights = RateWeights.of(weight, None, 2)
    given = weights.integers(weight)
    integers = np.ones(len(rows), dtype=np.int64) if given is None else given
    groups = None if n_groups is None else rng.integers(0, n_groups, len(rows)).astype(np.int32)
    known, totals = categories[rows] >= 0, np.zeros((n_categories, 2), dtype=np.int64)
    np.add.at(totals, (categories[rows][known], labels[rows][known]), integers[known])
    rates = make_rates(totals)._replace(factors=weights.factors)
    left_out = LeftOutTotalsFinder(labels, kept, given, 2, groups, lambda number: categories[rows])
    X = np.where(categories < 0, np.nan, categories)[:, None].astype(float)
    relative = sample_weight[rows] / sample_weight[rows].mean()
    priors = np.full((len(rows), 1), rates.frequencies[1])
    known_groups = np.arange(len(rows)) if groups is None else groups
    expected = reference.rates_without_own(known_groups, categories[rows], labels[rows], relative, [1], 2.0, priors)
    np.testing.assert_allclose(rates.compute(X[rows], left_out(rows)), expected, rtol=1e-12)
    some = rows[::3]
    np.testing.assert_allclose(rates.compute(X[some], left_out(some)), expected[::3], rtol=1e-12)


def test_smoothing_is_chosen_by_leave_one_out():
    labels = [[0, 0, 1], [1], [0, 1, 1, 1], [0, 0]]
    priors = np.array([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5], [0.8, 0.2]])
    totals = np.array([[cell.count(k) for k in (0, 1)] for cell in labels], dtype=float)
    expected = {smoothing: reference.leave_one_out(labels, priors, smoothing) for smoothing in SMOOTHING.tolist()}
    smoothing, likelihood = choose_smoothing(totals, priors)
    assert smoothing == max(expected, key=expected.get)
    assert likelihood == pytest.approx(expected[smoothing], rel=1e-12)


def make_totals(effect, seed, n_categories=200, n_samples=20):
    """Return the totals of categories in two parts, and the class frequencies; `effect` is that on the labels."""
    rng = np.random.default_rng(seed)
    category, part = np.repeat(np.arange(n_categories), n_samples), rng.integers(0, 2, n_categories * n_samples)
    effects = rng.normal(size=n_categories)[category]
    logit = {"flips": effects * (2 * part - 1), "adds": effects + part, "alone": effects - 0.8, "none": 0.0}[effect]
    label, totals = (rng.logistic(size=len(category)) < logit).astype(int), np.zeros((n_categories, 2, 2))
    np.add.at(totals, (category, part, label), 1.0)
    return totals, np.bincount(label) / len(label)


@pytest.mark.parametrize("effect", ["flips", "adds", "none"])
def test_only_interactions_gain(effect):
    gains = []
    for seed in range(8):
        totals, frequencies = make_totals(effect, seed)
        gains.append(interaction_gain(totals, frequencies, 4.0 * frequencies)[1])
    assert min(gains) > 50.0 if effect == "flips" else max(gains) < 10.0


def test_no_interaction_is_found_in_a_sample_with_other_class_frequencies():
    totals, _ = make_totals("alone", 1, n_categories=300, n_samples=200)
    assert interaction_gain(totals, np.array([0.9, 0.1]), np.array([7.2, 0.8]))[1] < 10.0


def test_digits_are_read_back():
    digits = Digits(5, {1: 70_000, 3: 200})
    columns = np.array([[0, 69_999, np.nan, 256], [199, np.nan, 0, 255 - 100]])
    codes = np.concatenate((np.zeros((5, 4), dtype=np.uint8), digits.encode(columns, np.uint8)))
    assert digits.n_digits == 4
    assert digits.decode(codes, 1).tolist() == [0, 69_999, -1, 256]
    assert digits.decode(codes, 3).tolist() == [199, -1, 0, 155]
    # an index that is too large is missing, so that kernels read no cell that does not exist
    assert replace(digits, n_categories={1: 256}).decode(codes, 1).tolist() == [0, -1, -1, -1]
    # one digit is enough for 255 categories and missing values
    assert [Digits(0, {0: n}).n_digits for n in (255, 256, 65_535, 65_536)] == [1, 2, 2, 3]


def test_bins_separate_rates():
    bins = choose_rate_bins(make_rates([[9, 1], [5, 5], [1, 9], [1, 0], [0, 1], [0, 0]]), {})
    (n_bins,) = bins[0].n_bins
    assert n_bins > 5
    assert np.all(np.diff(bins[0].lower) > 0)
    assert 0.0 <= bins[0].lower[0] <= bins[0].upper[-1] <= 1.0


def test_columns_with_rates():
    categories = {4: np.arange(1000), 0: np.arange(50), 2: np.arange(51)}
    assert find_rated(categories, ENCODINGS) == [2, 4]
    assert find_rated(categories, ("rates",)) == [2, 4]
    assert find_rated(categories, ("sets",)) == []
    rates = make_rates([[1, 1]])
    assert possible_encodings(ENCODINGS, None) == ("sets",)
    assert possible_encodings(ENCODINGS, rates) == ("sets", "rates")
    assert possible_encodings(("interactions",), rates) == ("rates",)
    pair = rates.tables[0]._replace(other=1, n_parts=2)
    assert possible_encodings(ENCODINGS, rates._replace(tables=(*rates.tables, pair))) == ENCODINGS


def test_interactions_that_fit_into_the_memory_for_cells(monkeypatch):
    """Both numbers have effects that differ between 16 parts. If so many do not fit, an interaction has fewer parts."""
    random = np.random.default_rng(0)
    shop, day, hour = random.integers(0, 60, 12_000), *random.random((2, 12_000))
    effects = 3.0 * random.normal(size=(2, 60, 16))
    logit = effects[0, shop, (16 * day).astype(int)] + effects[1, shop, (16 * hour).astype(int)]
    X = pd.DataFrame({"day": day, "hour": hour, "shop": pd.Categorical(shop)})
    y = random.logistic(size=12_000) < logit

    def parts():
        forest = AUCForestClassifier(5, categorical_encoding="interactions", random_state=0).fit(X, y)
        return {table.other: table.n_parts for table in forest.target_rates_.tables if table.is_interaction}

    assert parts() == {0: 16, 1: 16}
    monkeypatch.setattr(target_rates, "MOST_CELLS", 60 * 20)
    assert sorted(parts().values()) == [4, 16]


def test_interactions_of_additive_models_are_those_of_the_forest_and_weaker_ones(monkeypatch):
    """An effect of "strong" differs between 60 shops by more than one of "weak", and "none" has no effect."""
    random = np.random.default_rng(3)
    shop, values = random.integers(0, 60, 6000), random.integers(0, 2, (3, 6000))
    effects = np.array([[1.0], [0.25], [0.0]]) * random.normal(size=(3, 60))
    logit = np.sum(effects[:, shop] * (2 * values - 1), axis=0)
    X = pd.DataFrame(dict(zip(("strong", "weak", "none"), values))).assign(shop=pd.Categorical(shop))
    y = random.logistic(size=6000) < logit

    def find():
        forest = AUCForestClassifier(5, random_state=0)
        with forest._fitting():
            table = forest._validate_rows(X, y, None, None)
            forest._fit_rows(table, forest._start())
        of_forest = [one.other for one in forest.target_rates_.tables if one.is_interaction]
        return of_forest, [one.other for one in table.additive_interactions]

    monkeypatch.setattr(target_rates, "_LEAST_GAIN", 30.0)
    assert find() == ([0], [0, 1])
    monkeypatch.setattr(target_rates, "_MOST_ADDITIVE", 1)
    assert find() == ([0], [0])
