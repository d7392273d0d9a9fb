"""The arrays of a tree: validation, copies, frequencies of many classes, and shrinkage."""

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
import skops.io
from hypothesis import example, given
from hypothesis import strategies as st

from aucforest.tree import tree as tree_module
from aucforest.tree.tree import LEAF, ClassTotals, Nodes, Tree, find_parents, make_nodes, shrink
from tests.persistence.trees import make_tree
from tests.reference import shrinkage as reference
from tests.reference.paths import path

NODE_ARRAYS = [f.name for f in fields(Tree) if f.name not in ("n_features", "set_nodes", "sets", "shrinkage")]


def small_tree() -> Tree:
    """Return a tree of two splits: the left child of the root is a leaf, and the right child is split."""
    return Tree(
        feature=np.array([1, LEAF, 0, LEAF, LEAF], dtype=np.int32), threshold=np.array([0.5, 0.0, np.inf, 0.0, 0.0]),
        missing_left=np.array([True, False, False, False, False]),
        left_child=np.array([1, LEAF, 3, LEAF, LEAF], dtype=np.int32), gain=np.array([0.25, 0.0, 0.5, 0.0, 0.0]),
        n_samples=np.array([6, 2, 4, 3, 1]), weight=np.array([8.0, 2.0, 6.0, 4.0, 2.0]),
        frequencies=np.array([[0.5, 0.5], [0.0, 1.0], [4 / 6, 2 / 6], [1.0, 0.0], [0.0, 1.0]]), n_features=2,
    )  # fmt: skip


def set_tree(**changes) -> Tree:
    """Return the tree of `small_tree`, but its second split has the set of codes 1, 64 and 254."""
    words = np.array([[2, 1, 0, 2**62]], dtype=np.uint64)
    parts = {"threshold": np.array([0.5, 0.0, 0.0, 0.0, 0.0]), "set_nodes": np.array([2]), "sets": words}
    return replace(small_tree(), **(parts | changes))


def single_leaf(**changes) -> Tree:
    """Return a tree of one node."""
    tree = small_tree()
    parts = {name: getattr(tree, name)[1:2].copy() for name in NODE_ARRAYS}
    return Tree(**{**parts, "n_features": 2, **changes})


def test_goes_left_has_the_codes_of_a_set():
    assert np.flatnonzero(set_tree().goes_left(2)).tolist() == [1, 64, 254]
    assert set_tree().goes_left(2).shape == (255,)
    for node in (0, 1, 4):
        with pytest.raises(ValueError, match=f"^node {node} does not split a categorical feature$"):
            set_tree().goes_left(node)


