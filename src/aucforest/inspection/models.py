"""Trees of a model, and the names of its features, classes and splits."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aucforest.columns.dates import format_time
from aucforest.columns.expansion import IntegerColumn, columns_of_found
from aucforest.columns.values import readable
from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.tree.tree import MISSING_CODE, Tree


def trees_of(model: Any) -> list[Tree]:
    """Return the trees of a fitted classifier, or a list with the given Tree."""
    if isinstance(model, Tree):
        return [model]
    expected = "expected an AUCForestClassifier, an AUCTreeClassifier or a Tree"
    return _check_fitted(model, TreeBasedClassifier, expected).trees_


def check_forest(model: Any) -> None:
    """Raise an error if a model is not a fitted forest."""
    _check_fitted(model, AUCForestClassifier, "forest must be an AUCForestClassifier")


def _check_fitted(model: Any, kind: type, expected: str) -> Any:
    if not isinstance(model, kind):
        advice = """: pass its forest, stack.members_["forest"]""" if isinstance(model, AUCStackingClassifier) else ""
        raise TypeError(f"{expected}, got {type(model).__name__}{advice}")
    check_is_fitted(model, "trees_")
    return model


def forest_of(model: Any) -> AUCForestClassifier | None:
    """Return a forest itself, the forest of a fitted stack, or None for other models."""
    if isinstance(model, AUCStackingClassifier):
        model = model.members_["forest"]
    return model if isinstance(model, AUCForestClassifier) else None


class _NumberedNames(Sequence[str]):
    """feature_0, feature_1, ..., created on access, because a file may claim millions of features."""

    def __init__(self, n_names: int) -> None:
        self._indices = range(n_names)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        selected = self._indices[index]
        return [f"feature_{i}" for i in selected] if isinstance(index, slice) else f"feature_{selected}"


def feature_names_of(model: Any, n_features: int, given: Sequence[str] | None = None) -> Sequence[str]:
    """Return the names of the features: from the given names, else as seen in `fit`, else feature_0, feature_1, ..."""
    names = given
    has_derived = getattr(model, "target_rates_", None) is not None or bool(getattr(model, "expanded_", {}))
    if names is None:
        names = model.split_features_ if has_derived else getattr(model, "feature_names_in_", None)
    elif has_derived and len(names) == model.n_features_in_:
        names = model._names_of_features(names)
    if names is None:
        return _NumberedNames(n_features)
    return _check_number("feature_names", names, n_features, "features")


def input_names_of(model: Any) -> Sequence[str]:
    """Return the names of the features of a model, without its target rates (target encoding)."""
    inputs = model._inputs_of_features
    return feature_names_of(model, len(inputs))[: len(set(inputs))]


def name_of_score(scoring: Any) -> str:
    """Return the name of a scorer, which is a string or a function."""
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")


def class_names_of(model: Any, n_classes: int, given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the classes: the given names, else the labels seen in `fit`, else indices."""
    names = getattr(model, "classes_", range(n_classes)) if given is None else given
    return _check_number("class_names", names, n_classes, "classes")


def _check_number(parameter: str, names: Any, n_expected: int, plural: str) -> list[str]:
    if len(names) != n_expected:
        raise ValueError(f"{parameter} has {len(names)} names, but the model has {n_expected} {plural}")
    return [str(name) for name in np.asarray(names).tolist()]


def category_names_of(model: Any, *, quoted: bool = False) -> dict[int, list[str]]:
    """Return the names of the categories seen in `fit`, by the index of the categorical feature."""
    as_text, categories = repr if quoted else str, getattr(model, "categories_", {})
    names = {feature: [as_text(readable(name)) for name in values.tolist()] for feature, values in categories.items()}
    return names | range_names_of(model)


def range_names_of(model: Any) -> dict[int, list[str]]:
    """Return the names of ranges of integers, such as "1000 to 1099", by the index of the categorical feature."""
    if not (expanded := getattr(model, "expanded_", {})):
        return {}
    features = columns_of_found(model.n_features_in_, expanded).items()
    widths = {f: width for f, (j, width) in features if width > 1 and isinstance(expanded[j], IntegerColumn)}
    starts = {f: (model.categories_[f] * width).tolist() for f, width in widths.items()}
    return {f: [f"{start} to {start + widths[f] - 1}" for start in found] for f, found in starts.items()}


class SplitFormat(NamedTuple):
    """The format of splits as text."""

    feature_names: Sequence[str]
    categories: Mapping[int, Sequence[str]]  # names of the categories, by the index of the feature
    times: Collection[int]  # the features whose thresholds are shown as dates
    decimals: int  # the number of decimals of other thresholds
    most_categories: int | None = None  # the maximum number of categories that are listed

    def conditions(self, tree: Tree, node: int) -> tuple[str, str]:
        """Return the conditions of the left and the right child of a split.

        A categorical split is described by the categories that do not go to the side of missing values.
        """
        feature, threshold, missing_left = int(tree.feature[node]), tree.threshold[node], bool(tree.missing_left[node])
        name = self.feature_names[feature]
        if threshold == np.inf:  # only missing values are split off
            sides = f"{name} is not missing", f"{name} is missing"
            return sides[::-1] if missing_left else sides
        if tree.has_set(node) or feature in self.categories:
            goes_left = tree.goes_left(node) if tree.has_set(node) else np.arange(MISSING_CODE) <= threshold
            names: Sequence[Any] = self.categories.get(feature, range(MISSING_CODE))
            codes = np.minimum(np.arange(len(names)), MISSING_CODE - 1)  # the remaining categories share the last code
            listed = [str(names[i]) for i in np.flatnonzero(goes_left[codes] != missing_left).tolist()]
            if self.most_categories is not None and len(listed) > self.most_categories:
                listed[self.most_categories :] = ["..."]
            categories = "{" + ", ".join(listed) + "}"
            inside, outside = f"{name} in {categories}", f"{name} not in {categories} or missing"
            return (outside, inside) if missing_left else (inside, outside)
        shown = format_time(threshold) if feature in self.times else f"{threshold:.{self.decimals}f}"
        left, right = f"{name} <= {shown}", f"{name} > {shown}"
        return (f"{left} or missing", right) if missing_left else (left, f"{right} or missing")


def check_count(name: str, value: int, least: int) -> None:
    """Raise ValueError if a value is not an integer, or is below `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
