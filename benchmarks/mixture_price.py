"""What does the mixture of criteria cost? Times of fit and prediction, and of what is chosen out of bag.

    python benchmarks/mixture_price.py [N_TREES]

The default forest against `criterion="auc"` at the same number of trees, and both against fits that choose nothing;
one thread, processor seconds, medians of interleaved fits.
"""

import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from aucforest import AUCForestClassifier
from aucforest.estimators._evidence import OutOfBagScores

REPEATS = 7
SETS = {
    "500 x 10, 2 classes": (500, 10, 2, 0.9),
    "4,000 x 20, 2 classes": (4000, 20, 2, 0.9),
    "48,000 x 16, 2 classes, noisy": (48_000, 16, 2, 0.6),
    "30,000 x 30, 2 classes, 5 %": (30_000, 30, 2, 0.95),
    "8,000 x 30, 8 classes": (8000, 30, 8, None),
    "14,000 x 16, 26 classes": (14_000, 16, 26, None),
}
FORESTS = {"auto": {}, "auc": {"criterion": "auc"}, "auc, shrinkage=5": {"criterion": "auc", "shrinkage": 5.0}}


def make(n_rows: int, n_features: int, n_classes: int, first: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels; of two classes the first has this proportion."""
    options = {"weights": None if first is None else [first], "flip_y": 0.2 if first == 0.6 else 0.01}
    informative = min(12, n_features - 2)
    return make_classification(
        n_rows, n_features, n_informative=informative, n_redundant=0, n_classes=n_classes, random_state=0, **options
    )


def timed(method: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """Return a method that adds its processor seconds to the last of some numbers."""

    def call(*arguments: Any) -> Any:
        start = process_time()
        try:
            return method(*arguments)
        finally:
            seconds[-1] += process_time() - start

    return call


def main() -> None:
    """Print a line for each set."""
    n_trees = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    chosen = [0.0]
    for name in ("add", "variant_gains", "variant_scores", "choose_amount"):
        setattr(OutOfBagScores, name, timed(getattr(OutOfBagScores, name), chosen))
    print(f"{n_trees} trees, one thread; processor seconds, medians of {REPEATS}")
    for title, shape in SETS.items():
        X, y = make(*shape)
        make_forest = partial(AUCForestClassifier, n_trees, n_jobs=1, random_state=0)
        fits, predicts, shares = ({name: [] for name in FORESTS} for _ in range(3))
        for turn in range(REPEATS if len(X) < 10_000 else 3):
            for name, options in FORESTS.items():
                chosen.append(0.0)
                start = process_time()
                forest = make_forest(**options).fit(X, y)
                fitted = process_time()
                forest.predict_proba(X)
                if turn > 0:
                    fits[name].append(fitted - start)
                    predicts[name].append(process_time() - fitted)
                    shares[name].append(chosen[-1] / (fitted - start - chosen[-1]))
        fit, predict = ({name: median(some) for name, some in times.items()} for times in (fits, predicts))
        print(
            f"{title:32} fit {fit['auto']:7.3f} s, {fit['auto'] / fit['auc']:.2f} of auc; predict"
            f" {predict['auto'] / predict['auc']:.2f} of auc; choosing {median(shares['auto']):.1%} of the rest of the"
            f" fit, auc {median(shares['auc']):.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
