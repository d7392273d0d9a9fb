"""Model files of before, in which the command line has two classes in reverse order if the first one is positive."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.persistence.model_file import StoredModel

# Arrays whose last axis is that of the classes.
_BY_CLASS = ("tree.total", "tree.value", "class_prior_", "oob_decision_function_", "intercept_")
_BEFORE = "aucforest 0.2"


def sort_classes(model: Any, stored: StoredModel) -> None:
    """Bring the two classes of a forest or a stack into sorted order, in what is stored and in the costs of errors.

    The threshold stays as it is, because it is a probability of the positive class.
    """
    for name in _BY_CLASS:
        stored.change(name, lambda values: np.flip(values, axis=-1).copy())
    for name in ("linear/coef_", "linear/intercept_"):
        stored.change(name, np.negative)
    for name in ("calibration", "prior_correction"):
        stored.change(name, _with_intercepts_reversed)
    stored.change("drawn", lambda records: [_of_before(*record) for record in records])
    if isinstance(model.threshold, dict) and "cost" in model.threshold:
        model.threshold = {"cost": np.flip(model.threshold["cost"], axis=(-2, -1)).tolist()}


def _with_intercepts_reversed(numbers: NDArray[Any]) -> NDArray[Any]:
    numbers = np.atleast_1d(numbers)
    return np.concatenate((numbers[:-2], numbers[:-3:-1]))


def _of_before(n_rows: Any, sizes: Any, replace: Any, stream: Any, *groups: Any) -> list[Any]:
    """Return the record of a sample; one by class was taken in the other order, and cannot be taken again."""
    return [n_rows, sizes[::-1], replace, _BEFORE if len(sizes) > 1 else stream, *groups]
