"""How fast is permutation importance? Against scikit-learn's on held-out rows.

    python benchmarks/inspection_speed.py

Calls are warm; the first ones, with code from the cache of compiled kernels or without, are told apart.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from _timing import in_fresh_process, interleaved
from joblib import cpu_count, parallel_config
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.inspection import permutation_importance

from aucforest import AUCForestClassifier
from aucforest.inspection import oob_permutation_importance

N_JOBS = cpu_count()
N_TREES = 100

FIRST_CALL = """
import time
import numpy
from aucforest import AUCForestClassifier
from aucforest.inspection import oob_permutation_importance
X = numpy.random.default_rng(0).normal(size=(1000, 5))
y = X[:, 0] > 0
forest = AUCForestClassifier(30, random_state=0).fit(X, y)
start = time.perf_counter()
oob_permutation_importance(forest, X, y, random_state=0)
print(time.perf_counter() - start)
"""


def make_rows(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with 5 % positives."""
    return make_classification(
        n_rows, n_features, n_informative=8, n_redundant=4, weights=[0.95], flip_y=0.02, random_state=0
    )


def report(title: str, seconds: dict[str, float]) -> None:
    """Print medians and their ratios to ours, which comes first."""
    print(f"\n{title}")
    ours = next(iter(seconds.values()))
    for name, value in seconds.items():
        print(f"  {name:52}{value:9.3f} s{value / ours:8.1f} x")


def compare_importance(n_rows: int, n_features: int, repeats: int, scorings: tuple[str, ...] = ("roc_auc",)) -> None:
    """Time importances of one forest: its own rows out of bag, against as many held-out rows."""
    X, y = make_rows(2 * n_rows, n_features)
    train, held_out = (X[:n_rows], y[:n_rows]), (X[n_rows:], y[n_rows:])
    forest = AUCForestClassifier(N_TREES, criterion="auc", n_jobs=N_JOBS, random_state=0).fit(*train)
    # Columns are the unit of parallel work there; the forest in each of them has one thread.
    theirs = clone(forest).set_params(n_jobs=1)
    theirs.__dict__.update({name: value for name, value in vars(forest).items() if name not in forest.get_params()})

    def scikit_learn(scoring: str, backend: str) -> object:
        with parallel_config(backend, n_jobs=N_JOBS):
            return permutation_importance(theirs, *held_out, scoring=scoring, n_repeats=5, random_state=0)

    def ours(scoring: str) -> object:
        return oob_permutation_importance(forest, *train, scoring=scoring, n_repeats=5, n_jobs=N_JOBS, random_state=0)

    for scoring in scorings:
        functions: dict[str, Callable[[], object]] = {
            "aucforest, out of bag, with standard errors": partial(ours, scoring),
            "scikit-learn, held-out rows, threads": partial(scikit_learn, scoring, "threading"),
            "scikit-learn, held-out rows, processes": partial(scikit_learn, scoring, "loky"),
        }
        if n_rows <= 1_000:  # the first sizes warm up for all
            for function in functions.values():
                function()
        title = f"importance, {scoring}: {n_rows:,} x {n_features}, {N_TREES} trees, 5 repeats, n_jobs={N_JOBS}"
        report(title, interleaved(functions, repeats))


def main() -> None:
    """Compare on three sizes, and the first call."""
    compare_importance(1_000, 12, 5, ("roc_auc", "average_precision", "balanced_accuracy"))
    compare_importance(20_000, 20, 3, ("roc_auc", "average_precision", "balanced_accuracy"))
    compare_importance(70_000, 30, 1)
    print("\nfirst importance of 1,000 x 5 in a new process")
    print(f"  code in the cache {in_fresh_process(FIRST_CALL):.2f} s")
    print(f"  all to compile    {in_fresh_process(FIRST_CALL, cold=True):.2f} s")


if __name__ == "__main__":
    main()
