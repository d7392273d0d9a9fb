"""What a refresh of an old model is worth, and whether its interval is honest.

Rows have ten features, about a fifth of them is positive. The old model is fitted to 5,000 rows of a population, and
refreshed with rows of the same one ("none"), of one in which half of the effects are others ("half"), or all of them
("all"); or no feature has an effect at all ("noise"). The table has the mean ROC AUC on 5,000 further rows of the last
population: of the old model, of a model of the new rows alone, of the refreshed model, and of one of all rows, which
needs the old ones. "better" and "worse" are the shares of refreshes whose interval says so.
"""

import argparse

import numpy as np

from aucforest import AUCForestClassifier, refresh
from aucforest.metrics import roc_auc_score


def draw(n_rows, effects, random):
    X = random.normal(size=(n_rows, 10))
    logit = X @ effects + X[:, 0] * X[:, 1] * np.any(effects) - 1.6
    return X, random.random(n_rows) < 1.0 / (1.0 + np.exp(-logit))


def simulate(change, n_old, n_new, seed, n_trees):
    random = np.random.default_rng(seed)
    before, other = random.normal(size=10) * 0.6, random.normal(size=10) * 0.6
    n_changed = {"none": 0, "half": 5, "all": 10, "noise": 0}[change]
    before = before * (change != "noise")
    after = np.where(np.arange(10) < n_changed, other, before)
    (X_old, y_old), (X_new, y_new), (X, y) = (
        draw(n, effects, random) for n, effects in ((n_old, before), (n_new, after), (5000, after))
    )
    forest = AUCForestClassifier(n_trees, random_state=seed, n_jobs=-1)
    old = forest.fit(X_old, y_old)
    refreshed = refresh(old, X_new, y_new)
    alone = AUCForestClassifier(**forest.get_params()).fit(X_new, y_new)
    both = AUCForestClassifier(**forest.get_params()).fit(np.vstack((X_old, X_new)), np.concatenate((y_old, y_new)))
    aucs = [roc_auc_score(y, model.predict_proba(X)[:, 1]) for model in (old, alone, refreshed.model, both)]
    _, _, low, high = refreshed.roc_auc
    return [*aucs, refreshed.old_weight, low > 0.0, high < 0.0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--change", nargs="+", default=["none", "half", "all", "noise"])
    parser.add_argument("--new", nargs="+", type=int, default=[300, 2000])
    options = parser.parse_args()
    print("| change | new rows | old | new alone | refreshed | all rows | weight of the old | better | worse |")
    print("| --- " * 9 + "|")
    for change in options.change:
        for n_new in options.new:
            runs = np.array([simulate(change, 5000, n_new, seed, options.trees) for seed in range(options.seeds)])
            *means, better, worse = runs.mean(axis=0)
            shown = " | ".join(f"{value:.3f}" for value in means[:4])
            print(f"| {change} | {n_new:,} | {shown} | {means[4]:.2f} | {better:.1%} | {worse:.1%} |", flush=True)


if __name__ == "__main__":
    main()
