"""One tree, depth first, with an explicit stack.

`elements` is a permutation of the rows of the tree in which every node is one slice, and a cut rearranges the slice:

    elements   | left child: start .. middle | right child: middle .. end |

The rows of a branch are copied, all features, so that they lie close together (see `copies`). The tree does not depend
on this: what is drawn at a node depends on its key only. Just its numbering does: branches of at most a few thousand
rows are numbered after all nodes above them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.binning import midway
from aucforest.tree.bounds import pass_bounds, start_bounds
from aucforest.tree.copies import Copies, columns_at, copy_branch, level_of, make_copies
from aucforest.tree.histogram import label_of, pack, row_of, weight_of
from aucforest.tree.random import derive_key
from aucforest.tree.random_cuts import drawn_threshold, find_random_cut
from aucforest.tree.splitter import Columns, Scratch, find_best_cut, make_scratch
from aucforest.tree.subsets import is_in_set, record_set

# Nodes are numbered in 32 bits, while a tree grows up to four times the rows.
MOST_ROWS = 2**29 - 1
# The matrix of a branch should stay in a core's own cache.
_BRANCH_CELLS = 1 << 18
_BRANCH_ROWS = 4096
# Copying a row pays when its branch will look at a feature more than about once.
_COPY_PAYS = 12


class Stops(NamedTuple):
    """When a node is a leaf whatever its cuts."""

    max_depth: int
    min_samples_split: int
    min_weight_split: int
    min_gain: float


class Nodes(NamedTuple):
    """The nodes of a tree that grows, with room for all; children stand side by side, a leaf has feature -1."""

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left_child: NDArray[np.int32]
    gain: NDArray[np.float64]
    n_samples: NDArray[np.int64]
    totals: NDArray[np.int64]  # (capacity, n_classes)


class Workspace(NamedTuple):
    """Everything that growing a tree writes to; reused from tree to tree, since fresh pages cost a fault each."""

    elements: NDArray[np.uint64]
    spill: NDArray[np.uint64]
    stack: NDArray[np.int64]  # (capacity, 4): start, end, node, depth
    keys: NDArray[np.uint64]
    ahead: NDArray[np.int64]  # cuts found ahead, like the stack
    ahead_keys: NDArray[np.uint64]
    nodes: Nodes
    copies: Copies
    scratch: Scratch


def branch_rows(n_features: int, max_features: int) -> int:
    """Return up to how many rows a branch is grown in a local copy; 0 where copying does not pay."""
    if n_features > _COPY_PAYS * max_features:
        return 0
    return min(_BRANCH_ROWS, _BRANCH_CELLS // n_features)


def make_workspace(columns: Columns, max_features: int, n_rows: int, n_classes: int) -> Workspace:
    """Allocate the buffers for trees of up to n_rows rows; untouched pages cost nothing."""
    n_features = len(columns.codes)
    n_codes = int(columns.n_bins.max()) + 1
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"{n_rows:,} rows are too many to grow trees from in one place, {MOST_ROWS:,} are the most: take fewer, or"
            " strategy 'level' on a cluster"
        )
    # The second half is for the nodes above the branches, which are numbered at the end.
    capacity = 2 * (2 * n_rows + 1)
    return Workspace(
        elements=np.empty(n_rows, dtype=np.uint64),
        spill=np.empty(n_rows, dtype=np.uint64),
        stack=np.empty((n_rows + 1, 4), dtype=np.int64),
        keys=np.empty(n_rows + 1, dtype=np.uint64),
        ahead=np.empty((n_rows + 1, 4), dtype=np.int64),
        ahead_keys=np.empty(n_rows + 1, dtype=np.uint64),
        nodes=Nodes(
            feature=np.empty(capacity, dtype=np.int32),
            threshold=np.empty(capacity, dtype=np.float64),
            missing_left=np.empty(capacity, dtype=np.bool_),
            left_child=np.empty(capacity, dtype=np.int32),
            gain=np.empty(capacity, dtype=np.float64),
            n_samples=np.empty(capacity, dtype=np.int64),
            totals=np.empty((capacity, n_classes), dtype=np.int64),
        ),
        copies=make_copies(columns, n_rows, branch_rows(n_features, max_features)),
        scratch=make_scratch(n_features, n_codes, n_classes),
    )


@bare_device
def partition(column, elements, spill, code, also_left, codes_left):  # type: ignore[no-untyped-def]
    """Move the elements with a code <= `code` or == `also_left` to the front, both sides in their order.

    A set `codes_left` that is not None tells of all codes but `also_left`, in place of `code`.

    Free of branches: each element is written to both sides and only one of the two ends moves on.
    """
    n_left, n_right = np.uint64(0), np.uint64(0)
    for i in range(len(elements)):
        element = elements[i]
        value = np.int64(column[row_of(element)])
        if codes_left is None:
            goes_left = np.uint64((value <= code) | (value == also_left))
        else:
            goes_left = np.uint64(is_in_set(codes_left, value) | (value == also_left))
        elements[n_left] = element
        spill[n_right] = element
        n_left += goes_left
        n_right += np.uint64(1) - goes_left
    for i in range(n_right):
        elements[n_left + i] = spill[i]
    return np.int64(n_left)


@bare_device
def _threshold(values, names, cut):  # type: ignore[no-untyped-def]
    """Return the value midway between the two sides of a cut, never the right one; +inf if only NaN is right."""
    if cut.next_code < 0:
        return np.inf
    code, next_code = cut.code, cut.next_code
    if len(names) > 0:
        code, next_code = np.int64(names[cut.feature, code]), np.int64(names[cut.feature, next_code])
    first = values.first[cut.feature]
    return midway(values.upper[first + code], values.lower[first + next_code])


@bare_device
def _part(columns, elements, cut, spill, subsets):  # type: ignore[no-untyped-def]
    """Part the elements of a node by its cut and return how many go left."""
    column, missing_code = columns.codes[cut.feature], columns.n_bins[cut.feature]
    if subsets is not None and subsets.by_set[cut.feature]:
        also_left = missing_code if cut.missing_left else -1
        return partition(column, elements, spill, cut.code, also_left, subsets.kept_left)
    also_left = missing_code if cut.missing_left else cut.code
    return partition(column, elements, spill, cut.code, also_left, None)


@bare_device
def start_node(nodes, node, n_samples):  # type: ignore[no-untyped-def]
    """Make a node a leaf until it is split."""
    nodes.feature[node] = -1
    nodes.threshold[node] = 0.0
    nodes.missing_left[node] = False
    nodes.left_child[node] = -1
    nodes.gain[node] = 0.0
    nodes.n_samples[node] = n_samples


@bare_device
def may_split(totals, n_samples, depth, stops):  # type: ignore[no-untyped-def]
    """Say whether a node is worth a search: impure and within bounds."""
    if n_samples < stops.min_samples_split or depth >= stops.max_depth:
        return False
    n_present, weight = 0, np.int64(0)
    for k in range(len(totals)):
        n_present += totals[k] > 0
        weight += totals[k]
    return n_present > 1 and weight >= stops.min_weight_split


@bare_device
def _split_totals(nodes, node, left_child, scratch):  # type: ignore[no-untyped-def]
    """Hand the class totals of a node on to its children; the left ones lie in scratch.best_left."""
    total, left, right = nodes.totals[node], nodes.totals[left_child], nodes.totals[left_child + 1]
    for k in range(len(total)):
        left[k] = scratch.best_left[scratch.slots[k]] if total[k] > 0 else 0
        right[k] = total[k] - left[k]


@bare_device
def push(start, end, node, depth, key, stack, keys, n_stacked):  # type: ignore[no-untyped-def]
    """Put a node on a stack and return the stack's new height."""
    stack[n_stacked, 0] = start
    stack[n_stacked, 1] = end
    stack[n_stacked, 2] = node
    stack[n_stacked, 3] = depth
    keys[n_stacked] = key
    return n_stacked + 1


