"""Intervals of shares against their definition."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aucforest.metrics.intervals import score_interval, share_interval

COUNTS = st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda counts: sum(counts) > 0)


@given(COUNTS, st.floats(0.0, 0.9), st.floats(0.001, 2.0))
@example((0, 3), 0.5, 0.1)
@example((3, 0), 0.5, 0.1)
def test_at_a_bound_of_a_share_the_difference_just_reaches_zero(counts, correlation, dispersion):
    part, rest = (np.array([n / 9, *score_interval(n / 9, dispersion, 2.0)]) for n in counts)
    low, high = share_interval(part, rest, correlation)
    share = counts[0] / sum(counts)
    assert 0.0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1.0
    for s, nearer, farther in ((low, 1, 2), (high, 2, 1)):
        one, other = (1.0 - s) * abs(part[0] - part[nearer]), s * abs(rest[farther] - rest[0])
        distance = math.sqrt(one**2 + other**2 - 2.0 * correlation * one * other)
        value = abs((1.0 - s) * part[0] - s * rest[0])
        assert value == pytest.approx(distance, abs=1e-7) or s in (0.0, 1.0)


def test_a_share_of_two_poisson_counts_is_a_proportion_of_their_sum():
    """Wilson's interval, nearly, as the two parts are of many samples."""
    part, rest = (np.array([n / 1e6, *score_interval(n / 1e6, 1e-6, 1.96)]) for n in (30, 70))
    assert share_interval(part, rest) == pytest.approx(score_interval(0.3, 0.01, 1.96), abs=0.005)
