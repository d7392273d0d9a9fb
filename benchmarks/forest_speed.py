"""How fast are fit and prediction of the forest, how good, and how large? Against four peers, whole calls, all cores.

    python benchmarks/forest_speed.py [PART ...]

runs some parts: binary, classes, exact, memory. No peer mixes criteria or has shrinkage, so ours is timed with its
defaults, where both are chosen out of bag, with `criterion="auc"`, and with `criterion="auc", shrinkage=None`, which is
what the peers do.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _forests import FITS, N_JOBS, fit_ours
from _timing import interleaved, peak_of_fit
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from aucforest.metrics import hand_till_score

N_TREES = 100
# with the defaults, and doing what the peers do
OURS = "aucforest", "aucforest, auc, shrinkage off"
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def binary(n_rows: int) -> Split:
    """Return 70 % training and 30 % test rows with 30 features and 5 % positives."""
    X, y = make_classification(n_rows, 30, n_informative=10, n_redundant=5, weights=[0.95], random_state=0)
    return _split(X, y)


def many_classes(n_classes: int) -> Split:
    """Return 50,000 training rows of 30 features."""
    X, y = make_classification(
        71_429, 30, n_informative=15, n_redundant=5, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    return _split(X, y)


def _split(X: np.ndarray, y: np.ndarray) -> Split:
    train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return train_X, train_y, test_X, test_y


def ranking(y: np.ndarray, proba: np.ndarray) -> float:
    """Return the ROC AUC, Hand and Till's for more than two classes."""
    return roc_auc_score(y, proba[:, 1]) if proba.shape[1] == 2 else hand_till_score(y, proba)


def compare(title: str, split: Split, slow: tuple[str, ...] = (), left_out: tuple[str, ...] = ()) -> None:
    """Print seconds of fit and prediction, their ratios to ours both ways, and test AUC; slow peers run once."""
    X, y, test_X, test_y = split
    print(f"\n{title}: {X.shape[0]:,} x {X.shape[1]} training rows, {len(test_X):,} test rows, {N_TREES} trees")
    names = [name for name in FITS if name not in left_out]
    forests = {}

    def fit(name: str) -> None:
        forests[name] = FITS[name](X, y, N_TREES)

    for name in OURS:
        fit(name)  # warm
    quick = {name: partial(fit, name) for name in names if name not in slow}
    fit_seconds = interleaved(quick, 3)
    fit_seconds |= interleaved({name: partial(fit, name) for name in names if name in slow}, 1)
    predict: dict[str, Callable[[], object]] = {name: partial(forests[name].predict_proba, test_X) for name in names}
    predict_seconds = interleaved(predict, 5)
    print(f"{'':<32}{'fit s':>8}{'/ defaults':>12}{'/ off':>8}{'predict s':>12}{'/ defaults':>12}{'test AUC':>11}")
    for name in names:
        auc = ranking(test_y, forests[name].predict_proba(test_X))
        to_defaults, to_off = (fit_seconds[name] / fit_seconds[ours] for ours in OURS)
        predict_ratio = predict_seconds[name] / predict_seconds[OURS[0]]
        print(
            f"{name:<32}{fit_seconds[name]:>8.3f}{to_defaults:>12.2f}{to_off:>8.2f}"
            f"{predict_seconds[name]:>12.4f}{predict_ratio:>12.2f}{auc:>11.4f}"
        )


def classes() -> None:
    """Compare on many classes; a tree of LightGBM for each class takes minutes, so it is left out."""
    for n_classes in (8, 26):
        compare(f"{n_classes} classes", many_classes(n_classes), ("scikit-learn", "ydf"), ("lightgbm rf",))


def exact() -> None:
    """Compare fits that search every distinct value."""
    X, y, test_X, test_y = binary(100_000)
    forests: dict[str, Any] = {}

    def fit(name: str, **options: Any) -> None:
        forests[name] = FITS[name](X, y, N_TREES, **options)

    ours = {name: partial(fit, name, max_bins=None) for name in OURS}
    interleaved(ours, 1)  # warm
    seconds = interleaved(ours, 3) | interleaved({"scikit-learn": partial(fit, "scikit-learn")}, 1)
    print("\nexact mode (max_bins=None), 70,000 x 30")
    print(f"{'':<32}{'fit s':>8}{'scikit-learn /':>16}{'test AUC':>11}")
    for name, forest in forests.items():
        ratio, auc = seconds["scikit-learn"] / seconds[name], ranking(test_y, forest.predict_proba(test_X))
        print(f"{name:<32}{seconds[name]:>8.3f}{ratio:>16.1f}{auc:>11.4f}")


def memory() -> None:
    """Compare the memory that a fit needs beyond X, at its peak, with what it leaves behind."""
    X, y, _, _ = binary(1_000_000)
    trees = sum(tree.nbytes for tree in fit_ours(X, y, 10).trees_)
    budget = 2 * X.size + 100 * len(X) * N_JOBS + trees
    print(f"\npeak memory of fit beyond X, {X.shape[0]:,} x {X.shape[1]}, 10 trees, MiB")
    print(f"goal: 2 B a value + 100 B a row and thread + trees of {trees / 2**20:.0f} = {budget / 2**20:.0f}")
    print_peaks(X, y, 10, sorted(set(FITS) - {"aucforest, gini, shrinkage off"}))
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1500, 10)), random.permutation(1500) % 1486
    print(f"\nthe same with a class for almost every row, {X.shape[0]:,} x {X.shape[1]}, 300 trees, MiB")
    print_peaks(X, y, 300, ["aucforest", "scikit-learn"])


def print_peaks(X: np.ndarray, y: np.ndarray, n_trees: int, names: list[str]) -> None:
    """Print the greatest memory of fits in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        for name in names:
            print(f"{name:<32}{peak_of_fit(folder, '_forests', name, n_trees):>9.0f}", flush=True)


PARTS: dict[str, Callable[[], object]] = {
    "binary": lambda: compare("two classes, 5 % positive", binary(100_000), slow=("scikit-learn", "ydf")),
    "classes": classes,
    "exact": exact,
    "memory": memory,
}

if __name__ == "__main__":
    print(f"{N_JOBS} cores")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
