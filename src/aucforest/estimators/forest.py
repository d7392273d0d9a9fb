"""A random forest as a scikit-learn classifier."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.base import _fit_context
from sklearn.metrics import get_scorer_names
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._base import TREE_CONSTRAINTS
from aucforest.estimators._forest_fit import ForestFit
from aucforest.estimators._model_files import FOREST, TREES
from aucforest.estimators._paths import path_indicator
from aucforest.estimators.out_of_bag import training_rows
from aucforest.estimators.thresholds import RULES, check_threshold, is_tuned
from aucforest.estimators.tree import AUCTreeClassifier
from aucforest.fitting.sampling import SCHEMES
from aucforest.fitting.spec import SPLITTERS, criterion_name
from aucforest.tree.criteria import CRITERIA


class AUCForestClassifier(ForestFit):
    """A random forest grown for ranking.

    By default the trees are grown by several split criteria, with best and with random splits, and more of them by
    those whose trees raise the out-of-bag ROC AUC of the whole forest most. With ``criterion="auc"`` all splits are
    scored by the AUC of the two children.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    criterion : {"auto", "auc", "gini", "entropy", "log_loss", "hellinger"}, compiled function, or list, default="auto"
        Split criterion; "log_loss" is another name of "entropy". See `AUCTreeClassifier`. "auto" is a mixed forest of
        "auc", "gini", "entropy" and "hellinger", and a list one of the criteria in it; see Notes.
    splitter : {"auto", "best", "random"} or list, default="auto"
        How a node chooses the threshold of a feature: the best one, or one at random. See `AUCTreeClassifier`. "auto"
        is both where several criteria are mixed, and otherwise "best".
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        How many features that are not constant in a node it looks at, or their fraction; None for all.
    max_depth : int or None, default=None
        Most splits on the way to a leaf.
    min_samples_split : int or float, default=2
        Fewest rows, or fraction of the training rows, of a node that is split. A row that is several times
        in the bootstrap sample of a tree is one row.
    min_samples_leaf : int or float, default=1
        Fewest rows, or fraction of the training rows, of a leaf.
    min_weight_fraction_leaf : float, default=0.0
        Least weight of a leaf, as a fraction of the tree's total weight.
    min_gain : float, default=0.0
        Least gain of a split, in the units of the criterion.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, which then grows best first.
    monotonic_cst : array-like of shape (n_features,), dict of feature names or None, default=None
        1 where probabilities must not fall as the feature rises, -1 where they must not rise; see `AUCTreeClassifier`.
    bootstrap : bool, default=True
        Whether each tree grows on a bootstrap sample of the rows; otherwise each sees all rows.
    sampling : {"bootstrap", "stratified", "balanced", "subsample"} or dict, default="bootstrap"
        How it is drawn: with replacement from all rows; with replacement from each class, so that class frequencies are
        kept; with replacement as many rows of each class as the rarest one has; without replacement, 63.2 % of the
        rows; or with replacement at rates by class label, such as ``{"rare": 1.0, "common": 0.1}``, 1 for a class not
        named.
    max_samples : int, float or None, default=None
        Size of the bootstrap sample, as a number or a fraction of the training rows; None leaves it to `sampling`.
        Parted among classes it is rounded, to one row of each at least. Not with rates.
    prior_correction : bool, default=True
        Whether probabilities are brought back to the class frequencies of the training rows where `sampling` draws
        classes at different rates r_k. By those alone p_k becomes p_k / r_k, normalised; fitted to out-of-bag rows,
        which show trees of few rows to be too unsure as well, it becomes p_k ** b * c_k. Two classes are ranked as
        before. What `class_weight` does to them stays.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        As in scikit-learn; classes are balanced by their total sample weight.
    shrinkage : "auto", float or None, default="auto"
        How much what a node predicts leans on its ancestors: lambda of hierarchical shrinkage [2]_, in rows of mean
        weight (without a bootstrap integer weights are copies of a row, as everywhere). "auto" takes the best of 0 to
        1000 by the out-of-bag ROC AUC of the first 96 trees, on large data 300, extrapolated to `n_estimators` trees,
        but 5 unless another is clearly better, and 5 where no row is out of bag; 0 or None leaves the class frequencies
        as they are.
    threshold : None, "prevalence", "gmean", "youden", "f1", {"cost": matrix} or float, default=None
        How `predict` turns probabilities into labels. None takes the most probable class. "prevalence" takes the class
        whose probability is greatest in units of its frequency in the training rows [3]_: of two classes the second
        from its frequency on (`class_weight` moves probabilities away from the frequencies). A number is the least
        probability at which the second of two classes is predicted; "gmean", "youden" and "f1" look for the best one
        among all out-of-bag probabilities, and so do costs of two classes; that needs a bootstrap. ``cost[i][j]`` is
        what it costs to predict class j where i is true; of more than two classes the least expected cost decides.
    oob_score : bool, str or callable, default=False
        Whether to score the forest out of bag, on the rows that are not in the sample of a tree: by ROC AUC, Hand and
        Till's for more than two classes, or by the name of a scikit-learn scorer or a callable ``scorer(estimator, X,
        y)``, which is given ``sample_weight`` where there are weights, and X with codes for categories. Needs a
        bootstrap.
    max_bins : int or None, default=255
        Most distinct codes of a feature, 2 to 255; None searches all distinct values.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, default="from_dtype"
        Columns whose values are categories, in no order. See `AUCTreeClassifier`.
    warm_start : bool, default=False
        Whether `fit` keeps the trees there are and adds the missing ones; the data should be the same, and for
        `oob_score`, tuned thresholds and prior correction also the sampling.
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
    variants_ : list of tuple of str
        The criterion and the splitter of each tree; a function f goes by the name "f()".
    mixture_ : dict of ndarray of shape (n_variants,)
        Of a mixed forest: "criterion" and "splitter" of each variant, "n_trees" and "proportion" of the trees, and
        "oob_score" and "oob_score_std", the out-of-bag ROC AUC of its trees among the first 96 (300) and its standard
        error (Hanley and McNeil 1982; about, for more than two classes); NaN where no row is out of bag. Few trees rank
        worse than many, so scores of variants with more trees are higher; and trees are given out by what a variant
        adds to the others, not by how well it ranks alone. ``pandas.DataFrame(forest.mixture_)`` shows it as a table.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had string column names.
    categories_ : dict of int to ndarray
        The categories of each categorical feature, by its index, in the order of their codes in ``trees_``.
    feature_importances_ : ndarray of shape (n_features,)
        Total gain by feature times node weight, normalised to sum 1.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies that probabilities refer to, by sample weight: those of the training rows, or of the
        bootstrap samples with ``prior_correction=False``.
    shrinkage_ : float
        The lambda that predictions were shrunk by.
    threshold_ : float, ndarray or None
        What `predict` goes by: a probability of the second of two classes, the frequencies of more, their costs, or
        None.
    threshold_std_ : float
        Standard deviation of a tuned threshold when trees are resampled.
    oob_score_ : float
        Score of the out-of-bag probabilities; where `shrinkage`, the mixture and `threshold` were chosen by them, it is
        a little too good: the choice of `shrinkage` lifts the ROC AUC of pure noise, 50 rare ones among 1000 rows, by
        0.007.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities from the trees whose sample a row is not in; NaN where it is in all, and for rows of weight 0.

    See Also
    --------
    AUCTreeClassifier : One tree; says what the criteria are.

    Notes
    -----
    A mixed forest has a variant for each pair of a criterion and a splitter. Variants take turns for the first four
    trees of each. Then, and again after 96 trees, each variant is weighed by exp(2 n g): g is how much the out-of-bag
    ROC AUC of the trees there are rises when the variant has more of them, and n = K**2 / (4 sum(1 / n_k)) for K
    classes of n_k scored samples (at most 4096 in all), of two classes nearly the number of the rarer one. The next
    trees are given out in proportion to the weights. So small data sets get a mixture of all variants, and large ones
    mostly what ranks best there. Without a bootstrap all variants have as many trees. The variant of a tree depends on
    the data, the parameters and `random_state`, not on `n_jobs` or where the data are, and a forest of more trees
    begins with the trees of a smaller one.

    References
    ----------
    .. [1] Breiman, L. (2001). Random forests. Machine Learning 45, 5-32.
    .. [2] Agarwal, A., Tan, Y. S., Ronen, O., Singh, C., Yu, B. (2022). Hierarchical shrinkage: improving the accuracy
       and interpretability of tree-based models. ICML.
    .. [3] O'Brien, R., Ishwaran, H. (2019). A random forests quantile classifier for class imbalanced data. Pattern
       Recognition 90, 232-249.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(oob_score=True, random_state=0).fit(X, rings >= 18)
    >>> print(f"{forest.oob_score_:.2f}")
    0.88
    >>> forest.variants_[:2]
    [('auc', 'best'), ('gini', 'best')]
    """

    _parts = (TREES, FOREST)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        "criterion": [StrOptions({"auto", *CRITERIA}), callable, list, tuple],
        "splitter": [StrOptions({"auto", *SPLITTERS}), list, tuple],
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
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="left"), None],
        "threshold": [StrOptions(set(RULES)), dict, Interval(Real, 0.0, 1.0, closed="both"), None],
        "oob_score": ["boolean", StrOptions(set(get_scorer_names())), callable],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        criterion: str | Callable[..., Any] | list[Any] = "auto",
        splitter: str | list[str] = "auto",
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
        shrinkage: str | float | None = "auto",
        threshold: str | dict[str, Any] | float | None = None,
        oob_score: bool | str | Callable[..., float] = False,
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
        self.shrinkage = shrinkage
        self.threshold = threshold
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
            Non-negative; multiplies the counts of the bootstrap sample. Trees depend on the ratios of weights alone, so
            that constant weights have no effect (a criterion of your own is given the weights as they are). A row of
            weight 0 is as if absent.

        Returns
        -------
        self : AUCForestClassifier

        Raises
        ------
        ValueError
            For data that do not fit together, a single class, a parameter out of range, or a fit that would take more
            than half of the machine's memory; this is estimated before growing starts, and the size of all trees from
            the first ones. A fit that fails or is interrupted leaves the forest as it was.
        """
        start = self._start()
        with self._fitting():
            self._fit_rows(self._hold(X, y, sample_weight), start)
        return self

    def set_threshold(
        self,
        threshold: str | dict[str, Any] | float | None,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "AUCForestClassifier":
        """Change how `predict` turns probabilities into labels, without growing anew.

        Parameters
        ----------
        threshold
            As the parameter of the forest.
        X, y, sample_weight
            The training data, for a threshold that is tuned on out-of-bag probabilities.

        Returns
        -------
        self : AUCForestClassifier

        Raises
        ------
        ValueError
            For a rule that is none or does not fit the number of classes, or without the training data it needs.
        """
        check_is_fitted(self, "trees_")
        check_threshold(threshold, len(self.classes_))
        rows = None
        if is_tuned(threshold, len(self.classes_)):
            if X is None or y is None:
                raise ValueError(f"threshold={threshold!r} is tuned on out-of-bag rows: give X and y of the fit")
            rows = training_rows(self, X, y, sample_weight)
        self._set_threshold(threshold, rows, *self._sum_for(threshold, rows))
        self.threshold = threshold
        return self

    def _reverse_classes(self) -> None:
        """Exchange the two classes, and which of them is the positive one."""
        self.classes_, self.class_prior_ = self.classes_[::-1], self.class_prior_[::-1]
        self.trees_ = [replace(tree, frequencies=tree.frequencies[:, ::-1].copy()) for tree in self.trees_]
        if self.threshold_ is not None:
            # The other class is predicted above 1 - threshold rather than from there on.
            self.threshold_ = max(0.0, float(np.nextafter(1.0 - self.threshold_, 2.0)))
        if self._prior_correction is not None:
            self._prior_correction = self._prior_correction._replace(offsets=self._prior_correction.offsets[::-1])
        for name in ("_packed", "_members", "oob_decision_function_"):
            self.__dict__.pop(name, None)
        self._positive_first = not self._positive_first

    @property
    def estimators_(self) -> list[AUCTreeClassifier]:
        """The trees as classifiers of their own, made at the first access."""
        check_is_fitted(self, "trees_")
        if "_members" not in self.__dict__:
            names = set(AUCTreeClassifier().get_params()) - {"random_state", "class_weight"}
            params = {name: value for name, value in self.get_params(deep=False).items() if name in names}
            fitted = ("classes_", "n_features_in_", "feature_names_in_", "categories_")
            shared = {name: vars(self)[name] for name in fitted if name in vars(self)}
            criteria = self.criterion if isinstance(self.criterion, list | tuple) else [self.criterion]
            own = {criterion_name(criterion): criterion for criterion in criteria if callable(criterion)}
            members = []
            for tree, (criterion, splitter) in zip(self.trees_, self.variants_):
                # A function that is not there any more is not known by its name.
                known = None if criterion.endswith("()") else criterion
                params["criterion"], params["splitter"] = own.get(criterion, known), splitter
                members.append(AUCTreeClassifier(**params))
                members[-1].__dict__.update(shared, trees_=[tree])
            self._members = members
        return self._members

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
        return hstack(paths, format="csr"), self._pack_nodes().first.copy()
