"""Is a forest of defaults right for rare classes? All two-class sets of KEEL, against the forests people would take.

    python benchmarks/rare_classes.py [--repeats N] [--folds N] [--sets a-p|q-z] [--forests NAME ...] [--csv FILE]

Defaults were chosen on the sets whose names begin with a to p: the others are the honest part. Every set is cut into
stratified folds, on which all forests take turns, one thread each. Means are over sets; ranks are among the forests
named in the first table, ties shared.
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from _keel import RareSet, rare_sets
from imblearn.ensemble import BalancedRandomForestClassifier
from scipy import stats
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss, recall_score
from sklearn.model_selection import RepeatedStratifiedKFold
from tqdm import tqdm

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score

N_PEER_TREES = 200

FORESTS = {
    "aucforest": lambda seed: AUCForestClassifier(threshold="prevalence", random_state=seed),
    "aucforest, auc": lambda seed: AUCForestClassifier(criterion="auc", threshold="prevalence", random_state=seed),
    "scikit-learn": lambda seed: RandomForestClassifier(N_PEER_TREES, random_state=seed),
    "scikit-learn, balanced_subsample": lambda seed: RandomForestClassifier(
        N_PEER_TREES, class_weight="balanced_subsample", random_state=seed
    ),
    "scikit-learn, extra trees": lambda seed: ExtraTreesClassifier(N_PEER_TREES, random_state=seed),
    "imbalanced-learn, balanced": lambda seed: BalancedRandomForestClassifier(N_PEER_TREES, random_state=seed),
}
VARIANTS = {
    "gini": {"criterion": "gini"},
    "no shrinkage": {"shrinkage": None},
    "shrinkage 5": {"shrinkage": 5.0},
    "no shrinkage, leaves of 3": {"shrinkage": None, "min_samples_leaf": 3},
    "100 trees": {"n_estimators": 100},
    "500 trees": {"n_estimators": 500},
    "stratified": {"sampling": "stratified"},
    "subsample": {"sampling": "subsample"},
    "balanced": {"sampling": "balanced"},
    "balanced, not corrected": {"sampling": "balanced", "calibration": None},
    "half the features": {"max_features": 0.5},
}
# What is asked of the defaults needs these; the others are how the defaults were chosen.
GOALS = ("gini", "shrinkage 5", "balanced")


def make(name: str, seed: int):
    """Return an unfitted forest."""
    if name in FORESTS:
        return FORESTS[name](seed)
    params = {"criterion": "auc", "threshold": "prevalence", "random_state": seed}
    return AUCForestClassifier(**params | VARIANTS[name])


def measure(forest, train: tuple, test: tuple) -> dict[str, float]:
    """Fit a forest and return all that is asked of it."""
    start = perf_counter()
    forest.fit(*train)
    seconds = perf_counter() - start
    X, y = test
    proba = forest.predict_proba(X)[:, 1]
    recalls = recall_score(y, forest.predict(X), average=None)
    inside = np.clip(proba, 1e-15, 1 - 1e-15)
    return {
        "auc": roc_auc_score(y, proba),
        "g_mean": float(np.sqrt(np.prod(recalls))),
        "log_loss": log_loss(y, inside),
        "brier": brier_score_loss(y, proba),
        "seconds": seconds,
    }


def measure_set(one: RareSet, names: list[str], n_folds: int, n_repeats: int) -> list[dict]:
    """Let all forests take turns on the folds of a set."""
    rows = []
    folds = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=0)
    for fold, (train, test) in enumerate(folds.split(one.X, one.y)):
        for name in names:
            known = {"set": one.name, "chooses": one.chooses, "fold": fold, "forest": name}
            found = measure(make(name, fold), (one.X[train], one.y[train]), (one.X[test], one.y[test]))
            rows.append(known | found)
    return rows


def mean_by_set(results: pd.DataFrame) -> pd.DataFrame:
    """Return means over folds; of times the median, which neither compiling nor other work on the machine moves."""
    groups = results.groupby(["set", "forest"], sort=False)
    return groups.mean(numeric_only=True).assign(seconds=groups["seconds"].median())


def print_means(results: pd.DataFrame, title: str) -> None:
    """Print the means over sets, and the mean rank of the forests."""
    by_set = mean_by_set(results)
    auc = by_set["auc"].unstack()
    means = by_set.groupby("forest", sort=False).mean(numeric_only=True)
    means["rank"] = auc[[name for name in FORESTS if name in auc]].rank(axis=1, ascending=False).mean()
    means["seconds"] = by_set["seconds"].groupby("forest").sum()
    columns = ["auc", "rank", "g_mean", "log_loss", "brier", "seconds"]
    print(f"\n{title}: {len(auc)} sets; seconds are the sum over sets of the median fit")
    print(means[columns].round(4).to_string(na_rep=""))


def print_goals(results: pd.DataFrame) -> None:
    """Print what is asked of the defaults, beside the figures."""
    by_set = mean_by_set(results)
    mean, total = by_set.groupby("forest").mean(numeric_only=True), by_set["seconds"].groupby("forest").sum()
    auc = by_set["auc"].unstack()
    ours, theirs, evened = (mean.loc[name] for name in ("aucforest", "scikit-learn", "balanced"))
    even_peer = mean.loc["imbalanced-learn, balanced"]
    gain = auc["aucforest, auc"] - auc["gini"]
    tests = (
        f">= 0.002 (t test over sets p {stats.ttest_1samp(gain, 0).pvalue:.2g}, signed ranks"
        f" {stats.wilcoxon(gain).pvalue:.2g}, better on {np.mean(gain > 0):.0%} of sets)"
    )
    lines = [
        ("mean AUC, less scikit-learn's", ours["auc"] - theirs["auc"], ">= 0.008"),
        ("mean AUC, auc less gini", gain.mean(), tests),
        ("mean G-mean, less the balanced forest's", ours["g_mean"] - even_peer["g_mean"], "> 0"),
        ("log loss of balanced draws / scikit-learn's", evened["log_loss"] / theirs["log_loss"], "<= 1.02"),
        ("Brier of balanced draws / scikit-learn's", evened["brier"] / theirs["brier"], "<= 1.02"),
        ("fit time / scikit-learn's", total["aucforest"] / total["scikit-learn"], "< 1"),
        ("share of the choice of shrinkage in the fit", 1 - total["shrinkage 5"] / total["aucforest, auc"], "<= 0.25"),
    ]
    print()
    for name, value, goal in lines:
        print(f"{name:45}{value:9.4f}   goal {goal}")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--sets", choices=["a-p", "q-z"], help="one part of the sets alone")
    parser.add_argument("--forests", nargs="+", choices=[*FORESTS, *VARIANTS], default=[*FORESTS, *GOALS])
    parser.add_argument("--csv", type=Path, help="where to write the row of every fold")
    parser.add_argument("--read", type=Path, nargs="+", help="files of earlier runs, to print in place of a run")
    options = parser.parse_args()
    if options.read:
        results = pd.concat([pd.read_csv(path) for path in options.read])
    else:
        sets = [one for one in rare_sets() if options.sets is None or one.chooses == (options.sets == "a-p")]
        rows = [row for one in tqdm(sets) for row in measure_set(one, options.forests, options.folds, options.repeats)]
        results = pd.DataFrame(rows)
    if options.csv:
        results.to_csv(options.csv, index=False)
    print_means(results, "all")
    for chooses, title in ((True, "a to p, on which defaults were chosen"), (False, "q to z, the others")):
        if (results["chooses"] == chooses).any():
            print_means(results[results["chooses"] == chooses], title)
    if {*FORESTS, *GOALS} <= set(results["forest"]):
        print_goals(results)


if __name__ == "__main__":
    main()
