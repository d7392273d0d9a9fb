"""Model files of before, in which the command line has two classes in reverse order if the first one is positive."""

from typing import Any

import numpy as np

from aucforest.persistence.model_file import StoredModel

# Arrays whose last axis is that of the classes.
_BY_CLASS = ("tree.total", "tree.value", "class_prior_", "oob_decision_function_", "intercept_")


def sort_classes(model: Any, stored: StoredModel) -> None:
    """Bring the two classes of a forest or a stack into sorted order, in what is stored and in the costs of errors.

    The threshold is a probability of the positive class and stays as it is.
    """
    for name in _BY_CLASS:
        stored.change(name, lambda values: np.flip(values, axis=-1).copy())
    for name in ("linear/coef_", "linear/intercept_"):
        stored.change(name, np.negative)
    for name in ("calibration", "prior_correction"):  # the last two numbers are of the classes
        stored.change(name, lambda numbers: np.append(numbers[:-2], numbers[:-3:-1]))
    stored.change("drawn", lambda drawn: [[n_rows, sizes[::-1], *others] for n_rows, sizes, *others in drawn])
    if isinstance(model.threshold, dict) and "cost" in model.threshold:
        model.threshold = {"cost": np.flip(model.threshold["cost"], axis=(-2, -1)).tolist()}
