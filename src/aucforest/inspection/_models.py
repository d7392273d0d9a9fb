"""What a model's trees are, and what its features, classes and cuts are called."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.tree.structure import Tree


def trees_of(model: Any) -> list[Tree]:
    """Return the trees of a fitted classifier, or a tree itself as the only one."""
    if isinstance(model, Tree):
        return [model]
    if not isinstance(model, TreeBasedClassifier):
        raise TypeError(f"expected an AUCForestClassifier, an AUCTreeClassifier or a Tree, got {type(model).__name__}")
    check_is_fitted(model, "trees_")
    return model.trees_


def check_forest(model: Any) -> AUCForestClassifier:
    """Return a fitted forest; refuse anything else."""
    if not isinstance(model, AUCForestClassifier):
        raise TypeError(f"forest must be an AUCForestClassifier, got {type(model).__name__}")
    check_is_fitted(model, "trees_")
    return model


def feature_names_of(model: Any, n_features: int, given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the features: those given, else those seen in `fit`, else feature_0, feature_1, ..."""
    names = getattr(model, "feature_names_in_", None) if given is None else given
    if names is None:
        return [f"feature_{i}" for i in range(n_features)]
    return _one_each("feature_names", names, n_features, "features")


def class_names_of(model: Any, n_classes: int, given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the classes: those given, else the labels seen in `fit`, else their numbers."""
    names = getattr(model, "classes_", range(n_classes)) if given is None else given
    return _one_each("class_names", names, n_classes, "classes")


def _one_each(what: str, names: Any, n_expected: int, things: str) -> list[str]:
    """Return names as strings after a check of their number."""
    if len(names) != n_expected:
        raise ValueError(f"{what} has {len(names)} names, but the model has {n_expected} {things}")
    return [str(name) for name in np.asarray(names).tolist()]


def conditions(tree: Tree, node: int, feature_names: Sequence[str], decimals: int) -> tuple[str, str]:
    """Return what holds for the rows that a cut sends left, and for those it sends right."""
    name, threshold = feature_names[tree.feature[node]], tree.threshold[node]
    if threshold == np.inf:
        sides = f"{name} is not missing", f"{name} is missing"
        return sides[::-1] if tree.missing_left[node] else sides
    left, right = f"{name} <= {threshold:.{decimals}f}", f"{name} > {threshold:.{decimals}f}"
    return (f"{left} or missing", right) if tree.missing_left[node] else (left, f"{right} or missing")


def class_weights(tree: Tree, node: int) -> NDArray[np.float64]:
    """Return the weight of every class in a node."""
    weights: NDArray[np.float64] = tree.value[node] * tree.weight[node]
    return weights


def check_count(name: str, value: int, least: int) -> None:
    """Refuse what is not an integer of at least some size."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
