"""Models from files."""

import os
from typing import Any

from sklearn.utils._param_validation import validate_parameter_constraints

from aucforest.estimators._model_parts import DATA
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.linear import LinearAUCClassifier
from aucforest.estimators.tree import AUCTreeClassifier
from aucforest.persistence.model_file import ModelFormatError, StoredModel, read_model
from aucforest.persistence.plain_values import from_plain

_ESTIMATORS: dict[str, Any] = {
    estimator.__name__: estimator for estimator in (AUCForestClassifier, AUCTreeClassifier, LinearAUCClassifier)
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : path-like
        A file of this version or an older one. Nothing in it is executed, and all that it says is checked. It may
        change or go once it is loaded.

    Returns
    -------
    AUCForestClassifier, AUCTreeClassifier or LinearAUCClassifier
        It predicts the same, to the last bit, and can be fitted further with ``warm_start``.

    Raises
    ------
    ModelFormatError
        For a file that is no model, is damaged, or was made by a newer version; a ValueError.
    OSError
        When there is no such file, or it cannot be read.

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
        return _restore(read_model(path))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFormatError(f"{os.fspath(path)}: {error}") from error


def _restore(stored: StoredModel) -> Any:
    """Return the model of a file."""
    name = stored.take("estimator", str)
    if name not in _ESTIMATORS:
        raise ModelFormatError(f"{name!r} is none of the estimators {', '.join(_ESTIMATORS)}")
    model = _ESTIMATORS[name](**_parameters(_ESTIMATORS[name], stored))
    for part in (DATA, *model._parts):
        part.restore(model, stored)
    stored.check_taken()
    return model


def _parameters(estimator: Any, stored: StoredModel) -> dict[str, Any]:
    """Return the parameters of an estimator; None for those that could not be stored."""
    parameters = {name: from_plain(value) for name, value in stored.take("parameters", dict).items()}
    left_out, names = stored.take("left_out", list), estimator().get_params()
    unknown = [name for name in (*parameters, *left_out) if name not in names]
    if unknown:
        raise ModelFormatError(f"{estimator.__name__} has no parameter {unknown[0]!r}")
    validate_parameter_constraints(estimator._parameter_constraints, parameters, estimator.__name__)
    return {**parameters, **dict.fromkeys(left_out)}
