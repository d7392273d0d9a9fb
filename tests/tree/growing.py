"""Growing of one tree from plain arrays, for the tests of `aucforest.tree`."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from aucforest._compile import compile_scorer
from aucforest.tree.binning import BinnedMatrix, bin_matrix
from aucforest.tree.criteria.criterion import CUSTOM_CRITERION
from aucforest.tree.criteria.entropy import entropy_table
from aucforest.tree.criteria.table import CRITERIA
from aucforest.tree.features import CATEGORICAL, NUMERIC
from aucforest.tree.growing import Batch, Sizes, branch_rows, grow_trees, make_workspace
from aucforest.tree.samples import NO_RANKS, CodeBins, Codes, Columns, SparseCodes
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
    """How to grow a tree; `by_set` has the categorical features. If `last_rows` is None, `branch_rows` chooses it."""

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


def sparse_codes(binned: BinnedMatrix) -> SparseCodes:
    """Return the codes of nonzeros. Each column must have a bin for zero."""
    zeros = np.array([
        int(np.flatnonzero(binned.values.lower[first:stop] == 0.0)[0]) for first, stop in pairwise(binned.values.first)
    ])  # fmt: skip
    features, rows = np.array(np.nonzero(binned.codes != zeros[:, None]), np.int32)  # int64 would compile kernels anew
    columns = csc_array((binned.codes[features, rows], (rows, features)), shape=binned.codes.T.shape)
    parts = [(one.indptr.astype(np.int64), one.indices, Codes.of(one.data)) for one in (columns, columns.tocsr())]
    return SparseCodes(zeros, *parts[0], *parts[1])


def bin_for(X, max_bins: int | None = 255, n_bytes: int = 1) -> BinnedMatrix:
    """Bin a matrix; n_bytes is the minimum size of a code."""
    binned = bin_matrix(np.ascontiguousarray(X, dtype=np.float64), max_bins=max_bins)
    return binned._replace(codes=binned.codes.astype(np.promote_types(binned.codes.dtype, f"u{n_bytes}")))


def make_columns(binned: BinnedMatrix, weights=(), kinds=None) -> Columns:
    """Return the columns that kernels read; without `kinds`, all features are numeric."""
    kinds = np.zeros(len(binned.codes), dtype=np.int8) if kinds is None else kinds
    bins = CodeBins(NO_RANKS, binned.values)
    return Columns(
        Codes.of(binned.codes), binned.values.n_bins, np.array(weights, np.int64), bins, kinds, is_sampled=False
    )


def make_params(how: Growth, n_features: int) -> TreeParams:
    given = {name: getattr(how, name) for name in TreeParams._fields if hasattr(how, name)}
    return TreeParams(**given | {
        "criterion": CRITERIA[how.criterion] if isinstance(how.criterion, str) else CUSTOM_CRITERION,
        "random_splits": how.random, "max_features": min(how.max_features, n_features),
        "max_leaf_nodes": how.max_leaf_nodes or 0, "signs": np.array(how.signs, dtype=np.int8),
    })  # fmt: skip


def grow_binned(binned: BinnedMatrix, labels, how: Growth, n_classes=None, counts=None, weights=None) -> Grown:
    """Grow a tree; `counts` are those of a bootstrap sample, and `weights` are fixed-point weights, else the counts."""
    labels, n_features = np.asarray(labels, dtype=np.uint16), len(binned.codes)
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    counts = np.ones(len(labels), np.uint16) if counts is None else np.asarray(counts, np.uint16)
    weighted, weights = weights is not None, np.asarray([] if weights is None else weights, np.int64)
    by_set = np.isin(np.arange(n_features), how.by_set)
    kinds = np.array(how.kinds or np.where(by_set, CATEGORICAL, NUMERIC), dtype=np.int8)
    columns, params = make_columns(binned, weights, kinds), make_params(how, n_features)
    if how.sparse:
        columns = columns._replace(codes=Codes.of(binned.codes[:, :0].copy()), sparse=sparse_codes(binned))
    last_rows = branch_rows(n_features, params.max_features) if how.last_rows is None else how.last_rows
    last_rows = 0 if how.max_leaf_nodes or how.sparse else last_rows
    table = entropy_table([params.criterion], np.inf if weighted else counts.sum())
    work = make_workspace(columns, params, Sizes(len(labels), np.count_nonzero(counts), n_classes, last_rows), table)
    if params.criterion == CUSTOM_CRITERION:
        custom = work.buffers.custom._replace(address=compile_scorer(how.criterion).address)
        work = work._replace(buffers=work.buffers._replace(custom=custom))
    batch = Batch(
        labels=labels, keys=np.array([how.key], dtype=np.uint64), counts=counts, weights=weights,
        starts=np.array([0, len(labels)]), first_rows=np.zeros(1, dtype=np.int64),
        criteria=np.array([params.criterion]), random_splits=np.array([how.random]),
        min_weight_leaf=np.array([how.min_weight_leaf]), ends=np.empty(1, dtype=np.int64),
    )  # fmt: skip
    nodes = grow_trees(columns._replace(node=work.sparse_node), params, batch, work)
    # The next search requires that these buffers are zero.
    for name in ("cells", "n_samples_of_code", "mask"):
        assert not np.any(getattr(work.buffers.histogram, name)), name
    assert np.array_equal(work.buffers.features.features, np.arange(n_features))
    (tree,) = Tree.from_nodes(nodes, batch.ends, 1.0, kinds != NUMERIC)
    tree.validate()
    splits = [node for node in preorder(tree) if tree.feature[node] >= 0]
    assert tree.left_child[splits].tolist() == list(range(1, tree.n_nodes, 2)), "not numbered depth first"
    totals = nodes.totals.dense()
    np.testing.assert_allclose(tree.value * tree.weight[:, None], totals, rtol=1e-14)
    return Grown(tree, totals, binned)


def grow(X, labels, max_bins=255, n_bytes=1, n_classes=None, counts=None, weights=None, **how) -> Grown:
    return grow_binned(bin_for(X, max_bins, n_bytes), labels, Growth(**how), n_classes, counts, weights)


def preorder(tree: Tree) -> list[int]:
    """Return the nodes in preorder."""
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if tree.feature[node] >= 0:
            stack += [int(tree.left_child[node]) + 1, int(tree.left_child[node])]
    return order


def canonical(grown: Grown) -> list[tuple]:
    """Return the nodes of a tree in preorder: split, categories on the left, gain, samples and class totals."""
    tree = grown.tree
    return [
        (
            int(tree.feature[i]), float(tree.threshold[i]), bool(tree.missing_left[i]),
            tuple(np.flatnonzero(tree.goes_left(i)).tolist()) if tree.has_set(i) else (), float(tree.gain[i]),
            int(tree.n_samples[i]), *grown.totals[i].tolist(),
        )
        for i in preorder(tree)
    ]  # fmt: skip
