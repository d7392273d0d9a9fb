"""Valid trees of any shape."""

import numpy as np

from aucforest.tree.tree import Tree


def make_tree(seed, n_splits, n_features=3, n_classes=2, *, whole=True, by_set=()):
    """Return a tree of random splits, whose class totals are whole numbers or not; some features are split by sets."""
    rng = np.random.default_rng(seed)
    left, leaves = {}, [0]
    for split in range(n_splits):
        left[leaves.pop(rng.integers(len(leaves)))] = 2 * split + 1
        leaves += [2 * split + 1, 2 * split + 2]
    n_nodes = 2 * n_splits + 1
    totals, n_samples = np.zeros((n_nodes, n_classes)), np.zeros(n_nodes, dtype=np.int64)
    for node in range(n_nodes - 1, -1, -1):
        if node in left:
            totals[node] = totals[left[node]] + totals[left[node] + 1]
            n_samples[node] = n_samples[left[node]] + n_samples[left[node] + 1]
        else:
            drawn = rng.integers(0, 400, n_classes)
            totals[node] = drawn if whole else drawn * rng.random()
            totals[node, rng.integers(n_classes)] += 1
            n_samples[node] = rng.integers(1, 300)
    splits = np.array(sorted(left), dtype=np.int64)
    nodes = {
        "feature": np.full(n_nodes, -1, dtype=np.int32),
        "threshold": np.zeros(n_nodes),
        "missing_left": rng.random(n_nodes) < 0.5,
        "left_child": np.full(n_nodes, -1, dtype=np.int32),
        "gain": np.zeros(n_nodes),
        "n_samples": n_samples,
        "weight": totals.sum(axis=1),
    }
    nodes["frequencies"] = totals / nodes["weight"][:, None]
    nodes["feature"][splits] = rng.integers(0, n_features, len(splits))
    nodes["threshold"][splits] = rng.normal(size=len(splits))
    nodes["left_child"][splits] = [left[split] for split in splits]
    nodes["gain"][splits] = rng.random(len(splits)) + 1e-9
    set_nodes = np.flatnonzero(np.isin(nodes["feature"], by_set))
    nodes["threshold"][set_nodes] = 0.0
    sets = rng.integers(0, 2**64, (len(set_nodes), 4), dtype=np.uint64)
    nodes["missing_left"][set_nodes] = sets[:, 3] >= 2**63
    tree = Tree(**nodes, n_features=n_features, set_nodes=set_nodes, sets=sets, shrinkage=float(rng.integers(0, 3)))
    tree.validate()
    return tree


def assert_same_trees(trees, others):
    """Compare everything that trees are, to the last bit."""
    assert len(trees) == len(others)
    for tree, other in zip(trees, others):
        assert type(tree.frequencies) is type(other.frequencies)
        for name, one in {**vars(tree), "frequencies": tree.value}.items():
            value = other.value if name == "frequencies" else getattr(other, name)
            assert type(one) is type(value)
            if isinstance(one, np.ndarray):
                assert one.dtype == value.dtype
                assert one.shape == value.shape
                assert one.tobytes() == value.tobytes()
            else:
                assert one == value
