"""More than two classes: fixed-point fractions, rows sorted or counted, classes absent from a node."""

import numpy as np
import pytest

from aucforest.tree.histogram import SORT_SAMPLES, class_shift
from tests.tree.growing import Growth, canonical, grow
from tests.tree.oracle import check_tree, random_data

CRITERIA = ["auc", "gini", "entropy", "hellinger"]


def test_class_shift_makes_room_for_all_classes():
    assert [int(class_shift(n)) for n in (1, 2, 3, 4, 5, 8, 9, 256, 257)] == [0, 1, 2, 2, 3, 3, 4, 8, 9]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_rows", [3, SORT_SAMPLES - 1, SORT_SAMPLES, SORT_SAMPLES + 1, 150])
def test_nodes_of_every_size(criterion, n_rows):
    """Small ones are sorted, large ones counted, and both with few codes and with many."""
    for seed in range(6):
        X, labels = random_data(seed, 3, n_rows=n_rows, n_values=100 if seed % 2 else 3)
        labels[:3] = [0, 1, 2]
        check_tree(X, labels, Growth(criterion, max_depth=2, key=seed))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_absent_classes_change_nothing(criterion):
    for seed in range(4):
        X, labels = random_data(seed, 3, n_rows=90)
        plain = canonical(grow(X, labels, criterion=criterion, key=seed))
        spread = canonical(grow(X, labels * 3 + 1, n_classes=9, criterion=criterion, key=seed))
        assert [(*n[:5], *n[6:14:3]) for n in spread] == plain


def test_two_of_many_classes_are_cut_as_two():
    X, labels = random_data(2, 2, n_rows=90)
    plain = canonical(grow(X, labels))
    assert [(*n[:5], n[7], n[9]) for n in canonical(grow(X, labels * 2 + 2, n_classes=6))] == plain


@pytest.mark.parametrize("n_classes", [20, 120])
def test_scores_of_many_classes(n_classes):
    rng = np.random.default_rng(n_classes)
    labels = np.repeat(np.arange(n_classes), 2)
    X = np.column_stack((labels // 5 + rng.integers(0, 3, len(labels)), rng.integers(0, 9, len(labels)))).astype(float)
    for criterion in ("auc", "gini"):
        check_tree(X, labels, Growth(criterion, max_depth=1))


@pytest.mark.parametrize("criterion", ["auc", "hellinger"])
def test_weights_of_a_class_cancel(criterion):
    """Up to the last bit of a gain, and where such a bit decides between two cuts."""
    for seed in range(4):
        X, labels = random_data(seed, 3, n_rows=90)
        X[:, 2] = np.random.default_rng(seed).normal(size=90)
        plain = grow(X, labels, criterion=criterion, key=seed, max_depth=1).tree
        weights = np.array([1, 8, 64])[labels]
        weighted = grow(X, labels, criterion=criterion, key=seed, weights=weights, max_depth=1).tree
        assert weighted.gain == pytest.approx(plain.gain, abs=1e-14)
        assert np.array_equal(weighted.threshold, plain.threshold)


def test_a_class_that_is_told_apart_by_few_rows_counts_as_much_as_a_large_one():
    # Feature 0 isolates a class of 2 rows in 1002, feature 1 shifts the two large ones: AUC sees the pairs, Gini rows.
    labels = np.repeat([0, 1, 2], [500, 500, 2])
    shifted = np.concatenate((np.arange(500) < 280, np.arange(500) < 220, [True, False]))
    X = np.column_stack((labels == 2, shifted)).astype(float)
    assert grow(X, labels, max_depth=1).tree.feature[0] == 0
    assert grow(X, labels, max_depth=1, criterion="gini").tree.feature[0] == 1
