"""Random valid trees, and changed bytes of arrays."""

import numpy as np
from hypothesis import strategies as st

from aucforest.tree.tree import Tree
from tests.estimators.data import assert_same


def make_tree(seed, n_splits, n_features=3, n_classes=2, *, whole=True, by_set=(), most=400):
    """Return a tree of random splits, with integers as class totals if `whole`; features `by_set` are split by sets."""
    rng, n_nodes, leaves = np.random.default_rng(seed), 2 * n_splits + 1, [0]
    left = np.full(n_nodes, -1, dtype=np.int32)
    for child in range(1, n_nodes, 2):
        left[leaves.pop(rng.integers(len(leaves)))] = child
        leaves += [child, child + 1]
    totals = rng.integers(0, most, (n_nodes, n_classes)) * (1.0 if whole else rng.random((n_nodes, 1)))
    totals[np.arange(n_nodes), rng.integers(0, n_classes, n_nodes)] += 1
    n_samples, is_split = rng.integers(1, 300, n_nodes), left >= 0
    for node in np.flatnonzero(is_split)[::-1]:
        for sums in (totals, n_samples):
            sums[node] = sums[left[node]] + sums[left[node] + 1]
    nodes = {
        "feature": np.where(is_split, rng.integers(0, n_features, n_nodes), -1).astype(np.int32),
        "threshold": np.where(is_split, rng.normal(size=n_nodes), 0.0), "missing_left": rng.random(n_nodes) < 0.5,
        "left_child": left, "gain": np.where(is_split, rng.random(n_nodes) + 1e-9, 0.0), "n_samples": n_samples,
        "weight": totals.sum(axis=1),
    }  # fmt: skip
    nodes["frequencies"] = totals / nodes["weight"][:, None]
    set_nodes = np.flatnonzero(np.isin(nodes["feature"], by_set))
    nodes["threshold"][set_nodes] = 0.0
    sets = rng.integers(0, 2**64, (len(set_nodes), 4), dtype=np.uint64)
    nodes["missing_left"][set_nodes] = sets[:, 3] >= 2**63
    tree = Tree(**nodes, n_features=n_features, set_nodes=set_nodes, sets=sets, shrinkage=float(rng.integers(0, 3)))
    tree.validate()
    return tree


def assert_same_trees(trees, others):
    assert_same(list(trees), list(others))


def change_bytes(arrays, data, names=None):
    """Change up to three bytes of the arrays `names`, by default of any array that is not empty."""
    names = sorted(name for name in arrays if arrays[name].size) if names is None else names
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(names))
        content = bytearray(arrays[name].tobytes())
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        arrays[name] = np.frombuffer(content, dtype=arrays[name].dtype).reshape(arrays[name].shape)
