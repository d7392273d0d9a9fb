"""A user-defined criterion finds the same splits as the built-in one, and is safe whatever it returns."""

import math
from itertools import product

import numba
import numpy as np
import pytest

from tests.estimators.data import own_auc
from tests.tree.growing import Growth, grow
from tests.tree.oracle import check_tree, random_data, weighings


@numba.njit
def custom_gini(left, node):
    weight, left_weight = node.sum(), left.sum()
    right_weight, decrease = weight - left_weight, 0.0
    for k in range(len(left)):
        right = node[k] - left[k]
        decrease += left[k] ** 2 / left_weight + right**2 / right_weight - node[k] ** 2 / weight
    return decrease / weight


CUSTOM = {"gini": custom_gini, "auc": own_auc}
HOWS = [{}, {"random": True}, {"min_samples_leaf": 3, "min_weight_leaf": 5}]


@pytest.mark.parametrize("name", CUSTOM)
@pytest.mark.parametrize(("n_classes", "how"), [*product((2, 3, 6), HOWS), (2, {"signs": (1, -1, 0, 1)})])
def test_every_node_has_the_best_split_by_a_custom_criterion(name, n_classes, how):
    for seed in range(3):
        X, labels = random_data(seed, n_classes, n_rows=100, n_values=90)
        growth = Growth(CUSTOM[name], max_features=3, key=seed, **how)
        check_tree(X, labels, growth, n_classes=n_classes, **weighings(seed, 100)[1])


def test_more_splits_than_are_scored_at_once():
    X, labels = random_data(0, 2, n_rows=600, n_values=250, missing=0.05)
    check_tree(X, labels, Growth(own_auc, max_depth=3))
    labels[:50] = 2
    check_tree(X, labels, Growth(own_auc, max_depth=3))


def test_totals_are_in_the_order_of_classes():
    @numba.njit
    def of_the_last_class(left, node):
        return left[3] / node[3] if node[3] > 0 and left[:3].sum() == 0 else 0.0

    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    tree = grow(X, np.array([3, 3, 1, 0, 3]), criterion=of_the_last_class).tree
    assert (tree.threshold[0], tree.gain[0], tree.n_nodes) == (1.5, pytest.approx(2 / 3), 3)


@pytest.mark.parametrize("score", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_are_not_finite_and_positive_are_no_splits(score, n_classes):
    criterion, data = numba.njit(lambda left, node: score), random_data(0, n_classes)
    assert all(grow(*data, criterion=criterion, random=random).tree.n_nodes == 1 for random in (False, True))


def test_a_custom_criterion_never_sees_an_empty_side():
    @numba.njit
    def one_if_not_empty(left, node):
        return 1.0 if 0 < left.sum() < node.sum() else 2.0

    for n_classes in (2, 3):
        X, labels = random_data(1, n_classes, n_rows=200, n_values=200, missing=0.3)
        tree = grow(X, labels, criterion=one_if_not_empty).tree
        assert set(tree.gain[~tree.is_leaf]) == {1.0}
