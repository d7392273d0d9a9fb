"""A stack of a forest, a forest of its residuals and a linear model, combined by out-of-bag scores."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import Tags, _safe_indexing, check_random_state, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, has_fit_parameter

from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._calibration import LEAST, effective_counts, n_of_rarer
from aucforest.estimators._combination import Combination, combine, log_proba, residual_score
from aucforest.estimators._model_files import Model
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.out_of_bag import OutOfBagScorer
from aucforest.estimators.thresholds import (
    TunedRule,
    check_groups_of_rule,
    cross_fit_labels,
    fixed_threshold,
    is_of_positive,
    is_tuned,
    resolve_threshold,
    warn_of_positive,
)
from aucforest.fitting.out_of_bag import parts_of_rows, warn_of_seen
from aucforest.fitting.spec import weights_by_class
from aucforest.fitting.target import FewGroups, check_groups, find_few_groups, number_groups
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import class_codes, unmask
from aucforest.tables.columns import decode_labels
from aucforest.tables.sparse import SparseRows

# The penalty is multiplied by 1 + _FEW / n for about n samples of the rarer class. Both constants were chosen on the
# data sets of benchmarks/ranking.py whose names begin with a to q, and on synthetic ones.
_FEW = 300.0
# Number of folds for the scores of the linear model, which divides fitting.out_of_bag.N_PARTS.
_N_FOLDS = 5


class _Training(NamedTuple):
    """The training data, as they were given and as numbers."""

    X: Any
    y: Any
    labels: NDArray[np.uint16]  # the numbers of the classes
    weights: NDArray[np.float64]  # class weights included
    sample_weight: NDArray[np.float64] | None
    groups: NDArray[np.int64] | None  # -1 for rows of weight 0

    def few_groups(self, classes: NDArray[Any], rows: NDArray[np.bool_]) -> FewGroups | None:
        """Return the class with the fewest groups in some rows if these are too few for evidence out of bag."""
        return find_few_groups(classes, self.labels[rows], None if self.groups is None else self.groups[rows])


@contextmanager
def _no_warning_of_seen() -> Iterator[None]:
    """Ignore warnings of samples that are not out of bag in one of the forests, as the stack has its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* samples are not out of bag ", UserWarning)
        yield


