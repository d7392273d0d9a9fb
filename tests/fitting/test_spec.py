"""Weights of rows by their classes are those of scikit-learn; what parameters cannot be combined."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from aucforest.fitting.spec import FitSpec, weights_by_class
from aucforest.fitting.target import Target
from tests.fitting.tables import make_forest

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


@pytest.mark.parametrize("criterion", ["auto", ["gini", "hellinger"]])
def test_one_least_gain_for_criteria_of_different_units(criterion):
    target = Target(np.arange(2), np.arange(10, dtype=np.uint16) % 2, None)

    def resolve(**params):
        return FitSpec.resolve(make_forest(**params).get_params(), target, None, 3, 0)

    what = r"min_gain=0.1 is in units of one criterion, but .* mixes .*gini.*hellinger: "
    with pytest.raises(ValueError, match=what + "name one criterion, or set min_samples_leaf instead$"):
        resolve(criterion=criterion, min_gain=0.1)
    assert resolve(criterion=criterion).params.min_gain == 0.0
    assert resolve(criterion="gini", splitter=["best", "random"], min_gain=0.1).params.min_gain == 0.1
