"""A random forest as a scikit-learn classifier."""

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.metrics import get_scorer_names
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import Interval, StrOptions, fit_context
from aucforest.columns.target_rates import ENCODINGS
from aucforest.estimators._base import FRACTION, NUMBER, TREE_CONSTRAINTS
from aucforest.estimators._forest_files import FOREST_SECTION, TREES_SECTION
from aucforest.estimators._forest_fit import ForestFit
from aucforest.estimators._intervals import bounds_of
from aucforest.estimators._paths import path_indicator
from aucforest.estimators.threshold_rules import ROW_COSTS, RULES
from aucforest.estimators.tree import AUCTreeClassifier
from aucforest.fitting.bootstrap import HALVES, SCHEMES
from aucforest.fitting.spec import SPLITTERS, criterion_name, tree_keys
from aucforest.metrics.at_k import find_at_k
from aucforest.metrics.intervals import normal_quantile
from aucforest.tree.criteria.table import CRITERIA


class _ScorerNames(StrOptions):
    """Constraint for the names of scikit-learn's scorers and of metrics at k, such as "precision_at_0.01"."""

    def is_satisfied_by(self, value: Any) -> bool:
        return super().is_satisfied_by(value) or (isinstance(value, str) and find_at_k(value) is not None)


class AUCForestClassifier(ForestFit):
    """A random forest classifier for ranking.

    By default the forest mixes trees of several split criteria, with best and with random splits. Each pair of a
    criterion and a splitter is a variant. The forest grows more trees of the variants that most improve its out-of-bag
    ROC AUC. With ``criterion="auc"``, every split maximizes the ROC AUC of its two children.

    Parameters
    ----------
    n_estimators : int, default=300
        The number of trees in the forest.
    criterion : {"auto", "auc", "gini", "entropy", "log_loss", "hellinger"}, compiled function, or list, default="auto"
        The function that measures the quality of a split, or a list of several for a mixed forest. "auto" mixes
        "auc", "gini", "entropy" and "hellinger"; see Notes. "log_loss" is another name for "entropy". See
        `AUCTreeClassifier`.
    splitter : {"auto", "best", "random"} or list, default="auto"
        The strategy used to choose the split at each node: the best threshold of a feature or a random one. "auto"
        uses both if several criteria are mixed, and "best" otherwise. See `AUCTreeClassifier`.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        The number or the fraction of features to consider at each node; None considers all of them. Features that are
        constant in the node are not counted.
    max_depth : int or None, default=None
        The maximum depth of a tree.
    min_samples_split : int or float, default=2
        The minimum number of samples, or fraction of the training samples, required to split a node. A sample counts
        once, even if the bootstrap sample contains it several times.
    min_samples_leaf : int or float, default=1
        The minimum number of samples, or fraction of the training samples, required in a leaf.
    min_weight_fraction_leaf : float, default=0.0
        The minimum fraction of the total weight of a tree's samples required in a leaf.
    min_gain : float, default=0.0
        The minimum gain of a split, in units of the criterion. Needs a single criterion. See `AUCTreeClassifier`.
    max_leaf_nodes : int or None, default=None
        The maximum number of leaves of a tree. Such trees grow best-first.
    monotonic_cst : array-like of shape (n_features,), dict of feature names or None, default=None
        Monotonicity constraint of each feature: 1 for increasing, -1 for decreasing, 0 for none. See
        `AUCTreeClassifier`.
    bootstrap : bool, default=True
        Whether each tree is grown on a bootstrap sample. If False, it is grown on all samples.
    sampling : {"bootstrap", "stratified", "balanced", "subsample", "half-samples"} or dict, default="bootstrap"
        How the bootstrap sample of a tree is taken:

        - "bootstrap": with replacement from all samples.
        - "stratified": with replacement from each class, which keeps the class frequencies.
        - "balanced": with replacement from each class, as many samples as the rarest class has.
        - "subsample": without replacement, 63.2 % of the samples.
        - "half-samples": one of 25 random halves of the samples, without replacement. Needed by `predict_interval`.
          Requires at least 100 trees.
        - dict: with replacement, at a rate for each class label such as ``{"rare": 1.0, "common": 0.1}``, by default 1.
    max_samples : int, float or None, default=None
        The size of the bootstrap sample, as a number or as a fraction of the training samples. None uses the size that
        `sampling` defines. If classes are sampled separately, the size is divided among them, with at least one sample
        of each class. Not available if `sampling` is a dict.
    calibration : {"auto"} or None, default="auto"
        Whether to calibrate probabilities. "auto" maps the mean p_k over trees to p_k ** b * exp(a_k), normalized, with
        b and a_k fitted to out-of-bag samples (:doc:`details </mathematics/forests>`). They are not fitted if one of
        two classes has fewer than 10 samples, or with more than 362 classes (512 in a forest of one variant). Then
        probabilities are only divided by the rates r_k at which `sampling` samples classes. With two classes the
        ranking does not change. The effect of `class_weight` is not undone. None predicts the mean over trees.
    class_weight : dict, "balanced", "balanced_subsample" or None, default=None
        Weights of the classes, as in scikit-learn. The balanced modes use the total sample weight of each class.
    shrinkage : "auto", float or None, default="auto"
        The regularization strength lambda of hierarchical shrinkage [2]_: the prediction of a node is shrunk towards
        the predictions of its ancestors. It counts samples of mean weight, or of weight 1 if weights are integers and
        ``bootstrap=False``. "auto" uses 5, or 50 if some trees have the encoding "rates" or "interactions". Another
        value up to 1000 is used if it clearly improves the out-of-bag ROC AUC of the first 96 trees (300 for large data
        or several encodings). No other value is tried without out-of-bag samples, or if one of two classes has fewer
        than 10 samples. 0 or None turns shrinkage off.
    pos_label : int, float, bool, str or None, default=None
        The positive class of two, for `threshold` and `oob_score`. None stands for the second of ``classes_``.
        The trees, the probabilities and the order of ``classes_`` do not depend on it.
    threshold : None, "prevalence", "gmean", "youden", "f1", "cost", dict or float, default=None
        The rule by which `predict` turns probabilities into labels:

        - None: the class with the highest probability.
        - "prevalence": the class with the highest ratio of probability to training frequency [3]_. `class_weight`
          shifts the probabilities but not the frequencies.
        - float: the positive one of two classes if its probability is at least this value.
        - "gmean", "youden", "f1": for two classes, the threshold that maximizes this metric on the out-of-bag
          probabilities.
        - {"cost": matrix}: ``cost[i][j]`` is the cost of predicting class j if the true class is i. With two classes,
          the threshold with the lowest out-of-bag cost; with more, the class with the lowest expected cost. With two
          classes, an array of shape (n_samples, 2, 2) gives each training sample its own matrix. The threshold is still
          a single number, with the lowest total cost.
        - "cost": each training sample has its own matrix, as above. The array is the argument `cost` of `fit`, so that
          cross-validation can split it with the samples.
        - {"alerts": k}: the lowest threshold with at most k positive predictions out of bag. A float is a proportion of
          the training samples.
        - {"alerts": k, "cost": matrix}: of the thresholds with at most k positive predictions out of bag, the one with
          the lowest out-of-bag cost. The costs are as above, or "fit" for the argument `cost` of `fit`.
        - {"recall": r}: the highest threshold with a recall of at least r out of bag.
        - {"precision": p}, {"fpr": f}: the threshold with the highest recall out of bag where the precision is at least
          p, or the false positive rate at most f. If no threshold reaches the precision, the threshold with the highest
          precision is used, with a warning.

        Samples with the same probability get the same prediction, so with ties there may be fewer alerts than k. The
        threshold is infinity if no sample is predicted positive. Out-of-bag rules need ``bootstrap=True``.
    oob_score : bool, str or callable, default=False
        Whether to compute an out-of-bag score. True computes the ROC AUC, or Hand and Till's extension of it for more
        than two classes. A string is the name of a scikit-learn scorer, for which `pos_label` is the positive class, or
        "precision_at_K", "recall_at_K" or "lift_at_K", where K is a proportion such as 0.01 or a number such as 100. A
        callable ``scorer(estimator, X, y)`` gets categories in X as codes, and also ``sample_weight`` if there are
        weights. Needs ``bootstrap=True``.
    max_bins : int or None, default=255
        The maximum number of bins of a feature, 2 to 255. The date part "time" has at most 32 bins. None considers all
        distinct values.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, default="from_dtype"
        The categorical features, which are split natively. See `AUCTreeClassifier`.
    categorical_encoding : {"auto", "sets", "rates", "interactions"} or list, default="auto"
        The encoding of columns with more than 50 categories, and of columns of integers that are categories, such as
        numbers of customers. Integers are categories if samples with equal values, or with the same first digits, have
        more similar labels than samples with neighboring values. The first characters or digits of more than 50
        categories, such as postal codes, are a further feature if they predict labels better than the category alone.

        - "sets": splits divide the categories into two sets. Only the 254 most frequent categories are distinguished.
          Columns of integers are split by thresholds, too.
        - "rates": class frequencies of the category replace the column (target encoding), at most those of the six most
          frequent classes. Each tree puts the samples in a random order and computes the frequencies of a sample from
          the samples before it [4]_. Frequencies for an out-of-bag sample are computed from all other samples, and for
          new samples from all training samples.
        - "interactions": like "rates", and also class frequencies of pairs: a category, and an interval or category of
          another feature. These are used where a pair predicts the class better than both features separately.
        - list: several of these, of which each tree uses one.

        "auto" uses all three, and grows more trees of the encodings that most improve the out-of-bag ROC AUC. Columns
        of at most 50 categories are always split by sets. With "sets" alone, integers are never categories, and first
        characters or digits are no feature.
    date_parts : "auto", list of str or None, default="auto"
        The features computed from dates. See `AUCTreeClassifier`.
    warm_start : bool, default=False
        Whether `fit` reuses the trees of the previous call and adds more. The data should be the same. All trees must
        be sampled alike for `oob_score`, tuned thresholds, and calibration of separately sampled classes. Without
        these, sampling may change. If it does, shrinkage, mixture and calibration are not chosen again, with a warning
        unless `calibration` is None.
    n_jobs : int or None, default=None
        The number of threads for `fit` and prediction, as in scikit-learn. Results are bitwise identical for every
        value and backend.
    random_state : int, RandomState instance or None, default=None
        Controls the bootstrap and the sampling of features at each node.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    trees_ : list of Tree
        The fitted trees as arrays of nodes.
    estimators_ : list of AUCTreeClassifier
        The fitted trees as classifiers. ``forest[i]`` is ``forest.estimators_[i]``.
    estimators_samples_ : list of ndarray of shape (n_sampled,), int64
        The bootstrap sample of each tree: ascending indices among the training samples of positive weight, with
        repetitions. Not defined if `sampling` samples classes separately.
    variants_ : list of tuple of str
        The criterion and the splitter of each tree. A function f is shown as "f()".
    mixture_ : dict of ndarray of shape (n_variants,)
        The variants of a mixed forest, for example for ``pandas.DataFrame(forest.mixture_)``: "criterion", "splitter",
        "n_trees", "proportion" of the trees, "oob_score" (out-of-bag ROC AUC of the variant's trees among the first 96
        or 300) and "oob_score_std" (its standard error after Hanley and McNeil 1982, approximate for more than two
        classes). Scores are NaN without out-of-bag samples, and higher for variants of more trees.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    pos_label_ : label or None
        The label of the positive class; None for more than two classes.
    n_classes_, n_outputs_, n_features_in_ : int
        The numbers of classes, of targets (always 1), and of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features seen during `fit`. Defined only if X has feature names that are all strings.
    categories_ : dict of int to ndarray
        The categories of each categorical feature, by its index in ``split_features_``. This is the index of its
        column or, for integers that are categories and for first characters or digits, of an additional feature. The
        index of a category is its code in ``trees_``.
    expanded_ : dict of int to DateColumn, IntegerColumn or TextColumn
        The features computed from each column of dates, of integers that are categories, and of categories whose first
        characters or digits are a feature, by column index. ``parts`` are the features, ``zone`` is the time zone of
        the calendar or None, ``sizes`` are the widths of the ranges of integers, or the number of first characters of
        text. The first feature replaces the column, the others come after the last column.
    text_formats_ : dict of dict
        The format of numbers and dates in the text file that the forest was fitted to, by column name, such as
        ``{"decimal": ",", "unit": "kg"}`` or ``{"date": "%d.%m.%Y"}``. Other files are read in the same format. Defined
        only if `fit_out_of_core` or the command line read a file with a format other than that of Python.
    target_rates_ : TargetRates or None
        The target rates (class frequencies) that replace columns of many categories, see `categorical_encoding`.
        ``tables`` contains the class totals of the categories of each column, or of pairs of a category and a part of
        another feature. None if there are no such columns.
    encodings_ : list of str
        The encoding of each tree: "sets", "rates" or "interactions". Empty if ``target_rates_`` is None.
    encoding_mixture_ : dict of ndarray of shape (n_encodings,)
        As ``mixture_``, for the encodings, with the key "encoding". Defined only if trees have different encodings.
    split_features_ : ndarray of shape (n_split_features,)
        The names of the features that the trees split: the columns of X, with several features for some of them, such
        as "booked: day of week", "merchant: category", "zip: range of 100" or "zip: first 2 characters", and then the
        features of ``target_rates_``, such as "merchant: rate", "merchant x night: rate" or, for more than two classes,
        "merchant: rate of A".
    feature_importances_ : ndarray of shape (n_features,)
        The mean over trees of each column's proportion of the total gain of a tree, where the gain of a split is
        weighted by node weight, as in scikit-learn. All trees count equally, whatever the unit of their criterion. This
        impurity-based importance favors columns with many distinct values, even if they are noise: see
        `aucforest.inspection.oob_permutation_importance`.
    split_importances_ : ndarray of shape (n_split_features,)
        The importance of each of the ``split_features_``. ``feature_importances_`` has their sum for each column, where
        an interaction counts for its column of many categories.
    class_prior_ : ndarray of shape (n_classes,)
        The class frequencies, by sample weight, of the population that the probabilities refer to: the training data,
        or with ``calibration=None`` the bootstrap samples.
    prevalence_ : ndarray of shape (n_classes,)
        The class frequencies that were set by `set_prevalence`. Only defined after it.
    calibration_ : Calibration or None
        The fitted map of probabilities: ``slope``, ``intercepts`` of shape (n_classes,), ``slope_std`` (the standard
        error of the slope) and ``n_samples`` (the number of out-of-bag samples in the fit). A slope above 1 means that
        the mean over trees is under-confident.
    shrinkage_ : float
        The shrinkage that was used.
    dispersion_ : float
        The variance of the mean p over trees as a multiple of p (1 - p), for `predict_interval`. The mean varies like a
        proportion in ``1 / dispersion_`` samples. Only defined with ``sampling="half-samples"``.
    threshold_ : float, ndarray or None
        The fitted rule of `predict`: a probability of the class ``pos_label_``, the class frequencies for "prevalence"
        with more than two classes, a cost matrix, or None.
    threshold_std_ : float
        Standard deviation of a threshold that is tuned out of bag, estimated by resampling trees, on at most 65,536
        samples.
    oob_score_ : float
        The out-of-bag score (:doc:`details </howto/out_of_bag>`). The ROC AUC compares each pair of samples by the
        trees for which both are out of bag; the ROC AUC of ``oob_decision_function_`` would be too low.
        ``oob_optimism_`` is subtracted. NaN with a warning if one of two classes has a single sample. Other scores use
        ``oob_decision_function_`` and are slightly optimistic, because shrinkage and mixture are chosen on the same
        samples. If they score labels and the threshold is tuned, each tenth of the samples (or groups) is labelled by a
        threshold that is tuned on the other tenths.
    oob_optimism_ : float
        Estimate of how much choosing shrinkage and encodings raises the out-of-bag ROC AUC. It may be negative. Only
        defined if `oob_score` is the ROC AUC.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Out-of-bag probabilities. NaN for samples of weight 0 and for samples in the bootstrap samples of all trees.

    See Also
    --------
    AUCTreeClassifier : A single decision tree, which documents the criteria.

    Notes
    -----
    After four trees of each variant, each variant gets a weight, which is larger the more the out-of-bag ROC AUC of the
    forest would increase by more trees of the variant (:doc:`formulas </mathematics/forests>`). The next trees are
    divided in proportion to the weights, which are computed again after 96 trees. Small data sets thus get a mixture of
    all variants, and large ones mostly the variants that rank best. Without a bootstrap all variants have equally many
    trees. The variant of a tree does not depend on `n_jobs` or on where the data is stored. A forest with more trees
    starts with the trees of a smaller one.

    If a column has more than 50 categories, encodings get weights in the same way, and all weights are computed once
    more after 192 trees (:doc:`details </howto/many_categories>`). An encoding whose first weight is below 1 % is
    dropped, and its trees are replaced. A forest with too few trees for this keeps all encodings.

    References
    ----------
    .. [1] Breiman, L. (2001). Random forests. Machine Learning 45, 5-32.
    .. [2] Agarwal, A., Tan, Y. S., Ronen, O., Singh, C., Yu, B. (2022). Hierarchical shrinkage: improving the accuracy
       and interpretability of tree-based models. ICML.
    .. [3] O'Brien, R., Ishwaran, H. (2019). A random forests quantile classifier for class imbalanced data. Pattern
       Recognition 90, 232-249.
    .. [4] Prokhorenkova, L., Gusev, G., Vorobev, A., Dorogush, A. V., Gulin, A. (2018). CatBoost: unbiased boosting
       with categorical features. NeurIPS.

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
    >>> len(forest), forest[0].get_n_leaves() > 100
    (300, True)
    """

    _file_sections = (TREES_SECTION, FOREST_SECTION)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TREE_CONSTRAINTS,
        "criterion": [StrOptions({"auto", *CRITERIA}), callable, list, tuple],
        "splitter": [StrOptions({"auto", *SPLITTERS}), list, tuple],
        "n_estimators": [NUMBER],
        "bootstrap": ["boolean"],
        "sampling": [StrOptions(set(SCHEMES)), dict],
        "max_samples": [NUMBER, FRACTION, None],
        "calibration": [StrOptions({"auto"}), None],
        "class_weight": [dict, StrOptions({"balanced", "balanced_subsample"}), None],
        "shrinkage": [StrOptions({"auto"}), Interval(Real, 0.0, None, closed="left"), None],
        "pos_label": [Real, str, "boolean", None],
        "threshold": [StrOptions({*RULES, ROW_COSTS}), dict, Interval(Real, 0.0, 1.0, closed="both"), None],
        "categorical_encoding": [StrOptions({"auto", *ENCODINGS}), list, tuple],
        "oob_score": ["boolean", _ScorerNames(set(get_scorer_names())), callable],
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
        calibration: str | None = "auto",
        class_weight: dict[Any, float] | str | None = None,
        shrinkage: str | float | None = "auto",
        pos_label: Any = None,
        threshold: str | dict[str, Any] | float | None = None,
        oob_score: bool | str | Callable[..., float] = False,
        max_bins: int | None = 255,
        categorical_features: Any = "from_dtype",
        categorical_encoding: str | list[str] = "auto",
        date_parts: Any = "auto",
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
        self.calibration = calibration
        self.class_weight = class_weight
        self.shrinkage = shrinkage
        self.pos_label = pos_label
        self.threshold = threshold
        self.oob_score = oob_score
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.categorical_encoding = categorical_encoding
        self.date_parts = date_parts
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        cost: ArrayLike | None = None,
    ) -> "AUCForestClassifier":
        """Fit the forest to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training samples: an array, a pandas, polars or pyarrow table, or a scipy sparse matrix. If fewer than a
            tenth of the values of a sparse matrix are stored, only these are binned. NaN and masked values of a masked
            array are missing values. Infinite values are allowed. float32 is not copied to float64.
        y : array-like of shape (n_samples,)
            Class labels (bool, int or str) of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights; they multiply the counts of the bootstrap sample. Only ratios of weights
            matter, except for a custom criterion, which gets the weights as they are. Samples of weight 0 are ignored.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample, such as the customer. The bootstrap sample of a tree then contains whole groups
            (cluster bootstrap), and `max_samples` is a number or a fraction of the groups. Needs
            ``sampling="bootstrap"``, ``"subsample"`` or ``"half-samples"``. If a class has fewer than 10 groups, its
            out-of-bag probabilities are too low: `fit` warns, and does not use out-of-bag scores for any choice.
        cost : array-like of shape (n_samples, 2, 2), default=None
            The costs of errors of each sample, for ``threshold="cost"`` or ``{"alerts": k, "cost": "fit"}``. With
            ``set_fit_request(cost=True)`` cross-validation passes the costs of each fold.

        Returns
        -------
        self : AUCForestClassifier

        Raises
        ------
        ValueError
            If the data are inconsistent or have a single class or group, if a parameter is out of range or not
            available with groups, or if the fit would need more than half of the machine's memory. A fit that fails or
            is interrupted does not change the forest.
        """
        start = self._start()
        with self._fitting():
            self._fit_rows(self._validate_rows(X, y, sample_weight, groups, cost), start)
        return self

    @property
    def estimators_(self) -> list[AUCTreeClassifier]:
        """The fitted trees as classifiers, created at the first access."""
        check_is_fitted(self, "trees_")
        if "members" not in self._cache:
            names = AUCTreeClassifier().get_params().keys() - {"random_state", "class_weight"}
            params = {name: getattr(self, name) for name in names}
            fitted = ("classes_", "n_features_in_", "feature_names_in_", "categories_", "expanded_", "target_rates_")
            shared = {name: vars(self)[name] for name in fitted if name in vars(self)}
            criteria = self.criterion if isinstance(self.criterion, list | tuple) else [self.criterion]
            functions = {criterion_name(criterion): criterion for criterion in criteria if callable(criterion)}
            members = []
            for tree, (criterion, splitter) in zip(self.trees_, self.variants_):
                # A name like "f()" stands for a function, which is unknown if the forest was loaded from a file.
                named = None if criterion.endswith("()") else criterion
                params["criterion"], params["splitter"] = functions.get(criterion, named), splitter
                members.append(AUCTreeClassifier(**params))
                members[-1].__dict__.update(shared, trees_=[tree])
            self._cache["members"] = members
        return self._cache["members"]

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The bootstrap sample of each tree, drawn again at each access. All trees must be sampled alike."""
        check_is_fitted(self, "trees_")
        record, *other_records = self._sample_records
        if other_records or len(record.sizes) > 1:
            sampling = ", ".join(map(str, self._sample_records))
            needed = "estimators_samples_ needs the same sampling of all classes and trees"
            raise AttributeError(f"{needed}, but these were grown on {sampling}")
        rows = np.arange(record.n_rows)
        if not record.sizes:
            return [rows] * len(self.trees_)
        sampler = record.to_sampler(self._groups, self._seed)
        return [np.repeat(rows, sampler.counts(key)) for key in tree_keys(self._seed, range(len(self.trees_)))]

    def predict_interval(self, X: ArrayLike, level: float = 0.95) -> NDArray[np.float64]:
        """Return confidence intervals of predicted class probabilities.

        They show how much a probability would vary with other training samples and another `random_state`, not how far
        it is from the true probability. The variance of the mean p over trees is estimated from the variance between
        half-samples ([1]_, [2]_). Its ratio to p (1 - p), ``dispersion_``, is assumed equal for all samples, because
        300 trees give a noisy estimate for one sample. The variance of the calibrated p follows by the delta method,
        and the interval is Wilson's.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        level : float, default=0.95
            The confidence level.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_classes, 2), float64
            The lower and upper bound of the probability of ``pos_label_``, or of each class if there are more than two.

        Raises
        ------
        ValueError
            If not all trees were grown with ``sampling="half-samples"``.

        References
        ----------
        .. [1] Sexton, J., Laake, P. (2009). Standard errors for bagged and random forest estimators. Computational
           Statistics and Data Analysis 53, 801-811.
        .. [2] Athey, S., Tibshirani, J., Wager, S. (2019). Generalized random forests. Annals of Statistics 47,
           1148-1178.

        Examples
        --------
        >>> from aucforest import AUCForestClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> forest = AUCForestClassifier(sampling="half-samples", random_state=0).fit(X[:1000], rings[:1000] >= 12)
        >>> forest.predict_interval(X[1000:1002]).round(2)
        array([[0.13, 0.45],
               [0.19, 0.53]])
        """
        check_is_fitted(self, "trees_")
        quantile = normal_quantile(level)
        if not hasattr(self, "dispersion_"):
            grown = f"these were grown on {', '.join(map(str, self._sample_records))}"
            how = f"fit the forest with sampling={HALVES!r}"
            raise ValueError(f"predict_interval needs trees that share half-samples, but {grown}: {how}")
        mean = self._sum_of_trees(self._features_of(X)) / len(self.trees_)
        proba, slope = mean, 1.0
        if self.calibration_ is not None:
            proba, slope = self.calibration_.apply(mean, self.n_jobs), self.calibration_.slope
        bounds = bounds_of(mean, proba, slope, self.dispersion_, quantile)
        return bounds if len(self.classes_) > 2 else bounds[:, self._positive]

    def __len__(self) -> int:
        """Return the number of trees."""
        check_is_fitted(self, "trees_")
        return len(self.trees_)

    def __getitem__(self, index: int | slice) -> Any:
        """Return the tree at an index as a classifier, or the trees of a slice as a list of classifiers."""
        return self.estimators_[index]

    def __iter__(self) -> Iterator[AUCTreeClassifier]:
        """Iterate over the trees as classifiers."""
        return iter(self.estimators_)

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the leaf of each sample in each tree, as its index among the nodes of the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_estimators), int64
        """
        return self._find_leaves(X)

    def decision_path(self, X: ArrayLike) -> tuple[csr_matrix, NDArray[np.int64]]:
        """Return the decision path of each sample in the forest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        indicator : csr_matrix of shape (n_samples, n_nodes), int64
            1 where the sample passes through the node; the trees are side by side.
        n_nodes_ptr : ndarray of shape (n_estimators + 1,), int64
            ``indicator[:, n_nodes_ptr[i] : n_nodes_ptr[i + 1]]`` belongs to tree i.
        """
        leaves = self._find_leaves(X)
        paths = [path_indicator(tree, leaves[:, i]) for i, tree in enumerate(self.trees_)]
        return hstack(paths, format="csr"), self._pack_nodes().first.copy()
