"""Values to codes and back: order, edges, the size of bins, and rows that the sample left out."""

import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree import binning
from aucforest.tree.binning import bin_matrix, code_dtype, midway, sample_rows
from tests.reference import tree as reference

AWKWARD = [-np.inf, np.inf, np.nan, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.0, np.nextafter(1.0, 2.0)]
VALUES = st.sampled_from(AWKWARD) | st.floats(-4, 4) | st.integers(-3, 3).map(float)
COLUMNS = st.lists(VALUES, min_size=1, max_size=60)


def bounds_of(binned, feature: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper values of the codes of a feature."""
    part = slice(*binned.values.first[feature : feature + 2])
    return binned.values.lower[part], binned.values.upper[part]


def check_codes(column, binned, feature: int) -> None:
    """Check what must hold for the codes of a feature whose rows were all sampled."""
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


@given(COLUMNS, st.sampled_from([2, 3, 7, 255, None]), st.sampled_from([np.float64, np.float32]))
def test_codes_keep_the_order_and_say_which_values_they_hold(column, max_bins, dtype):
    with np.errstate(over="ignore"):
        column = np.array(column).astype(dtype)
    binned = bin_matrix(column[:, None], max_bins=max_bins)
    check_codes(column.astype(np.float64), binned, 0)
    n_distinct = len(np.unique(column[~np.isnan(column)]))
    if max_bins is None or n_distinct <= max_bins:
        assert binned.values.n_bins[0] == n_distinct
    else:
        assert 2 <= binned.values.n_bins[0] <= max_bins


@given(COLUMNS, st.integers(2, 9), st.data())
def test_weighted_bins_keep_the_same_promises(column, max_bins, data):
    weights = data.draw(st.lists(st.sampled_from([1e-9, 1.0, 2.5, 1e9]), min_size=len(column), max_size=len(column)))
    binned = bin_matrix(np.array(column)[:, None], max_bins=max_bins, weights=np.array(weights))
    check_codes(np.array(column), binned, 0)
    assert binned.values.n_bins[0] <= max_bins


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_midway_parts_two_values(a, b):
    low, high = min(a, b), max(a, b)
    if low < high:
        assert low <= midway(low, high) < high
        if np.isfinite(low) and np.isfinite(high):
            middle = float((Fraction(low) + Fraction(high)) / 2)
            # Halves of the smallest values are rounded.
            assert midway(low, high) == pytest.approx(middle if middle < high else low, rel=0, abs=1e-323)


@given(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3, unique=True))
def test_midway_never_falls_when_a_side_rises(values):
    low, middle, high = sorted(values)
    assert midway(low, middle) <= midway(low, high) <= midway(middle, high)


def test_uniform_values_get_bins_of_equal_size():
    column = np.random.default_rng(0).permutation(10_000.0 + np.arange(10_000))
    sizes = np.bincount(bin_matrix(column[:, None], max_bins=100).codes[0])
    assert sizes.tolist() == [100] * 100
    sizes = np.bincount(bin_matrix(column[:, None]).codes[0])
    assert len(sizes) == 255
    assert np.ptp(sizes) <= 1


def test_a_heavy_value_stands_alone_and_those_above_share_the_rest():
    column = np.concatenate((np.full(5000, 0.5), np.linspace(0, 1, 1000)))
    binned = bin_matrix(column[:, None], max_bins=21)
    lower, upper = bounds_of(binned, 0)
    alone = (lower == 0.5) & (upper == 0.5)
    assert alone.sum() == 1
    sizes = np.bincount(binned.codes[0])
    assert len(sizes) == 21
    assert sizes[alone] == 5000
    above = sizes[np.flatnonzero(alone)[0] + 1 :]
    assert np.ptp(above) <= 1


def test_a_bin_ends_where_that_is_nearest_to_its_goal():
    # 3 rows a value; the goals are 48 / 6 = 8, then 39 / 5 = 7.8, 30 / 4 = 7.5, 21 / 3 = 7, 15 / 2 = 7.5.
    column = np.repeat(np.arange(16.0), 3)
    assert np.bincount(bin_matrix(column[:, None], max_bins=6).codes[0]).tolist() == [9, 9, 9, 6, 9, 6]


def test_rounding_of_weights_makes_no_bin_too_many():
    # 1e17 + 2 is 1e17: after the first bin nothing seems to be left for the second.
    binned = bin_matrix(np.arange(3.0)[:, None], max_bins=2, weights=np.array([1e17, 1.0, 1.0]))
    assert binned.codes[0].tolist() == [0, 1, 1]
    assert bounds_of(binned, 0)[1].tolist() == [0.0, 2.0]


def test_weights_move_the_edges():
    column = np.random.default_rng(7).permutation(np.arange(1000.0))
    weights = np.where(column < 100, 9.0, 1.0)
    binned = bin_matrix(column[:, None], max_bins=18, weights=weights)
    by_bin = np.bincount(binned.codes[0], weights)
    assert len(by_bin) == 18
    assert by_bin == pytest.approx(100, abs=9)
    assert binned.codes[0, column == 99.0] == pytest.approx(8.5, abs=0.5)


@pytest.mark.parametrize("max_bins", [2, 10, 255])
def test_equal_weights_are_no_weights(max_bins):
    column = np.random.default_rng(1).normal(size=(3000, 1)).round(2)
    plain = bin_matrix(column, max_bins=max_bins)
    assert np.array_equal(bin_matrix(column, max_bins=max_bins, weights=np.ones(3000)).codes, plain.codes)


def test_the_code_of_missing_values_fits_as_well():
    assert [code_dtype(n) for n in (0, 255, 256, 2**16 - 1, 2**16)] == 2 * [np.uint8] + 2 * [np.uint16] + [np.uint32]
    assert all(n <= np.iinfo(code_dtype(n)).max for n in (255, 2**16 - 1, 2**32 - 1))


def test_all_255_bins_and_missing_values_fit_a_byte():
    column = np.concatenate((np.arange(255.0), [np.nan]))
    binned = bin_matrix(column[:, None])
    assert binned.codes.dtype == np.uint8
    assert binned.codes[0].tolist() == list(range(256))


def test_features_of_every_kind_side_by_side():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=500), np.full(500, np.nan), np.full(500, 2.0), rng.integers(0, 5, 500)])
    X[::7, 3] = np.nan
    binned = bin_matrix(X, max_bins=30)
    assert binned.values.n_bins.tolist() == [30, 0, 1, 5]
    for feature in range(4):
        check_codes(X[:, feature], binned, feature)
    for order in (np.ascontiguousarray, np.asfortranarray):
        assert np.array_equal(bin_matrix(order(X), max_bins=30).codes, binned.codes)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr(binning, "_BLOCK_ROWS", 64)
    monkeypatch.setattr(binning, "_GROUP_CELLS", 1500)
    X = np.random.default_rng(4).normal(size=(700, 7))
    with ThreadPoolExecutor(2) as pool:
        threaded = bin_matrix(X, run=pool.map)
    plain = bin_matrix(X)
    assert np.array_equal(threaded.codes, plain.codes)
    assert np.array_equal(threaded.values.first, plain.values.first)
    assert np.array_equal(threaded.values.upper, plain.values.upper)
    for feature in range(7):
        check_codes(X[:, feature], plain, feature)


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


def test_the_sample_takes_less_memory_than_a_few_bytes_a_row():
    n_rows = 8_000_000
    sample_rows(200_001, 255)  # compiles
    tracemalloc.start()
    sample_rows(n_rows, 255)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * n_rows


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 100)
    return sample_rows(2000, 255)


def test_few_distinct_values_are_all_kept_though_the_sample_misses_some(small_sample):
    column = np.repeat([3.0, 1.0], 1000)
    unseen = np.setdiff1d(np.arange(2000), small_sample)
    column[unseen[:5]] = [2.0, -np.inf, np.nan, 9.0, 2.0]
    binned = bin_matrix(column[:, None], max_bins=6)
    assert bounds_of(binned, 0)[0].tolist() == [-np.inf, 1.0, 2.0, 3.0, 9.0]
    check_codes(column, binned, 0)


def test_values_that_the_sample_missed_go_by_the_edges(small_sample):
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


def test_too_many_values_for_the_bins_are_binned_by_the_sample(small_sample):
    column = np.repeat([1.0, 2.0], 1000)
    unseen = np.setdiff1d(np.arange(2000), small_sample)
    column[unseen[:50]] = 3.0 + np.arange(50)
    assert bounds_of(bin_matrix(column[:, None], max_bins=10), 0)[0].tolist() == [1.0, 2.0]


def test_exact_mode_samples_nothing(small_sample):
    column = np.random.default_rng(6).normal(size=2000)
    binned = bin_matrix(column[:, None], max_bins=None)
    assert binned.values.n_bins[0] == 2000
    check_codes(column, binned, 0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_feature_costs_no_calls_of_python(weighted):
    """The bins of many features are found by a few compiled calls for them together."""
    X = np.random.default_rng(0).normal(size=(50, 4000))
    weights = np.linspace(1, 2, 50) if weighted else None

    def count(n_features):
        values, calls = X[:, :n_features].copy(), []
        sys.setprofile(lambda frame, event, _: calls.append(event))
        try:
            bin_matrix(values, max_bins=20, weights=weights)
        finally:
            sys.setprofile(None)
        return len(calls)

    count(4)  # loads compiled code
    assert count(4000) < count(400) + 100


def test_columns_of_two_values_are_not_sorted():
    random = np.random.default_rng(0)
    columns = np.where(random.random((3, 700)) < 0.3, [[1.0], [-2.5], [np.inf]], [[0.0], [7.0], [-0.0]])
    columns[:, ::9] = np.nan
    given = columns.copy()
    for weights in (np.empty(0), np.arange(1.0, 701.0)):
        bins = binning.choose_bins(columns, weights, 255)
        np.testing.assert_array_equal(columns, given)
        assert bins.n_bins.tolist() == [2, 2, 2]
        assert bins.lower.tolist() == bins.upper.tolist() == [0.0, 1.0, -2.5, 7.0, 0.0, np.inf]


@pytest.mark.parametrize("late", [1, 511, 512, 513, 699])
def test_a_third_value_is_found_wherever_it_is(late):
    column = np.tile([5.0, 3.0], 350)
    column[late] = 4.0
    binned = bin_matrix(np.column_stack([column, np.sign(column), np.full(700, np.nan)]))
    assert binned.values.n_bins.tolist() == [3, 1, 0]
    check_codes(column, binned, 0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_in_memory_changes_nothing(order):
    X = np.random.default_rng(0).normal(size=(500, 7))
    X[:, 2] = X[:, 2] > 0
    expected = bin_matrix(X, max_bins=9)
    for rows in (np.array(X, order=order), np.array(np.hstack((X, X)), order=order)[:, :7]):
        binned = bin_matrix(rows, max_bins=9)
        np.testing.assert_array_equal(binned.codes, expected.codes)
        np.testing.assert_array_equal(binned.values.lower, expected.values.lower)
