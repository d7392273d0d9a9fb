"""Compile what most tests need, once: processes of tests that start together would each compile it."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

from tests.estimators.data import make_table, small_forest

# bins with all that follows the growing; codes of 16 bits, whose trees take half as long to compile
FORESTS = [{"oob_score": True, "n_estimators": 20}, {"max_bins": None, "shrinkage": None}]


def fit(params: dict[str, Any]) -> None:
    X, y = make_table(missing=0.1)
    small_forest(**params).fit(X, y).predict_proba(X)


if __name__ == "__main__":
    with ProcessPoolExecutor(len(FORESTS)) as processes:
        list(processes.map(fit, FORESTS))