@bare_device
def find_cut(columns, names, values, elements, node, key, rules, work, subsets, extras, cuts):  # type: ignore[no-untyped-def]
    """Return the best cut of a node, of all there are or of those drawn, and its gain."""
    totals, scratch = work.nodes.totals[node], work.scratch
    if cuts is None:
        return find_best_cut(columns, elements, totals, key, rules, scratch, subsets, extras, node)
    return find_random_cut(columns, names, values, elements, totals, key, rules, scratch, subsets, extras, node, cuts)


@bare_device
def record_cut(names, values, nodes, node, left_child, cut, gain, scratch, subsets, cuts):  # type: ignore[no-untyped-def]
    """Write the cut of a node down, right after its search: the totals on the left lie in the scratch."""
    _split_totals(nodes, node, left_child, scratch)
    nodes.feature[node] = cut.feature
    nodes.missing_left[node] = cut.missing_left
    nodes.left_child[node] = left_child
    nodes.gain[node] = gain
    if subsets is not None and subsets.by_set[cut.feature]:
        record_set(values, names, cut.feature, cut.missing_left, node, subsets)
    elif cuts is None:
        nodes.threshold[node] = _threshold(values, names, cut)
    else:
        nodes.threshold[node] = drawn_threshold(values, names, cut, cuts)


