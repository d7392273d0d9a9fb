"""One decision tree as a scikit-learn classifier."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._base import TREE_CONSTRAINTS, TreeBasedClassifier
from aucforest.estimators._model_files import TREE
from aucforest.estimators._paths import path_indicator
from aucforest.exports.sklearn import as_decision_tree
from aucforest.fitting.spec import FitSpec
from aucforest.tree.tree import Tree


class AUCTreeClassifier(TreeBasedClassifier):
    """A decision tree whose splits are scored by the AUC of the two children.

    Parameters
    ----------
    criterion : {"auc", "gini", "entropy", "log_loss", "hellinger"} or compiled function, default="auc"
        What makes a split good; "log_loss" is another name of "entropy". See Notes.
    splitter : {"best", "random"}, default="best"
        Whether a node searches all splits of a feature, or one whose threshold is drawn uniformly between its least
        and greatest value there (extremely randomised trees). An infinite value counts as lying as far beyond the
        finite ones as these reach. A threshold that leaves a child too small makes no split.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        How many features that are not constant in a node it looks at, or their fraction; None for all.
    max_depth : int or None, default=None
        Most splits on the way to a leaf.
    min_samples_split : int or float, default=2
        Fewest rows, or fraction of the training rows, of a node that is split.
    min_samples_leaf : int or float, default=1
        Fewest rows, or fraction of the training rows, of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least weight of a leaf, as a fraction of the total weight.
    min_gain : float, default=0.0
        Least gain of a split, in the units of the criterion: AUC - 1/2, impurity decrease in the node, or Hellinger
        distance.
    max_leaf_nodes : int or None, default=None
        Most leaves. With a limit the tree grows best first: the next split is the one whose gain times the weight of
        its node is greatest.
    monotonic_cst : array-like of shape (n_features,), dict of feature names or None, default=None
        1 where the probability of ``classes_[1]`` must not fall as the feature rises, -1 where it must not rise, 0
        where it is free. Two classes only. The bounds of scikit-learn's trees: the class frequencies of all nodes
        keep to the order.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn; classes are balanced by their total sample weight. With two classes the weights cancel in
        the AUC of a split; they still move the frequencies in leaves.
    max_bins : int or None, default=255
        Most distinct codes of a feature, 2 to 255; a feature with fewer distinct values keeps them all. None
        searches all distinct values.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, default="from_dtype"
        Columns whose values are categories, in no order: names, indices or a mask. "from_dtype" takes the columns of
        a pandas or polars frame that hold categories, text or bools; an array has none.
    random_state : int, RandomState instance or None, default=None
        Draws the features of every node, and the order that breaks ties between features.

    Attributes
    ----------
    tree_ : Tree
        The grown tree, as flat arrays.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had string column names.
    categories_ : dict of int to ndarray
        The categories of each categorical feature, by its index: their places are their codes in ``tree_``. Up to 254
        keep a code of their own; the rarest beyond come last and have code 254 together.
    feature_importances_ : ndarray of shape (n_features,)
        Total gain by feature times node weight, normalised to sum 1.

    See Also
    --------
    AUCForestClassifier : Many of these on bootstrap samples of the rows.

    Notes
    -----
    With alpha and beta the fractions of the two classes that go right, the score of a split is
    max((1 - alpha + beta) / 2, (1 - beta + alpha) / 2), the ROC AUC of the classifier that it is; with more classes
    the mean over the pairs of classes present in the node. A split must improve on 1/2 strictly. The Gini decrease is
    2 (q0 q1 (beta - alpha))**2 / (pL pR) with q the class frequencies and p the proportions of the children: it
    prefers splits near the ends, AUC does not.

    Missing values (NaN) are tried on both sides of every split; where a node has seen none, they follow the heavier
    child. Ties go to the feature drawn first, then to missing values on the right, then to the lowest threshold. What a
    tie is for each criterion, and all other rules of ties and of missing values, are on the page :doc:`Ties and missing
    values </mathematics/ties>`.

    A split of a categorical feature parts its categories into two sets. With two classes it is the best of all subsets:
    some split of the categories in the order of their class frequencies is. (Where bounds on the children forbid that
    one, it is the best allowed split of this order.) With more classes the order is that of the first principal
    component of the class frequencies, in which classes weigh alike under "auc" and "hellinger". It can miss the best
    subset: in simulated nodes of 3 to 8 categories and classes, in 18 % of them under "auc", 1 % under "gini", 10 %
    under "entropy" and 24 % under "hellinger", which costs 1.1, 0.1, 0.9 and 1.1 % of the gain in the mean, and up to
    50 % in a single node (:doc:`details </mathematics/trees>`). Categories that a node has not seen follow its missing
    values, and so do those that the tree has not seen.

    A criterion of your own is a function that ``numba.njit`` compiled, ``f(left_totals, node_totals) -> score``. Both
    arguments are float64 arrays of shape (n_classes,), in the order of ``classes_``: the weight of every class to the
    left of the split, and in the node. Both sides of the split hold some weight. The split with the greatest score
    wins; a score that is not finite and above 0 makes no split, so it should say what a split gains over no split.

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

    _parts = (TREE,)
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
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "AUCTreeClassifier":
        """Grow the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            float32 and float64 are read as they are. NaN is missing, infinite values are allowed. Sparse matrices
            are refused.
        y : array-like of shape (n_samples,)
            Class labels: bool, int or str; at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative. A row of weight 0 is as if absent, one of integer weight w as w copies.

        Returns
        -------
        self : AUCTreeClassifier

        Raises
        ------
        ValueError
            For data that do not fit together, a single class, a parameter out of range, or a fit that would take more
            than half of the machine's memory. A fit that fails or is interrupted leaves the tree as it was.
        """
        with self._fitting():
            table = self._hold(X, y, sample_weight)
            table.target.check_classes()
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
            params = self._params()
            spec = FitSpec.resolve(params, table.target, table.names, table.n_features, seed)
            self.trees_ = table.grow(spec, self._code(table, spec), {0: 0})
            self._pack_nodes()
        return self

    @property
    def tree_(self) -> Tree:
        """The grown tree."""
        check_is_fitted(self, "trees_")
        return self.trees_[0]

    def get_depth(self) -> int:
        """Return the depth of the deepest leaf."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return self.tree_.n_leaves

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Find the leaf of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int64
            Node numbers in ``tree_``.
        """
        return self._find_leaves(X)[:, 0]

    def decision_path(self, X: ArrayLike) -> csr_matrix:
        """Find the nodes that every row passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        csr_matrix of shape (n_samples, n_nodes), int64
            1 where the row passes the node, root and leaf included.
        """
        return path_indicator(self.tree_, self.apply(X))
