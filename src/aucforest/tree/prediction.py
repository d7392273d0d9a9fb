"""Tree traversal: raw values are compared with thresholds, and codes of categories are looked up in sets.

The rows of a group descend one tree together, by two levels in a pass over them: the steps of different rows are
independent, so the processor overlaps their memory reads. Rows in a leaf are removed from the list every few passes,
because a check in each pass costs more than superfluous steps; before the first check, rows are read without a list.
All groups descend a tree, which is then in the cache, before the next one, whose nodes are prefetched meanwhile.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel, prefetch
from aucforest.tree.binning import ParallelMap
from aucforest.tree.tree import LEAF, MISSING_CODE, SHARED_CODE, Tree

# Rows that descend together; their values fit into the first-level cache.
GROUP_ROWS = 128
# Passes over the rows before the first check of which are in a leaf, and between two checks.
_FIRST_PASSES, _PASSES = 4, 2
# The nodes of the next tree are prefetched if those of all trees exceed a cache of one core, and if there are at most
# _NODES_A_ROW for each row: then rows use most of them. A cache line has _NODES_A_LINE of their numbers or more.
_MANY_NODES, _NODES_A_ROW, _NODES_A_LINE = 2**17, 8, 8

_MISSING_CODE, _SHARED_CODE = np.float64(MISSING_CODE), np.float64(SHARED_CODE)
_CODE_BITS = np.uint64(0xFF)


class WalkNodes(NamedTuple):
    """The nodes of some trees in the layout for traversal, numbered as in `Tree`.

    A word has, from the lowest bit on, the feature, whether missing values go right, whether there is a set, and from
    bit `shift` on the offset of the left child. For a leaf it is 0 and no value exceeds the threshold, so rows stay.
    """

    words: NDArray[np.unsignedinteger]
    thresholds: NDArray[np.floating]  # or the number of a set
    numbers: NDArray[np.int32]  # of leaves, see `add_leaf`
    sets: NDArray[np.uint64] | None  # of all trees; with None, the traversal is compiled without sets
    shift: int

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays with an entry for every node."""
        return self.words.nbytes + self.thresholds.nbytes + self.numbers.nbytes

    def some(self, nodes: slice) -> "WalkNodes":
        """Return a slice of the nodes."""
        return WalkNodes(self.words[nodes], self.thresholds[nodes], self.numbers[nodes], self.sets, self.shift)


