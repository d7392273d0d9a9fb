"""A user's own criterion: as good as the built-in one that says the same, and safe whatever it returns."""

import math
from itertools import product

import numba
import numpy as np
import pytest

from aucforest._compile import compile_scorer, is_compiled
from tests.tree.growing import Growth, grow
from tests.tree.oracle import check_tree, random_data, weighings


@numba.njit
def own_gini(left, node):
    """The decrease of the Gini impurity."""
    weight, left_weight = node.sum(), left.sum()
    right_weight = weight - left_weight
    decrease = 0.0
    for k in range(len(left)):
        right = node[k] - left[k]
        decrease += left[k] ** 2 / left_weight + right**2 / right_weight - node[k] ** 2 / weight
    return decrease / weight


@numba.njit
def own_auc(left, node):
    """The AUC of a split, less 1/2, as a mean over pairs of classes."""
    total, n_pairs = 0.0, 0
    for i in range(len(node)):
        for j in range(i):
            if node[i] > 0 and node[j] > 0:
                total += 0.5 * abs(left[i] / node[i] - left[j] / node[j])
                n_pairs += 1
    return total / n_pairs


OWN = {"gini": own_gini, "auc": own_auc}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("how", [{}, {"random": True}, {"min_samples_leaf": 3, "min_weight_leaf": 5}])
def test_every_node_holds_the_best_split(name, n_classes, how):
    for seed in range(3):
        X, labels = random_data(seed, n_classes, n_rows=100, n_values=90)
        growth = Growth(OWN[name], max_features=3, key=seed, **how)
        check_tree(X, labels, growth, n_classes=n_classes, **weighings(seed, 100)[1])


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_tree_is_that_of_the_built_in_criterion(name, n_classes):
    """Values are all different, so nothing ties but what parts the same samples."""
    rng = np.random.default_rng(n_classes)
    X, labels = rng.normal(size=(80, 4)), rng.integers(0, n_classes, 80)
    weights = np.rint(rng.uniform(1, 2, 80) * 2**30)
    own, built_in = (grow(X, labels, weights=weights, criterion=c, max_depth=2).tree for c in (OWN[name], name))
    assert np.array_equal(own.threshold, built_in.threshold)
    assert own.gain == pytest.approx(built_in.gain, abs=1e-14)


def test_more_splits_than_are_scored_at_once():
    X, labels = random_data(0, 2, n_rows=600, n_values=250, missing=0.05)
    check_tree(X, labels, Growth(own_auc, max_depth=3))
    labels[:50] = 2
    check_tree(X, labels, Growth(own_auc, max_depth=3))


def test_monotonic_constraints_hold():
    for seed in range(3):
        X, labels = random_data(seed, 2, n_rows=100, n_values=30)
        check_tree(X, labels, Growth(own_gini, key=seed, signs=(1, -1, 0, 1)))


def test_totals_stand_in_the_order_of_classes():
    @numba.njit
    def of_the_last_class(left, node):
        return left[3] / node[3] if node[3] > 0 and left[:3].sum() == 0 else 0.0

    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    tree = grow(X, np.array([3, 3, 1, 0, 3]), criterion=of_the_last_class).tree
    assert (tree.threshold[0], tree.gain[0], tree.n_nodes) == (1.5, pytest.approx(2 / 3), 3)


@pytest.mark.parametrize("score", [0.0, -1.0, math.nan, math.inf])
def test_what_is_not_finite_and_positive_is_no_split(score):
    criterion = numba.njit(lambda left, node: score)
    for n_classes, random in product((2, 3), (False, True)):
        X, labels = random_data(0, n_classes)
        assert grow(X, labels, criterion=criterion, random=random).tree.n_nodes == 1


def test_the_first_of_equal_splits_wins():
    tree = grow(np.arange(9.0)[:, None], np.arange(9) % 2, criterion=numba.njit(lambda left, node: 1)).tree
    assert tree.threshold[0] == 0.5
    assert tree.gain[0] == 1.0


def test_both_sides_of_a_split_hold_something():
    @numba.njit
    def one_if_not_empty(left, node):
        return 1.0 if 0 < left.sum() < node.sum() else 2.0

    for n_classes in (2, 3):
        X, labels = random_data(1, n_classes, n_rows=200, n_values=200, missing=0.3)
        tree = grow(X, labels, criterion=one_if_not_empty).tree
        assert set(tree.gain[~tree.is_leaf]) == {1.0}


@pytest.mark.parametrize(
    "function",
    [
        lambda left, node: None,
        lambda left, node: 1j,
        lambda left, node: "much",
        lambda left, node: left,
        lambda left, node: left.nonsense,
        lambda left: 1.0,
    ],
)
def test_functions_that_do_not_score(function):
    with pytest.raises(
        ValueError, match=r"^criterion: <lambda> does not compile to a function of two float64 arrays th"
    ):
        compile_scorer(numba.njit(function))


def test_what_is_compiled():
    assert is_compiled(own_gini)
    assert not is_compiled(own_gini.py_func)
    assert compile_scorer(own_gini) is compile_scorer(own_gini)
