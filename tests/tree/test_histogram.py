"""Histograms of nodes of all sizes, tested by the trees that are grown with them."""

import pytest

from aucforest.tree.histogram import JOINT_SAMPLES, SORT_SAMPLES, HistogramBuffers
from tests.tree.growing import Growth
from tests.tree.oracle import check_trees

SIZES = [5, SORT_SAMPLES, SORT_SAMPLES + 1, JOINT_SAMPLES - 1, JOINT_SAMPLES, JOINT_SAMPLES + 1, 150]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("n_values", [3, 70, 600])
@pytest.mark.parametrize("how", [{}, {"min_samples_leaf": 3}, {"random": True}])
def test_nodes_of_every_size(n_classes, n_rows, n_values, how):
    """The codes of small nodes are sorted, and the codes of larger nodes are marked or counted."""
    check_trees(Growth(**how), n_classes, n_rows=n_rows, n_values=n_values)


@pytest.mark.parametrize(("n_codes", "n_classes"), [(2**31 + 1, 2), (2**25, 129)])
def test_too_many_cells_are_refused(n_codes, n_classes):
    with pytest.raises(ValueError, match=f"^{n_codes} bins with {n_classes} classes are too many"):
        HistogramBuffers.of(n_codes, n_classes)
