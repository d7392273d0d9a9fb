"""A linear classifier that maximizes ROC AUC."""

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from aucforest._caller import warn
from aucforest._sklearn import Interval, fit_context
from aucforest.columns.categorical import check_table, decode_labels
from aucforest.columns.dates import find_dates, table_of
from aucforest.estimators._model_files import Field, Model, are_finite, restore_fields, store_fields
from aucforest.estimators._validation import check_weights
from aucforest.fitting.target import code_classes, number_classes
from aucforest.losses.pairwise import LARGEST_DISTANCE, LEAST_EPS, Pairs, check_pairs, value_and_gradient
from aucforest.metrics import roc_auc_score
from aucforest.metrics.validation import FloatArray, unmask
from aucforest.persistence.model_file import Arrays, StoredModel

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
_LEAST_SLOPE = 1e-3  # minimum slope of the calibration; a negative slope would reverse the ranking
_MAX_WIDTH_RATIO = math.sqrt(10.0)  # maximum ratio of consecutive widths of the sigmoid

_FIELDS = (
    Field("coef_", lambda model: (math.comb(len(model.classes_), 2), model.n_features_in_), are_finite),
    Field("intercept_", lambda model: model.coef_.shape[:1], are_finite),
    Field("n_iter_", lambda model: model.coef_.shape[:1], lambda values, _: np.all(values >= 0), dtype="q"),
)


def _store_linear(model: Any) -> tuple[Arrays, dict[str, Any]]:
    curves = model.loss_curve_ if len(model.classes_) > 2 else [model.loss_curve_]
    return store_fields(model, _FIELDS) | {"loss_curve_": np.concatenate(curves)}, {}


def _restore_linear(model: Any, stored: StoredModel) -> None:
    restore_fields(model, stored, _FIELDS)
    losses = stored.take_array("loss_curve_", "d", (int(model.n_iter_.sum()),))
    curves = [curve.tolist() for curve in np.split(losses, np.cumsum(model.n_iter_)[:-1])]
    model.loss_curve_ = curves if len(model.classes_) > 2 else curves[0]


