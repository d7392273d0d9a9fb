"""Weights of rows by their classes are those of scikit-learn."""

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from aucforest.fitting.spec import weights_by_class

Y = np.random.default_rng(0).integers(0, 3, 101)


def test_class_weights_of_rows():
    classes = np.arange(3)
    assert weights_by_class(None, classes, Y, None) is None
    assert weights_by_class("balanced_subsample", classes, Y, None) is None
    by_class = weights_by_class("balanced", classes, Y, None)
    np.testing.assert_array_equal(by_class[Y], compute_sample_weight("balanced", Y))
    weights = np.linspace(1, 3, 101)
    shares = np.bincount(Y, weights * weights_by_class("balanced", classes, Y, weights)[Y])
    np.testing.assert_allclose(shares, weights.sum() / 3)
    words = np.array(["a", "b", "c"])
    by_class = weights_by_class({"a": 1, "b": 2, "c": 5}, words, Y, None)
    np.testing.assert_array_equal(by_class, [1, 2, 5])


def test_a_class_without_rows_has_no_part_in_balance():
    labels = Y[Y != 1]
    by_class = weights_by_class("balanced", np.arange(3), labels, None)
    np.testing.assert_array_equal(by_class[labels], compute_sample_weight("balanced", labels))
