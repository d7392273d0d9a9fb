"""Parameters and class weights are resolved as in scikit-learn; combinations that are refused."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight

from aucforest.fitting.spec import FitSpec, resolve_max_features, resolve_params, weights_by_class
from aucforest.fitting.target import Target
from tests.fitting.tables import make_forest

Y = np.random.default_rng(0).integers(0, 3, 101)


def resolve(**params):
    return resolve_params(make_forest(**{"criterion": "auc", **params}).get_params(), 101, 6)


@pytest.mark.parametrize("n_features", [1, 9, 100])
@pytest.mark.parametrize("max_features", [None, "sqrt", "log2", 1, 2, 1.0, 0.5, 0.34, 1e-9])
def test_max_features_as_in_scikit_learn(max_features, n_features):
    peer = DecisionTreeClassifier(max_features=max_features).fit(np.zeros((2, n_features)), [0, 1])
    assert resolve_max_features(max_features, n_features) == min(peer.max_features_, n_features)


@pytest.mark.parametrize(("given", "expected"), [
    ({"min_samples_split": 7}, {"min_samples_split": 7}), ({"min_samples_split": 0.1}, {"min_samples_split": 11}),
    ({"min_samples_split": 1e-9}, {"min_samples_split": 2}), ({"min_samples_leaf": 7}, {"min_samples_leaf": 7}),
    ({"min_samples_leaf": 0.1}, {"min_samples_leaf": 11}),
    ({"min_samples_split": 10**30}, {"min_samples_split": 102}),
    ({"min_samples_leaf": 10**30}, {"min_samples_leaf": 102}), ({"max_depth": 3}, {"max_depth": 3}),
    ({"max_depth": None}, {"max_depth": 2**31 - 1}), ({"max_depth": 10**12}, {"max_depth": 2**31 - 1}),
    ({"min_samples_leaf": 7, "min_samples_split": 9}, {"min_samples_split": 14}),
])  # fmt: skip
def test_parameters_become_numbers(given, expected):
    assert {name: getattr(resolve(**given), name) for name in expected} == expected


def test_balanced_weights_with_a_class_without_rows():
    labels = Y[Y != 1]
    by_class = weights_by_class("balanced", np.arange(3), labels, None)
    np.testing.assert_array_equal(by_class[labels], compute_sample_weight("balanced", labels))


@pytest.mark.parametrize("criterion", ["auto", ["gini", "hellinger"]])
def test_min_gain_needs_a_single_criterion(criterion):
    target = Target(np.arange(2), np.arange(10, dtype=np.uint16) % 2, None)

    def resolve_fit(**params):
        return FitSpec.resolve(make_forest(**params).get_params(), target, None, 3, 0)

    what = r"min_gain=0.1 is in units of one criterion, but .* mixes .*gini.*hellinger: "
    with pytest.raises(ValueError, match=what + "name one criterion, or set min_samples_leaf instead$"):
        resolve_fit(criterion=criterion, min_gain=0.1)
    assert resolve_fit(criterion=criterion).params.min_gain == 0.0
    assert resolve_fit(criterion="gini", splitter=["best", "random"], min_gain=0.1).params.min_gain == 0.1
