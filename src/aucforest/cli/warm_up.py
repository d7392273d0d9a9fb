"""``aucforest warm-up``: compile before the first fit. This command works without the extra ``cli``."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from scipy.sparse import csr_array

from aucforest._machine_code import is_set, own_folder, shipped, status
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


def warm_up(native: bool = False) -> None:
    """Compile for this machine before the first fit, for example in a container image.

    Machine code that comes with the installation is not compiled again. With --native, all code is compiled for exactly
    this processor.

    Example: aucforest warm-up
    """
    if native:
        os.environ["AUCFOREST_NATIVE"] = "1"
    if is_set("NUMBA_DISABLE_JIT"):
        raise ValueError("NUMBA_DISABLE_JIT is set, so nothing can be compiled: unset it")
    if own_folder() is None and not shipped().level:
        raise OSError("there is no folder to keep machine code in: set NUMBA_CACHE_DIR to one that can be written to")
    if own_folder() is None or cpu_count() == 1 or getattr(sys, "frozen", False):
        compile_kernels()
    else:
        _use_two_processes()
    print(status())


def _use_two_processes() -> None:
    """Make the calls of `_kernel_calls` in two processes, one from each end. Each loads what the other has compiled."""
    backward = [sys.executable, "-c", "from aucforest.cli.warm_up import compile_kernels; compile_kernels(-1)"]
    with subprocess.Popen(backward, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            compile_kernels()
        except BaseException:
            other.kill()
            raise


def compile_kernels(direction: int = 1) -> None:
    """Make all calls of `_kernel_calls`, from the last to the first if `direction` is -1."""
    for call in _kernel_calls()[::direction]:
        call()


def _kernel_calls() -> list[Callable[[], object]]:
    """Return calls that use all kernels. The calls that take longest to compile are the first and the last."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:, 3] = X[:, 3].round()
    two_classes, three_classes = X[:, 0] > 0.5, np.digitize(X[:, 0], [-0.5, 0.5])
    return [
        partial(_fit_options, X, two_classes, {"threshold": "gmean", "max_leaf_nodes": 9}),
        partial(_fit_sparse, X, two_classes),
        partial(_fit_rates, X, two_classes),
        partial(_inspect_forest, X, two_classes, _forest()),
        # a matrix of more rows than the sample from which bins are computed
        partial(bin_matrix, np.zeros((SAMPLE_ROWS + 1, 1))),
        *(partial(pairwise_loss, two_classes, X[:, 0], loss=loss) for loss in ("exp", "logistic", "squared_hinge")),
        partial(LinearAUCClassifier().fit, X, two_classes),
        partial(_measure, two_classes, X[:, :2]),
        partial(_measure, three_classes, X[:, :3]),
        partial(_inspect_forest, X, three_classes, _forest(categorical_features=[3])),
        partial(_fit_options, X, three_classes, {}),
    ]


def _forest(**params: Any) -> AUCForestClassifier:
    return AUCForestClassifier(30, max_depth=3, random_state=0, **params)


def _fit_options(X: NDArray[np.float64], y: NDArray[Any], params: dict[str, Any]) -> None:
    """Fit forests that use all kernels for fits and predictions of dense rows."""
    without_shrinkage = {
        "categorical_features": [3],
        "shrinkage": 0.0,
    }  # so that leaves of one class predict only this class
    # More than 255 values of a feature need codes of two bytes.
    for given, max_bins in product(({"oob_score": True, **params}, without_shrinkage), (255, None)):
        forest = _forest(max_bins=max_bins, **given).fit(X, y)
        for rows in (X, X[:1], X.astype(np.float32)):
            forest.predict_proba(rows)


def _fit_sparse(X: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Fit forests to sparse rows with few or many stored values, in float32 and float64."""
    for least in (1.0, 2.2):
        for dtype in (np.float32, np.float64):
            rows = csr_array(np.where(np.abs(X) > least, X, 0.0).astype(dtype))
            _forest().fit(rows, y).predict_proba(rows)


def _fit_rates(X: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Fit forests that encode a column of many categories by class frequencies, without and with groups."""
    rows, forest = X.copy(), _forest(categorical_features=[3])
    rows[:, 3] = np.arange(len(X)) % 60
    for groups in (None, np.arange(len(X)) // 2):
        _inspect_forest(rows, y, forest, groups)


def _inspect_forest(
    X: NDArray[np.float64], y: NDArray[Any], forest: AUCForestClassifier, groups: NDArray[Any] | None = None
) -> None:
    """Fit a forest, and call the methods and functions that use further kernels."""
    forest.fit(X, y, groups=groups)
    forest.apply(X)
    forest.decision_path(X)
    explain(forest, X[:2])
    oob_permutation_importance(forest, X, y, n_repeats=2)
    forest.set_threshold({"cost": 1.0 - np.eye(len(forest.classes_))}, X, y)
    with TemporaryDirectory() as folder:
        forest.save(Path(folder) / "forest.aucforest")
        load(Path(folder) / "forest.aucforest")


def _measure(y: NDArray[Any], X: NDArray[np.float64]) -> None:
    proba = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    scores, is_last = proba[:, -1], y == y.max()
    for weight in (None, np.ones(len(y))):
        roc_auc_score(is_last, scores, sample_weight=weight)
        average_precision_score(is_last, scores, sample_weight=weight)
        auc_confidence_interval(is_last, scores, sample_weight=weight)
        sketch = AUCSketch()
        sketch.update(is_last, scores, weight)
        if proba.shape[1] > 2:
            hand_till_score(y, proba, sample_weight=weight)
