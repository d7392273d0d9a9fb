"""One tree from a top and the branches grown below it, numbered as `grower` numbers the nodes of a tree in one go."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, bare_kernel
from aucforest.tree.grower import Nodes

# They are numbered in 32 bits.
_MOST_NODES = 2**31 - 1


class Grown(NamedTuple):
    """A tree, or a branch of one, whose class totals are still integers.

    nodes : Nodes
    set_nodes : ndarray of shape (n_sets,), int64
        The nodes that are cut by sets, in rising order.
    sets : ndarray of shape (n_sets, 4), uint64
    """

    nodes: Nodes
    set_nodes: NDArray[np.int64]
    sets: NDArray[np.uint64]


@bare_device
def _number_below(left_child, n_samples, root, aside_rows, stack, aside, n_aside, numbers, n_numbered):  # type: ignore[no-untyped-def]
    """Number the nodes below a root, depth first, and set small ones aside; return (n_numbered, n_aside)."""
    stack[0], n_stacked = root, 1
    while n_stacked > 0:
        n_stacked -= 1
        node = stack[n_stacked]
        child = left_child[node]
        if child < 0:
            continue
        if n_samples[node] <= aside_rows:
            aside[n_aside] = node
            n_aside += 1
            continue
        numbers[child], numbers[child + 1] = n_numbered, n_numbered + 1
        n_numbered += 2
        stack[n_stacked], stack[n_stacked + 1] = child + 1, child
        n_stacked += 2
    return n_numbered, n_aside


@bare_kernel
def _number_nodes(left_child, n_samples, aside_rows, stack, aside, numbers):  # type: ignore[no-untyped-def]
    """Number all nodes of a tree as `grower.grow_tree` does."""
    numbers[0] = 0
    n_numbered, n_aside = _number_below(left_child, n_samples, 0, aside_rows, stack, aside, 0, numbers, 1)
    for i in range(n_aside):
        n_numbered, _ = _number_below(left_child, n_samples, aside[i], 0, stack, aside, 0, numbers, n_numbered)


def splice(top: Grown, branches: dict[int, Grown], aside_rows: int) -> Grown:
    """Put branches in the place of leaves.

    Parameters
    ----------
    top : Grown
    branches : dict
        Leaf of the top -> the branch whose root it is.
    aside_rows : int
        As in `grower.grow_tree`.

    Returns
    -------
    Grown

    Raises
    ------
    ValueError
        If there are too many nodes.
    """
    leaves = np.array(list(branches), dtype=np.int64)
    sizes = np.array([len(branch.nodes.feature) - 1 for branch in branches.values()], dtype=np.int64)
    if len(top.nodes.feature) + sizes.sum() > _MOST_NODES:
        raise ValueError(f"a tree has more than {_MOST_NODES} nodes: lower max_samples or max_depth")
    # Node i > 0 of a branch becomes node offset + i.
    offsets = len(top.nodes.feature) - 1 + np.cumsum(sizes) - sizes
    columns = []
    for name in Nodes._fields:
        parts = [getattr(branch.nodes, name) for branch in branches.values()]
        if name == "left_child":
            parts = [np.where(part > 0, part + offset, part).astype(np.int32) for part, offset in zip(parts, offsets)]
        column = np.concatenate([getattr(top.nodes, name), *(part[1:] for part in parts)])
        if parts:
            column[leaves] = [part[0] for part in parts]
        columns.append(column)
    nodes = Nodes._make(columns)
    n_nodes = len(nodes.feature)
    numbers, stack, aside = np.empty((3, n_nodes), dtype=np.int64)
    _number_nodes(nodes.left_child, nodes.n_samples, aside_rows, stack, aside, numbers)
    has_children = nodes.left_child > 0
    nodes.left_child[has_children] = numbers[nodes.left_child[has_children]]
    order = np.argsort(numbers)
    set_nodes = [top.set_nodes]
    for leaf, offset, branch in zip(leaves, offsets, branches.values()):
        set_nodes.append(np.where(branch.set_nodes > 0, branch.set_nodes + offset, leaf))
    set_numbers = numbers[np.concatenate(set_nodes)]
    set_order = np.argsort(set_numbers)
    sets = np.concatenate([top.sets, *(branch.sets for branch in branches.values())])
    return Grown(Nodes._make(column[order] for column in nodes), set_numbers[set_order], sets[set_order])
