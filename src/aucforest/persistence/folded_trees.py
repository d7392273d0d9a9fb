"""Trees in few bytes: what follows from the rest is left out, and made anew to the last bit.

`fold` keeps cuts of inner nodes and rows of leaves alone. Every node but the root is one of a pair of children, and
pairs are disjoint: so a tree has an odd number of nodes, and a left child is told by the number of its pair. Where all
weights are whole numbers, class frequencies and weights follow from the class totals of the leaves.

`FoldedTrees.check` takes arrays that anybody may have written: it raises ModelFormatError, or the trees that they make
pass `Tree.validate`. What is then allocated is in proportion to the arrays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_kernel
from aucforest._memory import check_memory
from aucforest.persistence.model_file import Arrays, ModelFormatError, StoredModel
from aucforest.tree.tree import LEAF, SET_WORDS, Tree

# A tree of any size takes this much of Python's own memory at most, in files that justify less than a tenth.
MOST_TREES = 2**17
_MOST_NODES = 2**31 - 1
# Class totals are whole numbers up to here, where float64 sums of them are exact.
_MOST_TOTAL = 2**32
# Class frequencies that are made at a time, 256 MiB.
_MOST_UNFOLDED = 2**25
# Products of weights and class frequencies do not overflow.
_MOST_WEIGHT = 1e300


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
        "tree.set_nodes": _narrow(joined("set_nodes") + np.repeat(starts, [len(tree.sets) for tree in trees]), "BHIq"),
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
    """Return the class totals of the leaves, None where weights and class frequencies do not follow from them."""
    weight, value, cuts = tree.weight, tree.value, np.flatnonzero(~tree.is_leaf)
    total, left = np.rint(value * weight[:, None]), tree.left_child[cuts]
    says_all = (
        total.max() < _MOST_TOTAL
        and np.array_equal(total[cuts], total[left] + total[left + 1])
        and np.array_equal(total.sum(axis=1), weight)
        and np.array_equal(total / weight[:, None], value)
    )
    return _narrow(total[tree.is_leaf], "BHI") if says_all else None


@bare_kernel
def _unfold(
    n_nodes, feature, pair, cut_threshold, cut_gain, leaf_rows, leaf_total,
    threshold, left_child, gain, n_samples, total,
):  # fmt: skip
    """Spread cuts and leaves over the nodes of all trees, and sum up rows and class totals, where there are any."""
    start, cut, leaf = 0, 0, 0
    n_classes = leaf_total.shape[1] if len(leaf_total) > 0 else 0
    for tree in range(len(n_nodes)):
        end = start + n_nodes[tree]
        for node in range(start, end):
            if feature[node] == LEAF:
                threshold[node], left_child[node], gain[node] = 0.0, LEAF, 0.0
                n_samples[node] = leaf_rows[leaf]
                for k in range(n_classes):
                    total[node, k] = leaf_total[leaf, k]
                leaf += 1
            else:
                threshold[node], left_child[node], gain[node] = cut_threshold[cut], 2 * pair[cut] + 1, cut_gain[cut]
                cut += 1
        for node in range(end - 1, start - 1, -1):
            if feature[node] != LEAF:
                left = start + left_child[node]
                n_samples[node] = n_samples[left] + n_samples[left + 1]
                for k in range(n_classes):
                    total[node, k] = total[left, k] + total[left + 1, k]
        start = end


@dataclass(frozen=True, eq=False)
class FoldedTrees:
    """Valid trees, as `fold` writes them.

    Attributes
    ----------
    n_features : int
        What the trees read.
    arrays : dict of str to ndarray
        Without the "tree." of their names.
    """

    n_features: int
    arrays: Arrays

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self.arrays["n_nodes"])

    @classmethod
    def check(
        cls, model: StoredModel, n_features: int, n_classes: int, set_features: NDArray[np.int64]
    ) -> "FoldedTrees":
        """Check everything about the trees of a file.

        Parameters
        ----------
        model : StoredModel
            With the arrays of `fold`, which are taken out of it.
        n_features, n_classes : int
            What the trees read and predict.
        set_features : ndarray of int64
            The features that are cut by sets; no others are.

        Raises
        ------
        ModelFormatError
            For arrays that are missing, of other types or shapes, or do not make valid trees.
        """
        arrays = _take(model, n_classes)
        left = _check_cuts(arrays, n_features)
        for holds, sentence in _invariants(arrays):
            if not holds:
                raise ModelFormatError(f"tree: {sentence}")
        if "total" not in arrays:
            _check_weights(arrays, left)
        _check_sets(arrays, set_features)
        return cls(n_features, arrays)

    def unfold(self) -> list[Tree]:
        """Make the trees anew, as many at a time as memory is for their class frequencies; these share memory."""
        n_nodes = self.arrays["n_nodes"]
        n_classes = self.arrays["total" if "total" in self.arrays else "value"].shape[1]
        groups = (np.cumsum(n_nodes) - n_nodes) * n_classes // _MOST_UNFOLDED
        bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(n_nodes)]
        sets = self._sets_by_tree()
        return [tree for group in starmap(range, pairwise(bounds)) for tree in self._unfold_some(group, sets)]

    def _unfold_some(self, group: range, sets: Iterator[Arrays]) -> Iterator[Tree]:
        """Yield some of the trees, given their sets."""
        arrays, ends = self.arrays, np.cumsum(self.arrays["n_nodes"])
        n_nodes = arrays["n_nodes"][group.start : group.stop]
        last = int(ends[group.stop - 1])
        first, n_all = last - int(n_nodes.sum()), int(n_nodes.sum())
        # Of the nodes of a tree, one less than half are cuts.
        cuts = slice((first - group.start) // 2, (last - group.stop) // 2)
        leaves = slice((first + group.start) // 2, (last + group.stop) // 2)
        feature = arrays["feature"][first:last].astype(np.int32)
        total = arrays["total"][leaves].astype(np.float64) if "total" in arrays else np.empty((0, 0))
        nodes: Arrays = {
            "threshold": np.empty(n_all),
            "left_child": np.empty(n_all, dtype=np.int32),
            "gain": np.empty(n_all),
            "n_samples": np.empty(n_all, dtype=np.int64),
            "frequencies": arrays["value"][first:last] if "value" in arrays else np.empty((n_all, total.shape[1])),
        }
        of_cuts = arrays["pair"][cuts].astype(np.int64), arrays["threshold"][cuts], arrays["gain"][cuts]
        _unfold(n_nodes, feature, *of_cuts, arrays["n_samples"][leaves].astype(np.int64), total, *nodes.values())
        if "total" in arrays:
            nodes["weight"] = reduce(np.add, nodes["frequencies"].T)
            nodes["frequencies"] /= nodes["weight"][:, None]
        else:
            nodes["weight"] = arrays["weight"][first:last]
        missing_left = np.unpackbits(arrays["missing_left"], count=last)[first:].view(np.bool_)
        nodes |= {"feature": feature, "missing_left": missing_left}
        for start, end, tree in zip([first, *ends[group.start :]], ends[group.start : group.stop], group):
            own = {name: array[start - first : end - first] for name, array in nodes.items()}
            shrinkage = float(arrays["shrinkage"][tree])
            yield Tree(**own, **next(sets), n_features=self.n_features, shrinkage=shrinkage)

    def _sets_by_tree(self) -> Iterator[Arrays]:
        """Yield what `Tree` takes of the sets."""
        starts = np.concatenate(([0], np.cumsum(self.arrays["n_nodes"])))
        set_nodes, sets = self.arrays["set_nodes"].astype(np.int64), self.arrays["sets"]
        bounds = np.searchsorted(set_nodes, starts)
        for start, first, last in zip(starts.tolist(), bounds.tolist(), bounds[1:].tolist()):
            yield {"set_nodes": set_nodes[first:last] - start, "sets": sets[first:last]}


def _take(model: StoredModel, n_classes: int) -> Arrays:
    """Take out the arrays, of types and shapes that fit each other."""
    n_nodes = model.take_array("tree.n_nodes", "q", (-1,))
    feature = model.take_array("tree.feature", "bhi", (-1,))
    n_trees, n_all = len(n_nodes), len(feature)
    if not (1 <= n_trees <= MOST_TREES and n_nodes.min() >= 1 and n_nodes.max() <= min(n_all, _MOST_NODES)):
        raise ModelFormatError("the numbers of trees and nodes are out of range")
    if np.any(n_nodes % 2 == 0) or n_nodes.sum() != n_all:
        raise ModelFormatError("the numbers of nodes are even, or do not sum to their number in all")
    n_cuts = (n_all - n_trees) // 2
    n_leaves = n_cuts + n_trees
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {
        "shrinkage": ("d", (n_trees,)),
        "missing_left": ("B", ((n_all + 7) // 8,)),
        "pair": ("BHI", (n_cuts,)),
        "threshold": ("d", (n_cuts,)),
        "gain": ("d", (n_cuts,)),
        "n_samples": ("BHI", (n_leaves,)),
        "set_nodes": ("BHIq", (-1,)),
        "sets": ("Q", (-1, SET_WORDS)),
    }
    if "tree.total" in model:
        wanted["total"] = ("BHI", (n_leaves, n_classes))
    else:
        wanted |= {"weight": ("d", (n_all,)), "value": ("d", (n_all, n_classes))}
    taken = {name: model.take_array(f"tree.{name}", *what) for name, what in wanted.items()}
    return {"n_nodes": n_nodes, "feature": feature, **taken}


def _check_cuts(arrays: Arrays, n_features: int) -> NDArray[np.int64]:
    """Check that cuts make trees; return the left children, counted over all trees."""
    n_nodes, feature, pair = arrays["n_nodes"], arrays["feature"], arrays["pair"]
    is_cut, starts, n_cuts = feature != LEAF, np.cumsum(n_nodes) - n_nodes, n_nodes // 2
    if feature.min() < LEAF or feature.max() >= n_features:
        raise ModelFormatError("tree: a feature is out of range")
    if not np.array_equal(np.add.reduceat(is_cut, starts, dtype=np.int64), n_cuts):
        raise ModelFormatError("tree: the number of cuts does not fit the number of nodes")
    if np.any(pair >= np.repeat(n_cuts, n_cuts)):
        raise ModelFormatError("tree: a child is out of range")
    left = 2 * pair.astype(np.int64) + np.repeat(starts + 1, n_cuts)
    if np.any(left <= np.flatnonzero(is_cut)):
        raise ModelFormatError("tree: a child does not come after its parent")
    has_parent = np.zeros(len(pair), dtype=np.bool_)
    has_parent[pair + np.repeat(np.cumsum(n_cuts) - n_cuts, n_cuts)] = True
    if not np.all(has_parent):
        raise ModelFormatError("tree: a node other than the root does not have exactly one parent")
    return left


def _invariants(arrays: Arrays) -> Iterator[tuple[Any, str]]:
    """Yield what must hold of numbers, and what to say otherwise."""
    gain, shrinkage = arrays["gain"], arrays["shrinkage"]
    yield not np.any(np.isnan(arrays["threshold"])), "a threshold is NaN"
    yield np.all((gain > 0.0) & (gain < np.inf)), "a cut without a gain"
    yield np.all(arrays["n_samples"]), "a leaf without rows"
    yield np.all(shrinkage >= 0.0), "shrinkage is negative or NaN"
    if "total" in arrays:
        # column by column: reductions along a short axis are slow
        yield np.all(reduce(np.bitwise_or, arrays["total"].T)), "a leaf without weight"


def _check_weights(arrays: Arrays, left: NDArray[np.int64]) -> None:
    """Check weights and class frequencies that are stored as they are."""
    weight, value, n_nodes = arrays["weight"], arrays["value"], arrays["n_nodes"]
    if not (np.all((weight > 0.0) & (weight < _MOST_WEIGHT)) and np.all((value >= 0.0) & (value <= 2.0))):
        raise ModelFormatError("tree: a weight or a class frequency is out of range")
    if not np.all(np.abs(value.sum(axis=1) - 1.0) <= 1e-9):
        raise ModelFormatError("tree: the class frequencies of a node do not sum to 1")
    total, roots = value * weight[:, None], weight[np.cumsum(n_nodes) - n_nodes]
    parts = total[left] + total[left + 1]
    differences = np.abs(total[arrays["feature"] != LEAF] - parts)
    if not np.all(differences <= 1e-9 * (parts + np.repeat(roots, n_nodes // 2)[:, None])):
        raise ModelFormatError("tree: the class weights of two children do not add up to their parent's")


def _check_sets(arrays: Arrays, set_features: NDArray[np.int64]) -> None:
    """Check the cuts of categorical features."""
    feature, set_nodes, sets = arrays["feature"], arrays["set_nodes"], arrays["sets"]
    if len(set_nodes) != len(sets):
        raise ModelFormatError(f"tree: there are {len(set_nodes)} nodes with a set, but {len(sets)} sets")
    by_set = np.flatnonzero(np.isin(feature, set_features)) if len(set_features) > 0 else np.empty(0, dtype=np.int64)
    if not np.array_equal(by_set, set_nodes):
        raise ModelFormatError("tree: it is not the categorical features that are cut by sets")
    if len(sets) == 0:
        return
    cuts = np.cumsum(feature != LEAF)[by_set] - 1
    if np.any(arrays["threshold"][cuts] != 0.0):
        raise ModelFormatError("tree: a node with a set has a threshold")
    missing_left = np.unpackbits(arrays["missing_left"], count=len(feature))[by_set]
    if not np.array_equal(sets[:, -1] >> np.uint64(63), missing_left):
        raise ModelFormatError("tree: a set and missing_left disagree on missing values")
