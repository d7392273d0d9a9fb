"""Codes of ordered rates against their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.ordered_rates import (
    RateRule,
    SampleData,
    encode_rates,
    ordered_rates,
    read_categories,
    sample_order,
    sort_by_category,
)
from tests.reference import target_rates as reference

N_CATEGORIES, N_PARTS = 7, 3


def make_rule(classes, rng):
    """Return a rule with two tables: a column alone, and with another feature, whose last code has no part."""
    edges = [np.sort(rng.uniform(0.0, 1.0, n_edges)) for n_edges in (40, 2, 0, 1)[: 2 * len(classes)]]
    return RateRule(
        classes=np.array(classes), prior=np.full(len(classes), 0.3), smoothing=np.array([2.0, 0.5]),
        code_rows=np.array([0, 1]), parts=np.array([[0, 0, 0, 0], [0, 1, 2, -1]]), edges=np.concatenate(edges),
        first_edge=np.cumsum([0, *map(len, edges)]),
        prior_codes=np.array([[np.searchsorted(of_feature, 0.3)] for of_feature in edges]),
    )  # fmt: skip


@pytest.mark.parametrize("n_groups", [None, 1, 12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [[1], [0, 2]])
@pytest.mark.parametrize("n", [70, 1100])  # up to 512 samples are encoded together
@pytest.mark.parametrize("has_priors", [False, True])
def test_codes_by_definition(n_groups, weighted, classes, n, has_priors):
    rng = np.random.default_rng(1)
    categories, codes = rng.integers(-1, N_CATEGORIES, n).astype(np.int32), rng.integers(0, 4, (2, n)).astype(np.uint8)
    labels, groups = rng.integers(0, 3, n).astype(np.uint16), None if n_groups is None else rng.integers(0, n_groups, n)
    weights, rule = rng.uniform(0.5, 2.0, n) if weighted else None, make_rule(classes, rng)
    order, found = sample_order(5, n, groups), np.empty((rule.n_features, n), dtype=np.uint8)
    by_category = sort_by_category(categories, N_CATEGORIES, order, labels)
    data, prior = SampleData.of(codes, groups, weights), np.full((len(classes), n), 0.3)
    by_hand = np.ones(n) if weights is None else weights
    known = np.arange(n) if groups is None else groups
    if has_priors:  # the rates of another column
        others = rng.integers(0, 3, n).astype(np.int32)
        prior = ordered_rates(rule, data, sort_by_category(others, 3, order, labels)).T
        expected = np.full((len(classes), n), 0.3)
        expected = reference.ordered_rates(order.tolist(), known, others, labels, by_hand, classes, 2.0, expected)
        np.testing.assert_allclose(prior, expected, rtol=1e-12)
        prior = np.where(categories < 0, 0.3, prior)
        data = data._replace(priors=np.ascontiguousarray(prior.T))
    encode_rates(rule, data, by_category, found)
    alone = reference.ordered_rates(order.tolist(), known, categories, labels, by_hand, classes, 2.0, prior)
    parts = rule.parts[1][codes[1]]
    cells = np.where((categories < 0) | (parts < 0), -1, categories * N_PARTS + parts)
    pairs = reference.ordered_rates(order.tolist(), known, cells, labels, by_hand, classes, 0.5, alone)
    for feature, rates in enumerate([*alone, *pairs]):
        edges = rule.edges[rule.first_edge[feature] : rule.first_edge[feature + 1]]
        np.testing.assert_array_equal(found[feature], np.searchsorted(edges, rates))
    if n_groups == 1:
        assert all(len(np.unique(of_feature)) == 1 for of_feature in found)


@given(st.integers(0, 2**63), st.integers(1, 80), st.none() | st.integers(1, 9))
def test_an_order_is_a_permutation_with_groups_together(key, n, n_groups):
    groups = None
    if n_groups is not None:
        groups = np.unique(np.random.default_rng(n).integers(0, n_groups, n), return_inverse=True)[1]
    order = sample_order(key, n, groups)
    assert sorted(order.tolist()) == list(range(n))
    if groups is not None:
        assert np.count_nonzero(np.diff(groups[order])) == len(np.unique(groups)) - 1


def test_orders_depend_on_the_key():
    orders = [sample_order(key, 50, None).tolist() for key in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != list(range(50))


def test_categories_from_digits():
    categories = np.array([0, 255, 256, 65534, 65535])
    digits = np.array([categories % 256, categories // 256], dtype=np.uint8)
    found = np.empty(5, dtype=np.int32)
    read_categories(digits, found)
    assert found.tolist() == [0, 255, 256, 65534, -1]
