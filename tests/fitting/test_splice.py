"""A tree that is put together has the nodes, and the numbers, of one that is grown in one go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.fitting.growing import grow_rows, make_buffers
from aucforest.fitting.top import splice
from aucforest.tree.tree import Nodes
from tests.fitting.rows import make_tied_rows, prepare


def below(nodes, root, depth):
    """Return what is below a node, down to a depth, numbered by level, and its leaves that are split further down."""
    order, level, children, split = [root], [root], {}, {}
    for remaining in range(depth, -1, -1):
        inner = [node for node in level if nodes.feature[node] >= 0]
        level = [int(nodes.left_child[node]) + side for node in inner for side in range(2)]
        if remaining == 0:
            split = {node: order.index(node) for node in inner}
            break
        children |= {node: len(order) + 2 * i for i, node in enumerate(inner)}
        order += level
    part = Nodes._make(column[order] if len(column) > 0 else column for column in nodes)
    part.left_child[:] = [children.get(node, -1) for node in order]
    return part, split


@given(seed=st.integers(0, 10**6), depth=st.integers(0, 5), by_set=st.booleans())
def test_parts_of_a_tree_make_the_tree(seed, depth, by_set):
    X, labels = make_tied_rows(seed, 3)
    growth, part = prepare(X, labels, by_set=np.array([by_set, False, False, by_set]), sampler=None, max_features=2)
    work = make_buffers(growth, part.codes, len(X))
    nodes, _ = grow_rows(growth, part, np.ones(len(X), dtype=np.uint16), seed, work)
    top, split = below(nodes, 0, depth)
    for column in top:
        # what is known of a leaf does not count
        column[list(split.values()) if len(column) > 0 else []] = 1
    top.left_child[list(split.values())] = -1
    spliced = splice(top, {number: below(nodes, node, len(X))[0] for node, number in split.items()})
    for name in Nodes._fields:
        expected = getattr(nodes, name)
        assert getattr(spliced, name).dtype == expected.dtype
        np.testing.assert_array_equal(getattr(spliced, name), expected, name)


def test_too_many_nodes_are_refused():
    """Columns of one value that stand for many."""

    def grown(n_nodes):
        return Nodes._make(np.broadcast_to(np.int32(-1), n_nodes) for _ in Nodes._fields)

    with pytest.raises(ValueError, match="a tree has more than 2147483647 nodes"):
        splice(grown(3), {1: grown(2**30), 2: grown(2**30)})
