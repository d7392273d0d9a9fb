"""A coding in a file, for a fit that goes on later."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.coding import Coding
from aucforest.persistence.model_file import ModelFormatError, read_model, write_model
from aucforest.persistence.plain_values import labels_from_plain, labels_to_plain
from aucforest.tables.columns import feature_kinds
from aucforest.tree.binning import MAX_BINS, BinValues
from aucforest.tree.features import NUMERIC

CODING = "coding.safetensors"


def write_coding(folder: Path, coding: Coding, fit: str) -> None:
    """Write a coding of a fit, whole or not at all."""
    categories = {str(feature): labels_to_plain(values) for feature, values in coding.categories.items()}
    write_model(folder / CODING, coding.values._asdict(), {"fit": fit, "categories": categories})


def read_coding(folder: Path, fit: str, n_features: int) -> Coding | None:
    """Return the coding of a fit, None where there is none that is whole and of so many features."""
    try:
        stored = read_model(folder / CODING)
        if stored.take("fit", str) != fit:
            return None
        values = BinValues(*(stored.take_array(name, dtype) for name, dtype in zip(BinValues._fields, "qdd")))
        plain = stored.take("categories", dict)
        if not plain.keys() <= set(map(str, range(n_features))):
            return None
        categories = {int(feature): labels_from_plain(labels) for feature, labels in plain.items()}
    except (FileNotFoundError, ModelFormatError):
        return None
    return Coding(categories, values) if _is_sound(values, feature_kinds(categories, n_features)) else None


def _is_sound(values: BinValues, kinds: NDArray[np.int8]) -> bool:
    """Say whether compiled code may read values and count by their codes."""
    first, lower, upper = values
    if not (first.shape == (len(kinds) + 1,) and lower.shape == upper.shape == (first[-1],)):
        return False
    n_bins = np.diff(first)
    return bool(first[0] == 0 and np.all(n_bins >= 0) and np.all(n_bins[kinds != NUMERIC] <= MAX_BINS))