@bare_device
def split_node(columns, names, values, node, left_child, cut, gain, start, end, work, subsets, extras, cuts):  # type: ignore[no-untyped-def]
    """Cut a node, of the rows start .. end, right after its search."""
    nodes = work.nodes
    record_cut(names, values, nodes, node, left_child, cut, gain, work.scratch, subsets, cuts)
    n_left = _part(columns, work.elements[start:end], cut, work.spill, subsets)
    start_node(nodes, left_child, n_left)
    start_node(nodes, left_child + 1, end - start - n_left)
    if extras is not None:
        pass_bounds(extras.bounds, nodes, node, left_child, cut)


@bare_device
def push_children(start, end, node, depth, key, stops, work, n_stacked):  # type: ignore[no-untyped-def]
    """Put the children of a node that are worth a search on the stack, the left one on top; return its height."""
    nodes = work.nodes
    left_child = nodes.left_child[node]
    middle = start + nodes.n_samples[left_child]
    for side in (1, 0):
        low, high = (middle, end) if side == 1 else (start, middle)
        if may_split(nodes.totals[left_child + side], high - low, depth + 1, stops):
            child_key = derive_key(key, side)
            n_stacked = push(low, high, left_child + side, depth + 1, child_key, work.stack, work.keys, n_stacked)
    return n_stacked


@bare_device
def move_node(nodes, node, to):  # type: ignore[no-untyped-def]
    """Give a node another number."""
    nodes.feature[to] = nodes.feature[node]
    nodes.threshold[to] = nodes.threshold[node]
    nodes.missing_left[to] = nodes.missing_left[node]
    nodes.left_child[to] = nodes.left_child[node]
    nodes.gain[to] = nodes.gain[node]
    nodes.n_samples[to] = nodes.n_samples[node]
    for k in range(nodes.totals.shape[1]):
        nodes.totals[to, k] = nodes.totals[node, k]


@bare_device
def _new_number(node, half, n_above):  # type: ignore[no-untyped-def]
    """Return what a node, or -1 for none, is called in the end."""
    if node >= half:
        return node - half + 1
    return node + n_above if node > 0 else node


@bare_device
def _number(nodes, n_nodes, n_above, subsets):  # type: ignore[no-untyped-def]
    """Number the nodes above the branches, which lie in the second half of the buffers, next to the root."""
    half = len(nodes.feature) // 2
    for node in range(n_nodes - 1, 0, -1):
        move_node(nodes, node, node + n_above)
    for i in range(n_above):
        move_node(nodes, half + i, 1 + i)
    for node in range(n_nodes + n_above):
        nodes.left_child[node] = _new_number(nodes.left_child[node], half, n_above)
    if subsets is not None:
        for i in range(subsets.n_sets[0]):
            subsets.nodes[i] = _new_number(subsets.nodes[i], half, n_above)


