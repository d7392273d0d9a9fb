"""The threshold rules of estimators, which turn probabilities into labels, and their tuning out of bag."""

import warnings
from collections.abc import Callable
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
ROW_COSTS = "cost"  # the rule that uses the costs of each row from the argument `cost` of `fit`
FIT_COSTS = "fit"  # in a rule with "alerts", the value of "cost" that stands for the argument `cost` of `fit`

# To estimate the standard deviation of a threshold, N_GROUPS groups of trees are resampled _N_RESAMPLES times.
N_GROUPS, _N_RESAMPLES = 20, 50
# Maximum number of rows for this estimate. Of more rows, a sample has at most half this number of each class. A row
# needs 1 KB.
THRESHOLD_STD_ROWS = 2**16

# Computes class probabilities, given the sum of the predictions of trees and the number of these trees.
MeanOfTrees = Callable[[NDArray[np.float64], Any], NDArray[np.float64]]


def resolve_threshold(threshold: Any, cost: NDArray[np.float64] | None, n_classes: int, n_rows: int) -> Any:
    """Validate the rule of a fit and return it; a rule that takes its costs from `fit` gets the argument `cost`."""
    if not takes_costs(threshold):
        if cost is not None:
            either = f"{ROW_COSTS!r} or {{'alerts': k, 'cost': {FIT_COSTS!r}}}"
            raise ValueError(f"cost needs threshold={either}, but threshold is {threshold!r}")
        check_threshold(threshold, n_classes, n_rows)
        return threshold
    if n_classes > 2:
        raise ValueError(f"threshold={threshold!r} needs two classes, but y has {n_classes}")
    if cost is None:
        advice = "fit(X, y, cost=...), or threshold={'cost': array} if the data are not in memory"
        raise ValueError(f"threshold={threshold!r} needs the costs of errors for each sample: {advice}")
    if np.ndim(cost) != 3:
        advice = "pass one matrix for all samples as threshold={'cost': matrix}"
        raise ValueError(f"cost must have the shape ({n_rows}, 2, 2), but has the shape {np.shape(cost)}: {advice}")
    rule = threshold if isinstance(threshold, dict) else {}
    rule = rule | {"cost": check_cost(cost, n_classes, n_rows=n_rows)}
    check_threshold(rule, n_classes, n_rows)
    return rule


def takes_costs(threshold: Any) -> bool:
    """Return whether a rule takes its costs from the argument `cost` of `fit`."""
    if not isinstance(threshold, dict):
        return bool(threshold == ROW_COSTS)
    return "alerts" in threshold and isinstance(threshold.get("cost"), str) and threshold["cost"] == FIT_COSTS


def check_threshold(threshold: Any, n_classes: int, n_rows: int | None) -> None:
    """Raise ValueError if a rule is unknown, or not defined for this number of classes or rows."""
    if takes_costs(threshold):
        alerts = "'alerts': k, " if isinstance(threshold, dict) else ""
        advice = f"here pass {{{alerts}'cost': array}}"
        raise ValueError(f"threshold={threshold!r} takes its costs from fit(X, y, cost=...): {advice}")
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
    """Return whether a rule is tuned on predictions of samples, by default out of bag."""
    return n_classes == 2 and (threshold in (*TUNED, ROW_COSTS) or isinstance(threshold, dict))


def has_bound(threshold: Any) -> bool:
    """Return whether a rule has a bound, such as a precision or a number of alerts, with or without costs."""
    return isinstance(threshold, dict) and set(threshold) != {"cost"}


def depends_on_prevalence(threshold: Any) -> bool:
    """Return whether the best threshold of a tuned rule depends on the class frequencies."""
    return threshold not in ("gmean", "youden") and not (
        isinstance(threshold, dict) and {"fpr", "recall"} & threshold.keys()
    )


def find_positive(pos_label: Any, classes: NDArray[Any]) -> Any:
    """Return the label of the positive class, by default the second of two; None for more than two classes."""
    labels = classes.tolist()
    if pos_label is None:
        return labels[1] if len(labels) == 2 else None
    if len(labels) > 2:
        raise ValueError(f"pos_label={pos_label!r} needs two classes, but y has {len(labels)}")
    if pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {labels}")
    return labels[labels.index(pos_label)]


def warn_of_positive(setting: str, model: Any) -> None:
    """Warn if `pos_label` is not set, labels are text, and the positive class is the more frequent one."""
    classes = model.classes_.tolist()
    if model.pos_label is None and len(classes) == 2 and isinstance(classes[1], str) and model.class_prior_[1] > 0.5:
        negative, positive = classes
        warn(
            f"{setting}: the positive class is {positive!r}, the second in sorted order, which is more frequent than"
            f" {negative!r}; for the rarer one set pos_label={negative!r}"
        )


def warn_of_few_groups(few: FewGroups | None) -> None:
    """Warn if a class occurs in too few groups for choices by out-of-bag scores."""
    if few is not None:
        warn(
            f"groups: {_describe(few)}: its out-of-bag probabilities are too low to choose shrinkage, mixture of"
            " criteria or calibration"
        )


