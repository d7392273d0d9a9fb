"""Trees in few bytes: what follows from the rest is left out, and made anew to the last bit.

`fold` keeps cuts of inner nodes and rows of leaves alone. Every node but the root is one of a pair of children, and
pairs are disjoint: so a tree has an odd number of nodes, and a left child is told by the number of its pair. Where all
weights are whole numbers, class frequencies and weights follow from the class totals of the leaves.

`unfold` takes arrays that anybody may have written: it raises ModelFormatError or returns trees that `Tree.validate`
passes, and allocates no more than these arrays justify.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.interop.model_file import Arrays, ModelFormatError, StoredModel
from aucforest.tree.structure import LEAF, SET_WORDS, Tree

# A tree of any size takes this much of Python's own memory at most, in files that justify less than a tenth.
MOST_TREES = 2**17
_MOST_NODES = 2**31 - 1
# Class totals are whole numbers up to here, where float64 sums of them are exact.
_MOST_TOTAL = 2**32
# Products of weights and class frequencies do not overflow.
_MOST_WEIGHT = 1e300

_CHECKS = (
    "a feature is out of range",
    "the number of cuts does not fit the number of nodes",
    "a child does not come after its parent, or is out of range",
    "a node other than the root does not have exactly one parent",
    "a threshold is NaN",
    "a cut without a gain",
    "a leaf without rows",
    "a weight or a class frequency is negative, not finite, or sums up to nothing",
    "the class frequencies of a node do not sum to 1",
    "the class weights of two children do not add up to their parent's",
)
_FEATURE, _N_CUTS, _CHILD, _PARENT, _THRESHOLD, _GAIN, _ROWS, _WEIGHT, _SUM, _TOTALS = range(1, len(_CHECKS) + 1)


def _narrow(values: NDArray[Any], dtypes: str) -> NDArray[Any]:
    """Return whole numbers in the first of these types, such as "BHI", that holds them all."""
    least, most = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for dtype in map(np.dtype, dtypes):
        limits = np.iinfo(dtype)
        if limits.min <= least and most <= limits.max:
            return values.astype(dtype)
    raise ValueError(f"{most} is too large for a model file")


def fold(trees: Sequence[Tree]) -> Arrays:
    """Return the arrays that trees are made anew from.

    Parameters
    ----------
    trees : sequence of Tree
        Valid trees of the same numbers of features and classes.

    Returns
    -------
    dict of str to ndarray
        Names begin with "tree."; of all trees one after the other ``n_nodes`` and ``shrinkage`` by tree; ``feature``
        and ``missing_left`` (as bits) by node; ``pair``, ``threshold`` and ``gain`` by cut; ``n_samples`` by leaf;
        ``set_nodes``, counted over all trees, and ``sets``; and either ``total`` by leaf, or ``weight`` and ``value``
        by node.
    """
    if len(trees) > MOST_TREES:
        raise ValueError(f"a model file holds at most {MOST_TREES} trees, not {len(trees)}")

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in trees])

    n_nodes = np.array([tree.n_nodes for tree in trees])
    starts = np.cumsum(n_nodes) - n_nodes
    feature, left_child = joined("feature"), joined("left_child")
    is_leaf = feature == LEAF
    arrays: Arrays = {
        "tree.n_nodes": n_nodes,
        "tree.shrinkage": np.array([tree.shrinkage for tree in trees], dtype=np.float64),
        "tree.feature": _narrow(feature, "bhi"),
        "tree.missing_left": np.packbits(joined("missing_left")),
        "tree.pair": _narrow(left_child[~is_leaf] // 2, "BHI"),
        "tree.threshold": joined("threshold")[~is_leaf],
        "tree.gain": joined("gain")[~is_leaf],
        "tree.n_samples": _narrow(joined("n_samples")[is_leaf], "BHI"),
    }
    if any(len(tree.sets) for tree in trees):
        set_nodes = np.concatenate([tree.set_nodes + start for tree, start in zip(trees, starts)])
        arrays |= {"tree.set_nodes": _narrow(set_nodes, "BHIq"), "tree.sets": joined("sets")}
    left = (left_child + np.repeat(starts, n_nodes))[~is_leaf]
    return arrays | _fold_totals(joined("weight"), joined("value"), is_leaf, left)


def _fold_totals(
    weight: NDArray[np.float64], value: NDArray[np.float64], is_leaf: NDArray[np.bool_], left: NDArray[np.int64]
) -> Arrays:
    """Return the class totals of leaves where they say all, else weights and class frequencies as they are."""
    total = np.rint(value * weight[:, None])
    says_all = (
        total.max() < _MOST_TOTAL
        and np.array_equal(total[~is_leaf], total[left] + total[left + 1])
        and np.array_equal(total.sum(axis=1), weight)
        and np.array_equal(total / weight[:, None], value)
    )
    return {"tree.total": _narrow(total[is_leaf], "BHI")} if says_all else {"tree.weight": weight, "tree.value": value}


@bare_device
def _unfold_tree(n_features, feature, pair, cut_threshold, cut_gain, leaf_rows, threshold, left_child, gain, n_samples):  # type: ignore[no-untyped-def]
    """Fill the arrays of one tree, n_samples being 0 before; return 0, or the number of what is wrong."""
    n_nodes, cut, leaf = len(feature), 0, 0
    for node in range(n_nodes):
        # a left child was marked by its parent
        if node % 2 == 1 and n_samples[node] != -1:
            return _PARENT
        if feature[node] == LEAF:
            if leaf == len(leaf_rows):
                return _N_CUTS
            threshold[node], left_child[node], gain[node] = 0.0, LEAF, 0.0
            n_samples[node] = leaf_rows[leaf]
            if leaf_rows[leaf] < 1:
                return _ROWS
            leaf += 1
            continue
        if cut == len(pair):
            return _N_CUTS
        if feature[node] < 0 or feature[node] >= n_features:
            return _FEATURE
        left = 2 * pair[cut] + 1
        if left <= node or left + 1 >= n_nodes:
            return _CHILD
        if n_samples[left] == -1:
            return _PARENT
        n_samples[left] = -1
        threshold[node], left_child[node], gain[node] = cut_threshold[cut], left, cut_gain[cut]
        if np.isnan(threshold[node]):
            return _THRESHOLD
        if not 0.0 < gain[node] < np.inf:
            return _GAIN
        cut += 1
    for node in range(n_nodes - 1, -1, -1):
        left = left_child[node]
        if left != LEAF:
            n_samples[node] = n_samples[left] + n_samples[left + 1]
    return 0


@bare_device
def _sum_totals(left_child, leaf_total, weight, value):  # type: ignore[no-untyped-def]
    """Fill weights and class frequencies from the class totals of leaves; return 0, or the number of what is wrong."""
    n_classes, leaf = value.shape[1], len(leaf_total) - 1
    for node in range(len(left_child) - 1, -1, -1):
        left, whole = left_child[node], 0.0
        for k in range(n_classes):
            total = leaf_total[leaf, k] if left == LEAF else value[left, k] + value[left + 1, k]
            value[node, k] = total
            whole += total
        if not whole > 0.0:
            return _WEIGHT
        weight[node] = whole
        if left == LEAF:
            leaf -= 1
    for node in range(len(left_child)):
        for k in range(n_classes):
            value[node, k] /= weight[node]
    return 0


@bare_device
def _check_totals(left_child, weight, value):  # type: ignore[no-untyped-def]
    """Return 0 if weights and class frequencies of one tree agree, else the number of what is wrong."""
    for node in range(len(left_child)):
        left, whole = left_child[node], 0.0
        if not 0.0 < weight[node] < _MOST_WEIGHT:
            return _WEIGHT
        for k in range(value.shape[1]):
            if not 0.0 <= value[node, k] < np.inf:
                return _WEIGHT
            whole += value[node, k]
        if not abs(whole - 1.0) <= 1e-9:
            return _SUM
        for k in range(value.shape[1] if left != LEAF else 0):
            parts = value[left, k] * weight[left] + value[left + 1, k] * weight[left + 1]
            if not abs(value[node, k] * weight[node] - parts) <= 1e-9 * (weight[0] + parts):
                return _TOTALS
    return 0


@bare_kernel
def _unfold_all(  # type: ignore[no-untyped-def]
    n_nodes, n_features, feature, pair, cut_threshold, cut_gain, leaf_rows, leaf_total,
    threshold, left_child, gain, n_samples, weight, value,
):  # fmt: skip
    """Fill the arrays of all trees; return 0, or the number of the first thing that is wrong."""
    start, cut, leaf = 0, 0, 0
    for tree in range(len(n_nodes)):
        end, next_cut, next_leaf = start + n_nodes[tree], cut + n_nodes[tree] // 2, leaf + n_nodes[tree] // 2 + 1
        left = left_child[start:end]
        wrong = _unfold_tree(
            n_features, feature[start:end], pair[cut:next_cut], cut_threshold[cut:next_cut], cut_gain[cut:next_cut],
            leaf_rows[leaf:next_leaf], threshold[start:end], left, gain[start:end], n_samples[start:end],
        )  # fmt: skip
        if wrong == 0 and len(leaf_total) > 0:
            wrong = _sum_totals(left, leaf_total[leaf:next_leaf], weight[start:end], value[start:end])
        elif wrong == 0:
            wrong = _check_totals(left, weight[start:end], value[start:end])
        if wrong != 0:
            return wrong
        start, cut, leaf = end, next_cut, next_leaf
    return 0


def unfold(model: StoredModel, n_features: int, n_classes: int, set_features: NDArray[np.int64]) -> list[Tree]:
    """Make the trees anew.

    Parameters
    ----------
    model : StoredModel
        With the arrays of `fold`, which are taken out of it.
    n_features, n_classes : int
        What the trees read and predict.
    set_features : ndarray of int64
        The features that are cut by sets, and no others are.

    Returns
    -------
    list of Tree
        Valid ones; they share memory.

    Raises
    ------
    ModelFormatError
        For arrays that are missing, of other types or shapes, or do not make valid trees.
    """
    n_nodes = model.take_array("tree.n_nodes", "q", (-1,))
    nodes = _unfold_nodes(model, n_nodes, n_features, n_classes)
    shrinkage = model.take_array("tree.shrinkage", "d", n_nodes.shape)
    if not np.all((shrinkage >= 0.0) & (shrinkage < np.inf)):
        raise ModelFormatError("tree: shrinkage is negative or not finite")
    sets = _unfold_sets(model, nodes, n_nodes, set_features)
    ends = np.cumsum(n_nodes).tolist()
    trees = []
    for start, end, own_sets, amount in zip([0, *ends], ends, sets, shrinkage.tolist()):
        own_nodes = {name: array[start:end] for name, array in nodes.items()}
        trees.append(Tree(**own_nodes, **own_sets, n_features=n_features, shrinkage=amount))
    return trees


def _unfold_nodes(model: StoredModel, n_nodes: NDArray[np.int64], n_features: int, n_classes: int) -> Arrays:
    """Return the arrays of the nodes of all trees, checked."""
    feature = model.take_array("tree.feature", "bhi", (-1,)).astype(np.int32)
    n_trees, n_all = len(n_nodes), len(feature)
    if not (1 <= n_trees <= MOST_TREES and n_nodes.min() >= 1 and n_nodes.max() <= min(n_all, _MOST_NODES)):
        raise ModelFormatError("the numbers of trees and nodes are out of range")
    if np.any(n_nodes % 2 == 0) or n_nodes.sum() != n_all:
        raise ModelFormatError("the numbers of nodes are even, or do not sum to their number in all")
    n_cuts = (n_all - n_trees) // 2
    n_leaves = n_cuts + n_trees
    pair = model.take_array("tree.pair", "BHI", (n_cuts,)).astype(np.int64)
    threshold, gain = (model.take_array(name, "d", (n_cuts,)) for name in ("tree.threshold", "tree.gain"))
    leaf_rows = model.take_array("tree.n_samples", "BHI", (n_leaves,)).astype(np.int64)
    missing_left = model.take_array("tree.missing_left", "B", ((n_all + 7) // 8,))
    if "tree.total" in model:
        leaf_total = model.take_array("tree.total", "BHI", (n_leaves, n_classes)).astype(np.float64)
        weight, value = np.empty(n_all), np.empty((n_all, n_classes))
    else:
        leaf_total, weight = np.empty((0, n_classes)), model.take_array("tree.weight", "d", (n_all,))
        value = model.take_array("tree.value", "d", (n_all, n_classes))
    nodes: Arrays = {
        "threshold": np.empty(n_all),
        "left_child": np.empty(n_all, dtype=np.int32),
        "gain": np.empty(n_all),
        "n_samples": np.zeros(n_all, dtype=np.int64),
        "weight": weight,
        "value": value,
    }
    wrong = _unfold_all(n_nodes, n_features, feature, pair, threshold, gain, leaf_rows, leaf_total, *nodes.values())
    if wrong != 0:
        raise ModelFormatError(f"tree: {_CHECKS[wrong - 1]}")
    return nodes | {"feature": feature, "missing_left": np.unpackbits(missing_left, count=n_all).view(np.bool_)}


def _unfold_sets(
    model: StoredModel, nodes: Arrays, n_nodes: NDArray[np.int64], set_features: NDArray[np.int64]
) -> Iterator[Arrays]:
    """Check the sets and share them out to the trees."""
    feature, threshold, missing_left = nodes["feature"], nodes["threshold"], nodes["missing_left"]
    if "tree.sets" not in model:
        if len(set_features) > 0 and np.any(np.isin(feature, set_features)):
            raise ModelFormatError("tree: a categorical feature is cut by a threshold")
        return repeat({}, len(n_nodes))
    sets = model.take_array("tree.sets", "Q", (-1, SET_WORDS))
    set_nodes = model.take_array("tree.set_nodes", "BHIq", (len(sets),)).astype(np.int64)
    if np.any(np.diff(set_nodes) <= 0) or np.any((set_nodes < 0) | (set_nodes >= len(feature))):
        raise ModelFormatError("tree: the nodes with a set are not in rising order, or out of range")
    if not np.array_equal(np.flatnonzero(np.isin(feature, set_features)), set_nodes):
        raise ModelFormatError("tree: not just the categorical features are cut by sets")
    if np.any(threshold[set_nodes] != 0.0):
        raise ModelFormatError("tree: a node with a set has a threshold")
    if not np.array_equal((sets[:, -1] >> np.uint64(63)).astype(np.bool_), missing_left[set_nodes]):
        raise ModelFormatError("tree: a set and missing_left disagree on missing values")
    starts = np.concatenate(([0], np.cumsum(n_nodes)))
    bounds = np.searchsorted(set_nodes, starts)
    return (
        {"set_nodes": set_nodes[first:last] - start, "sets": sets[first:last]}
        for start, first, last in zip(starts.tolist(), bounds.tolist(), bounds[1:].tolist())
    )
