"""Refreshing a fitted model with new rows: a new fit is combined with the old model, if the old model still helps."""

from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import get_feature_names, num_samples
from aucforest.estimators._evidence import jackknife_error
from aucforest.estimators._validation import check_weights, encode_labels
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.out_of_bag import training_rows
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.fitting.out_of_bag import parts_of_rows
from aucforest.fitting.target import LEAST_GROUPS, check_groups
from aucforest.metrics.classification import log_loss
from aucforest.metrics.confidence import compare_auc
from aucforest.metrics.intervals import require_level, t_quantile
from aucforest.metrics.roc import class_roc_auc


class Difference(NamedTuple):
    """The ROC AUC of the new and of the old model on the same rows, and an interval of the difference (new - old)."""

    new: float
    old: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"{self.new:.4f} against {self.old:.4f} of the old model (difference {self.new - self.old:+.4f}, interval"
            f" {self.low:+.4f} to {self.high:+.4f})"
        )


@dataclass(frozen=True, eq=False)
class Refresh:
    """The result of `refresh`; ``print`` shows a summary.

    Attributes
    ----------
    model : AUCStackingClassifier
        The refreshed model.
    old_weight : float
        The weight of the old model in ``model``; 0 if the old model no longer helps and is not a member.
    roc_auc : Difference
        ``new`` and ``old``, the ROC AUC of both models on the new rows, and ``low`` and ``high``, the interval of the
        difference.
    log_loss : tuple of float
        The log loss of the new and of the old model on the new rows.
    """

    model: AUCStackingClassifier
    old_weight: float
    roc_auc: Difference
    log_loss: tuple[float, float]

    def __str__(self) -> str:
        how = "better" if self.roc_auc.low > 0.0 else "worse" if self.roc_auc.high < 0.0 else "neither better nor worse"
        weights = zip(self.model.members_, self.model.weights_.tolist())
        members = ", ".join(f"{name} {weight:.2g}" for name, weight in weights)
        kept = "is not kept" if self.old_weight == 0.0 else f"is kept; weights of the members: {members}"
        return (
            f"The refreshed model ranks {how} than the old one on the new rows: ROC AUC out of bag {self.roc_auc}; log"
            f" loss {self.log_loss[0]:.4f} against {self.log_loss[1]:.4f}. The old model {kept}."
        )


