"""Grow one tree from plain arrays, for the tests of the engine."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import compile_scorer
from aucforest.tree.best_first import grow_best_first
from aucforest.tree.binning import BinnedMatrix, bin_matrix
from aucforest.tree.criteria import CRITERIA, OWN
from aucforest.tree.growing import Stops, branch_rows, grow_tree, make_workspace, take_rows
from aucforest.tree.random_splits import make_random_splits
from aucforest.tree.splitter import Columns, Rules
from aucforest.tree.tree import Tree
from aucforest.tree.subsets import grown_sets, make_subsets
from aucforest.tree.walks import make_extras

NO_NAMES = np.empty((0, 0), dtype=np.uint32)
NO_LIMIT = 2**31 - 1


class Grown(NamedTuple):
    """A tree, the class totals of its nodes in fixed-point units, and the codes it was grown from."""

    tree: Tree
    totals: NDArray[np.int64]
    binned: BinnedMatrix


class Growth(NamedTuple):
    """How to grow a tree; `aside_rows` None is what the engine would choose.

    The last four need kernels of their own; `extras` asks for them where nothing else does.
    """

    criterion: str | Callable[..., Any] = "auc"
    max_features: int = NO_LIMIT
    min_samples_leaf: int = 1
    min_weight_leaf: int = 0
    max_depth: int = NO_LIMIT
    min_samples_split: int = 2
    min_weight_split: int = 0
    min_gain: float = 0.0
    key: int = 0
    aside_rows: int | None = None
    by_set: tuple[int, ...] = ()
    signs: tuple[int, ...] = ()
    random: bool = False
    max_leaves: int | None = None
    extras: bool = False


def bin_for(X, max_bins: int | None = 255, wide: bool = False, weights=None) -> BinnedMatrix:
    """Bin a matrix; `wide` gives the codes of exact mode their type whatever their number."""
    binned = bin_matrix(np.ascontiguousarray(X, dtype=np.float64), max_bins=max_bins, weights=weights)
    return binned._replace(codes=binned.codes.astype(np.uint16)) if wide else binned


def grow_binned(binned: BinnedMatrix, labels, how: Growth, n_classes=None, counts=None, weights=None) -> Grown:
    """Grow a tree; `counts` are draws, `weights` fixed-point weights in place of them."""
    labels = np.asarray(labels, dtype=np.uint16)
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    counts = np.ones(len(labels), np.uint16) if counts is None else np.asarray(counts, np.uint16)
    weights = np.empty(0, np.int64) if weights is None else np.asarray(weights, np.int64)
    columns = Columns(binned.codes, binned.n_bins, weights)
    max_features = min(how.max_features, len(binned.codes))
    criterion = CRITERIA[how.criterion] if isinstance(how.criterion, str) else OWN
    rules = Rules(criterion, max_features, how.min_samples_leaf, how.min_weight_leaf)
    stops = Stops(how.max_depth, how.min_samples_split, how.min_weight_split, how.min_gain)
    work = make_workspace(columns, max_features, len(labels), n_classes)
    n_taken = take_rows(labels, counts, len(weights) == 0, work.elements)
    subsets, extras, cuts = None, None, None
    if how.by_set:
        by_set = np.isin(np.arange(len(binned.codes)), how.by_set)
        subsets = make_subsets(by_set, len(labels), n_classes)
    if criterion == OWN or how.signs or how.random or how.max_leaves or how.extras:
        address = compile_scorer(how.criterion).address if criterion == OWN else 0
        extras = make_extras(how.signs, address, n_classes, len(work.nodes.feature))
    if how.random:
        cuts = make_random_splits(False, n_classes)
    shared = (columns, NO_NAMES, binned.values, rules, stops, n_taken, np.uint64(how.key), work)
    if how.max_leaves is None:
        aside = branch_rows(len(binned.codes), max_features) if how.aside_rows is None else how.aside_rows
        n_nodes = grow_tree(*shared, aside, subsets, extras, cuts)
    else:
        n_nodes = grow_best_first(*shared, how.max_leaves, subsets, extras, cuts)
    check_scratch_is_clean(work.scratch, len(binned.codes))
    tree = Tree.from_nodes(work.nodes, n_nodes, 1.0, len(binned.codes), **grown_sets(subsets))
    tree.validate()
    return Grown(tree, work.nodes.totals[:n_nodes].copy(), binned)


def grow(X, labels, max_bins=255, wide=False, n_classes=None, counts=None, weights=None, **how) -> Grown:
    """Bin a matrix and grow a tree on it."""
    return grow_binned(bin_for(X, max_bins, wide), labels, Growth(**how), n_classes, counts, weights)


def check_scratch_is_clean(scratch, n_features: int) -> None:
    """Check what the next search relies on."""
    for name in ("histogram", "row_counts", "row_weights", "mask"):
        assert not np.any(getattr(scratch, name)), name
    assert np.array_equal(scratch.features, np.arange(n_features))


def preorder(tree: Tree) -> list[int]:
    """Return the nodes, parents first and left before right: a numbering that growing order cannot change."""
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if tree.feature[node] >= 0:
            stack += [int(tree.left_child[node]) + 1, int(tree.left_child[node])]
    return order


def canonical(grown: Grown, weighted: bool = True) -> list[tuple]:
    """Return what a tree says, whatever the numbers of its nodes; `weighted` False leaves totals and rows out."""
    tree = grown.tree
    return [
        (
            int(tree.feature[i]),
            float(tree.threshold[i]),
            bool(tree.missing_left[i]),
            float(tree.gain[i]),
            *((int(tree.n_samples[i]), *grown.totals[i].tolist()) if weighted else ()),
        )
        for i in preorder(tree)
    ]
