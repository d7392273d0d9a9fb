"""Samples: what packing keeps, what is taken and how they are parted. Weights as integers: sums are exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aucforest._compile import bare_kernel
from aucforest.tree import samples as engine
from aucforest.tree.samples import FixedPoint, exact_weights, take_samples

ROWS, HALVES = st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)
SIZES = [0, 1, 2, 63, 1000]


@bare_kernel
def repack(row, label, weight, other_row, packed):
    """Pack a sample, and again with another row."""
    packed[0] = engine.pack(row, label, weight)
    packed[1] = engine.with_row(packed[0], other_row)


@bare_kernel
def read(sample, weights):
    return (
        engine.row_of(sample),
        engine.label_of(sample),
        engine.packed_weight(sample),
        engine.weight_of(sample, weights),
    )


@bare_kernel
def part_by_threshold(codes, code, samples, spill, also_left):
    return engine.with_codes(
        engine.partition, codes, 0, engine.Side(engine.is_at_most, code, also_left), samples, spill
    )


@bare_kernel
def part_by_set(codes, words, samples, spill, also_left):
    return engine.with_codes(engine.partition, codes, 0, engine.Side(engine.has_code, words, also_left), samples, spill)


@given(ROWS, HALVES, HALVES, ROWS)
def test_samples_hold_what_was_packed(row, label, weight, other_row):
    packed = np.empty(2, dtype=np.uint64)
    repack(row, label, weight, other_row, packed)
    none = np.empty(0, dtype=np.int64)
    assert read(packed[0], none) == (row, label, weight, weight)
    assert read(packed[1], none) == (other_row, label, weight, weight)


def test_weights_beside_the_samples_are_read_by_row():
    packed = np.empty(2, dtype=np.uint64)
    repack(2, 5, 0, 0, packed)
    weights = np.array([2**40, 7, 2**60])
    assert [read(sample, weights)[3] for sample in packed] == [2**60, 2**40]


@pytest.mark.parametrize("use_counts", [False, True])
@pytest.mark.parametrize("n_rows", SIZES)
def test_samples_of_a_tree_are_the_rows_with_a_count(n_rows, use_counts):
    rng = np.random.default_rng(n_rows)
    labels = rng.integers(0, 2**16 - 1, n_rows).astype(np.uint16)
    counts = rng.choice(np.array([0, 0, 1, 2, 2**16 - 1], dtype=np.uint16), n_rows)
    samples = np.empty(n_rows, dtype=np.uint64)
    n_taken = take_samples(labels, counts, use_counts, samples)
    rows = np.flatnonzero(counts)
    assert n_taken == len(rows)
    none = np.empty(0, dtype=np.int64)
    found = [read(sample, none)[:3] for sample in samples[:n_taken]]
    assert found == [(row, labels[row], counts[row] if use_counts else 0) for row in rows]


def samples_of(rows) -> np.ndarray:
    """Return samples of some rows, with classes and weights that must stay with them."""
    rows = np.asarray(rows, dtype=np.uint64)
    return rows | (rows % np.uint64(3)) << np.uint64(32) | (rows % np.uint64(7) + np.uint64(1)) << np.uint64(48)


def check_parts(part, rule, goes_left, codes, also_left):
    """Part the samples of some of the rows, and compare with lists that keep the order."""
    rows = np.random.default_rng(1).permutation(len(codes))[: 2 * len(codes) // 3]
    samples, spill = samples_of(rows), np.empty(len(rows), dtype=np.uint64)
    is_left = np.array([goes_left(codes[row]) or codes[row] == also_left for row in rows], dtype=bool)
    n_left = part(engine.Codes.of(codes[None]), rule, samples, spill, also_left)
    assert n_left == is_left.sum()
    expected = np.concatenate((rows[is_left], rows[~is_left]))
    np.testing.assert_array_equal(samples, samples_of(expected))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("n_rows", SIZES)
def test_samples_are_parted_by_a_threshold(n_rows, dtype):
    codes = np.random.default_rng(n_rows).integers(0, 12, n_rows).astype(dtype)
    # the code itself says that no other goes left, 11 stands for missing values
    for code in (0, 5, 11):
        for also_left in (code, 11):
            check_parts(part_by_threshold, code, lambda value, code=code: value <= code, codes, also_left)


@pytest.mark.parametrize("n_rows", SIZES)
def test_samples_are_parted_by_a_set(n_rows):
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, 256, n_rows).astype(np.uint8)
    for codes_left in ([], [0, 63, 64, 200], range(254), [127, 128, 255]):
        words = np.zeros(4, dtype=np.uint64)
        for code in codes_left:
            words[code // 64] |= np.uint64(1) << np.uint64(code % 64)
        for also_left in (-1, 255):
            check_parts(part_by_set, words, lambda value, left=codes_left: value in left, codes, also_left)


def fixed_point(weights, n_draws):
    scale = FixedPoint.of(weights, n_draws)
    return scale.apply(weights), scale.unit


positive = st.floats(1e-200, 1e200)
numbers = st.integers(1, 2**32)


@given(arrays(np.float64, st.integers(1, 20), elements=positive), numbers, st.integers(-60, 60))
def test_fixed_point_weights(weights, n_draws, exponent):
    fixed, unit = fixed_point(weights, n_draws)
    assert fixed.dtype == np.int64
    assert fixed.min() > 0
    # However the bootstrap samples fall, the sum fits: none holds a row more than n_draws times.
    assert int(fixed.max()) * n_draws <= 2**61
    # Ratios that rounding may have parted are the same integers.
    np.testing.assert_allclose(fixed * unit, weights, rtol=2.0**-50, atol=weights.max() * n_draws * 2.0**-58)
    scaled, scaled_unit = fixed_point(np.ldexp(weights, exponent), n_draws)
    np.testing.assert_array_equal(scaled * scaled_unit, np.ldexp(fixed * unit, exponent))


@pytest.mark.parametrize("exponent", range(-6, 7))
def test_a_power_of_two_changes_no_bit(exponent):
    # Logarithms of 1 / 49 and 49 add up to something beside 0 that depends on the power.
    weights = np.array([1 / 49, 1 / 50])
    scaled, unit = fixed_point(np.ldexp(weights, exponent), 49 * 4)
    expected, expected_unit = fixed_point(weights, 49 * 4)
    np.testing.assert_array_equal(scaled, expected)
    assert unit == np.ldexp(expected_unit, exponent)


@given(arrays(np.float64, st.integers(1, 20), elements=st.integers(1, 1000)), st.integers(1, 2**20))
def test_integer_weights_become_coprime(weights, n_draws):
    fixed, unit = fixed_point(weights, n_draws)
    assert np.gcd.reduce(fixed) == 1
    np.testing.assert_array_equal(fixed * unit, weights)


@given(arrays(np.float64, st.integers(1, 20), elements=st.integers(1, 1000)), st.floats(1e-9, 1e9))
def test_multiples_of_any_weight_are_integers(multiples, weight):
    # One row of the weight itself tells that the others are multiples of it.
    weights = np.append(multiples, 1.0) * weight
    fixed, unit = fixed_point(weights, 100)
    np.testing.assert_array_equal(fixed, np.append(multiples, 1.0))
    assert unit == pytest.approx(weight, rel=1e-15)


def test_large_integer_weights_do_not_overflow():
    fixed, unit = fixed_point(np.array([1.0, 2.0**31]), 2)
    assert unit != 1.0
    np.testing.assert_array_equal(fixed * unit, [1.0, 2.0**31])


@given(arrays(np.float64, st.integers(1, 20), elements=positive), st.integers(0, 2**32))
def test_sums_are_exact_in_any_order(weights, seed):
    exact = exact_weights(weights)
    np.testing.assert_allclose(exact / exact.max(), weights / weights.max(), atol=2.0**-40)
    assert exact.min() > 0
    shuffled = np.random.default_rng(seed).permutation(exact)
    assert np.cumsum(shuffled)[-1] == sum(map(int, exact))


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 1e-6, 7.0])
def test_constant_weights_are_ones(weight):
    np.testing.assert_array_equal(exact_weights(np.full(1000, weight)), 1.0)
