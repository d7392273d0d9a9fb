"""``aucforest warm-up``: compile before the first fit. It needs none of the packages of the command line."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from aucforest.estimators.forest import AUCForestClassifier

# Codes of 16 bits, which more than 255 values of a feature need, take as long to compile as all the rest.
_MAX_BINS = (255, None)


def warm_up() -> None:
    """Compile for this machine, so that the first fit does not have to, as for a container image.

    Example: aucforest warm-up
    """
    with ProcessPoolExecutor(len(_MAX_BINS)) as processes:
        list(processes.map(_fit, _MAX_BINS))


def _fit(max_bins: int | None) -> None:
    """Fit small forests, and predict many rows and one."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    y, X[:, 3] = X[:, 0] > 0.5, X[:, 3].round()
    options: list[dict[str, Any]] = [
        {"oob_score": True, "threshold": "gmean"},
        {"categorical_features": [3], "shrinkage": 0.0},  # without shrinkage, leaves of one class are listed
    ]
    for params in options:
        forest = AUCForestClassifier(100, max_bins=max_bins, max_depth=3, random_state=0, **params).fit(X, y)
        forest.predict_proba(X)
        forest.predict_proba(X[:1])
