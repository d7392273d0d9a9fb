"""Samples of the rows of each class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aucforest.estimators import _class_sample


@given(arrays(np.bool_, st.integers(0, 50)), st.integers(1, 9), st.data())
def test_places_by_rank(mask, at_a_time, data):
    wanted = data.draw(st.sets(st.integers(0, 49)).map(lambda ranks: [r for r in sorted(ranks) if r < mask.sum()]))
    ranks = np.array(wanted, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_class_sample, "_BLOCK_ROWS", at_a_time)
        np.testing.assert_array_equal(_class_sample._positions(mask, ranks), np.flatnonzero(mask)[ranks])


def test_factors_restore_the_class_frequencies():
    labels = np.repeat([0, 1, 3], [90, 10, 5])
    sample = _class_sample.sample_classes(labels, 4, 6, seed=[0])
    assert np.bincount(labels[sample]).tolist() == [6, 6, 0, 5]
    factors = _class_sample.class_factors(labels, labels[sample])
    np.testing.assert_allclose(np.bincount(labels[sample], factors), [90, 10, 0, 5])
