"""How fast are fit and prediction of the forest, how good, and how large? Against four peers, whole calls, all cores.

    python benchmarks/forest_speed.py [PART ...]

runs some parts: binary, large, classes, letters, real, exact, criteria, random, memory. No peer mixes criteria or has
shrinkage, so ours is timed with its defaults, where both are chosen out of bag, with `criterion="auc"`, and with
`criterion="auc", shrinkage=None`, which is what the peers do. The parts criteria and random compare engines, without
shrinkage.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from _forests import FITS, N_JOBS, fit_ours
from _timing import interleaved, peak_of_fit
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from aucforest.datasets import load_page_blocks
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


def letters() -> Split:
    """Return 14,000 training rows like those of UCI letter: 26 balanced classes, 16 features of integers 0 to 15."""
    generator = np.random.default_rng(0)
    centres, y = 1.2 * generator.normal(size=(26, 16)), generator.integers(0, 26, 20_000)
    X = np.clip(np.rint(7.5 + 2.0 * (centres[y] + generator.normal(size=(20_000, 16)))), 0.0, 15.0)
    return _split(X, y)


def page_blocks() -> Split:
    """Return the bundled page blocks, five classes of which one has 90 % of the rows."""
    return _split(*load_page_blocks(return_X_y=True))


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


@numba.njit
def own_auc(left: np.ndarray, node: np.ndarray) -> float:
    """Return what "auc" does of two classes, as a user would write it."""
    return 0.5 * abs(left[0] / node[0] - left[1] / node[1])


@numba.njit
def own_gini(left: np.ndarray, node: np.ndarray) -> float:
    """Return what "gini" does, as a user would write it."""
    weight, left_weight = node.sum(), left.sum()
    decrease = 0.0
    for k in range(len(node)):
        right = node[k] - left[k]
        decrease += left[k] ** 2 / left_weight + right**2 / (weight - left_weight) - node[k] ** 2 / weight
    return decrease / weight


def criteria() -> None:
    """Compare the criteria of one engine, and a user's own with the built-in ones that say the same."""
    X, y, test_X, test_y = binary(100_000)
    peers = {"auc": "auc", "gini": "auc", "entropy": "auc", "hellinger": "auc", "own auc": "auc", "own gini": "gini"}
    functions = {"own auc": own_auc, "own gini": own_gini}
    runs = {
        name: partial(fit_ours, X, y, N_TREES, criterion=functions.get(name, name), shrinkage=None) for name in peers
    }
    aucs = {name: ranking(test_y, run().predict_proba(test_X)) for name, run in runs.items()}  # warms up too
    seconds = interleaved(runs, 7)
    print("\ncriteria, 70,000 x 30, shrinkage off")
    for name, peer in peers.items():
        ratio = seconds[name] / seconds[peer]
        print(f"{name:<12}{seconds[name]:>8.3f} s{ratio:>8.2f} of {peer:<6}test AUC {aucs[name]:.4f}")


def criteria_of_many_classes() -> None:
    """Compare the criteria with Gini, by the number of classes."""
    names = "gini", "auc", "entropy", "hellinger"
    print(f"\ncriteria, {N_TREES} trees, shrinkage off, seconds and ratio to gini")
    print(f"{'classes':<9}{'training rows':<18}" + "".join(f"{name:>18}" for name in names))
    for n_classes in (2, 8, 26):
        X, y, _, _ = binary(100_000) if n_classes == 2 else many_classes(n_classes)
        runs = {name: partial(fit_ours, X, y, N_TREES, criterion=name, shrinkage=None) for name in names}
        interleaved(runs, 1)  # warm
        seconds = interleaved(runs, 5)
        ratios = "".join(f"{seconds[name]:>10.3f} ({seconds[name] / seconds['gini']:5.2f})" for name in names)
        print(f"{n_classes:<9}{f'{X.shape[0]:,} x {X.shape[1]}':<18}{ratios}", flush=True)


def random(title: str, split: Split) -> None:
    """Compare extremely randomised splits with scikit-learn's, without a bootstrap, under the Gini criterion."""
    X, y, test_X, test_y = split
    options = {"criterion": "gini", "splitter": "random", "bootstrap": False, "shrinkage": None}
    fits: dict[str, Callable[[], Any]] = {
        "aucforest": partial(fit_ours, X, y, N_TREES, **options),
        "scikit-learn": lambda: ExtraTreesClassifier(N_TREES, n_jobs=N_JOBS, random_state=0).fit(X, y),
    }
    aucs = {name: ranking(test_y, fit().predict_proba(test_X)) for name, fit in fits.items()}  # warms up too
    seconds = interleaved(fits, 3)
    print(f"\nextremely randomised splits, {title}: {X.shape[0]:,} x {X.shape[1]}, shrinkage off")
    for name, auc in aucs.items():
        ratio = seconds[name] / seconds["aucforest"]
        print(f"{name:<14}{seconds[name]:>8.3f} s{ratio:>8.2f}   test AUC {auc:.4f}")


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
    "large": lambda: compare(
        "two classes, 5 % positive", binary(1_000_000), slow=("scikit-learn-intelex",), left_out=("scikit-learn", "ydf")
    ),
    "classes": classes,
    "letters": lambda: compare("letters", letters(), slow=("scikit-learn", "ydf"), left_out=("lightgbm rf",)),
    "real": lambda: compare("page blocks, 5 classes", page_blocks()),
    "exact": exact,
    "criteria": lambda: (criteria(), criteria_of_many_classes()),
    "random": lambda: (random("5 % positive", binary(100_000)), random("page blocks", page_blocks())),
    "memory": memory,
}

if __name__ == "__main__":
    print(f"{N_JOBS} cores")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
