"""What a part of the rows says of nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.fitting.level_kernels import (
    PartColumns,
    Route,
    copy_samples,
    draw_known,
    fill_histograms,
    route_samples,
)
from aucforest.tree.features import CATEGORICAL, NUMERIC, FeatureBuffers
from aucforest.tree.samples import take_samples
from aucforest.tree.tree import SET_WORDS
from tests.reference import tree as reference

N_BINS = np.array([5, 7, 3])
KINDS = np.array([CATEGORICAL, NUMERIC, NUMERIC], dtype=np.int8)
# Splits feature 0 by a set, {0, 3} and missing values, then feature 1 after code 2 with missing values on the right.
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
    is_slice=st.booleans(),
)
def test_histograms_and_samples(seed, n_rows, n_classes, weighted, is_slice):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, N_BINS[:, None] + 1, (3, n_rows + 10)).astype(np.uint8)
    codes = codes[:, 4 : 4 + n_rows] if is_slice else codes[:, :n_rows].copy()
    labels, counts = rng.integers(0, n_classes, n_rows).astype(np.uint16), rng.poisson(1, n_rows).astype(np.uint16)
    weights = rng.integers(1, 2**50, n_rows) if weighted else NO_WEIGHTS
    samples, spill = np.empty((2, n_rows), dtype=np.uint64)
    samples = samples[: take_samples(labels, counts, True, samples)]
    starts, ends = np.zeros((2, 5), dtype=np.int64)
    columns = PartColumns.of(codes)
    wanted = [2, 3, 4] if seed % 2 else [3]
    route_samples(columns, N_BINS, KINDS, ROUTE, np.isin(np.arange(5), wanted), samples, spill, starts, ends)
    nodes, features = np.repeat(wanted, 3), np.tile([0, 1, 2], len(wanted))
    histograms = np.zeros(int((N_BINS + 1).sum()) * (n_classes + 1) * len(wanted), dtype=np.int64)
    cells = np.zeros(8 * 4, dtype=np.uint64)
    fill_histograms(columns, N_BINS, weights, samples, starts, ends, nodes, features, n_classes, cells, histograms)
    assert not np.any(cells)
    at = 0
    for node, feature in zip(nodes, features):
        rows = np.flatnonzero(nodes_of(codes)[node] & (counts > 0))
        copied, of_codes = (
            (np.empty(len(rows), np.int64), np.empty(len(rows), np.uint16)),
            np.empty((3, len(rows)), "B"),
        )
        copy_samples(columns, samples[starts[node] : ends[node]], *copied, of_codes)
        for part, expected in zip((*copied, of_codes), (rows, counts[rows], codes[:, rows])):
            np.testing.assert_array_equal(part, expected)
        expected = np.zeros((N_BINS[feature] + 1, n_classes + 1), dtype=np.int64)
        of_rows = counts[rows] * weights[rows] if weighted else counts[rows]
        np.add.at(expected, (codes[feature, rows], labels[rows]), of_rows)
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
        np.testing.assert_array_equal(columns.flat[start : start + 3], codes[feature, 2:5])
    assert np.shares_memory(columns.flat, codes) == writeable
    assert columns.flat.flags.writeable
    assert columns.flat.flags.c_contiguous


@pytest.mark.parametrize("n_cells", [16, 0])
def test_cells_that_hold_more_than_32_bits(n_cells):
    """Where there are no cells, weights of a code may be any; else less than 2**32."""
    n_rows, weight = 70_000, 65_535 if n_cells == 0 else 60_000
    columns = PartColumns.of(np.zeros((1, n_rows), dtype=np.uint8))
    samples = np.empty(n_rows, dtype=np.uint64)
    take_samples(np.ones(n_rows, dtype=np.uint16), np.full(n_rows, weight, dtype=np.uint16), True, samples)
    histograms, zero = np.zeros(2 * 3, dtype=np.int64), np.zeros(1, dtype=np.int64)
    cells = np.zeros(n_cells, dtype=np.uint64)
    of_node = samples, zero, np.array([n_rows]), zero, zero
    fill_histograms(columns, np.array([1]), NO_WEIGHTS, *of_node, 2, cells, histograms)
    assert histograms.tolist() == [0, n_rows * weight, n_rows, 0, 0, 0]


@pytest.mark.parametrize("key", [0, 5, 2**63 + 1])
def test_features_are_the_first_drawn_that_are_not_constant(key):
    buffers, drawn = FeatureBuffers.of(6), reference.sample_features(key, 6)
    is_constant = np.isin(np.arange(6), drawn[1:3])
    for max_features in range(1, 7):
        n_tried = draw_known(np.uint64(key), is_constant, max_features, buffers)
        assert buffers.tried[:n_tried].tolist() == [drawn[0], *drawn[3:]][:max_features]
        assert buffers.features.tolist() == list(range(6))