class PackedTrees:
    """Some trees in the layout for traversal.

    The trees must be valid and have the same number of features and classes; `run` is that of `bin_matrix`.

    Attributes
    ----------
    nodes : WalkNodes
        The nodes of all trees, concatenated.
    rounded : ndarray of shape (n_all_nodes,), float32
        The thresholds, rounded down, so that float32 values are on the same side of both.
    first : ndarray of shape (n_trees + 1,), int64
        The index of the first node of each tree.
    values : ndarray of shape (n_stored, n_classes), float64
        The predictions of the leaves, without those of one class if no tree has shrinkage. Set by `take_predictions`,
        since they take most of the memory for many classes.
    first_leaf : ndarray of shape (n_trees + 1,), int64
        The index in `values` of the first leaf of each tree.
    """

    def __init__(self, trees: Sequence[Tree], run: ParallelMap = map) -> None:
        self.first = _starts([tree.n_nodes for tree in trees])
        first_set = _starts([len(tree.sets) for tree in trees])
        sets = np.concatenate([tree.sets for tree in trees]) if first_set[-1] > 0 else None
        shift = (trees[0].n_features - 1).bit_length() + 2
        most_bits = shift + max(tree.n_nodes for tree in trees).bit_length()
        words = np.empty(self.first[-1], dtype=np.uint32 if most_bits <= 32 else np.uint64)
        # The numbers of leaves of one class are negative; shrinkage leaves no such leaf.
        numbers, is_shrunk = np.empty(len(words), dtype=np.int32), any(tree.shrinkage > 0.0 for tree in trees)
        self.nodes = WalkNodes(words, np.empty(len(words)), numbers, sets, shift)
        self.rounded = np.empty(len(words), dtype=np.float32)

        def pack(i: int) -> int:
            tree, some = trees[i], slice(self.first[i], self.first[i + 1])
            _pack_tree(
                tree.feature,
                tree.threshold,
                tree.missing_left,
                tree.left_child,
                tree.set_nodes,
                first_set[i],
                self.nodes.some(some),
                self.rounded[some],
            )
            only = np.full(tree.n_nodes, -1) if is_shrunk else _only_classes(tree)
            return _number_leaves(tree.feature, only, numbers[some])

        self.first_leaf = _starts(list(run(pack, range(len(trees)))))

    def take_predictions(self, trees: Sequence[Tree], run: ParallelMap = map) -> "PackedTrees":
        """Copy the predictions of the leaves of these trees; `values` is set when all of them are copied."""
        values = _empty_aligned(int(self.first_leaf[-1]), trees[0].n_classes)

        def take(i: int) -> None:
            tree, some = trees[i], values[self.first_leaf[i] : self.first_leaf[i + 1]]
            leaves = np.flatnonzero(tree.is_leaf & (self.nodes.numbers[self.first[i] : self.first[i + 1]] >= 0))
            if tree.shrinkage == 0.0 and not isinstance(tree.frequencies, np.ndarray):
                some[:] = tree.frequencies[leaves].toarray()
            else:
                # mode="clip" avoids a copy of the output
                np.take(tree.prediction, leaves, axis=0, out=some, mode="clip")

        list(run(take, range(len(trees))))
        self.values = values
        return self

    def some(self, trees: range) -> "PackedTrees":
        """Return some of the trees, with only their nodes and leaves."""
        some = copy(self)
        nodes, leaves = (starts[trees.start : trees.stop + 1] for starts in (self.first, self.first_leaf))
        some.first, some.first_leaf = nodes - nodes[0], leaves - leaves[0]
        some.nodes, some.rounded = self.nodes.some(slice(nodes[0], nodes[-1])), self.rounded[nodes[0] : nodes[-1]]
        if hasattr(self, "values"):
            some.values = self.values[leaves[0] : leaves[-1]]
        return some

    def as_read(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows in C order, as float32 if it represents all values, to save memory and time, else as float64.

        With sets it is always float64, because the numbers of sets in `thresholds` must not be rounded.
        """
        is_narrow = self.nodes.sets is None and (X.dtype == np.float32 or (_is_float32(X[:1]) and _is_float32(X)))
        # Kernels would be compiled again for an array that cannot be written to.
        return np.require(X, np.float32 if is_narrow else np.float64, ["C", "W"])

    def nodes_for(self, X: NDArray[Any]) -> WalkNodes:
        """Return the nodes with thresholds of the dtype of X, which is from `as_read`."""
        return self.nodes if X.dtype == np.float64 else self.nodes._replace(thresholds=self.rounded)

    def arguments(self, leaves: NDArray[Any], trees: range | None = None) -> tuple[Any, ...]:
        """Return the first arguments of a traversal of some trees; `leaves` has rows for leaves, like `values`."""
        trees = range(len(self.first) - 1) if trees is None else trees
        first, first_leaf = (starts[trees.start : trees.stop + 1] for starts in (self.first, self.first_leaf))
        return self.nodes, first, leaves[first_leaf[0] : first_leaf[-1]], first_leaf - first_leaf[0]


def _empty_aligned(n_rows: int, n_columns: int) -> NDArray[np.float64]:
    """Return a matrix that is aligned to cache lines, so that a row of 8 columns is one line and not in two."""
    spare = np.empty(n_rows * n_columns + 7)
    start = -spare.ctypes.data // 8 % 8
    return spare[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def _is_float32(X: NDArray[np.float64]) -> bool:
    """Return whether float32 represents all values."""
    with np.errstate(over="ignore"):
        return bool(np.all((X.astype(np.float32) == X) | np.isnan(X)))


def _starts(sizes: list[int]) -> NDArray[np.int64]:
    """Return the start of each of the consecutive parts of these sizes, and the end of the last."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


@bare_kernel
def _pack_tree(feature, threshold, missing_left, left_child, set_nodes, first_set, nodes, rounded):
    """Write the nodes of one tree, without the numbers of its leaves."""
    for i in range(len(feature)):
        word, limit = np.int64(0), np.inf
        if feature[i] != LEAF:
            word = np.int64(feature[i]) | (np.int64(not missing_left[i]) << (nodes.shift - 2))
            word |= (np.int64(left_child[i]) - i) << nodes.shift
            limit = threshold[i]
        nodes.words[i], nodes.thresholds[i], rounded[i] = word, limit, limit
        if rounded[i] > limit:
            rounded[i] = np.nextafter(rounded[i], np.float32(-np.inf))
    for i in range(len(set_nodes)):
        nodes.words[set_nodes[i]] |= 1 << (nodes.shift - 1)
        nodes.thresholds[set_nodes[i]] = first_set + i


def _only_classes(tree: Tree) -> NDArray[np.int64]:
    """Return the class that has all the weight of each node, -1 for a node of several classes."""
    stored = tree.frequencies
    if isinstance(stored, np.ndarray):
        only = np.empty(len(stored), dtype=np.int64)
        _find_only_classes(stored, only)
        return only
    is_only = np.diff(stored.indptr) == 1
    is_only[is_only] = stored.data[stored.indptr[:-1][is_only]] == 1.0
    only = np.full(tree.n_nodes, -1)
    only[is_only] = stored.indices[stored.indptr[:-1][is_only]]
    return only


@bare_kernel
def _find_only_classes(frequencies, only):
    """Write the result of `_only_classes`."""
    for node in range(len(frequencies)):
        n_present, only[node] = 0, -1
        for k in range(frequencies.shape[1]):
            n_present += frequencies[node, k] != 0.0
            if frequencies[node, k] == 1.0:
                only[node] = k
        if n_present > 1:
            only[node] = -1


@bare_kernel
def _number_leaves(feature, only, numbers):
    """Write the numbers of the leaves of a tree, given `_only_classes`; return how many are stored."""
    n_stored = 0
    for node in range(len(feature)):
        if feature[node] == LEAF:
            if only[node] >= 0:
                numbers[node] = ~only[node]
            else:
                numbers[node] = n_stored
                n_stored += 1
    return n_stored


@bare_device
def nodes_of(nodes, first, tree):
    """Return the nodes of one tree."""
    some = slice(first[tree], first[tree + 1])
    return WalkNodes(nodes.words[some], nodes.thresholds[some], nodes.numbers[some], nodes.sets, nodes.shift)


@bare_device
def _any_missing(X):
    """Return whether any value is missing."""
    n_missing = 0
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            n_missing += X[i, f] != X[i, f]
    return n_missing > 0


@bare_device
def is_right_of_set(sets, number, value):
    """Return 1 if a category, given by its index, or a missing value, is not in a set, else 0.

    The categories from `SHARED_CODE` on share that code.
    """
    # The conversion is to signed integers first, because processors have no instruction from float to unsigned.
    code = np.uint64(np.int64(min(value, _SHARED_CODE) if value == value else _MISSING_CODE)) & _CODE_BITS
    return (~sets[np.uint64(np.int64(number)), code >> np.uint64(6)] >> (code & np.uint64(63))) & np.uint64(1)


@bare_device
def goes_right(value, threshold, missing_left, sets, set_number):
    """Return 1 if a value goes right at a split of a `Tree`, else 0; set_number is -1 if the split has a threshold."""
    if set_number >= 0:
        return is_right_of_set(sets, set_number, value)
    return np.uint64((value > threshold) | ((value != value) & (not missing_left)))


@bare_device
def _next(nodes, sets, index, X, row, any_missing):
    """Return the node after a node on the path of a row; after a leaf, this is the leaf."""
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
        # The processor adds the result of this comparison in one instruction, that of `>` in three.
        goes_right = np.uint64(not value <= nodes.thresholds[index])
    return index + (word >> shift) + goes_right


@bare_device
def _pass(nodes, sets, index, X, row, any_missing):
    """Return the node two steps after a node on the path of a row, with sets the one after it."""
    index = _next(nodes, sets, index, X, row, any_missing)
    # A look into a set takes so long that the second step would wait for it.
    return index if sets is not None else _next(nodes, sets, index, X, row, any_missing)


@bare_device
def _descend(nodes, sets, X, any_missing, active, found):
    """Move the active rows from the nodes in `found` to their leaves; a list of all rows is not read."""
    n_active = np.uint64(len(active))
    if n_active == np.uint64(len(X)):
        for _ in range(_FIRST_PASSES):
            for row in range(n_active):
                found[row] = _pass(nodes, sets, np.uint64(found[row]), X, row, any_missing)
        n_active = np.uint64(0)
        for row in range(np.uint64(len(X))):
            active[n_active] = row
            n_active += np.uint64(nodes.words[np.uint64(found[row])] != 0)
    while n_active > np.uint64(0):
        for _ in range(_PASSES):
            for i in range(n_active):
                row = active[i]
                found[row] = _pass(nodes, sets, np.uint64(found[row]), X, row, any_missing)
        n_left = np.uint64(0)
        for i in range(n_active):
            active[n_left] = active[i]
            n_left += np.uint64(nodes.words[np.uint64(found[active[i]])] != 0)
        n_active = n_left


@bare_device
def walk(nodes, X, any_missing, active, found):
    """Write the leaves of the distinct rows in `active` to found[row]; `active` is overwritten.

    If it is as long as X, these are all rows, and it is not read.
    """
    if len(active) == len(X):
        for row in range(np.uint64(len(X))):
            found[row] = 0
    else:
        for i in range(np.uint64(len(active))):
            found[active[i]] = 0
    _walk_from(nodes, X, any_missing, active, found)


@bare_device
def _walk_from(nodes, X, any_missing, active, found):
    """Move the rows in `active` from the nodes in `found` to their leaves."""
    # The constants compile two versions of the loop; the one without the check is much faster.
    if any_missing:
        _descend(nodes, nodes.sets, X, True, active, found)
    else:
        _descend(nodes, nodes.sets, X, False, active, found)


@bare_device
def prefetch_leaf(values, number):
    """Prefetch what `add_leaf` adds."""
    if number < 0:
        return
    n_classes = values.shape[1]
    start = np.int64(number) * n_classes
    for k in range(0, n_classes, 8):
        prefetch(values, start + k)
    # The last value may be in a cache line of its own.
    prefetch(values, start + n_classes - 1)


@bare_device
def add_leaf(values, number, total):
    """Add the class frequencies of a leaf to those of a row, in pairs, each of which takes one instruction.

    The number is that of the row in the values of its tree, or ~k for a leaf of class k alone.
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
def _prefetch_next(nodes, first, tree, start, n_rows):
    """Prefetch the part of the nodes of the next tree that belongs to the group of rows from `start` on."""
    if len(nodes.words) < _MANY_NODES or tree + 2 == len(first):
        return
    begin, n_nodes = first[tree + 1], first[tree + 2] - first[tree + 1]
    if n_nodes > _NODES_A_ROW * n_rows:
        return
    low, high = n_nodes * start // n_rows, n_nodes * min(start + GROUP_ROWS, n_rows) // n_rows
    for node in range(begin + low, begin + high, _NODES_A_LINE):
        prefetch(nodes.words, node)
        prefetch(nodes.thresholds, node)
        prefetch(nodes.numbers, node)


ALL_ROWS = np.empty((0, 0), dtype=np.uint16), np.empty(0, dtype=np.int64)


@bare_kernel
def add_probabilities(nodes, first, values, first_leaf, X, active, found, total, counts, n_trees):
    """Add the leaf frequencies of all trees, in order, for all rows or, with counts, for the out-of-bag rows of a tree.

    Both are compiled at once: `ALL_ROWS` are the last arguments for all rows.

    Parameters
    ----------
    nodes, first, values, first_leaf
        Of `PackedTrees`.
    X : ndarray of shape (n_rows, n_features), from `PackedTrees.as_read`
        The rows; categorical features have codes or NaN.
    active, found : ndarray of shape (n_rows,), uint64 and uint32
        Work space.
    total : ndarray of shape (n_rows, n_classes), float64
        Output, added to.
    counts : ndarray of shape (n_all_trees, n_rows), uint16, or empty
        How often each row is in the bootstrap sample of each tree.
    n_trees : ndarray of shape (n_rows,), int64, or empty
        Output, increased by one for every tree for which a row is out-of-bag.
    """
    any_missing, takes_all = _any_missing(X), len(counts) == 0
    for tree in range(len(first) - 1):
        tree_nodes, leaf_values = nodes_of(nodes, first, tree), values[first_leaf[tree] : first_leaf[tree + 1]]
        for start in range(0, len(X), GROUP_ROWS):
            group, sums = X[start : start + GROUP_ROWS], total[start : start + GROUP_ROWS]
            _prefetch_next(nodes, first, tree, start, len(X))
            n_active = n_rows = np.uint64(len(group))
            if not takes_all:
                n_active = _list_out_of_bag(counts[tree, start : start + GROUP_ROWS], active)
            walk(tree_nodes, group, any_missing, active[:n_active], found)
            # The predictions of all leaves exceed the caches, so those of all rows are prefetched before any is added.
            for i in range(n_rows):
                if takes_all or counts[tree, start + i] == 0:
                    prefetch_leaf(leaf_values, tree_nodes.numbers[np.uint64(found[i])])
            for i in range(n_rows):
                if not takes_all:
                    if counts[tree, start + i] > 0:
                        continue
                    n_trees[start + i] += 1
                add_leaf(leaf_values, tree_nodes.numbers[np.uint64(found[i])], sums[i])


@bare_kernel
def add_row(nodes, first, values, first_leaf, X, active, found, total):
    """Add the leaf frequencies of all trees to the total of one row, of which X contains a copy for each tree.

    The copies descend all trees together, so that their waits for memory overlap. The arguments are those of
    `add_probabilities`.
    """
    for tree in range(len(X)):
        found[tree] = first[tree]
    _walk_from(nodes, X, _any_missing(X[:1]), active, found)
    for tree in range(len(X)):
        add_leaf(values[first_leaf[tree] :], nodes.numbers[np.uint64(found[tree])], total[0])


@bare_kernel
def find_leaves(nodes, first, X, counts, active, found, leaves):
    """Write the leaves of the out-of-bag rows of every tree, by their numbers in `Tree`.

    `leaves`, (n_all_trees, n_rows), int64, is unchanged for other rows; the rest is as in `add_probabilities`.
    """
    any_missing = _any_missing(X)
    for tree in range(len(first) - 1):
        for start in range(0, len(X), GROUP_ROWS):
            group, group_counts = X[start : start + GROUP_ROWS], counts[tree, start : start + GROUP_ROWS]
            n_active = _list_out_of_bag(group_counts, active)
            walk(nodes_of(nodes, first, tree), group, any_missing, active[:n_active], found)
            for i in range(np.uint64(len(group))):
                if group_counts[i] == 0:
                    leaves[tree, start + i] = found[i]