class AUCStackingClassifier(Model):
    """A forest, a forest of its residuals and an additive model, combined by their out-of-bag scores.

    A forest ranks less well where the classes depend on a sum of effects, and where there are many samples with little
    noise. The additive model repairs the first and the residual forest [1]_ the second. Both get a weight only as far
    as the training samples that they have not seen show that they help; otherwise the stack is the forest.

    Parameters
    ----------
    forest : AUCForestClassifier or None, default=None
        The forest, which is cloned. None is a forest with default parameters. Needs ``bootstrap=True``.
    linear : "auto", classifier or None, default="auto"
        The additive model. "auto" is a logistic regression on scaled numbers, their linear splines with knots at the
        quartiles, indicators of missing values, and the categories of at least 10 samples. It is left out if the forest
        has monotonicity constraints. A scikit-learn classifier or pipeline with `predict_proba` is cloned and gets X as
        it is. None leaves it out.
    residual : bool, default=True
        Whether to fit a second forest with the same parameters, in which a sample has the weight 1 - p, where p is the
        out-of-bag probability of its class.
    penalty : float, default=1.0
        The penalty of the weights b of the members is ``penalty * (1 + 300 / n)`` times the squared distance from the
        forest alone, (1, 0, 0), where n is about the number of samples of the rarer class.
    threshold : None, str, dict or float, default=None
        The rule by which `predict` turns probabilities into labels. See `AUCForestClassifier`.
    oob_score : bool, str or callable, default=False
        Whether to compute an out-of-bag score. See `AUCForestClassifier`.
    n_jobs : int or None, default=None
        The number of threads, for the forests. None leaves it to the parameter of `forest`.
    random_state : int, RandomState instance or None, default=None
        Controls the forests, unless `forest` has a `random_state`.

    Attributes
    ----------
    members_ : dict of str to classifier
        The fitted members: "forest", "residual" and "linear", without those that are left out.
    coef_ : ndarray of shape (n_members,), float64
        The weight of each member. A weight of 0 says that it does not help.
    intercept_ : ndarray of shape (n_classes,), float64
        The intercepts of the classes; only their differences matter.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features seen during `fit`. Defined only if X has feature names that are all strings.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies of the training data, by sample weight.
    threshold_ : float, ndarray or None
        The fitted rule of `predict`. See `AUCForestClassifier`.
    oob_score_ : float
        The out-of-bag score. See `AUCForestClassifier`.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the training samples by forests that have not seen them, and by an additive model that was
        fitted to other folds. NaN for samples of weight 0 and samples that every tree of a forest was grown on.

    See Also
    --------
    AUCForestClassifier : The forest alone, which is simpler to explain.

    Notes
    -----
    Class k has the score ``sum_m b_m s_mk + a_k``, and the probabilities are the softmax of the scores. The s_mk are
    the logarithms of the probabilities of the forest and of the linear model, and log q_k - log(p_k (1 - p_k)) for the
    residual forest with probabilities q. With two classes these are log odds. The weights b and the intercepts a
    minimize the log loss of the samples out of bag with the penalty; b is not negative.

    With fewer than 10 groups of a class there is no evidence, and the stack is the forest.

    References
    ----------
    .. [1] Ghosal, I., Hooker, G. (2021). Boosting random forests to reduce bias; one-step boosted forest and its
       variance estimate. Journal of Computational and Graphical Statistics 30, 493-502.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, AUCStackingClassifier
    >>> from aucforest.datasets import load_abalone
    >>> X, rings = load_abalone(return_X_y=True)
    >>> stack = AUCStackingClassifier(AUCForestClassifier(100), oob_score=True, random_state=0).fit(X, rings >= 18)
    >>> list(stack.members_), len(stack.coef_)
    (['forest', 'residual', 'linear'], 3)
    >>> bool(stack.oob_score_ > 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "forest": [AUCForestClassifier, None],
        "linear": [StrOptions({"auto"}), HasMethods(["fit", "predict_proba"]), None],
        "residual": ["boolean"],
        "penalty": [Interval(Real, 0.0, None, closed="left")],
        "threshold": AUCForestClassifier._parameter_constraints["threshold"],
        "oob_score": AUCForestClassifier._parameter_constraints["oob_score"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        forest: AUCForestClassifier | None = None,
        *,
        linear: Any = "auto",
        residual: bool = True,
        penalty: float = 1.0,
        threshold: Any = None,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.linear = linear
        self.residual = residual
        self.penalty = penalty
        self.threshold = threshold
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        cost: Any = None,
    ) -> "AUCStackingClassifier":
        """Fit the members and their combination to training data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training samples, as for `AUCForestClassifier`.
        y : array-like of shape (n_samples,)
            Class labels (bool, int or str) of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative sample weights.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample. Bootstrap samples and folds hold whole groups.
        cost : array-like of shape (n_samples, 2, 2), default=None
            The costs of errors of each sample, for ``threshold="cost"``.

        Returns
        -------
        self : AUCStackingClassifier

        Raises
        ------
        ValueError
            As for `AUCForestClassifier`, and if the forest has no out-of-bag samples or a warm start.
        TypeError
            If the forest is not an AUCForestClassifier that is fitted in memory.
        """
        with self._fitting():
            with _no_warning_of_seen():
                forest = self._make_forest().fit(X, y, sample_weight, groups)
            for name in ("classes_", "n_features_in_", "feature_names_in_", "class_prior_"):
                if hasattr(forest, name):
                    setattr(self, name, getattr(forest, name))
            self.members_: dict[str, Any] = {"forest": forest}
            training = self._number(X, y, sample_weight, groups)
            rule = resolve_threshold(self.threshold, cost, len(self.classes_), len(training.labels))
            with _no_warning_of_seen():
                self.oob_decision_function_ = self._combine(training)
            n_kept, seen = int(np.count_nonzero(training.weights)), np.isfinite(self.oob_decision_function_[:, 0])
            what = "out-of-bag probability and are ignored in oob_score_ and in the combination"
            warn_of_seen(n_kept - int(np.count_nonzero(seen)), n_kept, forest.n_estimators, what, stacklevel=4)
            self._set_threshold(rule, training)
            if self.oob_score:
                self._score_out_of_bag(rule, training)
        return self

    def _make_forest(self) -> AUCForestClassifier:
        """Return the forest to fit; raise an error if it cannot be a member."""
        forest = AUCForestClassifier() if self.forest is None else self.forest
        if type(forest) is not AUCForestClassifier:
            name = type(forest).__name__
            raise TypeError(f"forest must be an AUCForestClassifier, which is fitted in memory, but is a {name}")
        if not forest.bootstrap or forest.warm_start:
            name, value = ("warm_start", True) if forest.warm_start else ("bootstrap", False)
            raise ValueError(f"forest: {name}={value} is not available in a stack: set {name}={not value}")
        forest = clone(forest).set_params(threshold=None, oob_score=True)
        if self.n_jobs is not None:
            forest.set_params(n_jobs=self.n_jobs)
        if forest.random_state is None:
            random = check_random_state(self.random_state)
            forest.set_params(random_state=int(random.randint(np.iinfo(np.int32).max)))
        return forest

    def _number(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> _Training:
        """Return the training data, which the forest has validated, with numbers of classes and groups."""
        y = column_or_1d(decode_labels(y))
        labels = class_codes(y, len(y), labels=self.classes_)[0].astype(np.uint16)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(unmask(sample_weight), X, dtype=np.float64)
        weights = np.ones(len(labels)) if sample_weight is None else sample_weight
        given = self.members_["forest"].class_weight
        # In the samples of trees and in all samples alike, all classes have the same weight.
        given = "balanced" if given == "balanced_subsample" else given
        by_class = weights_by_class(given, self.classes_, labels, sample_weight)
        weights = weights if by_class is None else weights * by_class[labels]
        if groups is not None:
            groups, kept = check_groups(groups, len(labels)), weights > 0.0
            numbers = np.full(len(labels), -1, dtype=np.int64)
            numbers[kept] = number_groups(groups[kept])
            groups = numbers
        return _Training(X, y, labels, weights, sample_weight, groups)

    def _combine(self, training: _Training) -> NDArray[np.float64]:
        """Fit the other members and the combination, and return probabilities out of bag, NaN where there are none."""
        n_classes, forest = len(self.classes_), self.members_["forest"]
        proba: NDArray[np.float64] = forest.oob_decision_function_
        self.coef_, self.intercept_ = Combination.first_alone(1, n_classes)
        is_seen = np.isfinite(proba[:, 0])
        few = training.few_groups(self.classes_, is_seen)
        if few is not None or np.bincount(training.labels[is_seen], minlength=n_classes).min() < 2:
            return proba
        scores = [log_proba(proba)]
        if self.residual:
            scores.append(residual_score(self._fit_residual(training), proba))
        # The sum of a monotonic forest and another model is not monotonic.
        if self.linear is not None and not (self.linear == "auto" and forest.monotonic_cst is not None):
            scores.append(log_proba(self._fit_linear(training)))
        is_seen = np.all([np.isfinite(score[:, 0]) for score in scores], axis=0)
        scores, labels = [score[is_seen] for score in scores], training.labels[is_seen]
        weights = training.weights[is_seen] / training.weights[is_seen].mean()
        groups = None if training.groups is None else training.groups[is_seen]
        n_rarer = n_of_rarer(effective_counts(labels, weights, groups))
        combination = combine(scores, labels, weights, self.penalty * (1.0 + _FEW / n_rarer))
        self.coef_, self.intercept_ = combination
        combined = np.full_like(proba, np.nan)
        combined[is_seen] = combination.apply(scores)
        return combined

    def _fit_residual(self, training: _Training) -> NDArray[np.float64]:
        """Fit the forest of residuals, and return its probabilities out of bag."""
        forest = self.members_["forest"]
        of_label = forest.oob_decision_function_[np.arange(len(training.labels)), training.labels]
        weights = training.weights * np.maximum(1.0 - np.nan_to_num(of_label, nan=1.0), LEAST)
        params = {"class_weight": None, "calibration": None, "random_state": forest._seed % 2**32}
        residual = clone(forest).set_params(**params).fit(training.X, training.y, weights, training.groups)
        self.members_["residual"] = residual
        proba: NDArray[np.float64] = residual.__dict__.pop("oob_decision_function_")
        return proba

    def _fit_linear(self, training: _Training) -> NDArray[np.float64]:
        """Fit the additive model, and return the probabilities of each row by a model of the other folds."""
        forest, labels = self.members_["forest"], training.labels.astype(np.int64)
        X, linear = training.X, self.linear
        if linear == "auto":
            X, linear = self._matrix(X), AdditiveClassifier(tuple(forest.categories_))
        kept = np.flatnonzero(training.weights)
        is_weighted = np.ptp(training.weights[kept]) > 0.0
        if is_weighted and not has_fit_parameter(linear, "sample_weight"):
            raise ValueError(f"linear: {type(linear).__name__}.fit takes no sample_weight, which the samples have")

        def fit(rows: NDArray[np.int64]) -> Any:
            weight = {"sample_weight": training.weights[rows]} if is_weighted else {}
            return clone(linear).fit(_safe_indexing(X, rows), labels[rows], **weight)

        self.members_["linear"] = fit(kept)
        fold = parts_of_rows(labels[kept], None if training.groups is None else training.groups[kept]) % _N_FOLDS
        proba = np.full((len(labels), len(self.classes_)), np.nan)
        for k in np.unique(fold):
            rows = kept[fold == k]
            proba[rows] = self._predict_linear(fit(kept[fold != k]), _safe_indexing(X, rows))
        return proba

    def _matrix(self, X: Any) -> Any:
        """Return X as the features of the forest: numbers and codes of categories, dense or sparse."""
        valid = self.members_["forest"]._validate_X(X, reset=False)
        return valid.matrix if isinstance(valid, SparseRows) else valid

    def _predict_linear(self, linear: Any, X: Any) -> NDArray[np.float64]:
        """Return probabilities of all classes; those of classes that a fold does not have are 0."""
        proba = np.zeros((len(self.classes_), _num_samples(X)))
        proba[linear.classes_] = linear.predict_proba(X).T
        return proba.T

    def _scores(self, X: Any) -> list[NDArray[np.float64] | None]:
        """Return the scores of the members, None for those of weight 0 except the forest."""
        forest = self.members_["forest"]
        proba = forest.predict_proba(X)
        scores: list[NDArray[np.float64] | None] = []
        for (name, member), weight in zip(self.members_.items(), self.coef_):
            if name == "forest":
                scores.append(log_proba(proba))
            elif weight == 0.0:
                scores.append(None)
            elif name == "residual":
                scores.append(residual_score(member.predict_proba(X), proba))
            else:
                matrix = self._matrix(X) if self.linear == "auto" else X
                scores.append(log_proba(self._predict_linear(member, matrix)))
        return scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The input samples, as for `AUCForestClassifier`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            The classes are in the order of ``classes_``.
        """
        check_is_fitted(self, "members_")
        return Combination(self.coef_, self.intercept_).apply(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels: the most probable class, or the one that the `threshold` rule selects.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        proba = self.predict_proba(X)
        return self.classes_[decide(proba, self.threshold_)]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class log-probabilities, -inf for a probability of 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _set_threshold(self, rule: Any, training: _Training) -> None:
        """Set the decision threshold, tuned out of bag if the rule is."""
        proba = self.oob_decision_function_
        is_seen = np.isfinite(proba[:, 0])
        if not is_tuned(rule, len(self.classes_)):
            self.threshold_ = fixed_threshold(rule, self.class_prior_)
            return
        few = training.few_groups(self.classes_, is_seen)
        if few is not None:
            check_groups_of_rule(rule, len(self.classes_), few)
        if is_of_positive(rule):
            warn_of_positive(f"threshold={rule!r}", self.classes_, self.class_prior_)
        self.threshold_ = TunedRule(rule, training.labels, training.sample_weight).best(proba[is_seen, 1], is_seen)
        if np.isnan(self.threshold_):
            raise ValueError(f"threshold={rule!r} needs out-of-bag samples of both classes: increase n_estimators")

    def _score_out_of_bag(self, rule: Any, training: _Training) -> None:
        """Set the out-of-bag score, by labels of thresholds that were not tuned on the row."""
        proba, label = self.oob_decision_function_, None
        seen = np.flatnonzero(np.isfinite(proba[:, 0]))
        if is_tuned(rule, len(self.classes_)):
            groups = None if training.groups is None else training.groups[seen]
            label = partial(cross_fit_labels, TunedRule(rule, training.labels, training.sample_weight), seen, groups)
        scoring = "roc_auc" if isinstance(self.oob_score, bool | np.bool_) else self.oob_score
        scorer = OutOfBagScorer(self, scoring, parameter="oob_score", label=label)
        X = _safe_indexing(training.X, seen) if callable(self.oob_score) else None
        weight = None if training.sample_weight is None else training.sample_weight[seen]
        self.oob_score_ = scorer.score(X, training.labels[seen], proba[seen], weight)
