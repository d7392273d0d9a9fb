"""Splits of categorical features against all subsets, and against the order along the principal component."""

import numpy as np
import pytest

from aucforest.tree.binning import bin_matrix
from tests.reference.subsets import best_gain, component_scores, ordered_gain
from tests.tree.growing import NAMES, Growth, grow
from tests.tree.oracle import check_rows_land, check_tree, random_data, weighings

ROUNDING = 1e-9


def one_column(seed, n_classes=2, n_categories=8, n_rows=120, missing=0.15):
    """Draw one categorical column with classes that lean on it, and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_categories, n_rows)
    lean = rng.normal(0, 1.5, (n_categories, n_classes))
    labels = np.argmax(lean[codes] + rng.gumbel(size=(n_rows, n_classes)), axis=1)
    labels[:n_classes] = np.arange(n_classes)
    X = codes.astype(float)[:, None]
    X[rng.random(X.shape) < missing] = np.nan
    weights = rng.integers(1, 6, n_rows)
    return X, labels, weights


def as_codes(X):
    return [None if np.isnan(value) else int(value) for value in X[:, 0]]


def root_split(X, labels, weights, **how):
    """Grow one split by a set."""
    return grow(X, labels, weights=weights, by_set=(0,), max_depth=1, n_classes=int(labels.max()) + 1, **how).tree


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_categories", [2, 3, 5, 8])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_of_two_classes_the_split_is_the_best_of_all_subsets(criterion, n_categories, missing):
    for seed in range(4):
        X, labels, weights = one_column(seed, n_categories=n_categories, missing=missing)
        expected = best_gain(as_codes(X), labels.tolist(), weights.tolist(), 2, criterion)
        tree = root_split(X, labels, weights, criterion=criterion)
        assert tree.gain[0] == pytest.approx(float(expected), abs=ROUNDING)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"max_features": 2, "max_leaf_nodes": 9},
        {"min_samples_leaf": 5, "min_weight_leaf": 8},
        {"signs": (1, 0, -1, -1)},
    ],
)
def test_of_two_classes_the_order_is_that_of_the_second_frequency(criterion, how):
    """With bounds on the children some other subset may be better: the order alone is promised."""
    for seed in range(4):
        X, labels = random_data(seed, 2, n_rows=100, n_values=30)
        check_tree(2 * X + 2, labels, Growth(criterion, key=seed, by_set=(0, 2), **how), **weighings(seed, 100)[seed])


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [3, 6])
@pytest.mark.parametrize("n_rows", [16, 150])
def test_of_more_classes_the_order_is_that_of_the_principal_component(criterion, n_classes, n_rows):
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


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_bytes", [1, 2, 4])
@pytest.mark.parametrize("how", [{}, {"random": True}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 4}])
def test_rows_reach_the_leaves_they_were_counted_in(criterion, n_classes, n_bytes, how):
    """The sets tell of categories, whatever codes bins and local copies of branches gave them."""
    X, labels = random_data(2, n_classes, n_rows=300, n_values=60)
    X = 2 * X + 2
    X[:, 0] = np.where(X[:, 0] > 4, X[:, 0] + 100, X[:, 0])
    grown = grow(X, labels, criterion=criterion, by_set=(0, 2), n_bytes=n_bytes, n_classes=n_classes, **how)
    check_rows_land(grown, X, labels)
    tree = grown.tree
    assert np.array_equal(np.flatnonzero(np.isin(tree.feature, (0, 2))), tree.set_nodes)
    assert len(tree.set_nodes) > 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sets_are_drawn_as_the_reference_draws_them(n_classes):
    for seed in range(4):
        X, labels = random_data(seed, n_classes, n_rows=100, n_values=30)
        X = 3 * (2 * X + 2)
        how = Growth(key=seed, random=True, by_set=(0, 2), max_features=3)
        check_tree(X, labels, how, **weighings(seed, 100)[seed], n_classes=n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_255_codes(n_classes):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(255), 8)
    labels = rng.integers(0, n_classes, 255)[codes]
    grown = grow(codes.astype(float)[:, None], labels, by_set=(0,))
    assert grown.tree.n_leaves == n_classes
    check_rows_land(grown, codes[:, None], labels)


def test_max_bins_leaves_categories_alone():
    X = np.repeat(np.arange(40.0), 5)[:, None]
    labels = (X[:, 0].astype(int) * 7 % 40 < 20).astype(int)
    assert grow(X, labels, by_set=(0,)).tree.n_nodes == 3
    binned = bin_matrix(np.column_stack([X, X]), max_bins=4, n_codes=np.array([40, 0]))
    assert binned.values.n_bins.tolist() == [40, 4]
