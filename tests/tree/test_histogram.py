"""Elements and lists of codes: what packing keeps, and what a list of bits leaves behind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.histogram import label_of, list_bits, mark_code, pack, row_of, weight_of, with_row

ROWS, HALVES = st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1)


@given(ROWS, HALVES, HALVES, ROWS)
def test_elements_hold_what_was_packed(row, label, weight, other_row):
    element = np.uint64(pack(row, label, weight))
    assert (row_of(element), label_of(element), weight_of(element)) == (row, label, weight)
    moved = np.uint64(with_row(element, other_row))
    assert (row_of(moved), label_of(moved), weight_of(moved)) == (other_row, label, weight)


@pytest.mark.parametrize("n_bits", [1, 63, 64, 65, 256, 257])
def test_marked_bits_are_listed_once_in_order_and_cleared(n_bits):
    rng = np.random.default_rng(n_bits)
    for share in (0.0, 0.05, 0.5, 1.0):
        positions = np.flatnonzero(rng.random(n_bits) < share)
        mask, listed = np.zeros((n_bits + 63) // 64, np.uint64), np.empty(n_bits, np.uint32)
        for position in rng.permutation(np.repeat(positions, 2)):
            mark_code(mask, np.uint64(position))
        n_listed = list_bits(mask, n_bits, listed)
        assert listed[:n_listed].tolist() == positions.tolist()
        assert not mask.any()
