"""The stack as a scikit-learn classifier: a forest and other members, combined by their out-of-bag scores."""

from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import HasMethods, Interval, StrOptions, fit_context
from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._combination import MIN_STACK_PROBA, Combination
from aucforest.estimators._stack_files import STACK_SECTION
from aucforest.estimators._stack_fit import StackFit
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.exports.onnx import ExportedStack


class AUCStackingClassifier(StackFit):
    """A forest, one fitted to its residuals, boosted trees and an additive model, combined by out-of-bag scores.

    A forest ranks less well if the classes depend on a sum of effects, or if there are many samples with little noise.
    The additive model helps in the first case, the residual forest [1]_ and boosted trees in the second. The weight of
    each member is chosen on samples that it was not fitted to. If none helps, the stack equals the forest.

    Parameters
    ----------
    forest : AUCForestClassifier or None, default=None
        The forest, which is cloned. None is a forest with default parameters. Needs ``bootstrap=True``. Its
        `pos_label`, `threshold` and `oob_score` are not used, because the stack has its own.
    linear : "auto", classifier or None, default="auto"
        The additive model. "auto" is a logistic regression on scaled numbers, their linear splines with knots at the
        quartiles, indicators of missing values, and all categories, with a ridge penalty for each categorical column.
        A column of more than 50 categories has interactions with other features if these lower the log loss of
        left-out folds, unless the forest's `categorical_encoding` excludes interactions. With monotonicity constraints
        "auto" means None, no additive model. A scikit-learn classifier or pipeline with `predict_proba` is cloned, and
        gets X as given (sparse as CSR).
    residual : bool, default=True
        Whether to fit a second forest with the same parameters, in which a sample has the weight 1 - p, where p is the
        out-of-bag probability of its class.
    boosted : bool, default=True
        Whether to fit gradient boosted trees [2]_ [3]_: for each of five folds, a series of trees is fitted to the
        other folds. It has up to 600 trees, or up to 2,400 with more than two classes. Their number minimizes the log
        loss of the left-out folds. There are no boosted trees for fewer than 500 samples, more than 50 classes,
        monotonicity constraints or a sparse X.
    penalty : float, default=1.0
        The penalty on the weights b of the members is ``penalty * (1 + 600 / n)`` times the squared distance of b from
        (1, 0, 0, 0), the forest alone. Here n is about the number of samples of the rarer class.
    pos_label : int, float, bool, str or None, default=None
        The label of the positive class if there are two classes. See `AUCForestClassifier`.
    threshold : None, str, dict or float, default=None
        The rule by which `predict` turns probabilities into labels. See `AUCForestClassifier`.
    oob_score : bool, str or callable, default=False
        Whether to compute an out-of-bag score. See `AUCForestClassifier`.
    n_jobs : int or None, default=None
        The number of threads of the forests, and of the boosted trees, which use five at most. None uses the `n_jobs`
        of `forest`.
    random_state : int, RandomState instance or None, default=None
        The seed of the forests and boosted trees, unless `forest` has a `random_state`.

    Attributes
    ----------
    members_ : dict of str to classifier
        The fitted members: "forest", "residual", "boosted" and "linear", without members that are left out. A model
        that `refresh` returned can also have the member "old".
    weights_ : ndarray of shape (n_members,), float64
        The weight of each member. A weight of 0 means that the member does not help.
    intercepts_ : ndarray of shape (n_classes,), float64
        The intercepts of the classes; only their differences matter.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies of the training data, by sample weight.
    prevalence_ : ndarray of shape (n_classes,)
        The class frequencies that were set by `set_prevalence`; probabilities refer to them. Only defined after it.
    classes_, pos_label_, n_features_in_, feature_names_in_, categories_, expanded_, text_formats_, target_rates_, \
    split_features_, threshold_, oob_score_
        As in `AUCForestClassifier`. The out-of-bag ROC AUC is corrected by as much as that of the forest.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the training samples, combined from out-of-bag probabilities of the forests and out-of-fold
        scores of the others. NaN for samples of weight 0 or without an out-of-bag probability.

    See Also
    --------
    AUCForestClassifier : The forest alone, which is simpler to explain.

    Notes
    -----
    The probabilities are the softmax of the scores ``sum_m b_m s_mk + a_k`` of the classes k. The scores s_mk of the
    forest and of the linear model are the logarithms of their probabilities. For the residual forest with probabilities
    q they are log q_k - log(p_k (1 - p_k)), where p are the probabilities of the forest. For boosted trees they are the
    sum of the leaf values of a series: for a new sample the mean over all series, for a training sample the sum of the
    series that was fitted without it. The weights b >= 0 and the intercepts a minimize the log loss of the out-of-bag
    and out-of-fold scores plus the penalty. The intercepts have no penalty, so the mean of the out-of-bag probabilities
    of a class is its frequency.

    ``members_["boosted"]`` is a forest of the trees of all series. Its `predict_proba` does not return class
    probabilities, but scores with another scale and another mean.

    The stack is the forest alone if a class has fewer than 10 groups, if one of two classes has fewer than 10 samples,
    or if a class has fewer than two out-of-bag samples. For the penalty, n is smaller with groups or unequal weights
    (the effective sample size of Kish).

    References
    ----------
    .. [1] Ghosal, I., Hooker, G. (2021). Boosting random forests to reduce bias; one-step boosted forest and its
       variance estimate. Journal of Computational and Graphical Statistics 30, 493-502.
    .. [2] Friedman, J. H. (2001). Greedy function approximation: a gradient boosting machine. Annals of Statistics 29,
       1189-1232.
    .. [3] Friedman, J., Hastie, T., Tibshirani, R. (2000). Additive logistic regression: a statistical view of
       boosting. Annals of Statistics 28, 337-407.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, AUCStackingClassifier
    >>> from aucforest.datasets import load_abalone
    >>> X, rings = load_abalone(return_X_y=True)
    >>> stack = AUCStackingClassifier(AUCForestClassifier(100), oob_score=True, random_state=0).fit(X, rings >= 18)
    >>> list(stack.members_), len(stack.weights_)
    (['forest', 'residual', 'boosted', 'linear'], 4)
    >>> bool(stack.oob_score_ > 0.85)
    True
    """

    _file_sections = (STACK_SECTION,)
    _nested: ClassVar[dict[str, str]] = {"forest": "AUCForestClassifier"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "forest": [AUCForestClassifier, None],
        "linear": [StrOptions({"auto"}), HasMethods(["fit", "predict_proba"]), None],
        "residual": ["boolean"],
        "boosted": ["boolean"],
        "penalty": [Interval(Real, 0.0, None, closed="left")],
        **{name: AUCForestClassifier._parameter_constraints[name] for name in ("pos_label", "threshold", "oob_score")},
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        forest: AUCForestClassifier | None = None,
        *,
        linear: Any = "auto",
        residual: bool = True,
        boosted: bool = True,
        penalty: float = 1.0,
        pos_label: Any = None,
        threshold: Any = None,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.linear = linear
        self.residual = residual
        self.boosted = boosted
        self.penalty = penalty
        self.pos_label = pos_label
        self.threshold = threshold
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``n_jobs`` is also set for the fitted members.

        Parameters
        ----------
        **params : dict
            Parameters by name; a parameter of the forest has a name such as ``forest__max_depth``.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If there is no such parameter, or if a parameter of the forest is given and ``forest`` is None.
        """
        nested = [name for name in params if name.startswith("forest__")]
        if nested and params.get("forest", self.forest) is None:
            raise ValueError(f"{nested[0]} cannot be set, as forest is None: set forest=AUCForestClassifier() first")
        super().set_params(**params)
        if hasattr(self, "members_") and not params.keys().isdisjoint({"n_jobs", "forest__n_jobs"}):
            n_jobs = self.n_jobs if self.n_jobs is not None or self.forest is None else self.forest.n_jobs
            self.members_ = {
                name: member if name == "linear" else copy(member).set_params(n_jobs=n_jobs)
                for name, member in self.members_.items()
            }
        return self

    @fit_context(prefer_skip_nested_validation=False)
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
        X, y, sample_weight, groups, cost
            As in `AUCForestClassifier.fit`. Folds contain whole groups, like the bootstrap samples.

        Returns
        -------
        self : AUCStackingClassifier

        Raises
        ------
        ValueError
            As in `AUCForestClassifier.fit`, or if the forest has ``bootstrap=False`` or ``warm_start=True``, or if
            `linear` does not predict probabilities. A classifier as `linear` is fitted first, so it fails early.
        TypeError
            If `forest` is of another Python class, such as `DaskAUCForestClassifier`.
        """
        with self._fitting():
            self._fit_members(X, y, sample_weight, groups, cost)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The input samples, as for `AUCForestClassifier`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            The columns are in the order of ``classes_``.
        """
        check_is_fitted(self, "members_")
        return self._predict_valid(self._features_of(X), X)

    def _predict_valid(self, valid: Any, X: Any = None) -> NDArray[np.float64]:
        """Return class probabilities for the result of `_features_of`; X is only needed if `_reads_table`."""
        return Combination(self.weights_, self.intercepts_).apply(self._scores(X, valid))

    @property
    def _forest(self) -> AUCForestClassifier:
        check_is_fitted(self, "members_")
        return self.members_["forest"]

    @property
    def _onnx_model(self) -> ExportedStack:
        linear, weights = self.members_.get("linear"), dict(zip(self.members_, self.weights_.tolist()))
        if "old" in weights:
            raise TypeError("a refreshed model that keeps an old one cannot be exported to ONNX: fit a new model")
        if not isinstance(linear, AdditiveClassifier | None) and weights["linear"] > 0.0:
            raise TypeError(f'linear: a {type(linear).__name__} cannot be exported to ONNX: use linear="auto"')
        ensembles = {name: member._onnx_model for name, member in self.members_.items() if name != "linear"}
        if "boosted" in ensembles:
            ensembles["boosted"] = ensembles["boosted"]._replace(scale=self._boosted_scale)
        return ExportedStack(ensembles, linear, weights, self.intercepts_, MIN_STACK_PROBA)
