"""Is out-of-bag ROC AUC right where customers repeat? By row and by customer, against that of new customers.

    python benchmarks/grouped_oob.py [N_SEEDS]
    python benchmarks/grouped_oob.py few [N_SEEDS]
    python benchmarks/grouped_oob.py calibration [N_SEEDS]

Each of 400 customers has 10 rows. Five features belong to the customer and hardly change from row to row, five to the
row. The label is that of the customer, except for one row in ten. A forest whose trees sample rows knows a customer by
other rows, so that rows out of bag seem easy; one whose trees sample whole customers does not. New customers, 1,000 for
each seed, tell which is right.

"few" is about few customers of a class: how much too low is the AUC out of bag then, and what are the choice of mixture
and shrinkage by it, and a threshold tuned by it in place of the class frequency, worth on new customers? Labels are
those of the customers, with and without a relation to two features. `LEAST_GROUPS` is set to 0 and to infinity.

"calibration" is about over-confident forests: the log loss on new customers of the class frequencies, of the mean of
the trees, and of calibrations with several penalties of a slope below 1. A label is that of the customer, or for
"mixed" that of the row in three of ten rows.
"""

import sys
import warnings
from itertools import product

import numpy as np
from joblib import cpu_count
from scipy.special import expit
from sklearn.metrics import balanced_accuracy_score

from aucforest import AUCForestClassifier
from aucforest.estimators import _calibration
from aucforest.fitting import target
from aucforest.metrics import roc_auc_score
from aucforest.metrics.classification import log_loss

N_ROWS, N_TRAIN, N_TEST, N_JOBS = 10, 400, 1000, cpu_count()
# The second one is `_calibration._PENALTY_BELOW_1_OF_GROUPS`, the last one that of rows.
PENALTIES = (0.0, 5.0, 20.0, 50.0, 300.0)