def check_groups_of_rule(threshold: Any, n_classes: int, few: FewGroups | None) -> None:
    """Raise ValueError if a class has too few groups to tune the rule out of bag."""
    uses_labels = not (isinstance(threshold, dict) and set(threshold) == {"alerts"})
    if few is not None and is_tuned(threshold, n_classes) and uses_labels:
        advice = "pass 'prevalence' or a number, or tune it on other samples with set_threshold(..., oob=False)"
        raise ValueError(f"threshold={threshold!r} cannot be tuned out of bag: {_describe(few)}; {advice}")


def _describe(few: FewGroups) -> str:
    return f"only {few.n_groups} groups have samples of class {few.label!r}, fewer than {LEAST_GROUPS}"


class TunedRule(NamedTuple):
    """A threshold rule, with the labels, weights and costs of the rows that it is tuned on."""

    threshold: Any  # the rule, which may contain costs
    labels: NDArray[Any]  # (n_rows,), the indices of the classes
    weights: NDArray[np.float64] | None
    positive: int  # the index of the positive class

    def _rule_at(self, rows: NDArray[Any] | slice) -> Any:
        """Return the rule for the given rows, with their costs, and with a number of alerts as a proportion."""
        rule = self.threshold
        if not isinstance(rule, dict):
            return rule
        if isinstance(rule.get("alerts"), Integral):
            # The number of alerts is for all rows of positive weight, including rows that are never out of bag.
            n_rows = len(self.labels) if self.weights is None else np.count_nonzero(self.weights)
            rule = rule | {"alerts": min(rule["alerts"] / n_rows, 1.0)}
        if np.ndim(rule.get("cost", 0)) == 3:
            rule = rule | {"cost": np.asarray(rule["cost"], dtype=np.float64)[rows]}
        return rule

    def best(self, proba: NDArray[np.float64], rows: NDArray[Any] | slice = slice(None)) -> float:
        """Return the best threshold for class probabilities of the given rows, or NaN if they have only one class."""
        is_positive, criterion, cost = self.labels[rows] == self.positive, self._rule_at(rows), None
        if is_positive.all() or not is_positive.any():
            return float("nan")
        if isinstance(criterion, dict) and "cost" in criterion:
            cost = np.asarray(criterion["cost"])
            cost = cost if self.positive else cost[..., ::-1, ::-1]
            criterion = {"alerts": criterion["alerts"]} if "alerts" in criterion else "cost"
        weights, scores = None if self.weights is None else self.weights[rows], proba[:, self.positive]
        return optimal_threshold(is_positive, scores, criterion=criterion, cost=cost, sample_weight=weights)

    def best_of_sums(self, sums: Sums, mean_of_trees: MeanOfTrees) -> float:
        """Return the best threshold for out-of-bag sums of all rows, or NaN if they have only one class."""
        is_oob = sums.n_trees > 0
        return self.best(mean_of_trees(sums.total[is_oob], sums.n_trees[is_oob, None]), is_oob)

    def require(self, best: float, *, oob: bool) -> float:
        """Return the best threshold; raise ValueError if it is NaN."""
        if np.isnan(best):
            samples = "out-of-bag samples of both classes: increase n_estimators"
            samples = samples if oob else "samples of both classes in y"
            raise ValueError(f"threshold={self.threshold!r} needs {samples}")
        return best

    def for_sample(self, rows: NDArray[np.int64]) -> "TunedRule":
        """Return the rule for a sample of the rows, with weights that restore the class frequencies of all rows."""
        kept = self.labels if self.weights is None else self.labels[self.weights > 0]
        weights = class_factors(kept, self.labels[rows])
        weights = weights if self.weights is None else self.weights[rows] * weights
        return TunedRule(self._rule_at(rows), self.labels[rows], weights, self.positive)


def threshold_std(rule: TunedRule, sums: Sums, mean_of_trees: MeanOfTrees, seed: int) -> float:
    """Return the standard deviation of a tuned threshold over resampled groups of trees, the first axis of `sums`."""
    total, n_trees = sums
    generator = np.random.default_rng([seed, RESAMPLED_TREES])
    resamples = generator.multinomial(len(total), np.full(len(total), 1 / len(total)), size=_N_RESAMPLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the required precision may not be reached
        resampled = (Sums(np.tensordot(counts, total, 1), counts @ n_trees) for counts in resamples)
        thresholds = np.array([rule.best_of_sums(sums, mean_of_trees) for sums in resampled])
    thresholds = thresholds[np.isfinite(thresholds)]
    return float(np.std(thresholds, ddof=1)) if len(total) > 1 and len(thresholds) > 1 else float("nan")


def cross_fit_labels(
    rule: TunedRule, rows: NDArray[np.int64], groups: NDArray[np.int64] | None, proba: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Predict the classes of rows in parts, each by a threshold that is tuned on the other parts.

    A threshold looks too good on the rows that it is tuned on. Rows of a group are in the same part. If all rows of
    the other parts have the same class, the negative class is predicted.
    """
    scores, predicted = proba[:, rule.positive], np.empty(len(rows), dtype=np.int64)
    parts = parts_of_rows(rule.labels[rows], groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the required precision may not be reached
        for part in np.unique(parts):
            is_part = parts == part
            is_positive = scores[is_part] >= rule.best(proba[~is_part], rows[~is_part])
            predicted[is_part] = np.where(is_positive, rule.positive, 1 - rule.positive)
    return predicted
