"""Estimates of the memory of a fit: the check of a fit in memory, and the plan of a fit out of core.

Each thread has its own buffers. It grows one tree at a time, or several small trees in one call of the kernel.
tests/fitting/test_plan.py and benchmarks/out_of_core.py compare the estimates with measured peaks.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log2
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest._memory import check_memory, format_bytes
from aucforest.fitting.bootstrap import GroupSampler
from aucforest.fitting.coding import Coding
from aucforest.fitting.parts import MAPPED_BYTES
from aucforest.fitting.spec import FitSpec
from aucforest.fitting.target import Target
from aucforest.fitting.target_rates import (
    INTERACTIONS_OF_TREE,
    MOST_CELLS,
    MOST_INTERACTIONS,
    PARTS,
    count_rated_classes,
)
from aucforest.tree.binning import MAX_BINS, SAMPLE_ROWS, code_dtype
from aucforest.tree.growing import branch_rows, level_rows, rows_per_call
from aucforest.tree.samples import MOST_ROWS, NO_SPARSE, SparseNode
from aucforest.tree.sparse import most_listed
from aucforest.tree.splitter import SplitBuffers
from aucforest.tree.tree import make_nodes

# Warn if a target has more than _MANY_CLASSES classes with fewer than _LEAST_OF_CLASS samples on average.
_MANY_CLASSES = 50
_LEAST_OF_CLASS = 10
_REGRESSION_ADVICE = "y looks like a regression target: predict whether it exceeds a threshold, y > threshold"


def _item_bytes(*arrays: NDArray[Any]) -> int:
    """Return the total bytes of one item from each array."""
    return sum(array.itemsize for array in arrays)


_NODES, _SPARSE_NODE = make_nodes(1, 1, by_set=False), SparseNode.of(NO_SPARSE, 0)
_HISTOGRAM = SplitBuffers.of(1, 1, 2, np.empty(0)).histogram
# Bytes of a thread for the count of each row: how often the row is in the sample of the tree.
COUNT_BYTES = np.dtype(np.uint16).itemsize
# Bytes of a thread for each row in the sample of a tree (measured).
_SAMPLE_BYTES = 24
# Bytes of a copied row besides its codes and its weight: its index, its label and its count.
_COPIED_BYTES = np.dtype("i8, u2, u2").itemsize
# Bytes of a node besides its classes, and of each class that is present in a node.
_NODE_BYTES = _item_bytes(
    _NODES.totals.starts, *[getattr(_NODES, n) for n in _NODES._fields if n not in ("sets", "totals")]
)
_CLASS_BYTES = _item_bytes(_NODES.totals.labels, _NODES.totals.values)
# Bytes of a thread for the weight of a row, and the same with class_weight="balanced_subsample", when weights depend on
# the sample of the tree (measured).
_WEIGHT_BYTES, _BALANCED_BYTES = np.dtype(np.float64).itemsize, 12
# Bytes of a feature besides its codes, for the bounds of its bins and for its data in trees (measured).
_FEATURE_BYTES = 100
# Bytes of a histogram for each code, and for each cell, a pair of a code and a class. The cells of two features are in
# memory at the same time. Each cell also has a bit in a mask, which is counted as a byte.
_CODE_BYTES = _item_bytes(
    _HISTOGRAM.n_samples_of_code, _HISTOGRAM.codes, _HISTOGRAM.starts, _HISTOGRAM.n_samples, _HISTOGRAM.all_codes
)
_CELL_BYTES = 2 * _HISTOGRAM.cells.itemsize + _HISTOGRAM.entries.itemsize + 1
# Bytes of a stored value of a sparse matrix: its row, its feature, and its value while it is encoded. Its code, which
# is stored by row and by column, is added in `matrix_bytes`.
_STORED_BYTES = _item_bytes(NO_SPARSE.rows, NO_SPARSE.features) + np.dtype(np.float64).itemsize
# Bytes of a bin of a sparse matrix while bins are chosen (measured).
_BOUND_BYTES = 32
# Bytes of a thread for a row of a sparse matrix, and for a stored value in the lists of a node, see `tree.sparse`.
_LOOKED_UP_BYTES = _item_bytes(
    _SPARSE_NODE.node_of, _SPARSE_NODE.sample_of, _SPARSE_NODE.found, _SPARSE_NODE.found_codes, _SPARSE_NODE.is_other
)
_LISTED_BYTES = _item_bytes(_SPARSE_NODE.previous, _SPARSE_NODE.feature, _SPARSE_NODE.code, _SPARSE_NODE.sample)
# Bytes of each row and of each category while target rates are computed (measured).
_RATED_BYTES, _CATEGORY_BYTES = 32, 16
# Bytes of each row while the class totals of groups are computed for target rates (measured).
_SORTED_GROUP_BYTES = 64
# Bytes of each sampled value while bins are computed (measured).
_SAMPLED_BYTES = 16
# Additional bytes of each sampled value of the feature whose bins are computed, without and with weights (measured).
_SORTED_BYTES, _WEIGHED_BYTES = 8, 40
# Bytes of a batch. Each reading thread has a batch, and two more are read ahead.
_BATCH_BYTES = 2**26
_MOST_READERS = 8  # maximum number of reading threads


@dataclass(frozen=True)
class FitSize:
    """The sizes that the memory of a fit depends on."""

    n_rows: int
    n_features: int
    n_classes: int
    n_trees: int
    n_codes: int  # maximum number of codes of a feature
    tree_rows: int  # approximate maximum number of distinct rows in the sample of a tree
    leaf_rows: int  # approximate minimum number of distinct rows of a leaf
    most_leaves: int  # maximum number of leaves of a tree
    max_features: int  # number of features that are searched at a node
    weight_bytes: int  # bytes of a thread for the weight of a row; 0 without weights
    sample_bytes: int = 0  # bytes of the stored block sizes of all trees, see `BootstrapSampler`
    evidence_bytes: int = 0  # bytes of out-of-bag results, see `FitSpec`
    n_stored: int | None = None  # number of stored values of a sparse matrix, or None if all values have codes
    n_rated: int = 0  # number of columns that have target rates
    n_digits: int = 0  # number of digits of the categories of these columns, see `Digits`
    n_categories: int = 0  # maximum number of categories of these columns
    n_cells: int = 0  # approximate maximum number of cells of all tables of target rates

    @classmethod
    def of(
        cls, spec: FitSpec, target: Target, n_features: int, n_codes: int | None = None, coding: Coding | None = None
    ) -> "FitSize":
        """Return the size of a fit. If n_codes is None, an upper bound is used.

        Without a coding, no column has target rates. With a coding, n_cells is an upper bound, because interactions are
        chosen later.
        """
        params, sampler = spec.params, spec.sampler
        n_rows, n_classes = len(target.kept_labels), len(target.classes)
        if n_codes is None:
            n_codes = MAX_BINS + 1 if spec.max_bins is not None else n_rows + 1
        size = cls(
            n_rows=n_rows,
            n_features=n_features,
            n_classes=n_classes,
            n_trees=len(spec.numbers),
            n_codes=n_codes,
            tree_rows=n_rows if sampler is None else sampler.n_distinct,
            # For two classes, leaves are assumed to have two rows on average.
            leaf_rows=max(params.min_samples_leaf, 2 if n_classes == 2 else 1),
            most_leaves=min(2 ** min(params.max_depth, 40), params.max_leaf_nodes or 2**40),
            max_features=params.max_features,
            weight_bytes=_BALANCED_BYTES if spec.balanced_subsample else 0 if spec.weights is None else _WEIGHT_BYTES,
            sample_bytes=0 if sampler is None else sampler.tree_bytes * spec.numbers.stop,
            evidence_bytes=spec.evidence_bytes,
        )
        if coding is None or not coding.rated:
            return size
        by_column = list(coding.digits.n_categories.values())
        n_rated, n_categories = len(by_column), max(by_column)
        n_parts = max(*PARTS, *coding.values.n_bins[list(coding.categories)].tolist())
        n_cells = sum(by_column) + min(MOST_CELLS, MOST_INTERACTIONS * n_categories * n_parts)
        n_digits = coding.digits.n_digits
        return replace(size, n_rated=n_rated, n_digits=n_digits, n_categories=n_categories, n_cells=n_cells)

    @property
    def code_bytes(self) -> int:
        """Bytes of a code."""
        return np.dtype(code_dtype(self.n_codes - 1)).itemsize

    @property
    def matrix_bytes(self) -> int:
        """Bytes of the codes of all rows."""
        if self.n_stored is not None:
            n_bounds = min(self.n_stored + self.n_features, self.n_codes * self.n_features)
            stored_bytes = self.n_stored * (_STORED_BYTES + 2 * self.code_bytes) + n_bounds * _BOUND_BYTES
            return stored_bytes + 8 * (self.n_rows + self.n_features)
        return self.n_rows * self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of the codes of a row."""
        return (self.n_features + self.n_digits) * self.code_bytes

    @property
    def feature_bytes(self) -> int:
        """Bytes of the features besides the codes of the rows."""
        return _FEATURE_BYTES * self.n_features

    @property
    def copied_row_bytes(self) -> int:
        """Bytes of a row that is copied for a tree."""
        return self.row_bytes + _COPIED_BYTES + min(self.weight_bytes, _WEIGHT_BYTES)

    @property
    def copy_bytes(self) -> int:
        """Bytes of a copy of the rows of a tree."""
        return self.tree_rows * self.copied_row_bytes

    @property
    def rate_total_bytes(self) -> int:
        """Bytes of the class totals of the cells of target rates."""
        return 8 * self.n_classes * self.n_cells

    def _thread_rate_bytes(self, n_rows: int) -> int:
        """Return the bytes of a thread for target rates and their codes, for all trees that one call grows.

        The rows in the sample of a tree are copied, unless the sample has all n_rows rows.
        """
        if self.n_rated == 0:
            return 0
        n_classes = count_rated_classes(self.n_classes)
        n_rates = n_classes * (self.n_rated + INTERACTIONS_OF_TREE)
        row_bytes = (self.n_features + n_rates) * self.code_bytes + 8 * n_classes + _RATED_BYTES  # 8 for each prior
        if n_rows > self.tree_rows:
            row_bytes += self.copied_row_bytes
        most_rows = rows_per_call(self.n_classes, self.n_features + self.n_digits)
        n_call_rows = max(self.tree_rows, min(self.n_trees * self.tree_rows, most_rows))
        return n_call_rows * row_bytes + _CATEGORY_BYTES * max(self.n_categories, most_rows)

    def thread_bytes(self, n_rows: int) -> int:
        """Return the bytes of a thread that grows trees from n_rows rows, without the codes of these rows."""
        last_rows = branch_rows(self.n_features, self.max_features) if self.n_stored is None else 0
        n_copied = sum(level_rows(n_rows, self.tree_rows, last_rows)[1:])
        # The small trees of a call have at most most_rows rows together.
        most_rows, n_leaves = rows_per_call(self.n_classes), min(self.tree_rows // self.leaf_rows, self.most_leaves)
        # A tree has less than twice as many nodes as leaves.
        n_nodes = max(2 * n_leaves, min(2 * self.n_trees * n_leaves, 2 * most_rows))
        node_bytes = int(_NODE_BYTES + _CLASS_BYTES * self._classes_of_node(n_leaves))
        matrix_bytes = max(n_rows, min(self.n_trees * n_rows, most_rows)) * (COUNT_BYTES + self.weight_bytes)
        if self.n_stored is not None:
            n_listed = most_listed(self.n_stored, self.n_features, self.max_features)
            matrix_bytes += _LOOKED_UP_BYTES * n_rows + _LISTED_BYTES * n_listed + 8 * self.n_features
        n_cells = self.n_codes << (self.n_classes - 1).bit_length()  # classes are rounded up to a power of two
        histograms = _CODE_BYTES * self.n_codes + _CELL_BYTES * n_cells
        sample_bytes = _SAMPLE_BYTES * self.tree_rows + n_copied * self.n_features * self.code_bytes
        sample_bytes += self._thread_rate_bytes(n_rows)
        return matrix_bytes + sample_bytes + n_nodes * node_bytes + histograms

    def _classes_of_node(self, n_leaves: int) -> float:
        """Return the approximate mean number of classes that are present in a node, for splits that halve the nodes.

        In each of the last n_levels levels, nodes have fewer rows than there are classes, so the sum of their numbers
        of classes is at most tree_rows. In the levels above, nodes have all classes. Each level has half as many nodes
        as the level below, so the sum over all these levels is at most 2 * tree_rows.
        """
        leaf_rows = max(self.tree_rows / max(n_leaves, 1), 1.0)
        n_levels = log2(max(self.n_classes / leaf_rows, 1.0))
        return min(self.n_classes, leaf_rows) * (1.0 + 0.5 * n_levels)

    def out_of_core_bytes(self, n_threads: int, copies_rows: bool, sum_bytes: int) -> int:
        """Return the bytes of a fit out of core: the maximum over growing trees and computing out-of-bag sums."""
        n_threads = min(n_threads, self.n_trees)
        if not copies_rows:
            return self.matrix_bytes + max(n_threads * self.thread_bytes(self.n_rows), sum_bytes)
        tree_bytes = self.n_rows * COUNT_BYTES + self.copy_bytes + self.thread_bytes(self.tree_rows) + MAPPED_BYTES
        return max(n_threads * tree_bytes, sum_bytes)

    def out_of_bag_bytes(self, n_rows: int) -> int:
        """Return the bytes of out-of-bag sums of class frequencies, and of the number of trees of each row."""
        return 8 * (self.n_classes + 1) * n_rows

    def max_tree_rows(self, n_bytes: int, bytes_of: Callable[["FitSize"], int]) -> int:
        """Return the maximum tree_rows for which bytes_of(size) is at most n_bytes, or 0 if one row is too much."""
        numbers = range(min(self.tree_rows, MOST_ROWS) + 1)
        n_fitting = bisect_right(numbers, n_bytes, key=lambda n_rows: bytes_of(replace(self, tree_rows=n_rows)))
        return max(n_fitting - 1, 0)


def bytes_in_memory(size: FitSize, n_threads: int, n_sums: int = 0) -> int:
    """Return the approximate bytes of a fit, without the table and without the trees, whose sizes are not known yet."""
    sums = n_sums * size.out_of_bag_bytes(size.n_rows) + size.evidence_bytes
    fixed = size.matrix_bytes + size.feature_bytes + size.sample_bytes + size.rate_total_bytes
    return fixed + min(n_threads, size.n_trees) * size.thread_bytes(size.n_rows) + sums


def check_fit(size: FitSize, n_bytes: int) -> None:
    """Raise ValueError if a fit needs too much memory, and warn if y is probably a regression target."""
    what = (
        f"growing {size.n_trees} trees on {size.n_rows:,} samples, {size.n_features:,} features and"
        f" {size.n_classes:,} classes"
    )
    advice = "set max_depth, max_leaf_nodes, max_samples or a larger min_samples_leaf, or a smaller n_jobs"
    if size.matrix_bytes + size.feature_bytes > n_bytes / 2:
        advice = "select fewer features, or pass fewer samples"
    elif size.n_classes > size.n_rows // _LEAST_OF_CLASS:
        advice = _REGRESSION_ADVICE
    check_memory(n_bytes, what, advice)
    if size.n_classes > max(_MANY_CLASSES, size.n_rows // _LEAST_OF_CLASS):
        warn(
            f"y has {size.n_classes:,} classes of {size.n_rows / size.n_classes:.1f} samples on average, and the fit"
            f" takes about {format_bytes(n_bytes)} besides the trees; {_REGRESSION_ADVICE}",
        )


def check_trees(n_bytes: int, n_grown: int, n_nodes: int, n_trees: int) -> None:
    """Raise ValueError if n_trees trees would take too much memory. The first n_grown have n_bytes and n_nodes."""
    check_memory(
        n_trees * n_bytes / n_grown,
        f"{n_trees} trees of the size of the first {n_grown}, which have {n_nodes:,} nodes,",
        "set max_depth, max_leaf_nodes, max_samples or a larger min_samples_leaf, or fewer n_estimators",
    )


@dataclass(frozen=True)
class DiskPlan:
    """The plan of a fit out of core."""

    n_threads: int  # threads that grow trees
    n_readers: int  # threads that read and encode batches
    copies_rows: bool  # whether each tree grows from a copy of its rows; if not, all grow from the mapped codes
    n_bytes: int  # estimated bytes, without the trees


def plan_on_disk(
    spec: FitSpec, target: Target, n_features: int, limit: int, coding: Coding | None = None, *, used: int = 0
) -> DiskPlan:
    """Choose the plan of a fit out of core, which may use `limit` bytes besides the trees; `used` of them are in use.

    Trees grow from the mapped codes if these fit into the limit with at least one thread. Otherwise each tree grows
    from a copy of its rows, and each thread has `MAPPED_BYTES` of mapped codes in memory. Raises ValueError if both
    ways need more memory, or if a tree has too many rows.
    """
    n_threads = effective_n_jobs(spec.n_jobs)
    size = FitSize.of(spec, target, n_features, coding=coding)
    fixed = used + _bytes_of_target(spec, target) + size.sample_bytes + size.feature_bytes + size.rate_total_bytes
    fixed += _bytes_of_rate_weights(size, target)
    sums = size.out_of_bag_bytes(len(target.labels)) * spec.n_sums + size.evidence_bytes
    readers = range(min(n_threads, _MOST_READERS), 1, -1)
    n_readers = next((n for n in readers if fixed + _bytes_of_reading(spec, size, n) <= limit), 1)
    reading = _bytes_of_reading(spec, size, n_readers)

    def bytes_of(size: FitSize, n: int, copies_rows: bool) -> int:
        return fixed + max(reading, size.out_of_core_bytes(n, copies_rows, sums))

    rows_of_tree = {False: size.n_rows, True: size.tree_rows}  # the rows that a tree grows from, by `copies_rows`
    choices = [copies_rows for copies_rows, n_rows in rows_of_tree.items() if n_rows <= MOST_ROWS]
    for copies_rows in choices:
        for n in range(n_threads, 0, -1):
            if (n_bytes := bytes_of(size, n, copies_rows)) <= limit:
                return DiskPlan(n, n_readers, copies_rows, n_bytes)
    n_fitting = size.max_tree_rows(limit, lambda smaller: bytes_of(smaller, 1, True))
    if isinstance(spec.sampler, GroupSampler):  # max_samples is a number of groups
        n_fitting //= spec.sampler.max_group_rows
    if not choices:
        raise ValueError(
            f"the sample of a tree has {size.tree_rows:,} rows, more than the {MOST_ROWS:,} that a tree can grow from:"
            f" set max_samples{f'={n_fitting}' if n_fitting > 0 else ''}"
        )
    least = min(bytes_of(size, 1, copies_rows) for copies_rows in choices)
    in_use = f", of which {used:,} are in use" if used else ""
    raise ValueError(
        f"memory_limit={limit:,} bytes is too small for {size.n_rows:,} rows of {size.n_features} features: in addition"
        f" to the trees {least:,} bytes are needed{in_use}{f', or max_samples={n_fitting}' if n_fitting > 0 else ''}"
    )


def _bytes_of_reading(spec: FitSpec, size: FitSize, n_readers: int) -> int:
    """Return the bytes of batches that are read, and of the values from which bins are computed."""
    n_sampled = size.n_rows if spec.max_bins is None else min(size.n_rows, SAMPLE_ROWS)
    sorting = n_readers * n_sampled * (_WEIGHED_BYTES if size.weight_bytes else _SORTED_BYTES)
    return _SAMPLED_BYTES * n_sampled * size.n_features + (n_readers + 2) * _BATCH_BYTES + sorting


def _bytes_of_rate_weights(size: FitSize, target: Target) -> int:
    """Return the bytes of weights in target rates, as integers and floats, and of the totals of groups in cells."""
    if size.n_rated == 0:
        return 0
    row_bytes = 0 if target.sample_weight is None else 16
    if target.groups is not None:
        # For each table, rows are sorted by cell and group. Each pair of cell and group is stored with its totals.
        n_tables = size.n_rated + INTERACTIONS_OF_TREE
        row_bytes += _SORTED_GROUP_BYTES + n_tables * 8 * (1 + size.n_classes)
    return row_bytes * size.n_rows


def _bytes_of_target(spec: FitSpec, target: Target) -> int:
    """Return the bytes of labels, weights, strata and groups of all rows."""
    n_bytes, n_kept = target.nbytes, len(target.kept_labels)
    if spec.weights is not None or spec.balanced_subsample:
        n_bytes += 8 * n_kept
    if target.kept is not None:
        n_bytes += (8 + 8 + 2) * n_kept  # the indices, weights and labels of kept rows
    if target.groups is not None:
        n_bytes += 4 * len(target.labels)  # groups as given, for all rows
    return n_bytes + (0 if spec.sampler is None else spec.sampler.members.nbytes)
