"""The rows that trees grow from: all rows without a sampler, and copies of sampled rows."""

import numpy as np
import pytest

from aucforest.fitting import parts
from aucforest.fitting.bootstrap import BLOCK_ROWS, BootstrapSampler
from aucforest.fitting.parts import Part


def test_without_a_sampler_each_row_counts_once():
    part = Part(np.zeros((3, 9), dtype=np.uint8), np.arange(9, dtype=np.uint16) % 2, None)
    shared, copied = part.sample([7, 8]), part._replace(copies_rows=True).sample([7, 8])
    assert shared.counts.tolist() == copied.counts.tolist() == [1] * 18
    assert shared.starts.tolist() == copied.starts.tolist() == [0, 9, 18]
    assert (shared.part.n_rows, copied.part.n_rows) == (9, 18)
    assert (shared.first_rows.tolist(), copied.first_rows.tolist()) == ([0, 0], [0, 9])


@pytest.mark.parametrize("mapped_bytes", [1000, 3 * BLOCK_ROWS, 10**6])
def test_copies_are_the_same_if_mapped_codes_are_released_after_each_part(monkeypatch, mapped_bytes):
    monkeypatch.setattr(parts, "MAPPED_BYTES", mapped_bytes)
    n_rows, released = 2 * BLOCK_ROWS + 77, []
    codes = np.random.default_rng(0).integers(0, 256, (3, n_rows)).astype(np.uint8)
    sampler = BootstrapSampler.for_rows(n_rows, n_rows // 10)
    part = Part(codes, np.arange(n_rows, dtype=np.uint16) % 2, None, sampler, copies_rows=True)
    copied, counts, starts = part._replace(release=lambda: released.append(1)).sample([5, 6])
    for key, start, stop in zip((5, 6), starts[:-1], starts[1:]):
        rows = np.flatnonzero(sampler.counts(key))
        np.testing.assert_array_equal(copied.codes[:, start:stop], codes[:, rows])
        np.testing.assert_array_equal(copied.labels[start:stop], part.labels[rows])
        np.testing.assert_array_equal(counts[start:stop], sampler.counts(key)[rows])
    assert stop == copied.n_rows == len(counts)
    assert len(released) == 2 * -(-n_rows // (mapped_bytes // 3))
