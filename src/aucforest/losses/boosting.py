"""Pairwise losses as objectives of LightGBM and XGBoost, which are not imported."""

from inspect import signature
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.losses.pairwise import Loss, check_eps, check_loss_scores, check_pairs, evaluate
from aucforest.metrics.validation import check_option


def _unpack(first: Any, second: Any, weight: Any, group_sizes: Any) -> tuple[Any, Any, Any, Any]:
    """Return labels, scores, weights and group sizes from arguments of the scikit-learn API or the native API."""
    if not hasattr(second, "get_label"):
        return first, second, weight, group_sizes
    weight = second.get_weight()
    if not hasattr(second, "get_uint_info"):
        return second.get_label(), first, weight, second.get_group()
    bounds = second.get_uint_info("group_ptr")  # XGBoost returns empty arrays for fields that are not set
    return second.get_label(), first, weight if weight.size else None, np.diff(bounds) if bounds.size else None


class boosting_objective:
    """A pairwise loss as an objective of LightGBM or XGBoost.

    An objective is a function of (y_true, y_pred, sample_weight, group) or (y_pred, data set) that returns gradient and
    hessian. The derivatives of `pairwise_loss` are multiplied by half the sum of weights, so that ``min_child_weight``
    has about the same effect as for log loss.

    Pass the objective as ``objective`` of ``LGBMClassifier`` or ``XGBClassifier``, as ``params["objective"]`` of
    ``lightgbm.train`` or as ``obj`` of ``xgboost.train``. Labels, weights and groups are used as in `pairwise_loss`.

    On the data sets of ``benchmarks/losses_boosting.py``, "exp", "logistic" and "sigmoid" rank about as well as log
    loss; "squared_hinge" ranks rare classes worse. The models predict scores, not probabilities: use ``raw_score=True``
    (LightGBM) or ``output_margin=True`` (XGBoost) in ``predict``.

    ``metric="auc"`` of LightGBM and ``eval_metric="auc"`` of XGBoost are the exact weighted AUC of these scores.
    The metric of XGBoost needs labels 0 and 1. With groups, XGBoost computes another metric.

    Parameters
    ----------
    loss, eps
        As in `pairwise_loss`. "sigmoid" is not convex, so its hessian is replaced by an upper bound.

    Raises
    ------
    ValueError, TypeError
        If the loss is unknown or eps is not a positive number. The objective raises the errors of `pairwise_loss`.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.losses import boosting_objective
    >>> objective = boosting_objective("exp")
    >>> gradient, hessian = objective(np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    >>> gradient.round(3)
    array([ 0.876, -1.197,  1.124, -0.803])
    """

    def __init__(self, loss: Loss = "exp", *, eps: float = 1.0) -> None:
        check_option("loss", loss, get_args(Loss))
        self.loss = loss
        self.eps = check_eps(eps)
        self.__signature__ = signature(self.__call__)  # LightGBM inspects the signature in every iteration

    def __repr__(self) -> str:
        return f"boosting_objective(loss={self.loss!r}, eps={self.eps!r})"

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradient and hessian from (y_true, y_pred, sample_weight, group sizes) or (y_pred, data set)."""
        y_true, y_pred, sample_weight, sizes = _unpack(y_true, y_pred, sample_weight, group)
        scores = check_loss_scores(y_pred, self.eps)
        groups = None if sizes is None else np.repeat(np.arange(len(sizes)), sizes)
        pairs = check_pairs(y_true, scores.size, sample_weight, groups)
        _, gradient, hessian = evaluate(pairs, scores, self.loss, self.eps)
        if self.loss == "sigmoid":
            hessian = np.abs(gradient) / self.eps  # an upper bound, because |phi''| <= |phi'|
        # Without this scale, the hessian of a row would be about 1 / n. Then no leaf would have the minimum hessian
        # that the libraries require, and no node would be split.
        scale = 0.5 * (scores.size if pairs.weights is None else pairs.weights.sum())
        return gradient * scale, hessian * scale
