"""Grow one tree from plain arrays, for the tests of the engine."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._compile import bare_device, compile_scorer
from aucforest.tree.binning import BinnedMatrix, bin_matrix
from aucforest.tree.criteria import CRITERIA, CUSTOM_CRITERION, entropy_table
from aucforest.tree.features import CATEGORICAL, NUMERIC
from aucforest.tree.growing import Batch, branch_rows, grow_trees, make_workspace
from aucforest.tree.histogram import number_more_classes, number_two_classes
from aucforest.tree.samples import NO_NAMES, NO_SPARSE, Codes, Columns, SparseCodes
from aucforest.tree.splitter import TreeParams
from aucforest.tree.tree import Tree
from tests.reference.tree import GAINS

NO_LIMIT = 2**31 - 1
NAMES = list(GAINS)


class Grown(NamedTuple):
    """A tree, the class totals of its nodes in fixed-point units, and the codes it was grown from."""

    tree: Tree
    totals: NDArray[np.int64]
    binned: BinnedMatrix


class Growth(NamedTuple):
    """How to grow a tree; `last_rows` None is what the engine would choose, `by_set` are the categorical features.

    `kinds`, if given, are the kinds of all features.
    """

    criterion: str | Callable[..., Any] = "auc"
    max_features: int = NO_LIMIT
    min_samples_leaf: int = 1
    min_weight_leaf: int = 0
    max_depth: int = NO_LIMIT
    min_samples_split: int = 2
    min_gain: float = 0.0
    signs: tuple[int, ...] = ()
    random: bool = False
    max_leaf_nodes: int | None = None
    key: int = 0
    last_rows: int | None = None
    by_set: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()
    sparse: bool = False


@bare_device
def number_classes(labels, totals, weight, indices):
    """Number the classes of a node, which are two or more."""
    if len(labels) == 2:
        return number_two_classes(labels, totals, weight, indices)
    return number_more_classes(labels, totals, weight, indices)


def sparse_codes(binned: BinnedMatrix) -> SparseCodes:
    """Return the codes that are not those of zero, which must be a value of each column."""
    zeros = np.array([
        int(np.flatnonzero(binned.values.lower[first:stop] == 0.0)[0]) for first, stop in pairwise(binned.values.first)
    ])  # fmt: skip
    features, rows = np.nonzero(binned.codes != zeros[:, None])
    starts = np.searchsorted(features, np.arange(len(zeros) + 1))
    order = np.argsort(rows, kind="stable")
    row_starts = np.searchsorted(rows[order], np.arange(binned.codes.shape[1] + 1))
    codes = binned.codes[features, rows]
    by_column = rows.astype(np.int32), Codes.of(codes)
    by_row = features[order].astype(np.int32), Codes.of(codes[order])
    return SparseCodes(zeros, starts, *by_column, row_starts, *by_row)


def bin_for(X, max_bins: int | None = 255, n_bytes: int = 1, weights=None) -> BinnedMatrix:
    """Bin a matrix; n_bytes is the minimum size of a code."""
    binned = bin_matrix(np.ascontiguousarray(X, dtype=np.float64), max_bins=max_bins, weights=weights)
    return binned._replace(codes=binned.codes.astype(np.promote_types(binned.codes.dtype, f"u{n_bytes}")))


def grow_binned(binned: BinnedMatrix, labels, how: Growth, n_classes=None, counts=None, weights=None) -> Grown:
    """Grow a tree; `counts` is a bootstrap sample, `weights` are fixed-point weights in place of it."""
    labels, n_features = np.asarray(labels, dtype=np.uint16), len(binned.codes)
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    counts = np.ones(len(labels), np.uint16) if counts is None else np.asarray(counts, np.uint16)
    weighted, weights = weights is not None, np.asarray([] if weights is None else weights, np.int64)
    columns = Columns(Codes.of(binned.codes), binned.n_bins, weights, NO_NAMES, NO_SPARSE)
    if how.sparse:
        columns = columns._replace(codes=Codes.of(binned.codes[:, :0].copy()), sparse=sparse_codes(binned))
    criterion = CRITERIA[how.criterion] if isinstance(how.criterion, str) else CUSTOM_CRITERION
    by_set = np.isin(np.arange(n_features), how.by_set)
    kinds = np.array(how.kinds or np.where(by_set, CATEGORICAL, NUMERIC), dtype=np.int8)
    max_features, signs = min(how.max_features, n_features), np.array(how.signs, dtype=np.int8)
    params = TreeParams(
        criterion=criterion,
        random_splits=how.random,
        max_features=max_features,
        max_depth=how.max_depth,
        min_samples_split=how.min_samples_split,
        min_samples_leaf=how.min_samples_leaf,
        min_weight_leaf=how.min_weight_leaf,
        min_gain=how.min_gain,
        max_leaf_nodes=how.max_leaf_nodes or 0,
        signs=signs,
        kinds=kinds,
        values=binned.values,
        is_sampled=False,
    )
    last_rows = branch_rows(n_features, max_features) if how.last_rows is None else how.last_rows
    table = entropy_table([criterion], np.inf if weighted else counts.sum())
    last_rows = 0 if how.max_leaf_nodes or how.sparse else last_rows
    work = make_workspace(columns, params, len(labels), np.count_nonzero(counts), n_classes, last_rows, table)
    if criterion == CUSTOM_CRITERION:
        custom = work.buffers.custom._replace(address=compile_scorer(how.criterion).address)
        work = work._replace(buffers=work.buffers._replace(custom=custom))
    batch = Batch(
        keys=np.array([how.key], dtype=np.uint64),
        counts=counts[None],
        weights=weights[None],
        criteria=np.array([criterion]),
        random_splits=np.array([how.random]),
        min_weight_leaf=np.array([how.min_weight_leaf]),
    )
    nodes, ends = grow_trees(columns._replace(node=work.sparse_node), labels, params, batch, work)
    check_buffers_are_clean(work.buffers)
    (tree,) = Tree.from_nodes(nodes, ends, 1.0, kinds != NUMERIC)
    tree.validate()
    splits = [node for node in preorder(tree) if tree.feature[node] >= 0]
    assert tree.left_child[splits].tolist() == list(range(1, tree.n_nodes, 2)), "not numbered depth first"
    return Grown(tree, nodes.totals.dense(), binned)


def grow(X, labels, max_bins=255, n_bytes=1, n_classes=None, counts=None, weights=None, **how) -> Grown:
    """Bin a matrix and grow a tree on it."""
    return grow_binned(bin_for(X, max_bins, n_bytes), labels, Growth(**how), n_classes, counts, weights)


def check_buffers_are_clean(buffers) -> None:
    """Check what the next search relies on."""
    for name in ("cells", "n_samples", "mask"):
        assert not np.any(getattr(buffers.histogram, name)), name
    assert np.array_equal(buffers.features.features, np.arange(len(buffers.features.features)))


def preorder(tree: Tree) -> list[int]:
    """Return the nodes, parents first and left before right."""
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if tree.feature[node] >= 0:
            stack += [int(tree.left_child[node]) + 1, int(tree.left_child[node])]
    return order


def canonical(grown: Grown) -> list[tuple]:
    """Return what a tree says of its nodes: split, categories on the left, gain, samples and class totals."""
    tree = grown.tree
    return [
        (
            int(tree.feature[i]),
            float(tree.threshold[i]),
            bool(tree.missing_left[i]),
            tuple(np.flatnonzero(tree.goes_left(i)).tolist()) if tree.has_set(i) else (),
            float(tree.gain[i]),
            int(tree.n_samples[i]),
            *grown.totals[i].tolist(),
        )
        for i in preorder(tree)
    ]
