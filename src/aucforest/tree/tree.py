"""The grown tree: flat, read-only node arrays.

Node 0 is the root. The children of node i are left_child[i] and left_child[i] + 1, and come after it. A row goes left
if its value is <= threshold, or if it is missing and missing_left is true. The split of a categorical feature has a set
of codes in place of the threshold: a row goes left if its code is in the set.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from aucforest._compile import bare_kernel

LEAF = -1
# With at least this number of classes, frequencies are stored as a sparse matrix if most of them are 0.
_MANY_CLASSES = 16
# A float64 sum of integers above this may depend on the order of the terms. `ClassTotals.sum` has a fixed order.
_EXACT_SUMS = 2.0**53
_DENSE_CELLS = 2**20  # maximum number of class totals, zeros included, that are summed at once
# In sets of codes, MISSING_CODE stands for missing values. The code of a category is its index, but all categories with
# an index of at least SHARED_CODE have the code SHARED_CODE.
MISSING_CODE = 255
SHARED_CODE = MISSING_CODE - 1
SET_WORDS = 4
# `set_nodes` and `sets` of a tree without categorical splits.
_NO_NODES, _NO_SETS = np.empty(0, dtype=np.int64), np.empty((0, SET_WORDS), dtype=np.uint64)
_NO_NODES.setflags(write=False)
_NO_SETS.setflags(write=False)


class ClassTotals(NamedTuple):
    """The class totals of nodes in units of weight, without zeros, as in a sparse matrix with a row for each node.

    Node i has the slice starts[i]:starts[i + 1] of `labels` and `values`, in the order of the classes.
    """

    n_classes: int
    starts: NDArray[np.int64]  # (n_nodes + 1,)
    labels: NDArray[np.int32]  # the classes
    values: NDArray[np.int64]  # their totals

    def rows(self, first: int, stop: int) -> "ClassTotals":
        """Return the class totals of consecutive nodes, as views."""
        return self._replace(starts=self.starts[first : stop + 1])

    def dense(self) -> NDArray[np.int64]:
        """Return the class totals with zeros, (n_nodes, n_classes)."""
        stored, counts = slice(self.starts[0], self.starts[-1]), np.diff(self.starts)
        dense = np.zeros((len(counts), self.n_classes), dtype=np.int64)
        dense[np.repeat(np.arange(len(counts)), counts), self.labels[stored]] = self.values[stored]
        return dense

    def sum(self) -> NDArray[np.float64]:
        """Return the weight of each node, in float64. The order of the terms only depends on the number of classes."""
        size, n_nodes = max(_DENSE_CELLS // self.n_classes, 1), len(self.starts) - 1
        blocks = [self.rows(first, min(first + size, n_nodes)) for first in range(0, n_nodes, size)]
        return np.concatenate([block.dense().sum(axis=1, dtype=np.float64) for block in blocks])


class Nodes(NamedTuple):
    """The nodes of a growing tree; the two children of a node are adjacent, and a leaf has feature -1.

    `weight` is the sum of the class totals; every sample has a positive weight. `sets`, (n_nodes, 4), is only defined
    for nodes that split a categorical feature, and is empty if no feature is categorical.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    gain: NDArray[np.float64]
    n_samples: NDArray[np.int64]
    weight: NDArray[np.int64]
    sets: NDArray[np.uint64]
    totals: ClassTotals


