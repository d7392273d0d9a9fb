"""Model files: `save` and `load` for the parameters and fitted attributes of an estimator.

It also has `Model`, the base class of all estimators.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from aucforest._caller import warn
from aucforest._restoring import restoring
from aucforest._sklearn import validate_parameter_constraints
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import positive_last
from aucforest.persistence.model_file import Arrays, ModelFormatError, StoredModel, read_model, require, write_model
from aucforest.persistence.plain_values import from_plain, labels_from_plain, labels_to_plain, to_plain
from aucforest.tree.samples import MAX_CLASSES

# Maximum number of features in a file, because predictions and explanations may need memory for every feature.
MOST_FEATURES = 2**24
# Name of the attribute that `Model._cache` returns.
_CACHE = "_cached"
# The classes that can be saved, by name.
_ESTIMATORS: dict[str, Any] = {}
# Placeholder for the value of a parameter that could not be stored.
_NOT_STORED = object()

# A function that returns fitted attributes of a model as arrays and metadata, and a function that sets them.
FileSection = tuple[Callable[[Any], tuple[Arrays, dict[str, Any]]], Callable[[Any, StoredModel], None]]


class Field(NamedTuple):
    """A fitted attribute that is stored as an array in files."""

    name: str  # the name of the array in files
    # Returns the shape, given the model; -1 stands for any length, None for any shape. By default a single number.
    shape: Callable[[Any], tuple[int, ...] | None] = lambda model: ()
    accepts: Callable[[Any, Any], Any] = lambda values, model: True
    dtype: str = "d"
    attribute: str = ""  # the name of the attribute of the model, by default `name`
    is_optional: bool = False


def are_finite(values: NDArray[np.float64], model: Any = None) -> bool:
    return bool(np.all(np.isfinite(values)))


def are_frequencies(values: NDArray[np.float64], model: Any = None) -> bool:
    """Return whether values are class frequencies: not negative, with the sum 1."""
    return bool(np.all(values >= 0.0)) and abs(values.sum() - 1.0) <= 1e-9


def store_fields(model: Any, fields: Sequence[Field]) -> Arrays:
    """Return fitted attributes as arrays, without optional ones that are None or do not exist."""
    arrays = {}
    for field in fields:
        name = field.attribute or field.name
        if not field.is_optional or getattr(model, name, None) is not None:
            arrays[field.name] = np.asarray(getattr(model, name), dtype=field.dtype)
    return arrays


def restore_fields(model: Any, stored: StoredModel, fields: Sequence[Field]) -> None:
    """Set the attributes stored by `store_fields`, in order: the shape of an attribute may depend on earlier ones."""
    for field in fields:
        if field.name in stored or not field.is_optional:
            values = stored.take_array(field.name, field.dtype, field.shape(model))
            require(field.accepts(values, model), f"{field.name} has invalid values")
            setattr(model, field.attribute or field.name, values if values.ndim > 0 else float(values))


class Model(ClassifierMixin, BaseEstimator):
    """Base of the estimators: saving, and a `fit` that leaves the estimator unchanged if it fails."""

    _file_sections: ClassVar[tuple[FileSection, ...]]
    # For each parameter that is an estimator, the name of its class.
    _nested: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_file_sections" in vars(cls):
            _ESTIMATORS[cls.__name__] = cls

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != _CACHE}

    @property
    def _cache(self) -> dict[str, Any]:
        """Values that are computed from the fitted model when they are first needed; neither copied nor saved."""
        return self.__dict__.setdefault(_CACHE, {})

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Remove all fitted attributes on entry; restore them if the block raises an error."""
        with restoring(self):
            for name in list(vars(self)):
                if name == _CACHE or (name.endswith("_") and not name.startswith("__")):
                    delattr(self, name)
            self.__dict__[_CACHE] = {}  # created here, so that a prediction adds no attribute
            yield

    def _params_to_store(self) -> dict[str, Any]:
        """Return the parameters that files store; those of a nested estimator have names like forest__max_depth."""
        params: dict[str, Any] = self.get_params(deep=False)
        for name, kind in self._nested.items():
            if type(params[name]) is _ESTIMATORS[kind]:
                nested = params.pop(name)._params_to_store()
                params |= {f"{name}__{inner}": value for inner, value in nested.items()}
        return params

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class log-probabilities; the logarithm of 0 is -inf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels: the most probable class, or the class that the `threshold` rule selects, if it is set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        proba = self.predict_proba(X)
        return self.classes_[decide(self, proba)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a file, to be read by `aucforest.load`.

        The file has the safetensors format, with arrays and JSON but no executable code. It is never incomplete,
        because the model is first written to a temporary file.

        Parameters
        ----------
        path : path-like
            The file to write. An existing file is replaced.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        TypeError
            If the model is of a subclass, if labels are not strings, booleans or numbers of at most 64 bits, or if a
            member is from another package. For categories that cannot be saved, `fit` already raises an error.
        OSError
            If the file cannot be written.

        Warns
        -----
        UserWarning
            If a parameter cannot be stored, such as a function as `criterion`. The loaded model predicts the same, but
            the parameter is None and must be set again before `fit`. Also if the file name has the suffix of a pickle
            (.pkl, .pickle or .joblib).

        Notes
        -----
        For a smaller file, delete the attribute ``oob_decision_function_`` first, if it exists.

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
        if "_file_sections" not in vars(type(self)):
            raise TypeError(f"{type(self).__name__} cannot be saved: only the estimators of aucforest, not subclasses")
        name = os.path.basename(path)
        if name.endswith((".pkl", ".pickle", ".joblib")):
            warn(f"{name} is not a pickle, despite its name: load it by aucforest.load")
        arrays, metadata = store_model(self)
        for name in metadata["left_out"]:
            shown = " ".join(repr(self._params_to_store()[name]).split())
            warn(f"{name}={shown} cannot be stored: set it again before you refit the loaded model")
        write_model(path, arrays, metadata)


def store_model(model: Model) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the metadata of a fitted model; "left_out" lists parameters that cannot be stored."""
    parameters, left_out = {}, []
    for name, value in model._params_to_store().items():
        try:
            parameters[name] = to_plain(value)
        except TypeError:
            left_out.append(name)
    arrays: Arrays = {}
    metadata = {"estimator": type(model).__name__, "parameters": parameters, "left_out": left_out}
    for store, _ in ((_store_data, _restore_data), *model._file_sections):
        section_arrays, section_metadata = store(model)
        arrays |= section_arrays
        metadata |= section_metadata
    return arrays, metadata


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was saved with `save`, or by the command line.

    Parameters
    ----------
    path : path-like
        A file written by this version or by an older one from 0.2 on. No code in the file is executed, and the content
        is validated.

    Returns
    -------
    AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier or LinearAUCClassifier
        The fitted model. Its predictions are bitwise identical, and ``warm_start`` works. The classes are in
        sorted order, as after `fit`, and ``pos_label_`` is the positive class of the saved model.

    Raises
    ------
    ModelFormatError
        If the file is not a model, is damaged, or was written by a newer version. A subclass of ValueError.
    OSError
        If the file does not exist or cannot be read.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from aucforest import LinearAUCClassifier, load
    >>> model = LinearAUCClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with NamedTemporaryFile() as file:
    ...     model.save(file.name)
    ...     load(file.name)
    LinearAUCClassifier()
    """
    try:
        return restore_model(read_model(path))
    except (AttributeError, TypeError, ValueError, LookupError, RecursionError) as error:
        # Of these, only a ModelFormatError says that it is about the file.
        sentence = error if isinstance(error, ModelFormatError) else f"the content is invalid: {error}"
        raise ModelFormatError(f"{os.fspath(path)}: {sentence}") from error


def restore_model(stored: StoredModel, *kinds: str) -> Any:
    """Return a validated model; `kinds` are the allowed class names, by default all."""
    name = stored.take("estimator", str)
    names = kinds or _ESTIMATORS
    require(name in names, f"estimator must be one of {', '.join(names)}, but is {name!r}")
    values = {name: from_plain(value) for name, value in stored.take("parameters", dict).items()}
    values |= dict.fromkeys(stored.take_list("left_out", str), _NOT_STORED)
    model = _make_estimator(name, values)
    for _, restore in ((_store_data, _restore_data), *model._file_sections):
        restore(model, stored)
    stored.check_taken()
    return model


def _make_estimator(name: str, values: dict[str, Any]) -> Any:
    """Return an estimator with the validated parameters of a file; those that could not be stored are None."""
    if "prior_correction" in values:  # in older files, for `calibration`
        values["calibration"] = "auto" if values.pop("prior_correction") else None
    if name == "LinearAUCClassifier":  # parameters of the second solver in older files
        for parameter in ("solver", "n_pairs", "learning_rate", "decay", "random_state"):
            values.pop(parameter, None)
    if name == "AUCStackingClassifier":
        require("boosted" in values, "the file is from before stacks had boosted trees: fit the stack again")
    for outer, kind in _ESTIMATORS[name]._nested.items():
        prefix = f"{outer}__"
        nested = {key.removeprefix(prefix): values.pop(key) for key in list(values) if key.startswith(prefix)}
        if nested:
            values[outer] = _make_estimator(kind, nested)
    parameters = _ESTIMATORS[name]().get_params()
    for parameter in values:
        require(parameter in parameters, f"{name} has no parameter {parameter!r}")
    given = {parameter: value for parameter, value in values.items() if value is not _NOT_STORED}
    validate_parameter_constraints(_ESTIMATORS[name]._parameter_constraints, given, name)
    return _ESTIMATORS[name](**dict.fromkeys(values) | given)


def _store_data(model: Any) -> tuple[Arrays, dict[str, Any]]:
    if model.n_features_in_ > MOST_FEATURES:
        raise ValueError(f"a model file can hold {MOST_FEATURES} features, but the model has {model.n_features_in_}")
    metadata = {"n_features": model.n_features_in_, "classes": labels_to_plain(model.classes_)}
    if positive_last(model)[-1] == 0:
        metadata["positive"] = 0
    if hasattr(model, "feature_names_in_"):
        metadata["feature_names"] = labels_to_plain(model.feature_names_in_)
    if formats := getattr(model, "text_formats_", None):
        metadata["text_formats"] = formats
    return {}, metadata


def _restore_data(model: Any, stored: StoredModel) -> None:
    n_features, classes = stored.take("n_features", int), labels_from_plain(stored.take("classes", dict))
    require(1 <= n_features <= MOST_FEATURES, f"n_features is {n_features}")
    require(2 <= len(classes) <= MAX_CLASSES, f"there are {len(classes)} classes")
    is_text = {isinstance(label, str) for label in classes.tolist()}
    require(len(is_text) == 1, "some classes are strings, and others are not")
    has_positive = hasattr(model, "pos_label") and len(classes) == 2
    positive = stored.take("positive", int) if has_positive and "positive" in stored else 1
    require(positive in (0, 1), f"positive is {positive}")
    if has_positive and classes[0] > classes[1]:
        _sort_classes(model, stored)
        classes, positive = classes[::-1], 0
        model.pos_label = classes.tolist()[0]
    require(all(a < b for a, b in pairwise(classes.tolist())), "the classes are not sorted")
    model.n_features_in_, model.classes_ = n_features, classes
    if hasattr(model, "pos_label"):
        model.pos_label_ = classes.tolist()[positive] if has_positive else None
    if "feature_names" in stored:
        names = labels_from_plain(stored.take("feature_names", dict))
        are_strings = names.dtype == object and all(isinstance(name, str) for name in names)
        require(are_strings and len(names) == n_features, f"feature_names are not {n_features} strings")
        model.feature_names_in_ = names
    if "text_formats" in stored:
        model.text_formats_ = _text_formats(stored.take("text_formats", dict), getattr(model, "feature_names_in_", ()))


def _sort_classes(model: Any, stored: StoredModel) -> None:
    """Sort two classes in all arrays and costs of an older file.

    The command line stored classes in reverse order if the first one was positive. The threshold is a probability of
    the positive class and does not change.
    """
    for name in ("tree.total", "tree.value", "class_prior_", "oob_decision_function_"):
        stored.change(name, lambda values: np.flip(values, axis=-1).copy())
    for name in ("calibration", "prior_correction"):  # the last two numbers are the intercepts of the classes
        stored.change(name, lambda numbers: np.append(numbers[:-2], numbers[:-3:-1]))
    stored.change("drawn", lambda drawn: [[n_rows, sizes[::-1], *others] for n_rows, sizes, *others in drawn])
    if isinstance(model.threshold, dict) and "cost" in model.threshold:
        model.threshold = {"cost": np.flip(model.threshold["cost"], axis=(-2, -1)).tolist()}


def _text_formats(formats: dict[str, Any], names: Any) -> dict[str, dict[str, str]]:
    """Validate and return the formats of numbers and dates in the training file, by column name."""
    patterns = {"decimal": r"[.,]", "unit": r"[^\s{}]{1,30}", "date": r"[^\0{}]{1,100}"}
    for name, written in formats.items():
        require(name in set(names), f"text_formats has {name!r}, which is no feature")
        is_valid = isinstance(written, dict) and all(
            key in patterns and isinstance(value, str) and re.fullmatch(patterns[key], value)
            for key, value in written.items()
        )
        require(is_valid and {"decimal", "date"} & written.keys(), f"the text format of {name!r} is {written!r}")
    return formats