def make_customers(n_customers: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and customers of rows."""
    customer = np.repeat(np.arange(n_customers), N_ROWS)
    own, of_rows = rng.normal(size=(n_customers, 5)), rng.normal(size=(len(customer), 5))
    label = own[:, 0] + own[:, 1] + 1.5 * rng.normal(size=n_customers) > 1.5
    y = np.where(rng.random(len(customer)) < 0.1, of_rows[:, 0] > 0.5, label[customer])
    return np.hstack((own[customer] + 0.05 * rng.normal(size=(len(customer), 5)), of_rows)), y, customer


def measure(seed: int) -> tuple[float, ...]:
    """Return the AUC out of bag by row and by customer, and those of these forests on new customers."""
    rng = np.random.default_rng(seed)
    X, y, customer = make_customers(N_TRAIN, rng)
    X_new, y_new, _ = make_customers(N_TEST, rng)
    forests = [AUCForestClassifier(oob_score=True, n_jobs=N_JOBS, random_state=seed) for _ in range(2)]
    by_row, by_customer = forests[0].fit(X, y), forests[1].fit(X, y, groups=customer)
    new = [roc_auc_score(y_new, forest.predict_proba(X_new)[:, 1]) for forest in forests]
    return by_row.oob_score_, by_customer.oob_score_, *new


def make_few(n_positive: int, n_negative: int, shift: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return features, labels and customers of rows; two features of a positive customer are shifted."""
    positive = np.arange(n_positive + n_negative) < n_positive
    customer = np.repeat(np.arange(len(positive)), N_ROWS)
    own, of_rows = rng.normal(size=(len(positive), 5)), rng.normal(size=(len(customer), 5))
    own[:, :2] += shift * positive[:, None]
    return np.hstack((own[customer] + 0.05 * rng.normal(size=of_rows.shape), of_rows)), positive[customer], customer


def measure_few(n_customers: int, n_positive: int, shift: float, seed: int) -> tuple[float, float, float]:
    """Return the error of the AUC out of bag, and the gains by the choice and by tuning on new customers."""
    rng = np.random.default_rng(seed)
    X, y, customer = make_few(n_positive, n_customers - n_positive, shift, rng)
    X_new, y_new, _ = make_few(100, 100, shift, rng)
    params = {"oob_score": True, "n_jobs": N_JOBS, "random_state": seed}
    forests, new = [], []
    for least, threshold in ((sys.maxsize, None), (0, "gmean")):
        target.LEAST_GROUPS = least
        forests.append(AUCForestClassifier(100, threshold=threshold, **params).fit(X, y, groups=customer))
        new.append(forests[-1].predict_proba(X_new)[:, 1])
    fixed, chosen = (roc_auc_score(y_new, scores) for scores in new)
    by_tuned, by_frequency = (
        balanced_accuracy_score(y_new, new[1] >= cut) for cut in (forests[1].threshold_, forests[1].class_prior_[1])
    )
    return forests[0].oob_score_ - fixed, chosen - fixed, by_tuned - by_frequency


def make_similar(n_customers: int, n_rows: int, signal: float, mixed: bool, rng: np.random.Generator) -> tuple:
    """Return features, labels and customers of rows; the log odds of a label are a sum of features."""
    customer = np.repeat(np.arange(n_customers), n_rows)
    own, of_rows = rng.normal(size=(n_customers, 5)), rng.normal(size=(len(customer), 5))
    label = rng.random(n_customers) < expit(signal * (own[:, 0] + own[:, 1]) - 0.7)
    y = label[customer]
    if mixed:
        y = np.where(rng.random(len(y)) < 0.3, rng.random(len(y)) < expit(signal * of_rows[:, 0] - 0.7), y)
    return np.hstack((own[customer] + 0.05 * rng.normal(size=of_rows.shape), of_rows)), y.astype(np.int64), customer


def measure_calibration(n_customers: int, n_rows: int, signal: float, mixed: bool, seed: int) -> list[float]:
    """Return the log losses on new customers; NaN if the fit has too few customers of a class."""
    rng = np.random.default_rng(seed)
    X, y, customer = make_similar(n_customers, n_rows, signal, mixed, rng)
    X_new, y_new, _ = make_similar(N_TRAIN, n_rows, signal, mixed, rng)
    losses = []
    for penalty in PENALTIES:
        _calibration._PENALTY_BELOW_1_OF_GROUPS = penalty
        forest = AUCForestClassifier(100, n_jobs=N_JOBS, random_state=seed).fit(X, y, groups=customer)
        losses.append(log_loss(y_new, forest.predict_proba(X_new)))
    is_calibrated, forest.calibration_ = forest.calibration_ is not None, None
    frequencies = np.tile(forest.class_prior_, (len(y_new), 1))
    losses = [log_loss(y_new, frequencies), log_loss(y_new, forest.predict_proba(X_new)), *losses]
    return losses if is_calibrated else [np.nan] * len(losses)


def print_calibration(n_seeds: int) -> None:
    """Print mean log losses for several numbers of customers and of rows of each."""
    warnings.simplefilter("ignore")
    print(f"{n_seeds} seeds: log loss of the frequencies, of the mean of trees, and with penalties {PENALTIES}")
    for (n_customers, n_rows), signal, mixed in product(((30, 8), (60, 8), (60, 30), (200, 5)), (0, 0.7, 2), (0, 1)):
        case = n_customers, n_rows, signal, bool(mixed)
        losses = np.nanmean([measure_calibration(*case, seed) for seed in range(n_seeds)], axis=0)
        name = f"{n_customers:3} x {n_rows:2}, signal {signal}, {'mixed' if mixed else 'alike'}"
        print(f"{name}: {', '.join(f'{loss:.4f}' for loss in losses)}", flush=True)


def print_few(n_seeds: int) -> None:
    """Print means over seeds with their standard errors for several numbers of positive customers."""
    warnings.simplefilter("ignore")
    print(f"{n_seeds} seeds: ROC AUC out of bag less that of new customers, its gain by the choice of mixture and")
    print("shrinkage, and the gain in balanced accuracy by tuning the threshold")
    for shift, n_customers in product((0.0, 1.0), (60, 200)):
        for n_positive in (1, 2, 3, 5, 8, 10, 15, 30):
            found = np.array([measure_few(n_customers, n_positive, shift, seed) for seed in range(n_seeds)])
            errors = found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
            shown = (f"{mean:+.4f} ± {error:.4f}" for mean, error in zip(found.mean(axis=0), errors))
            print(
                f"shift {shift:.0f}, {n_positive:2} of {n_customers:3} customers positive: {', '.join(shown)}",
                flush=True,
            )


def main() -> None:
    """Print means over seeds with their standard errors, and those of the differences of the same seeds."""
    if "calibration" in sys.argv:
        print_calibration(int(sys.argv[2]) if len(sys.argv) > 2 else 12)
        return
    if "few" in sys.argv:
        print_few(int(sys.argv[2]) if len(sys.argv) > 2 else 40)
        return
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    by_row, by_customer, new_by_row, new_by_customer = np.array([measure(seed) for seed in range(n_seeds)]).T
    print(f"{N_TRAIN} customers of {N_ROWS} rows, {n_seeds} seeds: ROC AUC, mean ± standard error")
    for name, values in (
        ("out of bag, trees sample rows", by_row),
        ("    the same forest on new customers", new_by_row),
        ("    too high by", by_row - new_by_row),
        ("out of bag, trees sample customers", by_customer),
        ("    the same forest on new customers", new_by_customer),
        ("    too high by", by_customer - new_by_customer),
        ("gain on new customers by sampling customers", new_by_customer - new_by_row),
    ):
        print(f"{name:44} {values.mean():7.4f} ± {values.std(ddof=1) / np.sqrt(n_seeds):.4f}")


if __name__ == "__main__":
    main()
