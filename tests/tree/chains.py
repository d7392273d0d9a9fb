"""Trees of maximum depth."""

import numpy as np

from aucforest.tree.tree import LEAF, Tree


def make_chain(n_splits, n_features=1):
    """Return a valid tree of n_splits splits, each with a leaf on its left and the next split on its right."""
    node = np.arange(2 * n_splits + 1)
    is_split = (node % 2 == 0) & (node < 2 * n_splits)
    n_samples = np.where(is_split, n_splits + 1 - node // 2, 1)
    return Tree(
        feature=np.where(is_split, n_features - 1, LEAF).astype(np.int32),
        threshold=np.where(is_split, node / 2.0, 0.0), missing_left=np.zeros(len(node), dtype=np.bool_),
        left_child=np.where(is_split, node + 1, LEAF).astype(np.int32), gain=np.where(is_split, 1.0, 0.0),
        n_samples=n_samples, weight=n_samples.astype(np.float64), frequencies=np.tile([0.25, 0.75], (len(node), 1)),
        n_features=n_features,
    )  # fmt: skip
