"""Codes that are chosen and written from parts of a table are those of the whole table."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aucforest.distributed import fit_out_of_core
from aucforest.fitting import on_disk, target_rates
from aucforest.fitting.coding import Summary, choose_coding, indices_within, sample_for_bins, summarize_table
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import CellFinder, CodedRows, Digits, RateWeights, sampled_rows
from aucforest.tables.columns import as_table, find_categorical
from aucforest.tables.target_rates import RateTable
from aucforest.tree import binning
from aucforest.tree.binning import BinValues
from tests.estimators.data import assert_same_fit, make_table
from tests.fitting.tables import RATED, features_and_labels, interactions_of, make_forest, make_many, make_rows

N_ROWS = 700
X, Y = make_table(n_rows=N_ROWS, missing=0.1)
WEIGHT = np.random.default_rng(5).choice([0.0, 0.25, 0.7, 1.9], N_ROWS)
X[:, 3], X[:, 4] = np.round(X[:, 3]), np.where(np.arange(N_ROWS) % 2 == 0, 0.0, -0.0)
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


@pytest.fixture(params=[50, 200_000], ids=["sampled", "all"])
def sample_size(request, monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", request.param)


def code_parts(table, weight, max_bins, bounds):
    """Return the bins, the categories and the codes of a table in parts."""
    target, first, summaries = Target(np.arange(2), (Y > 0).astype(np.uint16), weight), 0, []
    sample, sample_weight = sample_for_bins(target, max_bins)
    categorical = find_categorical(as_table(table), "from_dtype")
    parts = [table.iloc[a:b] if isinstance(table, pd.DataFrame) else table[a:b] for a, b in pairwise(bounds)]
    kept = [None if weight is None else np.flatnonzero(weight[a:b]) for a, b in pairwise(bounds)]
    for part, rows in zip(parts, kept):
        n_rows = len(part) if rows is None else len(rows)
        sampled = indices_within(sample, first, n_rows)
        sampled = sampled if rows is None else rows[sampled]
        summaries.append(summarize_table(as_table(part), rows, sampled, categorical, max_bins))
        first += n_rows
    coding = choose_coding(Summary.joined(summaries, max_bins), sample_weight, max_bins, {}, map)
    codes = [coding.encode(coding.read(as_table(part), rows)) for part, rows in zip(parts, kept)]
    return *coding.values, *coding.categories.values(), np.concatenate(codes, axis=1)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("max_bins", [20, None])
@pytest.mark.parametrize("kind", TABLES)
def test_codes_of_parts_are_those_of_the_whole(kind, max_bins, weight, sample_size):
    whole = code_parts(TABLES[kind], weight, max_bins, [0, N_ROWS])
    in_parts = code_parts(TABLES[kind], weight, max_bins, [0, 1, 100, 100, 333, N_ROWS])
    assert len(in_parts) == len(whole)
    for found, expected in zip(in_parts, whole):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("max_bins", [20, None])
def test_codes_are_those_of_a_fit_in_memory(monkeypatch, sample_size, max_bins, weight):
    monkeypatch.setattr(on_disk, "_BATCH_CELLS", 3500)
    table, forests = make_rows(1000), [make_forest(max_bins=max_bins) for _ in range(2)]
    X, y = features_and_labels(table)
    forests[0].fit(X, y, None if weight is None else table[weight].to_numpy())
    drop = ["weight"] if weight is None else []
    assert_same_fit(fit_out_of_core(forests[1], table, "label", sample_weight=weight, drop=drop), forests[0])


N_CODED, N_CATEGORIES = 5000, 1000
DRAWN = np.random.default_rng(0)
CATEGORIES = DRAWN.integers(0, N_CATEGORIES, N_CODED).astype(float)
CATEGORIES[DRAWN.random(N_CODED) < 0.1] = np.nan
DIGITS = Digits(1, {0: N_CATEGORIES})
MATRIX = CATEGORIES[:, None]
CODES = np.concatenate((np.zeros((1, N_CODED), dtype=np.uint8), DIGITS.encode(MATRIX, np.uint8)))
RATE_LABELS = DRAWN.integers(0, 3, N_CODED).astype(np.uint16)
RATE_WEIGHTS = DRAWN.choice([0.5, 1.0, 2.25], N_CODED)


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
        # rows of frequent categories are sampled one by one
        frequent, counts = np.unique(CATEGORIES[whole][CATEGORIES[whole] < 254], return_counts=True)
        assert np.any(counts < [np.count_nonzero(category == CATEGORIES) for category in frequent])


def test_totals_are_sums_over_parts(monkeypatch):
    rows = CellFinder(DIGITS, BinValues(np.array([0, 1]), np.zeros(1), np.zeros(1)), np.array([True]))
    table = RateTable(0, -1, np.empty(0), 1, 1.0, np.empty((0, 3), dtype=np.int64))
    weights = RateWeights.of(RATE_WEIGHTS, None, 3)
    coded = CodedRows(CODES, RATE_LABELS, weights.integers(RATE_WEIGHTS))
    whole = rows.count(table, coded, 3)
    monkeypatch.setattr(target_rates, "_BLOCK_ROWS", 333)
    parts = [rows.count(table, coded.take(slice(start, start + 1250)), 3) for start in range(0, N_CODED, 1250)]
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