def refresh(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Refresh:
    """Refresh a fitted forest or stack with new rows, without the rows that it was fitted to.

    A new model with the parameters of the old one is fitted to the new rows, including their new categories. The old
    and the new model become members of a stack. The weights of the members minimize the log loss of the new rows, with
    out-of-bag probabilities of the new model. A penalty pulls the weight of the old model to 1 and other weights to 0.
    So few new rows change little, and many new rows replace an old model that is outdated.

    Parameters
    ----------
    model : AUCForestClassifier or AUCStackingClassifier
        The old model, which is not changed.
    X : array-like of shape (n_samples, n_features)
        New rows with the columns of the old model.
    y : array-like of shape (n_samples,)
        The labels of the new rows: the classes of the old model, with at least 10 rows of each.
    sample_weight, groups, cost
        As in `AUCForestClassifier.fit`.
    level : float, default=0.95
        Confidence level of the interval of the difference.

    Returns
    -------
    Refresh
        The refreshed ``model``, the ``old_weight``, and ``roc_auc`` and ``log_loss`` of both models.

    Raises
    ------
    TypeError
        If the model is neither a forest nor a stack.
    ValueError
        If the model was fitted to the same rows, if y has other classes, if a class has fewer than 10 rows or groups,
        and as in `AUCForestClassifier.fit`.

    Notes
    -----
    The interval is DeLong's for two classes without groups, and otherwise from a jackknife over ten parts of the rows,
    with whole groups. For the ``oob_decision_function_`` of each part, the weights of the members are fitted to the
    other parts. The log loss of the new model is a little too low, because its intercepts are fitted to the same rows.
    Its ROC AUC is a little too high (see ``oob_optimism_`` of a forest).

    The class frequencies of the refreshed model are those of the new rows, even if `set_prevalence` was called on the
    old model. The old model stays a member unless its weight is 0, so each refresh makes predictions slower.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, refresh
    >>> from aucforest.datasets import load_abalone
    >>> X, rings = load_abalone(return_X_y=True)
    >>> old = AUCForestClassifier(50, random_state=0).fit(X[:1000], rings[:1000] >= 12)
    >>> refreshed = refresh(old, X[1000:3000], rings[1000:3000] >= 12)
    >>> list(refreshed.model.members_)
    ['old', 'forest']
    >>> refreshed.roc_auc.new > refreshed.roc_auc.old
    True
    """
    require_level(level)
    if type(model) not in (AUCForestClassifier, AUCStackingClassifier):
        raise TypeError(f"refresh needs an AUCForestClassifier or an AUCStackingClassifier, got {type(model).__name__}")
    check_is_fitted(model, "classes_")
    weights = check_weights(X, sample_weight)
    groups = None if groups is None else check_groups(groups, num_samples(X))
    labels = _check_rows(model, X, y, weights, groups)
    proba = model.predict_proba(X)
    has_names = hasattr(model, "feature_names_in_")
    if (get_feature_names(X) is not None) != has_names:
        has = "columns with names" if has_names else "an array, without names of columns"
        raise ValueError(f"X must be like the rows that the old model was fitted to: {has}")
    new = _unfitted(model)
    with new._fitting():
        new._fit_members(X, y, sample_weight, groups, cost, old=(copy(model), proba))
    if hasattr(model, "text_formats_"):
        new.text_formats_ = model.text_formats_
    is_oob = np.isfinite(new.oob_decision_function_[:, 0])
    labels, old_proba, new_proba = labels[is_oob], proba[is_oob], new.oob_decision_function_[is_oob]
    weights = None if weights is None else weights[is_oob]
    groups = None if groups is None else groups[is_oob]
    roc_auc = _compare(labels, new_proba, old_proba, weights, groups, level)
    losses = log_loss(labels, new_proba, weights), log_loss(labels, old_proba, weights)
    old_weight = float(new.weights_[0]) if "old" in new.members_ else 0.0
    return Refresh(new, old_weight, roc_auc, losses)


def _check_rows(
    model: Any, X: Any, y: Any, sample_weight: NDArray[np.float64] | None, groups: NDArray[Any] | None
) -> NDArray[np.int64]:
    """Return the class indices of new rows; raise ValueError if they are too few or were already used."""
    labels = encode_labels(y, num_samples(X), model.classes_, "no class of the old model")
    kept = np.ones(len(labels), dtype=bool) if sample_weight is None else sample_weight > 0.0
    units, unit_name = (np.flatnonzero(kept), "rows") if groups is None else (groups[kept], "groups")
    for k, label in enumerate(model.classes_.tolist()):
        n_units = len(np.unique(units[labels[kept] == k]))
        if n_units < LEAST_GROUPS:
            needed = f"a refresh needs {LEAST_GROUPS} of every class: keep the old model until there are more"
            raise ValueError(f"y has class {label!r} in {n_units} of the {unit_name}, but {needed}")
    while model is not None:  # the old model, then its member "old", and so on
        try:
            training_rows(getattr(model, "_forest", model), X, y, sample_weight, same_weights=False)
        except ValueError:
            model = getattr(model, "members_", {}).get("old")
        else:
            raise ValueError("these are the rows that the old model was fitted to: pass new ones")
    return labels


def _unfitted(model: Any) -> AUCStackingClassifier:
    """Return an unfitted stack with the parameters of a model; the stack of a forest has no other members."""
    stored = model._params_to_store()  # `threshold` without the costs of the old rows
    params = {name: stored[name] for name in ("pos_label", "threshold")}
    if isinstance(model, AUCStackingClassifier):
        return clone(model).set_params(**params)
    forest = clone(model).set_params(warm_start=False)
    return AUCStackingClassifier(forest, linear=None, residual=False, boosted=False, **params)


def _compare(
    labels: NDArray[np.int64],
    new: NDArray[np.float64],
    old: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    groups: NDArray[Any] | None,
    level: float,
) -> Difference:
    """Return the ROC AUC of both models, with an interval of the difference by DeLong or by a jackknife over parts."""
    if new.shape[1] == 2 and groups is None:
        test = compare_auc(labels, new[:, 1], old[:, 1], level=level, sample_weight=weights)
        return Difference(test.auc_a, test.auc_b, *test.interval)

    def aucs(rows: NDArray[np.bool_] | slice) -> list[float]:
        row_weights = None if weights is None else weights[rows]
        return [class_roc_auc(labels[rows], proba[rows], row_weights) for proba in (new, old)]

    parts, (new_auc, old_auc) = parts_of_rows(labels, groups), aucs(slice(None))
    without = np.diff([aucs(parts != part) for part in np.unique(parts)])[:, 0]
    margin = float(t_quantile(len(without) - 1, level) * jackknife_error(without))
    return Difference(new_auc, old_auc, new_auc - old_auc - margin, new_auc - old_auc + margin)
