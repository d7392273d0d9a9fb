"""A coding in a file, for a fit that goes on later."""

from pathlib import Path

import numpy as np

from aucforest.distributed._coding import Coding
from aucforest.interop.model_file import ModelFormatError, read_model, write_model
from aucforest.interop.plain_values import labels_from_plain, labels_to_plain
from aucforest.tree.binning import CutValues

CODING = "coding.safetensors"


def write_coding(folder: Path, coding: Coding, fit: str) -> None:
    """Write a coding of a fit, whole or not at all."""
    n_features = len(coding.n_bins)
    by_set = np.zeros(n_features, dtype=np.bool_) if coding.by_set is None else coding.by_set
    categories = {str(feature): labels_to_plain(values) for feature, values in coding.categories.items()}
    arrays = {**coding.values._asdict(), "by_set": by_set.astype(np.uint8)}
    write_model(folder / CODING, arrays, {"fit": fit, "categories": categories})


def read_coding(folder: Path, fit: str) -> Coding | None:
    """Return the coding of a fit, None where there is no whole one."""
    try:
        stored = read_model(folder / CODING)
        if stored.take("fit", str) != fit:
            return None
        values = CutValues(*(stored.take_array(name, dtype) for name, dtype in zip(CutValues._fields, "qdd")))
        by_set = stored.take_array("by_set", "B").astype(np.bool_)
        plain = stored.take("categories", dict)
        categories = {int(feature): labels_from_plain(labels) for feature, labels in plain.items()}
    except (FileNotFoundError, ModelFormatError):
        return None
    return Coding(categories, values, by_set if np.any(by_set) else None)
