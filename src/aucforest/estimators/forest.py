"""A random forest as a scikit-learn classifier."""

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._base import TREE_CONSTRAINTS, TrainingData, TreeBasedClassifier, path_indicator
from aucforest.estimators._columns import Categories, check_same_categories
from aucforest.estimators._growing import GrowthParams, grow_trees, tree_keys
from aucforest.estimators._out_of_bag import Bags, sum_out_of_bag
from aucforest.estimators._sampling import SCHEMES, Drawn, describe_draws, prior_factors, resolve_draws
from aucforest.estimators.tree import AUCTreeClassifier
from aucforest.metrics import hand_till_score, roc_auc_score
from aucforest.tree.structure import Tree


class AUCForestClassifier(TreeBasedClassifier):
    """A random forest whose cuts are scored by the AUC of the two children.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"auc", "gini", "entropy", "log_loss", "hellinger"} or compiled function, default="auc"
        What makes a cut good; "log_loss" is another name of "entropy". See `AUCTreeClassifier`.
    splitter : {"best", "random"}, default="best"
        Whether a node searches all cuts of a feature, or draws one of each. See `AUCTreeClassifier`.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        How many features that are not constant in a node it looks at, or their fraction; None for all.
    max_depth : int or None, default=None
        Most cuts on the way to a leaf.
    min_samples_split : int or float, default=2
        Fewest rows, or fraction of the training rows, of a node that is cut. A row that a tree drew several times is
        one row.
    min_samples_leaf : int or float, default=1
        Fewest rows, or fraction of the training rows, of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least weight of a leaf, as a fraction of the tree's total weight.
    min_gain : float, default=0.0
        Least gain of a cut, in the units of the criterion.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, which then grows best first.
    monotonic_cst : array-like of shape (n_features,), dict of feature names or None, default=None
        1 where the probability of ``classes_[1]`` must not fall as the feature rises, -1 where it must not rise, 0
        where it is free. Two classes only.
    bootstrap : bool, default=True
        Whether each tree draws rows; otherwise each sees all rows.
    sampling : {"bootstrap", "stratified", "balanced", "subsample"} or dict, default="bootstrap"
        How: with replacement from all rows; with replacement from each class, so that class shares are kept; with
        replacement as many rows of each class as the rarest one has; without replacement, 63.2 % of the rows; or
        with replacement at rates by class label, such as ``{"rare": 1.0, "common": 0.1}``, 1 for a class not named.
    max_samples : int, float or None, default=None
        How many rows a tree draws in all, or their fraction; None leaves it to `sampling`.
    prior_correction : bool, default=True
        Whether probabilities are brought back to the class shares of the training rows where `sampling` draws
        classes at different rates r_k: p_k becomes p_k / r_k, normalised. With two classes that divides the odds by
        r_1 / r_0 and ranks rows as before.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        As in scikit-learn.
    oob_score : bool, default=False
        Whether to score the forest on the rows that trees did not draw.
    max_bins : int or None, default=255
        Most distinct codes of a feature, 2 to 255; None searches all distinct values.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, default="from_dtype"
        Columns whose values are categories, in no order: names, indices or a mask. "from_dtype" takes the columns of
        a pandas or polars frame that hold categories, text or bools; an array has none.
    warm_start : bool, default=False
        Whether `fit` keeps the trees there are and adds the missing ones; the data should be the same, and for
        ``oob_score`` also the draws.
    n_jobs : int or None, default=None
        Threads of `fit` and prediction; None is 1 unless a joblib ``parallel_config`` says otherwise, -1 all
        processors. Results are the same, to the last bit, for every value and backend.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of trees and the features of nodes.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    trees_ : list of Tree
        The grown trees, as flat arrays.
    estimators_ : list of AUCTreeClassifier
        The same trees as classifiers.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had string column names.
    categories_ : dict of int to ndarray
        The categories of each categorical feature, by its index: their places are their codes in ``trees_``. Up to 254
        keep a code of their own; the rarest beyond come last and share code 254.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Total gain by feature times node weight, normalised to sum 1.
    oob_score_ : float
        ROC AUC of the out-of-bag probabilities, Hand and Till's for more than two classes; with ``oob_score=True``.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities from the trees that did not draw a row; NaN where all did, and for rows of weight 0.

    See Also
    --------
    AUCTreeClassifier : One tree; says what the criteria are.

    References
    ----------
    Breiman, L. (2001). Random forests. Machine Learning 45, 5-32.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(oob_score=True, random_state=0).fit(X, rings >= 18)
    >>> print(f"{forest.oob_score_:.2f}")
    0.83
    """

    _seed: int
    _drawn: list[Drawn]  # how the trees there are drew their rows

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "sampling": [StrOptions(set(SCHEMES)), dict],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            None,
        ],
        "prior_correction": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced", "balanced_subsample"}), None],
        "oob_score": ["boolean"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str | Callable[..., Any] = "auc",
        splitter: str = "best",
        max_features: int | float | str | None = "sqrt",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_gain: float = 0.0,
        max_leaf_nodes: int | None = None,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        bootstrap: bool = True,
        sampling: str | dict[Any, float] = "bootstrap",
        max_samples: int | float | None = None,
        prior_correction: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        oob_score: bool = False,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
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
        self.bootstrap = bootstrap
        self.sampling = sampling
        self.max_samples = max_samples
        self.prior_correction = prior_correction
        self.class_weight = class_weight
        self.oob_score = oob_score
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> "AUCForestClassifier":
        """Grow the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            float32 and float64 are read as they are. NaN is missing, infinite values are allowed. Sparse matrices
            are refused.
        y : array-like of shape (n_samples,)
            Class labels: bool, int or str; at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative; multiplies the draws of the bootstrap. A row of weight 0 is as if absent.

        Returns
        -------
        self : AUCForestClassifier

        Raises
        ------
        ValueError
            For data that do not fit together, a single class, or a parameter out of range. A fit that fails or is
            interrupted leaves the forest unfitted; with ``warm_start=True`` it leaves all as it was.
        """
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score=True needs bootstrap=True: without draws no row is out of bag")
        seed, trees = self._seed_and_trees()
        known = (self.classes_, self.categories_) if trees else (None, {})
        with self._fitting(keep=self.warm_start):
            self._grow(X, y, sample_weight, seed, trees, *known)
        return self

    def _seed_and_trees(self) -> tuple[int, list[Tree]]:
        """Return the seed and the trees to go on from."""
        if not (self.warm_start and hasattr(self, "trees_")):
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)), []
        n_trees = len(self.trees_)
        if self.n_estimators < n_trees:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least {n_trees}, the trees there are, with warm_start"
            )
        if self.n_estimators == n_trees:
            warnings.warn(f"warm_start: all {n_trees} trees are there, none is added", stacklevel=4)
        return self._seed, self.trees_

    def _grow(
        self, X: Any, y: Any, sample_weight: Any, seed: int, trees: list[Tree], classes: Any, categories: Categories
    ) -> None:
        """Add the missing trees to those there are, which know these classes and categories, and score out of bag."""
        data = self._prepare(X, y, sample_weight)
        self._check_trees(trees, classes, data.n_features)
        if trees:
            check_same_categories(categories, self.categories_)
        draws = resolve_draws(self, data.training.labels, self.classes_)
        drawn = list(dict.fromkeys([*(self._drawn if trees else []), describe_draws(draws, data.n_rows)]))
        self._check_draws(drawn)
        params = GrowthParams.resolve(self, data.n_rows, data.n_features, draws)
        keys = tree_keys(seed, range(self.n_estimators))
        trees = trees + grow_trees(data.training, params, keys[len(trees) :], self.n_jobs, self.verbose)
        self._seed, self._drawn, self.trees_ = seed, drawn, trees
        self._prior_factors = prior_factors(draws, len(self.classes_)) if self.prior_correction else None
        self._pack()
        if self.oob_score and draws is not None:
            kept = np.arange(len(data.X)) if data.kept is None else data.kept
            self._set_oob(data, Bags(draws, keys, kept))

    def _check_trees(self, trees: list[Tree], classes: Any, n_features: int) -> None:
        """Refuse to add trees to others that cannot stand beside them."""
        if trees and trees[0].n_features != n_features:
            raise ValueError(
                f"warm_start: X has {n_features} features, but the trees there are know {trees[0].n_features}"
            )
        if trees and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start: y has the classes {self.classes_.tolist()}, but the trees there are know"
                f" {classes.tolist()}"
            )

    def _check_draws(self, drawn: list[Drawn]) -> None:
        """Refuse to score trees of unequal draws: drawn anew like the last, those of the first would be wrong."""
        if self.oob_score and len(drawn) > 1:
            raise ValueError(
                f"warm_start: oob_score=True needs trees that drew alike, not {', '.join(map(str, drawn))} rows"
            )

    def _set_oob(self, data: TrainingData, bags: Bags) -> None:
        """Set the out-of-bag probabilities and their score."""
        packed = self._pack()
        sums, n_seen = sum_out_of_bag(bags, data.X, packed, range(bags.n_trees), packed.values, self.n_jobs, bags.kept)
        n_trees = np.zeros(len(data.X), dtype=np.int64)
        total = np.zeros((len(data.X), len(self.classes_)))
        n_trees[bags.kept], total[bags.kept] = n_seen, sums
        self._score_oob(data, total, n_trees, bags.kept)

    def _score_oob(
        self, data: TrainingData, total: NDArray[np.float64], n_trees: NDArray[np.int64], kept: NDArray[np.int64]
    ) -> None:
        """Score the rows that some tree did not draw."""
        proba = np.full_like(total, np.nan)
        scored = n_trees > 0
        proba[scored] = self._mean_of_trees(total[scored], n_trees[scored, None])
        n_without = len(kept) - int(np.count_nonzero(scored))
        if n_without > 0:
            warnings.warn(
                f"{n_without} of {len(kept)} rows were drawn by all {len(self.trees_)} trees: they have no out-of-bag"
                " probability and are left out of oob_score_",
                stacklevel=6,
            )
        labels, weight = data.labels[scored], None if data.sample_weight is None else data.sample_weight[scored]
        self.oob_decision_function_ = proba
        if not np.any(scored):
            self.oob_score_ = np.nan
        elif len(self.classes_) == 2:
            self.oob_score_ = float(roc_auc_score(labels, proba[scored, 1], sample_weight=weight))
        else:
            numbers = np.arange(len(self.classes_))
            self.oob_score_ = float(hand_till_score(labels, proba[scored], labels=numbers, sample_weight=weight))

    @property
    def estimators_(self) -> list[AUCTreeClassifier]:
        """The trees as classifiers of their own, made at each access."""
        check_is_fitted(self, "trees_")
        names = set(AUCTreeClassifier().get_params()) - {"random_state", "class_weight"}
        params = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        fitted = ("classes_", "n_features_in_", "feature_names_in_", "categories_")
        shared = {name: vars(self)[name] for name in fitted if name in vars(self)}
        members = []
        for tree in self.trees_:
            member = AUCTreeClassifier(**params)
            member.__dict__.update(shared, trees_=[tree])
            members.append(member)
        return members

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Total gain by feature times node weight, normalised to sum 1; zeros for trees without a cut."""
        return self._feature_importances()

    def __len__(self) -> int:
        """Return the number of trees."""
        check_is_fitted(self, "trees_")
        return len(self.trees_)

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Find the leaf of every row in every tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_estimators), int64
            Node numbers in ``trees_``.
        """
        return self._find_leaves(X)

    def decision_path(self, X: ArrayLike) -> tuple[csr_matrix, NDArray[np.int64]]:
        """Find the nodes that every row passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        indicator : csr_matrix of shape (n_samples, n_nodes), int64
            1 where the row passes the node, root and leaf included; the trees side by side.
        n_nodes_ptr : ndarray of shape (n_estimators + 1,), int64
            The columns of tree i are n_nodes_ptr[i] to n_nodes_ptr[i + 1].
        """
        leaves = self._find_leaves(X)
        paths = [path_indicator(tree, leaves[:, i]) for i, tree in enumerate(self.trees_)]
        return hstack(paths, format="csr"), self._pack().first.copy()
