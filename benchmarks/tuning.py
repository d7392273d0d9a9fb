"""What tuning three parameters of a forest by its out-of-bag ROC AUC is worth.

    python benchmarks/tuning.py [--tries N] [--folds K] [--trees N]

Sets of KEEL with two classes, at least 500 rows, and names from a to q. In each stratified fold, random settings of the
three parameters are compared by the out-of-bag ROC AUC, with 100 trees; the best and the default are fitted with 300.
The table has the mean gain of the best in test ROC AUC and log loss with its standard error over sets, and that of a
single parameter where only this one is tuned. Needs the extra bench.
"""

import argparse
import warnings

import numpy as np
from _keel import rare_sets
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score

RANGES = {
    "max_features": ["sqrt", 0.2, 0.35, 0.5, 0.75, 1.0],
    "min_samples_leaf": [1, 2, 3, 5, 10, 20],
    "max_samples": [None, 0.3, 0.5, 0.7],
}
CHOICES = {"all three": tuple(RANGES), **{name: (name,) for name in RANGES}}


def settings(names, n_tries, random):
    """Return the default and other settings, all of them for a single parameter."""
    if len(names) == 1:
        return [{names[0]: value} for value in RANGES[names[0]]]
    drawn = [{name: RANGES[name][random.integers(len(RANGES[name]))] for name in names} for _ in range(n_tries - 1)]
    return [{name: RANGES[name][0] for name in names}, *drawn]


def measure(params, train, test, n_trees):
    forest = AUCForestClassifier(n_trees, random_state=0, n_jobs=-1, **params).fit(*train)
    proba = forest.predict_proba(test[0])[:, 1]
    return np.array([roc_auc_score(test[1], proba), log_loss(test[1], np.clip(proba, 1e-9, 1 - 1e-9))])


def gains(X, y, options):
    """Return the gain of each choice in AUC and log loss, mean over folds."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    result = {name: [] for name in CHOICES}
    for _, (train, test) in zip(range(options.folds), folds):
        rows = (X[train], y[train]), (X[test], y[test])
        default = measure({}, *rows, options.trees)
        for choice, names in CHOICES.items():
            scores = []
            tried = settings(names, options.tries, np.random.default_rng(0))
            for params in tried:
                forest = AUCForestClassifier(100, oob_score=True, random_state=1, n_jobs=-1, **params)
                scores.append(forest.fit(*rows[0]).oob_score_)
            result[choice].append(measure(tried[int(np.argmax(scores))], *rows, options.trees) - default)
    return {choice: np.mean(each, axis=0) for choice, each in result.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=12)
    parser.add_argument("--folds", type=int, default=1)
    parser.add_argument("--trees", type=int, default=300)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = [one for one in rare_sets() if one.name[0].lower() <= "q" and len(one.y) >= 500]
    found = []
    for one in sets:
        found.append(gains(one.X, one.y, options))
        print(one.name, {choice: each.round(4).tolist() for choice, each in found[-1].items()}, flush=True)
    print(f"\n{len(sets)} sets, {options.folds} of 5 folds, {options.tries} settings of all three")
    print("| tuned | ROC AUC | log loss |\n| --- | --- | --- |")
    for choice in CHOICES:
        each = np.array([of_set[choice] for of_set in found])
        error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
        cells = " | ".join(f"{mean:+.4f} ± {spread:.4f}" for mean, spread in zip(each.mean(axis=0), error))
        print(f"| {choice} | {cells} |")


if __name__ == "__main__":
    main()
