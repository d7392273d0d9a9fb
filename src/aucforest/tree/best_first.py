"""One tree, best first: the next node that is cut is the leaf whose cut gains most, times the weight of its rows.

What is drawn at a node depends on its key only, so without a limit it is the tree that grows depth first. Every leaf
is cut ahead, so that its gain is known; at the end the cuts that did not come to pass are left out.
"""

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.grower import find_cut, may_split, move_node, push, push_children, set_root, split_node, start_node


@bare_device
def _comes_before(nodes, node, other):  # type: ignore[no-untyped-def]
    """Say whether a node is cut before another: by gain times weight, then by number."""
    gain, other_gain = nodes.gain[node] * nodes.totals[node].sum(), nodes.gain[other] * nodes.totals[other].sum()
    return gain > other_gain or (gain == other_gain and node < other)


@bare_device
def _add(heap, n_heap, ahead, item, nodes):  # type: ignore[no-untyped-def]
    """Put a cut ahead on the heap."""
    place = n_heap
    while place > 0:
        above = (place - 1) >> 1
        if _comes_before(nodes, ahead[heap[above], 2], ahead[item, 2]):
            break
        heap[place] = heap[above]
        place = above
    heap[place] = item


@bare_device
def _take(heap, n_heap, ahead, nodes):  # type: ignore[no-untyped-def]
    """Take the first one from the heap, which holds n_heap."""
    first, item = heap[0], heap[n_heap - 1]
    place, below = 0, 1
    while below < n_heap - 1:
        if below + 1 < n_heap - 1 and _comes_before(nodes, ahead[heap[below + 1], 2], ahead[heap[below], 2]):
            below += 1
        if _comes_before(nodes, ahead[item, 2], ahead[heap[below], 2]):
            break
        heap[place] = heap[below]
        place = below
        below = 2 * place + 1
    heap[place] = item
    return first


@bare_device
def _leave_out(nodes, ahead, n_ahead):  # type: ignore[no-untyped-def]
    """Number the nodes anew without the children of leaves; return how many there are.

    The i-th cut ahead made the nodes 2 i + 1 and 2 i + 2. On return ahead[i, 1] says whether they are kept, and their
    new numbers are smaller by ahead[i, 3].
    """
    n_dropped = 0
    for i in range(n_ahead):
        node = ahead[i, 2]
        if node > 0:
            node -= ahead[(node - 1) >> 1, 3]
        ahead[i, 1], ahead[i, 3] = nodes.feature[node] >= 0, n_dropped
        if nodes.feature[node] < 0:
            n_dropped += 2
            continue
        nodes.left_child[node] = 2 * i + 1 - n_dropped
        for child in (2 * i + 1, 2 * i + 2):
            move_node(nodes, child, child - n_dropped)
    return 2 * n_ahead + 1 - n_dropped


@bare_device
def _leave_out_sets(nodes, ahead, subsets):  # type: ignore[no-untyped-def]
    """Keep the sets of nodes that are cut, by their new numbers."""
    n_kept = 0
    for i in range(subsets.n_sets[0]):
        node = subsets.nodes[i]
        if node > 0:
            pair = (node - 1) >> 1
            if not ahead[pair, 1]:
                continue
            node -= ahead[pair, 3]
        if nodes.feature[node] < 0:
            continue
        subsets.nodes[n_kept] = node
        for word in range(subsets.sets.shape[1]):
            subsets.sets[n_kept, word] = subsets.sets[i, word]
        n_kept += 1
    subsets.n_sets[0] = n_kept


@bare_kernel
def grow_best_first(columns, names, values, rules, stops, n_rows, key, work, max_leaves, subsets, extras, cuts):  # type: ignore[no-untyped-def]
    """Grow one tree of at most max_leaves leaves.

    Parameters
    ----------
    columns, names, values, rules, stops, n_rows, key, work, subsets, extras, cuts
        As in `grower.grow_tree`.
    max_leaves : int

    Returns
    -------
    int
        The number of nodes; work.nodes holds them.
    """
    nodes, stack, keys, ahead = work.nodes, work.stack, work.keys, work.ahead
    heap = stack[2:, 0]
    set_root(columns, work.elements[:n_rows], nodes, subsets, extras)
    n_stacked, n_ahead, n_heap, n_leaves = 0, 0, 0, 1
    if may_split(nodes.totals[0], n_rows, 0, stops):
        n_stacked = push(0, n_rows, 0, 0, key, stack, keys, n_stacked)
    while n_leaves < max_leaves:
        # On the stack wait the root, or the two children of the node cut last.
        while n_stacked > 0:
            n_stacked -= 1
            start, end, node, depth = stack[n_stacked]
            elements, node_key = work.elements[start:end], keys[n_stacked]
            cut, gain = find_cut(columns, names, values, elements, node, node_key, rules, work, subsets, extras, cuts)
            if gain <= 0.0 or gain < stops.min_gain:
                continue
            left_child = 2 * n_ahead + 1
            split_node(columns, names, values, node, left_child, cut, gain, start, end, work, subsets, extras, cuts)
            push(start, end, node, depth, node_key, ahead, work.ahead_keys, n_ahead)
            _add(heap, n_heap, ahead, n_ahead, nodes)
            n_heap += 1
            n_ahead += 1
        if n_heap == 0:
            break
        item = _take(heap, n_heap, ahead, nodes)
        n_heap -= 1
        n_leaves += 1
        start, end, node, depth = ahead[item]
        n_stacked = push_children(start, end, node, depth, work.ahead_keys[item], stops, work, n_stacked)
    for i in range(n_heap):
        node = ahead[heap[i], 2]
        start_node(nodes, node, nodes.n_samples[node])
    n_nodes = _leave_out(nodes, ahead, n_ahead)
    if subsets is not None:
        _leave_out_sets(nodes, ahead, subsets)
    return n_nodes
