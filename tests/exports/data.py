"""Trees drawn at random, and rows that meet their thresholds."""

import numpy as np

from aucforest.tree.tree import SET_WORDS, Tree
from tests.estimators.data import walk


def random_tree(rng, n_splits=12, *, n_codes=None, n_features=4, n_classes=2, shrinkage=0.0):
    """Return a valid tree; `n_codes` maps the features that are split by sets to their numbers of codes."""
    n_codes, n_nodes = n_codes or {}, 2 * n_splits + 1
    feature, left_child = np.full(n_nodes, -1, dtype=np.int32), np.full(n_nodes, -1, dtype=np.int32)
    leaves, children = [0], []
    for i in range(n_splits):
        node = leaves.pop(rng.integers(len(leaves)))
        feature[node], left_child[node] = rng.integers(n_features), 2 * i + 1
        children.append(node)
        leaves += [2 * i + 1, 2 * i + 2]
    totals, n_samples = np.zeros((n_nodes, n_classes)), np.zeros(n_nodes, dtype=np.int64)
    totals[leaves] = rng.integers(0, 5, size=(len(leaves), n_classes))
    totals[leaves, rng.integers(n_classes, size=len(leaves))] += 1
    n_samples[leaves] = totals[leaves].sum(axis=1)
    for node in children[::-1]:
        totals[node], n_samples[node] = (
            part[left_child[node]] + part[left_child[node] + 1] for part in (totals, n_samples)
        )
    is_leaf, by_set = feature < 0, np.isin(feature, list(n_codes))
    threshold = np.where(is_leaf | by_set, 0.0, rng.choice([-1.5, 0.1, 1.0, 1e300, -1e300, np.inf], size=n_nodes))
    missing_left = (rng.random(n_nodes) < 0.5) & ~is_leaf
    set_nodes = np.flatnonzero(by_set)
    bits = rng.random((len(set_nodes), 64 * SET_WORDS)) < rng.choice([0.0, 0.2, 0.5, 1.0], size=(len(set_nodes), 1))
    bits[:, -1] = missing_left[set_nodes]
    sets = (bits.reshape(-1, SET_WORDS, 64) * (np.uint64(1) << np.arange(64, dtype=np.uint64))).sum(axis=2)
    weight = totals.sum(axis=1)
    tree = Tree(
        feature, threshold, missing_left, left_child, np.where(is_leaf, 0.0, 1.0), n_samples, weight,
        totals / weight[:, None], n_features, set_nodes, sets.astype(np.uint64), shrinkage,
    )  # fmt: skip
    tree.validate()
    return tree


def random_rows(rng, tree, n_codes, n_rows=60, dtype=np.float32):
    """Return rows: codes, values at, above and below thresholds, and NaN."""
    with np.errstate(over="ignore"):
        around = tree.threshold.astype(dtype)
    below, above = np.nextafter(around, dtype(-np.inf)), np.nextafter(around, dtype(np.inf))
    values = np.concatenate((around, below, above))
    X = rng.choice(values[np.isfinite(values)], size=(n_rows, tree.n_features))
    for feature, n in n_codes.items():
        X[:, feature] = rng.integers(n, size=n_rows)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = np.nan
    return X


def leaf_of(tree, row):
    """Return the leaf of a row."""
    return walk(tree, row.astype(np.float64))[-1]


def mean_of(trees, X):
    """Return what trees predict on average."""
    return np.mean([[tree.prediction[leaf_of(tree, row)] for row in X] for tree in trees], axis=0)
