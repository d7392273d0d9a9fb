"""Is out-of-bag ROC AUC right where customers repeat? By row and by customer, against that of new customers.

    python benchmarks/grouped_oob.py [N_SEEDS]

Each of 400 customers has 10 rows. Five features belong to the customer and hardly change from row to row, five to the
row. The label is that of the customer, except for one row in ten. A forest whose trees sample rows knows a customer by
other rows, so that rows out of bag seem easy; one whose trees sample whole customers does not. New customers, 1,000 for
each seed, tell which is right.
"""

import sys

import numpy as np
from joblib import cpu_count

from aucforest import AUCForestClassifier
from aucforest.metrics import roc_auc_score

N_ROWS, N_TRAIN, N_TEST, N_JOBS = 10, 400, 1000, cpu_count()


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


def main() -> None:
    """Print means over seeds with their standard errors, and those of the differences of the same seeds."""
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
