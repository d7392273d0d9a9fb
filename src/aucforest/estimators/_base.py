"""Common base of the tree and the forest: parameters, validation of data, prediction, exports."""

import os
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, check_X_y, validate_data

from aucforest.estimators._calibration import LEAST, Calibration
from aucforest.estimators._foreign_names import describe_foreign
from aucforest.estimators._model_files import Model
from aucforest.exports.onnx import Ensemble, write_onnx
from aucforest.exports.sklearn import CalibratedForestClassifier, as_random_forest
from aucforest.fitting.coding import Coding
from aucforest.fitting.growing import run_in_threads
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.spec import FitSpec, check_signs
from aucforest.fitting.table import TrainingTable
from aucforest.fitting.target import Target, check_groups, code_classes, kept_rows
from aucforest.metrics.validation import unmask
from aucforest.tables.columns import (
    Categories,
    as_table,
    check_numeric,
    check_table,
    decode_labels,
    encode,
    find_categorical,
    has_codes,
    learn,
    like,
)
from aucforest.tables.dates import (
    PARTS,
    Dates,
    check_same_kind,
    expand,
    find_dates,
    has_dates,
    n_added,
    split_names,
    table_of,
)
from aucforest.tables.sparse import SparseRows, as_csr
from aucforest.tree.binning import MAX_BINS, ParallelMap
from aucforest.tree.criteria import CRITERIA
from aucforest.tree.prediction import PackedTrees, WalkNodes, add_probabilities, add_row, find_leaves
from aucforest.tree.tree import MISSING_CODE, Tree

# Maximum number of rows in a task of prediction. Each task reads all trees from memory once.
_TASK_ROWS = 8192
# Up to _FEW_ROWS rows descend all trees together, row by row. A row is copied for each tree, in at most 512 KiB, and
# the numbers of all nodes must fit into 32 bits.
_FEW_ROWS, _MOST_CELLS, _MOST_NODES = 4, 2**16, 2**32
# Maximum number of class frequencies of leaves that are kept for the next prediction, 1 GiB. If there are more, groups
# of trees with up to _PREDICTED_AT_ONCE of them are used one after another.
_MOST_PREDICTED, _PREDICTED_AT_ONCE = 2**27, 2**24
# Approximate seconds for packing a node.
_NODE_TIME = 3e-8


class _DateParts(StrOptions):
    """Constraint for "auto" or a list of the parts of dates."""

    def is_satisfied_by(self, value: Any) -> bool:
        is_list = isinstance(value, list | tuple) and len(value) > 0 and all(part in PARTS for part in value)
        return is_list or super().is_satisfied_by(value)

    def __str__(self) -> str:
        return f"'auto', a list of {', '.join(map(repr, PARTS))}"


TREE_CONSTRAINTS: dict[str, list[Any]] = {
    "criterion": [StrOptions(set(CRITERIA)), callable],
    "splitter": [StrOptions({"best", "random"})],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "min_gain": [Interval(Real, 0.0, None, closed="left")],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "monotonic_cst": ["array-like", dict, None],
    "max_bins": [Interval(Integral, 2, MAX_BINS, closed="both"), None],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "date_parts": [_DateParts({"auto"}), None],
    "random_state": ["random_state"],
}


