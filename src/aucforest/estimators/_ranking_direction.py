"""The solver of LinearAUCClassifier, which maximizes the smoothed AUC of two classes, and its calibration."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from aucforest._caller import warn
from aucforest.losses.pairwise import Pairs, value_and_gradient
from aucforest.metrics.validation import FloatArray

Objective = Callable[[FloatArray], tuple[float, FloatArray]]
# Coefficients of a score, and the loss after each iteration.
Direction = tuple[FloatArray, list[float]]

_LEAST_SLOPE = 1e-3  # of the log odds, so that they increase with the scores
_STEP = math.sqrt(10.0)  # the maximum ratio of consecutive widths


def follow_path(X: FloatArray, pairs: Pairs, *, eps: float, alpha: float, max_iter: int, tol: float) -> Direction:
    """Minimize the pairwise logistic loss with L-BFGS, then one minus the smoothed AUC with decreasing widths.

    The columns of `X` must have the weighted mean 0. Widths decrease from 1 to `eps`, in units of the standard
    deviation of the score, so neither the smoothed AUC nor its penalty depends on the length of theta.
    """
    weights = np.full(len(X), 1.0 / len(X)) if pairs.weights is None else pairs.weights / pairs.weights.sum()
    losses: list[float] = []

    def logistic(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = value_and_gradient(pairs, X @ theta, "logistic", 1.0)
        return value + 0.5 * alpha * float(theta @ theta), slopes @ X + alpha * theta

    def smoothed(theta: FloatArray, width: float) -> tuple[float, FloatArray]:
        score = X @ theta
        deviation = np.sqrt(weights @ score**2)
        score /= deviation
        theta = theta / deviation
        value, slopes = value_and_gradient(pairs, score, "sigmoid", width)
        # The component of the gradient that only changes the length of theta is removed.
        along = slopes @ score + alpha * (theta @ theta)
        gradient = ((slopes - along * weights * score) @ X + alpha * theta) / deviation
        return value + 0.5 * alpha * float(theta @ theta), gradient

    theta = _descend(logistic, np.zeros(X.shape[1]), losses, max_iter, tol)
    n_widths = 1 + math.ceil(max(0.0, math.log(1.0 / eps, _STEP)))
    for width in np.geomspace(max(1.0, eps), eps, n_widths):
        deviation = np.sqrt(weights @ (X @ theta) ** 2)
        if not deviation > 0.0:
            break  # no feature separates the classes
        theta = _descend(partial(smoothed, width=width), theta / deviation, losses, max_iter, tol)
    return theta, losses


@cache
def thread_controller() -> ThreadpoolController:
    """Return the controller of the threads of loaded libraries, cached because creating it takes milliseconds."""
    return ThreadpoolController()


def _lbfgs(objective: Objective, start: FloatArray, **arguments: Any) -> OptimizeResult:
    """Return the result of L-BFGS with one thread of BLAS, because more threads are slower for its small matrices."""
    with thread_controller().limit(limits=1, user_api="blas"):
        return minimize(objective, start, jac=True, method="L-BFGS-B", **arguments)


def _descend(objective: Objective, start: FloatArray, losses: list[float], max_iter: int, tol: float) -> FloatArray:
    """Return the parameters found by L-BFGS; append the loss of each iteration to `losses`."""
    result = _lbfgs(
        objective,
        start,
        callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
        options={"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(np.float64).eps},
    )
    if result.nit >= max_iter:
        warn(f"L-BFGS did not converge in max_iter={max_iter} iterations", ConvergenceWarning)
    return result.x


def calibrate(score: FloatArray, pairs: Pairs) -> tuple[float, float]:
    """Return the slope and the intercept of a logistic regression on the standardized score, with Platt's targets.

    The slope is bounded below by a positive number, so the ranking does not change.
    """
    weights = np.ones(score.size) if pairs.weights is None else pairs.weights
    of_positive, of_negative = weights @ pairs.positive, weights @ ~pairs.positive
    target = np.where(pairs.positive, (of_positive + 1.0) / (of_positive + 2.0), 1.0 / (of_negative + 2.0))
    weights = weights / weights.sum()

    def log_loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        margin = parameters[0] * score + parameters[1]
        residual = weights * (expit(margin) - target)
        value = weights @ (np.logaddexp(0.0, margin) - target * margin)
        return float(value), np.array([residual @ score, residual.sum()])

    start = np.array([1.0, np.log(of_positive / of_negative)])
    options = {"gtol": 1e-10, "ftol": 0.0, "maxiter": 200}
    result = _lbfgs(log_loss, start, bounds=[(_LEAST_SLOPE, None), (None, None)], options=options)
    return float(result.x[0]), float(result.x[1])
