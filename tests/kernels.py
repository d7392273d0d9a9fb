"""Compile what most tests need, once: processes of tests that start together would each compile it."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

from tests.estimators.data import make_table, small_forest

# rows and parameters: bins with all that follows the growing; codes of 16 bits, which more than 255 values need
FORESTS = [(240, {"oob_score": True, "n_estimators": 20}), (300, {"max_bins": None, "shrinkage": None})]


def fit(n_rows: int, params: dict[str, Any]) -> None:
    X, y = make_table(n_rows, missing=0.1)
    small_forest(**params).fit(X, y).predict_proba(X)


if __name__ == "__main__":
    with ProcessPoolExecutor(len(FORESTS)) as processes:
        list(processes.map(fit, *zip(*FORESTS)))
