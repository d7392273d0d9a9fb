"""Are labels by a tuned threshold scored right out of bag? On pure noise balanced accuracy should be one half.

    python benchmarks/noise_labels.py [N_SEEDS]

Features are normal, labels have nothing to do with them. The threshold is tuned for the geometric mean of both recalls.
Labels of a row by `threshold_`, which was tuned on this row as well, look too good; `oob_score_` takes a threshold that
was tuned without the part of the row. Where a row is out of bag, its class is a little rarer in the bootstrap
sample, which on few rows lowers the ROC AUC out of bag, and so this score, below one half. Stratified samples, in which
classes are as frequent as in training, do not have that error.
"""

import sys
from itertools import product

import numpy as np
from joblib import cpu_count
from sklearn.metrics import balanced_accuracy_score

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score

DESIGNS = ((100, 20), (200, 40), (1000, 50))  # numbers of rows, and of positive ones
N_TREES, N_FEATURES = 100, 5


def measure(sampling: str, n_rows: int, n_positive: int, seed: int) -> tuple[float, float, float]:
    """Return the ROC AUC out of bag, the balanced accuracy by `threshold_`, and the score of the forest."""
    X, y = np.random.default_rng(seed).normal(size=(n_rows, N_FEATURES)), np.arange(n_rows) < n_positive
    params = {"oob_score": "balanced_accuracy", "threshold": "gmean", "random_state": seed, "n_jobs": cpu_count()}
    forest = AUCForestClassifier(N_TREES, sampling=sampling, **params).fit(X, y)
    scores = forest.oob_decision_function_[:, 1]
    return roc_auc_score(y, scores), balanced_accuracy_score(y, scores >= forest.threshold_), forest.oob_score_


def main() -> None:
    """Print means over seeds with their standard errors."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"balanced accuracy and ROC AUC of noise out of bag, {n_seeds} seeds, mean ± standard error")
    for (n_rows, n_positive), sampling in product(DESIGNS, ("bootstrap", "stratified")):
        scores = np.array([measure(sampling, n_rows, n_positive, seed) for seed in range(n_seeds)])
        errors = scores.std(axis=0, ddof=1) / np.sqrt(n_seeds)
        auc, by_own, by_others = (f"{mean:.4f} ± {error:.4f}" for mean, error in zip(scores.mean(axis=0), errors))
        design = f"{n_rows:4} rows, {n_positive} positive, {sampling:10}"
        print(f"{design}: by threshold_ {by_own}, oob_score_ {by_others}, ROC AUC {auc}", flush=True)


if __name__ == "__main__":
    main()
