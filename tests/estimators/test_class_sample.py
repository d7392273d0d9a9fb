"""Samples of the rows of each class."""

import numpy as np

from aucforest.estimators._class_sample import class_factors, sample_classes


def test_factors_restore_the_class_frequencies():
    labels = np.repeat([0, 1, 3], [90, 10, 5])
    sample = sample_classes(labels, 4, 6, seed=[0])
    assert np.bincount(labels[sample]).tolist() == [6, 6, 0, 5]
    assert np.all(np.diff(sample) > 0)
    assert not np.array_equal(sample, sample_classes(labels, 4, 6, seed=[1]))
    factors = class_factors(labels, labels[sample])
    np.testing.assert_allclose(np.bincount(labels[sample], factors), [90, 10, 0, 5])
