"""Histograms: however they are counted, what numpy says; and the lists of bits behind them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.binning import BinnedMatrix, BinValues
from aucforest.tree.criteria.criterion import sum_of
from aucforest.tree.histogram import JOINT_SAMPLES, SORT_SAMPLES, HistogramBuffers, list_bits
from aucforest.tree.samples import add_code, take_samples
from aucforest.tree.splitter import MORE_CLASSES, TWO_CLASSES, Node, Search, SplitBuffers
from tests.tree.growing import Growth, make_columns, make_params
from tests.tree.oracle import check_tree, random_data, weighings


@bare_kernel
def list_marked(bits, n_bits, mask, listed):
    """Mark bits and list them."""
    for bit in bits:
        add_code(mask, np.uint64(bit))
    return list_bits(mask, n_bits, listed)


@bare_device
def _count(functions, columns, samples, t, compact, given):
    labels, totals, params, found, all_buffers = given
    buffers = all_buffers.histogram
    classes = functions.index_classes(labels, totals, sum_of(totals), buffers.indices)
    node = Node(columns, samples, labels, totals, classes.weight, np.uint64(0), 0.0, 1.0)
    features = all_buffers.features.features
    histogram = functions.count(Search(functions, node, classes, params, all_buffers), features, t, compact)
    for i in range(histogram.first, histogram.n_bins):
        functions.add_bin(histogram, i, found[histogram.codes[i]])
    for i in range(len(found)):
        buffers.codes[i] = histogram.codes[i]
    functions.clear(histogram)
    return histogram.first, histogram.n_bins, histogram.n_missing


@bare_kernel
def count(columns, samples, t, compact, given):
    """Count a histogram, and read the class totals of its bins, (n_codes, n_classes), at their codes.

    Return where the bins start and end, and the number of samples that miss the value.
    """
    if len(given[0]) == 2:
        return _count(TWO_CLASSES, columns, samples, t, compact, given)
    return _count(MORE_CLASSES, columns, samples, t, compact, given)


@pytest.mark.parametrize("n_bits", [1, 63, 64, 65, 256, 257])
def test_marked_bits_are_listed_once_in_order_and_cleared(n_bits):
    rng = np.random.default_rng(n_bits)
    for frequency in (0.0, 0.05, 0.5, 1.0):
        positions = np.flatnonzero(rng.random(n_bits) < frequency)
        mask, listed = np.zeros((n_bits + 63) // 64, np.uint64), np.empty(n_bits, np.uint32)
        n_listed = list_marked(rng.permutation(np.repeat(positions, 2)), n_bits, mask, listed)
        assert listed[:n_listed].tolist() == positions.tolist()
        assert not mask.any()


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.sampled_from(
        [2, SORT_SAMPLES, SORT_SAMPLES + 1, JOINT_SAMPLES - 1, JOINT_SAMPLES, JOINT_SAMPLES + 1, 300]
    ),
    n_bins=st.sampled_from([1, 2, 9, 70, 255]),
    classes=st.sampled_from([(0, 1), (3, 7), (0, 1, 2), (1, 2, 5, 6, 8)]),
    unit=st.sampled_from([0, 1, 2**33]),
    compact=st.booleans(),
    with_samples=st.booleans(),
)
def test_histograms_are_those_of_numpy(seed, n_rows, n_bins, classes, unit, compact, with_samples):
    """With weights in the samples, for a unit of 0, and beside them, where those of two classes share a cell or not."""
    rng = np.random.default_rng(seed)
    codes, index = rng.integers(0, n_bins + 1, (3, n_rows)), rng.integers(0, len(classes), n_rows)
    index[: len(classes)] = np.arange(len(classes))[:n_rows]
    weights, labels = rng.integers(1, 4, n_rows) * max(unit, 1), np.array(classes)[index].astype(np.uint16)
    totals = np.zeros(9, dtype=np.int64)
    np.add.at(totals, labels, weights)
    binned = BinnedMatrix(codes.astype(np.uint8), BinValues.of([n_bins] * 3, *np.empty((2, 0))))
    columns = make_columns(binned, weights[: n_rows * (unit > 0)])
    params = make_params(Growth(min_samples_leaf=1 + with_samples), 3)
    samples, all_buffers = np.empty(n_rows, np.uint64), SplitBuffers.of(3, n_bins + 1, 9, np.empty(0))
    buffers, features = all_buffers.histogram, all_buffers.features.features
    take_samples(labels, np.minimum(weights, 9).astype(np.uint16), unit == 0, samples)
    features[:], present = [2, 0, 1], np.flatnonzero(totals).astype(np.int32)
    for t, column in enumerate(codes[features]):
        expected = np.zeros((n_bins + 1, 9), dtype=np.int64)
        np.add.at(expected, (column, labels), weights)
        expected, n = expected[:, totals > 0], len(present)
        found = np.zeros_like(expected)
        given = present, totals[present], params, found, all_buffers
        first, n_found, n_missing = count(columns, samples, t, compact or with_samples, given)
        bins, filled = buffers.codes[first:n_found], np.flatnonzero(expected[:-1].any(axis=1))
        if compact or with_samples or n > 2:
            assert bins.tolist() == filled.tolist()
        elif len(filled) > 0:
            assert (bins[0], bins[-1]) == (filled[0], filled[-1])
        assert found[:-1].tolist() == expected[:-1].tolist()
        assert buffers.missing[:n].tolist() == expected[-1].tolist()
        if with_samples:
            n_samples = np.bincount(column, minlength=n_bins + 1)
            assert buffers.n_samples[:n_found].tolist() == n_samples[bins].tolist()
            assert n_missing == n_samples[-1]
        assert not any(map(np.any, (buffers.n_samples_of_code, buffers.mask, buffers.cells[0])))
    assert not np.any(buffers.cells)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [3, SORT_SAMPLES, SORT_SAMPLES + 1, JOINT_SAMPLES - 1, JOINT_SAMPLES, 150])
def test_nodes_of_every_size(n_classes, n_rows):
    """Small ones are sorted, large ones counted, and both with few codes and with many."""
    for seed in range(6):
        X, labels = random_data(seed, n_classes, n_rows=n_rows, n_values=100 if seed % 2 else 3)
        labels[:n_classes] = np.arange(n_classes)
        how = Growth(min_samples_leaf=1 + seed % 3, key=seed)
        check_tree(X, labels, how, n_classes=n_classes, **weighings(seed, n_rows)[seed % 2])


@pytest.mark.parametrize("n_rows", [JOINT_SAMPLES - 1, JOINT_SAMPLES])
def test_pure_children_leave_no_counts_behind(n_rows):
    """No further feature is searched, but it may have been counted."""
    X = np.repeat(np.arange(float(n_rows))[:, None], 3, axis=1)
    assert check_tree(X, (np.arange(n_rows) > 30).astype(int), Growth()).tree.n_nodes == 3


@pytest.mark.parametrize(("n_codes", "n_classes"), [(2**31 + 1, 2), (2**25, 129)])
def test_cells_that_32_bits_cannot_number(n_codes, n_classes):
    with pytest.raises(ValueError, match=f"^{n_codes} bins with {n_classes} classes are too many"):
        HistogramBuffers.of(n_codes, n_classes)
