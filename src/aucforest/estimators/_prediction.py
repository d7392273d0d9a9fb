"""A mixin for prediction by trees: their layout for traversal, blocks of rows in threads, and the mean over trees."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest.columns.sparse import SparseRows
from aucforest.estimators._calibration import Calibration
from aucforest.estimators._validation import FeatureModel
from aucforest.fitting.growing import thread_map
from aucforest.tree.binning import ParallelMap
from aucforest.tree.prediction import ALL_ROWS, PackedTrees, WalkBuffers, add_probabilities, add_row
from aucforest.tree.sparse_prediction import SparseWalk, add_sparse
from aucforest.tree.tree import Tree

# Minimum and maximum number of rows of a prediction task, and the bytes of its rows between these limits. A task reads
# its rows once for each tree, so they should fit into the CPU caches. It also reads all trees, so it needs many rows.
_LEAST_ROWS, _MOST_ROWS, _TASK_BYTES = 2**13, 2**15, 9 * 2**18
# Up to _FEW_ROWS rows are predicted one by one. Each tree gets a copy of the row, and all copies are traversed
# together. The copies may have at most _MOST_CELLS values (512 KiB), and node indices must fit into 32 bits.
_FEW_ROWS, _MOST_CELLS, _MOST_NODES = 4, 2**16, 2**32
# Maximum number of class frequencies of leaves that are cached for the next prediction (1 GiB). If there are more,
# groups of trees with about _PREDICTED_AT_ONCE frequencies are used one after another.
_MOST_PREDICTED, _PREDICTED_AT_ONCE = 2**27, 2**24


class TreePrediction(FeatureModel):
    """Base of the models that predict by the trees in `trees_`."""

    trees_: list[Tree]

    @property
    def _n_jobs(self) -> int | None:
        """The parameter `n_jobs`; 1 for a single tree, which does not have this parameter."""
        return getattr(self, "n_jobs", 1)

    def _pack_nodes(self) -> PackedTrees:
        """Return the trees in the layout for traversal, which is computed at the first call and cached."""
        if "packed" not in self._cache:
            self._cache["packed"] = PackedTrees(self.trees_, self._run_over_trees())
        return self._cache["packed"]

    def _pack(self) -> PackedTrees:
        """Return the cached layout for traversal, with the predictions of leaves."""
        packed = self._pack_nodes()
        return packed if hasattr(packed, "values") else packed.take_predictions(self.trees_, self._run_over_trees())

    def _in_groups(self) -> Iterator[tuple[range, PackedTrees]]:
        """Yield the trees with the predictions of their leaves, in groups if they all would take too much memory.

        If there are several groups, nothing is cached.
        """
        packed, n_trees = self._pack_nodes(), len(self.trees_)
        if hasattr(packed, "values") or self._n_predicted() <= _MOST_PREDICTED:
            yield range(n_trees), self._pack()
            return
        step = max(1, n_trees * _PREDICTED_AT_ONCE // self._n_predicted())
        for first in range(0, n_trees, step):
            group = range(first, min(first + step, n_trees))
            trees = self.trees_[group.start : group.stop]
            yield group, packed.part(group).take_predictions(trees, self._run_over_trees())

    def _n_predicted(self) -> int:
        """Return the number of predicted class frequencies of the leaves of all trees."""
        return int(self._pack_nodes().first_leaf[-1]) * len(self.classes_)

    def _run_over_trees(self) -> ParallelMap:
        """Return a `map` over trees for functions whose time is proportional to the number of nodes."""
        n_nodes = float(np.mean([tree.n_nodes for tree in self.trees_]))
        return thread_map(self._n_jobs, 3e-8 * n_nodes)  # the approximate seconds for packing a node

    def _map_rows(self, n_rows: int, row_bytes: int, function: Callable[[slice], object]) -> None:
        """Call a function for slices of rows in threads. Trees are not divided, so sums do not depend on n_jobs."""
        max_rows = min(max(_LEAST_ROWS, _TASK_BYTES // max(row_bytes, 1)), _MOST_ROWS)
        n_threads = effective_n_jobs(self._n_jobs)
        # All tasks have about the same number of rows.
        step = -(-n_rows // (n_threads * -(-n_rows // (n_threads * max_rows))))
        list(thread_map(self._n_jobs)(function, [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]))

    def _map_blocks(self, packed: PackedTrees, X: Any, function: Callable[[slice, NDArray[Any]], object]) -> None:
        """Call ``function(rows, block)`` for dense blocks of rows in the format of the traversal kernels."""
        if isinstance(X, SparseRows):
            self._map_rows(len(X), 0, lambda rows: [function(*block) for block in X.blocks(rows)])
        else:
            row_bytes = packed.as_read(X[:1]).nbytes
            self._map_rows(len(X), row_bytes, lambda rows: function(rows, packed.as_read(X[rows])))

    def _add_trees(self, packed: PackedTrees, X: Any, total: NDArray[np.float64]) -> None:
        """Add the predictions of trees to `total`, (n_samples, n_classes)."""
        n_trees = len(packed.first) - 1
        if isinstance(X, SparseRows):
            arrays = packed.arrays_for(X.stored.values)

            def add_stored(rows: slice) -> None:
                add_sparse(arrays, X.stored, rows.start, SparseWalk.of(X.shape[1], X.dtype), total[rows])

            self._map_rows(len(X), 0, add_stored)
            return
        if len(X) > _FEW_ROWS or packed.first[-1] >= _MOST_NODES or X.shape[1] * (n_trees + 1) >= _MOST_CELLS:

            def add(rows: slice, block: NDArray[Any]) -> None:
                add_probabilities(packed.arrays_for(block), block, WalkBuffers.of(len(block)), total[rows], ALL_ROWS)

            self._map_blocks(packed, X, add)
            return
        starts = packed.first, packed.first_leaf
        buffers = np.empty(n_trees, dtype=np.uint64), np.empty(n_trees, dtype=np.uint32)
        for i in range(len(X)):
            copies = np.repeat(np.asarray(X[i : i + 1], dtype=np.float64), n_trees, axis=0)
            add_row(packed.nodes, packed.values, starts, copies, buffers, total[i : i + 1])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities: the mean class frequencies of the leaves over trees, calibrated in a forest.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The input samples. NaN and masked values of a masked array are missing values. As in scikit-learn, a pandas,
            polars or pyarrow table must have exactly the columns of the table in `fit`, with the same names in the same
            order. `predict_out_of_core` and the command line match columns by name.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            The columns are in the order of ``classes_``.

        Raises
        ------
        ValueError
            If the number, the names or the order of the columns differ from `fit`, or if a column that was numeric in
            `fit` is not numeric.
        TypeError
            If X is a polars LazyFrame or a pyarrow RecordBatch.
        """
        check_is_fitted(self, "trees_")
        return self._predict_valid(self._features_of(X))

    def _as_read(self, X: Any) -> NDArray[Any]:
        """Return the features of dense X as a new matrix, in the format of the traversal kernels."""
        return np.array(self._pack_nodes().as_read(self._features_of(X)))

    def _predict_valid(self, valid: Any, X: Any = None) -> NDArray[np.float64]:
        """Return class probabilities, given the result of `_features_of`. Only the method of stacks uses X."""
        return self._mean_of_trees(self._sum_of_trees(valid), len(self.trees_), self._n_jobs)

    def _sum_of_trees(self, X: Any) -> NDArray[np.float64]:
        """Return the sums of the predictions of trees, given the result of `_features_of`."""
        total = np.zeros((len(X), len(self.classes_)))
        for _, packed in self._in_groups():
            self._add_trees(packed, X, total)
        return total

    def _mean_of_trees(self, total: NDArray[np.float64], n_trees: Any, n_jobs: int | None = 1) -> NDArray[np.float64]:
        """Return class probabilities from sums over trees. `n_trees` is a number or an array of shape (n_rows, 1).

        By default only one thread is used, because some callers already run in threads.
        """
        proba = total / n_trees
        return proba if self._calibration is None else self._calibration.apply(proba, n_jobs)

    @property
    def _calibration(self) -> Calibration | None:
        """The calibration of the mean over trees; None for a single tree."""
        return getattr(self, "calibration_", None)

    def _find_leaves(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of each sample in each tree, (n_samples, n_trees)."""
        check_is_fitted(self, "trees_")
        X = self._features_of(X)
        packed, leaves = self._pack_nodes(), np.empty((len(X), len(self.trees_)), dtype=np.int64)

        def find(rows: slice, block: NDArray[Any]) -> None:
            # The kernel would be compiled again for float32.
            leaves[rows] = packed.find_leaves(block.astype(np.float64, copy=False)).T

        self._map_blocks(packed, X, find)
        return leaves
