"""Compare split criteria on the same folds, with the same seeds."""

from collections.abc import Callable, Sequence
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d
from tqdm import tqdm

from aucforest.estimators._base import code_classes
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.inspection._scoring import METRICS, FittedFold
from aucforest.inspection.comparison import BASELINE, CriteriaComparison, chosen

Fold = tuple[NDArray[np.int64], NDArray[np.int64]]


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
    by_name = dict(zip(chosen("criteria", _names(criteria)), criteria))
    by_name.setdefault(BASELINE, BASELINE)
    names = tuple(by_name)
    metrics = chosen("metrics", metrics, tuple(METRICS))
    y = np.asarray(column_or_1d(y))
    code_classes(y)  # refuses what a fit would refuse
    check_consistent_length(X, y, sample_weight)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)

    def part(rows: NDArray[np.int64]) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        return _safe_indexing(X, rows), y[rows], None if weight is None else weight[rows]

    random = check_random_state(random_state)
    folds = _folds(X, y, cv, n_repeats, random)
    seeds = random.randint(np.iinfo(np.int32).max, size=len(folds))
    forests = [
        AUCForestClassifier(criterion=criterion, n_jobs=n_jobs, **forest_params) for criterion in by_name.values()
    ]
    for forest in forests:
        forest._validate_params()  # fit would do it too, but after other criteria were compiled
    for forest in tqdm(forests, desc="compile", leave=False, disable=not verbose):
        _fit(clone(forest).set_params(n_estimators=1), *part(folds[0][0]))

    name_type = f"U{max(map(len, names))}"
    fields = [("fold", "i8"), ("criterion", name_type), ("n_train", "i8"), ("n_test", "i8")]
    table = np.zeros((len(folds), len(names)), [*fields, *((metric, "f8") for metric in metrics)])
    fits = [(fold, k) for fold in range(len(folds)) for k in np.roll(range(len(names)), fold)]
    for fold, k in tqdm(fits, desc="fits", disable=not verbose):
        train, test = folds[fold]
        forest = clone(forests[k]).set_params(random_state=seeds[fold])
        fitted = FittedFold(forest, _fit(forest, *part(train)), *part(test))
        scores = (METRICS[metric].measure(fitted) for metric in metrics)
        table[fold, k] = (fold, names[k], len(train), len(test), *scores)
    return CriteriaComparison(names, metrics, table)


def _names(criteria: Sequence[str | Callable[..., Any]]) -> Sequence[str]:
    """Return the names of criteria: a function may have the name of a built-in one."""
    if isinstance(criteria, str):
        return criteria
    return [f"{getattr(c, '__name__', c)}()" if callable(c) else c for c in criteria]


def _fit(forest: Any, X: Any, y: NDArray[Any], sample_weight: NDArray[np.float64] | None) -> float:
    """Fit a forest and return the seconds that it took."""
    start = perf_counter()
    forest.fit(X, y, sample_weight=sample_weight)
    return perf_counter() - start


def _folds(X: Any, y: NDArray[Any], cv: Any, n_repeats: int, random: np.random.RandomState) -> list[Fold]:
    """Return training and test rows of every fold, each with rows of all classes."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y has one class only: {classes[0]}")
    if isinstance(cv, Integral):
        rarest = classes[counts.argmin()]
        if counts.min() < cv:
            raise ValueError(f"class {rarest} has {counts.min()} rows, too few for {cv} folds")
        splitter = RepeatedStratifiedKFold(n_splits=int(cv), n_repeats=n_repeats, random_state=random)
    elif n_repeats != 1:
        raise ValueError(f"n_repeats={n_repeats} needs an int for cv: a splitter brings its own repeats")
    else:
        splitter = check_cv(cv, y, classifier=True)
    folds = list(splitter.split(X, y))
    if len(folds) < 2:
        raise ValueError(f"a comparison needs at least 2 folds, cv gives {len(folds)}")
    for number, fold in enumerate(folds):
        for part, rows in zip(("training", "test"), fold):
            missing = np.setdiff1d(classes, y[rows])
            if len(missing):
                raise ValueError(f"fold {number} has no {part} row of class {missing[0]}")
    return folds
