"""Rows of a tree where there is no sampler; copies of sampled rows are in tests of forests out of core."""

import numpy as np

from aucforest.fitting.parts import Part


def test_without_a_sampler_each_row_counts_once():
    part = Part(np.zeros((3, 9), dtype=np.uint8), np.arange(9, dtype=np.uint16) % 2, None)
    assert part.sample([7])[1].tolist() == [[1] * 9]
    assert part._replace(copies_rows=True).sample([7])[0].n_rows == 9
