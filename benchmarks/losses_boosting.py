"""Does LightGBM rank as well with losses of pairs as with log loss, and how much longer does it train?"""

from functools import partial
from typing import Any, get_args

import numpy as np
from _timing import interleaved
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold

from aucforest.datasets import load_abalone, load_page_blocks
from aucforest.losses import boosting_objective
from aucforest.losses.pairwise import Loss
from aucforest.metrics import roc_auc_score

OBJECTIVES: dict[str, Any] = {"log loss": "binary", **{loss: boosting_objective(loss) for loss in get_args(Loss)}}
FOLDS = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return two-class data sets: old abalones, and every block of a page that is not text."""
    abalones, rings = load_abalone(return_X_y=True)
    blocks, kinds = load_page_blocks(return_X_y=True)
    return {
        "breast_cancer": load_breast_cancer(return_X_y=True),
        "abalone, rings >= 18": (abalones, rings >= 18),
        "page blocks, not text": (blocks, kinds != 0),
    }


def classifier(objective: Any) -> LGBMClassifier:
    """Return LightGBM with its defaults, on one thread."""
    return LGBMClassifier(objective=objective, n_jobs=1, verbose=-1, random_state=0)


def mean_auc(objective: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean held-out AUC over the folds."""
    aucs = []
    for train, test in FOLDS.split(X, y):
        model = classifier(objective).fit(X[train], y[train])
        aucs.append(roc_auc_score(y[test], model.predict(X[test], raw_score=True)))
    return float(np.mean(aucs))


def compare(name: str, X: np.ndarray, y: np.ndarray) -> None:
    """Print AUC and time of every objective on one data set."""
    aucs = {loss: mean_auc(objective, X, y) for loss, objective in OBJECTIVES.items()}
    runs = {loss: partial(classifier(objective).fit, X, y) for loss, objective in OBJECTIVES.items()}
    seconds = interleaved(runs, 15)
    print(f"\n{name:<24}{'AUC':>8}{'difference':>12}{'fit, ms':>10}{'ratio':>8}  goal of exp: 0.01, 1.3")
    for loss, auc in aucs.items():
        ratio = seconds[loss] / seconds["log loss"]
        print(f"{loss:<24}{auc:>8.4f}{auc - aucs['log loss']:>+12.4f}{1e3 * seconds[loss]:>10.1f}{ratio:>8.2f}")


if __name__ == "__main__":
    for name, (X, y) in data_sets().items():
        compare(name, X, np.asarray(y, dtype=int))
