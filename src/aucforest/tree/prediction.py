"""Tree traversal: raw values are compared with thresholds, and codes of categories are looked up in sets.

The rows of a group descend a tree together, by two levels in each pass over the rows. The steps of different rows are
independent, so the processor overlaps their memory reads. Rows that reach a leaf stay there. Every few passes, they are
removed from the list of active rows; doing so in each pass would take more time. All groups of rows descend one tree
before the next tree, so that a tree stays in the cache. Meanwhile, the next tree is prefetched.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel, prefetch
from aucforest.tree.binning import ParallelMap
from aucforest.tree.tree import LEAF, MISSING_CODE, SHARED_CODE, Tree

GROUP_ROWS = 128  # rows that descend together; their values fit into the first-level cache
# Number of passes over the rows before the first check for rows in a leaf, and between two checks.
_FIRST_PASSES, _PASSES = 4, 2
# The next tree is prefetched if the trees have at least _MANY_NODES nodes in total, which exceed the cache of a core,
# and if the next tree has up to _NODES_PER_ROW nodes per row, so that most of its nodes are visited.
_MANY_NODES, _NODES_PER_ROW = 2**17, 8
_NODES_PER_LINE = 8  # a cache line has the words, thresholds or numbers of at least this number of nodes

_MISSING_CODE, _SHARED_CODE = np.float64(MISSING_CODE), np.float64(SHARED_CODE)
_CODE_BITS = np.uint64(0xFF)


class TreeNodes(NamedTuple):
    """The arrays of a `Tree` that kernels read."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    weight: NDArray[np.float64]
    set_nodes: NDArray[np.int64]
    sets: NDArray[np.uint64]

    @classmethod
    def of(cls, tree: Tree) -> "TreeNodes":
        """Return the arrays of a tree."""
        return cls(*[getattr(tree, name) for name in cls._fields])


