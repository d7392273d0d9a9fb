"""Splits without a gain."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tree.criteria.scoring import gain
from tests.tree.growing import NAMES


@pytest.mark.parametrize("criterion", NAMES)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=6), st.integers(1, 1000), st.integers(1, 1000))
def test_a_split_that_keeps_all_frequencies_gains_nothing(criterion, totals, a, b):
    assume(sum(t > 0 for t in totals) > 1)
    assert abs(gain(criterion, [t * a for t in totals], [t * b for t in totals])) <= 1e-15


@pytest.mark.parametrize("criterion", NAMES)
def test_an_empty_side_gains_nothing(criterion):
    assert gain(criterion, [0, 0, 0], [3, 4, 5]) == 0.0
    assert gain(criterion, [3, 4, 5], [0, 0, 0]) == 0.0
    assert gain(criterion, [0, 6], [0, 3]) == 0.0
