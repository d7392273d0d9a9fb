"""Compare split criteria on the same folds, with the same seeds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.inspection.comparison import BASELINE, CriteriaComparison, chosen
from aucforest.inspection.folds import run_folds
from aucforest.inspection.scoring import METRICS


def compare_criteria(
    X: Any,
    y: ArrayLike,
    *,
    criteria: Sequence[str | Callable[..., Any]] = ("auc", BASELINE),
    cv: Any = 5,
    n_repeats: int = 1,
    metrics: Sequence[str] = tuple(METRICS),
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 1,
    **forest_params: Any,
) -> CriteriaComparison:
    """Fit forests that differ in nothing but their split criterion, and compare them with Gini.

    Every fold gives all criteria the same rows and the same seed. Times are fair: the fits run one after
    another, which criterion goes first changes from fold to fold, and every criterion grows a tree before, so
    that no compile time is counted.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Whatever AUCForestClassifier accepts.
    y : array-like of shape (n_samples,)
        Class labels.
    criteria : sequence of str or compiled functions, default=("auc", "gini")
        Split criteria of AUCForestClassifier; "gini", the baseline, is added where it is missing. The function f goes
        by the name "f()".
    cv : int or scikit-learn splitter, default=5
        An int is the number of stratified, shuffled folds.
    n_repeats : int, default=1
        How often the folds are drawn anew; a splitter brings its own repeats.
    metrics : sequence of str
        Some of "roc_auc" (Hand and Till's for more than two classes), "average_precision", "g_mean", "brier",
        "log_loss", "fit_seconds", "n_nodes" and "depth"; by default all.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights in fitting and in the metrics.
    random_state : int, RandomState instance or None, default=None
        Draws the folds and the seeds of the forests.
    n_jobs : int or None, default=None
        Threads of each forest.
    verbose : int, default=1
        0 hides the progress bar.
    **forest_params
        Any other parameter of AUCForestClassifier.

    Returns
    -------
    comparison : CriteriaComparison
        With ``summary()``, ``to_frame()`` and ``plot()``.

    Raises
    ------
    ValueError
        For an unknown metric or criterion, one named twice, fewer than two folds, a class that a fold lacks.
    TypeError
        For a parameter that AUCForestClassifier does not have, or labels without an order.

    Examples
    --------
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import compare_criteria
    >>> X, rings = load_abalone(return_X_y=True)
    >>> comparison = compare_criteria(
    ...     X, rings >= 18, metrics=["roc_auc"], n_estimators=20, random_state=0, verbose=0
    ... )
    >>> for row in comparison.summary():
    ...     print(row.criterion, row.mean > 0.75)
    auc True
    gini True
    """
    by_name = dict(zip(chosen("criteria", criterion_names(criteria)), criteria))
    by_name.setdefault(BASELINE, BASELINE)
    names = tuple(by_name)
    metrics = chosen("metrics", metrics, tuple(METRICS))
    forests = {
        name: AUCForestClassifier(criterion=criterion, n_jobs=n_jobs, **forest_params)
        for name, criterion in by_name.items()
    }
    table = run_folds(
        forests,
        X,
        y,
        cv=cv,
        n_repeats=n_repeats,
        metrics=metrics,
        sample_weight=sample_weight,
        random_state=random_state,
        verbose=verbose,
    )
    return CriteriaComparison(names, metrics, table, n_classes=len(np.unique(np.asarray(y))))


def criterion_names(criteria: Sequence[str | Callable[..., Any]]) -> Sequence[str]:
    """Return the names of criteria: a function may have the name of a built-in one."""
    if isinstance(criteria, str):
        return criteria
    return [f"{getattr(c, '__name__', c)}()" if callable(c) else c for c in criteria]
