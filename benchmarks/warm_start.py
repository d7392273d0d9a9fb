"""Does a warm start with more rows rank worse than the old forest?

    python benchmarks/warm_start.py [N_SPLITS]

On tables of KEEL with at least 100 positives whose names begin with a to p: 100 trees of 60 % of the training rows,
then a warm start to 200 trees with all of them, against the old forest and 200 new trees. A third of a table is for the
test.
"""

import sys
import warnings

import numpy as np
from _keel import rare_sets
from joblib import cpu_count
from sklearn.model_selection import train_test_split

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score
from aucforest.metrics.classification import log_loss

MODELS = ("old", "warm", "new")
LEAST_POSITIVES, MOST_SETS = 100, 12


def measure(X: np.ndarray, y: np.ndarray, seed: int) -> list[list[float]]:
    """Return ROC AUC and log loss of the old forest, the warm start and a new forest."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    n_old, params = int(0.6 * len(X)), {"random_state": seed, "n_jobs": cpu_count()}
    old = AUCForestClassifier(100, **params).fit(X[:n_old], y[:n_old])
    scores = [old.predict_proba(X_test)]
    old.set_params(warm_start=True, n_estimators=200).fit(X, y)
    scores += [old.predict_proba(X_test), AUCForestClassifier(200, **params).fit(X, y).predict_proba(X_test)]
    return [[roc_auc_score(y_test, proba[:, 1]), log_loss(y_test, proba)] for proba in scores]


def main() -> None:
    """Print means over splits for each set, and over sets."""
    warnings.simplefilter("ignore")
    n_splits = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sets = [one for one in rare_sets() if one.chooses and np.bincount(one.y).min() >= LEAST_POSITIVES][:MOST_SETS]
    means = []
    for one in sets:
        found = np.array([measure(one.X, one.y, seed) for seed in range(n_splits)]).mean(axis=0)
        means.append(found)
        shown = ", ".join(f"{name} {auc:.4f} / {loss:.4f}" for name, (auc, loss) in zip(MODELS, found))
        print(f"{one.name:28} {len(one.y):6} rows: {shown}", flush=True)
    gains = np.array(means)[:, 1] - np.array(means)[:, 0]
    errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
    print(f"{len(sets)} sets, {n_splits} splits, ROC AUC / log loss: {np.mean(means, axis=0).round(4).tolist()}")
    print(
        f"warm less old: ROC AUC {gains[:, 0].mean():+.4f} ± {errors[0]:.4f}, worst {gains[:, 0].min():+.4f};", end=" "
    )
    print(f"log loss {gains[:, 1].mean():+.4f} ± {errors[1]:.4f}, worst {gains[:, 1].max():+.4f}")


if __name__ == "__main__":
    main()
