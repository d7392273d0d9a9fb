"""How large are model files, and how fast to load? Against joblib's of scikit-learn's forest of the same shape.

    python benchmarks/model_files.py [PART ...]

runs some parts: binary, classes, weighted, small. Both forests grow alike on the same rows, with as many trees. Loading
checks all but makes the trees at their first use, so it is timed with one prediction, too. Times are warm; the first
load of a process, imports aside, is told apart.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from _timing import in_fresh_process, interleaved
from joblib import cpu_count
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import aucforest

REPEATS = 15

FIRST_LOAD = """
import time
from {module} import load
from {other} import *
start = time.perf_counter()
load({path!r})
print(time.perf_counter() - start)
"""


def make_rows(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of 30 features; of two classes the second has 5 %."""
    weights = [0.95] if n_classes == 2 else None
    return make_classification(
        n_rows, 30, n_informative=8, n_redundant=4, n_classes=n_classes, weights=weights, flip_y=0.02, random_state=0
    )


def compare(title: str, n_rows: int, n_trees: int, n_classes: int = 2, **parameters: Any) -> None:
    """Print sizes and times of both files, and their ratios."""
    X, y = make_rows(n_rows, n_classes)
    options = {"n_estimators": n_trees, "n_jobs": cpu_count(), "random_state": 0, **parameters}
    ours = aucforest.AUCForestClassifier(criterion="auc", **options).fit(X, y).set_params(n_jobs=None)
    peer = RandomForestClassifier(**options).fit(X, y).set_params(n_jobs=None)
    n_nodes = sum(tree.n_nodes for tree in ours.trees_), sum(tree.tree_.node_count for tree in peer.estimators_)
    print(f"\n{title}: {n_rows} rows, {n_trees} trees, nodes {n_nodes[0]} and {n_nodes[1]}")
    with tempfile.TemporaryDirectory() as folder:
        paths = f"{folder}/ours", f"{folder}/peer"
        saves = {"aucforest": partial(ours.save, paths[0]), "joblib": partial(joblib.dump, peer, paths[1])}
        loads = {"aucforest": partial(aucforest.load, paths[0]), "joblib": partial(joblib.load, paths[1])}
        for call in (*saves.values(), *loads.values()):
            call()
        assert np.array_equal(loads["aucforest"]().predict_proba(X), ours.predict_proba(X))
        row = X[:1]
        uses = {name: lambda load=load: load().predict_proba(row) for name, load in loads.items()}
        sizes = [Path(path).stat().st_size / n for path, n in zip(paths, n_nodes)]
        report("bytes a node", *sizes, "{:10.1f}")
        report("save, s", *interleaved(saves, REPEATS).values(), "{:10.4f}")
        report("load, s", *interleaved(loads, REPEATS).values(), "{:10.4f}")
        report("load and predict a row, s", *interleaved(uses, REPEATS).values(), "{:10.4f}")
        first = {
            "ours": FIRST_LOAD.format(module="aucforest", other="aucforest", path=paths[0]),
            "peer": FIRST_LOAD.format(module="joblib", other="sklearn.ensemble", path=paths[1]),
        }
        times = interleaved_numbers(first, 5)
        report("first load of a process, s", times["ours"], times["peer"], "{:10.4f}")


def interleaved_numbers(programs: dict[str, str], repeats: int) -> dict[str, float]:
    """Return the median number that each program prints, all taking turns."""
    numbers = [{name: in_fresh_process(program) for name, program in programs.items()} for _ in range(repeats)]
    return {name: float(np.median([found[name] for found in numbers])) for name in programs}


def report(what: str, ours: float, peer: float, form: str) -> None:
    """Print a figure of both, and the ratio."""
    print(f"  {what:28} aucforest{form.format(ours)}   joblib{form.format(peer)}{peer / ours:8.1f} x")


PARTS = {
    "binary": partial(compare, "two classes", 70_000, 100),
    "classes": partial(compare, "eight classes", 50_000, 100, 8),
    "weighted": partial(compare, "balanced in each tree", 20_000, 100, class_weight="balanced_subsample"),
    "small": partial(compare, "small trees", 20_000, 300, max_depth=6),
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
