"""Is the out-of-bag ROC AUC right where positives are few or samples alike, and what are choices by it worth there?

    python benchmarks/few_positives.py score [N_SEEDS]
    python benchmarks/few_positives.py choice [N_SEEDS]

"score" compares `oob_score_`, which is by pairs of samples, and the ROC AUC of `oob_decision_function_`, which is by
sample, with the ROC AUC of the forest on 20,000 new samples: on noise, on constant features, on few cells of binary
features, and on data from which there is something to learn. Where there is nothing, a test has .5.

"choice" is about few positives: the gain in ROC AUC of new samples by the choice of mixture and shrinkage out of bag,
that in log loss by this choice and by calibration, and that in balanced accuracy by a tuned threshold in place of the
class frequency. `LEAST_SAMPLES` is set to 0 and to infinity.
"""

import sys
import warnings
from itertools import product

import numpy as np
from joblib import cpu_count
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score

from aucforest import AUCForestClassifier
from aucforest.fitting import target
from aucforest.metrics import roc_auc_score
from aucforest.metrics.classification import log_loss

N_TEST, N_JOBS = 20_000, cpu_count()


def exactly(n_rows: int, n_positive: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels with a number of positives among the first rows, and half of those for the test."""
    return np.concatenate((rng.permutation(n_rows) < n_positive, np.arange(N_TEST) % 2 == 0))


def noise(n_rows, n_positive, rng):
    return rng.normal(size=(n_rows + N_TEST, 5)), exactly(n_rows, n_positive, rng)


def constant(n_rows, n_positive, rng):
    return np.zeros((n_rows + N_TEST, 1)), exactly(n_rows, n_positive, rng)


def binary_noise(n_rows, n_positive, rng):
    return rng.integers(0, 2, (n_rows + N_TEST, 1)), exactly(n_rows, n_positive, rng)


def shifted(n_rows, n_positive, rng):
    """Two of five features of positives are shifted by one standard deviation."""
    y = exactly(n_rows, n_positive, rng)
    X = rng.normal(size=(len(y), 5))
    X[:, :2] += y[:, None]
    return X, y


def cells(n_rows, n_positive, rng):
    """Eight cells of three binary features, two of which matter."""
    X = rng.integers(0, 2, (n_rows + N_TEST, 3))
    odds = n_positive / n_rows * (0.4 + 1.2 * X[:, 0] + X[:, 1] * X[:, 2])
    return X, rng.random(len(X)) < odds


def learnable(n_rows, n_positive, rng):
    """A problem of scikit-learn's generator."""
    weights = [1.0 - n_positive / n_rows]
    made = make_classification(
        n_rows + N_TEST, 12, n_informative=5, weights=weights, class_sep=0.7, random_state=rng.integers(2**31)
    )
    return made[0], made[1] == 1


SIZES = ((200, 2), (200, 3), (200, 5), (200, 10), (200, 20), (1000, 20), (1000, 100), (1000, 500))


def measure_score(make, n_rows: int, n_positive: int, seed: int) -> tuple[float, float]:
    """Return the errors of the ROC AUC out of bag, by pairs and by sample."""
    X, y = make(n_rows, n_positive, np.random.default_rng(seed))
    forest = AUCForestClassifier(oob_score=True, random_state=seed, n_jobs=N_JOBS).fit(X[:n_rows], y[:n_rows])
    new = roc_auc_score(y[n_rows:], forest.predict_proba(X[n_rows:])[:, 1])
    return forest.oob_score_ - new, roc_auc_score(y[:n_rows], forest.oob_decision_function_[:, 1]) - new


def measure_choice(make, n_rows: int, n_positive: int, seed: int) -> tuple[float, float, float]:
    """Return the gains by the choices, by the choices and calibration, and by tuning."""
    X, y = make(n_rows, n_positive, np.random.default_rng(seed))
    X_new, y_new = X[n_rows:], y[n_rows:]
    weight = np.where(y_new, n_positive / n_rows, 1.0 - n_positive / n_rows)
    forests, new = [], []
    for least in (sys.maxsize, 0):
        target.LEAST_SAMPLES = least
        forest = AUCForestClassifier(threshold="gmean", random_state=seed, n_jobs=N_JOBS)
        forests.append(forest.fit(X[:n_rows], y[:n_rows]))
        new.append(forests[-1].predict_proba(X_new))
    aucs = [roc_auc_score(y_new, proba[:, 1]) for proba in new]
    losses = [log_loss(y_new.astype(np.int64), proba, weight) for proba in new]
    by_tuned, by_frequency = (
        balanced_accuracy_score(y_new, new[1][:, 1] >= cut)
        for cut in (forests[1].threshold_, forests[1].class_prior_[1])
    )
    return aucs[1] - aucs[0], losses[0] - losses[1], by_tuned - by_frequency


def main() -> None:
    """Print means over seeds with their standard errors."""
    warnings.simplefilter("ignore")
    what = sys.argv[1] if len(sys.argv) > 1 else "score"
    n_seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 25
    if what == "score":
        print(f"{n_seeds} seeds: ROC AUC out of bag less that of new samples, of oob_score_ and by sample")
        cases, measure = product((noise, constant, binary_noise, cells, shifted, learnable), SIZES), measure_score
    else:
        print(f"{n_seeds} seeds: gain in ROC AUC by choices, in log loss by choices and calibration, in balanced")
        print("accuracy by a tuned threshold")
        few = [(n_rows, n_positive) for n_rows in (200, 1000) for n_positive in (2, 3, 5, 8, 10, 15, 30)]
        cases, measure = product((noise, shifted), few), measure_choice
    for make, (n_rows, n_positive) in cases:
        found = np.array([measure(make, n_rows, n_positive, seed) for seed in range(n_seeds)])
        errors = found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
        shown = ", ".join(f"{mean:+.4f} ± {error:.4f}" for mean, error in zip(found.mean(axis=0), errors))
        print(f"{make.__name__:12} {n_positive:3} of {n_rows:4} positive: {shown}", flush=True)


if __name__ == "__main__":
    main()
