"""``aucforest warm-up``: compile before the first fit. It needs none of the packages of the command line."""

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from aucforest.estimators import AUCForestClassifier, LinearAUCClassifier, load
from aucforest.inspection import explain, oob_permutation_importance
from aucforest.losses import pairwise_loss
from aucforest.metrics import (
    AUCSketch,
    auc_confidence_interval,
    average_precision_score,
    hand_till_score,
    roc_auc_score,
)
from aucforest.tree.binning import SAMPLE_ROWS, bin_matrix


def warm_up() -> None:
    """Compile for this machine, so that the first fit does not have to, as for a container image.

    Example: aucforest warm-up
    """
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:, 3] = X[:, 3].round()
    two_classes, three_classes = X[:, 0] > 0.5, np.digitize(X[:, 0], [-0.5, 0.5])
    _fit_options(X, two_classes, three_classes)
    _fit_sparse(X, two_classes)
    _fit_rates(X, two_classes)
    # More rows than bins are computed from.
    bin_matrix(np.zeros((SAMPLE_ROWS + 1, 1)))
    for categorical_features, y in (((), two_classes), ((3,), three_classes)):
        forest = _forest(categorical_features=categorical_features).fit(X, y)
        _look_into(forest, X, y)
        _measure(forest.predict_proba(X), y)
    for loss in ("exp", "logistic", "squared_hinge"):
        pairwise_loss(two_classes, X[:, 0], loss=loss)
    LinearAUCClassifier().fit(X, two_classes)


def _forest(**params: Any) -> AUCForestClassifier:
    """Return a small forest."""
    return AUCForestClassifier(30, max_depth=3, random_state=0, **params)


def _fit_options(X: NDArray[np.float64], two_classes: NDArray[Any], three_classes: NDArray[Any]) -> None:
    """Fit forests that together need all that is compiled for fits and predictions of dense rows."""
    without_shrinkage = {"categorical_features": [3], "shrinkage": 0.0}  # leaves of one class are listed
    options: list[tuple[Any, dict[str, Any]]] = [
        (two_classes, {"oob_score": True, "threshold": "gmean", "max_leaf_nodes": 9}),
        (two_classes, without_shrinkage),
        (three_classes, {"oob_score": True}),
        (three_classes, without_shrinkage),
    ]
    # More than 255 values of a feature need codes of two bytes.
    for (y, params), max_bins in product(options, (255, None)):
        forest = _forest(max_bins=max_bins, **params).fit(X, y)
        for rows in (X, X[:1], X.astype(np.float32)):
            forest.predict_proba(rows)


def _fit_sparse(X: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Fit forests to sparse rows: few or many stored values, which float32 represents or not."""
    for least in (1.0, 2.2):
        for dtype in (np.float32, np.float64):
            rows = csr_array(np.where(np.abs(X) > least, X, 0.0).astype(dtype))
            _forest().fit(rows, y).predict_proba(rows)


def _fit_rates(X: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Fit forests with target rates of a column of many categories, of single samples and of groups."""
    rows, forest = X.copy(), _forest(categorical_features=[3])
    rows[:, 3] = np.arange(len(X)) % 60
    for groups in (None, np.arange(len(X)) // 2):
        _look_into(forest.fit(rows, y, groups=groups), rows, y)


def _look_into(forest: AUCForestClassifier, X: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Ask a forest for all that needs kernels of its own."""
    forest.apply(X)
    forest.decision_path(X)
    explain(forest, X[:2])
    oob_permutation_importance(forest, X, y, n_repeats=2)
    forest.set_threshold({"cost": 1.0 - np.eye(len(forest.classes_))}, X, y)
    with TemporaryDirectory() as folder:
        forest.save(Path(folder) / "forest.aucforest")
        load(Path(folder) / "forest.aucforest")


def _measure(proba: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Compute metrics of each kind, with weights and without."""
    scores, is_last = proba[:, -1], y == y.max()
    for weight in (None, np.ones(len(y))):
        roc_auc_score(is_last, scores, sample_weight=weight)
        average_precision_score(is_last, scores, sample_weight=weight)
        auc_confidence_interval(is_last, scores, sample_weight=weight)
        sketch = AUCSketch()
        sketch.update(is_last, scores, weight)
        if proba.shape[1] > 2:
            hand_till_score(y, proba, sample_weight=weight)
