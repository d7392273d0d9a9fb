"""How large are model files, and how fast to load? Against joblib's of scikit-learn's forest of the same shape.

    python benchmarks/model_files.py

Both forests grow alike on the same 70,000 rows of 30 features, with 100 trees. Loading checks all but makes the trees
at their first use, so it is timed with one prediction, too. Times are warm.
"""

import tempfile
from functools import partial
from pathlib import Path

import joblib
import numpy as np
from _timing import interleaved
from joblib import cpu_count
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import aucforest

N_ROWS, REPEATS = 70_000, 15


def report(what: str, ours: float, peer: float, form: str) -> None:
    """Print a figure of both, and the ratio."""
    print(f"  {what:28} aucforest{form.format(ours)}   joblib{form.format(peer)}{peer / ours:8.1f} x")


def main() -> None:
    """Print sizes and times of both files, and their ratios."""
    X, y = make_classification(N_ROWS, 30, n_informative=8, n_redundant=4, weights=[0.95], flip_y=0.02, random_state=0)
    options = {"n_estimators": 100, "n_jobs": cpu_count(), "random_state": 0}
    ours = aucforest.AUCForestClassifier(criterion="auc", **options).fit(X, y).set_params(n_jobs=None)
    peer = RandomForestClassifier(**options).fit(X, y).set_params(n_jobs=None)
    n_nodes = sum(tree.n_nodes for tree in ours.trees_), sum(tree.tree_.node_count for tree in peer.estimators_)
    print(f"{N_ROWS} rows, 100 trees, nodes {n_nodes[0]} and {n_nodes[1]}")
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
        for what, calls in (("save, s", saves), ("load, s", loads), ("load and predict a row, s", uses)):
            report(what, *interleaved(calls, REPEATS).values(), "{:10.4f}")


if __name__ == "__main__":
    main()
