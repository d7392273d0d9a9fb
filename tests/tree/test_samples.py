"""Packed samples, and weights as integers, whose sums are exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aucforest._compile import bare_kernel
from aucforest.tree import samples as engine
from aucforest.tree.samples import FixedPoint, exact_weights

ROWS, HALVES = st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)


@bare_kernel
def repack(row, label, weight, other_row):
    first = engine.pack(row, label, weight)
    other = engine.with_row(first, other_row)
    return engine.row_of(first), engine.row_of(other), engine.label_of(other), engine.packed_weight(other)


@given(ROWS, HALVES, HALVES, ROWS)
def test_fields_of_packed_samples(row, label, weight, other_row):
    assert repack(row, label, weight, other_row) == (row, other_row, label, weight)


def fixed_point(weights, n_draws):
    scale = FixedPoint.of(weights, n_draws)
    return scale.apply(weights), scale.unit


positive, numbers = st.floats(1e-200, 1e200), st.integers(1, 2**32)


@given(arrays(np.float64, st.integers(1, 20), elements=positive), numbers, st.integers(-60, 60))
def test_fixed_point_weights(weights, n_draws, exponent):
    fixed, unit = fixed_point(weights, n_draws)
    assert fixed.dtype == np.int64
    assert fixed.min() > 0
    # The sum over any bootstrap sample fits, because it is a sum of n_draws weights.
    assert int(fixed.max()) * n_draws <= 2**61
    # Ratios that only differ by rounding errors become the same integers.
    np.testing.assert_allclose(fixed * unit, weights, rtol=2.0**-50, atol=weights.max() * n_draws * 2.0**-58)
    scaled, scaled_unit = fixed_point(np.ldexp(weights, exponent), n_draws)
    np.testing.assert_array_equal(scaled * scaled_unit, np.ldexp(fixed * unit, exponent))


@pytest.mark.parametrize("exponent", range(-6, 7))
def test_a_power_of_two_changes_no_bit(exponent):
    # The sum of the logarithms of 1 / 49 and 49 is not exactly 0, and its rounding error depends on the exponent.
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
    # The least weight must be the weight itself, so that the others are multiples of the least.
    fixed, unit = fixed_point(np.append(multiples, 1.0) * weight, 100)
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
    assert np.cumsum(np.random.default_rng(seed).permutation(exact))[-1] == sum(map(int, exact))


def test_constant_weights_are_ones():
    np.testing.assert_array_equal(exact_weights(np.full(1000, 1 / 3)), 1.0)
