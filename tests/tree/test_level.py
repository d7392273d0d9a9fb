"""What a part of the rows says of nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.growing import take_rows
from aucforest.distributed._level_kernels import PartColumns, Route, copy_rows, fill_histograms, route_rows
from aucforest.tree.tree import SET_WORDS

N_BINS = np.array([5, 7, 3])
# Cuts feature 0 by a set, {0, 3} and missing values, then feature 1 after code 2 with missing values on the right.
ROUTE = Route(
    feature=np.array([0, 1, -1, -1, -1], dtype=np.int32),
    code=np.array([1, 2, 0, 0, 0]),
    missing_left=np.array([True, False, False, False, False]),
    left_child=np.array([1, 3, -1, -1, -1], dtype=np.int32),
    codes_left=np.zeros((5, SET_WORDS), dtype=np.uint64),
)
ROUTE.codes_left[0, 0] = 0b1001
NO_WEIGHTS = np.empty(0, dtype=np.int64)


def nodes_of(codes):
    """Return the rows of every node."""
    first = np.isin(codes[0], [0, 3, 5])
    return [first | True, first, ~first, first & (codes[1] <= 2), first & (codes[1] > 2)]


@given(
    seed=st.integers(0, 1000),
    n_rows=st.sampled_from([1, 30, 3000]),
    n_classes=st.sampled_from([2, 3]),
    weighted=st.booleans(),
    is_cut_out=st.booleans(),
)
def test_histograms_and_rows(seed, n_rows, n_classes, weighted, is_cut_out):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, N_BINS[:, None] + 1, (3, n_rows + 10)).astype(np.uint8)
    codes = codes[:, 4 : 4 + n_rows] if is_cut_out else codes[:, :n_rows].copy()
    labels, counts = rng.integers(0, n_classes, n_rows).astype(np.uint16), rng.poisson(1, n_rows).astype(np.uint16)
    weights = counts * rng.integers(1, 2**50, n_rows) if weighted else NO_WEIGHTS
    elements, spill = np.empty((2, n_rows), dtype=np.uint64)
    elements = elements[: take_rows(labels, counts, True, elements)]
    starts, ends = np.zeros((2, 5), dtype=np.int64)
    columns, by_set = PartColumns.of(codes), np.array([True, False, False])
    wanted = [2, 3, 4] if seed % 2 else [3]
    route_rows(columns, N_BINS, by_set, ROUTE, np.isin(np.arange(5), wanted), elements, spill, starts, ends)
    nodes, features = np.repeat(wanted, 3), np.tile([0, 1, 2], len(wanted))
    histograms = np.zeros(int((N_BINS + 1).sum()) * (n_classes + 1) * len(wanted), dtype=np.int64)
    cells = np.zeros(8 * 4, dtype=np.uint64)
    fill_histograms(columns, N_BINS, weights, elements, starts, ends, nodes, features, n_classes, cells, histograms)
    assert not np.any(cells)
    at = 0
    for node, feature in zip(nodes, features):
        rows = np.flatnonzero(nodes_of(codes)[node] & (counts > 0))
        copied = np.empty((3, len(rows)), dtype=np.uint8)
        copy_rows(columns, elements[starts[node] : ends[node]], copied)
        np.testing.assert_array_equal(copied, codes[:, rows])
        expected = np.zeros((N_BINS[feature] + 1, n_classes + 1), dtype=np.int64)
        np.add.at(expected, (codes[feature, rows], labels[rows]), (weights if weighted else counts)[rows])
        np.add.at(expected[:, -1], codes[feature, rows], 1)
        np.testing.assert_array_equal(histograms[at : at + expected.size].reshape(expected.shape), expected)
        at += expected.size
    assert at == len(histograms)


@pytest.mark.parametrize("writeable", [True, False])
def test_columns_are_looked_at_not_copied(writeable):
    codes = np.arange(30, dtype=np.uint8).reshape(3, 10)
    codes.flags.writeable = writeable
    columns = PartColumns.of(codes[:, 2:5])
    for feature in range(3):
        start = feature * columns.stride
        np.testing.assert_array_equal(columns.flat[start : start + columns.n_rows], codes[feature, 2:5])
    assert np.shares_memory(columns.flat, codes) == writeable
    assert columns.flat.flags.writeable
    assert columns.flat.flags.c_contiguous


@pytest.mark.parametrize("n_cells", [16, 0])
def test_cells_that_hold_more_than_32_bits(n_cells):
    """Where there are no cells, weights of a code may be any; else less than 2**32."""
    n_rows, weight = 70_000, 65_535 if n_cells == 0 else 60_000
    columns = PartColumns.of(np.zeros((1, n_rows), dtype=np.uint8))
    elements = np.empty(n_rows, dtype=np.uint64)
    take_rows(np.ones(n_rows, dtype=np.uint16), np.full(n_rows, weight, dtype=np.uint16), True, elements)
    histograms, zero = np.zeros(2 * 3, dtype=np.int64), np.zeros(1, dtype=np.int64)
    cells = np.zeros(n_cells, dtype=np.uint64)
    rows = elements, zero, np.array([n_rows]), zero, zero
    fill_histograms(columns, np.array([1]), NO_WEIGHTS, *rows, 2, cells, histograms)
    assert histograms.tolist() == [0, n_rows * weight, n_rows, 0, 0, 0]
