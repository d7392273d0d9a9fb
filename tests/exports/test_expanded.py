"""Copies of nodes below sets of categories, and rounded thresholds; the tests of exports compare predictions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.exports.expanded import round_down, to_threshold_tree
from tests.exports.data import random_data, random_tree

N_CODES = {1: 9, 3: 255, 4: 3}


def make_tree(seed, n_splits=8):
    return random_data(seed, N_CODES, 1, n_splits)[0][0]


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


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_every_copy_can_be_reached(seed):
    nodes = to_threshold_tree(make_tree(seed, n_splits=5), N_CODES, 10**6)
    codes = {feature: [np.nan, *range(n)] for feature, n in N_CODES.items()}
    reached = {0}
    stack = [(0, codes)]
    while stack:
        node, codes = stack.pop()
        feature = int(nodes.feature[node])
        if feature < 0:
            continue
        for child, side in ((nodes.left[node], True), (nodes.right[node], False)):
            kept = codes
            if feature in codes:
                sides = {
                    c: bool(nodes.missing_left[node] if c != c else c <= nodes.threshold[node]) for c in codes[feature]
                }
                kept = {**codes, feature: [c for c in codes[feature] if sides[c] == side]}
                assert kept[feature]
            reached.add(int(child))
            stack.append((int(child), kept))
    assert reached == set(range(len(nodes.left)))


def test_weights_of_copies_are_divided_by_categories():
    """Codes 0 and 2 and missing values go left, with a third of the weight each; 1 and 3 go right, with half each."""
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 1, n_codes={0: 4}, n_features=1)
    tree.sets.flags.writeable = tree.missing_left.flags.writeable = True
    tree.sets[0] = [0b0101, 0, 0, 1 << 63]
    tree.missing_left[0] = True
    nodes = to_threshold_tree(tree, {0: 4}, 100)
    left, right = tree.weight[1], tree.weight[2]
    by_origin = [sorted(nodes.weight[nodes.origin == leaf]) for leaf in (1, 2)]
    np.testing.assert_allclose(by_origin[0], [left / 3, 2 * left / 3])
    np.testing.assert_allclose(by_origin[1], [right / 2, right / 2])