class WalkNodes(NamedTuple):
    """The nodes of some trees in the layout for traversal, in the order of `Tree`.

    The word of node i contains, from the lowest bit on: the feature, whether missing values go right (one bit), whether
    the split is by a set (one bit), and, from bit `shift` on, left_child[i] - i. A leaf has word 0 and threshold +inf,
    so the next node of its rows is the leaf itself.
    """

    words: NDArray[np.unsignedinteger]
    thresholds: NDArray[np.floating]  # for a split by a set, its index in `sets`
    numbers: NDArray[np.int32]  # where the prediction of a leaf is, see `add_leaf`
    sets: NDArray[np.uint64] | None  # of all trees; if None, the traversal is compiled without sets
    shift: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, without `sets`."""
        return self.words.nbytes + self.thresholds.nbytes + self.numbers.nbytes

    def part(self, nodes: slice) -> "WalkNodes":
        """Return consecutive nodes."""
        return WalkNodes(self.words[nodes], self.thresholds[nodes], self.numbers[nodes], self.sets, self.shift)


class TreeArrays(NamedTuple):
    """The arrays of `PackedTrees` that kernels read, for consecutive trees; only `nodes` always has all trees."""

    nodes: WalkNodes
    first: NDArray[np.int64]
    values: NDArray[np.float64]
    first_leaf: NDArray[np.int64]


class WalkBuffers(NamedTuple):
    """Buffers of a thread for rows that descend trees."""

    active: NDArray[np.uint64]  # (n_rows,), the rows that are not yet in a leaf
    reached: NDArray[np.uint32]  # (n_rows,), the node that each row has reached

    @classmethod
    def of(cls, n_rows: int) -> "WalkBuffers":
        """Allocate the buffers."""
        return cls(np.empty(n_rows, dtype=np.uint64), np.empty(n_rows, dtype=np.uint32))


class BagCounts(NamedTuple):
    """Counts by which only out-of-bag rows are predicted; with empty arrays, all rows are predicted."""

    counts: NDArray[np.uint16]  # (n_trees, n_rows), how often each row is in the bootstrap sample of each tree
    n_trees: NDArray[np.int64]  # (n_rows,), increased by one for every tree for which a row is out of bag


# Predict all rows. Empty arrays have the same types as other counts, so kernels are not compiled again.
ALL_ROWS = BagCounts(np.empty((0, 0), dtype=np.uint16), np.empty(0, dtype=np.int64))


class PackedTrees:
    """Some trees in the layout for traversal.

    The trees must be valid and have the same number of features and classes; `run` is a parallel `map`.
    """

    nodes: WalkNodes  # of all trees, concatenated
    # (n_all_nodes,) the thresholds, rounded down, so that every float32 value goes to the same side as without rounding
    rounded: NDArray[np.float32]
    first: NDArray[np.int64]  # (n_trees + 1,) the index of the first node of each tree
    # (n_stored, n_classes) the predictions of the leaves. Without shrinkage, leaves of a single class are left out.
    # With many classes, this array takes most of the memory. Only `take_predictions` sets it; `find_leaves` reads none.
    values: NDArray[np.float64]
    first_leaf: NDArray[np.int64]  # (n_trees + 1,) the index in `values` of the first leaf of each tree

    def __init__(self, trees: Sequence[Tree], run: ParallelMap = map) -> None:
        self.first = _starts([tree.n_nodes for tree in trees])
        first_set = _starts([len(tree.sets) for tree in trees])
        sets = np.concatenate([tree.sets for tree in trees]) if first_set[-1] > 0 else None
        shift = (trees[0].n_features - 1).bit_length() + 2
        most_bits = shift + max(tree.n_nodes for tree in trees).bit_length()
        words = np.empty(self.first[-1], dtype=np.uint32 if most_bits <= 32 else np.uint64)
        # Leaves of a single class get negative numbers. With shrinkage, no leaf predicts a single class.
        numbers, is_shrunk = np.empty(len(words), dtype=np.int32), any(tree.shrinkage > 0.0 for tree in trees)
        self.nodes = WalkNodes(words, np.empty(len(words)), numbers, sets, shift)
        self.rounded = np.empty(len(words), dtype=np.float32)

        def pack(i: int) -> int:
            tree, nodes = trees[i], slice(self.first[i], self.first[i + 1])
            _pack_tree(TreeNodes.of(tree), first_set[i], self.nodes.part(nodes), self.rounded[nodes])
            only_class = np.full(tree.n_nodes, -1) if is_shrunk else _only_classes(tree)
            return _number_leaves(tree.feature, only_class, numbers[nodes])

        self.first_leaf = _starts(list(run(pack, range(len(trees)))))

    def take_predictions(self, trees: Sequence[Tree], run: ParallelMap = map) -> "PackedTrees":
        """Set `values` to the predictions of the leaves of the packed trees, and return self."""
        values = _empty_aligned(int(self.first_leaf[-1]), trees[0].n_classes)

        def take(i: int) -> None:
            tree, tree_values = trees[i], values[self.first_leaf[i] : self.first_leaf[i + 1]]
            leaves = np.flatnonzero(tree.is_leaf & (self.nodes.numbers[self.first[i] : self.first[i + 1]] >= 0))
            if tree.shrinkage == 0.0 and not isinstance(tree.frequencies, np.ndarray):
                tree_values[:] = tree.frequencies[leaves].toarray()
            else:
                # mode="clip" avoids a copy of the output
                np.take(tree.prediction, leaves, axis=0, out=tree_values, mode="clip")

        list(run(take, range(len(trees))))
        self.values = values
        return self

    def part(self, trees: range) -> "PackedTrees":
        """Return consecutive trees, without the nodes and leaves of the other trees."""
        part = copy(self)
        nodes, leaves = (starts[trees.start : trees.stop + 1] for starts in (self.first, self.first_leaf))
        part.first, part.first_leaf = nodes - nodes[0], leaves - leaves[0]
        part.nodes, part.rounded = self.nodes.part(slice(nodes[0], nodes[-1])), self.rounded[nodes[0] : nodes[-1]]
        if hasattr(self, "values"):
            part.values = self.values[leaves[0] : leaves[-1]]
        return part

    def as_read(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows in C order, as float32 if this is exact for all values, else as float64.

        With float32, traversal takes less memory and time. With sets, rows and thresholds are always float64: the
        thresholds contain the indices of sets, which must not be rounded.
        """
        # Most float64 data have a value in the first row that float32 would round, so the first row is checked first.
        is_narrow = self.nodes.sets is None and (X.dtype == np.float32 or (_is_float32(X[:1]) and _is_float32(X)))
        # Kernels would be compiled again for a read-only array.
        return np.require(X, np.float32 if is_narrow else np.float64, ["C", "W"])

    def arrays_for(self, X: NDArray[Any], trees: range | None = None) -> TreeArrays:
        """Return the arrays of some or all trees, with thresholds of the dtype of X, which is from `as_read`."""
        trees = range(len(self.first) - 1) if trees is None else trees
        first, first_leaf = (starts[trees.start : trees.stop + 1] for starts in (self.first, self.first_leaf))
        values = self.values[first_leaf[0] : first_leaf[-1]]
        return TreeArrays(self._nodes_for(X), first, values, first_leaf - first_leaf[0])

    def find_leaves(self, X: NDArray[Any], counts: NDArray[np.uint16] | None = None) -> NDArray[np.int64]:
        """Return the index of the leaf of each row in each tree, (n_trees, n_rows); X is from `as_read`.

        With the counts of `BagCounts`, only the leaves of out-of-bag rows are defined.
        """
        if counts is None:
            counts = np.zeros((len(self.first) - 1, len(X)), dtype=np.uint16)
        leaves = np.empty(counts.shape, dtype=np.int64)
        _find_leaves(self._nodes_for(X), self.first, X, counts, WalkBuffers.of(len(X)), leaves)
        return leaves

    def _nodes_for(self, X: NDArray[Any]) -> WalkNodes:
        return self.nodes if X.dtype == np.float64 else self.nodes._replace(thresholds=self.rounded)


