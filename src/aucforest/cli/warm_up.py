"""``aucforest warm-up``: compile before the first fit. It needs none of the packages of the command line."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from aucforest.estimators.forest import AUCForestClassifier

# Fits that compile what most others need: with bins, and with codes of 16 bits for more than 255 values.
_FITS: list[dict[str, Any]] = [{"oob_score": True}, {"max_bins": None}]


def warm_up() -> None:
    """Compile for this machine, so that the first fit does not have to: for container images, and after an update.

    Example: python -m aucforest warm-up
    """
    with ProcessPoolExecutor(len(_FITS)) as processes:
        list(processes.map(_fit, _FITS))


def _fit(params: dict[str, Any]) -> None:
    """Fit a small forest, and predict many rows and one."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    forest = AUCForestClassifier(100, max_depth=3, random_state=0, **params).fit(X, X[:, 0] > 0.5)
    forest.predict_proba(X)
    forest.predict_proba(X[:1])
