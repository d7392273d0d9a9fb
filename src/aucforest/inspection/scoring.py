"""The metrics of a comparison."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, recall_score

from aucforest.metrics.at_k import class_at_k, find_at_k, lift_at_k
from aucforest.metrics.roc import class_average_precision, class_roc_auc


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
        """Whether a row is of a class, shape (n_samples, n_classes)."""
        return self.y[:, None] == self.forest.classes_

    def score(self, metric: Callable[..., float]) -> float:
        """Return a metric of class codes, class probabilities and weights."""
        return metric(self.is_class.argmax(axis=1), self.proba, self.sample_weight)


def _g_mean(fold: FittedFold) -> float:
    """Return the geometric mean of the recalls of the classes, at the forest's own threshold."""
    labels = fold.forest.classes_
    predicted = fold.forest.predict(fold.X)
    recalls = recall_score(fold.y, predicted, labels=labels, average=None, sample_weight=fold.sample_weight)
    return float(np.prod(recalls) ** (1 / len(recalls)))


def brier_losses(proba: NDArray[np.float64], is_class: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the squared error of the class probabilities of every row, halved for two classes."""
    return np.asarray(np.square(proba - is_class).sum(axis=1) / (2.0 if proba.shape[1] == 2 else 1.0))


def _brier(fold: FittedFold) -> float:
    """Return the mean Brier loss."""
    return float(np.average(brier_losses(fold.proba, fold.is_class), weights=fold.sample_weight))


def _log_loss(fold: FittedFold) -> float:
    """Return the negative mean log-likelihood (natural logarithm)."""
    codes = fold.is_class.argmax(axis=1)
    return float(log_loss(codes, fold.proba, labels=range(fold.proba.shape[1]), sample_weight=fold.sample_weight))


def _mean_of_trees(fold: FittedFold, name: str) -> float:
    """Return the mean of an attribute of the trees, which for a stack are those of all its forests."""
    members = getattr(fold.forest, "members_", {"forest": fold.forest}).values()
    return float(np.mean([getattr(tree, name) for member in members for tree in getattr(member, "trees_", ())]))


class Metric(NamedTuple):
    """Title of a metric, whether higher is better, how to compute it on a fold, its upper bound, and what it is of."""

    title: str
    higher_is_better: bool
    measure: Callable[[FittedFold], float]
    upper: float = np.inf
    upper_of_many: float | None = None  # the upper bound for more than two classes if it differs
    of: Literal["ranking", "quality", "cost"] = "quality"  # a ranking is of quality, too; fit time and sizes are a cost

    def greatest(self, n_classes: int) -> float:
        """Return the upper bound of the metric for a number of classes."""
        return self.upper if n_classes == 2 or self.upper_of_many is None else self.upper_of_many


METRICS = {
    "roc_auc": Metric("ROC AUC", True, lambda fold: fold.score(class_roc_auc), 1.0, of="ranking"),
    "average_precision": Metric(
        "average precision", True, lambda fold: fold.score(class_average_precision), 1.0, of="ranking"
    ),
    "g_mean": Metric("G-mean", True, _g_mean, 1.0),
    "brier": Metric("Brier score", False, _brier, 1.0, 2.0),  # of two classes it is halved
    "log_loss": Metric("log loss", False, _log_loss),
    "fit_seconds": Metric("fit time in seconds", False, lambda fold: fold.seconds, of="cost"),
    "n_nodes": Metric("nodes per tree", False, lambda fold: _mean_of_trees(fold, "n_nodes"), of="cost"),
    "depth": Metric("tree depth", False, lambda fold: _mean_of_trees(fold, "max_depth"), of="cost"),
}


def find_metric(name: str) -> Metric:
    """Return a metric by name: one of METRICS, or for example "precision_at_0.01"; raise ValueError for other names."""
    if name in METRICS:
        return METRICS[name]
    at_k = find_at_k(name)
    if at_k is None:
        names = ", ".join([*METRICS, "precision_at_K", "recall_at_K", "lift_at_K"])
        raise ValueError(f"metrics must be among {names} (K such as 0.01 or 100), got {name!r}")
    title, metric, k = at_k
    upper = np.inf if metric is lift_at_k else 1.0
    return Metric(title, True, lambda fold: fold.score(partial(class_at_k, metric, k)), upper, of="ranking")
