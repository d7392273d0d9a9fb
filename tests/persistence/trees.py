"""Valid trees of any shape, and changed bytes of arrays."""

import numpy as np
from hypothesis import strategies as st

from aucforest.tree.tree import Tree


def make_tree(seed, n_splits, n_features=3, n_classes=2, *, whole=True, by_set=(), most=400):
    """Return a tree of random splits, whose class totals are whole numbers or not; features `by_set` have sets."""
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
            drawn = rng.integers(0, most, n_classes)
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
    for i, (tree, other) in enumerate(zip(trees, others)):
        assert type(tree.frequencies) is type(other.frequencies)
        for name, one in {**vars(tree), "frequencies": tree.value}.items():
            value = other.value if name == "frequencies" else getattr(other, name)
            assert type(one) is type(value), f"{name} of tree {i}"
            if isinstance(one, np.ndarray):
                assert (one.dtype, one.shape) == (value.dtype, value.shape), f"{name} of tree {i}"
                is_same = one.tobytes() == value.tobytes()
                assert is_same, f"{name} of tree {i} in {np.argwhere(np.asarray(one != value)).tolist()[:3]}"
            else:
                assert one == value, f"{name} of tree {i}"


def change_bytes(arrays, data, names=None):
    """Change up to three bytes of arrays, by default of any that has some."""
    names = sorted(name for name in arrays if arrays[name].size) if names is None else names
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(names))
        content = bytearray(arrays[name].tobytes())
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        arrays[name] = np.frombuffer(content, dtype=arrays[name].dtype).reshape(arrays[name].shape)
