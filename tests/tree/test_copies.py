"""Copies of branches: wherever rows are kept, the same tree grows, node for node and number for number."""

import numpy as np
import pytest

from tests.tree.growing import grow
from tests.tree.oracle import random_data


def left_children_as_grown(tree, aside_rows: int) -> list[int]:
    """Return the left children in the order of growing: depth first, the branches after all nodes above them."""
    order, aside, stack = [], [], [0]
    while stack or aside:
        if not stack:
            stack, aside_rows, aside = aside[::-1], 0, []
        node = stack.pop()
        if tree.n_samples[node] <= aside_rows:
            aside.append(node)
        elif tree.feature[node] >= 0:
            order.append(int(tree.left_child[node]))
            stack += [order[-1] + 1, order[-1]]
    return order


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by_set", [(), (0, 2)])
def test_copies_of_copies_change_nothing(n_classes, wide, weighted, by_set, monkeypatch):
    monkeypatch.setattr("aucforest.tree.growing._BRANCH_ROWS", 10)
    X, labels = random_data(3, n_classes, n_rows=1000, n_values=150)
    X = 2 * X + 2  # categories count from 0
    weights = np.rint(np.random.default_rng(0).uniform(1, 2, 1000) * 2**50) if weighted else None
    trees = []
    for ratio in (2, 3, 8, 1000):
        monkeypatch.setattr("aucforest.tree.copies._RATIO", ratio)
        trees.append(grow(X, labels, weights=weights, wide=wide, by_set=by_set, max_features=2).tree)
    assert left_children_as_grown(trees[0], 10) == list(range(1, trees[0].n_nodes, 2))
    for tree in trees[1:]:
        for name, part in vars(trees[0]).items():
            assert np.array_equal(part, getattr(tree, name)), name
