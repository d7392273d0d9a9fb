"""Copies of nodes below sets of categories, and rounded thresholds; the tests of exports compare predictions."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aucforest.exports.expanded import round_down, to_threshold_tree
from tests.exports.data import random_data, random_tree

N_CODES = {1: 9, 3: 255, 4: 3}
FLOATS = st.floats(allow_nan=False)
SPECIAL = [0.0, -0.0, 5e-324, -5e-324, 1e-45, -1e-46, 29.9, 0.1, 1e300, -1e300, np.inf, -np.inf, 3.4028235e38, 3.5e38]


@given(FLOATS | st.sampled_from(SPECIAL), st.floats(width=32) | st.sampled_from(np.float32(SPECIAL[:8]).tolist()))
def test_rounded_thresholds_split_float32_values_equally(threshold, value):
    (rounded,) = round_down(np.array([threshold]))
    with np.errstate(over="ignore", under="ignore"):
        assert np.float32(rounded) == rounded
        nearest, infinity = np.float32(threshold), np.float32(np.inf)
        values = np.array([value, nearest, np.nextafter(nearest, -infinity), np.nextafter(nearest, infinity)])
    np.testing.assert_array_equal(values.astype(np.float64) <= rounded, values.astype(np.float64) <= threshold)
    np.testing.assert_array_equal(values.astype(np.float32) <= np.float32(rounded), values <= np.float64(threshold))


@given(st.integers(0, 2**32))
def test_every_copy_can_be_reached(seed):
    ((tree,), _) = random_data(seed, N_CODES, 1, 5)
    nodes, reached = to_threshold_tree(tree, N_CODES, 10**6), []
    stack = [(0, {feature: np.array([np.nan, *range(n)]) for feature, n in N_CODES.items()})]
    while stack:
        node, codes = stack.pop()
        reached.append(node)
        feature = int(nodes.feature[node])
        known = codes.get(feature, np.array([]))
        is_left = np.where(np.isnan(known), nodes.missing_left[node], known <= nodes.threshold[node])
        for child, kept in ((nodes.left, known[is_left]), (nodes.right, known[~is_left])) if feature >= 0 else ():
            assert kept.size or feature not in N_CODES
            stack.append((int(child[node]), codes | {feature: kept}))
    assert sorted(reached) == [*range(len(nodes.left))]


def test_weights_of_copies_are_divided_by_categories():
    """Codes 0 and 2 and missing values go left, with a third of the weight each; 1 and 3 go right, with half each."""
    tree = random_tree(np.random.default_rng(0), 1, n_codes={0: 4}, n_features=1)
    sets = np.array([[0b0101, 0, 0, 1 << 63]], dtype=np.uint64)
    nodes = to_threshold_tree(replace(tree, sets=sets, missing_left=tree.left_child > 0), {0: 4}, 100)
    for leaf, shares in ((1, [1 / 3, 2 / 3]), (2, [1 / 2, 1 / 2])):
        np.testing.assert_allclose(sorted(nodes.weight[nodes.origin == leaf]), tree.weight[leaf] * np.array(shares))
