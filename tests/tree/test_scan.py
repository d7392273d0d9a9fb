"""Admissible splits: minimum sizes of children, and monotonic constraints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.tree import leaf_of
from tests.tree.growing import NAMES, Growth, grow
from tests.tree.oracle import check_trees, datasets


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("min_samples_leaf", "min_weight_leaf"), [(4, 0), (1, 9), (3, 8), (20, 0), (1, 200)])
def test_children_have_minimum_sizes(criterion, n_classes, min_samples_leaf, min_weight_leaf):
    how = Growth(criterion, min_samples_leaf=min_samples_leaf, min_weight_leaf=min_weight_leaf)
    check_trees(how, n_classes, missing=0.3)


@pytest.mark.parametrize("criterion", NAMES)
@pytest.mark.parametrize("signs", [(1, 0, 0, -1), (-1, -1, 1, 1), (1, 1, 1, 1), (0, 0, 0, 0)])
@pytest.mark.parametrize("how", [{}, {"random": True, "min_samples_leaf": 2}, {"max_leaf_nodes": 9}])
def test_every_node_has_the_best_allowed_split(criterion, signs, how):
    check_trees(Growth(criterion, max_features=3, signs=signs, **how), 2, n_rows=100, n_values=12)


def assert_monotone(tree, X, signs):
    """Assert that predictions are monotone if a constrained feature of a row takes values between all thresholds."""
    for feature, sign in enumerate(signs):
        grid = [-np.inf, *np.sort(tree.threshold[tree.feature == feature]), np.inf]
        for row in X[:20] if sign != 0 else []:
            moved = np.repeat(row[None], len(grid), axis=0)
            moved[:, feature] = grid
            frequencies = tree.prediction[[leaf_of(tree, other) for other in moved], 1]
            assert np.all(sign * np.diff(frequencies) >= 0)


@given(datasets(most_classes=2), st.sampled_from(NAMES), st.integers(0, 2**64 - 1), st.data())
def test_frequencies_are_monotone_to_the_last_bit(data, criterion, key, more):
    X, labels, counts, _ = data
    counts = np.maximum(counts, 1)
    signs = tuple(more.draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=X.shape[1], max_size=X.shape[1])))
    kind = {"weights": np.rint(counts * 1e15 / 3)} if more.draw(st.booleans()) else {"counts": counts}
    how = {
        "max_bins": more.draw(st.sampled_from([3, 255])), "max_features": more.draw(st.integers(1, X.shape[1])),
        "random": more.draw(st.booleans()), "max_leaf_nodes": more.draw(st.sampled_from([None, 2, 5, 100])),
        "min_samples_leaf": more.draw(st.integers(1, 3)),
    }  # fmt: skip
    grown = grow(X, labels, criterion=criterion, key=key, signs=signs, n_classes=2, **kind, **how)
    assert_monotone(grown.tree, X, signs)
