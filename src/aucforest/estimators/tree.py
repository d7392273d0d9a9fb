"""One decision tree as a scikit-learn classifier."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import StrOptions, fit_context
from aucforest.estimators._base import TREE_CONSTRAINTS, TreeBasedClassifier
from aucforest.estimators._forest_files import TREE_SECTION
from aucforest.estimators._paths import path_indicator
from aucforest.exports.sklearn import as_decision_tree
from aucforest.fitting.spec import FitSpec
from aucforest.tree.tree import Tree


class AUCTreeClassifier(TreeBasedClassifier):
    """A decision tree classifier that chooses splits by ROC AUC or by another criterion.

    Parameters
    ----------
    criterion : {"auc", "gini", "entropy", "log_loss", "hellinger"} or compiled function, default="auc"
        The function that measures the quality of a split. "log_loss" is another name for "entropy". See Notes.
    splitter : {"best", "random"}, default="best"
        The strategy used to choose the split at each node. "best" considers all thresholds of a feature, "random" one
        threshold drawn uniformly between the smallest and the largest value in the node (extremely randomized trees).
        Before the draw, -inf becomes the smallest finite value in the node minus the range of finite values, and inf
        the largest one plus the range, where a range of 0 counts as 1.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        The number of features to consider at each node, or a fraction of all features; None considers all of them.
        Features that are constant in the node are not counted.
    max_depth : int or None, default=None
        The maximum depth of the tree.
    min_samples_split : int or float, default=2
        The minimum number of samples, or fraction of the training samples, required to split a node.
    min_samples_leaf : int or float, default=1
        The minimum number of samples, or fraction of the training samples, required in a leaf.
    min_weight_fraction_leaf : float, default=0.0
        The minimum fraction of the total sample weight required in a leaf.
    min_gain : float, default=0.0
        The minimum gain of a split in units of the criterion: AUC - 1/2, impurity decrease or Hellinger distance.
        Unlike for scikit-learn's `min_impurity_decrease`, the gain is not multiplied by the proportion of samples in
        the node.
    max_leaf_nodes : int or None, default=None
        The maximum number of leaves. Such a tree grows best-first, by gain times node weight.
    monotonic_cst : array-like of shape (n_features,), dict of feature names or None, default=None
        Monotonicity constraint of each feature on the probability of ``classes_[1]``, as in scikit-learn's trees: 1
        for increasing, -1 for decreasing, 0 for none. Needs two classes.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn. "balanced" uses the total sample weight of each class. With two
        classes the weights do not change the AUC of a split, but they change the class frequencies of leaves.
    max_bins : int or None, default=255
        The maximum number of bins of a feature, 2 to 255. A feature with fewer distinct values has one bin for each.
        The date part "time" has at most 32 bins. None considers all distinct values.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, default="from_dtype"
        The categorical features, which are split natively: names, indices or a mask. "from_dtype" uses the
        categorical, string and boolean columns of a pandas, polars or pyarrow table. An array has no such columns: pass
        for example ``categorical_features=[0]``. Categories are text, numbers, booleans, dates or durations. Equal
        values of different types are the same category: 1 and 1.0, or a day as a date and as a Timestamp.
    date_parts : "auto", list of str or None, default="auto"
        The features computed from a column of dates of X: "time" (seconds since 1970-01-01), "year", "month", "day",
        "day of week" (1 for Monday to 7) and "hour" (with minutes as its fraction). "auto" computes time, month and
        day of week, and also the hour if the type of the column has a time of day. Durations and times of day become
        seconds. None raises an error for columns of dates, times of day or durations.
    random_state : int, RandomState instance or None, default=None
        Controls the sampling of features at each node and the order in which ties between features are broken.

    Attributes
    ----------
    tree_ : Tree
        The fitted tree as arrays of nodes.
    classes_, n_classes_, n_outputs_, n_features_in_, feature_names_in_, expanded_, split_features_
        As in `AUCForestClassifier`.
    feature_importances_, split_importances_, categories_
        As in `AUCForestClassifier`. If a feature has more than 254 categories, the 254 most frequent come first, and a
        split sends all others to the same side.

    See Also
    --------
    AUCForestClassifier : A forest of such trees.

    Notes
    -----
    The AUC of a split is (1 + abs(alpha - beta)) / 2, where alpha and beta are the fractions of the two classes that go
    right: the ROC AUC of the split as a classifier. For more classes it is the mean over the pairs of classes in the
    node. A split must score above 1/2. The Gini decrease, unlike the AUC, favors splits into children of very different
    sizes (all criteria: :doc:`formulas </mathematics/trees>`).

    Missing values (NaN) are tried on both sides of every split. If no training sample of a node has a missing value,
    missing values go to the child with the larger weight. Of splits with equal scores, the one of the feature that was
    sampled first is used, then the one with missing values on the right, then the one with the lowest threshold (all
    rules: :doc:`ties </mathematics/ties>`).

    A split on a categorical feature divides its categories into two sets. For two classes these are the best possible
    sets, unless constraints on the children rule them out. With more classes, the categories are ordered by the first
    principal component of their class frequencies, where "auc" and "hellinger" give the classes equal weight. The
    split may then not be the best; its gain is lower by 0.1 % to 1.1 % on average, depending on the criterion.
    Categories that were not in the node, or not in the training data, go to the same side as missing values.

    A custom criterion is a function ``f(left_totals, node_totals) -> score`` compiled by ``numba.njit``. Both arguments
    are float64 arrays of shape (n_classes,) in the order of ``classes_``: the weight of each class in the left child,
    which is not empty, and in the node. The score is the gain of the split; if it is not positive and finite, there is
    no split.

    References
    ----------
    Coppersmith, D., Hong, S. J., Hosking, J. R. M. (1999). Partitioning nominal attributes in decision trees. Data
    Mining and Knowledge Discovery 3, 197-217.

    Geurts, P., Ernst, D., Wehenkel, L. (2006). Extremely randomized trees. Machine Learning 63, 3-42.

    Hand, D. J., Till, R. J. (2001). A simple generalisation of the area under the ROC curve for multiple class
    classification problems. Machine Learning 45, 171-186.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucforest import AUCTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = AUCTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> tree.get_n_leaves()
    4
    """

    _file_sections = (TREE_SECTION,)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _as_sklearn = staticmethod(as_decision_tree)

    def __init__(
        self,
        *,
        criterion: str | Callable[..., Any] = "auc",
        splitter: str = "best",
        max_features: int | float | str | None = None,
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_gain: float = 0.0,
        max_leaf_nodes: int | None = None,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        class_weight: dict[Any, float] | str | None = None,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        date_parts: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_gain = min_gain
        self.max_leaf_nodes = max_leaf_nodes
        self.monotonic_cst = monotonic_cst
        self.class_weight = class_weight
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.date_parts = date_parts
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "AUCTreeClassifier":
        """Fit the tree to training data.

        Parameters
        ----------
        X, y
            As in `AUCForestClassifier.fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights. A sample of integer weight w counts as w copies; weight 0 excludes a sample.

        Returns
        -------
        self : AUCTreeClassifier

        Raises
        ------
        ValueError
            If the data are inconsistent or have a single class, if a parameter is out of range, or if the fit would
            need more than half of the machine's memory. A fit that fails or is interrupted does not change the tree.
        """
        with self._fitting():
            table = self._validate_rows(X, y, sample_weight)
            table.target.check_classes()
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
            spec = FitSpec.resolve(self._params(), table.target, table.names, table.n_features, seed, table.dates)
            self._code(table, spec)
            self.trees_ = table.grow({0: 0})
        return self

    @property
    def tree_(self) -> Tree:
        """The fitted tree as arrays of nodes."""
        check_is_fitted(self, "trees_")
        return self.trees_[0]

    def get_depth(self) -> int:
        """Return the depth of the tree."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves of the tree."""
        return self.tree_.n_leaves

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the index of the leaf of each sample among the nodes of ``tree_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int64
        """
        return self._find_leaves(X)[:, 0]

    def decision_path(self, X: ArrayLike) -> csr_matrix:
        """Return the decision path of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        csr_matrix of shape (n_samples, n_nodes), int64
            1 where the sample passes through the node, from the root to the leaf.
        """
        return path_indicator(self.tree_, self.apply(X))
