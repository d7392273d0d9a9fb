"""Prediction by trees: their layout for traversal, blocks of rows in threads, and the mean over trees."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._calibration import Calibration
from aucforest.estimators._validation import FeatureModel
from aucforest.fitting.growing import thread_map
from aucforest.tables.sparse import SparseRows
from aucforest.tree.binning import ParallelMap
from aucforest.tree.prediction import ALL_ROWS, PackedTrees, WalkNodes, add_probabilities, add_row, find_leaves
from aucforest.tree.sparse_prediction import SparseWalk, add_sparse
from aucforest.tree.tree import Tree

# Maximum number of rows in a task of prediction: as many as have _TASK_BYTES, which stay in the caches, but within two
# limits. Each task reads all trees from memory once, and its rows once for each tree.
_LEAST_ROWS, _MOST_ROWS, _TASK_BYTES = 2**13, 2**15, 9 * 2**18
# Up to _FEW_ROWS rows descend all trees together, row by row. A row is copied for each tree, in at most 512 KiB, and
# the numbers of all nodes must fit into 32 bits.
_FEW_ROWS, _MOST_CELLS, _MOST_NODES = 4, 2**16, 2**32
# Maximum number of class frequencies of leaves that are kept for the next prediction, 1 GiB. If there are more, groups
# of trees with up to _PREDICTED_AT_ONCE of them are used one after another.
_MOST_PREDICTED, _PREDICTED_AT_ONCE = 2**27, 2**24
# Approximate seconds for packing a node.
_NODE_TIME = 3e-8


class TreePrediction(FeatureModel):
    """Base of the models that predict by the trees in `trees_`."""

    trees_: list[Tree]

    @property
    def _n_jobs(self) -> int | None:
        """The number of threads; a tree uses one."""
        return getattr(self, "n_jobs", 1)

    def _pack_nodes(self) -> PackedTrees:
        """Return the trees in the layout for traversal, which is made at the first call."""
        if "packed" not in self._cache:
            self._cache["packed"] = PackedTrees(self.trees_, self._run_over_trees())
        return self._cache["packed"]

    def _pack(self) -> PackedTrees:
        """Return the trees in the layout for traversal with the predictions of the leaves, made at the first call."""
        packed = self._pack_nodes()
        return packed if hasattr(packed, "values") else packed.take_predictions(self.trees_, self._run_over_trees())

    def _in_groups(self) -> Iterator[tuple[range, PackedTrees]]:
        """Yield groups of trees with the predictions of their leaves.

        There is one group unless these would take too much memory; then they are computed again at each call.
        """
        packed, n_trees = self._pack_nodes(), len(self.trees_)
        if hasattr(packed, "values") or self._n_predicted() <= _MOST_PREDICTED:
            yield range(n_trees), self._pack()
            return
        step = max(1, n_trees * _PREDICTED_AT_ONCE // self._n_predicted())
        for first in range(0, n_trees, step):
            group = range(first, min(first + step, n_trees))
            trees = self.trees_[group.start : group.stop]
            yield group, packed.some(group).take_predictions(trees, self._run_over_trees())

    def _n_predicted(self) -> int:
        """Return the number of class frequencies that are stored for the leaves of all trees."""
        return int(self._pack_nodes().first_leaf[-1]) * len(self.classes_)

    def _run_over_trees(self) -> ParallelMap:
        """Return a `map` over trees for functions whose time is proportional to the number of nodes."""
        n_nodes = np.mean([tree.n_nodes for tree in self.trees_])
        return thread_map(self._n_jobs, _NODE_TIME * float(n_nodes))

    def _task_rows(self, n_rows: int, row_bytes: int) -> int:
        """Return the number of rows of a task, which is about equal for all tasks."""
        most = min(max(_LEAST_ROWS, _TASK_BYTES // max(row_bytes, 1)), _MOST_ROWS)
        # Threads get equal numbers of rows.
        n_threads = effective_n_jobs(self._n_jobs)
        return -(-n_rows // (n_threads * -(-n_rows // (n_threads * most))))

    def _walk_blocks(self, packed: PackedTrees, X: NDArray[Any], walk: Callable[..., None]) -> None:
        """Call ``walk(rows, nodes, block, active, found)`` for blocks of rows, as the kernels of traversal take them.

        A block passes all trees in order, so n_jobs changes no sums.
        """
        n_rows = self._task_rows(len(X), 0 if isinstance(X, SparseRows) else packed.as_read(X[:1]).nbytes)

        def walk_block(start: int) -> None:
            rows = slice(start, min(start + n_rows, len(X)))
            blocks = X.blocks(rows) if isinstance(X, SparseRows) else [(rows, packed.as_read(X[rows]))]
            for some, block in blocks:
                active, found = np.empty(len(block), dtype=np.uint64), np.empty(len(block), dtype=np.uint32)
                walk(some, packed.nodes_for(block), block, active, found)

        for _ in thread_map(self._n_jobs)(walk_block, range(0, len(X), n_rows)):
            pass

    def _add_trees(self, packed: PackedTrees, X: NDArray[Any], total: NDArray[np.float64]) -> None:
        """Add the predictions of trees to the totals of rows."""
        n_trees = len(packed.first) - 1
        if isinstance(X, SparseRows):
            self._add_sparse(packed, X, total)
            return
        if len(X) > _FEW_ROWS or packed.first[-1] >= _MOST_NODES or X.shape[1] * (n_trees + 1) >= _MOST_CELLS:

            def add(rows: slice, nodes: WalkNodes, block: NDArray[Any], active: Any, found: Any) -> None:
                add_probabilities(
                    nodes, packed.first, packed.values, packed.first_leaf, block, active, found, total[rows], *ALL_ROWS
                )

            self._walk_blocks(packed, X, add)
            return
        active, found = np.empty(n_trees, dtype=np.uint64), np.empty(n_trees, dtype=np.uint32)
        for i in range(len(X)):
            copies = np.repeat(np.asarray(X[i : i + 1], dtype=np.float64), n_trees, axis=0)
            add_row(
                packed.nodes, packed.first, packed.values, packed.first_leaf, copies, active, found, total[i : i + 1]
            )

    def _add_sparse(self, packed: PackedTrees, X: SparseRows, total: NDArray[np.float64]) -> None:
        """Do what `_add_trees` does for sparse rows, which have no categories."""
        n_rows, nodes = self._task_rows(len(X), 0), packed.nodes_for(X.stored.values)

        def add(start: int) -> None:
            work, sums = SparseWalk.of(X.shape[1], X.dtype), total[start : start + n_rows]
            add_sparse(nodes, packed.first, packed.values, packed.first_leaf, X.stored, start, work, sums)

        for _ in thread_map(self._n_jobs)(add, range(0, len(X), n_rows)):
            pass

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities: the mean over trees of the class frequencies of the leaf.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The input samples. NaN is a missing value, and so is what a masked array masks. A pandas, polars or pyarrow
            table must have the columns of the table in `fit`, with the same names in the same order and no others, as
            scikit-learn requires it; `predict_out_of_core` and the command line find columns by name.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            The classes are in the order of ``classes_``.

        Raises
        ------
        ValueError
            If the number, the names or the order of the columns differ from those in `fit`, or a column that was
            numeric is not.
        TypeError
            If X is a polars LazyFrame or a pyarrow RecordBatch.
        """
        check_is_fitted(self, "trees_")
        return self._predict_valid(self._features_of(X))

    def _as_read(self, X: Any) -> NDArray[Any]:
        """Return dense X as a new matrix of features, as the trees read it."""
        return np.array(self._pack_nodes().as_read(self._features_of(X)))

    def _predict_valid(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities for the result of `_features_of`."""
        return self._mean_of_trees(self._sum_of_trees(X), len(self.trees_), self._n_jobs)

    def _sum_of_trees(self, X: Any) -> NDArray[np.float64]:
        """Return the sums of the predictions of trees for the result of `_features_of`."""
        total = np.zeros((len(X), len(self.classes_)))
        for _, packed in self._in_groups():
            self._add_trees(packed, X, total)
        return total

    def _mean_of_trees(self, total: NDArray[np.float64], n_trees: Any, n_jobs: int | None = 1) -> NDArray[np.float64]:
        """Return class probabilities from sums over trees; `n_trees` is a number, or an array with one for each row.

        One thread computes them unless n_jobs is given, since some callers are tasks of threads themselves.
        """
        proba = total / n_trees
        return proba if self._calibration is None else self._calibration.apply(proba, n_jobs)

    @property
    def _calibration(self) -> Calibration | None:
        """The calibration of the mean of the trees; None for a single tree."""
        return getattr(self, "calibration_", None)

    def _find_leaves(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of each sample in each tree, (n_samples, n_trees)."""
        check_is_fitted(self, "trees_")
        X = self._features_of(X)
        packed, leaves = self._pack_nodes(), np.empty((len(X), len(self.trees_)), dtype=np.int64)

        def find(rows: slice, nodes: WalkNodes, block: NDArray[Any], active: Any, found: Any) -> None:
            by_tree = np.empty((len(self.trees_), len(block)), dtype=np.int64)
            walks_all = np.zeros(by_tree.shape, dtype=np.uint16)
            # As float64 in any case, or the kernel would be compiled for both types.
            block = block.astype(np.float64, copy=False)
            find_leaves(packed.nodes, packed.first, block, walks_all, active, found, by_tree)
            leaves[rows] = by_tree.T

        self._walk_blocks(packed, X, find)
        return leaves
