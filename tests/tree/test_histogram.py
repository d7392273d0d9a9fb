"""Histograms: however they are counted, what numpy says; and the lists of bits behind them."""

import numpy as np
import pytest

from aucforest.tree.histogram import JOINT_SAMPLES, SORT_SAMPLES, HistogramBuffers
from tests.tree.growing import Growth
from tests.tree.oracle import check_tree, random_data, weighings

SIZES = [5, SORT_SAMPLES, SORT_SAMPLES + 1, JOINT_SAMPLES - 1, JOINT_SAMPLES, JOINT_SAMPLES + 1, 150]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("n_values", [3, 70, 600])
@pytest.mark.parametrize("bound", [1, 3])
def test_nodes_of_every_size(n_classes, n_rows, n_values, bound):
    """Small ones are sorted, large ones counted, and both with few codes and with many, and weights of any size."""
    for seed, weighing in enumerate(weighings(n_rows, n_rows)):
        X, labels = random_data(seed, n_classes, n_rows=n_rows, n_values=n_values)
        labels[:n_classes] = np.arange(n_classes)
        how = Growth(min_samples_leaf=bound, key=seed, random=seed == 3)
        check_tree(X, labels, how, n_classes=n_classes, **weighing)


@pytest.mark.parametrize(("n_codes", "n_classes"), [(2**31 + 1, 2), (2**25, 129)])
def test_cells_that_32_bits_cannot_number(n_codes, n_classes):
    with pytest.raises(ValueError, match=f"^{n_codes} bins with {n_classes} classes are too many"):
        HistogramBuffers.of(n_codes, n_classes)