class LinearAUCClassifier(Model):
    """Linear classifier that maximizes the smoothed ROC AUC of its score.

    The AUC does not depend on the scale and the intercept of the score. A logistic regression on the score determines
    them, which gives probabilities and keeps the ranking.

    For rare classes, this classifier ranks better than logistic regression, and about as well as logistic regression
    with ``class_weight="balanced"``. For balanced classes there is little difference. See the notebook ``auc_as_loss``.

    Parameters
    ----------
    eps : float, default=None
        The final width of the sigmoid in standard deviations of the score; None is 0.1.
    alpha : float, default=1e-3
        The strength of the L2 penalty on the coefficients of standardized features: alpha / 2 times their squared norm.
        For the smoothed AUC, the coefficients are scaled first, so that the score has standard deviation 1.
    max_iter : int, default=None
        The maximum number of iterations in each stage (see Notes); None is 200.
    tol : float, default=1e-4
        A stage stops when no component of the gradient is larger than this in absolute value.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        As in `AUCForestClassifier`.
    coef_ : ndarray of shape (1, n_features) or (n_classes * (n_classes - 1) / 2, n_features), float64
        Coefficients of the features. With more than two classes there is one row for each pair of classes, in the order
        (0, 1), (0, 2), ..., (1, 2), ..., where the second class is positive.
    intercept_, n_iter_ : ndarray of shape (1,) or (n_classes * (n_classes - 1) / 2,), float64 and int64
        The intercepts, and the number of iterations over all stages.
    loss_curve_ : list of float, or list of lists of float
        The loss with its penalty at each iteration: the logistic loss in the first stage, then one minus the smoothed
        AUC. With more than two classes there is one list for each pair.

    Notes
    -----
    L-BFGS first minimizes the logistic loss of all pairs of samples, which is convex. Then it maximizes the smoothed
    AUC [1]_ in stages, with sigmoid widths that decrease from 1 to `eps`.

    With K > 2 classes one model is trained for each pair of classes, as in Hand and Till's AUC [2]_. The class
    probabilities p are computed from the calibrated probabilities r_ij of class i given i or j [3]_: p_i is
    proportional to 1 / (sum over j != i of 1 / r_ij - K + 2). This is exact if all r_ij are p_i / (p_i + p_j) for
    some p.

    References
    ----------
    .. [1] A. Morita, "AUC as Loss: directly fitting to optimize ROC AUC".
    .. [2] D. J. Hand, R. J. Till, "A simple generalisation of the area under the ROC curve for multiple class
       classification problems", Machine Learning 45 (2001), 171-186.
    .. [3] D. Price, S. Knerr, L. Personnaz, G. Dreyfus, "Pairwise neural network classifiers with probabilistic
       outputs", NIPS 1994.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucforest import LinearAUCClassifier
    >>> from aucforest.metrics import roc_auc_score
    >>> X, y = make_classification(n_samples=500, weights=[0.9], random_state=0)
    >>> model = LinearAUCClassifier().fit(X, y)
    >>> bool(roc_auc_score(y, model.decision_function(X)) > 0.9)
    True
    >>> model.predict_proba(X[:2]).round(1)
    array([[1., 0.], [1., 0.]])
    """

    _file_sections = ((_store_linear, _restore_linear),)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "eps": [Interval(Real, LEAST_EPS, None, closed="neither"), None],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self, *, eps: float | None = None, alpha: float = 1e-3, max_iter: int | None = None, tol: float = 1e-4
    ) -> None:
        self.eps = eps
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearAUCClassifier":
        """Fit the coefficients, and calibrate the score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The training samples. Absolute values must be below 1e100.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative sample weights. The weight of a pair is the product of the weights of its samples. Samples of
            weight 0 are ignored. In the calibration, a weight counts as a number of samples.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If values are not finite or too large, if a parameter is out of range, or if y has a single class. A fit
            that fails or is interrupted does not change the classifier.
        """
        with self._fitting():
            X, y = self._validate(X, y=decode_labels(y))
            code_classes(y)  # raises ValueError for invalid labels
            sample_weight = check_weights(X, sample_weight)
            if sample_weight is not None:
                kept = sample_weight > 0.0
                X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
            classes, codes = number_classes(y)
            n_classes = len(classes)
            if n_classes < 2:
                raise ValueError(f"y has {n_classes} class with positive weight; a classifier needs at least 2 classes")
            fits = []
            for first, second in combinations(range(n_classes), 2):
                rows = (codes == first) | (codes == second)
                weights = None if sample_weight is None else sample_weight[rows]
                pairs = check_pairs(codes[rows] == second, int(np.count_nonzero(rows)), weights)
                fits.append(self._fit_pair(X[rows], pairs))
            coefs, intercepts, curves = zip(*fits)
            self.classes_, self.coef_, self.intercept_ = classes, np.array(coefs), np.array(intercepts)
            self.n_iter_ = np.array([len(losses) for losses in curves])
            self.loss_curve_ = list(curves) if n_classes > 2 else curves[0]
        return self

    def _fit_pair(self, X: FloatArray, pairs: Pairs) -> tuple[FloatArray, float, list[float]]:
        scaler = StandardScaler().fit(X, sample_weight=pairs.weights)
        X = scaler.transform(X)
        theta, losses = self._minimize_in_stages(X, pairs)
        score = X @ theta
        if roc_auc_score(pairs.positive, score, sample_weight=pairs.weights) < 0.5:
            theta, score = -theta, -score  # outliers can mislead the solver
        deviation = np.sqrt(np.average(score**2, weights=pairs.weights)) or 1.0
        slope, intercept = _calibrate(score / deviation, pairs)
        coef = slope / deviation * theta / scaler.scale_
        return coef, intercept - float(coef @ scaler.mean_), losses

    def _minimize_in_stages(self, X: FloatArray, pairs: Pairs) -> tuple[FloatArray, list[float]]:
        """Return the coefficients and the loss of each iteration, see Notes of the class.

        The columns of `X` have the weighted mean 0. The smoothed AUC is that of the score scaled to the standard
        deviation 1, so the length of theta does not matter.
        """
        weights = np.full(len(X), 1.0 / len(X)) if pairs.weights is None else pairs.weights / pairs.weights.sum()

        def logistic(theta: FloatArray) -> tuple[float, FloatArray]:
            value, grad_scores = value_and_gradient(pairs, X @ theta, "logistic", 1.0)
            return value + 0.5 * self.alpha * float(theta @ theta), grad_scores @ X + self.alpha * theta

        def smoothed(theta: FloatArray, width: float) -> tuple[float, FloatArray]:
            score = X @ theta
            deviation = np.sqrt(weights @ score**2)
            score /= deviation
            theta = theta / deviation
            value, grad_scores = value_and_gradient(pairs, score, "sigmoid", width)
            # The component along theta is removed, because the length of theta does not matter.
            radial = grad_scores @ score + self.alpha * (theta @ theta)
            gradient = ((grad_scores - radial * weights * score) @ X + self.alpha * theta) / deviation
            return value + 0.5 * self.alpha * float(theta @ theta), gradient

        theta, losses = self._minimize(logistic, np.zeros(X.shape[1]))
        eps = self.eps or 0.1
        n_widths = 1 + math.ceil(max(0.0, math.log(1.0 / eps, _MAX_WIDTH_RATIO)))
        for width in np.geomspace(max(1.0, eps), eps, n_widths):
            deviation = np.sqrt(weights @ (X @ theta) ** 2)
            if not deviation > 0.0:
                break  # no feature separates the classes
            theta, losses_of_width = self._minimize(partial(smoothed, width=width), theta / deviation)
            losses += losses_of_width
        return theta, losses

    def _minimize(self, objective: Objective, start: FloatArray) -> tuple[FloatArray, list[float]]:
        """Return the parameters found by L-BFGS, and the loss of each iteration."""
        losses: list[float] = []
        max_iter = self.max_iter or 200
        result = _lbfgs(
            objective,
            start,
            callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
            options={"maxiter": max_iter, "gtol": self.tol, "ftol": 64 * np.finfo(np.float64).eps},
        )
        if result.nit >= max_iter:
            warn(f"L-BFGS did not converge in max_iter={max_iter} iterations", ConvergenceWarning)
        return result.x, losses

    def _validate(self, X: Any, **options: Any) -> Any:
        """Validate X, and y if given. Reject large values, because their squares or scores could be infinite."""
        check_table(X)
        X = unmask(X)
        find_dates(table_of(X), parts=None)  # raises ValueError for dates, which numpy would convert to numbers
        valid = validate_data(self, X, dtype=np.float64, **options)
        X = valid[0] if isinstance(valid, tuple) else valid
        if max(-X.min(), X.max()) < LARGEST_DISTANCE:
            return valid
        row, feature = divmod(int(np.abs(X).argmax()), X.shape[1])
        name = repr(self.feature_names_in_[feature]) if hasattr(self, "feature_names_in_") else feature
        raise ValueError(
            f"X: column {name} has the value {X[row, feature]:g} in row {row}, but absolute values must be below"
            f" {LARGEST_DISTANCE:g}: scale the column"
        )

    def _margins(self, X: Any) -> FloatArray:
        """Return the log odds of the second class of each pair, (n_samples, n_pairs)."""
        check_is_fitted(self)
        return self._validate(X, reset=False) @ self.coef_.T + self.intercept_

    def decision_function(self, X: Any) -> FloatArray:
        """Compute the score of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            The log odds of the second class; with more than two classes the logarithm of `predict_proba`.
        """
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else self._couple(margins)

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The input samples. A pandas, polars or pyarrow table must have the column names of the table in `fit`, in
            the same order, as in scikit-learn.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            The columns are in the order of ``classes_``.
        """
        margins = self._margins(X)
        if len(self.classes_) == 2:
            return expit(np.column_stack([-margins, margins]))
        return np.exp(self._couple(margins))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: D102  the docstring of `Model` is inherited
        decision = self.decision_function(X)
        return self.classes_[(decision > 0.0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def _couple(self, margins: FloatArray) -> FloatArray:
        """Return log-probabilities, (n_samples, n_classes), from the log odds of the pairs."""
        n_classes = len(self.classes_)
        log_odds = np.zeros((n_classes, n_classes, len(margins)))  # [i, j]: of class j against class i
        first, second = np.triu_indices(n_classes, 1)  # in the order of the pairs
        log_odds[first, second], log_odds[second, first] = margins.T, -margins.T
        # In the formula of the class docstring, 1 / r_ij = 1 + exp(log_odds[i, j]), so p_i is proportional to
        # 1 / (1 + sum of exp(log_odds[i, j]) over j != i). The term 1 comes from the diagonal, which is 0.
        log_proba = -np.logaddexp.reduce(log_odds, axis=1)
        return np.asarray((log_proba - np.logaddexp.reduce(log_proba, axis=0)).T)


@cache
def thread_controller() -> ThreadpoolController:
    """Return the controller of the threads of BLAS and OpenMP, cached because creating it takes milliseconds."""
    return ThreadpoolController()


def _lbfgs(objective: Objective, start: FloatArray, **arguments: Any) -> OptimizeResult:
    """Return the result of L-BFGS with one thread of BLAS, because more threads are slower for its small matrices."""
    with thread_controller().limit(limits=1, user_api="blas"):
        return minimize(objective, start, jac=True, method="L-BFGS-B", **arguments)


def _calibrate(score: FloatArray, pairs: Pairs) -> tuple[float, float]:
    """Return the slope and the intercept of a logistic regression on the standardized score, with Platt's targets."""
    weights = np.ones(score.size) if pairs.weights is None else pairs.weights
    positive_weight, negative_weight = weights @ pairs.positive, weights @ ~pairs.positive
    target = np.where(pairs.positive, (positive_weight + 1.0) / (positive_weight + 2.0), 1.0 / (negative_weight + 2.0))
    weights = weights / weights.sum()

    def log_loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        margin = parameters[0] * score + parameters[1]
        residual = weights * (expit(margin) - target)
        value = weights @ (np.logaddexp(0.0, margin) - target * margin)
        return float(value), np.array([residual @ score, residual.sum()])

    start = np.array([1.0, np.log(positive_weight / negative_weight)])
    options = {"gtol": 1e-10, "ftol": 0.0, "maxiter": 200}
    result = _lbfgs(log_loss, start, bounds=[(_LEAST_SLOPE, None), (None, None)], options=options)
    return float(result.x[0]), float(result.x[1])
