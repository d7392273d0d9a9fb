"""Growing trees one after the other, depth first or best first.

The samples of a tree are permuted such that every node is one slice, and a split partitions its slice:

    samples   | left child: start .. middle | right child: middle .. end |

Depth first, nodes are numbered when they are created: the two children of a node are adjacent, and the subtree of the
left child comes before that of the right child. Best first, the next node is the leaf whose gain times weight is
greatest. The random numbers of a node only depend on its key, so without a limit both grow the same tree. Every leaf is
split in advance to know its gain; `tree.depth_first` removes the splits that are not used.

The samples of a branch are copied with all features, because those of a small node are far apart in the matrix of all
rows, where each access to a code waits for memory. So a node with at most an eighth of the rows of its matrix is copied
into a smaller matrix, and again further down. The smallest matrix fits into the cache of a core; there, wide codes are
renumbered to make histograms short. All copies are ranges of the columns of one matrix. Level 0 is that of all rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.features import NUMERIC
from aucforest.tree.histogram import list_bits
from aucforest.tree.random import CHILD, derive_key
from aucforest.tree.samples import (
    MOST_ROWS,
    Codes,
    Columns,
    SparseNode,
    add_code,
    code_at,
    has_code,
    is_at_most,
    label_of,
    partition,
    row_of,
    set_code,
    take_samples,
    weight_of,
    with_codes,
    with_row,
)
from aucforest.tree.scan import second_frequency
from aucforest.tree.sparse import enter_node, is_sparse, most_linked, partition_sparse
from aucforest.tree.splitter import (
    Node,
    SplitBuffers,
    TreeParams,
    find_split,
    find_two_class_split,
    threshold_of,
    write_set,
)
from aucforest.tree.tree import ClassTotals, Nodes, depth_first, first_nodes, make_nodes

# Maximum number of rows of all trees of a call, if there are several.
_CALL_ROWS = 2**16
# The matrix of a branch should fit into the cache of a core.
_BRANCH_CELLS = 1 << 18
_BRANCH_ROWS = 4096
# Copying a row pays if the number of features is at most this multiple of max_features.
_COPY_PAYS = 12
# A branch is copied when it has at most 1 / _RATIO of the rows of its matrix: then the saved waits for memory pay off.
_RATIO = 8


class Copies(NamedTuple):
    """The copies of the branches that are being grown."""

    most_rows: NDArray[np.int64]  # (n_levels,) the maximum number of rows; at level 0 that of all rows
    first: NDArray[np.int64]  # (n_levels,) the first row of a level in the matrix
    height: NDArray[np.int64]  # (n_levels,) the height of the stack below which the branch is finished
    codes: Codes  # (n_features, n_copied)
    weights: NDArray[np.int64]  # (n_copied,), or empty
    n_bins: NDArray[np.int64]  # (n_features,) of the last level
    names: NDArray[np.uint32]  # (n_features, rows of the last level + 1), or empty if codes are not renumbered
    rank_of: NDArray[np.uint32]  # (max n_codes,) code -> local code


class Stack(NamedTuple):
    """A stack of nodes: start, end, number and depth, (capacity, 4), and keys."""

    nodes: NDArray[np.int64]
    keys: NDArray[np.uint64]


class Workspace(NamedTuple):
    """All buffers for growing a tree; they are reused, because each new memory page costs a page fault."""

    samples: NDArray[np.uint64]
    spill: NDArray[np.uint64]
    stack: Stack
    split: Stack  # best first, the nodes that are split in advance, in the order of their splits
    heap: NDArray[np.int64]  # the numbers of those that may be split next
    nodes: Nodes
    limits: NDArray[np.float64]  # (capacity, 2) of monotonic constraints, or (0, 2)
    copies: Copies
    buffers: SplitBuffers
    sparse_node: SparseNode


class Batch(NamedTuple):
    """What trees that are grown in one call differ in, (n_trees,) each, or with a row for each tree."""

    keys: NDArray[np.uint64]  # of the roots
    counts: NDArray[np.uint16]  # (n_trees, n_rows) the number of times that a row is in the sample
    weights: NDArray[np.int64]  # (n_trees, n_rows), or (n_trees, 0) if the counts are the weights
    criteria: NDArray[np.int64]  # this and the next two are fields of `TreeParams`
    random_splits: NDArray[np.bool_]
    min_weight_leaf: NDArray[np.int64]


def rows_per_call(n_classes: int) -> int:
    """Return the maximum number of rows of all trees of a call together, fewer where class totals may take memory."""
    return _CALL_ROWS // max(1, n_classes // 8)


def branch_rows(n_features: int, max_features: int) -> int:
    """Return the maximum number of rows of a branch in the smallest matrix; 0 if copying does not pay."""
    if n_features > _COPY_PAYS * max_features:
        return 0
    return min(_BRANCH_ROWS, _BRANCH_CELLS // n_features)


def _make_copies(columns: Columns, n_rows: int, last_rows: int) -> Copies:
    """Allocate the copies for trees of up to n_rows rows; the last level is for branches of up to last_rows."""
    n_features, all_codes = len(columns.n_bins), columns.codes.array
    most_rows = [n_rows]
    while last_rows > 0 and most_rows[-1] // _RATIO >= 2 * last_rows:
        most_rows.append(most_rows[-1] // _RATIO)
    most_rows.append(last_rows)
    sizes = np.array(most_rows, dtype=np.int64)
    n_copied, n_weights = int(sizes[1:].sum()), len(columns.weights)
    codes = np.empty((n_features, n_copied), dtype=all_codes.dtype)
    weights = np.empty(n_copied if n_weights > 0 else 0, dtype=np.int64)
    shape, n_ranks = (n_features, last_rows + 1), int(columns.n_bins.max()) + 1
    if all_codes.dtype == np.uint8:
        shape, n_ranks = (0, 0), 0
    names, rank_of = np.empty(shape, dtype=np.uint32), np.empty(n_ranks, dtype=np.uint32)
    first = n_copied + n_rows - np.cumsum(sizes)
    return Copies(sizes, first, np.zeros_like(sizes), Codes.of(codes), weights, columns.n_bins.copy(), names, rank_of)


def make_workspace(
    columns: Columns,
    params: TreeParams,
    n_rows: int,
    n_samples: int,
    n_classes: int,
    last_rows: int,
    table: NDArray[np.float64],
    n_trees: int = 1,
) -> Workspace:
    """Allocate the buffers for n_trees trees a call, of up to n_samples of n_rows rows.

    Pages that are never written cost nothing. last_rows is from `branch_rows`, table from `criteria.entropy_table`.
    """
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"{n_rows:,} samples are more than the {MOST_ROWS:,} that a tree can grow from: use fewer, or set"
            " max_samples on a cluster or out of core"
        )
    capacity = 2 * min(n_samples, n_rows) + 1
    samples, spill = np.empty((2, n_rows), dtype=np.uint64)
    stack, split = (
        Stack(np.empty((n_rows + 1, 4), dtype=np.int64), np.empty(n_rows + 1, dtype=np.uint64)) for _ in range(2)
    )
    heap = np.empty(n_rows + 1, dtype=np.int64)
    nodes = make_nodes(n_trees * capacity, n_classes, by_set=bool(np.any(params.kinds != NUMERIC)))
    limits = np.empty((capacity if len(params.signs) > 0 else 0, 2))
    buffers = SplitBuffers.of(len(columns.n_bins), int(columns.n_bins.max()) + 1, n_classes, table)
    copies = _make_copies(columns, n_rows, last_rows)
    capacity = most_linked(len(columns.sparse.rows), len(columns.n_bins), params.max_features)
    node = SparseNode.of(columns.sparse, capacity)
    return Workspace(samples, spill, stack, split, heap, nodes, limits, copies, buffers, node)


@bare_device
def _level_of(n_rows, level, copies):
    """Return the level at which to grow a node whose samples are at `level`."""
    last = len(copies.most_rows) - 1
    if n_rows <= copies.most_rows[last]:
        return last
    while level + 1 < last and n_rows <= copies.most_rows[level + 1]:
        level += 1
    return level


@bare_device
def _columns_at(level, columns, copies):
    """Return the columns of a level."""
    if level == 0:
        return columns
    if level + 1 == len(copies.most_rows):
        return Columns(copies.codes, copies.n_bins, copies.weights, copies.names, columns.sparse, columns.node)
    return Columns(copies.codes, columns.n_bins, copies.weights, columns.names, columns.sparse, columns.node)


@bare_device
def _copy_codes(codes, read, samples, first, copies):
    """Copy the codes of a branch to the rows of the matrix from `first` on."""
    for feature in range(np.uint64(len(copies.n_bins))):
        for i in range(np.uint64(len(samples))):
            set_code(copies.codes, (feature, np.uint64(first) + i), read(codes, (feature, row_of(samples[i]))))


@bare_device
def _rank_codes(columns, samples, first, copies, buffers):
    """Do what `_copy_codes` does, with each code replaced by its rank among the distinct codes of the branch."""
    for feature in range(np.uint64(len(copies.n_bins))):
        for i in range(len(samples)):
            add_code(buffers.mask, code_at(columns.codes, (feature, row_of(samples[i]))))
        names, missing_code = copies.names[feature], columns.n_bins[feature]
        n_codes = list_bits(buffers.mask, missing_code + 1, names)
        for t in range(n_codes):
            copies.rank_of[names[t]] = t
        copies.n_bins[feature] = n_codes - 1 if names[n_codes - 1] == missing_code else n_codes
        for i in range(np.uint64(len(samples))):
            rank = copies.rank_of[code_at(columns.codes, (feature, row_of(samples[i])))]
            set_code(copies.codes, (feature, np.uint64(first) + i), rank)


@bare_device
def _copy_branch(columns, samples, level, copies, buffers):
    """Copy the rows of a branch to a level, and set the rows of its samples to those of the copy."""
    first = copies.first[level]
    if level + 1 == len(copies.most_rows) and len(copies.names) > 0:
        _rank_codes(columns, samples, first, copies, buffers)
    else:
        with_codes(_copy_codes, columns.codes, samples, first, copies)
    for i in range(len(samples)):
        if len(copies.weights) > 0:
            copies.weights[first + i] = columns.weights[row_of(samples[i])]
        samples[i] = with_row(samples[i], first + i)


@bare_device
def start_node(nodes, node, n_samples):
    """Initialize a node as a leaf."""
    nodes.feature[node], nodes.left_child[node], nodes.n_samples[node] = -1, -1, n_samples
    nodes.threshold[node], nodes.missing_left[node], nodes.gain[node] = 0.0, False, 0.0


@bare_device
def may_split(nodes, node, depth, params):
    """Return whether to search for a split: the node is impure and no stopping criterion is met."""
    if nodes.n_samples[node] < params.min_samples_split or depth >= params.max_depth:
        return False
    n_present = nodes.totals.starts[node + 1] - nodes.totals.starts[node]
    return n_present > 1 and nodes.weight[node] >= 2 * params.min_weight_leaf


@bare_device
def present_classes(nodes, node):
    """Return the classes that are present in a node, and their totals."""
    start, end = nodes.totals.starts[node], nodes.totals.starts[node + 1]
    return nodes.totals.labels[start:end], nodes.totals.values[start:end]


@bare_device
def record_split(split, nodes, node, left_child, names, params):
    """Write a split to its node, and the class totals of the children."""
    nodes.feature[node], nodes.left_child[node] = split.feature, left_child
    nodes.missing_left[node], nodes.gain[node] = split.missing_left, split.gain
    if params.kinds[split.feature] == NUMERIC:
        nodes.threshold[node] = threshold_of(split, names, params)
    else:
        write_set(split, names, params.values, nodes.sets[node])
    given = nodes.totals
    labels, totals = present_classes(nodes, node)
    for side in range(2):
        end, weight = np.uint64(given.starts[left_child + side]), np.int64(0)
        for k in range(np.uint64(len(labels))):
            total = totals[k] - split.left[k] if side == 1 else split.left[k]
            # Without branches: a total of 0 is written over by the next one.
            given.labels[end], given.values[end] = labels[k], total
            weight += total
            end += np.uint64(total > 0)
        given.starts[left_child + side + 1], nodes.weight[left_child + side] = end, weight


@bare_device
def pass_limits(limits, nodes, node, split, signs):
    """Set the limits of the children of a node that was split."""
    left = np.int64(nodes.left_child[node])
    for child in (left, left + 1):
        limits[child, 0], limits[child, 1] = limits[node, 0], limits[node, 1]
    if split.next_code < 0 or signs[split.feature] == 0:
        return
    _, totals = present_classes(nodes, node)
    on_left = second_frequency(split.left[0], split.left[1])
    on_right = second_frequency(totals[0] - split.left[0], totals[1] - split.left[1])
    increases = signs[split.feature] > 0
    limits[left if increases else left + 1, 1] = limits[left + 1 if increases else left, 0] = 0.5 * (on_left + on_right)


@bare_device
def _push(stack, n_stacked, start, end, node, depth, key):
    """Push a node on a stack and return the new height of the stack."""
    index = stack.nodes[n_stacked]
    index[0], index[1], index[2], index[3] = start, end, node, depth
    stack.keys[n_stacked] = key
    return n_stacked + 1


@bare_device
def _push_children(parents, index, params, work, n_stacked):
    """Push the children of a split node on the stack if they may be split, the left one on top; return the height."""
    start, end, node, depth = parents.nodes[index]
    key, nodes = parents.keys[index], work.nodes
    left_child = np.int64(nodes.left_child[node])
    middle = start + nodes.n_samples[left_child]
    for side in (1, 0):
        low, high = (middle, end) if side == 1 else (start, middle)
        if may_split(nodes, left_child + side, depth + 1, params):
            child_key = derive_key(key, CHILD, side)
            n_stacked = _push(work.stack, n_stacked, low, high, left_child + side, depth + 1, child_key)
    return n_stacked


@bare_device
def _comes_before(nodes, node, other):
    """Return whether a node is split before another: by gain times weight, then by number."""
    gain, other_gain = nodes.gain[node] * nodes.weight[node], nodes.gain[other] * nodes.weight[other]
    return gain > other_gain or (gain == other_gain and node < other)


@bare_device
def _add_to_heap(heap, n_heap, node, nodes):
    """Add a node to the heap."""
    index = n_heap
    while index > 0 and not _comes_before(nodes, heap[(index - 1) >> 1], node):
        heap[index] = heap[(index - 1) >> 1]
        index = (index - 1) >> 1
    heap[index] = node


@bare_device
def _take_from_heap(heap, n_heap, nodes):
    """Remove the first of the n_heap nodes from the heap and return it."""
    first, node = heap[0], heap[n_heap - 1]
    index, below = 0, 1
    while below < n_heap - 1:
        if below + 1 < n_heap - 1 and _comes_before(nodes, heap[below + 1], heap[below]):
            below += 1
        if _comes_before(nodes, node, heap[below]):
            break
        heap[index] = heap[below]
        index = below
        below = 2 * index + 1
    heap[index] = node
    return first


@bare_device
def _split_node(find, columns, samples, node, key, n_nodes, params, work):
    """Split a node if the gain is large enough, and return whether it was split; the children get the next numbers."""
    nodes, is_constrained = work.nodes, len(work.limits) > 0
    low, high = (work.limits[node, 0], work.limits[node, 1]) if is_constrained else (0.0, 1.0)
    if is_sparse(columns):
        enter_node(columns, samples, node)
    labels, totals = present_classes(nodes, node)
    split = find(Node(columns, samples, labels, totals, nodes.weight[node], key, low, high), params, work.buffers)
    if split.gain <= 0.0 or split.gain < params.min_gain:
        return False
    record_split(split, nodes, node, n_nodes, columns.names, params)
    codes, feature = columns.codes, split.feature
    also_left = columns.n_bins[feature] if split.missing_left else np.int64(-1)
    if is_sparse(columns):
        n_left = partition_sparse(columns, split, n_nodes, samples, work.spill, also_left)
    elif params.kinds[feature] == NUMERIC:
        n_left = with_codes(partition, codes, feature, is_at_most, split.code, samples, work.spill, also_left)
    else:
        n_left = with_codes(partition, codes, feature, has_code, split.codes_left, samples, work.spill, also_left)
    start_node(nodes, n_nodes, n_left)
    start_node(nodes, n_nodes + 1, len(samples) - n_left)
    if is_constrained:
        pass_limits(work.limits, nodes, node, split, params.signs)
    return True


@bare_device
def _start_root(work, n_samples, weights):
    """Initialize the root: its class totals and its limits."""
    nodes, given = work.nodes, work.nodes.totals
    start_node(nodes, 0, n_samples)
    work.limits[:1, 0], work.limits[:1, 1] = 0.0, 1.0
    nodes.weight[0], start, n_present = 0, given.starts[0], 0
    totals = given.values[start : start + given.n_classes]
    totals[:] = 0
    for i in range(n_samples):
        totals[label_of(work.samples[i])] += weight_of(work.samples[i], weights)
    for k in range(given.n_classes):
        if totals[k] > 0:
            given.labels[start + n_present], totals[n_present] = k, totals[k]
            nodes.weight[0] += totals[n_present]
            n_present += 1
    given.starts[1] = start + n_present


@bare_device
def _grow(find, columns, params, n_samples, key, work):
    """Grow a tree and return the number of nodes, including the children of nodes that were split in advance."""
    nodes, copies, stack = work.nodes, work.copies, work.stack
    _start_root(work, n_samples, columns.weights)
    best_first = params.max_leaf_nodes > 0
    n_nodes, n_stacked, n_heap, n_leaves, level = np.int64(1), np.int64(0), np.int64(0), 1, 0
    if may_split(nodes, 0, 0, params):
        n_stacked = _push(stack, 0, 0, n_samples, 0, 0, key)
    while n_stacked > 0 or (n_heap > 0 and n_leaves < params.max_leaf_nodes):
        if n_stacked == 0:
            node = _take_from_heap(work.heap, n_heap, nodes)
            n_heap -= 1
            n_leaves += 1
            if n_leaves < params.max_leaf_nodes:
                index = (np.int64(nodes.left_child[node]) - 1) >> 1
                n_stacked = _push_children(work.split, index, params, work, n_stacked)
            continue
        n_stacked -= 1
        start, end, node, depth = stack.nodes[n_stacked]
        key, samples = stack.keys[n_stacked], work.samples[start:end]
        while n_stacked < copies.height[level]:
            level -= 1
        to_level = 0 if best_first else _level_of(end - start, level, copies)
        if to_level > level:
            _copy_branch(_columns_at(level, columns, copies), samples, to_level, copies, work.buffers.histogram)
            while level < to_level:
                level += 1
                copies.height[level] = n_stacked
        level_columns = _columns_at(level, columns, copies)
        if not _split_node(find, level_columns, samples, node, key, n_nodes, params, work):
            continue
        if best_first:
            _push(work.split, (n_nodes - 1) >> 1, start, end, node, depth, key)
            _add_to_heap(work.heap, n_heap, node, nodes)
            n_heap += 1
        else:
            n_stacked = _push_children(stack, n_stacked, params, work, n_stacked)
        n_nodes += 2
    for i in range(n_heap):
        start_node(nodes, work.heap[i], nodes.n_samples[work.heap[i]])
    return n_nodes


@bare_device
def _params_of(params, batch, tree):
    """Return the parameters of a tree, given those that all trees of a batch share."""
    return TreeParams(
        batch.criteria[tree],
        batch.random_splits[tree],
        params.max_features,
        params.max_depth,
        params.min_samples_split,
        params.min_samples_leaf,
        batch.min_weight_leaf[tree],
        params.min_gain,
        params.max_leaf_nodes,
        params.signs,
        params.kinds,
        params.values,
        params.is_sampled,
    )


@bare_device
def _with_nodes_from(work, first):
    """Return the buffers for a tree whose nodes begin after those of earlier trees."""
    given, totals = work.nodes, work.nodes.totals
    nodes = Nodes(
        given.feature[first:],
        given.threshold[first:],
        given.missing_left[first:],
        given.left_child[first:],
        given.gain[first:],
        given.n_samples[first:],
        given.weight[first:],
        given.sets[first:],
        ClassTotals(totals.n_classes, totals.starts[first:], totals.labels, totals.values),
    )
    return Workspace(
        work.samples,
        work.spill,
        work.stack,
        work.split,
        work.heap,
        nodes,
        work.limits,
        work.copies,
        work.buffers,
        work.sparse_node,
    )


@bare_device
def _grow_trees(find, columns, labels, params, batch, work, ends):
    """Grow trees one after the other, and write the end of the nodes of each."""
    n_nodes = np.int64(0)
    for tree in range(len(batch.keys)):
        weights, sparse, node = batch.weights[tree], columns.sparse, columns.node
        tree_columns = Columns(columns.codes, columns.n_bins, weights, columns.names, sparse, node)
        n_samples = take_samples(labels, batch.counts[tree], len(tree_columns.weights) == 0, work.samples)
        tree_work, tree_params = _with_nodes_from(work, n_nodes), _params_of(params, batch, tree)
        n_nodes += _grow(find, tree_columns, tree_params, n_samples, batch.keys[tree], tree_work)
        ends[tree] = n_nodes


@bare_kernel
def _grow_for_two_classes(columns, labels, params, batch, work, ends):
    """Grow trees of two classes; this compiles in less time than for any number of classes."""
    _grow_trees(find_two_class_split, columns, labels, params, batch, work, ends)


@bare_kernel
def _grow_for_more_classes(columns, labels, params, batch, work, ends):
    """Grow trees of any number of classes."""
    _grow_trees(find_split, columns, labels, params, batch, work, ends)


def grow_trees(
    columns: Columns, labels: NDArray[np.uint16], params: TreeParams, batch: Batch, work: Workspace
) -> tuple[Nodes, NDArray[np.int64]]:
    """Grow trees; return their nodes one after the other, and the end of each tree. There is one with max_leaf_nodes.

    The nodes are in the memory of `work` and are overwritten by the next call.
    """
    ends = np.empty(len(batch.keys), dtype=np.int64)
    grow = _grow_for_two_classes if work.nodes.totals.n_classes <= 2 else _grow_for_more_classes
    grow(columns, labels, params, batch, work, ends)
    nodes = first_nodes(work.nodes, ends[-1])
    if params.max_leaf_nodes > 0:
        nodes = depth_first(nodes)
        ends[0] = len(nodes.feature)
    return nodes, ends
