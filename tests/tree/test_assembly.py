"""A tree that is put together has the nodes, and the numbers, of one that is grown in one go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tree.assembly import Grown, splice
from aucforest.tree.growing import Nodes
from tests.tree.growing import grow
from tests.tree.oracle import random_data


def below(tree, totals, root, depth):
    """Return what is below a node, down to a depth, with its nodes numbered by level, and the leaves that are cut."""
    order, cut, level = [root], [], [root]
    children = {}
    while level:
        following = []
        for node in level:
            if tree.feature[node] >= 0 and depth > 0:
                left = int(tree.left_child[node])
                children[node] = len(order)
                order += [left, left + 1]
                following += [left, left + 1]
            elif tree.feature[node] >= 0:
                cut.append(node)
        level, depth = following, depth - 1
    columns = {name: getattr(tree, name)[order].copy() for name in Nodes._fields if name != "totals"}
    columns["left_child"] = np.array([children.get(node, -1) for node in order], dtype=np.int32)
    sets = [tree.set_nodes.tolist().index(node) for node in order if node in tree.set_nodes and node not in cut]
    set_nodes = np.array([order.index(tree.set_nodes[i]) for i in sets], dtype=np.int64)
    return Grown(Nodes(**columns, totals=totals[order]), set_nodes, tree.sets[sets]), {n: order.index(n) for n in cut}


@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(0, 5),
    aside_rows=st.sampled_from([0, 4, 20, 10**6]),
    by_set=st.sampled_from([(), (0, 1)]),
)
def test_parts_of_a_tree_make_the_tree(seed, depth, aside_rows, by_set):
    X, labels = random_data(seed, 3)
    X[:, 0] = np.nan_to_num(2 * X[:, 0] + 2)
    X[:, 1] = np.nan_to_num(2 * X[:, 1] + 2)
    tree, totals, _ = grow(X, labels, n_classes=3, key=seed, max_features=2, aside_rows=aside_rows, by_set=by_set)
    top, cut = below(tree, totals, 0, depth)
    branches = {number: below(tree, totals, node, 10**6)[0] for node, number in cut.items()}
    spliced = splice(top, branches, aside_rows)
    for name in Nodes._fields:
        np.testing.assert_array_equal(
            getattr(spliced.nodes, name), totals if name == "totals" else getattr(tree, name), name
        )
    np.testing.assert_array_equal(spliced.set_nodes, tree.set_nodes)
    np.testing.assert_array_equal(spliced.sets, tree.sets)


def test_too_many_nodes_are_refused():
    """Columns of one value that stand for many."""

    def grown(n_nodes):
        columns = {name: np.broadcast_to(np.int32(-1), n_nodes) for name in Nodes._fields}
        return Grown(Nodes(**columns), np.empty(0, dtype=np.int64), np.empty((0, 4), dtype=np.uint64))

    with pytest.raises(ValueError, match="a tree has more than 2147483647 nodes"):
        splice(grown(3), {1: grown(2**30), 2: grown(2**30)}, 0)
