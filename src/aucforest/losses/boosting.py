"""Losses of pairs as objectives of LightGBM and XGBoost.

Neither library is imported: a data set is known by its `get_label`, arrays by not having one.
"""

from inspect import signature
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.losses.pairs import check_eps, check_loss_scores, check_pairs
from aucforest.losses.pairwise import Loss, evaluate
from aucforest.metrics.validation import check_option


def _rows(first: Any, second: Any, weight: Any, group_sizes: Any) -> tuple[Any, Any, Any, Any]:
    """Return the rows of (y_true, scores, ...), as scikit-learn has it, or of a native (scores, data set)."""
    if not hasattr(second, "get_label"):
        return first, second, weight, group_sizes
    weight = second.get_weight()
    if not hasattr(second, "get_uint_info"):
        return second.get_label(), first, weight, second.get_group()
    bounds = second.get_uint_info("group_ptr")  # XGBoost gives empty arrays for what is not set
    return second.get_label(), first, weight if weight.size else None, np.diff(bounds) if bounds.size else None


class BoostingObjective:
    """A loss of pairs that LightGBM and XGBoost call for gradient and hessian; see `boosting_objective`."""

    def __init__(self, loss: Loss, eps: float) -> None:
        check_option("loss", loss, get_args(Loss))
        self.loss = loss
        self.eps = check_eps(eps)
        self.__signature__ = signature(self.__call__)  # LightGBM asks for it in every iteration

    def __repr__(self) -> str:
        return f"boosting_objective(loss={self.loss!r}, eps={self.eps!r})"

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradient and hessian from (y_true, y_pred, sample_weight, group sizes) or (y_pred, data set)."""
        y_true, y_pred, sample_weight, sizes = _rows(y_true, y_pred, sample_weight, group)
        scores = check_loss_scores(y_pred, self.eps)
        groups = None if sizes is None else np.repeat(np.arange(len(sizes)), sizes)
        pairs = check_pairs(y_true, scores.size, sample_weight, groups)
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
    either way on the sets of ``benchmarks/losses_boosting.py``. "squared_hinge" ranks rare classes worse. What the
    models predict is a score, not a probability: pass ``raw_score=True`` (LightGBM) or ``output_margin=True`` (XGBoost)
    to their ``predict``, and calibrate where probabilities are needed.

    The libraries' own ``metric="auc"`` (LightGBM) or ``eval_metric="auc"`` (XGBoost) is the exact AUC of these scores,
    with weights and ties. XGBoost's wants labels of 0 and 1 and counts otherwise where data have groups. Without both
    classes LightGBM's is 1, XGBoost's NaN.

    Parameters
    ----------
    loss : {"exp", "logistic", "sigmoid", "squared_hinge"}, default="exp"
        See `pairwise_loss`. "sigmoid" is not convex: its slope stands for its second derivative, which it bounds.
    eps : float, default=1.0
        Width of the loss, in units of the scores.

    Returns
    -------
    objective : callable
        Called with (y_true, y_pred, sample_weight, group) or (y_pred, data set), it returns gradient and hessian: those
        of the mean over pairs times half the sum of weights, so that ``min_child_weight`` means what it does for log
        loss.

    Raises
    ------
    ValueError, TypeError
        For an unknown loss or eps that is not a positive number; when called, as `pairwise_loss`.

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
