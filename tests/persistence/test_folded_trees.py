from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.persistence import folded_trees
from aucforest.persistence.folded_trees import MOST_TREES, fold, unfold
from aucforest.persistence.model_file import ModelFormatError, StoredModel

from .trees import assert_same_trees, change_bytes, make_tree

N_FEATURES, BY_SET = 3, np.array([1])


def make_trees(seed=0, n_splits=(4, 0, 7), n_classes=2, **options):
    return [make_tree(seed + i, n, N_FEATURES, n_classes, **options) for i, n in enumerate(n_splits)]


def unfolded(arrays, n_classes=2, by_set=(), n_features=N_FEATURES):
    stored = StoredModel(arrays, {})
    trees = unfold(stored, n_features, n_classes, np.array(by_set, dtype=np.int64))
    stored.check_taken()
    return trees


trees_of_any_shape = st.tuples(
    st.integers(0, 2**32), st.lists(st.integers(0, 40), min_size=1, max_size=5), st.sampled_from([2, 3, 6])
)


@given(trees_of_any_shape, st.booleans(), st.booleans())
def test_unfolded_trees_are_identical(shape, whole, with_sets):
    by_set = BY_SET if with_sets else ()
    trees = make_trees(*shape, whole=whole, by_set=by_set)
    arrays = fold(trees)
    # The totals of leaves of a single class do not reveal fractional weights.
    assert ("tree.total" in arrays) >= whole
    assert_same_trees(trees, unfolded(arrays, shape[2], by_set))


def test_integer_weights_take_few_bytes():
    arrays = fold(make_trees(n_splits=(100, 100)))
    assert [arrays[f"tree.{name}"].dtype.itemsize for name in ("feature", "pair", "n_samples", "total")] == [1, 1, 2, 2]
    assert arrays["tree.threshold"].shape == arrays["tree.pair"].shape == (200,)


@pytest.mark.parametrize(("weight", "change"), [(4.0, 0.0), (4.0 + 1e-12, 0.0), (4.0, 1e-12)])
def test_weights_close_to_integers_are_stored_exactly(weight, change):
    value = np.array([[1.0, 3.0]]) / weight + [change, -change]
    tree = replace(make_tree(0, 0), weight=np.array([weight]), frequencies=value)
    arrays = fold([tree])
    assert ("tree.total" in arrays) == (weight == 4.0 and change == 0.0)
    assert_same_trees([tree], unfolded(arrays))


@pytest.mark.parametrize(("dtype", "n_features"), [("<i1", 100), ("<i2", 1000), ("<i4", 40_000)])
def test_features_have_the_smallest_dtype(dtype, n_features):
    tree = make_tree(0, 3, n_features)
    tree = replace(tree, feature=np.where(tree.is_leaf, -1, n_features - 1).astype(np.int32))
    arrays = fold([tree])
    assert arrays["tree.feature"].dtype == dtype
    assert_same_trees([tree], unfolded(arrays, n_features=n_features))


