"""Rows of a tree, copied from all rows or from parts of them."""

import numpy as np
import pytest

from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler
from aucforest.fitting.parts import Part

N_ROWS, KEY = BLOCK_ROWS + 100, 7
RNG = np.random.default_rng(0)
CODES, LABELS = RNG.integers(0, 9, (3, N_ROWS)).astype(np.uint8), RNG.integers(0, 2, N_ROWS).astype(np.uint16)
WEIGHTS = RNG.random(N_ROWS)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_a_sample_is_copied_from_all_rows_or_joined_from_parts(weights):
    sampler = BootstrapSampler.of_all(N_ROWS, 500)
    whole, (counts,) = Part(CODES, LABELS, weights, sampler).sample([KEY])
    assert whole.codes is CODES
    rows = np.flatnonzero(counts)
    copied, copied_counts = Part(CODES, LABELS, weights, sampler, copies_rows=True).sample([KEY])
    samplers = [sampler.store_sizes([KEY]).part(start, BLOCK_ROWS) for start in (0, BLOCK_ROWS)]
    pieces = []
    for part_sampler, part in zip(samplers, (slice(BLOCK_ROWS), slice(BLOCK_ROWS, None))):
        part_weights = None if weights is None else weights[part]
        pieces.append(Part(CODES[:, part], LABELS[part], part_weights, part_sampler, copies_rows=True).sample([KEY]))
    joined = Part.joined([piece for piece, _ in pieces])
    for sample, sample_counts in ((copied, copied_counts), (joined, np.concatenate([n for _, n in pieces], axis=1))):
        np.testing.assert_array_equal(sample.codes, CODES[:, rows])
        np.testing.assert_array_equal(sample.labels, LABELS[rows])
        np.testing.assert_array_equal(sample_counts, counts[None, rows])
        assert sample.codes.flags.c_contiguous
        if weights is None:
            assert sample.weights is None
        else:
            np.testing.assert_array_equal(sample.weights, weights[rows])


def test_without_a_sampler_each_row_counts_once():
    part = Part(CODES, LABELS, None)
    assert part.sample([KEY])[1].tolist() == [[1] * N_ROWS]
    assert part._replace(copies_rows=True).sample([KEY])[0].n_rows == N_ROWS
