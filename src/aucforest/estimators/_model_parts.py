"""Fitted state as arrays and metadata of a model file, and back.

What a file says is checked before anything is made of it: a restored model is one that a fit could have left.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._prior_correction import PriorCorrection
from aucforest.fitting.sampling import Drawn
from aucforest.persistence.folded_trees import fold, unfold
from aucforest.persistence.model_file import Arrays, ModelFormatError, StoredModel
from aucforest.persistence.plain_values import labels_from_plain, labels_to_plain
from aucforest.tables.columns import feature_kinds
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import MAX_CLASSES

# What is made of a model later may take memory for every feature.
_MOST_FEATURES = 2**24


class Part(NamedTuple):
    """Some of the fitted attributes of a model.

    store : callable
        Takes the model and returns arrays and metadata.
    restore : callable
        Takes a model and what is stored, and sets the attributes of the former.
    """

    store: Callable[[Any], tuple[Arrays, dict[str, Any]]]
    restore: Callable[[Any, StoredModel], None]


def _require(holds: Any, sentence: str) -> None:
    if not holds:
        raise ModelFormatError(sentence)


def _numbers(model: Any, names: tuple[str, ...]) -> Arrays:
    """Return those of some attributes that there are."""
    return {name: np.asarray(getattr(model, name), dtype=np.float64) for name in names if hasattr(model, name)}


def _store_data(model: Any) -> tuple[Arrays, dict[str, Any]]:
    """Return what a model knows of classes and features."""
    if model.n_features_in_ > _MOST_FEATURES:
        raise ValueError(f"a model file knows at most {_MOST_FEATURES} features, not {model.n_features_in_}")
    metadata = {"n_features": model.n_features_in_, "classes": labels_to_plain(model.classes_)}
    if hasattr(model, "feature_names_in_"):
        metadata["feature_names"] = labels_to_plain(model.feature_names_in_)
    return {}, metadata


def _restore_data(model: Any, stored: StoredModel) -> None:
    n_features, classes = stored.take("n_features", int), labels_from_plain(stored.take("classes", dict))
    _require(1 <= n_features <= _MOST_FEATURES, f"n_features is {n_features}")
    _require(2 <= len(classes) <= MAX_CLASSES, f"there are {len(classes)} classes")
    _require(all(one < next_one for one, next_one in pairwise(classes.tolist())), "the classes are not in rising order")
    model.n_features_in_, model.classes_ = n_features, classes
    if "feature_names" in stored:
        names = labels_from_plain(stored.take("feature_names", dict))
        are_names = names.dtype == object and all(isinstance(name, str) for name in names)
        _require(are_names and len(names) == n_features, f"feature_names are not {n_features} strings")
        model.feature_names_in_ = names


def _store_trees(model: Any) -> tuple[Arrays, dict[str, Any]]:
    categories = [[feature, labels_to_plain(labels)] for feature, labels in model.categories_.items()]
    return fold(model.trees_), {"categories": categories}


def _restore_trees(model: Any, stored: StoredModel) -> None:
    n_features = model.n_features_in_
    model.categories_ = {}
    for item in stored.take("categories", list):
        _require(isinstance(item, list) and len(item) == 2 and type(item[0]) is int, "categories are not in pairs")
        feature, labels = item[0], labels_from_plain(item[1])
        _require(0 <= feature < n_features, f"there are categories of feature {feature}, but {n_features} features")
        model.categories_[feature] = labels
    set_features = np.flatnonzero(feature_kinds(model.categories_, n_features) != NUMERIC)
    model.trees_ = unfold(stored, n_features, len(model.classes_), set_features)


def _restore_tree(model: Any, stored: StoredModel) -> None:
    _restore_trees(model, stored)
    _require(len(model.trees_) == 1, f"{len(model.trees_)} trees are no {type(model).__name__}")


_NUMBERS = ("class_prior_", "shrinkage_", "threshold_std_", "oob_score_", "oob_decision_function_")


def _store_forest(forest: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays = _numbers(forest, _NUMBERS)
    if forest.threshold_ is not None:
        arrays |= _numbers(forest, ("threshold_",))
    if (correction := forest._prior_correction) is not None:
        arrays["prior_correction"] = np.array([correction.exponent, *correction.offsets])
    return arrays, {"seed": forest._seed, "drawn": [list(drawn) for drawn in forest._drawn]}


def _restore_forest(forest: Any, stored: StoredModel) -> None:
    n_classes = len(forest.classes_)
    forest._seed = stored.take("seed", int)
    _require(0 <= forest._seed < 2**63, f"seed is {forest._seed}")
    forest._drawn = [_restore_drawn(item) for item in stored.take("drawn", list)]
    prior = forest.class_prior_ = stored.take_array("class_prior_", "d", (n_classes,))
    _require(np.all(prior >= 0.0) and abs(prior.sum() - 1.0) <= 1e-9, "class_prior_ are no shares")
    forest.shrinkage_ = float(stored.take_array("shrinkage_", "d", ()))
    _require(0.0 <= forest.shrinkage_ < np.inf, f"shrinkage_ is {forest.shrinkage_}")
    for name in ("threshold_std_", "oob_score_"):
        if name in stored:
            setattr(forest, name, float(stored.take_array(name, "d", ())))
    if "oob_decision_function_" in stored:
        chances = forest.oob_decision_function_ = stored.take_array("oob_decision_function_", "d", (-1, n_classes))
        _require(not np.any((chances < 0.0) | (chances > 1.0)), "oob_decision_function_ are no probabilities")
    forest.threshold_ = _restore_threshold(stored, n_classes)
    forest._prior_correction = _restore_correction(stored, n_classes)


def _restore_drawn(item: Any) -> Drawn:
    """Return how trees drew their rows."""
    _require(isinstance(item, list) and len(item) == 3 and isinstance(item[1], list), "drawn is not what it should be")
    n_rows, sizes, replace = item
    _require(all(type(size) is int and size >= 0 for size in (n_rows, *sizes)), "drawn are no numbers of rows")
    _require(type(replace) is bool, "drawn does not say whether rows were replaced")
    return Drawn(n_rows, tuple(sizes), replace)


def _restore_threshold(stored: StoredModel, n_classes: int) -> float | NDArray[np.float64] | None:
    """Return what `predict` goes by: nothing, a probability of two classes, or shares or costs of any."""
    if "threshold_" not in stored:
        return None
    threshold, costs = stored.take_array("threshold_", "d"), (n_classes, n_classes)
    _require(threshold.shape in (() if n_classes == 2 else (n_classes,), costs), "threshold_ does not fit the classes")
    if threshold.ndim == 0:
        # A probability, or infinity where it is best to predict nothing but the first class.
        _require(0.0 <= threshold <= 1.0 or threshold == np.inf, f"threshold_ is {threshold}")
        return float(threshold)
    _require(np.all(np.isfinite(threshold)), "threshold_ is not finite")
    return threshold


def _restore_correction(stored: StoredModel, n_classes: int) -> PriorCorrection | None:
    """Return what probabilities are corrected by: of a class that is never drawn the logarithm is -inf."""
    if "prior_correction" not in stored:
        return None
    numbers = stored.take_array("prior_correction", "d", (1 + n_classes,))
    exponent, offsets = float(numbers[0]), numbers[1:]
    _require(0.0 < exponent < np.inf, "the exponent of prior_correction is not positive")
    _require(np.all(offsets < np.inf) and offsets.max() > -np.inf, "prior_correction is not finite")
    return PriorCorrection(exponent, offsets)


def _store_linear(model: Any) -> tuple[Arrays, dict[str, Any]]:
    curves = model.loss_curve_ if len(model.classes_) > 2 else [model.loss_curve_]
    return {
        "coef_": model.coef_,
        "intercept_": model.intercept_,
        "n_iter_": model.n_iter_,
        "loss_curve_": np.concatenate([np.asarray(curve, dtype=np.float64) for curve in curves]),
    }, {}


def _restore_linear(model: Any, stored: StoredModel) -> None:
    n_classes = len(model.classes_)
    n_pairs = n_classes * (n_classes - 1) // 2
    model.coef_ = stored.take_array("coef_", "d", (n_pairs, model.n_features_in_))
    model.intercept_ = stored.take_array("intercept_", "d", (n_pairs,))
    _require(np.all(np.isfinite(model.coef_)) and np.all(np.isfinite(model.intercept_)), "coef_ is not finite")
    model.n_iter_ = stored.take_array("n_iter_", "q", (n_pairs,))
    losses = stored.take_array("loss_curve_", "d", (-1,))
    fits = np.all((model.n_iter_ >= 0) & (model.n_iter_ <= len(losses))) and model.n_iter_.sum() == len(losses)
    _require(fits, "n_iter_ does not fit the losses")
    curves = [curve.tolist() for curve in np.split(losses, np.cumsum(model.n_iter_)[:-1])]
    model.loss_curve_ = curves if n_classes > 2 else curves[0]


DATA = Part(_store_data, _restore_data)
TREE = Part(_store_trees, _restore_tree)
TREES = Part(_store_trees, _restore_trees)
FOREST = Part(_store_forest, _restore_forest)
LINEAR = Part(_store_linear, _restore_linear)
