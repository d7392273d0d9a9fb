"""Ordered rates against their definition, and what a sample must not learn from itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.tree.ordered_rates import ordered_rates, sample_order
from tests.reference import target_rates as reference


def make_samples(seed, n=60, n_cells=7, n_classes=2):
    """Return cells, of which some are missing, and labels."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, n_cells, n), rng.integers(0, n_classes, n).astype(np.uint16)


@pytest.mark.parametrize("n_groups", [None, 1, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_rates_by_definition(n_groups, weighted):
    cells, labels = make_samples(3, n_classes=3)
    rng, n = np.random.default_rng(1), len(labels)
    groups = None if n_groups is None else rng.integers(0, n_groups, n).astype(np.int32)
    weights = rng.uniform(0.5, 2.0, n) if weighted else np.empty(0)
    classes, towards = np.array([0, 2]), rng.uniform(0.1, 0.5, (2, n))
    order = sample_order(5, n, groups)
    found = ordered_rates(order, cells, 7, labels, weights, classes, 2.0, towards)
    known = np.arange(n) if groups is None else groups
    by_hand = weights if weighted else np.ones(n)
    expected = reference.ordered_rates(
        order.samples.tolist(), known, cells, labels, by_hand, classes, 2.0, towards
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    if n_groups == 1:
        np.testing.assert_array_equal(found, towards)


@given(st.integers(0, 2**63), st.integers(1, 80), st.none() | st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_an_order_is_a_permutation_with_groups_together(key, n, n_groups):
    groups = None if n_groups is None else np.random.default_rng(n).integers(0, n_groups, n).astype(np.int32)
    order = sample_order(key, n, groups)
    assert sorted(order.samples.tolist()) == list(range(n))
    if groups is not None:
        starts = [0, *order.ends[:-1].tolist()]
        parts = [set(groups[order.samples[start:end]].tolist()) for start, end in zip(starts, order.ends.tolist())]
        assert all(len(part) == 1 for part in parts)
        assert len(parts) == len(np.unique(groups))


def test_orders_depend_on_the_key():
    orders = [sample_order(key, 50, None).samples.tolist() for key in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != list(range(50))


def test_rates_do_not_depend_on_the_own_label():
    cells, labels = make_samples(8)
    order, towards = sample_order(1, len(labels), None), np.full((1, len(labels)), 0.3)

    def rates(labels):
        return ordered_rates(order, cells, 7, labels, np.empty(0), np.array([1]), 1.0, towards)[0]

    for i in range(len(labels)):
        other = labels.copy()
        other[i] = 1 - other[i]
        assert rates(other)[i] == rates(labels)[i]