def test_too_many_trees_are_refused():
    with pytest.raises(ValueError, match=f"can hold {MOST_TREES} trees"):
        fold([make_tree(0, 0)] * (MOST_TREES + 1))
    arrays = {name: np.repeat(array, 2 * MOST_TREES, axis=0) for name, array in fold([make_tree(0, 0)]).items()}
    arrays["tree.missing_left"] = np.zeros(MOST_TREES // 4, dtype=np.uint8)
    with pytest.raises(ModelFormatError, match="the numbers of trees and nodes are out of range"):
        unfolded(arrays)


def put(name, index, value):
    return lambda arrays: arrays[f"tree.{name}"].__setitem__(index, value)


def changed(name, change):
    return lambda arrays: arrays.update({f"tree.{name}": change(arrays[f"tree.{name}"])})


def flip_missing(arrays):
    node = int(arrays["tree.set_nodes"][0])
    arrays["tree.missing_left"][node // 8] ^= 128 >> node % 8


# Trees of 9, 1 and 15 nodes; the root of the first is a split.
TREES = {
    "feature too great": (put("feature", 0, 3), "a feature is not in"),
    "one leaf more": (put("feature", 0, -1), "the number of splits does not match"),
    "child out of range": (put("pair", 0, 4), "a child is out of range"),
    "cycle": (put("pair", slice(1, 4), 0), "a child does not come after its parent"),
    "weightless leaf": (put("total", 2, 0), "a weight is not finite"),
    "even tree": (put("n_nodes", slice(0, 2), (8, 2)), "are even"),
    "too few nodes": (put("n_nodes", 2, 13), "do not sum"),
    "negative size": (put("n_nodes", slice(0, 2), (11, -1)), "out of range"),
    "sizes that overflow": (put("n_nodes", slice(0, 3), (2**62 + 1, 2**62 + 1, 23)), "out of range"),
    "no tree": (lambda arrays: arrays.update({name: array[:0] for name, array in arrays.items()}), "out of range"),
    "short pairs": (changed("pair", lambda array: array[1:]), "tree.pair must be"),
    "short totals": (changed("total", lambda array: array[1:]), "tree.total must be"),
    "totals of three": (changed("total", lambda array: array[:, [0, 1, 1]]), "tree.total must be"),
    "short shrinkage": (changed("shrinkage", lambda array: array[1:]), "tree.shrinkage must be"),
}  # fmt: skip

WEIGHTS = {
    "NaN weight": (put("weight", 3, np.nan), "a weight is not finite and positive"),
    "weights that overflow": (changed("weight", lambda array: array * 1e304), "a weight is not finite and positive"),
    "short weights": (changed("weight", lambda array: array[1:]), "tree.weight must be"),
    "short values": (changed("value", lambda array: array[1:]), "tree.value must be"),
}  # fmt: skip

SETS = {
    "another node": (put("set_nodes", 0, 0), "a categorical split is on a numeric"),
    "threshold": (changed("threshold", lambda array: np.ones_like(array)), "a node with a set has a threshold"),
    "missing values": (flip_missing, "disagree on missing values"),
    "short sets": (changed("sets", lambda array: array[1:]), "nodes with a set, but"),
    "narrow sets": (changed("sets", lambda array: array[:, 1:].copy()), "tree.sets must be"),
}  # fmt: skip
HOSTILE = [
    pytest.param(change, message, options, id=name)
    for cases, options in ((TREES, {}), (WEIGHTS, {"whole": False}), (SETS, {"by_set": BY_SET}))
    for name, (change, message) in cases.items()
]


@pytest.mark.parametrize(("change", "message", "options"), HOSTILE)
def test_hostile_arrays_are_refused(change, message, options):
    arrays = fold(make_trees(1, **options))
    assert arrays["tree.feature"][0] >= 0
    change(arrays)
    with pytest.raises(ModelFormatError, match=message):
        unfolded(arrays, by_set=options.get("by_set", ()))


@given(st.data(), st.booleans(), st.booleans())
def test_any_change_is_refused_or_makes_valid_trees(data, whole, with_sets):
    by_set = BY_SET if with_sets else ()
    arrays = fold(make_trees(whole=whole, by_set=by_set))
    change_bytes(arrays, data)
    with suppress(ModelFormatError):
        for tree in unfolded(arrays, by_set=by_set):
            tree.validate()


def test_trees_that_take_too_much_memory_are_refused_before_they_are_made(monkeypatch):
    arrays, n_made, make_tree_of = fold(make_trees(n_splits=(7, 7, 7))), [], folded_trees.Tree
    monkeypatch.setattr(folded_trees, "Tree", lambda **parts: n_made.append(1) or make_tree_of(**parts))
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: 2 * 3 * 15 * 96)
    assert len(unfolded(arrays)) == len(n_made) == 3
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: 2 * 3 * 15 * 96 - 1)
    with pytest.raises(ModelFormatError, match=r"the trees of the file would take .*: use a larger machine"):
        unfolded(arrays)
    assert len(n_made) == 3
    # Trees are restored one at a time, and each takes less memory than estimated.
    monkeypatch.setattr(folded_trees, "_AT_ONCE", 1)
    assert len(unfolded(arrays)) == 3
    monkeypatch.setattr("aucforest._memory.machine_memory", lambda: 2 * 3 * 15 * 57)
    with pytest.raises(ModelFormatError, match="the trees of the file would take"):
        unfolded(arrays)
    assert len(n_made) == 3 + 3 + 2


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("most", [1, 60, 2**20])
def test_trees_unfolded_in_groups_are_the_same(whole, most, monkeypatch):
    monkeypatch.setattr(folded_trees, "_AT_ONCE", most)
    trees = make_trees(n_splits=(4, 0, 7, 31, 2), n_classes=3, whole=whole, by_set=BY_SET)
    assert_same_trees(trees, unfolded(fold(trees), 3, BY_SET))