class TreeBasedClassifier(Model):
    """Base of the classifiers whose fitted state is a list of trees, `trees_`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = TREE_CONSTRAINTS
    _as_sklearn: ClassVar[Any] = staticmethod(as_random_forest)

    trees_: list[Tree]
    classes_: NDArray[Any]
    n_features_in_: int
    categories_: Categories
    dates_: Dates
    categorical_features: Any
    date_parts: Any
    class_weight: Any
    max_bins: int | None

    def __new__(cls, *_: Any, **params: Any) -> Self:
        """Raise TypeError for a parameter of another library, which has another name here or no counterpart."""
        if sentence := describe_foreign(cls, params):
            raise TypeError(sentence)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        if sentence := describe_foreign(type(self), params):
            raise ValueError(sentence)
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def _validate_X(
        self, X: Any, *, reset: bool, y: Any = "no_validation", kept: NDArray[np.int64] | None = None
    ) -> Any:
        """Validate X, and y if it is given, and encode categories and dates; errors name the column.

        With reset=True, the categories are learned from the rows in `kept`, or from all rows if it is None.
        """
        if not reset and self._is_plain(X):
            return X
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
        X = unmask(X)
        check_table(X)
        if issparse(X):
            return self._validate_sparse(X, reset=reset, y=y)
        matrix = None
        if reset:
            matrix = self._learn(X, kept)
        else:
            is_coded = bool(self.categories_ or self.dates_ or has_codes(X))
            table = as_table(X) if is_coded else table_of(X)
            if table is not None and (is_coded or has_dates(table)):
                validate_data(self, X, skip_check_array=True, reset=False)  # the columns, before they are used
                check_same_kind(table, self.dates_, self.categories_)
                matrix = encode(expand(table, self.dates_), self.categories_)
        try:
            if matrix is None:
                return validate_data(self, X, y, reset=reset, **options)
            if not reset:
                return check_array(matrix, estimator=self, **options)
            validate_data(self, X, skip_check_array=True)
            return check_X_y(matrix, y, estimator=self, **options)
        except (TypeError, ValueError) as error:
            if "Complex data" in str(error):
                raise ValueError("Complex data not supported: X and y must be real") from None
            # These are messages of float() for strings and for other objects.
            if "could not convert" in str(error) or "float() argument" in str(error):
                check_numeric(X)
            raise

    def _learn(self, X: Any, kept: NDArray[np.int64] | None) -> NDArray[Any] | None:
        """Find categorical columns and dates, and return X as a matrix of features.

        The matrix is None if X has neither of them and no Arrow dictionary, because scikit-learn can convert X.
        """
        given = self.categorical_features
        table = table_of(X) if given is None or isinstance(given, str) else as_table(X)
        categorical = find_categorical(table, given)
        self.categories_, self.dates_ = {}, find_dates(table, self.date_parts, categorical)
        if table is None or not (categorical or self.dates_ or has_codes(X)):
            return None
        expanded, warns = expand(table, self.dates_), isinstance(given, str)
        matrix, self.categories_ = learn(expanded, categorical, kept, warns=warns)
        return matrix

    def _validate_sparse(self, X: Any, *, reset: bool, y: Any) -> Any:
        """Validate a sparse X, and y if it is given; all features are numeric."""
        given = self.categorical_features if reset else list(self.categories_)
        if given is not None and len(given) > 0 and not isinstance(given, str):
            raise ValueError("X is sparse, but categorical features need a dense X or a table: pass X.toarray()")
        options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
        if reset:
            self.categories_, self.dates_ = {}, {}
        valid = validate_data(self, as_csr(X), y, reset=reset, accept_sparse="csr", **options)
        return (SparseRows(valid[0]), *valid[1:]) if isinstance(valid, tuple) else SparseRows(valid)

    def _is_plain(self, X: Any) -> bool:
        """Return whether X is valid without conversion; scikit-learn's checks take longer than predicting one row."""
        is_matrix = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32) and len(X) > 0
        has_features = is_matrix and X.shape[1] == self.n_features_in_
        return has_features and not (self.categories_ or self.dates_) and not hasattr(self, "feature_names_in_")

    def _params(self) -> dict[str, Any]:
        """Return the parameters by name; `get_params` inspects the signature, which takes longer than a small tree."""
        return {name: getattr(self, name) for name in self._parameter_constraints}

    def _hold(self, X: Any, y: Any, sample_weight: Any, groups: Any = None, cost: Any = None) -> RowsInMemory:
        """Validate the arguments of `fit`, and return them as training rows."""
        kept = None
        if sample_weight is not None:
            given = unmask(sample_weight)
            sample_weight = _check_sample_weight(given, X, dtype=np.float64, ensure_non_negative=True)
            kept = kept_rows(sample_weight)
        X, y = self._validate_X(X, reset=True, y=decode_labels(y), kept=kept)
        groups = None if groups is None else check_groups(groups, len(X))
        target = Target(*code_classes(y), sample_weight, groups, cost)
        return RowsInMemory(X, getattr(self, "feature_names_in_", None), self.categories_, self.dates_, target)

    def _code(self, table: TrainingTable, spec: FitSpec) -> Coding:
        """Encode the training data, and set the attributes for classes, categories and features."""
        coding = table.code(spec)
        check_signs(spec.params.signs, coding.categories)
        self.classes_, self.categories_, self.dates_ = table.target.classes, coding.categories, coding.dates
        self.n_features_in_ = table.n_features - n_added(coding.dates)
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        return coding

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @property
    def n_outputs_(self) -> int:
        """The number of targets, always 1."""
        check_is_fitted(self, "trees_")
        return 1

    @property
    def _n_jobs(self) -> int | None:
        """The number of threads; a tree uses one."""
        return getattr(self, "n_jobs", 1)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The mean over trees of each feature's proportion in the gain of a tree; the proportions sum to 1.

        As in scikit-learn. The splits of a tree are weighted by node weight, and trees without a split are left out.
        """
        check_is_fitted(self, "trees_")
        total = np.zeros(self.trees_[0].n_features)
        for tree in self.trees_:
            tree.add_importances(total)
        return total / total.sum() if total.sum() > 0 else total

    @property
    def split_features_(self) -> NDArray[Any]:
        """The names of the features of the trees: the columns of X, with several features for each column of dates."""
        check_is_fitted(self, "trees_")
        names = getattr(self, "feature_names_in_", None)
        names = [f"feature_{j}" for j in range(self.n_features_in_)] if names is None else names.tolist()
        return np.array(split_names(names, self.dates_), dtype=object)

    def _pack_nodes(self) -> PackedTrees:
        """Return the trees in the layout for traversal, which is made at the first call."""
        if "packed" not in self._cache:
            self._cache["packed"] = PackedTrees(self.trees_, self._run_over_trees())
        packed: PackedTrees = self._cache["packed"]
        return packed

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
        """Return the number of class frequencies in the leaves of all trees."""
        return sum(tree.n_nodes // 2 + 1 for tree in self.trees_) * len(self.classes_)

    def _run_over_trees(self) -> ParallelMap:
        """Return a `map` over trees for functions whose time is proportional to the number of nodes."""
        n_nodes = np.mean([tree.n_nodes for tree in self.trees_])
        return run_in_threads(self._n_jobs, _NODE_TIME * float(n_nodes))

    def _walk_blocks(self, packed: PackedTrees, X: NDArray[Any], walk: Callable[..., None]) -> None:
        """Call ``walk(rows, nodes, block, active, found)`` for blocks of rows, as the kernels of traversal take them.

        A block passes all trees in order, so n_jobs changes no sums.
        """
        n_rows = min(_TASK_ROWS, -(-len(X) // effective_n_jobs(self._n_jobs)))
        if isinstance(X, SparseRows):
            n_rows = min(n_rows, X.block_rows)

        def walk_block(start: int) -> None:
            rows = slice(start, start + n_rows)
            block = packed.as_read(X[rows])
            active, found = np.empty(len(block), dtype=np.uint64), np.empty(len(block), dtype=np.uint32)
            walk(rows, packed.nodes_for(block), block, active, found)

        for _ in run_in_threads(self._n_jobs)(walk_block, range(0, len(X), n_rows)):
            pass

    def _add_trees(self, packed: PackedTrees, X: NDArray[Any], total: NDArray[np.float64]) -> None:
        """Add the predictions of trees to the totals of rows."""
        n_trees = len(packed.first) - 1
        if len(X) > _FEW_ROWS or packed.first[-1] >= _MOST_NODES or X.shape[1] * (n_trees + 1) >= _MOST_CELLS:

            def add(rows: slice, nodes: WalkNodes, block: NDArray[Any], active: Any, found: Any) -> None:
                add_probabilities(
                    nodes, packed.first, packed.values, packed.first_leaf, block, active, found, total[rows]
                )

            self._walk_blocks(packed, X, add)
            return
        active, found = np.empty(n_trees, dtype=np.uint64), np.empty(n_trees, dtype=np.uint32)
        for i in range(len(X)):
            copies = np.repeat(np.asarray(X[i : i + 1], dtype=np.float64), n_trees, axis=0)
            add_row(
                packed.nodes, packed.first, packed.values, packed.first_leaf, copies, active, found, total[i : i + 1]
            )

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
        return self._predict_valid(self._validate_X(X, reset=False))

    def _predict_valid(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities for the result of `_validate_X`."""
        total = np.zeros((len(X), len(self.classes_)))
        for _, packed in self._in_groups():
            self._add_trees(packed, X, total)
        return self._mean_of_trees(total, len(self.trees_))

    def _mean_of_trees(self, total: NDArray[np.float64], n_trees: Any) -> NDArray[np.float64]:
        """Return class probabilities from sums over trees; `n_trees` is a number, or an array with one for each row."""
        proba = total / n_trees
        return proba if self._calibration is None else self._calibration.apply(proba)

    @property
    def _calibration(self) -> Calibration | None:
        """The calibration of the mean of the trees; None for a single tree."""
        return getattr(self, "calibration_", None)

    def _find_leaves(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of each sample in each tree, (n_samples, n_trees)."""
        check_is_fitted(self, "trees_")
        X = self._validate_X(X, reset=False)
        packed, leaves = self._pack_nodes(), np.empty((len(X), len(self.trees_)), dtype=np.int64)

        def find(rows: slice, nodes: WalkNodes, block: NDArray[Any], active: Any, found: Any) -> None:
            by_tree = np.empty((len(self.trees_), len(block)), dtype=np.int64)
            walks_all = np.zeros(by_tree.shape, dtype=np.uint16)
            find_leaves(nodes, packed.first, block, walks_all, active, found, by_tree)
            leaves[rows] = by_tree.T

        self._walk_blocks(packed, X, find)
        return leaves

    @property
    def _n_codes(self) -> dict[int, int]:
        """The number of codes of each categorical feature."""
        return {feature: min(len(categories), MISSING_CODE) for feature, categories in self.categories_.items()}

    def encode(self, X: Any) -> Any:
        """Return X in the form that exported models read: float32, with codes for categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_split_features), float32, or a table or sparse matrix of the type of X
            A pandas, polars or pyarrow table keeps its type and index, with the columns ``split_features_``; treelite
            and onnxruntime need ``np.asarray(encode(X))``. The code of a category is its position in ``categories_``,
            at most 254. Missing and unseen values are NaN.
        """
        check_is_fitted(self, "trees_")
        valid = self._validate_X(X, reset=False)
        if isinstance(valid, SparseRows):
            return valid.matrix.astype(np.float32)
        return like(X, valid.astype(np.float32), self.split_features_.tolist() if self.dates_ else None)

    def to_sklearn(self) -> Any:
        """Convert the model to a fitted scikit-learn classifier with the same trees.

        Tools that read scikit-learn's trees, such as `shap.TreeExplainer`, `sklearn.tree.plot_tree` or
        `treelite.sklearn.import_model` (forests only), can use it. Missing values are supported by all of them.

        Returns
        -------
        CalibratedForestClassifier, RandomForestClassifier, or DecisionTreeClassifier for a tree
            ``predict_proba`` gives the same probabilities, up to 1e-12, on float32 values. A calibrated forest, as by
            default, becomes a `CalibratedForestClassifier`, because scikit-learn's forest cannot store the
            calibration. Pass its ``estimator``, the forest before calibration, to tools that read trees.

        Raises
        ------
        ValueError
            If the nodes that are copied for categorical splits take more than 1.25 GiB. `to_onnx` copies no nodes.
        NotImplementedError
            If the tree format of the installed scikit-learn differs from that of versions 1.6 to 1.9.

        Notes
        -----
        scikit-learn rounds X to float32, so a value that is very close to a threshold may go to the other side. It does
        not accept infinite values. Categories must be passed as codes: see `encode`.

        ``predict`` returns the most probable class; for another threshold use
        `sklearn.model_selection.FixedThresholdClassifier`. Shrinkage is included. Impurities and
        ``feature_importances_`` are Gini's.

        A categorical split becomes one threshold for each run of consecutive codes, and the nodes below are copied for
        each. The weights of the copies assume that samples are spread evenly over the categories of a side.
        SHAP values without background data use these weights, those with background data do not.

        Examples
        --------
        >>> import shap
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> X = X.astype("float32")
        >>> forest = AUCForestClassifier(20, max_depth=6, random_state=0).fit(X, rings >= 18)
        >>> explainer = shap.TreeExplainer(forest.to_sklearn().estimator)
        >>> values = explainer.shap_values(X[:5])[:, :, 1]
        >>> total = values.sum(axis=1) + explainer.expected_value[1]
        >>> before_calibration = forest.to_sklearn().estimator.predict_proba(X[:5])[:, 1]
        >>> bool(abs(total - before_calibration).max() < 1e-9)
        True
        """
        check_is_fitted(self, "trees_")
        model = self._as_sklearn(self.trees_, self.classes_, self._n_codes)
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.split_features_
        return model if self._calibration is None else CalibratedForestClassifier(model, self._calibration)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier to an ONNX file, including its calibration and threshold.

        Parameters
        ----------
        path : path-like
            The file to write. The model has one input, ``X`` of shape (n_samples, n_split_features), float32, with NaN
            for missing values and codes for categories (see `encode`), and two outputs, ``label`` of shape (n_samples,)
            and ``probabilities`` of shape (n_samples, n_classes), float32.

        Raises
        ------
        ImportError
            If onnx is not installed.
        TypeError
            If labels are not str, bool or numbers of at most 64 bits.

        Notes
        -----
        On the same float32 values, probabilities equal those of `predict_proba` up to 1e-6, and labels equal those of
        `predict` unless two classes are that close to a tie. The operators are those of ONNX 1.12 and ai.onnx.ml 3.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import onnxruntime
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> X = X.astype("float32")
        >>> forest = AUCForestClassifier(20, random_state=0).fit(X, rings >= 18)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "forest.onnx"
        ...     forest.to_onnx(path)
        ...     session = onnxruntime.InferenceSession(path)
        >>> labels, probabilities = session.run(None, {"X": X})
        >>> bool(abs(probabilities - forest.predict_proba(X)).max() < 1e-6)
        True
        """
        check_is_fitted(self, "trees_")
        write_onnx(path, self._ensemble, self.classes_, getattr(self, "threshold_", None))

    @property
    def _ensemble(self) -> Ensemble:
        """What an export to ONNX needs to know of the trees and their calibration."""
        calibration = self._calibration
        logit_map = None if calibration is None else (calibration.slope, calibration.intercepts, LEAST)
        return Ensemble(self.trees_, self._n_codes, logit_map)
