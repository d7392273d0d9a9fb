"""Threshold rules, which turn probabilities into labels."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._caller import warn
from aucforest.estimators._class_sample import class_factors
from aucforest.fitting.out_of_bag import Sums, parts_of_rows
from aucforest.fitting.target import LEAST_GROUPS, FewGroups
from aucforest.metrics import optimal_threshold
from aucforest.metrics.at_k import top_size
from aucforest.metrics.thresholds import check_bounds, check_cost
from aucforest.tree.random import RESAMPLED_TREES

TUNED = ("gmean", "youden", "f1")
RULES = ("prevalence", *TUNED)
OF_ROWS = "cost"  # the rule whose costs of each row are an argument of `fit`
OF_FIT = "fit"  # the same costs in a rule that also has an alert budget

# For the standard deviation of a threshold, N_GROUPS groups of trees are resampled _N_RESAMPLES times.
N_GROUPS = 20
_N_RESAMPLES = 50
# This is done with at most so many rows, as many of each class where there are enough: with more it would take 1 KB for
# each row.
SPREAD_ROWS = 2**16

# Computes class probabilities from sums over trees and the number of trees.
MeanOfTrees = Callable[[NDArray[np.float64], Any], NDArray[np.float64]]


def resolve_threshold(threshold: Any, cost: NDArray[np.float64] | None, n_classes: int, n_rows: int) -> Any:
    """Return the rule of a fit, which for "cost" has the costs of the training rows; raise ValueError as below."""
    if not takes_costs(threshold):
        if cost is not None:
            either = f"{OF_ROWS!r} or {{'alerts': k, 'cost': {OF_FIT!r}}}"
            raise ValueError(f"cost needs threshold={either}, but threshold is {threshold!r}")
        check_threshold(threshold, n_classes, n_rows)
        return threshold
    if n_classes > 2:
        raise ValueError(f"threshold={threshold!r} needs two classes, but y has {n_classes}")
    if cost is None:
        raise ValueError(
            f"threshold={threshold!r} needs the costs of errors for each sample: fit(X, y, cost=...), or"
            " threshold={'cost': array} if the data are not in memory"
        )
    if np.ndim(cost) != 3:
        what = "pass one matrix for all samples as threshold={'cost': matrix}"
        raise ValueError(f"cost must have the shape ({n_rows}, 2, 2), but has the shape {np.shape(cost)}: {what}")
    rule = threshold if isinstance(threshold, dict) else {}
    rule = rule | {"cost": check_cost(cost, n_classes, n_rows=n_rows)}
    check_threshold(rule, n_classes, n_rows)
    return rule


def takes_costs(threshold: Any) -> bool:
    """Return whether the costs of a rule are those of each row that `fit` gets."""
    if not isinstance(threshold, dict):
        return bool(threshold == OF_ROWS)
    return "alerts" in threshold and isinstance(threshold.get("cost"), str) and threshold["cost"] == OF_FIT


def check_threshold(threshold: Any, n_classes: int, n_rows: int | None) -> None:
    """Raise ValueError if a rule is unknown, or not defined for the number of classes or of rows to tune it on."""
    if takes_costs(threshold):
        budget = "'alerts': k, " if isinstance(threshold, dict) else ""
        here = f"here pass {{{budget}'cost': array}}"
        raise ValueError(f"threshold={threshold!r} has its costs from fit(X, y, cost=...): {here}")
    if isinstance(threshold, dict):
        check_bounds(threshold, name="threshold", others=("cost",))
        if isinstance(threshold.get("alerts"), Integral) and n_rows is not None:
            top_size(threshold["alerts"], n_rows, name="threshold: alerts")
    elif isinstance(threshold, str):
        if threshold not in RULES:
            raise ValueError(f"threshold must be one of {', '.join(RULES)}, but is {threshold!r}")
    elif threshold is not None and not (isinstance(threshold, Real) and 0.0 <= float(threshold) <= 1.0):
        raise ValueError(f"threshold must be a number between 0 and 1, but is {threshold!r}")
    if n_classes > 2 and (has_bound(threshold) or threshold in TUNED or isinstance(threshold, Real)):
        raise ValueError(f"threshold={threshold!r} needs two classes, but y has {n_classes}")
    if isinstance(threshold, dict) and "cost" in threshold:
        check_cost(threshold["cost"], n_classes, where="threshold: ", n_rows=n_rows)


def is_tuned(threshold: Any, n_classes: int) -> bool:
    """Return whether a rule is tuned on out-of-bag predictions."""
    return n_classes == 2 and (threshold in (*TUNED, OF_ROWS) or isinstance(threshold, dict))


def is_of_positive(threshold: Any) -> bool:
    """Return whether a rule is for the positive one of two classes and does not treat both alike."""
    return bool(threshold == "f1" or has_bound(threshold))


def has_bound(threshold: Any) -> bool:
    """Return whether a rule has a bound, with or without costs."""
    return isinstance(threshold, dict) and set(threshold) != {"cost"}


def depends_on_prevalence(threshold: Any) -> bool:
    """Return whether the best threshold by a rule that is tuned changes with the class frequencies."""
    return threshold not in ("gmean", "youden") and not (
        isinstance(threshold, dict) and {"fpr", "recall"} & threshold.keys()
    )


def find_positive(pos_label: Any, classes: NDArray[Any]) -> Any:
    """Return the label of the positive one of two classes, by default the second; None for more classes."""
    labels = classes.tolist()
    if pos_label is None:
        return labels[1] if len(labels) == 2 else None
    if len(labels) > 2:
        raise ValueError(f"pos_label={pos_label!r} needs two classes, but y has {len(labels)}")
    if pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {labels}")
    return labels[labels.index(pos_label)]


def warn_of_positive(setting: str, model: Any) -> None:
    """Warn if the second of two text labels, which a setting is for by default, is the more frequent one."""
    classes = model.classes_.tolist()
    if model.pos_label is None and len(classes) == 2 and isinstance(classes[1], str) and model.class_prior_[1] > 0.5:
        negative, positive = classes
        warn(
            f"{setting}: the positive class is {positive!r}, the second in sorted order, which is more"
            f" frequent than {negative!r}; for the rarer one set pos_label={negative!r}",
        )


def warn_of_few_groups(few: FewGroups) -> None:
    """Warn of a class that too few groups have for choices by out-of-bag scores."""
    warn(
        f"groups: only {few.n_groups} groups have samples of class {few.label!r}, fewer than {LEAST_GROUPS}: out-of-bag"
        " probabilities of it are too low, and no shrinkage, mixture of criteria or calibration is chosen by them",
    )


def check_groups_of_rule(threshold: Any, n_classes: int, few: FewGroups | None) -> None:
    """Raise ValueError if a rule would be tuned out of bag on a class of too few groups; alerts need no labels."""
    is_budget = isinstance(threshold, dict) and set(threshold) == {"alerts"}
    needs_labels = is_tuned(threshold, n_classes) and not is_budget
    if few is not None and needs_labels:
        raise ValueError(
            f"threshold={threshold!r} cannot be tuned out of bag: only {few.n_groups} groups have samples of class"
            f" {few.label!r}, fewer than {LEAST_GROUPS}; pass 'prevalence' or a number, or tune it on other samples"
            " with set_threshold(..., oob=False)"
        )


def fixed_threshold(threshold: Any, prior: NDArray[np.float64], positive: int) -> Any:
    """Return the threshold for `decide` by a rule that is not tuned; `prior` are the class frequencies."""
    if threshold == "prevalence":
        return float(prior[positive]) if len(prior) == 2 else prior
    return np.asarray(threshold["cost"], dtype=np.float64) if isinstance(threshold, dict) else threshold


@dataclass(frozen=True)
class TunedRule:
    """A rule that is tuned, and the labels, weights and costs of the rows on which it is."""

    threshold: Any  # the rule
    labels: NDArray[Any]  # (n_rows,), the indices of the classes
    weights: NDArray[np.float64] | None
    positive: int  # the index of the positive class

    @cached_property
    def _rule(self) -> Any:
        """The rule, in which a number of alerts is a proportion of the rows."""
        rule = self.threshold
        if isinstance(rule, dict) and isinstance(rule.get("alerts"), Integral):
            # of all training rows of positive weight, including those that are never out of bag
            n_rows = len(self.labels) if self.weights is None else np.count_nonzero(self.weights)
            rule = rule | {"alerts": min(rule["alerts"] / n_rows, 1.0)}
        return rule

    def _rule_at(self, rows: NDArray[Any] | slice) -> Any:
        """Return the rule with the costs of some rows, if every row has its own."""
        rule = self._rule
        if isinstance(rule, dict) and np.ndim(rule.get("cost", 0)) == 3:
            rule = rule | {"cost": np.asarray(rule["cost"], dtype=np.float64)[rows]}
        return rule

    def best(self, proba: NDArray[np.float64], rows: NDArray[Any] | slice = slice(None)) -> float:
        """Return the best threshold for the class probabilities of some rows, or NaN if these are of one class."""
        is_positive, rule = self.labels[rows] == self.positive, self._rule_at(rows)
        if is_positive.all() or not is_positive.any():
            return float("nan")
        options = {"criterion": rule}
        if isinstance(rule, dict) and "cost" in rule:
            cost = np.asarray(rule["cost"])
            criterion = {"alerts": rule["alerts"]} if "alerts" in rule else "cost"
            options = {"criterion": criterion, "cost": cost if self.positive else cost[..., ::-1, ::-1]}
        weights = None if self.weights is None else self.weights[rows]
        return optimal_threshold(is_positive, proba[:, self.positive], sample_weight=weights, **options)

    def of_sample(self, rows: NDArray[np.int64]) -> "TunedRule":
        """Return the rule for a sample of the rows, with weights that restore the proportions of the classes."""
        kept = self.labels if self.weights is None else self.labels[self.weights > 0]
        weights = class_factors(kept, self.labels[rows])
        weights = weights if self.weights is None else self.weights[rows] * weights
        return TunedRule(self._rule_at(rows), self.labels[rows], weights, self.positive)


class GroupSums(NamedTuple):
    """Sums over groups of trees at some rows, from which the standard deviation of a threshold is estimated."""

    sums: Sums  # with a first axis for the groups
    rows: NDArray[np.int64] | None  # the numbers of these rows; None for all


def tune_threshold(
    rule: TunedRule, sums: Sums, groups: GroupSums, mean_of_trees: MeanOfTrees, seed: int
) -> tuple[float, float]:
    """Return a tuned threshold for two classes, and its standard deviation over resampled groups of trees."""

    def best_of(rule: TunedRule, sums: Sums) -> float:
        seen = sums.n_trees > 0
        return rule.best(mean_of_trees(sums.total[seen], sums.n_trees[seen, None]), seen)

    best = best_of(rule, sums)
    if np.isnan(best):
        raise ValueError(
            f"threshold={rule.threshold!r} needs out-of-bag samples of both classes: increase n_estimators"
        )
    (total, n_trees), rows = groups
    rule = rule if rows is None else rule.of_sample(rows)
    generator = np.random.default_rng([seed, RESAMPLED_TREES])
    resamples = generator.multinomial(len(total), np.full(len(total), 1 / len(total)), _N_RESAMPLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the required precision is not reached
        resampled = (Sums(np.tensordot(times, total, 1), times @ n_trees) for times in resamples)
        thresholds = np.array([best_of(rule, sums) for sums in resampled])
    thresholds = thresholds[np.isfinite(thresholds)]
    return best, float(np.std(thresholds, ddof=1)) if len(total) > 1 and len(thresholds) > 1 else float("nan")


def cross_fit_labels(
    rule: TunedRule, rows: NDArray[np.int64], groups: NDArray[np.int64] | None, proba: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the class of some rows by thresholds, each of which is tuned on these rows without the part of the row.

    A threshold suits the rows on which it is tuned better than new ones. Rows of a group are in the same part. Where
    the others are all of one class, the negative class is predicted.
    """
    scores, predicted = proba[:, rule.positive], np.empty(len(rows), dtype=np.int64)
    parts = parts_of_rows(rule.labels[rows], groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the required precision is not reached
        for part in np.unique(parts):
            is_part = parts == part
            is_positive = scores[is_part] >= rule.best(proba[~is_part], rows[~is_part])
            predicted[is_part] = np.where(is_positive, rule.positive, 1 - rule.positive)
    return predicted