def _empty_aligned(n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Return a matrix that is aligned to cache lines, so that a row of 8 columns is in one line and not in two."""
    spare = np.empty(n_rows * n_columns + 7)
    start = -spare.ctypes.data // 8 % 8
    return spare[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def _is_float32(X: NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.all((X.astype(np.float32) == X) | np.isnan(X)))


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    """Return where consecutive slices of the given sizes start, and where the last one ends."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


@bare_kernel
def _pack_tree(tree, first_set, nodes, rounded):
    """Write words and thresholds of the nodes of one tree; `_number_leaves` writes their numbers."""
    for i in range(len(tree.feature)):
        word, limit = np.int64(0), np.inf
        if tree.feature[i] != LEAF:
            word = np.int64(tree.feature[i]) | (np.int64(not tree.missing_left[i]) << (nodes.shift - 2))
            word |= (np.int64(tree.left_child[i]) - i) << nodes.shift
            limit = tree.threshold[i]
        nodes.words[i], nodes.thresholds[i], rounded[i] = word, limit, limit
        if rounded[i] > limit:
            rounded[i] = np.nextafter(rounded[i], np.float32(-np.inf))
    for i in range(len(tree.set_nodes)):
        nodes.words[tree.set_nodes[i]] |= 1 << (nodes.shift - 1)
        nodes.thresholds[tree.set_nodes[i]] = first_set + i


def _only_classes(tree: Tree) -> NDArray[np.int64]:
    """Return the class that has all the weight of each node, -1 for a node of several classes."""
    stored, only_class = tree.frequencies, np.full(tree.n_nodes, -1)
    if isinstance(stored, np.ndarray):
        _find_only_classes(stored, only_class)
        return only_class
    is_only = np.diff(stored.indptr) == 1
    is_only[is_only] = stored.data[stored.indptr[:-1][is_only]] == 1.0
    only_class[is_only] = stored.indices[stored.indptr[:-1][is_only]]
    return only_class


@bare_kernel
def _find_only_classes(frequencies, only_class):
    for node in range(len(frequencies)):
        n_present = 0
        for k in range(frequencies.shape[1]):
            n_present += frequencies[node, k] != 0.0
            if frequencies[node, k] == 1.0:
                only_class[node] = k
        if n_present > 1:  # a frequency just below 1 was rounded to 1.0
            only_class[node] = -1


@bare_kernel
def _number_leaves(feature, only_class, numbers):
    """Write the numbers of the leaves of a tree, see `add_leaf`; return how many leaves have several classes."""
    n_stored = 0
    for node in range(len(feature)):
        if feature[node] == LEAF:
            if only_class[node] >= 0:
                numbers[node] = ~only_class[node]
            else:
                numbers[node] = n_stored
                n_stored += 1
    return n_stored


@bare_device
def nodes_of(nodes, first, tree):
    """Return the nodes of one tree."""
    part = slice(first[tree], first[tree + 1])
    return WalkNodes(nodes.words[part], nodes.thresholds[part], nodes.numbers[part], nodes.sets, nodes.shift)


@bare_device
def _any_missing(X):
    n_missing = 0
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            n_missing += X[i, f] != X[i, f]
    return n_missing > 0


@bare_device
def is_right_of_set(sets, number, value):
    """Return 1 if the index of a category, or a missing value, is not in a set, else 0.

    All indices of at least `SHARED_CODE` have the code `SHARED_CODE`.
    """
    # The value is converted to a signed integer first: processors have no instruction from floats to unsigned integers.
    code = np.uint64(np.int64(min(value, _SHARED_CODE) if value == value else _MISSING_CODE)) & _CODE_BITS
    return (~sets[np.uint64(np.int64(number)), code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1)


@bare_device
def split_of(nodes, node):
    """Return the threshold, `missing_left`, the index of the set (-1 for none) and all sets, given `TreeNodes`."""
    low, high, node_index = 0, len(nodes.set_nodes), np.int64(node)
    while low < high:
        middle = (low + high) >> 1
        if nodes.set_nodes[middle] < node_index:
            low = middle + 1
        else:
            high = middle
    set_number = low if low < len(nodes.set_nodes) and nodes.set_nodes[low] == node_index else -1
    return nodes.threshold[node], nodes.missing_left[node], set_number, nodes.sets


@bare_device
def goes_right(split, value):
    """Return 1 if a value goes right at a split, which is from `split_of`, else 0."""
    threshold, missing_left, set_number, sets = split
    if set_number >= 0:
        return is_right_of_set(sets, set_number, value)
    return np.uint64((value > threshold) | ((value != value) & (not missing_left)))


@bare_device
def _next_node(nodes, sets, index, X, row, any_missing):
    """Return the next node on the path of a row, or the same node if it is a leaf."""
    shift = np.uint64(nodes.shift)
    by_set, missing_right = shift - np.uint64(1), shift - np.uint64(2)
    word = np.uint64(nodes.words[index])
    value = X[row, word & ((np.uint64(1) << missing_right) - np.uint64(1))]
    if sets is not None and (word >> by_set) & np.uint64(1):
        goes_right = is_right_of_set(sets, nodes.thresholds[index], value)
    elif any_missing:
        goes_right = np.uint64(value > nodes.thresholds[index])
        goes_right |= np.uint64(value != value) & (word >> missing_right)
    else:
        # The processor adds the result of this comparison in one instruction, but the result of `>` in three.
        goes_right = np.uint64(not value <= nodes.thresholds[index])
    return index + (word >> shift) + goes_right


@bare_device
def _advance(nodes, sets, index, X, row, any_missing):
    """Return the node two steps further on the path of a row, or one step further if there are sets."""
    index = _next_node(nodes, sets, index, X, row, any_missing)
    # With a lookup in a set, the first step takes so long that the second step would have to wait for it.
    return index if sets is not None else _next_node(nodes, sets, index, X, row, any_missing)


@bare_device
def _descend(nodes, sets, X, any_missing, active, reached):
    """Move the active rows from the nodes in `reached` to leaves; `active` is not read if it is as long as X."""
    n_active = np.uint64(len(active))
    if n_active == np.uint64(len(X)):
        for _ in range(_FIRST_PASSES):
            for row in range(n_active):
                reached[row] = _advance(nodes, sets, np.uint64(reached[row]), X, row, any_missing)
        n_active = np.uint64(0)
        for row in range(np.uint64(len(X))):
            active[n_active] = row
            n_active += np.uint64(nodes.words[np.uint64(reached[row])] != 0)
    while n_active > np.uint64(0):
        for _ in range(_PASSES):
            for i in range(n_active):
                row = active[i]
                reached[row] = _advance(nodes, sets, np.uint64(reached[row]), X, row, any_missing)
        n_left = np.uint64(0)
        for i in range(n_active):
            active[n_left] = active[i]
            n_left += np.uint64(nodes.words[np.uint64(reached[active[i]])] != 0)
        n_active = n_left


@bare_device
def walk(nodes, X, any_missing, active, reached):
    """Write the leaves of the distinct rows in `active` to reached[row]; `active` is overwritten.

    If `active` is as long as X, all rows are active, and the content of `active` is not read.
    """
    if len(active) == len(X):
        for row in range(np.uint64(len(X))):
            reached[row] = 0
    else:
        for i in range(np.uint64(len(active))):
            reached[active[i]] = 0
    _walk_from(nodes, X, any_missing, active, reached)


@bare_device
def _walk_from(nodes, X, any_missing, active, reached):
    """Move the rows in `active` from the nodes in `reached` to their leaves."""
    # With the constants True and False, two versions of the loop are compiled. That without missing values is faster.
    if any_missing:
        _descend(nodes, nodes.sets, X, True, active, reached)
    else:
        _descend(nodes, nodes.sets, X, False, active, reached)


@bare_device
def prefetch_leaf(values, number):
    """Prefetch the prediction of a leaf for `add_leaf`."""
    if number < 0:
        return
    n_classes = values.shape[1]
    start = np.int64(number) * n_classes
    for k in range(0, n_classes, 8):
        prefetch(values, start + k)
    # The last value may be in a further cache line.
    prefetch(values, start + n_classes - 1)


@bare_device
def add_leaf(values, number, total):
    """Add the class frequencies of a leaf to the total of a row, two classes at once, which takes one instruction.

    `number` is the index of the leaf in the values of its tree, or ~k for a leaf that only has class k.
    """
    if number < 0:
        total[np.uint64(~np.int64(number))] += 1.0
        return
    value, one = values[np.uint64(number)], np.uint64(1)
    k = np.uint64(len(total)) & one
    if k == one:
        total[0] += value[0]
    while k < np.uint64(len(total)):
        first, second = total[k] + value[k], total[k + one] + value[k + one]
        total[k], total[k + one] = first, second
        k += np.uint64(2)


@bare_device
def _list_out_of_bag(counts, active):
    """Write the out-of-bag rows, which have a count of 0, and return their number."""
    n_active = np.uint64(0)
    for i in range(np.uint64(len(counts))):
        active[n_active] = i
        n_active += np.uint64(counts[i] == 0)
    return n_active


@bare_device
def _prefetch_next(trees, tree, start, n_rows):
    """Prefetch the next tree: each group of rows prefetches a part of its nodes; this group starts at row `start`."""
    nodes, first = trees.nodes, trees.first
    if len(nodes.words) < _MANY_NODES or tree + 2 == len(first):
        return
    begin, n_nodes = first[tree + 1], first[tree + 2] - first[tree + 1]
    if n_nodes > _NODES_PER_ROW * n_rows:
        return
    low, high = n_nodes * start // n_rows, n_nodes * min(start + GROUP_ROWS, n_rows) // n_rows
    for node in range(begin + low, begin + high, _NODES_PER_LINE):
        prefetch(nodes.words, node)
        prefetch(nodes.thresholds, node)
        prefetch(nodes.numbers, node)


@bare_kernel
def add_probabilities(trees, X, buffers, total, bags):
    """Add the leaf predictions of all trees, in order, to the totals of all rows or, with counts, of out-of-bag rows.

    `trees` are `TreeArrays`, X are rows from `PackedTrees.as_read`, and `bags` are `BagCounts`.
    """
    counts, active, reached = bags.counts, buffers.active, buffers.reached
    any_missing, takes_all = _any_missing(X), len(counts) == 0
    for tree in range(len(trees.first) - 1):
        nodes = nodes_of(trees.nodes, trees.first, tree)
        leaves = trees.values[trees.first_leaf[tree] : trees.first_leaf[tree + 1]]
        for start in range(0, len(X), GROUP_ROWS):
            group, sums = X[start : start + GROUP_ROWS], total[start : start + GROUP_ROWS]
            _prefetch_next(trees, tree, start, len(X))
            n_active = n_rows = np.uint64(len(group))
            if not takes_all:
                n_active = _list_out_of_bag(counts[tree, start : start + GROUP_ROWS], active)
            walk(nodes, group, any_missing, active[:n_active], reached)
            # The predictions of a tree may exceed the caches, so they are prefetched for all rows before the first sum.
            for i in range(n_rows):
                if takes_all or counts[tree, start + i] == 0:
                    prefetch_leaf(leaves, nodes.numbers[np.uint64(reached[i])])
            for i in range(n_rows):
                if not takes_all:
                    if counts[tree, start + i] > 0:
                        continue
                    bags.n_trees[start + i] += 1
                add_leaf(leaves, nodes.numbers[np.uint64(reached[i])], sums[i])


@bare_kernel
def add_row(nodes, values, starts, X, buffers, total):
    """Add the leaf predictions of all trees to the total of one row; X contains a copy of the row for each tree.

    The copies descend all trees together, so that their waits for memory overlap. `starts` has `first` and `first_leaf`
    of `TreeArrays`, `buffers` the arrays of `WalkBuffers`. Numba infers the types of these plain tuples in less time.
    """
    (first, first_leaf), (active, reached) = starts, buffers
    for tree in range(len(X)):
        reached[tree] = first[tree]
    _walk_from(nodes, X, _any_missing(X[:1]), active, reached)
    for tree in range(len(X)):
        add_leaf(values[first_leaf[tree] :], nodes.numbers[np.uint64(reached[tree])], total[0])


@bare_kernel
def _find_leaves(nodes, first, X, counts, buffers, leaves):
    """Write the leaves of the out-of-bag rows of each tree; the items of other rows are unchanged."""
    any_missing = _any_missing(X)
    for tree in range(len(first) - 1):
        for start in range(0, len(X), GROUP_ROWS):
            group, group_counts = X[start : start + GROUP_ROWS], counts[tree, start : start + GROUP_ROWS]
            n_active = _list_out_of_bag(group_counts, buffers.active)
            walk(nodes_of(nodes, first, tree), group, any_missing, buffers.active[:n_active], buffers.reached)
            for i in range(np.uint64(len(group))):
                if group_counts[i] == 0:
                    leaves[tree, start + i] = buffers.reached[i]
