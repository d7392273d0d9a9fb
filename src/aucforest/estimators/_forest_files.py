"""What model files hold of trees and forests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._calibration import Calibration
from aucforest.estimators._mixture import describe_encodings, describe_mixture
from aucforest.estimators._model_files import Part, require
from aucforest.estimators._rate_files import restore_rates, store_rates
from aucforest.fitting.bootstrap import N_HALVES, SampleRecord, digest_groups
from aucforest.persistence.folded_trees import fold, unfold
from aucforest.persistence.model_file import Arrays, StoredModel
from aucforest.persistence.plain_values import fold_labels, unfold_labels
from aucforest.tables.columns import feature_kinds
from aucforest.tables.dates import DateColumn, Dates, are_parts, is_zone, n_added
from aucforest.tables.target_rates import ENCODINGS
from aucforest.tree.features import NUMERIC


def _store_trees(model: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays, categories = fold(model.trees_), []
    for feature, labels in model.categories_.items():
        plain, of_labels = fold_labels(labels, f"categories.{feature}")
        categories.append([feature, plain])
        arrays |= of_labels
    metadata: dict[str, Any] = {"categories": categories}
    if model.dates_:
        metadata["dates"] = [[feature, list(parts), zone] for feature, (parts, zone) in model.dates_.items()]
    if model.target_rates_ is not None:
        of_rates, metadata["rates"] = store_rates(model.target_rates_)
        arrays |= of_rates
    return arrays, metadata


def _restore_trees(model: Any, stored: StoredModel) -> None:
    n_features = model.n_features_in_
    model.categories_ = {}
    for item in stored.take("categories", list):
        require(isinstance(item, list) and len(item) == 2 and type(item[0]) is int, "categories are not in pairs")
        feature, labels = item[0], unfold_labels(item[1], stored, f"categories.{item[0]}")
        require(0 <= feature < n_features, f"there are categories of feature {feature}, but {n_features} features")
        model.categories_[feature] = labels
    model.dates_ = _restore_dates(model, stored.take("dates", list)) if "dates" in stored else {}
    n_features += n_added(model.dates_)
    model.target_rates_ = None
    if "rates" in stored:
        model.target_rates_ = restore_rates(stored, model.categories_, n_features, len(model.classes_))
        n_features += model.target_rates_.n_features
    set_features = np.flatnonzero(feature_kinds(model.categories_, n_features) != NUMERIC)
    model.trees_ = unfold(stored, n_features, len(model.classes_), set_features)


def _restore_dates(model: Any, items: list[Any]) -> Dates:
    """Return what is made of columns of dates; files of before have none."""
    dates: Dates = {}
    for item in items:
        is_column = isinstance(item, list) and len(item) == 3 and type(item[0]) is int and isinstance(item[1], list)
        require(is_column, "dates are not of columns, with parts and zones")
        feature, parts, zone = item
        is_numeric = 0 <= feature < model.n_features_in_ and feature not in model.categories_ | dates
        require(is_numeric, f"there are dates in feature {feature}, which is none or of another kind")
        require(are_parts(parts), "the parts of dates are unknown")
        require(zone is None or (isinstance(zone, str) and is_zone(zone)), "the zone of dates is unknown")
        dates[feature] = DateColumn(tuple(parts), zone)
    return dates


def _restore_tree(model: Any, stored: StoredModel) -> None:
    _restore_trees(model, stored)
    require(len(model.trees_) == 1, f"{type(model).__name__} has {len(model.trees_)} trees instead of one")


def store_decision(model: Any) -> Arrays:
    """Return class frequencies, threshold and out-of-bag results of a forest or a stack."""
    names = ("class_prior_", "prevalence_", "threshold_", "threshold_std_", "oob_score_", "oob_decision_function_")
    values = {name: getattr(model, name, None) for name in names}
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items() if value is not None}


def _store_forest(forest: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays = store_decision(forest) | {"shrinkage_": np.array(forest.shrinkage_)}
    if hasattr(forest, "dispersion_"):
        arrays["dispersion"] = np.array(forest.dispersion_)
    if (calibration := forest.calibration_) is not None:
        slope, intercepts, *evidence = calibration
        arrays["calibration"] = np.array([slope, *evidence, *intercepts])
    variants = list(dict.fromkeys(forest.variants_))
    arrays["variants"] = np.array([variants.index(variant) for variant in forest.variants_], dtype=np.int64)
    metadata = {
        "seed": forest._seed,
        "drawn": [
            list(record)[: 7 if record.n_halves else 6 if record.n_groups else 4] for record in forest._sample_records
        ],
    }
    metadata["variants"] = [list(variant) for variant in variants]
    if forest._groups is not None:
        arrays["groups"] = forest._groups
    if hasattr(forest, "mixture_"):
        criterion, splitter, *numbers = forest.mixture_.values()
        metadata["mixture"] = [criterion.tolist(), splitter.tolist()]
        arrays |= _store_mixture("mixture", *numbers)
    if forest.target_rates_ is not None:
        metadata["encodings"] = encodings = list(dict.fromkeys(forest.encodings_))
        arrays["encodings"] = np.array([encodings.index(encoding) for encoding in forest.encodings_], dtype=np.int64)
    if hasattr(forest, "encoding_mixture_"):
        names, *numbers = forest.encoding_mixture_.values()
        metadata["encoding_mixture"] = names.tolist()
        arrays |= _store_mixture("encoding_mixture", *numbers)
    return arrays, metadata


def _store_mixture(name: str, n_trees: NDArray[np.int64], _: Any, *scores: NDArray[np.float64]) -> Arrays:
    return {f"{name}_n_trees": n_trees, f"{name}_scores": np.stack(scores)}


def _take_mixture(forest: Any, stored: StoredModel, name: str, n: int) -> list[NDArray[Any]]:
    """Return the numbers of trees of n alternatives, their scores and the standard errors of these."""
    n_trees = stored.take_array(f"{name}_n_trees", "q", (n,))
    require(np.all((n_trees >= 0) & (n_trees <= len(forest.trees_))), f"{name} has no numbers of trees")
    scores = stored.take_array(f"{name}_scores", "d", (2, n))
    require(np.all(np.isnan(scores) | ((scores >= 0.0) & (scores <= 1.0))), f"{name} has no scores")
    return [n_trees, *scores]


def _restore_variants(forest: Any, stored: StoredModel) -> None:
    what = "written by aucforest before 0.2: load and save it with aucforest 0.2, or fit the model again"
    require("variants" in stored, what)
    variants, indices = stored.take("variants", list), stored.take_array("variants", "q", (len(forest.trees_),))
    require(all(_are_names(variant, 2) for variant in variants), "variants are not pairs of names")
    require(np.all((indices >= 0) & (indices < len(variants))), "the variants of trees are unknown")
    forest.variants_ = [tuple(variants[index]) for index in indices]
    if "mixture" in stored:
        names = stored.take("mixture", list)
        n_variants = len(names[0]) if names and isinstance(names[0], list) else 0
        fits = len(names) == 2 and n_variants > 1 and all(_are_names(column, n_variants) for column in names)
        require(fits, "mixture has no names")
        n_trees, *scores = _take_mixture(forest, stored, "mixture", n_variants)
        forest.mixture_ = describe_mixture(names[0], names[1], n_trees, *scores)


def _restore_encodings(forest: Any, stored: StoredModel) -> None:
    """Set the encodings of trees; only forests with target rates have some."""
    forest.encodings_ = []
    if forest.target_rates_ is None:
        return
    names, indices = stored.take("encodings", list), stored.take_array("encodings", "q", (len(forest.trees_),))
    require(_are_encodings(names), "encodings are unknown")
    require(np.all((indices >= 0) & (indices < len(names))), "the encodings of trees are unknown")
    forest.encodings_ = [names[index] for index in indices.tolist()]
    if "encoding_mixture" in stored:
        mixed = stored.take("encoding_mixture", list)
        require(len(mixed) > 1 and _are_encodings(mixed), "encoding_mixture has no names")
        forest.encoding_mixture_ = describe_encodings(
            mixed, *_take_mixture(forest, stored, "encoding_mixture", len(mixed))
        )


def _are_encodings(names: list[Any]) -> bool:
    return all(isinstance(name, str) and name in ENCODINGS for name in names) and len(set(names)) == len(names)


def _are_names(value: Any, n: int) -> bool:
    return isinstance(value, list) and len(value) == n and all(isinstance(name, str) for name in value)


def _restore_sampling(forest: Any, stored: StoredModel) -> None:
    forest._sample_records = []
    for item in stored.take("drawn", list):
        require(isinstance(item, list) and len(item) in (4, 6, 7) and isinstance(item[1], list), "drawn is invalid")
        n_rows, sizes, replace, stream, *groups = item
        require(all(type(size) is int and size >= 0 for size in (n_rows, *sizes)), "drawn has invalid numbers of rows")
        require(type(replace) is bool, "drawn does not say whether rows were replaced")
        absent: list[Any] = [0, "", 0][len(groups) :]  # only trees with groups or half-samples have some
        n_groups, digest, n_halves = groups + absent
        require(isinstance(stream, str), "drawn does not name the random stream")
        if sizes and not stream.startswith("aucforest"):  # files of before name numpy alone, if anything
            stream = f"aucforest 0.2 and {stream}" if stream else "aucforest 0.2"
        require(type(n_groups) is int and n_groups >= 0 and isinstance(digest, str), "drawn has invalid groups")
        require(n_halves in (0, N_HALVES), f"drawn has not {N_HALVES} half-samples")
        forest._sample_records.append(SampleRecord(n_rows, tuple(sizes), replace, stream, n_groups, digest, n_halves))
    forest._groups = None
    if "groups" in stored:
        groups = forest._groups = stored.take_array("groups", "i", (-1,))
        require(len(groups) > 0 and groups.min() >= 0, "groups are not numbered from 0")
        sampled = [(record.n_rows, record.n_groups, record.groups) for record in forest._sample_records]
        is_sampled = (len(groups), int(groups.max()) + 1, digest_groups(groups)) in sampled
        require(is_sampled, "groups are not those that trees sampled")


def _restore_calibration(stored: StoredModel, n_classes: int) -> Calibration | None:
    evidence = [float("nan"), 0.0]
    if "calibration" in stored:
        slope, *numbers = stored.take_array("calibration", "d", (3 + n_classes,))
        evidence, intercepts = numbers[:2], np.array(numbers[2:])
    elif "prior_correction" in stored:
        # Files of before calibrated only forests that sampled classes at different rates.
        slope, *numbers = stored.take_array("prior_correction", "d", (1 + n_classes,))
        intercepts = np.array(numbers)
    else:
        return None
    require(0.0 < slope < np.inf, "the slope of the calibration is not positive")
    # The intercept of a class that is never sampled is -inf.
    require(np.all(intercepts < np.inf) and intercepts.max() > -np.inf, "the calibration is not finite")
    require(not evidence[0] < 0.0 and 0.0 <= evidence[1] < 2.0**53, "the evidence of the calibration is not valid")
    return Calibration(float(slope), intercepts, float(evidence[0]), int(evidence[1]))


def restore_decision(model: Any, stored: StoredModel) -> None:
    """Set what `store_decision` returned."""
    n_classes = len(model.classes_)
    prior = model.class_prior_ = stored.take_array("class_prior_", "d", (n_classes,))
    require(np.all(prior >= 0.0) and abs(prior.sum() - 1.0) <= 1e-9, "class_prior_ are not class frequencies")
    if "prevalence_" in stored:
        model.prevalence_ = stored.take_array("prevalence_", "d", (n_classes,))
        are_positive = min(model.prevalence_.min(), prior.min()) > 0.0
        require(are_positive and abs(model.prevalence_.sum() - 1.0) <= 1e-9, "prevalence_ are not class frequencies")
    for name in ("threshold_std_", "oob_score_"):
        if name in stored:
            setattr(model, name, float(stored.take_array(name, "d", ())))
    if "oob_decision_function_" in stored:
        proba = model.oob_decision_function_ = stored.take_array("oob_decision_function_", "d", (-1, n_classes))
        require(not np.any((proba < 0.0) | (proba > 1.0)), "oob_decision_function_ are not probabilities")
    model.threshold_ = _restore_threshold(stored, n_classes)


def _restore_forest(forest: Any, stored: StoredModel) -> None:
    n_classes = len(forest.classes_)
    _restore_variants(forest, stored)
    _restore_encodings(forest, stored)
    forest._seed = stored.take("seed", int)
    require(0 <= forest._seed < 2**63, f"seed is {forest._seed}")
    _restore_sampling(forest, stored)
    restore_decision(forest, stored)
    forest.shrinkage_ = float(stored.take_array("shrinkage_", "d", ()))
    require(0.0 <= forest.shrinkage_ < np.inf, f"shrinkage_ is {forest.shrinkage_}")
    forest.calibration_ = _restore_calibration(stored, n_classes)
    if "dispersion" in stored:
        forest.dispersion_ = float(stored.take_array("dispersion", "d", ()))
        require(0.0 <= forest.dispersion_ < 1e6, f"dispersion is {forest.dispersion_}")
    if "positive_first" in stored:  # in files of before, of which all else is in sorted order
        stored.take("positive_first", bool)


def _restore_threshold(stored: StoredModel, n_classes: int) -> float | NDArray[np.float64] | None:
    """Return what `predict` goes by: nothing, a probability of two classes, or class frequencies or costs of any."""
    if "threshold_" not in stored:
        return None
    threshold, costs = stored.take_array("threshold_", "d"), (n_classes, n_classes)
    require(threshold.shape in (() if n_classes == 2 else (n_classes,), costs), "threshold_ does not fit the classes")
    if threshold.ndim == 0:
        # A probability, or infinity where it is best to predict nothing but the first class.
        require(0.0 <= threshold <= 1.0 or threshold == np.inf, f"threshold_ is {threshold}")
        return float(threshold)
    require(np.all(np.isfinite(threshold)), "threshold_ is not finite")
    return threshold


TREE_PART = Part(_store_trees, _restore_tree)
TREES_PART = Part(_store_trees, _restore_trees)
FOREST_PART = Part(_store_forest, _restore_forest)
