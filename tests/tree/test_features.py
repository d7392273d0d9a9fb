"""The thresholds that the random splitter samples."""

import numpy as np
import pytest

from aucforest._compile import bare_kernel
from aucforest.tree.splitter import Split, threshold_of
from tests.tree.growing import bin_for, make_columns


@bare_kernel
def find_threshold(split, columns):
    """Find the threshold of a random split."""
    return threshold_of(split, columns, True)


@pytest.mark.parametrize("sampled", [0.0, 1.0, 4.2, 6.9, 9.0])
def test_values_outside_all_bins_go_to_the_side_of_their_codes(sampled):
    """If bins are computed from a sample, the edges midway between bins determine the codes of the other rows."""
    columns = make_columns(bin_for(np.array([0.0, 1.0, 4.0, 8.0, 9.0])[:, None]))._replace(is_sampled=True)
    arrays = np.zeros(2, dtype=np.int64), *np.zeros((2, 4), dtype=np.uint64)
    for code, next_code, low, high in ((1, 2, 2.5, 2.5), (1, 3, 2.5, 6.0), (0, 4, 0.5, 8.5)):
        split = Split(0, code, next_code, False, sampled, 0.1, *arrays)
        assert find_threshold(split, columns) == min(max(sampled, low), high)
