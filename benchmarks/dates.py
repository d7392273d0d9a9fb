"""Are dates as good as columns made of them by hand? The flights of 2013, and which of them are cancelled.

    python benchmarks/dates.py [N_SEEDS]

The bundled table has month, day of the week and hour of the departure as numbers. Here they are replaced by the moment
of the departure, of which the forest makes its features itself, or by parts of it. Weeks are divided into thirds, each
of which is the test data once; then the forest of January to August predicts September to December, where the time is
beyond all thresholds. All tables have the columns in the same order, so that the same values give the same forest.
"""

import sys

import numpy as np
import pandas as pd
from joblib import cpu_count

from aucforest import AUCForestClassifier
from aucforest.datasets import load_flights
from aucforest.fitting import coding
from aucforest.metrics import roc_auc_score

N_TREES, N_JOBS = 100, cpu_count()
PARTS = ["month", "weekday", "departure"]
FLIGHTS = load_flights(as_frame=True)
DAYS, CANCELLED, OTHERS = np.asarray(FLIGHTS.day), np.asarray(FLIGHTS.target), FLIGHTS.data.drop(columns=PARTS)
BY_HAND = OTHERS.join(FLIGHTS.data[PARTS])
MOMENT = pd.to_datetime("2013-01-01") + pd.to_timedelta(DAYS - 1, "D") + pd.to_timedelta(BY_HAND["departure"], "h")

DATED = OTHERS.assign(departs=MOMENT)
# Columns, what is made of dates, and the maximum number of bins of times.
TABLES: dict[str, tuple[pd.DataFrame, list[str] | str, int]] = {
    "by hand": (BY_HAND, "auto", 32),
    "none of them": (OTHERS, "auto", 32),
    "a moment, by default": (DATED, "auto", 32),
    "with at most 12 bins of times": (DATED, "auto", 12),
    "with 255 bins of times": (DATED, "auto", 255),
    "without its time": (DATED, ["month", "day of week", "hour"], 32),
}
THIRD = (DAYS - 1) // 7 % 3
DESIGNS: dict[str, list[np.ndarray]] = {
    "thirds of the weeks": [np.equal(THIRD, number) for number in range(3)],
    "the last four months": [np.asarray(BY_HAND["month"] > 8)],
}


def auc(table: str, test: np.ndarray, seed: int) -> float:
    """Return the ROC AUC of test flights."""
    X, date_parts, coding.TIME_BINS = TABLES[table]
    forest = AUCForestClassifier(N_TREES, date_parts=date_parts, n_jobs=N_JOBS, random_state=seed)
    proba = forest.fit(X[~test], CANCELLED[~test]).predict_proba(X[test])
    return roc_auc_score(CANCELLED[test], proba[:, 1])


def main() -> None:
    """Print means, and differences from the columns made by hand with standard errors over test sets and seeds."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for design, tests in DESIGNS.items():
        found = {
            name: np.array([auc(name, test, seed) for test in tests for seed in range(n_seeds)]) for name in TABLES
        }
        print(f"{design}, {n_seeds} seeds: ROC AUC, and difference ± standard error")
        for name, values in found.items():
            difference = values - found["by hand"]
            error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else float("nan")
            print(f"    {name:30} {values.mean():.4f}  {difference.mean():+.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()
