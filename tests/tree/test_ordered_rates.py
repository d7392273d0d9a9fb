"""Codes of ordered rates against their definition, and what a sample must not learn from itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucforest.tree.ordered_rates import (
    RateRule,
    SampleData,
    encode_rates,
    read_categories,
    sample_order,
    sort_by_category,
)
from tests.reference import target_rates as reference

N_CATEGORIES, N_PARTS = 7, 3


def make_rule(classes, rng):
    """Return a rule of one column alone and with another feature, whose last code has no part."""
    n_features = 2 * len(classes)
    edges = [np.sort(rng.uniform(0.0, 1.0, n_edges)) for n_edges in (40, 2, 0, 1)[:n_features]]
    return RateRule(
        classes=np.array(classes),
        prior=np.full(len(classes), 0.3),
        smoothing=np.array([2.0, 0.5]),
        code_rows=np.array([0, 1]),
        parts=np.array([[0, 0, 0, 0], [0, 1, 2, -1]]),
        edges=np.concatenate(edges),
        first_edge=np.cumsum([0, *map(len, edges)]),
        prior_codes=np.array([[np.searchsorted(of_feature, 0.3)] for of_feature in edges]),
    )


def make_samples(seed, n=70, n_classes=3):
    """Return categories, of which some are missing, codes of other features, and labels."""
    rng = np.random.default_rng(seed)
    categories, codes = rng.integers(-1, N_CATEGORIES, n).astype(np.int32), rng.integers(0, 4, (2, n)).astype(np.uint8)
    return categories, codes, rng.integers(0, n_classes, n).astype(np.uint16)


def encoded(rule, key, categories, codes, labels, groups=None, weights=None):
    """Return the codes of the ordered rates."""
    order = sample_order(key, len(labels), groups)
    found = np.empty((rule.n_features, len(labels)), dtype=np.uint8)
    by_category = sort_by_category(categories, N_CATEGORIES, order, labels)
    encode_rates(rule, SampleData.of(codes, groups, weights), by_category, found)
    return found


@pytest.mark.parametrize("n_groups", [None, 1, 12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [[1], [0, 2]])
@pytest.mark.parametrize("n", [70, 1100])  # up to 512 samples are encoded together
def test_codes_by_definition(n_groups, weighted, classes, n):
    rng, (categories, codes, labels) = np.random.default_rng(1), make_samples(3, n)
    groups = None if n_groups is None else rng.integers(0, n_groups, n)
    weights, rule = rng.uniform(0.5, 2.0, n) if weighted else None, make_rule(classes, rng)
    found = encoded(rule, 5, categories, codes, labels, groups, weights)
    order, by_hand = sample_order(5, n, groups).tolist(), np.ones(n) if weights is None else weights
    known, prior = np.arange(n) if groups is None else groups, np.full((len(classes), n), 0.3)
    alone = reference.ordered_rates(order, known, categories, labels, by_hand, classes, 2.0, prior)
    parts = rule.parts[1][codes[1]]
    cells = np.where((categories < 0) | (parts < 0), -1, categories * N_PARTS + parts)
    pairs = reference.ordered_rates(order, known, cells, labels, by_hand, classes, 0.5, alone)
    for feature, rates in enumerate([*alone, *pairs]):
        edges = rule.edges[rule.first_edge[feature] : rule.first_edge[feature + 1]]
        np.testing.assert_array_equal(found[feature], np.searchsorted(edges, rates))
    if n_groups == 1:
        assert all(len(np.unique(of_feature)) == 1 for of_feature in found)


@given(st.integers(0, 2**63), st.integers(1, 80), st.none() | st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_an_order_is_a_permutation_with_groups_together(key, n, n_groups):
    groups = None
    if n_groups is not None:
        groups = np.unique(np.random.default_rng(n).integers(0, n_groups, n), return_inverse=True)[1]
    order = sample_order(key, n, groups)
    assert sorted(order.tolist()) == list(range(n))
    if groups is not None:
        in_order = groups[order]
        assert np.count_nonzero(np.diff(in_order)) == len(np.unique(groups)) - 1


def test_orders_depend_on_the_key():
    orders = [sample_order(key, 50, None).tolist() for key in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != list(range(50))


def test_rates_do_not_depend_on_the_own_label_nor_in_a_circle():
    categories, codes, labels = make_samples(8, n_classes=2)
    rule = make_rule([1], np.random.default_rng(0))
    before = encoded(rule, 1, categories, codes, labels)
    informs = np.zeros((len(labels), len(labels)), dtype=bool)
    for i in range(len(labels)):
        other = labels.copy()
        other[i] = 1 - other[i]
        informs[i] = np.any(encoded(rule, 1, categories, codes, other) != before, axis=0)
    assert not np.any(np.diag(informs))
    assert not np.any(informs & informs.T)
    assert np.any(informs)


def test_categories_from_digits():
    categories = np.array([0, 255, 256, 65534, 65535])
    digits = np.array([categories % 256, categories // 256], dtype=np.uint8)
    found = np.empty(5, dtype=np.int32)
    read_categories(digits, found)
    assert found.tolist() == [0, 255, 256, 65534, -1]
