"""What do Shapley values cost? Against shap's TreeExplainer (C++, one thread), on the same trees.

    python benchmarks/explain_speed.py [SET ...]

runs some of deep, shallow, classes: 100 trees explain 1,000 rows of 30 features. Calls are warm, and take turns.
"""

import sys

import numpy as np
import shap
from _timing import in_fresh_process, interleaved
from joblib import cpu_count

from aucforest import AUCForestClassifier
from aucforest.inspection import explain

N_JOBS = cpu_count()
N_TREES, N_TRAIN, N_ROWS, N_FEATURES, N_REPEATS = 100, 5_000, 1_000, 30, 3

FIRST_CALL = """
import time
import numpy
from aucforest import AUCForestClassifier
from aucforest.inspection import explain
X = numpy.random.default_rng(0).normal(size=(1000, 5))
forest = AUCForestClassifier(30, random_state=0).fit(X, X[:, 0] > 0)
forest.predict_proba(X)
start = time.perf_counter()
explain(forest, X[:10])
print(time.perf_counter() - start)
"""

# the classes, and what the forest is given
SETS = {"deep": (2, {}), "shallow": (2, {"max_depth": 6}), "classes": (4, {"max_depth": 12})}


def run(name: str) -> None:
    """Print times and the greatest difference in a value."""
    n_classes, params = SETS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TRAIN + N_ROWS, N_FEATURES)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, [0.9] if n_classes == 2 else np.arange(1, n_classes) / n_classes))
    forest = AUCForestClassifier(N_TREES, n_jobs=N_JOBS, random_state=0, **params).fit(X[:N_TRAIN], y[:N_TRAIN])
    rows, explainer = X[N_TRAIN:], shap.TreeExplainer(forest.to_sklearn())
    expected = explainer.shap_values(rows[:20], check_additivity=False)
    found = explain(forest, rows[:20], scale="probability").values
    difference = np.abs(found - (expected[..., 1] if n_classes == 2 else expected)).max()
    seconds = interleaved(
        {
            "shap": lambda: explainer.shap_values(rows, check_additivity=False),
            "aucforest, probabilities": lambda: explain(forest, rows, scale="probability"),
            "aucforest, one thread": lambda: explain(forest, rows),
            f"aucforest, {N_JOBS} threads": lambda: explain(forest, rows, n_jobs=N_JOBS),
            f"aucforest, one row, {N_JOBS} threads": lambda: explain(forest, rows[:1], n_jobs=N_JOBS),
        },
        N_REPEATS,
    )
    nodes, depth = (np.mean([getattr(tree, what) for tree in forest.trees_]) for what in ("n_nodes", "max_depth"))
    print(
        f"\n{name}: {n_classes} classes, {nodes:,.0f} nodes and {depth:.0f} levels a tree; difference {difference:.0e}"
    )
    for way, time in seconds.items():
        print(f"  {way:32}{time:9.3f} s  {seconds['shap'] / time:9.1f} x")


if __name__ == "__main__":
    print(f"{N_TREES} trees of {N_TRAIN:,} rows explain {N_ROWS:,} x {N_FEATURES}, {N_JOBS} processors")
    for chosen in sys.argv[1:] or SETS:
        run(chosen)
    print(f"\nfirst explanation in a new process: {in_fresh_process(FIRST_CALL):.2f} s from the cache, ", end="")
    print(f"{in_fresh_process(FIRST_CALL, cold=True):.2f} s with all to compile")
