"""Model files: the parameters and fitted attributes of an estimator, written by `save`, checked by `load`."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from aucforest._restoring import restoring
from aucforest.estimators._calibration import Calibration
from aucforest.estimators._mixture import describe_mixture
from aucforest.fitting.bootstrap import SampleRecord, digest_groups, stream_of
from aucforest.metrics.thresholds import decide
from aucforest.persistence.folded_trees import fold, unfold
from aucforest.persistence.model_file import Arrays, ModelFormatError, StoredModel, read_model, write_model
from aucforest.persistence.plain_values import from_plain, labels_from_plain, labels_to_plain, to_plain
from aucforest.tables.columns import feature_kinds
from aucforest.tables.dates import DateColumn, Dates, are_parts, is_zone, n_added
from aucforest.tree.features import NUMERIC
from aucforest.tree.samples import MAX_CLASSES

# What is made of a model later may take memory for every feature.
_MOST_FEATURES = 2**24
# Private attributes of a fit: what is made of it later, and what `_reverse_classes` notes.
_CACHE, _OF_FIT = "_cached", ("_cached", "_positive_first", "_thresholds")
# Suffixes of files that are read by pickle or joblib.
_PICKLES = (".pkl", ".pickle", ".joblib")
_ESTIMATORS: dict[str, Any] = {}
# In place of a parameter that could not be stored.
_LEFT_OUT = object()


class Part(NamedTuple):
    """Some fitted attributes: what gets them out of a model, as arrays and metadata, and what sets them from a file."""

    store: Callable[[Any], tuple[Arrays, dict[str, Any]]]
    restore: Callable[[Any, StoredModel], None]


class Model(ClassifierMixin, BaseEstimator):
    """Base of the estimators: saving, and fitting without side effects of failures; `_parts` are stored in files."""

    _parts: ClassVar[tuple[Part, ...]]
    # Parameters that are estimators, and the names of their classes.
    _nested: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_parts" in vars(cls):
            _ESTIMATORS[cls.__name__] = cls

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what prediction makes anew."""
        return {name: value for name, value in super().__getstate__().items() if name != _CACHE}

    @property
    def _cache(self) -> dict[str, Any]:
        """What is made of the fitted model when it is first needed, by name; it is neither copied nor saved."""
        cache: dict[str, Any] = self.__dict__.setdefault(_CACHE, {})
        return cache

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Forget the last fit; where the new one fails, all is as it was."""
        with restoring(self):
            for name in list(vars(self)):
                if name in _OF_FIT or (name.endswith("_") and not name.startswith("__")):
                    delattr(self, name)
            self.__dict__[_CACHE] = {}  # there from now on: a prediction adds no attribute
            yield

    def _params_to_store(self) -> dict[str, Any]:
        """Return the parameters by name, as they are in files; those of a nested one such as "forest__max_depth"."""
        params: dict[str, Any] = self.get_params(deep=False)
        for name, kind in self._nested.items():
            if type(params[name]) is _ESTIMATORS[kind]:
                nested = params.pop(name)._params_to_store()
                params |= {f"{name}__{inner}": value for inner, value in nested.items()}
        return params

    def _as_fitted(self) -> Self:
        """Return the model with its classes in the order of the fit, which is that of files."""
        return self

    def _sort_classes(self) -> None:
        """Put the classes of the fit into sorted order; only a forest or a stack can have others."""

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class log-probabilities, -inf for a probability of 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
        """
        with np.errstate(divide="ignore"):
            log_proba: NDArray[np.float64] = np.log(self.predict_proba(X))
        return log_proba

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels: the most probable class, or the one that the `threshold` rule selects if there is one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        proba = self.predict_proba(X)
        return self.classes_[decide(proba, getattr(self, "threshold_", None))]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a file, to be read by `aucforest.load`.

        The file has the safetensors format: arrays and JSON, no executable code. It is first written to a temporary
        file, so that `path` is never incomplete.

        Parameters
        ----------
        path : path-like
            The file to write. An existing file is replaced.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If the model is of a subclass, or has labels or categories other than strings, booleans and numbers of at
            most 64 bits, or a member that is not of this package.
        OSError
            If the file cannot be written.

        Warns
        -----
        UserWarning
            If a parameter cannot be stored, such as a function as `criterion`. It is None in the loaded model, whose
            predictions are the same, and must be set again before `fit`. Also if the name of the file is that of a
            pickle (.pkl, .pickle or .joblib), because it is none.

        Notes
        -----
        Delete the attribute ``oob_decision_function_``, if there is one, for a smaller file.

        Examples
        --------
        >>> import tempfile
        >>> import aucforest
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> tree = aucforest.AUCTreeClassifier(random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tree.save(f"{folder}/tree.safetensors")
        ...     loaded = aucforest.load(f"{folder}/tree.safetensors")
        >>> bool((loaded.predict_proba(X) == tree.predict_proba(X)).all())
        True
        """
        check_is_fitted(self)
        model = self._as_fitted()
        if "_parts" not in vars(type(self)):
            raise TypeError(f"{type(self).__name__} cannot be saved: only the estimators of aucforest, not subclasses")
        name = os.path.basename(path)
        if name.endswith(_PICKLES):
            warnings.warn(f"{name} is no pickle, as its name says: load it by aucforest.load", stacklevel=2)
        arrays, metadata = store_model(model)
        for name in metadata["left_out"]:
            shown = " ".join(repr(model._params_to_store()[name]).split())
            what = f"{name}={shown} cannot be stored: set it again before you refit the loaded model"
            warnings.warn(what, stacklevel=2)
        write_model(path, arrays, metadata)


def store_model(model: Model) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the metadata of a fitted model; parameters that cannot be stored are named."""
    parameters, left_out = {}, []
    for name, value in model._params_to_store().items():
        try:
            parameters[name] = to_plain(value)
        except TypeError:
            left_out.append(name)
    arrays: Arrays = {}
    metadata = {"estimator": type(model).__name__, "parameters": parameters, "left_out": left_out}
    for part in (_DATA_PART, *model._parts):
        more_arrays, more_metadata = part.store(model)
        arrays |= more_arrays
        metadata |= more_metadata
    return arrays, metadata


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was saved with `save`, or by the command line.

    Its classes are in sorted order, which scikit-learn's functions expect, whichever is positive to the command line.

    Parameters
    ----------
    path : path-like
        A file written by this version or an older one. No code in it is executed, and its content is validated.

    Returns
    -------
    AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier or LinearAUCClassifier
        The fitted model. Its predictions are bitwise identical, and ``warm_start`` works.

    Raises
    ------
    ModelFormatError
        If the file is not a model, is damaged, or was written by a newer version. A subclass of ValueError.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import aucforest
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = aucforest.LinearAUCClassifier().fit(X, y)
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     model.save(file.name)
    ...     aucforest.load(file.name)
    LinearAUCClassifier()
    """
    model = read_as_fitted(path)
    model._sort_classes()
    return model


def read_as_fitted(path: str | os.PathLike[str]) -> Any:
    """Load a model with its classes in the order of the fit: the command line has the positive one of two last."""
    try:
        return restore_model(read_model(path))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFormatError(f"{os.fspath(path)}: {error}") from error


def restore_model(stored: StoredModel, kind: str | None = None) -> Any:
    """Return the model of a file, or one within another, whose class is known; everything in it is validated."""
    name = stored.take("estimator", str)
    names = _ESTIMATORS if kind is None else [kind]
    require(name in names, f"estimator must be one of {', '.join(names)}, but is {name!r}")
    values = {name: from_plain(value) for name, value in stored.take("parameters", dict).items()}
    values |= dict.fromkeys(stored.take("left_out", list), _LEFT_OUT)
    require(all(isinstance(parameter, str) for parameter in values), "left_out are not names")
    model = _make_estimator(name, values)
    for part in (_DATA_PART, *model._parts):
        part.restore(model, stored)
    stored.check_taken()
    return model


def _make_estimator(name: str, values: dict[str, Any]) -> Any:
    """Return an estimator with the parameters of a file, which are validated; those left out are None."""
    if "prior_correction" in values:  # the name in files of before
        values["calibration"] = "auto" if values.pop("prior_correction") else None
    for outer, kind in _ESTIMATORS[name]._nested.items():
        prefix = f"{outer}__"
        nested = {each.removeprefix(prefix): values.pop(each) for each in list(values) if each.startswith(prefix)}
        if nested:
            require(outer not in values, f"{outer} is stored twice")
            values[outer] = _make_estimator(kind, nested)
    parameters = _ESTIMATORS[name]().get_params()
    if unknown := [parameter for parameter in values if parameter not in parameters]:
        raise ModelFormatError(f"{name} has no parameter {unknown[0]!r}")
    given = {parameter: value for parameter, value in values.items() if value is not _LEFT_OUT}
    validate_parameter_constraints(_ESTIMATORS[name]._parameter_constraints, given, name)
    return _ESTIMATORS[name](**dict.fromkeys(values) | given)


def require(holds: Any, sentence: str) -> None:
    """Raise ModelFormatError unless a condition on the content of a file holds."""
    if not holds:
        raise ModelFormatError(sentence)


def _store_data(model: Any) -> tuple[Arrays, dict[str, Any]]:
    if model.n_features_in_ > _MOST_FEATURES:
        raise ValueError(f"a model file can hold {_MOST_FEATURES} features, but the model has {model.n_features_in_}")
    metadata = {"n_features": model.n_features_in_, "classes": labels_to_plain(model.classes_)}
    if hasattr(model, "feature_names_in_"):
        metadata["feature_names"] = labels_to_plain(model.feature_names_in_)
    return {}, metadata


def _restore_data(model: Any, stored: StoredModel) -> None:
    n_features, classes = stored.take("n_features", int), labels_from_plain(stored.take("classes", dict))
    require(1 <= n_features <= _MOST_FEATURES, f"n_features is {n_features}")
    require(2 <= len(classes) <= MAX_CLASSES, f"there are {len(classes)} classes")
    is_reversed = hasattr(model, "_reverse_classes") and len(classes) == 2 and classes[0] > classes[1]
    is_sorted = all(one < next_one for one, next_one in pairwise(classes.tolist()))
    require(is_sorted or is_reversed, "the classes are not sorted")
    model.n_features_in_, model.classes_ = n_features, classes
    if "feature_names" in stored:
        names = labels_from_plain(stored.take("feature_names", dict))
        is_text = names.dtype == object and all(isinstance(name, str) for name in names)
        require(is_text and len(names) == n_features, f"feature_names are not {n_features} strings")
        model.feature_names_in_ = names


def _store_trees(model: Any) -> tuple[Arrays, dict[str, Any]]:
    categories = [[feature, labels_to_plain(labels)] for feature, labels in model.categories_.items()]
    dates = [[feature, list(parts), zone] for feature, (parts, zone) in model.dates_.items()]
    return fold(model.trees_), {"categories": categories} | ({"dates": dates} if dates else {})


def _restore_trees(model: Any, stored: StoredModel) -> None:
    n_features = model.n_features_in_
    model.categories_ = {}
    for item in stored.take("categories", list):
        require(isinstance(item, list) and len(item) == 2 and type(item[0]) is int, "categories are not in pairs")
        feature, labels = item[0], labels_from_plain(item[1])
        require(0 <= feature < n_features, f"there are categories of feature {feature}, but {n_features} features")
        model.categories_[feature] = labels
    model.dates_ = _restore_dates(model, stored.take("dates", list)) if "dates" in stored else {}
    n_features += n_added(model.dates_)
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
    names = ("class_prior_", "threshold_", "threshold_std_", "oob_score_", "oob_decision_function_")
    values = {name: getattr(model, name, None) for name in names}
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items() if value is not None}


def _store_forest(forest: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays = store_decision(forest) | {"shrinkage_": np.array(forest.shrinkage_)}
    if (calibration := forest.calibration_) is not None:
        slope, intercepts, *evidence = calibration
        arrays["calibration"] = np.array([slope, *evidence, *intercepts])
    variants = list(dict.fromkeys(forest.variants_))
    arrays["variants"] = np.array([variants.index(variant) for variant in forest.variants_], dtype=np.int64)
    metadata = {
        "seed": forest._seed,
        "drawn": [list(record)[: 6 if record.n_groups else 4] for record in forest._sample_records],
    }
    metadata["variants"] = [list(variant) for variant in variants]
    if forest._groups is not None:
        arrays["groups"] = forest._groups
    if hasattr(forest, "mixture_"):
        criterion, splitter, n_trees, _, *scores = forest.mixture_.values()
        metadata["mixture"] = [criterion.tolist(), splitter.tolist()]
        arrays |= {"mixture_n_trees": n_trees, "mixture_scores": np.stack(scores)}
    return arrays, metadata


def _restore_variants(forest: Any, stored: StoredModel) -> None:
    if "variants" not in stored:
        # Files of before: all trees are alike.
        forest.variants_ = [(str(forest.criterion), str(forest.splitter))] * len(forest.trees_)
        return
    variants, places = stored.take("variants", list), stored.take_array("variants", "q", (len(forest.trees_),))
    require(all(_are_names(variant, 2) for variant in variants), "variants are not pairs of names")
    require(np.all((places >= 0) & (places < len(variants))), "the variants of trees are unknown")
    forest.variants_ = [tuple(variants[place]) for place in places]
    if "mixture" in stored:
        names = stored.take("mixture", list)
        n_variants = len(names[0]) if names and isinstance(names[0], list) else 0
        fits = len(names) == 2 and n_variants > 1 and all(_are_names(column, n_variants) for column in names)
        require(fits, "mixture has no names")
        n_trees = stored.take_array("mixture_n_trees", "q", (n_variants,))
        require(np.all((n_trees >= 0) & (n_trees <= len(forest.trees_))), "mixture has no numbers of trees")
        scores = stored.take_array("mixture_scores", "d", (2, n_variants))
        require(np.all(np.isnan(scores) | ((scores >= 0.0) & (scores <= 1.0))), "mixture has no scores")
        forest.mixture_ = describe_mixture(names[0], names[1], n_trees, scores[0], scores[1])


def _are_names(value: Any, n: int) -> bool:
    return isinstance(value, list) and len(value) == n and all(isinstance(name, str) for name in value)


def _restore_sampling(forest: Any, stored: StoredModel) -> None:
    forest._sample_records = []
    for item in stored.take("drawn", list):
        require(isinstance(item, list) and len(item) in (3, 4, 6) and isinstance(item[1], list), "drawn is invalid")
        n_rows, sizes, replace, *rest = item
        require(all(type(size) is int and size >= 0 for size in (n_rows, *sizes)), "drawn has invalid numbers of rows")
        require(type(replace) is bool, "drawn does not say whether rows were replaced")
        # Files of before do not know the stream, and only trees that sampled groups have some.
        defaults: list[Any] = [stream_of(n_rows), 0, ""]
        stream, n_groups, digest = rest + defaults[len(rest) :]
        require(isinstance(stream, str), "drawn does not name the random stream")
        require(type(n_groups) is int and n_groups >= 0 and isinstance(digest, str), "drawn has invalid groups")
        forest._sample_records.append(SampleRecord(n_rows, tuple(sizes), replace, stream, n_groups, digest))
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
    forest._seed = stored.take("seed", int)
    require(0 <= forest._seed < 2**63, f"seed is {forest._seed}")
    _restore_sampling(forest, stored)
    restore_decision(forest, stored)
    forest.shrinkage_ = float(stored.take_array("shrinkage_", "d", ()))
    require(0.0 <= forest.shrinkage_ < np.inf, f"shrinkage_ is {forest.shrinkage_}")
    forest.calibration_ = _restore_calibration(stored, n_classes)
    if "positive_first" in stored and stored.take("positive_first", bool):
        # Files of before hold the classes in sorted order.
        require(n_classes == 2, "positive_first is for two classes")
        forest._reverse_classes()
        for name in _OF_FIT:
            forest.__dict__.pop(name, None)


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
    require(np.all(np.isfinite(model.coef_)) and np.all(np.isfinite(model.intercept_)), "coef_ is not finite")
    model.n_iter_ = stored.take_array("n_iter_", "q", (n_pairs,))
    losses = stored.take_array("loss_curve_", "d", (-1,))
    fits = np.all((model.n_iter_ >= 0) & (model.n_iter_ <= len(losses))) and model.n_iter_.sum() == len(losses)
    require(fits, "n_iter_ does not fit the losses")
    curves = [curve.tolist() for curve in np.split(losses, np.cumsum(model.n_iter_)[:-1])]
    model.loss_curve_ = curves if n_classes > 2 else curves[0]


_DATA_PART = Part(_store_data, _restore_data)
TREE_PART = Part(_store_trees, _restore_tree)
TREES_PART = Part(_store_trees, _restore_trees)
FOREST_PART = Part(_store_forest, _restore_forest)
LINEAR_PART = Part(_store_linear, _restore_linear)
