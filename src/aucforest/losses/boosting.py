"""Losses of pairs as objectives of LightGBM and XGBoost, and the exact AUC as their metric.

Neither library is imported: a data set is known by its `get_label`, arrays by not having one.
"""

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.losses._pairs import check_eps, check_loss_scores, check_pairs
from aucforest.losses.pairwise import Loss, check_loss, evaluate
from aucforest.metrics import roc_auc_score


class _Rows(NamedTuple):
    """What either interface hands over."""

    y_true: Any
    scores: Any
    weight: Any
    group_sizes: Any


def _rows(first: Any, second: Any, weight: Any, group_sizes: Any) -> _Rows:
    """Return the rows of (y_true, scores, ...), as scikit-learn has it, or of a native (scores, data set)."""
    if not hasattr(second, "get_label"):
        return _Rows(first, second, weight, group_sizes)
    weight = second.get_weight()
    if hasattr(second, "get_uint_info"):  # XGBoost gives empty arrays for what is not set
        bounds = second.get_uint_info("group_ptr")
        return _Rows(
            second.get_label(), first, weight if weight.size else None, np.diff(bounds) if bounds.size else None
        )
    return _Rows(second.get_label(), first, weight, second.get_group())


class BoostingObjective:
    """A loss of pairs that LightGBM and XGBoost call for gradient and hessian; see `boosting_objective`."""

    def __init__(self, loss: Loss, eps: float) -> None:
        check_loss(loss)
        self.loss = loss
        self.eps = check_eps(eps)
        self.__signature__ = signature(self.__call__)  # LightGBM asks for it in every iteration

    def __repr__(self) -> str:
        return f"boosting_objective(loss={self.loss!r}, eps={self.eps!r})"

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradient and hessian from (y_true, y_pred, sample_weight, group sizes) or (y_pred, data set)."""
        rows = _rows(y_true, y_pred, sample_weight, group)
        scores = check_loss_scores(rows.scores, self.eps)
        groups = None if rows.group_sizes is None else np.repeat(np.arange(len(rows.group_sizes)), rows.group_sizes)
        pairs = check_pairs(rows.y_true, scores.size, rows.weight, groups)
        _, gradient, hessian = evaluate(pairs, scores, self.loss, self.eps)
        if self.loss == "sigmoid":
            hessian = np.abs(gradient) / self.eps  # |phi''| <= |phi'|: an upper bound that is not negative
        # as if each class had half of the rows' weight: a mean over pairs would leave a row a hessian of about 1 / n,
        # below every library's least hessian of a leaf, and no split would ever be made
        scale = 0.5 * (scores.size if pairs.weights is None else pairs.weights.sum())
        return gradient * scale, hessian * scale


def boosting_objective(loss: Loss = "exp", *, eps: float = 1.0) -> BoostingObjective:
    """Return a loss of pairs as an objective of LightGBM or XGBoost.

    Pass it as ``objective`` of their scikit-learn classifiers, as ``params["objective"]`` of ``lightgbm.train`` or as
    ``obj`` of ``xgboost.train``. Labels must be of two classes. Sample weights are honoured: a pair has the product of
    its rows' weights. So are groups: only rows of one group make a pair.

    Models of "exp", "logistic" and "sigmoid" rank as well as those of log loss, not better: within 0.01 of its AUC
    either way on the sets of ``benchmarks/losses_boosting.py``. "squared_hinge" ranks rare classes worse: pairs beyond
    the margin teach it nothing. What the models predict is a score, not a probability: pass ``raw_score=True``
    (LightGBM) or ``output_margin=True`` (XGBoost) to their ``predict``, and calibrate where probabilities are needed.

    Parameters
    ----------
    loss : {"exp", "logistic", "sigmoid", "squared_hinge"}, default="exp"
        See `pairwise_loss`. "sigmoid" is not convex: its slope stands for its second derivative, which it bounds.
    eps : float, default=1.0
        Width of the loss, in units of the scores.

    Returns
    -------
    objective : callable
        Called with (y_true, y_pred, sample_weight, group) or (y_pred, data set), it returns gradient and hessian. Both
        are those of the mean over pairs times half the sum of weights: of the size of log loss's, so that the
        libraries' least hessian of a leaf (``min_child_weight``) means what it means there.

    Raises
    ------
    ValueError
        For an unknown loss or eps that is not positive; when called, for one class, scores that are not finite or
        negative weights.
    TypeError
        For eps that is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.losses import boosting_objective
    >>> objective = boosting_objective("exp")
    >>> gradient, hessian = objective(np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    >>> gradient.round(3)
    array([ 0.876, -1.197,  1.124, -0.803])

    ``lightgbm.LGBMClassifier(objective=boosting_objective("exp"))`` trains with it.
    """
    return BoostingObjective(loss, eps)


def auc_lightgbm(
    y_true: Any, y_pred: Any, weight: ArrayLike | None = None, group: Any = None
) -> tuple[str, float, bool]:
    """Report the exact AUC as a metric of LightGBM: ``eval_metric=`` of its classifiers' ``fit``, or ``feval=``.

    Classifiers also report log loss unless they are made with ``metric="None"``, and early stopping heeds all metrics.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Labels of two classes and scores; or scores and a data set, as ``feval`` is called.
    weight : array-like of shape (n_samples,), optional
        Weights, not negative.
    group : optional
        Not used: the AUC is that of all rows.

    Returns
    -------
    (name, value, is_higher_better) : tuple
        ("auc_lightgbm", AUC, True); the AUC is NaN, with UndefinedMetricWarning, when there is one class.

    Raises
    ------
    ValueError
        For more than two classes, scores that are not finite, negative weights, or lengths that differ.

    Examples
    --------
    >>> from aucforest.losses import auc_lightgbm
    >>> auc_lightgbm([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    ('auc_lightgbm', 0.75, True)
    """
    rows = _rows(y_true, y_pred, weight, group)
    return "auc_lightgbm", _auc(rows), True


def auc_xgboost(y_true: Any, y_pred: Any, sample_weight: ArrayLike | None = None) -> Any:
    """Report the exact AUC as a metric of XGBoost: ``eval_metric=`` of its classifiers, or ``custom_metric=``.

    XGBoost takes metrics whose name starts with "auc" for better when higher, so it stops early at the right time.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Labels of two classes and scores; or scores and a data set, as ``custom_metric`` is called.
    sample_weight : array-like of shape (n_samples,), optional
        Weights, not negative.

    Returns
    -------
    float, or (name, value)
        The AUC; ("auc_xgboost", AUC) when called with a data set. NaN, with UndefinedMetricWarning, for one class.

    Raises
    ------
    ValueError
        For more than two classes, scores that are not finite, negative weights, or lengths that differ.

    Examples
    --------
    >>> from aucforest.losses import auc_xgboost
    >>> auc_xgboost([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    0.75
    """
    rows = _rows(y_true, y_pred, sample_weight, None)
    return ("auc_xgboost", _auc(rows)) if rows.y_true is not y_true else _auc(rows)


def _auc(rows: _Rows) -> float:
    """Return the exact AUC of two classes."""
    return float(roc_auc_score(rows.y_true, rows.scores, sample_weight=rows.weight))
