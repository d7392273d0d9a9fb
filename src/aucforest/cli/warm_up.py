"""``aucforest warm-up``: compile before the first fit. It needs none of the packages of the command line."""

from itertools import product
from typing import Any

import numpy as np

from aucforest.estimators.forest import AUCForestClassifier


def warm_up() -> None:
    """Compile for this machine, so that the first fit does not have to, as for a container image.

    Example: aucforest warm-up
    """
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:, 3] = X[:, 3].round()
    two_classes, three_classes = X[:, 0] > 0.5, np.digitize(X[:, 0], [-0.5, 0.5])
    without_shrinkage = {"categorical_features": [3], "shrinkage": 0.0}  # leaves of one class are listed
    options: list[tuple[Any, dict[str, Any]]] = [
        (two_classes, {"oob_score": True, "threshold": "gmean"}),
        (two_classes, without_shrinkage),
        (three_classes, {"oob_score": True}),
        (three_classes, without_shrinkage),
    ]
    # More than 255 values of a feature need codes of two bytes.
    for (y, params), max_bins in product(options, (255, None)):
        forest = AUCForestClassifier(100, max_bins=max_bins, max_depth=3, random_state=0, **params).fit(X, y)
        forest.predict_proba(X)
        forest.predict_proba(X[:1])
