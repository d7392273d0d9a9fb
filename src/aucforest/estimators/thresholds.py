"""Threshold rules, which turn probabilities into labels."""

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.out_of_bag import Sums
from aucforest.metrics import optimal_threshold
from aucforest.metrics.at_k import top_size
from aucforest.metrics.thresholds import check_bounds, check_cost, check_rows

TUNED = ("gmean", "youden", "f1")
RULES = ("prevalence", *TUNED)

# For the standard deviation of a threshold, N_GROUPS groups of trees are resampled _N_RESAMPLES times.
N_GROUPS = 20
_N_RESAMPLES = 50

# Computes class probabilities from sums over trees and the number of trees.
Finish = Callable[[NDArray[np.float64], Any], NDArray[np.float64]]


def check_threshold(threshold: Any, n_classes: int, n_rows: int | None = None) -> None:
    """Raise ValueError if a rule is unknown, or not defined for the number of classes or of training rows, if known."""
    if isinstance(threshold, dict):
        check_bounds(threshold, name="threshold", others=("cost",))
        if "cost" in threshold:
            cost = check_cost(threshold["cost"], n_classes, where="threshold: ", by_row=True)
            if cost.ndim == 3 and n_rows is not None:
                check_rows(cost, n_rows, where="threshold: ")
        elif isinstance(threshold.get("alerts"), Integral) and n_rows is not None:
            top_size(threshold["alerts"], n_rows, name="threshold: alerts")
    elif isinstance(threshold, str):
        if threshold not in RULES:
            raise ValueError(f"threshold must be one of {', '.join(RULES)}, but is {threshold!r}")
    elif threshold is not None and not (isinstance(threshold, Real) and 0.0 <= float(threshold) <= 1.0):
        raise ValueError(f"threshold must be a number between 0 and 1, but is {threshold!r}")
    is_bound = isinstance(threshold, dict) and "cost" not in threshold
    if n_classes > 2 and (is_bound or threshold in TUNED or isinstance(threshold, Real)):
        raise ValueError(f"threshold={threshold!r} needs two classes, but y has {n_classes}")


def is_tuned(threshold: Any, n_classes: int) -> bool:
    """Return whether a rule is tuned on out-of-bag predictions."""
    return n_classes == 2 and (threshold in TUNED or isinstance(threshold, dict))


def warn_of_positive(threshold: Any, classes: NDArray[Any], frequencies: NDArray[np.float64]) -> None:
    """Warn if a rule for the positive class is used with text labels of which the positive one is more frequent."""
    is_one_sided = threshold == "f1" or (isinstance(threshold, dict) and "cost" not in threshold)
    if is_one_sided and isinstance(classes[1], str) and frequencies[1] > 0.5:
        negative, positive = map(str, classes)
        warnings.warn(
            f"threshold={threshold!r}: the positive class is {positive!r}, the second in sorted order, which is more"
            f" frequent than {negative!r}; for the rarer one fit to y == {negative!r}",
            stacklevel=2,
        )


def fixed_threshold(threshold: Any, prior: NDArray[np.float64]) -> Any:
    """Return the threshold for `decide` by a rule that is not tuned; `prior` are the class frequencies."""
    if threshold == "prevalence":
        return float(prior[1]) if len(prior) == 2 else prior
    return np.asarray(threshold["cost"], dtype=np.float64) if isinstance(threshold, dict) else threshold


def tune_threshold(
    threshold: Any,
    labels: NDArray[np.uint16],
    sums: Sums,
    groups: Sums,
    weights: NDArray[np.float64] | None,
    finish: Finish,
    seed: int,
) -> tuple[float, float]:
    """Return a tuned threshold for two classes, and its standard deviation over resampled groups of trees.

    `sums` are out-of-bag sums over all trees, and `groups` over groups of trees.
    """
    criterion, cost = threshold, None
    if isinstance(threshold, dict) and "cost" in threshold:
        criterion, cost = "cost", np.asarray(threshold["cost"], dtype=np.float64)
    elif isinstance(threshold, dict) and isinstance(threshold.get("alerts"), Integral):
        # a proportion of all training rows of positive weight, including those that are never out of bag
        n_rows = len(labels) if weights is None else np.count_nonzero(weights)
        criterion = {"alerts": min(threshold["alerts"] / n_rows, 1.0)}

    def tune(total: NDArray[np.float64], n_trees: NDArray[np.int64]) -> float:
        seen = n_trees > 0
        if len(np.unique(labels[seen])) < 2:
            return float("nan")
        scores = finish(total[seen], n_trees[seen, None])[:, 1]
        weight = None if weights is None else weights[seen]
        costs = cost[seen] if cost is not None and cost.ndim == 3 else cost
        return optimal_threshold(labels[seen] == 1, scores, criterion=criterion, cost=costs, sample_weight=weight)

    best = tune(*sums)
    if np.isnan(best):
        raise ValueError(f"threshold={threshold!r} needs out-of-bag samples of both classes: increase n_estimators")
    n_groups = len(groups.n_trees)
    resamples = np.random.default_rng(seed).multinomial(n_groups, np.full(n_groups, 1 / n_groups), _N_RESAMPLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the required precision is not reached
        spread = np.array([tune(np.tensordot(times, groups.total, 1), times @ groups.n_trees) for times in resamples])
    spread = spread[np.isfinite(spread)]
    return best, float(np.std(spread, ddof=1)) if n_groups > 1 and len(spread) > 1 else float("nan")
