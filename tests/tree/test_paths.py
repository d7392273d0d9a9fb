import numpy as np
import pytest

from aucforest.tree.tree import depths, paths
from tests.interop.trees import make_tree
from tests.reference.paths import path

from .chains import make_chain


@pytest.mark.parametrize("n_cuts", [0, 1, 2, 30])
@pytest.mark.parametrize("seed", range(3))
def test_depths_and_paths(n_cuts, seed):
    tree = make_tree(seed, n_cuts)
    left, right = tree.left_child.tolist(), tree.right_child.tolist()
    found = [path(left, right, node) for node in range(tree.n_nodes)]
    depth = depths(tree.left_child, tree.right_child)
    assert depth.tolist() == [len(nodes) - 1 for nodes in found]
    leaves = np.random.default_rng(seed).permutation(np.flatnonzero(tree.is_leaf).repeat(2))
    nodes, starts = paths(tree.left_child, depth, leaves)
    assert [some.tolist() for some in np.split(nodes, starts[1:-1])] == [found[leaf] for leaf in leaves]


def test_chains_take_time_in_proportion_to_their_nodes():
    """Seconds are not measured, since machines differ: with the square of the nodes, this would take far too long."""
    for chain in (make_chain(10), make_chain(10**6)):
        assert chain.max_depth == chain.n_nodes // 2
        nodes, starts = paths(chain.left_child, chain.depth, np.array([1, chain.n_nodes - 1]))
        assert nodes[:2].tolist() == [0, 1]
        assert nodes[2:].tolist() == [*range(0, chain.n_nodes, 2)]
        assert starts.tolist() == [0, 2, 3 + chain.n_nodes // 2]
