"""A stack of a forest, a forest of its residuals and a linear model, combined by out-of-bag scores."""

import os
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import HasMethods, Interval, StrOptions, fit_context
from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._combination import SMALLEST, Combination
from aucforest.estimators._stack_files import STACK_PART
from aucforest.estimators._stack_fit import StackFit
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.exports.onnx_stack import Stack, write_stack
from aucforest.metrics.validation import positive_last


class AUCStackingClassifier(StackFit):
    """A forest, a forest of its residuals and an additive model, combined by their out-of-bag scores.

    A forest ranks less well where the classes depend on a sum of effects, and where there are many samples with little
    noise. The additive model repairs the first and the residual forest [1]_ the second. Both get a weight only as far
    as the training samples that they have not seen show that they help; otherwise the stack is the forest.

    Parameters
    ----------
    forest : AUCForestClassifier or None, default=None
        The forest, which is cloned. None is a forest with default parameters. Needs ``bootstrap=True``. Its
        `pos_label`, `threshold` and `oob_score` are not used, because the stack has its own.
    linear : "auto", classifier or None, default="auto"
        The additive model. "auto" is a logistic regression on scaled numbers, their linear splines with knots at the
        quartiles, indicators of missing values, and all categories, with a ridge penalty for each categorical column
        that the fit chooses. It is left out if the forest has monotonicity constraints. A scikit-learn classifier or
        pipeline with `predict_proba` is cloned and gets X as it is, sparse rows as CSR. None leaves it out.
    residual : bool, default=True
        Whether to fit a second forest with the same parameters, in which a sample has the weight 1 - p, where p is the
        out-of-bag probability of its class.
    penalty : float, default=1.0
        The penalty of the weights b of the members is ``penalty * (1 + 600 / n)`` times the squared distance from the
        forest alone, (1, 0, 0), where n is about the number of samples of the rarer class.
    pos_label : int, float, bool, str or None, default=None
        The label of the positive one of two classes. See `AUCForestClassifier`.
    threshold : None, str, dict or float, default=None
        The rule by which `predict` turns probabilities into labels. See `AUCForestClassifier`.
    oob_score : bool, str or callable, default=False
        Whether to compute an out-of-bag score. See `AUCForestClassifier`.
    n_jobs : int or None, default=None
        The number of threads, for the forests. None leaves it to the parameter of `forest`.
    random_state : int, RandomState instance or None, default=None
        Controls the forests, unless `forest` has a `random_state`. An int is the `random_state` of the forest.

    Attributes
    ----------
    members_ : dict of str to classifier
        The fitted members: "forest", "residual" and "linear", without those that are left out. A model that `refresh`
        returned also has the member "old".
    weights_ : ndarray of shape (n_members,), float64
        The weight of each member. A weight of 0 says that it does not help.
    intercepts_ : ndarray of shape (n_classes,), float64
        The intercepts of the classes; only their differences matter.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies of the training data, by sample weight.
    prevalence_ : ndarray of shape (n_classes,)
        The class frequencies of `set_prevalence`, which the probabilities refer to instead. Only defined after it.
    classes_, pos_label_, n_features_in_, feature_names_in_, categories_, dates_, text_formats_, target_rates_, \
    split_features_, threshold_, oob_score_
        As in `AUCForestClassifier`.
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
    minimize the log loss of the samples out of bag with the penalty; b is not negative, and a is free, so that the mean
    of the probabilities out of bag is the class frequency.

    With fewer than 10 groups of a class, or fewer than two samples with an out-of-bag probability, there is no
    evidence, and the stack is the forest. Weighted and grouped samples count as fewer in the log loss (Kish 1965).

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
    >>> list(stack.members_), len(stack.weights_)
    (['forest', 'residual', 'linear'], 3)
    >>> bool(stack.oob_score_ > 0.85)
    True
    """

    _parts = (STACK_PART,)
    _nested: ClassVar[dict[str, str]] = {"forest": "AUCForestClassifier"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "forest": [AUCForestClassifier, None],
        "linear": [StrOptions({"auto"}), HasMethods(["fit", "predict_proba"]), None],
        "residual": ["boolean"],
        "penalty": [Interval(Real, 0.0, None, closed="left")],
        "pos_label": AUCForestClassifier._parameter_constraints["pos_label"],
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
        pos_label: Any = None,
        threshold: Any = None,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.forest = forest
        self.linear = linear
        self.residual = residual
        self.penalty = penalty
        self.pos_label = pos_label
        self.threshold = threshold
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``n_jobs`` also that of fitted members.

        Parameters
        ----------
        **params : dict
            Parameters by name; those of the forest are ``forest__max_depth`` etc.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If there is no such parameter, or if ``forest`` is None and a parameter of it is given.
        """
        if params.get("forest", self.forest) is None:
            for name in params:
                if name.startswith("forest__"):
                    raise ValueError(f"{name} cannot be set, as forest is None: set forest=AUCForestClassifier() first")
        super().set_params(**params)
        if hasattr(self, "members_") and not params.keys().isdisjoint({"n_jobs", "forest__n_jobs"}):
            given = self.n_jobs if self.n_jobs is not None or self.forest is None else self.forest.n_jobs
            self.members_ = {
                name: member if name == "linear" else copy(member).set_params(n_jobs=given)
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
            As in `AUCForestClassifier.fit`. Folds hold whole groups, as bootstrap samples do.

        Returns
        -------
        self : AUCStackingClassifier

        Raises
        ------
        ValueError
            As for `AUCForestClassifier`, if the forest has no out-of-bag samples or a warm start, or if `linear` does
            not predict probabilities. A `linear` of your own is fitted first, before the forests.
        TypeError
            If the forest is not an AUCForestClassifier that is fitted in memory.
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
            The classes are in the order of ``classes_``.
        """
        check_is_fitted(self, "members_")
        return self._predict_valid(self._features_of(X), X)

    def _predict_valid(self, valid: Any, X: Any = None) -> NDArray[np.float64]:
        """Return class probabilities for the result of `_features_of`; only `_reads_table` needs X."""
        return Combination(self.weights_, self.intercepts_).apply(self._scores(X, valid))

    @property
    def _forest(self) -> AUCForestClassifier:
        check_is_fitted(self, "members_")
        return self.members_["forest"]

    def encode(self, X: Any, *, dtype: Any = "float64") -> Any:
        """Return X in the form that exported models read: numbers, with codes for categories.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            As in `predict_proba`.
        dtype : "float64" or "float32", default="float64"
            The type of the numbers. See `AUCForestClassifier.encode`.

        Returns
        -------
        ndarray of shape (n_samples, n_split_features), or a table or sparse matrix of the type of X
            See `AUCForestClassifier.encode`.
        """
        forest = self._forest
        return forest._encode_valid(X, self._features_of(X), dtype)

    def to_onnx(self, path: str | os.PathLike[str], *, dtype: Any = "float64") -> None:
        """Write the classifier to an ONNX file, including its threshold, without the members of weight 0.

        Parameters
        ----------
        path : path-like
            The file to write. Its input and outputs are those of `AUCForestClassifier.to_onnx`.
        dtype : "float64" or "float32", default="float64"
            The type of the input. See `AUCForestClassifier.to_onnx`.

        Raises
        ------
        ImportError
            If onnx is not installed.
        TypeError
            If labels are not str, bool or numbers of at most 64 bits, if the member "linear" is a classifier of
            another package and its weight is not 0, or if there is a member "old".
        ValueError
            If `dtype` is another one.

        Notes
        -----
        On values that `dtype` represents, probabilities equal those of `predict_proba` up to 1e-6, and labels equal
        those of `predict` unless two classes are that close to a tie.

        Examples
        --------
        >>> import tempfile
        >>> import onnxruntime
        >>> from aucforest import AUCForestClassifier, AUCStackingClassifier
        >>> from aucforest.datasets import load_abalone
        >>> X, rings = load_abalone(return_X_y=True)
        >>> stack = AUCStackingClassifier(AUCForestClassifier(50), random_state=0).fit(X, rings >= 18)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stack.to_onnx(f"{folder}/stack.onnx")
        ...     session = onnxruntime.InferenceSession(f"{folder}/stack.onnx")
        >>> labels, probabilities = session.run(None, {"X": stack.encode(X)})
        >>> bool(abs(probabilities - stack.predict_proba(X)).max() < 1e-6)
        True
        """
        forest, residual, linear = self._forest, self.members_.get("residual"), self.members_.get("linear")
        weights = dict(zip(self.members_, self.weights_.tolist()))
        if "old" in weights:
            raise TypeError("a refreshed model that keeps an old one cannot be exported to ONNX: fit a new model")
        if not isinstance(linear, AdditiveClassifier | None) and weights["linear"] > 0.0:
            raise TypeError(f'linear: a {type(linear).__name__} cannot be exported to ONNX: use linear="auto"')
        residual_ensemble = None if residual is None else residual._ensemble
        stack = Stack(forest._ensemble, residual_ensemble, linear, weights, self.intercepts_, SMALLEST)
        write_stack(path, stack, self.classes_, self.threshold_, positive_last(self)[-1], dtype)
