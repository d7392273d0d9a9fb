"""The metrics of a cross-validated comparison: functions of a fitted model and the test rows of a fold."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.metrics.at_k import find_at_k, lift_at_k
from aucforest.metrics.classification import brier_score, g_mean, log_loss
from aucforest.metrics.roc import class_average_precision, class_roc_auc, mean_over_classes
from aucforest.metrics.validation import positive_last


@dataclass
class FittedFold:
    """A fitted forest or stack, its fit time in seconds, and the test rows (X, y and their weights) of its fold."""

    forest: Any
    seconds: float
    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None

    @cached_property
    def proba(self) -> NDArray[np.float64]:
        """Class probabilities, shape (n_samples, n_classes)."""
        return np.asarray(self.forest.predict_proba(self.X))

    @cached_property
    def is_class(self) -> NDArray[np.bool_]:
        """Whether each row is of each class, shape (n_samples, n_classes)."""
        return self.y[:, None] == self.forest.classes_

    def score(self, metric: Callable[..., float]) -> float:
        """Return a metric of class indices, probabilities and weights. Of two classes, the positive one is last."""
        order = positive_last(self.forest)
        return metric(self.is_class[:, order].argmax(axis=1), self.proba[:, order], self.sample_weight)


def _g_mean(fold: FittedFold) -> float:
    predicted = (fold.forest.predict(fold.X)[:, None] == fold.forest.classes_).argmax(axis=1)
    return g_mean(fold.is_class.argmax(axis=1), predicted, fold.sample_weight)


def _mean_over_trees(fold: FittedFold, name: str) -> float:
    """Return the mean of an attribute of the trees; for a stack, over the trees of all its members."""
    members = getattr(fold.forest, "members_", {"forest": fold.forest}).values()
    return float(np.mean([getattr(tree, name) for member in members for tree in getattr(member, "trees_", ())]))


class Metric(NamedTuple):
    """A metric: its name in texts, its bounds, and the function that computes it on a fold."""

    title: str
    higher_is_better: bool
    measure: Callable[[FittedFold], float]
    upper: float = np.inf
    upper_multiclass: float | None = None  # the bound for more than two classes if it differs
    kind: Literal["ranking", "quality", "cost"] = "quality"  # fit time and sizes of trees are costs

    def upper_bound(self, n_classes: int) -> float:
        """Return the upper bound of the metric for a number of classes."""
        return self.upper if n_classes == 2 or self.upper_multiclass is None else self.upper_multiclass


METRICS = {
    "roc_auc": Metric("ROC AUC", True, lambda fold: fold.score(class_roc_auc), 1.0, kind="ranking"),
    "average_precision": Metric(
        "average precision", True, lambda fold: fold.score(class_average_precision), 1.0, kind="ranking"
    ),
    "g_mean": Metric("G-mean", True, _g_mean, 1.0),
    "brier": Metric("Brier score", False, lambda fold: fold.score(brier_score), 1.0, 2.0),  # halved for two classes
    "log_loss": Metric("log loss", False, lambda fold: fold.score(log_loss)),
    "fit_seconds": Metric("fit time in seconds", False, lambda fold: fold.seconds, kind="cost"),
    "n_nodes": Metric("nodes per tree", False, lambda fold: _mean_over_trees(fold, "n_nodes"), kind="cost"),
    "depth": Metric("tree depth", False, lambda fold: _mean_over_trees(fold, "max_depth"), kind="cost"),
}


def find_metric(name: str) -> Metric:
    """Return one of METRICS, or a metric such as "precision_at_0.01"; raise ValueError for other names."""
    if name in METRICS:
        return METRICS[name]
    at_k = find_at_k(name)
    if at_k is None:
        names = ", ".join([*METRICS, "precision_at_K", "recall_at_K", "lift_at_K"])
        raise ValueError(f"metrics must be among {names} (K such as 0.01 or 100), got {name!r}")
    title, metric, k = at_k
    upper = np.inf if metric is lift_at_k else 1.0
    at_given_k = partial(mean_over_classes, partial(metric, k=k))
    return Metric(title, True, lambda fold: fold.score(at_given_k), upper, kind="ranking")
