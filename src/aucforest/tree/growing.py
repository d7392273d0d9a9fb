"""Growing trees one after the other, depth first or best first.

The samples of a node are a slice of the samples of the tree. A split reorders the slice:

    samples   | left child: start .. middle | right child: middle .. end |

Depth first, the two children of a node have consecutive indices, and all descendants of the left child come before
those of the right child. Best first, the leaf with the greatest gain times weight is split next. The gain of a leaf is
only known after its split, so each leaf is split in advance, and `tree.depth_first` removes the unused splits. The
random numbers of a node only depend on its key, so both orders grow the same tree if the number of leaves is unlimited.

The rows of a small node are far apart in the matrix of all rows, where each access to a code waits for memory. If a
node has at most an eighth of the rows of its matrix, its rows are copied, with all features, to a smaller matrix. All
descendants of the node grow from the copy, which may be copied again. The smallest matrix fits into the cache of a
core. Its codes, if they have more than one byte, are replaced by their ranks, so that histograms are shorter. Level 0
is the matrix of all rows, and each higher level is a smaller copy. All copies are stored in one array, side by side.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel, replacing
from aucforest.tree.features import NUMERIC
from aucforest.tree.histogram import list_bits
from aucforest.tree.random import CHILD, derive_key
from aucforest.tree.samples import (
    MOST_ROWS,
    CodeBins,
    Codes,
    Columns,
    Side,
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
from aucforest.tree.sparse import enter_node, is_sparse, most_listed, partition_sparse
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

# A call grows several trees only if they have at most _CALL_ROWS rows in total and, if each tree has a copy of its
# rows, at most _CALL_CODES codes.
_CALL_ROWS, _CALL_CODES = 2**16, 2**22
# Maximum numbers of codes and of rows of the smallest matrix, so that it fits into the cache of a core.
_BRANCH_CELLS = 1 << 18
_BRANCH_ROWS = 4096
_COPY_PAYS = 12  # copying a row pays if the number of features is at most this multiple of max_features
# A branch is copied if it has at most 1 / _RATIO of the rows of its matrix, so that copying saves time in total.
_RATIO = 8


class Copies(NamedTuple):
    """Copied rows. A branch is a node with all its descendants; each level has a range of rows, those of one branch."""

    most_rows: NDArray[np.int64]  # (n_levels,) the maximum number of rows; at level 0 the number of all rows
    first: NDArray[np.int64]  # (n_levels,) the first row of a level in `codes`
    height: NDArray[np.int64]  # (n_levels,) if the stack of nodes is lower than this, the branch is finished
    codes: Codes  # (n_features, n_copied)
    weights: NDArray[np.int64]  # (n_copied,), or empty
    n_bins: NDArray[np.int64]  # (n_features,) number of bins at the last level
    code_of_rank: NDArray[np.uint32]  # (n_features, rows of the last level + 1); empty without ranks
    rank_of_code: NDArray[np.uint32]  # (max n_codes,)


class Pending(NamedTuple):
    """A node that may be split: start and end of its samples, its index, its depth and its key."""

    start: np.int64
    end: np.int64
    node: np.int64
    depth: np.int64
    key: np.uint64


class NodeStack(NamedTuple):
    """A stack of `Pending` nodes: their integers, (capacity, 4), and keys."""

    nodes: NDArray[np.int64]
    keys: NDArray[np.uint64]


class Workspace(NamedTuple):
    """All buffers for growing a tree; they are reused, because each new memory page costs a page fault."""

    samples: NDArray[np.uint64]
    spill: NDArray[np.uint64]  # the samples that go right, while samples are partitioned
    stack: NodeStack
    split_nodes: NodeStack  # best first only: the nodes that were split in advance, in the order of their splits
    heap: NDArray[np.int64]  # best first only: the indices of the nodes whose split may be used next
    nodes: Nodes
    limits: NDArray[np.float64]  # (capacity, 2) limits by monotonic constraints, or (0, 2) without constraints
    copies: Copies
    buffers: SplitBuffers
    sparse_node: SparseNode


class Sizes(NamedTuple):
    """The sizes of buffers."""

    n_rows: int
    n_samples: int  # maximum number of samples of a tree
    n_classes: int
    branch_rows: int  # the result of `branch_rows`, or 0 to copy no branches
    n_trees: int = 1  # maximum number of trees of a call


class Batch(NamedTuple):
    """The samples and keys of the trees of a call, and the parameters that differ between trees, (n_trees,) each.

    All trees grow from the same rows, or each tree from its copy of rows. Copies are stored one after the other.
    """

    labels: NDArray[np.uint16]  # (n_rows,) the classes of all rows
    keys: NDArray[np.uint64]  # the keys of the roots
    counts: NDArray[np.uint16]  # (n_counts,) how often each row is in the sample of a tree, tree after tree
    weights: NDArray[np.int64]  # (n_counts,), or (0,) if the counts are the weights
    starts: NDArray[np.int64]  # (n_trees + 1,) where the counts of each tree start
    first_rows: NDArray[np.int64]  # the first row of each tree; 0 if all trees have the same rows
    criteria: NDArray[np.int64]  # `TreeParams.criterion` of each tree; the next two are also fields of `TreeParams`
    random_splits: NDArray[np.bool_]
    min_weight_leaf: NDArray[np.int64]
    ends: NDArray[np.int64]  # output: where the nodes of each tree end


def rows_per_call(n_classes: int, n_row_codes: int = 1) -> int:
    """Return the maximum number of rows of a call, summed over trees; it is smaller for many classes, to save memory.

    `n_row_codes` is the number of codes of a row if each tree has a copy of its rows.
    """
    return min(_CALL_ROWS // max(1, n_classes // 8), _CALL_CODES // n_row_codes)


def branch_rows(n_features: int, max_features: int) -> int:
    """Return the maximum number of rows of a branch in the smallest matrix; 0 if copying does not pay."""
    if n_features > _COPY_PAYS * max_features:
        return 0
    return min(_BRANCH_ROWS, _BRANCH_CELLS // n_features)


def level_rows(n_rows: int, n_samples: int, last_rows: int) -> list[int]:
    """Return the maximum number of rows of a branch at each level; level 0 has all n_rows rows.

    A tree has at most n_samples samples. The last level has branches of up to last_rows rows. If last_rows is
    0, no branch is copied.
    """
    most_rows = [n_rows]
    while last_rows > 0 and most_rows[-1] // _RATIO >= 2 * last_rows:
        most_rows.append(min(most_rows[-1] // _RATIO, n_samples))
    return [*most_rows, last_rows]


def _make_copies(columns: Columns, sizes: Sizes) -> Copies:
    n_features, all_codes, last_rows = len(columns.n_bins), columns.codes.array, sizes.branch_rows
    most_rows = np.array(level_rows(sizes.n_rows, sizes.n_samples, last_rows), dtype=np.int64)
    n_copied, n_weights = int(most_rows[1:].sum()), len(columns.weights)
    codes = np.empty((n_features, n_copied), dtype=all_codes.dtype)
    weights = np.empty(n_copied if n_weights > 0 else 0, dtype=np.int64)
    shape, n_ranks = (n_features, last_rows + 1), int(columns.n_bins.max()) + 1
    if all_codes.dtype == np.uint8:  # such codes are not replaced by ranks
        shape, n_ranks = (0, 0), 0
    code_of_rank, rank_of_code = np.empty(shape, dtype=np.uint32), np.empty(n_ranks, dtype=np.uint32)
    first = n_copied + sizes.n_rows - np.cumsum(most_rows)  # the last level starts at 0; unused for level 0
    height, n_bins = np.zeros_like(most_rows), columns.n_bins.copy()
    return Copies(most_rows, first, height, Codes.of(codes), weights, n_bins, code_of_rank, rank_of_code)


def make_workspace(columns: Columns, params: TreeParams, sizes: Sizes, table: NDArray[np.float64]) -> Workspace:
    """Allocate the buffers; memory pages that are never written take no memory. `table` is from `entropy_table`."""
    n_features, max_n_bins = len(columns.n_bins), int(columns.n_bins.max())
    if sizes.n_rows > MOST_ROWS:
        raise ValueError(
            f"{sizes.n_rows:,} samples are more than the {MOST_ROWS:,} that a tree can grow from: use fewer, or set"
            " max_samples on a cluster or out of core"
        )
    n_rows = min(sizes.n_samples, sizes.n_rows)  # of a tree
    capacity = 2 * n_rows + 1
    by_set = bool(np.any(columns.kinds != NUMERIC))
    n_listed = most_listed(len(columns.sparse.rows), n_features, params.max_features)
    stack, split_nodes = (
        NodeStack(np.empty((n_rows + 1, 4), dtype=np.int64), np.empty(n_rows + 1, dtype=np.uint64)) for _ in range(2)
    )
    return Workspace(
        samples=np.empty(n_rows + 1, dtype=np.uint64),  # `take_samples` writes out-of-bag rows after the last sample
        spill=np.empty(n_rows, dtype=np.uint64),
        stack=stack,
        split_nodes=split_nodes,
        heap=np.empty(n_rows + 1, dtype=np.int64),
        nodes=make_nodes(sizes.n_trees * capacity, sizes.n_classes, by_set=by_set),
        limits=np.empty((capacity if len(params.signs) > 0 else 0, 2)),
        copies=_make_copies(columns, sizes),
        buffers=SplitBuffers.of(n_features, max_n_bins + 1, sizes.n_classes, table),
        sparse_node=SparseNode.of(columns.sparse, n_listed),
    )


@bare_device
def _level_of(n_rows, level, copies):
    """Return the level at which to grow a node of n_rows samples, whose codes are at `level`."""
    last = len(copies.most_rows) - 1
    if n_rows <= copies.most_rows[last]:
        return last
    while level + 1 < last and n_rows <= copies.most_rows[level + 1]:
        level += 1
    return level


@bare_device
def _columns_at(level, columns, copies):
    if level == 0:
        return columns
    copied_columns = _with_copies(columns, copies.codes, columns.n_bins, copies.weights, columns.bins)
    if level + 1 == len(copies.most_rows):
        return _with_ranks(copied_columns, copies.n_bins, _with_bin_of_rank(columns.bins, copies.code_of_rank))
    return copied_columns


@bare_device
def _copy_codes(codes, read_code, samples, first, copies):
    """Copy the codes of a branch to the rows of the matrix from `first` on."""
    for feature in range(np.uint64(len(copies.n_bins))):
        for i in range(np.uint64(len(samples))):
            set_code(copies.codes, (feature, np.uint64(first) + i), read_code(codes, (feature, row_of(samples[i]))))


@bare_device
def _rank_codes(columns, samples, first, copies, buffers):
    """Copy the codes of a branch, each replaced by its rank among the distinct codes of the branch."""
    for feature in range(np.uint64(len(copies.n_bins))):
        for i in range(len(samples)):
            add_code(buffers.mask, code_at(columns.codes, (feature, row_of(samples[i]))))
        code_of_rank, missing_code = copies.code_of_rank[feature], columns.n_bins[feature]
        n_codes = list_bits(buffers.mask, missing_code + 1, code_of_rank)
        for t in range(n_codes):
            copies.rank_of_code[code_of_rank[t]] = t
        copies.n_bins[feature] = n_codes - 1 if code_of_rank[n_codes - 1] == missing_code else n_codes
        for i in range(np.uint64(len(samples))):
            rank = copies.rank_of_code[code_at(columns.codes, (feature, row_of(samples[i])))]
            set_code(copies.codes, (feature, np.uint64(first) + i), rank)


@bare_device
def _copy_branch(columns, samples, level, copies, buffers):
    """Copy the rows of a branch to a level, and write the new row indices to its samples."""
    first = copies.first[level]
    if level + 1 == len(copies.most_rows) and len(copies.code_of_rank) > 0:
        _rank_codes(columns, samples, first, copies, buffers)
    else:
        with_codes(_copy_codes, columns.codes, samples, first, copies)
    for i in range(len(samples)):
        if len(copies.weights) > 0:
            copies.weights[first + i] = columns.weights[row_of(samples[i])]
        samples[i] = with_row(samples[i], first + i)


@bare_device
def _enter_branch(pending, height, level, columns, work):
    """Return the level at which to grow a node, and copy its rows if needed; `level` is that of the previous node."""
    copies, samples = work.copies, work.samples[pending.start : pending.end]
    while height < copies.height[level]:
        level -= 1
    to_level = _level_of(len(samples), level, copies)
    if to_level > level:
        _copy_branch(_columns_at(level, columns, copies), samples, to_level, copies, work.buffers.histogram)
        while level < to_level:
            level += 1
            copies.height[level] = height
    return level


@bare_device
def _start_node(nodes, node, n_samples):
    """Initialize a node as a leaf."""
    nodes.feature[node], nodes.left_child[node], nodes.n_samples[node] = -1, -1, n_samples
    nodes.threshold[node], nodes.missing_left[node], nodes.gain[node] = 0.0, False, 0.0


@bare_device
def _may_split(nodes, node, depth, params):
    """Return whether to search for a split: the node is impure, and no stopping criterion holds."""
    if nodes.n_samples[node] < params.min_samples_split or depth >= params.max_depth:
        return False
    n_present = nodes.totals.starts[node + 1] - nodes.totals.starts[node]
    return n_present > 1 and nodes.weight[node] >= 2 * params.min_weight_leaf


@bare_device
def _present_classes(nodes, node):
    start, end = nodes.totals.starts[node], nodes.totals.starts[node + 1]
    return nodes.totals.labels[start:end], nodes.totals.values[start:end]


@bare_device
def _record_split(split, columns, params, nodes, node, left_child):
    """Write a split to its node, and the class totals and weights of the children."""
    nodes.feature[node], nodes.left_child[node] = split.feature, left_child
    nodes.missing_left[node], nodes.gain[node] = split.missing_left, split.gain
    if columns.kinds[split.feature] == NUMERIC:
        nodes.threshold[node] = threshold_of(split, columns, params.random_splits)
    else:
        write_set(split, columns.bins, nodes.sets[node])
    stored = nodes.totals
    labels, totals = _present_classes(nodes, node)
    for side in range(2):
        end, weight = np.uint64(stored.starts[left_child + side]), np.int64(0)
        for k in range(np.uint64(len(labels))):
            total = totals[k] - split.left[k] if side == 1 else split.left[k]
            # A total of 0 is overwritten by the next total, which takes less time than a condition.
            stored.labels[end], stored.values[end] = labels[k], total
            weight += total
            end += np.uint64(total > 0)
        stored.starts[left_child + side + 1], nodes.weight[left_child + side] = end, weight


@bare_device
def _pass_limits(limits, nodes, node, split, signs):
    """Set the limits of the children of a split node; the module `scan` explains limits."""
    left = np.int64(nodes.left_child[node])
    for child in (left, left + 1):
        limits[child, 0], limits[child, 1] = limits[node, 0], limits[node, 1]
    if split.next_code < 0 or signs[split.feature] == 0:
        return
    _, totals = _present_classes(nodes, node)
    on_left = second_frequency(split.left[0], split.left[1])
    on_right = second_frequency(totals[0] - split.left[0], totals[1] - split.left[1])
    increases = signs[split.feature] > 0
    limits[left if increases else left + 1, 1] = limits[left + 1 if increases else left, 0] = 0.5 * (on_left + on_right)


@bare_device
def _push(stack, height, pending):
    """Push a node on a stack and return the new height of the stack."""
    integers = stack.nodes[height]
    integers[0], integers[1], integers[2], integers[3] = pending.start, pending.end, pending.node, pending.depth
    stack.keys[height] = pending.key
    return height + 1


@bare_device
def _node_at(stack, index):
    start, end, node, depth = stack.nodes[index]
    return Pending(start, end, node, depth, stack.keys[index])


@bare_device
def _push_children(parent, params, work, height):
    """Push the children of a split node on the stack if they may be split, the left one on top; return the height."""
    nodes, depth = work.nodes, parent.depth + 1
    left_child = np.int64(nodes.left_child[parent.node])
    middle = parent.start + nodes.n_samples[left_child]
    for side in (1, 0):
        start, end = (middle, parent.end) if side == 1 else (parent.start, middle)
        if _may_split(nodes, left_child + side, depth, params):
            child = Pending(start, end, left_child + side, depth, derive_key(parent.key, CHILD, side))
            height = _push(work.stack, height, child)
    return height


@bare_device
def _comes_before(nodes, node, other):
    """Return whether a node comes before another: by greater gain times weight, then by lower index."""
    gain, other_gain = nodes.gain[node] * nodes.weight[node], nodes.gain[other] * nodes.weight[other]
    return gain > other_gain or (gain == other_gain and node < other)


@bare_device
def _add_to_heap(heap, n_heap, node, nodes):
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
def _split_node(find, columns, pending, n_nodes, params, work):
    """Split a node if the gain is large enough; return whether it was split. The children get the next indices."""
    nodes, node, is_constrained = work.nodes, pending.node, len(work.limits) > 0
    samples = work.samples[pending.start : pending.end]
    low, high = (work.limits[node, 0], work.limits[node, 1]) if is_constrained else (0.0, 1.0)
    if is_sparse(columns):
        enter_node(columns, samples, node)
    labels, totals = _present_classes(nodes, node)
    current = Node(columns, samples, labels, totals, nodes.weight[node], pending.key, low, high)
    split = find(current, params, work.buffers)
    if split.gain <= 0.0 or split.gain < params.min_gain:
        return False
    _record_split(split, columns, params, nodes, node, n_nodes)
    codes, feature = columns.codes, split.feature
    also_left = columns.n_bins[feature] if split.missing_left else np.int64(-1)  # the code of missing values, or none
    if is_sparse(columns):
        n_left = partition_sparse(columns, split, n_nodes, samples, work.spill, also_left)
    elif columns.kinds[feature] == NUMERIC:
        n_left = with_codes(partition, codes, feature, Side(is_at_most, split.code, also_left), samples, work.spill)
    else:
        n_left = with_codes(partition, codes, feature, Side(has_code, split.codes_left, also_left), samples, work.spill)
    _start_node(nodes, n_nodes, n_left)
    _start_node(nodes, n_nodes + 1, len(samples) - n_left)
    if is_constrained:
        _pass_limits(work.limits, nodes, node, split, params.signs)
    return True


@bare_device
def _start_root(work, n_samples, weights):
    nodes, stored = work.nodes, work.nodes.totals
    _start_node(nodes, 0, n_samples)
    work.limits[:1, 0], work.limits[:1, 1] = 0.0, 1.0
    nodes.weight[0], start, n_present = 0, stored.starts[0], 0
    totals = stored.values[start : start + stored.n_classes]
    totals[:] = 0
    for i in range(n_samples):
        totals[label_of(work.samples[i])] += weight_of(work.samples[i], weights)
    for k in range(stored.n_classes):
        if totals[k] > 0:
            stored.labels[start + n_present], totals[n_present] = k, totals[k]
            nodes.weight[0] += totals[n_present]
            n_present += 1
    stored.starts[1] = start + n_present


@bare_device
def _grow(find, columns, params, n_samples, key, work):
    """Grow a tree and return the number of nodes, including the children of nodes that were split in advance."""
    _start_root(work, n_samples, columns.weights)
    best_first = params.max_leaf_nodes > 0
    n_nodes, height, n_heap, n_leaves, level = np.int64(1), np.int64(0), np.int64(0), 1, 0
    if _may_split(work.nodes, 0, 0, params):
        root = Pending(np.int64(0), n_samples, np.int64(0), np.int64(0), key)
        height = _push(work.stack, 0, root)
    while height > 0 or (n_heap > 0 and n_leaves + 1 < params.max_leaf_nodes):
        if height == 0:  # use the split of the first node of the heap
            node = _take_from_heap(work.heap, n_heap, work.nodes)
            parent = _node_at(work.split_nodes, (np.int64(work.nodes.left_child[node]) - 1) >> 1)
            height = _push_children(parent, params, work, 0)
            n_heap -= 1
            n_leaves += 1
            continue
        height -= 1
        pending = _node_at(work.stack, height)
        if not best_first:
            level = _enter_branch(pending, height, level, columns, work)
        if _split_node(find, _columns_at(level, columns, work.copies), pending, n_nodes, params, work):
            if best_first:
                _push(work.split_nodes, (n_nodes - 1) >> 1, pending)
                _add_to_heap(work.heap, n_heap, pending.node, work.nodes)
                n_heap += 1
            else:
                height = _push_children(pending, params, work, height)
            n_nodes += 2
    # If the heap is not empty, one more leaf is allowed: the first node keeps its split, and the others become leaves.
    if best_first and n_heap > 0:
        _take_from_heap(work.heap, n_heap, work.nodes)
        n_heap -= 1
    for i in range(n_heap):
        _start_node(work.nodes, work.heap[i], work.nodes.n_samples[work.heap[i]])
    return n_nodes


_with_copies = replacing(Columns, "codes", "n_bins", "weights", "bins")
_with_ranks = replacing(Columns, "n_bins", "bins")
_with_bin_of_rank = replacing(CodeBins, "bin_of_rank")
_with_weights = replacing(Columns, "weights")
_with_nodes = replacing(Workspace, "nodes")
_with_variant = replacing(TreeParams, "criterion", "random_splits", "min_weight_leaf")


@bare_device
def _nodes_from(nodes, first):
    totals = nodes.totals
    return Nodes(
        nodes.feature[first:],
        nodes.threshold[first:],
        nodes.missing_left[first:],
        nodes.left_child[first:],
        nodes.gain[first:],
        nodes.n_samples[first:],
        nodes.weight[first:],
        nodes.sets[first:],
        ClassTotals(totals.n_classes, totals.starts[first:], totals.labels, totals.values),
    )


@bare_device
def _grow_trees(find, columns, params, batch, work):
    """Grow trees one after the other, and write to the batch where the nodes of each tree end."""
    n_nodes = np.int64(0)
    for tree in range(len(batch.keys)):
        start, stop, row = batch.starts[tree], batch.starts[tree + 1], batch.first_rows[tree]
        labels, weights = batch.labels[row : row + stop - start], batch.weights[start - row :]
        n_samples = take_samples(labels, batch.counts[start:stop], len(batch.weights) == 0, work.samples)
        for i in range(n_samples if row > 0 else 0):
            work.samples[i] += np.uint64(row)
        tree_params = _with_variant(
            params, batch.criteria[tree], batch.random_splits[tree], batch.min_weight_leaf[tree]
        )
        tree_work = _with_nodes(work, _nodes_from(work.nodes, n_nodes))
        n_nodes += _grow(find, _with_weights(columns, weights), tree_params, n_samples, batch.keys[tree], tree_work)
        batch.ends[tree] = n_nodes


@bare_kernel
def _grow_for_two_classes(columns, params, batch, work):
    """Grow trees of two classes; this compiles in less time than for any number of classes."""
    _grow_trees(find_two_class_split, columns, params, batch, work)


@bare_kernel
def _grow_for_more_classes(columns, params, batch, work):
    _grow_trees(find_split, columns, params, batch, work)


def grow_trees(columns: Columns, params: TreeParams, batch: Batch, work: Workspace) -> Nodes:
    """Grow trees; return their nodes, concatenated, and write to the batch where the nodes of each tree end.

    With max_leaf_nodes, the batch must have one tree. The next call overwrites the nodes, which are in `work`.
    """
    grow = _grow_for_two_classes if work.nodes.totals.n_classes <= 2 else _grow_for_more_classes
    grow(columns, params, batch, work)
    nodes = first_nodes(work.nodes, batch.ends[-1])
    if params.max_leaf_nodes > 0:
        nodes = depth_first(nodes)
        batch.ends[0] = len(nodes.feature)
    return nodes
