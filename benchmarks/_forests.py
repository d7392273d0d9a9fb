"""Random forests of the peers with the parameters of scikit-learn's defaults: deep trees, sqrt features, bootstrap.

Ours with its defaults does more, as no peer mixes criteria or chooses how much nodes lean on their ancestors: with one
criterion and without shrinkage it does what they do. Peers are imported when they fit.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.ensemble import RandomForestClassifier

from aucforest import AUCForestClassifier

N_JOBS = cpu_count()


def fit_ours(X: np.ndarray, y: np.ndarray, n_trees: int, n_threads: int = N_JOBS, **options: Any) -> Any:
    """Fit AUCForestClassifier."""
    return AUCForestClassifier(n_trees, n_jobs=n_threads, random_state=0, **options).fit(X, y)


def fit_scikit_learn(X: np.ndarray, y: np.ndarray, n_trees: int, n_threads: int = N_JOBS) -> Any:
    """Fit RandomForestClassifier."""
    return RandomForestClassifier(n_trees, n_jobs=n_threads, random_state=0).fit(X, y)


def fit_intel(X: np.ndarray, y: np.ndarray, n_trees: int, n_threads: int = N_JOBS) -> Any:
    """Fit scikit-learn-intelex's RandomForestClassifier."""
    from sklearnex.ensemble import RandomForestClassifier as IntelRandomForestClassifier

    return IntelRandomForestClassifier(n_trees, n_jobs=n_threads, random_state=0).fit(X, y)


def fit_lightgbm(X: np.ndarray, y: np.ndarray, n_trees: int, n_threads: int = N_JOBS) -> Any:
    """Fit LightGBM in rf mode; 16,384 leaves are more than the trees of the others have on these data."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        boosting_type="rf",
        n_estimators=n_trees,
        num_leaves=16_384,
        min_child_samples=1,
        min_child_weight=0.0,
        bagging_freq=1,
        bagging_fraction=0.632,
        feature_fraction_bynode=1.0 / np.sqrt(X.shape[1]),
        n_jobs=n_threads,
        random_state=0,
        verbose=-1,
    ).fit(X, y)


class YdfForest:
    """YDF's random forest behind `predict_proba`."""

    def __init__(self, X: np.ndarray, y: np.ndarray, n_trees: int, n_threads: int = N_JOBS) -> None:
        import ydf

        self.n_classes, self.n_threads = len(np.unique(y)), n_threads
        learner = ydf.RandomForestLearner(
            label="label",
            num_trees=n_trees,
            max_depth=-1,
            min_examples=1,
            winner_take_all=False,
            compute_oob_performances=False,
            num_threads=n_threads,
        )
        self.model = learner.train({"x": X, "label": y}, verbose=0)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict class probabilities, (n_rows, n_classes)."""
        proba = self.model.predict({"x": X}, num_threads=self.n_threads)
        return np.column_stack((1 - proba, proba)) if self.n_classes == 2 else proba


FITS: dict[str, Callable[..., Any]] = {
    "aucforest": fit_ours,
    "aucforest, auc": partial(fit_ours, criterion="auc"),
    "aucforest, auc, shrinkage off": partial(fit_ours, criterion="auc", shrinkage=None),
    "aucforest, gini, shrinkage off": partial(fit_ours, criterion="gini", shrinkage=None),
    "scikit-learn": fit_scikit_learn,
    "scikit-learn-intelex": fit_intel,
    "lightgbm rf": fit_lightgbm,
    "ydf": YdfForest,
}
