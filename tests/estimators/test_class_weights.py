"""Weights of rows by their classes are those of scikit-learn."""

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from aucforest.estimators._class_weights import class_weight_factors

Y = np.random.default_rng(0).integers(0, 3, 101)


def test_class_weights_of_rows():
    classes = np.arange(3)
    assert class_weight_factors(None, classes, Y, None) is None
    assert class_weight_factors("balanced_subsample", classes, Y, None) is None
    factors = class_weight_factors("balanced", classes, Y, None)
    np.testing.assert_array_equal(factors, compute_sample_weight("balanced", Y))
    weights = np.linspace(1, 3, 101)
    shares = np.bincount(Y, weights * class_weight_factors("balanced", classes, Y, weights))
    np.testing.assert_allclose(shares, weights.sum() / 3)
    words = np.array(["a", "b", "c"])
    factors = class_weight_factors({"a": 1, "b": 2, "c": 5}, words, Y, None)
    np.testing.assert_array_equal(factors, np.array([1, 2, 5])[Y])


def test_a_class_without_rows_has_no_part_in_balance():
    labels = Y[Y != 1]
    factors = class_weight_factors("balanced", np.arange(3), labels, None)
    np.testing.assert_array_equal(factors, compute_sample_weight("balanced", labels))
