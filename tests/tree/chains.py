"""Trees as deep as trees can be."""

import numpy as np

from aucforest.tree.tree import LEAF, Tree


def make_chain(n_cuts, n_features=1):
    """Return a valid tree of so many cuts, each of which has a leaf on its left and the next cut on its right."""
    node = np.arange(2 * n_cuts + 1)
    is_cut = (node % 2 == 0) & (node < 2 * n_cuts)
    n_samples = np.where(is_cut, n_cuts + 1 - node // 2, 1)
    return Tree(
        feature=np.where(is_cut, n_features - 1, LEAF).astype(np.int32),
        threshold=np.where(is_cut, node / 2.0, 0.0),
        missing_left=np.zeros(len(node), dtype=np.bool_),
        left_child=np.where(is_cut, node + 1, LEAF).astype(np.int32),
        gain=np.where(is_cut, 1.0, 0.0),
        n_samples=n_samples,
        weight=n_samples.astype(np.float64),
        frequencies=np.tile([0.25, 0.75], (len(node), 1)),
        n_features=n_features,
    )
