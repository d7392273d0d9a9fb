"""A linear classifier that is trained for its ROC AUC."""

from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aucforest.estimators._model_files import LINEAR, Model
from aucforest.estimators._ranking_direction import Vector, ascend, calibrate, follow_path
from aucforest.fitting.target import code_classes, number_classes
from aucforest.losses.pairs import LARGEST_DISTANCE, LEAST_EPS, Pairs, check_pairs
from aucforest.metrics import roc_auc_score
from aucforest.tables.columns import decode_labels


class LinearAUCClassifier(Model):
    """Linear classifier that maximises the smoothed ROC AUC of its score.

    A score has the same AUC whatever its scale and intercept, so training finds a direction; a one-dimensional
    logistic regression on the score then gives both, and with them probabilities. The order of the score stays.

    What is gained: on rare classes more than logistic regression, but about what logistic regression with
    ``class_weight="balanced"`` gains; on balanced classes little. See the notebook ``auc_as_loss``.

    Parameters
    ----------
    solver : {"lbfgs", "sga"}, default="lbfgs"
        - "lbfgs": L-BFGS over the loss of all pairs: the pairwise logistic loss first, which is convex, then the AUC
          smoothed with widths that fall from 1 to `eps`.
        - "sga": the stochastic ascent of [1]_, on standardised features: in each of `max_iter` epochs a step up the
          AUC smoothed with width `eps` of `n_pairs` random pairs, from a random start.
    eps : float, default=None
        Width of the sigmoid at the end. For "lbfgs" in standard deviations of the score, by default 0.1; for "sga" in
        units of the score, by default 0.01.
    alpha : float, default=1e-3
        Strength of the L2 penalty, alpha / 2 times the squared length of the coefficients of standardised features;
        with "lbfgs" and the smoothed AUC, of coefficients that give a score of standard deviation 1.
    max_iter : int, default=None
        Largest number of iterations of each stage of "lbfgs", by default 200; number of epochs of "sga", by default
        900.
    tol : float, default=1e-4
        "lbfgs" stops where no entry of the gradient is larger.
    n_pairs : int, default=500
        Pairs in an epoch of "sga".
    learning_rate : float, default=0.5
        Rate of "sga", divided by 1 + `decay` before each epoch.
    decay : float, default=1e-4
        See `learning_rate`.
    random_state : int, RandomState instance or None, default=None
        Start and pairs of "sga".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of rows with weight.
    coef_ : ndarray of shape (1, n_features) or (n_classes * (n_classes - 1) / 2, n_features), float64
        Coefficients in units of the features. With more than two classes one row a pair of classes, in the order
        (0, 1), (0, 2), ..., (1, 2), ...; the second one is the positive.
    intercept_ : ndarray of shape (1,) or (n_classes * (n_classes - 1) / 2,), float64
        Intercepts of the calibration.
    n_iter_ : ndarray of shape (1,) or (n_classes * (n_classes - 1) / 2,), int64
        Iterations of all stages, or epochs.
    loss_curve_ : list of float, or list of lists of float
        Loss at each iteration: logistic in the first stage of "lbfgs", else one minus the smoothed AUC (of the sample
        with "sga"), penalty included. With more than two classes one list a pair.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Defined when X has string column names.

    Notes
    -----
    With K > 2 classes a direction is trained for every pair of classes, the pairs over which Hand and Till [2]_ average
    the AUC. Probabilities p solve p_j / (p_i + p_j) = r_ij for the calibrated r_ij of the pairs where they agree, by
    the closed form of [3]_: p_i is proportional to 1 / (sum over j of 1 / r_ij - K + 2).

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

    _parts = (LINEAR,)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [StrOptions({"lbfgs", "sga"})],
        "eps": [Interval(Real, LEAST_EPS, None, closed="neither"), None],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "n_pairs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
        "decay": [Interval(Real, 0.0, None, closed="left")],
        "random_state": ["random_state"],
    }

    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        *,
        solver: str = "lbfgs",
        eps: float | None = None,
        alpha: float = 1e-3,
        max_iter: int | None = None,
        tol: float = 1e-4,
        n_pairs: int = 500,
        learning_rate: float = 0.5,
        decay: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.eps = eps
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.n_pairs = n_pairs
        self.learning_rate = learning_rate
        self.decay = decay
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearAUCClassifier":
        """Train the direction and calibrate it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers below 1e100 in size.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, not negative. A pair has the product of its rows' weights; rows of weight 0 are left out. For the
            direction only their ratios count; calibration takes them for numbers of rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For values that are not finite or too large, parameters out of range, or fewer than two classes with weight.
            A fit that fails or is interrupted leaves the classifier as it was.
        """
        with self._fitting():
            X, y = validate_data(self, X, decode_labels(y), dtype=np.float64)
            self._check_sizes(X)
            code_classes(y)  # refuses what are no labels
            if sample_weight is not None:
                sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
                kept = sample_weight > 0.0
                X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
            classes, codes = number_classes(y)
            n_classes = len(classes)
            if n_classes < 2:
                raise ValueError(f"y has {n_classes} class with weight; a classifier needs at least 2 classes")
            random = check_random_state(self.random_state)
            fits = []
            for first, second in combinations(range(n_classes), 2):
                rows = (codes == first) | (codes == second)
                weights = None if sample_weight is None else sample_weight[rows]
                pairs = check_pairs(codes[rows] == second, int(np.count_nonzero(rows)), weights)
                fits.append(self._fit_pair(X[rows], pairs, random))
            self.classes_ = classes
            self.coef_ = np.array([coef for coef, _, _ in fits])
            self.intercept_ = np.array([intercept for _, intercept, _ in fits])
            curves = [losses for _, _, losses in fits]
            self.n_iter_ = np.array([len(losses) for losses in curves])
            self.loss_curve_ = curves if n_classes > 2 else curves[0]
        return self

    def _fit_pair(self, X: Vector, pairs: Pairs, random: np.random.RandomState) -> tuple[Vector, float, list[float]]:
        """Return coefficients, intercept and loss curve of two classes."""
        scaler = StandardScaler().fit(X, sample_weight=pairs.weights)
        X = scaler.transform(X)
        if self.solver == "lbfgs":
            limits: Any = {"eps": self.eps or 0.1, "max_iter": self.max_iter or 200, "tol": self.tol}
            theta, losses = follow_path(X, pairs, alpha=self.alpha, **limits)
        else:
            steps: Any = {"n_epochs": self.max_iter or 900, "n_pairs": self.n_pairs, "random": random}
            rates: Any = {"eps": self.eps or 0.01, "learning_rate": self.learning_rate, "decay": self.decay}
            theta, losses = ascend(X, pairs, alpha=self.alpha, **steps, **rates)
        score = X @ theta
        if roc_auc_score(pairs.positive, score, sample_weight=pairs.weights) < 0.5:
            theta, score = -theta, -score  # outliers or a bad start led the solver to the wrong side
        deviation = np.sqrt(np.average(score**2, weights=pairs.weights)) or 1.0
        slope, intercept = calibrate(score / deviation, pairs)
        coef = slope / deviation * theta / scaler.scale_
        return coef, intercept - float(coef @ scaler.mean_), losses

    def _check_sizes(self, X: Vector) -> None:
        """Refuse numbers whose squares, or products with coefficients, would overflow."""
        if max(-X.min(), X.max()) < LARGEST_DISTANCE:
            return
        row, feature = (int(place) for place in np.unravel_index(np.abs(X).argmax(), X.shape))
        name = repr(self.feature_names_in_[feature]) if hasattr(self, "feature_names_in_") else feature
        raise ValueError(
            f"X: column {name} has the value {X[row, feature]:g} in row {row}, but LinearAUCClassifier takes numbers"
            f" below {LARGEST_DISTANCE:g} in size: scale the column"
        )

    def _margins(self, X: Any) -> Vector:
        """Return the log odds of the second class of each pair, (n_samples, n_pairs)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        self._check_sizes(X)
        margins: Vector = X @ self.coef_.T + self.intercept_
        return margins

    def decision_function(self, X: Any) -> Vector:
        """Return the score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes), float64
            Log odds of the second class, whose AUC is what was maximised; the logarithm of `predict_proba` with
            more than two classes.
        """
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else self._couple(margins)

    def predict_proba(self, X: Any) -> Vector:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``.
        """
        margins = self._margins(X)
        if len(self.classes_) == 2:
            return expit(np.column_stack([-margins, margins]))
        proba: Vector = np.exp(self._couple(margins))
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        return self.classes_[(decision > 0.0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)]

    def _couple(self, margins: Vector) -> Vector:
        """Return log probabilities (n_samples, n_classes) from the log odds of the pairs."""
        n_classes = len(self.classes_)
        against = np.zeros((n_classes, n_classes, len(margins)))  # the log odds of column j against row i
        for pair, (first, second) in enumerate(combinations(range(n_classes), 2)):
            against[first, second] = margins[:, pair]
            against[second, first] = -margins[:, pair]
        # 1 / r_ij = 1 + exp(against_ij), so p_i goes with 1 / (1 + the sum of exp(against_ij) over j other than i);
        # the 1 is the diagonal's
        log_proba = -np.logaddexp.reduce(against, axis=1)
        return np.transpose(log_proba - np.logaddexp.reduce(log_proba, axis=0))
