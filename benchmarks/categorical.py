"""Are native categories worth it? Against one-hot and ordinal codes in the same forest, and LightGBM's own categories.

    python benchmarks/categorical.py [SET ...]

runs some of abalone, car, nursery, kr-vs-k: repeated stratified folds, on which all take turns. AUC is Hand and Till's
for more than two classes; differences from native categories come with Nadeau and Bengio's standard errors. The time of
a fit is that from the frame on, its encoding included.
"""

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from _forests import N_JOBS
from _keel import keel
from _timing import interleaved
from lightgbm import LGBMClassifier
from sklearn.model_selection import RepeatedStratifiedKFold

from aucforest import AUCForestClassifier
from aucforest.datasets import load_abalone
from aucforest.metrics import hand_till_score, roc_auc_score

N_TREES, N_FOLDS, N_REPEATS = 100, 5, 2


def abalone() -> tuple[pd.DataFrame, np.ndarray]:
    """Return the bundled abalone, old ones being rare."""
    X, rings = load_abalone(return_X_y=True, as_frame=True)
    return X, (rings >= 18).to_numpy().astype(int)


SETS: dict[str, Callable[[], tuple[pd.DataFrame, np.ndarray]]] = {
    "abalone": abalone,
    "car": partial(keel, "car", N_FOLDS),
    "nursery": partial(keel, "nursery", N_FOLDS),
    "kr-vs-k": partial(keel, "kr-vs-k", N_FOLDS),
}


def one_hot(X: pd.DataFrame) -> pd.DataFrame:
    """Return a column of zeros and ones for each category."""
    return pd.get_dummies(X, columns=list(X.select_dtypes("category").columns), dtype=np.float64)


def ordinal(X: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of the categories."""
    return X.assign(**{name: X[name].cat.codes for name in X.select_dtypes("category").columns}).astype(np.float64)


ENCODINGS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "native": lambda X: X,
    "one-hot": one_hot,
    "ordinal": ordinal,
    "lightgbm": lambda X: X,
}


def score(y: np.ndarray, proba: np.ndarray) -> float:
    """Return the ROC AUC."""
    return roc_auc_score(y, proba[:, 1]) if proba.shape[1] == 2 else hand_till_score(y, proba)


def compare(name: str) -> None:
    """Print the AUC and the fit time of each."""
    X, y = SETS[name]()
    folds = list(RepeatedStratifiedKFold(n_splits=N_FOLDS, n_repeats=N_REPEATS, random_state=0).split(X, y))
    aucs: dict[str, list[float]] = {which: [] for which in ENCODINGS}
    seconds: dict[str, list[float]] = {which: [] for which in ENCODINGS}
    for number, (train, test) in enumerate(folds):
        models = {}

        def fit(which: str, train: np.ndarray = train, number: int = number, models: dict = models) -> None:
            model = AUCForestClassifier(N_TREES, criterion="auc", n_jobs=N_JOBS, random_state=number)
            if which == "lightgbm":
                model = LGBMClassifier(n_estimators=N_TREES, n_jobs=N_JOBS, random_state=number, verbose=-1)
            models[which] = model.fit(ENCODINGS[which](X.iloc[train]), y[train])

        if number == 0:
            for which in ENCODINGS:
                fit(which)  # warm
        for which, time in interleaved({which: partial(fit, which) for which in ENCODINGS}, 1).items():
            seconds[which].append(time)
            aucs[which].append(score(y[test], models[which].predict_proba(ENCODINGS[which](X.iloc[test]))))
    print(f"\n{name}: {X.shape[0]:,} rows, {len(np.unique(y))} classes, {X.shape[1]} columns,", end=" ")
    print(f"{len(X.select_dtypes('category').columns)} of them categorical, {one_hot(X).shape[1]} one-hot")
    print(f"{'':<10}{'AUC':>9}{'less native':>14}{'std. error':>12}{'fit s':>9}{'ratio':>8}")
    for which in ENCODINGS:
        difference = np.array(aucs[which]) - aucs["native"]
        error = np.sqrt((1 / len(folds) + 1 / (N_FOLDS - 1)) * difference.var(ddof=1))
        time = float(np.median(seconds[which]))
        ratio = time / np.median(seconds["native"])
        print(f"{which:<10}{np.mean(aucs[which]):>9.4f}{difference.mean():>+14.4f}", end="")
        print(f"{error:>12.4f}{time:>9.3f}{ratio:>8.2f}")


if __name__ == "__main__":
    print(f"{N_JOBS} cores, {N_TREES} trees, {N_REPEATS} x {N_FOLDS} folds")
    for one in sys.argv[1:] or SETS:
        compare(one)