def make_nodes(capacity: int, n_classes: int, *, by_set: bool) -> Nodes:
    """Allocate the arrays for `capacity` nodes; memory pages that are never written take no memory."""
    shape = (capacity if by_set else 0, SET_WORDS)
    feature, left_child = np.empty((2, capacity), dtype=np.int32)
    threshold, gain = np.empty((2, capacity))
    missing_left, sets = np.empty(capacity, dtype=np.bool_), np.empty(shape, dtype=np.uint64)
    n_samples, weight = np.empty((2, capacity), dtype=np.int64)
    # A tree of n samples has at most n (n_classes + 1) - n_classes totals, by induction over its splits. One more
    # is allocated, because a total is written before it is known whether it is 0.
    n_totals = (capacity // 2 + 1) * (n_classes + 1) + 1
    labels, values = np.empty(n_totals, dtype=np.int32), np.empty(n_totals, dtype=np.int64)
    totals = ClassTotals(n_classes, np.zeros(capacity + 1, dtype=np.int64), labels, values)
    return Nodes(feature, threshold, missing_left, left_child, gain, n_samples, weight, sets, totals)


def first_nodes(nodes: Nodes, n_nodes: int) -> Nodes:
    """Return the first n_nodes nodes."""
    return Nodes._make([*(column[:n_nodes] for column in nodes[:-1]), nodes.totals.rows(0, n_nodes)])


@bare_kernel
def _order_depth_first(left_child, stack, order, new_index):
    """Write the nodes reachable from the root in depth-first order and their new indices; return how many they are."""
    order[0], new_index[0], stack[0] = 0, 0, 0
    n_nodes, n_stacked = 1, 1
    while n_stacked > 0:
        n_stacked -= 1
        left = left_child[stack[n_stacked]]
        if left < 0:
            continue
        for side in range(2):
            order[n_nodes], new_index[left + side] = left + side, n_nodes
            n_nodes += 1
        stack[n_stacked], stack[n_stacked + 1] = left + 1, left
        n_stacked += 2
    return n_nodes


def depth_first(nodes: Nodes) -> Nodes:
    """Return the nodes that are reachable from the root, in depth-first order.

    The two children of a node are adjacent, and the descendants of the left child come before those of the right child.
    """
    stack, order, new_index = np.empty((3, len(nodes.feature)), dtype=np.int64)
    order = order[: _order_depth_first(nodes.left_child, stack, order, new_index)]
    n_classes, starts, labels, values = nodes.totals
    counts = np.diff(starts)[order]
    ends = np.cumsum(counts)
    # The indices of the stored totals of these nodes. With scipy, fits of small trees would take a fifth longer.
    indices = np.arange(ends[-1]) + np.repeat(starts[order] - ends + counts, counts)
    totals = ClassTotals(n_classes, np.append(0, ends), labels[indices], values[indices])
    ordered = Nodes._make([*(column[order] if len(column) > 0 else column for column in nodes[:-1]), totals])
    is_split = ordered.left_child >= 0
    ordered.left_child[is_split] = new_index[ordered.left_child[is_split]]
    return ordered


def _is_sparse(shape: tuple[int, ...], n_nonzero: int) -> bool:
    """Return whether frequencies are stored as a sparse matrix: there are many classes, and most values are 0."""
    return shape[1] >= _MANY_CLASSES and n_nonzero < shape[0] * shape[1] // 4


@bare_kernel
def _divide(starts, labels, totals, weight, value):
    for node in range(len(weight)):
        for index in range(np.uint64(starts[node]), np.uint64(starts[node + 1])):
            value[node, labels[index]] = totals[index] / weight[node]


def _frequencies(totals: ClassTotals, weight: NDArray[np.float64]) -> NDArray[np.float64] | csr_array:
    """Return class frequencies from class totals and node weights, as a sparse matrix if `_is_sparse`."""
    n_classes, starts, labels, values = totals
    shape, stored = (len(weight), n_classes), slice(starts[0], starts[-1])
    if _is_sparse(shape, stored.stop - stored.start):
        data = values[stored] / np.repeat(weight, np.diff(starts))
        return csr_array((data, labels[stored].copy(), (starts - stored.start).astype(np.int32)), shape=shape)
    value = np.zeros(shape)
    _divide(starts, labels, values, weight, value)
    return value


def unpack_sets(sets: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return whether each code is in each of the sets of a `Tree`, (n_sets, 255)."""
    bits = np.unpackbits(np.ascontiguousarray(sets, "<u8").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :MISSING_CODE].astype(np.bool_)


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary decision tree for classification.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,), int32
        The feature of the split, -1 for a leaf.
    threshold : ndarray of shape (n_nodes,), float64
        Values <= threshold go left; with +inf, all values that are not missing. 0 for a leaf and a split by a set.
    missing_left : ndarray of shape (n_nodes,), bool
        Whether missing values go left.
    left_child : ndarray of shape (n_nodes,), int32
        The left child, -1 for a leaf; the right child is the next node.
    gain : ndarray of shape (n_nodes,), float64
        The gain of the split by the criterion; 0 for a leaf.
    n_samples : ndarray of shape (n_nodes,), int64
        Number of training samples in the node, each row counted once.
    weight : ndarray of shape (n_nodes,), float64
        Total weight of the training samples: counts in the bootstrap sample times sample and class weights.
    frequencies : ndarray or csr_array of shape (n_nodes, n_classes), float64
        Weighted class frequencies of the training samples; rows sum to 1. Use `value` to read them.
    n_features : int
        Number of features of the input.
    set_nodes : ndarray of shape (n_sets,), int64
        The nodes that split a categorical feature, in ascending order.
    sets : ndarray of shape (n_sets, 4), uint64
        The codes that go left in these nodes: code c goes left if bit c % 64 of word c // 64 is 1. Bit 255 is for
        missing values. Codes that do not occur in the node go to the side of missing values.
    shrinkage : float
        Amount of hierarchical shrinkage in units of weight; 0 for none.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    gain: NDArray[np.float64]
    n_samples: NDArray[np.int64]
    weight: NDArray[np.float64]
    frequencies: NDArray[np.float64] | csr_array
    n_features: int
    set_nodes: NDArray[np.int64] = field(default_factory=lambda: _NO_NODES)
    sets: NDArray[np.uint64] = field(default_factory=lambda: _NO_SETS)
    shrinkage: float = 0.0

    @classmethod
    def from_nodes(
        cls, nodes: Nodes, ends: NDArray[np.int64], unit: float, by_set: NDArray[np.bool_], features: Any = None
    ) -> list["Tree"]:
        """Return grown trees from copies of their nodes; the arrays of the trees are slices of common arrays.

        `unit` is the weight of one unit of the class totals. `ends`, (n_trees,), is where the nodes of each tree end,
        and `by_set`, (n_features,), is whether a feature is split by sets. `features` has the indices of the features
        that the trees were grown on; None for all features.
        """
        weight, parts = nodes.weight.astype(np.float64), list(map(slice, [0, *ends[:-1].tolist()], ends.tolist()))
        if weight.max() > _EXACT_SUMS:
            weight = nodes.totals.sum()
        # For many classes, frequencies may be sparse, so each tree gets a separate matrix.
        has_many = nodes.totals.n_classes >= _MANY_CLASSES
        names = ("feature", "threshold", "missing_left", "left_child", "gain", "n_samples")
        arrays = {name: getattr(nodes, name).copy() for name in names} | {"weight": weight * unit}
        if features is not None:
            arrays["feature"] = np.append(features, LEAF).astype(np.int32)[arrays["feature"]]
        if not has_many:
            arrays["frequencies"] = _frequencies(nodes.totals, weight)
        for array in arrays.values():
            array.setflags(write=False)
        feature = arrays["feature"]
        has_set = by_set[feature] & (feature != LEAF) if len(nodes.sets) > 0 else None
        trees = []
        for part in parts:
            fields: dict[str, Any] = {name: array[part] for name, array in arrays.items()}
            if has_many:
                fields["frequencies"] = _frequencies(nodes.totals.rows(part.start, part.stop), weight[part])
            fields |= {"n_features": len(by_set), "set_nodes": _NO_NODES, "sets": _NO_SETS, "shrinkage": 0.0}
            if has_set is not None:
                fields |= {"set_nodes": np.flatnonzero(has_set[part]), "sets": nodes.sets[part][has_set[part]]}
            trees.append(cls._from_fields(fields))
            if has_many or has_set is not None:
                trees[-1]._protect()
        return trees

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> "Tree":
        """Return a tree with the given attributes; skipping `__post_init__` saves time."""
        tree = object.__new__(cls)
        vars(tree).update(fields)
        return tree

    def __post_init__(self) -> None:
        stored = self.frequencies
        has_many = isinstance(stored, np.ndarray) and stored.ndim == 2 and stored.shape[1] >= _MANY_CLASSES
        if has_many and _is_sparse(stored.shape, int(np.count_nonzero(stored))):
            object.__setattr__(self, "frequencies", csr_array(stored))
        self._protect()

    def _protect(self) -> None:
        for part in self._arrays():
            part.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a tree with read-only arrays; kernels would be compiled again for writeable arrays."""
        vars(self).update(state)
        self.__post_init__()

    def shrunk(self, shrinkage: float) -> "Tree":
        """Return the tree with another shrinkage, without copying its arrays."""
        return self._from_fields(vars(self) | {"shrinkage": shrinkage})

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.frequencies.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum([part.nbytes for part in self._arrays()])

    def _arrays(self) -> list[NDArray[Any]]:
        stored = self.frequencies
        sparse = [] if isinstance(stored, np.ndarray) else [stored.data, stored.indices, stored.indptr]
        return sparse + [part for part in vars(self).values() if isinstance(part, np.ndarray)]

    @property
    def value(self) -> NDArray[np.float64]:
        """Class frequencies of the nodes, (n_nodes, n_classes). A sparse matrix is converted at each access."""
        stored = self.frequencies
        if isinstance(stored, np.ndarray):
            return stored
        dense: NDArray[np.float64] = stored.toarray()
        dense.flags.writeable = False
        return dense

    def value_of(self, node: int) -> NDArray[np.float64]:
        """Return the class frequencies of a node, (n_classes,)."""
        stored = self.frequencies
        return stored[node] if isinstance(stored, np.ndarray) else stored[[node]].toarray()[0]

    @property
    def prediction(self) -> NDArray[np.float64]:
        """Prediction of each node, (n_nodes, n_classes): `value` after shrinkage, computed at each access."""
        return shrink(self.left_child, self.weight, self.value, self.shrinkage) if self.shrinkage > 0.0 else self.value

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf."""
        return self.feature == LEAF

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.is_leaf))

    @property
    def right_child(self) -> NDArray[np.int32]:
        """The right child of every node, -1 for a leaf."""
        return np.where(self.is_leaf, LEAF, self.left_child + 1).astype(np.int32)

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """Number of splits above every node."""
        return find_parents(self.left_child, self.left_child + 1)[1]

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    def has_set(self, node: int) -> bool:
        """Return whether a node splits a categorical feature by a set."""
        return node in self.set_nodes

    def goes_left(self, node: int) -> NDArray[np.bool_]:
        """Return whether each code goes left in a node that splits a categorical feature, (255,)."""
        if not self.has_set(node):
            raise ValueError(f"node {node} does not split a categorical feature")
        return unpack_sets(self.sets[self.set_nodes == node])[0]

    def add_importances(self, total: NDArray[np.float64]) -> None:
        """Add to each feature its proportion of the gains of all splits, weighted by node weight.

        The proportions sum to 1. The time to compute them does not depend on n_features.
        """
        is_split = ~self.is_leaf
        if not np.any(is_split):
            return
        features, indices = np.unique(self.feature[is_split], return_inverse=True)
        # Gains of a user-defined criterion may be so large that their sum would overflow.
        gains = self.gain[is_split] / self.gain.max() * self.weight[is_split] / self.weight[0]
        total[features] += np.bincount(indices, weights=gains, minlength=len(features)) / gains.sum()

    def validate(self) -> None:
        """Check all invariants; raise ValueError for the first invariant that does not hold.

        Compiled code can safely traverse a valid tree: every path stays within the arrays and ends in a leaf.
        """
        for is_broken, fault in self._checks():
            if is_broken:
                raise ValueError(f"tree: {fault}")

    def _checks(self) -> Iterator[tuple[Any, str]]:
        """Yield whether an invariant is broken, and a message; each check relies on the earlier ones."""
        n_nodes, stored = self.n_nodes, self.frequencies
        expected = {"feature": np.int32, "threshold": np.float64, "missing_left": np.bool_, "left_child": np.int32}
        expected |= {"gain": np.float64, "n_samples": np.int64, "weight": np.float64}
        for name, dtype in expected.items():
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != (n_nodes,):
                yield True, f"{name} must be {np.dtype(dtype)} of shape ({n_nodes},)"
        is_wrong_type = stored.dtype != np.float64 or stored.ndim != 2 or stored.shape[0] != n_nodes or n_nodes == 0
        yield is_wrong_type, f"frequencies must be float64, ({n_nodes}, n_classes), with at least one node"
        arrays = self.feature, self.threshold, self.left_child, self.gain, self.n_samples, self.weight
        index = _find_fault(arrays, self.value, self.n_features, np.zeros(n_nodes, dtype=np.bool_))
        yield index >= 0, _FAULTS[index].format(n_features=self.n_features)
        # Infinity is valid: `shrinkage_` times a large mean weight may overflow. Then all nodes predict as the root.
        yield not self.shrinkage >= 0.0, "shrinkage is negative or NaN"
        yield from self._check_sets()

    def _check_sets(self) -> Iterator[tuple[Any, str]]:
        nodes, sets, n_sets = self.set_nodes, self.sets, len(self.set_nodes)
        yield nodes.dtype != np.int64 or nodes.shape != (n_sets,), f"set_nodes must be int64 of shape ({n_sets},)"
        is_wrong_type = sets.dtype != np.uint64 or sets.shape != (n_sets, SET_WORDS)
        yield is_wrong_type, f"sets must be uint64 of shape ({n_sets}, {SET_WORDS})"
        if n_sets == 0:
            return
        is_stray = np.any(np.diff(nodes) <= 0) or np.any((nodes < 0) | (nodes >= self.n_nodes))
        yield is_stray, f"the nodes with a set are not in rising order within [0, {self.n_nodes})"
        is_wrong = np.any(self.is_leaf[nodes]) or np.any(self.threshold[nodes] != 0.0)
        yield is_wrong, "a leaf has a set, or a node with a set has a threshold"
        missing_left = (sets[:, -1] >> np.uint64(63)).astype(np.bool_)
        agree = np.array_equal(missing_left, self.missing_left[nodes])
        yield not agree, "a set and missing_left disagree on missing values"
        is_mixed = np.isin(np.delete(self.feature, nodes), self.feature[nodes])
        yield np.any(is_mixed), "a feature is split both by sets and by thresholds"


# Up to this weight, products of weights and class frequencies do not overflow.
_MOST_WEIGHT = 1e300
_FAULTS = (
    "a feature is not in [-1, {n_features})",
    "a leaf has a child",
    "a child does not come after its parent, or is out of range",
    "a node other than the root does not have exactly one parent",
    "a threshold is NaN, or a leaf has a threshold",
    "a split without a gain, or a leaf with one",
    "a weight is not finite and positive, or more than 1e300",
    "a class frequency is negative or not finite",
    "the class frequencies of a node do not sum to 1",
    "the samples of two children do not add up to their parent's",
    "the class weights of two children do not add up to their parent's",
)


@bare_kernel
def _find_fault(arrays, value, n_features, has_parent):
    """Return the index in `_FAULTS` of a broken invariant, -1 for none. Child indices are checked before use."""
    feature, threshold, left_child, gain, n_samples, weight = arrays
    n_nodes, n_classes = value.shape
    for node in range(n_nodes):
        left, is_leaf = left_child[node], feature[node] == LEAF
        if feature[node] < LEAF or feature[node] >= n_features:
            return 0
        if is_leaf and left != LEAF:
            return 1
        if not is_leaf:
            if left <= node or left + 1 >= n_nodes:
                return 2
            if has_parent[left] or has_parent[left + 1]:
                return 3
            has_parent[left] = has_parent[left + 1] = True
        if np.isnan(threshold[node]) or (is_leaf and threshold[node] != 0.0):
            return 4
        if not (gain[node] == 0.0 if is_leaf else 0.0 < gain[node] < np.inf):
            return 5
    for node in range(1, n_nodes):
        if not has_parent[node]:
            return 3
    # The root weight is checked first, because tolerances are relative to it. Children are checked before parents.
    if not 0.0 < weight[0] <= _MOST_WEIGHT:
        return 6
    for node in range(n_nodes - 1, -1, -1):
        total, left = 0.0, left_child[node]
        if not 0.0 < weight[node] <= _MOST_WEIGHT:
            return 6
        for k in range(n_classes):
            if not 0.0 <= value[node, k] < np.inf:
                return 7
            total += value[node, k]
        if abs(total - 1.0) > 1e-9:
            return 8
        if n_samples[node] < 1 or (left != LEAF and n_samples[node] != n_samples[left] + n_samples[left + 1]):
            return 9
        if left != LEAF:
            for k in range(n_classes):
                parts = value[left, k] * weight[left] + value[left + 1, k] * weight[left + 1]
                if abs(value[node, k] * weight[node] - parts) > 1e-9 * (parts + weight[0]):
                    return 10
    return -1


@bare_kernel
def _fill_parents(left, right, parent, depth):
    for node in range(len(left)):
        if left[node] >= 0:
            for child in (left[node], right[node]):
                parent[child], depth[child] = node, depth[node] + 1


def find_parents(left: NDArray[np.integer], right: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the parent of each node, -1 for the root, and the depth of each node, the number of splits above it.

    Children must come after their parent. The left child of a leaf is -1.
    """
    parent, depth = np.zeros((2, len(left)), dtype=np.int64)
    parent[0] = -1
    # Kernels would be compiled again for other integer types.
    _fill_parents(left.astype(np.int64), right.astype(np.int64), parent, depth)
    return parent, depth


@bare_kernel
def _shrink(left_child, weight, value, amount, shrunk):
    """Write shrunk values, (n_nodes, n_columns), from the root down; children come after their parent."""
    for k in range(value.shape[1]):
        shrunk[0, k] = value[0, k]
    for node in range(len(left_child)):
        if left_child[node] < 0:
            continue
        factor = weight[node] / (weight[node] + amount)
        for child in range(left_child[node], left_child[node] + 2):
            for k in range(value.shape[1]):
                # Rounding errors can lead out of [0, 1].
                unclipped = shrunk[node, k] + (value[child, k] - value[node, k]) * factor
                shrunk[child, k] = min(max(unclipped, 0.0), 1.0)


def shrink(
    left_child: NDArray[np.int32], weight: NDArray[np.float64], value: NDArray[np.float64], amount: float
) -> NDArray[np.float64]:
    """Return the class frequencies of the nodes of a `Tree` after shrinkage by an amount in units of weight.

    This is hierarchical shrinkage (Agarwal, Tan, Ronen, Singh, Yu 2022, ICML). With p_t the class frequencies of node t
    and n_t its weight, the result is h_root = p_root and h_t = h_parent + (p_t - p_parent) / (1 + amount / n_parent).
    So children of a node of small weight differ little from the node. h_t is a weighted mean of the class frequencies
    on the path to t, so shrinkage preserves monotonic constraints.
    """
    shrunk = np.empty(value.shape)
    _shrink(left_child, weight, value, amount, shrunk)
    return shrunk
