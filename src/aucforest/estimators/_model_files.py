"""Model files: the parameters and fitted attributes of an estimator, written by `save`, checked by `load`."""

import os
import re
from collections.abc import Callable, Iterator
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
from aucforest.estimators._files_of_before import sort_classes
from aucforest.metrics.thresholds import decide
from aucforest.metrics.validation import positive_last
from aucforest.persistence.model_file import Arrays, ModelFormatError, StoredModel, read_model, write_model
from aucforest.persistence.plain_values import from_plain, labels_from_plain, labels_to_plain, to_plain
from aucforest.tree.samples import MAX_CLASSES

# What is made of a model later may take memory for every feature.
MOST_FEATURES = 2**24
# The private attribute of a fit for what is made of it later.
_CACHE = "_cached"
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
        return self.__dict__.setdefault(_CACHE, {})

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Forget the last fit; where the new one fails, all is as it was."""
        with restoring(self):
            for name in list(vars(self)):
                if name == _CACHE or (name.endswith("_") and not name.startswith("__")):
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
        return self.classes_[decide(self, proba)]

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
            If the model is of a subclass, or has labels other than strings, booleans and numbers of at most 64 bits,
            or a member that is not of this package. Categories that cannot be saved are refused by `fit`.
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
        if "_parts" not in vars(type(self)):
            raise TypeError(f"{type(self).__name__} cannot be saved: only the estimators of aucforest, not subclasses")
        name = os.path.basename(path)
        if name.endswith(_PICKLES):
            warn(f"{name} is no pickle, as its name says: load it by aucforest.load")
        arrays, metadata = store_model(self)
        for name in metadata["left_out"]:
            shown = " ".join(repr(self._params_to_store()[name]).split())
            what = f"{name}={shown} cannot be stored: set it again before you refit the loaded model"
            warn(what)
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

    Its classes are in sorted order, as after `fit`. The one that is positive to the command line is ``pos_label_``.

    Parameters
    ----------
    path : path-like
        A file written by this version or an older one, back to 0.2. No code in it is executed, and its content is
        validated.

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
    try:
        return restore_model(read_model(path))
    except (TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
        raise ModelFormatError(f"{os.fspath(path)}: {error}") from error


def restore_model(stored: StoredModel, *kinds: str) -> Any:
    """Return the model of a file, or one within another, which is of some classes; everything in it is validated."""
    name = stored.take("estimator", str)
    names = kinds or _ESTIMATORS
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
    if name == "LinearAUCClassifier":  # what files of before hold of one that had two solvers
        for parameter in ("solver", "n_pairs", "learning_rate", "decay", "random_state"):
            values.pop(parameter, None)
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
    has_positive = hasattr(model, "pos_label") and len(classes) == 2
    positive = stored.take("positive", int) if has_positive and "positive" in stored else 1
    require(positive in (0, 1), f"positive is {positive}")
    if has_positive and classes[0] > classes[1]:
        sort_classes(model, stored)
        classes, positive = classes[::-1], 0
        model.pos_label = classes.tolist()[0]
    is_sorted = all(one < next_one for one, next_one in pairwise(classes.tolist()))
    require(is_sorted, "the classes are not sorted")
    model.n_features_in_, model.classes_ = n_features, classes
    if hasattr(model, "pos_label"):
        model.pos_label_ = classes.tolist()[positive] if has_positive else None
    if "feature_names" in stored:
        names = labels_from_plain(stored.take("feature_names", dict))
        is_text = names.dtype == object and all(isinstance(name, str) for name in names)
        require(is_text and len(names) == n_features, f"feature_names are not {n_features} strings")
        model.feature_names_in_ = names
    if "text_formats" in stored:
        model.text_formats_ = _text_formats(stored.take("text_formats", dict), getattr(model, "feature_names_in_", ()))


def _text_formats(formats: dict[str, Any], names: Any) -> dict[str, dict[str, str]]:
    """Return how numbers and dates were written in the file that a model was fitted to, by column."""
    for name, written in formats.items():
        require(name in set(names), f"text_formats has {name!r}, which is no feature")
        require(isinstance(written, dict) and written, f"the text format of {name!r} is {written!r}")
        for key, value in written.items():
            known = {"decimal": r"[.,]", "unit": r"[^\s{}]{1,30}", "date": r"[^\0{}]{1,100}"}.get(key, "")
            is_known = isinstance(value, str) and re.fullmatch(known, value) is not None
            require(is_known and {"decimal", "date"} & written.keys(), f"the text format of {name!r} is {written!r}")
    return formats


_DATA_PART = Part(_store_data, _restore_data)
