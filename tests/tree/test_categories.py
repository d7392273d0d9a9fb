"""Splits of categorical features: the best of all subsets, or in the order along the principal component."""

import numpy as np
import pytest

from aucforest.tree.binning import bin_matrix
from tests.reference.subsets import best_gain, component_scores, ordered_gain
from tests.tree.growing import NAMES, Growth, grow
from tests.tree.oracle import check_rows_by_value, check_trees

ROUNDING = 1e-9


def one_column(seed, n_classes=2, n_categories=8, n_rows=120, missing=0.15):
    """Return a random categorical column, labels that depend on it, and weights."""
    rng = np.random.default_rng(seed)
    codes, logits = rng.integers(0, n_categories, n_rows), rng.normal(0, 1.5, (n_categories, n_classes))
    labels = np.argmax(logits[codes] + rng.gumbel(size=(n_rows, n_classes)), axis=1)
    labels[:n_classes] = np.arange(n_classes)
    X = codes.astype(float)[:, None]
    X[rng.random(X.shape) < missing] = np.nan
    return X, labels, rng.integers(1, 6, n_rows)


def as_codes(X):
    return [None if np.isnan(value) else int(value) for value in X[:, 0]]


def root_split(X, labels, weights, **how):
    return grow(X, labels, weights=weights, by_set=(0,), max_depth=1, n_classes=int(labels.max()) + 1, **how).tree


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_categories", [2, 3, 5, 8])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_split_of_two_classes_is_the_best_of_all_subsets(criterion, n_categories, missing):
    for seed in range(4):
        X, labels, weights = one_column(seed, n_categories=n_categories, missing=missing)
        expected = best_gain(as_codes(X), labels.tolist(), weights.tolist(), 2, criterion)
        tree = root_split(X, labels, weights, criterion=criterion)
        assert tree.gain[0] == pytest.approx(float(expected), abs=ROUNDING)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("how", [
    {"max_features": 2, "max_leaf_nodes": 9}, {"min_samples_leaf": 5, "min_weight_leaf": 8}, {"signs": (1, 0, -1, -1)}
])  # fmt: skip
def test_bins_of_two_classes_are_sorted_by_the_second_frequency(criterion, how):
    """If leaves have a minimum size, another subset may be better, but only subsets in this order are searched."""
    check_trees(Growth(criterion, by_set=(0, 2), **how), 2, n_rows=100, n_values=30)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("n_rows", [16, 150])
def test_bins_of_more_classes_are_sorted_along_the_principal_component(criterion, n_classes, n_rows):
    n_checked = 0
    for seed in range(40):
        X, labels, weights = one_column(seed, n_classes, 7, n_rows)
        data = (as_codes(X), labels, weights, n_classes)
        scores, ratio = component_scores(*data, alike=criterion in ("auc", "hellinger"))
        if ratio > 0.6 or np.diff(sorted(scores.values())).min() < 1e-3:
            continue
        n_checked += 1
        mirrored = {code: -score for code, score in scores.items()}
        gains = [ordered_gain(data[0], labels, weights.tolist(), n_classes, criterion, s) for s in (scores, mirrored)]
        tree = root_split(X, labels, weights, criterion=criterion)
        assert tree.gain[0] == pytest.approx(float(max(gains)), abs=ROUNDING)
    assert n_checked >= 2


@pytest.mark.parametrize("n_classes", [2, 4])
def test_random_sets_are_those_of_the_reference(n_classes):
    check_trees(Growth(random=True, by_set=(0, 2), max_features=3), n_classes, n_rows=100, n_values=30)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_bytes", [1, 2, 4])
def test_all_255_codes(n_classes, n_bytes):
    rng = np.random.default_rng(4)
    X = np.column_stack((np.repeat(np.arange(255.0), 8), rng.integers(0, 9, 2040)))
    labels = rng.integers(0, n_classes, 255)[X[:, 0].astype(int)]
    labels[::9] = rng.integers(0, n_classes, len(labels[::9]))
    check_rows_by_value(grow(X, labels, by_set=(0,), n_bytes=n_bytes), X, labels)


def test_max_bins_does_not_apply_to_categories():
    X = np.repeat(np.arange(40.0), 5)[:, None]
    labels = (X[:, 0].astype(int) * 7 % 40 < 20).astype(int)
    assert grow(X, labels, by_set=(0,)).tree.n_nodes == 3
    binned = bin_matrix(np.column_stack([X, X]), max_bins=4, n_codes=np.array([40, 0]))
    assert binned.values.n_bins.tolist() == [40, 4]
