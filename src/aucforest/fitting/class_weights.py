"""Weights of rows by their classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight


def weights_by_class(
    class_weight: Any,
    classes: NDArray[Any],
    labels: NDArray[np.uint16],
    sample_weight: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Return the weight of every class, (n_classes,), None where all are 1 or differ from tree to tree."""
    if class_weight is None or class_weight == "balanced_subsample":
        return None
    totals = np.bincount(labels, sample_weight, minlength=len(classes))
    present = totals > 0
    by_class = np.ones(len(classes))
    if class_weight == "balanced":
        by_class[present] = totals.sum() / (np.count_nonzero(present) * totals[present])
    else:
        by_class[present] = compute_class_weight(class_weight, classes=classes[present], y=classes[present])
    bad = ~(np.isfinite(by_class) & (by_class > 0))
    if np.any(bad):
        k = int(np.argmax(bad))
        raise ValueError(
            f"class_weight of class {classes.tolist()[k]!r} must be positive and finite, but is {by_class[k]}"
        )
    return by_class