NO_CODES = np.zeros((2, 4), dtype=np.uint64)
BROKEN_SETS = [
    ({"set_nodes": np.array([2], dtype=np.int32)}, "set_nodes must be int64 of shape (1,)"),
    ({"set_nodes": np.array([[2]])}, "set_nodes must be int64 of shape (1,)"),
    ({"sets": np.zeros((1, 4))}, "sets must be uint64 of shape (1, 4)"),
    ({"sets": NO_CODES}, "sets must be uint64 of shape (1, 4)"),
    ({"set_nodes": np.array([5])}, "the nodes with a set are not in rising order within [0, 5)"),
    ({"set_nodes": np.array([-3])}, "not in rising order within [0, 5)"),
    ({"set_nodes": np.array([2, 2]), "sets": NO_CODES}, "not in rising order within [0, 5)"),
    ({"set_nodes": np.array([3])}, "a leaf has a set"),
    ({"set_nodes": np.array([0])}, "a node with a set has a threshold"),
    ({"missing_left": np.array([True, False, True, False, False])}, "a set and missing_left disagree"),
    ({"feature": np.array([0, LEAF, 0, LEAF, LEAF], dtype=np.int32)}, "split both by sets and by thresholds"),
    ({"shrinkage": -1.0}, "shrinkage is negative or NaN"), ({"shrinkage": np.nan}, "shrinkage is negative or NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BROKEN_SETS)
def test_invalid_sets_and_shrinkages_are_refused(changes, message):
    assert message in error_of(set_tree(**changes))


def test_properties_are_computed_from_the_arrays():
    tree, importances = small_tree(), np.ones(2)
    assert (tree.n_nodes, tree.n_classes, tree.n_leaves, tree.max_depth) == (5, 2, 3, 2)
    assert tree.is_leaf.tolist() == [False, True, False, True, True]
    assert tree.right_child.tolist() == [2, -1, 4, -1, -1]
    assert tree.right_child.dtype == np.int32
    assert tree.depth.tolist() == [0, 1, 1, 2, 2]
    tree.add_importances(importances)
    assert importances == pytest.approx([1.0 + 0.375 / 0.625, 1.0 + 0.25 / 0.625])
    assert single_leaf().max_depth == 0
    before = importances.copy()
    single_leaf().add_importances(importances)
    assert importances.tolist() == before.tolist()


@pytest.mark.parametrize("name", [*NODE_ARRAYS, "set_nodes", "sets"])
def test_trees_cannot_be_changed(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(set_tree(), name)[0] = 0
    with pytest.raises(AttributeError):
        setattr(set_tree(), name, None)


def through_skops(tree: Tree) -> Tree:
    return skops.io.loads(skops.io.dumps(tree), trusted=["aucforest.tree.tree.Tree"])


@pytest.mark.parametrize("copied", [lambda tree: pickle.loads(pickle.dumps(tree)), copy.deepcopy, through_skops])
def test_copies_are_read_only_too(copied):
    tree = set_tree(shrinkage=2.0)
    assert tree.depth.tolist() == [0, 1, 1, 2, 2]
    other = copied(tree)
    assert other is not tree
    assert other.shrinkage == 2.0
    for name, part in vars(tree).items():
        if isinstance(part, np.ndarray) and name != "depth":
            assert not getattr(other, name).flags.writeable
            np.testing.assert_array_equal(getattr(other, name), part)
    other.validate()


def test_frequencies_of_many_classes_are_read_only_too():
    frequencies = np.eye(40)[[0, 1, 0, 2, 3]]
    tree = pickle.loads(pickle.dumps(replace(small_tree(), frequencies=frequencies)))
    stored = tree.frequencies
    for part in (tree.value, stored.data, stored.indices, stored.indptr):
        assert not part.flags.writeable
    np.testing.assert_array_equal(tree.value, frequencies)
    np.testing.assert_array_equal(tree.value_of(3), frequencies[3])
    assert tree.value_of(3).shape == (40,)


# (attribute, index, wrong value, part of the message)
CORRUPTIONS = [
    ("feature", 0, 2, "a feature is not in [-1, 2)"), ("feature", 2, -2, "a feature is not in [-1, 2)"),
    ("left_child", 3, 1, "a leaf has a child"), ("left_child", 2, 1, "a child does not come after its parent"),
    ("left_child", 2, 2, "a child does not come after its parent"), ("left_child", 2, 4, "out of range"),
    ("left_child", 2, 2**31 - 1, "out of range"), ("left_child", 0, 2, "does not have exactly one parent"),
    ("threshold", 0, np.nan, "a threshold is NaN"), ("threshold", 1, 0.5, "a leaf has a threshold"),
    ("frequencies", (1, 0), -1.0, "a class frequency is negative or not finite"),
    ("frequencies", (1, 0), np.nan, "a class frequency is negative or not finite"),
    ("frequencies", (1, 0), np.inf, "a class frequency is negative or not finite"),
    ("frequencies", (1, 0), 1e-6, "do not sum to 1"),
    ("frequencies", 1, [1.0, 0.0], "class weights of two children do not add up"),
    ("weight", 3, 0.0, "a weight is not finite and positive"),
    ("weight", 3, -4.0, "a weight is not finite and positive"),
    ("weight", 0, np.inf, "a weight is not finite and positive"),
    ("weight", 0, np.nan, "a weight is not finite and positive"),
    ("weight", 3, 4.5, "class weights of two children do not add up"),
    ("n_samples", 4, 0, "samples of two children do not add up"),
    ("n_samples", 0, 7, "samples of two children do not add up"), ("gain", 0, 0.0, "a split without a gain"),
    ("gain", 0, -0.1, "a split without a gain"), ("gain", 2, np.nan, "a split without a gain"),
    ("gain", 2, np.inf, "a split without a gain"), ("gain", 1, 0.1, "or a leaf with one"),
]  # fmt: skip


def error_of(tree: Tree) -> str:
    """Return the message of the error that an invalid tree raises."""
    with pytest.raises(ValueError) as caught:
        tree.validate()
    message = str(caught.value)
    assert message.startswith("tree: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("name", "index", "wrong", "message"), CORRUPTIONS)
def test_a_broken_invariant_is_refused(name, index, wrong, message):
    array = getattr(small_tree(), name).copy()
    array[index] = wrong
    assert message in error_of(replace(small_tree(), **{name: array}))


@pytest.mark.parametrize("name", [name for name in NODE_ARRAYS if name != "frequencies"])
def test_wrong_types_and_shapes_are_refused(name):
    array = getattr(small_tree(), name)
    for wrong in (array.astype(np.float32), array[:4], array[:, None]):
        message = error_of(replace(small_tree(), **{name: wrong}))
        # The number of nodes is the length of `feature`.
        assert (f"tree: {name} must be {array.dtype} of shape (5,)" in message) or len(wrong) == 4


def test_other_faults_are_refused():
    value = small_tree().value
    for wrong in (value.astype(np.float32), value[:4], value[:, 0]):
        assert "frequencies must be float64, (5, n_classes)" in error_of(replace(small_tree(), frequencies=wrong))
    nothing = {name: getattr(small_tree(), name)[:0] for name in NODE_ARRAYS}
    assert "at least one node" in error_of(single_leaf(**nothing))
    for tree in (replace(small_tree(), n_samples=np.array([4, 0, 4, 3, 1])), single_leaf(n_samples=np.array([0]))):
        assert "samples of two children" in error_of(tree)


@pytest.mark.parametrize("n_splits", [0, 1, 2, 30])
@pytest.mark.parametrize("seed", range(3))
def test_parents_and_depths(n_splits, seed):
    tree = make_tree(seed, n_splits)
    left, right = tree.left_child.tolist(), tree.right_child.tolist()
    paths = [path(left, right, node) for node in range(tree.n_nodes)]
    parent, depth = find_parents(tree.left_child, tree.right_child)
    assert depth.tolist() == [len(nodes) - 1 for nodes in paths]
    assert parent.tolist() == [-1, *(nodes[-2] for nodes in paths[1:])]


def class_totals(dense) -> ClassTotals:
    """Return class totals without zeros."""
    rows, labels = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(len(dense) + 1))
    return ClassTotals(dense.shape[1], starts, labels.astype(np.int32), dense[rows, labels])


def random_nodes(seed: int, n_nodes: int, dense) -> Nodes:
    """Return nodes with random values and the given class totals."""
    rng, nodes = np.random.default_rng(seed), make_nodes(n_nodes, 2, by_set=True)
    for column in nodes[:-1]:
        column[:] = rng.integers(0, 2, column.shape)
    nodes.feature[:] = rng.integers(-1, 5, n_nodes)
    return nodes._replace(totals=class_totals(dense), weight=dense.sum(axis=1))


@pytest.mark.parametrize("n_classes", [2, 20])
def test_trees_that_grew_together_are_slices_of_one_copy(n_classes):
    dense = [np.ones((n_nodes, n_classes), dtype=np.int64) for n_nodes in (9, 11, 13)]
    for totals in dense:
        totals[:, 2:], totals[:, 0] = 0, np.arange(len(totals))
    nodes = [random_nodes(seed, len(totals), totals) for seed, totals in enumerate(dense)]
    ends, by_set = np.cumsum([len(column.feature) for column in nodes]), np.arange(5) == 2
    together = Nodes(*map(np.concatenate, zip(*(own[:-1] for own in nodes))), class_totals(np.concatenate(dense)))
    trees = Tree.from_nodes(together, ends, 0.25, by_set)
    for tree, own in zip(trees, nodes, strict=True):
        (alone,) = Tree.from_nodes(own, np.array([len(own.feature)]), 0.25, by_set)
        assert vars(tree).keys() == vars(alone).keys()
        assert (alone.weight == 0.25 * own.weight).all()
        assert alone.set_nodes.tolist() == np.flatnonzero(own.feature == 2).tolist()
        for array, expected in zip(tree._arrays(), alone._arrays(), strict=True):
            np.testing.assert_array_equal(array, expected)
            assert array.dtype == expected.dtype
            assert not array.flags.writeable
            assert not any(np.shares_memory(array, one) for one in (*together[:-1], *together.totals[1:]))
        assert tree.gain.base is trees[0].gain.base
    assert trees[0].gain.base.nbytes == sum(tree.gain.nbytes for tree in trees)


@pytest.mark.parametrize("n_classes", [3, 20])
def test_weights_whose_float64_sums_are_not_exact(n_classes, monkeypatch):
    monkeypatch.setattr(tree_module, "_DENSE_CELLS", 50)
    rng = np.random.default_rng(n_classes)
    dense = rng.integers(2**52, 2**55, (61, n_classes)) * (rng.random((61, n_classes)) < 0.3)
    dense[:, 0] = 2**54 + 1
    exact, expected = dense.sum(axis=1), dense.sum(axis=1, dtype=np.float64)
    (tree,) = Tree.from_nodes(random_nodes(3, 61, dense), np.array([61]), 1.0, np.zeros(5, dtype=np.bool_))
    assert tree.weight.tolist() == expected.tolist() != exact.astype(np.float64).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.floats(0, 1e6) | st.floats(1e-30, 1e-12), st.booleans())
@example(29, 2, 1e-20, True)  # rounding errors lead out of [0, 1]
def test_shrink(seed, n_classes, amount, pure):
    tree = make_tree(seed, seed % 12, n_classes=n_classes, whole=False)
    value = tree.value.copy()
    if pure:  # as in trees grown to the end
        value[tree.is_leaf] = np.eye(n_classes)[value[tree.is_leaf].argmax(axis=1)]
    found = shrink(tree.left_child, tree.weight, value, amount)
    np.testing.assert_allclose(found, reference.shrink(tree.left_child, tree.weight, value, amount), atol=1e-13)
    assert np.all((found >= 0.0) & (found <= 1.0))


@pytest.mark.parametrize("amount", [2.0, np.inf])
def test_predictions_are_shrunk(amount):
    tree = small_tree()
    assert tree.prediction is tree.value
    shrunk = replace(tree, shrinkage=amount)
    shrunk.validate()
    np.testing.assert_allclose(shrunk.prediction, reference.shrink(tree.left_child, tree.weight, tree.value, amount))
    assert shrunk.value is tree.value