@bare_device
def _grow(columns, names, values, rules, stops, work, n_stacked, aside_rows, subsets, extras, cuts):  # type: ignore[no-untyped-def]
    """Grow all nodes on the stack, those of at most aside_rows rows in branches. Return (n_nodes, n_above)."""
    copies, half = work.copies, len(work.nodes.feature) // 2
    last, level, n_nodes, n_above = len(copies.most_rows) - 1, 0, 1, 0
    while n_stacked > 0:
        n_stacked -= 1
        start, end, node, depth = work.stack[n_stacked]
        key, elements = work.keys[n_stacked], work.elements[start:end]
        while n_stacked < copies.height[level]:
            level -= 1
        here, here_names = columns_at(level, columns, names, copies)
        to_level = level_of(end - start, level, aside_rows, copies)
        if to_level > level:
            copy_branch(here, elements, to_level, copies, work.scratch)
            while level < to_level:
                level += 1
                copies.height[level] = n_stacked
            here, here_names = columns_at(level, columns, names, copies)
        cut, gain = find_cut(here, here_names, values, elements, node, key, rules, work, subsets, extras, cuts)
        if gain <= 0.0 or gain < stops.min_gain:
            continue
        left_child = n_nodes if level == last else half + n_above
        split_node(here, here_names, values, node, left_child, cut, gain, start, end, work, subsets, extras, cuts)
        if level == last:
            n_nodes += 2
        else:
            n_above += 2
        n_stacked = push_children(start, end, node, depth, key, stops, work, n_stacked)
    return n_nodes, n_above


@bare_device
def set_root(columns, elements, nodes, subsets, extras):  # type: ignore[no-untyped-def]
    """Make the root from all elements."""
    if subsets is not None:
        subsets.n_sets[0] = 0
    if extras is not None:
        start_bounds(extras.bounds)
    start_node(nodes, 0, len(elements))
    nodes.totals[0] = 0
    for i in range(len(elements)):
        label = label_of(elements[i])
        wide = len(columns.weights) > 0
        nodes.totals[0, label] += columns.weights[row_of(elements[i])] if wide else weight_of(elements[i])


@bare_kernel
def grow_tree(columns, names, values, rules, stops, n_rows, key, work, aside_rows, subsets, extras, cuts):  # type: ignore[no-untyped-def]
    """Grow one tree.

    Parameters
    ----------
    columns : Columns
        Codes, bins and weights of all rows.
    values : CutValues
    rules : Rules
    stops : Stops
    n_rows : int
        work.elements[:n_rows] are the rows of the tree; they are rearranged.
    key : uint64
        The key of the root.
    work : Workspace
    aside_rows : int
        Branches of up to this many rows are grown in a local copy; 0 for never.
    subsets : Subsets or None
        For features that are cut by sets; None, where there are none, is compiled without a trace of them.
    extras : Extras or None
        Bounds and a user's own criterion. Kernels are compiled anew where there are any: without them, without theirs.
    cuts : RandomCuts or None
        Draws one cut a feature, needs extras; None searches all cuts.

    Returns
    -------
    int
        The number of nodes; work.nodes holds them.
    """
    nodes = work.nodes
    elements = work.elements[:n_rows]
    set_root(columns, elements, nodes, subsets, extras)
    if not may_split(nodes.totals[0], n_rows, 0, stops):
        return 1
    n_stacked = push(0, n_rows, 0, 0, key, work.stack, work.keys, 0)
    n_nodes, n_above = _grow(columns, names, values, rules, stops, work, n_stacked, aside_rows, subsets, extras, cuts)
    if n_above > 0:
        _number(nodes, n_nodes, n_above, subsets)
    return n_nodes + n_above


@bare_kernel
def take_rows(labels, counts, use_counts, elements):  # type: ignore[no-untyped-def]
    """Write the elements of the rows drawn at least once and return how many there are.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,), uint16
    counts : ndarray of shape (n_rows,), uint16
        How often each row was drawn.
    use_counts : bool
        Whether the count is the row's weight; otherwise the weights lie in Columns.weights.
    elements : ndarray of shape (n_rows,), uint64
        Output.
    """
    n_taken = np.uint64(0)
    for row in range(len(labels)):
        elements[n_taken] = pack(row, labels[row], counts[row] if use_counts else 0)
        n_taken += np.uint64(counts[row] > 0)
    return np.int64(n_taken)
