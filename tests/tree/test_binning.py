"""Binning: the order of codes, edges, the weights of bins, and rows outside the sample."""

import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree import binning
from aucforest.tree.binning import bin_matrix, code_dtype, midway, sample_rows
from aucforest.tree.criteria.criterion import ROUNDING
from tests.memory import peak_below
from tests.reference import tree as reference

AWKWARD = [-np.inf, np.inf, np.nan, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.0, np.nextafter(1.0, 2.0)]
VALUES = st.sampled_from(AWKWARD) | st.floats(-4, 4) | st.integers(-3, 3).map(float)
COLUMNS = st.lists(VALUES, min_size=1, max_size=60)


def bounds_of(binned, feature: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper bounds of the bins of a feature."""
    part = slice(*binned.values.first[feature : feature + 2])
    return binned.values.lower[part], binned.values.upper[part]


def check_codes(column, binned, feature: int) -> None:
    """Check the codes and the bounds of a feature whose rows are all in the sample."""
    codes, n_bins = binned.codes[feature].astype(int), int(binned.values.n_bins[feature])
    lower, upper = bounds_of(binned, feature)
    missing = np.isnan(column)
    assert len(lower) == len(upper) == n_bins
    assert np.array_equal(codes == n_bins, missing)
    assert np.array_equal(np.unique(codes[~missing]), np.arange(n_bins))
    for code in range(n_bins):
        inside = column[codes == code]
        assert (inside.min(), inside.max()) == (lower[code], upper[code])
    assert np.all(lower <= upper)
    assert np.all(upper[:-1] < lower[1:])


def bins_by_definition(column, weights, max_bins):
    """Return the values of each bin. A bin ends where its weight is closest to its share of the remaining weight."""
    values = np.unique(column[~np.isnan(column)]).tolist()
    if max_bins is None or len(values) <= max_bins:
        return [[value] for value in values]
    weight = {value: sum(map(Fraction, weights[column == value])) for value in values}
    bins, remaining = [[]], sum(weight.values())
    for value in values:
        inside = sum(weight[other] for other in bins[-1])
        share = remaining / (max_bins - len(bins) + 1) * (1 + Fraction(ROUNDING))
        if bins[-1] and inside + weight[value] / 2 > share:
            bins.append([])
            remaining -= inside
        bins[-1].append(value)
    return bins


@given(COLUMNS, st.sampled_from([2, 3, 7, 255, None]), st.sampled_from([np.float64, np.float32]), st.data())
def test_bins_are_those_of_the_definition_and_codes_keep_their_order(column, max_bins, dtype, data):
    with np.errstate(over="ignore"):
        column = np.array(column).astype(dtype)
    given = st.lists(st.sampled_from([1.0, 2.5, 1000.0, 1e9]), min_size=len(column), max_size=len(column))
    weights = data.draw(st.none() | given)
    binned = bin_matrix(column[:, None], max_bins=max_bins, weights=None if weights is None else np.array(weights))
    check_codes(column.astype(np.float64), binned, 0)
    weights = np.ones(len(column)) if weights is None else np.array(weights)
    expected = bins_by_definition(column.astype(np.float64), weights, max_bins)
    lower, upper = bounds_of(binned, 0)
    assert list(zip(lower, upper)) == [(values[0], values[-1]) for values in expected]


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_midway_separates_two_values(a, b):
    low, high = min(a, b), max(a, b)
    if low < high:
        assert low <= midway(low, high) < high
        if np.isfinite(low) and np.isfinite(high):
            middle = float((Fraction(low) + Fraction(high)) / 2)
            # The half of a subnormal number is rounded.
            assert midway(low, high) == pytest.approx(middle if middle < high else low, rel=0, abs=1e-323)


@given(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3, unique=True))
def test_midway_does_not_decrease_if_a_value_increases(values):
    low, middle, high = sorted(values)
    assert midway(low, middle) <= midway(low, high) <= midway(middle, high)


def test_code_dtype_has_a_code_for_missing_values():
    assert [code_dtype(n) for n in (0, 255, 256, 2**16 - 1, 2**16)] == 2 * [np.uint8] + 2 * [np.uint16] + [np.uint32]


def test_all_255_bins_and_missing_values_fit_a_byte():
    binned = bin_matrix(np.concatenate((np.arange(255.0), [np.nan]))[:, None])
    assert binned.codes.dtype == np.uint8
    assert binned.codes[0].tolist() == list(range(256))


@pytest.mark.parametrize("late", [1, 511, 512, 513, 699])
def test_features_with_different_numbers_of_bins(late, monkeypatch):
    """The position of a third distinct value, the memory order and the parts of threads have no effect."""
    X = np.random.default_rng(3).normal(size=(700, 7))
    X[:, 1:6] = [np.nan, 2.0, -0.0, 5.0, -np.inf]
    X[::2, 3:5], X[late, 4], X[::9, 5:], X[1, 5] = [7.0, 3.0], 4.0, np.nan, 0.0
    binned = bin_matrix(X, max_bins=30)
    assert binned.values.n_bins.tolist() == [30, 0, 1, 2, 3, 2, 30]
    for feature in range(7):
        check_codes(X[:, feature], binned, feature)
    monkeypatch.setattr(binning, "_BLOCK_ROWS", 64)
    monkeypatch.setattr(binning, "_GROUP_CELLS", 1500)
    with ThreadPoolExecutor(2) as pool:
        for rows in (X, np.asfortranarray(X), np.hstack((X, X))[:, :7], np.asfortranarray(np.hstack((X, X)))[:, :7]):
            other = bin_matrix(rows, max_bins=30, run=pool.map)
            for found, expected in zip((other.codes, *other.values), (binned.codes, *binned.values)):
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_python_calls_does_not_depend_on_features(weighted):
    X, weights = np.random.default_rng(0).normal(size=(50, 4000)), np.linspace(1, 2, 50) if weighted else None

    def count(n_features):
        calls = []
        sys.setprofile(lambda *call: calls.append(call[1]))
        try:
            bin_matrix(X[:, :n_features], max_bins=20, weights=weights)
        finally:
            sys.setprofile(None)
        return len(calls)

    count(4)  # compiles
    assert count(4000) < count(400) + 100


def test_the_sample_is_the_rows_with_the_smallest_hashes(monkeypatch):
    for n_rows, size in [(50, 50), (51, 50), (1000, 10)]:
        monkeypatch.setattr(binning, "SAMPLE_ROWS", size)
        hashes = [reference.mix(row + 1) for row in range(n_rows)]
        expected = sorted(sorted(range(n_rows), key=hashes.__getitem__)[:size])
        assert sample_rows(n_rows, 255).tolist() == expected
        assert sample_rows(n_rows, None).tolist() == list(range(n_rows))
        with monkeypatch.context() as patched:
            patched.setattr(binning, "_HASHED_ROWS", 7)
            assert sample_rows(n_rows, 255).tolist() == expected


def test_sampling_takes_less_than_four_bytes_per_row():
    n_rows = 8_000_000
    sample_rows(200_001, 255)  # compiles
    with peak_below(4 * n_rows):
        sample_rows(n_rows, 255)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 100)
    return sample_rows(2000, 255)


def test_few_distinct_values_are_all_kept_if_the_sample_lacks_some(small_sample):
    column, unseen = np.repeat([3.0, 1.0], 1000), np.setdiff1d(np.arange(2000), small_sample)
    column[unseen[:5]] = [2.0, -np.inf, np.nan, 9.0, 2.0]
    binned = bin_matrix(column[:, None], max_bins=6)
    assert bounds_of(binned, 0)[0].tolist() == [-np.inf, 1.0, 2.0, 3.0, 9.0]
    check_codes(column, binned, 0)


def test_values_outside_the_sample_are_encoded_by_edges(small_sample):
    column = np.random.default_rng(5).normal(size=2000)
    column[::50] = np.nan
    binned = bin_matrix(column[:, None], max_bins=20)
    lower, upper = bounds_of(binned, 0)
    seen = column[small_sample]
    assert np.isin(lower, seen).all()
    assert np.isin(upper, seen).all()
    edges = [midway(a, b) for a, b in zip(upper[:-1], lower[1:])]
    expected = np.where(np.isnan(column), 20, np.searchsorted(edges, column, side="left"))
    assert binned.codes[0].tolist() == expected.tolist()


def test_more_values_than_bins_are_binned_by_the_sample(small_sample):
    column, unseen = np.repeat([1.0, 2.0], 1000), np.setdiff1d(np.arange(2000), small_sample)
    column[unseen[:50]] = 3.0 + np.arange(50)
    assert bounds_of(bin_matrix(column[:, None], max_bins=10), 0)[0].tolist() == [1.0, 2.0]
