"""Compact storage of trees: values that can be computed from others are not stored, and are restored exactly.

`fold` stores thresholds, gains and children for inner nodes only, and numbers of samples for leaves only. The children
of a node have the indices 2 p + 1 and 2 p + 2 for some p, so only p is stored, and a tree has an odd number of nodes.
If all weights are integers, the class totals of leaves are stored in place of the weights and class frequencies of all
nodes, which can be computed from them.

`unfold` reads arrays from untrusted files. It validates the values that determine indices and allocations, and
`Tree.validate` validates the others.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest._memory import check_memory
from aucforest.persistence.model_file import Arrays, ModelFormatError, ModelTooLargeError, StoredModel, narrow, require
from aucforest.tree.tree import LEAF, SET_WORDS, Tree

# The maximum number of trees in a file, so that a small file cannot exhaust the memory: the Python objects of a tree
# with a single node take more than ten times its bytes in a file.
MOST_TREES = 2**17
_MOST_NODES = 2**31 - 1
# Class totals below this number are stored as integers; their sums in float64 are exact.
_MOST_TOTAL = 2**32
# The number of class frequencies that are restored at once, so that they are in the CPU cache when they are validated.
_AT_ONCE = 2**17


def fold(trees: Sequence[Tree]) -> Arrays:
    """Return arrays from which `unfold` restores the trees, which must be valid and have equal features and classes."""
    if len(trees) > MOST_TREES:
        raise ValueError(f"a model file can hold {MOST_TREES} trees, but the model has {len(trees)}")

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in trees])

    n_nodes = np.array([tree.n_nodes for tree in trees])
    starts = np.cumsum(n_nodes) - n_nodes
    feature, left_child = joined("feature"), joined("left_child")
    is_leaf = feature == LEAF
    arrays: Arrays = {
        "tree.n_nodes": n_nodes,
        "tree.shrinkage": np.array([tree.shrinkage for tree in trees], dtype=np.float64),
        "tree.feature": narrow(feature, "bhi"),
        "tree.missing_left": np.packbits(joined("missing_left")),
        "tree.pair": narrow(left_child[~is_leaf] // 2, "BHI"),
        "tree.threshold": joined("threshold")[~is_leaf],
        "tree.gain": joined("gain")[~is_leaf],
        "tree.n_samples": narrow(joined("n_samples")[is_leaf], "BHI"),
        "tree.set_nodes": narrow(joined("set_nodes") + np.repeat(starts, [len(tree.sets) for tree in trees]), "BHIq"),
        "tree.sets": joined("sets"),
    }
    totals = []
    for tree in trees:
        if (total := _leaf_totals(tree)) is None:
            n_numbers = int(n_nodes.sum()) * tree.n_classes
            what = f"a file of {n_numbers:,} class frequencies"
            check_memory(16 * n_numbers, what, "fit fewer trees, or without weights")
            return arrays | {"tree.weight": joined("weight"), "tree.value": joined("value")}
        totals.append(total)
    return arrays | {"tree.total": np.concatenate(totals)}


def _leaf_totals(tree: Tree) -> NDArray[Any] | None:
    """Return the class totals of the leaves, or None if weights and class frequencies cannot be restored from them."""
    weight, value, splits = tree.weight, tree.value, np.flatnonzero(~tree.is_leaf)
    total, left = np.rint(value * weight[:, None]), tree.left_child[splits]
    is_exact = (
        total.max() < _MOST_TOTAL
        and np.array_equal(total[splits], total[left] + total[left + 1])
        and np.array_equal(total.sum(axis=1), weight)
        and np.array_equal(total / weight[:, None], value)
    )
    return narrow(total[tree.is_leaf], "BHI") if is_exact else None


@bare_kernel
def _sum_children(splits, left_children, n_samples, totals):
    """Set the number of samples and the totals of split nodes to the sums over children; `totals` may be empty."""
    for i in range(len(splits) - 1, -1, -1):  # children come after their parents
        node, left = splits[i], left_children[i]
        n_samples[node] = n_samples[left] + n_samples[left + 1]
        for k in range(totals.shape[1]):
            totals[node, k] = totals[left, k] + totals[left + 1, k]


def unfold(model: StoredModel, n_features: int, n_classes: int, set_features: NDArray[np.int64]) -> list[Tree]:
    """Take the arrays of `fold` from a file and return the trees. `set_features` are split by sets of categories."""
    arrays = _take_arrays(model, n_classes)
    n_nodes, feature = arrays["n_nodes"], arrays["feature"]
    ends, n_splits = np.concatenate(([0], np.cumsum(n_nodes))), n_nodes // 2
    n_found = np.add.reduceat(feature != LEAF, ends[:-1], dtype=np.int64)
    require(np.array_equal(n_found, n_splits), "tree: the number of splits does not match the number of nodes")
    require(np.all(arrays["pair"] < np.repeat(n_splits, n_splits)), "tree: a child is out of range")
    n_set_nodes, n_sets = len(arrays["set_nodes"]), len(arrays["sets"])
    require(n_set_nodes == n_sets, f"tree: there are {n_set_nodes} nodes with a set, but {n_sets} sets")
    by_set = np.flatnonzero(np.isin(feature, set_features)) if len(set_features) > 0 else ()
    is_categorical = np.array_equal(by_set, arrays["set_nodes"])
    require(is_categorical, "tree: a categorical split is on a numeric feature, or the reverse")
    group_of_tree = ends[:-1] * n_classes // _AT_ONCE
    bounds = [0, *(np.flatnonzero(np.diff(group_of_tree)) + 1).tolist(), len(n_nodes)]
    trees: list[Tree] = []
    n_bytes = 0
    for first, last in pairwise(bounds):
        n_bytes_more = (16 * n_classes + 64) * int(ends[last] - ends[first])
        try:
            check_memory(n_bytes + n_bytes_more, "the trees of the file", "use a larger machine")
        except ValueError as error:
            raise ModelTooLargeError(str(error)) from None
        try:
            for tree in _unfold_group(arrays, first, ends[first : last + 1].tolist(), n_features, n_classes):
                tree.validate()
                trees.append(tree)
                n_bytes += tree.nbytes
        except ValueError as error:
            raise ModelFormatError(str(error)) from None
    return trees


def _unfold_group(arrays: Arrays, first_tree: int, ends: list[int], n_features: int, n_classes: int) -> Iterator[Tree]:
    """Yield consecutive trees of a file: tree first_tree + i has the nodes from ends[i] to ends[i + 1] - 1."""
    first, last, last_tree = ends[0], ends[-1], first_tree + len(ends) - 1
    # A tree of n nodes has (n - 1) / 2 splits and (n + 1) / 2 leaves.
    splits = slice((first - first_tree) // 2, (last - last_tree) // 2)
    leaves = slice((first + first_tree) // 2, (last + last_tree) // 2)
    n_nodes, feature = last - first, arrays["feature"][first:last].astype(np.int32)
    split_nodes, leaf_nodes = np.flatnonzero(feature != LEAF), np.flatnonzero(feature == LEAF)
    bits = np.unpackbits(arrays["missing_left"][first // 8 : (last + 7) // 8])[first % 8 :]
    nodes: Arrays = {
        "feature": feature,
        "missing_left": bits[:n_nodes].view(np.bool_),
        "threshold": np.zeros(n_nodes),
        "gain": np.zeros(n_nodes),
        "left_child": np.full(n_nodes, LEAF, dtype=np.int32),
        "n_samples": np.zeros(n_nodes, dtype=np.int64),
    }
    for name in ("threshold", "gain"):
        nodes[name][split_nodes] = arrays[name][splits]
    nodes["left_child"][split_nodes] = left_child = 2 * arrays["pair"][splits].astype(np.int64) + 1
    nodes["n_samples"][leaf_nodes] = arrays["n_samples"][leaves]
    totals = np.zeros((n_nodes, n_classes) if "total" in arrays else (0, 0))
    if "total" in arrays:
        totals[leaf_nodes] = arrays["total"][leaves]
    starts = np.repeat(np.array(ends[:-1]) - first, np.diff(ends) // 2)
    _sum_children(split_nodes, starts + left_child, nodes["n_samples"], totals)
    if "total" in arrays:
        # numpy is slow at sums along a short axis, so the columns are added one by one.
        nodes["weight"] = reduce(np.add, totals.T)
        with np.errstate(all="ignore"):
            nodes["frequencies"] = np.divide(totals, nodes["weight"][:, None], out=totals)
    else:
        nodes |= {"weight": arrays["weight"][first:last], "frequencies": arrays["value"][first:last]}
    set_ends = np.searchsorted(arrays["set_nodes"], ends).tolist()
    for i, shrinkage in enumerate(arrays["shrinkage"][first_tree:last_tree].tolist()):
        parts = {name: array[ends[i] - first : ends[i + 1] - first] for name, array in nodes.items()}
        sets = slice(set_ends[i], set_ends[i + 1])
        if sets.start < sets.stop:  # otherwise trees share the empty default arrays
            parts["set_nodes"] = arrays["set_nodes"][sets].astype(np.int64) - ends[i]
            parts["sets"] = arrays["sets"][sets]
        yield Tree(**parts, n_features=n_features, shrinkage=shrinkage)


def _take_arrays(model: StoredModel, n_classes: int) -> Arrays:
    """Take the arrays from a file; ModelFormatError if their dtypes or shapes do not match."""
    n_nodes = model.take_array("tree.n_nodes", "q", (-1,))
    feature = model.take_array("tree.feature", "bhi", (-1,))
    n_trees, n_all = len(n_nodes), len(feature)
    are_sizes = 1 <= n_trees <= MOST_TREES and n_nodes.min() >= 1 and n_nodes.max() <= min(n_all, _MOST_NODES)
    require(are_sizes, "the numbers of trees and nodes are out of range")
    are_odd = np.all(n_nodes % 2 == 1) and n_nodes.sum() == n_all
    require(are_odd, "the numbers of nodes are even, or do not sum to the total")
    n_splits = (n_all - n_trees) // 2
    n_leaves = n_splits + n_trees
    expected: dict[str, tuple[str, tuple[int, ...]]] = {
        "shrinkage": ("d", (n_trees,)), "missing_left": ("B", ((n_all + 7) // 8,)), "pair": ("BHI", (n_splits,)),
        "threshold": ("d", (n_splits,)), "gain": ("d", (n_splits,)), "n_samples": ("BHI", (n_leaves,)),
        "set_nodes": ("BHIq", (-1,)), "sets": ("Q", (-1, SET_WORDS)),
    }  # fmt: skip
    if "tree.total" in model:
        expected["total"] = ("BHI", (n_leaves, n_classes))
    else:
        expected |= {"weight": ("d", (n_all,)), "value": ("d", (n_all, n_classes))}
    taken = {name: model.take_array(f"tree.{name}", *dtypes_and_shape) for name, dtypes_and_shape in expected.items()}
    return {"n_nodes": n_nodes, "feature": feature, **taken}
