"""Fits from parts of tables are, bit for bit, the fits of the whole table."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.fitting import target_rates
from aucforest.fitting.coding import (
    choose_coding,
    choose_target_rates,
    indices_within,
    merge_all,
    own_totals,
    sample_for_bins,
    summarize,
)
from aucforest.fitting.out_of_bag import RatedRows, RunningSums
from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.spec import tree_keys
from aucforest.fitting.table import SomeRows
from aucforest.fitting.target import Target, code_part
from aucforest.fitting.target_rates import CodedRows, Digits, RateRows, RateWeights, find_rated, sampled_rows
from aucforest.tables.columns import as_table, find_categorical
from aucforest.tables.target_rates import RateTable
from aucforest.tree import binning
from aucforest.tree.binning import BinValues
from tests.estimators.data import digest, make_table, small_forest
from tests.fitting.rows import grow_trees
from tests.fitting.tables import RATED, features_and_labels, interactions_of, make_forest, make_many

N_ROWS = 700
X, Y = make_table(n_rows=N_ROWS, missing=0.1)
X3, Y3 = make_table(n_rows=N_ROWS, n_classes=3, seed=1)
RNG = np.random.default_rng(5)
WEIGHT = RNG.choice([0.0, 0.25, 0.7, 1.9], N_ROWS)
X[:, 3] = np.round(X[:, 3])
X3[:, 4] = -0.0
X3[::2, 4] = 0.0


def parts_of(table, y, weight, bounds):
    """Cut rows into parts."""
    for start, stop in pairwise(bounds):
        rows = table.iloc[start:stop] if isinstance(table, pd.DataFrame) else table[start:stop]
        yield rows, y[start:stop], None if weight is None else weight[start:stop]


class RowsInParts:
    """A training table that is held in parts."""

    may_have_rates = True

    def __init__(self, parts, target):
        self.target, self.dates = target, {}
        self.tables = [as_table(rows) for rows, _, _ in parts]
        self.names = None if isinstance(self.tables[0], np.ndarray) else list(self.tables[0].columns)
        self.n_features = self.tables[0].shape[1]
        self.kept = [None if weights is None else np.flatnonzero(weights) for _, _, weights in parts]
        self.counts = [len(labels) if rows is None else len(rows) for (_, labels, _), rows in zip(parts, self.kept)]
        self.firsts = np.cumsum([0, *self.counts]).tolist()

    def code(self, spec):
        categorical, summaries = find_categorical(self.tables[0], spec.categorical_features), []
        sample, sample_weight = sample_for_bins(self.target, spec.max_bins)
        for rows, chosen, first, count in zip(self.tables, self.kept, self.firsts, self.counts):
            some = indices_within(sample, first, count)
            summaries.append(
                summarize(rows, chosen, some if chosen is None else chosen[some], categorical, spec.max_bins)
            )
        coding = choose_coding(merge_all(summaries, spec.max_bins), sample_weight, spec.max_bins, {}, map)
        coding = coding.reading(spec.encodings)
        self.matrices = [coding.read(rows, chosen) for rows, chosen in zip(self.tables, self.kept)]
        kept, scored = self.target.kept, spec.scored
        of_parts = [indices_within(scored, first, count) for first, count in zip(self.firsts, self.counts)]
        values = np.concatenate([matrix[some] for matrix, some in zip(self.matrices, of_parts)])
        self.X = SomeRows(scored if kept is None else kept[scored], values)
        codes = np.concatenate([coding.encode(matrix) for matrix in self.matrices], axis=1)
        self.part = Part(codes, self.target.kept_labels, spec.weights, spec.sampler)
        if coding.rated:
            coding = self.rate(coding, spec, codes)
        self.spec, self.growth = spec, Growth.of(spec, coding, self.part.n_rows, len(self.target.classes))
        return coding

    def rate(self, coding, spec, codes):
        target, weight = self.target, self.target.kept_weight
        weights = RateWeights.of(weight, spec.sampler, len(target.classes))
        rates = choose_target_rates(coding, spec, target, weights, codes)
        own = own_totals(coding, target, weights.integers(weight), rates, codes)
        self.part = self.part._replace(rate_weights=weights.in_samples(weight))
        self.X, self.matrices = RatedRows(self.X, rates, own), [rates.append_to(matrix) for matrix in self.matrices]
        return replace(coding, rates=rates)

    def grow(self, variant_of):
        growth, seed = self.growth.of_trees(self.spec.seed, variant_of), self.spec.seed
        return grow_trees(growth, self.part, tree_keys(seed, variant_of), self.spec.n_jobs)

    def sum_rows(self, bags, packed, ranges, chosen):
        sums = RunningSums(bags.kept, len(ranges), len(self.target.labels), len(self.target.classes), chosen)
        for first, matrix in zip(self.firsts, self.matrices):
            sums.add(first, matrix, bags, packed, ranges)
        return sums.sums


def fit_parts(forest, table, y, weight, bounds):
    """Fit a forest in three looks at parts."""
    parts = list(parts_of(table, np.asarray(y), weight, bounds))
    target, start = Target.of_parts([code_part(labels) for _, labels, _ in parts], weight), forest._start()
    with forest._fitting():
        forest._fit_rows(RowsInParts(parts, target), start)
    return forest


KINDS = np.array(["ash", "elm", "fir", "oak", None], dtype=object)[np.digitize(X[:, 0], [-1, -0.3, 0.3, 1])]
FRAME = pd.DataFrame(X[:, 1:], columns=list("bcde")).assign(
    kind=KINDS, flag=X[:, 0] > 0.2, many=[f"city {i % 300}" for i in range(N_ROWS)], whole=np.arange(N_ROWS) % 7
)
TABLES = {
    "matrix": X,
    "float32": X.astype(np.float32),
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "arrow": pa.Table.from_pandas(FRAME),
}
BOUNDS = {
    "one": [0, N_ROWS],
    "several": [0, 1, 100, 100, 333, N_ROWS],
}


def check_same(forest, whole, table):
    assert digest(forest) == digest(whole)
    for name in ("shrinkage_", "threshold_", "oob_score_", "n_features_in_"):
        assert getattr(forest, name, None) == getattr(whole, name, None)
    for name in ("oob_decision_function_", "class_prior_", "classes_"):
        np.testing.assert_array_equal(getattr(forest, name, None), getattr(whole, name, None))
    assert list(getattr(forest, "feature_names_in_", [])) == list(getattr(whole, "feature_names_in_", []))
    np.testing.assert_array_equal(forest.predict_proba(table), whole.predict_proba(table))
    assert forest.categories_.keys() == whole.categories_.keys()
    for feature, categories in whole.categories_.items():
        assert forest.categories_[feature].tolist() == categories.tolist()


@pytest.fixture(params=[50, 200_000], ids=["sampled", "all"])
def sample_size(request, monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", request.param)
    monkeypatch.setattr(binning.sample_rows, "__defaults__", (request.param,))
    monkeypatch.setattr("aucforest.fitting.coding.SAMPLE_ROWS", request.param)


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_every_kind(kind, bounds, sample_size):
    forest, whole = small_forest(max_bins=20), small_forest(max_bins=20)
    check_same(fit_parts(forest, TABLES[kind], Y, None, bounds), whole.fit(TABLES[kind], Y), TABLES[kind])


OPTIONS = {
    "tuned": {"threshold": "gmean", "oob_score": True},
    "balanced": {"sampling": "balanced", "oob_score": "average_precision"},
    "stratified": {"sampling": "stratified", "max_samples": 0.5},
    "class weights": {"class_weight": "balanced"},
    "subsample weights": {"class_weight": "balanced_subsample"},
    "dict": {"class_weight": {0: 1.0, 1: 7.5}},
    "exact": {"max_bins": None},
    "no bootstrap": {"bootstrap": False},
    "best first": {"max_leaf_nodes": 6},
}


@pytest.mark.filterwarnings("ignore:.* no out-of-bag probability")
@pytest.mark.parametrize("weight", [None, WEIGHT, np.round(WEIGHT) + 1], ids=["", "weights", "whole"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options(options, weight):
    forest, whole = small_forest(10, **options), small_forest(10, **options)
    fit_parts(forest, X, Y, weight, BOUNDS["several"])
    check_same(forest, whole.fit(X, Y, sample_weight=weight), X)


@pytest.mark.parametrize("names", [[3, 5, 9], ["a", "b", "c"], [True, False]], ids=str)
def test_labels(names, sample_size):
    y = np.array(names)[np.minimum(Y3, len(names) - 1)]
    forest = fit_parts(small_forest(), X3, y, WEIGHT, BOUNDS["several"])
    check_same(forest, small_forest().fit(X3, y, sample_weight=WEIGHT), X3)


def test_trees_are_added():
    forest = fit_parts(small_forest(4), X, Y, None, BOUNDS["several"])
    forest.set_params(warm_start=True, n_estimators=9)
    check_same(fit_parts(forest, X, Y, None, BOUNDS["one"]), small_forest(9).fit(X, Y), X)


def test_functions_of_all_rows_are_refused():
    with pytest.raises(ValueError, match="oob_score"):
        fit_parts(small_forest(oob_score=lambda forest, X, y: 0.5), X, Y, None, BOUNDS["one"])


def test_one_class_is_refused_and_leaves_all_as_it_was():
    forest = small_forest().fit(X, Y)
    before = dict(vars(forest))
    with pytest.raises(ValueError, match="only one class"):
        fit_parts(forest, X, Y, (Y == 0).astype(float), BOUNDS["several"])
    assert vars(forest) == before


N_CODED, N_CATEGORIES = 5000, 1000
DRAWN = np.random.default_rng(0)
CATEGORIES = DRAWN.integers(0, N_CATEGORIES, N_CODED).astype(float)
CATEGORIES[DRAWN.random(N_CODED) < 0.1] = np.nan
DIGITS = Digits(1, {0: N_CATEGORIES})
MATRIX = CATEGORIES[:, None]
CODES = np.concatenate((np.zeros((1, N_CODED), dtype=np.uint8), DIGITS.encode(MATRIX, np.uint8)))
RATE_LABELS = DRAWN.integers(0, 3, N_CODED).astype(np.uint16)
RATE_WEIGHTS = DRAWN.choice([0.5, 1.0, 2.25], N_CODED)


def test_digits_are_those_of_the_categories():
    assert np.array_equal(DIGITS.decode(CODES, 0), np.nan_to_num(CATEGORIES, nan=-1.0))
    # what is no category is missing, so that kernels read no cell that does not exist
    assert np.all(replace(DIGITS, n_categories={0: 500}).decode(CODES, 0) < 500)


def test_columns_that_have_rates_are_sorted():
    many, few = np.arange(100).astype(object), np.arange(9).astype(object)
    assert find_rated({5: many, 3: few, 2: many}, ("rates",)) == [2, 5]
    assert find_rated({5: many}, ("sets",)) == []


@pytest.mark.parametrize("most", [400, 10_000])
def test_rows_are_chosen_by_whole_categories_wherever_they_are(monkeypatch, most):
    monkeypatch.setattr(target_rates, "_SAMPLE_ROWS", most)
    whole = sampled_rows(CODES, DIGITS, 0, N_CODED)
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 333)
    bounds = [0, 1, 700, 700, N_CODED]
    parts = [start + sampled_rows(CODES[:, start:stop], DIGITS, 0, N_CODED, start) for start, stop in pairwise(bounds)]
    assert np.array_equal(np.concatenate(parts), whole)
    if most < N_CODED:
        assert 0.5 * most < len(whole) < 2 * most
        rare = CATEGORIES[whole][CATEGORIES[whole] >= 254]
        found = whole[CATEGORIES[whole] >= 254]
        assert np.array_equal(found, np.flatnonzero(np.isin(CATEGORIES, rare)))


def test_totals_are_sums_over_parts(monkeypatch):
    rows = RateRows(DIGITS, BinValues(np.array([0, 1]), np.zeros(1), np.zeros(1)), np.array([True]))
    table = RateTable(0, -1, np.empty(0), 1, 1.0, np.empty((0, 3), dtype=np.int64))
    weights = RateWeights.of(RATE_WEIGHTS, None, 3)
    coded = CodedRows(CODES, RATE_LABELS, weights.integers(RATE_WEIGHTS))
    (whole,) = rows.count_all([table], coded, 3)
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 333)
    parts = [rows.count(table, coded.some(slice(start, start + 1250)), 3) for start in range(0, N_CODED, 1250)]
    assert np.array_equal(sum(parts), whole)
    assert whole[7] * weights.factors == pytest.approx(
        np.bincount(RATE_LABELS[CATEGORIES == 7], RATE_WEIGHTS[CATEGORIES == 7], minlength=3) / RATE_WEIGHTS.mean()
    )


def test_heavy_rows_do_not_choose_interactions_with_noise():
    """Of a row of more weight than others, a part would be left in its cell, with its label."""
    table = make_many()
    X, y = features_and_labels(table, ["customer"])
    forest = make_forest(**RATED).fit(X, y, np.random.default_rng(1).choice([0.5, 1.0, 2.25, 9.0], len(y)))
    assert interactions_of(forest) == [(0, 1)]
